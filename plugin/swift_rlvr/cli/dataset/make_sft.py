"""`swift-rlvr dataset make sft`: conversations for supervised training before GRPO."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import counts_text, terminal
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl


def make_sft(
    out: flags.OutFile,
    dataset: Annotated[str | None, typer.Argument(help=flags.DATASET)] = None,
    records: Annotated[
        list[Path] | None,
        typer.Option(
            help="Take right completions from this records.jsonl instead. May be repeated."
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Leave out the rows of this held-out dataset. May be repeated."),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="With --records: at most this many completions per question.")
    ] = 1,
    shortest: Annotated[
        bool,
        typer.Option(
            "--shortest",
            help="With --records: take the shortest completions instead of random ones.",
        ),
    ] = False,
    system: flags.System = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
) -> None:
    """Write conversations that end in a right answer, for swift sft.

    The answers come from a dataset and are checked by its task's verifier and
    format rewards. With --records they come from graded completions: right
    answers in the right format, one random completion per question.

    swift-rlvr dataset make sft reasoning_gym:chain_sum:train#2000 --out sft.jsonl
    """
    from swift_rlvr.evaluation import conversations
    from swift_rlvr.tasks.sources import parse_source

    flags.check_out(out)
    if (dataset is None) == (not records):
        raise InputError("give either a dataset or --records", field="records")
    held_out = [parse_source(name, use_hf, columns) for name in against or []]
    left_out = Counter[str]()
    with terminal(stderr=True).status("Making conversations"):
        if dataset is not None:
            source = parse_source(dataset, use_hf, columns)
            found = conversations.from_answers(source, held_out, left_out, system)
        else:
            found = conversations.from_records(records or [], held_out, left_out, most, shortest)
        # All before the file is made: an empty one would be taken for a dataset.
        rows = list(found)

    why = counts_text(left_out.most_common()) or "none"
    if not rows:
        raise InputError(f"found no right answer to write (left out: {why})")
    write_jsonl(out, rows)
    terminal().print(f"{len(rows):,} rows written to {out}; left out: {why}")
