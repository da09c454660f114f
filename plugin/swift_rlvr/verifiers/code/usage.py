"""What a child uses of the machine, as its parent sees it in /proc.

Some of it no limit of the kernel's counts: sleep, the threads of one process, and what has been
written to files that are removed already and held by a descriptor or a mapping.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

# Not the generator of `random`, whose numbers a trainer may have seeded and count on.
_RANDOM = SystemRandom()

COMPUTES, WAITS_FOR_DISK, SLEEPS = "computes", "waits for the disk", "sleeps"


class Clock:
    """For how long a process computes, waits for the disk, and does neither though nobody kept it
    from computing.

    Its CPU time is known exactly. For the rest there is no figure to be trusted: what the kernel
    says of the run queue is at times negative or far too long (Linux 6.18), and elapsed time less
    CPU time would charge a program for a busy machine. So its state is looked at, at random times.
    A process that could decide when, by a byte of output, would compute at just that time.

    Attributes:
        asleep, blocked: in seconds, estimated: each look speaks for all of the time since the last.
    """

    def __init__(self, process: int, longest: float):
        """longest: the most seconds between two looks, as far as this process gets a core."""
        self.process = process
        self.asleep = 0.0
        self.blocked = 0.0
        self._longest = longest
        self._computed = 0.0
        self._unseen = 0.0
        self._in_doubt = 0.0
        self.next_look = time.monotonic() + self._pause()

    def _pause(self) -> float:
        return self._longest * _RANDOM.uniform(0.1, 1.0)

    def computed(self) -> float:
        """The CPU time of all its threads, as far as it is known where it has been waited for."""
        # as clock_getcpuclockid(3) has it: the process' number, inverted, and three bits for the
        # kind of clock
        clock = ~self.process << 3 | 2
        with suppress(OSError):
            self._computed = time.clock_gettime(clock)
        return self._computed

    def waited(self, seconds: float) -> None:
        """For so long it was waited for."""
        # Not more than the longest pause: where this process itself had to wait for a core, the
        # other may have waited too.
        self._unseen = min(self._unseen + seconds, self._longest)

    def look(self, has_answered: Callable[[], bool]) -> None:
        """See what it does now; `has_answered` says whether something from it lies in a pipe, so
        that it may rightly wait for this process. `judge` says later whether that was so.
        """
        state = _state(self.process)
        # Asked after that: on a busy machine it may answer and fall asleep between the two.
        if state == SLEEPS and has_answered():
            self._in_doubt += self._unseen
        elif state == SLEEPS:
            self.asleep += self._unseen
        elif state == WAITS_FOR_DISK:
            self.blocked += self._unseen
        self._unseen = 0.0
        self.next_look = time.monotonic() + self._pause()

    def judge(self, is_done: bool) -> None:
        """Whether what lay in the pipe was all that it was waited for."""
        if not is_done:
            self.asleep += self._in_doubt
        self._in_doubt = 0.0


def _state(process: int) -> str:
    """What most speaks for it among its threads: one computes, or would if the machine had time for
    it; one waits for the disk; all sleep.
    """
    result = SLEEPS
    for state in _states_of_threads(process):
        if state == "R":
            return COMPUTES
        if state == "D":
            result = WAITS_FOR_DISK
    return result


def _states_of_threads(process: int) -> Iterable[str]:
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:  # it has just ended
        return
    for thread in threads:
        with suppress(OSError):  # or this thread has
            stat = Path(f"/proc/{process}/task/{thread}/stat")
            text = stat.read_text(encoding="utf-8", errors="replace")
            # The state follows the name in parentheses, which the code chooses: it may have a
            # parenthesis in it.
            yield text.rpartition(")")[2].split()[0]


def threads(process: int) -> int:
    """How many threads a process has; 0 where it has ended."""
    try:
        # A folder has a link for itself, one from above, and one for each folder in it.
        return os.stat(f"/proc/{process}/task").st_nlink - 2
    except OSError:
        return 0


def written(process: int) -> int:
    """The bytes that a process has written to files and pipes since its start; 0 where it has ended,
    or where the kernel does not count them (CONFIG_TASK_IO_ACCOUNTING).
    """
    with suppress(OSError):
        for line in Path(f"/proc/{process}/io").read_text(encoding="ascii").splitlines():
            name, _, number = line.partition(": ")
            if name == "wchar":
                return int(number)
    return 0
