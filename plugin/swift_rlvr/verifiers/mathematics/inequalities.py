"""Solution sets of inequalities in one variable: linear and quadratic ones, with at most one
absolute value.
"""

from fractions import Fraction
from itertools import pairwise

from swift_rlvr.verifiers.mathematics.functions import (
    Computed,
    Undefined,
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

_ZERO = Fraction(0)
_ONE = Fraction(1)
_HALF = Fraction(1, 2)

# The signs that the left side minus the right one may have: x < 3 asks for x - 3 < 0.
_SIGNS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "!=": (-1, 1)}

# Points at which a quadratic through three others is checked: that of x^3 doesn't fit.
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
    differences = [("-", left, right) for left, right in pairwise(sides)]
    # Each link of a chain has to speak of the variable: 2 < 4 < x says more than a set.
    if len(names) != 1 or not all(map(symbols, differences)):
        return None
    if not _SIGNS.keys() >= {*operators}:
        return None
    (name,) = names
    result = REALS
    try:
        with one_thread():
            for difference, operator in zip(differences, operators, strict=True):
                result = result.intersection(_solved(difference, name, _SIGNS[operator]))
    except Undefined:
        return None
    return name, result


def _solved(tree: Tree, name: str, signs: tuple[int, ...]) -> RealSet:
    """The numbers for which the tree has one of these signs.

    Raises:
        Undefined: it is not solved here.
    """
    absolutes = {part for part in parts(tree) if part[0] == "abs" and symbols(part)}
    if not absolutes:
        return _with_sign(_coefficients(tree, name), signs)
    if len(absolutes) > 1:
        raise Undefined
    (absolute,) = absolutes

    # |x - 1| < 2 is x - 1 < 2 where x - 1 >= 0, and -(x - 1) < 2 where it is negative.
    inner = absolute[1]
    negated = ("-", ("number", _ZERO), inner)
    result = EMPTY
    for replacement, inner_signs in ((inner, (0, 1)), (negated, (-1,))):
        domain = _solved(inner, name, inner_signs)
        solutions = _solved(replaced(tree, absolute, replacement), name, signs)
        result = result.union(domain.intersection(solutions))
    return result


def _coefficients(tree: Tree, name: str) -> list[Computed]:
    """Those of a polynomial of a degree of at most two, that of 1 first and no zero last.

    Raises:
        Undefined: it is no such polynomial.
    """
    if not _is_polynomial(tree):
        raise Undefined
    # The quadratic c + b x + a x^2 through the values at -1, 0 and 1.
    below = evaluate(tree, {name: -_ONE})
    c = evaluate(tree, {name: _ZERO})
    above = evaluate(tree, {name: _ONE})
    probes = [evaluate(tree, {name: x}) for x in _PROBES]
    a = minus(times(plus(above, below), _HALF), c)
    b = times(minus(above, below), _HALF)
    for x, value in zip(_PROBES, probes, strict=True):
        quadratic = plus(c, times(x, plus(b, times(a, x))))
        if not is_real(value) or not agree(value, quadratic):
            raise Undefined

    if not is_zero(a):
        return [c, b, a]
    if not is_zero(b):
        return [c, b]
    return [c]


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


def _with_sign(coefficients: list[Computed], signs: tuple[int, ...]) -> RealSet:
    """The numbers for which a polynomial has one of these signs."""
    zeros = _zeros(coefficients)
    # Above all zeros a polynomial has the sign of its last coefficient, and below each of them the
    # other one, except at a double zero.
    sign = _sign(coefficients[-1])
    has_single_zeros = len(zeros) == len(coefficients) - 1
    result = RealSet.of(*zeros) if 0 in signs else EMPTY
    gaps = list(pairwise([MINUS_INFINITY, *zeros, INFINITY]))
    for low, high in reversed(gaps):
        if sign in signs:
            result = result.union(RealSet.interval(low, False, high, False))
        if has_single_zeros:
            sign = -sign
    return result


def _sign(value: Computed) -> int:
    if is_zero(value):
        return 0
    return -1 if less(value, _ZERO) else 1


def _zeros(coefficients: list[Computed]) -> list[Computed]:
    """The real zeros in rising order; none of a constant."""
    if len(coefficients) == 1:
        return []
    if len(coefficients) == 2:
        c, b = coefficients
        return [divide(times(c, Fraction(-1)), b)]
    c, b, a = coefficients
    middle = times(divide(b, a), -_HALF)
    discriminant = minus(times(middle, middle), divide(c, a))
    if is_zero(discriminant):
        return [middle]
    if less(discriminant, _ZERO):
        return []
    distance = power(discriminant, _HALF)
    return [minus(middle, distance), plus(middle, distance)]
