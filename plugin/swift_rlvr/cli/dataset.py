"""The commands `swift-rlvr dataset check`, `show` and `prepare`: look at a dataset before training
on it.
"""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import count_text, table, visible
from swift_rlvr.contract import datasets as checking
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_jsonl

LONGEST_PROMPT, LONGEST_VALUE, LONGEST_PROBLEM = 20_000, 300, 200

Tokenizer = Annotated[
    str, typer.Option(help="A folder with the tokenizer and its chat template, or a hub id.")
]
System = Annotated[
    str | None, typer.Option(help="As ms-swift's --system: for rows that have no system prompt.")
]


def check(
    dataset: flags.Dataset,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Another dataset, such as the evaluation's, that should share no row."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The share of bad rows that is too much; by default the task's."
        ),
    ] = None,
    use_hf: flags.UseHf = False,
    as_json: flags.Json = False,
) -> None:
    """Run the rewards on every gold; count unusable, unsolvable, duplicate and shared rows.

    Ends with code 1 where too many rows are bad, or where rows are shared.
    """
    source = parse_source(dataset, use_hf)
    others = [parse_source(other, use_hf) for other in against or []]
    with Console(stderr=True).status(f"Checking {source}"):
        findings = checking.check(source, others, limit)
    if as_json:
        typer.echo(
            json.dumps({"dataset": str(source), "task": source.task.name, **findings.as_json()})
        )
    else:
        print_findings(Console(highlight=False), source, findings)
    if findings.failed:
        raise typer.Exit(1)


def show(
    dataset: flags.Dataset,
    model: Tokenizer,
    row: Annotated[int, typer.Option(min=1, help="Which row.")] = 1,
    system: System = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Show the exact prompt that a model sees, and what reaches the rewards."""
    from swift_rlvr.evaluation import prompts

    source = parse_source(dataset, use_hf)
    shown = prompts.show(source, model, row, system)
    console = Console(highlight=False)
    tokens = (f"{shown.tokens:,} tokens", "bold")
    console.print(
        Text.assemble((str(source), "bold"), f", line {shown.line}: a prompt of ", tokens),
        soft_wrap=True,
    )
    console.print(Text(f"The system prompt is from {shown.system_from}.", "dim"), soft_wrap=True)
    console.rule("prompt", style="dim")
    console.print(visible(shown.prompt, LONGEST_PROMPT, console.encoding))
    console.rule("what the model writes comes here", style="dim")
    texts = {
        k: v if isinstance(v, str) else json.dumps(v, default=str) for k, v in shown.columns.items()
    }
    rows = [(name, visible(text, LONGEST_VALUE, console.encoding)) for name, text in texts.items()]
    console.print("", table("column", "value that reaches the rewards", rows=rows), sep="\n")
    if shown.gold is not None:
        console.print("\nA completion that earns the maximum:")
        console.print(
            Padding(visible(shown.gold, 2000, console.encoding), (0, 0, 0, 2), expand=False)
        )


def prepare(
    dataset: flags.Dataset,
    model: Tokenizer,
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
    system: System = None,
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
    console.print(
        f"{len(kept):,} of {len(kept) + left_out.total():,} rows that were read are kept ({why})."
    )
    if rows is not None and len(kept) < rows:
        console.print(f"There are no more: fewer than the {rows:,} asked for.", style="yellow")
    console.print(f"written: {out}; train on it with --dataset {source.task.name}:{out}")


def print_findings(console: Console, source: Source, findings: checking.Findings) -> None:
    title = Text.assemble(
        (str(source), "bold"), f": {findings.rows:,} rows of ", (source.task.name, "bold")
    )
    console.print(title, soft_wrap=True)
    if source.task.is_mixed and findings.tasks:
        console.print(
            "  " + ", ".join(f"{name}: {count:,}" for name, count in findings.tasks.items())
        )
    rows = [
        (f"cannot be used: {label}", count_text(count))
        for label, count in findings.unusable.items()
    ]
    rows += [
        (label, count_text(count)) for label, count in (findings.no_gold + findings.remarks).items()
    ]
    rows += [("ask the same as an earlier row", count_text(findings.duplicates))] * bool(
        findings.duplicates
    )
    rows += [
        (f"are in {name} as well", count_text(count, bad="bold red"))
        for name, count in findings.shared.items()
    ]
    if findings.bad and findings.rewards:
        console.print()
        rewards = []
        for name, counts in findings.rewards.items():
            why = ", ".join(
                f"{reason}: {count:,}" for reason, count in counts["reasons"].most_common()
            )
            less, none = count_text(counts["less"]), count_text(counts["none"])
            rewards.append((name, count_text(counts["full"], "green"), less, none, why))
        numbers = ("maximum", "less", "none")
        console.print(
            table("reward on the gold", *numbers, "why", numbers=numbers, rows=rewards), ""
        )
    if rows:
        console.print(table("rows", "count", numbers=("count",), rows=rows), "")
    for line, problem in findings.problems:
        console.print(
            f"  line {line}: ",
            visible(problem, LONGEST_PROBLEM, console.encoding),
            sep="",
            soft_wrap=True,
        )
    if len(findings.problems) == checking.SHOWN:
        console.print("  and perhaps more; these are the first", style="dim")
    if findings.problems:
        console.print()
    share = f"{findings.bad:,} of {findings.rows:,} rows are bad, the limit is {findings.limit:.0%}"
    if findings.too_many:
        console.print(f"Too many bad rows: {share}.", style="bold red")
    elif findings.bad:
        console.print(f"Within the limit: {share}.", style="yellow")
    else:
        of = f" of {', '.join(findings.rewards)}" if findings.rewards else ""
        console.print(f"Every gold earns the maximum{of}.", style="green")
    if any(findings.shared.values()):
        console.print(
            "Rows are shared: the evaluation would measure what was trained on.", style="bold red"
        )
