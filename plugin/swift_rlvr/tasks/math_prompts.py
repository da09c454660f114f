r"""What the mathematical tasks share: the R1-Zero system prompt, messages, the gold in a box, the grade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swift_rlvr.answers import last_boxed
from swift_rlvr.rewards.accuracy import AccuracyReward

R1_ZERO_SYSTEM = (
    "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. The Assistant "
    "first thinks about the reasoning process in the mind and then gives the User the answer. The reasoning process "
    "is enclosed in <think> </think> tags and the answer in <answer> </answer> tags, that is, "
    "<think> reasoning process here </think><answer> answer here </answer>."
)


def to_messages(question: str, system: str, *before: tuple[str, str]) -> list[dict[str, str]]:
    """System turn, then the turns of `before` as (question, answer), then the question.

    >>> [message["role"] for message in to_messages("1 + 1?", "Answer.", ("0 + 1?", "1"))]
    ['system', 'user', 'assistant', 'user']
    """
    turns = [("system", system)]
    for asked, answered in before:
        turns += [("user", asked), ("assistant", answered)]
    return [{"role": role, "content": content} for role, content in [*turns, ("user", question)]]


def boxed_gold(solution: str) -> str | None:
    r"""The last ``\boxed{...}`` of a solution, with its box, or None where it has none that holds something.

    >>> print(boxed_gold(r"First \boxed{1}, then $x = \boxed{\frac{1}{2}}$."), boxed_gold("none"))
    \boxed{\frac{1}{2}} None
    """
    found = last_boxed(solution)
    return rf"\boxed{{{found.strip()}}}" if found and found.strip() else None


def grade(completion: str, row: Mapping[str, Any]) -> tuple[float | None, str]:
    """(reward, reason) of one completion for a preprocessed row, as the reward `external_accuracy` gives it.

    >>> grade("<answer>7</answer>", {"solution": "7"})
    (1.0, 'correct')
    """
    reward, reason = AccuracyReward().grade(completion, row)
    return reward, reason
