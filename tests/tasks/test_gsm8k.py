"""GSM8K rows: what becomes of question and answer, what is refused, the one-shot variant, the
sample's arithmetic.
"""

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.gsm8k import EXAMPLE, SYSTEM_PROMPT, read_answer

TASK, ONE_SHOT = TASKS["gsm8k"], TASKS["gsm8k_one_shot"]
QUESTION = "How many?"


@pytest.mark.parametrize(
    ("answer", "reasoning", "gold"),
    [
        ("1+1 = <<1+1=2>>2.\n#### 2", "1+1 = 2.", "2"),
        (
            "It is 1,000+200=<<1000+200=1200>>1,200\n#### 1,200",
            "It is 1,000+200=1,200",
            "1200",
        ),  # commas in the gold only
        ("#### $1,234,567", "", "1234567"),
        ("So\n#### -5 ", "So", "-5"),
        ("So\n####2.50", "So", "2.50"),
        ("#### 3\nno, wait\n#### 4", "#### 3\nno, wait", "4"),  # the last one counts
        (
            "a << b and c >> d\n#### 1",
            "a << b and c >> d",
            "1",
        ),  # no equation in it: no calculator's mark
    ],
)
def test_answers_that_are_read(answer, reasoning, gold):
    assert read_answer(answer) == (reasoning, gold)


@pytest.mark.parametrize(
    "answer", ["2", "####", "#### two", "#### 1/2", "#### 12 eggs", "#### 1 2"]
)
def test_an_answer_without_a_number_after_the_marks_is_refused(answer):
    with pytest.raises(
        RowError, match="column 'answer': expected a number after ####, got"
    ) as error:
        TASK.preprocess({"question": QUESTION, "answer": answer})
    assert error.value.label == "no number after ####"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"answer": "#### 2"}, "question"),
        ({"question": " ", "answer": "#### 2"}, "question"),
        ({"question": ["?"], "answer": "#### 2"}, "question"),
        ({"question": QUESTION}, "answer"),
        ({"question": QUESTION, "answer": None}, "answer"),
        ({"question": QUESTION, "answer": 2}, "answer"),
    ],
)
def test_refused_rows_name_the_column(row, column):
    with pytest.raises(RowError, match=f"column '{column}': expected a text such as") as error:
        TASK.preprocess(row)
    assert (error.value.column, error.value.label) == (column, column)


def test_preprocessed_row():
    row = TASK.preprocess({"question": f" {QUESTION}\n", "answer": "#### 2", "id": 7})
    assert row == {
        "messages": [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": QUESTION},
        ],
        "solution": "2",
        "task": "gsm8k",
    }


def test_one_shot_puts_a_worked_example_in_the_asked_for_form_before_the_question():
    raw = {"question": QUESTION, "answer": "#### 2"}
    plain, shot = TASK.preprocess(raw), ONE_SHOT.preprocess(raw)
    assert [message["role"] for message in shot["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert [shot["messages"][0], shot["messages"][-1]] == plain["messages"]
    assert (shot["solution"], shot["task"]) == (
        "2",
        "gsm8k",
    )  # the rewards know it by the same name
    for name, columns in (
        ("external_format_strict", {}),
        ("external_accuracy", {"solution": ["22"]}),
    ):
        assert REWARDS[name]()([EXAMPLE[1]], **columns) == [1.0]
