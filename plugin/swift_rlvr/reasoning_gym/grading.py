"""Grades answers to rows of reasoning-gym, in processes of their own that can be killed.

An answer is right where its score is exactly 1. What else a scorer gives, such as reasoning-gym's share of an answer
that contains the right one, is partial credit. The processes stay, because importing reasoning-gym takes seconds. They
are started by `subprocess`, not by `multiprocessing` as in `swift_rlvr.parallel`, which would import the trainer's main
module in each of them.
"""

import atexit
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.answers import has_unclosed_answer, last_answer
from swift_rlvr.errors import NotInstalledError
from swift_rlvr.parallel import usable_cores
from swift_rlvr.reasoning_gym.refused import REFUSED
from swift_rlvr.reasoning_gym.rows import BadEntry, read_entry

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


class Verdict(NamedTuple):
    """The judgement of one completion."""

    score: float | None  # from 0 to 1, where 1 is right; None where the row cannot be graded
    reason: Reason
    answer: str | None = None  # as written
    detail: str = ""


@dataclass(frozen=True)
class Limits:
    """For one answer: seconds of CPU time, and MiB of memory on top of what the process has after its start."""

    seconds: float = 2.0
    memory_mb: int = 1024


def grade_all(
    texts: Sequence[str | None], entries: Sequence[object], limits: Limits | None = None, workers: int = 0
) -> list[Verdict]:
    """Grade each completion by the entry of the same index; `workers` 0 is one for each core.

    Raises:
        NotInstalledError: reasoning-gym is not installed.
    """
    verdicts: list[Verdict | None] = []
    jobs: dict[tuple[str, str], list[int]] = {}
    for place, (text, entry) in enumerate(zip(texts, entries, strict=True)):
        verdict = _before_scoring(text, entry)
        if isinstance(verdict, str):
            jobs.setdefault((verdict, str(entry)), []).append(place)
        verdicts.append(verdict if isinstance(verdict, Verdict) else None)
    if jobs:
        scored = _pool(limits or Limits()).score(list(jobs), workers or usable_cores())
        for (answer, _), places, (reason, score, detail) in zip(jobs, jobs.values(), scored, strict=True):
            for place in places:
                verdicts[place] = Verdict(score, reason, answer, detail)
    return [verdict for verdict in verdicts if verdict is not None]


def _before_scoring(text: str | None, entry_text: object) -> Verdict | str:
    """The answer to be scored, or the verdict where there is none."""
    try:
        entry = read_entry(entry_text)
    except BadEntry as error:
        return Verdict(None, Reason.BAD_ROW, detail=str(error))
    task = entry["task"]
    if task in REFUSED and entry.get("refused") != "yes":
        return Verdict(None, Reason.REFUSED_TASK, detail=f"{task}: {REFUSED[task]}")
    answer = None if text is None else last_answer(text)
    if answer is None:
        unclosed = text is not None and has_unclosed_answer(text)
        return Verdict(0.0, Reason.UNCLOSED_ANSWER if unclosed else Reason.NO_ANSWER)
    answer = answer.strip()
    if not answer:
        return Verdict(0.0, Reason.EMPTY_ANSWER)
    if len(answer) > _SPARE_CHARS + _CHARS_PER_GOLD * len(entry["answer"]):
        return Verdict(0.0, Reason.TOO_LONG)
    return answer


_Result = tuple[Reason, float | None, str]


def _result(message: dict[str, Any]) -> _Result:
    if "bad_row" in message:
        return Reason.BAD_ROW, None, message["bad_row"]
    if "error" in message:
        memory = message["error"].startswith("MemoryError")
        return Reason.SCORER_FAILED if memory else Reason.WRONG, 0.0, message["error"]
    score = message["score"]
    if not 0 <= score <= 1:  # NaN too
        return Reason.SCORER_FAILED, 0.0, f"a score of {score}"
    reason = Reason.CORRECT if score == 1 else Reason.PARTLY_RIGHT if score > 0 else Reason.WRONG
    return reason, score, ""


class Worker:
    """A process that scores one answer at a time."""

    def __init__(self, limits: Limits):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, _PLUGIN, str(limits.seconds), str(limits.memory_mb << 20)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
            start_new_session=True,  # Ctrl-C is for the process that ends it
        )
        assert self.process.stdin and self.process.stdout
        self.jobs, self.replies = self.process.stdin, self.process.stdout
        self.deadline = time.monotonic() + _START_SECONDS
        self.job: int | None = None

    def send(self, number: int, job: tuple[str, str], seconds: float) -> bool:
        """Give it a job; False where it has ended."""
        line = json.dumps({"answer": job[0], "entry": job[1]}).encode() + b"\n"
        try:
            self.jobs.write(line)
            self.jobs.flush()
        except OSError:
            return False
        self.job, self.deadline = number, time.monotonic() + max(_WAIT_LEAST, _WAIT_FACTOR * seconds)
        return True

    def receive(self) -> dict[str, Any] | None:
        """The message that it sends next; None where it has ended."""
        line = self.replies.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def end(self) -> int:
        """Kill it; its exit status, which is its own where it had ended."""
        self.process.kill()
        status = self.process.wait()
        for pipe in (self.jobs, self.replies):
            with suppress(OSError):
                pipe.close()
        return status


class Pool:
    """Workers with the same limits. They live as long as this process, and one that ends is replaced."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.idle: list[Worker] = []
        self.lock = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        """End the workers."""
        while self.idle:
            self.idle.pop().end()

    def score(self, jobs: Sequence[tuple[str, str]], workers: int) -> list[_Result]:
        """Score all (answer, entry), in order, by at most so many workers."""
        with self.lock:
            run = _Run(self, jobs)
            try:
                run.work(workers)
            finally:
                run.close()
        return [run.results[number] for number in range(len(jobs))]


class _Run:
    """One call of `Pool.score`."""

    def __init__(self, pool: Pool, jobs: Sequence[tuple[str, str]]):
        self.pool, self.jobs = pool, jobs
        self.todo = list(range(len(jobs)))[::-1]
        self.results: dict[int, _Result] = {}
        self.killed: set[int] = set()  # jobs whose worker somebody else killed
        self.busy: list[Worker] = []  # scoring or starting
        self.selector = selectors.DefaultSelector()

    def work(self, workers: int) -> None:
        for _ in range(min(workers, len(self.jobs))):
            if self.pool.idle:
                self._next(self.pool.idle.pop())
            elif len(self.busy) < workers:
                self._start()
        while self.busy:
            wait = min(worker.deadline for worker in self.busy) - time.monotonic()
            ready = self.selector.select(max(0.0, wait))
            for key, _ in ready:
                self._receive(key.data)
            for worker in [each for each in self.busy if not ready and each.deadline <= time.monotonic()]:
                self._ended(worker, by_us=True)

    def close(self) -> None:
        """End the workers that an error has left busy."""
        while self.busy:
            self._drop(self.busy[0])
        self.selector.close()

    def _start(self) -> None:
        worker = Worker(self.pool.limits)
        self.busy.append(worker)
        self.selector.register(worker.replies, selectors.EVENT_READ, worker)

    def _next(self, worker: Worker) -> None:
        """Give an idle worker its next job, or put it aside."""
        if not self.todo:
            self.pool.idle.append(worker)
            return
        number = self.todo.pop()
        if worker.send(number, self.jobs[number], self.pool.limits.seconds):
            self.busy.append(worker)
            self.selector.register(worker.replies, selectors.EVENT_READ, worker)
        else:  # it had ended before: PR_SET_PDEATHSIG ends it with the thread that made it
            worker.end()
            self.todo.append(number)
            self._start()

    def _receive(self, worker: Worker) -> None:
        message = worker.receive()
        if message is None:
            self._ended(worker)
            return
        if "unavailable" in message:
            raise NotInstalledError(message["unavailable"])
        if worker.job is not None:
            self.results[worker.job] = _result(message)
            worker.job = None
        self.busy.remove(worker)
        self.selector.unregister(worker.replies)
        self._next(worker)

    def _ended(self, worker: Worker, by_us: bool = False) -> None:
        number, status = worker.job, self._drop(worker)
        if number is None:
            raise RuntimeError(f"a process that scores answers has ended at its start, with exit status {status}")
        if by_us or status == -signal.SIGPROF:
            self.results[number] = Reason.TIMED_OUT, 0.0, f"stopped after {self.pool.limits.seconds:g} s"
        elif status == -signal.SIGKILL and number not in self.killed:  # perhaps it was not the answer's fault
            self.killed.add(number)
            self.todo.append(number)
        else:
            self.results[number] = Reason.SCORER_FAILED, 0.0, f"exit status {status}"
        if self.todo:
            self._start()

    def _drop(self, worker: Worker) -> int:
        self.busy.remove(worker)
        self.selector.unregister(worker.replies)
        return worker.end()


_pools: dict[tuple[int, Limits], Pool] = {}


def _pool(limits: Limits) -> Pool:
    """The pool of this process: after a fork the workers are still the parent's."""
    for key in [key for key in _pools if key[0] != os.getpid()]:
        atexit.unregister(_pools.pop(key).close)
    key = os.getpid(), limits
    if key not in _pools:
        _pools[key] = Pool(limits)
    assert math.isfinite(limits.seconds)
    return _pools[key]
