"""Countdown's levels: each row is one of its level's settings, none comes twice, and the committed files are these."""

from collections import Counter

import numpy as np
import pytest
from commands import ran, refused
from paths import DATASETS
from swift_rlvr.countdown import verify
from swift_rlvr.countdown.counting import difficulty
from swift_rlvr.countdown.levels import LEVELS, level_tasks
from swift_rlvr.countdown.solver import solve
from swift_rlvr.countdown.splits import SPLITS, split_of
from swift_rlvr.jsonl import read_jsonl

SAMPLES = DATASETS / "countdown"
MAKE = ["dataset", "make", "countdown", "--levels", "--split", "train"]


@pytest.mark.parametrize("preset", LEVELS)
def test_each_row_is_of_its_level(preset):
    levels, rows = LEVELS[preset], list(level_tasks(LEVELS[preset], "test", seed=1, rows=3))
    assert [row["level"] for row in rows] == list(range(len(levels))) * 3
    for row in rows:
        settings = levels[row["level"]]
        nums, target = row["nums"], row["target"]
        assert settings.count[0] <= len(nums) <= settings.count[1] and split_of(nums, target) == "test"
        assert all(settings.number[0] <= number <= settings.number[1] for number in nums)
        assert settings.target[0] <= target <= settings.target[1]
        solution = solve(nums, target, settings)
        assert verify(f"<answer>{solution}</answer>", nums, target).reward == 1.0
        if settings.by_difficulty:
            measures = difficulty(np.array([nums]), np.array([target]), settings)
            for name in ("solutions", "depth"):
                low, high = getattr(settings, name) or (1, 10**9)
                assert low <= measures[name][0] <= high, (row, name)


def test_no_task_is_of_two_levels_and_another_seed_gives_others():
    """The third level of these two is the first one again, under another seed."""
    tiny = LEVELS["tiny"]
    rows = list(level_tasks((tiny[3], tiny[5], tiny[3]), "train", seed=0, rows=100))
    assert len({(row["target"], *sorted(row["nums"])) for row in rows}) == 300
    assert rows == list(level_tasks((tiny[3], tiny[5], tiny[3]), "train", seed=0, rows=100))
    assert rows[:9] != list(level_tasks((tiny[3], tiny[5], tiny[3]), "train", seed=1, rows=3))


@pytest.mark.parametrize("split", SPLITS)
def test_the_committed_rows_are_what_the_command_makes(split, tmp_path):
    committed = [row for _, row in read_jsonl(SAMPLES / f"tiny_levels_{split}.jsonl")]
    counts = Counter(row["level"] for row in committed)
    assert len(counts) == 6 and len(set(counts.values())) == 1
    made = tmp_path / "made.jsonl"
    ran("dataset", "make", "countdown", "--preset", "tiny", "--levels", "--split", split, "--rows", counts[0], "--out",
        made)  # fmt: skip
    assert made.read_text() == (SAMPLES / f"tiny_levels_{split}.jsonl").read_text()
    assert f"| {len(committed)} |" in (SAMPLES / "README.md").read_text()


MISTAKES = {
    "--preset tv --rows 5 --out x.jsonl": "--levels are there for the presets tiny and tutorial, not for tv",
    "--preset tiny --out x.jsonl": "--rows is needed with --levels: how many of each level",
    "--preset tiny --rows 5 --out x.parquet": "--out must end in .jsonl, got x.parquet",
    "--preset tiny --rows 140 --out x.jsonl": "--rows is too large: 140 rows of each level wanted, and level 0",
    "--preset tiny --rows 5 --target 1-9 --out x.jsonl": "--levels gives the rows their settings",
}


@pytest.mark.parametrize("flags", MISTAKES)
def test_what_cannot_be_made_is_named(flags):
    assert MISTAKES[flags] in refused(*MAKE, *flags.split())
