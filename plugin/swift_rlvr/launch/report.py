"""How a run ended, and how it goes on: what a supervisor says last."""

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal

from swift_rlvr.launch.plan import Plan
from swift_rlvr.launch.progress import exception, last_lines, say
from swift_rlvr.launch.variables import Variables
from swift_rlvr.runs.folder import BEST, checkpoints, missing, whole_checkpoints
from swift_rlvr.training.ms_swift import SUPERVISOR
from swift_rlvr.training.recipes import VARIABLES
from swift_rlvr.utils.settings import PREFIX

# The script that started this process, for the command that resumes.
SCRIPT = "SWIFT_RLVR_SCRIPT"

# What is said of a file that could not be written: by the system, and by torch, whose writer of
# checkpoints hides the reason.
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_NOT_WRITTEN = re.compile(
    r"basic_ios::clear: iostream error|enforce fail at inline_container|PytorchStreamWriter failed"
    r"|File too large"
)
# Free bytes below which it is the disk; and below which a log without an error has lost its end.
_NEARLY_FULL, _FULL = 1 << 30, 1 << 20


@dataclass(frozen=True)
class End:
    """How a run ended. log, start: which log says why, from which byte. of_server: a server that
    was ready ended.

    first_error: the log says it in its first error from there on, not in the last.
    """

    status: int
    cause: str = ""
    log: Path | None = None
    start: int = 0
    first_error: bool = False
    of_server: bool = False


def report(end: End, plan: Plan, console: Console) -> int:
    """Say how the run ended, and how it goes on."""
    if end.status == 0:
        kept = checkpoints(plan.output)
        saved = f"the last checkpoint is {kept[-1]}" if kept else "no checkpoint was saved"
        say(console, f"training finished; {saved}")
        best = plan.output / BEST
        if best.exists():
            say(console, f"the best checkpoint by held-out success is {best.resolve()}")
        return 0
    lines = []
    if end.log:
        lines = last_lines(end.log, end.start, first_error=end.first_error)
    error = exception(lines)
    has_diverged = error is not None and "DivergedError" in error
    if error:
        say(console, error, "red")
    if lines and (full := _why_not_written("\n".join(lines), plan.output, error is not None)):
        say(console, full, "red")
    if lines:
        say(console, f"The end of {end.log}:")
        for text in lines:
            say(console, f"  {text}", "dim")

    # From which checkpoint the run goes on, and which are skipped.
    complete = whole_checkpoints(plan.output)
    for path in reversed(checkpoints(plan.output)):
        if path in complete:
            break
        say(console, f"{path} is skipped: it lacks {missing(path)}")
    if has_diverged and complete:
        say(console, f"the last checkpoint is {complete[-1]}")
    elif has_diverged:
        say(console, "there is no checkpoint to resume from")
    elif complete:
        command = command_to_resume(sys.argv, os.environ)
        say(console, f"To resume from {complete[-1]}, run:\n  {command}")
    else:
        hint = "start again in another folder, or in this one with RESUME=auto."
        say(console, f"There is no checkpoint to resume from; {hint}")
    return 3 if has_diverged else end.status


def _why_not_written(text: str, folder: Path, has_error: bool) -> str:
    """Say why a file could not be written, with the free space; "" if a log says nothing of one.

    has_error: the log has an error. On the full disk it may end before.
    """
    free = shutil.disk_usage(folder).free
    has_no_space = _NO_SPACE.search(text) is not None or (not has_error and free < _FULL)
    if not has_no_space and _NOT_WRITTEN.search(text) is None:
        return ""
    if has_no_space:
        # Semaphores and shared memory are files in /dev/shm, which a container may have little of.
        for place in (Path("/dev/shm"), Path(tempfile.gettempdir()), Path.home()):
            with suppress(OSError):
                left = shutil.disk_usage(place).free
                if left < _FULL <= free:
                    return f"{place} is full: {decimal(left)} are free there"
    where = f"{decimal(free)} are free for {folder}"
    if has_no_space or free < _NEARLY_FULL:
        return f"The disk is full, or a quota is used up: {where}"
    return f"A file could not be written, and {where}: a quota, or `ulimit -f`, may be in the way"


def command_to_resume(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The command of this process with its variables, as it goes on from the last checkpoint.

    >>> command_to_resume(["/bin/swift-rlvr", "train", "countdown", "--beta", "0.04"], {"OUTPUT": "my run"})
    "OUTPUT='my run' RESUME=1 swift-rlvr train countdown --beta 0.04"
    >>> command_to_resume(["/bin/swift-rlvr", "train", "countdown"], {"SWIFT_RLVR_SCRIPT": "bash scripts/x.sh"})
    'RESUME=1 bash scripts/x.sh'
    """
    launchers = {field.name.upper() for field in fields(Variables)}
    ours = {*VARIABLES, *launchers, "CUDA_VISIBLE_DEVICES"} - {"RESUME"}
    variables = []
    for name, value in environ.items():
        if name in (SCRIPT, SUPERVISOR):
            continue
        if name in ours or name.startswith(("EXTERNAL_", PREFIX)):
            variables.append(f"{name}={shlex.quote(value)}")
    command, words = Path(argv[0]).name, argv[1:]
    if SCRIPT in environ:  # which is `swift-rlvr train NAME`
        command, words = environ[SCRIPT], argv[3:]
    return " ".join([*variables, "RESUME=1", command, *map(shlex.quote, words)])
