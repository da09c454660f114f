"""The parent's side of one sandboxed child: start it, talk with it until a deadline, kill it, remove its folder."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import ceil
from pathlib import Path

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
    """Foreign code cannot be run safely on this machine, and so it is not run at all."""


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    seconds: float = 6.0
    """By the clock on the wall, for all of a run, however many processes it takes one after the other."""
    memory_mb: int = 512
    """Address space, of which the interpreter itself takes some 20 MB."""
    landlock: bool = True
    """Use Landlock where the kernel has it; without it no file can be written, but all can be read."""


class Child:
    """A context manager: the child runs within it, and is dead and its folder removed when it is left.

    The child is started by `subprocess`, which never runs Python code between fork and exec; so it can be used from any
    thread of a process that has loaded CUDA. It knows nothing of the parent's environment, has an empty folder of its
    own, no terminal, and dies with the thread that made it.
    """

    def __init__(self, job: dict, limits: Limits, deadline: float, stdin: bytes | None = None, most_output: int = 0):
        """Describe a child; stdin None is for one that reads and writes nothing.

        Entering it raises SandboxError where the child could not lock itself down, and so has not been told the code.

        Args:
            job: what `swift_rlvr.sandbox.child` is told. deadline: as `time.monotonic` counts.
            most_output: bytes of standard output after which it is stopped.
        """
        self.job, self.limits, self.deadline = job, limits, deadline
        self.stdin, self.most_output = stdin, most_output
        self.stopped = ""
        """Why it was stopped: timeout, too much output, too many files, ended early for a false report; or nothing."""

    def __enter__(self) -> Child:
        with contextlib.ExitStack() as stack:
            temporary = tempfile.TemporaryDirectory(prefix="swift-rlvr-", ignore_cleanup_errors=True)
            self._folder = stack.enter_context(temporary)
            with contextlib.ExitStack() as started:
                theirs, self._jobs = os.pipe()
                started.callback(os.close, theirs)
                stack.callback(os.close, self._jobs)
                self._reports, their_reports = os.pipe()
                started.callback(os.close, their_reports)
                stack.callback(os.close, self._reports)
                self._process = self._start(theirs, their_reports)
            stack.callback(self._end)
            self._received, self._most = {self._reports: bytearray()}, {self._reports: _LONGEST_REPORT}
            self._unsent = {}
            for end in (self._jobs, self._reports):
                os.set_blocking(end, False)
            self._lock_down()
            if self.stdin is not None:
                for pipe in (self._process.stdin, self._process.stdout):
                    os.set_blocking(pipe.fileno(), False)
                if self.stdin:
                    self._unsent[self._process.stdin.fileno()] = memoryview(self.stdin)
                else:
                    self._process.stdin.close()
                self._received[self._process.stdout.fileno()] = bytearray()
                self._most[self._process.stdout.fileno()] = self.most_output
            self._open = set(self._received)
            self._unsent[self._jobs] = _line(self.job)
            self._leave = stack.pop_all()
        return self

    def _start(self, jobs: int, reports: int) -> subprocess.Popen:
        standard = subprocess.DEVNULL if self.stdin is None else subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-S", "-c", _START, _HERE, str(jobs), str(reports)],
            stdin=standard,
            stdout=standard,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=(jobs, reports),
            cwd=self._folder,
            env=_ENVIRONMENT | {"HOME": self._folder, "TMPDIR": self._folder},
            start_new_session=True,
        )

    def _lock_down(self) -> None:
        """Have the child lock itself down. Only then is it told the code: what it says before can be believed."""
        lockdown = {
            "parent": os.getpid(),
            "folder": self._folder,
            "memory": self.limits.memory_mb << 20,
            "cpu_seconds": ceil(self.limits.seconds) + 1,
            "file_size": _FILE_SIZE,
            "landlock": self.limits.landlock,
        }
        self._open = {self._reports}
        report = self.ask(lockdown)
        if report is None and not self.stopped and self.status() >= 0:
            report = {"detail": f"{sys.executable} ends at once with status {self._process.returncode}"}
        if report is not None and report.get("kind") != "locked down":
            raise SandboxError(f"completions' code can't be run safely here, and so not at all: {report.get('detail')}")

    def __exit__(self, *exception) -> None:
        self._leave.close()

    def ask(self, message: dict | None = None, longest: int = _LONGEST_REPORT) -> dict | None:
        """Send a message, if there is one, and return the next report, or None where there will be no more."""
        if message is not None:
            self._unsent[self._jobs] = _line(message)
        received = self._received[self._reports]
        self._most[self._reports] = longest
        self._exchange(lambda: b"\n" in received or self._reports not in self._open)
        line, end, rest = bytes(received).partition(b"\n")
        received[:] = rest
        return _report(line) if end else None

    def finish(self) -> tuple[bytes, dict | None]:
        """Let the program read its input and run to its end; its standard output, and its report if it made one."""
        self._exchange(lambda: not self._open)
        report, end, _ = bytes(self._received[self._reports]).partition(b"\n")
        return bytes(self._received[self._process.stdout.fileno()]), _report(report) if end else None

    def status(self) -> int:
        """Wait for the end of a child that has closed its pipes; its exit status, negative for a signal."""
        if not self.stopped and self._open:  # it has not, and what it said was no report
            self.stopped = "ended early"
        if not self.stopped:
            try:
                self._process.wait(max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.stopped = "timeout"
        self._kill()
        return self._process.returncode

    def _exchange(self, done) -> None:
        """Write what is unsent and read what comes, until `done()` or until the child has to be stopped."""
        poll = select.poll()
        for end in self._unsent:
            poll.register(end, select.POLLOUT)
        for end in self._open:
            poll.register(end, select.POLLIN)
        while not self.stopped and not done():
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.stopped = "timeout"
                break
            if _is_full(self._folder):
                self.stopped = "too many files"
                break
            for end, _ in poll.poll(1000 * min(left, _TICK)):
                if end in self._unsent:
                    self._send(end, poll)
                else:
                    self._receive(end, poll)
        if self.stopped:
            self._kill()

    def _send(self, end: int, poll: select.poll) -> None:
        try:
            rest = self._unsent[end][os.write(end, self._unsent[end][:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it need not read what it is given
            rest = b""
        self._unsent[end] = rest
        if not rest:
            poll.unregister(end)
            del self._unsent[end]
            if end != self._jobs:
                self._process.stdin.close()

    def _receive(self, end: int, poll: select.poll) -> None:
        try:
            chunk = os.read(end, _CHUNK)
        except BlockingIOError:
            return
        self._received[end] += chunk
        if len(self._received[end]) > self._most[end]:
            self.stopped = "too much output"
        if not chunk:
            poll.unregister(end)
            self._open.discard(end)

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _end(self) -> None:
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _line(message: dict) -> memoryview:
    return memoryview(json.dumps(message).encode() + b"\n")


def _report(line: bytes) -> dict | None:
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
