"""A causal language model as a policy: the log-probabilities of completions, and a batch's gradient in micro-batches.

Completions follow their prompts without a gap and are padded on the right. So no token that counts ever sees padding,
no attention mask is needed, and positions are right for every model. Micro-batches hold completions of like length and
are cut to their longest, whatever the longest of the batch is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .log_probs import chunked_log_probs, selected_log_probs
from .objective import policy_loss

LOGITS_IN_MEMORY = 2**25  # at a time: 128 MB in float32, four times as much with what their gradient needs


@dataclass(frozen=True)
class Batch:
    """B completions, at most T tokens each, sampled by the old policy.

    tokens: (B, L) prompt, completion, padding. starts: (B,) length of the prompt. mask: (B, T) completion tokens that
    count. weights: (B, T), see `token_weights`. advantages: (B,). old, ref: (B, T) log-probabilities under the old and
    the reference policy; None for `old` where the policy has not changed since, None for `ref` where beta is 0.
    """

    tokens: Tensor
    starts: Tensor
    mask: Tensor
    weights: Tensor | None = None
    advantages: Tensor | None = None
    old: Tensor | None = None
    ref: Tensor | None = None

    def take(self, rows: Tensor) -> Batch:
        """Some of the completions, without the columns that are padding in all of them."""
        cut = {name: None if value is None else value[rows] for name, value in vars(self).items()}
        longest = int(cut["mask"].sum(1).max().clamp(min=1))
        cut["tokens"] = cut["tokens"][:, : int(cut["starts"].max()) + longest]
        for name in ("mask", "weights", "old", "ref"):
            cut[name] = None if cut[name] is None else cut[name][:, :longest]
        return Batch(**cut)

    def micro_batches(self, size: int) -> Iterator[tuple[Tensor, Batch]]:
        """(rows, their completions), `size` at a time, the longest first: what memory cannot hold fails at once."""
        for rows in (self.starts + self.mask.sum(1)).argsort(descending=True, stable=True).split(size):
            yield rows, self.take(rows)


def collate(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], pad: int, device: Any) -> Batch:
    """The batch of completions given as token ids, each with its prompt.

    >>> batch = collate([[7], [7, 8]], [[5, 6], [4]], pad=0, device="cpu")
    >>> batch.tokens.tolist(), batch.mask.tolist()
    ([[7, 5, 6], [7, 8, 4]], [[True, True], [True, False]])
    """
    rows = [[*prompt, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=device)
    lengths = torch.tensor(list(map(len, completions)), device=device)
    mask = torch.arange(int(lengths.max()), device=device) < lengths.unsqueeze(1)
    return Batch(tokens, torch.tensor(list(map(len, prompts)), device=device), mask)


class Policy:
    """A transformers causal language model that samples with `temperature`.

    bf16: run it under autocast; the weights stay as they are, float32 where they are to be trained.
    """

    def __init__(self, model: Any, temperature: float = 1.0, bf16: bool = False):
        self.model, self.temperature, self.bf16 = model, temperature, bf16
        self.device = next(model.parameters()).device
        self.head = model.get_output_embeddings()
        self.chunk = max(1, LOGITS_IN_MEMORY // self.head.weight.shape[0])
        self._plain_head = self._head_is_plain()

    def autocast(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def log_probs(self, batch: Batch) -> Tensor:
        """Log-probability of every completion token, float32 (B, T); 0 where the mask is not set."""
        rows, places = batch.mask.nonzero(as_tuple=True)
        before = batch.starts[rows] + places - 1  # what is said there is about the next token
        labels = batch.tokens[rows, before + 1]
        with self.autocast():
            if self._plain_head:
                hidden = self.model.base_model(batch.tokens, use_cache=False).last_hidden_state
                found = chunked_log_probs(hidden[rows, before], self.head, labels, self.temperature, self.chunk)
            else:
                logits = self.model(batch.tokens, use_cache=False).logits
                found = selected_log_probs(logits[rows, before], labels, self.temperature)
        return found.new_zeros(batch.mask.shape).index_put((rows, places), found)

    @torch.no_grad()
    def all_log_probs(self, batch: Batch, micro_batch: int) -> Tensor:
        """The same without gradient, in micro-batches."""
        result = torch.zeros(batch.mask.shape, device=batch.mask.device)
        for rows, part in batch.micro_batches(micro_batch):
            found = self.log_probs(part)
            result[rows, : found.shape[1]] = found.float()
        return result

    def accumulate_gradient(self, batch: Batch, micro_batch: int, **objective: Any) -> dict[str, float]:
        """Add the gradient of the batch's loss to the parameters' `.grad`; returns `loss`, and means over tokens.

        Only a micro-batch's activations are in memory at a time. objective: the keywords of `policy_loss`.
        """
        totals: Counter[str] = Counter()  # of tensors: reading each would wait for the GPU
        for _, part in batch.micro_batches(micro_batch):
            log_probs = self.log_probs(part)
            old = log_probs.detach() if part.old is None else part.old
            loss, sums = policy_loss(log_probs, old, part.ref, part.advantages, part.mask, part.weights, **objective)
            loss.backward()
            totals.update({"loss": loss.detach(), **sums})
        tokens = max(1, int(batch.mask.sum()))
        return {name: float(value) / (1 if name == "loss" else tokens) for name, value in totals.items()}

    @torch.no_grad()
    def _head_is_plain(self) -> bool:
        """Whether the logits are the output layer of the last hidden states; some models also cap or scale them."""
        tokens = torch.arange(1, 5, device=self.device).unsqueeze(0)
        training = self.model.training
        self.model.eval()
        logits = self.model(tokens, use_cache=False).logits
        plain = torch.equal(logits, self.head(self.model.base_model(tokens, use_cache=False).last_hidden_state))
        self.model.train(training)
        return plain
