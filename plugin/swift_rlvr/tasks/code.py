"""Programming questions of one's own: `code:FILE`, and rows of the task `code` in files of `mixed`.

Rows bring their `messages` and the column of their reward, `tests`. What is right is said by the
tests, so there is no gold.
"""

from typing import Any

from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tasks.own import conversation
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: the same with the column `task`."""
    conversation(row.get("messages"))
    if row.get("tests") is None:
        raise RowError("tests", "missing, and a row of the task 'code' needs it")
    return {**row, "task": "code"}


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(conversation(row.get("messages"))[-1]["content"])


def gold(row: Row) -> Gold | None:
    """None: no right answer is known. RowError for a row that cannot be used."""
    conversation(row.get("messages"))
    return None


TASK = Task(
    name="code",
    columns=("messages", "tests"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=SYSTEM_PROMPT,
    system_in_rows=False,
    reward_columns=("tests",),
    verifier="external_code",
    further_rewards=(),
    examples=(
        {
            "messages": [{"role": "user", "content": "Write a function add of two numbers."}],
            "tests": ["assert add(1, 2) == 3"],
        },
        {
            "messages": [{"role": "user", "content": "Write a function that doubles a number."}],
            "tests": ["assert double(2) == 4"],
        },
    ),
)
