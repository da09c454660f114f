"""Text -> `Formula` or `Equation`, where it is one that can be compared exactly.

Not read are functions, other roots, absolute values and whatever exceeds the limits. Neither are notations that people
read in different ways: `1/2x`, `f(x)`, `2\\frac{1}{2}x`, `3^2!`, `5!!`. Computer algebra has to judge these.
"""

import math
import re
from fractions import Fraction
from functools import lru_cache

from swift_rlvr.math_answers.formulas import Equation, Formula, NotAFormula, constant, symbol

MAX_CHARS, MAX_DEPTH = 200, 30
_GREEK = re.compile("alpha|beta|gamma|delta|epsilon|theta|lambda|mu|rho|sigma|tau|phi|varphi|omega|pi")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+")
_SUBSCRIPT = re.compile(r"_(?:(\w)|\{(\w+)\})")
_FUNCTION_NAMES = frozenset("fghFGHPQ")  # before a parenthesis, more likely a function than a factor
_WORD = re.compile(r"(?:[A-Za-z]{3,}|pi|ln|or|if|is|to|of|in|at|as)(?![A-Za-z])")


@lru_cache(maxsize=8192)
def read_formula(text: str) -> Formula | Equation | None:
    r"""Read a formula or an equation of two; None where it is neither.

    >>> read_formula(r"\sqrt{72}").equals(read_formula(r"6\sqrt{2}"))
    True
    >>> read_formula("y = 2x + 1").variable, read_formula("1/2x"), read_formula(r"\sin x")
    ('y', None, None)
    """
    sides = text.split("=")
    if len(text) > MAX_CHARS or len(sides) > 2:
        return None
    try:
        left, *right = (_Parser(side).whole() for side in sides)
    except (NotAFormula, ZeroDivisionError):
        return None
    return Equation(left, right[0]) if right else left


class _Parser:
    """Recursive descent over the characters of a text."""

    def __init__(self, text: str):
        self.text, self.place, self.depth = text, 0, 0

    def whole(self) -> Formula:
        formula = self.sum()
        if self.place < len(self.text):
            raise NotAFormula
        return formula

    def peek(self) -> str:
        """Skip white space and return the next character, or "" at the end."""
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def take(self, *tokens: str) -> str | None:
        """Move past the first of the tokens that comes next, and return it."""
        self.peek()
        for token in tokens:
            end = self.place + len(token)
            if self.text.startswith(token, self.place) and not (
                token[0] == "\\" and self.text[end : end + 1].isalpha()
            ):
                self.place = end
                return token
        return None

    def sum(self) -> Formula:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotAFormula
        sign = self.take("+", "-")
        result = -self.product() if sign == "-" else self.product()
        while sign := self.take("+", "-"):
            result = result + self.product() if sign == "+" else result - self.product()
        self.depth -= 1
        return result

    def product(self) -> Formula:
        result, divided = self.factor(first=True), False
        while True:
            if self.take(r"\cdot", r"\times", "*", "·", "×"):
                result, divided = result * self.factor(first=True), False
            elif self.take("/", r"\div", "÷"):
                result, divided = result / self.factor(first=True), True
            elif (following := self.peek()) and (following.isalpha() or following in "([{\\√π"):
                if divided:  # 1/2x
                    raise NotAFormula
                result *= self.factor(first=False)
            else:
                return result

    def factor(self, first: bool) -> Formula:
        """A factor with its powers; a number only where it is `first`, since `2 3` and `x2` are not products."""
        if first and (sign := self.take("+", "-")):
            value = self.factor(first=True)
            return -value if sign == "-" else value
        base, last = self.atom(first), ""
        while True:
            if self.take("^"):
                last = "^"
                base **= self.argument().rational()
                if self.peek() == "^":
                    raise NotAFormula
            elif self.take("!"):
                number = base.rational()
                if last or number.denominator != 1 or not 0 <= number <= 100:  # nor 3^2! or the double factorial 5!!
                    raise NotAFormula
                base, last = constant(math.factorial(int(number))), "!"
            else:
                return base

    def atom(self, first: bool) -> Formula:
        for opening, closing in (("(", ")"), ("[", "]"), ("{", "}")):
            if self.take(opening):
                value = self.sum()
                if not self.take(closing):
                    raise NotAFormula
                return value
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            self.peek()
            # x2 is no product; 2\frac12 is a mixed number or a product
            if not first or self.text.startswith((r"\frac", r"\dfrac", r"\tfrac"), self.place):
                raise NotAFormula
            return constant(Fraction(number[0].replace(",", "")))
        if self.peek() == "\\":
            return self.command()
        word = _WORD.match(self.text, self.place)
        name = word[0] if word else self.peek()
        self.place += len(name)
        if name in ("√", "sqrt"):
            return self.argument().square_root()
        if name in ("π", "pi"):
            return self.symbol("pi")
        if word or not (name.isascii() and name.isalpha()):  # sin, or a word of a sentence
            raise NotAFormula
        if name == "i":
            return constant(-1).square_root()
        if name in _FUNCTION_NAMES and self.peek() == "(":
            raise NotAFormula
        return self.symbol(name)

    def symbol(self, name: str) -> Formula:
        """The symbol of that name, with the subscript that follows."""
        if subscript := _SUBSCRIPT.match(self.text, self.place):
            self.place = subscript.end()
            name += "_" + (subscript[1] or subscript[2])
        return symbol(name)

    def command(self) -> Formula:
        match = _COMMAND.match(self.text, self.place)
        if match is None:
            raise NotAFormula
        self.place, name = match.end(), match[1]
        if name in ("frac", "dfrac", "tfrac"):
            return self.argument() / self.argument()
        if name == "sqrt":
            return self.root() if self.peek() == "[" else self.argument().square_root()
        if name in ("binom", "dbinom", "tbinom"):
            n, k = self.argument().rational(), self.argument().rational()
            if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= 200:
                raise NotAFormula
            return constant(math.comb(int(n), int(k)))
        if _GREEK.fullmatch(name):
            return self.symbol(name)
        raise NotAFormula

    def root(self) -> Formula:
        r"""`[n]{a}` after `\sqrt`, where the root is rational."""
        self.take("[")
        degree, closed = self.sum().rational(), self.take("]")
        value = self.argument().rational()
        if not closed or degree not in (2, 3, 4, 5) or abs(value) > 10**15:
            raise NotAFormula
        if degree == 2:
            return constant(value).square_root()
        parts = [round(part ** (1 / int(degree))) for part in (abs(value.numerator), value.denominator)]
        root = Fraction(*parts) * (-1 if value < 0 else 1)
        if root ** int(degree) != value:  # irrational, or the fourth root of a negative number
            raise NotAFormula
        return constant(root)

    def argument(self) -> Formula:
        r"""What follows `\frac`, `\sqrt` or `^`: a group in brackets, or one character or command."""
        following = self.peek()
        if following in ("{", "("):
            return self.atom(first=True)
        if following == "\\":
            return self.command()
        if following.isascii() and following.isalnum():
            self.place += 1
            return constant(int(following)) if following.isdigit() else self.symbol(following)
        raise NotAFormula
