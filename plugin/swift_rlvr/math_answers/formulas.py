r"""Exact comparison of rational functions with surds: `\frac{\sqrt{3}}{2}`, `3\pi/4`, `(x+1)^2`, `\frac{x^2-1}{x-1}`.

A formula of + - * /, integer powers, square roots of rationals, variables, pi, e and i is brought into the form
numerator / denominator. Both are sums of terms, a term being a rational coefficient times the square root of a
square-free integer times powers of symbols. Such terms are linearly independent over the rationals (pi and e count as
symbols), so that two formulas are equal exactly if n1 * d2 and n2 * d1 have the same terms; nothing is approximated.

What does not fit (functions, other roots, absolute values, sizes above the limits below) is None, and so is what people
read in different ways: `1/2x`, `f(x)`, `2\frac{1}{2}x`, `3^2!`, `5!!`. Computer algebra has to judge that.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

MAX_CHARS, MAX_TERMS, MAX_DEGREE, MAX_BITS, MAX_DEPTH = 200, 60, 40, 2000, 30
_LARGEST_RADICAND = 10**6

# {(square-free integer under the root, ((symbol, exponent), ...)): coefficient}, without zeros
Terms = dict[tuple[int, tuple[tuple[str, int], ...]], Fraction]
_ONE = (1, ())


class _NoFormula(Exception):
    """The text, or a result on the way, is outside of what is treated here."""


class Formula(NamedTuple):
    """numerator / denominator, as sums of terms."""

    top: Terms
    bottom: Terms

    def equals(self, other: Formula) -> bool | None:
        """Whether both are the same function; None where their sizes are above the limits."""
        try:
            return _times(self.top, other.bottom) == _times(other.top, self.bottom)
        except _NoFormula:
            return None

    def is_constant(self) -> bool:
        """Whether no symbols but pi and e are in it."""
        return all(symbol in ("pi", "e") for terms in self for _, powers in terms for symbol, _ in powers)


class Equation(NamedTuple):
    """left = right."""

    left: Formula
    right: Formula
    variable: str | None
    """The symbol that stands alone on the left, or None."""

    def gives_value(self) -> bool:
        """Whether it is `x = 5`, or `5 = x`."""
        sides = (self.left, self.right), (self.right, self.left)
        return any(_lone_symbol(one) is not None and other.is_constant() for one, other in sides)


def same_formula(gold: Formula | Equation, answer: Formula | Equation) -> bool | None:
    """Whether two formulas or equations say the same; None where that cannot be told here.

    `x = 5` equals `5`, since an answer may or may not repeat the name of what was asked for. Two equations are equal if
    one is a multiple of the other.

    >>> same_formula(read_formula("y=2x+1"), read_formula("2x - y + 1 = 0"))
    True
    >>> same_formula(read_formula("x=5"), read_formula("5")), same_formula(read_formula("x=5"), read_formula("y=5"))
    (True, False)
    """
    if isinstance(gold, Formula) and isinstance(answer, Formula):
        return gold.equals(answer)
    if isinstance(gold, Equation) and isinstance(answer, Equation):
        return _same_equation(gold, answer)
    equation, formula = (gold, answer) if isinstance(gold, Equation) else (answer, gold)
    return equation.right.equals(formula) if equation.variable else None


def _same_equation(gold: Equation, answer: Equation) -> bool | None:
    try:
        first, second = (
            _plus(_times(each.left.top, each.right.bottom), _times(each.right.top, each.left.bottom), -1)
            for each in (gold, answer)
        )
    except _NoFormula:
        return None
    plain = all(_is_constant(side.bottom) for each in (gold, answer) for side in (each.left, each.right))
    if bool(first) != bool(second):  # one of them is always true
        return False
    if not (first and second and plain):
        return None
    solved = [each for each in (gold, answer) if each.gives_value()]
    if len(solved) == 1:  # 3x + 2 = 17 is the question, not the answer
        return False
    if first.keys() == second.keys():
        ratios = {first[term] / second[term] for term in first}
        if len(ratios) == 1:
            return True
    linear = all(sum(power for _, power in term[1]) <= 1 and term[0] == 1 for each in (first, second) for term in each)
    return False if linear else None


def _lone_symbol(formula: Formula) -> str | None:
    if len(formula.top) == 1 and formula.bottom == {_ONE: 1}:
        ((root, powers), factor), *_ = formula.top.items()
        if root == 1 and factor == 1 and len(powers) == 1 and powers[0][1] == 1:
            return powers[0][0]
    return None


def _is_constant(terms: Terms) -> bool:
    return all(not powers for _, powers in terms)


def _plus(first: Terms, second: Terms, factor: int = 1) -> Terms:
    result = dict(first)
    for term, value in second.items():
        total = result.get(term, 0) + factor * value
        if total:
            result[term] = total
        else:
            result.pop(term, None)
    if len(result) > MAX_TERMS:
        raise _NoFormula
    return result


def _times(first: Terms, second: Terms) -> Terms:
    if first == {_ONE: 1}:
        return second
    if second == {_ONE: 1}:
        return first
    if len(first) * len(second) > MAX_TERMS * MAX_TERMS:
        raise _NoFormula
    result: Terms = {}
    for (root_a, powers_a), a in first.items():
        for (root_b, powers_b), b in second.items():
            shared = math.gcd(root_a, root_b)
            value = a * b * (-shared if root_a < 0 and root_b < 0 else shared)
            term = root_a * root_b // (shared * shared), _multiply_powers(powers_a, powers_b)
            if root_a < 0 and root_b < 0:
                term = abs(term[0]), term[1]
            if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
                raise _NoFormula
            total = result.get(term, 0) + value
            if total:
                result[term] = total
            else:
                result.pop(term, None)
    if len(result) > MAX_TERMS:
        raise _NoFormula
    return result


def _multiply_powers(first: tuple, second: tuple) -> tuple:
    if not first or not second:
        return first or second
    powers = dict(first)
    for symbol, power in second:
        powers[symbol] = powers.get(symbol, 0) + power
        if powers[symbol] > MAX_DEGREE:
            raise _NoFormula
    return tuple(sorted(powers.items()))


def _product(first: Formula, second: Formula) -> Formula:
    return Formula(_times(first.top, second.top), _times(first.bottom, second.bottom))


def _quotient(first: Formula, second: Formula) -> Formula:
    if not second.top:
        raise _NoFormula
    return Formula(_times(first.top, second.bottom), _times(first.bottom, second.top))


def _sum(first: Formula, second: Formula, sign: int) -> Formula:
    if first.bottom == second.bottom:
        return Formula(_plus(first.top, second.top, sign), first.bottom)
    tops = _times(first.top, second.bottom), _times(second.top, first.bottom)
    return Formula(_plus(*tops, sign), _times(first.bottom, second.bottom))


def _constant(value: Fraction | int) -> Formula:
    return Formula({_ONE: Fraction(value)} if value else {}, {_ONE: Fraction(1)})


def _rational(formula: Formula) -> Fraction:
    """The value of a formula that is a rational number."""
    if not set(formula.top) | set(formula.bottom) <= {_ONE}:
        raise _NoFormula
    return formula.top.get(_ONE, Fraction(0)) / formula.bottom[_ONE]


def _power(base: Formula, exponent: Fraction) -> Formula:
    if exponent.denominator == 2:
        return _power(_square_root(base), Fraction(exponent.numerator))
    if exponent.denominator != 1 or (exponent <= 0 and not base.top):
        raise _NoFormula
    count = abs(int(exponent))
    # A lone number may have a large exponent: its size is limited by MAX_BITS, before it is computed.
    if set(base.top) | set(base.bottom) <= {_ONE} and base.top:
        value = _rational(base)
        if (value.numerator.bit_length() + value.denominator.bit_length()) * count > MAX_BITS:
            raise _NoFormula
        return _constant(value ** int(exponent))
    if count > MAX_DEGREE:
        raise _NoFormula
    result = _constant(1)
    for _ in range(count):
        result = _product(result, base)
    return _quotient(_constant(1), result) if exponent < 0 else result


def _square_root(formula: Formula) -> Formula:
    value = _rational(formula)
    if not value:
        return formula
    # sqrt(p/q) = sqrt(pq)/q; the largest square is taken out of pq.
    rest, outside, divisor = abs(value.numerator * value.denominator), 1, 2
    whole = math.isqrt(rest)
    if whole * whole == rest:
        rest, outside = 1, whole
    elif rest > _LARGEST_RADICAND:
        raise _NoFormula
    while divisor * divisor <= rest:
        while rest % (divisor * divisor) == 0:
            rest //= divisor * divisor
            outside *= divisor
        divisor += 1
    root = rest if value > 0 else -rest
    return Formula({(root, ()): Fraction(outside, value.denominator)}, {_ONE: Fraction(1)})
