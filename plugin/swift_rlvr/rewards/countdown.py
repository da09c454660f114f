"""The Countdown reward: 1.0 for an answer that makes the target, using each number exactly once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    rules_in_order,
)
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.countdown import Reason, Verdict, grade_all, read_gold, verify
from swift_rlvr.verifiers.countdown.arithmetic import parse
from swift_rlvr.verifiers.countdown.notation import to_plain
from swift_rlvr.verifiers.countdown.verifier import MAX_CHARS

# In the order in which `verify` checks them.
RULES = {
    Reason.BAD_GOLD: "nums and target can be read",
    Reason.NO_ANSWER: "there is an <answer> block after the thinking",
    Reason.UNCLOSED_ANSWER: "the block is closed by </answer>",
    Reason.EMPTY_ANSWER: "the block is not empty",
    Reason.TOO_LONG: f"it has at most {MAX_CHARS} characters",
    Reason.FORBIDDEN_OPERATOR: "its operators are + - * / and =",
    Reason.NOT_AN_EXPRESSION: "it is an expression of whole numbers, operators and parentheses",
    Reason.EXTRA_NUMBER: "every number in it is among the given ones",
    Reason.REUSED_NUMBER: "no number is used more often than it is given",
    Reason.MISSING_NUMBER: "every given number is used",
    Reason.DIVISION_BY_ZERO: "nothing is divided by zero",
    Reason.FALSE_EQUATION: "all sides of = are equal",
    Reason.WRONG_VALUE: "the value is the target",
}
# All but these earn 0.0.
_REWARDS = {Reason.CORRECT: 1.0, Reason.BAD_GOLD: None}
# Made once, since it takes as long to make a `Grade` as to check an answer.
_GRADES = {reason: Grade(_REWARDS.get(reason, 0.0), str(reason)) for reason in Reason}
# The reasons that are about particular numbers of the answer or of the row.
_ABOUT_NUMBERS = (Reason.EXTRA_NUMBER, Reason.REUSED_NUMBER, Reason.MISSING_NUMBER)


class CountdownReward(Reward):
    """Reward 1.0 for a right Countdown answer, 0.0 for a wrong one.

    None where nums or target cannot be read. `swift_rlvr.verifiers.countdown.verifier` defines
    what counts as right, and the accepted forms of the two columns.

    >>> reward = CountdownReward()
    >>> reward(["<answer>1 + 2 * 3</answer>", "<answer>1 + 2 + 4</answer>"], nums=[[1, 2, 3]] * 2, target=[7, 7])
    [1.0, 0.0]
    """

    name = "external_countdown"
    role = VERIFIER
    columns = ("nums", "target")
    columns_elsewhere = {"nums": ("numbers",)}
    reasons = tuple(map(str, Reason))
    examples = (
        Example(
            "<think>1 + 2 = 3.</think><answer>1 + 2 + 3 = 6</answer>",
            {"nums": [1, 2, 3], "target": 6},
            1.0,
        ),
        Example(
            "<think>1 + 2 = 3.</think><answer>1 + 2 * 3 = 6</answer>",
            {"nums": [1, 2, 3], "target": 6},
            0.0,
        ),
        Example(
            "<think>1 + 2 = 3.</think><answer>1 + 2 + 3 = 6</answer>",
            {"nums": [1, None], "target": 6},
            None,
        ),
    )
    # They hold numbers of the prompt and of the answer.
    shows_details = True

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        notation: str = setting(
            "lenient",
            "`strict` accepts plain ASCII only, `lenient` also typographic and LaTeX forms",
            choices=("lenient", "strict"),
        )

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        verdicts = grade_all(
            texts, columns["nums"], columns["target"], notation=self.parameters.notation
        )
        return [_GRADES[verdict.reason] for verdict in verdicts]

    def grade(self, text: str | None, row: Row) -> Explanation:
        verdict = verify(text, row["nums"], row["target"], notation=self.parameters.notation)
        detail = _wrong_numbers(verdict, row["nums"], row["target"])
        rules = rules_in_order(RULES, verdict.reason, detail)
        if verdict.value is not None:
            values = f"the value is {verdict.value}, the target {row['target']}"
            rules[-1] = rules[-1]._replace(detail=values)
        return Explanation(verdict.reward, str(verdict.reason), verdict.expression, rules)


def _wrong_numbers(verdict: Verdict, nums: object, target: object) -> str:
    """The numbers for which an answer was refused, or that it lacks; "" for another verdict."""
    gold = read_gold(nums, target)
    if gold is None or verdict.reason not in _ABOUT_NUMBERS:
        return ""
    text = verdict.expression or ""
    parsed = parse(text) or parse(to_plain(text) or "")
    if parsed is None:
        return ""

    # Of the sides of an equation, the verdict is about the longest.
    shape, numbers = parsed
    longest = max((numbers[side] for side in shape.sides), key=len)
    used = Counter(longest)
    available = Counter(gold[0])
    if verdict.reason is Reason.MISSING_NUMBER:
        wrong = list((available - used).elements())
    elif verdict.reason is Reason.EXTRA_NUMBER:
        wrong = list(used.keys() - available.keys())
    else:
        wrong = list(used - available)
    return ", ".join(map(str, sorted(wrong)))
