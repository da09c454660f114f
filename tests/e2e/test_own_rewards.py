"""Two steps of a real training with every kind of reward of one's own at once."""

import pytest

from e2e.programs import PLUGINS, Training, train_on
from paths import words

pytestmark = pytest.mark.e2e
OWN = PLUGINS / "own_rewards.py"
# What the trainer is told, and the name that is logged.
SAME = {
    "external_single": "SingleReward",
    "external_single_later": "SingleLaterReward",
    "external_batch": "BatchReward",
    "external_batch_later": "BatchLaterReward",
    "external_of_messages": "OfMessagesReward",
    f"{OWN}:by_path": "by_path",
    f"{OWN}:ByPathLater": "ByPathLater",
    "synchronous": "Synchronous",
    "asynchronous": "Asynchronous",
}


@pytest.fixture(scope="module")
def training(rollout_server, tmp_path_factory) -> Training:
    folder = tmp_path_factory.mktemp("own")
    flags = words(f"""
        --external_plugins {OWN} plugin/rlvr_plugin.py --max_steps 2
        --per_device_train_batch_size 16
        --reward_funcs external_countdown external_sometimes {" ".join(SAME)}
    """)
    return train_on(rollout_server, folder, *flags, NPROC_PER_NODE=1)


def test_every_kind_earns_the_same(training):
    steps = training.steps()
    assert len(steps) == 2
    for step in steps:
        expected = step["rewards/Synchronous/mean"]
        assert 0 < expected < 1
        for name in SAME.values():
            assert step[f"rewards/{name}/mean"] == pytest.approx(expected, abs=1e-6), name
        assert step["grad_norm"] > 0


def test_completions_on_which_one_raises_are_counted(training):
    for number, step in enumerate(training.steps(), start=1):
        records = [record for record in training.records() if record.step == number]
        odd = [record for record in records if len(record.completion) % 2]
        share = len(odd) / len(records)
        assert step["reasons/SometimesReward/raised_an_error"] == pytest.approx(share, abs=1e-6)
        assert step["rewards/SometimesReward/mean"] == pytest.approx(1 - share, abs=1e-6)
        assert {record.rewards["external_sometimes"] for record in odd} <= {0.0}
    assert "ValueError: an odd length" in training.text
