"""A real training with every kind of reward of one's own at once."""

import pytest

from e2e.conftest import OWN_REWARDS

pytestmark = pytest.mark.e2e


def test_every_kind_earns_the_same(curriculum):
    for step in curriculum.steps():
        expected = step["rewards/Synchronous/mean"]
        assert 0 < expected < 1
        for name in OWN_REWARDS.values():
            assert step[f"rewards/{name}/mean"] == pytest.approx(expected, abs=1e-6), name
        assert step["grad_norm"] > 0


def test_completions_on_which_one_raises_are_counted(curriculum):
    for number, step in enumerate(curriculum.steps(), start=1):
        records = [record for record in curriculum.records() if record.step == number]
        raised = [record for record in records if len(record.completion) % 5 == 1]
        share = len(raised) / len(records)
        assert step["reasons/SometimesReward/raised_an_error"] == pytest.approx(share, abs=1e-6)
        assert step["rewards/SometimesReward/mean"] == pytest.approx(1 - share, abs=1e-6)
        assert {record.rewards["external_sometimes"] for record in raised} <= {0.0}
    assert "ValueError: one too many" in curriculum.text
