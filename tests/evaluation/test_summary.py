"""The figures of an evaluation against values worked out by other means."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.evaluation.summary import compare, comparison_table, summarize
from swift_rlvr.runs.statistics import bootstrap, no_spread, pass_at_k, wilson


def record(index=0, reward=1.0, **other):
    base = {"index": index, "reward": reward, "format": True, "reason": "correct", "tokens": 10, "finish": "stop"}
    return base | other


@pytest.mark.parametrize(
    ("share", "n", "interval"),
    [
        # Newcombe 1998, table I, method 3 (score without continuity correction)
        (81 / 263, 263, (0.2553, 0.3662)),
        (15 / 148, 148, (0.0624, 0.1605)),
        (0 / 20, 20, (0.0, 0.1611)),
        (1 / 29, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_interval_equals_published_values(share, n, interval):
    assert wilson(share, n) == pytest.approx(interval, abs=1e-4)


@given(st.integers(1, 7), st.data())
@settings(deadline=None)
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(n, data):
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations([True] * correct + [False] * (n - correct), k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_tasks_count_once_however_many_samples_they_have():
    records = [record(0), record(0, reward=0.0, reason="wrong value"), record(1), record(1, finish="length", tokens=40)]
    summary = summarize(records)
    assert (summary["tasks"], summary["completions"], summary["success"]) == (2, 4, 0.75)
    assert summary["success_interval"] == list(bootstrap([0.5, 1.0])) == summary["pass_at_k_interval"]["1"]
    assert summary["pass_at_k_interval"]["2"] == list(wilson(1.0, 2))  # each task's pass@2 is 0 or 1
    assert summary["pass_at_k"] == {"1": 0.75, "2": 1.0}
    assert (summary["mean_tokens"], summary["cut_off"]) == (17.5, 0.25)
    assert summary["reasons"] == {"correct": 0.75, "wrong value": 0.25}


def test_what_cannot_be_graded_is_counted_apart_and_not_as_wrong():
    summary = summarize([record(0), record(1, reward=None, reason="bad gold")])
    assert (summary["success"], summary["tasks"], summary["ungraded"]) == (1.0, 1, 1)
    nothing = summarize([record(0, reward=None, reason="bad gold")])
    assert nothing["success"] is None and nothing["pass_at_k"] == {}
    assert ("success", "nothing graded", "nothing graded") in comparison_table(compare(nothing, nothing))


def test_comparison_shows_both_sides_and_names_settings_that_differ():
    before = summarize([record(i, reward=float(i < 30)) for i in range(100)])
    after = summarize([record(i, reward=float(i < 60), tokens=99) for i in range(100)])
    settings = {"model": "a", "seed": 0, "system": "think"}
    comparison = compare({"settings": settings, **before}, {"settings": settings | {"model": "b", "seed": 1}, **after})
    assert comparison["different_settings"] == {"seed": [0, 1]}
    table = {row[0]: row[1:] for row in comparison_table(comparison)}
    assert table["success"] == ("0.300 (0.219 to 0.396)", "0.600 (0.502 to 0.691)")
    assert table["mean length in tokens"] == ("10", "99")
    assert table["reason: correct"] == ("100.0%", "100.0%")


@given(st.integers(1, 7), st.data())
@settings(deadline=None)
def test_no_spread_is_the_share_of_subsets_that_are_all_alike(n, data):
    correct, size = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations([True] * correct + [False] * (n - correct), size))
    assert no_spread(n, correct, size) == pytest.approx(sum(len(set(each)) == 1 for each in subsets) / len(subsets))


def test_bootstrap_covers_the_mean_as_often_as_it_says():
    generator = random.Random(0)
    draws = [bootstrap([float(generator.random() < 0.3) for _ in range(200)]) for _ in range(100)]
    assert 88 <= sum(low <= 0.3 <= high for low, high in draws) <= 99


@pytest.mark.parametrize(
    "call",
    [
        lambda: wilson(0.5, 0),
        lambda: wilson(1.5, 3),
        lambda: pass_at_k(3, 4, 1),
        lambda: no_spread(3, 1, 4),
        lambda: bootstrap([]),
    ],
)
def test_impossible_counts_are_refused(call):
    with pytest.raises(ValueError, match="expected"):
        call()
