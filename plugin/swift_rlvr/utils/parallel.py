"""Cores and processes: how many cores there are, and one function applied to many items by several
processes, in order.

Why not `concurrent.futures.ProcessPoolExecutor`: its workers share one pipe, so when one is killed
while it sends a result, for example because memory ran out, the caller hangs; and it cannot end a
worker that is busy (Python 3.14 adds `kill_workers`), so that Ctrl-C waits. Here every worker has a
pipe of its own, which breaks when the worker ends.
"""

import atexit
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# items read ahead of the result that is due, for each worker: what a slow item may hold up
_READ_AHEAD = 4


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield function(item) for each item, in order. Items are read only as they are needed.

    One worker means this process; more are processes of their own, which may start further ones.
    They end with the iterator (exhausted, closed or interrupted) and when this process dies.
    Function, items and results are pickled. BrokenProcessPool is raised where a worker was killed;
    what the function raises is raised here, in its turn.

    >>> list(map_in_order(len, ["one", "three"], workers=1))
    [3, 5]
    """
    if workers == 1:
        yield from map(function, items)
        return
    started: list[_Worker] = []
    try:
        for _ in range(workers):
            started.append(_Worker(function))
        idle, numbered, due = list(started), enumerate(items), 0
        busy: dict[Any, tuple[int, _Worker]] = {}  # by pipe
        done: dict[int, tuple[Any, Exception | None]] = {}
        while True:
            # Only to a worker that waits for it: a busy one might be sending, and both would wait
            # forever.
            while (
                idle
                and len(busy) + len(done) < _READ_AHEAD * workers
                and (pair := next(numbered, None))
            ):
                worker = idle.pop()
                with worker.connection() as pipe:
                    pipe.send(pair[1])
                busy[worker.pipe] = pair[0], worker
            if due in done:
                result, error = done.pop(due)
                if error is not None:
                    raise error
                yield result
                due += 1
            elif busy:
                for ready in wait(list(busy)):
                    number, worker = busy.pop(ready)
                    with worker.connection() as pipe:
                        done[number] = pipe.recv()
                    idle.append(worker)
            else:
                return
    finally:
        for worker in started:
            worker.end()


def map_within(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    seconds: float,
    start: Callable[[], Any],
) -> Iterator[tuple[Item, Result | Exception]]:
    """Yield each item with function(item), in order, from one process that is ended where an item
    takes too long.

    In place of a result there is a TimeoutError, a BrokenProcessPool where the process ended, or
    what the function raised; the next item then gets a new process. `start` is called in each
    process first and may take any time. Function, items, results and `start` are pickled. An item
    is read when the one before it has its result.
    """
    worker: _Worker | None = None
    try:
        for item in items:
            if worker is None:
                worker = _Worker(partial(_started, start, function))
                with worker.connection() as pipe:
                    pipe.send(())
                    _, error = pipe.recv()
                if error is not None:
                    raise error
            result: Result | Exception = TimeoutError(f"no end within {seconds:g} s")
            ended = True
            try:
                with worker.connection() as pipe:
                    pipe.send((item,))
                    if pipe.poll(seconds):
                        answer, error = pipe.recv()
                        result, ended = answer if error is None else error, False
            except BrokenProcessPool as broken:
                result = broken
            if ended:
                worker.end()
                worker = None
            yield item, result
    finally:
        if worker is not None:
            worker.end()


def _started(
    start: Callable[[], Any], function: Callable[[Item], Result], items: tuple[Item, ...]
) -> Result | None:
    if not items:
        start()
        return None
    return function(*items)


class _Worker:
    """A process that applies the function to one item at a time."""

    def __init__(self, function: Callable):
        context = get_context(
            "spawn"
        )  # not fork: threads may be running, of a progress bar or of torch
        resource_tracker.ensure_running()  # otherwise it starts below and unblocks the signal
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function))
        # Ctrl-C reaches all processes of a terminal, but this one ends its workers: they never see
        # it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        atexit.register(
            self.end
        )  # of an iterator that was abandoned: multiprocessing would wait for the worker

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The pipe to the worker; BrokenProcessPool where the worker turns out to have ended."""
        try:
            yield self.pipe
        except (EOFError, OSError) as error:
            self.process.join(1)
            raise BrokenProcessPool(
                f"a worker ended early, with exit code {self.process.exitcode}: it was killed, for example because "
                "memory ran out, or its traceback is above"
            ) from error

    def end(self) -> None:
        """Kill it, also where it is busy."""
        atexit.unregister(self.end)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, function: Callable) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone
        while True:
            item = pipe.recv()
            try:
                answer: tuple[Any, Exception | None] = function(item), None
            except Exception as error:
                error.add_note("In the worker process:\n" + traceback.format_exc())
                answer = None, error
            pipe.send(answer)


def usable_cores() -> int:
    """The cores that this process may use, shared with the other ranks on this machine under
    torchrun.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def end_with_parent() -> None:
    """Have the kernel end this process when its parent dies; on Linux only (prctl PR_SET_PDEATHSIG
    = 1).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
