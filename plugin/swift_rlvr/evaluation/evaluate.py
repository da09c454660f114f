"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and a summary.

    swift-rlvr evaluate MODEL --data datasets/countdown/tiny_test.jsonl --out eval/before

leaves `eval/before/records.jsonl`, one graded completion a line, and `eval/before/summary.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.data.prompts import training_system
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.sampling import Completion, SamplingSettings, choose_backend, sample
from swift_rlvr.evaluation.summary import summarize
from swift_rlvr.jsonl import LONGEST_ROW, read_jsonl, write_json, write_jsonl
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.task import with_system

RECORDS, SUMMARY = "records.jsonl", "summary.json"


@dataclass(frozen=True)
class EvalSettings:
    """What to evaluate on what.

    sampling: the model and how it is sampled.
    data: a .jsonl file with the task's columns. rows: only the first so many; None for all.
    system: the system prompt; None for the one the model was trained with, see `training_system`.
    """

    sampling: SamplingSettings
    data: str
    task: str = "countdown"
    rows: int | None = None
    system: str | None = None

    def __post_init__(self):
        if self.task not in TASKS:
            raise InputError(f"task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.rows is not None and self.rows < 1:
            raise InputError(f"rows must be at least 1, got {self.rows}")


def evaluate(settings: EvalSettings, out: str | Path, console: Console) -> dict[str, Any]:
    """Run an evaluation, write its two files into the folder `out` and return the summary."""
    task, out = TASKS[settings.task], Path(out)
    rows = read_rows(task, settings.data, settings.rows)
    system = training_system(settings.sampling.model, task) if settings.system is None else settings.system
    override = settings.system is not None
    conversations = [with_system(row["messages"], system, override) for row in rows]
    completions = sample(settings.sampling, conversations, console)
    records = grade(task, rows, completions)
    used = {**asdict(settings.sampling), "backend": choose_backend(settings.sampling.backend)}
    used |= {"task": settings.task, "data": settings.data, "rows": settings.rows, "system": system}
    summary = {"settings": used, **summarize(records)}
    write_jsonl(out / RECORDS, records)
    write_json(out / SUMMARY, summary)
    return summary


def read_rows(task: Task, path: str | Path, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows of a file, preprocessed. A row that cannot be used raises InputError with file, line and column."""
    rows = []
    for number, row in read_jsonl(path, LONGEST_ROW):
        if limit is not None and len(rows) == limit:
            break
        try:
            rows.append(task.preprocess(row))
        except RowError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    if not rows:
        raise InputError(f"{path}: no rows; expected columns {', '.join(task.columns)}")
    return rows


def grade(
    task: Task, rows: Sequence[Mapping[str, Any]], completions: Sequence[Sequence[Completion]]
) -> list[dict[str, Any]]:
    """One record for each completion; `rows[i]` is the task of `completions[i]`."""
    records = []
    for index, (row, group) in enumerate(zip(rows, completions, strict=True)):
        for number, completion in enumerate(group):
            reward, reason = task.grade(completion.text, row)
            records.append(
                {
                    "index": index,
                    "sample": number,
                    **{column: row[column] for column in reward_columns(task, row)},
                    "completion": completion.text,
                    "reward": reward,
                    "format": has_format(completion.text),
                    "reason": reason,
                    "tokens": completion.tokens,
                    "finish": completion.finish,
                }
            )
    return records


def reward_columns(task: Task, row: Mapping[str, Any]) -> list[str]:
    """The columns of a preprocessed row that tell its completions' rewards."""
    return list(task.reward_columns) or [column for column in row if column != "messages"]


def has_format(text: str) -> bool:
    r"""Whether ms-swift's built-in reward `format` gives 1.0, but in linear time, whatever the text.

    Its pattern is `^<think>.*?</think>\s*<answer>.*?</answer>(?![\s\S])` with DOTALL: think, then answer, nothing else
    before or after, anything inside.

    >>> has_format("<think>1 + 2</think>\n<answer>1 + 2 = 3</answer>"), has_format("<answer>1 + 2 = 3</answer>")
    (True, False)
    """
    start, end = "<think>", "</answer>"
    inside = text[len(start) : -len(end)]
    return text.startswith(start) and text.endswith(end) and re.search(r"</think>\s*<answer>", inside) is not None
