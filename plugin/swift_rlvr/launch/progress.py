"""What the supervisor sees and shows of a run: log files as they grow, and the terminal."""

import math
import re
import time
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

EVERY = 10  # seconds between two lines about waiting where there is no terminal


class Tail:
    """The lines that are added to a file, as they become whole. Of one that a progress bar
    rewrites, its last state.
    """

    def __init__(self, path: Path):
        self.path = path
        self.start = self._offset = path.stat().st_size if path.is_file() else 0
        self._rest = b""
        self.last = ""  # of the lines that were not empty

    def lines(self) -> list[str]:
        """Those that were added since the last call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                added = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(added)
        *lines, self._rest = (self._rest + added).split(b"\n")
        texts = [line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2] for line in lines]
        self.last = next((text for text in reversed(texts) if text.strip()), self.last)
        return texts


def last_lines(path: Path, start: int = 0, count: int = 20, first_error: bool = False) -> list[str]:
    """The end of a log that says why its program failed; [] where there is no log.

    Of what torchrun's ranks print, only the rank's that failed first, and not how torchrun stops
    the others.

    Args:
        start: bytes at the beginning that belong to an earlier run.
        first_error: end with the first error, not with the last.
    """
    try:
        text = path.read_bytes()[start:].decode("utf-8", "replace")
    except OSError:
        return []
    root = re.search(r"Root Cause.*?rank\s*:\s*(\d+)", text, re.DOTALL)
    lines = []
    for line in (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")):
        if re.match(
            r"[WE]\d{4} .*torch/distributed/elastic|torch\.distributed\.elastic\..*ChildFailedError",
            line,
        ):
            break
        if line and not _NOISE.search(line):
            lines.append(line if len(line) <= 300 else f"{line[:297]}...")
    own = [line for line in lines if root and line.startswith(f"[rank{root[1]}]")]
    if own:
        lines = own
    else:  # to the end of the last error; what follows is of programs that were stopped because of it
        errors = [i for i, line in enumerate(lines) if _EXCEPTION.match(line)]
        if errors and (first_error or len(lines) - errors[-1] < 50):
            lines = lines[: errors[0 if first_error else -1] + 1]
    return lines[-count:]


_NOISE = re.compile(
    r"\d+%\||Warning: |^  return func\(|^  super\(\)\.__init__\(|^\s*\{'(loss|train_runtime)'"
)
_EXCEPTION = re.compile(
    r"(\[rank\d+\]: )?([A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Killed)): ?"
)


def exception(lines: list[str]) -> str | None:
    """The last exception in a log's lines, such as "OSError: [Errno 28] No space left on
    device".
    """
    found = [line for line in lines if _EXCEPTION.match(line)]
    return re.sub(r"^\[rank\d+\]: ", "", found[-1]) if found else None


def say(console: Console, text: str, style: str | None = None, highlight: bool = False) -> None:
    """Print a line as it is, whatever it quotes."""
    console.print(text, markup=False, highlight=highlight, soft_wrap=True, style=style)


class Display:
    """Prints lines, and shows below them what is going on; without a terminal a line now and then
    says it.
    """

    def __init__(self, console: Console):
        self.console = console
        self._status = console.status("")
        self._status.start()
        self._started, self._printed = time.monotonic(), -math.inf
        self.close, self.print = self._status.stop, partial(say, console)

    def show(self, phase: str) -> None:
        """Below the lines."""
        self._status.update(escape(phase))

    def waiting(self, phase: str) -> None:
        """Say what is waited for."""
        now = time.monotonic()
        self.show(phase)
        if not self.console.is_terminal and now - self._printed >= EVERY:
            self._printed = now
            self.print(f"{now - self._started:4.0f} s  {phase}")
