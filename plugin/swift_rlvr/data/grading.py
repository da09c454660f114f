"""Grades completions of preprocessed rows, many at once, each with the reward that belongs to its row."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import Task

BATCH = 256


@dataclass(frozen=True)
class Completion:
    """text: without special tokens. tokens: their number, with the end-of-turn token. finish: "stop" or "length"."""

    text: str
    tokens: int
    finish: str


def grade(task: Task, rows: Sequence[Mapping[str, Any]], completions: Sequence[str]) -> list[Grade]:
    """The grade of each completion, in order, by the verifier of its row; `rows` are preprocessed by `task`."""
    places: dict[str, list[int]] = {}  # reward -> the rows that it grades
    for place, row in enumerate(rows):
        places.setdefault(task.of(row).verifier or "", []).append(place)
    grades: dict[int, Grade] = {}
    for name, own in places.items():
        reward = REWARDS[name]()
        for start in range(0, len(own), BATCH):
            batch = own[start : start + BATCH]
            columns = columns_for(reward, [rows[place] for place in batch])
            graded = reward.grades([completions[place] for place in batch], **columns)
            grades.update(zip(batch, graded, strict=True))
    return [grades[place] for place in range(len(rows))]


def grade_samples(
    task: Task, rows: Sequence[Mapping[str, Any]], completions: Sequence[Sequence[Completion]]
) -> list[dict[str, Any]]:
    """One record for each completion, with the columns that its reward reads; `completions[i]` are of `rows[i]`."""
    samples = [(index, number, each) for index, group in enumerate(completions) for number, each in enumerate(group)]
    grades = grade(task, [rows[index] for index, _, _ in samples], [completion.text for *_, completion in samples])
    return [
        {
            "index": index,
            "sample": number,
            **{column: rows[index][column] for column in task.reward_columns or rows[index] if column != "messages"},
            "completion": completion.text,
            "reward": reward,
            "format": has_format(completion.text),
            "reason": reason,
            "tokens": completion.tokens,
            "finish": completion.finish,
        }
        for (index, number, completion), (reward, reason) in zip(samples, grades, strict=True)
    ]


def has_format(text: str) -> bool:
    r"""Whether ms-swift's built-in reward `format` gives 1.0, found in linear time.

    Its pattern is `^<think>.*?</think>\s*<answer>.*?</answer>(?![\s\S])`, where a dot is any character.

    >>> has_format("<think>1 + 2</think>\n<answer>1 + 2 = 3</answer>"), has_format("<answer>1 + 2 = 3</answer>")
    (True, False)
    """
    start, end = "<think>", "</answer>"
    inside = text[len(start) : -len(end)]
    return text.startswith(start) and text.endswith(end) and re.search(r"</think>\s*<answer>", inside) is not None
