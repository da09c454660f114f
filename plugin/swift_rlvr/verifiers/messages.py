"""Messages -> text: what of a conversation the policy wrote, in the one form that everything here
reads.

A message is ``{"role": ..., "content": ...}``. Its content is a string, None, or a list of parts
such as ``{"type": "text", "text": ...}``. Chat parsers split the thinking off, into a field or a
part of its own; here it stands before the rest again, as the policy was asked to write it.
"""

from collections.abc import Mapping
from typing import Any

# The thinking: reasoning_content of TRL, transformers' templates and older vLLM; reasoning of vLLM;
# thinking of gpt-oss, LFM2.5 and transformers' server. Some servers send two of them, with one text.
_THINKING = ("reasoning_content", "reasoning", "thinking")
_TEXT_PARTS = ("text", "output_text", "input_text", None)
_THINKING_PARTS = ("thinking", "reasoning", "reasoning_text", "summary_text")


def completion_text(completion: object) -> str | None:
    """Return what a policy wrote, in either shape that trainers pass; None where that is nothing.

    That is a string (ms-swift), or a list of messages (TRL) whose last one is the assistant's. A
    list that ends with another's message, such as a tool's after a turn that was cut off, has no
    text: nobody is paid for the words of a tool. A message without a role is taken as the
    assistant's.

    >>> completion_text("3 + 4"), completion_text([{"role": "assistant", "content": "3 + 4"}])
    ('3 + 4', '3 + 4')
    >>> completion_text([{"role": "assistant", "content": "", "tool_calls": [...]}, {"role": "tool", "content": "7"}])
    """
    if isinstance(completion, (list, tuple)) and completion:
        last = completion[-1]
        if isinstance(last, Mapping) and last.get("role", "assistant") != "assistant":
            return None
    return last_text(completion)


def last_text(conversation: object) -> str | None:
    """Return a text itself, or that of a conversation's last message, whoever wrote it; else
    None.
    """
    if isinstance(conversation, str):
        return conversation
    if not isinstance(conversation, (list, tuple)) or not conversation:
        return None
    return message_text(conversation[-1])


def message_text(message: object) -> str | None:
    r"""Return the text of a message, with its thinking before it; None where it has neither.

    A parser strips the white space around the thinking, and hides whether it was closed. So each
    tag is put on a line of its own, and the think part is always closed: an answer in it stays one
    that was only thought of.

    >>> message_text({"role": "assistant", "reasoning_content": "3 + 4 is 7", "content": "<answer>7</answer>"})
    '<think>\n3 + 4 is 7\n</think>\n<answer>7</answer>'
    """
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    text = _text_of(content, _TEXT_PARTS)
    thinking = None
    for name in _THINKING:
        if message.get(name) and not thinking:
            thinking = _text_of(message[name], _TEXT_PARTS)
    if isinstance(content, list):
        thinking = thinking or _text_of(content, _THINKING_PARTS)
    if not thinking or not thinking.strip():
        return text
    return f"<think>\n{thinking.strip()}\n</think>\n{(text or '').lstrip()}"


def _text_of(content: Any, types: tuple[str | None, ...]) -> str | None:
    """A string itself, or what the parts of these types say together; None for anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in types:
            # {"type": "thinking", "thinking": ...} as Anthropic writes it, a list of text parts in
            # it as Mistral does, and OpenAI's {"type": "reasoning", "summary": [{"type":
            # "summary_text", ...}]}
            for name in ("text", "thinking", "content", "summary"):
                text = _text_of(part.get(name), (*_TEXT_PARTS, *_THINKING_PARTS))
                if text:
                    texts.append(text)
                    break
    return "".join(texts)
