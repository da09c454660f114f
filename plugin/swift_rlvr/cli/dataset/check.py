"""`swift-rlvr dataset check`: what is wrong with a dataset, before you train on it."""

import json
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import count_text, table, visible
from swift_rlvr.contract import datasets as checking
from swift_rlvr.tasks.row_check import too_many
from swift_rlvr.tasks.sources import Source, parse_source

# So many rows are checked where not all are asked for.
FIRST_ROWS = 2000
LONGEST_PROBLEM = 200
LONGEST_CONSTANT = 60
SHOWN_CONSTANTS = 3
SHOWN_FOLDED = 3


def check(
    dataset: flags.Dataset,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="A dataset that must not share rows with this one, such as the held-out set."
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The largest accepted share of bad rows. Default: the task's."
        ),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all", help=f"Check more than the first {FIRST_ROWS:,} rows.")
    ] = False,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
    as_json: flags.Json = False,
) -> None:
    """Grade every gold answer; count unusable, unsolvable, duplicate and shared rows.

    Exit status: 1 if too many rows are bad, or if rows are shared with --against.
    """
    source = parse_source(dataset, use_hf, columns)
    others = [parse_source(other, use_hf, columns) for other in against or []]
    # A row that both share may be anywhere.
    first_only = source.limit is None and not (all_rows or others)
    checked = replace(source, limit=FIRST_ROWS) if first_only else source
    with Console(stderr=True).status(f"Checking {source}"):
        findings = checking.check(checked, others, limit)
    if as_json:
        result = {"dataset": str(source), "task": source.task.name, **findings.as_json()}
        typer.echo(json.dumps(result))
    else:
        console = Console(highlight=False)
        _print_findings(console, source, findings)
        if first_only and findings.rows == FIRST_ROWS:
            text = f"Only the first {FIRST_ROWS:,} rows were checked; --all checks the rest."
            console.print(text, style="yellow")
    if findings.failed:
        raise typer.Exit(1)


def _print_findings(console: Console, source: Source, findings: checking.Findings) -> None:
    task = (source.task.name, "bold")
    title = Text.assemble((str(source), "bold"), f": {findings.rows:,} rows of ", task)
    console.print(title, soft_wrap=True)
    if source.task.is_mixed and findings.tasks:
        counts = ", ".join(f"{name}: {count:,}" for name, count in findings.tasks.items())
        console.print(f"  {counts}")

    if findings.bad and findings.rewards:
        console.print("", _rewards_table(findings), "", sep="\n")
    row_counts = _row_counts(findings)
    if row_counts:
        console.print(table("rows", "count", numbers=("count",), rows=row_counts), "")
    for line, problem in findings.problems:
        text = visible(problem, LONGEST_PROBLEM, console.encoding)
        console.print(f"  line {line}: ", text, sep="", soft_wrap=True)
    if len(findings.problems) == checking.SHOWN:
        console.print("  only the first problems are shown", style="dim")
    if findings.problems:
        console.print()
    _print_constants(console, findings)
    _print_folded(console, findings)
    _print_conclusion(console, findings)


def _rewards_table(findings: checking.Findings) -> Table:
    """What each reward paid for the gold completions, and its reasons where it paid less."""
    rows = []
    for name, counts in findings.rewards.items():
        reasons = counts["reasons"].most_common()
        why = ", ".join(f"{reason}: {count:,}" for reason, count in reasons)
        full = count_text(counts["full"], "green")
        rows.append((name, full, count_text(counts["less"]), count_text(counts["none"]), why))
    numbers = ("maximum", "less", "none")
    return table("reward on the gold", *numbers, "why", numbers=numbers, rows=rows)


def _row_counts(findings: checking.Findings) -> list[tuple[str, Text]]:
    """The rows of the table of bad and remarkable rows; empty where there are none."""
    counts = []
    for label, count in findings.unusable.items():
        counts.append((f"cannot be used: {label}", count_text(count)))
    for label, count in (findings.no_gold + findings.remarks).items():
        counts.append((label, count_text(count)))
    if findings.duplicates:
        counts.append(("repeat an earlier row's question", count_text(findings.duplicates)))
    for name, count in findings.shared.items():
        counts.append((f"are also in {name}", count_text(count, bad="bold red")))
    return counts


def _print_constants(console: Console, findings: checking.Findings) -> None:
    """What a policy would earn that gives the same answer to every question."""
    if not findings.constants:
        return
    rows = f"the first {findings.constant_rows:,} rows"
    for constant in findings.constants[:SHOWN_CONSTANTS]:
        answer = visible(constant.answer, LONGEST_CONSTANT, console.encoding)
        is_much = constant.share > checking.CONSTANT_SHARE
        style = "yellow" if is_much else "dim"
        lines = ", ".join(map(str, constant.lines))
        text = Text.assemble(
            "Always answering ", answer, f" is right for {constant.share:.1%} of {rows}"
        )
        if is_much:
            text.append(
                f": line {lines}" + (" ..." if len(constant.lines) == checking.SHOWN else "")
            )
        console.print(text, style=style, soft_wrap=True)


def _print_folded(console: Console, findings: checking.Findings) -> None:
    """The golds that external_exact_match does not tell apart."""
    if not findings.folded:
        return
    pairs = []
    for folded in findings.folded[:SHOWN_FOLDED]:
        gold, earlier = (
            visible(repr(text), LONGEST_CONSTANT, console.encoding)
            for text in (folded.gold, folded.earlier_gold)
        )
        pairs.append(f"{gold} (line {folded.line}) and {earlier} (line {folded.earlier_line})")
    text = (
        f"{findings.folded_golds:,} gold answers differ from another row's only in case, articles, "
        f"punctuation or white space. external_exact_match treats them as equal: {', '.join(pairs)}"
    )
    if findings.folded_golds > len(pairs):
        text += " ..."
    console.print(text, style="yellow", soft_wrap=True, markup=False)
    remedy = "Set EXTERNAL_EXACT_MATCH_LITERAL=true to tell them apart."
    console.print(remedy, style="yellow", soft_wrap=True)


def _print_conclusion(console: Console, findings: checking.Findings) -> None:
    counts = f"{findings.bad:,} of {findings.rows:,} rows are bad"
    limit = too_many(findings.limit)
    if findings.too_many:
        why = "no good row is left" if findings.bad == findings.rows else f"that is {limit}"
        console.print(f"Too many bad rows: {counts}, and {why}.", style="bold red", soft_wrap=True)
    elif findings.bad:
        text = f"Within the limit: {counts}. The check fails if {limit} are bad."
        console.print(text, style="yellow", soft_wrap=True)
    else:
        rewards = f" of {', '.join(findings.rewards)}" if findings.rewards else ""
        console.print(f"Every gold earns the maximum{rewards}.", style="green")
    if any(findings.shared.values()):
        text = "The datasets share rows: the evaluation would test the model on its training rows."
        console.print(text, style="bold red")
