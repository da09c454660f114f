"""One function applied to many blocks of bytes by several processes, in order and a few blocks at a time.

Other than the pools of the standard library, it reads the next block only when there is room for it, sees it when a
process is killed, ends its processes at once when it is interrupted, and leaves none behind when it is killed itself.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Label, Result = TypeVar("Label"), TypeVar("Result")
_ROOM = 4  # blocks under way or waiting for an earlier one, for each worker: what a slow block may hold up


def map_blocks(
    function: Callable[[bytes], Result], blocks: Iterable[tuple[Label, bytes]], workers: int
) -> Iterator[tuple[Label, int, Result]]:
    """Yield (label, size, function(block)) for each (label, block), in order.

    One worker is this very process; several are processes of their own, to which `function` must pickle. They are not
    daemons, so that the function may start processes.

    Raises:
        RuntimeError: where a process ended early; its own traceback, if there is one, is on standard error.

    >>> list(map_blocks(len, [("first", b"abc"), ("second", b"d")], workers=1))
    [('first', 3, 3), ('second', 1, 1)]
    """
    if workers == 1:
        for label, block in blocks:
            yield label, len(block), function(block)
        return
    pipes: dict[Connection, multiprocessing.Process] = {}
    try:
        for _ in range(workers):
            pipe, process = _start(function)
            pipes[pipe] = process
        yield from _in_order(iter(blocks), pipes)
    finally:
        for pipe, process in pipes.items():
            process.terminate()
            process.join()
            pipe.close()


def _in_order(blocks: Iterator, pipes: Mapping[Connection, Any]) -> Iterator[tuple]:
    idle, busy, done = list(pipes), {}, {}
    sent = wanted = 0
    more = True
    while more or busy:
        # Only to a worker that waits for it: one that is busy might be sending, and both would wait for ever.
        while more and idle and len(busy) + len(done) < _ROOM * len(pipes):
            label, block = next(blocks, (None, None))
            if block is None:
                more = False
                break
            pipe = idle.pop()
            with _watched(pipes[pipe]):
                pipe.send_bytes(block)
            busy[pipe] = sent, label, len(block)
            sent += 1
        while wanted in done:
            yield done.pop(wanted)
            wanted += 1
        for pipe in wait(list(busy)) if busy else ():
            number, label, size = busy.pop(pipe)
            with _watched(pipes[pipe]):
                done[number] = label, size, pipe.recv()
            idle.append(pipe)
    for number in sorted(done):
        yield done[number]


@contextmanager
def _watched(process: Any) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        process.join(1)
        raise RuntimeError(
            f"a worker ended early, with exit code {process.exitcode}: its traceback stands above, "
            "unless it was killed, for instance for want of memory"
        ) from error


def _start(function: Callable) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")  # not fork: threads may be running, of a progress bar or of torch
    resource_tracker.ensure_running()  # else it starts below, and lets interrupts through again
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, function))
    # A Ctrl-C reaches all processes of a terminal. Workers are ended by this one, so they must not see it, even while
    # they are starting.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return ours, process


def _work(pipe: Connection, function: Callable) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    while True:
        try:
            block = pipe.recv_bytes()
        except (EOFError, OSError):  # the other end is closed, or its process gone in the middle of a block
            return
        result = function(block)
        try:
            pipe.send(result)
        except OSError:
            return


def usable_cores() -> int:
    """The cores that this process may use, shared with the other ranks on this machine under torchrun."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def end_with_parent() -> None:
    """Have the kernel end this process when its parent dies (Linux: prctl PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
