"""What every reward and every task promises to the trainers that call it: the rules behind
`swift-rlvr check`.

The tests of this package, and those of a package that `swift-rlvr new` wrote, go through the same
rules with `check_reward` and `check_task`. The command runs them in a process that can be ended
(`check_registered`), since a reward may hang.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from swift_rlvr.contract.rewards import REWARD_RULES
from swift_rlvr.contract.tasks import TASK_RULES
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.tasks import TASKS, Task
from swift_rlvr.tasks.task import Row
from swift_rlvr.utils.errors import NotInstalledError
from swift_rlvr.utils.parallel import map_within

RULES: dict[str, dict[str, Callable[[Any], Iterator[str]]]] = {
    "reward": REWARD_RULES,
    "task": TASK_RULES,
}


class Finding(NamedTuple):
    """A rule that does not hold, and why."""

    rule: str
    problem: str


class Subject(NamedTuple):
    """A registered reward or task, by its full name."""

    kind: str  # "reward" or "task"
    name: str


class Checked(NamedTuple):
    """The rules that do not hold, or the package that is missing to try them."""

    findings: list[Finding]
    missing: str | None = None


def check_reward(reward: type[Reward] | Reward) -> list[Finding]:
    """The rules that a reward does not keep, a class or what `@reward` has made, and what it does
    instead.
    """
    cls = type(reward) if isinstance(reward, Reward) else reward
    return _findings(REWARD_RULES, cls)


def check_task(task: Task, rows: Sequence[Row] | None = None) -> list[Finding]:
    """The rules that a task does not keep for its examples, or for these raw rows."""
    if rows is not None:
        task = replace(task, examples=tuple(rows))
    return _findings(TASK_RULES, task)


def _findings(rules: dict[str, Callable[[Any], Iterator[str]]], item: Any) -> list[Finding]:
    findings = []
    for name, rule in rules.items():
        findings += [Finding(name, problem) for problem in problems_of(rule, item)]
    return findings


def check_registered(subjects: Sequence[Subject], seconds: float) -> dict[Subject, Checked]:
    """The rules of registered rewards and tasks that do not hold, each tried in a process that can
    be ended.

    A rule that takes longer than `seconds` does not hold; the further ones of its subject are left
    out.
    """
    checked = {subject: Checked([]) for subject in subjects}
    left_out: set[Subject] = set()

    def due() -> Iterator[tuple[Subject, str]]:
        # Asked for one at a time, so that it sees which subjects are left out by now.
        for subject in subjects:
            for rule in RULES[subject.kind]:
                if subject not in left_out:
                    yield subject, rule

    for (subject, rule), result in map_within(_run_rule, due(), seconds, start=_load):
        if isinstance(result, NotInstalledError):
            checked[subject] = Checked([], str(result))
        else:
            problems = [str(result)] if isinstance(result, Exception) else result
            checked[subject].findings.extend(Finding(rule, problem) for problem in problems)
        if isinstance(result, NotInstalledError | TimeoutError):
            left_out.add(subject)
    return checked


def _load() -> None:
    """Complete the registries, and leave standard output to the parent."""
    os.dup2(2, 1)
    len(REWARDS)
    len(TASKS)


def _run_rule(pair: tuple[Subject, str]) -> list[str]:
    (kind, name), rule = pair
    item: Any = REWARDS[name] if kind == "reward" else TASKS[name]
    return list(problems_of(RULES[kind][rule], item))


def problems_of(rule: Callable[[Any], Iterator[str]], item: Any) -> Iterator[str]:
    """What a rule finds; that it raises is a problem too, but for NotInstalledError."""
    try:
        yield from rule(item)
    except NotInstalledError:
        raise
    except Exception as error:  # of other people's code
        yield f"raises {type(error).__name__}: {error}"
