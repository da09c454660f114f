"""The ways to write calls that begin with a mark: each with a function that reads it."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from swift_rlvr.verifiers.json_values import NOT_JSON, TWO_VALUES, NotJson, read_json
from swift_rlvr.verifiers.tool_calls.calls import BadCall, Call, Tool
from swift_rlvr.verifiers.tool_calls.gemma import FORMS as GEMMA
from swift_rlvr.verifiers.tool_calls.gemma import BadGemmaCall, calls_and_rest
from swift_rlvr.verifiers.tool_calls.json_calls import (
    arguments_of,
    calls_in_a_row,
    calls_of,
    once_each,
    value_of,
)
from swift_rlvr.verifiers.tool_calls.python_calls import CONSTANTS

Tools = Mapping[str, Tool]


class Reading(NamedTuple):
    """The calls of a text, in order, and what stands around them."""

    calls: list[Call]
    rest: str


class Format(NamedTuple):
    """A way to write calls. marks: what begins or ends a call, by which the format is known."""

    marks: tuple[str, ...]
    read: Callable[[str, Tools], Reading]


# --- Values


def _json_or_text(text: str) -> Any:
    """What a value is that does not say whether it is JSON or a text."""
    try:
        return read_json(text)
    except NotJson as error:
        if error.reason in (NOT_JSON, TWO_VALUES):
            return text
        raise BadCall(f"{error.reason}: {error}") from None


def _type_of(argument: str, function: str, tools: Tools) -> str:
    return tools[function].type_of(argument) if function in tools else ""


def _typed(text: str, argument: str, function: str, tools: Tools) -> Any:
    """A value of a call in XML. As the reader of vLLM does it: a text is what is written, all else
    is JSON. Templates write constants as Python has them.
    """
    if _type_of(argument, function, tools) == "string":
        return text
    if text in ("True", "False", "None"):
        return CONSTANTS[text.lower()]
    return _json_or_text(text)


# --- Hermes, Qwen and GLM, within <tool_call>, and Qwen3-Coder's <function=...>, within it or alone

# A call ends before the next one begins, so that many that are never closed are read in one pass.
_TAGGED = re.compile(r"<tool_call>((?:(?!</?tool_call>).)*)</tool_call>", re.DOTALL)
_XML_CALL = re.compile(r"<function=([^<>\n]+)>((?:(?!</?function\b).)*)</function>", re.DOTALL)
_XML_ARGUMENT = re.compile(
    r"<parameter=([^<>\n]+)>\n?((?:(?!</?parameter\b).)*?)\n?</parameter>", re.DOTALL
)
_GLM_CALL = re.compile(r"([^\n<>{}]*[^\s<>{}])\s*((?:<arg_key>.*</arg_value>)?)", re.DOTALL)
_GLM_ARGUMENT = re.compile(
    r"<arg_key>([^<>]+)</arg_key>\s*<arg_value>((?:(?!</?arg_).)*)</arg_value>\s*", re.DOTALL
)


def _read_tagged(text: str, tools: Tools) -> Reading:
    if "tool_call>" not in text:
        return _read_xml(text, tools)
    calls = []
    for content in _TAGGED.findall(text):
        if "<function=" in content:
            inside, around = _read_xml(content, tools)
            if around.strip():
                raise BadCall(f"there is text around a function: {around.strip()!r:.80}")
            calls += inside
        elif "<arg_key>" in content or content.strip() in tools:
            calls.append(_glm_call(content.strip(), tools))
        else:
            calls += calls_in_a_row(content)
    return Reading(calls, _TAGGED.sub("", text))


def _read_xml(text: str, tools: Tools) -> Reading:
    calls = []
    for written, content in _XML_CALL.findall(text):
        name = written.strip()
        if content.strip().startswith("{"):  # Llama 3.1's
            calls.append(Call(name, arguments_of(value_of(content))))
            continue
        arguments = []
        for argument, value in _XML_ARGUMENT.findall(content):
            arguments.append((argument, _typed(value, argument, name, tools)))
        if _XML_ARGUMENT.sub("", content).strip():
            raise BadCall(f"the arguments of {name!r:.80} cannot be read")
        calls.append(Call(name, once_each(arguments)))
    return Reading(calls, _XML_CALL.sub("", text))


def _glm_call(content: str, tools: Tools) -> Call:
    """A call of GLM's: the name, and each argument's key and value."""
    call = _GLM_CALL.fullmatch(content)
    if call is None or _GLM_ARGUMENT.sub("", call[2]):
        raise BadCall(f"the arguments of {content!r:.80} cannot be read")
    arguments = []
    for key, value in _GLM_ARGUMENT.findall(call[2]):
        argument = key.strip()
        arguments.append((argument, _typed(value, argument, call[1], tools)))
    return Call(call[1], once_each(arguments))


# --- Gemma: call:name{...}


def _read_gemma(text: str, tools: Tools) -> Reading:
    try:
        written, rest = calls_and_rest(text)
    except BadGemmaCall as error:
        raise BadCall(str(error)) from None
    calls = []
    for name, values in written:
        arguments = {}
        for argument, value in values.items():
            # FunctionGemma writes numbers as texts, too.
            is_other = _type_of(argument, name, tools) not in ("", "string")
            if is_other and isinstance(value, str):
                value = _json_or_text(value)
            arguments[argument] = value
        calls.append(Call(name, arguments))
    return Reading(calls, rest)


# --- DeepSeek to V3.1, between tokens; V3 and R1 have their JSON in a block of Markdown

_DEEPSEEK = "<｜tool▁call"
_DEEPSEEK_CALL = re.compile(
    r"<｜tool▁call▁begin｜>((?:(?!<｜tool▁call).)*)<｜tool▁call▁end｜>", re.DOTALL
)
_DEEPSEEK_AROUND = re.compile(r"<｜tool▁calls▁begin｜>\s*(?:<｜tool▁calls▁end｜>|$)")
_DEEPSEEK_BLOCK = re.compile(r"([^\n]+)\n```json\n(.*)\n```\s*", re.DOTALL)


def _read_deepseek(text: str, tools: Tools) -> Reading:
    calls = []
    for content in _DEEPSEEK_CALL.findall(text):
        name, _, arguments = content.partition("<｜tool▁sep｜>")
        block = _DEEPSEEK_BLOCK.fullmatch(arguments)
        if name.strip() == "function" and block is not None:
            name, arguments = block.groups()
        calls.append(Call(name.strip(), arguments_of(value_of(arguments))))
    return Reading(calls, _DEEPSEEK_AROUND.sub("", _DEEPSEEK_CALL.sub("", text)))


# --- Kimi's, between tokens: functions.name:0 before the arguments, of which 0 counts the calls

_KIMI = "<|tool_call_begin|>"
# The tokens at the end of an answer are no part of it.
_KIMI_CALL = re.compile(
    r"<\|tool_call_begin\|>([^<>]+)<\|tool_call_argument_begin\|>"
    r"((?:(?!<\|tool_call).)*)(?:<\|tool_call_end\|>|$)",
    re.DOTALL,
)
_KIMI_AROUND = re.compile(r"<\|tool_calls_section_begin\|>\s*(?:<\|tool_calls_section_end\|>|$)")


def _read_kimi(text: str, tools: Tools) -> Reading:
    calls = []
    for written, arguments in _KIMI_CALL.findall(text):
        name, _, number = written.strip().removeprefix("functions.").rpartition(":")
        if not name or not number.isdecimal():
            raise BadCall(f"expected functions.name:0, got {written!r:.80}")
        calls.append(Call(name, arguments_of(value_of(arguments))))
    return Reading(calls, _KIMI_AROUND.sub("", _KIMI_CALL.sub("", text)))


# --- Elements of XML: DeepSeek since V3.2, in DSML, and MiniMax

_DSML = "｜DSML｜"
_MINIMAX = "<minimax:tool_call>"


class _Invocations:
    """Reads ``<invoke name="add"><parameter name="a">1</parameter></invoke>``.

    prefix: what stands before the names of elements. around: the element in which calls stand.
    """

    def __init__(self, prefix: str, around: str):
        self.call = re.compile(
            rf'<{prefix}invoke name="([^"<>\n]+)">'
            rf"((?:(?!</?{prefix}invoke).)*)</{prefix}invoke>",
            re.DOTALL,
        )
        # In DSML an argument says whether it is a text.
        self.argument = re.compile(
            rf'<{prefix}parameter name="([^"<>\n]+)"(?: string="(true|false)")?>'
            rf"((?:(?!</?{prefix}parameter).)*)</{prefix}parameter>",
            re.DOTALL,
        )
        self.around = re.compile(rf"<({around})>\s*(?:</\1>|$)")

    def __call__(self, text: str, tools: Tools) -> Reading:
        calls = []
        for name, content in self.call.findall(text):
            arguments = []
            for argument, is_text, value in self.argument.findall(content):
                if is_text == "true":
                    arguments.append((argument, value))
                elif is_text == "false":
                    arguments.append((argument, value_of(value)))
                else:
                    arguments.append((argument, _typed(value, argument, name, tools)))
            if self.argument.sub("", content).strip():
                raise BadCall(f"the arguments of {name!r:.80} cannot be read")
            calls.append(Call(name, once_each(arguments)))
        return Reading(calls, self.around.sub("", self.call.sub("", text)))


# --- Mistral: [TOOL_CALLS] before a list, and in its newer way before each name[ARGS]{...}

_MISTRAL = "[TOOL_CALLS]"
_MISTRAL_CALL = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\w+\s*)?(?:\[ARGS\]\s*)?(?=\{)")


def _read_mistral(text: str, tools: Tools) -> Reading:
    before, _, written = text.partition(_MISTRAL)
    written = written.strip()
    if written.startswith(("[{", "[ ", "[\n", "{")):
        return Reading(calls_of(written), before)
    calls = []
    for part in written.split(_MISTRAL):
        head = _MISTRAL_CALL.match(part)
        if head is None:
            raise BadCall(f"expected a name and its arguments, got {part!r:.80}")
        calls.append(Call(head[1], arguments_of(value_of(part[head.end() :]))))
    return Reading(calls, before)


# --- Phi-4 and Granite: a token before a list

_LISTED = "<|tool_call|>"
_END_OF_LIST = "<|/tool_call|>"


def _read_listed(text: str, tools: Tools) -> Reading:
    before, _, written = text.partition(_LISTED)
    return Reading(calls_of(written.strip().removesuffix(_END_OF_LIST)), before)


# The first whose mark is in a text reads it; a mark of another one in what it leaves is a further call.
FORMATS = (
    Format(tuple(GEMMA), _read_gemma),
    Format((_DEEPSEEK,), _read_deepseek),
    Format((_KIMI,), _read_kimi),
    Format((_DSML,), _Invocations("｜DSML｜", "｜DSML｜(?:function_calls|tool_calls)")),
    Format((_MINIMAX,), _Invocations("", "minimax:tool_call")),
    Format((_LISTED,), _read_listed),
    Format(("<tool_call>", "</tool_call>", "<function="), _read_tagged),
    Format((_MISTRAL,), _read_mistral),
)
# Llama's marks stand before calls in JSON or Python, which are read without them.
PYTHON_TAG = "<|python_tag|>"
PYTHON_START = "<|python_start|>"
MARKS = (
    *[mark for each in FORMATS for mark in each.marks],
    "<arg_key>",
    PYTHON_TAG,
    PYTHON_START,
)
