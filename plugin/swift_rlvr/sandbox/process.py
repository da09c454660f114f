"""The parent's side of one child process: start it, exchange messages with it until a deadline, kill it.

A message is one line of JSON in either direction. `sandboxed` starts a child for untrusted code; the scorers of
`swift_rlvr.reasoning_gym` run in children that stay.
"""

import json
import math
import os
import select
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

_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); import child, lockdown, prelude; del sys.path[0]; "
    "child.main(lockdown.lock_down, prelude.provide)"
)
# a fixed seed: the order of a set of strings, and with it the reward, must not change from run to run
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
_HERE = str(Path(__file__).parent)
_CHUNK = _LONGEST_REPORT = 1 << 16
_TICK = 0.1  # seconds between looks at the folder
_FILE_SIZE, _FOLDER_SIZE, _FOLDER_FILES = 16 << 20, 64 << 20, 256


class SandboxError(RuntimeError):
    """Untrusted code cannot be run safely on this machine, and so it is not run at all."""


class Ended(Exception):
    """A child was stopped, or ended without an answer; its arguments are one of `check.FAILURES` and a detail."""


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    seconds: float = 6.0  # of wall-clock time for all of a run, however many processes it takes one after the other
    memory_mb: int = 512  # MiB of address space, of which the interpreter itself takes some 20
    packages: tuple[str, ...] = ()  # modules besides the standard library that code may import, such as numpy
    landlock: bool = True  # use it where the kernel has it; without it no file can be written, but all can be read


class Child:
    """A Python process that runs until `close`, which kills it, or until nothing refers to this object any longer.

    It is started by `subprocess`, which never runs Python code between fork and exec, so it can be used from any thread
    of a process that has loaded CUDA. It has no terminal, and its last two arguments are the pipes of its messages.

    Attributes:
        deadline: the time, by `time.monotonic`, at which an exchange with the child ends in `Ended`.
        folder: its working directory, which it must not fill; None for the parent's, which nobody looks at.
    """

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        deadline: float = math.inf,
        folder: str | None = None,
        has_streams: bool = False,
    ):
        """Start `python ARGUMENTS`, with standard input and output only if it `has_streams`, which `run` needs."""
        self.deadline, self.folder = deadline, folder
        self._unsent: dict[FileIO, memoryview] = {}  # by pipe that is written to
        self._received: dict[FileIO, bytearray] = defaultdict(bytearray)
        self._open: dict[FileIO, int] = {}  # pipe that is read, and how many bytes of it at most
        with ExitStack() as ours:
            with ExitStack() as theirs:
                messages, self._messages = _pipe(reader=theirs, writer=ours)
                self._reports, reports = _pipe(reader=ours, writer=theirs)
                stdin: FileIO | int = subprocess.DEVNULL
                stdout: FileIO | int = subprocess.DEVNULL
                if has_streams:
                    stdin, self._stdin = _pipe(reader=theirs, writer=ours)
                    self._stdout, stdout = _pipe(reader=ours, writer=theirs)
                pipes = messages.fileno(), reports.fileno()
                self._process = subprocess.Popen(
                    [sys.executable, *arguments, *map(str, pipes)],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.DEVNULL,
                    pass_fds=pipes,
                    cwd=folder,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for the parent
                )
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)  # the last callback is the first to be called
            self.close = weakref.finalize(self, ours.pop_all().close)

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None where the child has not been waited for."""
        return self._process.returncode

    def ask(self, message: dict, longest: int = _LONGEST_REPORT) -> dict:
        """Send a message and return the report that follows, of at most `longest` bytes. Raises Ended if none does."""
        self._send(self._messages, _line(message))
        self._open[self._reports] = longest
        self._exchange(lambda: b"\n" in self._received[self._reports] or self._reports not in self._open)
        report = self._take_report()
        if report is None:
            raise self._end()
        return report

    def run(self, job: dict, stdin: bytes, max_output: int) -> tuple[bytes, dict | None]:
        """Have a program read its input and run to its end; its standard output, and its report if it made one.

        Raises Ended where it was stopped, also after `max_output` bytes, or where it ended with neither a report nor
        exit status 0.
        """
        self._send(self._messages, _line(job))
        self._send(self._stdin, stdin)
        self._open |= {self._reports: _LONGEST_REPORT, self._stdout: max_output}
        self._exchange(lambda: not self._open)
        report = self._take_report()
        if report is None:
            ended = self._end()
            if self.status != 0:
                raise ended
        return bytes(self._received[self._stdout]), report

    def _take_report(self) -> dict | None:
        """Read what the child says, which may be anything; None where it is no report."""
        line, newline, self._received[self._reports] = self._received[self._reports].partition(b"\n")
        try:
            report = json.loads(line) if newline else None
        except (ValueError, RecursionError):
            return None
        return report if isinstance(report, dict) else None

    def _end(self) -> Ended:
        """Wait for the end of a child that has closed its pipes, and say how it ended."""
        if self._reports in self._open:  # it has not closed them: what it sent was no report
            return Ended("ended early")
        try:
            status = self._process.wait(max(0.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return Ended("timeout")
        return Ended("killed", f"signal {-status}") if status < 0 else Ended("ended early", f"exit status {status}")

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to be stopped."""
        while not is_done():
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise Ended("timeout")
            if self.folder is not None and _is_full(self.folder):
                raise Ended("too many files")
            poll = select.poll()
            for pipe in self._unsent:
                poll.register(pipe, select.POLLOUT)
            for pipe in self._open:
                poll.register(pipe, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(1000 * min(left, _TICK))}
            for pipe in [each for each in self._open if each.fileno() in ready]:
                self._read(pipe)
            for pipe in [each for each in self._unsent if each.fileno() in ready]:
                self._write(pipe)

    def _send(self, pipe: FileIO, content: bytes) -> None:
        """Have `_exchange` write this. Standard input is closed after it."""
        os.set_blocking(pipe.fileno(), False)
        self._unsent[pipe] = memoryview(content)

    def _write(self, pipe: FileIO) -> None:
        unsent = self._unsent.pop(pipe)
        try:
            unsent = unsent[pipe.write(unsent[:_CHUNK]) or 0 :]
        except BrokenPipeError:  # the child need not read all of it
            unsent = unsent[:0]
        if unsent:
            self._unsent[pipe] = unsent
        elif pipe is not self._messages:
            pipe.close()

    def _read(self, pipe: FileIO) -> None:
        chunk = os.read(pipe.fileno(), _CHUNK)
        self._received[pipe] += chunk
        if len(self._received[pipe]) > self._open[pipe]:
            raise Ended("too much output")
        if not chunk:
            del self._open[pipe]


@contextmanager
def sandboxed(limits: Limits, deadline: float, is_program: bool = False) -> Iterator[Child]:
    """A child that has locked itself down, with a folder of its own that is removed in the end.

    It sees nothing of the parent's environment, and dies with the thread that made it. The deadline is by
    `time.monotonic`. There is standard input and output only with `is_program`, for `Child.run`.

    Raises:
        SandboxError: where the child could not lock itself down.
        Ended: where it was stopped or killed before that.
    """
    with tempfile.TemporaryDirectory(prefix="swift-rlvr-", ignore_cleanup_errors=True) as folder:
        request = {"parent": os.getpid(), "folder": folder, "memory": limits.memory_mb << 20, "file_size": _FILE_SIZE}
        request |= {"cpu_seconds": math.ceil(limits.seconds) + 1, "landlock": limits.landlock}
        places = {name: _place(name) for name in limits.packages}
        request["packages"] = {name: str(place.parent) for name, place in places.items()}
        request["readable"] = [f"{place}{more}" for place in places.values() for more in ("", ".libs")]
        environment = _ENVIRONMENT | {"HOME": folder, "TMPDIR": folder}
        environment |= {"OPENBLAS_NUM_THREADS": "1"} if places else {}  # each thread takes address space
        child = Child(
            *("-S", "-c", _START, _HERE),
            environment=environment,
            deadline=deadline,
            folder=folder,
            has_streams=is_program,
        )
        with closing(child):
            try:
                report = child.ask(request)  # no code was sent to it yet, so its answer can be believed
            except Ended as ended:
                if ended.args[0] != "ended early":
                    raise
                report = {"detail": f"{sys.executable} {': '.join(ended.args)}"}
            if report.get("kind") != "locked down":
                raise SandboxError(f"code cannot be run safely here, so it is not run at all: {report.get('detail')}")
            yield child


def _place(package: str) -> Path:
    """The folder of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SandboxError(f"code is to use the package {package}, and there is none of that name here")
    return Path(spec.submodule_search_locations[0])


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[FileIO, FileIO]:
    """The two ends of a pipe, each to be closed by a stack."""
    read, write = os.pipe()
    return reader.enter_context(FileIO(read, "rb")), writer.enter_context(FileIO(write, "wb"))


def _line(message: dict) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _is_full(folder: str) -> bool:
    """Whether the child has written more than it may; there are no folders in its folder."""
    with os.scandir(folder) as entries:
        size = 0
        for count, entry in enumerate(entries):
            with suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
            if size > _FOLDER_SIZE or count >= _FOLDER_FILES:
                return True
    return False
