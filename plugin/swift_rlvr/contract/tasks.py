"""The rules for a task: each gives the problems that it finds on its examples, in plain words."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from swift_rlvr.contract.datasets import PROBE
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.row_check import check_columns
from swift_rlvr.tasks.task import Row, shown

JUNK: tuple[Any, ...] = (
    None,
    "",
    "no such value",
    -1,
    float("nan"),
    True,
    [],
    {},
    [None],
    {"a": 1},
    "x" * 1_000_000,
)
# What ms-swift renames before a preprocessor sees a row, or keeps for itself.
TAKEN_COLUMNS = {
    *(
        "query",
        "prompt",
        "input",
        "instruction",
        "question",
        "problem",
        "system",
        "system_prompt",
        "history",
    ),
    *(
        "response",
        "answer",
        "output",
        "targets",
        "answer_key",
        "answers",
        "text",
        "completion",
        "content",
    ),
    *(
        "images",
        "videos",
        "audios",
        "tools",
        "objects",
        "label",
        "channel",
        "margin",
        "rejected_response",
        "dataset",
    ),
}
Problems = Iterator[str]


def _declared(task: Task) -> Problems:
    for field in ("columns", "reward_columns", "further_rewards", "splits"):
        if not isinstance(getattr(task, field), tuple):
            yield f"`{field}` must be a tuple of texts"
    if pickle.loads(pickle.dumps(task)) != task:
        yield "a pickled task is another one"
    if not task.columns:
        yield "`columns` must name the columns of a raw row"
    if not task.is_mixed and task.verifier is None:
        yield "`verifier` must name the reward that says what is right"
    if task.verifier in REWARDS.data and (role := REWARDS[task.verifier].role) != VERIFIER:
        yield f"its `verifier` must be a reward with the role {VERIFIER!r}, and that of {task.verifier} is {role!r}"
    for name in task.rewards:
        if name not in REWARDS.data:
            yield f"there is no reward {name!r}"
    for name in sorted(TAKEN_COLUMNS & {*task.reward_columns}):
        yield f"the reward's column {name!r} must have another name: ms-swift renames it or uses it itself"


def _examples(task: Task) -> Problems:
    if not task.examples:
        yield "`examples` must have a raw row or two"
    for number, row in enumerate(task.examples, start=1):
        try:
            check_columns(task, row)
        except ValueError as error:
            yield f"example {number}: {error}"
    verifier = REWARDS.get(task.verifier or "")
    if verifier is not None and verifier.runs_code:
        return  # the tests of a row say what is right, and no right answer is known
    if task.examples and all(task.of(row).gold_completion(row) is None for row in task.examples):
        yield "no example has a right answer: `gold` gives None for all of them"


def _rows(task: Task, row: Row) -> Problems:
    before, prepared, part = copy.deepcopy(row), task.preprocess(row), task.of(row)
    if row != before:
        yield "`preprocess` changes the raw row"
    missing = [name for name in ("messages", "task", *part.reward_columns) if name not in prepared]
    if missing:
        yield f"the preprocessed row lacks {', '.join(missing)}"
    if task.preprocess(row) != prepared:
        yield "`preprocess` gives something else the second time"
    if json.loads(json.dumps(prepared)) != prepared:
        yield "the preprocessed row is another one after it was written to JSON and read"


def _messages(task: Task, row: Row) -> Problems:
    messages, part = task.preprocess(row)["messages"], task.of(row)
    roles = [message["role"] for message in messages]
    expected = ["system"] * part.system_in_rows + ["user", "assistant"] * len(roles)
    if roles != expected[: len(roles)] or roles[-1:] != ["user"]:
        start = "a system turn" if part.system_in_rows else "no system turn (`system_in_rows`)"
        yield f"expected {start}, then user and assistant in turn, the user last, got {roles}"
    if not all(isinstance(each["content"], str) and each["content"].strip() for each in messages):
        yield "a message has no text"


def _graded(task: Task, row: Row) -> Problems:
    part, prepared = task.of(row), task.preprocess(row)
    gold = part.gold_completion(row)
    for name in part.rewards:
        reward = REWARDS[name]()
        missing = [column for column in reward.columns if column not in prepared]
        if missing:
            yield f"{name} needs the column {', '.join(missing)}"
        elif gold is not None:
            ((value, reason),) = reward.grades([gold], **columns_for(reward, [prepared]))
            if value != 1.0:
                yield f"the gold completion earns {value} of {name}, not 1.0 ({reason})"
    verifier = REWARDS[part.verifier or ""]()
    if verifier.own_tasks and prepared["task"] not in verifier.own_tasks:
        yield f"{verifier.name} passes over the task {prepared['task']!r}"
        return
    for wrong in ("", PROBE):
        ((value, reason),) = verifier.grades([wrong], **columns_for(verifier, [prepared]))
        if value is None or value >= 1.0:
            yield f"{shown(wrong)} earns {value} of {verifier.name} ({reason})"


def _identity(task: Task) -> Problems:
    keys = [task.identity(row) for row in task.examples]
    if keys != [
        task.identity({**json.loads(json.dumps(row)), "other column": 1}) for row in task.examples
    ]:
        yield "`identity` is another one for the same row, read again with a further column"
    for number, key in enumerate(keys, start=1):
        if not isinstance(key, str) or not key:
            yield f"example {number}: `identity` must be a text, got {key!r:.80}"
        elif keys.index(key) + 1 != number:
            yield f"the examples {keys.index(key) + 1} and {number} ask the same, says `identity`"


def _refusals(task: Task) -> Problems:
    changed = (
        {**row, name: junk} for row in task.examples[:1] for name in task.columns for junk in JUNK
    )
    accepted = {*task.columns, *(name for row in task.examples for name in row), "messages"}
    for row in [{}, dict.fromkeys(task.columns), *changed]:
        for name in ("preprocess", "identity", "gold"):
            try:
                getattr(task, name)(row)
            except RowError as error:
                if error.column not in accepted:
                    yield f"`{name}` refuses {shown(row)} because of {error.column!r}, which is none of its columns"
            except Exception as error:
                yield f"`{name}` must raise RowError for {shown(row)}, and raises {type(error).__name__}: {error}"
                return
            else:
                if name == "preprocess" and not row:
                    yield "`preprocess` must raise RowError for a row without columns"


def _of_each_example(rule: Callable[[Task, Row], Problems], task: Task) -> Problems:
    for number, row in enumerate(task.examples, start=1):
        yield from (f"example {number}: {problem}" for problem in rule(task, row))


TASK_RULES: dict[str, Callable[[Task], Problems]] = {
    "its columns and rewards are declared, and it can be pickled": _declared,
    "it has examples, with a right answer": _examples,
    "its rows have messages, the task and the columns of its rewards": partial(
        _of_each_example, _rows
    ),
    "its messages are well-formed": partial(_of_each_example, _messages),
    "right answers earn all of its rewards in full, and wrong ones do not": partial(
        _of_each_example, _graded
    ),
    "the identity of a row is stable, and differs between questions": _identity,
    "rows that cannot be used are refused with RowError": _refusals,
}
