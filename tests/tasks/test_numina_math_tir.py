"""NuminaMath-TIR rows: the box of the solution as gold, messages dropped, rows without one."""

import pytest

from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM

TASK = TASKS["numina_math_tir"]
PROBLEM = "What is $1 + 1$?"


@pytest.mark.parametrize(
    ("solution", "gold"),
    [
        (r"It is $\boxed{2}$.", r"\boxed{2}"),
        (r"First \boxed{1}, then \boxed{\frac{1}{2}}.", r"\boxed{\frac{1}{2}}"),  # the last box
        (r"\boxed{ \text{(B) } 7 }", r"\boxed{\text{(B) } 7}"),
        ("```output\n20\n```\nThe answer is \\boxed{20}", r"\boxed{20}"),
        (r"\fbox{5}", r"\boxed{5}"),
    ],
)
def test_gold(solution, gold):
    row = TASK.preprocess(
        {"problem": PROBLEM, "solution": solution, "messages": [{"role": "user", "content": "?"}]}
    )
    assert row["solution"] == gold


def test_messages_of_the_dataset_are_dropped():
    dataset_messages = [
        {"content": "not this", "role": "user"},
        {"content": "nor this", "role": "assistant"},
    ]
    row = TASK.preprocess(
        {"problem": PROBLEM, "solution": r"\boxed{2}", "messages": dataset_messages}
    )
    assert row == {
        "messages": [
            {"role": "system", "content": R1_ZERO_SYSTEM},
            {"role": "user", "content": PROBLEM},
        ],
        "solution": r"\boxed{2}",
        "task": "numina_math_tir",
    }


@pytest.mark.parametrize(
    "solution",
    [r"A proof: \boxed{} as claimed.", "It is 5.", r"It is \boxed{5", "Left to the reader."],
)
def test_a_solution_without_a_box_is_refused(solution):
    for read in (TASK.preprocess, TASK.gold):
        with pytest.raises(RowError, match="expected .*boxed") as error:
            read({"problem": PROBLEM, "solution": solution})
        assert error.value.label == "no box"
