"""Whether the installed torch computes, and whether the patches fit the installed packages."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_check.programs import Command, run
from gpu_check.steps import Check, Measured, Step, python_path
from swift_rlvr.utils.files import CHECKOUT
from swift_rlvr.utils.jsonl import parse_object


def program_commands(name: str):
    def commands(check: Check) -> list[Command]:
        argv = (sys.executable, "-m", f"gpu_check.{name}")
        env = {"PYTHONPATH": python_path(Path(CHECKOUT, "scripts"))}
        return [Command(argv, env, check.folder / name)]

    return commands


def measure_program(check: Check, commands: Sequence[Command]) -> Measured:
    """The program's last line is JSON: passed, text and figures."""
    (command,) = commands
    program = run(command, command.folder / "log", check.until)
    found = parse_object(program.text().rstrip().splitlines()[-1])
    return Measured(found.pop("passed"), found.pop("text"), found)


STEPS = (
    Step(
        name="torch",
        claim="the locked torch computes on each GPU, in bfloat16",
        expected="a product of two matrices differs from the exact one by less than 1%",
        minutes=3,
        commands=program_commands("matmul"),
        run=measure_program,
    ),
    Step(
        name="patches",
        claim="all that the two patch tables replace is in the installed packages",
        expected="every target resolves",
        minutes=3,
        commands=program_commands("resolve_patches"),
        run=measure_program,
    ),
)
