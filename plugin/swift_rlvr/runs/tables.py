"""Records from the tables of completions that ms-swift and TRL log."""

import math
from collections.abc import Mapping
from typing import Any

from swift_rlvr.answers import completion_text
from swift_rlvr.errors import InputError
from swift_rlvr.runs.records import Record

_NOT_A_COLUMN = {"step", "prompt", "completion", "advantages", "num_turns"}


def records_of_table(table: Mapping[str, Any], keys: Mapping[str, str] | None = None) -> list[Record]:
    """The completions of a table that ms-swift logs: `step`, `prompt`, `completion` and a list for each reward.

    keys: by the name that a reward is logged under, its key in records; the other lists with one value for each
    completion are columns of the rows. The prompt, a text with the chat template, becomes one message. InputError where
    a list is missing or of another length.
    """
    count = len(table["completion"]) if isinstance(table.get("completion"), list) else -1
    if not {"step", "prompt", "completion"} <= table.keys():
        raise InputError("expected the lists step, prompt and completion")
    for name in ("step", "prompt", "completion"):
        if not isinstance(table[name], list) or len(table[name]) != count:
            raise InputError(f"{name} must be a list with one value for each completion")
    keys = keys or {}
    lists = {name: values for name, values in table.items() if isinstance(values, list) and len(values) == count}
    records = []
    for index in range(count):
        values = {name: column[index] for name, column in lists.items()}
        prompt = values["prompt"]
        records.append(
            Record(
                index=index,
                step=_step(values["step"]),
                completion=completion_text(values["completion"]) or "",
                messages=prompt if isinstance(prompt, list) else [{"role": "user", "content": str(prompt)}],
                rewards={keys[name]: _number(value) for name, value in values.items() if name in keys},
                row={name: value for name, value in values.items() if name not in keys and name not in _NOT_A_COLUMN},
                advantage=_number(values.get("advantages")),
            )
        )
    return records


def _step(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"expected a step such as 7, got {value!r:.40}") from None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
