"""The files of training runs -> one page with their curves, tables and all completions, and a picture of the curves.

Reads what every trainer writes: `logging.jsonl` (one object per logging step), `records.jsonl` (graded completions;
of ms-swift without our callback its `completions.jsonl`), `rewards.json`, `alarms.jsonl`, `args.json`, and summaries
of evaluations. README.md beside this file describes the page.
"""

from swift_rlvr.evaluation.report.page import write_report

__all__ = ["write_report"]
