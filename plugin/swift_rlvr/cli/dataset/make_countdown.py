"""`swift-rlvr dataset make countdown`: Countdown tasks, as many as you ask for."""

from dataclasses import replace
from enum import Enum
from typing import Annotated

import typer

from swift_rlvr.cli import flags
from swift_rlvr.cli.flags import option
from swift_rlvr.cli.render import terminal, with_progress
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.countdown.task_settings import (
    LEVELS,
    PRESET_HELP,
    PRESETS,
    SPLITS,
    CountdownSettings,
)

Preset = Enum("Preset", [(name, name) for name in PRESETS], type=str)  # type: ignore[misc]
Split = Enum("Split", [(name, name) for name in SPLITS], type=str)  # type: ignore[misc]
Count = Annotated[str | None, option(CountdownSettings, "count", metavar="RANGE")]
Number = Annotated[str | None, option(CountdownSettings, "number", metavar="RANGE")]
Target = Annotated[str | None, option(CountdownSettings, "target", metavar="RANGE")]
Operators = Annotated[str | None, option(CountdownSettings, "operators")]
Negative = Annotated[bool | None, option(CountdownSettings, "negative")]
Fractions = Annotated[bool | None, option(CountdownSettings, "fractions")]
Largest = Annotated[int | None, option(CountdownSettings, "largest")]
Solutions = Annotated[str | None, option(CountdownSettings, "with_solutions", metavar="RANGE")]
Depth = Annotated[str | None, option(CountdownSettings, "with_depth", metavar="RANGE")]


def make_countdown(
    context: typer.Context,
    out: flags.OutFile,
    preset: Annotated[Preset, typer.Option(help=PRESET_HELP)],
    split: Annotated[
        Split, typer.Option(help="Splits never share a task, for any settings and seeds.")
    ],
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="Number of rows. Default for 24 and tiny: all of them."),
    ] = None,
    levels: Annotated[
        bool,
        typer.Option(
            "--levels",
            help="Write --rows rows for each level of the preset, easy to hard, with a column level.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows.")] = 0,
    count: Count = None,
    number: Number = None,
    target: Target = None,
    operators: Operators = None,
    negative: Negative = None,
    fractions: Fractions = None,
    largest: Largest = None,
    with_solutions: Solutions = None,
    with_depth: Depth = None,
) -> None:
    """Write solvable Countdown tasks without duplicates (columns nums and target)."""
    from swift_rlvr.verifiers.countdown.generator import make_levels, make_tasks
    from swift_rlvr.verifiers.countdown.listing import holds_few

    flags.check_out(out)
    changes = flags.settings_in(CountdownSettings, context)
    if levels and changes:
        problem = "sets the difficulty itself: combine it with --rows and --seed only"
        raise InputError(problem, field="levels")
    if levels and preset.value not in LEVELS:
        names = " and ".join(LEVELS)
        raise InputError(f"only the presets {names} have levels, got {preset.value}", "levels")

    if number is not None:
        # A range of numbers replaces the preset's tiles, which are a fixed stock of numbers.
        changes["tiles"] = None
    settings = replace(PRESETS[preset.value], **changes)
    if rows is None and (levels or not holds_few(settings)):
        problem = "is required with --levels, and for settings with very many tasks"
        raise InputError(problem, field="rows")

    # For the bar; None where all tasks there are will be made.
    total = rows
    if levels and rows:
        tasks = make_levels(LEVELS[preset.value], split.value, seed, rows)
        total = rows * len(LEVELS[preset.value])
    else:
        tasks = make_tasks(settings, split.value, seed, rows)

    try:
        write_jsonl(out, with_progress(tasks, "Making tasks", total))
    except IndexError as error:
        # The generator runs out of tasks only as it goes, since nobody has counted them.
        raise InputError(f"is too large: {error}", field="rows") from error
    terminal().print(f"written: {out}")
