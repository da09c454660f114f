"""Log-probabilities of given tokens under a causal language model, also where all logits do not fit
into memory.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def selected_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature) at the tokens: (..., V) and (...) -> (...), at least
    float32.

    With its gradient it needs about four times the memory of the logits; see `chunked_log_probs`.

    >>> selected_log_probs(torch.tensor([[0.0, 0.0, 0.0, 0.0]]), torch.tensor([1])).exp()
    tensor([0.2500])
    """
    logits = logits.float() if logits.dtype.itemsize < 4 else logits
    logits = logits if temperature == 1 else logits / temperature
    return logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


def chunked_log_probs(
    hidden: Tensor, head: nn.Module, tokens: Tensor, temperature: float, chunk: int
) -> Tensor:
    """The same from the last hidden states (N, H) and the output layer: -> (N,).

    Logits are there for `chunk` tokens at a time only, never for all of them, and computed again
    for the gradient.
    """

    def part(states: Tensor, labels: Tensor) -> Tensor:
        return selected_log_probs(head(states), labels, temperature)

    pairs = zip(hidden.split(chunk), tokens.split(chunk), strict=True)
    if not torch.is_grad_enabled() or len(hidden) <= chunk:
        return torch.cat([part(*pair) for pair in pairs])
    return torch.cat([checkpoint(part, *pair, use_reentrant=False) for pair in pairs])
