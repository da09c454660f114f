"""The processes of a run, by the mark in their environment."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# Every process of a run has it; torchrun's ranks leave the process group, so that a signal to the group
# would not reach them.
MARK = "SWIFT_RLVR_RUN"
# Seconds that a program has to end before it is killed.
GRACE = 6


@contextmanager
def signals_to_end() -> Iterator[list[int]]:
    """The signals to end that arrive inside the block, in order."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {}
    for number in numbers:
        before[number] = signal.signal(number, lambda number, frame: received.append(number))
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop(child: subprocess.Popen[bytes], mark: str, is_impatient: Callable[[], bool]) -> list[int]:
    """End a program and all its processes, after GRACE seconds by force. Returns those that even that
    does not end.
    """
    is_alive = child.poll() is None
    _send(signal.SIGTERM, [child.pid] if is_alive else members(mark))
    kill_at = time.monotonic() + GRACE
    while left := members(mark):
        now = time.monotonic()
        if now > kill_at + GRACE:
            break
        if now > kill_at or is_impatient():
            # Python's tracker of shared memory and semaphores ends by itself when its processes are gone,
            # and gives back then what they have left in /dev/shm.
            killed = []
            for process in left:
                with suppress(OSError):  # it has ended
                    command = Path(f"/proc/{process}/cmdline").read_bytes()
                    if b"multiprocessing.resource_tracker" not in command:
                        killed.append(process)
            _send(signal.SIGKILL, killed)
        child.poll()
        time.sleep(0.1)
    child.poll()
    return left


def _send(number: int, processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def members(mark: str) -> list[int]:
    """The ids of the processes that are alive and have this MARK in their environment."""
    alive = []
    entry = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                alive.append(int(folder.name))
    return alive


# Of a process, by the letter that proc(5) has for it.
_STATES = {"T": "is stopped", "t": "is held by a debugger", "D": "waits for a disk or a device"}


def held_up(name: str, process: int) -> str:
    """Which process is stopped or waits, such as "rank 1 of the trainer (process 4711) is stopped"; ""
    if it is neither.
    """
    folder = Path("/proc", str(process))
    try:
        # The name before the state, in parentheses, may have any character.
        state = _STATES.get((folder / "stat").read_text().rpartition(")")[2].split()[0])
        variables = (folder / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return ""
    text = "the rollout server" if name == "server" else "the trainer"
    for variable in variables:
        if name == "trainer" and variable.startswith(b"LOCAL_RANK="):
            text = f"rank {variable.partition(b'=')[2].decode()} of the trainer"
    return f"{text} (process {process}) {state}" if state else ""


def status_text(status: int) -> str:
    """What a process's exit status says, a negative one being a signal."""
    if status >= 0:
        return f"ended with exit status {status}"
    text = f"was killed by {signal.Signals(-status).name}"
    if status == -signal.SIGKILL:
        text += ", which the system also sends when memory runs out"
    return text
