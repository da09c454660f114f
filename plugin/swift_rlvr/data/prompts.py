"""What a model sees of a row, and how long it is: rows rendered with a model's chat template.

For `swift-rlvr dataset show` and `swift-rlvr dataset prepare`. Imports transformers only when called.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.models import load_tokenizer
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.folder import training_args
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.task import with_system

UNUSABLE, LONG_PROMPT, LONG_ANSWER = "cannot be used", "prompt too long", "answer too long"


def render(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[str, int]:
    """The prompt as text, up to where the model begins to write, and its number of tokens."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text, len(tokenizer(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True)
class Shown:
    """A row as the model and the rewards see it. `gold` is a completion that earns the maximum, or None."""

    line: int
    prompt: str
    tokens: int
    columns: dict[str, Any]
    system_from: str
    rewards: dict[str, str]
    gold: str | None

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def show(source: Source, model: str, number: int = 1, system: str | None = None) -> Shown:
    """Row `number` of a dataset, from 1. `system` is what `--system` is in ms-swift: for rows without a system turn.

    InputError where there is no such row or it cannot be used.
    """
    line, row = next((found for place, found in enumerate(source.rows(), start=1) if place == number), (0, None))
    if row is None:
        raise InputError(f"{source} has no row {number}")
    try:
        prepared = source.task.preprocess(row)
        part = source.task.part(row) if source.task.part else source.task
        gold = part.gold_completion(row) if isinstance(part, Task) else None
    except RowError as error:
        raise InputError(f"{source}, line {line}: {error}") from error
    if prepared["messages"][0]["role"] == "system":
        system_from = "the row"
    elif system is not None:
        system_from = "--system"
    else:
        system = training_system(model, source.task)
        system_from = "the task" if system == source.task.system else "the training of the model"
    messages = with_system(prepared["messages"], system)
    prompt, tokens = render(load_tokenizer(model), messages)
    columns = {name: value for name, value in prepared.items() if name != "messages"}
    return Shown(line, prompt, tokens, columns, system_from, takers(columns), gold)


def takers(columns: Mapping[str, Any]) -> dict[str, str]:
    """What each reward would make of a row with these columns: grade it, see no task of its own, or lack a column.

    >>> found = takers({"nums": [1, 2], "target": 3, "task": "countdown"})
    >>> found["external_countdown"], found["external_accuracy"], found["external_boxed"]
    ('reads nums, target', 'passes over the task countdown', 'needs solution')
    """
    outcomes = {}
    for name, kind in REWARDS.items():
        reward = kind()
        own, missing = reward.parameters.tasks, [column for column in reward.columns if column not in columns]
        if own and columns.get("task") is not None and columns["task"] not in own:
            outcomes[name] = f"passes over the task {columns['task']}"
        elif missing:
            outcomes[name] = f"needs {', '.join(missing)}"
        else:
            outcomes[name] = f"reads {', '.join(reward.columns)}" if reward.columns else "reads the completion alone"
    return outcomes


@dataclass
class Selection:
    """Which rows were kept, and why the others were not. `read` is how many were looked at."""

    kept: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0
    left_out: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    longest_prompt: int = 0
    longest_answer: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "kept": len(self.kept),
            "read": self.read,
            "left_out": dict(self.left_out),
            "unusable": dict(self.reasons),
            "longest_prompt": self.longest_prompt,
            "longest_answer": self.longest_answer,
        }


def select(
    source: Source,
    model: str,
    max_prompt_tokens: int | None = None,
    max_answer_tokens: int | None = None,
    rows: int | None = None,
    system: str | None = None,
) -> Selection:
    """The first `rows` raw rows that can be used and are no longer than that; None is no limit.

    The prompt's tokens are those of the whole rendered prompt; the answer's those of the dataset's own solution
    (`Reference.text`), or of the gold completion where the dataset has none.
    """
    tokenizer, found = load_tokenizer(model), Selection()
    for _, row in source.rows():
        if len(found.kept) == rows:
            break
        found.read += 1
        try:
            prepared = source.task.preprocess(row)
            reference = source.task.reference(row)
        except RowError as error:
            found.left_out[UNUSABLE] += 1
            found.reasons[error.label] += 1
            continue
        own = with_system(prepared["messages"], source.task.system if system is None else system)
        _, prompt = render(tokenizer, own)
        answer = 0 if reference is None else len(tokenizer(reference.text, add_special_tokens=False)["input_ids"])
        if max_prompt_tokens is not None and prompt > max_prompt_tokens:
            found.left_out[LONG_PROMPT] += 1
        elif max_answer_tokens is not None and answer > max_answer_tokens:
            found.left_out[LONG_ANSWER] += 1
        else:
            found.kept.append(row)
            found.longest_prompt = max(found.longest_prompt, prompt)
            found.longest_answer = max(found.longest_answer, answer)
    return found


def as_rows(selection: Selection) -> Iterator[dict[str, Any]]:
    """The kept rows, with what JSON has no form for as text."""
    for row in selection.kept:
        yield json.loads(json.dumps(row, default=str))


def training_system(model: str, task: Task) -> str | None:
    """The system prompt that a checkpoint was trained with, from the args.json that ms-swift saves beside it.

    A model without that file was not trained here and gets the task's system prompt, so that "before" and "after" are
    asked alike. None: ms-swift was given no `--system`, and the chat template's own default applies.
    """
    found = training_args(model)
    return task.system if found is None else found[1].get("system")
