"""What the patches leave out on a CPU changes no number that training uses."""

from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("swift", reason="needs the extra [train]")

from swift.rl_core.data import OnPolicySample
from swift.rlhf_trainers.grpo_trainer import GRPOTrainer
from swift_rlvr.training.ms_swift.replacements import alike_lengths_together, without_old_policy


def trainer(**arguments):
    """ms-swift's trainer with what these two methods read, without its models, processes and
    server.
    """
    made = GRPOTrainer.__new__(GRPOTrainer)
    made.args = SimpleNamespace(
        **{
            "gradient_accumulation_steps": 2,
            "steps_per_generation": 2,
            "log_entropy": False,
            **arguments,
        }
    )
    made.num_iterations = arguments.get("num_iterations", 1)
    made.template = SimpleNamespace(sequence_parallel_size=1)
    made.model = torch.nn.Linear(1, 1).train()
    made.kl_in_reward, made.ref_model = arguments.get("kl_in_reward", False), torch.nn.Linear(1, 1)
    return made


SAMPLES = [
    OnPolicySample(messages=[], response_token_ids=ids)
    for ids in ([1] * 9, [1], [[1, 2], [3]], [1] * 7)
]
SPLIT = alike_lengths_together(GRPOTrainer.split_by_mini_batches)


def places(batches) -> list[list[int]]:
    return [
        [next(i for i, sample in enumerate(SAMPLES) if sample is one) for one in batch]
        for batch in batches
    ]


def test_micro_batches_hold_completions_of_like_length():
    assert places(SPLIT(trainer(), SAMPLES)) == [[1, 2], [3, 0]]


@pytest.mark.parametrize(
    "arguments",
    [{"log_entropy": True}, {"num_iterations": 2}, {"gradient_accumulation_steps": 1}],
    ids=["entropies in the order of the completions", "several updates", "a micro-batch is a step"],
)
def test_otherwise_they_stay_in_order(arguments):
    assert places(SPLIT(trainer(**arguments), SAMPLES)) == [[0, 1], [2, 3]]


def log_probs(self, model, *args, **kwargs):
    return torch.ones(1), None


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [({}, False), ({"num_iterations": 2}, True), ({"kl_in_reward": True}, True)],
)
def test_the_old_policy_is_computed_only_where_it_can_differ_from_the_policy(arguments, needed):
    made, compute = trainer(**arguments), without_old_policy(log_probs)
    with torch.no_grad():
        assert (compute(made, made.model)[0] is not None) == needed
        assert compute(made, made.ref_model)[0] is not None
    assert compute(made, made.model)[0] is not None  # with gradients: the loss
