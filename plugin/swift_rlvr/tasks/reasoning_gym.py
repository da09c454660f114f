"""The tasks of reasoning-gym: `--dataset reasoning_gym:NAME[?SETTING=VALUE][+NAME...][:SPLIT]#N`.

The rows are made, not loaded: `swift_rlvr.verifiers.reasoning_gym.naming` says what can be written,
`rows` how they are drawn. A file of them has one column, `entry`, which holds the question, the
answer and what the scorer reads.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.calculation import calculation
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM, to_messages
from swift_rlvr.tasks.task import Gold, Row, RowError, Task
from swift_rlvr.verifiers.reasoning_gym import naming, rows

SYSTEM_PROMPT = (
    f"{R1_ZERO_SYSTEM} The answer part holds the final answer alone, in the format of the example where the question "
    "has one."
)


@dataclass(frozen=True)
class MadeTask(Task):
    """The task whose rows are made by reasoning-gym."""

    is_made: ClassVar[bool] = True

    def make(self, text: str) -> Iterator[dict[str, Any]]:
        """InputError, at once, for what cannot be made."""
        return rows.rows(*naming.parse(text))


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `entry` and `task`."""
    return {
        "messages": to_messages(_entry(row)["question"], SYSTEM_PROMPT),
        "entry": row["entry"],
        "task": TASK.name,
    }


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return rows.identity(_entry(row)["question"])


def gold(row: Row) -> Gold | None:
    """The right answer of a raw row; RowError for one that cannot be used."""
    answer = _entry(row)["answer"]
    return Gold(answer) if answer else None


def worked(row: Row) -> Gold | None:
    """The right answer after its derivation, where the metadata has one: a text, or an expression
    to calculate.
    """
    right = gold(row)
    metadata = _entry(row)["metadata"]
    if right is None:
        return None
    text = metadata.get("answer_cot")
    if isinstance(text, str):
        return Gold(right.answer, text.partition("\n####")[0])
    steps = calculation(metadata.get("expression"))
    return Gold(right.answer, "\n".join(steps))


def _entry(row: Row) -> dict[str, Any]:
    try:
        entry = rows.read_entry(row.get("entry"))
    except rows.BadEntry as error:
        raise RowError("entry", str(error)) from None
    if not entry["question"].strip():
        raise RowError("entry", "the question is empty")
    return entry


def gold_text(row: Row) -> str:
    """The answer in the JSON of a row; empty if there is none."""
    try:
        return str(json.loads(row["entry"])["answer"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""


TASK = MadeTask(
    name="reasoning_gym",
    columns=("entry",),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    worked=worked,
    gold_text=gold_text,
    system=SYSTEM_PROMPT,
    reward_columns=("entry",),
    verifier="external_reasoning_gym",
    splits=naming.SPLITS,
    examples=(
        {
            "entry": '{"task": "gcd", "settings": {}, "question": "Find the Greatest Common Divisor (GCD) of these '
            'numbers: 297, 24. Give only the GCD as your final answer.", "answer": "3", "metadata": ["dict"]}'
        },
        {
            "entry": '{"task": "lcm", "settings": {}, "question": "Find the Least Common Multiple (LCM) of these '
            'numbers: 4, 6.", "answer": "12", "metadata": ["dict"]}'
        },
    ),
)
