"""verl 0.9: ``reward.custom_reward_function.path=pkg://swift_rlvr.adapters.verl``."""

from collections.abc import Iterable, Mapping
from typing import Any

from swift_rlvr.adapters.grading import grade, row_of


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    rewards: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """What verl logs of a completion; its `score` is 0.0 where no reward grades the row.

    The row is `ground_truth`, see `row_of`, with the columns in `extra_info`; its task is
    `data_source`. rewards, weights: from `custom_reward_function.reward_kwargs`.

    >>> compute_score("countdown", "<answer>1+2</answer>", '{"nums": [1, 2], "target": 3}')
    {'score': 1.0, 'countdown': 1.0, 'countdown_reason': 'correct'}
    """
    row = row_of(ground_truth, data_source, **(extra_info or {}))
    grades = grade(solution_str, row, rewards, weights)
    return {**grades, "score": grades["score"] or 0.0}
