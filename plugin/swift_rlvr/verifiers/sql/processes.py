"""Processes that run queries, started outside of the trainer; `worker.py` is what runs in them.

They stay: to start one takes longer than most rows. All answers to a row go to one process, where its
databases are open. They see nothing of the environment.
"""

import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

from swift_rlvr.verifiers.sql.connection import NO_MEMORY, TOO_SLOW
from swift_rlvr.verifiers.sql.grading import Limits
from swift_rlvr.verifiers.workers import Worker

_MODULE = "swift_rlvr.verifiers.sql.worker"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
}
# A gold runs on a dozen databases, and so do queries near it.
_SECONDS_OF_GOLD = 10
_LONGEST = 1 << 20  # bytes of a report


class Job(NamedTuple):
    """A row with answers to it. database: a path, or statements that make one."""

    database: str
    gold: str
    answers: Sequence[str]


class _RowWorker:
    """A process for rows, and the thread that asks it."""

    def __init__(self, memory_mb: int):
        self.thread = ThreadPoolExecutor(1)
        self._worker = Worker(_MODULE, memory_mb << 20, _ENVIRONMENT, _LONGEST)

    def judge(self, job: Job, limits: Limits, seconds: float) -> list[dict[str, Any]]:
        """What is said of the row, then the verdict on each answer."""
        message = {"database": job.database, "gold": job.gold, "limits": asdict(limits)}
        # By itself, so that what it takes counts for no answer.
        first = {**message, "seconds": _SECONDS_OF_GOLD * seconds}
        about_row = self._ask(first)
        if "ended" in about_row:
            return [{"bad_gold": f"the gold is {about_row['ended']}"}]
        reports = [about_row]
        if "bad_gold" in about_row:
            return reports
        for answer in job.answers:
            report = self._ask({**message, "answer": answer, "seconds": seconds})
            # The next answer finds a new process, and gets the row prepared outside of its own time.
            if "ended" in report:
                report = {"reason": report["ended"], "place": 0, "detail": "its process was ended"}
                self._ask(first)
            reports.append(report)
        return reports

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The report on a message; {"ended": reason} where the process ended."""
        report = self._worker.ask(message, message["seconds"])
        if "ended" in report:
            return {"ended": TOO_SLOW if report["ended"] == "timeout" else NO_MEMORY}
        return report


@cache
def _workers(count: int, memory_mb: int) -> list[_RowWorker]:
    return [_RowWorker(memory_mb) for _ in range(count)]


os.register_at_fork(after_in_child=_workers.cache_clear)  # no thread is left there


def run(
    jobs: Sequence[Job], limits: Limits, seconds: float, memory_mb: int, workers: int
) -> list[list[dict[str, Any]]]:
    """The reports on each job: one on its row, {"bad_gold": why} where that cannot be graded, else one
    on each answer after it, see `grading.grade`.

    Args:
        seconds: of CPU time for an answer.
        memory_mb: for SQLite in each process, in MiB.
    """
    started = _workers(workers, memory_mb)
    futures = []
    try:
        for job in jobs:
            # The same row goes to the same process in every step. Python's own hash would differ by rank.
            key = zlib.crc32(f"{job.database}\n{job.gold}".encode("utf-8", "replace"))
            worker = started[key % workers]
            futures.append(worker.thread.submit(worker.judge, job, limits, seconds))
        return [future.result() for future in futures]
    finally:
        # What has not begun when this is interrupted never begins.
        for future in futures:
            future.cancel()
