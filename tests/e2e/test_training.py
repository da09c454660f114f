"""A few GRPO steps and an evaluation of ms-swift's, with the real rollout server and two real
ZeRO-3 ranks.
"""

import json
from pathlib import Path

import pytest
import torch
from swift_rlvr.runs.records import read_records
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
STEPS = 3


@pytest.fixture(scope="module")
def finished(_servers, tmp_path_factory) -> tuple[list[dict], Path]:
    """The logged lines and the checkpoint of one short run."""
    folder = tmp_path_factory.mktemp("training")
    flags = f"--max_steps {STEPS} --save_strategy steps --save_steps {STEPS} --save_only_model true"
    flags += " --log_rollout_offpolicy_metrics true --log_completions true"
    flags += f" --split_dataset_ratio 0.008 --eval_steps {STEPS} --per_device_eval_batch_size 8"
    run = _servers().trainer(folder, *flags.split())
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    lines = [
        json.loads(line) for line in (folder / "output" / "logging.jsonl").read_text().splitlines()
    ]
    return lines, folder / "output" / f"checkpoint-{STEPS}"


@pytest.fixture(scope="module")
def steps(finished) -> list[dict]:
    return [line for line in finished[0] if "reward" in line]


def test_the_rows_that_are_held_out_are_evaluated_and_not_trained_on(finished):
    lines, checkpoint = finished
    (evaluation,) = [line for line in lines if "eval_reward" in line]
    assert evaluation["eval_reward"] > 0 and 0 <= evaluation["eval_success"] <= 1
    records = list(read_records(checkpoint.parent / "records.jsonl"))
    prompts = [
        [str(record.messages) for record in part]
        for part in (records[: STEPS * 16], records[STEPS * 16 :])
    ]
    assert len(prompts[1]) == 8 * 4 and len(set(prompts[1])) == 8
    assert not set(prompts[0]) & set(prompts[1])


def test_every_step_logs_the_rewards_under_their_class_names(steps):
    assert len(steps) == STEPS
    for step in steps:
        assert 0 <= step["rewards/CountdownReward/mean"] <= 1
        assert 0 <= step["rewards/Format/mean"] <= 1
        assert 0 < step["rewards/ShareOfDigits/mean"] < 1
        means = [
            step[f"rewards/{name}/mean"] for name in ("CountdownReward", "Format", "ShareOfDigits")
        ]
        assert step["reward"] == pytest.approx(sum(means), abs=1e-4)


def test_the_server_samples_from_the_weights_of_the_step(steps):
    """The trainer's and the server's log-probabilities of the sampled tokens agree at every step,
    updates included.

    At this learning rate weights that are one step old show in the second step's value.
    """
    for step in steps:
        assert step["grad_norm"] > 0
        assert step["rollout_correction/k3_kl"] < 1e-5


def test_the_checkpoint_loads_and_has_learned_something(finished, start_model):
    _, checkpoint = finished
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    ids = tokenizer("<think> 1 + 2 = 3 </think>", return_tensors="pt").input_ids
    trained = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    start = AutoModelForCausalLM.from_pretrained(start_model, dtype=torch.float32)
    before, after = start.state_dict(), trained.state_dict()
    assert before.keys() == after.keys()
    same = [name for name in before if torch.equal(before[name], after[name])]
    assert same == [], "these were not trained, or not saved"
    assert torch.isfinite(trained(ids).logits).all()
