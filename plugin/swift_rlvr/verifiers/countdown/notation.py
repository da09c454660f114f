r"""Typographic and LaTeX notation of ``+ - * /`` expressions -> plain ASCII.

Characters are mapped one by one and commands are read from a short list; Unicode normalisation is
not used, because it turns the exponent of ``2³`` into the digit of ``23``. Whatever drops out
leaves a space behind, so that nothing joins two digits into one number. What is not on the lists is
left as it is, for the parser to refuse.
"""

import re

# Dollar signs and backticks delimit; the rest are the white space characters of typesetting.
_SPACES = "$`\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_SIGNS = "×·⋅∙∗✕✖＊÷∕⁄／−–‐‑－﹣＋﹢＝（﹙）﹚０１２３４５６７８９"
_PLAIN = str.maketrans(_SIGNS + _SPACES, "********////------++=(())0123456789" + " " * len(_SPACES))
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}]|\s+|[^\\{}\s]+|\\", re.DOTALL)
_COMMANDS = {r"\times": "*", r"\cdot": "*", r"\ast": "*", r"\div": "/"}
_COMMANDS |= dict.fromkeys(
    (r"\left", r"\right", r"\,", r"\;", r"\:", r"\!", r"\ ", r"\(", r"\)", r"\[", r"\]"), " "
)
_FRACTIONS = (r"\frac", r"\dfrac", r"\tfrac")
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
    plain = _without_latex(text.translate(_PLAIN))
    return None if plain is None else _RESULT_WITH_ZEROS.sub(r"\1", plain)


def _without_latex(text: str) -> str | None:
    if "\\" not in text and "{" not in text:
        return text
    out: list[str] = []
    # the last character of `out` that is not white space; "=" where a side begins, "]" where a box
    # ended
    last = "="
    braces: list[str] = []  # what each open brace belongs to
    awaited = ""  # what the next token must open a brace for
    for token in _TOKEN.findall(text):
        if token.isspace():
            out.append(token)
            continue
        if awaited or token == "{":
            if not awaited or token != "{":
                return None
            piece = " " if awaited == "box" else "("
            braces.append(awaited)
            awaited = ""
        elif token == "}":
            owner = braces.pop() if braces else None
            if owner == "numerator":
                piece, awaited = ")/", "denominator"
            elif owner == "denominator":
                piece = "))"
            elif owner == "box":
                piece, last = " ", "]"
            else:
                return None
        elif token in _FRACTIONS:
            piece, awaited = "(", "numerator"
        elif token == r"\boxed":
            if last != "=":
                return None
            piece, awaited = " ", "box"
        elif token[0] == "\\":
            if token not in _COMMANDS:
                return None
            piece = _COMMANDS[token]
        else:
            piece = token
        if piece != " ":
            if last == "]" and piece[0] != "=":
                return None
            last = piece[-1]
        out.append(piece)
    return None if braces or awaited else "".join(out)
