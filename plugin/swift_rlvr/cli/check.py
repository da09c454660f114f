"""The command `swift-rlvr check`: whether rewards and tasks keep what trainers expect of them."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli.dataset import Json
from swift_rlvr.cli.render import plain, table
from swift_rlvr.data.contract import RULES, Finding, Subject, check_registered
from swift_rlvr.errors import InputError
from swift_rlvr.registry import OWN, Refused
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS

SHOWN = 8
LONGEST_PROBLEM = 300
STYLES = {"passed": "green", "failed": "bold red"}


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
        findings = check_registered(subjects, timeout)
    failed = len(refused) + sum(map(bool, findings.values()))
    if as_json:
        listed = [
            {**subject._asdict(), "distribution": _owner(subject), "rules": len(RULES[subject.kind]),
             "findings": [finding._asdict() for finding in found]}
            for subject, found in findings.items()
        ]  # fmt: skip
        typer.echo(json.dumps({"failed": failed, "checked": listed, "refused": [each._asdict() for each in refused]}))
    else:
        _print(findings, refused)
    if failed:
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


def _print(findings: dict[Subject, list[Finding]], refused: list[Refused]) -> None:
    console = Console(highlight=False)
    rows = table("outcome", "", "name", "of", "")
    for column in rows.columns[:4]:
        column.no_wrap = True
    for subject, found in findings.items():
        text = Text(f"{len(RULES[subject.kind])} rules", "dim")
        if found:
            lines = [plain(f"{finding.rule}: {finding.problem}"[:LONGEST_PROBLEM]) for finding in found[:SHOWN]]
            text = Text("\n".join([*lines, f"... and {len(found) - SHOWN} more"][: len(lines) + (len(found) > SHOWN)]))
        outcome = "failed" if found else "passed"
        rows.add_row(Text(outcome, STYLES[outcome]), subject.kind, subject.name, _owner(subject), text)
    for each in refused:
        text = Text(plain(f"cannot be loaded: {each.entry_point}: {each.problem}"[:LONGEST_PROBLEM]))
        rows.add_row(Text("failed", STYLES["failed"]), "entry point", "", each.distribution, text)
    console.print(rows)
    failed = len(refused) + sum(map(bool, findings.values()))
    console.print(f"\n{len(findings) + len(refused) - failed} passed, {failed} failed")
