"""`swift-rlvr dataset check`: what is wrong with a dataset, before you train on it."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import count_text, counts_text, table, terminal, visible
from swift_rlvr.contract import datasets as checking
from swift_rlvr.evaluation.prompts import SystemPrompt
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.tasks.files import folder_files, left_out_files
from swift_rlvr.tasks.row_check import too_many
from swift_rlvr.tasks.sources import Source, parse_source

LONGEST_PROBLEM = 200
SHOWN_STRATEGIES = 3
SHOWN_COLUMNS = 12


def check_dataset(
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
    reward_funcs: Annotated[
        list[str] | None,
        typer.Option(
            help="A reward of your run: a name, or FILE.py:NAME. May be repeated. Default: the task's."
        ),
    ] = None,
    system: flags.System = None,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all", help=f"Look at all rows, not only at the first {checking.FIRST_ROWS:,}."
        ),
    ] = False,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
    as_json: flags.Json = False,
) -> None:
    """Grade what each prompt asks for, as the training will; count bad, duplicate and shared rows.

    The first 2,000 rows are looked at; all of them with --all, --against or a number after #.

    Exit status: 1 if too many rows are bad, if no right answer earns anything or no answer is graded,
    or if rows are shared with --against.
    """
    source = parse_source(dataset, use_hf, columns)
    others = [parse_source(other, use_hf, columns) for other in against or []]
    rewards = build_rewards(reward_funcs) if reward_funcs else None
    first = None if all_rows or others or source.limit else checking.FIRST_ROWS
    chosen = None if system is None else SystemPrompt(system, "--system")
    with terminal(stderr=True).status(f"Checking {source}") as status:

        def say(rows: int) -> None:
            status.update(f"Checking {source}: {rows:,} rows")

        findings = checking.check_dataset(
            source, others, limit, rewards, chosen, first=first, progress=say
        )
    if as_json:
        result = {"dataset": str(source), "task": source.task.name, **findings.as_json()}
        typer.echo(json.dumps(result))
    else:
        console = terminal()
        _print_what_was_read(console, source, findings)
        _print_prompts(console, findings)
        _print_rows(console, findings)
        _print_warnings(console, findings)
        _print_conclusion(console, findings)
    if findings.failed:
        raise typer.Exit(1)


def _print_rewards(console: Console, findings: checking.Findings) -> None:
    """What each reward paid for the right answers, and why it paid less."""
    rows = []
    for name, paid in findings.rewards.items():
        why = counts_text(paid.reasons.most_common())
        full = count_text(paid.full, "green")
        rows.append((name, full, count_text(paid.less), count_text(paid.none), why))
    numbers = ("maximum", "less", "none")
    shown = table("reward on the gold", *numbers, "why", numbers=numbers, rows=rows)
    console.print("", shown, "", sep="\n")


def _print_rows(console: Console, findings: checking.Findings) -> None:
    """How many rows are bad or remarkable, why, and the first of them."""
    if findings.rewards and (findings.bad or findings.disagreements):
        _print_rewards(console, findings)
    counts = []
    for label, count in findings.unusable.items():
        counts.append((f"cannot be used: {label}", count_text(count)))
    for label, count in (findings.no_gold + findings.remarks).items():
        counts.append((label, count_text(count)))
    if findings.duplicates:
        counts.append(("repeat an earlier row's question", count_text(findings.duplicates)))
    for name, count in findings.shared.items():
        counts.append((f"are also in {name}", count_text(count, bad="bold red")))
    if counts:
        console.print(table("rows", "count", numbers=("count",), rows=counts), "")

    for line, problem in findings.problems:
        text = visible(problem, LONGEST_PROBLEM, console.encoding)
        console.print(f"  line {line}: ", text, sep="")
    if len(findings.problems) == checking.SHOWN:
        console.print("  only the first problems are shown", style="dim")
    if findings.problems:
        console.print()


def _print_what_was_read(console: Console, source: Source, findings: checking.Findings) -> None:
    """Which rows were looked at, of which files and tasks."""
    task = (source.task.name, "bold")
    count = checking.rows_text(findings.rows)
    if findings.total is None:
        count = f"the first {count}"
    elif findings.total > findings.rows:
        count = f"the first {findings.rows:,} of {checking.rows_text(findings.total)}"
    title = Text.assemble((str(source), "bold"), f": {count} of ", task)
    console.print(title)
    if source.path is not None and source.path.is_dir():
        for word, files in (("Read", folder_files), ("Left out", left_out_files)):
            paths = files(source.path, source.split)
            names = [path.name for path in paths[: checking.SHOWN]]
            if len(paths) > len(names):
                names.append(f"and {len(paths) - len(names):,} more")
            if names:
                console.print(f"{word}: {', '.join(names)}", style="dim")
    if source.task.is_mixed and findings.tasks:
        console.print(f"  {counts_text(findings.tasks.items())}", soft_wrap=False)


def _print_prompts(console: Console, findings: checking.Findings) -> None:
    """What the prompts show and ask for, what of the rows nobody reads, how references pass."""
    if findings.with_pictures:
        pictures = f"{checking.rows_text(findings.with_pictures)} with pictures"
        if not findings.pictures_at_urls:
            pictures += ", all opened"
        usable = sum(findings.forms.values())
        if usable > findings.with_pictures:
            pictures += f"; {checking.rows_text(usable - findings.with_pictures)} without"
        console.print(f"  {pictures}", style="dim", soft_wrap=False)
    forms = []
    for form, rows in findings.forms.most_common():
        name = checking.form_text(form) if form else "no form"
        forms.append(name if len(findings.forms) == 1 else f"{name}: {rows:,}")
    if forms:
        console.print(f"The prompt asks for {', '.join(forms)}.", style="dim")
    unread = [name for name, _ in findings.unread.most_common() if name not in findings.unused]
    if unread:
        names = ", ".join(sorted(unread[:SHOWN_COLUMNS]))
        if len(unread) > SHOWN_COLUMNS:
            names += f" and {len(unread) - SHOWN_COLUMNS} more"
        text = f"Neither the prompt nor a reward gets: {names}."
        console.print(text, style="dim", soft_wrap=False)

    if findings.ways:
        ways = ", ".join(f"{findings.ways[way]:,} {way}" for way in checking.WAYS)
        console.print(f"Rows whose reference passes its tests: {ways}.", style="dim")


def _print_warnings(console: Console, findings: checking.Findings) -> None:
    """What makes a dataset teach something else though no row is bad."""
    # What a policy would earn that does no work.
    without_work = [earned for earned in findings.earned if not earned.strategy.knows_gold]
    for earned in without_work[:SHOWN_STRATEGIES]:
        is_much = earned.mean > checking.MUCH
        where = f"the first {checking.rows_text(findings.attacked)}"
        if is_much:
            lines = ", ".join(map(str, earned.paid[: checking.SHOWN]))
            where += f": line {lines}" + (" ..." if len(earned.paid) > checking.SHOWN else "")
        text = f"Without any work, {earned.strategy.name} earns {earned.mean:.3f} a row ({where})."
        console.print(text, style="yellow" if is_much else "dim")

    for doubt in findings.doubts:
        console.print(f"{doubt}.", style="yellow")


def _print_conclusion(console: Console, findings: checking.Findings) -> None:
    counts = f"{findings.bad:,} of {findings.rows:,} rows are bad"
    limit = too_many(findings.limit)
    if findings.too_many:
        why = f"that is {limit}"
        if findings.bad == findings.rows:
            why = "no good row is left"
        elif 2 * findings.bad > findings.rows:
            why = "that is more than half"
        console.print(f"Too many bad rows: {counts}, and {why}.", style="bold red")
    elif findings.pays_nothing:
        names = ", ".join(findings.rewards)
        text = f"Every right answer earns 0, as a wrong one does: a training with {names} learns nothing."
        console.print(text, style="bold red", soft_wrap=False)
    elif findings.grades_nothing:
        names = ", ".join(findings.rewards)
        text = f"No answer was graded, right or wrong: a training with {names} learns nothing."
        console.print(text, style="bold red", soft_wrap=False)
    elif findings.bad:
        text = (
            f"Within the limit: {counts}. The check fails if {limit}, or more than half, are bad."
        )
        console.print(text, style="yellow")
    elif findings.doubts:
        text = "No row is bad. What is named above may still be wrong, or was not graded."
        console.print(text, style="yellow")
    else:
        rewards = ", ".join(findings.rewards)
        text = f"Every gold earns the maximum of {rewards}."
        console.print(text, style="green", soft_wrap=False)
    if findings.total is None or findings.total > findings.rows:
        text = (
            f"The rows after the first {findings.rows:,} were not looked at; --all looks at them."
        )
        console.print(text, style="yellow")
    if any(findings.shared.values()):
        text = "The datasets share rows: the evaluation would test the model on its training rows."
        console.print(text, style="bold red", soft_wrap=False)
