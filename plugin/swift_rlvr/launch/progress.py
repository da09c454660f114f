"""What the supervisor sees and shows of a run: log files as they grow, and the terminal."""

import math
import re
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

# Seconds between two lines about waiting where there is no terminal.
EVERY = 10
# Characters of a line, and lines at the end of a log, that are shown.
LONGEST, LAST = 300, 20
# Lines after the last error, from which on the program has gone on in spite of it.
WENT_ON = 50

# Lines of a log that say nothing of an error: progress bars (" 45%|"), warnings, and what ms-swift
# prints of a step ("{'loss': 0.1").
_NOISE = re.compile(
    r"\d+%\||Warning: |^  return func\(|^  super\(\)\.__init__\(|^\s*\{'(loss|train_runtime)'"
)
# OSError: [Errno 28] No space left on device; [rank1]: torch.cuda.OutOfMemoryError: ...
_EXCEPTION = re.compile(
    r"(\[rank\d+\]: )?([A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Killed)): ?"
)
# W1124 23:06:52.1 torch/distributed/elastic/...: from here torchrun stops the other ranks.
_TORCHRUN_STOPS = re.compile(
    r"[WE]\d{4} .*torch/distributed/elastic|torch\.distributed\.elastic\..*ChildFailedError"
)
# Root Cause (first observed failure): ... rank : 1 (local_rank: 1)
_FAILED_FIRST = re.compile(r"Root Cause.*?rank\s*:\s*(\d+)", re.DOTALL)


class Tail:
    """The lines that are added to a file, as they are completed; the last state of a line that a
    progress bar rewrites.
    """

    def __init__(self, path: Path):
        self.path = path
        self.start = self._offset = path.stat().st_size if path.is_file() else 0
        self._rest = b""

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
        return [_last_state(line.decode("utf-8", "replace")) for line in lines]


def _last_state(line: str) -> str:
    """What a terminal shows of a line that a progress bar has rewritten with carriage returns."""
    return line.rstrip("\r").rpartition("\r")[2]


def last_lines(
    path: Path, start: int = 0, count: int = LAST, first_error: bool = False
) -> list[str]:
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
    lines = []
    for raw in text.split("\n"):
        line = _last_state(raw).rstrip()
        if _TORCHRUN_STOPS.match(line):
            break
        if not line or _NOISE.search(line):
            continue
        if len(line) > LONGEST:
            line = f"{line[: LONGEST - 3]}..."
        lines.append(line)
    if failed := _FAILED_FIRST.search(text):
        of_rank = [line for line in lines if line.startswith(f"[rank{failed[1]}]")]
        if of_rank:
            return of_rank[-count:]
    # What follows the error is of programs that were stopped because of it.
    errors = [index for index, line in enumerate(lines) if _EXCEPTION.match(line)]
    if errors and first_error:
        lines = lines[: errors[0] + 1]
    elif errors and len(lines) - errors[-1] < WENT_ON:
        lines = lines[: errors[-1] + 1]
    return lines[-count:]


def exception(lines: list[str]) -> str | None:
    """The last exception in a log's lines, such as "OSError: [Errno 28] No space left on
    device".
    """
    for line in reversed(lines):
        if _EXCEPTION.match(line):
            return re.sub(r"^\[rank\d+\]: ", "", line)
    return None


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
        self._started = time.monotonic()
        self._said = -math.inf  # when a line about waiting was printed

    def close(self) -> None:
        """Show nothing below the lines any more."""
        self._status.stop()

    def print(self, text: str, style: str | None = None, highlight: bool = False) -> None:
        """A line, as it is."""
        say(self.console, text, style, highlight)

    def show(self, phase: str) -> None:
        """Below the lines."""
        self._status.update(escape(phase))

    def waiting(self, phase: str) -> None:
        """Say what is waited for."""
        self.show(phase)
        now = time.monotonic()
        if not self.console.is_terminal and now - self._said >= EVERY:
            self._said = now
            self.print(f"{now - self._started:4.0f} s  {phase}")
