"""What every reward and every task promises to the trainers that call it.

These are the rules behind `swift-rlvr check`. The tests of this package, and those of a package
that `swift-rlvr new` wrote, go through the same rules with `check_reward` and `check_task`. A
reward may hang, so the command runs the rules in a process that can be ended (`check_registered`).
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from swift_rlvr.contract.rewards import REWARD_RULES, WITHOUT_EXAMPLES, rules_of
from swift_rlvr.contract.rules import NotJudgedError, Rule
from swift_rlvr.contract.tasks import TASK_RULES
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import reward_class
from swift_rlvr.rewards.function import FunctionReward
from swift_rlvr.rewards.imported import is_import_path
from swift_rlvr.tasks import TASKS, Task
from swift_rlvr.tasks.task import Row
from swift_rlvr.utils.errors import NotInstalledError
from swift_rlvr.utils.parallel import map_within

RULES: dict[str, dict[str, Rule]] = {
    "reward": REWARD_RULES,
    "task": TASK_RULES,
}


class Finding(NamedTuple):
    """A rule that does not hold, and why."""

    rule: str
    problem: str


class Subject(NamedTuple):
    """A registered reward or task, by its full name, or a reward by its import path."""

    kind: str  # "reward" or "task"
    name: str


@dataclass
class Checked:
    """The rules that do not hold, or the missing package without which they cannot be tried.

    not_judged: what could not be judged, because a function has no examples.
    """

    findings: list[Finding] = field(default_factory=list)
    missing: str = ""
    not_judged: str = ""


def check_reward(reward: type[Reward] | Reward) -> list[Finding]:
    """Return the rules that a reward breaks, and how. Takes a class, or what `@reward` has made."""
    cls = type(reward) if isinstance(reward, Reward) else reward
    return _findings(rules_of(cls), cls)


def check_task(task: Task, rows: Sequence[Row] | None = None) -> list[Finding]:
    """Return the rules that a task breaks on its examples, or on these raw rows."""
    if rows is not None:
        task = replace(task, examples=tuple(rows))
    return _findings(TASK_RULES, task)


def _findings(rules: dict[str, Rule], item: Any) -> list[Finding]:
    findings = []
    for name, rule in rules.items():
        for problem in problems_of(rule, item):
            findings.append(Finding(name, problem))
    return findings


def check_registered(subjects: Sequence[Subject], seconds: float) -> dict[Subject, Checked]:
    """Try the rules on rewards and tasks, each rule in a process that can be ended.

    A rule that takes longer than `seconds` is broken, and the further rules of its subject are
    left out.
    """
    checked = {subject: Checked() for subject in subjects}
    left_out: set[Subject] = set()

    def due() -> Iterator[tuple[Subject, str]]:
        # Asked for one at a time, so that it sees which subjects are left out by now.
        for subject in subjects:
            for rule in _rules(subject):
                if subject not in left_out:
                    yield subject, rule

    for (subject, rule), result in map_within(_run_rule, due(), seconds, start=_load):
        of_subject = checked[subject]
        if isinstance(result, NotInstalledError):
            of_subject.missing = str(result)
            of_subject.findings.clear()
        elif isinstance(result, NotJudgedError):
            of_subject.not_judged = str(result)
        elif isinstance(result, Exception):
            of_subject.findings.append(Finding(rule, str(result)))
        else:
            of_subject.findings += [Finding(rule, problem) for problem in result]
        if isinstance(result, (NotInstalledError, TimeoutError)):
            left_out.add(subject)
    return checked


def _load() -> None:
    """Complete the registries, and leave standard output to the parent."""
    os.dup2(2, 1)
    len(REWARDS)
    len(TASKS)


def _rules(subject: Subject) -> dict[str, Rule]:
    """The rules for a subject. A function that nobody registered may be without examples."""
    if subject.kind == "task":
        return TASK_RULES
    cls = reward_class(subject.name)
    if is_import_path(subject.name) and not cls.examples and issubclass(cls, FunctionReward):
        return WITHOUT_EXAMPLES
    return rules_of(cls)


def _run_rule(pair: tuple[Subject, str]) -> list[str]:
    subject, rule = pair
    item = TASKS[subject.name] if subject.kind == "task" else reward_class(subject.name)
    return list(problems_of(_rules(subject)[rule], item))


def problems_of(rule: Rule, item: Any) -> Iterator[str]:
    """Yield the problems that a rule finds. An exception is one too, except those that say why there is
    no verdict.
    """
    try:
        yield from rule(item)
    except (NotInstalledError, NotJudgedError):
        raise
    # The rule calls other people's code, which may raise anything.
    except Exception as error:
        yield f"raises {type(error).__name__}: {error}"
