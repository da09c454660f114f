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
from swift_rlvr.utils.errors import InputError


def render(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[str, int]:
    """The prompt as text, up to where the model begins to write, and its number of tokens."""
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return text, _token_count(tokenizer, text)


def _token_count(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


@dataclass(frozen=True)
class Shown:
    """A row as the model and the rewards see it.

    tokens: the length of the prompt. system_from: where the system prompt was found. gold: a
    completion that earns the maximum, where one is known.
    """

    line: int
    prompt: str
    tokens: int
    columns: dict[str, Any]
    system_from: str
    gold: str | None


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
    tokenizer = load_tokenizer(download(model, source.use_hf, weights=False))
    prompt, tokens = render(tokenizer, messages)
    columns = {name: value for name, value in prepared.items() if name != "messages"}
    return Shown(line, prompt, tokens, columns, system_from, gold)


def select(
    source: Source,
    model: str | None = None,
    max_prompt_tokens: int | None = None,
    max_answer_tokens: int | None = None,
    rows: int | None = None,
    system: str | None = None,
) -> tuple[list[tuple[int, dict[str, Any]]], Counter[str]]:
    """The first `rows` raw rows that can be used and are not too long, each with its line, and why
    others were left out; None is no limit.

    Measured are the whole rendered prompt and the dataset's own solution (`Gold.text`), in tokens
    of `model`, which is needed for a limit.
    """
    tokenizer = None
    if model is not None:
        tokenizer = load_tokenizer(download(model, source.use_hf, weights=False))
    elif max_prompt_tokens is not None or max_answer_tokens is not None:
        raise InputError("is required to count tokens", field="model")
    if system is None:
        system = source.task.system
    left_out = Counter[str]()
    kept: list[tuple[int, dict[str, Any]]] = []
    for line, row in source.rows():
        if len(kept) == rows:
            break
        try:
            prepared = source.task.preprocess(row)
            gold = source.task.gold(row)
        except RowError as error:
            left_out[f"cannot be used, {error.label}"] += 1
            continue
        prompt_tokens = answer_tokens = 0
        if tokenizer is not None:
            _, prompt_tokens = render(tokenizer, with_system(prepared["messages"], system))
            answer_tokens = 0 if gold is None else _token_count(tokenizer, gold.text)
        if max_prompt_tokens is not None and prompt_tokens > max_prompt_tokens:
            left_out["prompt too long"] += 1
        elif max_answer_tokens is not None and answer_tokens > max_answer_tokens:
            left_out["answer too long"] += 1
        else:
            # What JSON lacks, such as a date, becomes text.
            kept.append((line, as_json(row)))
    return kept, left_out


def system_prompt(model: str, task: Task) -> tuple[str | None, str]:
    """The system prompt that a model was trained with, and where it was found. None is the
    template's own.

    It is in the args.json of the run, see `training_args`. There are three exceptions:

    - ms-swift notes none there where the rows brought their own. It is then the one of the
      dataset's task.
    - A model of `swift sft`, whose rows bring it, gets the prompt of `task`, so that evaluations
      before and after training ask alike.
    - A model without args.json gets the prompt of `task` too.
    """
    run = training_args(model)
    if run is None:
        return task.system, f"the task {task.name}"
    file, options = run
    system = options.get("system")
    if system is not None:
        return system, str(file)
    if options.get("task_type") == "causal_lm" and not options.get("rlhf_type"):
        return task.system, f"the task {task.name}"
    trained = _trained_on(options.get("dataset"))
    if trained is not None and trained.system_in_rows:
        return trained.system, f"the dataset named in {file}"
    return None, str(file)


def _trained_on(dataset: object) -> Task | None:
    """The task of the one dataset that an args.json names, a text or a list of texts."""
    listed = dataset if isinstance(dataset, list) else [dataset]
    # NAME:SPLIT#N, without the split and the number.
    names = {re.split("[:#]", name)[0] for name in listed if isinstance(name, str)}
    if len(names) != 1:
        return None
    (name,) = names
    trained = None
    # Of tasks with the same id the last one counts, as in ms-swift.
    for task in TASKS.values():
        if name in (task.hf_dataset_id, task.ms_dataset_id, task.name):
            trained = task
    return trained
