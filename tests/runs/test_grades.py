"""The warning after batches without a reward, and what the reason log collects. The callback is tested in real runs:
tests/e2e/test_mixed_tasks.py and tests/training/test_trl.py.
"""

import logging

import pytest
from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.repetition_penalty import RepetitionPenaltyReward
from swift_rlvr.runs.grades import GradeLog, collected_by

ROW = {"nums": [[1, 2, 3]] * 3, "target": [6] * 3}
RIGHT, WRONG, NONE = "<answer>1+2+3</answer>", "<answer>1*2+3</answer>", "I do not know"


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, logger="swift_rlvr")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_warning_names_the_rule_that_fails_most_and_shows_a_completion(warnings):
    reward = CountdownReward(warn_after=3)
    for _ in range(2):
        reward([NONE, WRONG, NONE], **ROW)
    assert warnings() == []
    reward([WRONG, NONE, NONE], **ROW)
    (message,) = warnings()
    assert message.startswith("external_countdown: no reward other than 0 in 3 batches")
    assert "'no answer', 2 of 3" in message and repr(NONE) in message
    for _ in range(3):
        reward([WRONG, WRONG, NONE], **ROW)
    assert len(warnings()) == 2 and "in 6 batches" in warnings()[1] and "'wrong value', 2 of 3" in warnings()[1]


def test_one_reward_in_between_starts_the_count_again(warnings):
    reward = CountdownReward(warn_after=3)
    for text in (NONE, NONE, RIGHT, NONE, NONE):
        reward([NONE, text, NONE], **ROW)
    assert warnings() == []
    reward([NONE] * 3, **ROW)
    assert len(warnings()) == 1


def test_rows_that_cannot_be_graded_are_a_reason_to_warn_and_other_tasks_are_none(warnings):
    reward = CountdownReward(warn_after=1)
    reward([RIGHT], nums=[[1]], target=[1], task=["math"])
    assert warnings() == []
    reward([RIGHT], nums=[["x"]], target=[1])
    assert "'bad gold', 1 of 1" in warnings()[0]
    reward([WRONG, RIGHT, RIGHT], **ROW, task=["countdown", "math", "math"])
    assert "'wrong value', 1 of 1" in warnings()[1]


def test_no_warning_for_penalties_for_zero_and_on_other_ranks(warnings, monkeypatch):
    RepetitionPenaltyReward(warn_after=1)(["nothing is output twice here"])
    CountdownReward(warn_after=0)([NONE] * 3, **ROW)
    monkeypatch.setenv("RANK", "1")
    CountdownReward(warn_after=1)([NONE] * 3, **ROW)
    assert warnings() == []
    assert {name for name, reward in REWARDS.items() if reward.zero_is_best} == {
        "external_repetition_penalty",
        "external_soft_overlong",
    }


def test_the_warning_comes_from_the_environment_and_is_off_for_a_bad_number(monkeypatch):
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_WARN_AFTER", "7")
    assert CountdownReward().parameters.warn_after == 7
    with pytest.raises(ValueError, match="external_countdown: warn_after must be at least 0, got -1"):
        CountdownReward(warn_after=-1)


def test_the_log_holds_the_grades_of_all_rewards_by_completion():
    log = GradeLog()
    countdown, penalty = CountdownReward(), RepetitionPenaltyReward()
    with collected_by(log, [countdown, penalty]):
        assert countdown([RIGHT, WRONG, NONE], **ROW, task=["countdown"] * 3) == [1.0, 0.0, 0.0]  # as without a log
        penalty(["a b c a b c", "a", "a"])
    first, second, third = log.take()
    assert first.rewards == {"external_countdown": 1.0, "external_repetition_penalty": -0.1 * 0.25}
    assert first.reasons == {"external_countdown": "correct", "external_repetition_penalty": "repetition"}
    assert first.row["task"] == "countdown" and first.completion == RIGHT
    assert [record.reasons["external_countdown"] for record in (second, third)] == ["wrong value", "no answer"]
    assert log.take() == [] and countdown.log is None


def test_batches_of_a_step_follow_one_another_in_the_log():
    log = GradeLog()
    one, other = CountdownReward(), RepetitionPenaltyReward()
    for batch in range(3):
        log.add(one, ["a", "b"], {}, [Grade(float(batch), "x")] * 2)
        log.add(other, ["a", "b"], {}, [Grade(None, "y")] * 2)
    records = log.take()
    assert [record.rewards["external_countdown"] for record in records] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert all(record.rewards["external_repetition_penalty"] is None for record in records)
