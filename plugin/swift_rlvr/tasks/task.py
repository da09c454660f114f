"""What a task is: how a row becomes a prompt, its right answer, the columns of its rewards, and
which one verifies.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from swift_rlvr.utils.registry import Registry
from swift_rlvr.verifiers.answer_forms import asked_form, ideal_completion, says_where
from swift_rlvr.verifiers.messages import message_text

# The comma of 1,500, but not that of 1,50.
_GROUPING = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# What the names of columns are compared without.
_SEPARATORS = re.compile(r"[\s_-]+")
# What says nothing about a question; the point of 3.5 and the factorial of 5! do.
_IGNORED = re.compile(r"[\s$\"'`;:?,]|\.(?!\d)|(?<![\d)])!")

Row = Mapping[str, Any]
Messages = list[dict[str, Any]]


class RowError(ValueError):
    """A row that cannot be used because of `column`. It is counted by `label`, by default the
    column.

    in_file: what the file calls the column, where that is another name.
    """

    def __init__(
        self, column: str, problem: str, label: str | None = None, in_file: str | None = None
    ):
        super().__init__(f"column {(in_file or column)!r}: {problem}")
        self.column = column
        self.label = label or column


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
    """One dataset. Its functions take a raw row and raise RowError if that cannot be used.

    ms-swift caches preprocessed rows under a hash of this object.
    """

    # As in `--dataset NAME`, `--dataset NAME:FILE` and `swift-rlvr dataset make NAME`.
    name: str
    # Those that a raw row must have.
    columns: tuple[str, ...]
    # The row for training: `messages`, the columns of the rewards and `task`.
    preprocess: Callable[[Row], dict[str, Any]]
    # A text that is the same for rows that ask the same.
    identity: Callable[[Row], str]
    # The right answer, or None if there is none.
    gold: Callable[[Row], Gold | None]
    system: str
    # Whether `preprocess` makes it the messages' system turn; else it goes with `--system`, and the
    # evaluation adds it.
    system_in_rows: bool = True
    # What `preprocess` fills in besides: a changed prompt must change the hash of this object.
    prompt: str = ""
    # The columns of a preprocessed row that the rewards need besides `task`.
    reward_columns: tuple[str, ...] = ("solution",)
    # The reward that says what is right; None for rows of several tasks.
    verifier: str | None = "external_accuracy"
    # What else `gold_completion` must earn in full.
    further_rewards: tuple[str, ...] = ("external_format",)
    ms_dataset_id: str | None = None  # on ModelScope
    hf_dataset_id: str | None = None  # on Hugging Face
    # How a gold completion is laid out where `asked_form` finds no form in the prompt; "" is the
    # answer alone on the last line.
    layout: str = ""
    # The configuration on the hubs, and its splits, the one for training first.
    subset: str = "default"
    splits: tuple[str, ...] = ("train",)
    # The share of unusable rows above which loading stops.
    max_unusable: float = 0.1
    # A raw row or two, for `swift-rlvr check`.
    examples: tuple[Row, ...] = field(default=(), hash=False)
    # The right answer with the reasoning that a model should learn, for rows of supervised
    # training; None: `gold`.
    worked: Callable[[Row], Gold | None] | None = None
    # The right answer of a preprocessed row as the report shows it; None: what its column holds.
    gold_text: Callable[[Row], str] | None = None
    # The reward columns that a prompt of this task tells, for completions that were logged without
    # them; None if it is another prompt.
    columns_in_prompt: Callable[[str], dict[str, Any] | None] | None = None
    # What an experiment with this task has seen, by the report's names of what there is to observe.
    seen_in_experiment: Mapping[str, str] = field(default_factory=dict, hash=False)
    # Rewards of others that verify it, such as ms-swift's.
    other_verifiers: tuple[str, ...] = ()

    # What only some kinds of tasks do. A subclass sets one and implements the method below.
    is_mixed: ClassVar[bool] = False  # its rows are of several tasks: `of`
    is_made: ClassVar[bool] = False  # its rows are made rather than loaded: `make`
    any_columns: ClassVar[bool] = False  # its columns may have other names: `find_columns`

    def of(self, row: Row) -> Task:
        """The task of a row, raw or preprocessed; RowError if a mixed row names none."""
        return self

    def make(self, text: str) -> Iterator[Row]:
        """The raw rows, without end, that TEXT in `--dataset NAME:TEXT#N` stands for."""
        raise NotImplementedError(
            f"{self.name} cannot generate rows; it loads them from a file or a hub"
        )

    def find_columns(self, present: Iterable[str]) -> Mapping[str, list[str]]:
        """For each of `columns` the names in a row that may stand for it, the likeliest first."""
        present = set(present)
        return {column: [column] for column in self.columns if column in present}

    def golds_by_column(self, row: Row) -> dict[str, str]:
        """The right answer of each column that may hold it, where there are several, the one that is
        used first.
        """
        return {}

    def read_columns(self, row: Row) -> list[str]:
        """The columns of a raw row that `preprocess` takes something from, as far as names tell."""
        return [names[0] for names in self.find_columns(row).values() if names]

    def unused(self, row: Row) -> list[str]:
        """The columns of a raw row that seem to belong to the question and reach neither the prompt
        nor the trainer; empty where `preprocess` refuses the row.
        """
        return []

    def names_of(self, column: str) -> Sequence[str]:
        """The names that one of `columns` may have, the likeliest first."""
        return (column,)

    def variable_of(self, column: str) -> str | None:
        """The environment variable that names the file's column for one of `columns`."""
        return None

    @property
    def rewards(self) -> tuple[str, ...]:
        """The verifier and the further rewards; `gold_completion` must earn all of them in full."""
        if self.verifier is None:
            return self.further_rewards
        return (self.verifier, *self.further_rewards)

    def preprocess_for_training(self, row: Row) -> dict[str, Any]:
        """What `preprocess` makes of a raw row, with the row's level, which a curriculum needs."""
        prepared = self.preprocess(row)
        if "level" in row:
            return {"level": row["level"], **prepared}
        return prepared

    def form_of(self, prompt: str) -> str | None:
        """The form in which a prompt of this task asks for the answer; None if it does not say."""
        return asked_form(prompt)

    def completion(
        self, prompt: str, reasoning: str, answer: str, thinking_opened: bool = False
    ) -> str:
        """A completion that gives an answer as a prompt of this task asks for it."""
        return ideal_completion(prompt, reasoning, answer, thinking_opened)

    def gold_completion(
        self,
        row: Row,
        worked: bool = False,
        messages: Messages | None = None,
        thinking_opened: bool = False,
    ) -> str | None:
        """A completion for a raw row as its prompt asks for it; None if no right answer is
        known. It must earn all of `rewards` in full.

        worked: with the reasoning of the function of that name.
        messages: the prompt; None for that of `preprocess`, after this task's system prompt.
        thinking_opened: whether the prompt ends inside a think part.
        """
        answer = self.worked if worked and self.worked else self.gold
        gold = answer(row)
        if gold is None:
            return None
        if messages is None:
            messages = with_default_system(self.preprocess(row)["messages"], self.system)
        prompt = prompt_text(messages)
        form = self.form_of(prompt)
        # No format accepts an empty think part.
        reasoning = gold.reasoning or f"The answer is {gold.answer.strip()}."
        if form is not None and not worked and not gold.reasoning:
            # This sentence would be read in place of a form that no reward reads.
            reasoning = "This takes a few steps."
        if self.layout and form is None:
            return self.layout.format(reasoning=reasoning, answer=gold.answer)
        return self.completion(prompt, reasoning, gold.answer, thinking_opened)


def _as_task(item: Any) -> Task:
    """The item; ValueError for what cannot be in `TASKS`."""
    if not isinstance(item, Task):
        raise ValueError(f"expected a swift_rlvr.tasks.Task, got {item!r:.80}")
    # ms-swift splits `--dataset` at : / and #.
    if not re.fullmatch(r"[a-z][a-z0-9_]*", item.name):
        raise ValueError(
            f"the name of a task must be lower-case letters, digits and _, got {item.name!r}"
        )
    return item


TASKS: Registry[Task] = Registry("swift_rlvr.tasks", _as_task)


def add_task(task: Task) -> None:
    """Add a task to `TASKS` by its `name`; ValueError for a name that is taken, or one that cannot
    be used.
    """
    TASKS.add(task)


def verifier_of(name: object) -> str | None:
    """The verifier of a task by its name, as rows have it in the column `task`; None for an unknown
    name.
    """
    task = TASKS.data.get(name) if isinstance(name, str) else None
    return task.verifier if task else None


def tasks_of(verifier: str) -> tuple[str, ...]:
    """The names of the tasks that a reward, ours or of others, verifies."""
    names = []
    for name, task in TASKS.data.items():
        if verifier == task.verifier or verifier in task.other_verifiers:
            names.append(name)
    return tuple(names)


def unused_columns(task: Task, row: Row) -> list[str]:
    """The columns of a raw row that are not used although they seem to belong to the question: a
    passage, an image, a system prompt. The loader's log and `dataset check` name them.

    >>> from swift_rlvr.tasks import TASKS
    >>> notes = "On Monday Tom went to the market, and on Tuesday he bought ten apples."
    >>> unused_columns(TASKS["qa"], {"question": "Who?", "answer": "Tom", "Notes": notes})
    ['Notes']
    """
    systems = columns_named(("system", "system_prompt"), row)
    prompt = ""
    try:
        own = task.of(row)
        unused = own.unused(row)
        if systems:
            prompt = turns_text(own.preprocess(row)["messages"])
    except RowError:
        return []
    for name in systems:
        system = row.get(name)
        is_told = isinstance(system, str) and system.strip() and system.strip() not in prompt
        if is_told and name not in unused:
            unused = [*unused, name]
    return unused


def unread_columns(task: Task, row: Row) -> list[str]:
    """The columns of a raw row, of any kind, from which neither the prompt, a reward nor the gold
    takes anything: most of the text or list is in no value of the preprocessed row.

    >>> from swift_rlvr.tasks import TASKS
    >>> row = {"id": 7, "question": "Who?", "answer": "Tom", "hint": {"note": "Red."}, "votes": [["a", 1]]}
    >>> unread_columns(TASKS["qa"], row)
    ['id', 'hint', 'votes']
    """
    try:
        own = task.of(row)
        prepared = own.preprocess_for_training(row)
        gold = own.gold(row)  # a reference solution, which only checks read
    except RowError:
        return []
    # The prepared messages are new ones; whether they have what the row's had is looked at.
    # So is the gold under its new name, which a column that is not used may have, too.
    new = prepared.keys() - {"messages", *own.golds_by_column(row)}
    known = {*own.read_columns(row), *new}
    reached = list(_leaves([prepared, vars(gold) if gold else None]))
    unread = []
    for name, value in row.items():
        leaves = list(_leaves(value))
        if name in known or not leaves:
            continue
        found = 0
        for leaf in leaves:
            # Prompts show MMMU's <image 2> as <image>.
            leaf = re.sub(r"<image[ _]?\d+>", "<image>", leaf)
            # A letter or a digit stands in every prompt.
            if leaf in reached or (len(leaf) > 2 and any(leaf in text for text in reached)):
                found += len(leaf)
        if found < sum(map(len, leaves)) / 2:
            unread.append(name)
    return unread


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers within a value, as texts; nothing that is empty."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    elif value is not None and str(value).strip():
        text = str(value).strip()
        # A list of messages, or an object, may be written as a text.
        written = None
        if text[:1] in ("[", "{"):
            with suppress(ValueError, RecursionError):
                written = json.loads(text)
        if isinstance(written, (list, dict)):
            yield from _leaves(written)
        else:
            yield text


def shown(value: Any) -> str:
    """A value for an error message, cut to a length that can be read."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(row: Row, column: str, example: str) -> str:
    """The text in a column, without white space around it; RowError if there is none."""
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise RowError(column, f"expected a text such as {example!r}, got {shown(value)}")
    return value.strip()


def folded_name(name: str) -> str:
    """The name of a column for comparison: without case, spaces, hyphens and underscores.

    >>> folded_name("Ground Truth") == folded_name("ground_truth") == folded_name("groundTruth")
    True
    """
    return _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())


def columns_named(names: Iterable[str], present: Iterable[str]) -> list[str]:
    """The columns present that have one of these names, in the order of the names. This is how every
    task looks up a column.

    The exact name comes before one that differs as `folded_name` says. A name with a dot, as in
    `extra_info.answer`, is within a column.

    >>> columns_named(("question", "info.gold"), ["Info", "Question", "note"])
    ['Question', 'Info.gold']
    """
    return list(_columns_named(tuple(names), tuple(present)))


# The rows of a file have the same columns.
@lru_cache(maxsize=1024)
def _columns_named(names: tuple[str, ...], present: tuple[str, ...]) -> tuple[str, ...]:
    folded: dict[str, str] = {}  # the column, by its folded name
    for column in present:
        folded.setdefault(folded_name(column), column)

    columns: dict[str, None] = {}
    for name in names:
        head, dot, rest = name.partition(".")
        if name in present:
            columns[name] = None
        elif head in present:
            columns[head + dot + rest] = None
        elif folded_name(head) in folded:
            columns[folded[folded_name(head)] + dot + rest] = None
    return tuple(columns)


def normalised(text: str) -> str:
    """A question for comparison: without case, white space, $, thousands' commas and punctuation at
    words.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _IGNORED.sub("", _GROUPING.sub("", folded))


def turns_text(messages: Messages) -> str:
    """The text of all turns."""
    return "\n".join(str(turn["content"]) for turn in messages)


def asked_text(messages: Messages) -> str:
    """What a conversation asks: all turns but the system's, since the last one alone, such as "And in
    Bonn?", may end many.
    """
    return turns_text([turn for turn in messages if turn["role"] != "system"])


def with_system(
    messages: list[dict[str, str]], system: str | None, override: bool = False
) -> list[dict[str, str]]:
    """The messages with a system turn: their own if they have one and not `override`, else
    `system`, if there is one.

    As in ms-swift, where `--system` is for rows without a system turn.
    """
    has_one = messages[0]["role"] == "system"
    if has_one and not override:
        return messages
    turns = messages[1:] if has_one else messages
    if not system:
        return turns
    return [{"role": "system", "content": system}, *turns]


def with_default_system(messages: Messages, system: str | None) -> Messages:
    """The same for a task's own system prompt, which the user did not choose: it is left out if it
    says where the answer belongs and the messages already do.

    >>> asks = "Put your answer in <answer> </answer> tags."
    >>> with_default_system([{"role": "user", "content": "1 + 1? End with #### and the sum."}], asks)
    [{'role': 'user', 'content': '1 + 1? End with #### and the sum.'}]
    """
    if system and says_where(system) and says_where(prompt_text(messages)):
        return messages
    return with_system(messages, system)


def prompt_text(messages: Messages) -> str:
    """The text of the system and user turns. If they ask for no form of answer, it includes the
    assistant's turns, which are examples.
    """
    asking = [turn for turn in messages if turn["role"] != "assistant"]
    text = "\n\n".join(message_text(turn) or "" for turn in asking)
    if len(asking) < len(messages) and asked_form(text) is None:
        text = "\n\n".join(message_text(turn) or "" for turn in messages)
    return text
