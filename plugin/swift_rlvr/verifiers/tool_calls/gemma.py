"""Calls as Gemma writes them: `call:NAME{key:value,...}`, in which texts stand between marks
of their own, and so may hold any character.
"""

import re
from contextlib import suppress
from typing import Any

from swift_rlvr.verifiers.json_values import NotJson, read_json
from swift_rlvr.verifiers.tool_calls.calls import BadCall, Tool

# By what begins a call: what ends it, and what stands around a text. The first is Gemma 4's, which ends
# its turn in place of the call now and then, the second FunctionGemma's.
FORMS = {
    "<|tool_call>": (("<tool_call|>", "<turn|>"), '<|"|>'),
    "<start_function_call>": (("<end_function_call>",), "<escape>"),
}
# The tokens with which Gemma 4 gives the word to its tools.
_AFTER = ("<turn|>", "<|tool_response>")
_DEEPEST = 50
# Stands in no text: without its marks a text goes on to the next comma or bracket.
_NO_MARK = "\0"


class _Values:
    """Reads values of a text from a place on. mark: what stands around a text.

    >>> _Values('{city:<|"|>Bonn, {NRW}<|"|>,days:[1,2],now:true}', '<|"|>').value()
    {'city': 'Bonn, {NRW}', 'days': [1, 2], 'now': True}
    """

    def __init__(self, text: str, mark: str, place: int = 0):
        self.text = text
        self.mark = mark
        self.place = place
        self.depth = 0

    def takes(self, word: str) -> bool:
        """Whether a word comes next, after white space, which is then passed."""
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1
        if not self.text.startswith(word, self.place):
            return False
        self.place += len(word)
        return True

    def value(self) -> Any:
        """The object, list, text or word that comes next."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise BadCall("its arguments are nested too deep")
        if self.takes("{"):
            value: Any = self._object()
        elif self.takes("["):
            value = []
            while not self.takes("]"):
                if value and not self.takes(","):
                    raise BadCall("a comma is missing between two values")
                value.append(self.value())
        elif self.takes(self.mark):
            value = self.until(self.mark)
            self.place += len(self.mark)
        else:
            # A number, true, false or null stands between no marks; any other word is a text.
            value = self.until(",", "}", "]").strip()
            if not value:
                raise BadCall("a value is missing")
            with suppress(NotJson):
                read = read_json(value)
                value = value if isinstance(read, (str, list, dict)) else read
        self.depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not self.takes("}"):
            if values and not self.takes(","):
                raise BadCall("a comma is missing between two arguments")
            if self.takes(self.mark):
                key = self.until(self.mark)
                self.place += len(self.mark)
            else:
                key = self.until(":").strip()
            if not key or key in values or not self.takes(":"):
                raise BadCall(f"the argument {key!r:.80} stands twice, or has no name or value")
            values[key] = self.value()
        return values

    def until(self, *words: str) -> str:
        """The text up to the next of these words."""
        ends = [end for word in words if (end := self.text.find(word, self.place)) >= 0]
        if not ends:
            raise BadCall("a call is not closed")
        written = self.text[self.place : min(ends)]
        self.place = min(ends)
        return written


def calls_and_rest(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The names and arguments of the calls in a text, and what stands around them.

    >>> calls_and_rest('<|tool_call>call:add{a:1,b:<|"|>2<|"|>}<tool_call|>')
    ([('add', {'a': 1, 'b': '2'})], '')
    """
    calls = []
    rest = []
    place = 0
    while True:
        begins = [(at, start) for start in FORMS if (at := text.find(start, place)) >= 0]
        if not begins:
            break
        at, start = min(begins)
        rest.append(text[place:at])
        ends, mark = FORMS[start]
        values = _Values(text, mark, at + len(start))
        if not values.takes("call:"):
            raise BadCall(f"{start} is not followed by call:")
        name = values.until("{").strip()
        arguments = values.value()
        # An end that was a special token may not have been decoded.
        is_ended = any(values.takes(end) for end in ends) or not text[values.place :].strip()
        if not name or not is_ended:
            raise BadCall("a call has no name, or does not end")
        calls.append((name, arguments))
        place = values.place
    after = text[place:].strip()
    for token in _AFTER:
        after = after.removesuffix(token).rstrip()
    rest.append(after)
    return calls, "".join(rest)


def bare_arguments(written: str, tool: Tool) -> list[tuple[str, Any]]:
    """The arguments of a call whose marks a decoder has left out as special tokens, so that its tool
    alone says where each begins, and whether it is a text.

    >>> tool = Tool("add", {"a": {"type": "string"}, "b": {"type": "array"}})
    >>> bare_arguments("{a:1, or 2,b:[3,x]}", tool)
    [('a', '1, or 2'), ('b', [3, 'x'])]
    """
    keys = "|".join(map(re.escape, tool.arguments)) or "(?!)"
    written = written.strip()
    before, *parts = re.split(rf"(?:\A|,)({keys}):", written[1:-1])
    if before.strip() or not written.endswith("}"):
        raise BadCall(f"expected an argument of {tool.name}, got {before!r:.80}")
    arguments = []
    for key, text in zip(parts[::2], parts[1::2], strict=True):
        value: Any = text
        if tool.type_of(key) != "string":
            values = _Values(f"{text}}}", _NO_MARK)
            value = values.value()
            if not values.takes("}") or values.text[values.place :]:
                raise BadCall(f"the argument {key!r:.80} is not one value")
        arguments.append((key, value))
    return arguments
