"""Which rows of a dataset can be used, and when there are too many that cannot."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.task import folded_name
from swift_rlvr.utils.settings import PREFIX, Settings, setting

# this many unusable rows never stop a run: in a small file they would soon be a large share
FORGIVEN = 10


def check_columns(task: Task, present: Iterable[str]) -> None:
    """Raise ValueError, naming the columns missing and present, unless all columns of the task are
    present.
    """
    present = list(present)
    by_column = task.find_columns(present)
    missing = [column for column in task.columns if not by_column.get(column)]
    if not missing:
        return
    has = f"the dataset has {', '.join(present)}"
    text = f"{task.name}: column {', '.join(missing)} missing; {has}"
    remedy = _renaming(task, missing, present)
    raise ValueError(f"{text}; {remedy}" if remedy else text)


def _renaming(task: Task, missing: Sequence[str], present: Sequence[str]) -> str:
    """The flag that names the missing columns, with those present whose names are the nearest;
    empty if nothing is near and the file may be of another task.
    """
    columns = {}
    variables = []
    # A column that is used already is not the one that is missing.
    used = {name for names in task.find_columns(present).values() for name in names}
    others = [name for name in present if name not in used]
    for column in missing:
        variable = task.variable_of(column)
        if variable and os.environ.get(variable):
            return f"{variable} is {os.environ[variable]}, which is not one of these"
        if variable:
            variables.append(variable)
        nearest = _nearest(task.names_of(column), others)
        if nearest is not None:
            columns[nearest] = column
        elif task.any_columns:
            columns[f"NAME OF THE {column.upper()}"] = column
    if len(columns) < len(missing):
        return ""
    flag = f"rename columns with --columns '{json.dumps(columns, ensure_ascii=False)}'"
    return f"{flag} or set {' and '.join(variables)}" if variables else flag


def _nearest(names: Sequence[str], present: Sequence[str]) -> str | None:
    """The column whose name is the nearest to one of `names`, or has one in it."""
    folded = {folded_name(column): column for column in present}
    for name in map(folded_name, names):
        close = get_close_matches(name, list(folded), 1, cutoff=0.75)
        if close:
            return folded[close[0]]
    for name in map(folded_name, names):
        for other, column in folded.items():
            # "gt" is in too many words.
            if name in other and (len(name) > 3 or not name.isascii()):
                return column
    return None


@dataclass
class RowCheck:
    """How many rows a task can use so far, and what is wrong with the others."""

    usable: int = 0
    # line and message of each row that cannot be used
    errors: list[tuple[int, str]] = field(default_factory=list)
    # the number of errors of each kind
    by_label: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.usable + len(self.errors)

    def prepared(self, task: Task, row: Mapping[str, Any], line: int) -> dict[str, Any] | None:
        """The row for training that the task makes of a raw row; None, and counted, where it cannot
        use it.
        """
        try:
            prepared = task.preprocess_for_training(row)
        except RowError as error:
            self.errors.append((line, str(error)))
            self.by_label[error.label] += 1
            return None
        self.usable += 1
        return prepared

    def describe(self, name: str, shown: int = 10) -> str:
        """Say which rows are unusable, and list the first `shown` of them."""
        labels = ", ".join(f"{label}: {count}" for label, count in self.by_label.items())
        text = [f"{name}: {len(self.errors)} of {self.total} rows cannot be used ({labels})"]
        for line, message in self.errors[:shown]:
            text.append(f"  line {line}: {message}")
        if len(self.errors) > shown:
            text.append(f"  ... and {len(self.errors) - shown} more")
        return "\n".join(text)

    def excess(self, share: float) -> str | None:
        """Why there are too many unusable rows, or None: no row is left, or they exceed both
        `share` and FORGIVEN.
        """
        if not self.usable:
            return "no row is left"
        if len(self.errors) > max(FORGIVEN, share * self.total):
            return f"that is {too_many(share)}; set {PREFIX}MAX_UNUSABLE to change the share"
        return None


def too_many(share: float) -> str:
    """How many unusable rows are too many, in words.

    >>> too_many(0.1)
    'more than 10 rows and more than 10% of all'
    """
    return f"more than {FORGIVEN} rows and more than {share:.0%} of all"


@dataclass(frozen=True)
class RowSettings(Settings):
    """What is done about rows that cannot be used."""

    max_unusable: float | None = setting(
        None, "Loading stops above this share of unusable rows.", at_least=0, at_most=1
    )


def allowed_share(task: Task, environ: Mapping[str, str] | None = None) -> float:
    """The share of unusable rows above which loading stops: that of the variable where it is set,
    else the task's.
    """
    share = RowSettings.from_environment(environ).max_unusable
    return task.max_unusable if share is None else share
