"""The commands `swift-rlvr dataset make countdown`, `reasoning_gym` and `sft`."""

from collections import Counter
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from swift_rlvr.cli import flags
from swift_rlvr.cli.flags import option
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.countdown.settings import (
    LEVELS,
    PRESET_HELP,
    PRESETS,
    SPLITS,
    CountdownSettings,
)

Preset = Enum("Preset", [(name, name) for name in PRESETS], type=str)  # type: ignore[misc]
Split = Enum("Split", [(name, name) for name in SPLITS], type=str)  # type: ignore[misc]


def make_countdown(
    context: typer.Context,
    out: flags.OutFile,
    preset: Annotated[Preset, typer.Option(help=PRESET_HELP)],
    split: Annotated[
        Split, typer.Option(help="No task is in two of them, whatever the settings and the seeds.")
    ],
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many; 24 and tiny: all there are, unless given.")
    ] = None,
    levels: Annotated[
        bool,
        typer.Option(
            "--levels",
            help="--rows of each level of the preset, easy to hard, with a column level.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 0,
    count: Annotated[str | None, option(CountdownSettings, "count", metavar="RANGE")] = None,
    number: Annotated[str | None, option(CountdownSettings, "number", metavar="RANGE")] = None,
    target: Annotated[str | None, option(CountdownSettings, "target", metavar="RANGE")] = None,
    operators: Annotated[str | None, option(CountdownSettings, "operators")] = None,
    negative: Annotated[bool | None, option(CountdownSettings, "negative")] = None,
    fractions: Annotated[bool | None, option(CountdownSettings, "fractions")] = None,
    largest: Annotated[int | None, option(CountdownSettings, "largest")] = None,
    with_solutions: Annotated[
        str | None, option(CountdownSettings, "with_solutions", metavar="RANGE")
    ] = None,
    with_depth: Annotated[
        str | None, option(CountdownSettings, "with_depth", metavar="RANGE")
    ] = None,
) -> None:
    """Write Countdown tasks (columns nums and target): solvable, no two alike."""
    from swift_rlvr.verifiers.countdown.generator import holds_few, make_levels, make_tasks

    flags.check_out(out)
    changes = flags.settings_in(CountdownSettings, context)
    if levels and changes:
        raise InputError(
            "gives the rows their settings, and goes with --rows and --seed only", field="levels"
        )
    if levels and preset.value not in LEVELS:
        raise InputError(
            f"are there for the presets {' and '.join(LEVELS)}, not for {preset.value}",
            field="levels",
        )
    if number is not None:
        changes["tiles"] = None  # drawn evenly from the range instead
    settings = replace(PRESETS[preset.value], **changes)
    if rows is None and (levels or not holds_few(settings)):
        raise InputError(
            "is needed: with --levels, and where there are very many tasks", field="rows"
        )
    tasks, total = make_tasks(settings, split.value, seed, rows), rows
    if levels and rows:
        tasks, total = (
            make_levels(LEVELS[preset.value], split.value, seed, rows),
            rows * len(LEVELS[preset.value]),
        )
    console = Console()
    try:
        write_jsonl(
            out,
            track(tasks, "Making tasks", total, console=console, disable=not console.is_terminal),
        )
    except IndexError as error:
        raise InputError(f"is too large: {error}", field="rows") from error
    console.print(f"written: {out}", soft_wrap=True)


def make_sft(
    out: flags.OutFile,
    dataset: Annotated[str | None, typer.Argument(help=flags.DATASET)] = None,
    records: Annotated[
        list[Path] | None,
        typer.Option(help="Take right completions from a records.jsonl instead; may be repeated."),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="Held-out rows, none of which is taken.")
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="With --records: at most so many of a question.")
    ] = 1,
    shortest: Annotated[
        bool, typer.Option("--shortest", help="Its shortest, in place of random ones.")
    ] = False,
    system: flags.System = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Write conversations that end in a right answer, for swift sft: a dataset's, or those of
    --records.

    A dataset's are judged by the verifier and the format rewards of their task; of records the
    right ones in the right form are taken, one of each question by lot.

    swift-rlvr dataset make sft reasoning_gym:chain_sum:train#2000 --out sft.jsonl
    """
    from swift_rlvr.evaluation import conversations
    from swift_rlvr.tasks.sources import parse_source

    flags.check_out(out)
    if (dataset is None) == (not records):
        raise InputError("is needed, or a dataset, and not both", field="records")
    held_out, left_out = [parse_source(each, use_hf) for each in against or []], Counter[str]()
    with Console(stderr=True).status("Making conversations"):
        if dataset is not None:
            kept = list(
                conversations.from_answers(
                    parse_source(dataset, use_hf), held_out, left_out, system
                )
            )
        else:
            kept = list(
                conversations.from_records(records or [], held_out, left_out, most, shortest)
            )
    why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.most_common()) or "none"
    if not kept:
        raise InputError(f"there is no right answer to write (left out: {why})")
    write_jsonl(out, kept)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{len(kept):,} rows written to {out}; left out: {why}")


def make_reasoning_gym(
    tasks: Annotated[
        str,
        typer.Argument(help="As after reasoning_gym: in --dataset, such as gcd+lcm?seed=1:test."),
    ],
    rows: Annotated[int, typer.Option(min=1, help="How many.")],
    out: flags.OutFile,
) -> None:
    """Write rows of reasoning-gym's tasks to a file, for --dataset reasoning_gym:FILE."""
    from swift_rlvr.tasks.reasoning_gym import TASK

    flags.check_out(out)
    write_jsonl(out, islice(TASK.make(tasks), rows))
    Console().print(f"{rows} rows written to {out}", soft_wrap=True)
