"""The lines of a file of completions: their forms, and what is wrong with a line that cannot be
used.

- a record, as everything here writes it: see `swift_rlvr.runs.records`.
- ``{"completion": ..., "nums": [3, 5, 7], "target": 22}``: one completion, a text or a list of
  messages, with its columns. `response`, as `swift infer` writes it, is read where there is no
  `completion`.
- ``{"step": [...], "prompt": [...], "completion": [...], ...}``: many completions, in lists of
  equal length, one value for each. ms-swift's completions.jsonl has one such table per logging
  step. Of the dataset's columns it holds at most `solution`; nums and target are read from the
  prompt if that is the one of the Countdown task.
"""

import codecs
from collections.abc import Mapping
from typing import Any, NamedTuple

from swift_rlvr.runs.records import is_record
from swift_rlvr.tasks.countdown import read_prompt
from swift_rlvr.utils.jsonl import LineError, brief, parse_object
from swift_rlvr.verifiers.answers import completion_text

COMPLETION_KEYS = ("completion", "response")
FROM_PROMPT = frozenset(("nums", "target"))  # columns that can be read from a prompt


class Item(NamedTuple):
    """One completion, with all else on its line, and its position from 1 there; None where the line
    holds only it.
    """

    position: int | None
    completion: object
    row: dict[str, Any]


def read_items(line: bytes | str) -> list[Item]:
    """The completions of one line; LineError where it has none or is malformed.

    >>> read_items('{"completion": "<answer>1+2</answer>", "nums": [1, 2], "target": 3}')[0].row["target"]
    3
    >>> [(item.position, item.completion) for item in read_items('{"step": ["7", "7"], "completion": ["a", "b"]}')]
    [(1, 'a'), (2, 'b')]
    """
    return items_of(read_object(line))


def items_of(row: dict[str, Any]) -> list[Item]:
    """The completions of a line's object, as `read_items` reads them."""
    if is_record(row):
        columns = {
            **row.get("row", {}),
            "messages": row.get("messages"),
            "prompts": row.get("messages"),
        }
        if isinstance(row.get("tokens"), int):
            columns["response_token_ids"] = [0] * row[
                "tokens"
            ]  # rewards for length count them, no more
        return [Item(None, row["completion"], columns)]
    key = next((key for key in COMPLETION_KEYS if key in row), None)
    if key is None:
        raise LineError(
            f"no completion: expected 'completion' or 'response', got {column_names(row)}"
        )
    value = row[key]
    if is_completion(value):
        return [Item(None, value, row)]
    lists = {name: values for name, values in row.items() if isinstance(values, list)}
    if key not in lists or (not value and len(lists) == 1):
        raise LineError(
            f"{key}: expected a text, a list of messages or a list of completions, got {brief(value)}"
        )
    for name, values in lists.items():
        if len(values) != len(value):
            raise LineError(
                f"lists of unequal length: {key} has {len(value)}, {name} has {len(values)}"
            )
    rows = (dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True))
    return [Item(number, row[key], row) for number, row in enumerate(rows, start=1)]


def read_object(line: bytes | str) -> dict[str, Any]:
    """The JSON object on a line, which may begin with a byte order mark; LineError for anything
    else.
    """
    return parse_object(line.removeprefix(codecs.BOM_UTF8) if isinstance(line, bytes) else line)


def is_completion(value: object) -> bool:
    """Whether a value is a text or a list of messages.

    >>> is_completion("7"), is_completion([{"role": "assistant", "content": "7"}]), is_completion(["7"])
    (True, True, False)
    """
    if isinstance(value, str):
        return True
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[-1], dict)
        and "content" in value[-1]
    )


def with_columns_from_prompt(row: dict[str, Any]) -> dict[str, Any]:
    """The row with nums and target from its prompt if it has neither and the prompt asks for them,
    else the row itself.

    The prompt is `prompt`, a text or messages, or the last user turn of `messages`.
    """
    if FROM_PROMPT & row.keys():
        return row
    prompt = row.get("prompt")
    if prompt is None and isinstance(row.get("messages"), list):
        prompt = [
            turn
            for turn in row["messages"]
            if isinstance(turn, dict) and turn.get("role") == "user"
        ]
    task = read_prompt(completion_text(prompt) or "")
    return row if task is None else {**row, "nums": task[0], "target": task[1]}


def column_names(row: Mapping[str, Any]) -> str:
    """The keys of a row in at most 120 characters."""
    text = ", ".join(map(repr, row)) or "nothing"
    return text if len(text) <= 120 else f"{text[:117]}..."
