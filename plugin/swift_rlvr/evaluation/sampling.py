"""Prompts -> sampled completions, with transformers or with vLLM.

Sampling is from the policy as it is: temperature only, no top-k, top-p or penalty, whatever the model's
generation_config says. Imports torch, transformers and vllm only when called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.errors import InputError
from swift_rlvr.models import check_length, load_pretrained

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
            if getattr(self, name) < low:
                raise InputError(f"{name} must be at least {low}, got {getattr(self, name)}")
        if self.backend not in BACKENDS:
            raise InputError(f"backend must be one of {', '.join(BACKENDS)}, got {self.backend!r}")
        if self.temperature == 0 and self.samples > 1:
            raise InputError(f"samples must be 1 at temperature 0, where all are the same, got {self.samples}")


@dataclass(frozen=True)
class Completion:
    """text: without special tokens. tokens: their number, with the end-of-turn token. finish: "stop" or "length"."""

    text: str
    tokens: int
    finish: str


def sample(
    settings: SamplingSettings, conversations: Sequence[list[dict[str, str]]], console: Console
) -> list[list[Completion]]:
    """`settings.samples` completions for each conversation (a list of messages that ends with the user's turn)."""
    from transformers import AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, settings.model)
    if not tokenizer.chat_template:
        raise InputError(f"model {settings.model}: its tokenizer has no chat template")
    prompts = [
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        for messages in conversations
    ]
    generate = _with_vllm if choose_backend(settings.backend) == "vllm" else _with_transformers
    return generate(settings, tokenizer, prompts, console)


def choose_backend(backend: str) -> str:
    """The backend that "auto" stands for on this machine."""
    if backend != "auto":
        return backend
    import torch

    return "vllm" if torch.cuda.is_available() and find_spec("vllm") else "transformers"


def _with_transformers(settings, tokenizer, prompts, console) -> list[list[Completion]]:
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig, StoppingCriteria, StoppingCriteriaList

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_pretrained(AutoModelForCausalLM, settings.model, dtype="auto").to(device).eval()
    check_length("max_new_tokens", settings.max_new_tokens, prompts, model.config)
    ends = model.generation_config.eos_token_id
    ends = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id} - {None}
    pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    greedy = {"do_sample": False} if settings.temperature == 0 else {"temperature": settings.temperature}
    # A fresh GenerationConfig: the model's own often brings top-k, top-p and a repetition penalty with it.
    config = GenerationConfig(
        **{"do_sample": True, "top_k": 0, "top_p": 1.0} | greedy,
        max_new_tokens=settings.max_new_tokens,
        eos_token_id=sorted(ends),
        pad_token_id=pad,
    )
    model.generation_config = config

    class Advance(StoppingCriteria):
        """Moves the progress bar on at every token; never stops anything."""

        def __call__(self, input_ids, scores, **kwargs):
            progress.update(bar, completed=done + input_ids.shape[1] - width)
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)

    # Prompts of like length in one batch; every sample of a prompt is a row of its own.
    rows = sorted((i for i in range(len(prompts)) for _ in range(settings.samples)), key=lambda i: len(prompts[i]))
    batches = [rows[i : i + settings.batch_size] for i in range(0, len(rows), settings.batch_size)]
    completions: list[list[Completion]] = [[] for _ in prompts]
    torch.manual_seed(settings.seed)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress, torch.inference_mode():
        bar = progress.add_task(f"Sampling {len(rows)} completions", total=len(batches) * settings.max_new_tokens)
        for number, batch in enumerate(batches):
            done, width = number * settings.max_new_tokens, max(len(prompts[i]) for i in batch)
            ids = torch.tensor([[pad] * (width - len(prompts[i])) + prompts[i] for i in batch], device=device)
            mask = torch.tensor([[0] * (width - len(prompts[i])) + [1] * len(prompts[i]) for i in batch], device=device)
            output = model.generate(
                ids, attention_mask=mask, stopping_criteria=StoppingCriteriaList([Advance()]), generation_config=config
            )
            for i, generated in zip(batch, output[:, width:].tolist(), strict=True):
                length = next((n for n, token in enumerate(generated, start=1) if token in ends), None)
                text = tokenizer.decode(generated[:length], skip_special_tokens=True)
                finish = "length" if length is None else "stop"
                completions[i].append(Completion(text, length or len(generated), finish))
    return completions


def _with_vllm(settings, tokenizer, prompts, console) -> list[list[Completion]]:
    if not find_spec("vllm"):
        raise InputError("backend vllm is not installed here, use transformers")
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
    parameters = SamplingParams(
        n=settings.samples, temperature=settings.temperature, max_tokens=settings.max_new_tokens
    )
    outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], parameters)
    return [
        [Completion(one.text, len(one.token_ids), one.finish_reason) for one in output.outputs] for output in outputs
    ]
