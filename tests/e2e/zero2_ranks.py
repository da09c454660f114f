"""Prints how far gradients under ZeRO-2 and ZeRO-3 are from those without; torchrun starts it twice.

One line of JSON, with a row for each model and float type: whether that is bfloat16, and the relative
distances under ZeRO-2 and ZeRO-3.
"""

import json
import sys

import deepspeed
import torch
from deepspeed.utils import safe_get_full_grad
from transformers import AutoModelForCausalLM

from swift_rlvr.utils.files import TINY_MODEL

ACCUMULATION = 2  # batches of a rank in one step

# It compiles C++. As an attribute of deepspeed.comm the module is hidden by torch itself.
setattr(sys.modules["deepspeed.comm.torch"], "build_shm_op", lambda *args: None)  # noqa: B010
deepspeed.init_distributed("gloo")
rank = torch.distributed.get_rank()
tokens = torch.randint(5, 60, (4, 4, 24), generator=torch.Generator().manual_seed(0))


class UsedTwice(torch.nn.Module):
    """A layer that two places of the model share: its gradient is complete only after both."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.shared = torch.nn.Linear(24, 24)
        self.last = torch.nn.Linear(24, 1)

    def forward(self, input_ids, labels):
        inputs = input_ids.to(self.last.weight.dtype) / 60
        hidden = self.shared(self.shared(inputs).tanh()).tanh()
        return self.last(hidden).float().square().mean()


def tiny_model():
    model = AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)
    model.gradient_checkpointing_enable()
    model.train()
    return model


def gradient_of_step(model, stage: int, bf16: bool) -> torch.Tensor:
    """Of one step of both ranks, all parameters in a row."""
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": ACCUMULATION,
        "bf16": {"enabled": bf16},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 20000, "overlap_comm": False},
        "optimizer": {"type": "Adam", "params": {"torch_adam": True}},
    }
    parameters = list(model.parameters())
    engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters, config=config)
    first = ACCUMULATION * rank
    for batch in tokens[first : first + ACCUMULATION]:
        loss = engine(input_ids=batch, labels=batch)
        if not torch.is_tensor(loss):
            loss = loss.loss
        engine.backward(loss)
        if engine.is_gradient_accumulation_boundary():
            # All ranks together put the parts of a gradient in one place.
            parts = [safe_get_full_grad(weight) for weight in model.parameters()]
            gradient = torch.cat([part.flatten().float() for part in parts])
        engine.step()
    return gradient


rows = []
for make_model in (UsedTwice, tiny_model):
    for bf16 in (False, True):
        plain = gradient_of_step(make_model(), 0, bf16)
        row = [bf16]
        for stage in (2, 3):
            difference = gradient_of_step(make_model(), stage, bf16) - plain
            row.append((difference.norm() / plain.norm()).item())
        rows.append(row)
if rank == 0:
    print(json.dumps(rows))
