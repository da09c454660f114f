"""The Countdown generator: every task solvable, no two alike, splits apart, the same rows on any number of workers."""

import ast
import operator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, islice

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paths import DATASETS
from swift_rlvr.countdown import drawing, generator, verify
from swift_rlvr.countdown.arrays import in_split, mix_arrays, task_keys
from swift_rlvr.countdown.counting import difficulty
from swift_rlvr.countdown.drawing import draw_chunk
from swift_rlvr.countdown.generator import Columns, batches, holds, make_task, make_tasks, rows_of
from swift_rlvr.countdown.settings import GAME24, OPERATORS, PRESETS, TINY, TUTORIAL, TV, CountdownSettings
from swift_rlvr.countdown.solver import solve
from swift_rlvr.countdown.splits import SPLITS, mix, split_of
from swift_rlvr.jsonl import read_jsonl

TINY_TEST = DATASETS / "countdown" / "tiny_test.jsonl"
WITH_SOLUTION = Columns(solution=True)
LARGE = CountdownSettings(count=(2, 8), number=(1, 1000), target=(1, 10**6))
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
            return Fraction(node.value)
        symbol = symbols[type(node.op)]
        used.add(symbol)
        values.append(functions[symbol](value(node.left), value(node.right)))
        return values[-1]

    value(ast.parse(expression, mode="eval").body)
    return values, used


def targets(nums, wanted):
    """Every target within the settings' range that joining two numbers again and again ends in, by brute force."""

    def values(parts):
        if len(parts) == 1:
            yield parts[0]
        for i, j in combinations(range(len(parts)), 2):
            a, b = parts[i], parts[j]
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            for value in {a + b, a - b, b - a, a * b, a / b if b else None, b / a if a else None} - {None}:
                if (
                    (wanted.negative or value >= 0)
                    and (wanted.fractions or value.denominator == 1)
                    and (wanted.largest is None or abs(value) <= wanted.largest)
                ):
                    yield from values([*rest, value])

    low, high = wanted.target
    reached = set(values([Fraction(number) for number in nums]))
    return sorted(int(value) for value in reached if value.denominator == 1 and low <= value <= high)


def check(rows, wanted, split):
    """All that is promised of every row, which has to have its solution."""
    assert len({key(row) for row in rows}) == len(rows)
    for row in rows:
        assert wanted.count[0] <= len(row["nums"]) <= wanted.count[1]
        assert all(wanted.number[0] <= number <= wanted.number[1] for number in row["nums"])
        assert wanted.target[0] <= row["target"] <= wanted.target[1]
        assert split_of(row["nums"], row["target"]) == split
        assert verify(f"<answer>{row['solution']}</answer>", row["nums"], row["target"]).reward == 1.0
        values, used = results_of(row["solution"])
        assert used <= set(wanted.operators)
        assert wanted.negative or min(values) >= 0
        assert wanted.fractions or all(value.denominator == 1 for value in values)
        assert wanted.largest is None or max(map(abs, values)) <= wanted.largest


@st.composite
def any_settings(draw):
    count_from, number_from, target_from = draw(st.integers(2, 6)), draw(st.integers(1, 30)), draw(st.integers(1, 200))
    target_to = target_from + draw(st.integers(0, 300))
    return CountdownSettings(
        count=(count_from, draw(st.integers(count_from, min(8, count_from + 2)))),
        number=(number_from, number_from + draw(st.integers(0, 100))),
        target=(target_from, target_to),
        operators="".join(sorted(draw(st.sets(st.sampled_from(OPERATORS), min_size=1)))),
        negative=draw(st.booleans()),
        fractions=draw(st.booleans()),
        largest=draw(st.none() | st.integers(target_to, 2 * target_to)),
    )


@contextmanager
def small_chunks():
    """Chunks of an eighth of the usual size, which hold the same rows; drawing gives up and listing stops sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "CANDIDATES", drawing.CANDIDATES // 8)
        patch.setattr(drawing, "_LEAST", drawing._LEAST // 8)
        patch.setattr(generator, "PATIENCE", generator.PATIENCE // 8)
        patch.setattr(generator, "FEW", generator.FEW // 25)
        generator._are_few.cache_clear()
        yield
    generator._are_few.cache_clear()


@given(any_settings(), splits, seeds)
@example(CountdownSettings((3, 3), (21, 101), (53, 131), "/", False, False, 185), "train", 0)  # listed, and few
@example(CountdownSettings((5, 6), (14, 92), (35, 235), "+/"), "test", 1)  # drawn, one candidate in a thousand
@example(
    CountdownSettings((6, 7), (18, 68), (1, 137), "*+/", fractions=False), "train", 2
)  # the numbers exceed 62 bits
@example(CountdownSettings((2, 4), (30, 31), (500, 600), "+-"), "validation", 3)  # none
@example(CountdownSettings((4, 6), (1, 12), (1, 90), "-", False, False, 90), "train", 2**64)  # no "+" to turn signs
@settings(deadline=None, max_examples=15, derandomize=True)
def test_rows_of_any_settings(wanted, split, seed):
    """Whatever the settings, rows are tasks with a solution as they promise, and do not depend on where one begins.

    Covers combinations of count, ranges, operators and restrictions, listed and drawn, each of which takes its own way
    through drawing, solving and packing: most of the rules that a preset does not use. 25 rows of small chunks, so that
    several chunks contribute where tasks are rare; rows of many chunks are covered below, for a few settings.
    """
    with small_chunks():
        rows = list(islice(make_tasks(wanted, split, seed, None, columns=WITH_SOLUTION), 25))
        plain = [{"nums": row["nums"], "target": row["target"]} for row in rows]
        assert list(make_tasks(wanted, split, seed, len(rows))) == plain
        skipped = batches(wanted, split, seed, len(rows), skip=len(rows) // 2)
        assert [row for chunk in skipped for row in rows_of(chunk)] == plain[len(rows) // 2 :]
    check(rows, wanted, split)


def test_the_size_of_chunks_does_not_change_the_rows():
    for wanted in (TUTORIAL, TV):
        rows = list(make_tasks(wanted, "train", 9, 3000, columns=WITH_SOLUTION))
        with small_chunks():
            assert list(make_tasks(wanted, "train", 9, 3000, columns=WITH_SOLUTION)) == rows


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("split", SPLITS)
def test_rows_of_the_presets(preset, split):
    wanted = PRESETS[preset]
    rows = list(islice(make_tasks(wanted, split, 3, None, columns=WITH_SOLUTION), 400))
    assert len(rows) == min(400, holds(wanted, split) or 400)
    check(rows, wanted, split)
    for row in rows[:20]:
        assert solve(row["nums"], row["target"], wanted) is not None
    if wanted.tiles:
        assert all(row["nums"].count(n) <= wanted.tiles.count(n) for row in rows for n in row["nums"])


@pytest.mark.parametrize(("wanted", "rows"), [(TUTORIAL, 40_000), (TV, 40_000), (LARGE, 10_000)])
def test_many_rows_are_all_different(wanted, rows):
    """Of several chunks; those of LARGE are small, so that rows of different chunks meet there too."""
    with small_chunks() if wanted is LARGE else nullcontext():
        made = [key(row) for row in make_tasks(wanted, "train", 7, rows)]
    assert len(set(made)) == len(made) == rows


@pytest.mark.parametrize(
    ("wanted", "columns"),
    [
        (TUTORIAL, Columns(solution=True, difficulty=True)),
        (TINY, Columns(solutions=True)),
        (replace(TUTORIAL, solutions=(1, 2)), WITH_SOLUTION),
        (CountdownSettings((3, 5), (1, 30), (1, 50), "+-*", fractions=False), WITH_SOLUTION),
    ],
)
def test_the_rows_are_the_same_on_any_number_of_workers(wanted, columns):
    rows = min(6000, holds(wanted, "train") or 6000)
    with small_chunks():
        alone, three = (list(make_tasks(wanted, "train", 5, rows, workers=n, columns=columns)) for n in (1, 3))
    assert len(alone) == rows and alone == three


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
@settings(deadline=None, max_examples=4)
def test_tiny_holds_every_task_exactly_once(seed):
    made = [key(row) for split in SPLITS for row in make_tasks(TINY, split, seed, rows=None)]
    multisets = combinations_with_replacement(range(1, 10), 3)
    assert sorted(made) == sorted((*nums, target) for nums in multisets for target in targets(nums, TINY))


def test_the_tiny_models_held_out_tasks_stay_held_out():
    """The committed model was trained on what is train and validation here, and never on these."""
    committed = {key(row) for _, row in read_jsonl(TINY_TEST)}
    assert len(committed) == 539
    assert {key(row) for row in make_tasks(TINY, "test", 0, None)} == committed


def test_the_game_of_24_has_its_1362_tasks():
    """1,362 of the 1,820 hands can be solved, as players of the game have counted: https://www.4nums.com"""
    assert sum(holds(GAME24, split) for split in SPLITS) == 1362


def test_shares_of_the_splits_and_of_the_sizes():
    whole = draw_chunk(TUTORIAL, None, 0, 0)
    assert 0.4 < (whole.size == 3).mean() < 0.6
    for split, share in zip(SPLITS, (0.62, 0.38 - 1 / 3, 1 / 3), strict=True):
        assert in_split(whole.keys[whole.size == 4], split).mean() == pytest.approx(share, abs=0.03)


def test_the_order_of_the_numbers_tells_nothing():
    rows = list(make_tasks(TUTORIAL, "train", 0, 4000, columns=WITH_SOLUTION))
    for size, orders in ((3, 6), (4, 24)):
        mine = [row for row in rows if len(row["nums"]) == size]
        assert sum(row["nums"] == sorted(row["nums"]) for row in mine) < 2 * len(mine) / orders
        written = [[int(part) for part in row["solution"].replace("(", " ").replace(")", " ").split() if part.isdigit()]
                   for row in mine]  # fmt: skip
        in_order = sum(row["nums"] == nums for row, nums in zip(mine, written, strict=True))
        assert in_order < 2 * len(mine) / orders


def test_seeds_give_different_rows():
    first, second = ([key(row) for row in make_tasks(TUTORIAL, "train", seed, rows=100)] for seed in (1, 2))
    assert len(set(first) & set(second)) < 3


@given(seeds, splits, st.lists(st.integers(0, 6000), min_size=1, max_size=10))
@settings(deadline=None, max_examples=5)
def test_a_row_does_not_depend_on_which_rows_were_made_before(seed, split, indexes):
    rows = list(make_tasks(TUTORIAL, split, seed, max(indexes) + 1))
    assert [make_task(TUTORIAL, split, seed, index) for index in indexes] == [rows[index] for index in indexes]


def test_rows_are_the_same_on_every_machine_and_in_every_version():
    """Published samples and evaluations rest on these; with a change here, _STREAM of export.py is raised."""
    assert make_task(TINY, "test", 0, 0) == {"nums": [3, 4, 3], "target": 36}
    assert make_task(TUTORIAL, "train", 0, 1) == {"nums": [57, 1, 27, 28], "target": 57}
    assert make_task(TV, "train", 0, 0) == {"nums": [9, 8, 75, 1, 10, 25], "target": 668}


@pytest.mark.parametrize(
    ("change", "measure"),
    [
        ({"solutions": (1, 1)}, lambda found, i: found["solutions"][i] == 1),
        ({"solutions": (5, 9)}, lambda found, i: 5 <= found["solutions"][i] <= 9),
        ({"needs": (3, 4)}, lambda found, i: len(found["operators"][i]) >= 3),
        (
            {"depth": (1, 1), "needs": (2, 2)},
            lambda found, i: (found["depth"][i], len(found["operators"][i])) == (1, 2),
        ),
    ],
)
@pytest.mark.parametrize("preset", [TUTORIAL, TINY])
def test_difficulty_can_be_asked_for(preset, change, measure):
    wanted = replace(preset, **change)
    rows = list(islice(make_tasks(wanted, "train", 0, None, columns=WITH_SOLUTION), 100))
    check(rows, wanted, "train")
    for row in rows:
        assert measure(difficulty(np.array([row["nums"]]), np.array([row["target"]]), preset), 0)
    assert rows or preset is TINY  # no tiny task needs three operators


def test_asking_for_more_than_there_is_says_how_many_there_are():
    held = holds(TINY, "test")
    with pytest.raises(IndexError, match=f"{held + 1} rows wanted, and these settings hold {held} test tasks"):
        list(make_tasks(TINY, "test", seed=0, rows=held + 1))
    # too many sets of numbers to list, and hardly a task in them
    scarce = CountdownSettings((4, 4), (900, 1000), (1, 2), operators="+*")
    with pytest.raises(IndexError, match="9 rows wanted, and these settings hold few more than the 0 test tasks"):
        list(make_tasks(scarce, "test", seed=0, rows=9))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_the_hash_of_arrays_is_the_hash_of_numbers(values):
    assert mix_arrays(*(np.array([value], np.uint64) for value in values)).tolist() == [mix(*values)]


@pytest.mark.parametrize("wanted", [TUTORIAL, TV, TINY, LARGE])
def test_different_tasks_have_different_keys(wanted):
    rows = list(make_tasks(wanted, "train", 0, 1000))
    sizes = range(wanted.count[0], wanted.count[1] + 1)
    keys = []
    for size in sizes:
        mine = [row for row in rows if len(row["nums"]) == size]
        nums = np.array([row["nums"] for row in mine]).reshape(-1, size)
        keys += task_keys(nums, np.array([row["target"] for row in mine], np.int64)).tolist()
    assert len(set(keys)) == len(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": (3, 9)}, r"count must be .* within 2\.\.8, got \(3, 9\)"),
        ({"number": (9, 1)}, r"number must be .* got \(9, 1\)"),
        ({"target": (0, 5)}, r"target must be"),
        ({"operators": "+^"}, r'operators must be a selection of "\+-\*/", got \'\+\^\''),
        ({"largest": 20}, r"largest must be at least the highest target 100, got 20"),
        ({"tiles": (1, 2, 3)}, r"tiles must be 4 to 64 numbers within number=\(1, 99\), got \(1, 2, 3\)"),
        ({"solutions": (0, 3)}, r"solutions must be .* within 1\.\."),
        ({"depth": (1, 2), "count": (3, 7)}, r"solutions, needs and depth are known for 6 numbers at most"),
    ],
)
def test_bad_settings_name_the_field_and_the_range(change, message):
    fields = {"count": (3, 4), "number": (1, 99), "target": (10, 100)} | change
    with pytest.raises(ValueError, match=message):
        CountdownSettings(**fields)


def test_bad_split_index_and_workers():
    with pytest.raises(ValueError, match="split must be one of train, validation, test, got 'dev'"):
        make_task(TINY, "dev", 0, 0)
    with pytest.raises(IndexError, match="at least 0"):
        make_task(TINY, "test", 0, -1)
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        list(make_tasks(TINY, "test", 0, 1, workers=0))
