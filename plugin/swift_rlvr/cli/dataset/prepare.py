"""`swift-rlvr dataset prepare`: the rows that can be used and are short enough, in a file."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swift_rlvr.adapters.rows import FORMATS, PARQUET, refuse_media, write_parquet
from swift_rlvr.cli import flags
from swift_rlvr.cli.render import counts_text, terminal, with_progress
from swift_rlvr.evaluation.prompts import SystemPrompt, default_system, select
from swift_rlvr.tasks.columns import has_pictures
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.tool_calls import refuse_native_tools
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl

SHOWN_PROBLEMS = 10


def prepare(
    dataset: flags.Dataset,
    out: Annotated[
        Path,
        typer.Option(help=f"The file to write: .jsonl, or .parquet for {' and '.join(PARQUET)}."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Model folder with a tokenizer and chat template, or a hub id. The token limits need it."
        ),
    ] = None,
    max_prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Leave out rows with longer prompts.")
    ] = None,
    max_answer_tokens: Annotated[
        int | None, typer.Option(min=1, help="Leave out rows with longer reference solutions.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Keep at most this many rows, from the start.")
    ] = None,
    add_cases: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="For code:FILE: add this many tests to each row that has a reference solution.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="For --add_cases: the same seed gives the same tests.")
    ] = 0,
    system: flags.RowSystem = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
    format: Annotated[
        str,
        typer.Option(
            help=f"Write the format of another trainer: {', '.join(FORMATS)}.", show_default=False
        ),
    ] = "",
) -> None:
    """Write the usable rows of a dataset to a file, with limits on their length.

    The GSM8K recipe:
    swift-rlvr dataset prepare gsm8k --model DIR --max_prompt_tokens 300
    --max_answer_tokens 200 --rows 1024 --out gsm8k_1024.jsonl

    For verl:
    swift-rlvr dataset prepare countdown:train.jsonl --format verl
    --out train.parquet

    Hidden tests, made from the reference solutions:
    swift-rlvr dataset prepare code:FILE --add_cases 20 --out more.jsonl
    """
    if format and format not in FORMATS:
        raise InputError(f"must be one of {', '.join(FORMATS)}, got {format!r}", "format")
    flags.check_out(out, ".parquet" if format in PARQUET else ".jsonl")
    source = parse_source(dataset, use_hf, columns)
    renamed: set[str] = set()
    with terminal(stderr=True).status(f"Reading {source}"):
        kept, left_out = select(
            source, model, max_prompt_tokens, max_answer_tokens, rows, system, renamed
        )
    why = counts_text(left_out.items()) or "none left out"
    if not kept:
        raise InputError(f"no row of {source} is left ({why})")
    console = terminal()
    prepared = [row for _, row in kept]
    if add_cases is not None:
        prepared = _with_cases(console, source, kept, add_cases, seed)
    use = f"train on it with --dataset {source.task.name}:{out}"
    if format:
        use = f"in the format of {format}"
        converted = []
        for index, raw in enumerate(prepared):
            # The columns of a file of mixed tasks differ by row.
            own = source.task.of(raw)
            row = own.preprocess(raw)
            # What the other trainer would drop silently.
            refuse_native_tools([row], format)
            refuse_media(row)
            chosen = SystemPrompt(system, "--system") if system else default_system(own)
            row["messages"] = chosen.on(row["messages"])
            converted.append(FORMATS[format](own.name, row, index))
        if format in PARQUET:
            write_parquet(out, converted)
        else:
            write_jsonl(out, converted)
    else:
        # As they were read: the task preprocesses them again when it trains.
        write_jsonl(out, prepared)

    total = len(kept) + left_out.total()
    console.print(f"Kept {len(kept):,} of the {total:,} rows read ({why}).")
    # A misspelt name leaves a column unread, and the rows may still be usable without it.
    for name in source.columns:
        if name not in renamed:
            text = f"No row has the column {name!r}, which --columns renames."
            console.print(text, style="yellow")
    if max_prompt_tokens is not None and any(map(has_pictures, prepared)):
        console.print("The tokens of pictures are not among those of the prompts.", style="yellow")
    if rows is not None and len(kept) < rows:
        console.print(f"You asked for {rows:,} rows; the dataset has no more.", style="yellow")
    console.print(f"written: {out}; {use}")


def _with_cases(
    console: Console,
    source: Source,
    rows: list[tuple[int, dict[str, Any]]],
    count: int,
    seed: int,
) -> list[dict[str, Any]]:
    """The rows with added tests, and a report of those that got none."""
    from swift_rlvr.evaluation.added_cases import add_cases

    prepared = []
    counts = []
    problems = []
    mutants = surviving = 0
    for result in with_progress(add_cases(source, rows, count, seed), "Adding tests", len(rows)):
        prepared.append(result.row)
        mutants += result.mutants
        surviving += result.surviving
        if result.added:
            counts.append(result.added)
        elif result.problem is not None:
            problems.append((result.line, result.problem))

    tests = f"Added {sum(counts):,} tests to {len(counts):,} rows"
    # Few inputs give results that can be compared, or the function has few different ones.
    fewer = sum(number < count for number in counts)
    console.print(f"{tests}; {fewer:,} rows got fewer than {count}." if fewer else f"{tests}.")
    if mutants:
        passing = f"Of {mutants:,} faulty versions of the references that pass their visible tests"
        console.print(
            f"{passing}, {surviving:,} pass the added ones too (some do the same as the reference)."
        )
    if problems:
        console.print(f"No tests were added to {len(problems):,} rows:", style="yellow")
        for line, problem in problems[:SHOWN_PROBLEMS]:
            console.print(f"  line {line}: {problem}")
        if len(problems) > SHOWN_PROBLEMS:
            # Without the failure in parentheses, which each row has of its own.
            why = Counter(problem.partition(" (")[0] for _, problem in problems)
            console.print(f"  ... in all {counts_text(why.most_common(5))}")
    return prepared
