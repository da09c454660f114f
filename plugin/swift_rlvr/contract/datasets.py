"""Can every row of a dataset be graded, and does its gold earn the maximum? To be asked before
training.

Each row is preprocessed as for training, and every reward of its task grades
`Task.gold_completion`. Two rows with the same `Task.identity` ask the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from swift_rlvr.evaluation.grade_samples import BATCH
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.rewards.code import UNUSABLE
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.row_check import FORGIVEN, allowed_share
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError

SHOWN, REPEATS = 10, "asks the same as"
PROBE = "<think>A guess.</think><answer>271828183</answer>"
"""An answer that is right for no row. A gold that cannot be read still equals itself, so the gold completion alone
would not show it; a reward that gives this answer None cannot grade what a policy writes for the row."""


@dataclass
class Findings:
    """What the check found."""

    limit: float
    shared: dict[str, int]  # rows that another file has too, by its name
    rows: int = 0
    unusable: Counter = field(default_factory=Counter)  # rows that the task refuses, by label
    no_gold: Counter = field(
        default_factory=Counter
    )  # usable rows without a known right answer, by label
    # For each reward how many golds earn the maximum, less, and None, with the reasons for the
    # latter two.
    rewards: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: Counter = field(default_factory=Counter)
    remarks: Counter = field(
        default_factory=Counter
    )  # rows that are not bad for it, by what the verifier says of them
    # unusable, without a known right answer, or with a gold that misses the maximum of a reward
    bad: int = 0
    duplicates: int = 0  # rows that ask the same as an earlier one
    problems: list[tuple[int, str]] = field(
        default_factory=list
    )  # (line from 1, problem), the first SHOWN

    @property
    def too_many(self) -> bool:
        """Whether more rows are bad than the limit and FORGIVEN allow, or all are."""
        return self.bad == self.rows or self.bad > max(FORGIVEN, self.limit * self.rows)

    @property
    def failed(self) -> bool:
        return self.too_many or any(self.shared.values())

    def as_json(self) -> dict[str, Any]:
        problems = [{"line": line, "problem": problem} for line, problem in self.problems]
        return {**vars(self), "too_many": self.too_many, "problems": problems}


def check(source: Source, against: Sequence[Source] = (), limit: float | None = None) -> Findings:
    """Look at every row of a dataset; InputError, naming the line, where one cannot be read.

    Args:
        against: of tasks with the same columns; the two could share no row otherwise.
        limit: the share of bad rows that is too much; None for the task's.
    """
    for other in against:
        if other.task.columns != source.task.columns:
            expected = (
                f"a file of {source.task.name}, with the columns {', '.join(source.task.columns)}"
            )
            raise InputError(
                f"{other}: expected {expected}; it is one of {other.task.name}", field="against"
            )
    others = {str(other): set(_identities(other)) for other in against}
    findings = Findings(
        limit=allowed_share(source.task) if limit is None else limit,
        shared=dict.fromkeys(others, 0),
    )
    seen: dict[str, int] = {}
    rows = source.rows()
    while batch := list(islice(rows, BATCH)):
        findings.rows += len(batch)
        bad: list[tuple[int, str]] = []  # as findings.problems
        graded: dict[str, list[tuple[int, dict[str, Any], str]]] = {}
        for line, row in batch:
            try:
                part, prepared = source.task.of(row), source.task.preprocess(row)
                key, gold = source.task.identity(row), part.gold_completion(row)
            except RowError as error:
                findings.unusable[error.label] += 1
                bad.append((line, str(error)))
                continue
            findings.tasks[part.name] += 1
            if seen.setdefault(key, line) != line:
                findings.duplicates += 1
                findings.problems.append((line, f"{REPEATS} line {seen[key]}"))
            for name in (name for name, keys in others.items() if key in keys):
                findings.shared[name] += 1
                findings.problems.append((line, f"is in {name} as well"))
            verifier = REWARDS[part.verifier or ""]
            remarks = verifier.remarks(prepared)
            for remark in remarks:
                findings.remarks[remark] += 1
                findings.problems.append((line, remark))
            if gold is not None:
                for reward in part.rewards:
                    graded.setdefault(reward, []).append((line, prepared, gold))
            elif verifier.runs_code:  # the tests say what is right
                bad += [(line, remark) for remark in remarks if UNUSABLE in remark]
            else:
                label = "unsolvable" if "nums" in prepared else "no right answer is known"
                findings.no_gold[label] += 1
                bad.append((line, label))
        for reward, golds in graded.items():
            bad += _grade(findings, reward, golds)
        findings.bad += len({line for line, _ in bad})
        # What only repeats another row comes last.
        order = sorted(
            findings.problems + bad, key=lambda each: (each[1].startswith(REPEATS), each)
        )
        findings.problems = order[:SHOWN]
    return findings


def _identities(source: Source) -> Iterator[str]:
    for _, row in source.rows():
        with suppress(RowError):
            yield source.task.identity(row)


def _grade(
    findings: Findings, name: str, golds: list[tuple[int, dict[str, Any], str]]
) -> Iterator[tuple[int, str]]:
    """Grade and count the golds, each a (line, prepared row, completion); yields (line, problem) of
    those that fail.
    """
    reward = REWARDS[name]()
    columns = columns_for(reward, [row for _, row, _ in golds])
    grades = reward.grades([gold for _, _, gold in golds], **columns)
    if reward.columns:  # it compares with the gold
        probes = reward.grades([PROBE] * len(golds), **columns)
        grades = [
            probe if probe.reward is None else grade
            for grade, probe in zip(grades, probes, strict=True)
        ]
    counts = findings.rewards.setdefault(
        name, {"full": 0, "less": 0, "none": 0, "reasons": Counter()}
    )
    for (line, _, _), (value, reason) in zip(golds, grades, strict=True):
        if value == 1.0:  # the most that a reward of a task gives
            counts["full"] += 1
            continue
        counts["none" if value is None else "less"] += 1
        counts["reasons"][reason] += 1
        outcome = "cannot read the gold" if value is None else f"gives the gold {value:g}"
        yield line, f"{name} {outcome}: {reason}"
