"""`swift-rlvr dataset check`: what is wrong with a dataset, before you train on it."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import count_text, counts_text, first_names, table, terminal, visible
from swift_rlvr.contract import datasets as checking
from swift_rlvr.contract.findings import SHOWN, WAYS, Findings, form_text, rows_text
from swift_rlvr.evaluation.prompts import SystemPrompt
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.tasks.files import folder_files, left_out_files
from swift_rlvr.tasks.sources import Source, parse_source

LONGEST_PROBLEM = 200
SHOWN_STRATEGIES = 3
SHOWN_COLUMNS = 12
# A strategy without work that earns more than this of a row is a warning.
MUCH = 0.02


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

    It checks the first 2,000 rows; all of them with --all, --against or a number
    after #.

    Exit status: 1 if too many rows are bad, if no reward of the run is a
    verifier, if no right answer earns anything, if no answer is graded, or if the
    dataset shares rows with --against.
    """
    source = parse_source(dataset, use_hf, columns)
    others = [parse_source(other, use_hf, columns) for other in against or []]
    rewards = build_rewards(reward_funcs) if reward_funcs else None
    # Rows that the datasets share may stand anywhere, and whoever writes #N has said how many to look at.
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
        _print_dataset(console, source, findings)
        _print_findings(console, findings)
    if findings.failed:
        raise typer.Exit(1)


def _print_dataset(console: Console, source: Source, findings: Findings) -> None:
    """Which rows were looked at, of which files and tasks, and what their prompts ask for."""
    task = (source.task.name, "bold")
    count = rows_text(findings.rows)
    if findings.total is None:
        count = f"the first {count}"
    elif findings.total > findings.rows:
        count = f"the first {findings.rows:,} of {rows_text(findings.total)}"
    title = Text.assemble((str(source), "bold"), f": {count} of ", task)
    console.print(title)
    # Of a folder with several splits those of one are read.
    if source.path is not None and source.path.is_dir():
        for word, files in (("Read", folder_files), ("Left out", left_out_files)):
            paths = files(source.path, source.split)
            if paths:
                names = first_names([path.name for path in paths], SHOWN)
                console.print(f"{word}: {names}", style="dim")
    if source.task.is_mixed and findings.tasks:
        console.print(f"  {counts_text(findings.tasks.items())}", soft_wrap=False)

    if findings.with_pictures:
        pictures = f"{rows_text(findings.with_pictures)} with pictures"
        if not findings.pictures_at_urls:
            pictures += ", all opened"
        without = sum(findings.forms.values()) - findings.with_pictures
        if without:
            pictures += f"; {rows_text(without)} without"
        console.print(f"  {pictures}", style="dim", soft_wrap=False)

    # Several forms are several tasks, or a prompt whose words for its form are not understood.
    forms = []
    for form, rows in findings.forms.most_common():
        name = form_text(form) if form else "no form"
        forms.append(name if len(findings.forms) == 1 else f"{name}: {rows:,}")
    if forms:
        console.print(f"The prompt asks for {', '.join(forms)}.", style="dim")

    # Those that look like a passage are a doubt, which comes with the findings.
    unread = sorted(findings.unread.keys() - findings.unused.keys())
    if unread:
        text = f"Neither the prompt nor a reward gets: {first_names(unread, SHOWN_COLUMNS)}."
        console.print(text, style="dim", soft_wrap=False)
    if findings.ways:
        ways = ", ".join(f"{findings.ways[way]:,} {way}" for way in WAYS)
        console.print(f"Rows whose reference passes its tests: {ways}.", style="dim")


def _print_findings(console: Console, findings: Findings) -> None:
    """The rows that are bad or remarkable, what a policy would earn without work, what the check says
    of the whole, and what it has not looked at.
    """
    # Where every gold earns what it should, the sentence at the end says so.
    if findings.rewards and (findings.bad or findings.disagreements):
        rewards = []
        for name, paid in findings.rewards.items():
            why = counts_text(paid.reasons.most_common())
            full = count_text(paid.full, "green")
            rewards.append((name, full, count_text(paid.less), count_text(paid.none), why))
        numbers = ("maximum", "less", "none")
        shown = table("reward on the gold", *numbers, "why", numbers=numbers, rows=rewards)
        console.print("", shown, "", sep="\n")

    counts = [(label, count_text(count)) for label, count in findings.counts_in_words().items()]
    for name, count in findings.shared.items():
        counts.append((f"are also in {name}", count_text(count, bad="bold red")))
    if counts:
        console.print(table("rows", "count", numbers=("count",), rows=counts), "")

    for line, problem in findings.problems:
        escaped = visible(problem, LONGEST_PROBLEM, console.encoding)
        console.print(f"  line {line}: ", escaped, sep="")
    if len(findings.problems) == SHOWN:
        console.print("  only the first problems are shown", style="dim")
    if findings.problems:
        console.print()

    # One that knows the gold and hides it is no guess, but a fault of the reward, which `attack` finds.
    without_work = [earned for earned in findings.earned if not earned.strategy.knows_gold]
    for earned in without_work[:SHOWN_STRATEGIES]:
        where = f"the first {rows_text(findings.attacked)}"
        style = "dim"
        if earned.mean > MUCH:
            style = "yellow"
            lines = ", ".join(map(str, earned.paid[:SHOWN]))
            where += f": line {lines}" + (" ..." if len(earned.paid) > SHOWN else "")
        text = f"Without any work, {earned.strategy.name} earns {earned.mean:.3f} a row ({where})."
        console.print(text, style=style)
    for doubt in findings.doubts:
        console.print(f"{doubt}.", style="yellow")

    style = "yellow" if findings.bad or findings.doubts else "green"
    if findings.teaches_nothing:
        style = "bold red"
    console.print(findings.conclusion(), style=style, soft_wrap=False)
    if findings.total is None or findings.total > findings.rows:
        text = (
            f"The rows after the first {findings.rows:,} were not looked at; --all looks at them."
        )
        console.print(text, style="yellow")
    if any(findings.shared.values()):
        text = "The datasets share rows: the evaluation would test the model on its training rows."
        console.print(text, style="bold red", soft_wrap=False)
