"""How to sample, and what a sample is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from swift_rlvr.errors import InputError, require
from swift_rlvr.models import visible_device

ENGINES = ("auto", "transformers", "vllm")


@dataclass(frozen=True)
class Completion:
    """text: without special tokens. tokens: their number, with the end-of-turn token. finish: "stop" or "length".

    token_ids: those `tokens`, where the engine tells them; equal completions may differ in them.
    """

    text: str
    tokens: int
    finish: str
    token_ids: Sequence[int] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class SamplingSettings:
    """How to sample. The same settings on the same machine give the same completions.

    model: a folder with a model and its tokenizer, or with a LoRA adapter, or a hub id.
    num_generations: completions per prompt. temperature: 0 is greedy.
    max_completion_length: the longest completion, in tokens.
    batch_size: completions at a time, for transformers and a server; vLLM decides for itself.
    engine: "auto" is vLLM where it is installed and there is a GPU, else transformers.
    use_hf: a hub id is one of Hugging Face, not of ModelScope.
    server: the URL of a rollout server that has the model and samples from it; None loads it here. Its completions
        depend on what else it has sampled, not on `seed`.
    top_k, top_p: by default all tokens, whatever the model's generation_config says; 0 and 1.
    """

    model: str
    num_generations: int = 1
    temperature: float = 1.0
    max_completion_length: int = 1024
    batch_size: int = 64
    seed: int = 0
    engine: str = "auto"
    use_hf: bool = False
    server: str | None = None
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self):
        lowest = {"num_generations": 1, "temperature": 0, "max_completion_length": 1, "batch_size": 1, "seed": 0}
        for name, low in lowest.items():
            if not low <= getattr(self, name) < math.inf:
                raise InputError(f"must be at least {low}, got {getattr(self, name)}", field=name)
        if self.engine not in ENGINES:
            raise InputError(f"must be one of {', '.join(ENGINES)}, got {self.engine!r}", field="engine")
        if self.temperature == 0 and self.num_generations > 1:
            problem = f"must be 1 at temperature 0, where all are the same, got {self.num_generations}"
            raise InputError(problem, field="num_generations")


def choose_engine(settings: SamplingSettings) -> str:
    """The engine that "auto" stands for on this machine; "server" where a server samples."""
    if settings.server is not None:
        return "server"
    if settings.engine != "auto":
        return settings.engine
    require("torch", extra="train", purpose="sampling from a model")
    return "vllm" if visible_device() == "cuda" and find_spec("vllm") else "transformers"


def mixed_seed(seed: int, part: int) -> int:
    """The seed of one part of a job, such as a step of a training, by which parts do not depend on those before them.

    >>> mixed_seed(0, 3), mixed_seed(1, 3)
    (3, 1000006)
    """
    return (seed * 1_000_003 + part) % 2**31
