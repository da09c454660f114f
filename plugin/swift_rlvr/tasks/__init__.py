"""The datasets that this package knows, by name. A new one: copy countdown.py and add it at the end."""

from swift_rlvr.tasks import bespoke_stratos, countdown, gsm8k, mixed, numina_math_tir
from swift_rlvr.tasks.task import RowError, Task

__all__ = ["TASKS", "RowError", "Task", "add_task"]

TASKS: dict[str, Task] = {}


def add_task(task: Task) -> None:
    """Enter `task` in TASKS; a name that is taken raises ValueError."""
    if task.name in TASKS:
        raise ValueError(f"a task named {task.name!r} exists; choose another name (taken: {', '.join(TASKS)})")
    TASKS[task.name] = task


# gsm8k_one_shot comes before gsm8k, which has the same ids: in ms-swift a look-up by id finds the last.
for task in (countdown.TASK, gsm8k.ONE_SHOT, gsm8k.TASK, numina_math_tir.TASK, bespoke_stratos.TASK, mixed.TASK):
    add_task(task)
