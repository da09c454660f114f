"""What `swift-rlvr chat` asks a model: a question, a task whose answer is graded, or a conversation."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS, Explanation
from swift_rlvr.runs.records import Messages
from swift_rlvr.sampling import Completion, Engine, mixed_seed
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.task import with_system

Write = Callable[[str], None]


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


def converse(engine: Engine, system: str | None, questions: Iterable[str], write: Write, note: Write) -> Messages:
    """A conversation with a history, until the questions end or one is nothing but white space; returns its messages.

    Where it becomes too long for the model, its oldest question and answer go. `write` gets the answers piece by piece,
    `note` a line after each.
    """
    messages: Messages = []
    for number, text in enumerate(takewhile(str.strip, questions)):
        messages.append({"role": "user", "content": text})
        seed = mixed_seed(engine.settings.seed, number)
        while True:
            try:
                completion = engine.stream(with_system(messages, system), write, seed=seed)
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
