"""Calls that are written as JSON: an object with a name and arguments, alone or in a list."""

from collections.abc import Iterable, Mapping
from typing import Any

from swift_rlvr.verifiers.json_values import NotJson, read_json, shortened, values_in
from swift_rlvr.verifiers.tool_calls.calls import BadCall, Call

# What models call the arguments; Llama says parameters. Command A says tool_name.
_ARGUMENTS = ("arguments", "parameters", "args")
_NAMES = ("name", "tool_name")
_KNOWN_KEYS = {"id", "tool_call_id", "type", *_NAMES, *_ARGUMENTS}
# xLAM writes a list of all calls into one object, beside a thought.
_LISTED = "tool_calls"
_THOUGHT = "thought"
# What stands around a call of OpenAI's.
_WRAPPER = {"function", "id", "type", "index"}


def value_of(text: str) -> Any:
    """The value that a text of JSON is, read as the standard has it."""
    try:
        return read_json(text.strip())
    except NotJson as error:
        raise BadCall(f"{error.reason}: {error}") from None


def call_of(value: Any) -> Call:
    """The call that an object with a name and arguments is."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        if not set(value) <= _WRAPPER:
            raise BadCall(f"expected a function alone, got the keys {', '.join(value):.80}")
        value = value["function"]
    names = [value[key] for key in _NAMES if key in value] if isinstance(value, Mapping) else []
    if len(names) != 1 or not isinstance(names[0], str):
        raise BadCall(f"expected a call, got {shortened(value)}")

    written = [value[key] for key in _ARGUMENTS if key in value]
    if len(written) > 1 or not set(value) <= _KNOWN_KEYS:
        raise BadCall(f"expected name and arguments, got the keys {', '.join(value):.80}")
    if written:
        return Call(names[0], arguments_of(written[0]))
    if len(value) > 1:
        raise BadCall(f"expected name and arguments, got {shortened(value)}")
    return Call(names[0], {})


def arguments_of(written: Any) -> dict[str, Any]:
    """Arguments that are an object, JSON of one, or null where there are none."""
    if isinstance(written, str):
        written = value_of(written) if written.strip() else None
    if written is None:
        return {}
    if not isinstance(written, Mapping):
        raise BadCall(f"expected an object of arguments, got {shortened(written)}")
    return dict(written)


def calls_of(text: str) -> list[Call]:
    """The calls of a text that is JSON, an object or a list of them; BadCall for anything else."""
    value = value_of(text)
    if isinstance(value, dict) and set(value) - {_THOUGHT} == {_LISTED}:
        value = value[_LISTED]
    values = value if isinstance(value, list) else [value]
    return [call_of(each) for each in values]


def calls_in_a_row(text: str) -> list[Call]:
    """The calls of a text that is JSON, or of several texts of JSON one after another, as Llama's;
    BadCall for anything else.
    """
    try:
        return calls_of(text)
    except BadCall:
        parts = json_in(text)
        rest = text
        for part in parts:
            rest = rest.replace(part, "", 1)
        if len(parts) < 2 or rest.strip(" \r\n\t;,"):
            raise
    return [call for part in parts for call in calls_of(part)]


def json_in(text: str) -> list[str]:
    """The objects and lists that stand in a text; BadCall where there are too many openings."""
    try:
        return values_in(text)
    except NotJson as error:
        raise BadCall(f"{error.reason}: {error}") from None


def once_each(arguments: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Arguments by their names; BadCall where one stands twice, so that nobody answers two values."""
    by_name: dict[str, Any] = {}
    for name, value in arguments:
        if name in by_name:
            raise BadCall(f"the argument {name!r:.80} stands twice")
        by_name[name] = value
    return by_name
