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
_WHITE_SPACE = b" \t\n\r\f\v"
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_OTHERS_TO_SPACE = bytes.maketrans(_NO_DIGITS, b" " * len(_NO_DIGITS))
# several times as fast as int()
_small_int = {str(i).encode(): i for i in range(1000)}.__getitem__
_PRECEDENCE = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "negate": 3}


class Shape(NamedTuple):
    """A parsed shape: how to compute the sides of an equation from its numbers. An expression has
    one side.
    """

    size: int  # how many numbers there are
    sides: tuple[slice, ...]  # for each side, which of the numbers stand in it
    # the values begin as the numbers; each step (f, i, j) appends f(values[i], values[j])
    steps: tuple[Operation, ...]
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
    # What is not ASCII becomes "?", which is not in the grammar.
    data = text.encode("ascii", "replace")
    skeleton = data.translate(_DIGITS_TO_ZERO, _WHITE_SPACE)
    # Runs of digits shrink to "0" where they are short, which most are; the parser reads any run as
    # one number.
    skeleton = skeleton.replace(b"00", b"0").replace(b"00", b"0")
    if len(skeleton) <= _CACHED_CHARS:
        shape = _parse_shape(skeleton)
    else:
        shape = _parse_shape.__wrapped__(skeleton)
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
    """Parse a text in which every digit is written ``0``; None where it is not in the grammar."""
    parser = _ShapeParser(size=len(skeleton.translate(_OTHERS_TO_SPACE).split()))
    before = ""
    for char in skeleton.decode() + "=":
        # The digits of a number are one operand.
        if char == "0" == before:
            continue
        before = char
        is_read = parser.operand(char) if parser.wants_operand else parser.operator(char)
        if not is_read:
            return None
    return Shape(parser.size, tuple(parser.sides), tuple(parser.steps), tuple(parser.roots))


class _ShapeParser:
    """Parses by operator precedence, with two explicit stacks, so that no depth is too much.

    Attributes:
        size: how many numbers the text has.
        wants_operand: whether an operand has to follow, or else an operator.
    """

    def __init__(self, size: int):
        self.size = size
        self.steps: list[Operation] = []
        self.sides: list[slice] = []
        self.roots: list[int] = []
        self.wants_operand = True
        self._may_be_signed = True
        self._operands: list[int] = []  # a stack of indexes among the values
        self._operators: list[str] = []  # a stack of operators and open parentheses
        self._seen = 0  # numbers so far
        self._first = 0  # the number with which this side begins

    def operand(self, char: str) -> bool:
        """Read a number, or what may stand before one; False for anything else."""
        if char == "0":
            self._operands.append(self._seen)
            self._seen += 1
            self.wants_operand = False
        elif char == "(":
            self._operators.append(char)
            self._may_be_signed = True
        elif char in "+-" and self._may_be_signed:
            if char == "-":
                self._operators.append("negate")
            self._may_be_signed = False
        else:
            return False
        return True

    def operator(self, char: str) -> bool:
        """Read what may stand behind an operand; False for anything else."""
        if char in "+-*/":
            self._reduce_to(_PRECEDENCE[char])
            self._operators.append(char)
            self.wants_operand = True
            self._may_be_signed = True
        elif char == ")":
            self._reduce_to(1)
            if not self._operators:
                return False
            self._operators.pop()
        elif char == "=":
            self._reduce_to(1)
            if self._operators:  # a parenthesis that is still open
                return False
            self.sides.append(slice(self._first, self._seen))
            self.roots.append(self._operands.pop())
            self._first = self._seen
            self.wants_operand = True
            self._may_be_signed = True
        else:
            return False
        return True

    def _reduce_to(self, precedence: int) -> None:
        """Make steps of the operators on the stack that bind at least as strongly."""
        while self._operators and _PRECEDENCE[self._operators[-1]] >= precedence:
            name = self._operators.pop()
            j = self._operands.pop()
            i = j if name == "negate" else self._operands.pop()
            self._operands.append(self.size + len(self.steps))
            self.steps.append((_FUNCTIONS[name], i, j))
