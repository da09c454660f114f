"""Processes that draw items and score answers, started outside of the trainer; `worker.py` is what
runs in them.

They stay, because importing reasoning-gym takes seconds. They are those of the sandbox and not of
`swift_rlvr.utils.parallel`, whose multiprocessing would import the trainer's main module in each of
them. Their PYTHONHASHSEED is 0: several tasks choose from sets of texts, whose order depends on it,
and all ranks are to have the same rows.
"""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from swift_rlvr.utils.errors import NotInstalledError
from swift_rlvr.verifiers.code.process import Child, Ended, python

MEMORY_MB = 1024
_START = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from swift_rlvr.verifiers.reasoning_gym.worker import main
main()
"""
_PLUGIN = str(Path(__file__).parents[3])
_START_SECONDS = 300  # for the import on a busy machine
# Limit on the wall of a job that computes nothing, which none should reach: so many times its
# seconds of CPU time, and at least so many seconds.
_WAIT_FACTOR = 30
_WAIT_LEAST = 60
_LONGEST = 1 << 26  # bytes of a report
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}

# of a thread: its processes, by their memory; on Linux they end with it
_here = threading.local()


@cache
def pool(workers: int) -> ThreadPoolExecutor:
    """Threads that live as long as this process, each with a process of its own."""
    return ThreadPoolExecutor(workers)


os.register_at_fork(after_in_child=pool.cache_clear)  # no thread is left there


def ask(job: dict[str, Any], seconds: float, memory_mb: int = MEMORY_MB) -> dict[str, Any]:
    """The report on a job by the process of this thread, which is replaced where it ends; {"ended":
    how} where it does.

    Args:
        seconds: of CPU time, after which the process ends itself where the job says so.
        memory_mb: in MiB, on top of what a process has when it has imported reasoning-gym.

    Raises:
        NotInstalledError: reasoning-gym is not installed.
    """
    processes = vars(_here)
    name = f"{memory_mb} MiB"
    was_killed = False
    while True:
        child = processes.pop(name, None) or _start(memory_mb)
        child.deadline = time.monotonic() + max(_WAIT_LEAST, _WAIT_FACTOR * seconds)
        try:
            report = child.ask(job, _LONGEST)
        except Ended as ended:
            child.close()
            killed = ended.reason == "killed" and child.status == -signal.SIGKILL
            if killed and not was_killed:
                # by somebody else, perhaps, and not for what is in the job
                was_killed = True
                continue
            if ended.reason == "timeout" or child.status == -signal.SIGPROF:
                return {"ended": "timeout"}
            return {"ended": f"exit status {child.status}"}
        if "MemoryError" in str(report.get("error")):
            child.close()  # the next job gets a process that has all its memory
        else:
            processes[name] = child
        return report


def _start(memory_mb: int) -> Child:
    deadline = time.monotonic() + _START_SECONDS
    child = Child(python("-c", _START, _PLUGIN, environment={**os.environ, **_VARIABLES}), deadline)
    try:
        report = child.ask({"memory": memory_mb << 20})
    except Ended as ended:
        child.close()
        raise RuntimeError(f"a process for reasoning-gym did not start: {ended}") from None
    if "unavailable" in report:
        raise NotInstalledError(report["unavailable"])
    return child
