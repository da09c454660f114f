r"""Rows of several tasks in one file: the column `task` names the task of a row, the other columns
are that task's.

Each row gets the messages and columns of its own task. There is no dataset for `code` here: its
rows bring `messages` and the column of their reward, `tests`, themselves. Several names in one
`--dataset`, such as `countdown:a.jsonl gsm8k:b.jsonl`, have the same effect.
"""

from typing import Any

from swift_rlvr.tasks import bespoke_stratos, countdown, gsm8k, numina_math_tir, own, reasoning_gym
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tasks.own import conversation
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown


def _prepare_code(row: Row) -> dict[str, Any]:
    conversation(row.get("messages"))
    if "tests" not in row:
        raise RowError("tests", "missing, and a row of the task 'code' needs it")
    return dict(row)


CODE = Task(
    name="code",
    columns=("messages", "tests"),
    preprocess=_prepare_code,
    identity=lambda row: normalised(conversation(row.get("messages"))[-1]["content"]),
    gold=lambda row: None,
    system=SYSTEM_PROMPT,
    reward_columns=("tests",),
    verifier="external_code",
    further_rewards=(),
)
_DATASETS = (
    countdown.TASK,
    gsm8k.TASK,
    numina_math_tir.TASK,
    bespoke_stratos.TASK,
    reasoning_gym.TASK,
)
PARTS = {task.name: task for task in (*_DATASETS, own.MATH, own.CHOICE, own.QA, CODE)}


def part_of(row: Row) -> Task:
    """The task of a row; RowError where the row names none."""
    name = row.get("task")
    if not isinstance(name, str) or name not in PARTS:
        raise RowError("task", f"expected one of {', '.join(PARTS)}, got {shown(name)}")
    return PARTS[name]


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training, as its own task makes it of the columns that are not None."""
    return part_of(row).preprocess(
        {name: value for name, value in row.items() if value is not None}
    )


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    part = part_of(row)
    return f"{part.name} {part.identity(row)}"


def gold(row: Row) -> Gold | None:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return part_of(row).gold(row)


TASK = Task(
    name="mixed",
    columns=("task",),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=SYSTEM_PROMPT,
    system_in_rows=False,  # of some tasks only
    prompt="\n".join(part.system + part.prompt for part in PARTS.values()),
    reward_columns=(),
    verifier=None,
    further_rewards=(),
    examples=(
        {"task": "countdown", **countdown.TASK.examples[0]},
        {"task": "gsm8k", **gsm8k.TASK.examples[0]},
    ),
    part=part_of,
)
