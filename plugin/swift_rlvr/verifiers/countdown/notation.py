r"""Typographic and LaTeX notation of ``+ - * /`` expressions -> plain ASCII.

Characters are mapped one by one and commands are read from a short list; Unicode normalisation is
not used, because it turns the exponent of ``2³`` into the digit of ``23``. Whatever drops out
leaves a space behind, so that nothing joins two digits into one number. What is not on the lists is
left as it is, for the parser to refuse.
"""

import re

# Characters that stand for one ASCII character each, and what they stand for.
_SIGNS = "×·⋅∙∗✕✖＊÷∕⁄／−–‐‑－﹣＋﹢＝（﹙）﹚０１２３４５６７８９"
_ASCII = "********////------++=(())0123456789"
# Dollar signs and backticks delimit; the rest are the white space characters of typesetting.
_SPACES = "$`\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN = str.maketrans(_SIGNS + _SPACES, _ASCII + " " * len(_SPACES))

# A command (\frac, \,), a brace, white space, other text, or a backslash at the end.
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}]|\s+|[^\\{}\s]+|\\", re.DOTALL)
_COMMANDS = {
    r"\times": "*",
    r"\cdot": "*",
    r"\ast": "*",
    r"\div": "/",
    # what only sets space, size or delimiters
    r"\left": " ",
    r"\right": " ",
    r"\,": " ",
    r"\;": " ",
    r"\:": " ",
    r"\!": " ",
    r"\ ": " ",
    r"\(": " ",
    r"\)": " ",
    r"\[": " ",
    r"\]": " ",
}
_FRACTIONS = (r"\frac", r"\dfrac", r"\tfrac")

# "= 24.0" at the end; not "= 24.5", and not "24.0 = 20 + 4"
_RESULT_WITH_ZEROS = re.compile(r"(=\s*[+-]?[0-9]+)\.0+(?=\s*\Z)")


def to_plain(text: str) -> str | None:
    r"""Rewrite the lenient notation as plain ASCII; None where braces or LaTeX commands cannot be
    read.

    A last side that is a whole number with a point and zeros, ``= 24.0``, loses these; all other
    decimals stay. ``\frac{a}{b}`` becomes ``((a)/(b))``. ``\boxed{...}`` may hold the whole text or
    one side of an equation, and nothing may stand beside it there: a box is not a parenthesis.

    >>> to_plain(r"$(3 − 1) \times \frac{4}{2} = \boxed{4}$")
    ' (3 - 1) * ((4)/(2)) =   4  '
    >>> to_plain(r"\sqrt{4}") is None
    True
    """
    plain = text.translate(_PLAIN)
    if "\\" in plain or "{" in plain:
        rewriter = _Rewriter()
        try:
            for token in _TOKEN.findall(plain):
                rewriter.read(token)
        except _Unreadable:
            return None
        if rewriter.owners or rewriter.awaited:
            return None
        plain = "".join(rewriter.pieces)
    return _RESULT_WITH_ZEROS.sub(r"\1", plain)


class _Unreadable(Exception):
    """A brace or a LaTeX command that is not part of the lenient notation."""


class _Rewriter:
    """Rewrites LaTeX token by token.

    Attributes:
        pieces: what is written so far.
        last: the last character written that is not white space; "=" where a side of an equation
            begins, "]" where a box has ended.
        owners: what each open brace belongs to: "numerator", "denominator" or "box".
        awaited: the owner of the brace that the next token has to open, or "".
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.last = "="
        self.owners: list[str] = []
        self.awaited = ""

    def read(self, token: str) -> None:
        if token.isspace():
            self.pieces.append(token)
        elif self.awaited or token == "{":
            # {1} + 2, whose brace belongs to nothing, and \frac12
            if not self.awaited or token != "{":
                raise _Unreadable
            if self.awaited == "box":
                self.pieces.append(" ")
            else:
                self._write("(")
            self.owners.append(self.awaited)
            self.awaited = ""
        elif token == "}":
            if not self.owners:
                raise _Unreadable
            owner = self.owners.pop()
            if owner == "numerator":
                self._write(")/")
                self.awaited = "denominator"
            elif owner == "denominator":
                self._write("))")
            else:
                self.pieces.append(" ")
                self.last = "]"
        elif token in _FRACTIONS:
            self._write("(")
            self.awaited = "numerator"
        elif token == r"\boxed":
            # 3 * \boxed{1 + 2}
            if self.last != "=":
                raise _Unreadable
            self.pieces.append(" ")
            self.awaited = "box"
        elif _COMMANDS.get(token) == " ":
            self.pieces.append(" ")
        elif token[0] == "\\" and token not in _COMMANDS:
            raise _Unreadable
        else:
            self._write(_COMMANDS.get(token, token))

    def _write(self, piece: str) -> None:
        # \boxed{1 + 2} * 3
        if self.last == "]" and piece[0] != "=":
            raise _Unreadable
        self.last = piece[-1]
        self.pieces.append(piece)
