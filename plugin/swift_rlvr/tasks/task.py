"""What a task is: a name, the columns that its reward needs, and how a row becomes a prompt.

Plain Python: the same `Task` feeds ms-swift (through rlvr_plugin.py), TRL and the evaluation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class RowError(ValueError):
    """A row that cannot be used. `column` is the column to blame; the message says what is accepted there."""

    def __init__(self, column: str, problem: str):
        super().__init__(f"column {column!r}: {problem}")
        self.column = column


@dataclass(frozen=True)
class Task:
    """One dataset.

    name: what stands in `--dataset NAME`, `--dataset NAME:FILE` and `swift-rlvr dataset make NAME`.
    columns: the columns a raw row must have; `preprocess` keeps them for the reward.
    preprocess: raw row -> row with `messages`; raises RowError.
    grade: (completion, row) -> (reward, reason). The reward is None where the row cannot be graded.
    system: the system prompt that goes with the task, for `--system` in training and for the evaluation.
    ms_dataset_id, hf_dataset_id: where the dataset lives on ModelScope and on Hugging Face.
    prompt: the text that `preprocess` fills in. ms-swift caches preprocessed rows under a hash of this object,
        so that a changed prompt must change it.
    """

    name: str
    columns: tuple[str, ...]
    preprocess: Callable[[Mapping[str, Any]], dict[str, Any]]
    grade: Callable[[str, Mapping[str, Any]], tuple[float | None, str]]
    system: str
    ms_dataset_id: str
    hf_dataset_id: str
    prompt: str


def check_columns(task: Task, present: Iterable[str]) -> None:
    """Raise ValueError, naming the columns missing and present, unless all of the task's columns are there."""
    present = list(present)
    missing = [column for column in task.columns if column not in present]
    if missing:
        raise ValueError(f"{task.name}: column {', '.join(missing)} missing; the dataset has {', '.join(present)}")


@dataclass(frozen=True)
class RowCheck:
    """Which rows can be used: `usable` holds their indexes, `errors` one `(index, message)` for every other row."""

    usable: list[int]
    errors: list[tuple[int, str]]
    by_column: Mapping[str, int]

    def describe(self, name: str, shown: int = 10) -> str:
        """Say which rows are unusable, the first `shown` of them one by one, counted from 1 as lines of a file are.

        >>> RowCheck([0], [(1, "column 'target': missing")], {"target": 1}).describe("countdown")
        "countdown: 1 of 2 rows cannot be used (target: 1)\\n  row 2: column 'target': missing"
        """
        total = len(self.usable) + len(self.errors)
        columns = ", ".join(f"{column}: {count}" for column, count in self.by_column.items())
        lines = [f"{name}: {len(self.errors)} of {total} rows cannot be used ({columns})"]
        lines += [f"  row {index + 1}: {message}" for index, message in self.errors[:shown]]
        if len(self.errors) > shown:
            lines.append(f"  ... and {len(self.errors) - shown} more")
        return "\n".join(lines)


def check_rows(task: Task, rows: Iterable[Mapping[str, Any]]) -> RowCheck:
    """Try every row and keep account of those that `task.preprocess` refuses."""
    usable, errors, by_column = [], [], Counter()
    for index, row in enumerate(rows):
        try:
            task.preprocess(row)
        except RowError as error:
            errors.append((index, str(error)))
            by_column[error.column] += 1
        else:
            usable.append(index)
    return RowCheck(usable, errors, by_column)
