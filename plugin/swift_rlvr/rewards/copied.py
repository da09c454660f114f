r"""Is an answer a formula of the question, word for word?

"Simplify $\sqrt{72}$" is answered with $\sqrt{72}$, which equals the gold $6\sqrt2$: nothing has been
done, and the verifier, which compares values, pays. A formula here is what has an operation: a
number of the question may well be its answer.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from swift_rlvr.verifiers.messages import last_text, message_text

# Where trainers and datasets have the question.
QUESTION_COLUMNS = ("messages", "prompts")
# What is written or not without a difference.
_LAYOUT = re.compile(
    r"\\(?:left|right|displaystyle|limits|[bB]igg?[lr]?)(?![A-Za-z])|\\[,;:! ]|\\q?quad(?![A-Za-z])"
    r"|[\s$]|\\[()\[\]]"
)
_SAME = (
    ("\\dfrac", "\\frac"),
    ("\\tfrac", "\\frac"),
    ("\\cdot", "*"),
    ("\\times", "*"),
    ("−", "-"),
)
_SINGLE_IN_BRACES = re.compile(r"\{(\w)\}")
_FRACTION = re.compile(r"\\frac(?:\{([^{}]*)\}|(\w))(?:\{([^{}]*)\}|(\w))")
# In brackets and between commas: (3, 4) is no formula where 3 and 4 are none.
_PARTS = re.compile(r"[()\[\],;]|\\[{}]")
# 12, -1.5, 50%, 90^\circ, 5\text{cm}, x, 2\pi; also x = 3 and x > 3, which are solved
_VALUE = re.compile(
    r"(?:[A-Za-z](?:=|[<>]|\\(?:leq?|geq?|neq?)(?![a-z])))?"
    r"[-+]?(?:[\d.]*|\d*(?:[A-Za-z]|\\pi|\\infty))(?:\\?%|\^\\circ|\\(?:text|mathrm)\{[^{}]*\})?"
)
# 3/4, 3\pi/4
_QUOTIENT = re.compile(r"[-+]?(\d{0,50})(?:\\pi)?/(\d{1,50})")


def question_of(row: Mapping[str, Any]) -> str | None:
    """The text of a row's question, or None.

    All turns of the user belong to it: after several turns the last one may only say "Try again.",
    and the formula stands in the first.
    """
    prompt = row.get("messages")
    if _is_conversation(prompt):
        asked = _said_by_user(prompt)  # ms-swift's messages end with the completion
        if asked is not None:
            return asked
    prompt = row.get("prompts")
    return _said_by_user(prompt) if _is_conversation(prompt) else last_text(prompt)


def _is_conversation(prompt: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(prompt, Sequence) and not isinstance(prompt, str)


def _said_by_user(turns: Sequence[Any]) -> str | None:
    """The texts of the user's turns, with an empty line between them; None where there are none."""
    texts = []
    for turn in turns:
        if isinstance(turn, Mapping) and turn.get("role") == "user":
            texts.append(message_text(dict(turn)))
    known = [text for text in texts if text is not None]
    return "\n\n".join(known) if known else None


def is_copied(answer: str, gold: str, question: str) -> bool:
    r"""Whether an answer is a formula that stands in the question as it is, and the gold is not.

    >>> is_copied(r"\sqrt{72}", r"6\sqrt{2}", r"Simplify $\sqrt{72}$."), is_copied(r"6\sqrt2", r"6\sqrt{2}", "...")
    (True, False)
    >>> is_copied("7", "7.0", "There are 7 days."), is_copied("x + 1", "x+1", "Is $x+1$ or $x+2$ a factor?")
    (False, False)
    """
    formula = _squeezed(answer)
    if not _is_formula(formula):
        return False
    asked = _squeezed(question)
    return _stands_in(formula, asked) and not _stands_in(_squeezed(gold), asked)


def _squeezed(text: str) -> str:
    """A text without white space and what else changes nothing in a formula."""
    text = _LAYOUT.sub("", text)
    for written, same in _SAME:
        text = text.replace(written, same)
    text = _SINGLE_IN_BRACES.sub(r"\1", text)
    return _FRACTION.sub(lambda match: "/".join(filter(None, match.groups())), text).rstrip(".")


def _is_formula(text: str) -> bool:
    """Whether there is something left to do: not every part is a number, a name, or a fraction in
    lowest terms.
    """
    return any(map(_is_to_do, _PARTS.split(text)))


def _is_to_do(part: str) -> bool:
    if _VALUE.fullmatch(part):
        return False
    fraction = _QUOTIENT.fullmatch(part)
    if fraction is None:
        return any(not character.isalnum() for character in part)
    return math.gcd(int(fraction[1] or 1), int(fraction[2])) > 1


def _stands_in(formula: str, question: str) -> bool:
    """Whether a formula stands in a text that is squeezed too, and not within a longer number or
    name.
    """
    start = question.find(formula)
    while start >= 0:
        end = start + len(formula)
        # A word may stand beside it, since there is no white space.
        before = question[start - 1 : start] if formula[0].isdigit() else ""
        after = question[end : end + 1] if formula[-1].isdigit() else ""
        if not before.isdigit() and before != "." and not after.isdigit():
            return True
        start = question.find(formula, start + 1)
    return False
