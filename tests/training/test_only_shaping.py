"""groups/only_shaping: which groups count, and what the callback reads of ms-swift's and TRL's trainers.

That it is logged: tests/training/test_trl.py, tests/grpo/test_trainer.py and, from ms-swift's own record, below.
"""

import math
from collections import defaultdict, deque
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
from swift_rlvr.rewards import REWARDS  # noqa: E402
from swift_rlvr.runs.grades import ONLY_SHAPING, only_shaping  # noqa: E402
from swift_rlvr.success import role_of  # noqa: E402

COUNTDOWN, LENGTH = REWARDS["countdown"](), REWARDS["length"]()
Format = type("Format", (), {"__call__": lambda self, completions, **columns: [0.0] * len(completions)})  # ms-swift's
NAN = math.nan


def unknown(completions, **columns):
    return [0.0] * len(completions)


def test_which_rewards_are_shaping():
    roles = [role_of(each) for each in (COUNTDOWN, LENGTH, Format(), unknown)]
    assert roles == ["verifier", "shaping", "format", None]


@pytest.mark.parametrize(
    ("outcome", "length", "weights", "counts"),
    [
        ([0, 0], [1, 2], [1, 1], True),  # all wrong, and the length alone differs
        ([1, 1], [1, 2], [1, 1], True),  # all right
        ([0, 1], [1, 2], [1, 1], False),  # the outcome differs too
        ([0, 1], [2, 1], [1, 1], False),  # and even where the sums are equal: there is no spread
        ([0, 0], [2, 2], [1, 1], False),  # no spread
        ([0, 0], [1, 2], [1, 0], False),  # no weight
        ([0, 1], [1, 2], [0, 1], True),  # a verifier without a weight is only logged
        ([0, NAN], [1, 2], [1, 1], True),  # None counts as 0
        ([0, None], [1, 2], [1, 1], True),
        ([NAN, NAN], [NAN, NAN], [1, 1], False),
        ([0, 0], [1, 1 + 1e-9], [1, 1], False),  # rounding
    ],
)
def test_which_groups_count(outcome, length, weights, counts):
    assert only_shaping([COUNTDOWN, LENGTH], [outcome, length], weights, 2) == {ONLY_SHAPING: float(counts)}


def test_the_share_is_of_all_groups_and_every_verifier_must_agree():
    outcome, other, length = [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0], [1, 2, 1, 2, 1, 2]
    judge = type("Judge", (), {"role": "verifier"})()
    shares = only_shaping([COUNTDOWN, judge, LENGTH], [outcome, other, length], [1, 1, 1], 2)
    assert shares == {ONLY_SHAPING: 1 / 3}
    assert only_shaping([COUNTDOWN, LENGTH], [outcome, length], [1, 1], 3) == {ONLY_SHAPING: 1 / 2}


def test_nothing_without_a_verifier_or_a_completion():
    assert only_shaping([LENGTH, Format()], [[1, 2], [0, 1]], [1, 1], 2) == {}
    assert only_shaping([COUNTDOWN, LENGTH], [[], []], [1, 1], 2) == {}


# --- the callback


def trainer_of(**more) -> SimpleNamespace:
    """A trainer as the callback sees it, with the record of the batch before and of this one."""
    rewards = {"CountdownReward": [9.0] * 4 + [0, 0, 1, 0], "Format": [9.0] * 4 + [0, 1, 1, 1]}
    record = {name: deque(values, maxlen=8) for name, values in rewards.items()}
    return SimpleNamespace(
        reward_funcs=[COUNTDOWN, Format()], reward_func_names=list(rewards), reward_weights=torch.tensor([1.0, 0.5]),
        num_generations=2, num_generations_eval=1, _logs={"rewards": record}, **more,
    )  # fmt: skip


def shares(trainer, mode: str = "train", count: int = 4) -> dict:
    from swift_rlvr.training.reason_callback import ReasonCallback

    return ReasonCallback(SimpleNamespace(output_dir="unused"), trainer)._groups(mode, count)


@pytest.mark.parametrize(
    ("changes", "call", "expected"),
    [
        ({}, {}, {ONLY_SHAPING: 0.5}),  # of the last batch
        ({"reward_weights": torch.tensor([1.0, 0.0])}, {}, {ONLY_SHAPING: 0.0}),
        ({}, {"mode": "eval"}, {}),  # groups of one
        ({"num_generations_eval": 4}, {"mode": "eval"}, {ONLY_SHAPING: 0.0}),
        ({"num_generations": 3}, {}, {}),  # the batch is no whole number of groups
        ({"dynamic_num_samples": True}, {}, {}),  # of any size
    ],
)
def test_the_callback_counts_the_groups_of_a_batch(changes, call, expected):
    trainer = trainer_of()
    vars(trainer).update(changes)
    assert shares(trainer, **call) == expected


def test_the_reward_of_an_environment_is_a_verifier_and_the_last_one():
    """With ms-swift's use_gym_env, which has a column for it and no function."""
    trainer = trainer_of()
    trainer.reward_func_names = ["CountdownReward", "Format", "gym_reward"]
    trainer._logs["rewards"]["gym_reward"] = deque([9.0] * 4 + [0, 0.5, 1, 0.5], maxlen=8)
    trainer.reward_weights = torch.tensor([1.0, 0.5, 1.0])
    assert shares(trainer) == {ONLY_SHAPING: 0.0}


@pytest.mark.slow
def test_of_what_ms_swift_records():
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.rewards import orms
    from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

    trainer = trainer_of(kl_in_reward=False, beta=0.0, dynamic_num_samples=False, advantage_estimator="grpo",
                         scale_rewards="group", model=SimpleNamespace(training=True))  # fmt: skip
    trainer.reward_funcs[1] = orms["format"](args=None)
    trainer._logs, trainer._metrics = {"rewards": defaultdict(lambda: deque(maxlen=4))}, {"train": defaultdict(list)}
    GRPOTrainer._compute_advantages(trainer, [], torch.tensor([[0, 0], [0, 1], [1, 1], [0, 1], [0.0, NAN]])[:4], [])
    assert shares(trainer) == {ONLY_SHAPING: 0.5}
    assert trainer._metrics["train"]["frac_reward_zero_std"] == [0.0]
