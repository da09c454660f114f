"""Cores and memory that this process may use: what the machine has, and less in a container or a
batch job, whose control groups (cgroups) have limits.

A limit counts for all groups below it, so that the folder of this process's group is looked at, and
those above. In a container the root of the mounted file system may be the container's own group.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")


def usable_cores() -> int:
    """The cores that this process may use; under torchrun, its share beside the other ranks."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    cores = min([cores, *_cpu_quotas()])
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return max(1, cores // ranks)


def usable_memory() -> int:
    """Bytes of the host's memory that this process may have, with all that shares its limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_memory_limits()])


def _cpu_quotas() -> Iterator[int]:
    """The cores of each quota, at least one."""
    for folder in _groups("cpu"):
        # Version 2: "150000 100000", microseconds in each period, or "max 100000".
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not period:
            quota = _text(folder / "cpu.cfs_quota_us")  # version 1: -1 without a limit
            period = _text(folder / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal():
            yield max(1, int(quota) // int(period))


def _memory_limits() -> Iterator[int]:
    """The limit of each group in bytes."""
    for folder in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):  # of version 2 and version 1
            limit = _text(folder / name)
            if limit.isdecimal():
                yield int(limit)


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's groups that may limit it, from its own up."""
    for line in _text(PROC / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        root = CGROUPS
        if controllers:  # version 1 has a hierarchy for each controller
            if controller not in controllers.split(","):
                continue
            root = CGROUPS / controller
        folder = root / path.lstrip("/")
        while folder != root and root in folder.parents:
            yield folder
            folder = folder.parent
        yield root


def _text(path: Path) -> str:
    """What a file holds; "" where there is none."""
    with suppress(OSError):
        return path.read_text().strip()
    return ""
