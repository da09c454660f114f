"""The parent's side of one child process: start it, exchange messages with it until its time is up,
kill it.

A message is one line of JSON in either direction. `sandboxed` gives a child for untrusted code: a
fork of a process (`Zygote`) that runs none. The scorers of `swift_rlvr.verifiers.reasoning_gym` run
in children that stay.

Nothing that a child sends is trusted: its reports are bounded, they may be anything, and they are
only ever read as JSON.
"""

import errno
import fcntl
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from swift_rlvr.verifiers.code import folders, usage
from swift_rlvr.verifiers.code.usage import Clock

# The program of the zygote. It imports this folder's modules outside the package, so that neither
# the package nor its dependencies are loaded beside untrusted code, and then forgets the folder, so
# that untrusted code cannot import from it.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); import child, folders, lockdown, inside.jobs; "
    "del sys.path[0]; child.serve(folders, lockdown, inside.jobs)"
)
_HERE = str(Path(__file__).parent)

# All that a sandboxed child sees of an environment: the trainer's may hold tokens and keys.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # Else each thread has the C library reserve 64 MiB of address space, which is limited.
    "MALLOC_ARENA_MAX": "1",
    # The order of a set of strings, and with it the reward, must not change from run to run.
    "PYTHONHASHSEED": "0",
    # Its own folder, in which it is.
    "HOME": ".",
    "TMPDIR": ".",
}
# Threads of OpenBLAS take address space, which is limited.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
_DECODE, _ENCODE = json.JSONDecoder().decode, json.JSONEncoder().encode
_REFUSED = "code cannot be run safely here, so it is not run at all"

_CHUNK = 1 << 16  # bytes that are read or written at a time
_LONGEST_REPORT = 1 << 16  # bytes; a longer one would fill the parent's memory

ALL_TESTS = 5  # times `Limits.seconds`, for all tests of a completion
# Times either on the wall, where the machine is busy. A process that wakes up again and again, as one
# that writes to the disk in a loop, may wait for a core each time, and use hardly any of its time.
LOAD = 10
_TICK = 0.1  # seconds between looks at what a child uses, at most

# What a child may write.
_FILE_SIZE = 16 << 20  # bytes of one file
_WRITTEN = 128 << 20  # bytes of all that it has ever written, besides its output

# A child that writes a byte at a time would take the trainer's time for each: after so many short
# reads in an exchange, the next ones wait, in seconds, until more has come.
_SHORT_READ = 1 << 12  # bytes
_SHORT_READS = 50
_SHORT_PAUSE = 0.005

# Threads of a child. With small stacks thousands would fit into its memory, and the machine would
# have no room left for a process of anyone else's. Programs of people have a dozen.
_THREADS = 128


class SandboxError(RuntimeError):
    """Untrusted code cannot be run safely on this machine, and so it is not run at all."""


class Stopped(Exception):
    """Nothing more is to be run (`Zygotes.stop`)."""


class Ended(Exception):
    """A child was stopped, or ended without an answer.

    Attributes:
        reason: one of `check.FAILURES`.
        detail: more about it, such as the signal; may be empty.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    # of CPU time for one test, a third of that asleep; `ALL_TESTS` times that for all together
    seconds: float = 6.0
    # MiB of address space, of which the interpreter itself takes some 20
    memory_mb: int = 512
    # modules besides the standard library that code may import, such as numpy
    packages: tuple[str, ...] = ()
    # run code also where the kernel has no Landlock: it can then read what the user can read, the
    # expected results in the trainer's memory included
    without_landlock: bool = False
    # use it where the kernel has it; False is for tests of how it is on a kernel that has none
    landlock: bool = True


class _Process(Protocol):
    """What a child needs of the process that it is: a part of `subprocess.Popen`."""

    pid: int
    returncode: int | None

    def kill(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


def python(*arguments: str, environment: Mapping[str, str]) -> Callable[[list[int]], _Process]:
    """A function that starts `python ARGUMENTS PIPES` for a `Child`.

    By `subprocess`, which never runs Python code between fork and exec, so it can be used from any
    thread of a process that has loaded CUDA. It has no terminal, and Ctrl-C is for the parent.
    """

    def start(pipes: list[int]) -> _Process:
        return subprocess.Popen(
            [sys.executable, *arguments, *map(str, pipes)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # No other file that the trainer has open is inherited.
            pass_fds=pipes,
            env=environment,
            start_new_session=True,
        )

    return start


class Zygote:
    """A Python that has imported what children need, runs no code of a completion, and forks a
    child when asked to, one at a time.

    It ends with this process, and its children end with it. Between the two is one that does no more
    than wait for the end of either, and remove the folder then (`child.serve`).

    Attributes:
        pid: the number of that one, which ends the zygote at SIGTERM.
        folder: that of its children, who can write nowhere else. Those of one completion share it,
            and after them `clean` has to be called.
    """

    def __init__(self, packages: tuple[str, ...] = (), landlock: bool = True):
        """Raises SandboxError where a package is not installed."""
        # of a submodule, which may be named too, those of its package
        places = {name: _place(name.partition(".")[0]) for name in packages}
        # what the package's own C code loads lies beside it, as in numpy.libs
        readable = []
        for place in places.values():
            readable += [str(place), f"{place}.libs"]
        environment = _ENVIRONMENT | _ONE_THREAD if packages else _ENVIRONMENT

        self.folder = tempfile.mkdtemp(prefix="swift-rlvr-")
        self._untouched = folders.reset_times(self.folder)
        request = {
            "parent": os.getpid(),
            "packages": {name: str(place.parent) for name, place in places.items()},
            "readable": readable,
            "folder": self.folder,
            "landlock": landlock,
        }
        # -S: without the module `site`, no file that a user has installed is run.
        start = python("-S", "-c", _START, _HERE, environment=environment)

        self._has_forked = False
        # of messages, not of a stream of bytes
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        try:
            with theirs:
                # It waits there: who removes the folder knows of it even if this process is killed now.
                self._socket.send(json.dumps(request).encode())
                self._process = start([theirs.fileno()])
        except BaseException:
            self._socket.close()
            folders.remove(self.folder)
            raise
        self.pid = self._process.pid
        self._owner = os.getpid()

    def fork(self, pipes: list[int], request: dict) -> _Process:
        """Start a child that has these pipes, and locks itself down as the request says.

        Raises SandboxError where the zygote does not start, OSError where it has been killed since,
        or where the machine has no room for another process just now.
        """
        with suppress(OSError):
            socket.send_fds(self._socket, [json.dumps(request).encode()], pipes)
        answer = self._receive(None)
        if not answer:
            status = self._process.wait()
            ended = f"{sys.executable} ended early: exit status {status}"
            # by the machine, for instance where it has no memory left
            if self._has_forked or status == -signal.SIGKILL:
                raise OSError(errno.ECHILD, ended)
            raise SandboxError(f"{_REFUSED}: {ended}")
        number = int(answer)
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        self._has_forked = True
        return _Fork(self, number)

    def wait(self, child: int, timeout: float | None, is_asked: bool) -> int:
        """The exit status of a child. Raises TimeoutError; the next call must then say that it is
        asked.
        """
        if not is_asked:
            with suppress(OSError):
                self._socket.send(str(child).encode())
        answer = self._receive(timeout)
        if not answer:
            # The zygote has ended, and the kernel kills its children with it.
            return -signal.SIGKILL
        return int(answer)

    def _receive(self, timeout: float | None) -> bytes:
        """The zygote's answer to one request, empty where it has ended. Raises TimeoutError."""
        self._socket.settimeout(timeout)
        try:
            return self._socket.recv(64)  # an answer is a number, far shorter than that
        except ConnectionError:
            return b""

    @property
    def is_alive(self) -> bool:
        # It hangs up before its children are killed with it.
        poll = select.poll()
        poll.register(self._socket, 0)
        return not poll.poll(0)

    def end(self) -> None:
        """Have it end at once, and its children with it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """End it; in a fork of the process that has started it, let go of it."""
        self._socket.close()
        if os.getpid() != self._owner:
            self._process.returncode = 0  # not this process' child: nothing is to be waited for
            return
        if self._process.returncode is None:
            self.end()
            self._process.wait()
        folders.remove(self.folder)  # nothing is left to do, unless that one was killed

    def clean(self) -> bool:
        """Make the folder what it was before any child; False where that is impossible: a folder may
        stay large that had many files in it.
        """
        with suppress(OSError):
            # Nobody has listed it either, which may have left a time in it.
            if folders.times(self.folder) != self._untouched:
                folders.empty(self.folder)
            return folders.reset_times(self.folder) == self._untouched
        return False


class _Fork:
    """A child of a zygote."""

    def __init__(self, zygote: Zygote, pid: int):
        self.pid = pid
        self.returncode: int | None = None
        self._zygote = zygote
        self._is_asked = False

    def kill(self) -> None:
        # Only the zygote waits for its children. Until it is asked to wait for this one, the number
        # stays this child's, even after its end, so that no other process is killed by mistake.
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is not None:
            return self.returncode
        try:
            self.returncode = self._zygote.wait(self.pid, timeout, self._is_asked)
        except TimeoutError:
            self._is_asked = True
            raise subprocess.TimeoutExpired("child", timeout or 0) from None
        return self.returncode


class Zygotes:
    """Zygotes that are kept from one completion to the next, one for each thread that runs some:
    to start one takes ten times as long as most completions run.

    They end when this object is closed or collected, or with the process. A fork of the process, or
    a copy of this object, starts its own.
    """

    def __init__(self, packages: tuple[str, ...] = (), landlock: bool = True):
        self._arguments = packages, landlock
        self._idle: deque[Zygote] = deque()
        self._borrowed: set[Zygote] = set()
        self.is_stopped = False
        self._owner = os.getpid()
        self.close = weakref.finalize(self, _close_all, self._idle)

    def __reduce__(self) -> tuple:
        return type(self), self._arguments

    @contextmanager
    def borrow(self) -> Iterator[Zygote]:
        """One that nobody else uses meanwhile. Raises what `Zygote` does, and Stopped."""
        if self.is_stopped:
            raise Stopped
        zygote = self._take() or Zygote(*self._arguments)
        self._borrowed.add(zygote)
        is_whole = False
        try:
            if self.is_stopped:
                raise Stopped
            yield zygote
            is_whole = True
        finally:
            self._borrowed.discard(zygote)
            # After an error it may still be about to answer.
            if is_whole and self.close.alive and zygote.clean():
                self._idle.append(zygote)
            else:
                zygote.close()

    def stop(self) -> None:
        """Have the threads that use some come to their end at once, after Ctrl-C; none is lent until
        `is_stopped` is reset.
        """
        self.is_stopped = True
        for zygote in list(self._borrowed):
            zygote.end()

    def _take(self) -> Zygote | None:
        """An idle one that is still alive."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            _close_all(self._idle)
        while True:
            try:
                zygote = self._idle.pop()
            except IndexError:
                return None
            # Again, for the kernel notes the time: of now, and not of the end of another completion.
            if zygote.is_alive and zygote.clean():
                return zygote
            zygote.close()


def _close_all(zygotes: deque[Zygote]) -> None:
    while zygotes:
        zygotes.pop().close()


class Child:
    """A process that exchanges messages until `close`, which kills it, or until nothing refers to
    this object.

    Attributes:
        deadline: the time, by `time.monotonic`, at which an exchange with the child ends in
            `Ended`.
        folder: its working directory, which it must not fill; None where nobody looks at it.
    """

    def __init__(
        self,
        start: Callable[[list[int]], _Process],
        deadline: float = math.inf,
        folder: str | None = None,
        stdin: bytes | None = None,
    ):
        """Start it with pipes for messages to it and from it, and for a program with its standard
        input and a pipe for its output.
        """
        self.deadline = deadline
        self.folder = folder

        # What it may use, in seconds, and until when (`allow`).
        self._allowed: float | None = None
        self._most_busy = math.inf
        self._most_asleep = math.inf
        self._most_used = math.inf
        self._most_waited = math.inf
        # For how long it was waited for, on the wall, and how much more of that does not count.
        self._waited = 0.0
        self._free = 0.0
        self._most_written = _WRITTEN

        self._unsent = memoryview(b"")  # what is still to be written of the messages
        # By pipe: what has been read, and of each pipe that is being read how many bytes at most.
        self._received: dict[int, bytearray] = defaultdict(bytearray)
        self._open: dict[int, int] = {}
        self._poll = select.poll()  # for all of these

        ours: set[int] = set()
        theirs: list[int] = []
        try:
            self._messages = _pipe(ours, theirs, is_read_here=False)
            self._reports = _pipe(ours, theirs, is_read_here=True)
            if stdin is not None:
                theirs.append(_file_of(stdin))
                self._stdout = _pipe(ours, theirs, is_read_here=True)
            self._process = start(theirs)
        except BaseException:
            _close_pipes(ours)
            raise
        finally:
            # As soon as it has them: a pipe has an end only where nobody else holds it open.
            _close_pipes(theirs)
        self._clock = Clock(self._process.pid, _TICK)
        # Also where this object is collected, so that no exception leaves a child behind.
        self.close = weakref.finalize(self, _end_process, self._process, ours, os.getpid())

    def allow(self, seconds: float, in_all: float = math.inf) -> None:
        """From now on it may compute, or wait for the disk, for so long, and for a third of that do
        nothing at all; where the machine is busy, all of that within `LOAD` times as long, but for
        the first moments of each exchange; and no more than `in_all` since its start.

        What it has used so far is read at the next look: a test may allow it thousands of times.
        """
        self._allowed = seconds
        self._most_used = in_all
        self._most_waited = self._waited + LOAD * seconds

    @property
    def used(self) -> float:
        """The seconds for which it has computed, waited for the disk, or done nothing, though
        nobody kept it from computing.
        """
        return self._busy() + self._clock.asleep

    def _busy(self) -> float:
        return self._clock.computed() + self._clock.blocked

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None where the child has not been waited for."""
        return self._process.returncode

    def ask(self, message: dict, longest: int = _LONGEST_REPORT) -> dict:
        """Send a message and return the report that follows, of at most `longest` bytes. Raises
        Ended if none does.
        """
        self.send(message)
        return self.receive(longest)

    def send(self, message: dict) -> None:
        """Write a message, as far as there is room; `receive` writes the rest."""
        self.send_line(_ENCODE(message).encode())

    def send_line(self, line: bytes) -> None:
        """The same of a message that is written already."""
        self._unsent = memoryview(line + b"\n")
        self._write()
        if self._unsent:
            self._poll.register(self._messages, select.POLLOUT)

    def receive(self, longest: int = _LONGEST_REPORT) -> dict:
        """The next report, of at most `longest` bytes. Raises Ended if none comes."""
        report = _as_report(self.receive_line(longest))
        if report is None:
            raise self._end()
        return report

    def receive_line(self, longest: int = _LONGEST_REPORT) -> bytes:
        """The same, which may be anything but a line break, not read. Raises Ended if none comes."""
        received = self._received[self._reports]
        self._read_from(self._reports, longest)
        self._exchange(lambda: b"\n" in received or self._reports not in self._open)
        line = self._take_line()
        if line is None:
            raise self._end()
        return line

    def run(self, max_output: int) -> tuple[bytes, dict | None]:
        """Have a program, which was sent, run to its end; its standard output, and its report if it
        made one.

        Raises Ended where it was stopped, also after `max_output` bytes, or where it ended with
        neither a report nor exit status 0.
        """
        self._read_from(self._reports, _LONGEST_REPORT)
        self._read_from(self._stdout, max_output)
        self._most_written = _WRITTEN + max_output
        self._exchange(lambda: not self._open)
        line = self._take_line()
        report = None if line is None else _as_report(line)
        if report is None:
            ended = self._end()
            if self.status != 0:
                raise ended
        return bytes(self._received[self._stdout]), report

    def _take_line(self) -> bytes | None:
        """The first line of what the child has written; None where there is no whole one."""
        received = self._received[self._reports]
        end = received.find(b"\n")
        if end < 0:
            return None
        line = bytes(received[:end])
        del received[: end + 1]
        return line

    def _end(self) -> Ended:
        """Wait for the end of a child that has closed its pipes, and say how it ended."""
        if self._reports in self._open:
            # It has not closed them: what it sent was no report.
            return Ended("ended early")
        while True:
            # A child that has closed its pipes can still compute or sleep: the limits hold on.
            start = time.monotonic()
            try:
                status = self._process.wait(self._longest_wait(start))
            except subprocess.TimeoutExpired:
                continue
            except Ended as ended:
                return ended
            finally:
                self._has_waited(time.monotonic() - start)
            if status < 0:
                return Ended("killed", f"signal {-status}")
            return Ended("ended early", f"exit status {status}")

    def _longest_wait(self, now: float) -> float:
        """For how many seconds to wait before this is to be asked again. Raises Ended where the child
        has used what it may.
        """
        if now >= self._clock.next_look:
            self._look()
        left = min(self.deadline - now, self._most_waited - self._waited)
        if left <= 0:
            raise Ended("timeout")
        return min(left, max(0.001, self._clock.next_look - now))

    def _has_waited(self, seconds: float) -> None:
        if seconds > self._free:
            self._waited += seconds - self._free
        self._free = max(0.0, self._free - seconds)
        self._clock.waited(seconds)

    def _look(self) -> None:
        """See what it does and has used. Raises Ended where that is too much: time, threads, or what
        it has written.
        """
        # Where something can be sent to it now, it need not be asleep by its own choice; a pipe that is
        # full has to wait for the child.
        is_seen = not self._unsent or not _is_ready([self._messages], select.POLLOUT)
        if is_seen:
            self._clock.look(lambda: _is_ready(self._open, select.POLLIN))
        busy, asleep = self._busy(), self._clock.asleep
        if self._allowed is not None:
            self._most_busy = busy + self._allowed
            self._most_asleep = asleep + max(self._allowed / 3, _TICK)
            self._allowed = None
        is_over = busy >= self._most_busy or asleep >= self._most_asleep
        if is_over or busy + asleep >= self._most_used:
            raise Ended("timeout")
        if self.folder is None or not is_seen:
            return
        process = self._process.pid
        if usage.threads(process) > _THREADS:
            raise Ended("killed", f"more than {_THREADS} threads")
        if usage.written(process) > self._most_written or folders.is_full(self.folder):
            raise Ended("too many files")

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to
        be stopped.

        Both at the same time: a child that writes before it has read all of its input must not wait
        for a parent that waits for the child.
        """
        short_reads = 0
        # Where a test makes thousands of calls, a busy machine adds a little to each.
        self._free = _TICK
        has_ended = is_done()
        while not has_ended:
            start = time.monotonic()
            longest = self._longest_wait(start)
            if short_reads > _SHORT_READS:
                time.sleep(_SHORT_PAUSE)
            ready = self._poll.poll(1000 * longest)
            self._has_waited(time.monotonic() - start)
            for pipe, _ in ready:
                if pipe == self._messages:
                    self._write()
                    if not self._unsent:
                        self._poll.unregister(pipe)
                else:
                    short_reads += self._read(pipe) < _SHORT_READ
            has_ended = is_done()
            self._clock.judge(has_ended)

    def _read_from(self, pipe: int, most: int) -> None:
        """Have `_exchange` read from it, so many bytes at most."""
        if pipe not in self._open:
            self._poll.register(pipe, select.POLLIN)
        self._open[pipe] = most

    def _write(self) -> None:
        try:
            written = os.write(self._messages, self._unsent[:_CHUNK])
        except BlockingIOError:  # a child that does not read must not block the parent
            return
        except BrokenPipeError:
            # The child need not read all of it.
            written = len(self._unsent)
        self._unsent = self._unsent[written:]

    def _read(self, pipe: int) -> int:
        """Read what is there; how many bytes it was."""
        chunk = os.read(pipe, _CHUNK)
        self._received[pipe] += chunk
        # An endless output would fill the parent's memory.
        if len(self._received[pipe]) > self._open[pipe]:
            raise Ended("too much output")
        if not chunk:
            del self._open[pipe]
            self._poll.unregister(pipe)
        return len(chunk)


def _is_ready(pipes: Iterable[int], event: int) -> bool:
    """Whether one of them can be read, or written, now."""
    poll = select.poll()
    for pipe in pipes:
        poll.register(pipe, event)
    return bool(poll.poll(0))


def _as_report(line: bytes) -> dict | None:
    """What a child says, which may be anything; None where it is no report."""
    try:
        report = _DECODE(line.decode())
    # RecursionError: a hundred thousand brackets
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) else None


def _pipe(ours: set[int], theirs: list[int], is_read_here: bool) -> int:
    """A new pipe to a child, or from it: the parent's end of it. Both ends are noted."""
    with _PIPES_LOCK:
        read, write = os.pipe()
        _PIPES.update((read, write))
    here, there = (read, write) if is_read_here else (write, read)
    ours.add(here)
    theirs.append(there)
    if not is_read_here:
        os.set_blocking(here, False)
    return here


def _file_of(stdin: bytes) -> int:
    """A file in memory for a child to read. With a pipe, right programs failed that ask for the size
    of their input or map it, as they can where a judge redirects a file.
    """
    with _PIPES_LOCK:
        number = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with open(number, "wb") as file:
            file.write(stdin)
            file.flush()
            # The child can open it anew, for writing as well.
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(number, fcntl.F_ADD_SEALS, seals)
            to_read = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
        _PIPES.add(to_read)
    return to_read


def _close_pipes(pipes: Iterable[int]) -> None:
    with _PIPES_LOCK:
        for pipe in pipes:
            _PIPES.discard(pipe)
            os.close(pipe)


# All ends that this process has open, also those of a child that another thread is just starting. The
# lock is held while it forks, so that no end is open that does not stand here; a thread that holds it
# may be interrupted by the collector, which closes pipes, too.
_PIPES: set[int] = set()
_PIPES_LOCK = threading.RLock()


def _let_go() -> None:
    """In a fork of the process whose children these are: a pipe that it holds, too, would never end
    for them.
    """
    _PIPES_LOCK.release()
    _close_pipes(list(_PIPES))


os.register_at_fork(
    before=_PIPES_LOCK.acquire, after_in_parent=_PIPES_LOCK.release, after_in_child=_let_go
)


def _end_process(process: _Process, pipes: set[int], owner: int) -> None:
    # A fork of it has let go of the pipes, whose numbers may be those of other files by now.
    if os.getpid() != owner:
        return
    process.kill()
    process.wait()
    _close_pipes(pipes)


@contextmanager
def sandboxed(
    zygote: Zygote,
    limits: Limits,
    deadline: float,
    job: dict | None = None,
    stdin: bytes | None = None,
) -> Iterator[Child]:
    """A child that has locked itself down, in the zygote's folder, and was sent a job.

    It sees nothing of the parent's environment. The deadline is by `time.monotonic`. There is
    standard output only where there is standard input, for `Child.run`.

    Raises:
        SandboxError: where the child could not lock itself down.
        OSError: where it was killed before that, or found no time.
    """
    request = {
        "threads": _THREADS,
        "memory": limits.memory_mb << 20,
        "file_size": _FILE_SIZE,
        # The kernel's own limit. It ends a child also while this process has no time to look.
        "cpu_seconds": math.ceil(ALL_TESTS * limits.seconds) + 1,
        "without_landlock": limits.without_landlock,
    }

    def start(pipes: list[int]) -> _Process:
        return zygote.fork(pipes, request)

    with closing(Child(start, deadline, zygote.folder, stdin)) as child:
        if job is not None:
            child.send(job)
        # It has read nothing of the job before it says this, so that it can be believed, and its end
        # is not the code's.
        try:
            report = child.receive()
        except Ended as ended:
            if ended.reason != "ended early":
                raise OSError(errno.EAGAIN, f"{sys.executable} {ended}") from None
            report = {"detail": f"{sys.executable} {ended}"}
        if report.get("kind") != "locked down":
            raise SandboxError(f"{_REFUSED}: {report.get('detail')}")
        yield child


def _place(package: str) -> Path:
    """The folder of an installed package, or the file of a module."""
    spec = find_spec(package)
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0])
    if spec is not None and spec.has_location and spec.origin is not None:
        return Path(spec.origin)
    raise SandboxError(f"the package {package} is named in `packages` but is not installed here")
