"""The outcome gate: a reward for length, format or style that counts only where the answer is
right.

Ungated, such a reward also ranks the wrong answers of a group, and a policy that finds it easier to
get than right answers goes after it alone. README.md, "The outcome gate", says why a gated reward
gives 0.0 and not None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import REWARDS, Reward, share_grades, shared_grades
from swift_rlvr.rewards.grade import Columns, Explanation, Grade, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import SHAPING, VERIFIER
from swift_rlvr.utils.settings import setting

GATES = ("none", "outcome")
NOT_RIGHT, NOT_GRADED = "not right", "not graded"
GATE_REASONS = (NOT_RIGHT, NOT_GRADED)  # those of a gated reward, beside its own
NO_TEXT = Explanation(0.0, "no text", None, [Rule("there is a text", False)])


@dataclass(frozen=True)
class GateParameters(BaseParameters):
    """The parameters of every shaping reward."""

    gate: str = setting(
        "none", "`outcome`: only right answers earn it, wrong ones 0; `none`: all do", choices=GATES
    )
    accuracy: str = setting(
        "external_accuracy",
        "with a gate: the reward that says whether an answer is right; `tasks` are then its own",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        names = sorted(name for name, reward in REWARDS.items() if reward.role == VERIFIER)
        self.require(self.accuracy in names, "accuracy", f"one of {', '.join(names)}")

    @property
    def gated(self) -> bool:
        """Whether there is a gate."""
        return self.gate != "none"


class Outcome:
    """A verifier that another reward asks whether an answer is right; it reads its own
    parameters.
    """

    def __init__(self, asking: Reward, args: object = None):
        """Of the verifier that the parameter `accuracy` names; the asking reward gets its columns
        beside its own.
        """
        self.reward = judge = REWARDS[asking.parameters.accuracy](args=args)
        share_grades(judge)
        asking.runs_code = judge.runs_code
        asking.columns = (*asking.columns, *judge.columns)
        others = (*asking.optional_columns, *judge.optional_columns)
        asking.optional_columns = tuple(
            name for name in dict.fromkeys(others) if name not in asking.columns
        )

    def is_right(self, outcome: float | None) -> bool | None:
        """Whether the verifier's reward for an answer is its full one; None where it is None."""
        return None if outcome is None else outcome >= self.reward.full_reward

    def rewards(self, texts: Sequence[str | None], columns: Columns) -> list[float | None]:
        """The verifier's reward for each completion, None where it cannot grade the row."""
        share_grades(self.reward)  # also where this is a copy
        return [grade.reward for grade in shared_grades(self.reward, texts, self._own(columns))]

    def explain(self, text: str | None, row: Row) -> Explanation:
        """The verifier's rules for one completion."""
        return self.reward.explain_text(text, self._own(row))

    def _own(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns, or the values of one row, that the reward takes."""
        return {
            name: columns[name] for name in (*self.reward.columns, *self.reward.optional_columns)
        }


class ShapingReward(Reward):
    """A reward that says nothing about the outcome. A subclass implements `shape`, and `least` if
    that can be negative.

    With ``gate="outcome"`` a right answer earns what `shape` gives above `least`, every other one
    0.0, and a row that cannot be judged None.

    >>> from swift_rlvr.rewards import REWARDS
    >>> reward = REWARDS["length"](gate="outcome", accuracy="external_countdown", scale=-0.01, max_length=100)
    >>> right, wrong = "<answer>1+2</answer>", "<answer>1-2</answer>"
    >>> reward([right, right.rjust(90), wrong, wrong.rjust(90)], nums=[[1, 2]] * 4, target=[3] * 4)
    [0.8, 0.09999999999999998, 0.0, 0.0]
    """

    role = SHAPING
    shows_details = True  # lengths, tags, languages: of the completion alone
    Parameters = GateParameters

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        if self.parameters.gated:
            self.outcome = Outcome(self, args)
            self.reasons = (*self.reasons, *GATE_REASONS)

    def shape(self, text: str | None, row: Row) -> Explanation:
        """What the reward gives without a gate, with its rules."""
        raise NotImplementedError(f"{type(self).__name__} does not implement shape")

    @property
    def least(self) -> float:
        """The least that `shape` gives."""
        return 0.0

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        shaped = [
            Grade(*self.shape(text, row)[:2])
            for text, row in zip(texts, rows or [{}] * len(texts), strict=True)
        ]
        if self.outcome is None:
            return shaped
        right = map(self.outcome.is_right, self.outcome.rewards(texts, columns))
        return [self._through_gate(*each) for each in zip(shaped, right, strict=True)]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        shaped = self.shape(text, row)
        if self.outcome is None:
            return shaped
        outcome = self.outcome.explain(text, row).reward
        right = self.outcome.is_right(outcome)
        grade = self._through_gate(Grade(*shaped[:2]), right)
        rules = [Rule("the answer is right", right, f"{self.parameters.accuracy} says so")]
        if grade.reason == shaped.reason and self.least:
            rules.append(Rule("reward", None, f"{grade.reward:g} above the least, {self.least:g}"))
        return Explanation(*grade, shaped.extracted, [*shaped.rules, *rules])

    def _through_gate(self, shaped: Grade, right: bool | None) -> Grade:
        if shaped.reward is None:
            return shaped
        if right is None:
            return Grade(None, NOT_GRADED)
        return Grade(shaped.reward - self.least, shaped.reason) if right else Grade(0.0, NOT_RIGHT)
