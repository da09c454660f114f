"""The Countdown generator: every task solvable, no two alike, train and test apart, any row in any order."""

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.countdown import verify
from swift_rlvr.tasks.countdown_generator import (
    PRESETS,
    TINY,
    TUTORIAL,
    CountdownSettings,
    _permuted,
    _unrank,
    make_task,
    make_tasks,
    reachable,
    split_of,
)
from swift_rlvr.tasks.countdown_solver import OPERATORS, all_values, solve

MIXED = CountdownSettings(count=(3, 4), number=(1, 20), target=(10, 50), operators="+-*")
seeds = st.integers(0, 2**32)
splits = st.sampled_from(["train", "test"])


def key(row):
    return (*sorted(row["nums"]), row["target"])


def values_by_brute_force(nums):
    """All values of three numbers: a second way to get them, by order, operator and bracket, with Fractions."""

    def apply(op, x, y):
        if x is None or y is None or (op == "/" and y == 0):
            return None
        return {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else None}[op]

    found = set()
    for (a, b, c), p, q in product(permutations(map(Fraction, nums)), OPERATORS, OPERATORS):
        found |= {apply(q, apply(p, a, b), c), apply(p, a, apply(q, b, c))}
    return found - {None}


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3))
@settings(deadline=None)
def test_solver_finds_every_value_that_brute_force_finds(nums):
    assert {Fraction(*value) for value in all_values(nums)} == values_by_brute_force(nums)


@given(st.lists(st.integers(1, 99), min_size=2, max_size=4), st.integers(10, 100))
@settings(deadline=None, max_examples=40)
def test_solution_is_credited_by_the_verifier(nums, target):
    solution = solve(nums, target)
    if solution is not None:
        assert verify(f"<answer>{solution} = {target}</answer>", nums, target).reward == 1.0


def test_whole_mode_allows_no_fraction_no_negative_and_nothing_too_large():
    assert (24, 1) in all_values([3, 3, 8, 8])  # 8 / (3 - 8 / 3): only by way of fractions
    assert (24, 1) not in all_values([3, 3, 8, 8], largest=99)
    assert (-2, 1) in all_values([5, 7]) and (-2, 1) not in all_values([5, 7], largest=99)
    assert (15, 1) in all_values([4, 6, 10], "*/", largest=60)  # only by way of 6 * 10
    assert (15, 1) not in all_values([4, 6, 10], "*/", largest=59)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_rows_are_solvable_unique_in_range_and_of_their_split(preset, split):
    wanted = PRESETS[preset]
    rows = list(make_tasks(wanted, split, seed=3, rows=300))
    assert len({key(row) for row in rows}) == len(rows)
    for row in rows:
        assert wanted.count[0] <= len(row["nums"]) <= wanted.count[1]
        assert all(wanted.number[0] <= number <= wanted.number[1] for number in row["nums"])
        assert wanted.target[0] <= row["target"] <= wanted.target[1]
        assert row["target"] in reachable(row["nums"], wanted)
        assert split_of(row["nums"], row["target"]) == split


def test_early_rows_have_different_numbers_and_unsorted_ones_among_them():
    rows = list(make_tasks(TUTORIAL, "train", seed=0, rows=400))
    assert len({tuple(sorted(row["nums"])) for row in rows}) == len(rows)
    assert sum(row["nums"] == sorted(row["nums"]) for row in rows) < len(rows) / 4
    assert [len(row["nums"]) for row in rows[:4]] == [3, 4, 3, 4]


@given(seeds, splits, st.lists(st.integers(0, 1200), min_size=2, max_size=30, unique=True))
@settings(deadline=None, max_examples=15)
def test_a_row_does_not_depend_on_which_rows_were_made_before(seed, split, indexes):
    forward = {index: make_task(MIXED, split, seed, index) for index in sorted(indexes)}
    assert {index: make_task(MIXED, split, seed, index) for index in indexes} == forward
    assert len({key(row) for row in forward.values()}) == len(indexes)


@given(seeds, seeds)
@settings(deadline=None, max_examples=8)
def test_train_and_test_share_no_task_whatever_the_seeds(train_seed, test_seed):
    train = {key(row) for row in make_tasks(TINY, "train", train_seed, rows=None)}
    test = {key(row) for row in make_tasks(TINY, "test", test_seed, rows=None)}
    assert train and test and not train & test


@given(seeds)
@settings(deadline=None, max_examples=4)
def test_tiny_holds_every_task_exactly_once(seed):
    made = [key(row) for split in ("train", "test") for row in make_tasks(TINY, split, seed, rows=None)]
    multisets = combinations_with_replacement(range(1, 10), 3)
    assert sorted(made) == sorted((*nums, target) for nums in multisets for target in reachable(nums, TINY))


def test_seeds_give_different_orders():
    first, second = ([key(row) for row in make_tasks(TUTORIAL, "train", seed, rows=100)] for seed in (1, 2))
    assert len(set(first) & set(second)) < 3


def test_rows_are_the_same_on_every_machine_and_in_every_version():
    """Published samples and evaluations rest on these; a change here is a breaking change."""
    assert make_task(TINY, "test", 0, 0) == {"nums": [7, 7, 7], "target": 21}
    assert make_task(TUTORIAL, "train", 0, 1) == {"nums": [79, 14, 48, 61], "target": 44}


@given(st.integers(1, 2000), seeds)
@settings(deadline=None, max_examples=50)
def test_permutation_is_one(size, seed):
    assert sorted(_permuted(index, size, seed) for index in range(size)) == list(range(size))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_unrank_numbers_all_multisets(size):
    expected = sorted(combinations_with_replacement(range(5, 12), size))
    assert sorted(_unrank(rank, size, 5) for rank in range(len(expected))) == expected


def test_asking_for_more_than_there_is_says_how_many_there_are():
    held = len(list(make_tasks(TINY, "test", seed=0, rows=None)))
    with pytest.raises(IndexError, match=f"{held + 1} rows wanted, and these settings hold {held} test tasks"):
        list(make_tasks(TINY, "test", seed=0, rows=held + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": (3, 9)}, r"count must be .* within 2\.\.5, got \(3, 9\)"),
        ({"number": (9, 1)}, r"number must be .* got \(9, 1\)"),
        ({"target": (0, 5)}, r"target must be"),
        ({"operators": "+^"}, r'operators must be a selection of "\+-\*/", got \'\+\^\''),
        ({"whole": True, "largest": 20}, r"largest must be at least the highest target 100, got 20"),
    ],
)
def test_bad_settings_name_the_field_and_the_range(change, message):
    fields = {"count": (3, 4), "number": (1, 99), "target": (10, 100)} | change
    with pytest.raises(ValueError, match=message):
        CountdownSettings(**fields)


def test_bad_split_and_index():
    with pytest.raises(ValueError, match="split must be one of train, test, got 'dev'"):
        make_task(TINY, "dev", 0, 0)
    with pytest.raises(IndexError, match="at least 0"):
        make_task(TINY, "test", 0, -1)
