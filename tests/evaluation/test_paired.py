"""The paired comparison against enumeration, published values, and what it must not depend on."""

import itertools
import json
import random
from dataclasses import replace

import pytest
from commands import ran
from helpers import graded, write_records
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.evaluation.compare import in_words, paired
from swift_rlvr.jsonl import write_json
from swift_rlvr.runs.statistics import summarize


def records(rewards, **columns):
    return [
        graded(index, None if reward is None else reward == 1.0, row=columns) for index, reward in enumerate(rewards)
    ]


def test_mcnemar_is_exact():
    # 59 tasks lost and 6 gained, 2 * P(Binomial(65, 1/2) <= 6): `scipy.stats.binomtest(6, 65).pvalue`
    before = records([1.0] * 59 + [0.0] * 6 + [1.0] * 30)
    after = records([0.0] * 59 + [1.0] * 6 + [1.0] * 30)
    result = paired(before, after)
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
    assert paired(before, after)["p"] == pytest.approx(extreme)


def test_several_samples_a_task():
    choice = random.Random(0)
    before = [graded(i, choice.random() < 0.3, sample=n) for i in range(60) for n in range(4)]
    after = [graded(i, choice.random() < 0.6, sample=n) for i in range(60) for n in range(4)]
    result = paired(before, after)
    low, high = result["interval"]
    assert result["p"] < 0.001 and 0 < low < result["difference"] < high < 0.6
    assert result == paired(before[::-1], after[::-1])  # the same in any order


def test_the_same_evaluation_twice_is_no_difference():
    same = records([0.0, 1.0] * 20)
    result = paired(same, same)
    assert (result["difference"], result["p"], result["interval"]) == (0.0, 1.0, [0.0, 0.0])
    assert in_words(result).endswith("That may be chance.")


def test_other_tasks_are_not_compared():
    assert paired(records([1.0], target=3), records([1.0], target=4)) is None
    assert paired(records([1.0]), records([1.0, 0.0])) is None
    assert paired(records([None]), records([None])) is None


def test_what_cannot_be_graded_on_one_side_is_left_out():
    assert paired(records([None, 1.0]), records([1.0, 0.0]))["tasks"] == 1


def test_compare_says_whether_it_is_a_difference(tmp_path):
    for name, rewards in (("before", [0.0] * 30), ("after", [1.0] * 20 + [0.0] * 10)):
        rows = records(rewards, nums=[1])
        write_records(tmp_path / name / "records.jsonl", rows)
        write_json(tmp_path / name / "summary.json", summarize(rows))
    out = tmp_path / "comparison.json"
    shown = ran("compare", tmp_path / "before", tmp_path / "after", "--out", out, columns=400)
    assert "Success differs by +0.667" in shown and "20 better, 0 worse, p < 0.001. That is a difference." in shown
    assert json.loads(out.read_text())["paired"]["tasks"] == 30
    other = records([1.0] * 30, nums=[2])
    write_records(tmp_path / "after" / "records.jsonl", other)
    assert "not of the same tasks" in ran("compare", tmp_path / "before", tmp_path / "after")
    (tmp_path / "after" / "records.jsonl").unlink()
    assert "differs by" not in ran("compare", tmp_path / "before", tmp_path / "after" / "summary.json")


def test_strict_success_demands_the_format():
    rows = [graded(i, format=i < 3) for i in range(4)]
    assert (summarize(rows)["success"], summarize(rows)["strict"]) == (1.0, 0.75)


def test_seeds_and_greedy_are_of_the_same_tasks():
    of_one = records([0.0, 1.0, 0.0], target=3)
    seeds = [replace(each, seed=seed, sample=seed) for seed in (0, 1) for each in of_one]
    assert paired(seeds, records([1.0, 1.0, 1.0], target=3))["better"] == 2
    others = [replace(each, seed=each.seed + 7) for each in seeds]
    assert paired(seeds, others)["difference"] == 0.0
