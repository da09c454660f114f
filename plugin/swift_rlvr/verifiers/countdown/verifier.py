r"""The Countdown verifier: does a completion make the target from the numbers?

What counts as right: the answer (see `swift_rlvr.verifiers.answers`) is an expression of ``+ - *
/``, parentheses and whole numbers (see `swift_rlvr.verifiers.countdown.arithmetic`) that uses every
given number exactly once and no other, and whose exact value is the target. With ``=``, one side
uses the numbers and every side equals the target: ``(1 + 2) * 3 = 3 * 3 = 9`` is right, ``(1 + 2) *
3 = 8`` and ``(1 + 2) * 3 = ?`` are not. The result at the end may have a point and zeros, ``(1 + 2)
* 3 = 9.0``, unless the notation is strict. Words, other decimals, brackets other than parentheses,
digit grouping (``1,000``), leading zeros and a full stop at the end are refused: the task asks for
an expression only. A note behind an equation, ``(1 + 2) * 3 = 9 (uses all)``, is refused too: it
may take it back or be a second one.

The task is the one of TinyZero (https://github.com/Jiayi-Pan/TinyZero). Its scorer, like most,
evaluates the answer with eval and a tolerance. This one parses it and computes with rational
numbers, in linear time.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from operator import countOf
from typing import NamedTuple

from swift_rlvr.verifiers.answers import has_unclosed_answer, last_answer
from swift_rlvr.verifiers.countdown.arithmetic import parse
from swift_rlvr.verifiers.countdown.notation import to_plain

# of an answer without its white space: bounds the depth, the size of the numbers, memory and time
MAX_CHARS = 1024
_ASCII_SPACE = " \n\t\r\f\v"


class Reason(StrEnum):
    """Why a completion got its reward; the value is the text for logs. Where several apply, the
    first listed counts.
    """

    BAD_GOLD = "bad gold"  # nums or target of the row cannot be read, so nothing can be graded
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # more than MAX_CHARS characters
    # ** // % ^ ! and the like, in an answer without words
    FORBIDDEN_OPERATOR = "forbidden operator"
    NOT_AN_EXPRESSION = "not an expression"
    EXTRA_NUMBER = "extra number"  # one that is not among the given numbers
    REUSED_NUMBER = "reused number"  # more often than it is given
    MISSING_NUMBER = "missing number"
    DIVISION_BY_ZERO = "division by zero"
    FALSE_EQUATION = "false equation"  # the sides differ
    WRONG_VALUE = "wrong value"
    CORRECT = "correct"


class Verdict(NamedTuple):
    """The judgement of one completion."""

    # 1.0 for a right answer, 0.0 for a wrong one, None where the row cannot be graded
    reward: float | None
    reason: Reason
    # the answer as it was written, or None where there is none or it is too long
    expression: str | None = None
    # exact, of the side that uses the numbers, or None where it was not computed
    value: Fraction | None = None


# 2 ** 3, 7 // 2, 2³; what people write for what the task does not allow
_FORBIDDEN = re.compile(r"\*\*|//|==|[%^!~|&@<>≈≠≤≥√²³¹⁰⁴⁵⁶⁷⁸⁹]")
# 24, +24, 24.0; not 24.5
_INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0+)?")
# 1,000 digits: far above any task, far below the length at which int() refuses
_LONGEST_INTEGER = 1000
# a Fraction is slow to make, and most values are small whole numbers
_exact = lru_cache(maxsize=1024)(Fraction)


def verify(
    completion: object, nums: object, target: object, *, notation: str = "lenient"
) -> Verdict:
    r"""Judge one completion.

    Args:
        completion: the text that the policy wrote. No text raises an error; what is not a string
            has no answer.
        nums: the given numbers, whole and not negative: a list, a tuple or an array of integers
            (integral floats too), or a string holding them, ``"[1, 2]"``, ``"1,2"`` or ``"1 2"``.
        target: an integer, an integral float, an array scalar, or a string holding one.
        notation: ``"lenient"`` also reads typographic and LaTeX notation (``×``, ``\frac{a}{b}``,
            ``\boxed{...}``, ``$...$``, backticks, full-width); ``"strict"`` reads plain ASCII only;
            any other raises ValueError.

    >>> verdict = verify("<think>...</think><answer>(1 + 2) / 3 * 4 = 4</answer>", [1, 2, 3, 4], 4)
    >>> verdict.reward, str(verdict.reason), verdict.value
    (1.0, 'correct', Fraction(4, 1))
    """
    return grade_all([completion], [nums], [target], notation=notation)[0]


def grade_all(
    completions: Sequence[object],
    nums: Sequence[object],
    target: Sequence[object],
    *,
    notation: str = "lenient",
) -> list[Verdict]:
    """Judge many completions as `verify` judges one. ValueError where the three sequences are not
    equally long.
    """
    if notation not in ("lenient", "strict"):
        raise ValueError(f"notation must be 'lenient' or 'strict', not {notation!r}")
    if not len(completions) == len(nums) == len(target):
        raise ValueError(
            f"{len(completions)} completions, {len(nums)} nums, {len(target)} target: must be equally many"
        )
    return list(map(_verdict, completions, nums, target, repeat(notation == "lenient")))


# Looked up once: reading a member off an Enum is slow before Python 3.12.
_CORRECT = Reason.CORRECT
_FALSE_EQUATION = Reason.FALSE_EQUATION
_WRONG_VALUE = Reason.WRONG_VALUE


def _verdict(completion: object, nums: object, target: object, lenient: bool) -> Verdict:
    """The one way to a verdict: each check returns as soon as it fails."""
    gold = read_gold(nums, target)
    if gold is None:
        return Verdict(None, Reason.BAD_GOLD)
    given, goal = gold

    written = completion if isinstance(completion, str) else ""
    text = last_answer(written)
    if text is None:
        is_open = has_unclosed_answer(written)
        return Verdict(0.0, Reason.UNCLOSED_ANSWER if is_open else Reason.NO_ANSWER)
    text = text.strip() if lenient else text.strip(_ASCII_SPACE)
    if not text:
        return Verdict(0.0, Reason.EMPTY_ANSWER)
    # White space is only counted where it matters: it costs nothing but time.
    if len(text) > MAX_CHARS and len("".join(text.split())) > MAX_CHARS:
        return Verdict(0.0, Reason.TOO_LONG)

    parsed = parse(text)
    plain = text
    if parsed is None and lenient:
        # LaTeX that cannot be read stays as it is.
        plain = to_plain(text) or text
        parsed = parse(plain)
    if parsed is None:
        # LaTeX commands are no words, so that `2^3 \\times 4` names the operator.
        without_commands = re.sub(r"\\[A-Za-z]+", " ", plain)
        has_words = any(map(str.isalpha, without_commands))
        is_forbidden = _FORBIDDEN.search(without_commands) and not has_words
        reason = Reason.FORBIDDEN_OPERATOR if is_forbidden else Reason.NOT_AN_EXPRESSION
        return Verdict(0.0, reason, text)
    shape, numbers = parsed

    # the side that uses the given numbers, of which there may be several: 1 + 2 = 2 + 1
    for side in shape.sides:
        if sorted(numbers[side]) == given:
            break
    else:
        # The reason is that of the longest side.
        used = max((numbers[side] for side in shape.sides), key=len)
        if not set(used) <= set(given):
            reason = Reason.EXTRA_NUMBER
        elif any(used.count(number) > given.count(number) for number in used):
            reason = Reason.REUSED_NUMBER
        else:
            reason = Reason.MISSING_NUMBER
        return Verdict(0.0, reason, text)
    try:
        values = shape.evaluate(numbers)
    except ZeroDivisionError:
        return Verdict(0.0, Reason.DIVISION_BY_ZERO, text)
    if values.count(goal) == len(values):
        return Verdict(1.0, _CORRECT, text, _exact(goal))
    value = values[shape.sides.index(side)]
    sides_agree = values.count(value) == len(values)
    reason = _WRONG_VALUE if sides_agree else _FALSE_EQUATION
    return Verdict(0.0, reason, text, _exact(value))


def read_gold(nums: object, target: object) -> tuple[list[int], int] | None:
    """Return the numbers, sorted, and the target, or None where either is not in a form that
    `verify` accepts.

    >>> read_gold("[3, 1, 2]", "24"), read_gold([1, 2.0], 3.0), read_gold([1, True], 3), read_gold([], 3)
    (([1, 2, 3], 24), ([1, 2], 3), None, None)
    """
    # Most rows have this form, and it is read several times as fast.
    if (
        type(nums) is list
        and type(target) is int
        and countOf(map(type, nums), int) == len(nums) > 0
    ):
        given = sorted(nums)
        if given[0] < 0:
            return None
        return given, target

    numbers = _numbers(nums)
    if numbers is None:
        return None
    goal = _integer(target)
    return None if goal is None else (sorted(numbers), goal)


def _numbers(nums: object) -> list[int] | None:
    """The given numbers, or None where they are none or one is not whole or negative."""
    if isinstance(nums, str):
        # "[1, 2]", "(1, 2)", "1,2" or "1 2"
        nums = nums.strip()
        if nums[:1] + nums[-1:] in ("[]", "()"):
            nums = nums[1:-1]
        nums = nums.replace(",", " ").split()
    elif hasattr(nums, "tolist"):
        nums = nums.tolist()
    if not isinstance(nums, (list, tuple)) or not nums:
        return None
    numbers = []
    for number in nums:
        integer = _integer(number)
        if integer is None or integer < 0:
            return None
        numbers.append(integer)
    return numbers


def _integer(value: object) -> int | None:
    if hasattr(value, "tolist"):  # an array scalar
        value = value.tolist()
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) <= _LONGEST_INTEGER:
        value = value.strip()
        if _INTEGER.fullmatch(value):
            return int(value.partition(".")[0])
    return None
