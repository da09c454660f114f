"""Prompts -> completions, sampled with transformers or with vLLM from the policy as it is: by temperature alone.

The top-k, top-p and penalties of the model's generation_config are left out. Imports both libraries only when called.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.errors import InputError, require
from swift_rlvr.models import check_length, end_token_ids, load_pretrained, load_tokenizer

BACKENDS = ("auto", "transformers", "vllm")


@dataclass(frozen=True)
class SamplingSettings:
    """How to sample. The same settings on the same machine give the same completions.

    model: a folder with the model and its tokenizer, or a hub id.
    samples: completions per prompt. temperature: 0 is greedy. max_new_tokens: the longest completion, in tokens.
    batch_size: completions at a time, for transformers; vLLM decides for itself.
    backend: "auto" is vLLM where it is installed and there is a GPU, else transformers.
    """

    model: str
    samples: int = 1
    temperature: float = 1.0
    max_new_tokens: int = 1024
    batch_size: int = 64
    seed: int = 0
    backend: str = "auto"

    def __post_init__(self):
        for name, low in (("samples", 1), ("temperature", 0), ("max_new_tokens", 1), ("batch_size", 1), ("seed", 0)):
            if not low <= getattr(self, name) < math.inf:
                raise InputError(f"must be at least {low}, got {getattr(self, name)}", field=name)
        if self.backend not in BACKENDS:
            raise InputError(f"must be one of {', '.join(BACKENDS)}, got {self.backend!r}", field="backend")
        if self.temperature == 0 and self.samples > 1:
            raise InputError(f"must be 1 at temperature 0, where all are the same, got {self.samples}", field="samples")


@dataclass(frozen=True)
class Completion:
    """text: without special tokens. tokens: their number, with the end-of-turn token. finish: "stop" or "length"."""

    text: str
    tokens: int
    finish: str


class Policy:
    """A model in transformers that is ready to be sampled from."""

    def __init__(self, settings: SamplingSettings):
        self.settings, self.tokenizer = settings, load_tokenizer(settings.model)
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = load_pretrained(AutoModelForCausalLM, settings.model, dtype="auto").to(device).eval()
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
        completions = []
        for generated in output[:, width:].tolist():
            length = next((n for n, token in enumerate(generated, start=1) if token in self.ends), None)
            text = self.tokenizer.decode(generated[:length], skip_special_tokens=True)
            completions.append(Completion(text, length or len(generated), "length" if length is None else "stop"))
        return completions


def sample(
    settings: SamplingSettings, conversations: Sequence[list[dict[str, str]]], console: Console
) -> list[list[Completion]]:
    """`settings.samples` completions for each conversation (a list of messages that ends with the user's turn)."""
    if choose_backend(settings.backend) == "vllm":
        return _with_vllm(settings, prompt_ids(load_tokenizer(settings.model), conversations))
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
    import torch

    return "vllm" if torch.cuda.is_available() and find_spec("vllm") else "transformers"


def _with_transformers(policy: Policy, prompts: Sequence[Sequence[int]], console: Console) -> list[list[Completion]]:
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    settings = policy.settings
    check_length("max_new_tokens", settings.max_new_tokens, prompts, policy.model.config)

    class Advance(StoppingCriteria):
        """Moves the progress bar on at every token; never stops anything."""

        def __call__(self, input_ids, scores, **kwargs):
            progress.advance(bar)
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    # Prompts of similar length share a batch; every sample of a prompt is a row of its own.
    rows = sorted((i for i in range(len(prompts)) for _ in range(settings.samples)), key=lambda i: len(prompts[i]))
    batches = [rows[i : i + settings.batch_size] for i in range(0, len(rows), settings.batch_size)]
    completions: list[list[Completion]] = [[] for _ in prompts]
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"Sampling {len(rows)} completions", total=len(batches) * settings.max_new_tokens)
        for number, batch in enumerate(batches, start=1):
            stopping = StoppingCriteriaList([Advance()])
            generated = policy.generate([prompts[i] for i in batch], stopping_criteria=stopping)
            progress.update(bar, completed=number * settings.max_new_tokens)
            for i, completion in zip(batch, generated, strict=True):
                completions[i].append(completion)
    return completions


def _with_vllm(settings: SamplingSettings, prompts: Sequence[Sequence[int]]) -> list[list[Completion]]:
    if not find_spec("vllm"):
        raise InputError("vllm is not installed here, use transformers", field="backend")
    import torch
    from transformers import AutoConfig
    from vllm import LLM, SamplingParams

    check_length("max_new_tokens", settings.max_new_tokens, prompts, load_pretrained(AutoConfig, settings.model))
    llm = LLM(
        settings.model,
        seed=settings.seed,
        max_model_len=max(map(len, prompts)) + settings.max_new_tokens,
        enforce_eager=not torch.cuda.is_available(),
        generation_config="vllm",  # vLLM's neutral defaults instead of the model's own
    )
    # The engine's seed, not one for each request: those are slow on a GPU, and vLLM's CPU build fails on them.
    params = SamplingParams(n=settings.samples, temperature=settings.temperature, max_tokens=settings.max_new_tokens)
    outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params)
    return [[Completion(one.text, len(one.token_ids), one.finish_reason) for one in each.outputs] for each in outputs]
