r"""Rows of several tasks in one file: the column `task` names the task of a row, the other columns are that task's.

Each row gets the messages and columns of its own task. There is no dataset for `math` and `code` here: their rows bring
`messages` and the column of their reward, `solution` or `tests`, themselves. Several names in one `--dataset`, such as
`countdown:a.jsonl gsm8k:b.jsonl`, have the same effect.
"""

from collections.abc import Mapping
from typing import Any

from swift_rlvr.tasks import bespoke_stratos, countdown, gsm8k, numina_math_tir, reasoning_gym
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown


def _ready(name: str, column: str, verifier: str) -> Task:
    """A task whose rows bring their messages and the column of their reward."""

    def preprocess(row: Row) -> dict[str, Any]:
        _question(row)
        if column not in row:
            raise RowError(column, f"missing, and a row of the task {name!r} needs it")
        return dict(row)

    return Task(
        name=name,
        columns=("messages", column),
        preprocess=preprocess,
        identity=lambda row: normalised(_question(row)),
        gold=lambda row: None,
        system=SYSTEM_PROMPT,
        reward_columns=(column,),
        verifier=verifier,
        further_rewards=(),
    )


def _question(row: Row) -> str:
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, (list, tuple)) and messages else None
    content = last.get("content") if isinstance(last, Mapping) and last.get("role") == "user" else None
    if not isinstance(content, str) or not content.strip():
        raise RowError("messages", f'expected [..., {{"role": "user", "content": a text}}], got {shown(messages)}')
    return content


_READY = _ready("math", "solution", "external_accuracy"), _ready("code", "tests", "external_code")
_DATASETS = countdown.TASK, gsm8k.TASK, numina_math_tir.TASK, bespoke_stratos.TASK, reasoning_gym.TASK
PARTS = {task.name: task for task in (*_DATASETS, *_READY)}


def part_of(row: Row) -> Task:
    """The task of a row; RowError where the row names none."""
    name = row.get("task")
    if not isinstance(name, str) or name not in PARTS:
        raise RowError("task", f"expected one of {', '.join(PARTS)}, got {shown(name)}")
    return PARTS[name]


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training, as its own task makes it of the columns that are not None."""
    return part_of(row).preprocess({name: value for name, value in row.items() if value is not None})


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
