"""The column `added_tests`: passing needs the visible tests and the added ones; what passes only the
former is told apart, counted and shown.
"""

import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from present import all_present
from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.runs.log import RunLog, line
from swift_rlvr.runs.records import Record
from swift_rlvr.success import MEMORISED

VISIBLE = ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]
ADDED = json.dumps(["assert add(2, 2) == 4", "assert add(5, 2) == 7"])
RIGHT = "```python\ndef add(a, b): return a + b\n```"
TABLE = "```python\ndef add(a, b): return 3 if a else 0\n```"
HALF = "```python\ndef add(a, b): return a + b if a < 5 else 0\n```"
WRONG = "```python\ndef add(a, b): return 4\n```"
HANGS = "```python\ndef add(a, b):\n    while a > 1: pass\n    return a + b\n```"


def grades(*completions, added=ADDED, **parameters):
    count = len(completions)
    reward = CodeReward(**parameters)
    return reward.grades(completions, tests=[VISIBLE] * count, added_tests=[added] * count)


def test_passing_needs_both():
    assert grades(RIGHT, TABLE, HALF, WRONG) == [
        Grade(1.0, "all tests passed"),
        Grade(0.0, MEMORISED),
        Grade(0.0, MEMORISED),
        Grade(0.0, "some tests failed"),
    ]
    assert [grade.reward for grade in grades(RIGHT, TABLE, added=None)] == [1.0, 1.0]


def test_whatever_the_added_tests_end_in():
    assert grades(HANGS, timeout=0.5) == [Grade(0.0, MEMORISED)]


def test_partial_counts_all_of_them():
    found = grades(RIGHT, TABLE, HALF, WRONG, partial=True)
    assert [grade.reward for grade in found] == [1.0, 0.5, 0.75, 0.25]
    assert [grade.reason for grade in found][1:3] == [MEMORISED] * 2


def test_added_tests_that_cannot_be_read_are_bad_tests():
    (grade,) = grades(RIGHT, added="assert (")
    assert grade == Grade(None, "bad tests")
    row = {"tests": VISIBLE, "added_tests": "assert ("}
    assert (
        "added_tests: tests are not valid Python"
        in CodeReward().explain(RIGHT, row).rules[0].detail
    )
    assert CodeReward.remarks(row)[0].startswith("tests cannot be used")


def test_the_explanation_lists_both():
    row = {"tests": VISIBLE, "added_tests": ADDED}
    rules = CodeReward().explain(HALF, row).rules[-4:]
    assert [(rule.name, rule.passed) for rule in rules] == [
        ("it passes test 1", True),
        ("it passes test 2", True),
        ("it passes added test 1", True),
        ("it passes added test 2", False),
    ]
    rules = CodeReward().explain(WRONG, row).rules[-2:]
    assert [rule.passed for rule in rules] == [None, None]  # not run


def test_rewards_that_ask_the_verifier_see_both():
    cosine = REWARDS["cosine"](accuracy="external_code", max_len=10_000)
    columns = {"tests": [VISIBLE] * 2, "added_tests": [ADDED] * 2}
    right, table = all_present(cosine([RIGHT, TABLE], response_token_ids=[[1]] * 2, **columns))
    assert right > 0 > table


def records():
    row = {"task": "code", "tests": VISIBLE, "added_tests": ADDED}
    graded = [(RIGHT, "all tests passed"), (TABLE, MEMORISED), (WRONG, "some tests failed")]
    made = []
    for index, (completion, reason) in enumerate(graded):
        reasons = {"external_code": reason}
        record = Record(index=index, completion=completion, rewards={}, reasons=reasons, row=row)
        record.mode, record.step, record.success = "train", 1, index == 0
        made.append(record)
    other = Record(index=3, completion="2", rewards={}, reasons={"external_accuracy": "correct"})
    other.mode, other.step = "train", 1
    return [*made, other]


def test_the_share_is_logged_of_the_completions_whose_rows_have_added_tests(tmp_path):
    figures = RunLog(tmp_path).records(records())
    assert figures["memorised"] == [0.0, 1.0, 0.0]
    assert "memorised" not in RunLog(tmp_path).batch_figures(records()[-1:])


def test_the_line_of_a_step_shows_it():
    row = {"success": 0.25, "memorised": 0.125, "format": 1.0, "global_step/max_steps": "3/9"}
    assert line(row) == "step 3/9 success 0.25 memorised 0.12 format 1.00"


@pytest.mark.parametrize("writes", [True, False], ids=["TRL", "ms-swift"])
def test_both_trainers_log_it(tmp_path, writes):
    pytest.importorskip("torch", reason="needs the extra [train]")
    from swift_rlvr.training.reason_callback import ReasonCallback
    from test_success import trainer_of

    row = {"task": "code", "tests": VISIBLE, "added_tests": ADDED}
    answers = [SimpleNamespace(row=row, text=text) for text in (RIGHT, TABLE, TABLE, WRONG)]
    trainer = trainer_of([CodeReward()], answers)
    arguments = SimpleNamespace(output_dir=tmp_path)
    with RunLog(tmp_path, Console(quiet=True)) as log:
        callback = ReasonCallback(arguments, trainer, log if writes else None)
        state = SimpleNamespace(global_step=1, max_steps=10, is_world_process_zero=True)
        callback.on_train_begin(None, state, None)
        trainer._metrics["train"].clear()
        trainer._generate_and_score_completions()
        callback.on_step_end(arguments, state, SimpleNamespace())
        assert trainer._metrics["train"]["memorised"] == [0.0, 1.0, 1.0, 0.0]
