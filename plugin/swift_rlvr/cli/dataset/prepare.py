"""`swift-rlvr dataset prepare`: the rows that can be used and are short enough, in a file."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swift_rlvr.adapters.rows import FORMATS, PARQUET, write_parquet
from swift_rlvr.cli import flags
from swift_rlvr.tasks import Task
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl


def prepare(
    dataset: flags.Dataset,
    model: flags.Tokenizer,
    out: flags.OutFile,
    max_prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longer prompts are left out.")
    ] = None,
    max_answer_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longer solutions are left out.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many of those that are left.")
    ] = None,
    system: flags.RowSystem = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
    format: Annotated[
        str, typer.Option(help=f"For another trainer: {', '.join(FORMATS)}.", show_default=False)
    ] = "",
) -> None:
    """Write the rows that can be used and are short enough to a file.

    The GSM8K recipe:
    swift-rlvr dataset prepare gsm8k --model DIR --max_prompt_tokens 300
    --max_answer_tokens 200 --rows 1024 --out gsm8k_1024.jsonl

    For verl: swift-rlvr dataset prepare countdown:train.jsonl --model DIR --format verl
    --out train.parquet
    """
    from swift_rlvr.evaluation.prompts import select

    if format and format not in FORMATS:
        raise InputError(f"must be one of {', '.join(FORMATS)}, got {format!r}", "format")
    flags.check_out(out, ".parquet" if format in PARQUET else ".jsonl")
    source = parse_source(dataset, use_hf, columns)
    with Console(stderr=True).status(f"Reading {source}"):
        kept, left_out = select(source, model, max_prompt_tokens, max_answer_tokens, rows, system)
    why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items()) or "none left out"
    if not kept:
        raise InputError(f"no row of {source} is left ({why})")
    if format:
        _write(out, format, source.task, kept, system)
    else:
        write_jsonl(out, kept)

    console = Console(highlight=False, markup=False, soft_wrap=True)
    total = len(kept) + left_out.total()
    console.print(f"{len(kept):,} of {total:,} rows that were read are kept ({why}).")
    if rows is not None and len(kept) < rows:
        console.print(f"There are no more: fewer than the {rows:,} asked for.", style="yellow")
    use = f"train on it with --dataset {source.task.name}:{out}"
    if format:
        use = f"its rows are {format}'s"
    console.print(f"written: {out}; {use}")


def _write(
    out: Path, format: str, task: Task, rows: list[dict[str, Any]], system: str | None
) -> None:
    """Write raw rows in another trainer's form."""
    as_row = FORMATS[format]
    converted = []
    for index, raw in enumerate(rows):
        own = task.of(raw)
        prepared = own.preprocess(raw)
        prepared["messages"] = with_system(prepared["messages"], system or own.system)
        converted.append(as_row(own.name, prepared, index))
    if format in PARQUET:
        write_parquet(out, converted)
    else:
        write_jsonl(out, converted)
