"""Gradients of DeepSpeed's zero2 on two ranks, which issue 8224 says were wrong up to 0.19.3
without a word.
"""

import json
import os
import subprocess
import sys

import pytest
from swift_rlvr.utils.network import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
RANK = """
import json
import sys

import deepspeed
import deepspeed.comm.torch
import torch
from deepspeed.utils import safe_get_full_grad
from swift_rlvr.utils.files import TINY_MODEL
from transformers import AutoModelForCausalLM

deepspeed.comm.torch.build_shm_op = lambda *args: None  # compiles C++
deepspeed.init_distributed("gloo")
rank = torch.distributed.get_rank()
tokens = torch.randint(5, 60, (4, 4, 24), generator=torch.Generator().manual_seed(0))


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.shared, self.last = torch.nn.Linear(24, 24), torch.nn.Linear(24, 1)

    def forward(self, input_ids, labels):
        inputs = input_ids.to(self.last.weight.dtype) / 60
        return self.last(self.shared(self.shared(inputs).tanh()).tanh()).float().square().mean()


def policy():
    model = AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)
    model.gradient_checkpointing_enable()
    model.train()
    return model


def gradients(model, stage, bf16):
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": bf16},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 20000, "overlap_comm": False},
        "optimizer": {"type": "Adam", "params": {"torch_adam": True}},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for batch in tokens[2 * rank : 2 * rank + 2]:
        loss = engine(input_ids=batch, labels=batch)
        engine.backward(loss if torch.is_tensor(loss) else loss.loss)
        gradient = torch.cat([safe_get_full_grad(each).flatten().float() for each in model.parameters()]) \\
            if engine.is_gradient_accumulation_boundary() else None
        engine.step()
    return gradient


found = []
for make in (Twice, policy):
    for bf16 in (False, True):
        plain, *zero = (gradients(make(), stage, bf16) for stage in (0, 2, 3))
        found.append([bf16, *(((each - plain).norm() / plain.norm()).item() for each in zero)])
if rank == 0:
    print(json.dumps(found))
"""


def test_gradients_of_two_ranks_are_those_without_zero(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text(RANK)
    torchrun = (
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        "2",
        "--master_port",
        str(free_port()),
    )
    env = os.environ | {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *torchrun, program], env=env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert len(found) == 4
    for bf16, *differences in found:
        assert max(differences) < (0.05 if bf16 else 1e-5), found
