"""Grades completions of preprocessed rows, many at once, each with the reward that belongs to its row."""

from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import Task

BATCH = 256


def grade(task: Task, rows: Sequence[Mapping[str, Any]], completions: Sequence[str]) -> list[Grade]:
    """The grade of each completion, in order, by the verifier of its row; `rows` are preprocessed by `task`."""
    places: dict[str, list[int]] = {}  # reward -> the rows that it grades
    for place, row in enumerate(rows):
        places.setdefault(task.verifier(row), []).append(place)
    grades: dict[int, Grade] = {}
    for name, own in places.items():
        reward = REWARDS[name]()
        for start in range(0, len(own), BATCH):
            batch = own[start : start + BATCH]
            columns = columns_for(reward, [rows[place] for place in batch])
            graded = reward.grades([completions[place] for place in batch], **columns)
            grades.update(zip(batch, graded, strict=True))
    return [grades[place] for place in range(len(rows))]
