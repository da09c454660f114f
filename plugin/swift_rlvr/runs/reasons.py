"""Why completions got their rewards: collected during training. `swift_rlvr.runs.log` writes and counts them.

Also from which rewards the groups of a batch have their spread.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from swift_rlvr.success import VERIFIER, role_of

Sample = dict[str, tuple[float | None, str]]
"""Of one completion: reward and reason by the class name of the reward."""

ONLY_SHAPING = "groups/only_shaping"


class ReasonLog:
    """Collects grades until they are taken. Each reward whose `log` it is adds its own.

    >>> log = ReasonLog()
    >>> log.add("FormatReward", [(1.0, "ok"), (0.0, "no answer part")])
    >>> log.take()
    [{'FormatReward': (1.0, 'ok')}, {'FormatReward': (0.0, 'no answer part')}]
    >>> log.take()
    []
    """

    def __init__(self) -> None:
        self._grades: defaultdict[str, list[tuple[float | None, str]]] = defaultdict(list)

    def add(self, name: str, grades: Sequence[tuple[float | None, str]]) -> None:
        self._grades[name].extend(grades)

    def take(self) -> list[Sample]:
        """The grades since the last call, one dictionary for each completion in order."""
        samples: list[Sample] = []
        for name, grades in self._grades.items():
            samples += [{} for _ in range(len(grades) - len(samples))]
            for sample, (reward, reason) in zip(samples, grades, strict=False):
                sample[name] = (reward, reason)
        self._grades.clear()
        return samples


@contextmanager
def collected_reasons(rewards: Sequence[Any]) -> Iterator[ReasonLog]:
    """Collect the grades of these rewards inside the block. Functions that are no `Reward` give no reasons."""
    log, ours = ReasonLog(), [reward for reward in rewards if hasattr(reward, "log")]
    for reward in ours:
        reward.log = log
    try:
        yield log
    finally:
        for reward in ours:
            reward.log = None


def only_shaping(
    rewards: Sequence[Callable], columns: Sequence[Sequence[float | None]], weights: Sequence[float], size: int
) -> dict[str, float]:
    """The share of groups whose rewards differ, but not those of a verifier: they teach nothing about the outcome.

    Args:
        rewards: the functions. columns: what each gave the completions, None or NaN counts as 0. weights: of each.
        size: completions in a group, which follow one another.

    Returns: the share as ONLY_SHAPING; nothing in a run without a verifier.

    >>> rewards = [type(name, (), {})() for name in ("MathAccuracy", "Format")]
    >>> only_shaping(rewards, [[0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1]], [1, 0.5], size=2)
    {'groups/only_shaping': 0.3333333333333333}
    """
    verifies = [role_of(reward) == VERIFIER for reward in rewards]
    if not any(verifies) or not columns[0]:
        return {}
    terms = [[weight * (value or 0.0) if value == value else 0.0 for value in column]
             for column, weight in zip(columns, weights, strict=True)]  # fmt: skip

    def differ(values: Sequence[float]) -> bool:
        return max(values) - min(values) > 1e-6

    counts = []
    for start in range(0, len(columns[0]), size):
        group = [term[start : start + size] for term in terms]
        total = [sum(each) for each in zip(*group, strict=True)]
        outcomes = [term for term, verifier in zip(group, verifies, strict=True) if verifier]
        counts.append(differ(total) and not any(map(differ, outcomes)))
    return {ONLY_SHAPING: sum(counts) / len(counts)}
