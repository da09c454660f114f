r"""NuminaMath-TIR: competition problems with solutions that reason, run Python, and box their
answer.

Rows have `problem`, `solution` and `messages`, as in AI-MO/NuminaMath-TIR. The prompt is the
R1-Zero system prompt and the problem. The column `solution` for `external_accuracy` is the last box
of the solution, or the last ones if they stand together, as in "$\boxed{1}$ and $\boxed{-2}$".
Nothing else in a solution, such as a number in a proof, is the
answer: rows without a box are counted as "no box", and loading stops where they are more than half.
For files of one's own with other answers there is `math:FILE`.
"""

from typing import Any

from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM, boxed_gold, to_messages
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown, text_of


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution` and `task`."""
    messages = to_messages(_problem(row), R1_ZERO_SYSTEM)
    return {"messages": messages, "solution": gold(row).answer, "task": "numina_math_tir"}


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(_problem(row))


def gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    solution = text_of(row, "solution", r"It is \boxed{2}.")
    answer = boxed_gold(solution)
    if answer is None:
        problem = rf"expected \boxed{{...}} in the solution, which ends {shown(solution[-55:])}"
        raise RowError("solution", problem, "no box")
    return Gold(answer, solution, solution)


def _problem(row: Row) -> str:
    return text_of(row, "problem", "What is 1 + 1?")


TASK = Task(
    name="numina_math_tir",
    columns=("problem", "solution"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=R1_ZERO_SYSTEM,
    ms_dataset_id="AI-MO/NuminaMath-TIR",
    hf_dataset_id="AI-MO/NuminaMath-TIR",
    splits=("train", "test"),
    max_unusable=0.5,
    examples=(
        {
            "problem": "How many integers from 1 to 60 are divisible by 4 or by 6?",
            "solution": r"It is $\boxed{20}$.",
        },
        {
            "problem": "Solve $x^2 = 2$.",
            "solution": r"So $\boxed{\sqrt{2}}$ and $\boxed{-\sqrt{2}}$.",
        },
    ),
)
