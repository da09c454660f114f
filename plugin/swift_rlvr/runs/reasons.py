"""Why completions got their rewards: collected during training. `swift_rlvr.runs.log` writes and counts them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Sample = dict[str, tuple[float | None, str]]
"""Of one completion: reward and reason by the class name of the reward."""


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
