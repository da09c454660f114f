"""The parent's side of one child process: start it, exchange messages with it until its time is up,
kill it.

A message is one line of JSON in either direction. `sandboxed` gives a child for untrusted code: a
fork of a process (`Zygote`) that runs none. The scorers of `swift_rlvr.verifiers.reasoning_gym` run
in children that stay.

Nothing that a child sends is trusted: its reports are bounded, they may be anything, and they are
only ever read as JSON.
"""

import errno
import json
import math
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeVar

from swift_rlvr.verifiers.code import usage
from swift_rlvr.verifiers.code.usage import Clock

Result = TypeVar("Result")

# The program of the zygote. It imports this folder's modules outside the package, so that neither
# the package nor its dependencies are loaded beside untrusted code, and then forgets the folder, so
# that untrusted code cannot import from it.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); import child, lockdown, inside.jobs; "
    "del sys.path[0]; child.serve(lockdown, inside.jobs)"
)
_HERE = str(Path(__file__).parent)

# All that a sandboxed child sees of an environment: the trainer's may hold tokens and keys.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # The order of a set of strings, and with it the reward, must not change from run to run.
    "PYTHONHASHSEED": "0",
    # Its own folder, in which it is.
    "HOME": ".",
    "TMPDIR": ".",
}
# Threads of OpenBLAS take address space, which is limited.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
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
_FOLDER_FILES = 256  # and folders
_DEEPEST_FOLDER = 16

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

    It ends with this process, and its children end with it.

    Attributes:
        folder: where the folders of its children are; they can write nowhere else.
    """

    def __init__(self, packages: tuple[str, ...] = (), landlock: bool = True):
        """Raises SandboxError where a package is not installed."""
        places = {name: _place(name) for name in packages}
        folders = {name: str(place.parent) for name, place in places.items()}
        # what the package's own C code loads lies beside it, as in numpy.libs
        readable = []
        for place in places.values():
            readable += [str(place), f"{place}.libs"]
        environment = _ENVIRONMENT | _ONE_THREAD if packages else _ENVIRONMENT

        self.folder = tempfile.mkdtemp(prefix="swift-rlvr-")
        request = {
            "parent": os.getpid(),
            "packages": folders,
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
                self._process = start([theirs.fileno()])
            # If it has ended already, the first `fork` says so, with the exit status.
            with suppress(ConnectionError):
                self._socket.send(json.dumps(request).encode())
        except BaseException:
            self._socket.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.pid = self._process.pid
        self._owner = os.getpid()

    def fork(self, pipes: list[int]) -> _Process:
        """Start a child that has these pipes.

        Raises SandboxError where the zygote does not start, OSError where it has been killed since,
        or where the machine has no room for another process just now.
        """
        with suppress(OSError):
            socket.send_fds(self._socket, [b"fork"], pipes)
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
        try:
            self._process.wait(0)
        except subprocess.TimeoutExpired:
            return True
        return False

    def close(self) -> None:
        """Kill it; in a fork of the process that has started it, let go of it."""
        self._socket.close()
        if os.getpid() != self._owner:
            self._process.returncode = 0  # not this process' child: nothing is to be waited for
            return
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


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
            if is_whole and self.close.alive:
                self._idle.append(zygote)
            else:
                zygote.close()

    def stop(self) -> None:
        """Have the threads that use some come to their end at once, after Ctrl-C; none is lent until
        `is_stopped` is reset.
        """
        self.is_stopped = True
        for zygote in list(self._borrowed):
            with suppress(ProcessLookupError):
                os.kill(zygote.pid, signal.SIGKILL)

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
            if zygote.is_alive:
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
        has_streams: bool = False,
    ):
        """Start it with pipes for messages to it and from it, and for standard input and output if
        it `has_streams`.
        """
        self.deadline = deadline
        self.folder = folder

        # What it may use, in seconds, and until when (`allow`).
        self._most_busy = math.inf
        self._most_asleep = math.inf
        self._most_waited = math.inf
        # For how long it was waited for, on the wall, and how much more of that does not count.
        self._waited = 0.0
        self._free = 0.0
        self._most_written = _WRITTEN

        # By pipe: what is still to be written, what has been read, and of each pipe that is being
        # read how many bytes at most.
        self._unsent: dict[FileIO, memoryview] = {}
        self._received: dict[FileIO, bytearray] = defaultdict(bytearray)
        self._open: dict[FileIO, int] = {}

        with ExitStack() as ours:
            # The child's ends are closed here as soon as it has them: a pipe has an end only where
            # nobody else holds it open.
            with ExitStack() as theirs:
                messages, self._messages = _pipe(reader=theirs, writer=ours)
                self._reports, reports = _pipe(reader=ours, writer=theirs)
                pipes = [messages, reports]
                if has_streams:
                    stdin, self._stdin = _pipe(reader=theirs, writer=ours)
                    self._stdout, stdout = _pipe(reader=ours, writer=theirs)
                    pipes += [stdin, stdout]
                self._process = start([pipe.fileno() for pipe in pipes])
            self._clock = Clock(self._process.pid, _TICK)

            # The last callback is the first to be called: kill, wait, close the pipes. It also runs
            # when this object is collected, so that no exception leaves a child behind.
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)
            self.close = weakref.finalize(self, ours.pop_all().close)

    def allow(self, seconds: float) -> None:
        """From now on it may compute, or wait for the disk, for so long, and for a third of that do
        nothing at all; where the machine is busy, all of that within `LOAD` times as long, but for
        the first moments of each exchange.
        """
        self._most_busy = self._busy() + seconds
        self._most_asleep = self._clock.asleep + max(seconds / 3, _TICK)
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

        def has_answered() -> bool:
            return b"\n" in self._received[self._reports] or self._reports not in self._open

        self._send(self._messages, _line(message))
        self._open[self._reports] = longest
        self._exchange(has_answered)
        report = self._take_report()
        if report is None:
            raise self._end()
        return report

    def run(self, job: dict, stdin: bytes, max_output: int) -> tuple[bytes, dict | None]:
        """Have a program read its input and run to its end; its standard output, and its report if
        it made one.

        Raises Ended where it was stopped, also after `max_output` bytes, or where it ended with
        neither a report nor exit status 0.
        """
        self._send(self._messages, _line(job))
        self._send(self._stdin, stdin)
        self._open[self._reports] = _LONGEST_REPORT
        self._open[self._stdout] = max_output
        self._most_written = _WRITTEN + max_output
        self._exchange(lambda: not self._open)
        report = self._take_report()
        if report is None:
            ended = self._end()
            if self.status != 0:
                raise ended
        return bytes(self._received[self._stdout]), report

    def _take_report(self) -> dict | None:
        """Read what the child says, which may be anything; None where it is no report."""
        line, newline, rest = self._received[self._reports].partition(b"\n")
        self._received[self._reports] = rest
        if not newline:
            return None
        try:
            report = json.loads(line)
        # RecursionError: a hundred thousand brackets
        except (ValueError, RecursionError):
            return None
        return report if isinstance(report, dict) else None

    def _end(self) -> Ended:
        """Wait for the end of a child that has closed its pipes, and say how it ended."""
        if self._reports in self._open:
            # It has not closed them: what it sent was no report.
            return Ended("ended early")
        while True:
            # A child that has closed its pipes can still compute or sleep: the limits hold on.
            try:
                status = self._within_limits(self._process.wait)
            except subprocess.TimeoutExpired:
                continue
            except Ended as ended:
                return ended
            if status < 0:
                return Ended("killed", f"signal {-status}")
            return Ended("ended early", f"exit status {status}")

    def _within_limits(self, wait: Callable[[float], Result]) -> Result:
        """Call `wait` with a short time. Raises Ended where the child has used what it may."""
        start = time.monotonic()
        if start >= self._clock.next_look and not self._is_due():
            self._look()
        left = min(self.deadline - start, self._most_waited - self._waited)
        if left <= 0 or self._clock.asleep >= self._most_asleep or self._busy() >= self._most_busy:
            raise Ended("timeout")
        try:
            return wait(min(left, max(0.001, self._clock.next_look - start)))
        finally:
            waited = time.monotonic() - start
            self._waited += max(0.0, waited - self._free)
            self._free = max(0.0, self._free - waited)
            self._clock.waited(waited)

    def _look(self) -> None:
        """See what it does and has used. Raises Ended where it has too many threads or has written
        too much.
        """
        self._clock.look(self._is_answering)
        if self.folder is None:
            return
        process = self._process.pid
        if usage.threads(process) > _THREADS:
            raise Ended("killed", f"more than {_THREADS} threads")
        if usage.written(process) > self._most_written or _is_full(self.folder):
            raise Ended("too many files")

    def _is_due(self) -> bool:
        """Whether something can be sent to it now, so that it need not be asleep by its own choice;
        a pipe that is full has to wait for the child.
        """
        poll = select.poll()
        for pipe in self._unsent:
            poll.register(pipe, select.POLLOUT)
        return bool(poll.poll(0))

    def _is_answering(self) -> bool:
        """Whether something can be read that it has written."""
        poll = select.poll()
        for pipe in self._open:
            poll.register(pipe, select.POLLIN)
        return bool(poll.poll(0))

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to
        be stopped.

        Both at the same time: a child that writes before it has read all of its input must not wait
        for a parent that waits for the child.
        """
        short_reads = 0
        # Where a test makes thousands of calls, a busy machine adds a little to each.
        self._free = _TICK
        while not is_done():
            ready = self._ready(_SHORT_PAUSE if short_reads > _SHORT_READS else 0)
            for pipe in list(self._open):
                if pipe.fileno() in ready:
                    short_reads += self._read(pipe) < _SHORT_READ
            for pipe in list(self._unsent):
                if pipe.fileno() in ready:
                    self._write(pipe)
            self._clock.judge(is_done())

    def _ready(self, pause: float) -> set[int]:
        """The descriptors of the pipes that can be read or written, after a tick at the most and a
        pause, in seconds, at the least.
        """
        poll = select.poll()
        for pipe in self._unsent:
            poll.register(pipe, select.POLLOUT)
        for pipe in self._open:
            poll.register(pipe, select.POLLIN)

        def wait(seconds: float) -> list[tuple[int, int]]:
            if pause:  # 0 would yield the core
                time.sleep(pause)
            return poll.poll(1000 * seconds)

        return {descriptor for descriptor, _ in self._within_limits(wait)}

    def _send(self, pipe: FileIO, content: bytes) -> None:
        """Write this, as far as there is room, and have `_exchange` write the rest. Standard input is
        closed after it.
        """
        # A child that does not read must not block the parent.
        os.set_blocking(pipe.fileno(), False)
        self._unsent[pipe] = memoryview(content)
        self._write(pipe)

    def _write(self, pipe: FileIO) -> None:
        unsent = self._unsent.pop(pipe)
        try:
            written = pipe.write(unsent[:_CHUNK]) or 0
        except BrokenPipeError:
            # The child need not read all of it.
            written = len(unsent)
        if written < len(unsent):
            self._unsent[pipe] = unsent[written:]
        elif pipe is not self._messages:
            pipe.close()

    def _read(self, pipe: FileIO) -> int:
        """Read what is there; how many bytes it was."""
        chunk = os.read(pipe.fileno(), _CHUNK)
        self._received[pipe] += chunk
        # An endless output would fill the parent's memory.
        if len(self._received[pipe]) > self._open[pipe]:
            raise Ended("too much output")
        if not chunk:
            del self._open[pipe]
        return len(chunk)


@contextmanager
def sandboxed(
    zygote: Zygote,
    limits: Limits,
    deadline: float,
    is_program: bool = False,
    folder: str | None = None,
) -> Iterator[Child]:
    """A child that has locked itself down, in a folder of `new_folder`, which others may share;
    None: one of its own.

    It sees nothing of the parent's environment. The deadline is by `time.monotonic`. There is
    standard input and output only with `is_program`, for `Child.run`.

    Raises:
        SandboxError: where the child could not lock itself down.
        OSError: where it was killed before that, or found no time.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(new_folder(zygote))
        request = {
            "parent": zygote.pid,
            "folder": folder,
            "threads": _THREADS,
            "memory": limits.memory_mb << 20,
            "file_size": _FILE_SIZE,
            # The kernel's own limit. It ends a child also while this process has no time to look.
            "cpu_seconds": math.ceil(ALL_TESTS * limits.seconds) + 1,
            "landlock": limits.landlock,
            "without_landlock": limits.without_landlock,
        }
        child = stack.enter_context(closing(Child(zygote.fork, deadline, folder, is_program)))
        # No code was sent to it yet, so its answer can be believed, and its end is not the code's.
        try:
            report = child.ask(request)
        except Ended as ended:
            if ended.reason != "ended early":
                raise OSError(errno.EAGAIN, f"{sys.executable} {ended}") from None
            report = {"detail": f"{sys.executable} {ended}"}
        if report.get("kind") != "locked down":
            raise SandboxError(f"{_REFUSED}: {report.get('detail')}")
        yield child


@contextmanager
def new_folder(zygote: Zygote) -> Iterator[str]:
    """A new folder for children of a zygote, which is removed in the end with what is in it then."""
    path = f"{zygote.folder}/swift-rlvr-{secrets.token_hex(4)}"
    os.mkdir(path, 0o700)
    try:
        yield path
    finally:
        with suppress(OSError):
            _remove_folder(path)


def _remove_folder(path: str) -> None:
    """Remove a folder with all that is in it, however deep: what is deeper than one level is moved
    up first, so that no path gets too long and nothing recurses.
    """
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, 0o700)  # it may have been made so that nobody can read it
        with os.scandir(folder) as entries:
            inside = list(entries)
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                moved = f"{path}-{secrets.token_hex(4)}"
                os.chmod(entry.path, 0o700)
                os.rename(entry.path, moved)
                waiting.append(moved)
            else:
                os.unlink(entry.path)
        os.rmdir(folder)


def _place(package: str) -> Path:
    """The folder of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(
            f"the package {package} is named in `packages` but is not installed here"
        )
    return Path(spec.submodule_search_locations[0])


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[FileIO, FileIO]:
    """The two ends of a pipe, each to be closed by a stack."""
    read, write = os.pipe()
    return reader.enter_context(FileIO(read, "rb")), writer.enter_context(FileIO(write, "wb"))


def _line(message: dict) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _is_full(folder: str) -> bool:
    """Whether there are more files and folders in a folder, or deeper ones, than a child may make."""
    count = 0
    # By descriptors, not by paths, which may get too long: `place` is a text only.
    for place, folders, files, _ in os.fwalk(folder):
        count += len(folders) + len(files)
        if count > _FOLDER_FILES or place.count("/") - folder.count("/") > _DEEPEST_FOLDER:
            return True
    return False
