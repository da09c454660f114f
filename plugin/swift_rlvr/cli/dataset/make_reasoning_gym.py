"""`swift-rlvr dataset make reasoning_gym`: rows of reasoning-gym's tasks, in a file."""

from itertools import islice
from typing import Annotated

import typer

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import terminal
from swift_rlvr.utils.jsonl import write_jsonl


def make_reasoning_gym(
    tasks: Annotated[
        str,
        typer.Argument(
            help="Tasks, in the form that follows reasoning_gym: in --dataset, such as gcd+lcm?seed=1:test."
        ),
    ],
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")],
    out: flags.OutFile,
) -> None:
    """Write rows of reasoning-gym's tasks to a file, for --dataset reasoning_gym:FILE."""
    from swift_rlvr.tasks.reasoning_gym import TASK

    flags.check_out(out)
    write_jsonl(out, islice(TASK.make(tasks), rows))
    terminal().print(f"{rows} rows written to {out}")
