"""What a task is: how a row becomes a prompt, its right answer, the columns of its rewards, and
which one verifies.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IGNORED = re.compile(r"[\s$\"'`;:?,]|\.(?!\d)|(?<![\d)])!")
Row = Mapping[str, Any]


class RowError(ValueError):
    """A row that cannot be used because of `column`. It is counted by `label`, by default the
    column.
    """

    def __init__(self, column: str, problem: str, label: str | None = None):
        super().__init__(f"column {column!r}: {problem}")
        self.column, self.label = column, label or column


@dataclass(frozen=True)
class Gold:
    """The right answer of a row: `answer` alone, `reasoning` that leads to it, and the dataset's
    own `text`.
    """

    answer: str
    reasoning: str = ""
    text: str = ""


@dataclass(frozen=True)
class Task:
    """One dataset. Its functions take a raw row and raise RowError where that cannot be used."""

    name: str  # as in `--dataset NAME`, `--dataset NAME:FILE` and `swift-rlvr dataset make NAME`
    columns: tuple[str, ...]  # those that a raw row must have
    preprocess: Callable[
        [Row], dict[str, Any]
    ]  # the row with `messages`, the columns of the rewards and `task`
    identity: Callable[[Row], str]  # a text that is the same for rows that ask the same
    gold: Callable[[Row], Gold | None]  # the right answer, or None where there is none
    system: str
    # Whether `preprocess` makes it the messages' system turn; else it goes with `--system`, and the
    # evaluation adds it.
    system_in_rows: bool = True
    # What `preprocess` fills in besides. ms-swift caches preprocessed rows under a hash of this
    # object, so a changed prompt must change it.
    prompt: str = ""
    reward_columns: tuple[str, ...] = (
        "solution",
    )  # of a preprocessed row, needed by the rewards besides `task`
    # the reward that says what is right; None where `part` names it
    verifier: str | None = "external_accuracy"
    further_rewards: tuple[str, ...] = (
        "external_format",
    )  # what else `gold_completion` must earn in full
    ms_dataset_id: str | None = None  # on ModelScope
    hf_dataset_id: str | None = None  # on Hugging Face
    layout: str = "<think>{reasoning}</think>\n<answer>{answer}</answer>"  # of a gold completion
    subset: str = "default"  # the configuration on the hubs
    splits: tuple[str, ...] = ("train",)  # those on the hubs, the one for training first
    max_unusable: float = 0.1  # the share of unusable rows above which loading stops
    # For rows that are made here: the raw rows, without end, that TEXT in `--dataset NAME:TEXT#N`
    # stands for.
    make: Callable[[str], Iterator[Row]] | None = None
    # A raw row or two, for `swift-rlvr check`.
    examples: tuple[Row, ...] = field(default=(), hash=False)
    # Where columns have other names in files of others: by column, what may be it among the names
    # present.
    find_columns: Callable[[Iterable[str]], Mapping[str, list[str]]] | None = None
    # The right answer with the reasoning that a model should learn, for rows of supervised
    # training; None: `gold`.
    worked: Callable[[Row], Gold | None] | None = None
    # for a task made of others: the task of a row, raw or preprocessed
    part: Callable[[Row], Task] | None = None

    def of(self, row: Row) -> Task:
        """The task of a row, raw or preprocessed: this one, or the row's own where tasks are mixed;
        raises RowError.
        """
        return self.part(row) if self.part else self

    @property
    def rewards(self) -> tuple[str, ...]:
        """The verifier and the further rewards; `gold_completion` must earn all of them in full."""
        return (*filter(None, (self.verifier,)), *self.further_rewards)

    def preprocess_for_training(self, row: Row) -> dict[str, Any]:
        """What `preprocess` makes of a raw row, with the row's level, which a curriculum needs."""
        return {**({"level": row["level"]} if "level" in row else {}), **self.preprocess(row)}

    def gold_completion(self, row: Row, worked: bool = False) -> str | None:
        """A completion for a raw row that earns all of `rewards` in full; None where no right
        answer is known.

        worked: with the reasoning of the function of that name.
        """
        gold = self.worked(row) if worked and self.worked else self.gold(row)
        if gold is None:
            return None
        reasoning = (
            gold.reasoning or f"The answer is {gold.answer}."
        )  # no format accepts an empty think part
        return self.layout.format(reasoning=reasoning, answer=gold.answer)


def shown(value: Any) -> str:
    """A value for an error message, cut to a length that can be read."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(row: Row, column: str, example: str) -> str:
    """The text in a column, without white space around it; RowError where there is none."""
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise RowError(column, f"expected a text such as {example!r}, got {shown(value)}")
    return value.strip()


def normalised(text: str) -> str:
    """A question for comparison: without case, white space, $, thousands' commas and punctuation at
    words.
    """
    return _IGNORED.sub("", _GROUPING.sub("", unicodedata.normalize("NFKC", text).casefold()))


def with_system(
    messages: list[dict[str, str]], system: str | None, override: bool = False
) -> list[dict[str, str]]:
    """The messages with a system turn: their own if they have one and not `override`, else
    `system`, if there is one.

    As in ms-swift, where `--system` is for rows without a system turn.
    """
    own = messages[0]["role"] == "system"
    if own and not override:
        return messages
    return ([{"role": "system", "content": system}] if system else []) + messages[own:]
