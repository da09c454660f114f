"""Completions sampled from a policy with transformers: one pass over each prompt, one growing
cache.

`generate` of transformers computes every prompt once for each of its completions, copies the whole
cache at every token, and goes on with completions that have ended until the last one has. Here a
prompt is read once for its whole group, the cache has space for the tokens to come, and completions
that have ended leave the batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from swift_rlvr.evaluation.sampling.interface import SamplingSettings

# tokens by which the cache grows; the copy costs a 64th of what one at every token would
CACHE_STEP = 64
LEAVE_SHARE = 8  # completions leave the batch when one in so many has ended


class GrowingLayer(DynamicLayer):
    """A cache layer that is copied once in CACHE_STEP tokens. `keys` and `values` are views of the
    filled part.
    """

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
            self._store: tuple[Tensor, Tensor] = (self.keys, self.values)
        start, end = self.keys.shape[2], self.keys.shape[2] + key_states.shape[2]
        if self._store[0].shape[2] < end or len(self._store[0]) != len(key_states):
            self._store = tuple(
                torch.cat(
                    [old, new.new_empty(*new.shape[:2], end + CACHE_STEP - start, new.shape[3])],
                    dim=2,
                )
                for old, new in ((self.keys, key_states), (self.values, value_states))
            )
        for store, new in zip(self._store, (key_states, value_states), strict=True):
            store[:, :, start:end] = new
        self.keys, self.values = (store[:, :, :end] for store in self._store)
        return self.keys, self.values


def sample_tokens(
    logits: Tensor, temperature: float, top_k: int, top_p: float, generator: Any = None
) -> Tensor:
    """One token for each row of logits (B, V): -> (B,). temperature, top_k: 0 is the likeliest,
    all; top_p: 1 is all.

    As transformers does it: divided by the temperature, then the k likeliest, then as few of them
    as have together the probability top_p. Drawn by inverting the distribution function, in
    float64, with one random number a row.
    """
    if temperature == 0:
        return logits.argmax(-1)
    logits = logits.double() / temperature
    if 0 < top_k < logits.shape[1]:
        logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
    if top_p < 1:
        ranked, order = logits.sort(descending=True)
        probabilities = ranked.softmax(-1)
        surplus = (
            probabilities.cumsum(-1) - probabilities >= top_p
        )  # those before it are enough; never the first
        logits = logits.masked_fill(
            torch.zeros_like(surplus).scatter(1, order, surplus), -torch.inf
        )
    reached = logits.softmax(-1).cumsum(-1)
    drawn = torch.rand(
        len(logits), 1, dtype=torch.double, device=logits.device, generator=generator
    )
    chosen = torch.searchsorted(reached, drawn * reached[:, -1:], right=True).squeeze(1)
    return chosen.clamp(
        max=logits.shape[1] - 1
    )  # beyond the end where logits are NaN, which the loss then shows


@torch.no_grad()
def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    copies: int,
    settings: SamplingSettings,
    stop_token_ids: Sequence[int],
    generator: torch.Generator | None = None,
    on_tokens: Callable[[Tensor], object] | None = None,
) -> list[list[int]]:
    """`copies` completions for each prompt, those of a prompt side by side; token ids, with the one
    that ended it.

    Args:
        model: in eval mode. settings: temperature, top_k, top_p and max_completion_length are read.
        generator: on the model's device; None is torch's own.
        on_tokens: called after every step with the next token of each completion that goes on, in
        order.
    """
    max_new_tokens = settings.max_completion_length
    device, longest, pad = (
        next(model.parameters()).device,
        max(map(len, prompts)),
        stop_token_ids[0],
    )
    tokens = torch.tensor(
        [[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts], device=device
    )
    mask = torch.tensor(
        [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device
    )
    cache = DynamicCache(config=model.config)
    cache.layers = [
        GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    logits = _last_logits(model, tokens, mask, positions, cache).repeat_interleave(copies, 0)
    for layer in cache.layers:
        layer.batch_repeat_interleave(copies)
    mask = torch.cat([mask, mask.new_ones(len(mask), max_new_tokens)], 1).repeat_interleave(
        copies, 0
    )
    ragged, last = bool((mask == 0).any()), positions[:, -1:].repeat_interleave(copies, 0)
    completions = torch.full((len(mask), max_new_tokens), pad, device=device)
    rows, stop = torch.arange(len(mask), device=device), torch.tensor(stop_token_ids, device=device)
    lengths = torch.full_like(rows, max_new_tokens)
    alive = torch.ones_like(rows, dtype=torch.bool)
    for step in range(max_new_tokens):
        chosen = sample_tokens(
            logits, settings.temperature, settings.top_k, settings.top_p, generator
        )
        completions[rows, step] = chosen
        if on_tokens is not None:
            on_tokens(chosen)
        ended = alive & torch.isin(chosen, stop)
        lengths[rows[ended]] = step + 1
        alive &= ~ended
        left = int(alive.sum())
        if left == 0 or step + 1 == max_new_tokens:
            break
        if left <= len(rows) * (1 - 1 / LEAVE_SHARE):
            keep = alive.nonzero().squeeze(1)
            for layer in cache.layers:
                layer.batch_select_indices(keep)
            rows, mask, last, chosen, alive = (x[keep] for x in (rows, mask, last, chosen, alive))
        seen = mask[:, : longest + step + 1] if ragged else None
        logits = _last_logits(model, chosen.unsqueeze(1), seen, last + step + 1, cache)
    return [
        row[:length] for row, length in zip(completions.tolist(), lengths.tolist(), strict=True)
    ]


def _last_logits(
    model: Any, tokens: Tensor, mask: Tensor | None, positions: Tensor, cache: DynamicCache
) -> Tensor:
    out = model(
        tokens, attention_mask=mask, position_ids=positions, past_key_values=cache, logits_to_keep=1
    )
    return out.logits[:, -1]
