"""The boxed answer reward: 1.0 where the last box holds the gold, compared as text."""

import math

from swift_rlvr.answers import after_think, last_boxed, marked_answer
from swift_rlvr.rewards.base import Explanation, Grade, Reward, Row, Rule


def plain(answer: str) -> str:
    r"""The answer without white space and without the ``$`` around it.

    >>> print(plain(" $\\frac{1} {2}$ "))
    \frac{1}{2}
    """
    return "".join(answer.split()).strip("$")


def gold_text(solution: object) -> str | None:
    r"""The gold as `plain` text, or None where there is none.

    Args:
        solution: a number, or a text, of which the answer that `marked_answer` finds counts, or else all of it.

    >>> gold_text(72.0), gold_text("48 + 24 = 72\n#### 72"), gold_text(r"It is $\boxed{72}$."), gold_text("")
    ('72', '72', '72', None)
    """
    if isinstance(solution, bool) or not isinstance(solution, (str, int, float)):
        return None
    if isinstance(solution, float):
        if not math.isfinite(solution):
            return None
        solution = int(solution) if solution.is_integer() else solution
    if not isinstance(solution, str):
        try:
            return str(solution)
        except ValueError:  # Python refuses to write out whole numbers of thousands of digits
            return None
    marked = marked_answer(solution)
    return plain(solution if marked is None else marked[1]) or None


class BoxedReward(Reward):
    r"""Reward 1.0 where the last ``\boxed{...}`` after the thinking is the gold, 0.0 otherwise, None without a gold.

    It compares texts without their white space and the ``$`` around them, so ``0.5`` is not ``\frac{1}{2}``;
    `external_accuracy` compares values. The gold is in the column `solution`.

    >>> reward = BoxedReward()
    >>> reward([r"So it is \boxed{72}.", r"\boxed{71}", "72"], solution=["#### 72", r"\boxed{72}", 72])
    [1.0, 0.0, 0.0]
    """

    name = "external_boxed"
    columns = ("solution",)
    reasons = ("correct", "wrong answer", "empty box", "no box", "no text", "bad gold")

    def grade(self, text: str | None, row: Row) -> Grade:
        return self._judge(text, row["solution"])[0]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        (reward, reason), box, gold = self._judge(text, row["solution"])
        rules = [
            Rule("the gold can be read", gold is not None, "" if gold is None else f"it is {gold[:80]}"),
            Rule(r"there is a \boxed{...} after the thinking", None if reason == "bad gold" else box is not None),
            Rule("it is not empty", None if box is None else bool(plain(box))),
            Rule("it is the gold", reward == 1.0 if reason in ("correct", "wrong answer") else None),
        ]
        return Explanation(reward, reason, box, rules)

    @staticmethod
    def _judge(text: str | None, solution: object) -> tuple[Grade, str | None, str | None]:
        """The grade, the text in the box, and the gold."""
        gold = gold_text(solution)
        if gold is None:
            return Grade(None, "bad gold"), None, None
        if text is None or not text.strip():
            return Grade(0.0, "no text"), None, gold
        box = last_boxed(after_think(text))
        if box is None:
            return Grade(0.0, "no box"), None, gold
        if not plain(box):
            return Grade(0.0, "empty box"), box, gold
        return (Grade(1.0, "correct") if plain(box) == gold else Grade(0.0, "wrong answer")), box, gold
