"""Supervised training, GRPO of a LoRA adapter, and evaluation of it merged: of the tiny model, and of a
language model of others.
"""

import json
import math
from pathlib import Path

import pytest

from commands import ran
from e2e.programs import SWIFT, SWIFT_RLVR, RolloutServer, run_to_the_end
from paths import words
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl
from swift_rlvr.utils.network import free_port

pytestmark = pytest.mark.e2e
TINY = "--model_type qwen2 --template qwen2_5"
SUMS = "reasoning_gym:chain_sum?min_terms=2&max_terms=2&min_digits=1&max_digits=1"


def test_the_tiny_model_learns_right_answers_and_is_evaluated(tmp_path):
    checkpoint = trained_on_right_answers(str(TINY_MODEL), TINY, 3e-3, tmp_path)
    evaluate(checkpoint, tmp_path / "evaluation")


@pytest.mark.weekly  # test_lora.py trains adapters, tests/evaluation/sampling/test_checkpoint.py evaluates them
def test_the_tiny_model_from_right_answers_to_an_evaluated_adapter(rollout_server, tmp_path):
    """On the server of all tests, which gets every weight of the adapter's base with the first update."""
    from_right_answers_to_an_evaluated_adapter(
        str(TINY_MODEL), TINY, 3e-3, tmp_path, rollout_server
    )


@pytest.mark.weekly  # the same steps, for two minutes and a half of a processor
def test_smollm2_from_right_answers_to_an_evaluated_adapter(smollm2, tmp_path):
    from_right_answers_to_an_evaluated_adapter(
        smollm2, "--model_type llama --template chatml", 1e-4, tmp_path
    )


def trained_on_right_answers(model: str, kind: str, learning_rate: float, tmp_path: Path) -> Path:
    """The checkpoint of ten steps of supervised training, as scripts/cold_start.sh has ms-swift do them."""
    rows, output = tmp_path / "rows.jsonl", tmp_path / "cold"
    ran("dataset", "make", "sft", f"{SUMS}:train#100", "--out", rows)
    supervised = f"""
        sft scripts/configs/cold_start_cpu.yaml --model {model} {kind} --dataset {rows}
        --output_dir {output} --learning_rate {learning_rate} --max_steps 10
        --per_device_train_batch_size 4 --report_to none
    """
    run_to_the_end(SWIFT, words(supervised, model, str(tmp_path)), tmp_path / "cold_start.log")
    losses = [row["loss"] for _, row in read_jsonl(output / "logging.jsonl") if "loss" in row]
    assert losses[-1] < losses[0] / 2
    return output / "checkpoint-10"


def evaluate(checkpoint: Path, out: Path) -> None:
    flags = f"""
        evaluate {checkpoint} --dataset {SUMS}:test#8 --max_completion_length 32
        --engine transformers --out {out}
    """
    ran(*words(flags, str(checkpoint.parent), str(out.parent)))
    summary = json.loads((out / "summary.json").read_text())
    assert summary["tasks"] == 8
    # As in the training.
    assert summary["settings"]["system"].startswith("A conversation")


def from_right_answers_to_an_evaluated_adapter(
    model: str,
    kind: str,
    learning_rate: float,
    tmp_path: Path,
    server: RolloutServer | None = None,
) -> None:
    cold = trained_on_right_answers(model, kind, learning_rate, tmp_path)
    output = tmp_path / "output"
    adapter = f"""
        train scripts/configs/smollm2_cpu.yaml --model {cold} {kind}
        --dataset {SUMS}:train#100 --tuner_type lora --deepspeed zero2 --learning_rate 1e-3
        --lora_rank 16 --lora_dtype bfloat16 --lora_dropout 0
        --max_steps 2 --save_steps 2 --per_device_train_batch_size 8 --gradient_accumulation_steps 1
        --max_completion_length 32 --report_to none --output_dir {output}
        --vllm_server_port {server.port if server else free_port()}
        --vllm_server_group_port {server.sync_port if server else free_port()}
    """
    # Two ranks with ZeRO-3 would take minutes for the first step of SmolLM2.
    variables = {"NPROC_PER_NODE": "1", "START_SERVER": "0" if server else "1"}
    run_to_the_end(
        SWIFT_RLVR, words(adapter, model, str(tmp_path)), tmp_path / "grpo.log", **variables
    )
    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    assert len(steps) == 2
    for step in steps:
        assert math.isfinite(step["loss"])
        assert 0 <= step["success"] <= 1

    last = output / "checkpoint-2"
    assert (last / "adapter_config.json").exists()
    evaluate(last, tmp_path / "evaluation")
