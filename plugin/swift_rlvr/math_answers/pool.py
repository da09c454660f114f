"""Worker processes for `swift_rlvr.math_answers.worker`: started when needed, killed at a deadline, gone with their parent.

A process may ask from any thread, under torchrun, and after a fork. One "nursery" process has sympy loaded and forks
the workers; neither it nor they share memory, threads or locks with the process that asks, so that it does not matter
what that one has loaded.
"""

from __future__ import annotations

import atexit
import contextlib
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
from weakref import WeakSet

FIRST_SLICE, SHORTEST_SLICE = 0.1, 0.02
"""Seconds that an answer gets while others wait; one that takes longer is done again after them, with the full time.
The more of them there are in a batch, the shorter is the slice."""
SECONDS_PER_ANSWER = 0.01
"""What each answer adds to a batch's deadline, so that a large batch of ordinary answers is not cut off."""
STARVED = 4.0
"""On a busy machine a worker waits for a core. Its seconds are those in which it runs, but at most so many times as
long by the clock."""
START_SECONDS = 120.0
PENDING, TIMED_OUT = "pending", "timed out"
_TICKS = os.sysconf("SC_CLK_TCK")
_GOLD = -1  # in place of an answer's index
_open_pools: WeakSet[Pool] = WeakSet()


@dataclass
class Job:
    """One gold and the answers to compare with it, if any.

    answers: (text, how), see `math_judge.parse_answer`.
    gold: True or False, whether it could be parsed, or TIMED_OUT.
    results: for each answer True, False, None where it could not be parsed, or TIMED_OUT.
    """

    gold_text: str
    gold_how: str
    answers: list[tuple[str, str]]
    gold: bool | str = PENDING
    results: list[bool | str | None] = field(default_factory=list)

    def __post_init__(self):
        self.results = [PENDING] * len(self.answers)


@dataclass
class _Unit:
    """Part of a job: the answers, by index, that a worker does one after another."""

    job: Job
    indexes: deque[int]


class _Worker:
    def __init__(self, pid: int, connection: Connection):
        self.pid, self.connection = pid, connection
        self.unit: _Unit | None = None
        self.now_on, self.dead = _GOLD, False

    def begin(self, unit: _Unit, seconds: float) -> None:
        self.unit, self.now_on = unit, _GOLD
        self._give(seconds)
        job = unit.job
        try:
            self.connection.send((job.gold_text, job.gold_how, [job.answers[index] for index in unit.indexes]))
        except OSError:
            self.dead = True

    def receive(self, seconds: float) -> None:
        """Take the replies that are there; each gives the next answer `seconds`."""
        try:
            while self.unit is not None and self.connection.poll():
                reply, job = self.connection.recv(), self.unit.job
                if self.now_on == _GOLD:
                    job.gold = reply
                else:
                    job.results[self.now_on] = reply
                if job.gold is False or not self.unit.indexes:
                    self.unit = None
                else:
                    self.now_on = self.unit.indexes.popleft()
                    self._give(seconds)
        except (EOFError, OSError):  # it ran out of memory, or sympy overflowed the stack: as bad as too slow
            self.dead = True

    def _give(self, seconds: float) -> None:
        self.seconds, self.since, self.cpu = seconds, time.monotonic(), _cpu_seconds(self.pid)
        self.deadline = self.since + seconds

    def is_late(self) -> bool:
        """Whether it has used up its time; where it was kept from running, the deadline moves instead."""
        if self.unit is None or self.dead:
            return self.dead
        now = time.monotonic()
        if now < self.deadline:
            return False
        used = _cpu_seconds(self.pid) - self.cpu  # inf - inf is nan, and the clock alone decides
        if used < 0.8 * self.seconds and now < self.since + STARVED * self.seconds:
            self.deadline = now + max(0.01, self.seconds - used)
            return False
        return True


class Pool:
    """Judges jobs in worker processes.

    Args:
        workers: how many. timeout: seconds for one comparison. batch_timeout: seconds for one call of `run`, to which
            every answer adds `SECONDS_PER_ANSWER`; starting the workers does not count.
    """

    def __init__(self, workers: int, timeout: float, batch_timeout: float):
        self.workers, self.timeout, self.batch_timeout = workers, timeout, batch_timeout
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._nursery: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        self._pool: list[_Worker] = []
        _open_pools.add(self)

    def run(self, jobs: list[Job]) -> None:
        """Fill in the jobs' `gold` and `results`, in as many seconds as the batch may take.

        Raises:
            RuntimeError: where the worker processes cannot be started.
        """
        if self._owner != os.getpid():  # forked: the processes are the parent's
            self.__init__(self.workers, self.timeout, self.batch_timeout)
        with self._lock:
            try:
                self._run(jobs)
            except (OSError, EOFError):  # the nursery was killed, as by a system short of memory: once more
                self._stop()
                self._run(jobs)
            except BaseException:  # Ctrl-C: replies that are still to come must not be read as those of the next batch
                self._stop()
                raise
        for job in jobs:
            job.gold = TIMED_OUT if job.gold == PENDING else job.gold
            job.results = [TIMED_OUT if result == PENDING else result for result in job.results]

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
        """Do the units. What takes longer than its slice goes to `slow`; without `slow` it has the full time."""
        while (waiting or any(worker.unit for worker in self._pool)) and time.monotonic() < end:
            seconds = self.timeout
            if slow is not None:
                seconds = min(seconds, max(SHORTEST_SLICE, FIRST_SLICE / (1 + len(slow) / 16)))
            for worker in self._pool:
                if worker.unit is None and waiting:
                    worker.begin(waiting.popleft(), seconds)
            busy = {worker.connection: worker for worker in self._pool if worker.unit and not worker.dead}
            if busy:
                until = min([end, *(worker.deadline for worker in busy.values())])
                for connection in wait(list(busy), max(0.0, until - time.monotonic())):
                    busy[connection].receive(seconds)
            for worker in self._pool:
                if worker.is_late() and not worker.dead:
                    worker.receive(seconds)  # it may have answered while another one was looked after
                if worker.is_late():
                    self._interrupt(worker, waiting, slow)
        for worker in self._pool:
            if worker.unit is not None:
                self._interrupt(worker, deque(), slow)

    def _interrupt(self, worker: _Worker, waiting: deque[_Unit], slow: deque[_Unit] | None) -> None:
        """Replace a worker. Its answer is put off, if there is a `slow`; those after it wait for the next worker."""
        unit, index = worker.unit, worker.now_on
        fresh = self._worker(instead_of=worker.pid)
        worker.connection.close()
        worker.__dict__.update(fresh.__dict__)
        if unit is None:
            return
        if slow is not None:
            slow.append(unit if index == _GOLD else _Unit(unit.job, deque([index])))
        if unit.indexes and index != _GOLD:
            waiting.append(unit)

    def _start(self) -> None:
        if self._nursery is not None and self._nursery.poll() is None:
            return
        self._stop()
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        # The package's folder is named, since a plugin file may have been loaded from its path alone.
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "swift_rlvr.math_answers.worker"]
        self._nursery = subprocess.Popen(command, stdin=theirs.fileno(), env={**os.environ, "PYTHONPATH": path})
        theirs.close()
        self._control = ours
        ours.settimeout(START_SECONDS)
        try:
            ready = ours.recv(5)
        except TimeoutError:
            ready = b""
        if ready != b"ready":
            self._stop()
            raise RuntimeError(
                "the processes that compare mathematical answers do not start: "
                f"try `{' '.join(command)}` by hand; math-verify must be installed"
            )
        self._pool = [self._worker() for _ in range(self.workers)]

    def _worker(self, instead_of: int = 0) -> _Worker:
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [instead_of.to_bytes(8, "big")], [theirs.fileno()])
        theirs.close()
        pid = int.from_bytes(self._control.recv(8), "big")
        return _Worker(pid, Connection(ours.detach()))

    def _stop(self) -> None:
        for worker in self._pool:
            worker.connection.close()
        self._pool = []
        if self._control is not None:
            self._control.close()  # at which the nursery kills the workers and ends
        if self._nursery is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._nursery.wait(2)
            if self._nursery.poll() is None:
                self._nursery.kill()
                self._nursery.wait()
        self._nursery = self._control = None


def _in_order(jobs: list[Job]) -> deque[_Unit]:
    """Ordinary answers first, those that look like large powers last, so that they can cost only themselves."""
    ordinary, risky = deque(), deque()
    for job in jobs:
        split = [], []
        for index, (text, _) in enumerate(job.answers):
            split[_looks_slow(text) or _looks_slow(job.gold_text)].append(index)
        for units, indexes in zip((ordinary, risky), split, strict=True):
            if indexes or units is ordinary:  # without ordinary answers the gold alone, so that towers can't starve it
                units.append(_Unit(job, deque(indexes)))
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


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close()
