"""The ways to write calls that begin with a mark: one table, a row for each form.

What models write is known from the readers of vLLM (`vllm/tool_parsers`) and from ms-swift's agent
templates, which also ask for calls in ways of their own (ReAct). ms-swift decodes special tokens with the
text, TRL leaves them out.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from swift_rlvr.verifiers.json_values import NOT_JSON, TWO_VALUES, NotJson, read_json
from swift_rlvr.verifiers.tool_calls.calls import BadCall, Call, Tool
from swift_rlvr.verifiers.tool_calls.gemma import FORMS as GEMMA
from swift_rlvr.verifiers.tool_calls.gemma import calls_and_rest
from swift_rlvr.verifiers.tool_calls.json_calls import (
    arguments_of,
    call_of,
    calls_in_a_row,
    once_each,
    value_of,
)
from swift_rlvr.verifiers.tool_calls.minimax_m3 import NAMESPACE as MINIMAX_M3
from swift_rlvr.verifiers.tool_calls.minimax_m3 import arguments_and_values
from swift_rlvr.verifiers.tool_calls.python_calls import CONSTANTS, PythonReader

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


def _typed(text: str, kind: str) -> Any:
    """A value of a call in tags. As the readers of vLLM do it: a text is what is written, all else
    is JSON. Templates write constants as Python has them, and models objects and lists.
    """
    if kind == "string":
        return text
    if text in ("True", "False", "None"):
        return CONSTANTS[text.lower()]
    value = _json_or_text(text)
    if kind in ("object", "array") and isinstance(value, str):
        return PythonReader({}).value(text)
    return value


# --- Calls in <tool_call>, and in tags of that kind: JSON of Hermes and Qwen, <function=...> of
# Qwen3-Coder, with or without a tag around it, keys and values of GLM

# Seed-OSS, LongCat and K2 Horizon have tags of their own, and Hunyuan 3 writes <tool_call:opensource>.
_TAG = r"(?:seed:|longcat_|ifm\|)?tool_call(?::\w+)?"
_KEY = r"(?:ifm\|)?(?:arg|param)_key(?::\w+)?"
_VALUE = r"(?:ifm\|)?(?:arg|param)_value(?::\w+)?"
_TYPE = r"<ifm\|arg_type>(\w+)</ifm\|arg_type>\s*"
_TOOL_SEP = re.compile(r"<tool_sep(?::\w+)?>")
# A call ends before the next one begins, so that many that are never closed are read in one pass.
_TAGGED = re.compile(rf"<({_TAG})>((?:(?!</?{_TAG}>).)*)</\1>", re.DOTALL)
# MiniMax M1, Jamba and Hunyuan A13B write all calls in one tag.
_LISTED = re.compile(r"<(tool_calls)>((?:(?!</?tool_calls>).)*)</\1>", re.DOTALL)
# Granite 3.1 never closes the tag before its list.
_OPEN_LIST = re.compile(rf"<(tool_call)>(\s*\[(?:(?!</?{_TAG}>).)*)\Z", re.DOTALL)
_TAGS = (_TAGGED, _LISTED, _OPEN_LIST)
_AROUND_TAGS = re.compile(r"<((?:ifm\|)?tool_calls(?::\w+)?)>\s*(?:</\1>|\Z)")
_XML_CALL = re.compile(r"<function=([^<>\n]+)>((?:(?!</?function\b).)*)</function>", re.DOTALL)
_XML_ARGUMENT = re.compile(
    r"<parameter=([^<>\n]+)>\n?((?:(?!</?parameter\b).)*?)\n?</parameter>", re.DOTALL
)
_PAIRED_CALL = re.compile(
    rf"([^\n<>{{}}]*[^\s<>{{}}])\s*(?:{_TOOL_SEP.pattern}\s*)?((?:<{_KEY}>.*</{_VALUE}>)?)",
    re.DOTALL,
)
_PAIR = re.compile(
    rf"<({_KEY})>([^<>]+)</\1>\s*(?:{_TYPE})?<({_VALUE})>((?:(?!</?{_KEY}|</?{_VALUE}).)*)</\4>\s*",
    re.DOTALL,
)


def _read_tagged(text: str, tools: Tools) -> Reading:
    pattern = next((each for each in _TAGS if each.search(text)), None)
    if pattern is None:
        return _read_functions(text, tools)
    calls = []
    for _, content in pattern.findall(text):
        if "<function=" in content:
            inside, around = _read_functions(content, tools)
            if around.strip():
                raise BadCall(f"there is text around a function: {around.strip()!r:.80}")
            calls += inside
        elif re.search(f"<{_KEY}>", content) or _TOOL_SEP.sub("", content).strip() in tools:
            # GLM's name, and each argument's key and value
            named = _PAIRED_CALL.fullmatch(content.strip())
            if named is None or _PAIR.sub("", named[2]):
                raise BadCall(f"the arguments of {content.strip()!r:.80} cannot be read")
            arguments = []
            for _, key, declared, _, value in _PAIR.findall(named[2]):
                argument = key.strip()
                kind = declared or _type_of(argument, named[1], tools)
                arguments.append((argument, _typed(value, kind)))
            calls.append(Call(named[1], once_each(arguments)))
        else:
            calls += calls_in_a_row(content)
    return Reading(calls, _AROUND_TAGS.sub("", pattern.sub("", text)))


def _read_functions(text: str, tools: Tools) -> Reading:
    calls = []
    for written, content in _XML_CALL.findall(text):
        name = written.strip()
        if content.strip().startswith("{"):  # Llama 3.1's
            calls.append(Call(name, arguments_of(value_of(content))))
            continue
        arguments = []
        for argument, value in _XML_ARGUMENT.findall(content):
            arguments.append((argument, _typed(value, _type_of(argument, name, tools))))
        if _XML_ARGUMENT.sub("", content).strip():
            raise BadCall(f"the arguments of {name!r:.80} cannot be read")
        calls.append(Call(name, once_each(arguments)))
    return Reading(calls, _XML_CALL.sub("", text))


# --- Calls between two marks, in JSON or Python


class _Between:
    """Reads what stands between two marks, which are patterns, with a function that says which calls
    it makes. The second mark may be missing at the end, where special tokens are no part of an
    answer. Without a second one a call ends where the next begins.

    around: a pattern of what is written around the marks.
    """

    def __init__(
        self,
        start: str,
        end: str = "",
        calls: Callable[[str, Tools], list[Call]] = lambda content, _: calls_in_a_row(content),
        around: str = "",
    ):
        inner = rf"((?:(?!{start}{'|' + end if end else ''}).)*)"
        self.block = re.compile(rf"{start}{inner}(?:{end or f'(?={start})'}|\Z)", re.DOTALL)
        self.calls = calls
        self.around = re.compile(around or r"\Z")

    def __call__(self, text: str, tools: Tools) -> Reading:
        calls = []
        for content in self.block.findall(text):
            calls += self.calls(content, tools)
        return Reading(calls, self.around.sub("", self.block.sub("", text)))


def by_their_names(content: str, _: Tools) -> list[Call]:
    """Apertus's calls: `[{"add": {"a": 1}}]`."""
    value = value_of(content)
    calls = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and len(each) == 1 and "name" not in each:
            ((name, arguments),) = each.items()
            calls.append(Call(name, arguments_of(arguments)))
        else:
            calls.append(call_of(each))
    return calls


def _python_or_json(content: str, tools: Tools) -> list[Call]:
    program = PythonReader(tools).read(content)
    if program is None:
        return calls_in_a_row(content)
    if program.comments:
        raise BadCall(f"there is text around the calls: {program.comments[0]!r:.80}")
    return program.calls


# --- A name, and behind it an object of its arguments


class _Named:
    """Reads calls by a pattern with the groups `name` and `arguments`, an object in JSON.

    around: a pattern of what stands around all calls. in_python: whether the object may be one of
    Python's, as ms-swift writes it into the turns of ReAct.
    """

    def __init__(self, call: str, around: str = r"\Z", in_python: bool = False):
        self.call = re.compile(call, re.DOTALL)
        self.around = re.compile(around)
        self.in_python = in_python

    def __call__(self, text: str, tools: Tools) -> Reading:
        calls = []
        for match in self.call.finditer(text):
            try:
                arguments = arguments_of(match["arguments"])
            except BadCall:
                if not self.in_python:
                    raise
                arguments = arguments_of(PythonReader(tools).value(match["arguments"]))
            name = match["name"].strip()
            # The channel of gpt-oss, whose mark was a special token. A tool's name may end so, too.
            shorter = name.removesuffix("commentary")
            calls.append(
                Call(shorter if shorter in tools and name not in tools else name, arguments)
            )
        return Reading(calls, self.around.sub("", self.call.sub("", text)))


# --- Elements with attributes: <invoke name="add"><parameter name="a">1</parameter></invoke>


class _Elements:
    """Reads an element for each call, and one for each argument within it.

    call, argument: their names. around: a pattern of what stands around all calls. opening, closing,
    ending: what begins an element, what begins its end, and what ends both.
    """

    def __init__(
        self,
        call: str = "invoke",
        argument: str = "parameter",
        around: str = r"\Z",
        brackets: tuple[str, str, str] = ("<", "</", ">"),
    ):
        opening, closing, ending = brackets
        self.call = re.compile(
            rf'{opening}{call}\s+(?:name|tool)=(["\']?)(?P<name>[^"\'<>\n]+)\1(?: index="\d+")?{ending}'
            rf"(?P<content>(?:(?!(?:{opening}|{closing}){call}\b).)*){closing}{call}{ending}",
            re.DOTALL,
        )
        # DSML and Kimi K3 say of each argument whether it is a text.
        self.argument = re.compile(
            rf'{opening}{argument}\s+(?:name|key)=(["\']?)(?P<name>[^"\'<>\n]+)\1'
            rf'(?: (?:string|type)="(?P<declared>\w+)")?{ending}'
            rf"(?P<value>(?:(?!(?:{opening}|{closing}){argument}\b).)*){closing}{argument}{ending}",
            re.DOTALL,
        )
        self.around = re.compile(around)

    def __call__(self, text: str, tools: Tools) -> Reading:
        calls = []
        for match in self.call.finditer(text):
            name = match["name"]
            arguments = []
            for written in self.argument.finditer(match["content"]):
                argument, declared, value = written.group("name", "declared", "value")
                if declared in ("true", "string"):
                    arguments.append((argument, value))
                elif declared:
                    arguments.append((argument, value_of(value)))
                else:
                    if value.startswith("<![CDATA[") and value.endswith("]]>"):
                        value = value[len("<![CDATA[") : -len("]]>")]
                    arguments.append((argument, _typed(value, _type_of(argument, name, tools))))
            if self.argument.sub("", match["content"]).strip():
                raise BadCall(f"the arguments of {name!r:.80} cannot be read")
            calls.append(Call(name, once_each(arguments)))
        return Reading(calls, self.around.sub("", self.call.sub("", text)))


def _pair(tag: str) -> str:
    """A pattern of a tag with nothing in it, which may be closed."""
    return rf"<({tag})>\s*(?:</\1>|\Z)"


# --- Those that are like no other


def _read_gemma(text: str, tools: Tools) -> Reading:
    written, rest = calls_and_rest(text)
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


_MINIMAX_M3_CALL = re.compile(
    rf'{re.escape(MINIMAX_M3)}<invoke name="([^"<>\n]+)">'
    rf"((?:(?!{re.escape(MINIMAX_M3)}</?invoke\b).)*){re.escape(MINIMAX_M3)}</invoke>",
    re.DOTALL,
)
_MINIMAX_M3_AROUND = re.compile(
    rf"{re.escape(MINIMAX_M3)}<tool_call>\s*(?:{re.escape(MINIMAX_M3)}</tool_call>|\Z)"
)


def _read_minimax_m3(text: str, tools: Tools) -> Reading:
    calls = []
    for name, content in _MINIMAX_M3_CALL.findall(text):
        schemas = tools[name].arguments if name in tools else {}
        values = arguments_and_values(content, schemas, _typed)
        calls.append(Call(name, once_each(values)))
    return Reading(calls, _MINIMAX_M3_AROUND.sub("", _MINIMAX_M3_CALL.sub("", text)))


_KIMI_K3 = _Elements(
    "call",
    "argument",
    # A token of the last mark may be missing.
    r"<\|open\|>tools<\|sep\|>\s*(?:<\|close\|>tools(?:<\|sep\|>|\Z)|\Z)",
    (r"<\|open\|>", r"<\|close\|>", r"<\|sep\|>"),
)
# What is left without its tokens: toolscall tool="add" index="1"argument key="a" type="number"1argumentcalltools
_KIMI_K3_OPENING = re.compile(
    r'tools(?=call tool=")|call tool="[^"\n]+"(?: index="\d+")?|argument key="[^"\n]+" type="\w+"'
)
# The end of an argument stands before another one, or before the end of its call: a text may have the word
# in it.
_KIMI_K3_CLOSING = (
    r"argument(?=<\|open\|>argument|call(?:<\|open\|>call|tools\s*\Z|\s*\Z))",
    r"(?<=<\|sep\|>)call(?=<\|open\|>call|tools\s*\Z|\s*\Z)",
    r"(?<=<\|close\|>call<\|sep\|>)tools(?=\s*\Z)",
)


def _read_kimi_k3(text: str, tools: Tools) -> Reading:
    if "<|open|>" not in text:
        text = _KIMI_K3_OPENING.sub(r"<|open|>\g<0><|sep|>", text)
        for closing in _KIMI_K3_CLOSING:
            text = re.sub(closing, r"<|close|>\g<0><|sep|>", text)
    return _KIMI_K3(text, tools)


_MISTRAL = "[TOOL_CALLS]"
_MISTRAL_CALL = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\w+\s*)?(?:\[ARGS\]\s*)?(?=\{)")


def _read_mistral(text: str, tools: Tools) -> Reading:
    """[TOOL_CALLS] before a list, and in its newer way before each name[ARGS]{...}."""
    before, _, written = text.partition(_MISTRAL)
    written = written.strip()
    if written.startswith(("[{", "[ ", "[\n", "{")):
        # ms-swift writes a list of several calls without commas.
        inside = written[1:-1] if written.startswith("[\n{") and written.endswith("}\n]") else ""
        if "}\n{" in inside:
            return Reading(calls_in_a_row(inside), before)
        return Reading(calls_in_a_row(written), before)
    calls = []
    for part in written.split(_MISTRAL):
        head = _MISTRAL_CALL.match(part)
        if head is None:
            raise BadCall(f"expected a name and its arguments, got {part!r:.80}")
        calls.append(Call(head[1], arguments_of(value_of(part[head.end() :]))))
    return Reading(calls, before)


# The mark of gpt-oss's calls, from which its answer is read without the thinking before it.
HARMONY = " to=functions."
# That whose mark stands first in a text reads it; a mark of another one in what it leaves is a further call.
FORMATS = (
    Format(tuple(GEMMA), _read_gemma),
    # DeepSeek to V3.1; V3 and R1 have their JSON in a block of Markdown
    Format(
        ("<｜tool▁call",),
        _Named(
            r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[^<>\n]+)"
            r"(?:<｜tool▁sep｜>|\n```json\n)(?P<arguments>(?:(?!<｜tool▁call|\n```).)*)(?:\n```\s*)?"
            r"<｜tool▁call▁end｜>",
            r"<｜tool▁calls▁begin｜>\s*(?:<｜tool▁calls▁end｜>|\Z)",
        ),
    ),
    # Kimi K2's functions.name:0, of which 0 counts the calls
    Format(
        ("<|tool_call_begin|>",),
        _Named(
            r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[^<>:\n]+):\d+\s*"
            r"<\|tool_call_argument_begin\|>(?P<arguments>(?:(?!<\|tool_call).)*)"
            r"(?:<\|tool_call_end\|>|\Z)",
            r"<\|tool_calls_section_begin\|>\s*(?:<\|tool_calls_section_end\|>|\Z)",
        ),
    ),
    # gpt-oss: the recipient stands before or behind the channel.
    Format(
        (HARMONY,),
        _Named(
            r"(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?"
            r" to=functions\.(?P<name>[\w.-]+)(?:<\|channel\|>(?:commentary|analysis))?\s*"
            r"(?:(?:<\|constrain\|>|(?<=\s))(?:json|code))?\s*(?:<\|message\|>)?\s*"
            r"(?P<arguments>\{(?:(?!<\|(?:call|end|start)\|>|assistant(?:commentary| to=)).)*)"
            r"(?:<\|call\|>|<\|end\|>|(?=assistant)|\Z)",
        ),
    ),
    # PLaMo 3
    Format(
        ("<|plamo:begin_tool_name:plamo|>",),
        _Named(
            r"<\|plamo:begin_tool_request:plamo\|>\s*<\|plamo:begin_tool_name:plamo\|>(?P<name>[^<>\n]+)"
            r"<\|plamo:end_tool_name:plamo\|>\s*<\|plamo:begin_tool_arguments:plamo\|>"
            r"(?:<\|plamo:constrain\|>json<\|plamo:msg\|>)?(?P<arguments>(?:(?!<\|plamo:).)*)"
            r"<\|plamo:end_tool_arguments:plamo\|>\s*(?:<\|plamo:end_tool_request:plamo\|>|\Z)",
            r"<\|plamo:begin_tool_requests:plamo\|>\s*(?:<\|plamo:end_tool_requests:plamo\|>|\Z)",
        ),
    ),
    # DeepSeek since V3.2; V4.1 has a space before the names.
    Format(
        ("｜DSML｜",),
        _Elements(
            "｜DSML｜ ?invoke",
            "｜DSML｜ ?parameter",
            _pair("｜DSML｜ ?(?:function_calls|tool_calls|calls)"),
        ),
    ),
    Format((MINIMAX_M3,), _read_minimax_m3),
    Format(("<minimax:tool_call>",), _Elements(around=_pair("minimax:tool_call"))),
    Format(("<dots_function_call>",), _Elements(around=_pair("dots_function_call"))),
    # MuseGlimmer has each call in a message of its own.
    Format(
        ("<atem:",),
        _Elements(
            "atem:invoke",
            "atem:parameter",
            r"(?:(?:(?:<\|start\|>)?assistant)? to=[\w.-]+(?:<\|message\|>)?\s*)?"
            rf"{_pair('atem:function_calls')}"
            r"\s*(?:<\|eom\|>)?",
        ),
    ),
    # Step 3
    Format(
        ("<steptml:",),
        _Elements(
            "steptml:invoke",
            "steptml:parameter",
            r"<｜tool_calls?_(?:begin|end)｜>|function(?:<｜tool_sep｜>|(?=\s*(?:function\b|\Z)))",
        ),
    ),
    # MiniCPM5
    Format(("<function name=",), _Elements("function", "param")),
    Format(("<|open|>call", 'call tool="'), _read_kimi_k3),
    # Anthropic's, and what a decoder without special tokens leaves of DeepSeek's and MiniMax M2's
    Format(
        ("<function_calls>\n<invoke ", "<tool_calls>\n<invoke ", "<invoke name="),
        _Elements(around=_pair("(?:function|tool)_calls")),
    ),
    Format(
        (
            *("<tool_call>", "</tool_call>", "<function=", "<seed:tool_call>", "</seed:tool_call>"),
            *("<longcat_tool_call>", "</longcat_tool_call>", "<ifm|tool_call>", "</ifm|tool_call>"),
            *("<tool_call:", "</tool_call:", "<tool_calls>", "</tool_calls>", "<tool_calls:"),
            *("<ifm|tool_calls>", "</ifm|tool_calls>"),
        ),
        _read_tagged,
    ),
    # Phi-4 and Granite 3.0
    Format(("<|tool_call|>",), _Between(r"<\|tool_call\|>", r"<\|/tool_call\|>")),
    # InternLM
    Format(
        ("<|action_start|><|plugin|>",),
        _Between(r"<\|action_start\|><\|plugin\|>", r"<\|action_end\|>"),
    ),
    # Command A
    Format(("<|START_ACTION|>",), _Between(r"<\|START_ACTION\|>", r"<\|END_ACTION\|>")),
    # Inkling
    Format(
        ("<|content_invoke_tool_json|>",),
        _Between(
            r"<\|content_invoke_tool_json\|>",
            r"<\|end_message\|>",
            around=r"<\|message_model\|>\s*(?=<\|message_model\|>|\Z)",
        ),
    ),
    # GigaChat 3
    Format(
        ("<|function_call|>", "function call<|role_sep|>", "function call\n{"),
        _Between(r"(?:<\|function_call\|>|function call(?:<\|role_sep\|>|\n(?={)))"),
    ),
    # Granite 20B and Phi-4-mini
    Format(
        ("<function_call>", "</function_call>"),
        _Between("<function_call>", "</function_call>|(?=<function_call>)"),
    ),
    Format(('functools[{"',), _Between(r'functools(?=\[\{")')),
    # Apertus
    Format(
        ("<|tools_prefix|>",),
        _Between(r"<\|tools_prefix\|>", r"<\|tools_suffix\|>", by_their_names),
    ),
    # LFM2 and OLMo 3
    Format(
        ("<|tool_call_start|>",),
        _Between(r"<\|tool_call_start\|>", r"<\|tool_call_end\|>", _python_or_json),
    ),
    Format(
        ("<function_calls>", "</function_calls>"),
        _Between("<function_calls>", "</function_calls>", _python_or_json),
    ),
    Format((_MISTRAL,), _read_mistral),
    # ReAct, for which ms-swift asks models that have no agent template, and the same of Qwen's agents
    Format(
        ("\nAction Input:",),
        _Named(
            r"(?:\A|(?<=\n))Action:\s*(?P<name>[^\n]+)\nAction Input:"
            r"(?P<arguments>(?:(?!\n(?:Action|Observation|Thought|Final Answer):).)*)(?:\nObservation:\Z)?",
            in_python=True,
        ),
    ),
    Format(
        ("✿ARGS✿",),
        _Named(
            r"✿FUNCTION✿:(?P<name>[^\n✿]+)\n✿ARGS✿:(?P<arguments>(?:(?!\n✿).)*)(?:\n✿RESULT✿:?\s*\Z)?",
            in_python=True,
        ),
    ),
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
