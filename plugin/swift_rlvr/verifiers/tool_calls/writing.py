"""Calls as Hermes and Qwen write them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swift_rlvr.verifiers.tool_calls.calls import Call


def in_hermes(calls: Iterable[Call]) -> str:
    """Calls as a text."""
    written = []
    for call in calls:
        content = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        written.append(_tagged(content))
    return "\n".join(written)


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
        written.append(_tagged(f'{{"name": {name}, "arguments": {arguments.strip() or "{}"}}}'))
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": "\n".join(written)}]}
    if isinstance(content, str) and content.strip():
        written.insert(0, content)
    return {**message, "content": "\n".join(written)}


def _tagged(content: str) -> str:
    return f"<tool_call>\n{content}\n</tool_call>"
