"""The tag count reward: a quarter for each of the four tags that occurs exactly once."""

from dataclasses import dataclass

from swift_rlvr.answers import without_end_tokens
from swift_rlvr.rewards.base import Explanation, Grade, Reward, Row, Rule
from swift_rlvr.rewards.format import TAGS, opens_think, with_opening
from swift_rlvr.rewards.parameters import BaseParameters, parameter

WITH_LINE_BREAKS = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")  # in the order of TAGS
ONCE, REPEATED, MISSING, INSIDE = "once", "more than once", "missing", "not on a line of its own"


class TagCountReward(Reward):
    r"""Reward 0.25 for each of ``<think>\n``, ``\n</think>\n``, ``\n<answer>\n``, ``\n</answer>`` that occurs once.

    The tag reward of the GSM8K recipe (and open-r1's `tag_count_reward`): partial credit on the way to the strict
    format. Order and content do not count, so it belongs beside a format reward. One difference:
    ``\n</think>\n</think>\n`` counts as two occurrences here, while `str.count`, which skips overlaps, finds one. With
    `own_line` false the tags count without their line breaks, as in `external_format`. A ``<think>`` that the prompt
    has opened counts as the completion's, see `swift_rlvr.rewards.format`.

    >>> reward = TagCountReward()
    >>> reward(["<think>\n1 + 1\n</think>\n<answer>\n2\n</answer>", "<think>\n1 + 1\n</think>\n2", "2"])
    [1.0, 0.5, 0.0]
    >>> TagCountReward(own_line=False)(["<answer>2</answer>"])
    [0.5]
    """

    name = "external_tag_count"
    optional_columns = ("prompts",)
    reasons = ("all tags", "repeated tag", "missing tag", "tag not on its own line", "no tags", "no text")

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        own_line: bool = parameter(True, "a tag counts only with the line breaks that the GSM8K recipe asks for")
        think_opened: bool = parameter(False, "the prompt ends with <think>, which the completion does not show")

    def _outcomes(self, text: str | None, row: Row) -> list[str]:
        """How each of TAGS occurs; an empty list where there is no text."""
        if text is None or not without_end_tokens(text):
            return []
        text = with_opening(text, self.parameters.think_opened or opens_think(row.get("prompts")))
        outcomes = []
        for tag, mark in zip(TAGS, WITH_LINE_BREAKS if self.parameters.own_line else TAGS, strict=True):
            first = text.find(mark)
            if first >= 0:
                outcomes.append(ONCE if text.find(mark, first + 1) < 0 else REPEATED)
            else:
                outcomes.append(INSIDE if tag in text else MISSING)
        return outcomes

    def grade(self, text: str | None, row: Row) -> Grade:
        return self._grade(self._outcomes(text, row))

    @staticmethod
    def _grade(outcomes: list[str]) -> Grade:
        if not outcomes:
            return Grade(0.0, "no text")
        for outcome, reason in (
            (REPEATED, "repeated tag"),
            (MISSING, "missing tag"),
            (INSIDE, "tag not on its own line"),
        ):
            if outcome in outcomes:
                return Grade(outcomes.count(ONCE) / 4, "no tags" if set(outcomes) == {MISSING} else reason)
        return Grade(1.0, "all tags")

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        outcomes = self._outcomes(text, row)
        rules = [Rule("there is a text", bool(outcomes))]
        for index, mark in enumerate(WITH_LINE_BREAKS if self.parameters.own_line else TAGS):
            passed, detail = (outcomes[index] == ONCE, outcomes[index]) if outcomes else (None, "")
            rules.append(Rule(f"{mark!r} occurs exactly once", passed, detail))
        return Explanation(*self._grade(outcomes), text, rules)
