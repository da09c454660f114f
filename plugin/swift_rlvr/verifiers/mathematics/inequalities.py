"""Solution sets of inequalities in one variable: linear and quadratic ones, with at most one
absolute value.
"""

from fractions import Fraction
from itertools import pairwise

from swift_rlvr.verifiers.mathematics.functions import (
    Undefined,
    Value,
    agree,
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
from swift_rlvr.verifiers.mathematics.numeric import contains, evaluate, parts, symbols
from swift_rlvr.verifiers.mathematics.parser import Tree, replaced
from swift_rlvr.verifiers.mathematics.sets import EMPTY, INFINITY, MINUS_INFINITY, REALS, RealSet

_ZERO, _HALF = Fraction(0), Fraction(1, 2)
_SIGNS = {
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
    "!=": (-1, 1),
}  # of the left side minus the right one
_PROBES = (Fraction(31, 7), Fraction(-50, 11), Fraction(7))


def solution_set(operators: tuple[str, ...], sides: list[Tree]) -> tuple[str, RealSet] | None:
    """The variable and the numbers for which a chain of inequalities holds; None for what is not
    solved here.

    >>> from swift_rlvr.verifiers.mathematics.parser import read_expression as read
    >>> solution_set(("<", "<="), [read("-4"), read("1 - x"), read("2")])
    ('x', RealSet(bounds=(Fraction(-1, 1), Fraction(5, 1)), inside=(False, True, True, False, False)))
    >>> solution_set((">",), [read("x^3"), read("1")]), solution_set(("<",), [read("x"), read("y")])
    (None, None)
    """
    names = frozenset().union(*map(symbols, sides))
    trees = [("-", left, right) for left, right in pairwise(sides)]
    if len(names) != 1 or not all(map(symbols, trees)) or not _SIGNS.keys() >= {*operators}:
        return None
    (name,) = names
    result = REALS
    try:
        with one_thread():
            for tree, operator in zip(trees, operators, strict=True):
                result = result.intersection(_solved(tree, name, _SIGNS[operator]))
    except Undefined:
        return None
    return name, result


def _solved(tree: Tree, name: str, signs: tuple[int, ...]) -> RealSet:
    """The numbers for which the tree has one of these signs. Raises Undefined for what is not
    solved here.
    """
    absolutes = {part for part in parts(tree) if part[0] == "abs" and symbols(part)}
    if not absolutes:
        return _with_sign(_coefficients(tree, name), signs)
    if len(absolutes) > 1:
        raise Undefined
    (absolute,) = absolutes
    result = EMPTY
    for inside, where in ((absolute[1], (0, 1)), (("-", ("number", _ZERO), absolute[1]), (-1,))):
        there = _solved(absolute[1], name, where)
        result = result.union(
            there.intersection(_solved(replaced(tree, absolute, inside), name, signs))
        )
    return result


def _coefficients(tree: Tree, name: str) -> list[Value]:
    """Those of a polynomial of a degree of at most two, that of 1 first and no zero last. Raises
    Undefined.
    """
    if not _is_polynomial(tree):
        raise Undefined
    below, c, above, *probes = (
        evaluate(tree, {name: x}) for x in (Fraction(-1), _ZERO, Fraction(1), *_PROBES)
    )
    a, b = minus(times(plus(above, below), _HALF), c), times(minus(above, below), _HALF)
    for x, value in zip(_PROBES, probes, strict=True):
        if not is_real(value) or not agree(value, plus(c, times(x, plus(b, times(a, x))))):
            raise Undefined
    return [c, b, a] if not is_zero(a) else [c, b] if not is_zero(b) else [c]


def _is_polynomial(tree: Tree) -> bool:
    if not symbols(tree):
        return not contains(tree, "degrees")
    match tree:
        case ("+" | "-" | "*", left, right):
            return _is_polynomial(left) and _is_polynomial(right)
        case ("/", left, right):
            return _is_polynomial(left) and not symbols(right)
        case ("^", base, ("number", exponent)):
            return exponent.denominator == 1 and exponent > 0 and _is_polynomial(base)
    return tree[0] == "symbol"


def _with_sign(coefficients: list[Value], signs: tuple[int, ...]) -> RealSet:
    """The numbers for which a polynomial has one of these signs."""
    zeros = _zeros(coefficients)
    above = 0 if is_zero(coefficients[-1]) else -1 if less(coefficients[-1], _ZERO) else 1
    step = -1 if len(zeros) == len(coefficients) - 1 else 1  # no change of sign at a double zero
    result = RealSet.of(*zeros) if 0 in signs else EMPTY
    for number, (low, high) in enumerate(pairwise([MINUS_INFINITY, *zeros, INFINITY])):
        if above * step ** (len(zeros) - number) in signs:
            result = result.union(RealSet.interval(low, False, high, False))
    return result


def _zeros(coefficients: list[Value]) -> list[Value]:
    """The real zeros in rising order; none of a constant."""
    if len(coefficients) == 1:
        return []
    c, b, *a = coefficients
    if not a:
        return [divide(times(c, Fraction(-1)), b)]
    middle = times(divide(b, a[0]), -_HALF)
    discriminant = minus(times(middle, middle), divide(c, a[0]))
    if is_zero(discriminant):
        return [middle]
    if less(discriminant, _ZERO):
        return []
    distance = power(discriminant, _HALF)
    return [minus(middle, distance), plus(middle, distance)]
