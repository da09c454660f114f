"""The command `swift-rlvr check`: whether rewards and tasks keep what trainers expect of them."""

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli.render import plain, table
from swift_rlvr.contract import RULES, Subject, check_registered
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.registry import OWN

SHOWN, LONGEST_PROBLEM = 8, 300
STYLES = {"passed": "green", "skipped": "yellow", "failed": "bold red"}


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Rewards, tasks or installed packages; by default all there are."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a rule may take.")] = 60.0,
) -> None:
    """Check that rewards and tasks keep what trainers expect of them, your own too.

    A reward: its examples earn what they say, in both completion shapes, alone
    and in a batch, every time; its reasons are declared; rows without a gold get
    None; what a policy may write is graded, earns nothing and runs nothing. A
    task: its rows are well-formed and graded, right answers earn everything, bad
    rows are refused. Installed packages that could not be loaded are listed.

    Exit status: 1 where something has failed.

    swift-rlvr check my_task
    """
    refused = [
        each
        for each in (*REWARDS.refused, *TASKS.refused)
        if not names or each.distribution in names
    ]
    subjects = _named(names or [], {each.distribution for each in refused})
    with Console(stderr=True).status("Checking"):
        checked = check_registered(subjects, timeout)
    rows, problems = [], {}
    for subject, (findings, missing) in checked.items():
        outcome = "failed" if findings else "skipped" if missing else "passed"
        count, broken = len(RULES[subject.kind]), len({finding.rule for finding in findings})
        rows.append(
            (
                outcome,
                *subject,
                _owner(subject),
                f"{broken} of {count} rules" if broken else f"{count} rules",
            )
        )
        problems[" ".join(subject)] = (
            [missing] if missing else [f"{rule}: {problem}" for rule, problem in findings]
        )
    for each in refused:
        rows.append(
            ("failed", "entry point", each.entry_point.partition(" ")[0], each.distribution, "")
        )
        problems[f"entry point {each.entry_point}"] = [f"cannot be loaded: {each.problem}"]

    console = Console(highlight=False, soft_wrap=True)
    shown = table(
        "outcome",
        "",
        "name",
        "of",
        "",
        rows=[(Text(row[0], STYLES[row[0]]), *row[1:]) for row in rows],
    )
    for column in shown.columns:
        column.no_wrap = True
    console.print(shown)
    for name, lines in problems.items():
        if lines:
            console.print(Text(f"\n{name}", "bold"))
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        for line in [*lines[:SHOWN], *more]:
            console.print(Text(f"  {plain(line[:LONGEST_PROBLEM])}"))
    outcomes = Counter(outcome for outcome, *_ in rows)
    console.print("\n" + ", ".join(f"{outcomes[each]} {each}" for each in STYLES if outcomes[each]))
    if outcomes["failed"]:
        raise typer.Exit(1)


def _named(names: list[str], refused: set[str]) -> list[Subject]:
    """What the names stand for, all for none, in the order of the registries; a reward and a task
    may share a name.
    """
    every = [
        *(Subject("reward", name) for name in REWARDS),
        *(Subject("task", name) for name in TASKS),
    ]
    meant = {each: {each.name, each.name.removeprefix("external_"), _owner(each)} for each in every}
    for name in names:
        if name not in set.union(refused, *meant.values()):
            packages = sorted({OWN, *REWARDS.owners.values(), *TASKS.owners.values()})
            known = f"rewards: {', '.join(REWARDS)}; tasks: {', '.join(TASKS)}; packages: {', '.join(packages)}"
            raise InputError(f"{name!r} is no reward, task or installed package; {known}")
    return [each for each, known in meant.items() if not names or known & set(names)]


def _owner(subject: Subject) -> str:
    return (REWARDS if subject.kind == "reward" else TASKS).owner(subject.name)
