"""One function applied to many items, in order, by several processes that never outlive you.

Why not `concurrent.futures.ProcessPoolExecutor`? Its workers share one pipe. When one is killed
while it sends a result, for example because memory ran out, the caller hangs. And a busy worker
cannot be ended (Python 3.14 adds `kill_workers`), so Ctrl-C waits. Here every worker has a pipe of
its own, which breaks when the worker ends.
"""

import atexit
import ctypes
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# How many items per worker are read ahead of the result that is due: what one slow item may hold up.
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
        yield from _distribute(items, started)
    finally:
        for worker in started:
            worker.end()


def _distribute(items: Iterable[Any], workers: Sequence["_Worker"]) -> Iterator[Any]:
    """Give each item to an idle worker, and yield the results in the items' order."""
    numbered = enumerate(items)
    idle = list(workers)
    busy: dict[Any, tuple[int, _Worker]] = {}  # by the worker's pipe
    done: dict[int, tuple[Any, Exception | None]] = {}  # by the item's number
    due = 0  # the number of the item whose result comes next
    while True:
        # Send only to a worker that waits for an item: a busy one may be sending its result, and
        # then both sides would wait forever.
        while idle and len(busy) + len(done) < _READ_AHEAD * len(workers):
            numbered_item = next(numbered, None)
            if numbered_item is None:
                break
            number, item = numbered_item
            worker = idle.pop()
            with worker.connection() as pipe:
                pipe.send(item)
            busy[worker.pipe] = number, worker

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


def map_within(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    seconds: float,
    start: Callable[[], Any],
) -> Iterator[tuple[Item, Result | Exception]]:
    """Yield each item with function(item), in order, from a process with a time limit per item.

    A failure takes the place of a result: a TimeoutError, a BrokenProcessPool if the process
    ended, or what the function raised. After the first two, the next item gets a new process.

    Args:
        seconds: what one item may take.
        start: called first in each process; it may take any time.

    Function, items, results and `start` are pickled. An item is read when the one before it has
    its result.
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
            result: Result | Exception = TimeoutError(f"not finished after {seconds:g} s")
            ended = True
            try:
                with worker.connection() as pipe:
                    pipe.send((item,))
                    if pipe.poll(seconds):
                        answer, error = pipe.recv()
                        result = answer if error is None else error
                        ended = False
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
        # Not fork: threads of a progress bar or of torch may be running.
        context = get_context("spawn")
        # Otherwise the tracker starts below, and unblocks the signal.
        resource_tracker.ensure_running()
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function))
        # Ctrl-C reaches all processes of a terminal. The workers never see it: this process ends
        # them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        # For an iterator that was abandoned: multiprocessing would wait for the worker.
        atexit.register(self.end)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The pipe to the worker; BrokenProcessPool if the worker turns out to have ended."""
        try:
            yield self.pipe
        except (EOFError, OSError) as error:
            self.process.join(1)
            why = "it was killed, for example because memory ran out, or its traceback is above"
            raise BrokenProcessPool(
                f"a worker process died with exit code {self.process.exitcode}: {why}"
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
    # These errors mean that the parent is gone.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            item = pipe.recv()
            try:
                answer: tuple[Any, Exception | None] = function(item), None
            except Exception as error:
                error.add_note("In the worker process:\n" + traceback.format_exc())
                answer = None, error
            pipe.send(answer)


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, on Linux."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
