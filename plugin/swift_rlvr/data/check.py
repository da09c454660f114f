"""Can every row of a dataset be graded, and does its gold earn the maximum? Asked before training, not after it.

Each row is preprocessed as for training, a completion with its gold is made (`Task.gold_completion`), and every reward
of the task grades it. What falls short is counted, with its reason and the first lines. Rows that ask the same are
duplicates within a file, and shared with another file (`against`) a leak between training and evaluation; what counts
as the same is `Task.identity`: normalised text, or for Countdown the multiset of numbers and the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.row_check import FORGIVEN, allowed_share

BATCH = 256
SHOWN = 10
PROBE = "<think>A guess.</think><answer>271828183</answer>"
"""An answer that is right for no row. What is written like the gold is right even where the gold cannot be read; this
has to be compared with it, and a reward that says None cannot grade what a policy writes for the row."""
PATIENCE = 600.0
"""Seconds that the math verifier has for a batch here; what is slow is not to look like a bad gold."""
MAXIMUM = 1.0
"""What each reward of a task gives at most."""
UNSOLVABLE, NO_GOLD = "unsolvable", "no right answer is known"


@dataclass
class Findings:
    """What was found about a dataset. Lines are counted from 1, as in the file.

    unusable: how many rows the task refuses, by label. problems: the first of all problems, as (line, what).
    no_gold: how many usable rows have no right answer, by label.
    rewards: for each reward, how many golds it gives the maximum, less, and None, and the reasons for the latter two.
    bad: how many rows are unusable, have no right answer, or have a gold that some reward does not give the maximum.
    duplicates: how many rows ask what an earlier one asks. shared: for each other file, how many rows it has as well.
    """

    rows: int = 0
    unusable: Counter = field(default_factory=Counter)
    no_gold: Counter = field(default_factory=Counter)
    rewards: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: Counter = field(default_factory=Counter)
    bad: int = 0
    duplicates: int = 0
    shared: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    limit: float = 0.1

    @property
    def too_many(self) -> bool:
        """Whether more rows are bad than the limit allows; as few as FORGIVEN never are, unless none is good."""
        return self.bad == self.rows or self.bad > max(FORGIVEN, self.limit * self.rows)

    @property
    def failed(self) -> bool:
        return self.too_many or any(self.shared.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "tasks": dict(self.tasks),
            "unusable": dict(self.unusable),
            "no_gold": dict(self.no_gold),
            "rewards": {name: {**found, "reasons": dict(found["reasons"])} for name, found in self.rewards.items()},
            "bad": self.bad,
            "limit": self.limit,
            "too_many": self.too_many,
            "duplicates": self.duplicates,
            "shared": self.shared,
            "problems": [{"line": line, "problem": problem} for line, problem in self.problems],
        }


def check(source: Source, against: Sequence[Source] = (), limit: float | None = None) -> Findings:
    """Look at every row of a dataset; `limit` is the share of bad rows that is too much, by default the task's.

    InputError where a file cannot be read, naming the line.
    """
    others = {str(other): set(identities(other)) for other in against}
    found = Findings(limit=allowed_share(source.task) if limit is None else limit, shared=dict.fromkeys(others, 0))
    seen: dict[str, int] = {}
    rows = source.rows()
    while batch := list(islice(rows, BATCH)):
        found.rows += len(batch)
        bad: set[int] = set()
        graded: dict[str, list[tuple[int, dict[str, Any], str]]] = {}
        for line, row in batch:
            try:
                part = source.task.part(row) if source.task.part else source.task
                prepared = source.task.preprocess(row)
                key = source.task.identity(row)
                gold = part.gold_completion(row) if isinstance(part, Task) else None
            except RowError as error:
                found.unusable[error.label] += 1
                _note(found, bad, line, str(error))
                continue
            first = seen.setdefault(key, line)
            if first != line:
                found.duplicates += 1
                found.problems.append((line, f"asks the same as line {first}"))
            for name, keys in others.items():
                if key in keys:
                    found.shared[name] += 1
                    found.problems.append((line, f"is in {name} as well"))
            name = part.name if isinstance(part, Task) else part
            found.tasks[name] += 1
            if gold is None:
                label = UNSOLVABLE if "nums" in prepared else NO_GOLD
                found.no_gold[label] += 1
                _note(found, bad, line, label)
                continue
            for reward in part.rewards:
                graded.setdefault(reward, []).append((line, prepared, gold))
        for reward, golds in graded.items():
            _grade(found, bad, reward, golds)
        found.bad += len(bad)
        found.problems = sorted(found.problems)[:SHOWN]
    return found


def identities(source: Source) -> Iterator[str]:
    """What the rows of a dataset ask; rows that cannot be used are passed over."""
    for _, row in source.rows():
        try:
            yield source.task.identity(row)
        except RowError:
            continue


def same_kind(source: Source, others: Iterable[Source]) -> None:
    """InputError where another dataset is not of the same task, so that no row of the two could be the same."""
    for other in others:
        if other.task.columns != source.task.columns:
            raise InputError(
                f"--against {other}: expected a file of {source.task.name}, "
                f"with the columns {', '.join(source.task.columns)}; it is one of {other.task.name}"
            )


def _grade(found: Findings, bad: set[int], name: str, golds: list[tuple[int, dict[str, Any], str]]) -> None:
    kind = REWARDS[name]
    patient = {"batch_timeout": PATIENCE} if "batch_timeout" in {each.name for each in fields(kind.Parameters)} else {}
    reward = kind(**patient)
    columns = columns_for(reward, [row for _, row, _ in golds])
    grades = reward.grades([gold for _, _, gold in golds], **columns)
    if reward.columns:  # it compares with a gold
        probes = reward.grades([PROBE] * len(golds), **columns)
        grades = [probe if probe.reward is None else grade for grade, probe in zip(grades, probes, strict=True)]
    counts = found.rewards.setdefault(name, {"full": 0, "less": 0, "none": 0, "reasons": Counter()})
    for (line, _, _), (value, reason) in zip(golds, grades, strict=True):
        if value == MAXIMUM:
            counts["full"] += 1
            continue
        counts["none" if value is None else "less"] += 1
        counts["reasons"][reason] += 1
        given = "cannot read the gold" if value is None else f"gives the gold {value:g}"
        _note(found, bad, line, f"{name} {given}: {reason}")


def _note(found: Findings, bad: set[int], line: int, problem: str) -> None:
    bad.add(line)
    found.problems.append((line, problem))
