"""What runs in the processes of `processes.py`: a job is a message, its item or score the report.

An answer has so many seconds of CPU time, measured by a timer whose signal ends the process,
whatever C code does. Once reasoning-gym is imported, the process can start no other one, open no
socket and write no file (`sandbox.lockdown`).
"""

import copy
import json
import os
import resource
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.code.child import connect
from swift_rlvr.verifiers.code.lockdown import LockdownError, lock_down
from swift_rlvr.verifiers.reasoning_gym import library
from swift_rlvr.verifiers.reasoning_gym.naming import Part
from swift_rlvr.verifiers.reasoning_gym.rows import BadEntry, dataset, item, read_entry, to_entry
from swift_rlvr.verifiers.reasoning_gym.scorers import SCORERS


def score(job: Mapping[str, Any]) -> dict[str, Any]:
    """The report on a job: the score of the answer, by our scorer or by reasoning-gym's, or why
    there is none.

    A scorer that raises an error for an answer cannot read it; one that does so for the right
    answer too has a bad row.
    """
    try:
        entry = read_entry(job["entry"])
        scored = dataset(
            entry["task"], json.dumps(entry["settings"], sort_keys=True), seed=0, size=1
        )
    except (BadEntry, InputError, KeyError) as error:
        return {"bad_row": f"{type(error).__name__}: {error}"[:300]}
    scorer = SCORERS.get(
        entry["task"], lambda answer, entry, theirs: theirs.score_answer(answer, entry)
    )
    report: dict[str, Any] = {}
    signal.setitimer(signal.ITIMER_PROF, job["seconds"])
    for answer in (job["answer"], entry["answer"]):
        try:
            value = float(
                scorer(answer, copy.deepcopy(entry), scored)
            )  # some scorers write into the entry
        except Exception as error:  # of a scorer that does not expect such a text
            report = {"bad_row" if report else "error": f"{type(error).__name__}: {error}"[:300]}
            continue
        report = report or {"score": value}
        break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return report


def draw(part: Part, split: str, number: int) -> dict[str, str]:
    """The row of an item, or why there is none."""
    try:
        return {"entry": to_entry(part, item(part, split, number))}
    except InputError as error:
        return {"refused": str(error)}
    except Exception as error:  # of a task that cannot make this item
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def _limit_memory(memory: int) -> None:
    """Refuse more address space than now and `memory` bytes, and everything but computing, where
    the kernel can.
    """
    statm = Path("/proc/self/statm")
    used = int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0
    try:
        lock_down(os.getppid(), "/", used + memory, cpu_seconds=10**8, file_size=0, landlock=False)
    except LockdownError:  # no scorer here runs what it reads: this is the second wall
        if used:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))


def main() -> None:
    """Do jobs until there are no more messages; the first one has the limit of memory."""
    receive, report = connect()
    limits = receive()
    try:
        library.load()
    except InputError as error:
        report({"unavailable": str(error)})
        return
    _limit_memory(limits["memory"])
    report({})
    while job := receive():
        if "part" in job:
            part, numbers = Part(**job["part"]), range(job["start"], job["start"] + job["size"])
            report({"items": [draw(part, job["split"], number) for number in numbers]})
        else:
            report(score(job))
