"""Calls of which a name and its arguments are left: GLM-4 writes no more, and neither does a decoder
that leaves special tokens out (TRL, servers) of what DeepSeek, Gemma, Kimi K2, Mistral and PLaMo write.
"""

import json
import re
from collections.abc import Mapping

from swift_rlvr.verifiers.tool_calls.calls import Call, Tool
from swift_rlvr.verifiers.tool_calls.gemma import bare_arguments
from swift_rlvr.verifiers.tool_calls.json_calls import arguments_of, once_each
from swift_rlvr.verifiers.tool_calls.python_calls import PythonReader

_DECODER = json.JSONDecoder()
_GLM_4 = "<|assistant|>"
# Nine letters and digits, hardly ever small letters alone.
_MISTRAL_ID = "(?=[a-z]{0,8}[0-9A-Z])[0-9A-Za-z]{9}"
# What may stand between two calls: the block around DeepSeek's arguments ends there.
_BETWEEN = re.compile(rf"\s*(?:```)?\s*(?:{re.escape(_GLM_4)})?\s*")


class NamedReader:
    """Reads calls of these tools.

    >>> reader = NamedReader({"add": Tool("add", {"a": {"type": "integer"}})})
    >>> for text in ('add{"a": 1}add{"a": 2}', 'functions.add:0{"a": 1}', "call:add{a:1}"):
    ...     print([call.arguments for call in reader.read(text)])
    [{'a': 1}, {'a': 2}]
    [{'a': 1}]
    [{'a': 1}]
    """

    def __init__(self, tools: Mapping[str, Tool]):
        self.tools = tools
        self.python = PythonReader(tools)
        # The longest first, so that none is taken for the end of another.
        names = "|".join(map(re.escape, sorted(tools, key=len, reverse=True))) or "(?!)"
        # DeepSeek's type of a call and Kimi's module stand before a name, Kimi's number, Mistral's id and
        # PLaMo's constraint behind it. Whoever writes of a tool puts a space or a colon before an object.
        self.opening = re.compile(
            rf"(?<!\w)call:(?P<of_gemma>{names})(?=\{{)"
            rf"|(?<!\w)(?:function|functions\.)?(?P<name>{names})(?::\d+|{_MISTRAL_ID})?"
            r"(?:json|\n```json\n|\n)?(?=\{\s*[\"'}])"
        )

    def mentions(self, text: str) -> bool:
        """Whether a call begins somewhere in a text."""
        return "{" in text and self.opening.search(text) is not None

    def read(self, text: str) -> list[Call] | None:
        """The calls that a text is, one after another; None where it is anything else."""
        calls = []
        place = 0
        while place < len(text):
            head = self.opening.match(text, place)
            if head is None:
                return None
            start = head.end()
            name = head["of_gemma"] or head["name"]
            if head["of_gemma"]:
                # A text of Gemma's may hold a bracket.
                end = text.find("}call:", start) + 1 or len(text)
                arguments = once_each(bare_arguments(text[start:end], self.tools[name]))
            else:
                try:
                    _, end = _DECODER.raw_decode(text, start)
                    arguments = arguments_of(text[start:end])
                except (ValueError, RecursionError):
                    # An object of Python's, as ms-swift writes it, goes on to the next call.
                    end = text.find(_GLM_4, start)
                    end = end if end >= 0 else len(text)
                    arguments = arguments_of(self.python.value(text[start:end]))
            calls.append(Call(name, arguments))
            between = _BETWEEN.match(text, end)
            place = between.end() if between else end
        return calls or None

    def from_the_first(self, text: str) -> tuple[str, list[Call] | None]:
        """What stands before the first call of a text, and the calls that the rest of it is."""
        first = self.opening.search(text)
        start = first.start() if first else len(text)
        return text[:start].strip(), self.read(text[start:])
