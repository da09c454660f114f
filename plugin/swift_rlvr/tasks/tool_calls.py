"""Calls of tools: `tool_calls:FILE`, a question or a conversation, the tools and the right calls.

Read are the columns of xLAM (`query`, `tools`, `answers`), of BFCL (`question`, `function`, and
`ground_truth` from its folder possible_answer), of ms-swift and OpenAI (`tools` and `messages`, of
which the last turns are the right calls) and of ToolACE (`system`, which holds the tools, and
`conversations`). A conversation that ends with what the assistant says of the results of its calls is
read up to the last of these calls. An assistant that answers a question in words makes no call, and
none is right.

The tools become a part of the system turn, in the words of Qwen's and Hermes's chat templates, unless
the prompt holds them already. Calls and results of earlier turns are written as those templates write
them. So the prompt is the same for every trainer, model and evaluation. With `native_tools` they stay
out of the text: the row has them in the column `tools`, from which ms-swift and chat templates write
them as the model knows them, and earlier calls and results are turns of their own.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import (
    MESSAGES,
    NAMES,
    VARIABLES,
    find_columns,
    parsed,
    unused_passages,
    value_at,
)
from swift_rlvr.tasks.own import ROLES
from swift_rlvr.tasks.pictures import pictures_of_parts, text_of_parts
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    asked_text,
    columns_named,
    normalised,
    prompt_text,
    shown,
)
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX, Settings, setting
from swift_rlvr.verifiers.answer_forms import CALLS as ASKED_CALLS
from swift_rlvr.verifiers.answer_forms import TAGS, answer_alone, asked_form
from swift_rlvr.verifiers.json_values import NotJson, values_in
from swift_rlvr.verifiers.tool_calls import (
    BadCall,
    GoldCall,
    Tool,
    has_call,
    in_hermes,
    read_golds,
    read_tools,
)

# The usual names of the columns, the likeliest first.
TOOLS = ("functions", "tools", "function", "available_tools", "apis", "tool_list")
CALLS = (
    *("calls", "answers", "possible_answer", "ground_truth", "expected_calls", "tool_calls"),
    *("function_calls", "expected_tool_calls", "gold", "answer", "expected_answer", "solution"),
    *("target", "completion", "output", "response"),
)
# Roles of a turn that makes calls, and of one that brings results.
_CALLING = ("tool_call", "function_call")
_RESULTS = ("tool", "tool_response", "observation", "function", "ipython")
# The roles of the other turns.
_SPEAKERS = {"system": "system", "user": "user", "assistant": "assistant", **ROLES}
# What Qwen's and Hermes's chat templates write of the tools.
TOOLS_IN_WORDS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""

Turn = dict[str, str]


@dataclass(frozen=True)
class ToolSettings(Settings):
    """How a prompt shows its tools."""

    native_tools: bool = setting(
        False, "Hand tools to ms-swift and chat templates as the column tools, not as text."
    )


@dataclass(frozen=True)
class _Asked:
    """What a row holds. said: the calls in the words of the row's own assistant, where it has them.
    native: the turns without the tools, calls and results as ms-swift has them; None if the
    tools stand in the row's own system turn.
    """

    messages: list[Turn]
    native: list[Turn] | None
    tools: list[Tool]
    golds: list[GoldCall]
    said: str | None


def _read(row: Row) -> _Asked:
    """RowError if a row lacks something, or it cannot be used."""
    native = _turns_of(row)
    tools = _tools_of(row, native)
    calls_in_columns = [value_at(row, name) for name in columns_named(CALLS, row)]
    if all(value in (None, "") for value in calls_in_columns):
        native = _up_to_the_last_calls(native, tools)
    # The right answer ends the conversation, where that has one.
    before = list(native)
    answer: list[Turn] = []
    while before and before[-1]["role"] in ("assistant", "tool_call"):
        answer.insert(0, before.pop())
    # What the assistant says beside its calls is no part of the right answer.
    calls = [turn for turn in answer if turn["role"] == "tool_call"]
    last = _as_texts(calls or answer)[0] if answer else None
    turns = _as_texts(before)
    if not turns or turns[-1]["role"] != "user":
        raise RowError("problem", f"expected a question before the calls, got {shown(last)}")
    golds, said = _golds_of(row, last, tools)

    of_system: list[str] = []
    others: list[Turn] = []
    for turn in turns:
        if turn["role"] == "system":
            of_system.append(turn["content"])
        else:
            others.append(turn)
    system = "\n".join(of_system)
    if all(tool.name in system for tool in tools):
        return _Asked(turns, None, tools, golds, said)
    descriptions = [json.dumps(tool.as_json(), ensure_ascii=False) for tool in tools]
    words = TOOLS_IN_WORDS.format(tools="\n".join(descriptions))
    system = f"{system}\n\n{words}" if system else words
    messages = [{"role": "system", "content": system}, *others]
    return _Asked(messages, before, tools, golds, said)


def _turns_of(row: Row) -> list[Turn]:
    """The turns of the row's conversation or question, as ms-swift has them."""
    used = columns_named((*TOOLS, *CALLS), row)
    for column in (*columns_named(MESSAGES, row), *find_columns(row)["problem"]):
        value = value_at(row, column)
        if value is None or column in used:
            continue
        native = _conversation(value, column)
        system = row.get("system")
        if isinstance(system, str) and system.strip() and native[0]["role"] != "system":
            native.insert(0, {"role": "system", "content": system.strip()})
        return native
    where = ", ".join(map(str, row)) or "none"
    problem = f"no question in the columns {where}; set {VARIABLES['problem']} to name another"
    raise RowError("problem", problem)


def _up_to_the_last_calls(native: list[Turn], tools: Sequence[Tool]) -> list[Turn]:
    """The turns without the results with which an agent's conversation ends, and what it says of them."""
    turns = list(native)
    while turns and turns[-1]["role"] == "assistant" and not has_call(turns[-1]["content"], tools):
        turns.pop()
    if not turns or turns[-1]["role"] != "tool_response":
        return native
    while turns and turns[-1]["role"] == "tool_response":
        turns.pop()
    return turns if turns and turns[-1]["role"] in ("assistant", "tool_call") else native


def _conversation(value: Any, column: str) -> list[Turn]:
    """The turns of a conversation in ms-swift's roles: each call is a turn of its own, and so is each
    result.
    """
    value = parsed(value)
    if isinstance(value, str):
        value = [{"role": "user", "content": value.strip()}]
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], (list, tuple)):
        value = value[0]  # BFCL's list of turns, each a list of messages
    if pictures_of_parts(value):
        raise RowError("problem", "a task of tool calls has no pictures", in_file=column)
    turns: list[Turn] = []
    for message in value if isinstance(value, (list, tuple)) else ():
        if isinstance(message, Mapping):
            turns += _turns_of_message(message, column)
    if not any(turn["role"] == "user" and turn["content"] for turn in turns):
        raise RowError("problem", f"expected a question, got {shown(value)}", in_file=column)
    return turns


def _turns_of_message(message: Mapping[str, Any], column: str) -> list[Turn]:
    role = str(message.get("role", message.get("from"))).casefold()
    content = text_of_parts(message.get("content", message.get("value")))
    if role in _CALLING:
        return _calls_of(content, column)
    if role not in _SPEAKERS and role not in _RESULTS:
        known = ", ".join([*_SPEAKERS, *_CALLING, *_RESULTS])
        problem = f"expected one of the roles {known}, got {role!r:.60}"
        raise RowError("problem", problem, in_file=column)
    text = ""
    if isinstance(content, str):
        text = content.strip()
    elif content is not None:
        # Anthropic's tool_use and the like: as a text the call would be lost, and no call be right.
        for part in content if isinstance(content, (list, tuple)) else ():
            if role not in _RESULTS and isinstance(part, Mapping) and "type" in part:
                problem = (
                    f"expected parts of the type text, and calls in tool_calls, got {shown(part)}"
                )
                raise RowError("problem", problem, in_file=column)
        text = json.dumps(content, ensure_ascii=False)
    if role in _RESULTS:
        # Hermes's own rows have the tags that are written around it.
        text = text.removeprefix("<tool_response>").removesuffix("</tool_response>").strip()
        return [{"role": "tool_response", "content": text}]
    # `function_call` is OpenAI's older form, of one call.
    calls = message.get("tool_calls") or message.get("function_call")
    said = [{"role": _SPEAKERS[role], "content": text}]
    if not calls:
        return said
    return [*(said if text else []), *_calls_of(calls, column)]


def _calls_of(value: Any, column: str) -> list[Turn]:
    """A turn for each call, with its JSON."""
    value = parsed(value)
    turns = []
    for each in value if isinstance(value, (list, tuple)) else [value]:
        each = parsed(each)
        function = each.get("function", each) if isinstance(each, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RowError("problem", f"expected a call, got {shown(each)}", in_file=column)
        written = function.get("arguments", function.get("parameters"))
        arguments = parsed(written)
        arguments = arguments if isinstance(arguments, dict) else {}
        if isinstance(written, Mapping):
            # A table gives every call the arguments of all, as null.
            arguments = {name: value for name, value in arguments.items() if value is not None}
        call = {"name": function["name"], "arguments": arguments}
        turns.append({"role": "tool_call", "content": json.dumps(call, ensure_ascii=False)})
    return turns


def _as_texts(native: Iterable[Turn]) -> list[Turn]:
    """The turns with calls and results as Hermes writes them; turns of one role are one."""
    turns: list[Turn] = []
    for turn in native:
        role, content = turn["role"], turn["content"]
        if role == "tool_response":
            role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
        elif role == "tool_call":
            role, content = "assistant", f"<tool_call>\n{content}\n</tool_call>"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n{content}"
        else:
            turns.append({"role": role, "content": content})
    return turns


def _tools_of(row: Row, turns: Iterable[Turn]) -> list[Tool]:
    """The tools of a row, of its columns or of the system turn, which ToolACE's rows have instead."""
    for column in columns_named(TOOLS, row):
        value = value_at(row, column)
        if value in (None, "", [], "[]"):
            continue
        try:
            return read_tools(value)
        except BadCall as error:
            raise RowError("tools", str(error), "tools that cannot be read", column) from None
    system = "\n".join(turn["content"] for turn in turns if turn["role"] == "system")
    try:
        texts = values_in(system)
    except NotJson:
        texts = []
    # It may show an example of a call in JSON, too, which is no list of tools.
    for text in texts:
        if text.startswith("["):
            try:
                return read_tools(text)
            except BadCall:
                continue
    where = ", ".join(map(str, row)) or "none"
    raise RowError("tools", f"no tools in the columns {where}, and none in a system turn")


def _golds_of(
    row: Row, last: Turn | None, tools: Sequence[Tool]
) -> tuple[list[GoldCall], str | None]:
    """The right calls, of a column or of the assistant's last turn, and its own words for them."""
    for column in columns_named(CALLS, row):
        value = value_at(row, column)
        if value is None or value == "":
            continue
        try:
            return read_golds(value, tools), None
        except BadCall as error:
            label = "calls that cannot be read"
            raise RowError("calls", f"the right calls: {error}", label, column) from None
    if last is not None:
        if not has_call(last["content"], tools):
            return [], None
        try:
            return read_golds(last["content"], tools), last["content"]
        except BadCall as error:
            label = "calls that cannot be read"
            raise RowError("calls", f"the assistant's last turn: {error}", label) from None
    where = ", ".join(map(str, row)) or "none"
    flag = """--columns '{"NAME OF THE CALLS": "calls"}'"""
    raise RowError("calls", f"no right calls in the columns {where}; rename them with {flag}")


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `functions` and `calls` in JSON, `task`, and with
    `native_tools` the column `tools`.
    """
    asked = _read(row)
    tools = [tool.as_json() for tool in asked.tools]
    calls: list[dict[str, Any]] = []
    for gold in asked.golds:
        if gold.several:
            calls.append({gold.name: gold.accepted})
        else:
            arguments = {name: values[0] for name, values in gold.accepted.items()}
            calls.append({"name": gold.name, "arguments": arguments})
    prepared = {
        "messages": asked.messages,
        "functions": json.dumps(tools, ensure_ascii=False),
        "calls": json.dumps(calls, ensure_ascii=False),
        "task": "tool_calls",
    }
    if ToolSettings.from_environment().native_tools and asked.native is not None:
        for before, turn in pairwise(asked.native):
            if (before["role"], turn["role"]) == ("tool_response", "user"):
                problem = "a result is followed by a question; ms-swift's templates"
                problem += " want a turn of the assistant between them"
                raise RowError("problem", problem, "turns that no template takes")
        prepared["messages"] = asked.native
        prepared["tools"] = prepared["functions"]
    return prepared


def refuse_native_tools(rows: Iterable[Row], trainer: str) -> None:
    """InputError if rows hand on tools to a trainer that would show the model none."""
    for row in rows:
        if row.get("task") == TASK.name and row.get("tools"):
            variable = f"{PREFIX}NATIVE_TOOLS"
            raise InputError(
                f"{trainer} shows the model no column tools; unset {variable}, and the tools stand in "
                "the prompt",
                "dataset",
            )


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    asked = _read(row)
    names = [tool.name for tool in asked.tools]
    return normalised("\n".join([asked_text(asked.messages), *names]))


def gold(row: Row) -> Gold | None:
    """The right calls of a raw row; None if no call is right."""
    asked = _read(row)
    if not asked.golds:
        return None
    tools = {tool.name: tool for tool in asked.tools}
    calls = [gold.example(tools[gold.name]) for gold in asked.golds]
    return Gold(asked.said or in_hermes(calls))


@dataclass(frozen=True)
class ToolCallTask(Task):
    """A task whose columns may be called anything that is usual, and whose answers are calls alone."""

    any_columns: ClassVar[bool] = True

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        present = list(present)
        conversations = columns_named(MESSAGES, present)
        questions = [*conversations, *find_columns(present)["problem"]]
        # A conversation may hold the tools, in its system turn, and the right calls, in its last one.
        tools = [*columns_named(TOOLS, present), *columns_named(("system",), present), *questions]
        calls = [*columns_named(CALLS, present), *conversations]
        return {"problem": questions, "tools": tools, "calls": calls}

    def unused(self, row: Row) -> list[str]:
        used = columns_named((*TOOLS, *CALLS, *MESSAGES, *NAMES["problem"], "system"), row)
        return unused_passages(row, used, prompt_text(_read(row).messages))

    def names_of(self, column: str) -> Sequence[str]:
        return {"problem": NAMES["problem"], "tools": TOOLS, "calls": CALLS}[column]

    def variable_of(self, column: str) -> str | None:
        return VARIABLES.get(column)

    def form_of(self, prompt: str) -> str | None:
        return TAGS if asked_form(prompt) == TAGS else ASKED_CALLS

    def completion(
        self, prompt: str, reasoning: str, answer: str, thinking_opened: bool = False
    ) -> str:
        return answer_alone(prompt, reasoning, answer, thinking_opened)


_WEATHER = {
    "name": "get_weather",
    "description": "The weather of a day.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 1},
        },
        "required": ["city"],
    },
}
TASK = ToolCallTask(
    name="tool_calls",
    columns=("problem", "tools", "calls"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system="",
    prompt=TOOLS_IN_WORDS,
    reward_columns=("functions", "calls"),
    verifier="external_tool_call",
    further_rewards=(),
    examples=(
        {
            "problem": "What will the weather in Bonn be like on the next three days?",
            "tools": json.dumps([_WEATHER]),
            "answers": '[{"name": "get_weather", "arguments": {"city": "Bonn", "days": 3}}]',
        },
        {
            "problem": "And in Ulm today?",
            "tools": [{"type": "function", "function": _WEATHER}],
            "calls": [{"get_weather": {"city": ["Ulm"], "days": [1, ""]}}],
        },
    ),
)
