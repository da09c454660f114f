"""Whether a call is right: its arguments beside those of a right call, by the schema of the tool."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.verifiers.json_values import matched, same_scalar, shortened
from swift_rlvr.verifiers.tool_calls.calls import NUMBERS, Call, GoldCall, Tool
from swift_rlvr.verifiers.tool_calls.rows import loaded

# What BFCL ignores in texts, besides case.
_LOOSE = re.compile(r"[ ,./\-_*^]")


class Difference(NamedTuple):
    """What of a call is wrong: an argument, or empty where it is the call as a whole."""

    argument: str
    problem: str


@dataclass(frozen=True)
class Comparer:
    """Says whether a call is right.

    loose_text: whether texts are compared as BFCL does: without case, spaces and ,./-_*^
    """

    tools: Mapping[str, Tool]
    loose_text: bool = False

    def pairs(self, golds: Sequence[GoldCall], calls: Sequence[Call]) -> dict[int, int]:
        """As many golds as can be with a call that is right, by their indexes."""
        return matched(golds, calls, lambda gold, call: not self.differences(gold, call))

    def differences(self, gold: GoldCall, call: Call) -> list[Difference]:
        """What of a call is wrong by a gold; empty where it is right."""
        if call.name != gold.name:
            return [Difference("", f"expected a call of {gold.name}, got {call.name!r:.80}")]
        tool = self.tools[gold.name]
        wrong = []
        for name, accepted in gold.accepted.items():
            if name in call.arguments:
                value = call.arguments[name]
                kind = tool.type_of(name)
                if not any(self._fits(each, value, kind, gold.several) for each in accepted):
                    expected = " or ".join(shortened(each) for each in accepted[:3])
                    wrong.append(Difference(name, f"expected {expected}, got {shortened(value)}"))
            elif not self._may_be_left_out(name, gold, tool):
                wrong.append(Difference(name, "is missing"))
        for name, value in call.arguments.items():
            if name in gold.accepted:
                continue
            if name not in tool.arguments:
                wrong.append(Difference(name, "is no argument of this tool"))
            elif not self._is_default(name, value, tool):
                wrong.append(Difference(name, f"is not asked for, got {shortened(value)}"))
        return wrong

    def _may_be_left_out(self, name: str, gold: GoldCall, tool: Tool) -> bool:
        if name in tool.required:
            return False
        accepted = gold.accepted[name]
        if gold.several and "" in accepted:
            return True
        # The null of a table; a type that takes null has a list of types, or none.
        if accepted == [None] and tool.type_of(name):
            return True
        return any(self._is_default(name, value, tool) for value in accepted)

    def _is_default(self, name: str, value: Any, tool: Tool) -> bool:
        """Whether a tool takes this value for an argument that is left out."""
        schema = tool.arguments.get(name, {})
        return "default" in schema and self._fits(schema["default"], value, tool.type_of(name))

    def _fits(self, gold: Any, value: Any, kind: str = "", several: bool = False) -> bool:
        """Whether a value is the gold's. kind: the type in the tool's schema."""
        match gold, value:
            case dict(), dict():
                return self._fits_object(gold, value, several)
            case list(), list():
                if len(value) != len(gold):
                    return False
                pairs = zip(gold, value, strict=True)
                return all(self._fits(one, other, "", several) for one, other in pairs)
            case str(), str():
                return self._text(gold) == self._text(value)
            case str(), int() | float() if kind in NUMBERS:
                # A dataset writes "5" where its own schema says that it is a number.
                return same_scalar(loaded(gold), value)
        # An object is never the same as a list or a number.
        return same_scalar(gold, value)

    def _fits_object(
        self, gold: Mapping[str, Any], value: Mapping[str, Any], several: bool
    ) -> bool:
        """Whether an object has the gold's keys with its values, and no other. several: a gold has a
        list of the values that are right for a key, of which "" allows to leave it out.
        """
        for key, inner in gold.items():
            accepted = inner if several and isinstance(inner, list) else [inner]
            if key not in value:
                if not (several and "" in accepted):
                    return False
            # As in BFCL, what lies deeper is one value.
            elif not any(self._fits(each, value[key]) for each in accepted):
                return False
        return set(value) <= set(gold)

    def _text(self, text: str) -> str:
        if self.loose_text:
            return _LOOSE.sub("", text).lower().replace("'", '"')
        return text.strip()
