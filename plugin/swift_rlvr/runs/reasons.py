"""Why completions got their rewards, during training: shares of each reason to log, and a JSONL file for each sample.

Plain Python. For ms-swift and TRL it is wired in by `swift_rlvr.training.reason_callback`; `swift_rlvr.grpo` uses it as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

FILE_NAME = "reasons.jsonl"


class ReasonLog:
    """Collects grades until they are taken.

    >>> log = ReasonLog()
    >>> log.add("FormatReward", [(1.0, "ok"), (0.0, "no answer part")])
    >>> log.take()
    [{'FormatReward': (1.0, 'ok')}, {'FormatReward': (0.0, 'no answer part')}]
    >>> log.take()
    []
    """

    def __init__(self):
        self._grades: dict[str, list[tuple[float | None, str]]] = {}

    def add(self, name: str, grades: Sequence[tuple[float | None, str]]) -> None:
        self._grades.setdefault(name, []).extend(grades)

    def take(self) -> list[dict[str, tuple[float | None, str]]]:
        """The grades since the last call: for each sample, in order, those of every reward."""
        samples: list[dict[str, tuple[float | None, str]]] = []
        for name, grades in self._grades.items():
            samples += [{} for _ in range(len(grades) - len(samples))]
            for sample, grade in zip(samples, grades, strict=False):
                sample[name] = tuple(grade)
        self._grades = {}
        return samples


class ReasonShares:
    """The share of each reason in a step's samples, under the names that are logged.

    A reason that was seen once is there in every step from then on, so that a mean over steps counts the zeros.

    >>> shares = ReasonShares()
    >>> shares.update([{"FormatReward": (1.0, "ok")}, {"FormatReward": (0.0, "no answer part")}])
    {'reasons/FormatReward/no_answer_part': 0.5, 'reasons/FormatReward/ok': 0.5}
    >>> shares.update([{"FormatReward": (1.0, "ok")}])
    {'reasons/FormatReward/no_answer_part': 0.0, 'reasons/FormatReward/ok': 1.0}
    """

    def __init__(self):
        self._seen: dict[str, set[str]] = {}

    def update(self, samples: Sequence[dict[str, tuple[float | None, str]]]) -> dict[str, float]:
        counts: dict[str, Counter] = {}
        for sample in samples:
            for name, (_, reason) in sample.items():
                counts.setdefault(name, Counter())[reason] += 1
        shares = {}
        for name, reasons in counts.items():
            seen = self._seen.setdefault(name, set())
            seen.update(reasons)
            for reason in sorted(seen):
                shares[f"reasons/{name}/{reason.replace(' ', '_')}"] = reasons[reason] / reasons.total()
        return shares


def append_reasons(
    path: Path, samples: Sequence[dict[str, tuple[float | None, str]]], step: int, mode: str = "train"
) -> None:
    """Add a line for each sample: `step`, `mode` ("train" or "eval"), `index` (its place among the completions of the
    step, as in completions.jsonl), `rewards` and `reasons`, both by the class name of the reward.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for index, sample in enumerate(samples):
            line = {"step": step, "mode": mode, "index": index}
            line["rewards"] = {name: reward for name, (reward, _) in sample.items()}
            line["reasons"] = {name: reason for name, (_, reason) in sample.items()}
            file.write(json.dumps(line) + "\n")
