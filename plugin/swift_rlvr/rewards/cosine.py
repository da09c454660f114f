"""The cosine reward: a right answer earns more the shorter it is, a wrong one loses less the longer
it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import (
    REWARDS,
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    Rule,
)
from swift_rlvr.rewards.gate import GATES, NOT_GRADED, GateParameters, ask_verifier, is_right
from swift_rlvr.rewards.length import TOKEN_COLUMNS, UNITS, completion_length
from swift_rlvr.success import SHAPING
from swift_rlvr.utils.settings import setting


class CosineLengthReward(Reward):
    """Reward a right and a wrong answer by its length, on half a cosine wave from length 0 to
    max_len.

    With progress p = min(length, max_len) / max_len the reward is ::

        value at max_len + 0.5 * (value at length 0 - value at max_len) * (1 + cos(pi * p))

    with one pair of values for right answers and one for wrong ones, see "Demystifying Long
    Chain-of-Thought Reasoning in LLMs" (arXiv 2502.03373), open-r1 and the R1-Zero recipe, whose
    values are the defaults. Beyond max_len the value is constant. Another reward, `accuracy`,
    decides whether an answer is right; its columns are needed, and None stays None. With
    ``gate="outcome"`` every wrong answer earns 0.0, whatever its length.

    >>> reward = CosineLengthReward(accuracy="external_countdown", max_len=100)
    >>> right, wrong = "<answer>1+2</answer>", "<answer>1-2</answer>"
    >>> reward([right, right.rjust(100), wrong, wrong.rjust(100)], nums=[[1, 2]] * 4, target=[3] * 4)
    [0.9809016994374947, 0.8, -0.46180339887498956, -0.1]
    """

    name = "external_cosine"
    role = SHAPING
    verifier: Reward
    optional_columns = TOKEN_COLUMNS
    reasons = ("right", "wrong", NOT_GRADED)
    examples = (
        Example("<answer>7</answer>", {"solution": "7", "response_token_ids": [5, 6]}, 0.999998),
        Example("<answer>8</answer>", {"solution": "7", "response_token_ids": [5, 6]}, -0.499996),
        Example("<answer>7</answer>", {"solution": None, "response_token_ids": [5, 6]}, None),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        gate: str = setting(
            "none",
            "`outcome`: a wrong answer earns 0; `none`: a wrong answer is rewarded by its length too",
            choices=GATES,
        )
        accuracy: str = setting(
            "external_accuracy", "the reward that says whether an answer is right"
        )
        min_len_value_wrong: float = setting(
            -0.5,
            "value of a wrong answer at length 0",
            flag="cosine_min_len_value_wrong",
            elsewhere={"min_value_wrong": "open-r1"},
        )
        max_len_value_wrong: float = setting(
            -0.1,
            "value of a wrong answer at max_len and beyond",
            flag="cosine_max_len_value_wrong",
            elsewhere={"max_value_wrong": "open-r1"},
        )
        # Of a right answer the shortest earns the most: open-r1's maximum is ours at length 0.
        min_len_value_correct: float = setting(
            1.0,
            "value of a right answer at length 0",
            flag="cosine_min_len_value_correct",
            elsewhere={"max_value_correct": "open-r1"},
        )
        max_len_value_correct: float = setting(
            0.8,
            "value of a right answer at max_len and beyond",
            flag="cosine_max_len_value_correct",
            elsewhere={"min_value_correct": "open-r1"},
        )
        max_len: int = setting(
            1000, "the length beyond which the value is constant", flag="cosine_max_len", at_least=1
        )
        unit: str = setting(
            "tokens", "the unit of length; rows without token ids use characters", choices=UNITS
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.gated:
                # A wrong answer earns 0, and its values are not used.
                for name in ("min_len_value_correct", "max_len_value_correct"):
                    accepted = "more than 0, because a wrong answer earns 0 with a gate"
                    self.require(getattr(self, name) > 0, name, accepted)
                return
            least = min(self.min_len_value_correct, self.max_len_value_correct)
            for name in ("min_len_value_wrong", "max_len_value_wrong"):
                accepted = f"less than what a right answer earns, {least}"
                self.require(getattr(self, name) < least, name, accepted)

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        self.ask(REWARDS[self.parameters.accuracy](args=args))

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        # All at once, since a verifier that runs programs is slow one by one.
        verdicts = ask_verifier(self.verifier, texts, columns)
        token_columns = [columns[name] for name in TOKEN_COLUMNS]
        grades = []
        for text, right, *tokens in zip(texts, verdicts, *token_columns, strict=True):
            row = dict(zip(TOKEN_COLUMNS, tokens, strict=True))
            reward, reason, _ = self._by_length(right, text, row)
            grades.append(Grade(reward, reason))
        return grades

    def grade(self, text: str | None, row: Row) -> Explanation:
        verdict = self.verifier.judge(text, row)
        right = is_right(self.verifier, verdict.reward)
        reward, reason, rules = self._by_length(right, text, row)
        return Explanation(reward, reason, verdict.extracted, [*verdict.rules, *rules])

    def _by_length(
        self, right: bool | None, text: str | None, row: Row
    ) -> tuple[float | None, str, list[Rule]]:
        values = self.parameters
        if right is None:
            detail = f"{values.accuracy} cannot grade it"
            return None, NOT_GRADED, [Rule("the row can be graded", False, detail)]
        reason = "right" if right else "wrong"
        verdict = Rule("the answer is right", right, f"{values.accuracy} says so")
        if values.gated and not right:
            return 0.0, reason, [verdict]

        start, end = values.min_len_value_wrong, values.max_len_value_wrong
        if right:
            start, end = values.min_len_value_correct, values.max_len_value_correct
        length, unit = completion_length(text, row, values.unit)
        progress = min(length / values.max_len, 1.0)
        reward = end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * progress))
        between = f"{reward:.4g}, between {start:g} at length 0 and {end:g} at max_len"
        rules = [
            verdict,
            Rule("length", None, f"{length} {unit}, max_len {values.max_len}"),
            Rule("reward", None, between),
        ]
        return reward, reason, rules
