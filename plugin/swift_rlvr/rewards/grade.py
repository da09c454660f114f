"""What a reward is given and what it says: rows, grades, and explanations rule by rule."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]  # the values of one row, by column
Columns = Mapping[str, Sequence[Any]]  # one value per completion, by column


class Grade(NamedTuple):
    """What a reward says about one completion."""

    reward: (
        float | None
    )  # None where the row cannot be graded; the trainers leave it out of the row's sum
    reason: str  # one of the reward's `reasons`


class Example(NamedTuple):
    """A completion of a row, and what it earns with the default parameters."""

    completion: str
    row: Row
    reward: float | None


class Rule(NamedTuple):
    """One rule that a reward checks, for people who ask why."""

    name: str
    passed: (
        bool | None
    )  # None where it was not checked, or is a measurement, which can neither pass nor fail
    detail: str = ""


class Explanation(NamedTuple):
    """Why a completion got its reward."""

    reward: float | None
    reason: str
    extracted: str | None  # the part of the completion that was judged, or None where there is none
    rules: list[Rule]


def rules_in_order(rules: Mapping[Any, str], reason: Any, detail: str = "") -> list[Rule]:
    """The outcome of rules that are checked one after another until one fails.

    `rules` holds the name of each, by the reason that its failure gives; where `reason` is none of
    these, all have passed. `detail` is that of the rule that failed.

    >>> rules_in_order({"no text": "there is a text", "wrong": "it is right", "long": "it is short"}, "wrong")[1:]
    [Rule(name='it is right', passed=False, detail=''), Rule(name='it is short', passed=None, detail='')]
    """
    failed = list(rules).index(reason) if reason in rules else len(rules)
    return [
        Rule(name, None if number > failed else number < failed, detail if number == failed else "")
        for number, name in enumerate(rules.values())
    ]
