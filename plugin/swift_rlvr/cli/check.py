"""The command `swift-rlvr check`: whether rewards and tasks keep what trainers expect of them."""

import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli.dataset import Json
from swift_rlvr.cli.render import plain, table
from swift_rlvr.data.contract import RULES, Checked, Subject, check_registered
from swift_rlvr.errors import InputError
from swift_rlvr.registry import OWN, Refused
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS

SHOWN = 8
LONGEST_PROBLEM = 300
STYLES = {"passed": "green", "skipped": "yellow", "failed": "bold red"}


def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Rewards, tasks or installed packages; by default all there are.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a rule may take.")] = 60.0,
    as_json: Json = False,
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
    subjects, refused = _named(names) if names else (_all(), [*REWARDS.refused, *TASKS.refused])
    with Console(stderr=True).status("Checking"):
        checked = check_registered(subjects, timeout)
    outcomes = Counter(map(_outcome, checked.values())) + Counter(failed=len(refused))
    if as_json:
        listed = [
            {
                **subject._asdict(),
                "distribution": _owner(subject),
                "rules": len(RULES[subject.kind]),
                "outcome": _outcome(result),
                "findings": [each._asdict() for each in result.findings],
                "missing": result.missing,
            }
            for subject, result in checked.items()
        ]
        counts = {outcome: outcomes[outcome] for outcome in STYLES}
        typer.echo(json.dumps({**counts, "checked": listed, "refused": [each._asdict() for each in refused]}))
    else:
        console = Console(highlight=False)
        _print(console, checked, refused)
        console.print("\n" + ", ".join(f"{outcomes[each]} {each}" for each in STYLES if outcomes[each]))
    if outcomes["failed"]:
        raise typer.Exit(1)


def _all() -> list[Subject]:
    return [*(Subject("reward", name) for name in REWARDS), *(Subject("task", name) for name in TASKS)]


def _named(names: list[str]) -> tuple[list[Subject], list[Refused]]:
    """What the names stand for, in the order of the registries; a name may be that of a reward and of a task."""
    subjects: set[Subject] = set()
    refused = [each for each in (*REWARDS.refused, *TASKS.refused) if each.distribution in names]
    owners = {OWN, *REWARDS.owners.values(), *TASKS.owners.values()}
    for name in names:
        own = {subject for subject in _all() if name in (subject.name, _owner(subject))}
        own |= {Subject("reward", full) for full in REWARDS if full == f"external_{name}"}
        if not own and name not in {each.distribution for each in refused}:
            known = f"rewards: {', '.join(REWARDS)}; tasks: {', '.join(TASKS)}; packages: {', '.join(sorted(owners))}"
            raise InputError(f"{name!r} is no reward, task or installed package; {known}")
        subjects |= own
    return [subject for subject in _all() if subject in subjects], refused


def _owner(subject: Subject) -> str:
    return (REWARDS if subject.kind == "reward" else TASKS).owner(subject.name)


def _outcome(result: Checked) -> str:
    return "failed" if result.findings else "skipped" if result.missing else "passed"


def _print(console: Console, checked: dict[Subject, Checked], refused: list[Refused]) -> None:
    rows = table("outcome", "", "name", "of", "")
    for column in rows.columns:
        column.no_wrap = True
    for subject, result in checked.items():
        outcome, count = _outcome(result), len(RULES[subject.kind])
        broken = len({finding.rule for finding in result.findings})
        rules = f"{broken} of {count} rules" if broken else f"{count} rules"
        rows.add_row(Text(outcome, STYLES[outcome]), subject.kind, subject.name, _owner(subject), Text(rules, "dim"))
    for each in refused:
        name = each.entry_point.partition(" ")[0]
        rows.add_row(Text("failed", STYLES["failed"]), "entry point", name, each.distribution, "")
    console.print(rows)
    for subject, result in checked.items():
        lines = [f"{finding.rule}: {finding.problem}" for finding in result.findings]
        _print_problems(console, f"{subject.kind} {subject.name}", [result.missing] if result.missing else lines)
    for each in refused:
        _print_problems(console, f"entry point {each.entry_point}", [f"cannot be loaded: {each.problem}"])


def _print_problems(console: Console, what: str, problems: list[str]) -> None:
    if not problems:
        return
    console.print(Text(f"\n{what}", "bold"), soft_wrap=True)
    more = [f"... and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    for problem in [*problems[:SHOWN], *more]:
        console.print(Text(f"  {plain(problem[:LONGEST_PROBLEM])}"), soft_wrap=True)
