"""What a model sees of a row and how long it is: the system prompt, rows rendered with a chat
template, and the completion that such a prompt asks for.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.evaluation.sampling.checkpoint import download
from swift_rlvr.evaluation.tools import rendered, with_tools
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.folder import as_json, training_args
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import (
    Gold,
    Messages,
    Row,
    prompt_text,
    with_default_system,
    with_system,
)
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.answer_forms import CODE
from swift_rlvr.verifiers.thinking import opens_thinking, with_opening


def render(tokenizer: Any, messages: Messages) -> tuple[str, int]:
    """The prompt as text, up to where the model begins to write, and its number of tokens."""
    text = rendered(tokenizer, messages)
    return text, token_count(tokenizer, text)


def token_count(tokenizer: Any, text: str) -> int:
    """How many tokens a text has, without special ones at its ends."""
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


class SystemPrompt(NamedTuple):
    """A system prompt for rows without a system turn; None is the template's own.

    is_default: nobody chose it, so it gives way to what a row says itself.
    """

    text: str | None
    found_in: str
    is_default: bool = False

    def on(self, messages: Messages) -> Messages:
        """The messages after this prompt."""
        add = with_default_system if self.is_default else with_system
        return add(messages, self.text)


def default_system(task: Task) -> SystemPrompt:
    """The system prompt of a task, where nobody chose another."""
    return SystemPrompt(task.system, f"the task {task.name}", is_default=True)


def chosen_system(task: Task, system: str | None) -> SystemPrompt:
    """The system prompt that `--system` names, else that of the task."""
    return default_system(task) if system is None else SystemPrompt(system, "--system")


@dataclass(frozen=True)
class AskedRow:
    """A row as the model and the rewards see it.

    row: preprocessed. prompt: as rendered with a chat template, or the text of its turns without
    one. tokens: its length; None without a template. form: what it says about the answer, see
    `Task.form_of`. gold: the right answer, where one is known. ideal: what this prompt asks for, with
    that answer.
    """

    line: int
    task: Task
    row: dict[str, Any]
    messages: Messages
    prompt: str
    tokens: int | None
    system_from: str
    form: str | None
    gold: Gold | None
    ideal: str | None

    @cached_property
    def thinking_opened(self) -> bool:
        """Whether the template ends inside a think part."""
        return self.tokens is not None and opens_thinking(self.prompt)

    @property
    def graded(self) -> str | None:
        """The ideal completion as ms-swift hands it to rewards: with what its template opened."""
        return None if self.ideal is None else with_opening(self.ideal, self.thinking_opened)

    @cached_property
    def _text(self) -> str:
        return prompt_text(self.messages)

    def answering(self, answer: str, reasoning: str = "A guess.") -> str:
        """A completion for rewards that guesses, in the form that the prompt asks for."""
        guess = self.task.completion(self._text, reasoning, answer, self.thinking_opened)
        return with_opening(guess, self.thinking_opened)


def ask(
    task: Task,
    raw: Row,
    line: int = 0,
    system: SystemPrompt | None = None,
    tokenizer: Any = None,
) -> AskedRow:
    """A raw row of a task on its way through preprocessing and chat template; RowError if it
    cannot be used.

    system: None for the task's. tokenizer: with a chat template; None if there is no model.
    """
    system = system or default_system(task)
    own = task.of(raw)
    prepared = task.preprocess_for_training(raw)
    messages = with_tools(system.on(prepared["messages"]), prepared)
    # ms-swift adds a system prompt only where the row has none.
    system_from = system.found_in
    if prepared["messages"][0]["role"] == "system":
        system_from = "the row"
    elif system.text and messages[0]["role"] != "system":
        system_from = "the chat template, if at all, since the row says where its answer stands"
    text = prompt_text(messages)
    prompt, tokens = text, None
    if tokenizer is not None:
        prompt, tokens = render(tokenizer, messages)

    # A code block is a form only for programs, and theirs also where the prompt does not say so.
    form = own.form_of(text)
    runs_code = REWARDS[own.verifier or ""].runs_code
    if form in (None, CODE):
        form = CODE if runs_code else None
    opened = tokens is not None and opens_thinking(prompt)
    ideal = own.gold_completion(raw, messages=messages, thinking_opened=opened)
    return AskedRow(
        line=line,
        task=own,
        row=prepared,
        messages=messages,
        prompt=prompt,
        tokens=tokens,
        system_from=system_from,
        form=form,
        gold=own.gold(raw),
        ideal=ideal,
    )


def asked_row(source: Source, model: str, number: int = 1, system: str | None = None) -> AskedRow:
    """Row `number` of a dataset, from 1; InputError if there is no such row or it cannot be
    used.

    system: as ms-swift's `--system`, for rows without a system turn; None for that of the training
    (`system_prompt`).
    """
    line, row = source.row(number)
    chosen = SystemPrompt(system, "--system")
    if system is None:
        chosen = system_prompt(model, source.task)
    tokenizer = load_tokenizer(download(model, source.use_hf, weights=False))
    with source.at(line):
        return ask(source.task, row, line, chosen, tokenizer)


def select(
    source: Source,
    model: str | None = None,
    max_prompt_tokens: int | None = None,
    max_answer_tokens: int | None = None,
    rows: int | None = None,
    system: str | None = None,
    renamed: set[str] | None = None,
) -> tuple[list[tuple[int, dict[str, Any]]], Counter[str]]:
    """The first `rows` raw rows that can be used and are not too long, each with its line, and why
    others were left out; None is no limit.

    Measured are the whole rendered prompt and the dataset's own solution (`Gold.text`), in tokens
    of `model`, which is needed for a limit. renamed: as in `Source.rows`.
    """
    tokenizer = None
    if model is not None:
        tokenizer = load_tokenizer(download(model, source.use_hf, weights=False))
    elif max_prompt_tokens is not None or max_answer_tokens is not None:
        raise InputError("is required to count tokens", field="model")
    chosen = chosen_system(source.task, system)
    left_out = Counter[str]()
    kept: list[tuple[int, dict[str, Any]]] = []
    for line, row in source.rows(renamed):
        if len(kept) == rows:
            break
        try:
            prepared = source.task.preprocess(row)
            gold = source.task.gold(row)
        except RowError as error:
            left_out[f"cannot be used, {error.label}"] += 1
            continue
        if max_prompt_tokens is not None:
            _, tokens = render(tokenizer, with_tools(chosen.on(prepared["messages"]), prepared))
            if tokens > max_prompt_tokens:
                left_out["prompt too long"] += 1
                continue
        answer = "" if gold is None else gold.text
        if max_answer_tokens is not None and token_count(tokenizer, answer) > max_answer_tokens:
            left_out["answer too long"] += 1
            continue
        # What JSON lacks, such as a date, becomes text.
        kept.append((line, as_json(row)))
    return kept, left_out


def system_prompt(model: str, task: Task) -> SystemPrompt:
    """The system prompt that a model was trained with.

    It is in the args.json of the run, see `training_args`. There are three exceptions:

    - ms-swift notes none there where the rows brought their own. It is then the one of the
      dataset's task.
    - A model of `swift sft`, whose rows bring it, gets the prompt of `task`, so that evaluations
      before and after training ask alike.
    - A model without args.json gets the prompt of `task` too.
    """
    run = training_args(model)
    if run is None:
        return default_system(task)
    file, options = run
    system = options.get("system")
    if system is not None:
        return SystemPrompt(system, str(file))
    if options.get("task_type") == "causal_lm" and not options.get("rlhf_type"):
        return default_system(task)

    # The dataset that it names, if it is one: NAME:SPLIT#N, in a text or a list of texts.
    dataset = options.get("dataset")
    names = set()
    for listed in dataset if isinstance(dataset, list) else [dataset]:
        if isinstance(listed, str):
            names.add(re.split("[:#]", listed)[0])
    trained = None
    for known in TASKS.values():
        # The last task with an id counts, as in ms-swift.
        if len(names) == 1 and not names.isdisjoint(
            (known.hf_dataset_id, known.ms_dataset_id, known.name)
        ):
            trained = known
    if trained is not None and trained.system_in_rows:
        return SystemPrompt(trained.system, f"the dataset named in {file}", is_default=True)
    return SystemPrompt(None, str(file))
