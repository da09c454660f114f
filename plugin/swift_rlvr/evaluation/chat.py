"""Asks a model a question and shows the answer as it is written: a checkpoint of any trainer, or a model from a hub.

    swift-rlvr chat output/r1_zero "What is 12 * 12?"
    swift-rlvr chat output/countdown_tiny/v0-20260101-120000/checkpoint-60 --nums "3 5 7" --target 22

Sampling is from the model as it is, as in `swift_rlvr.evaluation.sampling`. Imports torch and transformers only when called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.models import check_length, load_pretrained
from swift_rlvr.rewards import Explanation
from swift_rlvr.rewards.build import build_rewards, columns_for
from swift_rlvr.runs.folder import training_args
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.task import with_system

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class ChatSettings:
    """What to ask and how: see `swift_rlvr.evaluation.sampling.SamplingSettings`. The defaults are the R1-Zero recipe's."""

    model: str
    max_new_tokens: int = 200
    temperature: float = 0.7
    seed: int = 0

    def __post_init__(self):
        for name, low in (("max_new_tokens", 1), ("temperature", 0), ("seed", 0)):
            if not low <= getattr(self, name) < float("inf"):
                raise InputError(f"--{name.replace('_', '-')} must be at least {low}, got {getattr(self, name)}")


class Chat:
    """A model that is loaded to be asked. The same settings and the same questions give the same answers."""

    def __init__(self, settings: ChatSettings):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

        self.settings, self.tokenizer = settings, load_pretrained(AutoTokenizer, settings.model)
        if not self.tokenizer.chat_template:
            raise InputError(f"model {settings.model}: its tokenizer has no chat template")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = load_pretrained(AutoModelForCausalLM, settings.model, dtype="auto").to(device).eval()
        ends = self.model.generation_config.eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id} - {None}
        pad = self.tokenizer.eos_token_id if self.tokenizer.pad_token_id is None else self.tokenizer.pad_token_id
        warm = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": settings.temperature}
        self.model.generation_config = GenerationConfig(
            **warm if settings.temperature else {"do_sample": False},
            max_new_tokens=settings.max_new_tokens,
            eos_token_id=sorted(self.ends),
            pad_token_id=pad,
        )
        torch.manual_seed(settings.seed)

    def answer(self, messages: Messages, write: Callable[[str], None] | None = None) -> Completion:
        """What the model says to a conversation that ends with the user's turn; `write` gets the text as it comes.

        InputError where the conversation and the longest answer are more than the model reads.
        """
        import torch
        from transformers import TextStreamer

        class Writer(TextStreamer):
            def on_finalized_text(self, text, stream_end=False):
                write(text)

        streamer = None if write is None else Writer(self.tokenizer, skip_prompt=True, skip_special_tokens=True)
        prompt = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        check_length("max_new_tokens", self.settings.max_new_tokens, [prompt], self.model.config)
        ids = torch.tensor([prompt], device=self.model.device)
        with torch.inference_mode():
            output = self.model.generate(ids, attention_mask=torch.ones_like(ids), streamer=streamer)
        new = output[0, len(prompt) :].tolist()
        finish = "stop" if new[-1] in self.ends else "length"
        return Completion(self.tokenizer.decode(new, skip_special_tokens=True), len(new), finish)


@dataclass(frozen=True)
class Question:
    """messages: without the system turn, unless the row brings its own. row: to grade the answer; None for no task."""

    messages: Messages
    task: Task | None = None
    row: Mapping[str, Any] | None = None

    def grade(self, answer: str) -> Explanation | None:
        """Reward and reason as the task gives them, with the rules of its verifier; None for a question of no task."""
        if self.task is None or self.row is None:
            return None
        reward, reason = self.task.grade(answer, self.row)
        if not self.task.rewards:  # a row that brings its messages and is of no dataset's task
            return Explanation(reward, reason, answer, [])
        (verifier,) = build_rewards(self.task.rewards[:1])
        columns = {name: values[0] for name, values in columns_for(verifier, [self.row]).items()}
        return verifier.explain(answer, **columns)._replace(reward=reward, reason=reason)


def plain_question(text: str) -> Question:
    return Question([{"role": "user", "content": text}])


def row_question(source: Source, number: int = 1) -> Question:
    """Row `number` of a dataset, from 1; InputError where there is none or it cannot be used."""
    line, row = next((found for place, found in enumerate(source.rows(), start=1) if place == number), (0, None))
    if row is None:
        raise InputError(f"--number: {source} has no row {number}")
    return _task_question(source.task, row, f"{source}, line {line}: ")


def countdown_question(nums: object, target: object) -> Question:
    """A Countdown task, asked as in training.

    >>> countdown_question("3 5 7", "22").messages[0]["content"].splitlines()[0]
    'Using the numbers [3, 5, 7], create an equation that equals 22.'
    """
    return _task_question(TASKS["countdown"], {"nums": nums, "target": target}, "--nums and --target: ")


def _task_question(task: Task, row: Mapping[str, Any], where: str) -> Question:
    try:
        part = task.part(row) if task.part else task
        prepared = task.preprocess(row)
    except RowError as error:
        raise InputError(f"{where}{error}") from error
    return Question(prepared["messages"], part if isinstance(part, Task) else task, prepared)


def system_prompt(model: str, task: Task | None) -> tuple[str | None, str]:
    """The system prompt that a model was trained with, and where that is known from.

    It is in the run's args.json, see `training_args`. Where the rows of the training brought their own, ms-swift notes
    none, and it is that of the dataset's task. A model without the file gets the prompt of the question's task. None:
    the chat template's own default applies.
    """
    found = training_args(model)
    if found is None:
        return (None, "default") if task is None else (task.system, f"the task {task.name}")
    file, noted = found
    trained = _trained_on(noted.get("dataset"))
    if noted.get("system") is None and trained is not None and trained.system in trained.prompt:
        return trained.system, f"{file}, whose dataset brings it"
    return noted.get("system"), str(file)


def _trained_on(dataset: object) -> Task | None:
    """The task of the one dataset that an args.json names, which is a text or a list of them."""
    given = [dataset] if isinstance(dataset, str) else dataset if isinstance(dataset, list) else []
    names = {re.split("[:#]", name)[0] for name in given if isinstance(name, str)}
    known = {name: task for task in TASKS.values() for name in (task.hf_dataset_id, task.ms_dataset_id, task.name)}
    return known.get(names.pop()) if len(names) == 1 else None


def converse(
    chat: Chat,
    system: str | None,
    ask: Callable[[], str | None],
    write: Callable[[str], None],
    say: Callable[[str], None],
) -> Messages:
    """A conversation with a history, until `ask` gives None or nothing but white space; returns its messages.

    `write` gets the answers as they come, `say` notes between them. Where the conversation becomes longer than the
    model reads, its oldest question and answer are left out.
    """
    messages: Messages = []
    while (text := ask()) is not None and text.strip():
        messages.append({"role": "user", "content": text})
        while True:
            try:
                answer = chat.answer(with_system(messages, system), write)
                break
            except InputError:
                if len(messages) == 1:
                    raise
                del messages[:2]
                say("the conversation is too long for the model: its oldest question and answer are left out")
        messages.append({"role": "assistant", "content": answer.text})
        say(ended(answer, chat.settings))
    return messages


def ended(answer: Completion, settings: ChatSettings) -> str:
    """How an answer ended.

    >>> ended(Completion("4", 2, "stop"), ChatSettings("model"))
    '2 tokens'
    """
    cut = f", cut off at --max-new-tokens {settings.max_new_tokens}" if answer.finish == "length" else ""
    return f"{answer.tokens} tokens{cut}"


def shown(text: str) -> str:
    r"""A text for the terminal: what could steer it is written as in Python.

    >>> print(shown("a\x1b[2J"))
    a\x1b[2J
    """
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
