r"""Rows of several tasks in one file: the column `task` names the task of a row, the other columns
are that task's.

Each row gets the messages and columns of its own task, which may be one of another package. Several
names in one `--dataset`, such as `countdown:a.jsonl gsm8k:b.jsonl`, have the same effect.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks import countdown, gsm8k
from swift_rlvr.tasks.task import TASKS, Gold, Row, RowError, Task, shown


def part_of(row: Row) -> Task:
    """The task of a row, any that is registered; RowError if the row names none."""
    name = row.get("task")
    task = TASKS.data.get(name) if isinstance(name, str) else None
    if task is None or task.is_mixed:
        raise RowError("task", f"expected one of {', '.join(_parts())}, got {shown(name)}")
    return task


def _parts() -> dict[str, Task]:
    return {name: task for name, task in TASKS.data.items() if not task.is_mixed}


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training, as its own task makes it of the columns that are not None."""
    present = {name: value for name, value in row.items() if value is not None}
    return part_of(row).preprocess(present)


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    part = part_of(row)
    return f"{part.name} {part.identity(row)}"


def gold(row: Row) -> Gold | None:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return part_of(row).gold(row)


@dataclass(frozen=True)
class MixedTask(Task):
    """The task whose rows are of several tasks."""

    is_mixed: ClassVar[bool] = True

    def of(self, row: Row) -> Task:
        return part_of(row)

    def __getstate__(self) -> dict[str, Any]:
        # For ms-swift's hash: a changed prompt of a part must change it.
        prompts = {name: part.system + part.prompt for name, part in _parts().items()}
        return {**vars(self), "prompts_of_parts": prompts}


TASK = MixedTask(
    name="mixed",
    columns=("task",),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    # JSON, calls and instructions want none, and ms-swift gives none to rows that bring none.
    system="",
    system_in_rows=False,  # of some tasks only
    reward_columns=(),
    verifier=None,
    further_rewards=(),
    examples=(
        {"task": "countdown", **countdown.TASK.examples[0]},
        {"task": "gsm8k", **gsm8k.TASK.examples[0]},
    ),
)
