"""Supervised training, GRPO of a LoRA adapter, and evaluation of it merged: of the tiny model, and of a
language model of others.
"""

import json
import math

import pytest

from commands import ran
from e2e.programs import SWIFT, SWIFT_RLVR, RolloutServer, run_to_the_end
from paths import words
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl
from swift_rlvr.utils.network import free_port

pytestmark = pytest.mark.e2e
SUMS = "reasoning_gym:chain_sum?min_terms=2&max_terms=2&min_digits=1&max_digits=1"


def test_the_tiny_model_from_right_answers_to_an_evaluated_adapter(rollout_server, tmp_path):
    """On the server of all tests, which gets every weight of the adapter's base with the first update."""
    from_right_answers_to_an_evaluated_adapter(
        str(TINY_MODEL),
        "--model_type qwen2 --template qwen2_5",
        3e-3,
        tmp_path,
        rollout_server,
    )


@pytest.mark.weekly  # the same steps, for two minutes and a half of a processor
def test_smollm2_from_right_answers_to_an_evaluated_adapter(smollm2, tmp_path):
    from_right_answers_to_an_evaluated_adapter(
        smollm2, "--model_type llama --template chatml", 1e-4, tmp_path
    )


def from_right_answers_to_an_evaluated_adapter(
    model: str, kind: str, learning_rate: float, tmp_path, server: RolloutServer | None = None
) -> None:
    rows, cold, output, evaluation = (
        tmp_path / name for name in ("rows.jsonl", "cold", "output", "evaluation")
    )

    def run(program: tuple[str, ...], arguments: str, name: str, **variables: str) -> str:
        log = tmp_path / f"{name}.log"
        return run_to_the_end(program, words(arguments, model), log, **variables)

    ran("dataset", "make", "sft", f"{SUMS}:train#100", "--out", rows)
    supervised = f"""
        sft scripts/configs/cold_start_cpu.yaml --model {model} {kind} --dataset {rows}
        --output_dir {cold} --learning_rate {learning_rate} --max_steps 10
        --per_device_train_batch_size 4 --report_to none
    """
    run(SWIFT, supervised, "cold_start")
    losses = [row["loss"] for _, row in read_jsonl(cold / "logging.jsonl") if "loss" in row]
    assert losses[-1] < losses[0] / 2

    adapter = f"""
        train scripts/configs/smollm2_cpu.yaml --model {cold}/checkpoint-10 {kind}
        --dataset {SUMS}:train#100 --tuner_type lora --deepspeed zero2 --learning_rate 1e-3
        --lora_rank 16 --lora_dtype bfloat16 --lora_dropout 0
        --max_steps 2 --save_steps 2 --per_device_train_batch_size 8 --gradient_accumulation_steps 1
        --max_completion_length 32 --report_to none --output_dir {output}
        --vllm_server_port {server.port if server else free_port()}
        --vllm_server_group_port {server.sync_port if server else free_port()}
    """
    # Two ranks with ZeRO-3 would take minutes for the first step of SmolLM2.
    variables = {"NPROC_PER_NODE": "1", "START_SERVER": "0" if server else "1"}
    run(SWIFT_RLVR, adapter, "grpo", **variables)
    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    assert len(steps) == 2
    for step in steps:
        assert math.isfinite(step["loss"])
        assert 0 <= step["success"] <= 1

    last = output / "checkpoint-2"
    assert (last / "adapter_config.json").exists()
    evaluate = f"""
        evaluate {last} --dataset {SUMS}:test#8 --max_completion_length 32 --engine transformers
        --out {evaluation}
    """
    ran(*words(evaluate, str(tmp_path)))
    summary = json.loads((evaluation / "summary.json").read_text())
    assert summary["tasks"] == 8
    # As in the training.
    assert summary["settings"]["system"].startswith("A conversation")
