"""The commands `swift-rlvr dataset make countdown` and `swift-rlvr solve`."""

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from swift_rlvr.countdown.settings import OPERATORS, PRESET_HELP, PRESETS
from swift_rlvr.countdown.splits import SPLITS
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import write_jsonl

Preset = Enum("Preset", [(name, name) for name in PRESETS], type=str)  # type: ignore[misc]
Split = Enum("Split", [(name, name) for name in SPLITS], type=str)  # type: ignore[misc]
FLAGS = {"solutions": "with_solutions", "needs": "with_operators", "depth": "with_depth"}  # setting -> parameter


def make(
    out: Annotated[Path, typer.Option(help="The file to write, ending in .jsonl or .parquet.")],
    preset: Annotated[Preset, typer.Option(help=PRESET_HELP)],
    split: Annotated[Split, typer.Option(help="No task is in two of them, whatever the settings and the seeds.")],
    rows: Annotated[int | None, typer.Option(min=1, help="How many; 24 and tiny: all there are, unless given.")] = None,
    levels: Annotated[
        bool, typer.Option("--levels", help="--rows of each level of the preset, easy to hard, with a column level.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the file is the same for any number.")] = 1,
    solution: Annotated[bool, typer.Option("--solution", help="Add an expression that solves it.")] = False,
    solutions: Annotated[bool, typer.Option("--solutions", help="Add how many different solutions there are.")] = False,
    difficulty: Annotated[bool, typer.Option("--difficulty", help="Add solutions, operators needed, depth.")] = False,
    count: Annotated[str | None, typer.Option(help="Instead of the preset's: how many numbers, such as 3-5.")] = None,
    number: Annotated[str | None, typer.Option(help="What they lie between, such as 1-50.")] = None,
    target: Annotated[str | None, typer.Option(help="What the target lies between.")] = None,
    operators: Annotated[str | None, typer.Option(help=f'Some of "{OPERATORS}".')] = None,
    negative: Annotated[bool | None, typer.Option(help="Whether intermediate results may be negative.")] = None,
    fractions: Annotated[bool | None, typer.Option(help="Whether they may be fractions.")] = None,
    largest: Annotated[int | None, typer.Option(help="The largest intermediate result.")] = None,
    with_solutions: Annotated[str | None, typer.Option(help="Only tasks with so many solutions, such as 1-3.")] = None,
    with_operators: Annotated[str | None, typer.Option(help="Only tasks that need so many distinct operators.")] = None,
    with_depth: Annotated[str | None, typer.Option(help="Only tasks that need sums and products so deep.")] = None,
) -> None:
    """Write Countdown tasks (columns nums and target): solvable, no two alike.

    Run again after an interruption, it continues where it stopped.
    """
    from swift_rlvr.countdown.export import write_tasks
    from swift_rlvr.countdown.generator import Columns, holds

    ranges = {"count": count, "number": number, "target": target}
    ranges |= {"solutions": with_solutions, "needs": with_operators, "depth": with_depth}
    changes: dict[str, Any] = {
        name: _range(text, FLAGS.get(name, name)) for name, text in ranges.items() if text is not None
    }
    others = {"operators": operators, "negative": negative, "fractions": fractions, "largest": largest}
    changes |= {name: value for name, value in others.items() if value is not None}
    if levels:
        if changes or solution or solutions or difficulty:
            raise InputError("gives the rows their settings, and goes with --rows and --seed only", field="levels")
        _make_levels(out, preset.value, split.value, rows, seed)
        return
    if number is not None:
        changes["tiles"] = None  # drawn evenly from the range instead
    try:
        settings = replace(PRESETS[preset.value], **changes)
    except InputError as error:
        raise InputError(error.problem, FLAGS.get(error.field or "", error.field)) from error
    if (solutions or difficulty) and settings.count[1] > 6:
        raise InputError("is for 6 numbers at most", field="solutions" if solutions else "difficulty")
    total = rows or holds(settings, split.value)
    if total is None:
        raise InputError("is needed: with these settings there are millions of tasks", field="rows")
    console = Console()
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*bar, console=console, transient=True, disable=not console.is_terminal) as progress:
        shown = progress.add_task("Making tasks", total=total)
        try:
            written = write_tasks(
                out, settings, split.value, seed, rows, workers, Columns(solution, solutions, difficulty),
                lambda done: progress.update(shown, completed=done),
            )  # fmt: skip
        except IndexError as error:
            raise InputError(f"is too large: {error}", field="rows") from error
    console.print(f"{written} tasks written to {out}", soft_wrap=True)


def _make_levels(out: Path, preset: str, split: str, rows: int | None, seed: int) -> None:
    from swift_rlvr.countdown.levels import LEVELS, level_tasks

    if preset not in LEVELS:
        raise InputError(f"are there for the presets {' and '.join(LEVELS)}, not for {preset}", field="levels")
    if rows is None:
        raise InputError("is needed with --levels: how many of each level", field="rows")
    if out.suffix != ".jsonl":
        raise InputError(f"must end in .jsonl, got {out}", field="out")
    try:
        tasks = list(level_tasks(LEVELS[preset], split, seed, rows))
    except IndexError as error:
        raise InputError(f"is too large: {error}", field="rows") from error
    write_jsonl(out, tasks)
    Console().print(f"{len(tasks)} tasks of {len(LEVELS[preset])} levels written to {out}", soft_wrap=True)


def solve(
    numbers: Annotated[list[int], typer.Argument(help="The numbers and, last, the target.")],
    every: Annotated[bool, typer.Option("--all", help="Show all essentially different solutions.")] = False,
    only_count: Annotated[bool, typer.Option("--count", help="Show how many there are.")] = False,
) -> None:
    """Solve a Countdown task exactly: `swift-rlvr solve 3 4 5 6 24` makes 24 of 3, 4, 5 and 6. Exit 1: no solution."""
    from swift_rlvr.countdown import solver

    *nums, target = numbers
    try:
        if every or only_count:
            solutions = solver.solutions(nums, target)
        else:
            solutions = [text for text in [solver.solve(nums, target)] if text]
    except ValueError as error:
        raise InputError(str(error)) from error
    if only_count:
        typer.echo(len(solutions))
    elif solutions:
        typer.echo("\n".join(f"{text} = {target}" for text in solutions))
    if not solutions:
        typer.echo(f"no solution: {target} cannot be made of {', '.join(map(str, nums))}", err=True)
        raise typer.Exit(1)


def _range(text: str, flag: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    try:
        return int(first), int(last if dash else first)
    except ValueError:
        raise InputError(f"must be a range such as 3-5 or one number, got {text!r}", field=flag) from None
