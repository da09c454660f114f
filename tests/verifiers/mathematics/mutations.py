"""Answers that differ from a gold in one place, and so are wrong."""

import re
from collections.abc import Iterator

_COMMAND = re.compile(r"\\[A-Za-z]+|\\.")
_TEXT = re.compile(r"\\(?:text\w*|mathrm|mbox|begin|end|array)\s*\{[^{}]*\}(?:\{[lcr| ]*\})?")
_SUBTRACTION = re.compile(r"[\w)}\]]\s*$")  # what stands before a sign between two terms
_EXPONENT = re.compile(r"\s*(?:\{([^{}]*)\}|(\w))")
_DEGREE = re.compile(r"^\s*\[[^\]]*\]")
_BRACKETED = re.compile(r"\$?\\?(?:left)?[(\[].*,.*[)\]]\$?")
_COMMA = re.compile(r",\s*(?![^()\[\]{}]*[)\]}])")  # outside of brackets
_UNIT = re.compile(r"\\(?:text|mathrm|textnormal|mbox)\s*\{\s*~?\s*([A-Za-z]+)")

_OTHER_FUNCTION = {
    "sin": "cos", "cos": "sin", "tan": "cot", "cot": "tan", "sec": "csc", "csc": "sec", "sinh": "cosh", "cosh": "sinh",
    "arcsin": "arccos", "arccos": "arcsin", "arctan": "arcsin", "ln": "sin", "log": "sin", "exp": "sin"}  # fmt: skip
_OTHER_BRACKET = {"(": "[", "[": "(", ")": "]", "]": ")"}
_STRICT = {"leq": "<", "le": "<", "leqslant": "<", "geq": ">", "ge": ">", "geqslant": ">"}
_OTHER_UNIT = {"cm": "m", "m": "km", "km": "mm", "mm": "cm"} | dict.fromkeys(
    [
        "in",
        "ft",
        "mi",
        "miles",
        "feet",
        "meters",
        "inches",
        "kg",
        "g",
        "lb",
        "s",
        "hours",
        "minutes",
        "dollars",
        "N",
    ],
    "km",
)


def mutations(gold: str) -> Iterator[tuple[str, str]]:
    r"""(what was changed, the text), each text once.

    >>> list(mutations("x-1"))
    [('variable', 'q-1'), ('sign', 'x+1'), ('digit', 'x-2'), ('digit', 'x-8')]
    >>> [text for _, text in mutations(r"\sqrt{2}, \pi")]
    ['\\sqrt{3}, \\pi', '\\sqrt{9}, \\pi', '\\sqrt[7]{2}, \\pi', '\\sqrt{2}, e', '\\pi', '\\sqrt{2}']
    """
    seen = {gold}
    for change in (_characters, _brackets, _commands, _units, _elements):
        for kind, text in change(gold):
            if text not in seen:
                seen.add(text)
                yield kind, text


def _characters(gold: str) -> Iterator[tuple[str, str]]:
    """Digits, signs, exponents and variables, outside of commands and texts."""
    kept = {
        place
        for pattern in (_COMMAND, _TEXT)
        for match in pattern.finditer(gold)
        for place in range(*match.span())
    }
    for place, character in enumerate(gold):
        if place in kept:
            continue
        before, after = gold[:place], gold[place + 1 :]
        if character.isdigit() and character.isascii():
            for step in (1, 7):
                yield "digit", f"{before}{(int(character) + step) % 10}{after}"
        elif character in "+-" and _SUBTRACTION.search(before):
            yield "sign", before + ("-" if character == "+" else "+") + after
        elif character == "-":
            yield "sign lost", before + after
        elif character in "<>":
            yield "direction", before + (">" if character == "<" else "<") + after
        elif character == "^" and (exponent := _EXPONENT.match(after)):
            if (exponent[1] or exponent[2]).strip() != "7":
                yield "power", f"{before}^{{7}}{after[exponent.end() :]}"
        elif character in "xyzabntk" and not (before[-1:].isalpha() or after[:1].isalpha()):
            yield "variable", f"{before}q{after}"


def _brackets(gold: str) -> Iterator[tuple[str, str]]:
    """An interval with one end closed or opened, a pair with another bracket."""
    if _BRACKETED.fullmatch(gold) and r"\begin" not in gold:
        first = min(place for place in map(gold.find, "([") if place >= 0)
        last = max(map(gold.rfind, ")]"))
        for place in (first, last):
            yield "bracket", gold[:place] + _OTHER_BRACKET[gold[place]] + gold[place + 1 :]


def _commands(gold: str) -> Iterator[tuple[str, str]]:
    """Functions, roots, pi, and inequalities whose boundary is excluded."""
    for match in re.finditer(r"\\([A-Za-z]+)", gold):
        before, name, after = gold[: match.start()], match[1], gold[match.end() :]
        if name in _OTHER_FUNCTION:
            yield "function", f"{before}\\{_OTHER_FUNCTION[name]} {after}"
        elif name == "sqrt":
            yield "root", f"{before}\\sqrt[7]{_DEGREE.sub('', after)}"
        elif name == "pi":
            yield "constant", f"{before}e{after}"
        elif name in _STRICT:
            yield "boundary", f"{before}{_STRICT[name]} {after}"


def _units(gold: str) -> Iterator[tuple[str, str]]:
    for match in _UNIT.finditer(gold):
        if match[1] in _OTHER_UNIT:
            yield "unit", f"{gold[: match.start(1)]}{_OTHER_UNIT[match[1]]}{gold[match.end(1) :]}"


def _elements(gold: str) -> Iterator[tuple[str, str]]:
    """A list without one of its elements."""
    parts = _COMMA.split(gold.strip("$"))
    if len(parts) > 1 and r"\begin" not in gold and not re.fullmatch(r"[\d,.]+", gold):
        for place in range(len(parts)):
            yield "element lost", ", ".join(parts[:place] + parts[place + 1 :])
