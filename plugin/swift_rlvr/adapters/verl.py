"""verl 0.9: ``reward.custom_reward_function.path=pkg://swift_rlvr.adapters.verl``."""

from collections.abc import Mapping
from typing import Any

from swift_rlvr.adapters.grading import grade, row_of, same_keys


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    rewards: Any = None,
    weights: Any = None,
    **others: Any,
) -> dict[str, Any]:
    """What verl logs of a completion; its `score` is 0.0 where no reward grades the row.

    The row is `ground_truth`, see `row_of`, with the columns in `extra_info`; its task is
    `data_source`. rewards, weights: from `custom_reward_function.reward_kwargs`, see `grade`. verl
    takes the keys of the first row of a batch for all, so they are the same for every row.

    >>> label = '{"nums": [1, 2], "target": 3}'
    >>> compute_score("countdown", "<answer>1+2</answer>", label, rewards="countdown")
    {'score': 1.0, 'countdown': 1.0, 'countdown_reason': 'correct'}
    """
    row = row_of(ground_truth, data_source, **(extra_info or {}))
    grades = same_keys(grade(solution_str, row, rewards, weights), rewards)
    return {**grades, "score": grades["score"] or 0.0}
