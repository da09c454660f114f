"""The mathematics of GRPO as pure functions: advantages, the KL, the clipped objective, means over
tokens.

B completions of at most T tokens; nothing here knows a model. Papers: GRPO is DeepSeekMath (arXiv
2402.03300); DAPO (arXiv 2503.14476); Dr.GRPO, "Understanding R1-Zero-Like Training" (arXiv
2503.20783); GSPO (arXiv 2507.18071); PPO (arXiv 1707.06347); the KL's estimate, Schulman,
"Approximating KL Divergence" (joschu.net/blog/kl-approx.html).
"""

import torch
from torch import Tensor

from swift_rlvr.grpo.settings import AGGREGATIONS, RATIO_LEVELS


def total_reward(rewards: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of several reward functions: (B, F) and (F,) -> (B,).

    NaN is a function's None, "does not apply here", and left out; a completion with nothing but NaN
    gets NaN.

    >>> total_reward(torch.tensor([[1.0, 0.5], [1.0, torch.nan]]), torch.tensor([1.0, 2.0])).tolist()
    [2.0, 1.0]
    """
    return torch.where(rewards.isnan().all(1), torch.nan, (rewards * weights).nansum(1))


def group_advantages(
    rewards: Tensor, groups: Tensor, *, scale: bool = True, eps: float = 1e-4
) -> Tensor:
    """What a completion earned beyond its group: (B,) and group ids (B,) of whole numbers -> (B,).

    DeepSeekMath, section 4.1.2: (r - mean) / std over the completions of one prompt; `scale=False`
    leaves the division out (Dr.GRPO, section 3.2). The standard deviation is the sample's, and eps
    is added to it, as TRL and ms-swift do it (both 1e-4). A group of equal rewards and a group of
    one get exactly 0. A NaN reward counts for nothing and gets 0; TRL and ms-swift take it for a
    reward of 0.

    >>> rewards = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.3, 0.3, torch.nan])
    >>> group_advantages(rewards, torch.tensor([7, 7, 7, 7, 2, 2, 2]), eps=0.01).tolist()
    [0.85128..., -0.85128..., 0.85128..., -0.85128..., 0.0, 0.0, 0.0]
    """
    rewards = rewards if rewards.is_floating_point() else rewards.float()
    known, (ids, group) = ~rewards.isnan(), groups.unique(return_inverse=True)
    values = rewards.double().where(
        known, 0
    )  # in float32 the rounding of the mean would be divided by eps

    def per_group(x: Tensor) -> Tensor:
        return x.new_zeros(len(ids)).index_add(0, group, x)

    count = per_group(known.double())
    centered = (values - (per_group(values) / count.clamp(min=1))[group]).where(known, 0)
    std = (per_group(centered**2) / (count - 1).clamp(min=1)).sqrt()
    equal = std[group] <= 1e-12 * values.abs()
    advantages = centered / (std[group] + eps) if scale else centered
    return advantages.where(~equal, 0).to(rewards.dtype)


def k3(log_probs: Tensor, ref: Tensor) -> Tensor:
    """pi_ref / pi - (log pi_ref - log pi) - 1, DeepSeekMath's equation 4: unbiased and never
    negative. Any shape.

    ms-swift also clamps the difference to +-20 and the result to 10; TRL and this function do not.

    >>> k3(torch.tensor([0.5, 0.1]).log(), torch.tensor([0.5, 0.2]).log())
    tensor([0.0000, 0.3069])
    """
    return torch.exp(ref - log_probs) - (ref - log_probs) - 1


def log_ratio(log_probs: Tensor, old: Tensor, mask: Tensor, level: str = "token") -> Tensor:
    """log(pi / pi_old) of every token, (B, T); with level "sequence" its mean over the completion,
    (B, 1).

    GSPO, equation 7: the ratio of whole sequences, to the power of 1 / length.
    """
    if level not in RATIO_LEVELS:
        raise ValueError(f"level must be one of {', '.join(RATIO_LEVELS)}, not {level!r}")
    ratio = log_probs - old
    return ratio if level == "token" else (ratio * mask).sum(1, keepdim=True) / _lengths(mask)


def clipped_objective(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """min(ratio A, clip(ratio, 1 - low, 1 + high) A), to be made large: any shapes that broadcast.

    PPO's equation 7, DeepSeekMath's equation 3. `high` above `low` is DAPO's clip-higher (section
    3.1).

    >>> clipped_objective(torch.tensor([1.5, 1.5]), torch.tensor([1.0, -1.0]), 0.2, 0.2)
    tensor([ 1.2000, -1.5000])
    """
    return torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def clipped(ratio: Tensor, advantages: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Where the clip takes the gradient away: (at the lower bound, at the upper one), boolean,
    shapes broadcast.
    """
    return (ratio < 1 - low) & (advantages < 0), (ratio > 1 + high) & (advantages > 0)


def token_weights(mask: Tensor, aggregation: str, max_length: int) -> Tensor:
    """The weight of every token in the loss of the whole batch: mask (B, T) -> (B, T), to be
    multiplied and summed.

    grpo: mean over a completion's tokens, then over completions (DeepSeekMath, equation 3).
    dapo: mean over all tokens of the batch (DAPO, equation 8 and section 3.3): long completions
    count more.
    dr_grpo: sum over all tokens, divided by B times the longest allowed length (Dr.GRPO, section
        3.2, which leaves the constant open; this is TRL's and ms-swift's): no completion's length
        matters.
    A completion without tokens still counts in B, as in TRL and ms-swift.

    Since the weights are those of the batch, the losses of micro-batches add up to the loss of the
    batch exactly.

    >>> mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]])
    >>> [token_weights(mask, name, max_length=5)[:, 0].tolist() for name in AGGREGATIONS]
    [[0.125, 0.5], [0.2..., 0.2...], [0.1..., 0.1...]]
    """
    mask = mask.float()
    if aggregation == "grpo":
        return mask / _lengths(mask) / len(mask)
    if aggregation == "dapo":
        return mask / mask.sum().clamp(min=1)
    if aggregation == "dr_grpo":
        return mask / (len(mask) * max_length)
    raise ValueError(f"aggregation must be one of {', '.join(AGGREGATIONS)}, not {aggregation!r}")


def policy_loss(
    log_probs: Tensor,
    old: Tensor,
    ref: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    weights: Tensor,
    *,
    low: float = 0.2,
    high: float | None = None,
    beta: float = 0.0,
    level: str = "token",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a micro-batch, a scalar to be summed over the batch's micro-batches, and sums
    over its tokens to log.

    Args:
        log_probs, old, ref: log-probabilities (B, T) of the sampled tokens under the policy (with
            gradient), the policy that sampled them, and the reference policy (None where beta is
            0).
        advantages: (B,). mask: (B, T), tokens that count. weights: (B, T), their `token_weights`.
        low, high: the clip range; high is low unless given. beta: weight of k3. level: of the
        ratio, see `log_ratio`.

    >>> log_probs = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    >>> ones = torch.ones(1, 2)
    >>> loss, _ = policy_loss(log_probs, log_probs.detach(), None, torch.tensor([1.0]), ones, ones / 2)
    >>> loss.backward()
    >>> loss.item(), log_probs.grad.tolist()
    (-1.0, [[-0.5, -0.5]])
    """
    high, advantages, counts = low if high is None else high, advantages.unsqueeze(1), mask.bool()
    # What stands in the padding must not matter, and a gradient of 0 times infinity would be NaN:
    # it goes first.
    log_probs, old = log_probs.where(counts, 0), old.where(counts, 0)
    ratio = log_ratio(log_probs, old, mask, level).exp()
    loss = -clipped_objective(ratio, advantages, low, high).expand_as(log_probs)
    at_low, at_high = (
        hit.expand_as(log_probs) & counts for hit in clipped(ratio, advantages, low, high)
    )
    sums = {"clip_ratio/low_mean": at_low.sum(), "clip_ratio/high_mean": at_high.sum()}
    sums["clip_ratio/region_mean"] = (at_low | at_high).sum()
    if beta and ref is not None:
        divergence = k3(log_probs, ref.where(counts, 0))
        loss = loss + beta * divergence
        sums["kl"] = divergence.detach().sum()
    return (loss * weights).sum(), sums


def _lengths(mask: Tensor) -> Tensor:
    return mask.sum(1, keepdim=True).clamp(min=1)
