"""The recipes for one GPU that share it with vLLM, on a CPU: zero2 on one rank, with another model,
device and batch.

vLLM in the trainer's process needs a GPU; a rollout server takes its place.
"""

import math

import pytest

from e2e.programs import SWIFT_RLVR, Training, run_to_the_end
from paths import DATASETS, words
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.utils.network import free_port

pytestmark = pytest.mark.e2e
SMALL = """
    --model_type qwen2 --template qwen2_5 --check_model false
    --torch_dtype float32 --bf16 false --fp16 false --dataloader_num_workers 0
    --vllm_mode server --vllm_server_host 127.0.0.1
    --max_steps 2 --save_steps 2 --logging_steps 1
    --per_device_train_batch_size 4 --gradient_accumulation_steps 2
"""


@pytest.fixture
def trained(rollout_server, tmp_path):
    """Trains a recipe, with these flags, on the server of all tests."""

    def train(recipe: str, flags: str) -> Training:
        output = tmp_path / "output"
        arguments = words(f"""
            train scripts/configs/{recipe}.yaml --output_dir {output} {SMALL} {flags}
            --model {rollout_server.model} --vllm_server_port {rollout_server.port}
            --vllm_server_group_port {rollout_server.sync_port}
        """)
        variables = {"START_SERVER": 0, "MASTER_PORT": free_port()}
        text = run_to_the_end(SWIFT_RLVR, arguments, tmp_path / "log", **variables)
        return Training(output, text)

    return train


def check_steps(training: Training, k3_kl: float) -> None:
    """Two steps and a checkpoint; the server had the trainer's weights."""
    names = [path.name for path in whole_checkpoints(training.output)]
    assert names == ["checkpoint-2"]
    steps = training.steps()
    assert len(steps) == 2
    for step in steps:
        assert math.isfinite(step["reward"])
        # The one group of a step teaches nothing where all eight completions have one reward.
        assert step["grad_norm"] > 0 or step["frac_reward_zero_std"] == 1
        assert step["rollout_correction/k3_kl"] < k3_kl
    assert len(training.records("train")) == 2 * 8


@pytest.mark.product
def test_gsm8k_reaches_a_checkpoint(trained):
    training = trained("gsm8k", f"--dataset gsm8k:{DATASETS}/gsm8k/train.jsonl")
    # top_p is 0.9, of which the trainer's probabilities know nothing: docs/recipes/faster.md.
    check_steps(training, k3_kl=1e-2)
    assert training.records("eval") == []


@pytest.mark.weekly  # as above with other rows; test_training.py has an evaluation of ms-swift's
def test_r1_zero_reaches_a_checkpoint_and_is_evaluated(trained):
    data = DATASETS / "numina_math_tir"
    training = trained(
        "r1_zero",
        f"""--dataset numina_math_tir:{data}/train.jsonl --val_dataset numina_math_tir:{data}/test.jsonl
        --vllm_max_model_len 1024 --max_length 700 --eval_steps 2 --per_device_eval_batch_size 8""",
    )
    check_steps(training, k3_kl=1e-5)
    assert len(training.records("eval")) == 8  # one completion of each of the rows
    (evaluation,) = [row for row in training.rows() if "eval_reward" in row]
    assert math.isfinite(evaluation["eval_reward"])
