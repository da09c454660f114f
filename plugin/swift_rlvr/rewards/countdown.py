"""The Countdown reward: 1.0 for an answer that makes the target from the numbers, each used exactly
once.
"""

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

RULES = {  # in the order in which `verify` checks them
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
_GRADES = {  # made once, since a `Grade` takes as long to make as an answer to find
    reason: Grade({Reason.CORRECT: 1.0, Reason.BAD_GOLD: None}.get(reason, 0.0), str(reason))
    for reason in Reason
}


class CountdownReward(Reward):
    """Reward 1.0 for a right Countdown answer, 0.0 for a wrong one, None where nums or target
    cannot be read.

    `swift_rlvr.verifiers.countdown.verifier` defines what counts as right, and the accepted forms
    of the two columns.

    >>> reward = CountdownReward()
    >>> reward(["<answer>1 + 2 * 3</answer>", "<answer>1 + 2 + 4</answer>"], nums=[[1, 2, 3]] * 2, target=[7, 7])
    [1.0, 0.0]
    """

    name = "external_countdown"
    role = VERIFIER
    columns = ("nums", "target")
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
    shows_details = True  # numbers of the prompt and of the answer

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        notation: str = setting(
            "lenient",
            "`strict` reads plain ASCII, `lenient` typographic and LaTeX forms too",
            choices=("lenient", "strict"),
        )

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        verdicts = grade_all(
            texts, columns["nums"], columns["target"], notation=self.parameters.notation
        )
        return [_GRADES[verdict.reason] for verdict in verdicts]

    def grade(self, text: str | None, row: Row) -> Explanation:
        verdict = verify(text, row["nums"], row["target"], notation=self.parameters.notation)
        rules = rules_in_order(
            RULES, verdict.reason, _wrong_numbers(verdict, row["nums"], row["target"])
        )
        if verdict.value is not None:
            rules[-1] = rules[-1]._replace(
                detail=f"the value is {verdict.value}, the target {row['target']}"
            )
        return Explanation(verdict.reward, str(verdict.reason), verdict.expression, rules)


def _wrong_numbers(verdict: Verdict, nums: object, target: object) -> str:
    """The numbers of an answer for which it was refused, or that it lacks."""
    gold = read_gold(nums, target)
    if gold is None or verdict.reason not in (
        Reason.EXTRA_NUMBER,
        Reason.REUSED_NUMBER,
        Reason.MISSING_NUMBER,
    ):
        return ""
    text = verdict.expression or ""
    parsed = parse(text) or parse(to_plain(text) or "")
    if parsed is None:
        return ""
    shape, numbers = parsed
    longest = max((numbers[side] for side in shape.sides), key=len)  # which the verdict is about
    used, given = Counter(longest), Counter(gold[0])
    if verdict.reason is Reason.MISSING_NUMBER:
        wrong = list((given - used).elements())
    elif verdict.reason is Reason.EXTRA_NUMBER:
        wrong = list(used.keys() - given.keys())
    else:
        wrong = list(used - given)
    return ", ".join(map(str, sorted(wrong)))
