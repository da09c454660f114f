r"""Exact comparison of rational functions with surds: `\frac{\sqrt{3}}{2}`, `3\pi/4`, `(x+1)^2`, `\frac{x^2-1}{x-1}`.

A formula made of + - * /, integer powers, square roots of rationals, variables, pi, e and i is brought into the form
numerator / denominator. Both are sums of terms. A term is a rational coefficient times the square root of a square-free
integer times powers of symbols. Different terms are linearly independent over the rationals (pi and e count as
symbols), so two formulas are equal exactly if n1 * d2 and n2 * d1 have the same terms. Nothing is approximated. An
operation raises `NotAFormula` where its result does not fit that form or exceeds the size limits below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

MAX_TERMS, MAX_DEGREE, MAX_BITS = 60, 40, 2000
_LARGEST_RADICAND = 10**6

Powers = tuple[tuple[str, int], ...]  # ((symbol, exponent), ...), sorted by symbol
Term = tuple[int, Powers]  # (square-free integer under the root, powers)
Terms = dict[Term, Fraction]  # {term: coefficient}, no zeros
_UNIT: Term = (1, ())  # the term of a rational number
_ONE: Terms = {_UNIT: Fraction(1)}


class NotAFormula(Exception):
    """The text, or an intermediate result, has no exact form here."""


@dataclass(frozen=True, slots=True)
class Formula:
    """numerator / denominator, as sums of terms."""

    top: Terms
    bottom: Terms

    def __neg__(self) -> Formula:
        return Formula(_negative(self.top), self.bottom)

    def __add__(self, other: Formula) -> Formula:
        if self.bottom == other.bottom:
            return Formula(_plus(self.top, other.top), self.bottom)
        top = _plus(_times(self.top, other.bottom), _times(other.top, self.bottom))
        return Formula(top, _times(self.bottom, other.bottom))

    def __sub__(self, other: Formula) -> Formula:
        return self + -other

    def __mul__(self, other: Formula) -> Formula:
        return Formula(_times(self.top, other.top), _times(self.bottom, other.bottom))

    def __truediv__(self, other: Formula) -> Formula:
        if not other.top:
            raise NotAFormula
        return Formula(_times(self.top, other.bottom), _times(self.bottom, other.top))

    def __pow__(self, exponent: Fraction) -> Formula:
        if exponent.denominator == 2:
            return self.square_root() ** Fraction(exponent.numerator)
        if exponent.denominator != 1 or (exponent <= 0 and not self.top):
            raise NotAFormula
        count = abs(int(exponent))
        # A rational number may have a large exponent: MAX_BITS limits the result before it is computed.
        if self._is_rational() and self.top:
            value = self.rational()
            if (value.numerator.bit_length() + value.denominator.bit_length()) * count > MAX_BITS:
                raise NotAFormula
            return constant(value ** int(exponent))
        if count > MAX_DEGREE:
            raise NotAFormula
        result = math.prod([self] * count, start=constant(1))
        return constant(1) / result if exponent < 0 else result

    def square_root(self) -> Formula:
        value = self.rational()
        if not value:
            return self
        # sqrt(p/q) = sqrt(pq)/q; the largest square is taken out of pq.
        rest, outside, divisor = abs(value.numerator * value.denominator), 1, 2
        whole = math.isqrt(rest)
        if whole * whole == rest:
            rest, outside = 1, whole
        elif rest > _LARGEST_RADICAND:
            raise NotAFormula
        while divisor * divisor <= rest:
            while rest % (divisor * divisor) == 0:
                rest //= divisor * divisor
                outside *= divisor
            divisor += 1
        root = rest if value > 0 else -rest
        return Formula({(root, ()): Fraction(outside, value.denominator)}, _ONE)

    def rational(self) -> Fraction:
        """The value of a formula that is a rational number; any other raises."""
        if not self._is_rational():
            raise NotAFormula
        return self.top.get(_UNIT, Fraction(0)) / self.bottom[_UNIT]

    def equals(self, other: Formula) -> bool | None:
        """Whether both are the same function; None where a product exceeds the limits."""
        try:
            return _times(self.top, other.bottom) == _times(other.top, self.bottom)
        except NotAFormula:
            return None

    def is_constant(self) -> bool:
        """Whether it contains no symbols but pi and e."""
        return {name for _, powers in chain(self.top, self.bottom) for name, _ in powers} <= {"pi", "e"}

    def lone_symbol(self) -> str | None:
        """The name of the symbol that is the whole formula, if it is one."""
        names = [name for _, powers in self.top for name, _ in powers]
        return names[0] if len(names) == 1 and self == symbol(names[0]) else None

    def _is_rational(self) -> bool:
        return self.top.keys() | self.bottom.keys() <= {_UNIT}


def constant(value: Fraction | int) -> Formula:
    """The formula of a rational number."""
    return Formula({_UNIT: Fraction(value)} if value else {}, _ONE)


def symbol(name: str) -> Formula:
    """The formula of a variable, of pi or of e."""
    return Formula({(1, ((name, 1),)): Fraction(1)}, _ONE)


@dataclass(frozen=True, slots=True)
class Equation:
    """left = right."""

    left: Formula
    right: Formula

    @property
    def variable(self) -> str | None:
        """The symbol that stands alone on the left, or None."""
        return self.left.lone_symbol()

    def gives_value(self) -> bool:
        """Whether it is `x = 5`, or `5 = x`."""
        sides = (self.left, self.right), (self.right, self.left)
        return any(one.lone_symbol() is not None and other.is_constant() for one, other in sides)


def same_formula(gold: Formula | Equation, answer: Formula | Equation) -> bool | None:
    """Whether two formulas or equations mean the same; None where that cannot be decided here.

    `x = 5` equals `5`, since an answer may or may not repeat the name of the unknown. Two equations are equal if one is
    a multiple of the other.

    >>> from swift_rlvr.math_answers.parser import read_formula
    >>> same_formula(read_formula("y=2x+1"), read_formula("2x - y + 1 = 0"))
    True
    >>> same_formula(read_formula("x=5"), read_formula("5")), same_formula(read_formula("x=5"), read_formula("y=5"))
    (True, False)
    """
    if isinstance(gold, Equation) and isinstance(answer, Equation):
        return _same_equation(gold, answer)
    if isinstance(gold, Equation):
        return same_formula(answer, gold)
    if isinstance(answer, Equation):
        return answer.right.equals(gold) if answer.variable else None
    return gold.equals(answer)


def _same_equation(gold: Equation, answer: Equation) -> bool | None:
    try:
        first, second = (
            _plus(_times(each.left.top, each.right.bottom), _negative(_times(each.right.top, each.left.bottom)))
            for each in (gold, answer)
        )
    except NotAFormula:
        return None
    if bool(first) != bool(second):  # one of them is always true
        return False
    bottoms = [side.bottom for each in (gold, answer) for side in (each.left, each.right)]
    if not (first and second) or any(powers for _, powers in chain(*bottoms)):
        return None
    if gold.gives_value() != answer.gives_value():  # 3x + 2 = 17 is the question, not the answer
        return False
    if first.keys() == second.keys() and len({first[term] / second[term] for term in first}) == 1:
        return True
    linear = all(root == 1 and sum(power for _, power in powers) <= 1 for root, powers in (*first, *second))
    return False if linear else None


def _negative(terms: Terms) -> Terms:
    return {term: -value for term, value in terms.items()}


def _plus(first: Terms, second: Terms) -> Terms:
    return _collect(chain(first.items(), second.items()))


def _times(first: Terms, second: Terms) -> Terms:
    if first == _ONE:
        return second
    if second == _ONE:
        return first
    if len(first) * len(second) > MAX_TERMS * MAX_TERMS:
        raise NotAFormula
    products = []
    for (root_a, powers_a), a in first.items():
        for (root_b, powers_b), b in second.items():
            shared = math.gcd(root_a, root_b)
            value = a * b * (-shared if root_a < 0 and root_b < 0 else shared)
            if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
                raise NotAFormula
            term = root_a * root_b // (shared * shared), _multiply_powers(powers_a, powers_b)
            products.append((term, value))
    return _collect(products)


def _collect(values: Iterable[tuple[Term, Fraction]]) -> Terms:
    """The sum of all values, by term."""
    sums: Terms = {}
    for term, value in values:
        sums[term] = sums[term] + value if term in sums else value
    result = {term: value for term, value in sums.items() if value}
    if len(result) > MAX_TERMS:
        raise NotAFormula
    return result


def _multiply_powers(first: Powers, second: Powers) -> Powers:
    if not first or not second:
        return first or second
    powers = dict(first)
    for name, power in second:
        powers[name] = powers.get(name, 0) + power
        if powers[name] > MAX_DEGREE:
            raise NotAFormula
    return tuple(sorted(powers.items()))
