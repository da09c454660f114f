"""The engines that sample: a transformers model in this process, vLLM, and a server (server.py)."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

from swift_rlvr.evaluation.models import (
    decoded,
    ends_in_thinking,
    fitting_prompts,
    folder_of,
    stop_token_ids,
    visible_device,
)
from swift_rlvr.evaluation.sampling.checkpoint import Checkpoint, find_checkpoint
from swift_rlvr.evaluation.sampling.interface import (
    Completion,
    Engine,
    Groups,
    OnProgress,
    SamplingSettings,
)
from swift_rlvr.evaluation.sampling.server import open_server
from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError, require
from swift_rlvr.utils.imports import without_collecting
from swift_rlvr.utils.inductor import avoid_inductor
from swift_rlvr.utils.nvcc import choose_sampler
from swift_rlvr.verifiers.thinking import with_opening

# Parameters; on a CPU, threads that wait for each other cost a smaller model more than they give.
SMALL_MODEL = 5_000_000
# Bytes of weights. On two cores vLLM took 97 s, its start included, for 400 completions of
# SmolLM2-135M, 512 MB, and transformers 248 s; for the tiny model it is the other way round.
WORTH_VLLM = 100_000_000
VLLM_BATCH_SIZE = 2048


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
    if not Path(folder_of(settings.model)).expanduser().is_dir():
        # A hub id is not downloaded only to measure it: stored results need no model.
        return "transformers"
    # An adapter is small; what counts is the model under it.
    folder = find_checkpoint(settings.model, settings.use_hf).base
    weights = sum(file.stat().st_size for file in Path(folder).glob("*.safetensors"))
    return "vllm" if weights > WORTH_VLLM else "transformers"


@contextmanager
def open_engine(
    settings: SamplingSettings, conversations: Sequence[Messages] = ()
) -> Iterator[Engine]:
    """The model loaded, or the server found; InputError if it is not there or its context is too
    short.

    conversations: what it will be asked.
    """
    chosen = choose_engine(settings)
    if chosen == "server":
        yield open_server(settings)
        return
    checkpoint = find_checkpoint(settings.model, settings.use_hf)
    tokenizer = checkpoint.tokenizer()
    prompts = fitting_prompts(
        tokenizer, conversations, settings.max_completion_length, checkpoint.config()
    )
    if chosen == "vllm":
        with checkpoint.merged() as folder:
            engine = VllmEngine(settings, folder, max(map(len, prompts), default=0))
            try:
                yield engine
            finally:
                # Else its processes keep the memory of the GPU until this one ends.
                engine.llm.llm_engine.engine_core.shutdown()
        return
    import torch

    device = "cuda" if visible_device() == "cuda" else "cpu"
    model = checkpoint.model().to(device)
    threads = torch.get_num_threads()
    if device == "cpu" and model.num_parameters() < SMALL_MODEL:
        torch.set_num_threads(1)
    try:
        yield TransformersEngine(settings, model, tokenizer)
    finally:
        torch.set_num_threads(threads)


class TransformersEngine(Engine):
    """A transformers model in this process, on its device. bf16: sample under autocast to bfloat16.

    Prompts of similar length are a batch, and the completions of a prompt share the pass over it.
    """

    def __init__(self, settings: SamplingSettings, model: Any, tokenizer: Any, bf16: bool = False):
        super().__init__(settings)
        self.model, self.tokenizer, self.bf16 = model, tokenizer, bf16
        self.stop_token_ids = stop_token_ids(tokenizer, model.generation_config)
        self._longest: list[int] = []  # the longest completion of each batch so far

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        import torch

        longest = settings.max_completion_length
        prompts = fitting_prompts(self.tokenizer, conversations, longest, self.model.config)
        # Padding costs as much as tokens do.
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        copies = min(settings.num_generations, self.batch_size)
        size = max(1, self.batch_size // copies)
        batches = []
        for start in range(0, len(order), size):
            for first in range(0, settings.num_generations, copies):
                copies_left = settings.num_generations - first
                batches.append((order[start : start + size], min(copies, copies_left)))
        generator = torch.Generator(self.model.device).manual_seed(settings.seed)
        opened = [ends_in_thinking(self.tokenizer, prompt) for prompt in prompts]
        completions: list[list[Completion]] = [[] for _ in prompts]
        # How long a batch will take is not known; those before it are the best guess.
        expected = fmean(self._longest or [longest])
        self.model.eval()
        for number, (batch, copies) in enumerate(batches):
            steps = count(1)

            def on_tokens(tokens: Any, number: int = number, steps: Iterator[int] = steps) -> None:
                on_progress((number + min(1.0, next(steps) / expected)) / len(batches))

            chosen = [prompts[index] for index in batch]
            with torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.bf16):
                generated = generate(
                    self.model, chosen, copies, settings, self.stop_token_ids, generator, on_tokens
                )
            self._longest.append(max(map(len, generated)))
            for position, ids in enumerate(generated):
                finish = "stop" if ids[-1] in self.stop_token_ids else "length"
                index = batch[position // copies]
                text = decoded(self.tokenizer, ids, self.stop_token_ids)
                text = with_opening(text, opened[index])
                completions[index].append(Completion(text, len(ids), finish, ids))
        return completions


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    copies: int,
    settings: SamplingSettings,
    stop_token_ids: Sequence[int],
    generator: Any = None,
    on_tokens: Callable[[Any], object] = lambda tokens: None,
) -> list[list[int]]:
    """`copies` completions of each prompt side by side: token ids, with the one that ended it.

    `model.generate` takes three to four times as long with the tiny model. Here a prompt is read
    once for all its copies, and completions that have ended leave the batch.

    generator: on the model's device; None is torch's own. on_tokens: called after every step with
    the next token of each completion that still goes on.
    """
    import torch
    from transformers import DynamicCache

    choose = _chooser(settings, generator)
    longest = max(map(len, prompts))
    # Padded on the left, so that all prompts end where the completions begin.
    padded = []
    is_token = []
    for prompt in prompts:
        padding = [0] * (longest - len(prompt))
        padded.append([*padding, *prompt])
        is_token.append([*padding, *[1] * len(prompt)])
    tokens = torch.tensor(padded, device=model.device)
    mask = torch.tensor(is_token, device=model.device)
    stop = torch.tensor(stop_token_ids, device=model.device)
    # The completion of each row of the batch, from which rows leave.
    rows = torch.arange(len(prompts) * copies, device=model.device)
    completions: list[list[int]] = [[] for _ in rows]
    cache = DynamicCache(config=model.config)
    for step in range(settings.max_completion_length):
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        with torch.no_grad():
            logits = model(
                tokens,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                logits_to_keep=1,
            ).logits[:, -1]
        if step == 0:
            # The prompt has been read; from here on each copy goes its own way.
            logits = logits.repeat_interleave(copies, 0)
            mask = mask.repeat_interleave(copies, 0)
            cache.batch_repeat_interleave(copies)
        chosen = choose(tokens, logits)
        on_tokens(chosen)
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            completions[row].append(token)
        # Most of the time of a long batch is spent on its last few completions.
        going = ~torch.isin(chosen, stop)
        if not going.all():
            kept = going.nonzero().squeeze(1)
            rows, mask, chosen = rows[kept], mask[kept], chosen[kept]
            cache.batch_select_indices(kept)
        if not len(rows):
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        tokens = chosen.unsqueeze(1)
    return completions


def _chooser(settings: SamplingSettings, generator: Any) -> Callable[[Any, Any], Any]:
    """What chooses the next token of each completion, from the tokens before and the logits."""
    import torch
    from transformers import (
        LogitsProcessorList,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    if settings.temperature == 0:
        return lambda tokens, logits: logits.argmax(-1)

    warpers = LogitsProcessorList([TemperatureLogitsWarper(settings.temperature)])
    if settings.top_k > 0:
        warpers.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1:
        warpers.append(TopPLogitsWarper(settings.top_p))

    def drawn(tokens: Any, logits: Any) -> Any:
        probabilities = warpers(tokens, logits.float()).softmax(-1)
        return torch.multinomial(probabilities, 1, generator=generator).squeeze(1)

    return drawn


class VllmEngine(Engine):
    """vLLM. Its random state is the seed it was built with, and cannot be saved; `seed` of `sample`
    has no effect.

    folder: the whole model. longest_prompt: in tokens.
    """

    def __init__(self, settings: SamplingSettings, folder: str, longest_prompt: int):
        super().__init__(settings)
        checkpoint = Checkpoint(folder)
        self.tokenizer = checkpoint.tokenizer()
        self.config = checkpoint.config()
        self.stop_token_ids = checkpoint.stop_token_ids()
        self.batch_size = VLLM_BATCH_SIZE
        longest = longest_prompt + settings.max_completion_length
        context = getattr(self.config, "max_position_embeddings", None)
        options = {
            "seed": settings.seed,
            # vLLM does not start where its memory is too small for one sequence of this length.
            "max_model_len": min(longest, context or longest),
            "enforce_eager": visible_device() != "cuda",
            # vLLM's neutral defaults in place of the model's own.
            "generation_config": "vllm",
        }
        try:
            self.llm = _load_vllm()(folder, **options)
        except ImportError as error:
            raise InputError(
                f"vllm cannot be loaded ({error}); use --engine transformers", "engine"
            ) from error

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        from tqdm import tqdm
        from vllm import SamplingParams

        at_once = self.llm.llm_engine.vllm_config.scheduler_config.max_num_seqs

        class Progress(tqdm):
            """vLLM's bar, which reports the share in place of showing it.

            A completion that has begun counts as half of one.
            """

            def __init__(self, *args, **options):
                super().__init__(*args, **options | {"file": StringIO()})

            def update(self, n=1):
                super().update(n)
                running = min(at_once, self.total - self.n)
                on_progress((self.n + running / 2) / self.total)

        # The engine's seed, not one for each request: those are slow on a GPU, and vLLM's CPU build
        # fails on them.
        params = SamplingParams(
            n=settings.num_generations,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            max_tokens=settings.max_completion_length,
            stop_token_ids=self.stop_token_ids,
        )
        prompts = fitting_prompts(
            self.tokenizer, conversations, settings.max_completion_length, self.config
        )
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        groups = []
        answers = self.llm.generate(requests, params, use_tqdm=Progress)
        for prompt, request in zip(prompts, answers, strict=True):
            opened = ends_in_thinking(self.tokenizer, prompt)
            group = []
            for output in request.outputs:
                ids = output.token_ids
                text = decoded(self.tokenizer, ids, self.stop_token_ids)
                text = with_opening(text, opened)
                group.append(Completion(text, len(ids), output.finish_reason, ids))
            groups.append(group)
        return groups


def _load_vllm() -> Any:
    """The class `LLM`, once the variables are set that it reads and the user has not. ImportError
    without vLLM.
    """
    # Its warnings would stand between our lines; VLLM_LOGGING_LEVEL=WARNING shows them.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    # A forked engine process could not use CUDA if anything here had asked for it before.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    if visible_device() == "cuda":
        choose_sampler(os.environ)
    else:
        avoid_inductor(os.environ)
        # ms-swift's plugin needs torchvision, which a CPU build of torch lacks.
        os.environ.setdefault("VLLM_PLUGINS", "")
        # GiB; by default it takes nearly all memory, or fails.
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
        # No binding to cores and no spinning on cores that others use.
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with without_collecting():
        from vllm import LLM

    return LLM
