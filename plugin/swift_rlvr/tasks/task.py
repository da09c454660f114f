"""What a task is: a name, the columns that its reward needs, and how a row becomes a prompt.

Plain Python: the same `Task` serves ms-swift (through rlvr_plugin.py), TRL and the evaluation. A task does not grade,
it names the reward that does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IGNORED = re.compile(r"[\s$\"'`;:?,]|\.(?!\d)|(?<![\d)])!")


class RowError(ValueError):
    """A row that cannot be used. `column` is the column to blame; the message says what is accepted there.

    Such rows are counted by `label`, which is the column unless the dataset means the row to be like this.
    """

    def __init__(self, column: str, problem: str, label: str | None = None):
        super().__init__(f"column {column!r}: {problem}")
        self.column = column
        self.label = label or column


@dataclass(frozen=True)
class Reference:
    """The right answer of a row: `answer` alone, `reasoning` that leads to it, and the dataset's own `text` of both."""

    answer: str
    reasoning: str
    text: str


@dataclass(frozen=True)
class Task:
    """One dataset.

    name: as in `--dataset NAME`, `--dataset NAME:FILE` and `swift-rlvr dataset make NAME`.
    columns: the columns that a raw row must have.
    preprocess: raw row -> row with `messages`, the columns of the rewards and `task`; raises RowError.
    system: the task's system prompt. Where the rows' messages have no system turn, pass it with `--system` in training;
        the evaluation adds it by itself.
    prompt: the text that `preprocess` fills in. ms-swift caches preprocessed rows under a hash of this object, so a
        changed prompt must change it.
    identity: raw row -> a text that is the same for rows that ask the same; raises RowError.
    reference: raw row -> the right answer, or None where there is none; raises RowError.
    reward_columns: the columns of a preprocessed row that the rewards need, besides `task`.
    rewards: names of the rewards for the task, the verifier first; `gold_completion` must earn all of them in full.
    ms_dataset_id, hf_dataset_id: the dataset on ModelScope and on Hugging Face, or None.
    layout: how a gold completion is put together from `{reasoning}` and `{answer}`.
    subset: the configuration on the hubs. splits: those on the hubs, the one for training first.
    max_unusable: the share of unusable rows above which loading stops.
    part: for a task that is made of others, row -> its own task; raises RowError.
    """

    name: str
    columns: tuple[str, ...]
    preprocess: Callable[[Mapping[str, Any]], dict[str, Any]]
    system: str
    prompt: str
    identity: Callable[[Mapping[str, Any]], str]
    reference: Callable[[Mapping[str, Any]], Reference | None]
    reward_columns: tuple[str, ...]
    rewards: tuple[str, ...]
    ms_dataset_id: str | None = None
    hf_dataset_id: str | None = None
    layout: str = "<think>{reasoning}</think>\n<answer>{answer}</answer>"
    subset: str = "default"
    splits: tuple[str, ...] = ("train",)
    max_unusable: float = 0.1
    part: Callable[[Mapping[str, Any]], Task] | None = None

    def of(self, row: Mapping[str, Any]) -> Task:
        """The task of a row, raw or preprocessed: this one, or the row's own where tasks are mixed; raises RowError."""
        return self.part(row) if self.part else self

    def verifier(self, row: Mapping[str, Any]) -> str:
        """The reward, by its name in the registry, that says whether a completion for a row is right; raises RowError.

        row: raw or preprocessed.
        """
        return self.of(row).rewards[0]

    def gold_completion(self, row: Mapping[str, Any]) -> str | None:
        """A completion for a raw row that earns all of `rewards` in full; None where no right answer is known."""
        reference = self.reference(row)
        if reference is None:
            return None
        reasoning = reference.reasoning or f"The answer is {reference.answer}."  # no format accepts an empty think part
        return self.layout.format(reasoning=reasoning, answer=reference.answer)


def shown(value: Any) -> str:
    """A value for an error message, cut to a length that can be read."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(row: Mapping[str, Any], column: str, example: str) -> str:
    """The text in a column; RowError where there is none.

    >>> text_of({"question": " 1 + 1? "}, "question", "How many?")
    '1 + 1?'
    """
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise RowError(column, f"expected a text such as {example!r}, got {shown(value)}")
    return value.strip()


def normalised(text: str) -> str:
    """A question for comparison: without case, white space, dollar signs, thousands' commas and punctuation at words.

    >>> normalised("How much is $1,000 + 2.5$ ?") == normalised("how  much is 1000+2.5")
    True
    >>> normalised("So, what is 3 - 5.5?!"), normalised("5!")
    ('sowhatis3-5.5', '5!')
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _GROUPING.sub("", text)
    return _IGNORED.sub("", text)


def with_system(messages: list[dict[str, str]], system: str | None, override: bool = False) -> list[dict[str, str]]:
    """The messages with a system turn: their own if they have one and not `override`, else `system`, if there is one.

    As in ms-swift, where `--system` is for rows without a system turn.

    >>> with_system([{"role": "user", "content": "1 + 1?"}], "Answer.")[0]
    {'role': 'system', 'content': 'Answer.'}
    """
    own = messages[0]["role"] == "system"
    if own and not override:
        return messages
    return ([{"role": "system", "content": system}] if system else []) + messages[own:]
