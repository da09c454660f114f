"""The parent's side of one sandboxed child: start it, talk to it until a deadline, kill it, remove its folder."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from math import ceil
from pathlib import Path
from typing import Any

_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); import child, lockdown; del sys.path[0]; child.main(lockdown.lock_down)"
)
# a fixed seed: the order of a set of strings, and with it the reward, must not change from run to run
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
_HERE = str(Path(__file__).parent)
_CHUNK = 1 << 16
_LONGEST_REPORT = 1 << 16
_TICK = 0.1  # seconds between looks at the folder
_FILE_SIZE, _FOLDER_SIZE, _FOLDER_FILES = 16 << 20, 64 << 20, 256


class SandboxError(RuntimeError):
    """Untrusted code cannot be run safely on this machine, and so it is not run at all."""


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    seconds: float = 6.0
    """Wall-clock time for all of a run, however many processes it takes one after the other."""
    memory_mb: int = 512
    """MiB of address space, of which the interpreter itself takes some 20."""
    landlock: bool = True
    """Use Landlock where the kernel has it. Without it no file can be written, but all can be read."""


class Child:
    """A context manager: the child runs within it, and is dead and its folder removed on exit.

    The child is started by `subprocess`, which never runs Python code between fork and exec, so it can be used from any
    thread of a process that has loaded CUDA. It sees nothing of the parent's environment, has an empty folder of its
    own and no terminal, and dies with the thread that made it.
    """

    def __init__(
        self, job: dict, limits: Limits, deadline: float, stdin: bytes | None = None, max_output: int = 0
    ) -> None:
        """Describe a child.

        Entering it raises SandboxError where the child could not lock itself down; the code is not sent to it then.

        Args:
            job: the message with the code, see `swift_rlvr.sandbox.child`.
            deadline: in terms of `time.monotonic`.
            stdin: standard input; None for a child without standard input and output.
            max_output: bytes of standard output after which it is stopped.
        """
        self.job, self.limits, self.deadline = job, limits, deadline
        self.stdin, self.max_output = stdin, max_output
        self.stopped = ""
        """Why it was stopped (timeout, too much output, too many files, ended early for a false report), or empty."""
        self._unsent: dict[FileIO, memoryview] = {}
        self._received: dict[FileIO, bytearray] = {}
        self._limit: dict[FileIO, int] = {}  # bytes
        self._open: set[FileIO] = set()

    def __enter__(self) -> Child:
        with ExitStack() as ours:
            self._folder = ours.enter_context(
                tempfile.TemporaryDirectory(prefix="swift-rlvr-", ignore_cleanup_errors=True)
            )
            self._selector = ours.enter_context(selectors.PollSelector())
            with ExitStack() as theirs:
                jobs, self._jobs = _pipe(reader=theirs, writer=ours)
                self._reports, reports = _pipe(reader=ours, writer=theirs)
                stdin: FileIO | int = subprocess.DEVNULL
                stdout: FileIO | int = subprocess.DEVNULL
                if self.stdin is not None:
                    (stdin, self._stdin), (self._stdout, stdout) = _pipe(theirs, ours), _pipe(ours, theirs)
                self._process = self._start(jobs, reports, stdin, stdout)
            ours.callback(self._kill)
            self._receive_from(self._reports, _LONGEST_REPORT)
            self._lock_down()
            if self.stdin is not None:
                self._send_to(self._stdin, self.stdin)
                self._receive_from(self._stdout, self.max_output)
            self._send_to(self._jobs, _line(self.job))
            self._leave = ours.pop_all()
        return self

    def _start(self, jobs: FileIO, reports: FileIO, stdin: FileIO | int, stdout: FileIO | int) -> subprocess.Popen:
        ends = jobs.fileno(), reports.fileno()
        return subprocess.Popen(
            [sys.executable, "-S", "-c", _START, _HERE, *map(str, ends)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
            cwd=self._folder,
            env=_ENVIRONMENT | {"HOME": self._folder, "TMPDIR": self._folder},
            start_new_session=True,
        )

    def _lock_down(self) -> None:
        """Have the child lock itself down. The code is sent only after that, so what it says before can be believed."""
        lockdown = {
            "parent": os.getpid(),
            "folder": self._folder,
            "memory": self.limits.memory_mb << 20,
            "cpu_seconds": ceil(self.limits.seconds) + 1,
            "file_size": _FILE_SIZE,
            "landlock": self.limits.landlock,
        }
        report = self.ask(lockdown)
        if report is None and not self.stopped and self.status() >= 0:
            report = {"detail": f"{sys.executable} ends at once with status {self._process.returncode}"}
        if report is not None and report.get("kind") != "locked down":
            raise SandboxError(f"code cannot be run safely here, so it is not run at all: {report.get('detail')}")

    def __exit__(self, *exception: object) -> None:
        self._leave.close()

    def ask(self, message: dict | None = None, longest: int = _LONGEST_REPORT) -> dict | None:
        """Send a message, if there is one, and return the next report, or None where there will be no more."""
        if message is not None:
            self._send_to(self._jobs, _line(message))
        received = self._received[self._reports]
        self._limit[self._reports] = longest
        self._exchange(lambda: b"\n" in received or self._reports not in self._open)
        line, end, rest = bytes(received).partition(b"\n")
        received[:] = rest
        return _report(line) if end else None

    def finish(self) -> tuple[bytes, dict | None]:
        """Let the program read its input and run to its end; its standard output, and its report if it made one."""
        self._exchange(lambda: not self._open)
        report, end, _ = bytes(self._received[self._reports]).partition(b"\n")
        return bytes(self._received[self._stdout]), _report(report) if end else None

    def status(self) -> int:
        """Wait for the end of a child that has closed its pipes; its exit status, negative for a signal."""
        if not self.stopped and self._open:  # it has not closed them: what it sent was no report
            self.stopped = "ended early"
        if not self.stopped:
            try:
                self._process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.stopped = "timeout"
        self._kill()
        return self._process.returncode

    def _exchange(self, is_done: Callable[[], bool]) -> None:
        """Write what is unsent and read what arrives, until `is_done()` or until the child has to be stopped."""
        while not self.stopped and not is_done():
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.stopped = "timeout"
            elif _is_full(self._folder):
                self.stopped = "too many files"
            else:
                for key, _ in self._selector.select(min(left, _TICK)):
                    (self._send if key.data in self._unsent else self._receive)(key.data)
        if self.stopped:
            self._kill()

    def _send_to(self, end: FileIO, content: bytes) -> None:
        """Have `_exchange` write this. Standard input is closed after it."""
        os.set_blocking(end.fileno(), False)
        if end not in self._unsent:
            self._selector.register(end, selectors.EVENT_WRITE, end)
        self._unsent[end] = memoryview(content)

    def _send(self, end: FileIO) -> None:
        unsent = self._unsent[end]
        try:
            count = end.write(unsent[:_CHUNK]) or 0
        except BrokenPipeError:  # the child need not read all of it
            count = len(unsent)
        self._unsent[end] = unsent[count:]
        if count == len(unsent):
            self._selector.unregister(end)
            del self._unsent[end]
            if end is not self._jobs:
                end.close()

    def _receive_from(self, end: FileIO, limit: int) -> None:
        os.set_blocking(end.fileno(), False)
        self._selector.register(end, selectors.EVENT_READ, end)
        self._received[end], self._limit[end] = bytearray(), limit
        self._open.add(end)

    def _receive(self, end: FileIO) -> None:
        chunk = end.read(_CHUNK)
        if chunk is None:
            return
        self._received[end] += chunk
        if len(self._received[end]) > self._limit[end]:
            self.stopped = "too much output"
        if not chunk:
            self._selector.unregister(end)
            self._open.discard(end)

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[FileIO, FileIO]:
    """The two ends of a pipe, each to be closed by a stack."""
    read, write = os.pipe()
    return reader.enter_context(FileIO(read, "rb")), writer.enter_context(FileIO(write, "wb"))


def _line(message: dict) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _report(line: bytes) -> dict[str, Any] | None:
    """Read what the child says, which may be anything; None where it is no report."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) else None


def _is_full(folder: str) -> bool:
    """Whether the child has written more than it may; there are no folders in its folder."""
    with os.scandir(folder) as entries:
        size = 0
        for count, entry in enumerate(entries):
            with contextlib.suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
            if size > _FOLDER_SIZE or count >= _FOLDER_FILES:
                return True
    return False
