"""What a tool is, a call that a model made, and a call that is right."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swift_rlvr.verifiers.json_values import shortened

# The most characters of an answer.
MOST_CHARS = 50_000
# The types of JSON Schema whose values are numbers.
NUMBERS = ("integer", "number")


class BadCall(ValueError):
    """A text that is no call, or a gold or tool that cannot be read."""


@dataclass(frozen=True)
class Tool:
    """A function that may be called: its arguments with their schemas, and those that it needs."""

    name: str
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    description: str = ""

    def type_of(self, argument: str) -> str:
        """The type of an argument by its name in JSON Schema; empty where it has none."""
        kind = self.arguments.get(argument, {}).get("type")
        return kind if isinstance(kind, str) else ""

    def as_json(self) -> dict[str, Any]:
        """The tool as chat templates take it."""
        parameters = {
            "type": "object",
            "properties": dict(self.arguments),
            "required": list(self.required),
        }
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": parameters,
        }
        return {"type": "function", "function": function}


class Call(NamedTuple):
    """A call that was made."""

    name: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return shortened({"name": self.name, "arguments": self.arguments})


class GoldCall(NamedTuple):
    """A right call: for each argument the values that are accepted.

    several: whether values within objects are lists of accepted ones, too, and "" says that an
    argument may be left out, as in BFCL.
    """

    name: str
    accepted: dict[str, list[Any]]
    several: bool = False

    @classmethod
    def of_call(cls, call: Call) -> "GoldCall":
        """A right call whose arguments have one accepted value each."""
        return cls(call.name, {name: [value] for name, value in call.arguments.items()})

    def example(self, tool: Tool) -> Call:
        """A call of its tool that is right, with the first accepted values."""
        arguments = {}
        for name, values in self.accepted.items():
            if not self.several:
                arguments[name] = values[0]
            elif name in tool.required or "" not in values:
                first = next((value for value in values if value != ""), "")
                arguments[name] = _first_accepted(first)
        return Call(self.name, arguments)


def _first_accepted(value: Any) -> Any:
    """A value of BFCL's with the first accepted one in each place."""
    if isinstance(value, list):
        return [_first_accepted(each) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    chosen = {}
    for key, values in value.items():
        if not isinstance(values, list):
            chosen[key] = values
        elif values and "" not in values:
            chosen[key] = values[0]
    return chosen
