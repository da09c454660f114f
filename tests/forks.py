"""Programs that each need a process of their own, and whose imports take seconds: one process imports, and each program
runs in a fork of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

# Reads requests, one a line, and answers each with the exit status of its fork.
SERVER = """
import gc, json, os, sys, traceback

answers = os.dup(1)
os.dup2(2, 1)
gc.disable()  # imports make no garbage
exec(sys.argv[1])
gc.freeze()
gc.enable()

def run(code, arguments, folder, variables, output, errors):
    for number, path in enumerate((output, errors), start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["-c", *arguments]
    status = 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.close(answers)
        run(**json.loads(line))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(answers, f"{status}\\n".encode())
"""


class Forks:
    """A process that has run `imports`, a line of Python, and waits for programs."""

    def __init__(self, imports: str, folder: Path):
        self.output = folder / "output"
        self.errors = folder / "errors"
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def run(self, code: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        """What `python -c CODE ARGUMENTS` gives, in the environment of this moment. Variables that
        the imports read have the values of before.
        """
        assert self.process.stdin and self.process.stdout
        request = {
            "code": code,
            "arguments": list(map(str, arguments)),
            "folder": str(cwd),
            "variables": dict(os.environ),
            "output": str(self.output),
            "errors": str(self.errors),
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        answer = self.process.stdout.readline()
        assert answer, "the imports have failed"
        return subprocess.CompletedProcess(
            ["-c", code], int(answer), self.output.read_text(), self.errors.read_text()
        )

    def stop(self) -> None:
        """It ends when nothing more can be asked."""
        self.process.communicate()
