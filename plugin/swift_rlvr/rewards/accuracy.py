"""The accuracy reward: 1.0 for an answer that is mathematically equal to the gold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.math_answers import MathVerifier, Reason
from swift_rlvr.math_answers.verifier import shared_verifier
from swift_rlvr.rewards.base import Columns, Explanation, Grade, Reward, Row, rules_in_order
from swift_rlvr.rewards.parameters import BaseParameters, parameter

RULES = {  # in the order in which they are checked
    Reason.BAD_GOLD: "the gold in the column solution can be parsed",
    Reason.NO_ANSWER: "an answer is marked after the thinking: <answer>, \\boxed{}, ####",
    Reason.UNCLOSED_ANSWER: "the answer block is closed by </answer>",
    Reason.EMPTY_ANSWER: "the answer is not empty",
    Reason.TOO_LONG: "the answer is of a length that can be compared",
    Reason.UNREADABLE: "the answer can be parsed as one answer",
    Reason.TIMED_OUT: "the comparison ends in time",
    Reason.WRONG: "the answer equals the gold",
}


class AccuracyReward(Reward):
    r"""Reward 1.0 for a completion whose final answer equals the column `solution`, 0.0 for any other.

    A row whose solution cannot be parsed is not graded (None); with ``neutral_gold=True`` it gets the neutral value of
    the R1-Zero recipe. `swift_rlvr.math_answers` defines what counts as the answer and as equal. Comparisons that need
    computer algebra run in worker processes, which end with this process.

    >>> reward = AccuracyReward()
    >>> reward([r"so \boxed{\frac{1}{2}}", "<answer>0.4</answer>"], solution=["0.5", r"Thus $x = \boxed{0.5}$."])
    [1.0, 0.0]
    """

    name = "external_accuracy"
    columns = ("solution",)
    reasons = tuple(map(str, Reason))

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        tasks: tuple[str, ...] = parameter(
            ("math", "gsm8k", "numina_math_tir", "bespoke_stratos"),
            "values of the column `task` to which the reward applies",
        )
        neutral_gold: bool = parameter(False, "reward 0.5 where the gold cannot be parsed, instead of not grading it")
        timeout: float = parameter(2.0, "seconds for one comparison")
        batch_timeout: float = parameter(5.0, "seconds for a batch, plus 0.01 for each answer")
        workers: int = parameter(0, "worker processes; 0: one for each usable core, at most 8", at_least=0)

        def __post_init__(self) -> None:
            self.require(self.timeout > 0, "timeout", "a number of seconds above 0")
            self.require(self.batch_timeout > 0, "batch_timeout", "a number of seconds above 0")

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        self.neutral = 0.5 if self.parameters.neutral_gold else None

    @property
    def verifier(self) -> MathVerifier:
        """Not an attribute, since the reward has to pickle; rewards with the same settings share their processes."""
        return shared_verifier(self.parameters.workers or None, self.parameters.timeout, self.parameters.batch_timeout)

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        verdicts = self.verifier.grade_all(list(texts), list(columns["solution"]))
        return [Grade(verdict.reward, str(verdict.reason)) for verdict in verdicts]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        (verdict,) = self.verifier.grade_all([text], [row["solution"]])
        details = {RULES[Reason.WRONG]: f"the gold is {verdict.gold}"}
        if verdict.marked:
            details[RULES[Reason.NO_ANSWER]] = f"found by: {verdict.marked}"
        rules = [
            rule if rule.passed is None else rule._replace(detail=details.get(rule.name, ""))
            for rule in rules_in_order(RULES, verdict.reason)
        ]
        return Explanation(verdict.reward, str(verdict.reason), verdict.answer, rules)
