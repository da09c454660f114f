"""The commands `swift-rlvr reasoning-gym list` and `swift-rlvr dataset make reasoning_gym`."""

from itertools import islice
from typing import Annotated

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import table
from swift_rlvr.jsonl import write_jsonl


def show_tasks(
    names: Annotated[list[str] | None, typer.Argument(help="Tasks or categories; none: all.")] = None,
) -> None:
    """List the tasks with their category and whether they are refused; a task alone with its settings and levels."""
    from swift_rlvr.reasoning_gym import library, naming

    tasks = sorted({task for name in names or ["all"] for task in naming.tasks_of(name)})
    refused = {name: library.why_refused(name) for name in tasks}
    console = Console(highlight=False)
    rows = [(name, library.category(name), f"refused: {refused[name]}" if refused[name] else "") for name in tasks]
    console.print(table("task", "category", "", rows=rows))
    if len(tasks) == 1:
        settings = [(name, str(value)) for name, value in naming.defaults(tasks[0]).items()]
        levels = [
            (name, f"0 to {len(values) - 1}", ", ".join(map(str, values)))
            for name, values in naming.levels(tasks[0]).items()
        ]
        console.print("", table("setting", "default", rows=settings), "")
        console.print(table("attribute", "level", "values", rows=levels))


def make(
    tasks: Annotated[str, typer.Argument(help="As after reasoning_gym: in --dataset, such as gcd+lcm?seed=1:test.")],
    rows: Annotated[int, typer.Option(min=1, help="How many.")],
    out: flags.OutFile,
) -> None:
    """Write rows of reasoning-gym's tasks to a file, for --dataset reasoning_gym:FILE."""
    from swift_rlvr.tasks.reasoning_gym import make as make_rows

    flags.check_jsonl(out)
    write_jsonl(out, islice(make_rows(tasks), rows))
    Console().print(f"{rows} rows written to {out}", soft_wrap=True)
