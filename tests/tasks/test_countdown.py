"""Rows of Countdown datasets: what is read, what is refused and in which words; the samples; the
registry.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.countdown import preprocess
from swift_rlvr.tasks.row_check import RowCheck
from swift_rlvr.verifiers.countdown.generator import make_tasks
from swift_rlvr.verifiers.countdown.hashes import split_of
from swift_rlvr.verifiers.countdown.solver import solve
from swift_rlvr.verifiers.countdown.task_settings import PRESETS, SPLITS

SAMPLES = Path(__file__).parents[2] / "datasets" / "countdown"
TASK = TASKS["countdown"]


def rows_of(name):
    return [json.loads(line) for line in (SAMPLES / name).read_text().splitlines()]


@pytest.mark.parametrize(
    ("nums", "target"),
    [
        ([44, 19, 35], 98),
        ((44, 19, 35), "98"),
        (np.array([44, 19, 35]), np.int64(98)),
        (np.array([44.0, 19.0, 35.0]), 98.0),
        ("[44, 19, 35]", " 98 "),
        ("44 19 35", "98.0"),
        (["44", "19", "35"], np.float32(98)),
    ],
)
def test_accepted_forms_give_ints_in_their_order(nums, target):
    row = preprocess({"nums": nums, "target": target, "note": "kept"})
    assert (row["nums"], row["target"], row["note"]) == ([44, 19, 35], 98, "kept")
    assert all(type(number) is int for number in [*row["nums"], row["target"]])
    assert row["messages"][0]["content"].startswith(
        "Using the numbers [44, 19, 35], create an equation that equals 98."
    )


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"nums": [1, 2]}, "target"),
        ({"target": 3}, "nums"),
        ({"nums": [], "target": 3}, "nums"),
        ({"nums": [1, 2.5], "target": 3}, "nums"),
        ({"nums": [1, True], "target": 3}, "nums"),
        ({"nums": [1, -2], "target": 3}, "nums"),
        ({"nums": [[1, 2]], "target": 3}, "nums"),
        ({"nums": "1, two", "target": 3}, "nums"),
        ({"nums": "__import__('os')", "target": 3}, "nums"),
        ({"nums": 5, "target": 3}, "nums"),
        ({"nums": [1, 2], "target": 3.5}, "target"),
        ({"nums": [1, 2], "target": float("nan")}, "target"),
        ({"nums": [1, 2], "target": "many"}, "target"),
        ({"nums": [1, 2], "target": True}, "target"),
        ({"nums": [1, 2], "target": None}, "target"),
    ],
)
def test_refused_rows_name_the_column_and_the_accepted_form(row, column):
    with pytest.raises(RowError, match=f"column '{column}': expected .* such as") as error:
        preprocess(row)
    assert error.value.column == column


def test_unusable_rows_are_counted_and_described():
    rows: list[dict] = [
        {"nums": [1, 2], "target": 3},
        {"nums": [1, 2], "target": None},
        {"nums": "?", "target": 3},
    ] * 6
    result = RowCheck()
    usable = [index for index, row in enumerate(rows) if result.prepared(TASK, row, index + 1)]
    assert usable == [0, 3, 6, 9, 12, 15] and result.usable == 6
    lines = result.describe("countdown").splitlines()
    assert lines[0] == "countdown: 12 of 18 rows cannot be used (target: 6, nums: 6)"
    assert lines[1] == "  line 2: column 'target': expected a whole number such as 22, got None"
    assert len(lines) == 12 and lines[-1] == "  ... and 2 more"


@pytest.mark.parametrize("preset", ["tutorial", "tiny"])
@pytest.mark.parametrize("split", SPLITS)
def test_committed_samples_are_what_the_generator_makes_and_their_gold_scores_one(preset, split):
    rows = rows_of(f"{split}.jsonl" if preset == "tutorial" else f"tiny_{split}.jsonl")
    assert rows == list(make_tasks(PRESETS[preset], split, 0, None if preset == "tiny" else 64))
    assert f"| {len(rows):,} |" in (SAMPLES / "README.md").read_text()
    completions = [
        f"<think></think><answer>{solve(row['nums'], row['target'])}</answer>" for row in rows
    ]
    columns = {name: [row[name] for row in rows] for name in TASK.columns}
    assert REWARDS["external_countdown"]()(completions, **columns) == [1.0] * len(rows)
    assert all(split_of(row["nums"], row["target"]) == split for row in rows)
