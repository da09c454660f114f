r"""Rows of several tasks in one file: the column `task` says whose each row is, and the other columns are that task's.

    {"task": "countdown", "nums": [3, 5, 7], "target": 22}
    {"task": "gsm8k", "question": "A box holds 6 eggs. How many are in 4 boxes?", "answer": "4*6 = 24\n#### 24"}
    {"task": "code", "messages": [{"role": "user", "content": "Write ..."}], "tests": ["assert add(1, 2) == 3"]}

Each row gets the messages and columns that its own task gives it. Rows of `math` and `code`, for which there is no
dataset here, bring `messages` and the column of their reward, `solution` or `tests`, themselves.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --dataset mixed:tasks.jsonl \
        --reward_funcs external_countdown external_accuracy external_format ...

Each reward grades the rows of its own tasks (its parameter `tasks`) and says None to the others. The same comes about
with several names in one `--dataset`, such as `countdown:a.jsonl gsm8k:b.jsonl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.tasks import bespoke_stratos, countdown, gsm8k, numina_math_tir
from swift_rlvr.tasks import math_prompts as mathematics

from .countdown import SYSTEM_PROMPT
from .task import Reference, RowError, Task, normalised, shown

PARTS = {part.TASK.name: part.TASK for part in (countdown, gsm8k, numina_math_tir, bespoke_stratos)}
READY = {"math": "solution", "code": "tests"}
"""Tasks whose rows bring their messages, with the column of their reward."""


def part_of(row: Mapping[str, Any]) -> Task | str:
    """The task of a row, or its name where it is one of READY; RowError where it has none.

    >>> part_of({"task": "gsm8k"}).name, part_of({"task": "code"})
    ('gsm8k', 'code')
    """
    name = row.get("task")
    if isinstance(name, str) and name in PARTS:
        return PARTS[name]
    if isinstance(name, str) and name in READY:
        return name
    raise RowError("task", f"expected one of {', '.join([*PARTS, *READY])}, got {shown(name)}")


def preprocess(row: Mapping[str, Any]) -> dict[str, Any]:
    """Raw row -> row for training, as its own task makes it.

    >>> preprocess({"task": "countdown", "nums": [3, 5, 7], "target": 22, "question": None})["target"]
    22
    """
    part = part_of(row)
    row = {name: value for name, value in row.items() if value is not None}  # columns of the other tasks are None
    if isinstance(part, Task):
        return part.preprocess(row)
    _question(row)
    if READY[part] not in row:
        raise RowError(READY[part], f"missing, and a row of the task {part!r} needs it")
    return row


def identity(row: Mapping[str, Any]) -> str:
    part = part_of(row)
    return f"{row['task']} {part.identity(row) if isinstance(part, Task) else normalised(_question(row))}"


def reference(row: Mapping[str, Any]) -> Reference | None:
    """As its own task has it; None for a row that brings its messages."""
    part = part_of(row)
    return part.reference(row) if isinstance(part, Task) else None


def grade(completion: str, row: Mapping[str, Any]) -> tuple[float | None, str]:
    """(reward, reason) of one completion for a preprocessed row, as its own task grades it."""
    part = part_of(row)
    if isinstance(part, Task):
        return part.grade(completion, row)
    if part == "math":
        return mathematics.grade(completion, row)
    reward, reason = CodeReward().grade(completion, row["tests"], row.get("entry_point"))
    return reward, reason


def _question(row: Mapping[str, Any]) -> str:
    """The last turn of a row that brings its messages."""
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, (list, tuple)) and messages else None
    content = last.get("content") if isinstance(last, Mapping) and last.get("role") == "user" else None
    if not isinstance(content, str) or not content.strip():
        expected = '[..., {"role": "user", "content": a text}]'
        raise RowError("messages", f"expected {expected}, got {shown(messages)}")
    return content


TASK = Task(
    name="mixed",
    columns=("task",),
    preprocess=preprocess,
    grade=grade,
    system=SYSTEM_PROMPT,
    ms_dataset_id=None,
    hf_dataset_id=None,
    prompt="\n".join(part.prompt for part in PARTS.values()),
    identity=identity,
    reference=reference,
    reward_columns=(),
    rewards=(),
    part=part_of,
)
