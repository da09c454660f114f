"""Completions of given rows from ms-swift's GRPO trainer, for held-out evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.utils.errors import InputError


def sample(trainer: Any, rows: Sequence[Mapping[str, Any]]) -> list[Completion]:
    """A completion for each row of this rank, the way that the trainer gets those it trains on."""
    if not hasattr(trainer, "to_samples"):
        raise InputError("held_out needs ms-swift 4.6 and its GRPO trainer")
    size = len(rows)
    if not trainer.use_fast_infer:  # all that transformers is given is one batch
        size = trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation
    completions = []
    for start in range(0, len(rows), size):
        samples = trainer.to_samples(list(rows[start : start + size]))
        for sample in trainer._generate_completions(samples):
            text = sample.messages[-1]["content"]
            ids = sample.response_token_ids
            # Of several turns the ids are a list of lists.
            is_of_turns = bool(ids) and isinstance(ids[0], list)
            tokens = sum(map(len, ids)) if is_of_turns else len(ids)
            completions.append(Completion(text, tokens, sample.finish_reason or "stop"))
    return completions
