"""The tools of a prompt where its row hands them on as a column, as ms-swift has it, and not as text.

In a conversation that is sampled they lie under the key `tools` of its last turn, so that it stays one
value. `as_chat` takes them out again for chat templates and servers.
"""

import json
from collections.abc import Mapping
from typing import Any

from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError

_KEY = "tools"


def with_tools(messages: Messages, row: Mapping[str, Any]) -> Messages:
    """The messages of a preprocessed row with its tools, if it has the column.

    >>> question = [{"role": "user", "content": "1 + 2?"}]
    >>> with_tools(question, {"tools": '[{"name": "add"}]'})
    [{'role': 'user', 'content': '1 + 2?', 'tools': [{'name': 'add'}]}]
    """
    value = row.get(_KEY)
    tools = json.loads(value) if isinstance(value, str) else value
    if not tools:
        return messages
    return [*messages[:-1], {**messages[-1], _KEY: tools}]


def split(messages: Messages) -> tuple[Messages, list[Any] | None]:
    """The messages without the tools, and the tools; None if there are none."""
    tools = messages[-1].get(_KEY)
    if tools is None:
        return messages, None
    last = {name: value for name, value in messages[-1].items() if name != _KEY}
    return [*messages[:-1], last], tools


def as_chat(messages: Messages, calls_in_text: bool = False) -> tuple[Messages, list[Any] | None]:
    """The same in the roles of chat templates and OpenAI's API: ms-swift has a turn for each call.

    calls_in_text: whether the arguments are JSON, as in the API, and not objects, as in templates.
    """
    messages, tools = split(messages)
    turns: Messages = []
    unanswered: list[str] = []  # the ids of calls without a result
    calls = 0
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "tool_call":
            # Mistral's templates want nine letters and digits.
            name = f"call{calls:05d}"
            calls += 1
            call = json.loads(message["content"])
            if calls_in_text:
                call["arguments"] = json.dumps(call["arguments"], ensure_ascii=False)
            # Several calls in a row are of one turn of the assistant.
            if not turns or turns[-1]["role"] != "assistant":
                turns.append({"role": "assistant", "content": ""})
            made = {"id": name, "type": "function", "function": call}
            turns[-1].setdefault("tool_calls", []).append(made)
            unanswered.append(name)
        elif role == "tool_response":
            turn = {"role": "tool", "content": content}
            if unanswered:
                turn["tool_call_id"] = unanswered.pop(0)
            turns.append(turn)
        else:
            # A copy, since a call after it is added to this turn, and the row is sampled again.
            turns.append(dict(message))
    return turns, tools


def rendered(tokenizer: Any, messages: Messages) -> str:
    """The prompt that a chat template makes, up to where the model begins to write; InputError where
    there are tools that it does not show.
    """
    turns, tools = as_chat(messages)
    options = {"tools": tools} if tools else {}
    text = tokenizer.apply_chat_template(
        turns, add_generation_prompt=True, tokenize=False, **options
    )
    # A template without tools leaves them out silently, and the model would guess their names.
    for tool in tools or ():
        name = tool.get("function", tool).get("name")
        if str(name) not in text:
            raise InputError(
                "the chat template of the model shows no tools; without SWIFT_RLVR_NATIVE_TOOLS "
                "tool_calls writes them into the system turn",
                "model",
            )
    return text
