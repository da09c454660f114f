"""Rows drawn by level: success stays near the target, the draws are the same again, and no level is
forgotten.

The learner is simulated; trainings are in tests/training and
tests/e2e/test_curriculum.py.
"""

import json
import math
import random
from collections import Counter
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.curriculum import Curriculum, CurriculumSettings, check_has_verifier
from swift_rlvr.utils.errors import InputError

LADDER = (-2, -1, 0, 1, 2, 3, 4)  # how difficult each level is, on the scale of the learner's skill


class Learner:
    """Right with probability 1 / (1 + exp(difficulty - skill)); every batch adds `gain` to its
    skill.
    """

    def __init__(self, difficulties, seed=0, gain=0.0, skill=0.0):
        self.difficulties, self.gain, self.skill = difficulties, gain, skill
        self.random = random.Random(seed)

    def answer(self, levels):
        chances = [1 / (1 + math.exp(self.difficulties[level] - self.skill)) for level in levels]
        self.skill += self.gain
        return [float(self.random.random() < chance) for chance in chances]


def rows_of(difficulties, each=30):
    return [level for level in range(len(difficulties)) for _ in range(each)]


def batch(curriculum, learner, prompts=8, completions=8):
    """Draw and record one batch: the rows, their rewards and what is logged."""
    rows = [row for row in curriculum.draw(prompts) for _ in range(completions)]
    rewards = learner.answer([curriculum.levels[row] for row in rows])
    return rows, rewards, curriculum.record(rows, rewards)


def trained(difficulties, steps, gain=0.0, seed=0, **settings):
    curriculum = Curriculum(rows_of(difficulties), CurriculumSettings(**settings), seed)
    learner = Learner(difficulties, seed, gain)
    return curriculum, [batch(curriculum, learner) for _ in range(steps)]


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("difficulties", [LADDER, (-3, -1, 1, 3, 5)])
def test_success_stays_near_the_target(difficulties, target):
    _, batches = trained(difficulties, 60, curriculum_target=target)
    assert mean(mean(rewards) for _, rewards, _ in batches[10:]) == pytest.approx(target, abs=0.1)


def test_two_levels_far_from_the_target_are_mixed_so_that_their_mean_is_near_it():
    _, batches = trained((-4, 3, 6), 60)
    assert mean(mean(rewards) for _, rewards, _ in batches[10:]) == pytest.approx(0.5, abs=0.1)


def test_difficulty_follows_a_learner_and_success_stays():
    """Of levels that are drawn evenly it would solve 0.37 at first and 0.86 at the end."""
    _, batches = trained(LADDER, 100, gain=0.04)
    levels = [figures["curriculum/level"] for _, _, figures in batches]
    assert mean(levels[10:20]) + 2 < mean(levels[-10:])
    for start in range(10, 100, 15):
        assert mean(
            mean(rewards) for _, rewards, _ in batches[start : start + 15]
        ) == pytest.approx(0.5, abs=0.15)


def test_where_all_is_too_hard_or_too_easy_the_nearest_level_is_drawn_most():
    for difficulties, nearest in (((2, 3, 4), 0), ((-4, -3, -2), 2)):
        curriculum, _ = trained(difficulties, 40)
        shares = curriculum.shares()
        assert max(shares, key=shares.get) == nearest and shares[nearest] > 0.5


def test_no_level_is_forgotten():
    """Each gets its part of the floor; a level without a success is also tried again as its
    failures fade.
    """
    curriculum, batches = trained((0, 0.5, 20), 200)
    assert all(share >= 0.1 / 3 for share in curriculum.shares().values())
    counts = Counter(curriculum.levels[row] for rows, _, _ in batches for row in rows[::8])
    assert counts[2] / 1600 > 0.1 / 3 - 0.01
    everything = Curriculum(rows_of(LADDER), CurriculumSettings(curriculum_floor=1.0), 0)
    learner = Learner(LADDER)
    for _ in range(20):
        batch(everything, learner)
        assert list(everything.shares().values()) == pytest.approx([1 / 7] * 7)


def test_what_nobody_knows_is_drawn_evenly():
    curriculum = Curriculum(rows_of(LADDER), CurriculumSettings(), 3)
    assert Counter(curriculum.levels[row] for row in curriculum.draw(70)) == dict.fromkeys(
        range(7), 10
    )


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**32), st.data())
def test_every_batch_is_whole_and_each_level_is_drawn_as_often_as_its_share_says(
    levels, count, seed, data
):
    curriculum = Curriculum(rows_of(range(levels), 3), CurriculumSettings(), seed)
    for _ in range(3):
        shares = curriculum.shares()
        assert (
            sum(shares.values()) == pytest.approx(1) and min(shares.values()) >= 0.1 / levels - 1e-9
        )
        rows = curriculum.draw(count)
        assert len(rows) == count and all(0 <= row < 3 * levels for row in rows)
        drawn = Counter(curriculum.levels[row] for row in rows)
        assert all(abs(drawn[level] - share * count) < 1 + 1e-6 for level, share in shares.items())
        rewards = data.draw(
            st.lists(st.sampled_from([True, False, None]), min_size=count, max_size=count)
        )
        figures = curriculum.record(rows, rewards)
        assert all(math.isfinite(value) for value in figures.values())
        assert all(0 < success < 1 for success in curriculum.success().values())


def test_rows_of_a_level_come_once_each_before_any_comes_again():
    curriculum = Curriculum(rows_of((0, 1), 10), CurriculumSettings(curriculum_floor=1.0), 5)
    rows = curriculum.draw(20)
    assert sorted(rows) == list(range(20)) and rows != sorted(rows)
    again = curriculum.draw(20)
    assert sorted(again) == list(range(20)) and again != rows


def test_the_same_seed_and_rewards_give_the_same_rows_and_another_seed_does_not():
    runs = [[rows for rows, _, _ in trained(LADDER, 12, seed=seed)[1]] for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("stop", [1, 7, 19])
def test_a_continuation_draws_what_the_uninterrupted_run_draws(stop):
    """Through JSON, as the state goes through a checkpoint."""
    whole, batches = trained(LADDER, 25, gain=0.05)
    first, _ = trained(LADDER, stop, gain=0.05)
    second = Curriculum(rows_of(LADDER), CurriculumSettings(), 0)
    second.load(json.loads(json.dumps(first.state())))
    for rows, rewards, figures in batches[stop:]:
        assert [row for row in second.draw(8) for _ in range(8)] == rows
        assert second.record(rows, rewards) == figures
    assert second.state() == whole.state()


def test_only_what_is_right_counts_and_what_was_not_graded_does_not():
    curriculum = Curriculum([0, 1], CurriculumSettings(curriculum_memory=1), 0)
    figures = curriculum.record([0, 0, 0, 0, 1, 1], [True, False, None, None, True, False])
    assert curriculum.graded == {0: 2.0, 1: 2.0} and curriculum.right == {0: 1.0, 1: 1.0}
    assert figures["curriculum/share_0"] == pytest.approx(4 / 6) and figures[
        "curriculum/level"
    ] == pytest.approx(2 / 6)
    curriculum.record([1], [True])
    assert curriculum.graded == {0: 1.0, 1: 2.0}, "after one batch a result counts half"


def test_without_a_verifier_there_is_no_curriculum():
    countdown, form = REWARDS["external_countdown"](), REWARDS["external_format"]()
    check_has_verifier([form, countdown])
    with pytest.raises(InputError, match="reward_funcs: must include a verifier"):
        check_has_verifier([form])


def test_rows_without_levels_and_states_of_other_levels_are_errors():
    with pytest.raises(
        InputError, match="'level' with a whole number in every row, got None in row 2"
    ):
        Curriculum([0, None], CurriculumSettings(), 0)
    with pytest.raises(InputError, match="got True in row 1"):
        Curriculum([True], CurriculumSettings(), 0)
    with pytest.raises(InputError, match=r"rows of several levels, got only \[3\]"):
        Curriculum([3, 3], CurriculumSettings(), 0)
    with pytest.raises(
        InputError, match=r"has the levels \[0, 2\], but the run of the checkpoint had \[0, 1\]"
    ):
        Curriculum([0, 2], CurriculumSettings(), 0).load(
            Curriculum([0, 1], CurriculumSettings(), 0).state()
        )


def test_the_variables_are_the_settings_and_without_curriculum_they_have_no_effect():
    environ = {"SWIFT_RLVR_CURRICULUM_FLOOR": "0.2", "SWIFT_RLVR_HELD_OUT_ROWS": "1"}
    read = CurriculumSettings.from_environment(environ, curriculum=True)
    assert read == CurriculumSettings(True, curriculum_floor=0.2)
    assert read.as_json()["curriculum_floor"] == 0.2 and CurriculumSettings().as_json() == {
        "curriculum": False
    }
    with pytest.raises(InputError, match="curriculum_floor: has no effect without curriculum"):
        CurriculumSettings(curriculum_floor=0.2).as_json()
