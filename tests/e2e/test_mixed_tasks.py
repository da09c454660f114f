"""Four tasks from two datasets in one real run: None where a reward does not apply, and the reasons
in the logs.
"""

import itertools
import math

import pytest

from e2e.conftest import STEPS
from swift_rlvr.utils.jsonl import read_json

pytestmark = pytest.mark.e2e
ROUTED = {  # by the reward that verifies a task, the name that is logged
    "external_countdown": "CountdownReward",
    "external_accuracy": "AccuracyReward",
    "external_code": "CodeReward",
}


def test_no_step_has_nan_in_its_total(mixed):
    steps = mixed.steps()
    assert len(steps) == STEPS
    for step in steps:
        for name in ("reward", "loss", "grad_norm", "rewards/FormatReward/mean"):
            assert math.isfinite(step[name]), (name, step)


def test_every_row_is_graded_by_the_reward_of_its_task_alone(mixed):
    records = mixed.records()
    assert len(records) == STEPS * 24
    graded = dict.fromkeys(ROUTED, 0)
    for record in records:
        (name,) = [name for name in ROUTED if record.rewards[name] is not None]
        graded[name] += 1
        assert {record.reasons[other] for other in set(ROUTED) - {name}} == {"other task"}
        assert record.success == (record.rewards[name] == 1.0)
        # Parameters come from the environment of the command, in every rank.
        assert (record.rewards["external_format"] is None) == (name == "external_code")
        # The cosine reward builds on the one for mathematics.
        is_math = name == "external_accuracy"
        assert (record.rewards["external_cosine"] is not None) == is_math
    assert all(graded.values()), f"a task without a row shows nothing: {graded}"


def test_each_record_is_the_completion_that_ms_swift_logs_there(mixed):
    records = mixed.records()
    tables = mixed.tables()
    names = {}
    for key, judge in read_json(mixed.output / "rewards.json").items():
        names[key] = judge["logged"]
    assert set(tables) == {record.step for record in records}
    for record in records:
        table = tables[record.step]
        assert record.completion == table["completion"][record.index]
        assert record.messages[-1]["content"] in table["prompt"][record.index]
        assert record.advantage == pytest.approx(table["advantages"][record.index], abs=1e-5)
        for key, reward in record.rewards.items():
            logged = table[names[key]][record.index]
            if reward is None:
                assert logged is None or math.isnan(logged)
            else:
                assert logged == pytest.approx(reward)


def test_success_and_the_share_of_each_reason_stand_in_the_logs_and_in_tensorboard(mixed):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(next(mixed.output.rglob("events.out.tfevents*")).parent))
    board.Reload()
    drawn = board.Tags()["scalars"]
    for number, step in enumerate(mixed.steps(), start=1):
        records = [record for record in mixed.records() if record.step == number]
        for name in ("success", "strict", "format"):
            values = [getattr(record, name) for record in records]
            known = [value for value in values if value is not None]
            assert step[name] == pytest.approx(sum(known) / len(known), abs=1e-6)
            assert f"train/{name}" in drawn
        for key, name in {**ROUTED, "external_format": "FormatReward"}.items():
            reasons = [record.reasons[key] for record in records]
            for reason in set(reasons):
                metric = f"reasons/{name}/{reason.replace(' ', '_')}"
                share = reasons.count(reason) / len(reasons)
                assert step[metric] == pytest.approx(share, abs=1e-6)
                assert f"train/{metric}" in drawn


def test_a_reason_seen_once_is_logged_from_then_on(mixed):
    """As 0 in a step without it, so that its curve has no holes."""
    for before, after in itertools.pairwise(mixed.steps()):
        assert {name for name in before if name.startswith("reasons/")} <= after.keys()
