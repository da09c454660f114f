"""The parent's side of one child process: start it, exchange messages with it until its time is up,
kill it.

A message is one line of JSON in either direction. `sandboxed` gives a child for untrusted code: a
fork of a process (`Zygote`) that runs none. The scorers of `swift_rlvr.verifiers.reasoning_gym` run
in children that stay.

Nothing that a child sends is trusted: its reports are bounded, they may be anything, and they are
only ever read as JSON.
"""

import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeVar

Result = TypeVar("Result")

# The program of the zygote. It imports this folder's modules outside the package, so that neither
# the package nor its dependencies are loaded beside untrusted code, and then forgets the folder, so
# that untrusted code cannot import from it.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); import child, lockdown, inside.jobs; "
    "del sys.path[0]; child.serve(lockdown.lock_down, inside.jobs.run, lockdown.end_with)"
)
_HERE = str(Path(__file__).parent)

# All that a sandboxed child sees of an environment: the trainer's may hold tokens and keys.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # The order of a set of strings, and with it the reward, must not change from run to run.
    "PYTHONHASHSEED": "0",
}
# Threads of OpenBLAS take address space, which is limited.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
_REFUSED = "code cannot be run safely here, so it is not run at all"

_CHUNK = 1 << 16  # bytes that are read or written at a time
_LONGEST_REPORT = 1 << 16  # bytes; a longer one would fill the parent's memory

ALL_TESTS = 5  # times `Limits.seconds`, for all tests of a completion
LOAD = 10  # times that again on the wall, where the machine is busy
_TICK = 0.1  # seconds between looks at the folder and the clocks, at most

# What a child may write to the disk.
_FILE_SIZE = 16 << 20  # bytes of one file
_FOLDER_SIZE = 64 << 20  # bytes of all of them
_FOLDER_FILES = 256

# Threads of a child. With small stacks thousands would fit into its memory, and the machine would
# have no room left for a process of anyone else's. Programs of people have a dozen.
_THREADS = 128


class SandboxError(RuntimeError):
    """Untrusted code cannot be run safely on this machine, and so it is not run at all."""


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
    child when asked to.

    It dies with the thread that made it, and its children with it.
    """

    def __init__(self, packages: tuple[str, ...] = ()):
        """Raises SandboxError where a package is not installed."""
        self.places = {name: _place(name) for name in packages}
        folders = {name: str(place.parent) for name, place in self.places.items()}
        environment = _ENVIRONMENT | _ONE_THREAD if packages else _ENVIRONMENT
        # -S: without the module `site`, no file that a user has installed is run.
        arguments = ("-S", "-c", _START, _HERE, str(os.getpid()), json.dumps(folders))
        start = python(*arguments, environment=environment)

        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = start([theirs.fileno()])
        self.pid = self._process.pid

    def fork(self, pipes: list[int]) -> _Process:
        """Start a child that has these pipes.

        Raises SandboxError where the zygote has ended, OSError where the machine has no room for
        another process just now.
        """
        with suppress(OSError):
            socket.send_fds(self._socket, [b"fork"], pipes)
        answer = self._receive(None)
        if not answer:
            status = self._process.wait()
            raise SandboxError(f"{_REFUSED}: {sys.executable} ended early: exit status {status}")
        number = int(answer)
        if number < 0:
            raise OSError(-number, os.strerror(-number))
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

    def close(self) -> None:
        """Kill it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


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

        # In seconds: what it has used, and what it may use (`allow`).
        self._computed = 0.0
        self._asleep = 0.0
        self._most_cpu = math.inf
        self._most_asleep = math.inf
        self._next_look = 0.0  # at the folder, by `time.monotonic`

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

            # The last callback is the first to be called: kill, wait, close the pipes. It also runs
            # when this object is collected, so that no exception leaves a child behind.
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)
            self.close = weakref.finalize(self, ours.pop_all().close)

    def allow(self, seconds: float) -> None:
        """From now on it may compute for so long, and for a third of that do nothing at all."""
        self._most_cpu = self._cpu() + seconds
        self._most_asleep = self._asleep + seconds / 3

    @property
    def used(self) -> float:
        """The seconds for which it has computed or done nothing, though nobody kept it from
        computing.
        """
        return self._cpu() + self._asleep

    def _cpu(self) -> float:
        """The CPU time of all its threads, as far as it is known where it has been waited for."""
        # as clock_getcpuclockid(3) has it: the process' number, inverted, and three bits for the
        # kind of clock
        clock = ~self._process.pid << 3 | 2
        with suppress(OSError):
            self._computed = time.clock_gettime(clock)
        return self._computed

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
        left = self.deadline - time.monotonic()
        if left <= 0 or self._asleep >= self._most_asleep or self._cpu() >= self._most_cpu:
            raise Ended("timeout")
        if self.folder is not None:
            self._look_at_its_use(self.folder)

        # A child that sleeps uses no CPU time, and would never come to its end. It is not its fault
        # where a message waits for it, or where the machine has no time for it.
        may_not_sleep = self._most_asleep < math.inf
        sleeps = may_not_sleep and not self._is_due() and _is_asleep(self._process.pid)
        start = time.monotonic()
        try:
            return wait(min(left, _TICK))
        finally:
            if sleeps:
                # Not more than a tick: where this process itself had to wait for a core, the child
                # may have computed.
                self._asleep += min(time.monotonic() - start, _TICK)

    def _look_at_its_use(self, folder: str) -> None:
        """Raise Ended where it has too many threads or has written too much."""
        if _threads(self._process.pid) > _THREADS:
            raise Ended("killed", f"more than {_THREADS} threads")
        # Each file is limited by RLIMIT_FSIZE; many of them would fill the disk all the same. Code
        # decides by its output how often this is called, and the look takes the trainer's time.
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _TICK
            if _is_full(folder):
                raise Ended("too many files")

    def _is_due(self) -> bool:
        """Whether something can be sent to it now; a pipe that is full has to wait for the
        child.
        """
        poll = select.poll()
        for pipe in self._unsent:
            poll.register(pipe, select.POLLOUT)
        return bool(poll.poll(0))

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to
        be stopped.

        Both at the same time: a child that writes before it has read all of its input must not wait
        for a parent that waits for the child.
        """
        while not is_done():
            ready = self._ready()
            for pipe in list(self._open):
                if pipe.fileno() in ready:
                    self._read(pipe)
            for pipe in list(self._unsent):
                if pipe.fileno() in ready:
                    self._write(pipe)

    def _ready(self) -> set[int]:
        """The descriptors of the pipes that can be read or written, after a tick at the most."""
        poll = select.poll()
        for pipe in self._unsent:
            poll.register(pipe, select.POLLOUT)
        for pipe in self._open:
            poll.register(pipe, select.POLLIN)
        events = self._within_limits(lambda seconds: poll.poll(1000 * seconds))
        return {descriptor for descriptor, _ in events}

    def _send(self, pipe: FileIO, content: bytes) -> None:
        """Have `_exchange` write this. Standard input is closed after it."""
        # A child that does not read must not block the parent.
        os.set_blocking(pipe.fileno(), False)
        self._unsent[pipe] = memoryview(content)

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

    def _read(self, pipe: FileIO) -> None:
        chunk = os.read(pipe.fileno(), _CHUNK)
        self._received[pipe] += chunk
        # An endless output would fill the parent's memory.
        if len(self._received[pipe]) > self._open[pipe]:
            raise Ended("too much output")
        if not chunk:
            del self._open[pipe]


@contextmanager
def sandboxed(
    zygote: Zygote, limits: Limits, deadline: float, is_program: bool = False
) -> Iterator[Child]:
    """A child that has locked itself down, with a folder of its own that is removed in the end.

    It sees nothing of the parent's environment. The deadline is by `time.monotonic`. There is
    standard input and output only with `is_program`, for `Child.run`.

    Raises:
        SandboxError: where the child could not lock itself down.
        Ended: where it was stopped or killed before that.
    """
    # what the package's own C code loads lies beside it, as in numpy.libs
    readable = []
    for place in zygote.places.values():
        readable += [str(place), f"{place}.libs"]
    with tempfile.TemporaryDirectory(prefix="swift-rlvr-", ignore_cleanup_errors=True) as folder:
        request = {
            "parent": zygote.pid,
            "folder": folder,
            "memory": limits.memory_mb << 20,
            "file_size": _FILE_SIZE,
            # The kernel's own limit. It ends a child also while this process has no time to look.
            "cpu_seconds": math.ceil(ALL_TESTS * limits.seconds) + 1,
            "landlock": limits.landlock,
            "without_landlock": limits.without_landlock,
            "readable": readable,
        }
        with closing(Child(zygote.fork, deadline, folder, is_program)) as child:
            # No code was sent to it yet, so its answer can be believed.
            try:
                report = child.ask(request)
            except Ended as ended:
                if ended.reason != "ended early":
                    raise
                report = {"detail": f"{sys.executable} {ended}"}
            if report.get("kind") != "locked down":
                raise SandboxError(f"{_REFUSED}: {report.get('detail')}")
            yield child


def _place(package: str) -> Path:
    """The folder of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(
            f"code is to use the package {package}, and there is none of that name here"
        )
    return Path(spec.submodule_search_locations[0])


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[FileIO, FileIO]:
    """The two ends of a pipe, each to be closed by a stack."""
    read, write = os.pipe()
    return reader.enter_context(FileIO(read, "rb")), writer.enter_context(FileIO(write, "wb"))


def _line(message: dict) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _threads(process: int) -> int:
    """How many threads a process has; 0 where it has ended."""
    try:
        # A folder has a link for itself, one from above, and one for each folder in it.
        return os.stat(f"/proc/{process}/task").st_nlink - 2
    except OSError:
        return 0


def _is_asleep(process: int) -> bool:
    """Whether none of its threads computes, or would if the machine had time for it."""
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            stat = Path(f"/proc/{process}/task/{thread}/stat")
            text = stat.read_text(encoding="utf-8", errors="replace")
            # The state follows the name in parentheses, which the code chooses: it may have a
            # parenthesis in it.
            state = text.rpartition(")")[2].split()[0]
            if state in "RD":
                return False
    except OSError:  # it has just ended
        return False
    return True


def _is_full(folder: str) -> bool:
    """Whether the child has written more than it may; there are no folders in its folder."""
    size = 0
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            # a file may be removed while it is being looked at
            with suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
            if size > _FOLDER_SIZE or count >= _FOLDER_FILES:
                return True
    return False
