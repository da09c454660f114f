"""The commands `swift-rlvr dataset check`, `show` and `prepare`: look at a dataset before it is trained on.

A dataset is written as in ms-swift's `--dataset`: NAME:FILE, NAME, NAME:SPLIT or FILE alone, each with #N.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from swift_rlvr.cli.render import visible
from swift_rlvr.countdown.difficulty import draw_picture, figures, summary
from swift_rlvr.data.check import SHOWN, Findings, check, same_kind
from swift_rlvr.data.sources import Source, parse_source
from swift_rlvr.jsonl import write_jsonl
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.countdown import parse_row

LONGEST_PROMPT, LONGEST_VALUE, LONGEST_PROBLEM = 20_000, 300, 200

Given = Annotated[
    str,
    typer.Argument(metavar="DATASET", help=f"NAME:FILE, FILE, NAME or NAME:SPLIT; NAME is one of {', '.join(TASKS)}."),
]
UseHf = Annotated[bool, typer.Option("--use-hf", help="A NAME is read from Hugging Face, not from ModelScope.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


def add_commands(app: typer.Typer) -> None:
    """Put the commands into the group `dataset`."""
    for command in (check_dataset, show_row, prepare_file):
        app.command(command.__name__.partition("_")[0])(command)


def check_dataset(
    dataset: Given,
    against: Annotated[
        list[str] | None, typer.Option(help="Another dataset, such as the evaluation's, that should share no row.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(min=0, max=1, help="The share of bad rows that is too much; by default the task's.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Countdown: a .png for the difficulty.")] = None,
    difficulty_rows: Annotated[int, typer.Option(min=1, help="Countdown: measure so many of the first rows.")] = 2000,
    use_hf: UseHf = False,
    as_json: Json = False,
) -> None:
    """Run the rewards on every gold; count unusable, unsolvable, duplicate and shared rows.

    Ends with code 1 where too many rows are bad, or where rows are shared.
    """
    source = parse_source(dataset, use_hf)
    others = [parse_source(other, use_hf) for other in against or []]
    same_kind(source, others)
    countdown = source.task.name == "countdown"
    if picture is not None and (picture.suffix != ".png" or not countdown):
        expected = "a name ending in .png" if countdown else f"a Countdown dataset, not {source.task.name}"
        raise typer.BadParameter(f"expected {expected}, got {picture}", param_hint="--picture")
    console = Console(highlight=False)
    with Console(stderr=True).status(f"Checking {source}"):
        found = check(source, others, limit)
        chances = summary(_countdown_tasks(source, difficulty_rows)) if countdown and found.rows > 0 else {}
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw_picture(chances, f"How hard the tasks are: {source}", picture)
    if as_json:
        difficulty = {"difficulty": figures(chances)} if countdown else {}
        typer.echo(json.dumps({"dataset": str(source), "task": source.task.name, **found.as_json(), **difficulty}))
    else:
        print_findings(console, source, found)
        if chances:
            print_difficulty(console, figures(chances), difficulty_rows if found.rows > difficulty_rows else None)
        if picture is not None:
            console.print(f"\nwritten: {picture}", markup=False)
    if found.failed:
        raise typer.Exit(1)


def show_row(
    dataset: Given,
    model: Annotated[str, typer.Option(help="A folder with the tokenizer and its chat template, or a hub id.")],
    row: Annotated[int, typer.Option(min=1, help="Which row.")] = 1,
    system: Annotated[
        str | None, typer.Option(help="As ms-swift's --system: for rows that have no system prompt of their own.")
    ] = None,
    use_hf: UseHf = False,
    as_json: Json = False,
) -> None:
    """Show the exact prompt that a model sees, and what reaches the rewards."""
    from swift_rlvr.data.prompts import show

    source = parse_source(dataset, use_hf)
    shown = show(source, model, row, system)
    if as_json:
        typer.echo(json.dumps({"dataset": str(source), **shown.as_json()}, default=str))
        return
    console = Console(highlight=False)
    console.print(
        Text.assemble((f"{source}", "bold"), f", line {shown.line}: a prompt of ", (f"{shown.tokens:,} tokens", "bold"))
    )
    console.print(f"The system prompt is from {shown.system_from}." if shown.system_from else "", style="dim")
    console.rule("prompt", style="dim")
    console.print(visible(shown.prompt, LONGEST_PROMPT, console.encoding))
    console.rule("what the model writes comes here", style="dim")
    console.print()
    columns = _table("column", "value that reaches the rewards")
    for name, value in shown.columns.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        columns.add_row(name, visible(text, LONGEST_VALUE, console.encoding))
    console.print(columns)
    console.print()
    rewards = _table("reward", "with these columns it")
    for name, outcome in shown.rewards.items():
        style = "" if outcome.startswith("reads") else "dim"
        rewards.add_row(Text(name, style), Text(outcome, style))
    console.print(rewards)
    if shown.gold is not None:
        console.print("\nA completion that earns the maximum:")
        console.print(Padding(visible(shown.gold, 2000, console.encoding), (0, 0, 0, 2), expand=False))


def prepare_file(
    dataset: Given,
    model: Annotated[str, typer.Option(help="A folder with the tokenizer and its chat template, or a hub id.")],
    out: Annotated[Path, typer.Option(help="The file to write, ending in .jsonl.")],
    max_prompt_tokens: Annotated[int | None, typer.Option(min=1, help="Longer prompts are left out.")] = None,
    max_answer_tokens: Annotated[int | None, typer.Option(min=1, help="Longer solutions are left out.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Only the first so many of those that are left.")] = None,
    system: Annotated[
        str | None, typer.Option(help="As ms-swift's --system: counts for rows that have no system prompt.")
    ] = None,
    use_hf: UseHf = False,
    as_json: Json = False,
) -> None:
    """Write the rows that can be used and are short enough to a file.

    The GSM8K recipe:
    swift-rlvr dataset prepare gsm8k --model DIR --max-prompt-tokens 300
    --max-answer-tokens 200 --rows 1024 --out gsm8k_1024.jsonl
    """
    from swift_rlvr.data.prompts import as_rows, select

    if out.suffix != ".jsonl":
        raise typer.BadParameter(f"expected a name ending in .jsonl, got {out}", param_hint="--out")
    source = parse_source(dataset, use_hf)
    with Console(stderr=True).status(f"Reading {source}"):
        found = select(source, model, max_prompt_tokens, max_answer_tokens, rows, system)
    if not found.kept:
        why = ", ".join(f"{label}: {count:,}" for label, count in found.left_out.items())
        raise typer.BadParameter(f"no row of {source} is left ({why})", param_hint="--max-prompt-tokens")
    write_jsonl(out, as_rows(found))
    if as_json:
        typer.echo(json.dumps({"dataset": str(source), **found.as_json(), "out": str(out)}))
        return
    console = Console(highlight=False)
    console.print(f"{len(found.kept):,} of {found.read:,} rows that were read are kept.")
    for label, count in found.left_out.items():
        details = ", ".join(f"{reason}: {number:,}" for reason, number in found.reasons.items())
        note = f" ({details})" if label == "cannot be used" else ""
        console.print(f"  {label}: {count:,}{note}", style="yellow", markup=False)
    if rows is not None and len(found.kept) < rows:
        console.print(f"That is all there are: fewer than the {rows:,} asked for.", style="yellow")
    console.print(f"Longest prompt {found.longest_prompt:,} tokens, longest answer {found.longest_answer:,}.")
    console.print(f"written: {out}; train on it with --dataset {source.task.name}:{out}", markup=False, soft_wrap=True)


def print_findings(console: Console, source: Source, found: Findings) -> None:
    console.print(Text.assemble((str(source), "bold"), f": {found.rows:,} rows of ", (source.task.name, "bold")))
    if source.task.part:
        console.print("  " + ", ".join(f"{name}: {count:,}" for name, count in found.tasks.items()))
    console.print()
    if found.rewards:
        table = _table("reward on the gold", "maximum", "less", "none", "why", numbers=("maximum", "less", "none"))
        for name, counts in found.rewards.items():
            why = ", ".join(f"{reason}: {count:,}" for reason, count in counts["reasons"].most_common())
            cells = [_count(counts["full"], "green"), _count(counts["less"]), _count(counts["none"])]
            table.add_row(name, *cells, Text(why))
        console.print(table)
        console.print()
    rows = _table("rows", "count", numbers=("count",))
    for label, count in found.unusable.items():
        rows.add_row(Text(f"cannot be used: {label}"), _count(count))
    if not found.unusable:
        rows.add_row("cannot be used", _count(0))
    for label, count in found.no_gold.items():
        rows.add_row(Text(label), _count(count))
    rows.add_row("ask the same as an earlier row", _count(found.duplicates))
    for name, count in found.shared.items():
        rows.add_row(Text(f"are in {name} as well"), _count(count, bad="bold red"))
    console.print(rows)
    if found.problems:
        console.print()
        for line, problem in found.problems:
            console.print(
                f"  line {line}: ", visible(problem, LONGEST_PROBLEM, console.encoding), sep="", soft_wrap=True
            )
        if len(found.problems) == SHOWN:
            console.print("  and perhaps more; these are the first", style="dim")
    console.print()
    share = f"{found.bad:,} of {found.rows:,} rows are bad, the limit is {found.limit:.0%}"
    if found.too_many:
        console.print(f"Too many bad rows: {share}.", style="bold red")
    elif found.bad:
        console.print(f"Within the limit: {share}.", style="yellow")
    else:
        console.print("Every gold earns the maximum.", style="green")
    if any(found.shared.values()):
        console.print("Rows are shared: what is measured there has been trained on.", style="bold red")


def print_difficulty(console: Console, found: dict[str, dict[str, Any]], first: int | None) -> None:
    console.print()
    names = ("numbers", "tasks", "no hit", "easy quarter", "median", "hard quarter")
    table = _table(*names, numbers=names)
    for count, values in found.items():
        attempts = [f"{value:,}" for value in values["attempts"]] or ["-"] * 3
        table.add_row(count, f"{values['tasks']:,}", _count(values["no_hit"]), *attempts)
    console.print(
        "Random attempts until one hits the target, on average" + (f", first {first:,} rows" if first else "")
    )
    console.print(table)


def _countdown_tasks(source: Source, rows: int) -> list[tuple[list[int], int]]:
    tasks = []
    for _, row in islice(source.rows(), rows):
        try:
            tasks.append(parse_row(row))
        except RowError:
            continue
    return tasks


def _table(*headings: str, numbers: tuple[str, ...] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        number = heading in numbers
        table.add_column(heading, justify="right" if number else "left", no_wrap=number)
    return table


def _count(count: int, good: str = "", bad: str = "yellow") -> Text:
    return Text(f"{count:,}", good or bad if count else "dim")
