"""What a model sees of a row and how long it is: the system prompt, and rows rendered with a chat
template.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.evaluation.sampling.checkpoint import download
from swift_rlvr.runs.folder import as_json, training_args
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import with_system


def render(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[str, int]:
    """The prompt as text, up to where the model begins to write, and its number of tokens."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text, len(tokenizer(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True)
class Shown:
    """A row as the model and the rewards see it."""

    line: int
    prompt: str
    tokens: int
    columns: dict[str, Any]
    system_from: str
    gold: str | None  # a completion that earns the maximum, where one is known


def show(source: Source, model: str, number: int = 1, system: str | None = None) -> Shown:
    """Row `number` of a dataset, from 1; InputError where there is no such row or it cannot be
    used.

    system: as ms-swift's `--system`, for rows without a system turn; None for that of the training
    (`system_prompt`).
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
    prompt, tokens = render(load_tokenizer(download(model, source.use_hf, weights=False)), messages)
    columns = {name: value for name, value in prepared.items() if name != "messages"}
    return Shown(line, prompt, tokens, columns, system_from, gold)


def select(
    source: Source,
    model: str,
    max_prompt_tokens: int | None = None,
    max_answer_tokens: int | None = None,
    rows: int | None = None,
    system: str | None = None,
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The first `rows` raw rows that can be used and are not too long, None being no limit; why
    others were left out.

    Measured are the whole rendered prompt and the dataset's own solution (`Gold.text`), in tokens
    of `model`.
    """
    tokenizer, left_out = (
        load_tokenizer(download(model, source.use_hf, weights=False)),
        Counter[str](),
    )
    kept: list[dict[str, Any]] = []
    for _, row in source.rows():
        if len(kept) == rows:
            break
        try:
            prepared = source.task.preprocess(row)
            gold = source.task.gold(row)
        except RowError as error:
            left_out[f"cannot be used, {error.label}"] += 1
            continue
        own = with_system(prepared["messages"], source.task.system if system is None else system)
        _, prompt = render(tokenizer, own)
        answer = (
            0 if gold is None else len(tokenizer(gold.text, add_special_tokens=False)["input_ids"])
        )
        if max_prompt_tokens is not None and prompt > max_prompt_tokens:
            left_out["prompt too long"] += 1
        elif max_answer_tokens is not None and answer > max_answer_tokens:
            left_out["answer too long"] += 1
        else:
            kept.append(as_json(row))  # dates and the like as text
    return kept, left_out


def system_prompt(model: str, task: Task) -> tuple[str | None, str]:
    """The system prompt that a model was trained with, and where it was found.

    It is in the args.json of the run, see `training_args`. ms-swift notes none there where the rows
    brought their own, so in that case it is the one of the dataset's task. A model of `swift sft`,
    whose rows bring it, and one without args.json get the prompt of `task`, so that evaluations
    before and after training ask alike. None: the template's.
    """
    run = training_args(model)
    if run is None:
        return task.system, f"the task {task.name}"
    file, options = run
    supervised = options.get("task_type") == "causal_lm" and not options.get("rlhf_type")
    if supervised and options.get("system") is None:
        return task.system, f"the task {task.name}"
    trained = _trained_on(options.get("dataset"))
    if options.get("system") is None and trained is not None and trained.system_in_rows:
        return trained.system, f"{file}, whose dataset brings it"
    return options.get("system"), str(file)


def _trained_on(dataset: object) -> Task | None:
    """The task of the one dataset that an args.json names, a text or a list of texts."""
    listed = dataset if isinstance(dataset, list) else [dataset]
    names = {re.split("[:#]", name)[0] for name in listed if isinstance(name, str)}
    known = {
        name: task
        for task in TASKS.values()
        for name in (task.hf_dataset_id, task.ms_dataset_id, task.name)
    }
    return known.get(names.pop()) if len(names) == 1 else None
