"""The Countdown generator: every task solvable, no two alike, splits apart, the same rows
everywhere.
"""

import ast
import operator
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, islice

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commands import ran, refused
from paths import DATASETS
from swift_rlvr.utils.jsonl import read_jsonl
from swift_rlvr.verifiers.countdown import drawing, verify
from swift_rlvr.verifiers.countdown.drawing import draw
from swift_rlvr.verifiers.countdown.generator import make_levels, make_tasks
from swift_rlvr.verifiers.countdown.hashes import split_of
from swift_rlvr.verifiers.countdown.solver import difficulty, solve, targets
from swift_rlvr.verifiers.countdown.task_settings import (
    GAME24,
    LEVELS,
    SPLITS,
    TINY,
    TUTORIAL,
    TV,
    CountdownSettings,
)

SAMPLES = DATASETS / "countdown"
seeds = st.integers(0, 2**64)
splits = st.sampled_from(SPLITS)


def key(row):
    return (*sorted(row["nums"]), row["target"])


def results_of(expression):
    """The value of every operation in an expression, the outermost last, and the operators."""
    symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
    functions = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    values, used = [], set()

    def value(node):
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return Fraction(node.value)
        symbol = symbols[type(node.op)]
        used.add(symbol)
        values.append(functions[symbol](value(node.left), value(node.right)))
        return values[-1]

    value(ast.parse(expression, mode="eval").body)
    return values, used


def check(rows, wanted, split):
    """All that is promised of every row."""
    assert len({key(row) for row in rows}) == len(rows)
    for row in rows:
        assert wanted.count[0] <= len(row["nums"]) <= wanted.count[1]
        assert all(wanted.number[0] <= number <= wanted.number[1] for number in row["nums"])
        assert wanted.target[0] <= row["target"] <= wanted.target[1]
        assert split_of(row["nums"], row["target"]) == split
        solution = solve(row["nums"], row["target"], wanted)
        assert verify(f"<answer>{solution}</answer>", row["nums"], row["target"]).reward == 1.0
        values, used = results_of(solution)
        assert used <= set(wanted.operators)
        assert wanted.negative or min(values) >= 0
        assert wanted.fractions or all(value.denominator == 1 for value in values)
        assert wanted.largest is None or max(map(abs, values)) <= wanted.largest
        if wanted.tiles:
            assert all(
                row["nums"].count(number) <= wanted.tiles.count(number) for number in row["nums"]
            )


@st.composite
def any_settings(draw):
    count_from, number_from, target_from = (
        draw(st.integers(2, 5)),
        draw(st.integers(1, 30)),
        draw(st.integers(1, 200)),
    )
    target_to = target_from + draw(st.integers(0, 300))
    return CountdownSettings(
        count=(count_from, draw(st.integers(count_from, min(5, count_from + 2)))),
        number=(number_from, number_from + draw(st.integers(0, 100))),
        target=(target_from, target_to),
        operators="".join(sorted(draw(st.sets(st.sampled_from("+-*/"), min_size=1)))),
        negative=draw(st.booleans()),
        fractions=draw(st.booleans()),
        largest=draw(st.none() | st.integers(target_to, 2 * target_to)),
    )


@given(any_settings(), splits, seeds)
@example(CountdownSettings((3, 3), (21, 101), (53, 131), "/", False, False, 185), "train", 0)  # few
@example(CountdownSettings((6, 6), (18, 68), (1, 137), "*+/", fractions=False), "train", 2)
@example(
    CountdownSettings((4, 5), (900, 1000), (1, 99)), "test", 2
)  # comes near the limit of 62 bits
@example(CountdownSettings((2, 4), (30, 31), (500, 600), "+-"), "validation", 3)  # none
@example(CountdownSettings((4, 6), (1, 12), (1, 90), "-", False, False, 90), "train", 2**64)
@example(TUTORIAL, "test", 3)
@example(TV, "validation", 3)
@example(GAME24, "train", 3)
@example(TINY, "validation", 3)
@settings(deadline=None, max_examples=8, derandomize=True)
def test_rows_of_any_settings(wanted, split, seed):
    """Whatever the settings, rows are tasks with a solution as they promise, and the same again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "PATIENCE", 4)
        rows = list(islice(make_tasks(wanted, split, seed), 12))
        assert list(make_tasks(wanted, split, seed, len(rows))) == rows
    check(rows, wanted, split)


def test_many_rows_are_all_different_and_their_sizes_take_turns():
    rows = list(make_tasks(TUTORIAL, "train", 7, 60_000))
    assert len(set(map(key, rows))) == 60_000
    assert [len(row["nums"]) for row in rows] == [3, 4] * 30_000


@given(seeds, seeds)
@settings(deadline=None, max_examples=5)
def test_the_splits_share_no_task_whatever_the_seeds(one, other):
    for wanted, rows in ((TINY, None), (TUTORIAL, 3000)):
        parts = [
            {key(row) for row in make_tasks(wanted, split, seed, rows)}
            for split, seed in zip(SPLITS, (one, other, one), strict=True)
        ]
        assert all(parts) and sum(map(len, parts)) == len(set.union(*parts))


@given(seeds)
@settings(deadline=None, max_examples=3)
def test_tiny_holds_every_task_exactly_once(seed):
    made = [key(row) for split in SPLITS for row in make_tasks(TINY, split, seed)]
    multisets = combinations_with_replacement(range(1, 10), 3)
    assert sorted(made) == sorted(
        (*nums, target) for nums in multisets for target in targets(nums, TINY)
    )


def test_the_game_of_24_has_its_1362_tasks():
    """1,362 of the 1,820 hands can be solved, as players of the game have counted:
    https://www.4nums.com
    """
    assert sum(len(list(make_tasks(GAME24, split, 0))) for split in SPLITS) == 1362


def test_shares_of_the_splits():
    nums, target = draw(TUTORIAL, 3, seed=0, chunk=0)
    made = [
        split_of(row, goal)
        for row, goal in zip(nums[:1500].tolist(), target[:1500].tolist(), strict=True)
    ]
    for split, share in zip(SPLITS, (0.62, 0.38 - 1 / 3, 1 / 3), strict=True):
        assert made.count(split) / 1500 == pytest.approx(share, abs=0.04)


def test_the_order_of_the_numbers_tells_nothing():
    """Each place holds the largest number, which sums and differences of three use in another way,
    equally often.
    """
    wanted = CountdownSettings((3, 3), (1, 99), (1, 99), operators="+-")
    alone = np.zeros(3)
    for row in make_tasks(wanted, "train", 0, 3000):
        alone[int(np.argmax(row["nums"]))] += 1
    assert np.abs(alone / 3000 - 1 / 3).max() < 0.04


def test_seeds_give_different_rows():
    first, second = (
        [key(row) for row in make_tasks(TUTORIAL, "train", seed, rows=100)] for seed in (1, 2)
    )
    assert len(set(first) & set(second)) < 3


def test_rows_are_the_same_on_every_machine():
    """Published samples and evaluations rest on these."""
    assert next(make_tasks(TINY, "test", 0)) == {"nums": [3, 4, 3], "target": 36}
    assert next(make_tasks(TUTORIAL, "train", 0)) == {"nums": [21, 63, 51], "target": 93}
    assert next(make_tasks(TV, "train", 0)) == {"nums": [6, 6, 9, 7, 4, 2], "target": 216}


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"with_solutions": (1, 1)}, lambda solutions, depth: solutions == 1),
        ({"with_solutions": (5, 9)}, lambda solutions, depth: 5 <= solutions <= 9),
        (
            {"with_depth": (1, 1), "with_solutions": (2, 3)},
            lambda *measures: measures in [(2, 1), (3, 1)],
        ),
    ],
)
@pytest.mark.parametrize("preset", [TUTORIAL, TINY])
def test_difficulty_can_be_asked_for(preset, change, fits):
    wanted = replace(preset, **change)
    rows = list(islice(make_tasks(wanted, "train", 0), 30))
    check(rows, wanted, "train")
    assert rows and all(fits(*difficulty(row["nums"], row["target"], preset)) for row in rows)


def test_asking_for_more_than_there_is_says_how_many_there_are():
    with pytest.raises(
        IndexError, match="asked for 540 rows, but these settings give only 539 test tasks"
    ):
        list(make_tasks(TINY, "test", seed=0, rows=540))
    # too many sets of numbers to list, and no task in them
    scarce = CountdownSettings((4, 4), (900, 1000), (1, 2), operators="+*")
    with pytest.raises(
        IndexError, match="asked for 9 rows, but these settings give only 0 test tasks"
    ):
        list(make_tasks(scarce, "test", seed=0, rows=9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": (3, 7)}, r"count: must be at least 2 and at most 6, got \(3, 7\)"),
        ({"number": (9, 1)}, r"number: must be a range such as 3-5, got \(9, 1\)"),
        ({"target": (0, 5)}, r"target: must be at least 1"),
        ({"operators": "+^"}, r'operators: must be a selection of "\+-\*/", got \'\+\^\''),
        ({"largest": 20}, r"largest: must be at least the highest target 100, got 20"),
        (
            {"tiles": (1, 2, 3)},
            r"tiles: must be at least 4 numbers within number=\(1, 99\), got \(1, 2, 3\)",
        ),
        ({"with_solutions": (0, 3)}, r"with_solutions: must be at least 1"),
    ],
)
def test_bad_settings_name_the_field_and_the_range(change, message):
    fields = {"count": (3, 4), "number": (1, 99), "target": (10, 100)} | change
    with pytest.raises(ValueError, match=message):
        CountdownSettings(**fields)


@pytest.mark.parametrize("preset", LEVELS)
def test_each_row_is_of_its_level(preset):
    levels, rows = LEVELS[preset], list(make_levels(LEVELS[preset], "test", seed=1, rows=3))
    assert [row["level"] for row in rows] == list(range(len(levels))) * 3
    for row in rows:
        level = levels[row["level"]]
        assert (
            level.count[0] <= len(row["nums"]) <= level.count[1]
            and split_of(row["nums"], row["target"]) == "test"
        )
        measures = difficulty(row["nums"], row["target"], level) if level.by_difficulty else (1, 1)
        for bounds, measure in zip((level.with_solutions, level.with_depth), measures, strict=True):
            low, high = bounds or (1, 10**9)
            assert low <= measure <= high, row


def test_no_task_is_of_two_levels_and_another_seed_gives_others():
    """The third level: of these is the first one again, under another seed."""
    tiny = (LEVELS["tiny"][3], LEVELS["tiny"][4], LEVELS["tiny"][3])
    rows = list(make_levels(tiny, "train", seed=0, rows=100))
    assert len(set(map(key, rows))) == 300
    assert rows == list(make_levels(tiny, "train", seed=0, rows=100))
    assert rows[:9] != list(make_levels(tiny, "train", seed=1, rows=3))


MAKE = ["dataset", "make", "countdown", "--levels"]


@pytest.mark.parametrize("split", SPLITS)
def test_the_committed_levels_are_what_the_command_makes(split, tmp_path):
    committed = SAMPLES / f"tiny_levels_{split}.jsonl"
    counts = Counter(row["level"] for _, row in read_jsonl(committed))
    assert len(counts) == 6 and len(set(counts.values())) == 1
    out = tmp_path / "made.jsonl"
    ran(*MAKE, "--preset", "tiny", "--split", split, "--rows", counts[0], "--out", out)
    assert out.read_text() == committed.read_text()


MISTAKES = {
    "--preset tv --rows 5": "--levels: only the presets tiny and tutorial have levels, got tv",
    "--preset tiny": "--rows: is required",
    "--preset tiny --rows 140": "--rows: is too large: asked for 140 rows of each level, but level 0",
    "--preset tiny --rows 5 --target 1-9": "--levels: sets the difficulty itself",
}


@pytest.mark.parametrize("flags", MISTAKES)
def test_levels_that_cannot_be_made_are_named(flags):
    assert MISTAKES[flags] in refused(*MAKE, "--split", "train", "--out", "x.jsonl", *flags.split())
