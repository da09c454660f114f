"""The commands `swift-rlvr dataset make countdown` and `swift-rlvr solve`."""

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from swift_rlvr.countdown.settings import LEVELS, OPERATORS, PRESET_HELP, PRESETS, SPLITS
from swift_rlvr.errors import InputError

Preset = Enum("Preset", [(name, name) for name in PRESETS], type=str)  # type: ignore[misc]
Split = Enum("Split", [(name, name) for name in SPLITS], type=str)  # type: ignore[misc]


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
    from swift_rlvr.countdown.export import write_rows
    from swift_rlvr.countdown.generator import holds_few, make_levels, make_tasks

    ranges = {"count": count, "number": number, "target": target}
    ranges |= {"with_solutions": with_solutions, "with_operators": with_operators, "with_depth": with_depth}
    changes: dict[str, Any] = {name: _range(text, name) for name, text in ranges.items() if text is not None}
    others = {"operators": operators, "negative": negative, "fractions": fractions, "largest": largest}
    changes |= {name: value for name, value in others.items() if value is not None}
    columns = ["solution"] * solution + ["solutions"] * (solutions or difficulty) + ["operators", "depth"] * difficulty
    if levels and (changes or columns):
        raise InputError("gives the rows their settings, and goes with --rows and --seed only", field="levels")
    if levels and preset.value not in LEVELS:
        raise InputError(f"are there for the presets {' and '.join(LEVELS)}, not for {preset.value}", field="levels")
    if number is not None:
        changes["tiles"] = None  # drawn evenly from the range instead
    settings = replace(PRESETS[preset.value], **changes)
    if rows is None and (levels or not holds_few(settings)):
        raise InputError("is needed: with --levels, and where there are very many tasks", field="rows")
    total = rows * len(LEVELS[preset.value]) if rows and levels else rows
    console = Console()

    def rows_from(skip: int) -> Iterable[dict[str, Any]]:
        if levels and rows:
            tasks: Iterable = islice(make_levels(LEVELS[preset.value], split.value, seed, rows), skip, None)
        else:
            tasks = make_tasks(settings, split.value, seed, rows, skip=skip, workers=workers, columns=columns)
        return track(tasks, "Making tasks", total, skip, console=console, disable=not console.is_terminal)

    try:
        written = write_rows(out, rows_from, (settings, levels, split.value, seed, rows, columns))
    except IndexError as error:
        raise InputError(f"is too large: {error}", field="rows") from error
    console.print(f"{written} tasks written to {out}", soft_wrap=True)


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
