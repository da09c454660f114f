"""A rule of the contract: a sentence that has to hold, and a function that yields the problems where
it does not.
"""

from collections.abc import Callable, Iterator
from typing import Any

# In plain words.
Problems = Iterator[str]
# Takes a reward class or a task.
Rule = Callable[[Any], Problems]


class NotJudgedError(Exception):
    """A rule has found no problem, and there is something that it could not judge: what."""


def rule(rules: dict[str, Rule], sentence: str) -> Callable[[Rule], Rule]:
    """Put the function below among the rules, under its sentence."""

    def add(function: Rule) -> Rule:
        if sentence in rules:
            raise ValueError(f"there is a rule already that says {sentence!r}")
        rules[sentence] = function
        return function

    return add
