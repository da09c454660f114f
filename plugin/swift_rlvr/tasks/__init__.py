"""The datasets by name: those of this package, and those of others, by the entry points
`swift_rlvr.tasks`.
"""

import re
from typing import Any

from swift_rlvr.tasks import (
    bespoke_stratos,
    countdown,
    gsm8k,
    mixed,
    numina_math_tir,
    own,
    reasoning_gym,
)
from swift_rlvr.tasks.task import Gold, RowError, Task, shown
from swift_rlvr.utils.registry import Registry

__all__ = ["TASKS", "Gold", "RowError", "Task", "add_task", "shown", "tasks_of", "verifier_of"]


def _as_task(task: Any) -> Task:
    if not isinstance(task, Task):
        raise ValueError(f"a task is a swift_rlvr.tasks.Task, and {task!r:.80} is none")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", task.name):  # ms-swift splits `--dataset` at : / and #
        raise ValueError(
            f"the name of a task must be of lower-case letters, digits and _, and {task.name!r} is not"
        )
    return task


TASKS: Registry[Task] = Registry("swift_rlvr.tasks", _as_task)


def add_task(task: Task) -> None:
    """Add a task to `TASKS` by its `name`; ValueError for a name that is taken, or one that cannot
    be used.
    """
    TASKS.add(task)


def verifier_of(name: object) -> str | None:
    """The verifier of a task by its name, as rows have it in the column `task`; None for an unknown
    name.
    """
    task = (TASKS.data.get(name) or mixed.PARTS.get(name)) if isinstance(name, str) else None
    return task.verifier if task else None


def tasks_of(verifier: str) -> tuple[str, ...]:
    """The names of the tasks whose verifier a reward is."""
    return tuple(
        name for name, task in {**TASKS.data, **mixed.PARTS}.items() if task.verifier == verifier
    )


# gsm8k_one_shot comes before gsm8k, which has the same ids: in ms-swift a look-up by id finds the
# last.
for task in (
    countdown.TASK,
    gsm8k.ONE_SHOT,
    gsm8k.TASK,
    numina_math_tir.TASK,
    bespoke_stratos.TASK,
    reasoning_gym.TASK,
    own.MATH,
    own.CHOICE,
    own.QA,
    mixed.TASK,
):
    add_task(task)
