"""The programs that a step starts: what they print, how long they may take, what they leave behind,
and the memory that they take meanwhile.
"""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from swift_rlvr.launch.machine import this_machine
from swift_rlvr.utils.files import CHECKOUT

MARK = "GPU_CHECK_PROGRAM"
GIB = 2**30
# Seconds in which processes, ports and memory are given back after a program's end.
RELEASE = 60


class OutOfTime(Exception):
    """The step's time is over."""


class ProgramFailed(Exception):
    """A program ended with another status than the one expected; the message has its last lines."""


@dataclass(frozen=True)
class Command:
    """A command as it could be typed. env: on top of the environment; "" takes a variable away.

    folder: where its log and what it writes go.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()

    def __str__(self) -> str:
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        words = ["python" if word == sys.executable else shlex.quote(word) for word in self.argv]
        return " ".join([*variables, *words])


class Program:
    """A started command in a session of its own. log: what it prints. until: time.monotonic() at
    which its time is over.
    """

    def __init__(self, command: Command, log: Path, until: float):
        self.log, self.until = log, until
        self.mark = uuid.uuid4().hex
        self.launched = time.time()  # beside the times of notes, which other processes write
        env = {**os.environ, **command.env, MARK: self.mark}
        env = {name: value for name, value in env.items() if value or name not in command.env}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file:
            print(f"$ {command}", file=file, flush=True)
            self.process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=CHECKOUT,
                env=env,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        """Its processes that are alive: torchrun's ranks and vLLM's workers leave its session, but
        keep its environment.
        """
        members = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark:
                    members.append(process)
        return members

    def wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        """Until the condition is true; its value."""
        while True:
            # Asked before the condition, which may come true as the last thing that a program does.
            has_ended = self.process.poll() is not None
            value = condition()
            if value:
                return value
            if has_ended:
                status = self.process.returncode
                raise ProgramFailed(f"exit status {status} before {what}\n{self.last_lines()}")
            self.check_time(what)
            time.sleep(0.2)

    def check_time(self, what: str) -> None:
        if time.monotonic() > self.until:
            raise OutOfTime(f"waited for {what}\n{self.last_lines()}")

    def finish(self) -> int:
        """Wait for its end; the exit status."""
        while self.process.poll() is None:
            self.check_time(f"the end of {self.log.stem}")
            time.sleep(0.2)
        return self.process.returncode

    def one_line(self) -> str:
        """What it has printed, wherever lines were broken."""
        return " ".join(self.text().split())

    def last_lines(self, count: int = 8) -> str:
        """The end of what it has printed."""
        return "\n".join(self.text().rstrip().splitlines()[-count:])

    def check_status(self, expected: int = 0) -> None:
        """ProgramFailed where it has ended with another status."""
        status = self.process.returncode
        if status != expected:
            lines = self.last_lines()
            raise ProgramFailed(f"exit status {status}, expected {expected}; {self.log}\n{lines}")

    def stop(self) -> None:
        """End everything of it: with SIGTERM, by which the launcher ends its programs, then with
        SIGKILL.
        """
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=30)
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.process.wait()


def run(command: Command, log: Path, until: float) -> Program:
    """Run a command to its end. ProgramFailed where its exit status is not 0."""
    program = Program(command, log, until)
    try:
        program.finish()
    finally:
        program.stop()
    program.check_status()
    return program


class Memory:
    """Watches the memory of GPUs while a block runs. before: at its start. peak: the highest; bytes
    of each, whoever uses them.
    """

    def __init__(self, gpus: Sequence[str]):
        self.gpus = gpus
        self.before = used_by_gpu(gpus)
        self.peak = dict(self.before)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        if self.gpus:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self.gpus:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            for gpu, used in used_by_gpu(self.gpus).items():
                self.peak[gpu] = max(self.peak[gpu], used)


def used_by_gpu(gpus: Sequence[str]) -> dict[str, int]:
    """Bytes that are in use on each of these GPUs, whoever uses them."""
    if not gpus:
        return {}
    return {gpu.index: (gpu.used or 0) << 20 for gpu in this_machine().gpus if gpu.index in gpus}


def left_behind(
    program: Program, ports: Sequence[int], memory: Memory, seconds: float = RELEASE
) -> list[str]:
    """What a program that has ended still holds after so many seconds: processes, ports, memory of
    GPUs.
    """
    end = time.monotonic() + seconds
    while True:
        left = [f"process {process.pid}" for process in program.family()]
        left += [f"port {port}" for port in ports if is_listening(port)]
        for gpu, used in used_by_gpu(memory.gpus).items():
            more = used - memory.before[gpu]
            if more > GIB // 4:  # other programs of the desktop come and go
                left.append(f"{more / GIB:.1f} GiB on GPU {gpu}")
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.5)


def is_listening(port: int) -> bool:
    """Whether something listens on a port of the loopback interface, by the system's table: a
    connection would be an event for whoever listens.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return True
    return False
