"""Where the patches leave work out, and where they stand back. tests/grpo/test_speedups.py shows with
ms-swift's trainer that loss and gradient stay the same.
"""

import inspect
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("swift", reason="needs the extra [train]")

from swift.rl_core.data import OnPolicySample
from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

from swift_rlvr.training.ms_swift.speedups import (
    alike_lengths_together,
    is_old_policy_read,
    where_wanted,
    without_old_policy,
)

OF_ARGS = {
    "gradient_accumulation_steps": 2,
    "steps_per_generation": 2,
    "log_entropy": False,
    "top_entropy_quantile": 1.0,
}
OF_TEMPLATE = {"sequence_parallel_size": 1, "padding_free": False}
OF_TRAINER = {
    "num_iterations": 1,
    "kl_in_reward": False,
    "use_liger_loss": False,
    "rollout_importance_sampling_mode": None,
    "loss_type": "grpo",
    "dynamic_num_samples": False,
    "sdar_loss_coef": 0.0,
    "_teacher_model": None,
}


def trainer(training: bool = True, dropout: float = 0.0, **changed):
    """ms-swift's trainer with what these two methods read, without its models, processes and
    server.
    """
    made = GRPOTrainer.__new__(GRPOTrainer)
    given = {
        name: {key: changed.pop(key, value) for key, value in defaults.items()}
        for name, defaults in (
            ("args", OF_ARGS),
            ("template", OF_TEMPLATE),
            ("trainer", OF_TRAINER),
        )
    }
    assert not changed
    made.args = SimpleNamespace(**given["args"])
    made.template = SimpleNamespace(**given["template"])
    vars(made).update(given["trainer"])
    made.model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(dropout))
    made.model.train(training)
    return made


SAMPLES = [
    OnPolicySample(messages=[], response_token_ids=ids)
    for ids in ([1] * 9, [1], [[1, 2], [3]], [1] * 7)
]
# Another test of this process may have patched it.
SPLIT_OF_SWIFT = inspect.unwrap(GRPOTrainer.split_by_mini_batches)
SPLIT = alike_lengths_together(SPLIT_OF_SWIFT)


def places(batches) -> list[list[int]]:
    return [
        [next(i for i, sample in enumerate(SAMPLES) if sample is one) for one in batch]
        for batch in batches
    ]


@pytest.mark.parametrize(
    "loss_type", ["grpo", "sapo", "dr_grpo", "dapo", "cispo"], ids=lambda name: name
)
def test_micro_batches_hold_completions_of_like_length(loss_type):
    assert places(SPLIT(trainer(loss_type=loss_type), SAMPLES)) == [[1, 2], [3, 0]]


@pytest.mark.parametrize(
    "changed",
    [
        {"num_iterations": 2},
        {"gradient_accumulation_steps": 1},
        {"loss_type": "bnpo"},
        {"loss_type": "real"},
        {"use_liger_loss": True},
        {"log_entropy": True},
        {"top_entropy_quantile": 0.8},
        {"kl_in_reward": True},
        {"dynamic_num_samples": True},
        {"_teacher_model": "a model"},
        {"sdar_loss_coef": 0.1},
        {"padding_free": True},
    ],
    ids=str,
)
def test_otherwise_they_stay_in_order(changed):
    assert places(SPLIT(trainer(**changed), SAMPLES)) == [[0, 1], [2, 3]]


def test_an_evaluation_stays_in_order():
    assert places(SPLIT(trainer(training=False), SAMPLES)) == [[0, 1, 2, 3]]


FOR_A_TEACHER = OnPolicySample(messages=[], teacher_prompt="The answer is 4. Explain it.")


@pytest.mark.parametrize(
    ("changed", "samples", "is_read"),
    [
        ({}, SAMPLES, False),
        ({"use_liger_loss": True}, SAMPLES, False),
        ({"rollout_importance_sampling_mode": "token_truncate"}, SAMPLES, False),
        ({"dynamic_num_samples": True}, SAMPLES, False),
        ({"padding_free": True}, SAMPLES, False),
        ({"training": False}, SAMPLES, True),
        ({"num_iterations": 2}, SAMPLES, True),
        ({"gradient_accumulation_steps": 1}, SAMPLES, True),
        ({"kl_in_reward": True}, SAMPLES, True),
        ({"_teacher_model": "a model"}, SAMPLES, True),
        (
            {"use_liger_loss": True, "rollout_importance_sampling_mode": "token_truncate"},
            SAMPLES,
            True,
        ),
        ({"dropout": 0.1}, SAMPLES, True),
        ({}, [*SAMPLES, FOR_A_TEACHER], True),
    ],
    ids=str,
)
def test_the_old_policy_is_computed_where_somebody_reads_it(changed, samples, is_read):
    assert is_old_policy_read(trainer(**changed), samples) == is_read


def test_attention_that_drops_activations_counts_as_dropout():
    made = trainer()
    made.model.config = SimpleNamespace(attention_dropout=0.1)
    assert is_old_policy_read(made, SAMPLES)


class TwoMicroBatches:
    """The order of ms-swift's `_prepare_batch_inputs`."""

    use_liger_loss = kl_in_reward = False
    rollout_importance_sampling_mode = None
    model = torch.nn.Linear(1, 1).train()

    def old_policy(self):
        return False

    def _has_teacher_explicit(self):
        return False

    def _get_per_token_logps_and_entropies(self, model, inputs, batch, origin_data=None):
        return batch, None

    def prepare(self, samples):
        found = []
        for batch in ("first", "second"):
            for _ in ("old policy", "reference, which may be the same model"):
                log_probs = self._get_per_token_logps_and_entropies
                found.append(log_probs(self.model, {}, batch, origin_data=None)[0])
        return found


def test_of_each_micro_batch_the_first_pass_is_left_out():
    made = TwoMicroBatches()
    prepare = without_old_policy(TwoMicroBatches.prepare)
    assert prepare(made, SAMPLES) == [None, "first", None, "second"]
    # For the loss, afterwards, nothing is left out.
    assert made._get_per_token_logps_and_entropies(made.model, {}, "third")[0] == "third"


@pytest.mark.parametrize(("value", "left_alone"), [("0", True), ("1", False), (None, False)])
def test_one_variable_turns_them_off(monkeypatch, value, left_alone):
    monkeypatch.delenv("SWIFT_RLVR_SPEEDUPS", raising=False)
    if value is not None:
        monkeypatch.setenv("SWIFT_RLVR_SPEEDUPS", value)
    split = where_wanted(alike_lengths_together)(SPLIT_OF_SWIFT)
    in_order = places(split(trainer(), SAMPLES)) == [[0, 1], [2, 3]]
    assert in_order == left_alone
