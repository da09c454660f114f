"""`swift-rlvr dataset prepare`: the rows that can be used and are short enough, in a file."""

from typing import Annotated

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.tasks.sources import parse_source
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
    use_hf: flags.UseHf = False,
) -> None:
    """Write the rows that can be used and are short enough to a file.

    The GSM8K recipe:
    swift-rlvr dataset prepare gsm8k --model DIR --max_prompt_tokens 300
    --max_answer_tokens 200 --rows 1024 --out gsm8k_1024.jsonl
    """
    from swift_rlvr.evaluation.prompts import select

    flags.check_out(out)
    source = parse_source(dataset, use_hf)
    with Console(stderr=True).status(f"Reading {source}"):
        kept, left_out = select(source, model, max_prompt_tokens, max_answer_tokens, rows, system)
    why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items()) or "none left out"
    if not kept:
        raise InputError(f"no row of {source} is left ({why})")
    write_jsonl(out, kept)

    console = Console(highlight=False, markup=False, soft_wrap=True)
    total = len(kept) + left_out.total()
    console.print(f"{len(kept):,} of {total:,} rows that were read are kept ({why}).")
    if rows is not None and len(kept) < rows:
        console.print(f"There are no more: fewer than the {rows:,} asked for.", style="yellow")
    console.print(f"written: {out}; train on it with --dataset {source.task.name}:{out}")
