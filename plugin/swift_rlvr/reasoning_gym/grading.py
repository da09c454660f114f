"""Grades answers to rows of reasoning-gym, in processes of their own that can be killed.

An answer is right where its score is exactly 1. What else a scorer gives, such as reasoning-gym's share of an answer
that contains the right one, is partial credit. The processes stay, because importing reasoning-gym takes seconds. They
are those of the sandbox and not of `swift_rlvr.parallel`, whose multiprocessing would import the trainer's main module
in each of them.
"""

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.answers import has_unclosed_answer, last_answer
from swift_rlvr.errors import NotInstalledError
from swift_rlvr.parallel import usable_cores
from swift_rlvr.reasoning_gym.refused import REFUSED
from swift_rlvr.reasoning_gym.rows import BadEntry, read_entry
from swift_rlvr.sandbox.process import Child, Ended

_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from swift_rlvr.reasoning_gym.worker import main; main()"
_PLUGIN = str(Path(__file__).parents[2])
_START_SECONDS = 300  # for the import on a busy machine
_WAIT_FACTOR, _WAIT_LEAST = 30, 60  # wall-clock limit of an answer that computes nothing, which none should reach
_SPARE_CHARS, _CHARS_PER_GOLD = 1000, 4


class Reason(StrEnum):
    """Why a completion got its reward; the value is the text for logs. Where several apply, the first listed counts."""

    BAD_ROW = "bad row"  # the column entry is not what this package writes, or the right answer cannot be scored either
    REFUSED_TASK = "refused task"  # and the dataset string did not insist
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # more than four times as long as the gold, and 1,000 characters
    TIMED_OUT = "timed out"
    SCORER_FAILED = "scorer failed"  # it ended its process, ran out of memory, or gave a score outside 0 to 1
    WRONG = "wrong answer"
    PARTLY_RIGHT = "partly right"
    CORRECT = "correct"


class ScoredAnswer(NamedTuple):
    """The judgement of one completion."""

    score: float | None  # from 0 to 1, where 1 is right; None where the row cannot be graded
    reason: Reason
    answer: str | None = None  # as written
    detail: str = ""


def grade_all(
    texts: Sequence[str | None],
    entries: Sequence[object],
    seconds: float = 2.0,
    memory_mb: int = 1024,
    workers: int = 0,
) -> list[ScoredAnswer]:
    """Grade each completion by the entry of the same index; equal answers to the same entry are scored once.

    Args:
        seconds: of CPU time for one answer.
        memory_mb: for one answer, in MiB, on top of what a process has when it has imported reasoning-gym.
        workers: processes; 0 is one for each core.

    Raises:
        NotInstalledError: reasoning-gym is not installed.
    """
    pool = _pool(workers or usable_cores())
    results: list[ScoredAnswer | Future[ScoredAnswer]] = []
    futures: dict[tuple[str, str], Future[ScoredAnswer]] = {}
    try:
        for text, entry in zip(texts, entries, strict=True):
            result = _before_scoring(text, entry)
            if isinstance(result, ScoredAnswer):
                results.append(result)
                continue
            job = result, str(entry)
            if job not in futures:
                futures[job] = pool.submit(_score, result, str(entry), seconds, memory_mb)
            results.append(futures[job])
        return [each.result() if isinstance(each, Future) else each for each in results]
    finally:
        for future in futures.values():
            future.cancel()  # what has not begun when this is interrupted


def _before_scoring(text: str | None, entry_text: object) -> ScoredAnswer | str:
    """The answer to be scored, or the judgement where there is none."""
    try:
        entry = read_entry(entry_text)
    except BadEntry as error:
        return ScoredAnswer(None, Reason.BAD_ROW, detail=str(error))
    task = entry["task"]
    if task in REFUSED and entry.get("refused") != "yes":
        return ScoredAnswer(None, Reason.REFUSED_TASK, detail=f"{task}: {REFUSED[task]}")
    answer = None if text is None else last_answer(text)
    if answer is None:
        unclosed = text is not None and has_unclosed_answer(text)
        return ScoredAnswer(0.0, Reason.UNCLOSED_ANSWER if unclosed else Reason.NO_ANSWER)
    answer = answer.strip()
    if not answer:
        return ScoredAnswer(0.0, Reason.EMPTY_ANSWER)
    if len(answer) > _SPARE_CHARS + _CHARS_PER_GOLD * len(entry["answer"]):
        return ScoredAnswer(0.0, Reason.TOO_LONG)
    return answer


class _Scorers(threading.local):
    """The processes of a thread, by their limits: on Linux they end with the thread that started them."""

    def __init__(self) -> None:
        self.children: dict[tuple[float, int], Child] = {}


_scorers = _Scorers()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads that live as long as this process, and keep theirs."""
    return ThreadPoolExecutor(workers)


os.register_at_fork(after_in_child=_pool.cache_clear)  # no thread is left there


def _score(answer: str, entry: str, seconds: float, memory_mb: int) -> ScoredAnswer:
    """Have an answer scored by the process of this thread, which is replaced where it ends."""
    killed = False
    while True:
        child = _scorers.children.pop((seconds, memory_mb), None) or start(seconds, memory_mb)
        child.deadline = time.monotonic() + max(_WAIT_LEAST, _WAIT_FACTOR * seconds)
        try:
            report = child.ask({"answer": answer, "entry": entry})
        except Ended as ended:
            child.close()
            if child.status == -signal.SIGKILL and ended.args[0] == "killed" and not killed:
                killed = True  # by somebody else, perhaps, and not for what is in the answer
                continue
            if ended.args[0] == "timeout" or child.status == -signal.SIGPROF:
                return ScoredAnswer(0.0, Reason.TIMED_OUT, answer, f"stopped after {seconds:g} s")
            return ScoredAnswer(0.0, Reason.SCORER_FAILED, answer, f"exit status {child.status}")
        if "MemoryError" in str(report):
            child.close()  # the next answer gets a process that has all its memory
        else:
            _scorers.children[seconds, memory_mb] = child
        return _judged(answer, report)


def start(seconds: float, memory_mb: int) -> Child:
    """A process that is ready to score answers within these limits."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    child = Child("-c", _START, _PLUGIN, environment=environment, deadline=time.monotonic() + _START_SECONDS)
    try:
        report = child.ask({"seconds": seconds, "memory": memory_mb << 20})
    except Ended as ended:
        child.close()
        raise RuntimeError(f"a process that scores answers has not started: {', '.join(ended.args)}") from None
    if "unavailable" in report:
        raise NotInstalledError(report["unavailable"])
    return child


def _judged(answer: str, report: dict[str, Any]) -> ScoredAnswer:
    if "bad_row" in report:
        return ScoredAnswer(None, Reason.BAD_ROW, answer, report["bad_row"])
    if "error" in report:
        memory = report["error"].startswith("MemoryError")
        return ScoredAnswer(0.0, Reason.SCORER_FAILED if memory else Reason.WRONG, answer, report["error"])
    score = report["score"]
    if not 0 <= score <= 1:  # NaN too
        return ScoredAnswer(0.0, Reason.SCORER_FAILED, answer, f"a score of {score}")
    reason = Reason.CORRECT if score == 1 else Reason.PARTLY_RIGHT if score > 0 else Reason.WRONG
    return ScoredAnswer(score, reason, answer)
