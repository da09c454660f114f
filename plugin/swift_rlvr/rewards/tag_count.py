"""The tag count reward: a quarter for each of the four tags that occurs exactly once."""

from dataclasses import dataclass

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.format import TAGS
from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.thinking import without_end_tokens

# In the order of TAGS.
WITH_LINE_BREAKS = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")

# What is found of a tag.
ONCE = "once"
REPEATED = "more than once"
MISSING = "missing"
INSIDE = "not on a line of its own"
# The first of these that any tag has is the reason.
REASONS = {
    REPEATED: "repeated tag",
    MISSING: "missing tag",
    INSIDE: "tag not on its own line",
}


class TagCountReward(ShapingReward):
    r"""Reward 0.25 for each tag that occurs exactly once, with the line breaks beside it.

    These are ``<think>\n``, ``\n</think>\n``, ``\n<answer>\n`` and ``\n</answer>``.

    The tag reward of the GSM8K recipe (and open-r1's `tag_count_reward`): partial credit on the way
    to the strict format. Order and content do not count, so it belongs beside a format reward.
    ``\n</think>\n</think>\n`` counts as two occurrences, where open-r1's `str.count` finds one. A
    ``<think>`` opened by the prompt counts.

    >>> reward = TagCountReward()
    >>> reward(["<think>\n1 + 1\n</think>\n<answer>\n2\n</answer>", "<think>\n1 + 1\n</think>\n2", "2"])
    [1.0, 0.5, 0.0]
    """

    name = "external_tag_count"
    reasons = (
        "all tags",
        "repeated tag",
        "missing tag",
        "tag not on its own line",
        "no tags",
        "no text",
    )
    examples = (
        Example("<think>\n3 + 4\n</think>\n<answer>\n7\n</answer>", {}, 1.0),
        Example("<think>\n3 + 4\n</think>\n7", {}, 0.5),
        Example("7", {}, 0.0),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        own_line: bool = setting(
            True, "count a tag only with the line breaks that the GSM8K recipe asks for"
        )

    def grade(self, text: str | None, row: Row) -> Explanation:
        marks = WITH_LINE_BREAKS if self.parameters.own_line else TAGS
        if text is None or not without_end_tokens(text):
            return NO_TEXT
        outcomes = []
        rules = []
        for tag, mark in zip(TAGS, marks, strict=True):
            first = text.find(mark)
            if first < 0:
                outcome = INSIDE if tag in text else MISSING
            # From the next character on: two marks may share a line break.
            elif text.find(mark, first + 1) < 0:
                outcome = ONCE
            else:
                outcome = REPEATED
            outcomes.append(outcome)
            rules.append(Rule(f"{mark!r} occurs exactly once", outcome == ONCE, outcome))

        reason = "all tags"
        for outcome in REASONS:
            if outcome in outcomes:
                reason = REASONS[outcome]
                break
        if outcomes.count(MISSING) == len(TAGS):
            reason = "no tags"
        return Explanation(outcomes.count(ONCE) / 4, reason, text, rules)
