r"""Text of one expression, LaTeX or plain -> a tree.

Everything in the text is read, or nothing: what the grammar does not know raises `Unreadable`. So
does what people read in different ways: `a/bc`, `3^2!`. A tree is a tuple: ("number", Fraction),
("symbol", name), ("constant", "pi"), or an operation with its arguments, ("+", a, b), ("*", a, b),
("/", a, b), ("^", a, b), ("sin", a), ("call", "f", a), ("sum", x, from, to, a) and the same with
"prod". The signs `\pm` and `\mp` are factors ("pm", 1) and ("pm", -1).

Integrals and derivatives of formulas are not read: as an answer they say the question again.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

# --- limits, so that no text is slow and none overflows the stack

MAX_CHARS = 1000
# brackets within brackets
MAX_DEPTH = 30
# of a tree: from its root to its deepest leaf, and operations in all
MAX_HEIGHT = 100
MAX_NODES = 400

Tree = tuple[Any, ...]
# What a token is, and its text: "number", "letter" (x), "name" (velocity), "command" (frac), "text" (the content
# of \text{...}) or "sign"; "end" behind the last one.
Token = tuple[str, str]

# --- tokens

_TOKEN = re.compile(
    # 1,234.5, 12.5, .5; in 1,23 the comma separates two numbers
    r"\s*(?:(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    # \text{x}
    r"|\\text\{(?P<text>[^{}]*)\}"
    # \frac
    r"|\\(?P<command>[A-Za-z]+)"
    # xy, sinx
    r"|(?P<word>[A-Za-z]+)"
    # \{, **, f'', and any other single character
    r"|(?P<sign>\\[{}|%&]|\*\*|'+|.))",
    re.DOTALL,
)
# combinations and permutations: {}_{10}C_3, _{10}P_{3}
_CHOSEN = re.compile(
    # {}_{10}
    r"(?:\{\s*\}|^)\s*[_^]\s*(?:\{\s*([0-9A-Za-z]+)\s*\}|([0-9A-Za-z]))\s*"
    # C, \text{P}
    r"(\\text\{\s*[CP]\s*\}|[CP])\s*"
    # _3
    r"_\s*(?:\{\s*([0-9A-Za-z]+)\s*\}|([0-9A-Za-z]))"
)
# ... as Chinese and Russian sources write them: C_5^2 and A_{5}^{2}, also with the 2 first
_INDEX = r"(?:\{\s*(\d+)\s*\}|(\d))"
_CHOSEN_OF = re.compile(
    r"(?:\\text\{\s*([CA])\s*\}|([CA]))\s*"
    rf"(?:_\s*{_INDEX}\s*\^\s*{_INDEX}|\^\s*{_INDEX}\s*_\s*{_INDEX})(?!\s*[_^!\d])"
)
_ONE_LETTER = re.compile(r"\s*[A-Za-z]\s*")

_PLUS_MINUS = ("+", "-", "pm", "mp")
_TIMES = ("cdot", "times", "*", "ast")
_DIVIDED_BY = ("/", "div")
_POWER = ("^", "**")
# ^{(
_BRACKETED_POWER = [("sign", "^"), ("sign", "{"), ("sign", "(")]
# what no order of a derivative has: 1/2, 0.5, -1
_NO_ORDER = re.compile(r"-|.*(?:[./]|frac)")
# 4 and n, which may be the order of a derivative of any variable
_ONE_ORDER = re.compile(r"\d+|[A-Za-z]")
# variables of which nobody takes a derivative of order n + 1, as of f and y
_BASES = frozenset("abcdkmnpqrstxz")
_AT_ZERO = [("sign", "("), ("number", "0"), ("sign", ")")]
_CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}"}
# a factor ends with these; in `(x)2` and `3!2` the number is a factor, in `x2` it is an index
_BRACKET_ENDS = frozenset((("sign", ")"), ("sign", "]"), ("sign", "}"), ("sign", "!")))
# commands that stand between factors or behind the last one; all others begin a factor
_BETWEEN_FACTORS = frozenset(
    ("cdot", "times", "div", "pm", "mp", "rfloor", "rceil", "bmod", "mod", "rangle", "ast")
)

# --- names

_GREEK_NAMES = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau
    upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar partial nabla aleph
"""
_FUNCTION_NAMES = """
    sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth ln log lg exp arsinh arcosh artanh sgn det
"""
# of these, the ones that are no functions before a parenthesis
_GREEK_FACTORS = frozenset(
    ("alpha", "beta", "gamma", "epsilon", "kappa", "lambda", "nu", "rho", "omega", "ell", "hbar")
)
# what makes one name of the letters below or behind it: \vec{v}, \angle ABC
_DECORATION_NAMES = """
    overline bar vec hat tilde overrightarrow widehat widetilde dot ddot mathbf mathcal mathbb mathfrak mathscr
    underline angle triangle
"""
_OTHER_NAMES = """
    frac sqrt binom lfloor rfloor lceil rceil sum prod lim cdot times div pm mp ast langle rangle
"""
# in these a text is a sentence: "x is 5" is no product of letters
_ENGLISH_WORDS = """
    or if is to of in at as on an no by so we it the and for are not but
"""
# But the `at` of v_0 + at and of e^{-at} stands between signs, or between one and an end of the text.
_AROUND_PRODUCT = {
    (before, after) for before in ["", *"+-*/=^({[|"] for after in ["", *"+-*/=^)}]|_"]
} - {("", "")}
_GREEK = frozenset(_GREEK_NAMES.split())
_DECORATIONS = frozenset(_DECORATION_NAMES.split())
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
# a function's name -> the one that stands for it in a tree
_FUNCTIONS = {name: name for name in _FUNCTION_NAMES.split()}
_FUNCTIONS |= {"tg": "tan", "ctg": "cot", "cosec": "csc", "sign": "sgn"}
_FUNCTIONS |= {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_OF_SEVERAL = frozenset(("gcd", "lcm", "max", "min"))
# `notation.py` takes them out of their font: \text{sin} x
FUNCTION_NAMES = _OF_SEVERAL.union(_FUNCTIONS)
# \sin^{-1} x is \arcsin x
_INVERSES = {name: "arc" + name for name in ("sin", "cos", "tan", "cot")}
_INVERSES |= {"sinh": "arsinh", "cosh": "arcosh", "tanh": "artanh"}
_CONSTANTS = {"pi": "pi", "infty": "infinity", "infinity": "infinity", "inf": "infinity"}
# before a parenthesis these are functions rather than factors: f(x), but x(x + 1)
_CALLED = frozenset("fghFGHPQ")
# what may stand without a backslash: 2pi, sin x
_NAMED = {*_FUNCTIONS, *_OF_SEVERAL, *_CONSTANTS, "sqrt", "abs"}
_PLAIN_NAMES = re.compile("|".join(sorted(_NAMED, key=len, reverse=True)))
# `reading.py` names the commands that are not known
KNOWN = _GREEK | _NAMED | _DECORATIONS | frozenset(_OTHER_NAMES.split())

# `xyz` is a product and `speed` a name; beside a function, as in `absinx`, fewer letters are a product
_MAX_FACTORS = 3
_MAX_FACTORS_BESIDE_FUNCTION = 2

# of \frac{dy}{dx}
_DIFFERENTIALS = ("d", "\\partial")

_ONE = ("number", Fraction(1))
_MINUS_ONE = ("number", Fraction(-1))
_HUNDRED = ("number", Fraction(100))


class Unreadable(ValueError):
    """The text is no expression that is known here."""


@lru_cache(maxsize=8192)
def read_expression(text: str) -> Tree | None:
    r"""The tree of a cleaned text (`notation.clean`). Returns None if it is no expression.

    >>> read_expression("x + 1")
    ('+', ('symbol', 'x'), ('number', Fraction(1, 1)))
    >>> read_expression("x + "), read_expression("see above"), read_expression("a/bc")
    (None, None, None)
    """
    if len(text) > MAX_CHARS or not text:
        return None
    try:
        return _Parser(text).whole()
    except (Unreadable, ZeroDivisionError, ValueError):
        return None


class _Parser:
    """Recursive descent over the tokens of a text.

    Each method of the grammar reads what it is named after from the next token on, moves behind it
    and returns its tree. What it can't read, or what people read in two ways, raises `Unreadable`.
    """

    def __init__(self, text: str):
        self.tokens = _tokens(text)
        # the next token
        self.index = 0
        # open brackets
        self.depth = 0
        # within a power, or the argument of exp: e^{E/kT}, exp(E/kT)
        self.in_exponent = False
        # open bars: within |x - 1| the next bar closes and does not open
        self.bars = 0
        # the height of each operation by its id, and the operations, so that no id is used again
        self.heights: dict[int, int] = {}
        self.nodes: list[Tree] = []

    def whole(self) -> Tree:
        tree = self.sum()
        if self.index < len(self.tokens):
            raise Unreadable
        return tree

    # --- tokens

    def peek(self, ahead: int = 0) -> Token:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else ("end", "")

    def take(self, *values: str) -> str | None:
        """Move past the next token if it is one of these signs or commands."""
        kind, value = self.peek()
        if kind in ("sign", "command") and value in values:
            self.index += 1
            return value
        return None

    def need(self, value: str) -> None:
        if not self.take(value):
            raise Unreadable

    def take_digit(self) -> str:
        r"""The first digit of the next number, which loses it: in `\frac12` and `x_12` a digit is
        an argument.
        """
        _, digits = self.peek()
        self.tokens[self.index] = ("number", digits[1:])
        return digits[0]

    def node(self, *parts: Any) -> Tree:
        """An operation with its arguments, of which neither the height nor the count is too
        large.
        """
        height = 1 + max(self.heights.get(id(part), 0) for part in parts)
        if height > MAX_HEIGHT or len(self.heights) > MAX_NODES:
            raise Unreadable
        self.heights[id(parts)] = height
        self.nodes.append(parts)
        return parts

    # --- sums and products

    def sum(self) -> Tree:
        r"""`-x + 3 \pm y`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        result = self.signed(self.take(*_PLUS_MINUS))
        while sign := self.take(*_PLUS_MINUS):
            if sign == "-":
                result = self.node("-", result, self.product())
            else:
                result = self.node("+", result, self.signed(sign))
        self.depth -= 1
        return result

    def signed(self, sign: str | None) -> Tree:
        """A product behind its sign."""
        if sign == "pm":
            return self.node("*", ("pm", 1), self.product())
        if sign == "mp":
            return self.node("*", ("pm", -1), self.product())
        if sign == "-":
            return self.node("*", _MINUS_ONE, self.product())
        return self.product()

    def product(self) -> Tree:
        r"""Factors with or without a sign between them: `2xy`, `3 \cdot 4`, `a / b`."""
        result = self.factor()
        # whether the next factor, without a sign, may belong to a divisor: 1/ax
        after_divisor = False
        dividend = divisor = result
        while True:
            if self.take(*_TIMES):
                result = self.node("*", result, self.signed_factor())
                after_divisor = False
            elif self.take(*_DIVIDED_BY):
                dividend = result
                divisor = self.signed_factor()
                result = self.node("/", dividend, divisor)
                # 1/2x is half of x; 1/ax, a/2x and 1/(a)x are read in two ways
                is_plain_fraction = dividend[0] == divisor[0] == "number"
                after_divisor = not is_plain_fraction
            elif self.starts_factor():
                if after_divisor and self.in_exponent and self.divides_by_letters():
                    # e^{E/kT}: nobody means T as a factor
                    divisor = self.node("*", divisor, self.factor())
                    result = self.node("/", dividend, divisor)
                    continue
                if after_divisor:
                    raise Unreadable
                result = self.times_next(result)
            else:
                return result

    def divides_by_letters(self) -> bool:
        """Whether the next factor and the divisor before it are letters: the T of E/kT."""
        kind, _ = self.peek()
        last_kind, _ = self.tokens[self.index - 1]
        return kind == last_kind == "letter"

    def times_next(self, result: Tree) -> Tree:
        """A product with the factor that follows without a sign: `2x`, `(a)(b)`."""
        last = self.tokens[self.index - 1]
        following = self.peek()
        # "speed time": words of a sentence
        if last[0] == "name" or following[0] == "name":
            raise Unreadable
        # {5}{2}
        if last == ("sign", "}") and following == ("sign", "{"):
            raise Unreadable
        # `2 3`, `x2`, but not `(x)2`
        if following[0] == "number" and last not in _BRACKET_ENDS:
            raise Unreadable
        is_integer = result[0] == "number" and result[1].denominator == 1
        factor = self.factor()
        # 1\frac{1}{2} is 3/2, and 2\frac{x}{2} is x
        if is_integer and following == ("command", "frac") and is_fraction(factor):
            return self.node("+", result, factor)
        return self.node("*", result, factor)

    def signed_factor(self) -> Tree:
        """What may stand behind a sign of multiplication: `3`, `-3`."""
        if self.take("-"):
            return self.node("*", _MINUS_ONE, self.factor())
        return self.factor()

    def starts_factor(self) -> bool:
        kind, value = self.peek()
        if kind in ("number", "letter", "name", "text"):
            return True
        if kind == "command":
            return value not in _BETWEEN_FACTORS
        if value == "|":
            return not self.bars
        return value in ("(", "[", "{")

    # --- factors

    def factor(self) -> Tree:
        """An atom with its powers, factorials and signs behind it: `x^2`, `5!`, `50%`, `30°`."""
        base = self.atom()
        has_power = is_factorial = False
        while True:
            if self.take(*_POWER):
                # f^' is a derivative
                if self.peek() == ("sign", "'"):
                    raise Unreadable
                # n!^2 is (n!)^2
                base = self.node("^", base, self.exponent())
                has_power = True
            elif self.take("!"):
                # 3^2! and 3!!
                if has_power or is_factorial:
                    raise Unreadable
                base = self.node("!", base)
                is_factorial = True
            elif self.take("%"):
                base = self.node("/", base, _HUNDRED)
            elif self.take("°"):
                base = self.node("degrees", base)
            else:
                return base

    def exponent(self) -> Tree:
        """`^{2}`, `^-2`, or `^{2}^{3}`, of which the last power comes first."""
        if self.take("-"):
            return self.node("*", _MINUS_ONE, self.factor())
        if self.take("+"):
            return self.factor()
        was_in_exponent = self.in_exponent
        self.in_exponent = True
        exponent = self.argument(whole_number=True)
        self.in_exponent = was_in_exponent
        if self.take(*_POWER):
            return self.node("^", exponent, self.exponent())
        return exponent

    def argument(self, whole_number: bool = False) -> Tree:
        r"""What follows `\frac`, `\sqrt` or `^`: a group in braces, or one digit, letter or
        command.

        With `whole_number` all digits belong to it: `2^10` is 1024, but `\frac12` is 1/2.
        """
        kind, value = self.peek()
        if kind == "sign" and value in ("{", "("):
            return self.group()
        if kind in ("letter", "command", "text"):
            return self.atom()
        if kind != "number":
            raise Unreadable
        if whole_number or len(value) == 1:
            self.index += 1
            return ("number", _number(value))
        # \frac1.5
        if not value.isdigit():
            raise Unreadable
        return ("number", Fraction(int(self.take_digit())))

    def group(self) -> Tree:
        """`(x + 1)`, `[x + 1]`, `{x + 1}`."""
        opening = self.peek()[1]
        if opening not in _CLOSING:
            raise Unreadable
        self.index += 1
        # |(|x|)|: within the brackets a bar opens again
        bars = self.bars
        self.bars = 0
        tree = self.sum()
        self.bars = bars
        self.need(_CLOSING[opening])
        return tree

    def arguments(self) -> list[Tree]:
        """`(a, b)` after a function of several arguments."""
        opening = self.peek()[1]
        if opening not in ("(", "{", r"\{"):
            raise Unreadable
        self.index += 1
        trees = [self.sum()]
        while self.take(",", ";", "|"):
            trees.append(self.sum())
        self.need(_CLOSING[opening])
        return trees

    def atom(self) -> Tree:
        r"""What no sign divides: a bracket, a number, `\frac{1}{2}`, `x`, `x_1`, `f(x)`."""
        kind, value = self.peek()
        if kind == "sign":
            return self.bracket(value)
        self.index += 1
        if kind == "number":
            # a number in another base: 101_2
            if self.peek() == ("sign", "_"):
                raise Unreadable
            return ("number", _number(value))
        if kind == "command":
            return self.command(value)
        if kind == "letter":
            return self.letter(value)
        if kind == "name":
            return self.named(value)
        # \text{A}, but not \text{cm}
        if kind == "text" and _ONE_LETTER.fullmatch(value):
            return self.letter(value.strip())
        raise Unreadable

    def bracket(self, opening: str) -> Tree:
        r"""`(x)`, `|x|`, `\|v\|`."""
        if opening in ("(", "[", "{"):
            return self.group()
        if opening in ("|", r"\|"):
            self.index += 1
            self.bars += 1
            tree = self.sum()
            self.bars -= 1
            self.need(opening)
            return self.node("abs" if opening == "|" else "norm", tree)
        raise Unreadable

    # --- names

    def letter(self, name: str) -> Tree:
        """A variable, or one of the constants `i` and `e`; `i_1` and `e'` are variables."""
        if name in ("i", "e") and self.peek()[1] not in ("_", "'"):
            return ("constant", name)
        return self.named(name)

    def named(self, name: str) -> Tree:
        """A symbol with its subscript and primes, and with its arguments where it is a
        function's: `x`, `x_1`, `f'(x)`.
        """
        name = self.with_marks(name)
        if self.peek() != ("sign", "("):
            return ("symbol", name)
        if name == "C" and ("sign", ",") in self.tokens[self.index :]:
            return self.combinations()
        # x(x + 1) is a product; f(x), g'(x), a_n(x) and speed(t) are values of functions
        has_marks = name[-1] == "'" or "_" in name
        # \omega(a - b) is a product, \phi(n) is not
        is_long = name[1:] not in _GREEK_FACTORS if name[0] == "\\" else len(name) > 3
        # so is N(0): nobody writes a product with 0
        is_at_zero = self.tokens[self.index : self.index + 3] == _AT_ZERO
        if name[0] in _CALLED or has_marks or is_long or is_at_zero:
            arguments = self.arguments()
            # \Gamma(n + 1) is n!; with two arguments it is another function
            if name == "\\Gamma" and len(arguments) == 1:
                return self.node("!", self.node("-", arguments[0], _ONE))
            return self.node("call", name, *arguments)
        return ("symbol", name)

    def with_marks(self, name: str) -> str:
        """A name with the subscripts and primes behind it: `x_1`, `f''`."""
        while True:
            kind, value = self.peek()
            if self.take("_"):
                name += "_" + self.raw_argument()
            elif kind == "sign" and value.startswith("'"):
                self.index += 1
                name += value
            else:
                break
        # f^{(n)}, a derivative; x^{(1/2)}, x^{(-n)}, x^{(1)/(2)} and x^{(n + 1)} are powers
        if self.tokens[self.index : self.index + 3] == _BRACKETED_POWER:
            end = self.tokens.index(("sign", ")"), self.index)
            order = "".join(value for _, value in self.tokens[self.index + 3 : end])
            is_all = self.tokens[end + 1 : end + 2] == [("sign", "}")]
            is_power = name in _BASES and not _ONE_ORDER.fullmatch(order)
            if is_all and not is_power and not _NO_ORDER.match(order):
                raise Unreadable
        return name

    def combinations(self) -> Tree:
        """`C(5, 2)`, the number of ways to choose 2 of 5; `C(2, 5)` is a point."""
        match self.arguments():
            case ("number", above), ("number", below) if above < below:
                raise Unreadable
            case above, below:
                return self.node("binomial", above, below)
        raise Unreadable

    def raw_argument(self) -> str:
        r"""The text of a group in braces or of one token: a subscript, or what stands under a
        bar, as in `x_{12}` and `\vec v`.
        """
        if self.take("{"):
            return self.raw_group()
        kind, value = self.peek()
        if kind == "number" and len(value) > 1 and value.isdigit():
            return self.take_digit()
        self.index += 1
        if kind in ("end", "sign"):
            raise Unreadable
        return f"\\{value}" if kind == "command" else value

    def raw_group(self) -> str:
        """The text up to the brace that closes the one just read."""
        text = ""
        depth = 1
        while True:
            kind, value = self.peek()
            self.index += 1
            if kind == "end":
                raise Unreadable
            if kind == "command":
                text += f"\\{value} "
                continue
            if kind == "sign":
                depth += (value == "{") - (value == "}")
            if not depth:
                return text
            text += value

    # --- commands

    def command(self, name: str) -> Tree:
        r"""A command with its arguments, the token before; also a name without a backslash,
        such as `sin` and `pi`.
        """
        if name == "frac":
            return self.fraction()
        if name == "binom":
            return self.node("binomial", self.argument(), self.argument())
        if name == "sqrt":
            return self.root()
        if name in _FUNCTIONS:
            return self.function(_FUNCTIONS[name])
        if name in _OF_SEVERAL:
            return self.node(name, *self.arguments())
        if name == "abs":
            return self.node("abs", self.group())
        if name in _CONSTANTS:
            return ("constant", _CONSTANTS[name])
        if name in ("lfloor", "lceil"):
            return self.rounded(name[1:])
        if name in _GREEK:
            return self.named("\\" + name)
        if name in _DECORATIONS:
            return self.named(f"\\{name} {self.decorated(name)}")
        if name in ("sum", "prod", "lim"):
            return self.with_bounds(name)
        raise Unreadable(name)

    def fraction(self) -> Tree:
        r"""`\frac{1}{2}`, or the name of a derivative: `\frac{dv}{dt}`."""
        above = self.argument()
        below = self.argument()
        match above, below:
            case ("symbol", "d"), ("*", ("symbol", "d"), ("symbol", _)):
                # \frac{d}{dx} x^2
                if self.starts_factor():
                    raise Unreadable("derivative")
            case ("*", ("symbol", "d"), body), ("*", ("symbol", "d"), ("symbol", _) as variable):
                # \frac{d(x^2)}{dx}
                if replaced(body, variable, _ONE) != body:
                    raise Unreadable("derivative")
        if below[0] == "*" and _is_differential(above) and _is_differential(below):
            # Its value is not known, and the same for the same function and variables. As a quotient
            # of products, d v over d t, it would be v over t.
            return self.node("call", "derivative", above, below)
        return self.node("/", above, below)

    def root(self) -> Tree:
        r"""`\sqrt{2}`, `\sqrt2`, `\sqrt[3]{2}`."""
        if self.take("["):
            degree = self.sum()
            self.need("]")
            return self.node("root", self.argument(), degree)
        return self.node("sqrt", self.argument(whole_number=True))

    def rounded(self, rounding: str) -> Tree:
        r"""`\lfloor x \rfloor` -> ("floor", x)."""
        tree = self.sum()
        self.need("r" + rounding)
        return self.node(rounding, tree)

    def decorated(self, decoration: str) -> str:
        r"""The letters that a decoration makes one name of: `\overline{AB}`, `\angle ABC`."""
        if decoration not in ("angle", "triangle"):
            return self.raw_argument()
        letters = ""
        while self.peek()[0] in ("letter", "name"):
            letters += self.peek()[1]
            self.index += 1
        if not letters:
            raise Unreadable
        return letters

    def function(self, name: str) -> Tree:
        r"""`\sin x`, `\sin^2 x`, `\log_2 8`."""
        base = exponent = None
        if name == "log" and self.take("_"):
            base = self.argument()
        if self.take("^"):
            exponent = self.exponent()
            if exponent == ("*", _MINUS_ONE, _ONE) and name in _INVERSES:
                name = _INVERSES[name]
                exponent = None
        # \log^2_3 x: the base may stand behind the power
        if name == "log" and self.take("_"):
            base = self.argument()
        was_in_exponent = self.in_exponent
        self.in_exponent = was_in_exponent or name == "exp"
        argument = self.function_argument()
        self.in_exponent = was_in_exponent
        if base is None:
            tree = self.node(name, argument)
        else:
            tree = self.node("/", self.node("ln", argument), self.node("ln", base))
        if exponent is None:
            return tree
        return self.node("^", tree, exponent)

    def function_argument(self) -> Tree:
        r"""`\sin(2x)`, `\sin 2x`, `\sin \frac{x}{2}`: up to the next sign, function or bracket."""
        kind, value = self.peek()
        if kind == "sign" and value in ("(", "["):
            return self.group()
        if self.take("-"):
            return self.node("*", _MINUS_ONE, self.function_argument())
        result = self.factor()
        while self.continues_argument(result):
            result = self.node("*", result, self.factor())
        return result

    def continues_argument(self, argument: Tree) -> bool:
        r"""Whether the next factor belongs to the argument of a function that is written without
        brackets.
        """
        kind, value = self.peek()
        if kind == "letter":
            # \sin x e^x is a product
            return value != "e" or self.peek(1)[1] != "^"
        if kind != "command":
            return False
        # \sin 2\pi, \cos 2\theta
        if value in _GREEK or value == "pi":
            return True
        # a root or a fraction only behind a number: \sin 2\sqrt{x}, but \sin x \sqrt{x}
        return value in ("frac", "sqrt") and argument[0] in ("number", "constant")

    # --- sums, products, limits and integrals

    def bounds(self) -> tuple[str, str]:
        r"""The texts below and above a sign, in either order: `\sum_a^b`, `\sum^b_a`."""
        below = above = ""
        for _ in range(2):
            if self.take("_"):
                below = self.raw_argument()
            elif self.take("^"):
                above = self.raw_argument()
        return below, above

    def with_bounds(self, name: str) -> Tree:
        r"""`\sum_{k=1}^{n} a_k` -> ("sum", "k", 1, n, a). Other bounds stay text, as those of
        `\lim` do.
        """
        below, above = self.bounds()
        # \lim ends only with the sum, \sum with its product
        if name == "lim":
            body = self.sum()
        else:
            body = self.product()
            variable, _, start = below.partition("=")
            variable = variable.strip()
            first = read_expression(start)
            last = read_expression(above)
            if variable and first and last:
                # i and e are constants elsewhere
                body = replaced(body, ("constant", variable), ("symbol", variable))
                return self.node(name, ("symbol", variable), first, last, body)
        return self.node("call", f"{name} {below} {above}", body)


def _tokens(text: str) -> list[Token]:
    """The tokens of a text, without white space."""
    if "_" in text:
        text = _with_chosen(_CHOSEN.sub(_chosen, text))
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        kind = match.lastgroup or "sign"
        value = match[kind]
        if kind == "word":
            if value in _ENGLISH:
                before = text[: match.start(kind)].rstrip()[-1:]
                after = text[position:].lstrip()[:1]
                if len(value) > 2 or (before, after) not in _AROUND_PRODUCT:
                    raise Unreadable(value)
            tokens += _word_tokens(value)
        # white space at the end is a sign to the pattern
        elif kind != "sign" or value.strip():
            tokens.append((kind, value))
    return tokens


def _word_tokens(word: str) -> list[Token]:
    """A run of letters: names of functions (`sinx`), single variables (`xy`), or a name (`speed`)."""
    tokens: list[Token] = []
    letters = 0
    position = 0
    while position < len(word):
        name = _PLAIN_NAMES.match(word, position)
        # behind letters, `tg`, `pi` and the like count only at the end: 2xpi
        if name and (position == 0 or len(name[0]) > 2 or name.end() == len(word)):
            tokens.append(("command", name[0]))
            position = name.end()
        else:
            tokens.append(("letter", word[position]))
            letters += 1
            position += 1
    has_function = letters < len(tokens)
    max_letters = _MAX_FACTORS_BESIDE_FUNCTION if has_function else _MAX_FACTORS
    return tokens if letters <= max_letters else [("name", word)]


def _is_differential(tree: Tree) -> bool:
    r"""Whether a tree is that of `dx`, `d^2 x`, `d\theta^2`, `\partial V` or `\partial x \partial y`."""
    match tree:
        case ("symbol", d) | ("^", ("symbol", d), _):
            return d in _DIFFERENTIALS
        case ("*", first, _):
            return _is_differential(first)
    return False


def is_fraction(tree: Tree) -> bool:
    r"""Whether a tree is that of a number or of `\frac{1}{2}`."""
    if tree[0] == "/":
        return tree[1][0] == tree[2][0] == "number"
    return tree[0] == "number"


def replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    """The tree with another one in every place of one of its parts.

    >>> replaced(("+", ("symbol", "x"), ("symbol", "y")), ("symbol", "x"), ("symbol", "z"))
    ('+', ('symbol', 'z'), ('symbol', 'y'))
    """
    if tree == old:
        return new
    return with_each_part(tree, lambda part: replaced(part, old, new))


def with_each_part(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The tree with what `change` makes of each tree in it, one level down."""
    parts = [tree[0]]
    for part in tree[1:]:
        parts.append(change(part) if isinstance(part, tuple) else part)
    return tuple(parts)


def _chosen(match: re.Match[str]) -> str:
    r"""`_5C_2` as a binomial; `_5P_2` counts the orders of what is chosen, too.

    Raises Unreadable for {}^3P_0, which is a term symbol of an atom: nobody chooses none of three.
    """
    above = match[1] or match[2]
    below = match[4] or match[5]
    if "P" in match[3] and "^" in match[0] and (below == "0" or above in ("1", "2", "3")):
        raise Unreadable(match[0])
    combinations = rf"\binom{{{above}}}{{{below}}}"
    if "P" in match[3]:
        return rf"({combinations}\cdot({below})!)"
    return combinations


def _with_chosen(text: str) -> str:
    """C_5^2 as a binomial, and A_5^2, which counts the orders, too; but C_1^2 + C_2^2 are squares of
    constants, as all of a letter are where one of them has no such indices.
    """
    for letter in "CA":
        chosen = []
        for match in _CHOSEN_OF.finditer(text):
            if letter in (match[1], match[2]):
                n, k, later_k, later_n = (match[i] or match[i + 1] for i in (3, 5, 7, 9))
                chosen.append((match, int(n or later_n), int(k or later_k)))
        if not chosen or len(chosen) != text.count(letter):
            continue
        if not all(k <= n for _, n, k in chosen):
            continue
        for match, n, k in reversed(chosen):
            number = rf"\binom{{{n}}}{{{k}}}"
            if letter == "A":
                number = rf"({number}\cdot({k})!)"
            text = text[: match.start()] + number + text[match.end() :]
    return text


def _number(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))
