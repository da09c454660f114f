"""The commands `swift-rlvr reasoning-gym list` and `swift-rlvr dataset make reasoning_gym`."""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli.render import table
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import write_jsonl

Names = Annotated[list[str] | None, typer.Argument(help="Tasks or categories; none: all.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


def show_tasks(names: Names = None, as_json: Json = False) -> None:
    """List the tasks with their category and whether they are refused; a task alone with its settings and levels."""
    from swift_rlvr.reasoning_gym import library, naming

    chosen = _chosen(names)
    tasks: dict[str, dict[str, object]] = {
        name: {"category": library.category(name), "refused": library.why_refused(name)} for name in chosen
    }
    if len(chosen) == 1:
        tasks[chosen[0]] |= {"settings": naming.defaults(chosen[0]), "levels": naming.levels(chosen[0])}
    if as_json:
        typer.echo(json.dumps(tasks, default=str))
        return
    console = Console(highlight=False)
    listed = table("task", "category", "")
    for name, task in tasks.items():
        listed.add_row(name, str(task["category"]), f"refused: {task['refused']}" if task["refused"] else "")
    console.print(listed)
    if len(chosen) == 1:
        settings, levels = table("setting", "default"), table("attribute", "level", "values")
        for name, value in naming.defaults(chosen[0]).items():
            settings.add_row(name, Text(str(value)))
        for name, values in naming.levels(chosen[0]).items():
            levels.add_row(name, f"0 to {len(values) - 1}", Text(", ".join(map(str, values))))
        console.print("", settings, "", levels)


def make(
    tasks: Annotated[str, typer.Argument(help="As after reasoning_gym: in --dataset, such as gcd+lcm?seed=1:test.")],
    rows: Annotated[int, typer.Option(min=1, help="How many.")],
    out: Annotated[Path, typer.Option(help="The file to write, ending in .jsonl.")],
) -> None:
    """Write rows of reasoning-gym's tasks to a file, for --dataset reasoning_gym:FILE."""
    from swift_rlvr.tasks.reasoning_gym import make as make_rows

    if out.suffix != ".jsonl":
        raise InputError(f"must end in .jsonl, got {out}", field="out")
    write_jsonl(out, islice(make_rows(tasks), rows))
    Console().print(f"{rows} rows written to {out}", soft_wrap=True)


def _chosen(names: list[str] | None) -> list[str]:
    from swift_rlvr.reasoning_gym import naming

    return sorted({task for name in names or ["all"] for task in naming.tasks_of(name)})
