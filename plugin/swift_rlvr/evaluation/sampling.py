"""Prompts -> completions, sampled with transformers or with vLLM from the policy as it is: by temperature alone.

The top-k, top-p and penalties of the model's generation_config are left out. Imports both libraries only when called.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.data.grading import Completion
from swift_rlvr.errors import InputError, require
from swift_rlvr.evaluation.checkpoint import find_checkpoint
from swift_rlvr.models import check_length, end_token_ids, visible_device

BACKENDS = ("auto", "transformers", "vllm")


@dataclass(frozen=True)
class SamplingSettings:
    """How to sample. The same settings on the same machine give the same completions.

    model: a folder with a model and its tokenizer, or with a LoRA adapter, or a hub id.
    samples: completions per prompt. temperature: 0 is greedy. max_new_tokens: the longest completion, in tokens.
    batch_size: completions at a time, for transformers; vLLM decides for itself.
    backend: "auto" is vLLM where it is installed and there is a GPU, else transformers.
    use_hf: a hub id is one of Hugging Face, not of ModelScope.
    """

    model: str
    samples: int = 1
    temperature: float = 1.0
    max_new_tokens: int = 1024
    batch_size: int = 64
    seed: int = 0
    backend: str = "auto"
    use_hf: bool = False

    def __post_init__(self):
        for name, low in (("samples", 1), ("temperature", 0), ("max_new_tokens", 1), ("batch_size", 1), ("seed", 0)):
            if not low <= getattr(self, name) < math.inf:
                raise InputError(f"must be at least {low}, got {getattr(self, name)}", field=name)
        if self.backend not in BACKENDS:
            raise InputError(f"must be one of {', '.join(BACKENDS)}, got {self.backend!r}", field="backend")
        if self.temperature == 0 and self.samples > 1:
            raise InputError(f"must be 1 at temperature 0, where all are the same, got {self.samples}", field="samples")


class Policy:
    """A model in transformers that is ready to be sampled from."""

    def __init__(self, settings: SamplingSettings):
        checkpoint = find_checkpoint(settings.model, settings.use_hf)
        self.settings, self.tokenizer = settings, checkpoint.tokenizer()
        import torch
        from transformers import GenerationConfig

        self.model = checkpoint.model().to("cuda" if visible_device() == "cuda" else "cpu").eval()
        self.ends = end_token_ids(self.tokenizer, self.model)
        pad = self.tokenizer.pad_token_id
        self.pad = self.tokenizer.eos_token_id if pad is None else pad
        sampled = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": settings.temperature}
        self.model.generation_config = GenerationConfig(
            **(sampled if settings.temperature else {"do_sample": False}),
            max_new_tokens=settings.max_new_tokens,
            eos_token_id=self.ends,
            pad_token_id=self.pad,
        )
        torch.manual_seed(settings.seed)

    def generate(self, prompts: Sequence[Sequence[int]], **options: Any) -> list[Completion]:
        """One completion for each prompt of token ids, in one batch; InputError where the context is too short."""
        import torch

        check_length("max_new_tokens", self.settings.max_new_tokens, prompts, self.model.config)
        width = max(map(len, prompts))
        ids = torch.tensor([[self.pad] * (width - len(prompt)) + [*prompt] for prompt in prompts])  # [batch, width]
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        device = self.model.device
        with torch.inference_mode():
            output = self.model.generate(ids.to(device), attention_mask=mask.to(device), **options)
        return [self.completion(generated) for generated in output[:, width:].tolist()]

    def completion(self, generated: Sequence[int]) -> Completion:
        """What was generated after a prompt, up to the first token that ends a turn."""
        length = next((n for n, token in enumerate(generated, start=1) if token in self.ends), None)
        text = self.tokenizer.decode(generated[:length], skip_special_tokens=True)
        return Completion(text, length or len(generated), "length" if length is None else "stop")


def sample(
    settings: SamplingSettings, conversations: Sequence[list[dict[str, str]]], console: Console
) -> list[list[Completion]]:
    """`settings.samples` completions for each conversation (a list of messages that ends with the user's turn)."""
    if choose_backend(settings.backend) == "vllm":
        return _with_vllm(settings, conversations)
    policy = Policy(settings)
    return _with_transformers(policy, prompt_ids(policy.tokenizer, conversations), console)


def prompt_ids(tokenizer: Any, conversations: Sequence[list[dict[str, str]]]) -> list[list[int]]:
    """Each conversation as token ids, up to where the model begins to write."""
    return tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, return_dict=False)


def choose_backend(backend: str) -> str:
    """The backend that "auto" stands for on this machine."""
    if backend != "auto":
        return backend
    require("torch", extra="train", purpose="sampling from a model")
    return "vllm" if visible_device() == "cuda" and find_spec("vllm") else "transformers"


def _with_transformers(policy: Policy, prompts: Sequence[Sequence[int]], console: Console) -> list[list[Completion]]:
    from swift_rlvr.grpo.generation import generate  # four to six times as fast on a CPU as transformers' own

    settings = policy.settings
    check_length("max_new_tokens", settings.max_new_tokens, prompts, policy.model.config)
    # Prompts of similar length share a batch; every sample of a prompt is a row of its own.
    rows = sorted((i for i in range(len(prompts)) for _ in range(settings.samples)), key=lambda i: len(prompts[i]))
    batches = [rows[i : i + settings.batch_size] for i in range(0, len(rows), settings.batch_size)]
    completions: list[list[Completion]] = [[] for _ in prompts]
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"Sampling {len(rows)} completions", total=len(batches) * settings.max_new_tokens)
        for number, batch in enumerate(batches, start=1):
            generated = generate(
                policy.model, [prompts[i] for i in batch], 1, settings.max_new_tokens, policy.ends,
                temperature=settings.temperature, on_token=lambda: progress.advance(bar),
            )  # fmt: skip
            progress.update(bar, completed=number * settings.max_new_tokens)
            for i, tokens in zip(batch, generated, strict=True):
                completions[i].append(policy.completion(tokens))
    return completions


def _with_vllm(settings: SamplingSettings, conversations: Sequence[list[dict[str, str]]]) -> list[list[Completion]]:
    if not find_spec("vllm"):
        raise InputError("vllm is not installed here, use transformers", field="backend")
    checkpoint = find_checkpoint(settings.model, settings.use_hf)
    prompts = prompt_ids(checkpoint.tokenizer(), conversations)
    check_length("max_new_tokens", settings.max_new_tokens, prompts, checkpoint.config())
    gpu = visible_device() == "cuda"
    # The engine is a process of its own. A forked one could not use CUDA if anything here had asked for it before.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    if not gpu:
        os.environ.setdefault("VLLM_PLUGINS", "")  # ms-swift's needs torchvision, which a CPU build of torch lacks
    from vllm import LLM, SamplingParams

    # The engine's seed, not one for each request: those are slow on a GPU, and vLLM's CPU build fails on them.
    params = SamplingParams(n=settings.samples, temperature=settings.temperature, max_tokens=settings.max_new_tokens)
    with checkpoint.merged() as folder:
        llm = LLM(
            folder,
            seed=settings.seed,
            max_model_len=max(map(len, prompts)) + settings.max_new_tokens,
            enforce_eager=not gpu,
            generation_config="vllm",  # vLLM's neutral defaults instead of the model's own
        )
        outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params)
    return [[Completion(one.text, len(one.token_ids), one.finish_reason) for one in each.outputs] for each in outputs]
