"""The files of training runs -> one page with their curves, tables and all completions, and a
picture of the curves.
"""

from swift_rlvr.evaluation.report.page import write_report

__all__ = ["write_report"]
