"""ms-swift's vLLM engine in the trainer's process, as in colocate mode, and faults of its updates.

Prints one JSON object: for each check an error's text, or null. A program of its own, because vLLM
changes the process that it runs in. test_confirmation.py runs it with the variables that our launcher
sets.
"""

import json
import os
import sys
from types import SimpleNamespace

import torch
from peft import LoraConfig, get_peft_model
from peft.utils.save_and_load import get_peft_model_state_dict
from swift.infer_engine import GRPOVllmEngine, RequestConfig
from swift.infer_engine.protocol import RolloutInferRequest
from swift.rlhf_trainers.rollout_mixin import RolloutTrainerMixin
from swift.rlhf_trainers.utils import (
    VLLM_LORA_INT_ID,
    VLLM_LORA_NAME,
    VLLM_LORA_PATH,
    TensorLoRARequest,
    patch_vllm_load_adapter,
)
from transformers import AutoModelForCausalLM

from swift_rlvr.training.ms_swift.patching import apply_patches
from swift_rlvr.training.ms_swift.replacements import complete_move, confirmed_move
from swift_rlvr.training.ms_swift.table import CPU
from swift_rlvr.utils.files import TINY_MODEL

PROMPT = RolloutInferRequest(messages=[{"role": "user", "content": "[3, 5, 7] 22"}])


def start_engine() -> GRPOVllmEngine:
    return GRPOVllmEngine(
        str(TINY_MODEL),
        torch_dtype=torch.float32,
        model_type="qwen2",
        template_type="qwen2_5",
        enable_lora=True,
        max_loras=1,
        max_lora_rank=16,
        max_model_len=256,
        enforce_eager=True,
    )


class Policy:
    """The tiny model with an adapter of random values, as many times as asked."""

    def __init__(self):
        self.base = AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)
        self.config = LoraConfig(r=8, lora_alpha=32, target_modules="all-linear")
        self.model = get_peft_model(self.base, self.config)
        self.generator = torch.Generator().manual_seed(0)

    def next_adapter(self) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if "lora_" in name:
                    parameter.normal_(std=0.05, generator=self.generator)
        state = get_peft_model_state_dict(self.model)
        return {name: tensor.detach().clone() for name, tensor in state.items()}


class Trainer:
    """ms-swift's mixin in colocate mode with what its methods of an update read."""

    vllm_mode = "colocate"
    accelerator = SimpleNamespace(is_main_process=True, device=torch.device("cpu"))

    def __init__(self, engine: GRPOVllmEngine, policy: Policy):
        self.engine = engine
        self.policy = policy
        self.model = policy.model

    def send(self, tensors=None, load_inplace=True) -> None:
        """What `_move_adapter_to_vllm` does with the tensors, under its patch."""
        tensors = tensors or self.policy.next_adapter()

        def move_adapter(self) -> None:
            request = TensorLoRARequest(
                lora_name=VLLM_LORA_NAME,
                lora_int_id=VLLM_LORA_INT_ID,
                lora_path=VLLM_LORA_PATH,
                peft_config=self.policy.config.to_dict(),
                lora_tensors=tensors,
                load_inplace=load_inplace,
            )
            self.engine.engine.add_lora(request)

        confirmed_move(move_adapter)(self)
        RolloutTrainerMixin._reset_vllm_cache(self)  # patched by now

    def send_base(self, left_out: str = "") -> None:
        """A full update, under its patch."""

        def move_full(self) -> None:
            weights = self.policy.model.state_dict()
            named = {
                name.removeprefix("base_model.model.").replace(".base_layer", ""): tensor
                for name, tensor in weights.items()
                if "lora_" not in name
            }
            named.pop(left_out, None)
            self.engine.inner_model.load_weights(named.items())

        complete_move(move_full)(self)

    @torch.no_grad()
    def largest_difference(self) -> float:
        """Of the log probabilities of sampled tokens, between vLLM and the policy."""
        config = RequestConfig(
            max_tokens=16, temperature=1.0, seed=1, logprobs=True, return_details=True
        )
        response = self.engine.infer([PROMPT], config, use_tqdm=False)[0].response
        choice = response.choices[0]
        theirs = torch.tensor([token["logprob"] for token in choice.logprobs["content"]])
        ids = torch.tensor([response.prompt_token_ids + choice.token_ids])
        logits = self.policy.model.eval()(ids).logits[0, len(response.prompt_token_ids) - 1 : -1]
        sampled = torch.tensor(choice.token_ids)[:, None]
        ours = logits.log_softmax(-1).gather(1, sampled)[:, 0]
        return (ours - theirs).abs().max().item()


def error_of(function, *args, **options) -> str | None:
    try:
        function(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    trainer = Trainer(start_engine(), Policy())
    manager = trainer.engine.inner_model_executor.driver_worker.worker.model_runner.lora_manager
    found = {}
    found["base"] = error_of(trainer.send_base)
    found["base without a parameter"] = error_of(trainer.send_base, "model.norm.weight")
    found["first"] = error_of(trainer.send)
    found["difference after the first"] = trainer.largest_difference()
    found["second"] = error_of(trainer.send)
    found["difference after the second"] = trainer.largest_difference()
    # An adapter with layers that diverged is not one that was dropped.
    broken = {name: tensor * float("nan") for name, tensor in trainer.policy.next_adapter().items()}
    found["not a number"] = error_of(trainer.send, broken)

    found["not in place"] = error_of(trainer.send, load_inplace=False)

    misnamed = {
        name.replace("layers.0.self_attn.o_proj", "layers.0.self_attn.out"): tensor
        for name, tensor in trainer.policy.next_adapter().items()
    }
    found["misnamed"] = error_of(trainer.send, misnamed)

    inner = manager._adapter_manager
    inner.activate_adapter = lambda lora_id: True
    found["not activated"] = error_of(trainer.send)
    del inner.activate_adapter

    layer = inner.modules["model.layers.1.mlp.down_proj"]
    set_lora = layer.set_lora
    calls = []

    def set_nothing_once(index, lora_a, lora_b):
        calls.append(index)
        if len(calls) > 1:
            set_lora(index, lora_a, lora_b)

    layer.set_lora = set_nothing_once
    found["a layer keeps the old one"] = error_of(trainer.send)
    del layer.set_lora

    add_lora = trainer.engine.engine.add_lora
    trainer.engine.engine.add_lora = lambda request: True
    found["dropped"] = error_of(trainer.send)
    trainer.engine.engine.add_lora = add_lora

    found["again"] = error_of(trainer.send)
    found["difference again"] = trainer.largest_difference()
    trainer.engine.engine.reset_prefix_cache = lambda: False
    found["cache"] = error_of(trainer.send)
    del trainer.engine.engine.reset_prefix_cache

    found["before it is lost"] = error_of(trainer.largest_difference)
    manager.remove_all_adapters()  # as vLLM does after warming up
    found["lost"] = error_of(trainer.largest_difference)
    print(json.dumps(found))


if __name__ == "__main__":
    # Only here: pytest imports this file for its docstrings.
    patch_vllm_load_adapter()
    apply_patches(
        (*CPU.trainer, *CPU.colocated, CPU.server[-1])
    )  # the last one: weights that can be updated
    main()
    sys.stdout.flush()
    os._exit(0)  # vLLM's threads
