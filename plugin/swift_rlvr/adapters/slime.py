"""slime: ``--custom-rm-path swift_rlvr.adapters.slime.custom_rm``."""

import asyncio
from typing import Any

from swift_rlvr.adapters.grading import grade, row_of


async def custom_rm(args: Any, sample: Any, **others: Any) -> Any:
    """The score of a sample, or of each in a list (``--group-rm``); with ``--reward-key score`` all
    that is known of it.

    The row is `sample.label`, see `row_of`, with the columns in `sample.metadata`. Where no reward
    grades it, the score is 0.0, and `remove_sample` keeps it out of the loss.
    """
    if isinstance(sample, list):
        return await asyncio.gather(*(custom_rm(args, each) for each in sample))
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    row = row_of(sample.label, **{"prompts": sample.prompt, **metadata})
    # In a thread: a verifier may take seconds, and the sampling goes on.
    grades = await asyncio.to_thread(grade, sample.response, row)
    if grades["score"] is None:
        sample.remove_sample = True
        grades["score"] = 0.0
    return grades if getattr(args, "reward_key", None) else grades["score"]
