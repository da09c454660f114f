"""Prompts -> completions, sampled from the policy as it is: by temperature alone.

With transformers, with vLLM, or by a running rollout server. The top-k, top-p and penalties of the model's
generation_config are left out. Imports both libraries only when called.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.data.grading import Completion
from swift_rlvr.errors import InputError, require
from swift_rlvr.evaluation.checkpoint import find_checkpoint
from swift_rlvr.evaluation.server import ask, check_server
from swift_rlvr.models import check_length, end_token_ids, visible_device

ENGINES = ("auto", "transformers", "vllm")
SMALL_MODEL = 5_000_000  # parameters; on a CPU, threads that wait for each other cost more than they give
VLLM_AT_ONCE = 2048
Messages = list[dict[str, str]]
Advance = Callable[[float], object]


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
            max_new_tokens=settings.max_completion_length,
            eos_token_id=self.ends,
            pad_token_id=self.pad,
        )
        torch.manual_seed(settings.seed)

    def generate(self, prompts: Sequence[Sequence[int]], **options: Any) -> list[Completion]:
        """One completion for each prompt of token ids, in one batch; InputError where the context is too short."""
        import torch

        check_length("max_completion_length", self.settings.max_completion_length, prompts, self.model.config)
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


class Sampler(Protocol):
    """Samples for the conversations that it was opened with. at_once: the completions worth asking for together."""

    at_once: int

    def ask(self, conversations: Sequence[Messages]) -> None:
        """Have these conversations in place of those; InputError where the context is too short for one."""

    def sample(
        self, places: Sequence[int], settings: SamplingSettings, advance: Advance | None = None
    ) -> list[list[Completion]]:
        """`settings.num_generations` completions for each conversation in `places`.

        Args:
            settings: those the sampler was opened with; num_generations, temperature and seed may differ.
            advance: called with the share that is done, now and then.
        """


def sample(settings: SamplingSettings, conversations: Sequence[Messages], console: Console) -> list[list[Completion]]:
    """`settings.num_generations` completions for each conversation, messages of which the last is the user's."""
    with open_sampler(settings, conversations) as sampler:
        return sample_all(sampler, settings, len(conversations), console)


def sample_all(sampler: Sampler, settings: SamplingSettings, count: int, console: Console) -> list[list[Completion]]:
    """Samples for all of a sampler's conversations, `count`, with a progress bar."""
    if isinstance(sampler, VllmSampler):
        return sampler.sample(range(count), settings)  # with vLLM's own
    with progress_bar(console) as progress:
        bar = progress.add_task(f"Sampling {count * settings.num_generations:,} completions", total=1.0)
        return sampler.sample(range(count), settings, lambda done: progress.update(bar, completed=done))


def progress_bar(console: Console) -> Progress:
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


@contextmanager
def open_sampler(settings: SamplingSettings, conversations: Sequence[Messages], room: int = 0) -> Iterator[Sampler]:
    """The model loaded, or the server found; InputError where it is not there or its context is too short.

    room: the tokens by which conversations may grow that it is asked later.
    """
    engine = choose_engine(settings)
    if engine == "server":
        yield ServerSampler(settings, conversations)
    elif engine == "vllm":
        with _vllm_sampler(settings, conversations, room) as sampler:
            yield sampler
    else:
        import torch

        policy = Policy(settings)
        threads = torch.get_num_threads()
        if policy.model.device.type == "cpu" and policy.model.num_parameters() < SMALL_MODEL:
            torch.set_num_threads(1)
        try:
            yield TransformersSampler(policy, conversations)
        finally:
            torch.set_num_threads(threads)


def prompt_ids(tokenizer: Any, conversations: Sequence[list[dict[str, str]]]) -> list[list[int]]:
    """Each conversation as token ids, up to where the model begins to write."""
    return tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, return_dict=False)


def choose_engine(settings: SamplingSettings) -> str:
    """The engine that "auto" stands for on this machine; "server" where a server samples."""
    if settings.server is not None:
        return "server"
    if settings.engine != "auto":
        return settings.engine
    require("torch", extra="train", purpose="sampling from a model")
    return "vllm" if visible_device() == "cuda" and find_spec("vllm") else "transformers"


class TransformersSampler:
    """Batches of prompts of similar length; the samples of a prompt share the pass over it."""

    def __init__(self, policy: Policy, conversations: Sequence[Messages]):
        self.policy, self.at_once = policy, policy.settings.batch_size
        self.ask(conversations)

    def ask(self, conversations: Sequence[Messages]) -> None:
        self.prompts = prompt_ids(self.policy.tokenizer, conversations)
        longest = self.policy.settings.max_completion_length
        check_length("max_completion_length", longest, self.prompts, self.policy.model.config)

    def sample(
        self, places: Sequence[int], settings: SamplingSettings, advance: Advance | None = None
    ) -> list[list[Completion]]:
        import torch

        from swift_rlvr.grpo.generation import generate  # four to six times as fast on a CPU as transformers' own

        torch.manual_seed(settings.seed)
        copies = min(settings.num_generations, self.at_once)
        rows = sorted(places, key=lambda place: len(self.prompts[place]))
        together = max(1, self.at_once // copies)
        batches = [
            (rows[i : i + together], min(copies, settings.num_generations - first))
            for i in range(0, len(rows), together)
            for first in range(0, settings.num_generations, copies)
        ]
        completions: dict[int, list[Completion]] = {place: [] for place in places}
        longest, done = settings.max_completion_length, 0

        def on_token() -> None:
            nonlocal done
            done += 1
            if advance is not None:
                advance(done / (len(batches) * longest))

        for number, (batch, many) in enumerate(batches, start=1):
            generated = generate(
                self.policy.model, [self.prompts[place] for place in batch], many, longest, self.policy.ends,
                temperature=settings.temperature, on_token=on_token,
            )  # fmt: skip
            done = number * longest
            for n, made in enumerate(generated):
                completions[batch[n // many]].append(self.policy.completion(made))
        return [completions[place] for place in places]


class ServerSampler:
    """Asks a rollout server for `batch_size` completions at a time."""

    def __init__(self, settings: SamplingSettings, conversations: Sequence[Messages]):
        assert settings.server is not None
        check_server(settings.server)
        self.url, self.conversations, self.at_once = settings.server, conversations, settings.batch_size

    def ask(self, conversations: Sequence[Messages]) -> None:
        self.conversations = conversations

    def sample(
        self, places: Sequence[int], settings: SamplingSettings, advance: Advance | None = None
    ) -> list[list[Completion]]:
        wanted = [self.conversations[place] for place in places for _ in range(settings.num_generations)]
        made: list[Completion] = []
        while len(made) < len(wanted):
            part = wanted[len(made) : len(made) + self.at_once]
            made += ask(self.url, part, settings.max_completion_length, settings.temperature)
            if advance is not None:
                advance(len(made) / len(wanted))
        return [made[i : i + settings.num_generations] for i in range(0, len(made), settings.num_generations)]


class VllmSampler:
    """vLLM's engine, which has the seed with which it was built and draws on from there."""

    at_once = VLLM_AT_ONCE

    def __init__(self, llm: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], ends: list[int]):
        self.llm, self.tokenizer, self.prompts, self.ends = llm, tokenizer, prompts, ends

    def ask(self, conversations: Sequence[Messages]) -> None:
        self.prompts = prompt_ids(self.tokenizer, conversations)  # the engine knows its own context

    def sample(
        self, places: Sequence[int], settings: SamplingSettings, advance: Advance | None = None
    ) -> list[list[Completion]]:
        from vllm import SamplingParams

        # The engine's seed, not one for each request: those are slow on a GPU, and vLLM's CPU build fails on them.
        params = SamplingParams(
            n=settings.num_generations,
            temperature=settings.temperature,
            max_tokens=settings.max_completion_length,
            stop_token_ids=self.ends,
        )
        prompts = [{"prompt_token_ids": self.prompts[place]} for place in places]
        outputs = self.llm.generate(prompts, params, use_tqdm=advance is None)
        return [
            [Completion(one.text, len(one.token_ids), one.finish_reason) for one in each.outputs] for each in outputs
        ]


@contextmanager
def _vllm_sampler(settings: SamplingSettings, conversations: Sequence[Messages], room: int) -> Iterator[VllmSampler]:
    if not find_spec("vllm"):
        raise InputError("vllm is not installed here, use transformers", field="engine")
    checkpoint = find_checkpoint(settings.model, settings.use_hf)
    tokenizer, config = checkpoint.tokenizer(), checkpoint.config()
    prompts = prompt_ids(tokenizer, conversations)
    check_length("max_completion_length", settings.max_completion_length, prompts, config)
    longest = max(map(len, prompts)) + settings.max_completion_length + room
    gpu = visible_device() == "cuda"
    # The engine is a process of its own. A forked one could not use CUDA if anything here had asked for it before.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    if not gpu:
        os.environ.setdefault("VLLM_PLUGINS", "")  # ms-swift's needs torchvision, which a CPU build of torch lacks
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; by default nearly all memory, or an error
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # no spinning on cores that others use
    from vllm import LLM

    with checkpoint.merged() as folder:
        llm = LLM(
            folder,
            seed=settings.seed,
            max_model_len=min(longest, getattr(config, "max_position_embeddings", None) or longest),
            enforce_eager=not gpu,
            generation_config="vllm",  # vLLM's neutral defaults instead of the model's own
        )
        try:
            yield VllmSampler(llm, tokenizer, prompts, checkpoint.ends())
        finally:
            llm.llm_engine.engine_core.shutdown()
