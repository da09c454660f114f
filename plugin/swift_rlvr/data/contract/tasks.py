"""The rules for a task: each gives the problems that it finds on its examples, in plain words."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from swift_rlvr.data.check import PROBE
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.task import shown

JUNK: tuple[Any, ...] = (None, "", "no such value", -1, float("nan"), True, [], {}, [None], {"a": 1}, "x" * 1_000_000)
# What ms-swift renames before a preprocessor sees a row, or keeps for itself.
TAKEN_COLUMNS = {
    *("query", "prompt", "input", "instruction", "question", "problem", "system", "system_prompt", "history"),
    *("response", "answer", "output", "targets", "answer_key", "answers", "text", "completion", "content"),
    *("images", "videos", "audios", "tools", "objects", "label", "channel", "margin", "rejected_response", "dataset"),
}
Problems = Iterator[str]


def _declared(task: Task) -> Problems:
    for field in ("columns", "reward_columns", "further_rewards", "splits"):
        if not isinstance(getattr(task, field), tuple):
            yield f"`{field}` must be a tuple of texts"
    if not task.columns:
        yield "`columns` must name the columns of a raw row"
    if task.part is None and task.verifier is None:
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
        missing = [name for name in task.columns if name not in row]
        if missing:
            yield f"example {number} lacks the column {', '.join(missing)}"
    if task.examples and all(task.of(row).gold_completion(row) is None for row in task.examples):
        yield "no example has a right answer: `gold` gives None for all of them"


def _rows(task: Task) -> Problems:
    for number, row in enumerate(task.examples, start=1):
        part, before = task.of(row), copy.deepcopy(row)
        prepared = task.preprocess(row)
        if row != before:
            yield f"example {number}: `preprocess` changes the raw row"
        missing = [name for name in ("messages", "task", *part.reward_columns) if name not in prepared]
        if missing:
            yield f"example {number}: the preprocessed row lacks {', '.join(missing)}"
        if task.preprocess(row) != prepared:
            yield f"example {number}: `preprocess` gives something else the second time"
        if json.loads(json.dumps(prepared)) != prepared:
            yield f"example {number}: the preprocessed row is another one after it was written to JSON and read"


def _messages(task: Task) -> Problems:
    for number, row in enumerate(task.examples, start=1):
        messages = task.preprocess(row)["messages"]
        roles = [message.get("role") for message in messages]
        turns = roles[1:] if roles[:1] == ["system"] else roles
        if turns[-1:] != ["user"] or turns != [("user", "assistant")[index % 2] for index in range(len(turns))]:
            yield f"example {number}: expected an optional system turn, then user and assistant in turn, got {roles}"
        if not all(set(each) == {"role", "content"} and isinstance(each["content"], str) for each in messages):
            yield f"example {number}: a message must have a role and a content, which is a text"
        elif not all(each["content"].strip() for each in messages):
            yield f"example {number}: a message is empty"
        part = task.of(row)
        if part.system_in_rows != (roles[:1] == ["system"]):
            yield f"example {number}: `system_in_rows` is {part.system_in_rows}, and the roles are {roles}"


def _graded(task: Task) -> Problems:
    for number, row in enumerate(task.examples, start=1):
        part, prepared, gold = task.of(row), task.preprocess(row), task.of(row).gold_completion(row)
        for name in part.rewards:
            reward = REWARDS[name]()
            columns = columns_for(reward, [prepared])
            missing = [column for column in reward.columns if column not in prepared]
            if missing:
                yield f"example {number}: {name} needs the column {', '.join(missing)}"
            elif gold is not None:
                ((value, reason),) = reward.grades([gold], **columns)
                if value != 1.0:
                    yield f"example {number}: the gold completion earns {value} of {name}, not 1.0 ({reason})"
        verifier = REWARDS[part.verifier or ""]()
        if verifier.own_tasks and prepared["task"] not in verifier.own_tasks:
            yield f"example {number}: {verifier.name} passes over the task {prepared['task']!r}"
            continue
        for wrong in ("", PROBE):
            ((value, reason),) = verifier.grades([wrong], **columns_for(verifier, [prepared]))
            if value is None or value >= 1.0:
                yield f"example {number}: {shown(wrong)} earns {value} of {verifier.name} ({reason})"


def _identity(task: Task) -> Problems:
    seen: dict[str, int] = {}
    for number, row in enumerate(task.examples, start=1):
        key = task.identity(row)
        if not isinstance(key, str) or not key:
            yield f"example {number}: `identity` must be a text, got {key!r:.80}"
            continue
        if task.identity(json.loads(json.dumps(row))) != key or task.identity({**row, "other column": 1}) != key:
            yield f"example {number}: `identity` is another one for the same row, read again or with a further column"
        if seen.setdefault(key, number) != number:
            yield f"the examples {seen[key]} and {number} ask the same, says `identity`"


def _refusals(task: Task) -> Problems:
    functions = {"preprocess": task.preprocess, "identity": task.identity, "gold": task.gold}
    changed = ({**row, name: junk} for row in task.examples[:1] for name in task.columns for junk in JUNK)
    rows = [{}, dict.fromkeys(task.columns), *changed]
    accepted = {*task.columns, *(name for row in task.examples for name in row), "messages"}
    for row in rows:
        for name, function in functions.items():
            try:
                function(row)
            except RowError as error:
                if error.column not in accepted:
                    yield f"`{name}` refuses {shown(row)} because of {error.column!r}, which is none of its columns"
            except Exception as error:
                yield f"`{name}` must raise RowError for {shown(row)}, and raises {type(error).__name__}: {error}"
                return
            else:
                if name == "preprocess" and not row:
                    yield "`preprocess` must raise RowError for a row without columns"


def _pickled(task: Task) -> Problems:
    if pickle.loads(pickle.dumps(task)) != task:
        yield "a pickled task is another one"


TASK_RULES: dict[str, Callable[[Task], Problems]] = {
    "its columns and rewards are declared": _declared,
    "it has examples, with a right answer": _examples,
    "its rows have messages, the task and the columns of its rewards": _rows,
    "its messages are well-formed": _messages,
    "right answers earn all of its rewards in full, and wrong ones do not": _graded,
    "the identity of a row is stable, and differs between questions": _identity,
    "rows that cannot be used are refused with RowError": _refusals,
    "it can be pickled": _pickled,
}
