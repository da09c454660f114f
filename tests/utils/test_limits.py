"""Cores and memory under the limits of control groups, of both versions, as containers and batch jobs
set them.

The stand-in is a folder with the kernel's files; the last test reads this machine's own.
"""

import os

import psutil
import pytest

from swift_rlvr.utils import limits
from swift_rlvr.utils.limits import usable_cores, usable_memory

GIB = 2**30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A machine with four cores; `groups(group, {path: text})` writes its files."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(limits, "PROC", tmp_path / "proc")
    monkeypatch.setattr(limits, "CGROUPS", tmp_path / "cgroup")

    def write(group: str, files: dict[str, str]) -> None:
        files = {f"cgroup/{path}": text for path, text in files.items()}
        for path, text in ({"proc/self/cgroup": group} | files).items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")

    return write


@pytest.mark.parametrize(("ranks", "cores"), [(None, 4), ("1", 4), ("2", 2), ("3", 1), ("8", 1)])
def test_usable_cores_are_shared_by_the_ranks_of_torchrun(monkeypatch, ranks, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    if ranks is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert usable_cores() == cores


@pytest.mark.parametrize(
    ("group", "files", "cores"),
    [
        ("0::/", {}, 4),
        ("0::/", {"cpu.max": "max 100000"}, 4),
        ("0::/", {"cpu.max": "250000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "6400000 100000"}, 4),  # more than there are
        # SLURM: the job's group has the limit, its step has none.
        ("0::/job_7/step_0", {"job_7/cpu.max": "300000 100000", "job_7/step_0/x": ""}, 3),
        # A container that is named by the host's path, which it does not see.
        ("0::/docker/abc", {"cpu.max": "200000 100000"}, 2),
        # Version 1.
        (
            "3:memory:/\n2:cpu,cpuacct:/docker/abc",
            {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("2:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 4),
    ],
)
def test_a_quota_counts_as_so_many_whole_cores(groups, group, files, cores):
    groups(group, files)
    assert usable_cores() == cores


def test_a_quota_is_shared_by_the_ranks_of_torchrun_too(groups, monkeypatch):
    groups("0::/", {"cpu.max": "200000 100000"})
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert usable_cores() == 1


def test_memory_is_the_smallest_limit(groups):
    groups("0::/job/step", {"job/memory.max": f"{6 * GIB}", "job/step/memory.max": "max"})
    assert usable_memory() == 6 * GIB


def test_memory_of_version_1(groups):
    limit = "memory/memory.limit_in_bytes"
    groups("4:memory:/docker/abc", {limit: f"{4 * GIB}"})
    assert usable_memory() == 4 * GIB
    # Without a limit the kernel has a number that no machine reaches.
    groups("4:memory:/", {limit: "9223372036854771712"})
    assert usable_memory() == psutil.virtual_memory().total


def test_of_this_machine():
    assert 0 < usable_memory() <= psutil.virtual_memory().total
