"""Colocate mode: an update that vLLM's layers do not hold is an error in the trainer. With vLLM itself
and ms-swift's engine in one process, `colocated_engine.py`; tests/e2e/test_lora.py has the server.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from swift_rlvr.training.ms_swift.__main__ import set_environment
from swift_rlvr.utils.inductor import DISABLED

pytest.importorskip("swift", reason="needs the extra [train]")
pytest.importorskip("vllm")

from peft import LoraConfig, get_peft_model
from swift.rlhf_trainers.rollout_mixin import RolloutTrainerMixin

from swift_rlvr.training.ms_swift.replacements import confirmed_move

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "colocated_engine.py"


@pytest.fixture(scope="module")
def found():
    """The error of each fault, or None."""
    # Without torch's compiler, which takes seconds and has no part in it.
    env = os.environ | {DISABLED: "1"}
    set_environment("cpu", "rlhf", [], env)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM)], env=env, capture_output=True, text=True, timeout=1800
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("update", ["base", "first", "second", "again", "before it is lost"])
def test_an_update_that_arrives_is_none(found, update):
    assert found[update] is None


@pytest.mark.parametrize("update", ["the first", "the second"])
def test_completions_are_sampled_with_the_adapter_that_was_sent_last(found, update):
    assert found[f"difference after {update}"] < 1e-3
    # Also after the faults.
    assert found["difference again"] < 1e-3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("base without a parameter", "left out 1 parameters: ['model.norm.weight']"),
        ("not in place", "vLLM kept the adapter of an earlier update"),
        ("not activated", "vLLM kept the adapter of an earlier update"),
        ("a layer keeps the old one", "model.layers.1.mlp.down_proj does not hold the adapter"),
        ("misnamed", "no layer for 1 modules of the adapter"),
        ("dropped", "vLLM did not load the adapter that was sent"),
        ("cache", "vLLM did not empty its prefix cache"),
        ("lost", "vLLM has lost the adapter"),
    ],
)
def test_a_fault_is_an_error(found, fault, message):
    assert found[fault] is not None
    assert found[fault].startswith("WeightSyncError: ")
    assert message in found[fault]


def test_an_adapter_that_is_not_a_number_is_not_taken_for_one_that_was_dropped(found):
    assert found["not a number"] is None


def test_to_send_an_adapter_changes_no_base_weight_of_the_trainer():
    """ms-swift's own method, on a rank that does not send; merging in bfloat16 rounds."""

    class Rank:
        vllm_mode = "server"
        accelerator = SimpleNamespace(
            is_main_process=False, state=SimpleNamespace(deepspeed_plugin=None)
        )
        args = SimpleNamespace()
        is_deepspeed_enabled = is_fsdp_enabled = _is_fsdp2 = False

        def __init__(self):
            layer = torch.nn.Sequential(torch.nn.Linear(64, 64)).to(torch.bfloat16)
            config = LoraConfig(r=4, target_modules=["0"], init_lora_weights=False)
            self.model = get_peft_model(layer, config)
            self.parameter_groups = [[name for name, _ in self.model.named_parameters()]]

        def base_weight(self):
            return self.model.base_model.model[0].base_layer.weight

    move = inspect.unwrap(RolloutTrainerMixin._move_adapter_to_vllm)
    changed = []
    for make in (lambda original: original, confirmed_move):
        torch.manual_seed(0)
        rank = Rank()
        before = rank.base_weight().clone()
        make(move)(rank)
        changed.append(not torch.equal(rank.base_weight(), before))
        rank.model.merge_adapter()  # merges again
        assert not torch.equal(rank.base_weight(), before)
    assert changed == [True, False]
