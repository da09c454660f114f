"""Check a dataset before training: can every row be graded, and does its gold earn the maximum?

Each row is preprocessed as for training, and every reward of its task grades
`Task.gold_completion`. Two rows with the same `Task.identity` ask the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from swift_rlvr.contract.folded import FoldedGold, GoldTexts
from swift_rlvr.evaluation.grade_samples import BATCH
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.rewards.code import UNUSABLE
from swift_rlvr.rewards.exact_match import ExactMatchReward, golds_of
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.row_check import FORGIVEN, allowed_share
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.answers import marked_answer

# The problems that are kept to be shown.
SHOWN = 10
# How the problem of a row that repeats another one begins.
REPEATS = "asks the same as"
# An answer that is right for no row. A gold that cannot be read still equals itself, so the gold
# completion alone would not show it; a reward that gives this answer None cannot grade what a
# policy writes for the row.
PROBE = "<think>A guess.</think><answer>271828183</answer>"

# Answers that need no reading of the question. With them and the most frequent golds the check finds
# out what a policy earns that has learned nothing else.
CONSTANTS = ("0", "1", "1/2", "A", "Yes")
FREQUENT_GOLDS = 3
# The first so many rows are graded for that.
CONSTANT_ROWS = 1000
# A constant that earns more than this share of the rows is a warning.
CONSTANT_SHARE = 0.02

# A line, from 1, and what is wrong there.
Problem = tuple[int, str]


class Gold(NamedTuple):
    """The right answer of a row, as a completion."""

    line: int
    row: dict[str, Any]  # preprocessed
    completion: str


class Constant(NamedTuple):
    """An answer that is the same for every row."""

    answer: str
    share: float  # its mean reward, over all rows that were graded for it
    lines: list[int]  # the first SHOWN rows that pay for it


@dataclass
class Findings:
    """What the check found."""

    # The share of bad rows that is too much.
    limit: float
    # How many rows each other file has too, by its name.
    shared: dict[str, int]
    rows: int = 0
    # Rows that the task refuses, by label.
    unusable: Counter = field(default_factory=Counter)
    # Usable rows without a known right answer, by label.
    no_gold: Counter = field(default_factory=Counter)
    # For each reward how many golds earn the maximum, less, and None, with the reasons for the
    # latter two.
    rewards: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Usable rows of each task.
    tasks: Counter = field(default_factory=Counter)
    # Rows by what the verifier remarks about them; a remark alone makes no row bad.
    remarks: Counter = field(default_factory=Counter)
    # Rows that are unusable, without a known right answer, or with a gold that misses the maximum
    # of a reward.
    bad: int = 0
    # Rows that ask the same as an earlier one.
    duplicates: int = 0
    # The first SHOWN.
    problems: list[Problem] = field(default_factory=list)
    # What constants earn, the best one first, and of how many rows.
    constants: list[Constant] = field(default_factory=list)
    constant_rows: int = 0
    # Golds that external_exact_match takes for that of another row: how many, and the first SHOWN.
    folded_golds: int = 0
    folded: list[FoldedGold] = field(default_factory=list)

    @property
    def too_many(self) -> bool:
        """Whether more rows are bad than the limit and FORGIVEN allow, or all are."""
        return self.bad == self.rows or self.bad > max(FORGIVEN, self.limit * self.rows)

    @property
    def failed(self) -> bool:
        return self.too_many or any(self.shared.values())

    def as_json(self) -> dict[str, Any]:
        problems = [{"line": line, "problem": problem} for line, problem in self.problems]
        constants = [constant._asdict() for constant in self.constants]
        folded = [gold._asdict() for gold in self.folded]
        computed = {
            "too_many": self.too_many,
            "problems": problems,
            "constants": constants,
            "folded": folded,
        }
        return {**vars(self), **computed}


def check(source: Source, against: Sequence[Source] = (), limit: float | None = None) -> Findings:
    """Check every row of a dataset.

    Args:
        against: files whose rows must not be in the dataset, of tasks with the same columns. Rows
            with other columns could not be shared.
        limit: the share of bad rows that is too much; None for the task's.

    Raises:
        InputError: a line cannot be read, which it names, or a file in `against` has other columns.
    """
    _require_same_columns(source, against)
    identities = {str(other): set(_identities(other)) for other in against}
    if limit is None:
        limit = allowed_share(source.task)
    findings = Findings(limit, shared=dict.fromkeys(identities, 0))

    first_lines: dict[str, int] = {}  # by identity
    gold_texts = None if ExactMatchReward().parameters.literal else GoldTexts()
    verified: dict[str, list[Gold]] = {}  # the first rows, by verifier
    rows = source.rows()
    while batch := list(islice(rows, BATCH)):
        findings.rows += len(batch)
        bad: list[Problem] = []
        golds: dict[str, list[Gold]] = {}  # by reward
        for line, row in batch:
            try:
                task = source.task.of(row)
                prepared = source.task.preprocess(row)
                identity = source.task.identity(row)
                completion = task.gold_completion(row)
            except RowError as error:
                findings.unusable[error.label] += 1
                bad.append((line, str(error)))
                continue
            findings.tasks[task.name] += 1

            first_line = first_lines.setdefault(identity, line)
            if first_line != line:
                findings.duplicates += 1
                findings.problems.append((line, f"{REPEATS} line {first_line}"))
            for name, known in identities.items():
                if identity in known:
                    findings.shared[name] += 1
                    findings.problems.append((line, f"is also in {name}"))

            if task.verifier == ExactMatchReward.name:
                _note_folded(findings, gold_texts, line, prepared)
            bad += _remarks(findings, task, line, prepared, has_gold=completion is not None)
            if completion is not None:
                gold = Gold(line, prepared, completion)
                for reward in task.rewards:
                    golds.setdefault(reward, []).append(gold)
                verifier = task.verifier or ""
                if findings.constant_rows < CONSTANT_ROWS and not REWARDS[verifier].runs_code:
                    verified.setdefault(verifier, []).append(gold)
                    findings.constant_rows += 1

        for reward, golds_of_reward in golds.items():
            bad += _grade(findings, reward, golds_of_reward)
        findings.bad += len({line for line, _ in bad})
        findings.problems = sorted(findings.problems + bad, key=_importance)[:SHOWN]
    findings.constants = _constants(verified)
    return findings


def _note_folded(
    findings: Findings, texts: GoldTexts | None, line: int, row: dict[str, Any]
) -> None:
    """Count a row whose golds another row writes differently; texts: None where that matters."""
    golds = golds_of(row.get("accepted_answers"))
    folded = texts.add(line, golds or []) if texts else None
    if folded is None:
        return
    findings.folded_golds += 1
    if len(findings.folded) < SHOWN:
        findings.folded.append(folded)


def _constants(verified: dict[str, list[Gold]]) -> list[Constant]:
    """What constant answers earn on the rows of each verifier, the best one first."""
    golds: Counter[str] = Counter()
    for rows in verified.values():
        for row in rows:
            marked = marked_answer(row.completion)
            if marked is not None:
                golds[marked[1]] += 1
    frequent = [gold for gold, often in golds.most_common(FREQUENT_GOLDS) if often > 1]
    count = sum(map(len, verified.values()))

    constants = []
    for answer in dict.fromkeys((*CONSTANTS, *frequent)):
        earned = 0.0
        lines = []
        for name, rows in verified.items():
            reward = REWARDS[name]()
            columns = columns_for(reward, [row.row for row in rows])
            completion = f"<think>A guess.</think><answer>{answer}</answer>"
            for row, (value, _) in zip(
                rows, reward.grades([completion] * len(rows), **columns), strict=True
            ):
                if value:
                    earned += value
                    lines.append(row.line)
        if lines:
            constants.append(Constant(answer, earned / count, sorted(lines)[:SHOWN]))
    return sorted(constants, key=lambda constant: -constant.share)


def _require_same_columns(source: Source, against: Sequence[Source]) -> None:
    columns = source.task.columns
    for other in against:
        if other.task.columns != columns:
            expected = f"a file of {source.task.name}, with the columns {', '.join(columns)}"
            raise InputError(
                f"{other}: expected {expected}; its task is {other.task.name}", field="against"
            )


def _identities(source: Source) -> Iterator[str]:
    for _, row in source.rows():
        with suppress(RowError):
            yield source.task.identity(row)


def _importance(problem: Problem) -> tuple[bool, Problem]:
    """Sorts problems by line, with rows that only repeat another one last."""
    _, text = problem
    return text.startswith(REPEATS), problem


def _remarks(
    findings: Findings, task: Task, line: int, row: dict[str, Any], has_gold: bool
) -> list[Problem]:
    """Count what the verifier remarks about a preprocessed row, and return why the row is bad.

    A row is bad where nothing says what is right for it: it has neither a gold nor usable tests.
    """
    verifier = REWARDS[task.verifier or ""]
    remarks = verifier.remarks(row)
    for remark in remarks:
        findings.remarks[remark] += 1
        findings.problems.append((line, remark))
    if has_gold:
        return []
    if verifier.runs_code:
        return [(line, remark) for remark in remarks if UNUSABLE in remark]
    label = "unsolvable" if "nums" in row else "no right answer is known"
    findings.no_gold[label] += 1
    return [(line, label)]


def _grade(findings: Findings, name: str, golds: list[Gold]) -> Iterator[Problem]:
    """Grade and count the golds of one reward, and yield the problems of those that fail."""
    reward = REWARDS[name]()
    columns = columns_for(reward, [gold.row for gold in golds])
    grades = reward.grades([gold.completion for gold in golds], **columns)
    if reward.columns:
        # It compares with the gold; see PROBE.
        probes = reward.grades([PROBE] * len(golds), **columns)
        grades = [
            probe if probe.reward is None else grade
            for grade, probe in zip(grades, probes, strict=True)
        ]

    empty = {"full": 0, "less": 0, "none": 0, "reasons": Counter()}
    counts = findings.rewards.setdefault(name, empty)
    for gold, (value, reason) in zip(golds, grades, strict=True):
        # 1.0 is the most that a reward of a task gives.
        if value == 1.0:
            counts["full"] += 1
            continue
        counts["reasons"][reason] += 1
        if value is None:
            counts["none"] += 1
            outcome = "cannot read the gold"
        else:
            counts["less"] += 1
            outcome = f"gives the gold {value:g}"
        yield gold.line, f"{name} {outcome}: {reason}"
