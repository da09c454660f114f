"""The figures of a batch of completions, under ms-swift's names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch


def batch_summary(
    rewards: torch.Tensor,
    groups: torch.Tensor,
    by_name: Mapping[str, Sequence[float]],
    lengths: Sequence[int],
    ended: Sequence[bool],
) -> dict[str, float | None]:
    """What ms-swift logs about a batch of B completions, under its names.

    Args:
        rewards: (B,) in all, NaN counts as 0. groups: (B,) group ids. by_name: each function's rewards, NaN where it
            returned None; one that returned nothing else has no mean. lengths: in tokens. ended: with an end token.
    """
    rewards = rewards.nan_to_num(0.0)
    spread = torch.stack([rewards[groups == group].std() for group in groups.unique()])
    metrics = {"reward": rewards.mean().item(), "reward_std": spread.mean().item(),
               "frac_reward_zero_std": (spread < 1e-6).float().mean().item()}  # fmt: skip
    for name, values in by_name.items():
        known = torch.tensor([value for value in values if not math.isnan(value)])
        metrics[f"rewards/{name}/mean"] = known.mean().item() if len(known) else None
        metrics[f"rewards/{name}/std"] = known.std().item() if len(known) > 1 else None
    sizes = {"mean": sum(lengths) / len(lengths), "min": min(lengths), "max": max(lengths)}
    metrics |= {f"completions/{name}_length": float(value) for name, value in sizes.items()}
    return metrics | {"completions/clipped_ratio": 1 - sum(ended) / len(ended)}
