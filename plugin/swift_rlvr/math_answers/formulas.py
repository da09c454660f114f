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
import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MAX_CHARS, MAX_TERMS, MAX_DEGREE, MAX_BITS, MAX_DEPTH = 200, 60, 40, 2000, 30
_LARGEST_RADICAND = 10**6

# {(square-free integer under the root, ((symbol, exponent), ...)): coefficient}, without zeros
Terms = dict[tuple[int, tuple[tuple[str, int], ...]], Fraction]
_ONE = (1, ())
_GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "theta", "lambda", "mu", "rho", "sigma", "tau", "phi", "varphi",
    "omega", "pi",
)  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_SUBSCRIPT = re.compile(r"_(?:(\w)|\{(\w+)\})")
_FUNCTION_NAMES = frozenset("fghFGHPQ")  # before a parenthesis, more likely a function than a factor
_WORD = re.compile(r"(?:[A-Za-z]{3,}|pi|ln|or|if|is|to|of|in|at|as)(?![A-Za-z])")
_SPACE = re.compile(r"\s*")


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


class _NoFormula(Exception):
    """The text, or a result on the way, is outside of what is treated here."""


@lru_cache(maxsize=8192)
def read_formula(text: str) -> Formula | Equation | None:
    r"""Read a formula or an equation of two; None where it is neither.

    >>> read_formula(r"\frac{6\pi}{11}").equals(read_formula(r"\frac{6}{11}\pi"))
    True
    >>> read_formula(r"\sqrt{72}").equals(read_formula(r"6\sqrt{2}"))
    True
    >>> read_formula("y = 2x + 1").variable, read_formula("1/2x"), read_formula(r"\sin x")
    ('y', None, None)
    """
    if len(text) > MAX_CHARS:
        return None
    sides = text.split("=")
    if len(sides) > 2:
        return None
    try:
        formulas = [_Reader(side).read() for side in sides]
    except (_NoFormula, ZeroDivisionError):
        return None
    if len(formulas) == 1:
        return formulas[0]
    return Equation(*formulas, _lone_symbol(formulas[0]))


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


class _Reader:
    """A recursive descent over the characters of a text."""

    def __init__(self, text: str):
        self.text, self.place, self.depth = text, 0, 0

    def read(self) -> Formula:
        formula = self.sum()
        if self.place < len(self.text):
            raise _NoFormula
        return formula

    def peek(self) -> str:
        """The next character that is no white space, or nothing at the end."""
        self.place = _SPACE.match(self.text, self.place).end()
        return self.text[self.place : self.place + 1]

    def take(self, *words: str) -> str | None:
        self.peek()
        for word in words:
            if self.text.startswith(word, self.place):
                end = self.place + len(word)
                if not (word[0] == "\\" and self.text[end : end + 1].isalpha()):
                    self.place = end
                    return word
        return None

    def sum(self) -> Formula:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _NoFormula
        sign = self.take("+", "-")
        result = self.product()
        if sign == "-":
            result = _product(_constant(-1), result)
        while sign := self.take("+", "-"):
            result = _sum(result, self.product(), 1 if sign == "+" else -1)
        self.depth -= 1
        return result

    def product(self) -> Formula:
        result, divided = self.factor(first=True), False
        while True:
            if self.take(r"\cdot", r"\times", "*", "·", "×"):
                result, divided = _product(result, self.factor(first=True)), False
            elif self.take("/", r"\div", "÷"):
                result, divided = _quotient(result, self.factor(first=True)), True
            elif (following := self.peek()) and (following.isalpha() or following in "([{\\√π"):
                if divided:  # 1/2x
                    raise _NoFormula
                result = _product(result, self.factor(first=False))
            else:
                return result

    def factor(self, first: bool) -> Formula:
        """A factor with its powers; a number only where it is `first`, since `2 3` and `x2` are no products."""
        following = self.peek()
        if following in ("+", "-") and following and first:
            self.place += 1
            value = self.factor(first=True)
            return _product(_constant(-1), value) if following == "-" else value
        base, last = self.atom(first), ""
        while True:
            if self.take("^"):
                last = "^"
                base = _power(base, _rational(self.argument()))
                if self.peek() == "^":
                    raise _NoFormula
            elif self.take("!"):
                value = _rational(base)
                if last or value.denominator != 1 or not 0 <= value <= 100:  # nor 3^2! or the double factorial 5!!
                    raise _NoFormula
                base, last = _constant(math.factorial(int(value))), "!"
            else:
                return base

    def atom(self, first: bool) -> Formula:
        for opening, closing in (("(", ")"), ("[", "]"), ("{", "}")):
            if self.take(opening):
                value = self.sum()
                if not self.take(closing):
                    raise _NoFormula
                return value
        number = _NUMBER.match(self.text, self.place)
        if number:
            if not first:
                raise _NoFormula
            self.place = number.end()
            self.peek()
            if self.text.startswith((r"\frac", r"\dfrac", r"\tfrac"), self.place):  # a mixed number, or a product
                raise _NoFormula
            return _constant(Fraction(number[0].replace(",", "")))
        if self.peek() == "\\":
            return self.command()
        if self.take("√"):
            return _square_root(self.argument())
        if self.take("π"):
            return self.symbol("pi")
        letter = self.peek()
        word = _WORD.match(self.text, self.place)
        if not (letter.isascii() and letter.isalpha()) or word:  # sin, or a word
            if word and word[0] == "sqrt":
                self.place = word.end()
                return _square_root(self.argument())
            if word and word[0] == "pi":
                self.place = word.end()
                return self.symbol("pi")
            raise _NoFormula
        self.place += 1
        if letter == "i":
            return Formula({(-1, ()): Fraction(1)}, {_ONE: Fraction(1)})
        if letter in _FUNCTION_NAMES and self.peek() == "(":
            raise _NoFormula
        return self.symbol(letter)

    def symbol(self, name: str) -> Formula:
        subscript = _SUBSCRIPT.match(self.text, self.place)
        if subscript:
            self.place = subscript.end()
            name += "_" + (subscript[1] or subscript[2])
        return Formula({(1, ((name, 1),)): Fraction(1)}, {_ONE: Fraction(1)})

    def command(self) -> Formula:
        match = _COMMAND.match(self.text, self.place)
        if match is None:
            raise _NoFormula
        self.place = match.end()
        name = match[1]
        if name in ("frac", "dfrac", "tfrac"):
            return _quotient(self.argument(), self.argument())
        if name == "sqrt":
            return _square_root(self.argument()) if self.peek() != "[" else self.root()
        if name in ("binom", "dbinom", "tbinom"):
            n, k = _rational(self.argument()), _rational(self.argument())
            if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= 200:
                raise _NoFormula
            return _constant(math.comb(int(n), int(k)))
        if name in _GREEK:
            return self.symbol(name)
        raise _NoFormula

    def root(self) -> Formula:
        """`[n]{a}` after \\sqrt, where the root of the number is rational."""
        self.take("[")
        degree, closed = _rational(self.sum()), self.take("]")
        value = _rational(self.argument())
        if not closed or degree not in (2, 3, 4, 5) or abs(value) > 10**15:
            raise _NoFormula
        if degree == 2:
            return _square_root(_constant(value))
        if value < 0 and degree == 4:
            raise _NoFormula
        parts = [round(part ** (1 / int(degree))) for part in (abs(value.numerator), value.denominator)]
        found = Fraction(*parts) * (-1 if value < 0 else 1)
        if found ** int(degree) != value:
            raise _NoFormula
        return _constant(found)

    def argument(self) -> Formula:
        r"""What follows `\frac`, `\sqrt` or `^`: a group in braces, or one character or command."""
        following = self.peek()
        if following == "{":
            return self.atom(first=True)
        if following == "\\":
            return self.command()
        if following == "(":  # x^(2)
            return self.atom(first=True)
        if following.isascii() and following.isalnum():
            self.place += 1
            return _constant(int(following)) if following.isdigit() else self.symbol(following)
        raise _NoFormula
