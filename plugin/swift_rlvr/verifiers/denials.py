"""Whether the words around a block of code or data say that it is not the answer."""

import re

from swift_rlvr.verifiers.languages import BLOCK_IS_WRONG, BLOCK_WAS_DENIED, DENIED_AT_END

_LONGEST_CONTEXT = 100  # characters on either side
# What stands between these words and the block: a colon, and marks of Markdown, also a fence's.
_OPENING_SIGNS = re.compile(r"[\s:：*_`~\"'(>-]*\Z")
_OPENING_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*\w*\s*\Z")
_SENTENCE_END = re.compile(r"[.!?;:。！？：]\s*")
_MOST_WORDS = 6  # of a sentence that only denies
_CLOSING_SIGNS = " \t\r\n`~*_\"'.,;()"


def is_denied(text: str, start: int, end: int) -> bool:
    r"""Whether the words right before a block, from `start` to `end`, or right behind it take it back.
    Words that only leave it open, such as "perhaps", do not: a block is one answer all the same.

    >>> for text in ("It is not: {}", "This would be wrong:\n{}", "{} is wrong.", "It does not count null: {}"):
    ...     print(is_denied(text, text.index("{"), text.index("}") + 1))
    True
    True
    True
    False
    """
    before = _OPENING_FENCE.sub("", text[max(0, start - _LONGEST_CONTEXT) : start]).lower()
    line = _OPENING_SIGNS.sub("", before).rpartition("\n")[2]
    words = " ".join(line.split())
    # "It is not", but not the end of what the block is for: "the singers who have none, and who do not"
    sentence = _SENTENCE_END.split(words)[-1]
    if len(sentence.split()) <= _MOST_WORDS and DENIED_AT_END.search(sentence):
        return True
    if BLOCK_WAS_DENIED.search(words):
        return True
    behind = " ".join(text[end : end + _LONGEST_CONTEXT].lower().split())
    return BLOCK_IS_WRONG.match(behind.lstrip(_CLOSING_SIGNS)) is not None
