"""The datasets by name: those of this package, and those of others, by the entry points
`swift_rlvr.tasks`.
"""

from swift_rlvr.tasks import (
    bespoke_stratos,
    boxes,
    choice,
    code,
    countdown,
    gsm8k,
    instructions,
    json_schema,
    mixed,
    numina_math_tir,
    own,
    reasoning_gym,
    sql,
    tool_calls,
)
from swift_rlvr.tasks.task import (
    TASKS,
    Gold,
    RowError,
    Task,
    add_task,
    shown,
    tasks_of,
    unread_columns,
    unused_columns,
    verifier_of,
)

__all__ = [
    "TASKS",
    "Gold",
    "RowError",
    "Task",
    "add_task",
    "shown",
    "tasks_of",
    "unread_columns",
    "unused_columns",
    "verifier_of",
]

# gsm8k_one_shot comes before gsm8k, which has the same ids: in ms-swift a look-up by id finds the
# last.
_TASKS = (
    countdown.TASK,
    gsm8k.ONE_SHOT,
    gsm8k.TASK,
    numina_math_tir.TASK,
    bespoke_stratos.TASK,
    reasoning_gym.TASK,
    own.MATH,
    choice.TASK,
    own.QA,
    code.TASK,
    sql.TASK,
    instructions.TASK,
    json_schema.TASK,
    tool_calls.TASK,
    boxes.TASK,
    mixed.TASK,
)
for _task in _TASKS:
    add_task(_task)
