"""The cosine reward: a right answer earns more the shorter it is, a wrong one loses less the longer
it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.base import Reward
from swift_rlvr.rewards.gate import GATES, NOT_GRADED, GateParameters, Outcome
from swift_rlvr.rewards.grade import Columns, Example, Explanation, Grade, Row, Rule
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
            "none", "`outcome`: a wrong answer earns 0; `none`: by its length", choices=GATES
        )
        accuracy: str = setting(
            "external_accuracy", "the reward that says whether an answer is right"
        )
        min_len_value_wrong: float = setting(
            -0.5, "wrong answer of length 0", flag="cosine_min_len_value_wrong"
        )
        max_len_value_wrong: float = setting(
            -0.1, "wrong answer past max_len", flag="cosine_max_len_value_wrong"
        )
        min_len_value_correct: float = setting(
            1.0, "right answer of length 0", flag="cosine_min_len_value_correct"
        )
        max_len_value_correct: float = setting(
            0.8, "right answer past max_len", flag="cosine_max_len_value_correct"
        )
        max_len: int = setting(
            1000, "the length from which on the value stays", flag="cosine_max_len", at_least=1
        )
        unit: str = setting(
            "tokens", "where a row has no token ids it is characters", choices=UNITS
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            least = min(self.min_len_value_correct, self.max_len_value_correct)
            if self.gated:
                for name in ("min_len_value_correct", "max_len_value_correct"):
                    self.require(
                        getattr(self, name) > 0,
                        name,
                        "more than 0, what a wrong answer earns with a gate",
                    )
                return
            for name in ("min_len_value_wrong", "max_len_value_wrong"):
                self.require(
                    getattr(self, name) < least,
                    name,
                    f"less than what a right answer earns, {least}",
                )

    def __init__(self, args: object = None, **parameters):
        super().__init__(args, **parameters)
        self.outcome = Outcome(self, args)

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        accuracies = self.outcome.rewards(texts, columns)
        tokens = zip(*(columns[name] for name in TOKEN_COLUMNS), strict=True)
        rows = [dict(zip(TOKEN_COLUMNS, values, strict=True)) for values in tokens]
        return [
            self._judge(each, text, row)[0]
            for each, text, row in zip(accuracies, texts, rows, strict=True)
        ]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        accuracy = self.outcome.explain(text, row)
        grade, rules = self._judge(accuracy.reward, text, row)
        return Explanation(*grade, accuracy.extracted, [*accuracy.rules, *rules])

    def _judge(
        self, accuracy: float | None, text: str | None, row: Row
    ) -> tuple[Grade, list[Rule]]:
        values = self.parameters
        right = self.outcome.is_right(accuracy)
        if right is None:
            rule = Rule("the row can be graded", False, f"{values.accuracy} cannot grade it")
            return Grade(None, NOT_GRADED), [rule]
        if values.gated and not right:
            return Grade(0.0, "wrong"), [
                Rule("the answer is right", False, f"{values.accuracy} says so")
            ]
        start, end = values.min_len_value_wrong, values.max_len_value_wrong
        if right:
            start, end = values.min_len_value_correct, values.max_len_value_correct
        length, unit = completion_length(text, row, values.unit)
        progress = min(length / values.max_len, 1.0)
        reward = end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * progress))
        rules = [
            Rule("the answer is right", right, f"{values.accuracy} says so"),
            Rule("length", None, f"{length} {unit}, max_len {values.max_len}"),
            Rule(
                "reward",
                None,
                f"{reward:.4g}, between {start:g} at length 0 and {end:g} at max_len",
            ),
        ]
        return Grade(reward, "right" if right else "wrong"), rules
