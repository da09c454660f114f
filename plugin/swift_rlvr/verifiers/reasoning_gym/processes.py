"""Processes that draw items and score answers, started outside of the trainer; `worker.py` is what
runs in them.

Their PYTHONHASHSEED is 0: several tasks choose from sets of texts, whose order depends on it, and all
ranks are to have the same rows.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from swift_rlvr.verifiers.workers import Worker

MEMORY_MB = 1024
MODULE = "swift_rlvr.verifiers.reasoning_gym.worker"
_LONGEST = 1 << 26  # bytes of a report
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}

# of a thread: its processes, by their memory
_here = threading.local()


@cache
def pool(workers: int) -> ThreadPoolExecutor:
    """Threads that live as long as this process, each with a process of its own."""
    return ThreadPoolExecutor(workers)


os.register_at_fork(after_in_child=pool.cache_clear)  # no thread is left there


def ask(job: dict[str, Any], seconds: float, memory_mb: int = MEMORY_MB) -> dict[str, Any]:
    """The report on a job by the process of this thread; {"ended": how} if it ended.

    Args:
        seconds: of CPU time, after which the process ends itself where the job says so.
        memory_mb: in MiB, on top of what a process has when it has imported reasoning-gym.

    Raises:
        NotInstalledError: reasoning-gym is not installed.
    """
    workers = vars(_here)
    name = f"{memory_mb} MiB"
    if name not in workers:
        workers[name] = Worker(MODULE, memory_mb << 20, {**os.environ, **_VARIABLES}, _LONGEST)
    report = workers[name].ask(job, seconds)
    if "MemoryError" in str(report.get("error")):
        workers[name].close()  # the next job gets a process that has all its memory
    return report
