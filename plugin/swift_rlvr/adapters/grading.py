"""What all adapters share: a completion and its row -> one score, each reward, each reason."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.tasks import TASKS, verifier_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX, Settings, setting


@dataclass(frozen=True)
class AdapterSettings(Settings):
    """Which rewards, where the trainer's configuration has no place to say so: variables."""

    reward_funcs: tuple[str, ...] = setting((), "Names of rewards. Default: the task's verifier.")
    reward_weights: tuple[float, ...] = setting((), "One weight per reward. Default: 1.")


def grade(
    completion: object,
    row: Mapping[str, Any],
    rewards: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
) -> dict[str, Any]:
    """Grade one completion of a row: ``{"score": ..., NAME: ..., NAME_reason: ...}``.

    The score is the weighted sum of the rewards that grade the row, as in ms-swift and TRL; None
    where none does. A reward that does not grade the row is None too.

    Args:
        completion: a text, or a list of messages.
        row: its columns.
        rewards: names as in `--reward_funcs`. By default those of SWIFT_RLVR_REWARD_FUNCS, or else
            the verifier of the row's `task`.
        weights: one for each; by default SWIFT_RLVR_REWARD_WEIGHTS, or else 1.

    Raises:
        InputError: no reward is named, one is unknown, or there are more or fewer weights.
        ValueError: the row lacks a column that a reward needs.

    >>> grade("<answer>1+2</answer>", {"nums": [1, 2], "target": 3}, ["countdown", "format"], [1, 0.1])
    {'score': 1.0, 'countdown': 1.0, 'countdown_reason': 'correct', 'format': 0.0, 'format_reason': 'no think part'}
    """
    settings = AdapterSettings.from_environment()
    names = tuple(rewards or settings.reward_funcs) or _verifier(row)
    numbers = tuple(weights or settings.reward_weights) or (1.0,) * len(names)
    if len(numbers) != len(names):
        problem = f"must have one weight for each of {', '.join(names)}, got {len(numbers)}"
        raise InputError(problem, "reward_weights")

    columns = {name: [value] for name, value in row.items()}
    total = None
    grades: dict[str, Any] = {}
    for reward, weight in zip(_built(names), numbers, strict=True):
        (value, reason), *_ = reward.grades([completion], **columns)
        name = reward.name.removeprefix("external_")
        grades |= {name: value, f"{name}_reason": reason}
        if value is not None:
            total = (total or 0.0) + weight * value
    return {"score": total, **grades}


def row_of(label: object, task: object = None, **columns: Any) -> dict[str, Any]:
    """The row that a trainer's one label stands for, beside the columns that it hands over itself.

    A JSON object holds columns, as `swift-rlvr dataset prepare --format` writes them. Any other
    label is the column `solution`. task: the row's, where it names none and there is one of this
    name.

    >>> row_of('{"nums": [1, 2], "target": 3}', task="countdown")
    {'nums': [1, 2], 'target': 3, 'task': 'countdown'}
    >>> row_of("72", question="6 * 12?")
    {'question': '6 * 12?', 'solution': '72'}
    """
    row = dict(columns)
    row |= _columns_in(label)
    if row.get("task") is None and isinstance(task, str) and task in TASKS:
        row["task"] = task
    return row


def _columns_in(label: object) -> Mapping[str, Any]:
    if isinstance(label, Mapping):
        return label
    if label is None or label == "":
        return {}
    if isinstance(label, str) and label.lstrip().startswith("{"):
        try:
            columns = json.loads(label)
        except ValueError:  # a text or a formula in braces
            columns = None
        if isinstance(columns, dict):
            return columns
    return {"solution": label if isinstance(label, str) else str(label)}


def _verifier(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = verifier_of(row.get("task"))
    if name is None:
        field = f"{PREFIX}REWARD_FUNCS"
        problem = f"no reward is named, and the row's task {row.get('task')!r} has no verifier"
        raise InputError(f"{problem}; name some, such as countdown,format", field)
    return (name,)


@cache
def _built(names: tuple[str, ...]) -> list[Reward]:
    """The rewards, built once in a process."""
    rewards = build_rewards(names)
    if len(rewards) != len(names):
        raise InputError(f"a reward is named twice in {', '.join(names)}", "reward_funcs")
    return rewards
