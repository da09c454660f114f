"""A few GRPO steps and an evaluation of ms-swift's, with the real rollout server and two real ZeRO-3
ranks.
"""

import pytest
import torch
import transformers

from e2e.conftest import STEPS
from swift_rlvr.utils.files import TINY_MODEL

pytestmark = pytest.mark.e2e
CLASSES = {
    "external_countdown": "CountdownReward",
    "external_accuracy": "AccuracyReward",
    "external_code": "CodeReward",
    "external_cosine": "CosineLengthReward",
    "external_format": "FormatReward",
    "ShareOfDigits": "ShareOfDigits",
}


def test_the_rows_that_are_held_out_are_evaluated_and_not_trained_on(mixed):
    (evaluation,) = [row for row in mixed.rows() if "eval_reward" in row]
    assert evaluation["eval_reward"] > 0
    assert 0 <= evaluation["eval_success"] <= 1
    trained = {str(record.messages) for record in mixed.records("train")}
    evaluated = [str(record.messages) for record in mixed.records("eval")]
    assert len(evaluated) == 8 * 4
    assert len(set(evaluated)) == 8
    assert not trained & set(evaluated)


def test_every_step_logs_the_rewards_under_their_class_names(mixed):
    steps = mixed.steps()
    assert len(steps) == STEPS
    for number, step in enumerate(steps, start=1):
        records = [record for record in mixed.records() if record.step == number]
        totals = []
        for record in records:
            paid = [reward for reward in record.rewards.values() if reward is not None]
            totals.append(sum(paid))
        assert step["reward"] == pytest.approx(sum(totals) / len(totals), abs=1e-4)
        for key, name in CLASSES.items():
            rewards = [record.rewards[key] for record in records]
            known = [reward for reward in rewards if reward is not None]
            if not known:  # no row of the step has a task of this reward
                continue
            mean = sum(known) / len(known)
            assert step[f"rewards/{name}/mean"] == pytest.approx(mean, abs=1e-4)
        assert 0 < step["rewards/ShareOfDigits/mean"] < 1


def test_the_server_samples_from_the_weights_of_the_step(mixed):
    """The trainer's and the server's log-probabilities of the sampled tokens agree at every step,
    updates included.

    At this learning rate weights that are one step old show in the second step's value.
    """
    for step in mixed.steps():
        assert step["grad_norm"] > 0
        assert step["rollout_correction/k3_kl"] < 1e-5


def test_a_rank_that_samples_on_a_server_imports_no_engine_of_vllm(mixed):
    """TRL warns of vLLM's version before it imports the engine."""
    log = (mixed.output / "trainer.log").read_text()
    assert "TRL currently supports vLLM" not in log
    assert "step" in log


def test_the_checkpoint_loads_and_has_learned_something(mixed):
    checkpoint = mixed.output / f"checkpoint-{STEPS}"
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    ids = tokenizer("<think> 1 + 2 = 3 </think>", return_tensors="pt").input_ids
    trained = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    start = transformers.AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)
    before = start.state_dict()
    after = trained.state_dict()
    assert before.keys() == after.keys()
    same = [name for name in before if torch.equal(before[name], after[name])]
    assert same == [], "these were not trained, or not saved"
    assert torch.isfinite(trained(ids).logits).all()
