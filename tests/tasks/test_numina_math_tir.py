"""NuminaMath-TIR rows: the box of the solution as gold, messages dropped, what is kept for the reward to judge."""

import json
import re
from pathlib import Path

import pytest
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM

SAMPLES = Path(__file__).parents[2] / "datasets" / "numina_math_tir"
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


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"solution": r"\boxed{2}"}, "problem"),
        ({"problem": "", "solution": r"\boxed{2}"}, "problem"),
        ({"problem": 3, "solution": r"\boxed{2}"}, "problem"),
        ({"problem": PROBLEM}, "solution"),
        ({"problem": PROBLEM, "solution": None}, "solution"),
    ],
)
def test_refused_rows_name_the_column(row, column):
    with pytest.raises(RowError, match=f"column '{column}': expected a text such as"):
        TASK.preprocess(row)


def test_samples_have_the_schema_and_box_what_their_program_printed():
    same = 0
    for file in ("train.jsonl", "test.jsonl"):
        for line in (SAMPLES / file).read_text().splitlines():
            row = json.loads(line)
            assert list(row) == ["problem", "solution", "messages"]
            turns = [{"content": row["problem"], "role": "user"}, {"content": row["solution"], "role": "assistant"}]
            assert row["messages"] == turns
            (printed,) = re.findall(r"```output\n(.*)\n```", row["solution"])
            grade = REWARDS["external_accuracy"]().grade(f"<answer>{printed}</answer>", row)
            same += grade.reward == 1.0
    assert same >= 28  # of 31: factors of a root and lists without a comma are printed otherwise
