"""The parent's side of one sandboxed child: start it, talk to it until a deadline, kill it, remove its folder."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import FileIO
from math import ceil
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
    landlock: bool = True  # use it where the kernel has it; without it no file can be written, but all can be read


class Child:
    """A child that runs until `close`, which kills it and removes its folder.

    The child is started by `subprocess`, which never runs Python code between fork and exec, so it can be used from any
    thread of a process that has loaded CUDA. It sees nothing of the parent's environment, has an empty folder of its
    own and no terminal, and dies with the thread that made it.
    """

    def __init__(self, limits: Limits, deadline: float, is_program: bool = False):
        """Start a child and have it lock itself down.

        The deadline is by `time.monotonic`. There is standard input and output only with `is_program`, for `run`.

        Raises:
            SandboxError: where the child could not lock itself down.
            Ended: where it was stopped or killed before that.
        """
        self._deadline = deadline
        self._timeout = "timeout", f"stopped after {limits.seconds:g} s"
        self._unsent: dict[FileIO, memoryview] = {}
        self._received: dict[FileIO, bytearray] = {}
        self._limit: dict[FileIO, int] = {}  # bytes
        with ExitStack() as ours:
            folder = tempfile.TemporaryDirectory(prefix="swift-rlvr-", ignore_cleanup_errors=True)
            self._folder = ours.enter_context(folder)
            self._selector = ours.enter_context(selectors.PollSelector())
            with ExitStack() as theirs:
                jobs, self._jobs = _pipe(reader=theirs, writer=ours)
                self._reports, reports = _pipe(reader=ours, writer=theirs)
                stdin: FileIO | int = subprocess.DEVNULL
                stdout: FileIO | int = subprocess.DEVNULL
                if is_program:
                    stdin, self._stdin = _pipe(reader=theirs, writer=ours)
                    self._stdout, stdout = _pipe(reader=ours, writer=theirs)
                ends = jobs.fileno(), reports.fileno()
                self._process = subprocess.Popen(
                    [sys.executable, "-S", "-c", _START, _HERE, *map(str, ends)],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.DEVNULL,
                    pass_fds=ends,
                    cwd=self._folder,
                    env=_ENVIRONMENT | {"HOME": self._folder, "TMPDIR": self._folder},
                    start_new_session=True,
                )
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)  # the last callback is the first to be called
            self._receive_from(self._reports, _LONGEST_REPORT)
            self._lock_down(limits)
            self.close = ours.pop_all().close

    def _lock_down(self, limits: Limits) -> None:
        """Have the child lock itself down. No code was sent to it yet, so its answer can be believed."""
        request = {"parent": os.getpid(), "folder": self._folder, "memory": limits.memory_mb << 20}
        request |= {"cpu_seconds": ceil(limits.seconds) + 1, "file_size": _FILE_SIZE, "landlock": limits.landlock}
        try:
            report = self.ask(request)
        except Ended as end:
            if end.args[0] != "ended early":
                raise
            report = {"detail": f"{sys.executable} {': '.join(end.args)}"}
        if report.get("kind") != "locked down":
            raise SandboxError(f"code cannot be run safely here, so it is not run at all: {report.get('detail')}")

    def ask(self, message: dict, longest: int = _LONGEST_REPORT) -> dict:
        """Send a message and return the report that follows, of at most `longest` bytes. Raises Ended if none does."""
        self._send_to(self._jobs, _line(message))
        self._limit[self._reports] = longest
        self._exchange(lambda: b"\n" in self._received[self._reports] or not self._is_open(self._reports))
        report = self._take_report()
        if report is None:
            raise self._end()
        return report

    def run(self, job: dict, stdin: bytes, max_output: int) -> tuple[bytes, dict | None]:
        """Have a program read its input and run to its end; its standard output, and its report if it made one.

        Raises Ended where it was stopped, also after `max_output` bytes, or where it ended with neither a report nor
        exit status 0.
        """
        self._send_to(self._jobs, _line(job))
        self._send_to(self._stdin, stdin)
        self._receive_from(self._stdout, max_output)
        self._exchange(lambda: not self._is_open(self._reports) and not self._is_open(self._stdout))
        report = self._take_report()
        if report is None:
            end = self._end()
            if self._process.returncode != 0:
                raise end
        return bytes(self._received[self._stdout]), report

    def _take_report(self) -> dict | None:
        """Read what the child says, which may be anything; None where it is no report."""
        line, end, self._received[self._reports] = self._received[self._reports].partition(b"\n")
        try:
            report = json.loads(line) if end else None
        except (ValueError, RecursionError):
            return None
        return report if isinstance(report, dict) else None

    def _end(self) -> Ended:
        """Wait for the end of a child that has closed its pipes, and say how it ended."""
        if self._is_open(self._reports):  # it has not closed them: what it sent was no report
            return Ended("ended early")
        try:
            status = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return Ended(*self._timeout)
        return Ended("killed", f"signal {-status}") if status < 0 else Ended("ended early", f"exit status {status}")

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to be stopped."""
        while not is_done():
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise Ended(*self._timeout)
            if _is_full(self._folder):
                raise Ended("too many files")
            for key, _ in self._selector.select(min(left, _TICK)):
                key.data(key.fileobj)

    def _send_to(self, end: FileIO, content: bytes) -> None:
        """Have `_exchange` write this. Standard input is closed after it."""
        os.set_blocking(end.fileno(), False)
        if not self._is_open(end):
            self._selector.register(end, selectors.EVENT_WRITE, self._send)
        self._unsent[end] = memoryview(content)

    def _send(self, end: FileIO) -> None:
        unsent = self._unsent[end]
        try:
            self._unsent[end] = unsent[end.write(unsent[:_CHUNK]) or 0 :]
        except BrokenPipeError:  # the child need not read all of it
            self._unsent[end] = unsent[:0]
        if not self._unsent[end]:
            self._selector.unregister(end)
            if end is not self._jobs:
                end.close()

    def _receive_from(self, end: FileIO, limit: int) -> None:
        os.set_blocking(end.fileno(), False)
        self._selector.register(end, selectors.EVENT_READ, self._receive)
        self._received[end], self._limit[end] = bytearray(), limit

    def _receive(self, end: FileIO) -> None:
        chunk = end.read(_CHUNK)
        if chunk == b"":
            self._selector.unregister(end)
        self._received[end] += chunk or b""
        if len(self._received[end]) > self._limit[end]:
            raise Ended("too much output")

    def _is_open(self, end: FileIO) -> bool:
        """Whether there is more to write to, or may be more to read from, one of our ends."""
        return end in self._selector.get_map()


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
