"""Calls of tools: read in the ways in which models write them, and compared with the right ones.

Read are Hermes's and Qwen's ``<tool_call>`` with JSON, Qwen3-Coder's with ``<function=...>``, GLM's
with ``<arg_key>``, Gemma's ``call:name{...}``, DeepSeek's, between tokens and in DSML, Mistral's
``[TOOL_CALLS]``, Llama's JSON with ``parameters``, a list or objects of JSON alone, and Python
calls, which are parsed and never evaluated. All calls of an answer count, whatever way they are
written in, so that none can stand beside another in secret.
"""

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swift_rlvr.verifiers.gemma_calls import FORMS as GEMMA
from swift_rlvr.verifiers.gemma_calls import BadGemmaCall, calls_and_rest
from swift_rlvr.verifiers.json_values import (
    NOT_JSON,
    TWO_VALUES,
    NotJson,
    loosely_read,
    matched,
    read_json,
    same_scalar,
    shortened,
    values_in,
)

# The most characters of an answer.
MOST_CHARS = 50_000
# What BFCL ignores in texts, besides case.
_LOOSE = re.compile(r"[ ,./\-_*^]")
# JSON Schema's names of types by those in datasets, as xLAM's "str, optional" or "List[int]".
_TYPES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("dict", "hashmap"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
}
_NUMBERS = ("integer", "number")
# Where a call stands, of the ways that mark it.
# A call ends before the next one begins, so that many that are never closed are read in one pass.
_TAGGED = re.compile(r"<tool_call>((?:(?!</?tool_call>).)*)</tool_call>", re.DOTALL)
_MISTRAL = "[TOOL_CALLS]"
# DeepSeek's to V3.1, in which V3 and R1 have their JSON in a block, and those since V3.2.
_DEEPSEEK = "<｜tool▁call"
_DEEPSEEK_CALL = re.compile(
    r"<｜tool▁call▁begin｜>((?:(?!<｜tool▁call).)*)<｜tool▁call▁end｜>", re.DOTALL
)
_DEEPSEEK_AROUND = re.compile(r"<｜tool▁calls▁begin｜>\s*(?:<｜tool▁calls▁end｜>|$)")
_DEEPSEEK_BLOCK = re.compile(r"([^\n]+)\n```json\n(.*)\n```\s*", re.DOTALL)
_DSML = "｜DSML｜"
_DSML_CALL = re.compile(
    r'<｜DSML｜invoke name="([^"<>\n]+)">((?:(?!</?｜DSML｜invoke).)*)</｜DSML｜invoke>', re.DOTALL
)
_DSML_ARGUMENT = re.compile(
    r'<｜DSML｜parameter name="([^"<>\n]+)"(?: string="(true|false)")?>'
    r"((?:(?!</?｜DSML｜parameter).)*)</｜DSML｜parameter>",
    re.DOTALL,
)
_DSML_AROUND = re.compile(r"<｜DSML｜(function_calls|tool_calls)>\s*(?:</｜DSML｜\1>|$)")
_MARKS = (
    _DEEPSEEK,
    _DSML,
    "<tool_call>",
    "</tool_call>",
    _MISTRAL,
    "<|python_tag|>",
    "<function=",
    "<|python_start|>",
    "<arg_key>",
    *GEMMA,
)
_XML_CALL = re.compile(r"<function=([^<>\n]+)>((?:(?!</?function\b).)*)</function>", re.DOTALL)
_XML_ARGUMENT = re.compile(
    r"<parameter=([^<>\n]+)>\n?((?:(?!</?parameter\b).)*?)\n?</parameter>", re.DOTALL
)
# GLM's name and arguments, within <tool_call>.
_GLM_CALL = re.compile(r"([^\n<>{}]*[^\s<>{}])\s*((?:<arg_key>.*</arg_value>)?)", re.DOTALL)
_GLM_ARGUMENT = re.compile(
    r"<arg_key>([^<>]+)</arg_key>\s*<arg_value>((?:(?!</?arg_).)*)</arg_value>\s*", re.DOTALL
)
# Mistral's newer way: [TOOL_CALLS]name[ARGS]{...}
_MISTRAL_CALL = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\w+\s*)?(?:\[ARGS\]\s*)?(?=\{)")
_BLOCK = re.compile(r"```[ \t]*(?:\w+[ \t]*)?\r?\n(.*?)\n?```", re.DOTALL)
# What Llama writes before and between its calls.
_LLAMA_MARK = re.compile(r"^\s*(?:<\|python_tag\|>|<\|python_start\|>)|<\|python_end\|>\s*$")
_PYTHON_TAG = "<|python_tag|>"
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_ARGUMENTS = ("arguments", "parameters", "args")
_KNOWN_KEYS = {"name", "id", "type", *_ARGUMENTS}
# What stands around a call of OpenAI's.
_WRAPPER = {"function", "id", "type", "index"}
_UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)


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

    def example(self, tool: Tool) -> Call:
        """A call of its tool that is right, with the first accepted values."""
        arguments = {}
        for name, values in self.accepted.items():
            if not self.several:
                arguments[name] = values[0]
            elif name in tool.required or "" not in values:
                first = next((value for value in values if value != ""), "")
                arguments[name] = _first(first)
        return Call(self.name, arguments)


def _first(value: Any) -> Any:
    """A value of BFCL's with the first accepted one in each place."""
    if isinstance(value, dict):
        chosen = {}
        for key, values in value.items():
            if not isinstance(values, list):
                chosen[key] = values
            elif values and "" not in values:
                chosen[key] = values[0]
        return chosen
    if isinstance(value, list):
        return [_first(each) if isinstance(each, dict) else each for each in value]
    return value


# --- Tools


def read_tools(value: Any) -> list[Tool]:
    """The tools of a row, a list of objects or JSON of one, as OpenAI, xLAM, BFCL, ToolACE and
    Anthropic write them; BadCall where they cannot be read.

    >>> tools = read_tools([{"name": "add", "parameters": {"a": {"type": "int"}, "b": {"type": "int", "default": 1}}}])
    >>> tools[0].name, list(tools[0].arguments), tools[0].required
    ('add', ['a', 'b'], ('a',))
    """
    value = _loaded(value)
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise BadCall(f"expected a list of tools, got {shortened(value)}")
    tools = []
    for each in map(_loaded, value):
        if isinstance(each, Mapping) and isinstance(each.get("function"), Mapping):
            each = each["function"]
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str):
            raise BadCall(f"expected a tool with a name, got {shortened(each)}")
        tools.append(_tool(each))
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise BadCall("two tools have the same name")
    return tools


def _tool(function: Mapping[str, Any]) -> Tool:
    parameters: Any = {}
    for name in ("parameters", "input_schema", "arguments"):
        parameters = parameters or _loaded(function.get(name)) or {}
    if not isinstance(parameters, Mapping):
        raise BadCall(f"the parameters of {function['name']} are {shortened(parameters)}")
    properties = parameters.get("properties")
    required = parameters.get("required") or function.get("required") or ()
    if not isinstance(properties, Mapping):
        # xLAM's are the arguments alone, of types such as "str, optional".
        properties = {
            name: value for name, value in parameters.items() if isinstance(value, Mapping)
        }
        needed = []
        for name, value in properties.items():
            if "default" not in value and "optional" not in str(value.get("type")):
                needed.append(name)
        required = needed
    # A table, such as a Parquet file, gives every tool the arguments of all, as null.
    kept = {}
    for name, value in properties.items():
        if value is not None or name in required:
            kept[name] = _with_types(value or {})
    is_names = isinstance(required, (list, tuple))
    names = tuple(name for name in required if isinstance(name, str)) if is_names else ()
    return Tool(function["name"], kept, names, str(function.get("description") or ""))


def _with_types(schema: Any) -> Any:
    """A schema with JSON Schema's names of types, and without what a table has padded with null."""
    if isinstance(schema, list):
        return [_with_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    named = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            word, *inner = re.findall(r"\w+", value.lower()) or [""]
            named[key] = _TYPES.get(word, word)
            # List[float]
            if named[key] == "array" and inner and "[" in value and "items" not in schema:
                named["items"] = {"type": _TYPES.get(inner[0], inner[0])}
        elif value is not None:
            named[key] = _with_types(value) if key != "default" else value
    return named


def _loaded(value: Any) -> Any:
    """What a text of JSON stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loosely_read(value)
    except (ValueError, RecursionError):
        return value


def _argument(text: str) -> Any:
    """What an argument of Qwen3-Coder's is, JSON or else a text."""
    try:
        return read_json(text)
    except NotJson as error:
        if error.reason in (NOT_JSON, TWO_VALUES):
            return text
        raise BadCall(f"{error.reason}: {error}") from None


# --- Golds


def read_golds(value: Any, tools: Sequence[Tool]) -> list[GoldCall]:
    """The right calls of a row: a list of calls, BFCL's of names with accepted values, or a text with
    calls in any way in which a model writes them. Empty where no call is right. BadCall for what is
    none of these, or calls no tool of the row.

    >>> tools = read_tools([{"name": "add", "parameters": {"a": {"type": "int"}}}])
    >>> read_golds('[{"name": "add", "arguments": {"a": 2}}]', tools)
    [GoldCall(name='add', accepted={'a': [2]}, several=False)]
    >>> read_golds([{"add": {"a": [2, ""]}}], tools)
    [GoldCall(name='add', accepted={'a': [2, '']}, several=True)]
    """
    written = value
    value = _loaded(value)
    if value is None or value == "":
        raise BadCall("there is none")
    if isinstance(value, Mapping):
        value = [value]
    golds = []
    if isinstance(value, str):
        calls = calls_in(value, tools, text_around=True)
        golds = [_exact(call) for call in calls]
        if not golds:
            raise BadCall(f"expected calls, got {shortened(written)}")
    elif not isinstance(value, (list, tuple)):
        raise BadCall(f"expected a list of calls, got {shortened(written)}")
    else:
        for each in map(_loaded, value):
            if isinstance(each, str):
                golds += [_exact(call) for call in calls_in(each, tools)]
            else:
                golds.append(_gold(each))
    known = {tool.name: tool for tool in tools}
    for gold in golds:
        if gold.name not in known:
            raise BadCall(f"{gold.name!r:.80} is not one of the tools {', '.join(known):.200}")
        # A table gives every call the arguments of all, as null.
        for name in set(gold.accepted) - set(known[gold.name].arguments):
            if gold.accepted[name] == [None]:
                del gold.accepted[name]
    return golds


def _gold(value: Any) -> GoldCall:
    if not isinstance(value, Mapping):
        raise BadCall(f"expected a call, got {shortened(value)}")
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    if isinstance(value.get("name"), str):
        return _exact(_call_of(value))
    if len(value) == 1:
        ((name, accepted),) = value.items()
        if isinstance(accepted, Mapping):
            accepted = {key: values for key, values in accepted.items() if values is not None}
        if isinstance(accepted, Mapping) and all(
            isinstance(values, list) and values for values in accepted.values()
        ):
            return GoldCall(name, dict(accepted), several=True)
        if isinstance(accepted, Mapping):
            return _exact(Call(name, dict(accepted)))
    raise BadCall(f"expected a call, got {shortened(value)}")


def doubts(gold: GoldCall, tool: Tool) -> list[str]:
    """What of a right call contradicts the schema of its tool.

    >>> (tool,) = read_tools([{"name": "add", "parameters": {"a": {"type": "int"}}}])
    >>> doubts(GoldCall("add", {"a": [1]}), tool), doubts(GoldCall("add", {"a": ["one"]}), tool)
    ([], ['a right call has a value of another type than its tool says'])
    """
    found = []
    if not set(gold.accepted) <= set(tool.arguments):
        found.append("a right call has an argument that its tool does not have")
    if not set(tool.required) <= set(gold.accepted):
        found.append("a right call lacks an argument that its tool requires")
    for name, values in gold.accepted.items():
        kind = tool.type_of(name)
        ways = [value for value in values if not (gold.several and value == "")]
        if not all(_is_of_type(value, kind) for value in ways):
            found.append("a right call has a value of another type than its tool says")
            break
    return found


def _is_of_type(value: Any, kind: str) -> bool:
    """Whether a gold's value may be of a type; of one that is not known, and null, it may."""
    if kind in _NUMBERS and isinstance(value, str):
        value = _loaded(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    known = {
        "string": isinstance(value, str),
        "number": is_number,
        "integer": is_number and value == int(value),
        "boolean": isinstance(value, bool),
        "array": isinstance(value, (list, tuple)),
        "object": isinstance(value, Mapping),
    }
    return value is None or known.get(kind, True)


def _exact(call: Call) -> GoldCall:
    return GoldCall(call.name, {name: [value] for name, value in call.arguments.items()})


# --- Reading calls


def has_call(text: str, tools: Sequence[Tool]) -> bool:
    """Whether a text makes a call, or tries to: a mark of one, a call that can be read, or one of
    Python's with arguments, wherever it stands.
    """
    if any(mark in text for mark in _MARKS) or _Reader(tools).mentions(text):
        return True
    try:
        return bool(calls_in(text, tools, text_around=True))
    except BadCall:
        return True


def calls_in(text: str, tools: Sequence[Tool], text_around: bool = False) -> list[Call]:
    """The calls of a text, in order; empty where it makes none.

    text_around: whether other text may stand around them, and not only before those that have a mark,
    such as ``<tool_call>``. BadCall for text where it may not stand, and for what begins like a call and
    cannot be read.

    >>> tools = read_tools([{"name": "add", "parameters": {"a": {"type": "integer"}, "b": {"type": "integer"}}}])
    >>> for text in (
    ...     '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>',
    ...     '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 2}}]',
    ...     '{"name": "add", "parameters": {"a": 1, "b": 2}}',
    ...     "[add(a=1, b=2)]",
    ... ):
    ...     assert calls_in(text, tools) == [Call("add", {"a": 1, "b": 2})]
    >>> calls_in("I can add numbers.", tools)
    []
    """
    reader = _Reader(tools, text_around)
    if any(mark in text for mark in GEMMA):
        calls, rest = reader.gemma(text)
    elif _DEEPSEEK in text:
        calls, rest = reader.deepseek(text)
    elif _DSML in text:
        calls, rest = reader.dsml(text)
    elif any(mark in text for mark in ("<tool_call>", "</tool_call>", "<function=")):
        calls, rest = reader.tagged(text)
    elif _MISTRAL in text:
        before, _, after = text.partition(_MISTRAL)
        calls, rest = reader.mistral(after), before
    else:
        return reader.plain(text)
    # Marks end what is said before them. Models explain a call, and whoever runs it reads no text.
    first = min(text.find(mark) for mark in _MARKS if mark in text)
    is_allowed = text_around or rest.strip() == text[:first].strip()
    if rest.strip() and (not is_allowed or reader.mentions(rest) or reader.plain(rest)):
        raise BadCall(f"there is text around the calls: {rest.strip()!r:.80}")
    return calls


class _Reader:
    """Reads calls of these tools. text_around: whether other text may stand around them."""

    def __init__(self, tools: Sequence[Tool], text_around: bool = False):
        self.text_around = text_around
        self.is_python_tagged = False
        self.tools = {tool.name: tool for tool in tools}
        # Names that are no name in Python, as ToolACE's "Market Trends API", the longest first.
        strange = [name for name in self.tools if not name.replace(".", "_").isidentifier()]
        self.placeholders = {
            name: f"_tool_{number}_" for number, name in enumerate(sorted(strange, key=len)[::-1])
        }

    def tagged(self, text: str) -> tuple[list[Call], str]:
        """The calls in tags, and what stands around them."""
        calls = []
        if "tool_call>" not in text:
            return self._xml(text)
        for content in _TAGGED.findall(text):
            if "<function=" in content:
                inside, around = self._xml(content)
                if around.strip():
                    raise BadCall(f"there is text around a function: {around.strip()!r:.80}")
                calls += inside
            elif "<arg_key>" in content or content.strip() in self.tools:
                calls.append(self._glm(content))
            else:
                calls += _calls_in_a_row(content)
        rest = _TAGGED.sub("", text)
        if "<tool_call>" in rest or "</tool_call>" in rest:
            raise BadCall("a <tool_call> is not closed, or never opened")
        return calls, rest

    def _xml(self, text: str) -> tuple[list[Call], str]:
        """Qwen3-Coder's calls; a value is read by the type of its argument."""
        calls = []
        for name, content in _XML_CALL.findall(text):
            if content.strip().startswith("{"):  # Llama 3.1's
                calls.append(_call_of({"name": name.strip(), "arguments": _json(content)}))
                continue
            arguments: dict[str, Any] = {}
            for argument, value in _XML_ARGUMENT.findall(content):
                if argument in arguments:
                    raise BadCall(f"the argument {argument!r:.80} stands twice")
                arguments[argument] = self._typed(name, argument, value)
            if _XML_ARGUMENT.sub("", content).strip():
                raise BadCall(f"the arguments of {name!r:.80} cannot be read")
            calls.append(Call(name.strip(), arguments))
        rest = _XML_CALL.sub("", text)
        if "<function=" in rest:
            raise BadCall("a <function=...> is not closed")
        return calls, rest

    def _typed(self, name: str, argument: str, value: str) -> Any:
        """A value of a call in XML. As the reader of vLLM does it: a text is what is written, all else
        is JSON.
        """
        kind = self.tools[name].type_of(argument) if name in self.tools else ""
        loaded = value if kind == "string" else _argument(value)
        if isinstance(loaded, str) and value in ("True", "False", "None"):
            return _CONSTANTS[value.lower()]
        return loaded

    def _glm(self, content: str) -> Call:
        """A call of GLM's: the name, and each argument's key and value."""
        call = _GLM_CALL.fullmatch(content.strip())
        if call is None or _GLM_ARGUMENT.sub("", call[2]):
            raise BadCall(f"the arguments of {content.strip()!r:.80} cannot be read")
        arguments: dict[str, Any] = {}
        for key, value in _GLM_ARGUMENT.findall(call[2]):
            argument = key.strip()
            if argument in arguments:
                raise BadCall(f"the argument {argument!r:.80} stands twice")
            arguments[argument] = self._typed(call[1], argument, value)
        return Call(call[1], arguments)

    def gemma(self, text: str) -> tuple[list[Call], str]:
        """Gemma's calls, and what stands around them. A text is read by the type of its argument."""
        try:
            written, rest = calls_and_rest(text)
        except BadGemmaCall as error:
            raise BadCall(str(error)) from None
        calls = []
        for name, values in written:
            arguments = {}
            for argument, value in values.items():
                kind = self.tools[name].type_of(argument) if name in self.tools else ""
                is_text = not isinstance(value, str) or kind in ("", "string")
                arguments[argument] = value if is_text else _argument(value)
            calls.append(Call(name, arguments))
        return calls, _without_marks(rest)

    def deepseek(self, text: str) -> tuple[list[Call], str]:
        """DeepSeek's calls between tokens, to V3.1, and what stands around them."""
        calls = []
        for content in _DEEPSEEK_CALL.findall(text):
            name, _, arguments = content.partition("<｜tool▁sep｜>")
            block = _DEEPSEEK_BLOCK.fullmatch(arguments)
            if name.strip() == "function" and block is not None:
                name, arguments = block.groups()
            calls.append(_call_of({"name": name.strip(), "arguments": _json(arguments)}))
        rest = _DEEPSEEK_AROUND.sub("", _DEEPSEEK_CALL.sub("", text))
        return calls, _without_marks(rest)

    def dsml(self, text: str) -> tuple[list[Call], str]:
        """DeepSeek's calls since V3.2, and what stands around them; each argument says whether it is
        a text.
        """
        calls = []
        for name, content in _DSML_CALL.findall(text):
            arguments: dict[str, Any] = {}
            for argument, is_text, value in _DSML_ARGUMENT.findall(content):
                if argument in arguments:
                    raise BadCall(f"the argument {argument!r:.80} stands twice")
                if not is_text:
                    arguments[argument] = self._typed(name, argument, value)
                else:
                    arguments[argument] = value if is_text == "true" else _json(value)
            if _DSML_ARGUMENT.sub("", content).strip():
                raise BadCall(f"the arguments of {name!r:.80} cannot be read")
            calls.append(Call(name, arguments))
        rest = _DSML_AROUND.sub("", _DSML_CALL.sub("", text))
        return calls, _without_marks(rest)

    def mistral(self, text: str) -> list[Call]:
        """What follows [TOOL_CALLS]: a list, or names with their arguments."""
        text = text.strip()
        if text.startswith(("[{", "[ ", "[\n", "{")):
            return _json_calls(text)
        calls = []
        for part in text.split(_MISTRAL):
            head = _MISTRAL_CALL.match(part)
            if head is None:
                raise BadCall(f"expected a name and its arguments, got {part!r:.80}")
            calls.append(_call_of({"name": head[1], "arguments": _json(part[head.end() :])}))
        return calls

    def plain(self, text: str) -> list[Call]:
        """Calls without a mark: JSON or Python, in a block of Markdown or without one."""
        self.is_python_tagged |= text.lstrip().startswith(_PYTHON_TAG)
        text = _LLAMA_MARK.sub("", text).strip()
        blocks = _BLOCK.findall(text)
        if blocks and (self.text_around or not _BLOCK.sub("", text).strip()):
            calls = []
            for block in blocks:
                calls += self._whole(block.strip()) or []
            around = _BLOCK.sub("\n", text)
            if calls and self.mentions(around):
                raise BadCall("there are calls in a block and beside it")
            return calls + self.plain(around) if around.strip() else calls
        whole = self._whole(text)
        if whole is not None:
            return whole
        scattered = self._scattered(text)
        if scattered and not self.text_around:
            raise BadCall("there is text around the calls")
        return scattered

    def _whole(self, text: str) -> list[Call] | None:
        """The calls that a text is as a whole; None where it is something else."""
        if text == "[]":
            return []
        if text.startswith(("{", "[{", "[ {", "[\n")):
            try:
                return _calls_in_a_row(text)
            except BadCall:
                if not text.startswith("["):
                    return None
        return self._python(text)

    def _scattered(self, text: str) -> list[Call]:
        """The calls that stand somewhere in a text."""
        calls: list[Call] = []
        rest = text
        for part in _parts(text):
            try:
                calls += _json_calls(part)
            except BadCall:
                continue
            rest = rest.replace(part, "\n", 1)
        for name in self.tools:
            if re.search(rf"(?<![\w.]){re.escape(name)}\s*\(", rest):
                break
        else:
            return calls
        # From the first bracket to the last, and each line alone.
        first, last = rest.find("["), rest.rfind("]")
        if 0 <= first < last and (listed := self._python(rest[first : last + 1])):
            calls += listed
            rest = f"{rest[:first]}\n{rest[last + 1 :]}"
        left = []
        for line in rest.splitlines():
            found = self._python(line.strip().strip("`*- "))
            calls += found or []
            if not found:
                left.append(line)
        if calls and self.mentions("\n".join(left)):
            raise BadCall("there is a call besides that cannot be read")
        return calls

    def mentions(self, text: str) -> bool:
        """Whether a text writes a call as Python does, with arguments, wherever it stands."""
        if "(" not in text:
            return False
        for name in self.tools:
            if re.search(rf"(?<![\w.]){re.escape(name)}\s*\(\s*(?:\w+\s*=|[\"'\d\[{{-])", text):
                return True
        return False

    def _python(self, text: str) -> list[Call] | None:
        """The calls that a text of Python is: one, a list of them, or one a line."""
        if "(" not in text or len(text) > MOST_CHARS:
            return None
        for name, placeholder in self.placeholders.items():
            text = re.sub(rf"(?<![\w\"']){re.escape(name)}\s*\(", f"{placeholder}(", text)
        try:
            body = ast.parse(text.strip()).body
            nodes: list[ast.expr] = []
            for statement in body:
                if not isinstance(statement, ast.Expr):
                    return None
                expression = statement.value
                is_list = isinstance(expression, (ast.List, ast.Tuple))
                nodes += expression.elts if is_list else [expression]  # type: ignore[attr-defined]
            if not nodes or not all(isinstance(node, ast.Call) for node in nodes):
                return None
            calls = [self._python_call(node) for node in nodes]  # type: ignore[arg-type]
        except _UNREADABLE:
            return None
        for comment in _comments(text):
            if not self.text_around:
                raise BadCall(f"there is text around the calls: {comment!r:.80}")
            if self.mentions(comment):
                raise BadCall("there is a call in a comment")
            calls += self.plain(comment.lstrip("# "))
        return calls

    def _python_call(self, node: ast.Call) -> Call:
        name = ast.unparse(node.func)
        for original, placeholder in self.placeholders.items():
            if name == placeholder:
                name = original
        if self.is_python_tagged and name not in self.tools:
            name = name.removesuffix(".call")  # Llama's calls of built-in tools
        arguments: dict[str, Any] = {}
        tool = self.tools.get(name)
        places = list(tool.arguments) if tool else []
        if len(node.args) > len(places):
            raise BadCall(f"{name} has too many arguments without a name")
        for place, value in zip(places, node.args, strict=False):
            arguments[place] = self._python_value(value)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in arguments:
                raise BadCall(f"an argument of {name} stands twice, or has no name")
            arguments[keyword.arg] = self._python_value(keyword.value)
        return Call(name, arguments)

    def _python_value(self, node: ast.expr) -> Any:
        """A literal; ValueError for anything that would have to be evaluated."""
        match node:
            case ast.Name(id=name) if name.lower() in _CONSTANTS:
                return _CONSTANTS[name.lower()]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._python_value(element) for element in elements]
            case ast.Dict(keys=keys, values=values):
                written = {}
                for key, inner in zip(keys, values, strict=True):
                    word = self._python_value(key) if key is not None else None
                    if not isinstance(word, str) or word in written:
                        raise BadCall("a key stands twice, or is no text")
                    written[word] = self._python_value(inner)
                return written
        value: Any = ast.literal_eval(node)
        if isinstance(value, str):
            for original, placeholder in self.placeholders.items():
                value = value.replace(placeholder, original)
        elif not isinstance(value, (bool, int, float, type(None))):
            raise BadCall(f"{value!r:.80} is no value of JSON")
        elif isinstance(value, (int, float)) and not _is_finite(value):
            raise BadCall("a number is larger than any of 64 bits")
        return value


def _without_marks(rest: str) -> str:
    """What stands around calls; BadCall where one of another form is in it, or one that is not whole."""
    for mark in _MARKS:
        if mark in rest:
            raise BadCall(f"there is a call besides that is not whole, or in another form: {mark}")
    return rest


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _comments(text: str) -> list[str]:
    """The comments of a text of Python."""
    if "#" not in text:
        return []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
    except (tokenize.TokenError, SyntaxError):
        return [text]
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _parts(text: str) -> list[str]:
    """The objects and lists that stand in a text; BadCall where there are too many openings."""
    try:
        return values_in(text)
    except NotJson as error:
        raise BadCall(f"{error.reason}: {error}") from None


def _calls_in_a_row(text: str) -> list[Call]:
    """The calls of a text that is JSON, or of several texts of JSON one after another, as Llama's;
    BadCall for anything else.
    """
    try:
        return _json_calls(text)
    except BadCall:
        parts = _parts(text)
        rest = text
        for part in parts:
            rest = rest.replace(part, "", 1)
        if len(parts) < 2 or rest.strip(" \r\n\t;,"):
            raise
    return [call for part in parts for call in _json_calls(part)]


def _json(text: str) -> Any:
    try:
        return read_json(text.strip())
    except NotJson as error:
        raise BadCall(f"{error.reason}: {error}") from None


def _json_calls(text: str) -> list[Call]:
    """The calls of a text that is JSON, an object or a list of them; BadCall for anything else."""
    value = _json(text)
    values = value if isinstance(value, list) else [value]
    return [_call_of(each) for each in values]


def _call_of(value: Any) -> Call:
    """A call of an object with a name and arguments, which may be JSON again."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        if not set(value) <= _WRAPPER:
            raise BadCall(f"expected a function alone, got the keys {', '.join(value):.80}")
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise BadCall(f"expected a call, got {shortened(value)}")
    named = [name for name in _ARGUMENTS if name in value]
    if len(named) > 1 or not set(value) <= _KNOWN_KEYS:
        raise BadCall(f"expected name and arguments, got the keys {', '.join(value):.80}")
    arguments = value[named[0]] if named else None
    if isinstance(arguments, str):
        arguments = _json(arguments) if arguments.strip() else {}
    if arguments is None and not (named or len(value) == 1):
        raise BadCall(f"expected name and arguments, got {shortened(value)}")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise BadCall(f"expected an object of arguments, got {shortened(arguments)}")
    return Call(value["name"], dict(arguments))


# --- Comparing


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
            elif not self._may_be_missing(name, accepted, tool, gold.several):
                wrong.append(Difference(name, "is missing"))
        for name, value in call.arguments.items():
            if name in gold.accepted:
                continue
            if name not in tool.arguments:
                wrong.append(Difference(name, "is no argument of this tool"))
            elif not self._is_default(name, value, tool):
                wrong.append(Difference(name, f"is not asked for, got {shortened(value)}"))
        return wrong

    def _may_be_missing(self, name: str, accepted: list[Any], tool: Tool, several: bool) -> bool:
        if name in tool.required:
            return False
        if several and "" in accepted:
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
        if isinstance(gold, dict):
            return isinstance(value, dict) and self._fits_object(gold, value, several)
        if isinstance(gold, list):
            if not isinstance(value, list) or len(value) != len(gold):
                return False
            pairs = zip(gold, value, strict=True)
            return all(self._fits(one, other, "", several) for one, other in pairs)
        if isinstance(gold, str) and isinstance(value, str):
            return self._text(gold) == self._text(value)
        if isinstance(gold, str) and kind in _NUMBERS and isinstance(value, (int, float)):
            # A dataset writes "5" where its own schema says that it is a number.
            gold = _loaded(gold)
        return not isinstance(value, (dict, list)) and same_scalar(gold, value)

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

    def pairs(self, golds: Sequence[GoldCall], calls: Sequence[Call]) -> dict[int, int]:
        """As many golds as can be with a call that is right, by their indexes."""
        return matched(golds, calls, lambda gold, call: not self.differences(gold, call))


def with_calls(message: Any) -> Any:
    """A message whose calls a parser has split off, as OpenAI's API has them, with them in its text
    again; any other as it is.

    >>> function = {"name": "add", "arguments": '{"a": 1}'}
    >>> with_calls({"role": "assistant", "content": None, "tool_calls": [{"function": function}]})["content"]
    '<tool_call>\\n{"name": "add", "arguments": {"a": 1}}\\n</tool_call>'
    """
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(calls, (list, tuple)) or not calls:
        return message
    written = []
    for call in calls:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            return message
        # A text of JSON stays as the model wrote it, to be read strictly.
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, default=str)
        name = json.dumps(function.get("name"), ensure_ascii=False, default=str)
        text = f'{{"name": {name}, "arguments": {arguments.strip() or "{}"}}}'
        written.append(f"<tool_call>\n{text}\n</tool_call>")
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": "\n".join(written)}]}
    parts = [content] if isinstance(content, str) and content.strip() else []
    return {**message, "content": "\n".join([*parts, *written])}


def in_hermes(calls: Iterable[Call]) -> str:
    """Calls as Hermes and Qwen write them."""
    lines = []
    for call in calls:
        written = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        lines.append(f"<tool_call>\n{written}\n</tool_call>")
    return "\n".join(lines)
