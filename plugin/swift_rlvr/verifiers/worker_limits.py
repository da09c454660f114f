"""What the processes of `workers.py` call before their first job."""

import os
import resource
from pathlib import Path

from swift_rlvr.verifiers.code.lockdown import LockdownError, lock_down


def confine(memory: int) -> None:
    """Refuse more address space than now and so many bytes, and everything but computing and reading
    files, where the kernel can.
    """
    statm = Path("/proc/self/statm")
    used = 0
    if statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
    try:
        lock_down(
            os.getppid(),
            used + memory,
            cpu_seconds=10**8,
            file_size=0,
            without_landlock=True,
        )
    except LockdownError:  # nothing here runs what it reads: this is the second wall
        if used:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))
