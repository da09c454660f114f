"""The tools and the right calls of a dataset's row."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.verifiers.json_values import loosely_read, shortened
from swift_rlvr.verifiers.tool_calls.calls import NUMBERS, BadCall, Call, GoldCall, Tool
from swift_rlvr.verifiers.tool_calls.json_calls import call_of
from swift_rlvr.verifiers.tool_calls.reading import calls_in

# JSON Schema's names of types by those in datasets, as xLAM's "str, optional" or "List[int]".
_TYPES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("dict", "hashmap"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
}


def loaded(value: Any) -> Any:
    """What a text of JSON stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loosely_read(value)
    except (ValueError, RecursionError):
        return value


# --- Tools


def read_tools(value: Any) -> list[Tool]:
    """The tools of a row, a list of objects or JSON of one, as OpenAI, xLAM, BFCL, ToolACE and
    Anthropic write them; BadCall where they cannot be read.

    >>> tools = read_tools([{"name": "add", "parameters": {"a": {"type": "int"}, "b": {"type": "int", "default": 1}}}])
    >>> tools[0].name, list(tools[0].arguments), tools[0].required
    ('add', ['a', 'b'], ('a',))
    """
    value = loaded(value)
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise BadCall(f"expected a list of tools, got {shortened(value)}")
    tools = []
    for each in map(loaded, value):
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
    written = [loaded(function.get(key)) for key in ("parameters", "input_schema", "arguments")]
    parameters: Any = next(filter(None, written), {})
    if not isinstance(parameters, Mapping):
        raise BadCall(f"the parameters of {function['name']} are {shortened(parameters)}")

    properties = parameters.get("properties")
    if isinstance(properties, Mapping):
        required = parameters.get("required") or function.get("required")
        required = required if isinstance(required, (list, tuple)) else []
        required = [name for name in required if isinstance(name, str)]
    else:
        # xLAM has the arguments alone, of types such as "str, optional".
        properties = {}
        required = []
        for name, schema in parameters.items():
            if isinstance(schema, Mapping):
                properties[name] = schema
                if "default" not in schema and "optional" not in str(schema.get("type")):
                    required.append(name)

    arguments = {}
    for name, schema in properties.items():
        # A table, such as a Parquet file, gives every tool the arguments of all, as null.
        if schema is None and name not in required:
            continue
        # true says nothing of an argument.
        schema = {} if schema is None or schema is True else schema
        if not isinstance(schema, Mapping):
            raise BadCall(f"the schema of the argument {name} is {shortened(schema)}")
        arguments[name] = _with_types(schema)
    description = str(function.get("description") or "")
    return Tool(function["name"], arguments, tuple(required), description)


def _with_types(schema: Any) -> Any:
    """A schema with JSON Schema's names of types, and without what a table has padded with null."""
    if isinstance(schema, list):
        return [_with_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    named: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            word, *inner = re.findall(r"\w+", value.lower()) or [""]
            if word == "optional" and inner:  # Optional[str]
                word, *inner = inner
            named["type"] = _TYPES.get(word, word)
            is_typed_list = named["type"] == "array" and inner and "[" in value  # List[float]
            if is_typed_list and "items" not in schema:
                named["items"] = {"type": _TYPES.get(inner[0], inner[0])}
        elif key == "default" and value is not None:
            named["default"] = value
        elif value is not None:
            named[key] = _with_types(value)
    return named


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
    written = loaded(value)
    if written is None or written == "":
        raise BadCall("there is none")
    if isinstance(written, Mapping):
        written = [written]
    golds: list[GoldCall] = []
    if isinstance(written, str):
        golds += map(GoldCall.of_call, calls_in(written, tools, text_around=True))
        if not golds:
            raise BadCall(f"expected calls, got {shortened(value)}")
    elif isinstance(written, (list, tuple)):
        for each in map(loaded, written):
            if isinstance(each, str):
                golds += map(GoldCall.of_call, calls_in(each, tools))
            else:
                golds.append(_gold(each))
    else:
        raise BadCall(f"expected a list of calls, got {shortened(value)}")

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
    """The right call of an object with a name and arguments, or of a name with its arguments."""
    if not isinstance(value, Mapping):
        raise BadCall(f"expected a call, got {shortened(value)}")
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    if isinstance(value.get("name"), str):
        return GoldCall.of_call(call_of(value))
    if len(value) != 1 or not isinstance(next(iter(value.values())), Mapping):
        raise BadCall(f"expected a call, got {shortened(value)}")

    ((name, arguments),) = value.items()
    # BFCL has a list of the accepted values for each argument; null is a table's.
    accepted = {key: values for key, values in arguments.items() if values is not None}
    if all(isinstance(values, list) and values for values in accepted.values()):
        return GoldCall(name, accepted, several=True)
    return GoldCall.of_call(Call(name, accepted))


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
        if not all(_may_be_of_type(value, kind) for value in ways):
            found.append("a right call has a value of another type than its tool says")
            break
    return found


def _may_be_of_type(value: Any, kind: str) -> bool:
    """Whether a gold's value may be of a type; of one that is not known, and null, it may."""
    if kind in NUMBERS and isinstance(value, str):
        value = loaded(value)
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
