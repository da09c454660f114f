"""Asks a model a question, or a task whose answer is graded: `swift-rlvr chat`. Imports transformers when called."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from swift_rlvr.data.grading import Completion
from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.sampling import Policy, prompt_ids
from swift_rlvr.rewards import REWARDS, Explanation
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.task import with_system

Messages = list[dict[str, str]]
Write = Callable[[str], None]


def answer(policy: Policy, messages: Messages, write: Write | None = None) -> Completion:
    """What the model answers to a conversation that ends with the user's turn; `write` gets it piece by piece.

    InputError where the conversation and the longest answer together exceed the model's context.
    """
    from transformers import TextStreamer

    class Writer(TextStreamer):
        def on_finalized_text(self, text, stream_end=False):
            if write is not None:
                write(text)

    streamer = Writer(policy.tokenizer, skip_prompt=True, skip_special_tokens=True)
    (completion,) = policy.generate(prompt_ids(policy.tokenizer, [messages]), streamer=streamer)
    return completion


@dataclass(frozen=True)
class Question:
    """What to ask, with a system turn only if the row brings its own, and the task and row that grade the answer."""

    messages: Messages
    task: Task | None = None
    row: Mapping[str, Any] | None = None

    def grade(self, text: str) -> Explanation | None:
        """What the verifier of the task says about an answer; None for a question of no task."""
        if self.task is None or self.row is None:
            return None
        return REWARDS[self.task.of(self.row).verifier or ""]().explain(text, self.row)


def row_question(source: Source, number: int = 1) -> Question:
    """Row `number` of a dataset, from 1; InputError where there is none or it cannot be used."""
    line, row = source.row(number)
    with source.at(line):
        return _task_question(source.task, row)


def countdown_question(nums: object, target: object) -> Question:
    """A Countdown task, asked as in training.

    >>> countdown_question("3 5 7", "22").messages[0]["content"].splitlines()[0]
    'Using the numbers [3, 5, 7], create an equation that equals 22.'
    """
    try:
        return _task_question(TASKS["countdown"], {"nums": nums, "target": target})
    except RowError as error:
        raise InputError(f"--nums and --target: {error}") from error


def _task_question(task: Task, row: Mapping[str, Any]) -> Question:
    prepared = task.preprocess(row)
    return Question(prepared["messages"], task.of(row), prepared)


def converse(policy: Policy, system: str | None, questions: Iterable[str], write: Write, note: Write) -> Messages:
    """A conversation with a history, until the questions end or one is nothing but white space; returns its messages.

    Where it becomes too long for the model, its oldest question and answer go. `note` gets a line after each answer.
    """
    messages: Messages = []
    for text in takewhile(str.strip, questions):
        messages.append({"role": "user", "content": text})
        while True:
            try:
                completion = answer(policy, with_system(messages, system), write)
                break
            except InputError:
                if len(messages) == 1:
                    raise
                del messages[:2]
                note("the conversation is too long for the model: its oldest question and answer are left out")
        messages.append({"role": "assistant", "content": completion.text})
        note(ended(completion))
    return messages


def ended(completion: Completion) -> str:
    """How an answer ended.

    >>> ended(Completion("4", 2, "stop"))
    '2 tokens'
    """
    return f"{completion.tokens} tokens" + (
        ", cut off by --max_completion_length" if completion.finish == "length" else ""
    )
