"""The outcome gate: a reward for length, format or style that counts only where the answer is
right.

Ungated, such a reward also ranks the wrong answers of a group, and a policy that finds it easier to
get than right answers goes after it alone. docs/rewards/gate.md says why a gated reward gives
0.0 and not None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import REWARDS, Columns, Explanation, Grade, Reward, Row, Rule, one_row
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import SHAPING, VERIFIER
from swift_rlvr.utils.settings import setting

GATES = ("none", "outcome")
NOT_RIGHT, NOT_GRADED = "not right", "not graded"
# What a gated reward says beside its own reasons.
GATE_REASONS = (NOT_RIGHT, NOT_GRADED)
NO_TEXT = Explanation(0.0, "no text", None, [Rule("there is a text", False)])


@dataclass(frozen=True)
class GateParameters(BaseParameters):
    """The parameters of every shaping reward."""

    gate: str = setting(
        "none",
        "`outcome`: only right answers earn this reward, wrong ones get 0; `none`: all completions earn it",
        choices=GATES,
    )
    accuracy: str = setting(
        "external_accuracy",
        "the verifier that opens the gate; the reward then applies to its tasks",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        names = sorted(name for name, reward in REWARDS.items() if reward.role == VERIFIER)
        self.require(self.accuracy in names, "accuracy", f"one of {', '.join(names)}")

    @property
    def gated(self) -> bool:
        """Whether there is a gate."""
        return self.gate != "none"


def is_right(verifier: Reward, verdict: float | None) -> bool | None:
    """Whether a verifier's reward is its full one; None if it cannot grade the row."""
    return None if verdict is None else verdict >= verifier.full_reward


def ask_verifier(
    verifier: Reward, texts: Sequence[str | None], columns: Columns
) -> list[bool | None]:
    """Whether each completion is right, by the verifier's columns among those of another reward."""
    needed = {name: columns[name] for name in (*verifier.columns, *verifier.optional_columns)}
    return [is_right(verifier, reward) for reward, _ in verifier.grade_batch(texts, needed)]


class OutcomeGate:
    """Wraps a reward, and pays what it gives to right answers only.

    A right answer earns what the reward gives above `least`, the least that it can give; a wrong
    one 0.0, and a row that the verifier cannot grade None.
    """

    def __init__(self, verifier: Reward, least: float):
        self.verifier = verifier
        self.least = least

    def grades(
        self, grades: Sequence[Grade], texts: Sequence[str | None], columns: Columns
    ) -> list[Grade]:
        """What is left of the reward's grades."""
        right = ask_verifier(self.verifier, texts, columns)
        return list(map(self._grade, grades, right))

    def explain(self, explanation: Explanation, text: str | None, row: Row) -> Explanation:
        """The same for one completion, with the rules of the reward and the gate's own."""
        (right,) = ask_verifier(self.verifier, [text], one_row(row))
        grade = self._grade(Grade(explanation.reward, explanation.reason), right)
        gate = Rule("the answer is right", right, f"{self.verifier.name} says so")
        rules = [*explanation.rules, gate]
        if grade.reason == explanation.reason and self.least:
            detail = f"{grade.reward:g} above the least, {self.least:g}"
            rules.append(Rule("reward", None, detail))
        return Explanation(*grade, explanation.extracted, rules)

    def _grade(self, grade: Grade, right: bool | None) -> Grade:
        if grade.reward is None:
            return grade
        if right is None:
            return Grade(None, NOT_GRADED)
        if not right:
            return Grade(0.0, NOT_RIGHT)
        # A right answer must not earn less than the 0 of a wrong one.
        return Grade(grade.reward - self.least, grade.reason)


class ShapingReward(Reward):
    """A reward that says nothing about the outcome, such as one for length, format or style.

    A subclass implements `grade` like every reward, and `least` if that can be negative. With
    ``gate="outcome"`` an `OutcomeGate` stands around it.

    >>> from swift_rlvr.rewards import REWARDS
    >>> reward = REWARDS["length"](gate="outcome", accuracy="external_countdown", scale=-0.01, max_length=100)
    >>> right, wrong = "<answer>1+2</answer>", "<answer>1-2</answer>"
    >>> reward([right, right.rjust(90), wrong, wrong.rjust(90)], nums=[[1, 2]] * 4, target=[3] * 4)
    [0.8, 0.09999999999999998, 0.0, 0.0]
    """

    role = SHAPING
    # Lengths, tags and languages are of the completion alone.
    shows_details = True
    Parameters = GateParameters

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        if self.parameters.gated:
            verifier = REWARDS[self.parameters.accuracy](args=args)
            self.ask(verifier)
            self.reasons = (*self.reasons, *GATE_REASONS)
            self.gate = OutcomeGate(verifier, self.least)

    @property
    def least(self) -> float:
        """The least that `grade` gives."""
        return 0.0

    def judge(self, text: str | None, row: Row) -> Explanation:
        explanation = super().judge(text, row)
        return explanation if self.gate is None else self.gate.explain(explanation, text, row)
