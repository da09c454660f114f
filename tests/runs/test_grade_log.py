"""What the log of grades collects. The callback is tested in real runs, in tests/e2e and
test_trl.py.
"""

from types import SimpleNamespace

import pytest

from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.repetition_penalty import RepetitionPenaltyReward
from swift_rlvr.runs.grade_log import GradeLog

ROW = {"nums": [[1, 2, 3]] * 3, "target": [6] * 3}
RIGHT, WRONG, NONE = "<answer>1+2+3</answer>", "<answer>1*2+3</answer>", "I do not know"


def test_the_log_holds_the_grades_of_all_rewards_by_completion():
    log = GradeLog()
    countdown, penalty = CountdownReward(), RepetitionPenaltyReward()
    countdown.log = penalty.log = log
    assert countdown([RIGHT, WRONG, NONE], **ROW, task=["countdown"] * 3) == [
        1.0,
        0.0,
        0.0,
    ]  # as without a log
    penalty(["a b c a b c", "a", "a"])
    first, second, third = log.take()
    assert first.rewards == {"external_countdown": 1.0, "external_repetition_penalty": -0.1 * 0.25}
    assert first.reasons == {
        "external_countdown": "correct",
        "external_repetition_penalty": "repetition",
    }
    assert first.row["task"] == "countdown" and first.completion == RIGHT
    assert [record.reasons["external_countdown"] for record in (second, third)] == [
        "wrong value",
        "no answer",
    ]
    assert log.take() == []


def test_the_right_answer_is_kept_where_another_packages_reward_reads_it():
    reward = RepetitionPenaltyReward()
    reward.log = GradeLog()
    reward(["a b c", "a"], solution=["7", "8"], note=["x", "y"])
    assert [record.row for record in reward.log.take()] == [{"solution": "7"}, {"solution": "8"}]


def test_batches_of_a_step_follow_one_another_in_the_log():
    log = GradeLog()
    one, other = CountdownReward(), RepetitionPenaltyReward()
    for batch in range(3):
        log.add(one, ["a", "b"], {}, [Grade(float(batch), "x")] * 2)
        log.add(other, ["a", "b"], {}, [Grade(None, "y")] * 2)
    records = log.take()
    assert [record.rewards["external_countdown"] for record in records] == [
        0.0,
        0.0,
        1.0,
        1.0,
        2.0,
        2.0,
    ]
    assert all(record.rewards["external_repetition_penalty"] is None for record in records)


def test_two_of_one_class_grade_the_same_completions():
    """Each for other tasks: a completion has the grade of the one that it is for."""
    log = GradeLog()
    for task in ("mine", "yours"):
        reward = CountdownReward(tasks=task)
        reward.log = log
        reward([RIGHT, WRONG, NONE], **ROW, task=["mine", "yours", "mine"])
    records = log.take()
    assert [record.rewards for record in records] == [
        {"external_countdown": value} for value in (1.0, 0.0, 0.0)
    ]
    reasons = [record.reasons["external_countdown"] for record in records]
    assert reasons == ["correct", "wrong value", "no answer"]


def test_a_prompt_without_roles_is_the_users():
    log = GradeLog()
    log.add(CountdownReward(), ["a"], {"prompts": ["1 + 1?"]}, [Grade(0.0, "x")])
    (record,) = log.take()
    assert record.messages == [{"role": "user", "content": "1 + 1?"}]


@pytest.mark.parametrize("name", sorted(REWARDS))
def test_every_reward_is_logged_with_what_trainers_hand_over(name):
    """One state for all completions, which is no column; the completions' tokens and the
    prompts.
    """
    reward, log = REWARDS[name](), GradeLog()
    reward.log = log
    example = max(reward.examples, key=lambda example: example.reward or 0)
    columns = {"response_token_ids": [1, 2], "prompts": "?", "solution": "1", **example.row}
    columns = {column: [value] * 2 for column, value in columns.items()}
    paid = reward(
        [example.completion] * 2,
        **columns,
        trainer_state=SimpleNamespace(global_step=3, max_steps=9),
    )
    assert [record.rewards[name] for record in log.take()] == paid
