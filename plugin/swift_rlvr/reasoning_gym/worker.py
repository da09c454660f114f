"""A process that scores answers: one line of JSON in, one out. Started by `grading.Worker`, outside of the trainer.

An answer has so many seconds of CPU time, measured by a timer whose signal ends the process: neither the load of the
machine nor C code that holds the interpreter changes that. Once reasoning-gym is imported, the process gives up all
that it does not need (`sandbox.lockdown`): it can start no other one, open no socket and write no file.
"""

import copy
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.reasoning_gym import library
from swift_rlvr.reasoning_gym.rows import BadEntry, read_entry
from swift_rlvr.reasoning_gym.scorers import SCORERS
from swift_rlvr.sandbox.lockdown import LockdownError, lock_down


def score(job: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """The reply to a job: the score of its answer, by our scorer of the task or by reasoning-gym's, or why it has none.

    A scorer that raises an error for an answer cannot read it; one that does so for the right answer too has a bad row.
    """
    try:
        entry = read_entry(job["entry"])
        dataset = _dataset(entry["task"], json.dumps(entry["settings"], sort_keys=True))
    except (BadEntry, InputError, KeyError) as error:
        return {"bad_row": f"{type(error).__name__}: {error}"[:300]}
    scorer = SCORERS.get(entry["task"], _theirs)
    reply: dict[str, Any] = {}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    for answer in (job["answer"], entry["answer"]):
        try:
            value = float(scorer(answer, copy.deepcopy(entry), dataset))  # some scorers write into the entry
        except Exception as error:  # of a scorer that does not expect such a text
            reply = {"bad_row" if reply else "error": f"{type(error).__name__}: {error}"[:300]}
            continue
        reply = reply or {"score": value}
        break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return reply


def _theirs(answer: str, entry: Any, dataset: Any) -> float:
    return dataset.score_answer(answer, entry)


@lru_cache(maxsize=128)  # all tasks with their defaults take 90 MB
def _dataset(name: str, settings: str) -> Any:
    return library.create(name, json.loads(settings), seed=0, size=1)


def _limit_memory(memory: int) -> None:
    """Refuse more address space than now and `memory` bytes, and everything but computing, where the kernel can."""
    used = 0
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    try:
        lock_down(os.getppid(), "/", used + memory, cpu_seconds=10**8, file_size=0, landlock=False)
    except LockdownError:  # no scorer here runs what it reads: this is the second wall
        if used:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))


def main() -> None:
    """Serve until standard input ends. Arguments: CPU seconds for an answer, bytes of memory."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a scorer prints is no reply

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message).encode() + b"\n")

    try:
        library.load()
    except InputError as error:
        reply({"unavailable": str(error)})
        return
    _limit_memory(memory)
    reply({"ready": True})
    for line in sys.stdin.buffer:
        message = score(json.loads(line), seconds)
        reply(message)
        if "MemoryError" in str(message):
            return  # the next answer gets a process that has all its memory


if __name__ == "__main__":
    main()
