"""The worker processes of the math verifier: started on first use, killed at a deadline, gone with their parent.

The pools of the standard library cannot kill one slow task and carry on with the others. This one can, from any thread,
under torchrun and after a fork. A "nursery" process loads sympy and forks the workers. They share no memory, threads or
locks with the calling process, so it does not matter what else is loaded there.
"""

import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from swift_rlvr.errors import require

# Seconds for an answer while others wait. One that takes longer is done again after them, with the full time. The more
# of these there are in a batch, the shorter the slice gets.
FIRST_SLICE, SHORTEST_SLICE = 0.1, 0.02
SECONDS_PER_ANSWER = 0.01  # what each answer adds to a batch's deadline, so that a large batch is not cut off
# Deadlines count the seconds in which a worker runs, since on a busy machine it waits for a core.
STARVED = 4.0  # by the clock they are at most this many times as long
START_SECONDS = 120.0
WORKER = "swift_rlvr.math_answers.worker"
_TICKS = os.sysconf("SC_CLK_TCK")
_GOLD = -1  # in place of an answer's index


@dataclass
class Job:
    """One gold and the answers to compare with it, if any; `how` is as in `swift_rlvr.math_answers.judge.parse_answer`.

    `Pool.run` fills in whether `gold` could be parsed, None where that took too long, and `results`: by the answer's
    index, whether it equals the gold, or None where it could not be parsed. One that took too long has no result.
    """

    gold_text: str
    gold_how: str
    answers: list[tuple[str, str]]  # (text, how)
    gold: bool | None = None
    results: dict[int, bool | None] = field(default_factory=dict)


@dataclass
class _Unit:
    """The answers of a job, by index, that a worker does one after another."""

    job: Job
    indexes: deque[int]


class _Worker:
    def __init__(self, pid: int, connection: Connection):
        self.pid, self.connection = pid, connection
        self.unit: _Unit | None = None
        self.index, self.dead = _GOLD, False

    def begin(self, unit: _Unit, seconds: float) -> None:
        self.unit, self.index = unit, _GOLD
        self._allow(seconds)
        job = unit.job
        try:
            self.connection.send((job.gold_text, job.gold_how, [job.answers[index] for index in unit.indexes]))
        except OSError:
            self.dead = True

    def receive(self, seconds: float) -> None:
        """Take the replies that are there; after each, the next answer gets `seconds`."""
        try:
            while self.unit is not None and self.connection.poll():
                reply, job = self.connection.recv(), self.unit.job
                if self.index == _GOLD:
                    job.gold = reply
                else:
                    job.results[self.index] = reply
                if job.gold is False or not self.unit.indexes:
                    self.unit = None
                else:
                    self.index = self.unit.indexes.popleft()
                    self._allow(seconds)
        except (EOFError, OSError):  # out of memory, or sympy overflowed the stack: treated like an answer too slow
            self.dead = True

    def _allow(self, seconds: float) -> None:
        self.seconds, self.since, self.cpu = seconds, time.monotonic(), _cpu_seconds(self.pid)
        self.deadline = self.since + seconds

    def is_late(self) -> bool:
        """Whether it has used up its time or is dead; where it was kept from running, the deadline moves instead."""
        if self.unit is None or self.dead:
            return self.dead
        now = time.monotonic()
        if now < self.deadline:
            return False
        used = _cpu_seconds(self.pid) - self.cpu  # inf - inf is nan: then the clock alone decides
        if used < 0.8 * self.seconds and now < self.since + STARVED * self.seconds:
            self.deadline = now + max(0.01, self.seconds - used)
            return False
        return True


class Pool:
    """Judges jobs in `size` worker processes, with `timeout` seconds for a comparison.

    `batch_timeout` is for one call of `run`, without the start of the workers; each answer adds `SECONDS_PER_ANSWER`.
    """

    _control: socket.socket  # to the nursery, while there is one

    def __init__(self, size: int, timeout: float, batch_timeout: float):
        self.size, self.timeout, self.batch_timeout = size, timeout, batch_timeout
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._nursery: subprocess.Popen | None = None
        self._workers: list[_Worker] = []

    def run(self, jobs: list[Job]) -> None:
        """Fill in the jobs' `gold` and `results`, in as many seconds as the batch may take.

        Raises:
            RuntimeError: the worker processes cannot be started.
        """
        if self._owner != os.getpid():  # after a fork the processes are the parent's
            self._reset()
        with self._lock:
            try:
                self._run(jobs)
            except (OSError, EOFError):  # the nursery was killed, perhaps by a system out of memory: try once more
                self._stop()
                self._run(jobs)
            except BaseException:  # Ctrl-C: the next batch must not read replies to this one
                self._stop()
                raise

    def close(self) -> None:
        """End all processes. The next `run` starts new ones."""
        if self._owner == os.getpid():
            with self._lock:
                self._stop()

    def _run(self, jobs: list[Job]) -> None:
        self._start()
        begin = time.monotonic()
        budget = self.batch_timeout + SECONDS_PER_ANSWER * sum(len(job.answers) for job in jobs)
        slow: deque[_Unit] = deque()
        self._work(_in_order(jobs), slow, begin + STARVED * budget)
        self._work(slow, None, begin + budget)

    def _work(self, waiting: deque[_Unit], slow: deque[_Unit] | None, end: float) -> None:
        """Do the units. What exceeds its slice goes to `slow`; without `slow` each answer has the full time."""
        while (waiting or any(worker.unit for worker in self._workers)) and time.monotonic() < end:
            seconds = self.timeout
            if slow is not None:
                seconds = min(seconds, max(SHORTEST_SLICE, FIRST_SLICE / (1 + len(slow) / 16)))
            for worker in self._workers:
                if worker.unit is None and waiting:
                    worker.begin(waiting.popleft(), seconds)
            busy = [worker for worker in self._workers if worker.unit and not worker.dead]
            if busy:
                until = min([end, *(worker.deadline for worker in busy)])
                ready = wait([worker.connection for worker in busy], max(0.0, until - time.monotonic()))
                for worker in busy:
                    if worker.connection in ready:
                        worker.receive(seconds)
            for worker in self._workers:
                if worker.is_late() and not worker.dead:
                    worker.receive(seconds)  # it may have answered while another one was handled
                if worker.is_late():
                    self._interrupt(worker, waiting, slow)
        for worker in self._workers:
            if worker.unit is not None:
                self._interrupt(worker, deque(), slow)

    def _interrupt(self, worker: _Worker, waiting: deque[_Unit], slow: deque[_Unit] | None) -> None:
        """Replace a worker. Its answer goes to `slow`, if given; those after it wait for the next free worker."""
        self._workers[self._workers.index(worker)] = self._fork(instead_of=worker.pid)
        worker.connection.close()
        unit, index = worker.unit, worker.index
        if unit is None:
            return
        if slow is not None:
            slow.append(unit if index == _GOLD else _Unit(unit.job, deque([index])))
        if unit.indexes and index != _GOLD:
            waiting.append(unit)

    def _start(self) -> None:
        if self._nursery is not None and self._nursery.poll() is None:
            return
        require("math_verify", extra="math", purpose="the comparison of mathematical answers")
        self._stop()
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # The child must find the package even where a plugin file put it on sys.path by hand.
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", WORKER]
        self._nursery = subprocess.Popen(command, stdin=theirs.fileno(), env={**os.environ, "PYTHONPATH": path})
        theirs.close()
        self._control.settimeout(START_SECONDS)
        try:
            ready = self._control.recv(5)
        except TimeoutError:
            ready = b""
        if ready != b"ready":
            self._stop()
            raise RuntimeError(
                f"the processes that compare mathematical answers do not start: try `{' '.join(command)}` by hand"
            )
        self._workers = [self._fork() for _ in range(self.size)]

    def _fork(self, instead_of: int = 0) -> _Worker:
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [instead_of.to_bytes(8, "big")], [theirs.fileno()])
        theirs.close()
        pid = int.from_bytes(self._control.recv(8), "big")
        return _Worker(pid, Connection(ours.detach()))

    def _stop(self) -> None:
        for worker in self._workers:
            worker.connection.close()
        self._workers = []
        if self._nursery is not None:
            self._control.close()  # the nursery then kills the workers and ends
            try:
                self._nursery.wait(2)
            except subprocess.TimeoutExpired:
                self._nursery.kill()
                self._nursery.wait()
        self._nursery = None


def _in_order(jobs: list[Job]) -> deque[_Unit]:
    """Ordinary answers first, those that look like large powers last, so that these delay only each other."""
    ordinary: deque[_Unit] = deque()
    risky: deque[_Unit] = deque()
    for job in jobs:
        marks = [_looks_slow(job.gold_text) or _looks_slow(text) for text, _ in job.answers]
        # Where this unit has no answers it is the gold alone, which thus gets parsed before the risky answers.
        ordinary.append(_Unit(job, deque(index for index, mark in enumerate(marks) if not mark)))
        if any(marks):
            risky.append(_Unit(job, deque(index for index, mark in enumerate(marks) if mark)))
    return ordinary + risky


def _looks_slow(text: str) -> bool:
    return len(text) > 300 or text.count("^") + text.count("**") + text.count("!") > 2 or text.count("(") > 20


def _cpu_seconds(pid: int) -> float:
    """Processor time that a process has used; infinity where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / _TICKS
