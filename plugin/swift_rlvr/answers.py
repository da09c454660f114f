r"""Completion -> the text of its answer.

The answer is the last ``<answer>...</answer>`` block after the last ``</think>``; without a ``</think>`` it is the last
block of the completion. Tags are exactly these, in lower case and without attributes, as the prompt asks for. Searching
is done with ``str.find`` and ``str.rfind``, so that a text of 100,000 unclosed tags costs no more than any other.
"""

OPEN, CLOSE, THINK_END = "<answer>", "</answer>", "</think>"
_OPEN_LENGTH = len(OPEN)


def completion_text(completion: object) -> str | None:
    """Return the text of a completion in either shape that trainers hand over, or None where there is none.

    Args:
        completion: a string (ms-swift), or a list of messages ``{"role": ..., "content": ...}`` (TRL), of which the
            last one counts; its content is a string, a list of parts ``{"type": "text", "text": ...}``, or None.

    >>> completion_text("3 + 4"), completion_text([{"role": "assistant", "content": "3 + 4"}])
    ('3 + 4', '3 + 4')
    >>> completion_text([{"role": "assistant", "content": None}]) is None
    True
    """
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, (list, tuple)) or not completion or not isinstance(completion[-1], dict):
        return None
    content = completion[-1].get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


def last_answer(text: str) -> str | None:
    """Return what stands inside the answer block (white space kept), or None where no block is complete.

    A block ends at the first ``</answer>`` after its opening tag; an opening tag that is never closed opens nothing.

    >>> last_answer("<think>1+1? <answer>3</answer></think> <answer>1+1</answer> <answer>2+")
    '1+1'
    >>> last_answer("<think><answer>1+1</answer></think> that was it") is None
    True
    """
    start = text.rfind(OPEN)  # not rpartition, which copies all that stands before
    if start < 0:
        return None
    tail = text[start + _OPEN_LENGTH :]
    end = tail.find(CLOSE)
    if end < 0:  # the last tag is never closed: the last one before a closing tag counts
        start = text.rfind(OPEN, 0, max(text.rfind(CLOSE), 0))
        if start < 0:
            return None
        tail = text[start + _OPEN_LENGTH :]
        end = tail.find(CLOSE)
    return None if THINK_END in tail else tail[:end]


def has_unclosed_answer(text: str) -> bool:
    """Say whether an answer is opened after the last ``</think>``; asked where `last_answer` found no complete block.

    >>> has_unclosed_answer("<think>...</think><answer>1+1"), has_unclosed_answer("<answer>2</answer></think>")
    (True, False)
    """
    return text.find(OPEN, text.rfind(THINK_END) + 1) >= 0
