"""What runs in the processes of `processes.py`: a job is a message, its verdict the report.

A process can start no other one, open no socket and write no file (`code.lockdown`), and SQLite lets
a query do nothing but read (`connection`). A job has so many seconds of CPU time, by a timer whose
signal ends the process, for what SQLite does in one step: to fit a long pattern, to write a long
text. An answer has fewer where its gold took few.
"""

import gc
import signal
from collections import OrderedDict
from typing import Any

from swift_rlvr.verifiers.code.child import connect
from swift_rlvr.verifiers.sql.connection import NO_MEMORY, set_memory
from swift_rlvr.verifiers.sql.grading import BadGold, Limits, Prepared, grade, prepare
from swift_rlvr.verifiers.worker_limits import confine

# Rows whose databases stay open. Each has a file and some small databases in memory.
_MOST_ROWS = 24
# Seconds of an answer: so many times what the gold took, and at least a second, or this share of the
# limit where it may make all steps. A query that makes all 50 million takes some 2 seconds.
_TIMES_THE_GOLD = 10
_LEAST_SHARE = 0.3
_LEAST_SECONDS = 1.0
# Of a process with the rows that Python holds, times the limit of SQLite's memory.
_MEMORY_FACTOR = 3


def main() -> None:
    """Do jobs until there are no more messages; the first one has the limit of memory."""
    receive, report = connect()
    memory = receive()["memory"]
    set_memory(memory)
    # SQLite's own limits are the first wall
    confine(_MEMORY_FACTOR * memory)
    report({})
    rows: OrderedDict[str, Prepared | BadGold] = OrderedDict()
    while job := receive():
        signal.setitimer(signal.ITIMER_PROF, job["seconds"])
        try:
            result = _report(job, rows)
            if result.get("reason") == NO_MEMORY or NO_MEMORY in result.get("bad_gold", ""):
                # Once more without the databases of other rows: no verdict depends on those.
                while rows:
                    _forget_oldest(rows)
                gc.collect()
                result = _report(job, rows)
            report(result)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _report(job: dict[str, Any], rows: OrderedDict[str, Prepared | BadGold]) -> dict[str, Any]:
    """What is said of a job's answer, or of its row where it has none."""
    limits = Limits(**job["limits"])
    key = repr((job["database"], job["gold"], limits))
    if key not in rows:
        if len(rows) == _MOST_ROWS:
            _forget_oldest(rows)
        try:
            rows[key] = prepare(job["database"], job["gold"], limits)
        except BadGold as error:
            rows[key] = error
        except MemoryError:
            rows[key] = BadGold(f"the database: {NO_MEMORY}")
        except Exception as error:  # of a schema that no test has had yet
            rows[key] = BadGold(f"{type(error).__name__}: {error}")
    rows.move_to_end(key)
    prepared = rows[key]
    if isinstance(prepared, BadGold):
        return {"bad_gold": str(prepared)}
    if "answer" in job:
        share = _LEAST_SHARE * prepared.steps / limits.steps
        least = max(_LEAST_SECONDS, share * job["seconds"])
        seconds = min(job["seconds"], max(least, _TIMES_THE_GOLD * prepared.seconds))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        return grade(prepared, job["answer"], limits)
    return {
        "remarks": prepared.remarks,
        "databases": len(prepared.further),
        "told_apart": prepared.told_apart,
        "mutants": prepared.mutants,
    }


def _forget_oldest(rows: OrderedDict[str, Prepared | BadGold]) -> None:
    _, oldest = rows.popitem(last=False)
    if isinstance(oldest, Prepared):
        oldest.close()
