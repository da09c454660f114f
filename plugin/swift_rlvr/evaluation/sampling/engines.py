"""The engines that sample: a transformers model in this process, vLLM, and a rollout server
(server.py).
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from itertools import count
from statistics import fmean
from typing import Any

from swift_rlvr.evaluation.models import fitting_prompts, stop_token_ids, visible_device
from swift_rlvr.evaluation.sampling.checkpoint import Checkpoint, find_checkpoint
from swift_rlvr.evaluation.sampling.settings import Completion, SamplingSettings, choose_engine
from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError

# parameters; on a CPU, threads that wait for each other cost more than they give
SMALL_MODEL = 5_000_000
VLLM_BATCH_SIZE = 2048
OnProgress = Callable[[float], object]
Groups = list[list[Completion]]


class Engine(ABC):
    """Samples completions of conversations, which are messages of which the last is the user's.

    settings: those it was opened with. batch_size: the completions worth asking for together.
    """

    def __init__(self, settings: SamplingSettings):
        self.settings, self.batch_size = settings, settings.batch_size

    def sample(
        self,
        conversations: Sequence[Messages],
        on_progress: OnProgress = lambda share: None,
        **changes: Any,
    ) -> Groups:
        """`num_generations` completions for each conversation, in order; InputError where the
        context is too short.

        With transformers the same arguments give the same completions, whatever was sampled before.
        vLLM draws on from the seed that it was opened with, and a server from its own. on_progress:
        called with the share that is done.
        changes: num_generations, temperature, seed in place of those of the settings.
        """
        return self._sample(conversations, replace(self.settings, **changes), on_progress)

    @abstractmethod
    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        """`sample` with all its settings."""


@contextmanager
def open_engine(
    settings: SamplingSettings, conversations: Sequence[Messages] = ()
) -> Iterator[Engine]:
    """The model loaded, or the server found; InputError where it is not there or its context is too
    short.

    conversations: what it will be asked.
    """
    chosen = choose_engine(settings)
    if chosen == "server":
        from swift_rlvr.evaluation.sampling.server import ServerEngine

        yield ServerEngine(settings)
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
                engine.llm.llm_engine.engine_core.shutdown()
        return
    import torch

    model = checkpoint.model().to("cuda" if visible_device() == "cuda" else "cpu")
    threads = torch.get_num_threads()
    if model.device.type == "cpu" and model.num_parameters() < SMALL_MODEL:
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
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        copies = min(settings.num_generations, self.batch_size)
        size = max(1, self.batch_size // copies)
        batches = [
            (order[start : start + size], min(copies, settings.num_generations - first))
            for start in range(0, len(order), size)
            for first in range(0, settings.num_generations, copies)
        ]
        generator = torch.Generator(self.model.device).manual_seed(settings.seed)
        completions: list[list[Completion]] = [[] for _ in prompts]
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
            texts = self.tokenizer.batch_decode(generated, skip_special_tokens=True)
            for position, (text, ids) in enumerate(zip(texts, generated, strict=True)):
                finish = "stop" if ids[-1] in self.stop_token_ids else "length"
                completions[batch[position // copies]].append(
                    Completion(text, len(ids), finish, ids)
                )
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
    from transformers import (
        DynamicCache,
        LogitsProcessorList,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    warpers = LogitsProcessorList()
    if settings.temperature > 0:
        warpers.append(TemperatureLogitsWarper(settings.temperature))
    if settings.top_k > 0:
        warpers.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1:
        warpers.append(TopPLogitsWarper(settings.top_p))

    longest = max(map(len, prompts))
    padding = [longest - len(prompt) for prompt in prompts]
    tokens = [[0] * pad + list(prompt) for pad, prompt in zip(padding, prompts, strict=True)]
    mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
    tokens, mask = (torch.tensor(rows, device=model.device) for rows in (tokens, mask))
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
            logits, mask = (x.repeat_interleave(copies, 0) for x in (logits, mask))
            cache.batch_repeat_interleave(copies)
        if settings.temperature == 0:
            chosen = logits.argmax(-1)
        else:
            probabilities = warpers(tokens, logits.float()).softmax(-1)
            chosen = torch.multinomial(probabilities, 1, generator=generator).squeeze(1)
        on_tokens(chosen)
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            completions[row].append(token)
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


class VllmEngine(Engine):
    """vLLM. Its random state is the seed it was built with, and cannot be saved; `seed` of `sample`
    has no effect.

    folder: the whole model. longest_prompt: in tokens.
    """

    def __init__(self, settings: SamplingSettings, folder: str, longest_prompt: int):
        super().__init__(settings)
        checkpoint = Checkpoint(folder)
        self.tokenizer, self.config = checkpoint.tokenizer(), checkpoint.config()
        self.stop_token_ids, self.batch_size = checkpoint.stop_token_ids(), VLLM_BATCH_SIZE
        longest = longest_prompt + settings.max_completion_length
        options = {
            "seed": settings.seed,
            "max_model_len": min(
                longest, getattr(self.config, "max_position_embeddings", None) or longest
            ),
            "enforce_eager": visible_device() != "cuda",
            "generation_config": "vllm",  # vLLM's neutral defaults instead of the model's own
        }
        try:
            self.llm = _load_vllm()(folder, **options)
        except ImportError as error:
            raise InputError(
                f"vllm cannot be loaded here ({error}), use transformers", "engine"
            ) from error

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        from tqdm import tqdm
        from vllm import SamplingParams

        at_once = self.llm.llm_engine.vllm_config.scheduler_config.max_num_seqs

        class Progress(tqdm):
            """vLLM's bar, whose share is told instead of shown: a completion that has begun counts
            as half of one.
            """

            def __init__(self, *args, **options):
                super().__init__(*args, **options | {"file": StringIO()})

            def update(self, n=1):
                super().update(n)
                on_progress((self.n + min(at_once, self.total - self.n) / 2) / self.total)

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
        outputs = self.llm.generate(requests, params, use_tqdm=Progress)
        return [
            [
                Completion(one.text, len(one.token_ids), one.finish_reason, one.token_ids)
                for one in each.outputs
            ]
            for each in outputs
        ]


def _load_vllm() -> Any:
    """The class `LLM`, once the variables are set that it reads and the user has not. ImportError
    without vLLM.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    # A forked engine process could not use CUDA if anything here had asked for it before.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    if visible_device() != "cuda":
        os.environ.setdefault(
            "VLLM_PLUGINS", ""
        )  # ms-swift's needs torchvision, which a CPU build of torch lacks
        os.environ.setdefault(
            "VLLM_CPU_KVCACHE_SPACE", "1"
        )  # GiB; by default nearly all memory, or an error
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # no spinning on cores that others use
    from vllm import LLM

    return LLM
