"""Calls that are written as Python does. They are parsed, and never evaluated."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from swift_rlvr.verifiers.tool_calls.calls import MOST_CHARS, BadCall, Call, Tool

# Constants of Python and of JSON, in any case.
CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
# What ast raises for a text, and this file for a call that is none.
_UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)


class Program(NamedTuple):
    """What a text of Python holds, where it holds calls alone."""

    calls: list[Call]
    comments: list[str]


class PythonReader:
    """Reads calls of these tools."""

    def __init__(self, tools: Mapping[str, Tool]):
        self.tools = tools
        # Names that are no name in Python, as ToolACE's "Market Trends API", the longest first, so
        # that none is replaced within another.
        strange = [name for name in tools if not name.replace(".", "_").isidentifier()]
        strange.sort(key=len, reverse=True)
        self.placeholders = {name: f"_tool_{number}_" for number, name in enumerate(strange)}
        self.names = {placeholder: name for name, placeholder in self.placeholders.items()}

    @cached_property
    def _opening(self) -> str:
        """A pattern of a tool's name with a bracket behind it."""
        names = "|".join(map(re.escape, self.tools)) or "(?!)"
        # Llama writes .call behind a name, and Gemini a module of all tools before it.
        return rf"(?<![\w.])(?:default_api\.)?(?:{names})(?:\.call)?\s*\("

    def names_a_tool(self, text: str) -> bool:
        """Whether a tool's name with a bracket behind it stands somewhere in a text."""
        return "(" in text and re.search(self._opening, text) is not None

    def mentions(self, text: str) -> bool:
        """Whether a text writes a call with arguments, wherever it stands."""
        if "(" not in text:
            return False
        pattern = rf"{self._opening}\s*(?:\w+\s*=|[\"'\d\[{{-])"
        return re.search(pattern, text) is not None

    def read(self, text: str) -> Program | None:
        """The calls that a text is: one, a list of them, or one a line; None where it is anything
        else.
        """
        if "(" not in text or len(text) > MOST_CHARS:
            return None
        text = text.strip()
        for name, placeholder in self.placeholders.items():
            text = re.sub(rf"(?<![\w\"']){re.escape(name)}(?=\s*\()", placeholder, text)
        calls = []
        try:
            for statement in ast.parse(text).body:
                if not isinstance(statement, ast.Expr):
                    return None
                whole = statement.value
                nodes = whole.elts if isinstance(whole, (ast.List, ast.Tuple)) else [whole]
                calls += [self._call(node) for node in nodes]
        except _UNREADABLE:
            return None
        comments = []
        if "#" in text:
            try:
                for token in tokenize.generate_tokens(io.StringIO(text).readline):
                    if token.type == tokenize.COMMENT:
                        comments.append(self._with_names(token.string))
            except (tokenize.TokenError, SyntaxError):
                # All of it may be one, where it cannot be told apart.
                comments = [self._with_names(text)]
        return Program(calls, comments) if calls else None

    def value(self, text: str) -> Any:
        """The literal that a text is; BadCall where it is none."""
        try:
            return self._value(ast.parse(text.strip(), mode="eval").body)
        except _UNREADABLE as error:
            raise BadCall(f"neither JSON nor a literal of Python: {error}") from None

    def _call(self, node: ast.expr) -> Call:
        match node:
            # as Gemini writes it: ``print(default_api.add(a=1))``
            case ast.Call(ast.Name("print"), [ast.Call() as inner], []):
                node = inner if ast.unparse(inner.func).startswith("default_api.") else node
        if not isinstance(node, ast.Call):
            raise ValueError("an expression is no call")
        name = ast.unparse(node.func)
        name = self.names.get(name, name)
        if name not in self.tools:
            # Llama's calls of built-in tools, and Gemini's of any
            name = name.removesuffix(".call").removeprefix("default_api.")
        places = list(self.tools[name].arguments) if name in self.tools else []
        if len(node.args) > len(places):
            raise ValueError("there are more arguments without a name than the tool has")
        arguments = {}
        for place, value in zip(places, node.args, strict=False):
            arguments[place] = self._value(value)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in arguments:
                raise ValueError("an argument stands twice, or has no name")
            arguments[keyword.arg] = self._value(keyword.value)
        return Call(name, arguments)

    def _value(self, node: ast.expr) -> Any:
        """A literal; ValueError for anything that would have to be evaluated, and for what is no value
        of JSON.
        """
        match node:
            case ast.Name(id=name) if name.lower() in CONSTANTS:
                return CONSTANTS[name.lower()]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._value(element) for element in elements]
            case ast.Dict(keys=keys, values=values):
                written: dict[str, Any] = {}
                for key, inner in zip(keys, values, strict=True):
                    word = self._value(key) if key is not None else None
                    if not isinstance(word, str) or word in written:
                        raise ValueError("a key stands twice, or is no text")
                    written[word] = self._value(inner)
                return written
        value: Any = ast.literal_eval(node)
        match value:
            case str():
                return self._with_names(value)
            case bool() | None:
                return value
            case int() | float() if abs(value) <= sys.float_info.max:
                return value
        raise ValueError("it is no value of JSON, or larger than any number of 64 bits")

    def _with_names(self, text: str) -> str:
        """A text with the names of tools in it that a placeholder stands for."""
        for placeholder, name in self.names.items():
            text = text.replace(placeholder, name)
        return text
