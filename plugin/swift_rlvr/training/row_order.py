"""The order of the rows in a run that goes on in a later epoch.

TRL's RepeatSampler, which ms-swift uses too, draws the order of each epoch from a generator that it
seeds once. transformers finds the place within an epoch again, and not that generator's: a run that is
resumed in its second epoch would take the order of the first, and so train on some rows twice in
that epoch and on others not at all.
"""

import math
from typing import Any

import torch


def go_on_with_order(dataloader: Any, step: int, accumulation: int) -> None:
    """Draw the orders of the epochs before a step, as the run that made the step has drawn them.

    dataloader: the trainer's, as accelerate has prepared it. step: of the optimizer, the last that was
    made. accumulation: batches of the dataloader in a step.
    """
    sampler: Any = getattr(dataloader, "batch_sampler", None)
    while hasattr(sampler, "batch_sampler"):  # accelerate's share of a rank
        sampler = sampler.batch_sampler
    sampler = getattr(sampler, "sampler", None)
    is_repeating = hasattr(sampler, "mini_repeat_count") and getattr(sampler, "shuffle", False)
    # One that has `set_epoch` is told the epoch by transformers.
    if not is_repeating or hasattr(sampler, "set_epoch"):
        return
    steps_an_epoch = max(1, math.ceil(len(dataloader) / accumulation))
    for _ in range(step // steps_an_epoch):
        torch.randperm(sampler.num_samples, generator=sampler.generator)
