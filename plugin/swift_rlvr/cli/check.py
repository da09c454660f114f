"""The command `swift-rlvr check`: whether rewards and tasks keep what trainers expect of them."""

from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli.render import plain, print_outcomes, table, terminal
from swift_rlvr.contract import RULES, check_registered
from swift_rlvr.contract.subjects import installed_subjects, owner_of, subjects_named
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS

# The problems shown of each reward or task, and the characters of each problem.
SHOWN = 8
LONGEST_PROBLEM = 600
# Outcome -> style, in the order in which the outcomes are counted at the end.
STYLES = {"passed": "green", "not judged": "yellow", "skipped": "yellow", "failed": "bold red"}


class Result(NamedTuple):
    """A row of the table, and the problems that are listed below it."""

    outcome: str  # one of STYLES
    kind: str  # "reward", "task" or "entry point"
    name: str
    owner: str
    rules: str
    title: str
    problems: list[str]


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Rewards, tasks, installed packages, FILE.py, FILE.py:FUNCTION, MODULE:FUNCTION."
            " Default: all that are installed."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit for one rule, in seconds.")
    ] = 60.0,
) -> None:
    """Check that rewards and tasks, including your own, behave as trainers expect.

    A reward: its examples earn what they declare, as text and as messages, alone
    and in a batch, every time. Every reason is declared. Rows without a gold
    answer get None. Hostile completions are graded, earn nothing, and nothing in
    them is run.

    A task: its rows are well-formed and can be graded, right answers earn the
    maximum, and bad rows are rejected. Installed packages that cannot be loaded
    are listed too. A function without examples is called with generated
    completions, and the check says what it could not judge.

    Exit status: 1 if a check fails.

    swift-rlvr check my_rewards.py
    """
    # Installed packages whose entry points could not be loaded: the registries go on without them.
    refused = [*REWARDS.refused, *TASKS.refused]
    if names:
        refused = [entry for entry in refused if entry.distribution in names]
    subjects = subjects_named(names, refused) if names else installed_subjects()
    with Console(stderr=True).status("Checking"):
        checked = check_registered(subjects, timeout)
    results = []
    for subject in subjects:
        found = checked[subject]
        outcome = "passed"
        problems: list[str] = []
        rules = f"{len(RULES[subject.kind])} rules"
        if found.findings:
            outcome = "failed"
            broken = set()
            for rule, problem in found.findings:
                problems.append(f"{rule}: {problem}")
                broken.add(rule)
            rules = f"{len(broken)} of {rules}"
        elif found.missing:
            outcome, problems = "skipped", [found.missing]
        elif found.not_judged:
            # Not called passed: without examples nothing says which completions are right.
            outcome, problems, rules = "not judged", [found.not_judged], "without examples"
        title = f"{subject.kind} {subject.name}"
        owner = owner_of(subject)
        results.append(Result(outcome, subject.kind, subject.name, owner, rules, title, problems))
    for entry in refused:
        # "my_reward = my_package.rewards:MyReward"
        name, _, _ = entry.entry_point.partition(" ")
        title = f"entry point {entry.entry_point}"
        problem = f"cannot be loaded: {entry.problem}"
        results.append(
            Result("failed", "entry point", name, entry.distribution, "", title, [problem])
        )

    console = terminal()
    _print_results(console, results)
    if print_outcomes(console, [result.outcome for result in results], STYLES):
        raise typer.Exit(1)


def _print_results(console: Console, results: list[Result]) -> None:
    """A table, and below it the problems of each reward, task or entry point."""
    rows = []
    for result in results:
        outcome = Text(result.outcome, STYLES[result.outcome])
        rows.append((outcome, result.kind, result.name, result.owner, result.rules))
    shown = table("outcome", "", "name", "of", "", rows=rows)
    # In a narrow terminal only names and owners break.
    for column in (0, 1, 4):
        shown.columns[column].no_wrap = True
    console.print(shown)

    for result in results:
        if not result.problems:
            continue
        console.print(Text(f"\n{result.title}", "bold"))
        lines = result.problems[:SHOWN]
        if len(result.problems) > SHOWN:
            lines.append(f"... and {len(result.problems) - SHOWN} more")
        for line in lines:
            console.print(Text(f"  {plain(line[:LONGEST_PROBLEM])}"))
