"""Runs a training whose output goes to a file, and shows a line for each step that it logs.

    python -m swift_rlvr.launch.logged LOG FOLDER COMMAND...

LOG gets what the command prints. FOLDER is its output folder, where it writes logging.jsonl. The
exit status is the command's. scripts/cold_start.sh runs `swift sft` in this way.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from swift_rlvr.launch.progress import Display, exception, last_lines
from swift_rlvr.launch.steps import Steps
from swift_rlvr.runs.folder import LOG

# Lines of the log that are shown after a failure.
LAST = 40


def run_logged(command: Sequence[str], log: Path, folder: Path, console: Console) -> int:
    """Run a command to its end; its exit status."""
    display = Display(console)
    display.print(f"the full output is in {log}")
    steps = Steps(folder / LOG, display)
    start = log.stat().st_size if log.is_file() else 0
    try:
        with log.open("ab") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
        while True:
            status = process.poll()
            steps.read()
            if status is not None:
                break
            if not steps.step:
                display.waiting("waiting for the first step")
            time.sleep(0.1)
    except KeyboardInterrupt:  # which the command got too
        process.wait()
        return 130
    finally:
        display.close()
    if status:
        lines = last_lines(log, start, LAST)
        display.print(f"Error: the training ended with exit status {status}", "red")
        if error := exception(lines):
            display.print(error, "red")
        display.print(f"The end of {log}:")
        for text in lines:
            display.print(f"  {text}", "dim")
    return status


if __name__ == "__main__":
    log, folder, *command = sys.argv[1:]
    sys.exit(run_logged(command, Path(log), Path(folder), Console(highlight=False)))
