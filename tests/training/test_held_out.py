"""The held-out rows: read, kept apart from the training's, and graded; what cannot be used is
named.

The trainers' side is tested in tests/e2e/test_held_out.py and test_trl.py.
"""

import json
import time

import pytest

from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.training.held_out import HeldOut
from swift_rlvr.utils.errors import InputError

TASKS = [([1, 2, 3], 6), ([2, 3, 4], 9), ([5, 6, 7], 18)]


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "held_out.jsonl"
    file.write_text(
        "".join(json.dumps({"nums": nums, "target": target}) + "\n" for nums, target in TASKS)
    )
    return f"countdown:{file}"


def held_out(name, said=None, **settings):
    return HeldOut(HeldOutSettings(name, **settings), say=(said if said is not None else []).append)


def test_rows_of_the_training_are_left_out_and_counted_whatever_their_system_prompt(rows):
    said: list[str] = []
    own = held_out(rows, said)
    own.leave_out(
        [([{"role": "system", "content": "Another."}, *to_messages(*TASKS[1])[-1:]], "countdown")]
    )
    assert said == [
        "1 of 3 held-out prompts are in the training data too; they are left out of the evaluation"
    ]
    assert [row["nums"] for row in own.rows] == [TASKS[0][0], TASKS[2][0]]
    assert len(own.conversations) == 2


def test_a_training_with_all_of_the_rows_is_an_error(rows):
    with pytest.raises(
        InputError, match="all 3 prompts of .* are in the training data too"
    ) as error:
        held_out(rows).leave_out((to_messages(*task), "countdown") for task in TASKS)
    assert error.value.field == "held_out_dataset"


@pytest.mark.parametrize(("task", "name"), [("gsm8k", "gsm8k"), (None, "no known task")])
def test_a_training_of_another_task_is_said(rows, task, name):
    said: list[str] = []
    held_out(rows, said).leave_out([([{"role": "user", "content": "How many?"}], task)])
    assert said == [
        f"{rows}: its rows have the task countdown, the training's rows {name}: its success says "
        "little about the training"
    ]


def test_completions_are_graded_by_their_own_row(rows):
    own = held_out(rows, held_out_samples=2, held_out_rows=2)
    right = "<think>x</think>\n<answer>1 + 2 + 3</answer>"
    other = "<think>x</think>\n<answer>2 + 3 + 4</answer>"
    completions = [
        Completion(right, 9, "stop"),
        Completion(other, 9, "stop"),
        Completion("x <answer>2 + 3 + 4</answer>", 20, "length"),
        Completion(right, 9, "stop"),
    ]
    evaluation = own.judge(3, completions, time.perf_counter() - 2, [])
    assert [record.success for record in evaluation.records] == [True, False, True, False]
    assert all(record.step == 3 and len(record.messages) == 2 for record in evaluation.records)
    assert evaluation.figures["eval/success"] == 0.5 and evaluation.figures["eval/strict"] == 0.25
    assert evaluation.figures["eval/pass@2"] == 1.0 and evaluation.figures["eval/cut_off"] == 0.25
    assert evaluation.figures["eval/seconds"] >= 2


def test_completions_that_are_missing_are_no_smaller_evaluation(rows):
    with pytest.raises(RuntimeError, match="expected 12 completions of held-out rows, got 1"):
        held_out(rows).judge(0, [Completion("x", 1, "stop")], time.perf_counter(), [])


def test_columns_are_renamed(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"numbers": [1, 2], "target": 3}\n')
    settings = HeldOutSettings(held_out_dataset=f"countdown:{file}")
    own = HeldOut(settings, system="Think.", columns='{"Numbers": "nums"}')
    assert own.rows[0]["nums"] == [1, 2]


def test_rows_that_cannot_be_used_are_left_out_and_named(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"nums": [1, 2], "target": 3}\n{"nums": "none", "target": 3}\n')
    said: list[str] = []
    settings = HeldOutSettings(held_out_dataset=f"countdown:{file}")
    assert len(HeldOut(settings, system="Think.", say=said.append).rows) == 1
    assert len(said) == 1 and "line 2: column 'nums'" in said[0]

    file.write_text('{"nums": "none", "target": 3}\n')
    with pytest.raises(InputError, match="(?s)held_out_dataset: .*line 1: .*no row is left"):
        held_out(f"countdown:{file}")
    with pytest.raises(
        InputError, match="held_out_dataset: is required: .* SWIFT_RLVR_HELD_OUT_DATASET"
    ):
        held_out(None)
