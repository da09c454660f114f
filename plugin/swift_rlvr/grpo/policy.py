"""A causal language model as a policy: the log-probabilities of completions, and a batch's gradient
in micro-batches.

The completions of a prompt share its computation, forwards and backwards. Micro-batches are cut to
their longest prompt and completion, and put together so that the model computes the fewest tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from swift_rlvr.grpo.log_probs import chunked_log_probs, selected_log_probs
from swift_rlvr.grpo.objective import policy_loss

LOGITS_IN_MEMORY = (
    2**25
)  # at a time: 128 MB in float32, four times as much with what their gradient needs


@dataclass(frozen=True)
class Batch:
    """B completions of at most T tokens, sampled by the old policy, with prompts of at most P
    tokens.
    """

    prompts: Tensor  # (B, P), padding on the left
    prompt_mask: Tensor  # (B, P), what is no padding
    completions: Tensor  # (B, T), padding on the right
    mask: Tensor  # (B, T), completion tokens that count
    weights: Tensor | None = None  # (B, T), see `token_weights`
    advantages: Tensor | None = None  # (B,)
    # (B, T) log-probabilities under the old policy; None where it is still this one
    old: Tensor | None = None
    ref: Tensor | None = None  # (B, T) under the reference policy; None where beta is 0

    def take(self, rows: Tensor) -> Batch:
        """Some of the completions, without the columns that are padding in all of them."""
        prompt, completion = (
            int(mask[rows].sum(1).max().clamp(min=1)) for mask in (self.prompt_mask, self.mask)
        )
        before, after = slice(-prompt, None), slice(0, completion)

        def part(tensor: Tensor | None, *columns: slice) -> Any:
            return None if tensor is None else tensor[(rows, *columns)]

        prompts = {name: part(getattr(self, name), before) for name in ("prompts", "prompt_mask")}
        tokens = {
            name: part(getattr(self, name), after)
            for name in ("completions", "mask", "weights", "old", "ref")
        }
        return Batch(**prompts, **tokens, advantages=part(self.advantages))

    def distinct_prompts(self) -> tuple[Tensor, Tensor]:
        """For each distinct prompt a row that has it (D,), and for each row the number of its
        prompt (B,).
        """
        _, number = self.prompts.where(self.prompt_mask, -1).unique(dim=0, return_inverse=True)
        rows = torch.arange(len(number), device=number.device)
        return rows.new_empty(int(number.max()) + 1).scatter_(0, number, rows), number

    def micro_batches(self, size: int) -> list[tuple[Tensor, Batch]]:
        """(rows, their completions), `size` at a time: by length, or by prompt and length, which
        computes less.
        """
        lengths, (_, number) = self.mask.sum(1), self.distinct_prompts()
        keys = lengths, number * (int(lengths.max()) + 1) + lengths
        orders = [key.argsort(descending=True, stable=True).split(size) for key in keys]
        choices = [[(rows, self.take(rows)) for rows in order] for order in orders]
        return min(choices, key=lambda parts: sum(part.computed_tokens() for _, part in parts))

    def computed_tokens(self) -> int:
        """How many tokens the model computes for it, padding and all."""
        return len(self.distinct_prompts()[0]) * self.prompts.shape[1] + self.mask.numel()


def collate(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], pad: int, device: Any
) -> Batch:
    """The batch of completions given as token ids, each with its prompt.

    >>> batch = collate([[7], [7, 8]], [[5, 6], [4]], pad=0, device="cpu")
    >>> batch.prompts.tolist(), batch.completions.tolist(), batch.mask.tolist()
    ([[0, 7], [7, 8]], [[5, 6], [4, 0]], [[True, True], [True, False]])
    """
    before, after = max(map(len, prompts)), max(map(len, completions))
    left = [[pad] * (before - len(prompt)) + [*prompt] for prompt in prompts]
    right = [[*completion] + [pad] * (after - len(completion)) for completion in completions]
    counts = [
        torch.tensor(list(map(len, each)), device=device).unsqueeze(1)
        for each in (prompts, completions)
    ]
    prompt_mask = torch.arange(before, device=device) >= before - counts[0]
    mask = torch.arange(after, device=device) < counts[1]
    return Batch(
        torch.tensor(left, device=device), prompt_mask, torch.tensor(right, device=device), mask
    )


class Policy:
    """A transformers causal language model that samples with `temperature`; bf16: run under
    autocast.
    """

    def __init__(self, model: Any, temperature: float = 1.0, bf16: bool = False):
        self.model, self.temperature, self.bf16 = model, temperature, bf16
        self.device = next(model.parameters()).device
        self.head = model.get_output_embeddings()
        self.chunk = max(1, LOGITS_IN_MEMORY // self.head.weight.shape[0])
        self._plain_head = self._head_is_plain()

    def autocast(self) -> Any:
        """The context in which the model runs."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def log_probs(self, batch: Batch) -> Tensor:
        """Log-probability of every completion token, float32 (B, T); 0 where the mask is not
        set.
        """
        counts, labels = batch.mask, batch.completions[batch.mask]
        with self.autocast():
            states = self._states(batch)[counts]  # (N, H) before each of the N tokens that count
            if self._plain_head:
                values = chunked_log_probs(states, self.head, labels, self.temperature, self.chunk)
            else:
                values = selected_log_probs(states, labels, self.temperature)
        return values.new_zeros(counts.shape).masked_scatter(counts, values)

    def _states(self, batch: Batch) -> Tensor:
        """The last hidden states before each completion token, (B, T, H); logits where the head is
        not plain.
        """
        width, model = (
            batch.prompts.shape[1],
            self.model.base_model if self._plain_head else self.model,
        )
        mask = torch.cat([batch.prompt_mask, torch.ones_like(batch.mask[:, :-1])], 1)
        positions = (mask.long().cumsum(1) - 1).clamp(min=0)

        def run(tokens: Tensor, rows: Any, columns: slice, cache: DynamicCache | None) -> Tensor:
            seen = mask[
                rows, : columns.stop
            ]  # completions need no mask for what is padding at their end
            seen = None if bool(seen.all()) else seen
            options = {
                "attention_mask": seen,
                "past_key_values": cache,
                "use_cache": cache is not None,
            }
            out = model(tokens, position_ids=positions[rows, columns], **options)
            return out.last_hidden_state if self._plain_head else out.logits

        rest = batch.completions[:, :-1]
        if self.model.training and self.model.is_gradient_checkpointing:  # which knows no cache
            whole = torch.cat([batch.prompts, rest], 1)
            return run(whole, slice(None), slice(0, mask.shape[1]), None)[:, width - 1 :]
        (first, number), cache = batch.distinct_prompts(), DynamicCache(config=self.model.config)
        last = run(batch.prompts[first], first, slice(0, width), cache)[:, -1:]
        for layer in cache.layers:
            layer.batch_select_indices(number)
        if rest.shape[1] == 0:
            return last[number]
        return torch.cat(
            [last[number], run(rest, slice(None), slice(width, mask.shape[1]), cache)], 1
        )

    @torch.no_grad()
    def all_log_probs(self, batch: Batch, micro_batch: int) -> Tensor:
        """The same without gradient, in micro-batches."""
        result = torch.zeros(batch.mask.shape, device=batch.mask.device)
        for rows, part in batch.micro_batches(micro_batch):
            values = self.log_probs(part)
            result[rows, : values.shape[1]] = values.float()
        return result

    def accumulate_gradient(
        self, batch: Batch, micro_batch: int, **objective: Any
    ) -> dict[str, float]:
        """Add the gradient of the batch's loss to `.grad`; returns `loss`, and means over tokens.

        objective: the keywords of `policy_loss`.
        """
        totals: Counter[str] = Counter()  # of tensors: reading each would wait for the GPU
        for _, part in batch.micro_batches(micro_batch):
            log_probs = self.log_probs(part)
            old = log_probs.detach() if part.old is None else part.old
            loss, sums = policy_loss(
                log_probs, old, part.ref, part.advantages, part.mask, part.weights, **objective
            )
            loss.backward()
            totals.update({"loss": loss.detach(), **sums})
        tokens = max(1, int(batch.mask.sum()))
        return {
            name: float(value) / (1 if name == "loss" else tokens) for name, value in totals.items()
        }

    @torch.no_grad()
    def _head_is_plain(self) -> bool:
        """Whether the logits are the output layer of the last hidden states; some models also cap
        or scale them.
        """
        tokens = torch.arange(1, 5, device=self.device).unsqueeze(0)
        training = self.model.training
        self.model.eval()
        logits = self.model(tokens, use_cache=False).logits
        plain = torch.equal(
            logits, self.head(self.model.base_model(tokens, use_cache=False).last_hidden_state)
        )
        self.model.train(training)
        return plain
