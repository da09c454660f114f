"""The run's own rewards on a few completions, called as ms-swift's trainer calls them."""

import math
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.rewards.function import FunctionReward


def try_rewards(
    names: Sequence[str], arguments: Any, rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[float | None] | str]:
    """By name, what each reward pays for each row, or the error that it raises.

    rows: with `messages`, of which the last is the completion, and the other columns. All of them
    make one batch, in which a column is None in rows that lack it.

    Empty where this version of ms-swift keeps that call elsewhere.
    """
    import torch
    from swift.rewards import orms
    from transformers import TrainerState

    try:
        from swift.rl_core.data import GRPOSample
        from swift.rl_core.grpo_algorithm import compute_rewards_per_func
    except ImportError:  # before 4.5
        return {}

    training_arguments = getattr(arguments, "training_args", arguments)
    samples = []
    for number, row in enumerate(rows):
        text = row["messages"][-1]["content"]
        of_the_rollout = {
            "prompt_id": f"prompt-{number}",
            "request_id": f"request-{number}",
            "finish_reason": "stop",
            "rollout_infos": {},
            # As many as a text of this length has, about.
            "response_token_ids": [0] * (len(text) // 4 + 1),
        }
        samples.append(GRPOSample.from_row({**row, **of_the_rollout}))

    results: dict[str, list[float | None] | str] = {}
    for name in names:
        try:
            reward = orms[name](args=training_arguments)
            paid = compute_rewards_per_func(
                samples, [reward], None, torch.device("cpu"), trainer_state=TrainerState()
            )
            if isinstance(reward, FunctionReward):
                reward.end_if_it_only_fails()  # a training would wait for more completions
        except (Exception, SystemExit) as error:  # of somebody else's function, whatever it is
            results[name] = _described(error)
        else:
            values = paid[:, 0].tolist()
            results[name] = [None if math.isnan(value) else value for value in values]
    return results


def _described(error: BaseException) -> str:
    """An error and, where it has a cause in somebody's function, the line that raised that."""
    text = f"{type(error).__name__}: {error}"
    if error.__cause__ is None:
        return text
    while error.__cause__ is not None:
        error = error.__cause__
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} [{where.filename}, line {where.lineno}: {where.line}]"
