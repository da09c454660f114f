r"""Solution sets of inequalities in one variable: linear and quadratic ones, with at most one absolute value.

`2x < 6` is x < 3, `1 - x \ge 0` is x <= 1 and `|x| < 2` is (-2, 2). Coefficients may be irrational.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, zip_longest

from swift_rlvr.math_answers.functions import (
    Undefined,
    Value,
    divide,
    is_real,
    is_zero,
    less,
    minus,
    one_thread,
    plus,
    power,
    times,
)
from swift_rlvr.math_answers.numeric import constant_value, contains, symbols
from swift_rlvr.math_answers.parser import Tree, replaced
from swift_rlvr.math_answers.sets import EMPTY, INFINITY, MINUS_INFINITY, REALS, RealSet

_ZERO, _DEGREE = Fraction(0), 2
_SIGNS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "!=": (-1, 1)}  # of the left side minus the right one


class _Other(Exception):
    """It is no inequality of the kinds that are solved here."""


def solution_set(operators: tuple[str, ...], sides: list[Tree]) -> tuple[str, RealSet] | None:
    """The variable and the numbers for which a chain of inequalities holds; None for what is not solved here.

    >>> from swift_rlvr.math_answers.parser import read_expression as read
    >>> solution_set(("<", "<="), [read("-4"), read("1 - x"), read("2")])
    ('x', RealSet(bounds=(Fraction(-1, 1), Fraction(5, 1)), inside=(False, True, True, False, False)))
    >>> solution_set((">",), [read("x^3"), read("1")]), solution_set(("<",), [read("x"), read("y")])
    (None, None)
    """
    names = frozenset().union(*map(symbols, sides))
    pairs = [(("-", left, right), operator) for (left, right), operator in zip(pairwise(sides), operators, strict=True)]
    if len(names) != 1 or not all(operator in _SIGNS and symbols(tree) for tree, operator in pairs):
        return None
    (name,) = names
    result = REALS
    try:
        with one_thread():
            for tree, operator in pairs:
                result = result.intersection(_solved(tree, name, _SIGNS[operator]))
    except (_Other, Undefined):
        return None
    return name, result


def _solved(tree: Tree, name: str, signs: tuple[int, ...]) -> RealSet:
    """The numbers for which the tree has one of these signs."""
    absolutes = {part for part in _parts(tree) if part[0] == "abs" and symbols(part)}
    if not absolutes:
        return _with_sign(_polynomial(tree, name), signs)
    if len(absolutes) > 1:
        raise _Other
    (absolute,) = absolutes
    inside, negative = absolute[1], ("-", ("number", _ZERO), absolute[1])
    return (
        _solved(inside, name, (0, 1))
        .intersection(_solved(replaced(tree, absolute, inside), name, signs))
        .union(_solved(inside, name, (-1,)).intersection(_solved(replaced(tree, absolute, negative), name, signs)))
    )


def _parts(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in tree[1:]:
        if isinstance(part, tuple):
            yield from _parts(part)


def _polynomial(tree: Tree, name: str) -> list[Value]:
    """The coefficients, that of 1 first. Raises _Other where it is no polynomial of a degree of at most two."""
    if not symbols(tree):
        if contains(tree, "degrees") or (value := constant_value(tree)) is None or not is_real(value):
            raise _Other
        return [value]
    match tree:
        case ("symbol", _):
            return [_ZERO, Fraction(1)]
        case ("+" | "-" as sign, left, right):
            pairs = zip_longest(_polynomial(left, name), _polynomial(right, name), fillvalue=_ZERO)
            return _trimmed([plus(*pair) if sign == "+" else minus(*pair) for pair in pairs])
        case ("*", left, right):
            return _product(_polynomial(left, name), _polynomial(right, name))
        case ("/", left, right) if not symbols(right):
            (divisor,) = _polynomial(right, name)
            return [divide(number, divisor) for number in _polynomial(left, name)]
        case ("^", base, ("number", 2)):
            return _product(_polynomial(base, name), _polynomial(base, name))
    raise _Other


def _product(first: list[Value], second: list[Value]) -> list[Value]:
    result = [_ZERO] * (len(first) + len(second) - 1)
    for low, left in enumerate(first):
        for high, right in enumerate(second):
            result[low + high] = plus(result[low + high], times(left, right))
    return _trimmed(result)


def _trimmed(coefficients: list[Value]) -> list[Value]:
    """Without zeros for the highest powers. Raises _Other for a degree of more than two."""
    while len(coefficients) > 1 and is_zero(coefficients[-1]):
        coefficients = coefficients[:-1]
    if len(coefficients) > _DEGREE + 1:
        raise _Other
    return coefficients


def _with_sign(coefficients: list[Value], signs: tuple[int, ...]) -> RealSet:
    """The numbers for which a polynomial has one of these signs."""

    def sign(value: Value) -> int:
        return 0 if is_zero(value) else -1 if less(value, _ZERO) else 1

    zeros = _zeros(coefficients)
    step = -1 if len(zeros) == len(coefficients) - 1 else 1  # no change of sign at a double zero
    above = sign(coefficients[-1])
    result = RealSet.of(*zeros) if 0 in signs else EMPTY
    for number, (low, high) in enumerate(pairwise([MINUS_INFINITY, *zeros, INFINITY])):
        if above * step ** (len(zeros) - number) in signs:
            result = result.union(RealSet.interval(low, False, high, False))
    return result


def _zeros(coefficients: list[Value]) -> list[Value]:
    """The real zeros of a polynomial in rising order; none of a constant."""
    if len(coefficients) == 1:
        return []
    if len(coefficients) == 2:
        return [divide(times(coefficients[0], Fraction(-1)), coefficients[1])]
    c, b, a = coefficients
    middle = divide(b, times(a, Fraction(-2)))
    discriminant = minus(times(middle, middle), divide(c, a))
    if is_zero(discriminant):
        return [middle]
    if less(discriminant, _ZERO):
        return []
    distance = power(discriminant, Fraction(1, 2))
    return [minus(middle, distance), plus(middle, distance)]
