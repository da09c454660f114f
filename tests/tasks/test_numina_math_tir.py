"""NuminaMath-TIR rows: the box of the solution as gold, messages dropped, what is kept for the reward to judge."""

import pytest
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
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
        (r"A proof: \boxed{} as claimed.", ""),  # an empty box is none
        ("It is 5.", ""),  # no box
        (r"It is \boxed{5", ""),  # never closed
    ],
)
def test_gold(solution, gold):
    row = TASK.preprocess({"problem": PROBLEM, "solution": solution, "messages": [{"role": "user", "content": "?"}]})
    assert row["solution"] == gold


def test_messages_of_the_dataset_are_dropped():
    dataset_messages = [{"content": "not this", "role": "user"}, {"content": "nor this", "role": "assistant"}]
    row = TASK.preprocess({"problem": PROBLEM, "solution": r"\boxed{2}", "messages": dataset_messages})
    assert row == {
        "messages": [{"role": "system", "content": R1_ZERO_SYSTEM}, {"role": "user", "content": PROBLEM}],
        "solution": r"\boxed{2}",
        "task": "numina_math_tir",
    }


def test_a_solution_without_an_answer_is_kept_and_the_reward_says_that_it_cannot_grade_it():
    row = TASK.preprocess({"problem": PROBLEM, "solution": "Left to the reader."})
    assert TASK.gold({"problem": PROBLEM, "solution": "Left to the reader."}) is None
    accuracy = REWARDS["external_accuracy"]
    assert accuracy()(["<answer>2</answer>"], solution=[row["solution"]]) == [None]
    assert accuracy(neutral_gold=True)(["<answer>2</answer>"], solution=[row["solution"]]) == [0.5]  # as in the recipe
