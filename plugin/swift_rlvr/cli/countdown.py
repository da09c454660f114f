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

from swift_rlvr.cli.flags import option
from swift_rlvr.countdown.settings import LEVELS, PRESET_HELP, PRESETS, SPLITS, CountdownSettings
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
    count: Annotated[str | None, option(CountdownSettings, "count", metavar="RANGE")] = None,
    number: Annotated[str | None, option(CountdownSettings, "number", metavar="RANGE")] = None,
    target: Annotated[str | None, option(CountdownSettings, "target", metavar="RANGE")] = None,
    operators: Annotated[str | None, option(CountdownSettings, "operators")] = None,
    negative: Annotated[bool | None, option(CountdownSettings, "negative")] = None,
    fractions: Annotated[bool | None, option(CountdownSettings, "fractions")] = None,
    largest: Annotated[int | None, option(CountdownSettings, "largest")] = None,
    with_solutions: Annotated[str | None, option(CountdownSettings, "with_solutions", metavar="RANGE")] = None,
    with_operators: Annotated[str | None, option(CountdownSettings, "with_operators", metavar="RANGE")] = None,
    with_depth: Annotated[str | None, option(CountdownSettings, "with_depth", metavar="RANGE")] = None,
) -> None:
    """Write Countdown tasks (columns nums and target): solvable, no two alike.

    Run again after an interruption, it continues where it stopped.
    """
    from swift_rlvr.countdown.export import write_rows
    from swift_rlvr.countdown.generator import holds_few, make_levels, make_tasks

    flags: dict[str, Any] = {"count": count, "number": number, "target": target, "operators": operators}
    flags |= {"negative": negative, "fractions": fractions, "largest": largest}
    flags |= {"with_solutions": with_solutions, "with_operators": with_operators, "with_depth": with_depth}
    changes = {name: value for name, value in flags.items() if value is not None}
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
