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
from swift_rlvr.verifiers.messages import last_text

COMPLETION_KEYS = ("completion", "response")
# Columns that can be read from a prompt.
FROM_PROMPT = frozenset(("nums", "target"))


class Item(NamedTuple):
    """One completion, with the other columns of its line.

    position: from 1, among the completions of the line; None where the line has only one.
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
        return [_record_item(row)]
    key = next((key for key in COMPLETION_KEYS if key in row), None)
    if key is None:
        raise LineError(
            f"no completion: expected 'completion' or 'response', got {column_names(row)}"
        )
    if is_completion(row[key]):
        return [Item(None, row[key], row)]
    return _table_items(row, key)


def _record_item(record: dict[str, Any]) -> Item:
    columns = dict(record.get("row", {}))
    columns["messages"] = record.get("messages")
    columns["prompts"] = record.get("messages")
    if isinstance(record.get("tokens"), int):
        # Rewards for length only count the tokens.
        columns["response_token_ids"] = [0] * record["tokens"]
    return Item(None, record["completion"], columns)


def _table_items(table: dict[str, Any], key: str) -> list[Item]:
    """The completions of a table, whose columns are lists. Columns that are no lists are ignored."""
    completions = table[key]
    lists = {name: values for name, values in table.items() if isinstance(values, list)}
    # An empty list alone is no table; ms-swift writes empty tables with several columns.
    if key not in lists or (not completions and len(lists) == 1):
        raise LineError(
            f"{key}: expected a text, a list of messages or a list of completions, "
            f"got {brief(completions)}"
        )
    for name, values in lists.items():
        if len(values) != len(completions):
            raise LineError(
                f"lists of unequal length: {key} has {len(completions)}, {name} has {len(values)}"
            )
    items = []
    for position, row_values in enumerate(zip(*lists.values(), strict=True), start=1):
        row = dict(zip(lists, row_values, strict=True))
        items.append(Item(position, row[key], row))
    return items


def read_object(line: bytes | str) -> dict[str, Any]:
    """The JSON object on a line, which may begin with a byte order mark; LineError for anything
    else.
    """
    if isinstance(line, bytes):
        line = line.removeprefix(codecs.BOM_UTF8)
    return parse_object(line)


def is_completion(value: object) -> bool:
    """Whether a value is a text or a list of messages.

    >>> is_completion("7"), is_completion([{"role": "assistant", "content": "7"}]), is_completion(["7"])
    (True, True, False)
    """
    if isinstance(value, str):
        return True
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[-1], dict) and ("content" in value[-1] or "role" in value[-1])


def with_columns_from_prompt(row: dict[str, Any]) -> dict[str, Any]:
    """The row with nums and target from its prompt, where it has neither and the prompt is
    Countdown's; else the row itself.

    The prompt is `prompt`, a text or messages, or the last user turn of `messages`.
    """
    if FROM_PROMPT & row.keys():
        return row
    prompt = row.get("prompt")
    messages = row.get("messages")
    if prompt is None and isinstance(messages, list):
        prompt = [
            turn for turn in messages if isinstance(turn, dict) and turn.get("role") == "user"
        ]
    numbers = read_prompt(last_text(prompt) or "")
    if numbers is None:
        return row
    nums, target = numbers
    return {**row, "nums": nums, "target": target}


def column_names(row: Mapping[str, Any]) -> str:
    """The keys of a row in at most 120 characters."""
    text = ", ".join(map(repr, row)) or "nothing"
    return text if len(text) <= 120 else f"{text[:117]}..."
