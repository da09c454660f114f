"""What a model sees of a row and how long it is: the system prompt, and rows rendered with a chat template."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from swift_rlvr.data.sources import Source
from swift_rlvr.models import load_tokenizer
from swift_rlvr.runs.folder import training_args
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.task import with_system

UNUSABLE, LONG_PROMPT, LONG_ANSWER = "cannot be used", "prompt too long", "answer too long"


def render(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[str, int]:
    """The prompt as text, up to where the model begins to write, and its number of tokens."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text, len(tokenizer(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True)
class Shown:
    """A row as the model and the rewards see it: prompt and `tokens`, and `columns`.

    gold: a completion that earns the maximum, or None where none is known.
    """

    line: int
    prompt: str
    tokens: int
    columns: dict[str, Any]
    system_from: str
    gold: str | None


def show(source: Source, model: str, number: int = 1, system: str | None = None) -> Shown:
    """Row `number` of a dataset, from 1; InputError where there is no such row or it cannot be used.

    system: as ms-swift's `--system`, for rows without a system turn; None for that of the training (`system_prompt`).
    """
    line, row = source.row(number)
    with source.at(line):
        prepared = source.task.preprocess(row)
        gold = source.task.of(row).gold_completion(row)
    if prepared["messages"][0]["role"] == "system":
        system_from = "the row"
    elif system is not None:
        system_from = "--system"
    else:
        system, system_from = system_prompt(model, source.task)
    messages = with_system(prepared["messages"], system)
    prompt, tokens = render(load_tokenizer(model), messages)
    columns = {name: value for name, value in prepared.items() if name != "messages"}
    return Shown(line, prompt, tokens, columns, system_from, gold)


@dataclass
class Selection:
    """The rows that were kept, and why others of the `read` rows were not. unusable: their number, by label."""

    kept: list[dict[str, Any]] = field(default_factory=list)
    read: int = 0
    left_out: Counter = field(default_factory=Counter)
    unusable: Counter = field(default_factory=Counter)
    longest_prompt: int = 0
    longest_answer: int = 0

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "kept": len(self.kept)}


def select(
    source: Source,
    model: str,
    max_prompt_tokens: int | None = None,
    max_answer_tokens: int | None = None,
    rows: int | None = None,
    system: str | None = None,
) -> Selection:
    """The first `rows` raw rows that can be used and are not too long; None is no limit.

    Measured are the whole rendered prompt and the dataset's own solution (`Gold.text`), in tokens of `model`.
    """
    tokenizer, selection = load_tokenizer(model), Selection()
    for _, row in source.rows():
        if len(selection.kept) == rows:
            break
        selection.read += 1
        try:
            prepared = source.task.preprocess(row)
            gold = source.task.gold(row)
        except RowError as error:
            selection.left_out[UNUSABLE] += 1
            selection.unusable[error.label] += 1
            continue
        own = with_system(prepared["messages"], source.task.system if system is None else system)
        _, prompt = render(tokenizer, own)
        answer = 0 if gold is None else len(tokenizer(gold.text, add_special_tokens=False)["input_ids"])
        if max_prompt_tokens is not None and prompt > max_prompt_tokens:
            selection.left_out[LONG_PROMPT] += 1
        elif max_answer_tokens is not None and answer > max_answer_tokens:
            selection.left_out[LONG_ANSWER] += 1
        else:
            selection.kept.append(json.loads(json.dumps(row, default=str)))  # dates and the like as text
            selection.longest_prompt = max(selection.longest_prompt, prompt)
            selection.longest_answer = max(selection.longest_answer, answer)
    return selection


def system_prompt(model: str, task: Task | None) -> tuple[str | None, str]:
    """The system prompt that a model was trained with, and where it was found.

    It is in the args.json of the run, see `training_args`. ms-swift notes none there where the rows brought their own,
    so in that case it is the one of the dataset's task. A model without args.json was not trained here and gets the
    prompt of `task`, so that evaluations before and after training ask alike. None: the chat template's own default.
    """
    run = training_args(model)
    if run is None:
        return (None, "default") if task is None else (task.system, f"the task {task.name}")
    file, options = run
    trained = _trained_on(options.get("dataset"))
    if options.get("system") is None and trained is not None and trained.system_in_rows:
        return trained.system, f"{file}, whose dataset brings it"
    return options.get("system"), str(file)


def _trained_on(dataset: object) -> Task | None:
    """The task of the one dataset that an args.json names, a text or a list of texts."""
    listed = dataset if isinstance(dataset, list) else [dataset]
    names = {re.split("[:#]", name)[0] for name in listed if isinstance(name, str)}
    known = {name: task for task in TASKS.values() for name in (task.hf_dataset_id, task.ms_dataset_id, task.name)}
    return known.get(names.pop()) if len(names) == 1 else None
