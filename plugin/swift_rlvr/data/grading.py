"""Grades completions of preprocessed rows, many at once, each with the reward that belongs to its row."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import Task

BATCH = 256
PATIENCE = 600.0
"""Seconds that a batch may take. No training waits here, and BATCH comparisons of 2 seconds each fit in, so that the
load of the machine decides about no grade."""


def patient_reward(name: str) -> Reward:
    """The reward of that name with PATIENCE where it limits the time of a batch."""
    limited = "batch_timeout" in {parameter.name for parameter in fields(REWARDS[name].Parameters)}
    return REWARDS[name](**({"batch_timeout": PATIENCE} if limited else {}))


def grade(task: Task, rows: Sequence[Mapping[str, Any]], completions: Sequence[str]) -> list[Grade]:
    """The grade of each completion, in order, by the verifier of its row; `rows` are preprocessed by `task`."""
    places: dict[str, list[int]] = {}  # reward -> the rows that it grades
    for place, row in enumerate(rows):
        places.setdefault(task.verifier(row), []).append(place)
    grades: dict[int, Grade] = {}
    for name, own in places.items():
        reward = patient_reward(name)
        for start in range(0, len(own), BATCH):
            batch = own[start : start + BATCH]
            columns = columns_for(reward, [rows[place] for place in batch])
            graded = reward.grades([completions[place] for place in batch], **columns)
            grades.update(zip(batch, graded, strict=True))
    return [grades[place] for place in range(len(rows))]
