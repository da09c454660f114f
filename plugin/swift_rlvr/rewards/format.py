"""The format rewards: 1.0 for a think part, then an answer part and nothing else; otherwise 0.0.

Where the prompt has opened the think part, the completion has no ``<think>`` of its own, and
`Reward` puts it back.
"""

import re
from typing import ClassVar

from swift_rlvr.rewards.base import Example, Explanation, Row, rules_in_order
from swift_rlvr.rewards.gate import ShapingReward
from swift_rlvr.success import FORMAT
from swift_rlvr.verifiers.thinking import without_end_tokens

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_TAG = re.compile("|".join(TAGS))
# A thought has words or figures. An answer may be a sign, such as < or +, but is not "." or "...".
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_MORE_THAN_STOPS = re.compile(r"[^\s.,;:!?…。，、；：！？]")
# The reason where a tag is missing, in the order of TAGS.
MISSING = ("no think part", "think part not closed", "no answer part", "answer part not closed")
OK = "ok"
# Reason -> rule, in the order in which `fault` checks them.
RULES = {
    "no text": "there is a text",
    "no think part": "there is a <think>",
    "think part not closed": "there is a </think>",
    "no answer part": "there is an <answer>",
    "answer part not closed": "there is an </answer>",
    "repeated tag": "no tag is repeated",
    "wrong order": "the tags come in the order <think> </think> <answer> </answer>",
    "text outside the tags": "there is nothing but white space outside the two parts",
    "empty think part": "the think part has a letter or a digit",
    "empty answer": "the answer holds more than punctuation",
}
STRICT_RULES = RULES | {
    "tag not on its own line": "each tag is on a line of its own",
    "white space around the tags": "no space is beside a tag, and no blank line before or between the parts",
}


def fault(text: str | None, strict: bool = False) -> tuple[str, str]:
    """The reason for the first rule that the text breaks, or `OK`, with a detail.

    >>> fault("<think>1 + 1</think><answer>2"), fault("<think>1 + 1</think> So: <answer>2</answer>")
    (('answer part not closed', ''), ('text outside the tags', "'So:'"))
    """
    text = without_end_tokens(text or "")
    if not text:
        return "no text", ""
    tags = _TAG.findall(text)
    for tag, reason in zip(TAGS, MISSING, strict=True):
        if tag not in tags:
            return reason, ""
    for tag in TAGS:
        if tags.count(tag) > 1:
            return "repeated tag", f"{tag} occurs {tags.count(tag)} times"
    if tags != list(TAGS):
        return "wrong order", " ".join(tags)
    before, think, between, answer, after = _TAG.split(text)
    for part in (before, between, after):
        if part.strip():
            return "text outside the tags", repr(part.strip()[:40])
    if not _LETTER_OR_DIGIT.search(think):
        return "empty think part", ""
    if not _MORE_THAN_STOPS.search(answer):
        return "empty answer", ""
    if not strict:
        return OK, ""

    lines = [line.strip() for line in text.split("\n")]
    for tag in TAGS:
        if tag not in lines:
            return "tag not on its own line", tag
    inner_edges = {think[0], think[-1], answer[0], answer[-1]}
    if before or between != "\n" or inner_edges != {"\n"}:
        return "white space around the tags", f"{before!r} before, {between!r} between"
    return OK, ""


class FormatReward(ShapingReward):
    """Reward 1.0 for ``<think>...</think>`` and then ``<answer>...</answer>``, and nothing else.

    Neither part may be empty, or hold nothing but full stops and the like. White space around the
    parts and special tokens at the end are ignored. From the R1-Zero recipe (DeepSeek-R1, arXiv
    2501.12948, section 2.2.2).

    >>> reward = FormatReward()
    >>> reward(["<think>1 + 1</think> <answer>2</answer>", "<think></think><answer>2</answer>", "2"])
    [1.0, 0.0, 0.0]
    """

    name = "external_format"
    role = FORMAT
    reasons = (*RULES, OK)
    examples = (
        Example("<think>3 + 4</think> <answer>7</answer>", {}, 1.0),
        Example("<answer>7</answer>", {}, 0.0),
    )
    strict: ClassVar[bool] = False

    def grade(self, text: str | None, row: Row) -> Explanation:
        reason, detail = fault(text, self.strict)
        checked = STRICT_RULES if self.strict else RULES
        rules = rules_in_order(checked, reason, detail)
        return Explanation(float(reason == OK), reason, text, rules)


class FormatStrictReward(FormatReward):
    r"""Reward 1.0 for a completion ``<think>\n...\n</think>\n<answer>\n...\n</answer>``.

    The GSM8K recipe's format. White space and special tokens at the end are ignored.

    >>> FormatStrictReward()(["<think>\n1 + 1\n</think>\n<answer>\n2\n</answer>", "<think>1</think><answer>2</answer>"])
    [1.0, 0.0]
    """

    name = "external_format_strict"
    reasons = (*STRICT_RULES, OK)
    examples = (
        Example("<think>\n3 + 4\n</think>\n<answer>\n7\n</answer>", {}, 1.0),
        Example("<think>3 + 4</think><answer>7</answer>", {}, 0.0),
    )
    strict = True
