"""Text -> `formulas.Formula` or `formulas.Equation`, where it is one that can be compared exactly."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

from swift_rlvr.math_answers.formulas import (
    _ONE,
    MAX_CHARS,
    MAX_DEPTH,
    Equation,
    Formula,
    _constant,
    _lone_symbol,
    _NoFormula,
    _power,
    _product,
    _quotient,
    _rational,
    _square_root,
    _sum,
)

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
