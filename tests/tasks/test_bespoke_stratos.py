"""Bespoke-Stratos rows: the question, the box of the last turn, and what is left out."""

import pytest

from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM

TASK = TASKS["bespoke_stratos"]


def turn(who, output):
    return {"from": who, "value": output}


def answered(output, *, asks="user", answers="assistant"):
    return {"system": "Think.", "conversations": [turn(asks, "1 + 1?"), turn(answers, output)]}


TRACE = (
    "<|begin_of_thought|>\n\nPerhaps \\boxed{3}.\n\n<|end_of_thought|>\n\n"
    "<|begin_of_solution|>\n\nIt is \\boxed{2}.\n\n<|end_of_solution|>"
)


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        (answered(TRACE), r"\boxed{2}"),
        (answered(r"It is \boxed{2}."), r"\boxed{2}"),  # no sections: the whole turn
        (answered(r"First \boxed{1}, then \boxed{\frac{1}{2}}"), r"\boxed{\frac{1}{2}}"),
        (answered(r"\boxed{1} or \boxed{\frac{1}{2}}"), r"\boxed{1 or \frac{1}{2}}"),
        (answered(TRACE + r" and \boxed{9} after the end"), r"\boxed{2}"),
        (answered(TRACE, asks="human", answers="gpt"), r"\boxed{2}"),
        (
            {"conversations": answered("no")["conversations"] + answered(TRACE)["conversations"]},
            r"\boxed{2}",
        ),
    ],
)
def test_the_gold_is_the_last_box_of_the_last_turn(row, gold):
    assert TASK.preprocess(row) == {
        "messages": [
            {"role": "system", "content": R1_ZERO_SYSTEM},
            {"role": "user", "content": "1 + 1?"},
        ],
        "solution": gold,
        "task": "bespoke_stratos",
    }


@pytest.mark.parametrize(
    "output",
    [
        "It is 2.",
        r"It is \boxed{}.",
        "<|begin_of_thought|>\n\n\\boxed{3}\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\nNo.\n\n<|end_of_solution|>",
    ],
)
def test_without_a_box_in_the_solution_a_row_is_left_out_under_a_label_of_its_own(output):
    with pytest.raises(
        RowError, match=r"expected \\boxed\{\.\.\.\} in the last turn, which ends"
    ) as error:
        TASK.preprocess(answered(output))
    assert (error.value.column, error.value.label) == ("conversations", "no box")


@pytest.mark.parametrize(
    ("conversations", "problem"),
    [
        (None, "expected a list of two turns or more, got None"),
        ("text", "expected a list of two turns or more, got 'text'"),
        ([turn("user", "?")], "expected a list of two turns or more"),
        ([turn("assistant", "?"), turn("user", "!")], 'turn 1: expected {"from": "user"'),
        ([turn("user", "?"), turn("user", "!")], 'turn 2: expected {"from": "assistant"'),
        ([turn("user", "?"), turn("assistant", None)], "turn 2"),
        ([turn("user", "?"), "!"], "turn 2"),
        (
            [turn("user", "?"), turn("assistant", "!"), turn("user", "?")],
            "expected the assistant to have the last turn",
        ),
    ],
)
def test_conversations_of_another_form_are_refused(conversations, problem):
    with pytest.raises(RowError) as error:
        TASK.preprocess({"conversations": conversations})
    assert problem in str(error.value) and error.value.label == "conversations"
