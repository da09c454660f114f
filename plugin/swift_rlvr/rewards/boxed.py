"""The boxed answer reward: 1.0 where the last box holds the gold, compared as text."""

import math
from collections.abc import Sequence

from swift_rlvr.rewards.base import Example, Explanation, Reward, Row, Rule
from swift_rlvr.success import VERIFIER
from swift_rlvr.verifiers.answer_forms import BOXED
from swift_rlvr.verifiers.answers import last_boxed, marked_answer, with_latex_boxes
from swift_rlvr.verifiers.statements import final_statement
from swift_rlvr.verifiers.thinking import after_thinking

# In the order in which they are checked.
_RULES = (
    "the gold can be read",
    r"there is a \boxed{...} after the thinking, which no words deny",
    "it is not empty",
    "it is the gold",
)


def plain(answer: str) -> str:
    r"""The answer without white space and without the ``$`` around it.

    >>> print(plain(" $\\frac{1} {2}$ "))
    \frac{1}{2}
    """
    return "".join(answer.split()).strip("$")


def gold_text(gold: object) -> str | None:
    r"""The gold as `plain` text, or None if it cannot be read.

    The gold is a number, or a text whose answer `marked_answer` finds, or all of the text.

    >>> gold_text(72.0), gold_text("48 + 24 = 72\n#### 72"), gold_text(r"It is $\boxed{72}$."), gold_text("")
    ('72', '72', '72', None)
    """
    if isinstance(gold, float) and math.isfinite(gold):
        number = int(gold) if gold.is_integer() else gold
        return str(number)
    if isinstance(gold, int) and not isinstance(gold, bool):
        try:
            return str(gold)
        except ValueError:
            # Python refuses to write out whole numbers of thousands of digits.
            return None
    if not isinstance(gold, str):
        return None
    answer = gold
    marked = marked_answer(gold)
    if marked is not None:
        _, answer = marked
    return plain(answer) or None


class BoxedReward(Reward):
    r"""Reward 1.0 where the last ``\boxed{...}`` after the thinking is the gold, 0.0 otherwise.

    None without a gold, which is in the column `solution`. It compares texts without their white
    space and the ``$`` around them, so ``0.5`` is not ``\frac{1}{2}``; `external_accuracy` compares
    values.

    >>> reward = BoxedReward()
    >>> reward([r"So it is \boxed{72}.", r"\boxed{71}", "72"], solution=["#### 72", r"\boxed{72}", 72])
    [1.0, 0.0, 0.0]
    """

    name = "external_boxed"
    role = VERIFIER
    columns = ("solution",)
    reasons = ("correct", "wrong answer", "empty box", "no box", "no text", "bad gold")
    examples = (
        Example(r"\boxed{7a}", {"solution": "7 a"}, 1.0),
        Example(r"\boxed{8}", {"solution": "7 a"}, 0.0),
        Example(r"\boxed{7a}", {"solution": None}, None),
    )

    def grade(self, text: str | None, row: Row) -> Explanation:
        gold = gold_text(row["solution"])
        if gold is None:
            return _explanation(None, "bad gold", None, [False, None, None, None])
        detail = f"it is {gold[:80]}"
        whole = with_latex_boxes(text or "")
        box = last_boxed(after_thinking(whole))
        # "not \boxed{7}" states no answer
        if box is not None and final_statement(whole, BOXED) is None:
            box = None
        if box is None:
            reason = "no box" if text and text.strip() else "no text"
            return _explanation(0.0, reason, None, [True, False, None, None], detail)
        answer = plain(box)
        if not answer:
            return _explanation(0.0, "empty box", box, [True, True, False, None], detail)
        if answer != gold:
            return _explanation(0.0, "wrong answer", box, [True, True, True, False], detail)
        return _explanation(1.0, "correct", box, [True, True, True, True], detail)


def _explanation(
    reward: float | None,
    reason: str,
    box: str | None,
    passed: Sequence[bool | None],
    about_gold: str = "",
) -> Explanation:
    rules = [Rule(name, outcome) for name, outcome in zip(_RULES, passed, strict=True)]
    rules[0] = rules[0]._replace(detail=about_gold)
    return Explanation(reward, reason, box, rules)
