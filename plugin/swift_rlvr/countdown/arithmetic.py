"""Exact evaluation of ``+ - * /`` expressions and equations over whole numbers, without eval and without recursion.

A policy writes the same few hundred shapes of expression again and again with other numbers in them. So a text is
split into its numbers and its shape (``(12 + 5) * 3`` has the shape ``(0+0)*0``), a shape is parsed once into a list of
steps, and steps are cheap to run: on integers while divisions come out even, on numerators and denominators otherwise.
"""

import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MAX_CHARS = 1024
"""Longest text that is parsed, white space not counted. It bounds depth, size of the numbers, memory and time."""

_SPACE = b" \t\n\r\f\v"
_CACHED_CHARS = 64  # shapes up to here are kept; longer ones are rare, and would let a policy fill the memory
_SHAPE_BYTES = bytes.maketrans(b"123456789", b"000000000")
_SEPARATOR = "\0"
_NUMBER_BYTES = bytes(byte if chr(byte) in "0123456789" + _SEPARATOR else 32 for byte in range(256))
_small_int = {str(i).encode(): i for i in range(1000)}.__getitem__  # several times as fast as int()
_PRECEDENCE = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "negate": 3}


class Shape(NamedTuple):
    """A parsed shape. Values begin as its numbers; each step ``(f, i, j)`` appends ``f(values[i], values[j])``."""

    count: int
    """Numbers in the whole shape."""
    steps: tuple[tuple[Callable, int, int], ...]
    sides: tuple[tuple[int, int], ...]
    """For each side of the equation the range ``(first, last)`` of its numbers; an expression has one side."""
    roots: tuple[int, ...]
    """For each side the place of its result among the values."""


Solved = tuple[Shape, list[int | Fraction | None]]
"""A text's shape and its values: the numbers as they stand, then the exact result of each step. Results are int where
every division comes out even, Fraction where one does not, and None, all of them, where one divides by zero."""


def solve(text: str) -> Solved | None:
    """Read and evaluate an expression, or an equation with any number of sides.

    The grammar: decimal whole numbers without leading zeros, ``+ - * /``, parentheses, ``=`` between sides, ASCII white
    space anywhere but inside a number, and at most one sign in front of an operand (``2 * -3``, ``4 - -(1 + 2)``).

    Returns:
        None where the text is longer than `MAX_CHARS` or is not in the grammar.

    >>> shape, values = solve("(12 + 5) * 3 = 51")
    >>> [values[first:last] for first, last in shape.sides], [values[root] for root in shape.roots]
    ([[12, 5, 3], [51]], [51, 51])
    >>> [solve(text) for text in ("2 ** 3", "1 2 + 3", "1.5 * 2", "--5", "2(3)", "07")]
    [None, None, None, None, None, None]
    """
    return solve_all([text])[0]


def solve_all(texts: list[str]) -> list[Solved | None]:
    """Solve many texts as `solve` does one: equal texts once, and with one pass over all of them where that is cheaper.

    >>> shape, values = solve_all(["", "1 / 3 + 1"])[1]
    >>> values[shape.roots[0]], solve_all(["1 / (2 - 2)"])[0][1]
    (Fraction(4, 3), [1, 2, 2, None, None])
    """
    if not texts:
        return []
    solved: dict[str, Solved | None] = dict.fromkeys(texts)
    joined = _SEPARATOR.join(solved)
    if joined.count(_SEPARATOR) >= len(solved):  # one of them holds a separator, which no expression does
        joined = _SEPARATOR.join([text.replace(_SEPARATOR, "?") for text in solved])
    data = joined.encode("utf-8", "replace")  # a lone surrogate becomes "?"
    # Runs of digits shrink to "0" where they are short, which most are; the parser reads any run as one number.
    skeletons = data.translate(_SHAPE_BYTES, _SPACE).replace(b"00", b"0").replace(b"00", b"0").split(b"\0")
    for text, skeleton, digits in zip(solved, skeletons, data.translate(_NUMBER_BYTES).split(b"\0"), strict=True):
        shape = _parse_shape(skeleton) if len(skeleton) <= _CACHED_CHARS else _parse_long(skeleton, digits)
        if shape is None:
            continue
        count, steps, _, _ = shape
        digits = digits.split()
        if len(digits) != count:  # white space inside a number: "1 2" is "0" in the skeleton
            continue
        try:
            values = list(map(_small_int, digits))
        except KeyError:
            if any(number.startswith(b"0") and len(number) > 1 for number in digits):
                continue
            values = list(map(int, digits))
        append = values.append
        try:
            for function, i, j in steps:
                append(function(values[i], values[j]))
        except _UnevenDivision:
            values = _evaluate_fractions(shape, values[:count])
        except ZeroDivisionError:
            values = values[:count] + [None] * len(steps)
        solved[text] = (shape, values)
    return list(map(solved.__getitem__, texts))


def _evaluate_fractions(shape: Shape, numbers: list[int]) -> list[int | Fraction | None]:
    """Evaluate on pairs (numerator, denominator) without cancelling: the pairs stay as short as the text is."""
    pairs = [(number, 1) for number in numbers]
    for function, i, j in shape.steps:
        (a, b), (c, d) = pairs[i], pairs[j]
        if function is _divide:
            if c == 0:
                return numbers + [None] * len(shape.steps)
            pairs.append((a * d, b * c))
        elif function is operator.mul:
            pairs.append((a * c, b * d))
        elif function is _negate:
            pairs.append((-a, b))
        else:
            pairs.append((function(a * d, c * b), b * d))
    return numbers + [Fraction(*pair) for pair in pairs[shape.count :]]


class _UnevenDivision(ArithmeticError):
    pass


def _divide(a: int, b: int) -> int:
    quotient, rest = divmod(a, b)
    if rest:
        raise _UnevenDivision
    return quotient


def _negate(a: int, _: int) -> int:
    return -a


_FUNCTIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "negate": _negate}


def _parse_long(skeleton: bytes, digits: bytes) -> Shape | None:
    """Parse a skeleton that is not worth caching; None where the text it stands for is longer than `MAX_CHARS`."""
    length = len(skeleton.replace(b"0", b"")) + sum(map(len, digits.split()))
    return _parse_shape.__wrapped__(skeleton) if length <= MAX_CHARS else None


@lru_cache(maxsize=8192)
def _parse_shape(skeleton: bytes) -> Shape | None:
    """Parse a text in which every digit is written ``0``, by operator precedence with two explicit stacks."""
    text = skeleton.decode("latin-1")
    count = len(skeleton.translate(_NUMBER_BYTES).split())
    steps: list[tuple[Callable, int, int]] = []
    sides: list[tuple[int, int]] = []
    roots: list[int] = []
    operands: list[int] = []  # places among the values
    operators: list[str] = []

    def reduce_to(precedence: int) -> None:
        while operators and _PRECEDENCE[operators[-1]] >= precedence:
            name = operators.pop()
            j = operands.pop()
            i = operands.pop() if name != "negate" else j
            operands.append(count + len(steps))
            steps.append((_FUNCTIONS[name], i, j))

    seen = first = 0  # numbers so far, and the first one of this side
    wants_operand = may_be_signed = True
    before = ""
    for char in text + "=":
        if char == "0" == before:
            continue
        before = char
        if wants_operand:
            if char == "0":
                operands.append(seen)
                seen += 1
                wants_operand = False
            elif char == "(":
                operators.append(char)
                may_be_signed = True
            elif char in "+-" and may_be_signed:
                if char == "-":
                    operators.append("negate")
                may_be_signed = False
            else:
                return None
        elif char in "+-*/":
            reduce_to(_PRECEDENCE[char])
            operators.append(char)
            wants_operand = may_be_signed = True
        elif char == ")":
            reduce_to(1)
            if not operators:
                return None
            operators.pop()
        elif char == "=":
            reduce_to(1)
            if operators:  # a parenthesis that is still open
                return None
            sides.append((first, seen))
            roots.append(operands.pop())
            first, wants_operand, may_be_signed = seen, True, True
        else:
            return None
    return Shape(count, tuple(steps), tuple(sides), tuple(roots))
