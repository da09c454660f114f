r"""Text of one expression, LaTeX or plain -> a tree.

Everything in the text is read, or nothing: what the grammar does not know raises `Unreadable`. So
does what people read in different ways: `a/bc`, `3^2!`. A tree is a tuple: ("number", Fraction),
("symbol", name), ("constant", "pi"), or an operation with its arguments, ("+", a, b), ("*", a, b),
("/", a, b), ("^", a, b), ("sin", a), ("call", "f", a), ("sum", x, from, to, a), the same with
"prod" and "int", and ("derivative", x, a). The signs `\pm` and `\mp` are factors ("pm", 1) and
("pm", -1).
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

# limits of a text, of brackets within brackets, and of a tree: no text is slow or overflows the stack
MAX_CHARS, MAX_DEPTH, MAX_HEIGHT, MAX_NODES = 1000, 30, 100, 400
Tree = tuple[Any, ...]

# 1,234.5; \text{x}; \frac; xy; and one sign, such as + or \{
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)|\\text\{(?P<text>[^{}]*)\}"
    r"|\\(?P<command>[A-Za-z]+)|(?P<word>[A-Za-z]+)|(?P<sign>\\[{}|%&]|\*\*|'+|.))",
    re.DOTALL,
)
_GREEK_NAMES = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau
    upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell hbar partial nabla aleph
"""
_FUNCTION_NAMES = """
    sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh coth ln log lg exp arsinh arcosh artanh sgn det
"""
_DECORATION_NAMES = """
    overline bar vec hat tilde overrightarrow widehat widetilde dot ddot mathbf mathcal mathbb mathfrak mathscr
    underline angle triangle
"""
_OTHER_NAMES = """
    frac sqrt binom lfloor rfloor lceil rceil sum prod int lim cdot times div pm mp ast langle rangle
"""
_ENGLISH_WORDS = """
    or if is to of in at as on an no by so we it the and for are not but
"""
_GREEK, _DECORATIONS = frozenset(_GREEK_NAMES.split()), frozenset(_DECORATION_NAMES.split())
_FUNCTIONS = {name: name for name in _FUNCTION_NAMES.split()}
_FUNCTIONS |= {"tg": "tan", "ctg": "cot", "cosec": "csc", "sign": "sgn"}
_FUNCTIONS |= {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_OF_SEVERAL = frozenset(("gcd", "lcm", "max", "min"))
# \sin^{-1} x is \arcsin x
_INVERSES = {name: "arc" + name for name in ("sin", "cos", "tan", "cot")}
_INVERSES |= {"sinh": "arsinh", "cosh": "arcosh", "tanh": "artanh"}
_CONSTANTS = {"pi": "pi", "infty": "infinity", "infinity": "infinity", "inf": "infinity"}
# before a parenthesis these are functions rather than factors: f(x), but x(x + 1)
_CALLED = frozenset("fghFGHPQ")
_NAMED = {*_FUNCTIONS, *_OF_SEVERAL, *_CONSTANTS, "sqrt", "abs"}
_PLAIN_NAMES = re.compile("|".join(sorted(_NAMED, key=len, reverse=True)))
# in these a text is a sentence: "x is 5" is no product of letters
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
KNOWN = _GREEK | _NAMED | _DECORATIONS | frozenset(_OTHER_NAMES.split())
_CLOSING = {"(": ")", "[": "]", "{": "}", r"\{": r"\}"}
_ONE = ("number", Fraction(1))
_MINUS_ONE = ("number", Fraction(-1))

# combinations and permutations: {}_{10}C_3, _{10}P_{3}
_CHOSEN = re.compile(
    r"(?:\{\s*\}|^)\s*[_^]\s*(?:\{\s*([0-9A-Za-z]+)\s*\}|([0-9A-Za-z]))\s*(\\text\{\s*[CP]\s*\}|[CP])\s*"
    r"_\s*(?:\{\s*([0-9A-Za-z]+)\s*\}|([0-9A-Za-z]))"
)


class Unreadable(ValueError):
    """The text is no expression that is known here."""


@lru_cache(maxsize=8192)
def read_expression(text: str) -> Tree | None:
    r"""The tree of a cleaned text (`notation.clean`), or None where it is no expression.

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
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str):
        self.tokens: list[tuple[str, str]] = []
        text = _CHOSEN.sub(_chosen, text) if "_" in text else text
        position = 0
        while match := _TOKEN.match(text, position):
            position = match.end()
            kind = match.lastgroup or "sign"
            if kind == "word":
                self._add_word(match[kind])
            elif kind != "sign" or match[kind].strip():
                self.tokens.append((kind, match[kind]))
        self.index = self.depth = self.bars = 0
        self.nodes: list[Tree] = []
        self.heights: dict[int, int] = {}

    def _add_word(self, word: str) -> None:
        """A run of letters: names of functions, single variables, or a name."""
        if word in _ENGLISH:
            raise Unreadable(word)
        tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(word):
            name = _PLAIN_NAMES.match(word, position)
            if name and (position == 0 or len(name[0]) > 2 or name.end() == len(word)):
                tokens.append(("command", name[0]))
                position = name.end()
            else:
                tokens.append(("letter", word[position]))
                position += 1
        letters = sum(kind == "letter" for kind, _ in tokens)
        self.tokens += (
            tokens if letters <= (3 if len(tokens) == letters else 2) else [("name", word)]
        )

    def whole(self) -> Tree:
        tree = self.sum()
        if self.index < len(self.tokens):
            raise Unreadable
        return tree

    # --- tokens

    def peek(self, ahead: int = 0) -> tuple[str, str]:
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

    def node(self, *parts: Any) -> Tree:
        height = 1 + max(self.heights.get(id(part), 0) for part in parts)
        if height > MAX_HEIGHT or len(self.heights) > MAX_NODES:
            raise Unreadable
        self.heights[id(parts)] = height
        self.nodes.append(parts)  # so that no other one gets its id
        return parts

    # --- grammar

    def sum(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        result = self.signed(self.take("+", "-", "pm", "mp"))
        while sign := self.take("+", "-", "pm", "mp"):
            if sign == "-":
                result = self.node("-", result, self.product())
            else:
                result = self.node("+", result, self.signed(sign))
        self.depth -= 1
        return result

    def signed(self, sign: str | None) -> Tree:
        """A product behind its sign."""
        if sign in ("pm", "mp"):
            return self.node("*", ("pm", 1 if sign == "pm" else -1), self.product())
        return self.node("*", _MINUS_ONE, self.product()) if sign == "-" else self.product()

    def product(self) -> Tree:
        result = self.factor()
        # by something that is no number in brackets or group: what follows is read in two ways
        divided = False
        while True:
            if self.take("cdot", "times", "*", "ast"):
                result = self.node("*", result, self.signed_factor())
                divided = False
            elif self.take("/", "div"):
                if divided and self.peek()[0] == "end":
                    raise Unreadable
                divisor = self.signed_factor()
                result = self.node("/", result, divisor)
                divided = divisor[0] != "number" or result[1][0] != "number"
            elif self.starts_factor():
                if "name" in (self.tokens[self.index - 1][0], self.peek()[0]):
                    raise Unreadable  # words of a sentence
                if self.peek() == ("sign", "{") and self.tokens[self.index - 1] == ("sign", "}"):
                    raise Unreadable  # {5}{2}
                if divided or (
                    self.peek()[0] == "number" and not self.after_bracket()
                ):  # 1/ax; `2 3`; `x2`
                    raise Unreadable
                mixed = (
                    result[0] == "number"
                    and result[1].denominator == 1
                    and self.peek() == ("command", "frac")
                )
                factor = self.factor()
                if mixed and factor[0] == "/" and factor[1][0] == factor[2][0] == "number":
                    result = self.node("+", result, factor)
                else:
                    result = self.node("*", result, factor)
            else:
                return result

    def signed_factor(self) -> Tree:
        if self.take("-"):
            return self.node("*", _MINUS_ONE, self.factor())
        return self.factor()

    def starts_factor(self) -> bool:
        kind, value = self.peek()
        if kind in ("number", "letter", "name", "text"):
            return True
        if kind == "command":
            return value not in (
                "cdot",
                "times",
                "div",
                "pm",
                "mp",
                "rfloor",
                "rceil",
                "bmod",
                "mod",
                "rangle",
                "ast",
            )
        return value in ("(", "[", "{", "√") or (value == "|" and not self.bars)

    def after_bracket(self) -> bool:
        return self.tokens[self.index - 1] in (
            ("sign", ")"),
            ("sign", "]"),
            ("sign", "}"),
            ("sign", "!"),
        )

    def factor(self) -> Tree:
        """An atom with its powers, factorials and signs behind it."""
        base, last = self.atom(), ""
        while True:
            if self.take("^", "**"):
                if last == "!" or self.peek() == ("sign", "'"):
                    raise Unreadable
                base, last = self.node("^", base, self.exponent()), "^"
            elif self.take("!"):
                if last:
                    raise Unreadable
                base, last = self.node("!", base), "!"
            elif self.take("%"):
                base = self.node("/", base, ("number", Fraction(100)))
            elif self.take("°"):
                base = self.node("degrees", base)
            else:
                return base

    def exponent(self) -> Tree:
        if sign := self.take("+", "-"):
            exponent = self.factor()
            return self.node("*", _MINUS_ONE, exponent) if sign == "-" else exponent
        exponent = self.argument(whole_number=True)
        return self.node("^", exponent, self.exponent()) if self.take("^", "**") else exponent

    def argument(self, whole_number: bool = False) -> Tree:
        r"""What follows `\frac`, `\sqrt` or `^`: a group in braces, or one digit, letter or
        command.
        """
        kind, value = self.peek()
        if kind == "sign" and value in ("{", "("):
            return self.group()
        if kind == "number":
            if whole_number or len(value) == 1:
                self.index += 1
                return ("number", _number(value))
            if not value.isdigit():
                raise Unreadable
            self.tokens[self.index] = ("number", value[1:])
            return ("number", Fraction(int(value[0])))
        if kind in ("letter", "command", "text"):
            return self.atom()
        raise Unreadable

    def group(self) -> Tree:
        opening = self.peek()[1]
        if opening not in _CLOSING:
            raise Unreadable
        self.index += 1
        bars, self.bars = self.bars, 0
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
        kind, value = self.peek()
        if kind == "sign":
            return self.bracket(value)
        self.index += 1
        if kind == "number":
            if self.peek() == ("sign", "_"):
                raise Unreadable  # a number in another base
            return ("number", _number(value))
        if kind == "command":
            return self.command(value)
        if kind == "letter":
            return self.letter(value)
        if kind == "name":
            return self.named(value)
        if kind == "text" and re.fullmatch(r"\s*[A-Za-z]\s*", value):
            return self.letter(value.strip())
        raise Unreadable

    def bracket(self, opening: str) -> Tree:
        if opening in ("(", "[", "{"):
            return self.group()
        if opening in ("|", r"\|"):
            self.index += 1
            self.bars += 1
            tree = self.sum()
            self.bars -= 1
            self.need(opening)
            return self.node("abs" if opening == "|" else "norm", tree)
        if opening == "√":
            self.index += 1
            return self.node("sqrt", self.argument(whole_number=True))
        raise Unreadable

    def letter(self, name: str) -> Tree:
        return (
            ("constant", name)
            if name in "ie" and self.peek()[1] not in ("_", "'")
            else self.named(name)
        )

    def named(self, name: str) -> Tree:
        """A symbol with its subscript and primes, and with its arguments where it is a
        function's.
        """
        while True:
            if self.take("_"):
                name += "_" + self.raw_argument()
            elif (token := self.peek())[0] == "sign" and token[1].startswith("'"):
                self.index += 1
                name += token[1]
            elif (
                self.peek() == ("sign", "^")
                and self.peek(1) == ("sign", "{")
                and self.peek(2) == ("sign", "(")
            ):
                raise Unreadable  # f^{(n)}, a derivative
            else:
                break
        if (
            name == "C"
            and self.peek() == ("sign", "(")
            and ("sign", ",") in self.tokens[self.index :]
        ):
            match self.arguments():
                case ("number", above), ("number", below) if above < below:
                    raise Unreadable  # a point
                case above, below:
                    return self.node("binomial", above, below)
            raise Unreadable
        if self.peek() == ("sign", "(") and (
            name[0] in _CALLED or name[-1] == "'" or "_" in name or len(name) > 3
        ):
            return self.node("call", name, *self.arguments())
        return ("symbol", name)

    def raw_argument(self) -> str:
        """The text of a group in braces or of one token: a subscript, or what stands under a
        bar.
        """
        if self.take("{"):
            text, depth = "", 1
            while True:
                kind, value = self.peek()
                self.index += 1
                if kind == "end":
                    raise Unreadable
                depth += (value == "{") - (value == "}") if kind == "sign" else 0
                if not depth:
                    return text
                text += value if kind != "command" else f"\\{value} "
        kind, value = self.peek()
        if kind == "number" and len(value) > 1 and value.isdigit():
            self.tokens[self.index] = ("number", value[1:])
            return value[0]
        self.index += 1
        if kind in ("end", "sign"):
            raise Unreadable
        return value if kind != "command" else f"\\{value}"

    def command(self, name: str) -> Tree:
        if name in ("frac", "binom"):
            tree = self.node(
                "/" if name == "frac" else "binomial", self.argument(), self.argument()
            )
            match tree:
                case ("/", ("symbol", "d"), ("*", ("symbol", "d"), ("symbol", _) as variable)) if (
                    self.starts_factor()
                ):
                    return self.node("derivative", variable, self.product())
            return tree
        if name == "sqrt":
            if self.take("["):
                degree = self.sum()
                self.need("]")
                return self.node("root", self.argument(), degree)
            return self.node("sqrt", self.argument(whole_number=True))
        if name in _FUNCTIONS:
            return self.function(_FUNCTIONS[name])
        if name in _OF_SEVERAL:
            return self.node(name, *self.arguments())
        if name == "abs":
            return self.node("abs", self.group())
        if name in _CONSTANTS:
            return ("constant", _CONSTANTS[name])
        if name in ("lfloor", "lceil"):
            tree = self.sum()
            self.need("r" + name[1:])
            return self.node(name[1:], tree)
        if name in _GREEK:
            return self.named("\\" + name)
        if name in _DECORATIONS:
            if name in ("angle", "triangle"):
                text = ""
                while self.peek()[0] in ("letter", "name"):
                    text += self.peek()[1]
                    self.index += 1
                if not text:
                    raise Unreadable
            else:
                text = self.raw_argument()
            return self.named(f"\\{name} {text}")
        if name in ("sum", "prod", "int", "lim"):
            return self.with_bounds(name)
        raise Unreadable(name)

    def integrand(self) -> tuple[str, Tree] | None:
        """What stands before the next `dx` outside of brackets, with x; None where another integral
        comes first.
        """
        depth = 0
        for index in range(self.index, len(self.tokens) - 1):
            (kind, value), (following, name) = self.tokens[index : index + 2]
            depth += (value in _CLOSING) - (value in _CLOSING.values()) if kind == "sign" else 0
            if depth < 0 or (kind, value) == ("command", "int"):
                return None
            is_name = name in _GREEK or (following == "letter" and name != "d")
            if not depth and (kind, value) == ("letter", "d") and is_name:
                tokens, self.tokens = self.tokens, self.tokens[:index]
                tree = self.sum() if self.index < index else _ONE
                if self.index < index:
                    raise Unreadable
                self.tokens, self.index = tokens, index + 2
                return ("\\" if following == "command" else "") + name, tree
        return None

    def with_bounds(self, name: str) -> Tree:
        r"""`\sum_{k=1}^{n} a_k` -> ("sum", "k", 1, n, a); `\int_a^b f dx` and `\lim` keep their
        bounds as text.
        """
        below = above = ""
        for _ in range(2):
            if self.take("_"):
                below = self.raw_argument()
            elif self.take("^"):
                above = self.raw_argument()
        first, last = (read_expression(text) for text in (below, above))
        if (
            name == "int"
            and first
            and last
            and "inf" not in below + above
            and (found := self.integrand())
        ):
            return self.node(name, ("symbol", found[0]), first, last, found[1])
        body = self.product() if name in ("sum", "prod") else self.sum()
        variable, equals, start = below.partition("=")
        first, last = (read_expression(text) for text in (start, above))
        variable = variable.strip()
        if name in ("sum", "prod") and equals and first and last and variable:
            body = replaced(body, ("constant", variable), ("symbol", variable))  # i or e
            return self.node(name, ("symbol", variable), first, last, body)
        return self.node("call", f"{name} {below} {above}", body)

    def function(self, name: str) -> Tree:
        base = exponent = None
        if name == "log" and self.take("_"):
            base = self.argument()
        if self.take("^"):
            exponent = self.exponent()
            if exponent == ("*", _MINUS_ONE, _ONE) and name in _INVERSES:
                name, exponent = _INVERSES[name], None
        if name == "log" and self.take("_"):
            base = self.argument()
        argument = self.function_argument()
        if base is not None:
            tree = self.node("/", self.node("ln", argument), self.node("ln", base))
        else:
            tree = self.node(name, argument)
        return tree if exponent is None else self.node("^", tree, exponent)

    def function_argument(self) -> Tree:
        r"""`\sin(2x)`, `\sin 2x`, `\sin \frac{x}{2}`: up to the next sign, function or bracket."""
        if self.peek()[1] in ("(", "[") and self.peek()[0] == "sign":
            return self.group()
        if self.take("-"):
            return self.node("*", _MINUS_ONE, self.function_argument())
        result = self.factor()
        while True:
            kind, value = self.peek()
            if kind == "letter":
                goes_on = value != "e" or self.peek(1)[1] != "^"
            else:  # a root or a fraction only behind a number
                behind = result[0] in ("number", "constant") and value in ("frac", "sqrt")
                goes_on = kind == "command" and (behind or value in _GREEK or value == "pi")
            if not goes_on:
                return result
            result = self.node("*", result, self.factor())


def replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    """The tree with another one in every place of one of its parts.

    >>> replaced(("+", ("symbol", "x"), ("symbol", "y")), ("symbol", "x"), ("symbol", "z"))
    ('+', ('symbol', 'z'), ('symbol', 'y'))
    """
    if tree == old:
        return new
    return (
        tree[0],
        *(replaced(part, old, new) if isinstance(part, tuple) else part for part in tree[1:]),
    )


def _chosen(match: re.Match) -> str:
    above, below = match[1] or match[2], match[4] or match[5]
    chosen = rf"\binom{{{above}}}{{{below}}}"
    return rf"({chosen}\cdot({below})!)" if "P" in match[3] else chosen


def _number(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))
