"""The files of training runs -> one page with their curves, tables and all completions, and a picture of the curves.

Reads what every trainer writes: `logging.jsonl` (one object per logging step), `records.jsonl` (graded completions;
of ms-swift without our callback its `completions.jsonl`), `rewards.json`, `alarms.jsonl`, `args.json`, and summaries
of evaluations. README.md beside this file describes the page.
"""

from swift_rlvr.evaluation.report.curves import panels, smoothed
from swift_rlvr.evaluation.report.reading import read_run, read_steps
from swift_rlvr.evaluation.report.write import write_report

__all__ = ["panels", "read_run", "read_steps", "smoothed", "write_report"]
