"""The files of training runs -> one page with their curves, tables and all completions, and a picture of the curves.

Reads what every trainer writes: `logging.jsonl` (one object per logging step), `completions.jsonl` (one table per
logging step; ms-swift writes it with `--log_completions true`), `reasons.jsonl`, `alarms.jsonl`, `args.json`, and the
summaries of evaluations. README.md beside this file describes the page.
"""

from swift_rlvr.evaluation.report.curves import FORMATS, panels, smoothed
from swift_rlvr.evaluation.report.reading import read_completions, read_steps
from swift_rlvr.evaluation.report.write import write_report

__all__ = ["FORMATS", "panels", "read_completions", "read_steps", "smoothed", "write_report"]
