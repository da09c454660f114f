"""Exact evaluation of ``+ - * /`` expressions and equations over whole numbers, without eval and
without recursion.

A policy writes the same few hundred shapes of expression again and again with other numbers in
them. So a text is split into its numbers and its shape (``(12 + 5) * 3`` has the shape
``(0+0)*0``). A shape is parsed once into a list of steps and cached; running the steps on the
numbers is cheap.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import add, mul, sub
from typing import NamedTuple

Number = int | Fraction
Function = Callable[[Number, Number], Number]
Operation = tuple[Function, int, int]

# longer shapes are rare and are not cached, since a policy could fill the memory with them
_CACHED_CHARS = 64
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_OTHERS_TO_SPACE = bytes(byte if chr(byte) in "0123456789" else 32 for byte in range(256))
_small_int = {str(i).encode(): i for i in range(1000)}.__getitem__  # several times as fast as int()
_PRECEDENCE = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "negate": 3}


class Shape(NamedTuple):
    """A parsed shape: how to compute the sides of an equation from its numbers. An expression has
    one side.
    """

    size: int  # how many numbers there are
    sides: tuple[slice, ...]  # for each side, which of the numbers stand in it
    steps: tuple[
        Operation, ...
    ]  # the values begin as the numbers; each step (f, i, j) appends f(values[i], values[j])
    roots: tuple[int, ...]  # for each side, the index of its result among the values

    def evaluate(self, numbers: list[int]) -> list[Number]:
        """Return the exact value of each side. ZeroDivisionError where any of them divides by
        zero.
        """
        values: list[Number] = [*numbers]
        for function, i, j in self.steps:
            values.append(function(values[i], values[j]))
        return list(map(values.__getitem__, self.roots))


def parse(text: str) -> tuple[Shape, list[int]] | None:
    """Split an expression, or an equation with any number of sides, into shape and numbers; None if
    it is neither.

    The grammar: decimal whole numbers without leading zeros, ``+ - * /``, parentheses, ``=``
    between sides, ASCII white space anywhere but inside a number, and at most one sign in front of
    an operand (``2 * -3``, ``4 - -(1 + 2)``). The length of the text must be bounded (see
    `verifier.MAX_CHARS`): it bounds that of the numbers.

    >>> shape, numbers = parse("(12 + 5) / 3 = 51")
    >>> [numbers[side] for side in shape.sides], shape.evaluate(numbers)
    ([[12, 5, 3], [51]], [Fraction(17, 3), 51])
    >>> [parse(text) for text in ("2 ** 3", "1 2 + 3", "1.5 * 2", "--5", "2(3)", "07")]
    [None, None, None, None, None, None]
    """
    data = text.encode(
        "ascii", "replace"
    )  # what is not ASCII becomes "?", which is not in the grammar
    # Runs of digits shrink to "0" where they are short, which most are; the parser reads any run as
    # one number.
    skeleton = (
        data.translate(_DIGITS_TO_ZERO, b" \t\n\r\f\v").replace(b"00", b"0").replace(b"00", b"0")
    )
    shape = (
        _parse_shape(skeleton)
        if len(skeleton) <= _CACHED_CHARS
        else _parse_shape.__wrapped__(skeleton)
    )
    if shape is None:
        return None
    digits = data.translate(_OTHERS_TO_SPACE).split()
    if len(digits) != shape.size:  # white space inside a number: "1 2" is "0" in the skeleton
        return None
    try:
        return shape, list(map(_small_int, digits))
    except KeyError:  # a number is larger, or has leading zeros
        if any(number.startswith(b"0") and len(number) > 1 for number in digits):
            return None
        return shape, list(map(int, digits))


def divide(a: Number, b: Number) -> Number:
    """Divide exactly. Even divisions give an int, with which the next operations are several times
    as fast.
    """
    quotient, rest = divmod(a, b)
    return Fraction(a, b) if rest else quotient


_FUNCTIONS: dict[str, Function] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": divide,
    "negate": lambda a, _: -a,
}


@lru_cache(maxsize=8192)
def _parse_shape(skeleton: bytes) -> Shape | None:
    """Parse a text in which every digit is written ``0``, by operator precedence with two explicit
    stacks.
    """
    count = len(skeleton.translate(_OTHERS_TO_SPACE).split())
    steps: list[Operation] = []
    sides: list[slice] = []
    roots: list[int] = []
    operands: list[int] = []  # indexes among the values
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
    for char in skeleton.decode() + "=":
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
            sides.append(slice(first, seen))
            roots.append(operands.pop())
            first, wants_operand, may_be_signed = seen, True, True
        else:
            return None
    return Shape(count, tuple(sides), tuple(steps), tuple(roots))
