"""What the patches leave out of ms-swift's GRPO trainer changes neither its loss nor its gradient.

    python -m pytest tests/grpo/test_speedups.py -s      # prints forward passes and tokens

ms-swift's trainer trains on the same completions with and without the patches (`peers.py` says what
is put into it), in a case for each setting of the loss that reads what they leave out or change.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest
import torch

from grpo import peers
from grpo.peers import Case
from grpo.test_against_trainers import Ours

pytest.importorskip("swift", reason="needs the extra [train]")
pytestmark = pytest.mark.slow

STEPS = 2
LORA = "--tuner_type lora --lora_rank 4 --lora_dropout {}"
ONCE = Case("grpo", iterations=1)  # one update with each batch of completions
IMPORTANCE = "--rollout_importance_sampling_mode {} --log_rollout_offpolicy_metrics true"

# Cases by the patches that are in effect: both, only that of the old policy, none.
BOTH = {
    "no reference": ONCE,
    "a reference model": replace(ONCE, beta=0.04),
    "LoRA, the reference without adapter": replace(ONCE, beta=0.04, flags=LORA.format(0)),
    "DAPO": replace(ONCE, aggregation="dapo", high=0.28),
    "Dr.GRPO": replace(ONCE, aggregation="dr_grpo", beta=0.04, scale=False),
    "GSPO": replace(ONCE, level="sequence"),
    "CISPO": replace(ONCE, aggregation="cispo"),
    "SAPO": replace(ONCE, aggregation="sapo"),
    "importance of tokens": replace(ONCE, flags=IMPORTANCE.format("token_truncate")),
    "importance of sequences": replace(ONCE, flags=IMPORTANCE.format("sequence_mask")),
    "overlong ones left out": replace(ONCE, flags="--overlong_filter true"),
    "resampling": replace(ONCE, flags="--dynamic_sample true --max_resample_times 1"),
}
OLD_POLICY = {
    "a mean of the micro-batch": replace(ONCE, aggregation="bnpo"),
    "logged entropies": replace(ONCE, flags="--log_entropy true"),
    "the micro-batch's entropies": replace(ONCE, flags="--top_entropy_quantile 0.8"),
}
NONE = {
    "several updates": Case("grpo", 0.04),
    "three updates, each with a third": replace(
        ONCE, flags="--gradient_accumulation_steps 1 --steps_per_generation 3"
    ),
    "the KL term in the reward": replace(ONCE, beta=0.04, flags="--kl_in_reward true"),
}
# Other activations are dropped where the micro-batches are others: no two runs can be compared.
DROPOUT = {"LoRA with dropout": replace(ONCE, flags=LORA.format(0.05))}
CASES = BOTH | OLD_POLICY | NONE | DROPOUT
# For what one of the others shows of our patches too; these are about the loss of the ms-swift that is pinned.
WEEKLY = {
    "a reference model",
    "Dr.GRPO",
    "GSPO",
    "CISPO",
    "SAPO",
    "importance of tokens",
    "importance of sequences",
    "overlong ones left out",
    "resampling",
    "logged entropies",
    "the micro-batch's entropies",
}


def parameters(names):
    """Of a test, one for each of these cases."""
    every_week = [pytest.mark.weekly]
    return [pytest.param(name, marks=every_week if name in WEEKLY else []) for name in names]


@pytest.fixture(scope="module")
def results(request, tmp_path_factory):
    """For each of the two the steps of a case, from one process: its imports take as long as the cases.

    The patches come after the run without them, since nothing takes them away.
    """
    asked_for = {
        item.callspec.params["name"]
        for item in request.session.items
        if item.path == request.path and "results" in item.fixturenames
    }
    sampled = replace(Ours(request.config.rootpath).sampled, steps=STEPS)
    folder = tmp_path_factory.mktemp("speedups")
    folders = {"as it is": folder / "original", "patched": folder / "patched"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for name, speedups in (("as it is", False), ("patched", True)):
            cases = [case for name, case in CASES.items() if name in asked_for]
            pool.submit(peers.run_swift, cases, sampled, folders[name], speedups).result()

    def of(name):
        paths = [folder / f"{CASES[name]}.pt" for folder in folders.values()]
        return [torch.load(path) for path in paths]

    return of


def gradient_difference(left, right):
    """Relative, as a whole."""
    assert left.keys() == right.keys()
    difference = sum((left[name] - right[name]).square().sum() for name in left)
    return (difference / sum(gradient.square().sum() for gradient in left.values())).sqrt()


@pytest.mark.parametrize("name", parameters(name for name in CASES if name not in DROPOUT))
def test_loss_and_gradient_are_the_same(results, name):
    original, patched = results(name)
    assert len(original) == STEPS
    for before, after in zip(original, patched, strict=True):
        assert before["loss"] != 0
        assert after["loss"] == pytest.approx(before["loss"], rel=1e-5, abs=1e-8)
        assert gradient_difference(before["gradients"], after["gradients"]) < 1e-5


@pytest.mark.parametrize("name", parameters(CASES))
def test_so_much_work_is_left_out(results, name):
    """Forward passes of the policy, and the tokens in them with padding."""
    case = CASES[name]
    passes, tokens = [], []
    for steps in results(name):
        passes.append(sum(len(step["passes"]) for step in steps))
        tokens.append(sum(sum(step["passes"]) for step in steps))
    print(f"{name}: passes {passes[0]} -> {passes[1]}, tokens {tokens[0]} -> {tokens[1]}")
    left_out = STEPS * case.micro_batches
    if name in NONE or name in DROPOUT:
        left_out = 0
    assert passes[0] - passes[1] == left_out
    if name in BOTH:
        assert tokens[1] < tokens[0] * passes[1] / passes[0]
    elif name not in DROPOUT:
        assert tokens[1] == tokens[0] * passes[1] / passes[0]
