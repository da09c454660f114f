r"""The Countdown verifier: does a completion make the target from the numbers?

What counts as right: the answer (see `swift_rlvr.answers`) is an expression of ``+ - * /``, parentheses and whole
numbers (see `swift_rlvr.countdown.arithmetic`) that uses every given number exactly once and no other, and whose exact value is
the target. With ``=``, one side uses the numbers and every side equals the target: ``(1 + 2) * 3 = 3 * 3 = 9`` is
right, ``(1 + 2) * 3 = 8`` and ``(1 + 2) * 3 = ?`` are not. White space, line breaks too, may stand anywhere but inside
a number; working spread over several lines is therefore read as one text, and refused where one line ends and the next
begins with a number. Words, decimals, brackets other than parentheses, digit grouping (``1,000``), leading zeros and a
full stop at the end are refused: none of them is an expression of the task.

The task is the one of TinyZero (https://github.com/Jiayi-Pan/TinyZero); its scorer, like most, evaluates the answer
with eval and a tolerance. This one parses it and computes with rational numbers, in time linear in the completion's
length.
"""

import re
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from itertools import repeat
from operator import countOf
from typing import NamedTuple

from swift_rlvr.answers import has_unclosed_answer, last_answer
from swift_rlvr.countdown.arithmetic import MAX_CHARS, solve, solve_all
from swift_rlvr.countdown.notation import to_plain


class Reason(str, Enum):
    """Why a completion got its reward; the value is the text for logs. Of several reasons the first listed counts."""

    BAD_GOLD = "bad gold"  # nums or target of the row cannot be read: nothing can be graded
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # over arithmetic.MAX_CHARS characters
    FORBIDDEN_OPERATOR = "forbidden operator"  # ** // % ^ ! and the like, in an answer without words
    NOT_AN_EXPRESSION = "not an expression"
    EXTRA_NUMBER = "extra number"  # one that is not among the given numbers
    REUSED_NUMBER = "reused number"  # more often than it is given
    MISSING_NUMBER = "missing number"
    DIVISION_BY_ZERO = "division by zero"
    FALSE_EQUATION = "false equation"  # the sides differ
    WRONG_VALUE = "wrong value"
    CORRECT = "correct"

    def __str__(self) -> str:
        return self.value


class Verdict(NamedTuple):
    """What `verify` found."""

    reward: float | None
    """1.0 for a right answer, 0.0 for a wrong one, None where the row cannot be graded."""
    reason: Reason
    expression: str | None = None
    """The answer as it was written, or None where there is none of a length that can be read."""
    value: Fraction | None = None
    """The exact value of the side that uses the numbers, or None where it was not computed."""


NOTATIONS = ("lenient", "strict")
_CHUNK = 128  # completions solved together: enough to share the work, few enough to use the same memory again
_ASCII_SPACE = " \n\t\r\f\v"
_FORBIDDEN = re.compile(r"\*\*|//|==|[%^!~|&@<>≈≠≤≥√²³¹⁰⁴⁵⁶⁷⁸⁹]")
_INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0+)?")


def check_notation(notation: str) -> str:
    """Return the notation, or raise ValueError where it is not one of `NOTATIONS`."""
    if notation not in NOTATIONS:
        raise ValueError(f"notation must be 'lenient' or 'strict', not {notation!r}")
    return notation


def verify(completion: object, nums: object, target: object, *, notation: str = "lenient") -> Verdict:
    r"""Judge one completion.

    Args:
        completion: the text the policy wrote. Whatever it is, it never raises; what is not a string has no answer.
        nums: the given numbers, whole and not negative: a list, a tuple or an array of integers (integral floats too),
            or a string holding them, ``"[1, 2]"``, ``"1,2"`` or ``"1 2"``.
        target: an integer, an integral float, an array scalar, or a string holding one.
        notation: ``"lenient"`` also reads the typographic and LaTeX forms of the four operators, of parentheses and
            digits (``×``, ``÷``, ``\frac{a}{b}``, ``\boxed{...}``, ``$...$``, backticks, full-width characters);
            ``"strict"`` reads plain ASCII only.

    Raises:
        ValueError: for another notation.

    >>> verdict = verify("<think>...</think><answer>(1 + 2) / 3 * 4 = 4</answer>", [1, 2, 3, 4], 4)
    >>> verdict.reward, str(verdict.reason), verdict.value
    (1.0, 'correct', Fraction(4, 1))
    >>> str(verify(r"<answer>\frac{7}{2} × 2</answer>", [7, 2], 7).reason)
    'reused number'
    >>> verify("<answer>1 + 2</answer>", [1, None], 3).reward is None
    True
    """
    check_notation(notation)
    completion = completion if isinstance(completion, str) else None
    ((reward, reason, text, found),) = _judge_all([completion], [nums], [target], notation)
    value = None
    if reason is Reason.CORRECT:
        value = found
    elif reason is Reason.NO_ANSWER and completion is not None and has_unclosed_answer(completion):
        reason = Reason.UNCLOSED_ANSWER
    elif reason is Reason.NOT_AN_EXPRESSION:
        reason = _why_unreadable(found)
    elif reason is Reason.MISSING_NUMBER:
        reason = _why_wrong_numbers(*found)
    elif reason is Reason.WRONG_VALUE:
        (shape, values), side = found
        results = [values[root] for root in shape.roots]
        value = results[shape.sides.index(side)]
        if None in results:
            reason, value = Reason.DIVISION_BY_ZERO, None
        elif results.count(value) < len(results):
            reason = Reason.FALSE_EQUATION
    return Verdict(reward, reason, text and text.strip(), None if value is None else Fraction(value))


def grade_all(
    completions: list[str | None], nums: list, target: list, *, notation: str = "lenient"
) -> list[float | None]:
    """Return the rewards that `verify` gives to many completions (None: no text), without the reasons and faster.

    >>> grade_all(["<answer>1 + 2 = 3</answer>", "<answer>1 + 2 = 4</answer>"], [[1, 2], [1, 2]], [3, 3])
    [1.0, 0.0]
    """
    check_notation(notation)
    return [judged[0] for judged in _judge_all(completions, nums, target, notation)]


# Looked up once: reading a member off an Enum is slow before Python 3.12.
_BAD_GOLD, _NO_ANSWER = Reason.BAD_GOLD, Reason.NO_ANSWER
_EMPTY_ANSWER, _TOO_LONG = Reason.EMPTY_ANSWER, Reason.TOO_LONG
_UNREADABLE, _WRONG_NUMBERS = Reason.NOT_AN_EXPRESSION, Reason.MISSING_NUMBER  # until `verify` looks closer
_WRONG_VALUE, _CORRECT = Reason.WRONG_VALUE, Reason.CORRECT


def _judge_all(completions, nums, target, notation) -> Iterator[tuple]:
    for start in range(0, len(completions), _CHUNK):
        part = slice(start, start + _CHUNK)
        answers = [None if text is None else last_answer(text) for text in completions[part]]
        solved = solve_all([text or "" for text in answers])
        yield from map(_judge, answers, solved, nums[part], target[part], repeat(notation))


def _judge(text, solved, nums, target, notation) -> tuple[float | None, Reason, str | None, object]:
    """Return reward, reason, answer text, and what `verify` needs to tell the reason more closely or the value."""
    # The common case in line: to call for it costs as much as to look for an answer in 1,000 characters.
    if type(nums) is list and type(target) is int and 0 < len(nums) == countOf(map(type, nums), int):
        given, goal = sorted(nums), target
        if given[0] < 0:
            return None, _BAD_GOLD, None, None
    else:
        gold = read_gold(nums, target)
        if gold is None:
            return None, _BAD_GOLD, None, None
        given, goal = gold
    if solved is None:
        if text is None:
            return 0.0, _NO_ANSWER, None, None
        text = text.strip() if notation == "lenient" else text.strip(_ASCII_SPACE)
        if not text:
            return 0.0, _EMPTY_ANSWER, None, None
        if len("".join(text.split())) > MAX_CHARS:
            return 0.0, _TOO_LONG, None, None
        plain = to_plain(text) if notation == "lenient" else None
        solved = solve(plain) if plain is not None else None
        if solved is None:
            return 0.0, _UNREADABLE, text, text if plain is None else plain

    (_, _, sides, roots), values = solved
    for first, last in sides:
        used = values[first:last]
        used.sort()
        if used == given:
            break
    else:
        return 0.0, _WRONG_NUMBERS, text, (sides, values, given)
    for root in roots:
        if values[root] != goal:
            return 0.0, _WRONG_VALUE, text, (solved, (first, last))
    return 1.0, _CORRECT, text, goal


def read_gold(nums: object, target: object) -> tuple[list[int], int] | None:
    """Return the numbers, sorted, and the target, or None where either is not in a form that `verify` accepts.

    >>> read_gold("[3, 1, 2]", "24"), read_gold([1, 2.0], 3.0), read_gold([1, True], 3), read_gold([], 3)
    (([1, 2, 3], 24), ([1, 2], 3), None, None)
    """
    if isinstance(nums, str):
        nums = nums.strip()
        bracketed = nums[:1] + nums[-1:] in ("[]", "()")
        nums = (nums[1:-1] if bracketed else nums).replace(",", " ").split()
    elif hasattr(nums, "tolist"):
        nums = nums.tolist()
    if not isinstance(nums, (list, tuple)) or not nums:
        return None
    given, goal = [_integer(number) for number in nums], _integer(target)
    if goal is None or None in given or min(given) < 0:
        return None
    return sorted(given), goal


def _integer(value: object) -> int | None:
    if hasattr(value, "tolist"):  # an array scalar
        value = value.tolist()
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    # 1,000 digits: far above any task, far below the length at which int() refuses
    if isinstance(value, str) and len(value) <= 1000 and _INTEGER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    return None


def _why_unreadable(text: str) -> Reason:
    without_commands = re.sub(r"\\[A-Za-z]+", " ", text)
    if _FORBIDDEN.search(without_commands) and not any(map(str.isalpha, without_commands)):
        return Reason.FORBIDDEN_OPERATOR
    return Reason.NOT_AN_EXPRESSION


def _why_wrong_numbers(sides: tuple, values: list, given: list[int]) -> Reason:
    """Say what is wrong with the numbers of the side that has the most of them, the first of several."""
    used: list[int] = []
    for first, last in sides:
        if last - first > len(used):
            used = values[first:last]
    if not set(used) <= set(given):
        return Reason.EXTRA_NUMBER
    reused = any(used.count(number) > given.count(number) for number in used)
    return Reason.REUSED_NUMBER if reused else Reason.MISSING_NUMBER
