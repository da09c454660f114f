"""The figures of an evaluation, and two of them compared, against enumeration and published
values.
"""

import itertools
import json
import random
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import ran
from helpers import graded, write_records
from present import present
from swift_rlvr.evaluation.compare import figures_table, in_words, paired, side_by_side
from swift_rlvr.runs.statistics import (
    bootstrap,
    mean_interval,
    no_spread,
    pass_at_k,
    summarize,
    wilson,
)
from swift_rlvr.utils.jsonl import write_json


def record(index=0, reward=1.0, **values):
    return graded(index, None if reward is None else reward == 1.0, **values)


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
    records = [
        record(0),
        record(0, reward=0.0, reason="wrong value"),
        record(1),
        record(1, finish="length", tokens=40),
    ]
    summary = summarize(records)
    assert (summary["tasks"], summary["completions"], summary["success"]) == (2, 4, 0.75)
    assert (
        summary["success_interval"]
        == list(bootstrap([0.5, 1.0]))
        == summary["pass_at_k_interval"]["1"]
    )
    assert summary["pass_at_k_interval"]["2"] == list(
        wilson(1.0, 2)
    )  # each task's pass@2 is 0 or 1
    assert summary["pass_at_k"] == {"1": 0.75, "2": 1.0}
    assert (summary["mean_tokens"], summary["cut_off"]) == (17.5, 0.25)
    assert summary["reasons"] == {"correct": 0.75, "wrong value": 0.25}


def test_what_cannot_be_graded_is_counted_apart_and_not_as_wrong():
    summary = summarize([record(0), record(1, reward=None, reason="bad gold")])
    assert (summary["success"], summary["tasks"], summary["ungraded"]) == (1.0, 1, 1)
    nothing = summarize([record(0, reward=None, reason="bad gold")])
    assert nothing["success"] is None and nothing["pass_at_k"] == {}
    assert ("success", "-", "-") in figures_table(nothing, nothing)

    # A success over some of the completions says so; there is no such row where all are graded.
    assert ("completions not graded", "1", "0") in figures_table(
        summary, summarize([record(0), record(1)])
    )
    labels = [row[0] for row in figures_table(summarize([record(0)]))]
    assert "completions not graded" not in labels


def test_comparison_shows_both_sides_and_names_settings_that_differ():
    before = summarize([record(i, reward=float(i < 30)) for i in range(100)])
    after = summarize([record(i, reward=float(i < 60), tokens=99) for i in range(100)])
    settings = {"model": "a", "seed": 0, "system": "think"}
    comparison = side_by_side(
        {"settings": settings, **before},
        {"settings": settings | {"model": "b", "seed": 1}, **after},
    )
    assert comparison["different_settings"] == {"seed": [0, 1]}
    table = {row[0]: row[1:] for row in figures_table(comparison["before"], comparison["after"])}
    assert table["success"] == ("0.300 (0.219 to 0.396)", "0.600 (0.502 to 0.691)")
    assert table["mean length in tokens"] == ("10", "99")
    assert table["reason: correct"] == ("100.0%", "100.0%")


@given(st.integers(1, 7), st.data())
@settings(deadline=None)
def test_no_spread_is_the_share_of_subsets_that_are_all_alike(n, data):
    correct, size = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations([True] * correct + [False] * (n - correct), size))
    assert no_spread(n, correct, size) == pytest.approx(
        sum(len(set(each)) == 1 for each in subsets) / len(subsets)
    )


def test_bootstrap_covers_the_mean_as_often_as_it_says():
    generator = random.Random(0)
    draws = [bootstrap([float(generator.random() < 0.3) for _ in range(200)]) for _ in range(100)]
    assert 88 <= sum(low <= 0.3 <= high for low, high in draws) <= 99


def test_pass_at_k_is_listed_in_numeric_order_with_its_interval():
    many = summarize(
        [record(index, float((index + n) % 7 == 0)) for index in range(20) for n in range(16)]
    )
    rows = figures_table(many, summarize([record()]))
    names = [name for name, *_ in rows if name.startswith("pass@")]
    assert names == ["pass@2", "pass@4", "pass@8", "pass@16"]
    sampled, one = next(rest for name, *rest in rows if name == "pass@2")
    assert one == "-" and sampled == "{:.3f} ({:.3f} to {:.3f})".format(
        many["pass_at_k"]["2"], *many["pass_at_k_interval"]["2"]
    )


def test_a_task_with_fewer_graded_samples_than_k_has_no_part_in_pass_at_k():
    records = [record(0, float(n == 0)) for n in range(4)] + [
        record(1),
        record(1, None, reason="bad gold"),
    ]
    assert summarize(records)["pass_at_k"] == {
        "1": (0.25 + 1.0) / 2,
        "2": 0.5,
        "4": 1.0,
    }  # task 1 has one


def test_strict_has_an_interval_of_its_own():
    summary = summarize([record(i, float(i < 60), format=i < 30) for i in range(100)])
    assert summary["strict_interval"] == list(wilson(0.3, 100)) and summary[
        "success_interval"
    ] == list(wilson(0.6, 100))
    table = {row[0]: row[1] for row in figures_table(summary, summary)}
    assert table["success with format"] == "0.300 (0.219 to 0.396)"


def test_a_mixture_has_its_success_by_task_and_of_reasoning_gym_by_its_tasks():
    entries = [
        {"task": "reasoning_gym", "entry": json.dumps({"task": name})} for name in ("gcd", "lcm")
    ]
    rows = [{"task": "countdown"}, {"task": "countdown"}, *entries]
    summary = summarize([graded(index, index in (1, 2), row=row) for index, row in enumerate(rows)])
    names = ["success of countdown", "success of reasoning_gym:gcd", "success of reasoning_gym:lcm"]
    table = {name: values for name, *values in figures_table(summary, summarize([record()]))}
    assert [name for name in table if name.startswith("success of")] == names
    assert [table[name][0][:5] for name in names] == ["0.500", "1.000", "0.000"] and table[
        names[0]
    ][1] == "-"
    assert summary["success_by_task_interval"]["countdown"] == list(wilson(0.5, 2))
    assert summarize([graded(0, row=rows[0])])["success_by_task"] == {}


def test_success_with_each_seed_and_its_spread():
    seeds = {3: (1, 1, 0, 0), 11: (1, 0, 0, 0), 5: (1, 1, 1, 0)}
    records = [
        record(i, float(right), seed=seed)
        for seed, rights in seeds.items()
        for i, right in enumerate(rights)
    ]
    summary = summarize(records)
    assert summary["seeds"] == {"3": 0.5, "11": 0.25, "5": 0.75} and summary[
        "seed_spread"
    ] == pytest.approx(0.25)
    names = [name for name, *_ in figures_table(summary, summarize([record()])) if "seed" in name]
    assert names == [f"success with seed {seed}" for seed in (3, 5, 11)] + [
        "standard deviation over seeds"
    ]


@given(st.lists(st.integers(0, 1), min_size=1, max_size=50))
def test_an_interval_of_zeros_and_ones_is_wilsons(values):
    assert mean_interval(values) == wilson(sum(values) / len(values), len(values))
    assert mean_interval([*values, 0.5]) == bootstrap([*values, 0.5])


def records(rewards, **columns):
    return [
        graded(index, None if reward is None else reward == 1.0, row=columns)
        for index, reward in enumerate(rewards)
    ]


def test_mcnemar_is_exact():
    # 59 tasks lost and 6 gained, 2 * P(Binomial(65, 1/2) <= 6): `scipy.stats.binomtest(6,
    # 65).pvalue`
    before = records([1.0] * 59 + [0.0] * 6 + [1.0] * 30)
    after = records([0.0] * 59 + [1.0] * 6 + [1.0] * 30)
    result = present(paired(before, after))
    assert (result["tasks"], result["better"], result["worse"]) == (95, 6, 59)
    assert result["difference"] == pytest.approx(-53 / 95)
    assert result["p"] == pytest.approx(5.0e-12, rel=0.05)


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=9))
@settings(deadline=None, max_examples=25)
def test_p_counts_the_sign_patterns_that_are_at_least_as_extreme(signs):
    before, after = records([float(s < 0) for s in signs]), records([float(s > 0) for s in signs])
    changed = [s for s in signs if s]
    patterns = list(itertools.product((-1, 1), repeat=len(changed)))
    extreme = sum(abs(sum(pattern)) >= abs(sum(changed)) for pattern in patterns) / len(patterns)
    assert present(paired(before, after))["p"] == pytest.approx(extreme)


def test_several_samples_a_task():
    choice = random.Random(0)
    before = [graded(i, choice.random() < 0.3, sample=n) for i in range(60) for n in range(4)]
    after = [graded(i, choice.random() < 0.6, sample=n) for i in range(60) for n in range(4)]
    result = present(paired(before, after))
    low, high = result["interval"]
    assert result["p"] < 0.001 and 0 < low < result["difference"] < high < 0.6
    assert result == paired(before[::-1], after[::-1])  # the same in any order


def test_the_same_evaluation_twice_is_no_difference():
    same = records([0.0, 1.0] * 20)
    result = present(paired(same, same))
    assert (result["difference"], result["p"], result["interval"]) == (0.0, 1.0, [0.0, 0.0])
    assert "This may be chance." in in_words(result)


def test_other_tasks_are_not_compared():
    assert paired(records([1.0], target=3), records([1.0], target=4)) is None
    assert paired(records([1.0]), records([1.0, 0.0])) is None
    assert paired(records([None]), records([None])) is None


def test_what_cannot_be_graded_on_one_side_is_left_out():
    assert present(paired(records([None, 1.0]), records([1.0, 0.0])))["tasks"] == 1


def test_compare_says_whether_it_is_a_difference(tmp_path):
    for name, rewards in (("before", [0.0] * 30), ("after", [1.0] * 20 + [0.0] * 10)):
        rows = records(rewards, nums=[1])
        write_records(tmp_path / name / "records.jsonl", rows)
        write_json(tmp_path / name / "summary.json", summarize(rows))
    out = tmp_path / "comparison.json"
    shown = ran("compare", tmp_path / "before", tmp_path / "after", "--out", out, columns=400)
    assert (
        "Success differs by +0.667" in shown
        and "20 better, 0 worse, p < 0.001. This is significant." in shown
    )
    assert json.loads(out.read_text())["paired"]["tasks"] == 30
    other = records([1.0] * 30, nums=[2])
    write_records(tmp_path / "after" / "records.jsonl", other)
    shown = ran("compare", tmp_path / "before", tmp_path / "after", columns=400)
    assert "was not tested: no graded task of the one" in shown
    (tmp_path / "after" / "records.jsonl").unlink()
    summary = tmp_path / "after" / "summary.json"
    shown = ran("compare", tmp_path / "before", summary, columns=400)
    assert "differs by" not in shown and f"was not tested: {summary} has figures alone" in shown


def asking(questions, rewards, golds="7" * 9):
    """Records of questions with a prompt, of which golds may be the same."""
    rows = []
    for index, (question, reward) in enumerate(zip(questions, rewards, strict=True)):
        prompt = [{"role": "user", "content": question}]
        rows.append(record(index, reward, messages=prompt, row={"solution": golds[index]}))
    return rows


def test_a_row_that_only_one_side_has_is_left_out_and_counted():
    before = asking("abcd", [0.0, 0.0, 1.0, 0.0])
    result = present(paired(before, asking("acd", [1.0, 1.0, 1.0])))
    assert (result["tasks"], result["better"], result["unpaired"]) == (3, 2, [1, 0])
    assert not result["by_order"] and ": 1 of before, 0 of after" in in_words(result)
    # What one side has not graded has no counterpart either.
    result = present(paired(before, asking("abcd", [1.0, None, 1.0, 1.0])))
    assert (result["tasks"], result["unpaired"]) == (3, [1, 0])


def test_questions_with_the_same_gold_are_paired_by_their_prompt_and_not_by_their_order():
    before = asking("abcd", [1.0, 0.0, 0.0, 0.0])
    assert present(paired(before, asking("dcba", [0.0, 0.0, 0.0, 1.0])))["better"] == 0
    # Another gold makes it another task.
    assert paired(before, asking("abcd", [1.0] * 4, golds="8888")) is None


def test_tasks_without_prompt_and_id_are_paired_by_order_and_it_says_so():
    result = present(paired(records([0.0, 0.0]), records([1.0, 1.0])))
    assert result["by_order"] and "paired by their order" in in_words(result)
    named = records([0.0, 0.0], doc_id="a")
    assert not present(paired(named, named))["by_order"]


def test_seeds_and_greedy_are_of_the_same_tasks():
    of_one = records([0.0, 1.0, 0.0], target=3)
    seeds = [replace(record, seed=seed, sample=seed) for seed in (0, 1) for record in of_one]
    assert present(paired(seeds, records([1.0, 1.0, 1.0], target=3)))["better"] == 2
    others = [replace(record, seed=record.seed + 7) for record in seeds]
    assert present(paired(seeds, others))["difference"] == 0.0
