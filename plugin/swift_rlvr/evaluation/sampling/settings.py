"""How to sample, and what a sample is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.evaluation.models import folder_of, visible_device
from swift_rlvr.utils.errors import require
from swift_rlvr.utils.settings import Settings, setting

ENGINES = ("auto", "transformers", "vllm")
# Bytes of weights. On two cores vLLM took 97 s, its start included, for 400 completions of
# SmolLM2-135M, 512 MB, and transformers 248 s; for the tiny model it is the other way round.
WORTH_VLLM = 100_000_000


@dataclass(frozen=True)
class Completion:
    """text: without special tokens. tokens: their number, with the end-of-turn token. finish:
    "stop" or "length".

    token_ids: those `tokens`, where the engine tells them; equal completions may differ in them.
    """

    text: str
    tokens: int
    finish: str
    token_ids: Sequence[int] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class SamplingSettings(Settings):
    """How to sample. The same settings on the same machine give the same completions, except with a
    server.
    """

    model: str = setting(
        help="A folder with a model and its tokenizer, or with a LoRA adapter, or a hub id."
    )
    num_generations: int = setting(1, "Completions per prompt.", at_least=1)
    temperature: float = setting(1.0, "0 is greedy.", at_least=0)
    max_completion_length: int = setting(1024, "The longest completion, in tokens.", at_least=1)
    batch_size: int = setting(64, "Completions at a time; vLLM decides for itself.", at_least=1)
    seed: int = setting(0, "Same seed, same completions, though not always with vLLM.", at_least=0)
    engine: str = setting(
        "auto",
        "auto: vllm with a GPU or 100 MB of weights here, else transformers.",
        choices=ENGINES,
    )
    use_hf: bool = setting(False, "A hub id is one of Hugging Face, not of ModelScope.")
    server: str | None = setting(
        None, "The URL of a rollout server that has the model and samples from it."
    )
    top_k: int = setting(
        0, "The likeliest tokens to sample from; 0 for all, whatever the model's own.", at_least=0
    )
    top_p: float = setting(1.0, "Nucleus sampling; 1 for all tokens.", more_than=0, at_most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        several = self.temperature > 0 or self.num_generations == 1
        self.require(several, "num_generations", "1 at temperature 0, where all are the same")


def choose_engine(settings: SamplingSettings) -> str:
    """The engine that "auto" stands for on this machine; "server" where a server samples."""
    if settings.server is not None:
        return "server"
    if settings.engine != "auto":
        return settings.engine
    require("torch", extra="train", purpose="sampling from a model")
    if not find_spec("vllm"):
        return "transformers"
    if visible_device() == "cuda":
        return "vllm"
    if not Path(folder_of(settings.model)).expanduser().is_dir():  # stored results need no model
        return "transformers"
    from swift_rlvr.evaluation.sampling.checkpoint import find_checkpoint

    weights = Path(find_checkpoint(settings.model, settings.use_hf).base).glob("*.safetensors")
    return "vllm" if sum(file.stat().st_size for file in weights) > WORTH_VLLM else "transformers"


def mixed_seed(seed: int, part: int) -> int:
    """The seed of one part of a job, such as a step of a training, by which parts do not depend on
    those before them.

    >>> mixed_seed(0, 3), mixed_seed(1, 3)
    (3, 1000006)
    """
    return (seed * 1_000_003 + part) % 2**31
