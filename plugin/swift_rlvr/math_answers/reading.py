"""Text -> one of the kinds in `values.py`, which settles most answers of a dataset exactly and in microseconds."""

import re
from fractions import Fraction
from functools import lru_cache

from swift_rlvr.math_answers.formulas import Equation, Formula
from swift_rlvr.math_answers.parser import read_formula
from swift_rlvr.math_answers.units import read_unit
from swift_rlvr.math_answers.values import Choice, Infinity, Number, Quantity, Sequence, Value, Words

MAX_CHARS = 2000
_MAX_DIGITS = 400
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_NOISE = re.compile(r"\\(?:left|right|[bB]igg?|displaystyle|q?quad|therefore)(?![A-Za-z])|(?<!\\)\\[,!;: ]|~")
_TEXT_COMMAND = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|mathrm|mathbf|mathit|mathsf|mathtt|mbox|boldsymbol|operatorname|underline)"
    r"\s*\{([^{}]*)\}"
)
_EXPONENT = r"((?:\^\s*(?:[23]|\{[23]\})|[²³])?)"
_TEXT_UNIT = re.compile(rf"\\(?:text(?:rm|bf|it)?|mathrm|mbox)\s*\{{([^{{}}]*)\}}\s*{_EXPONENT}")
_PLAIN_UNIT = re.compile(rf"\s([A-Za-z]{{2,12}}){_EXPONENT}")
_DEGREES = re.compile(r"\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree)")
_LEAD_IN = re.compile(
    r"(?:(?:so|thus|hence|therefore)\b,?\s*)?(?:the\s+|my\s+)?(?:final\s+|correct\s+)?"
    r"(?:(?:answer|result|solution|value|option|choice)\s*(?:is|:|=|was)\s*:?\s*|(?:option|choice)\s+(?=\(?[A-Z]\)?$))",
    re.IGNORECASE,
)
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(rf"([+-]?)({_DECIMAL})")
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))")
_FRACTION = re.compile(
    rf"([+-]?)(?:(\d+)\s*)?\\frac\s*(?:\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}\s*\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}|(\d)\s*(\d))"
)
_SLASH = re.compile(rf"([+-]?)({_DECIMAL})\s*/\s*([+-]?)({_DECIMAL})")
_MIXED = re.compile(r"([+-]?)(\d+)\s+(\d+)\s*/\s*(\d+)")
_SCIENTIFIC = re.compile(
    rf"([+-]?)({_DECIMAL})\s*(?:[eE]\s*([+-]?\d{{1,3}})|(?:\\times|\\cdot|×|·|\*)\s*10\s*\^\s*\{{?\s*([+-]?\d{{1,3}})\s*\}}?)"
)
_INFINITY = re.compile(r"([+-]?)\s*\\infty")
_CURRENCY = re.compile("([+-]?)[$€£¥₹]")
_CHOICE = re.compile(r"(\(\s*)?([A-Za-z])(\s*\)|[.:)])?")
_CHOICE_AND_MORE = re.compile(r"(?:\(([A-Z])\)\s*|([A-Z])[.):]\s+)(?=[^\s,;/|&])(?!(?:and|or)\b)")
_DIGIT_GAP = re.compile(r"(?<=\d)\s+(?=\d)(?!\d{3}(?!\d))")
_WRITTEN = re.compile(
    r"(?P<base>[0-9A-F]+_\{?\d+\}?)|(?P<date>\d{4}-\d\d-\d\d)|(?P<time>\d{1,2}:\d\d\s*[AaPp]\.?\s?[Mm]\.?)"
)
_SHORT_WORDS = frozenset(("yes", "no", "on", "in", "up", "odd", "even", "true", "false", "all", "none"))
_POWER = re.compile(r"([+-]?)(\d{1,4})\s*\^\s*(?:\{\s*([+-]?\d{1,2})\s*\}|(\d))")
_WORDS = re.compile(r"(?:an? )?[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)*")
_BRACKETS = (("(", ")"), ("(", "]"), ("[", ")"), ("[", "]"), (r"\{", r"\}"), ("{", "}"))
_SCALES = {" thousand": 10**3, " million": 10**6, " billion": 10**9, " trillion": 10**12}


def tidy(text: str) -> str:
    r"""Remove what does not change the meaning of a text: math delimiters, spacing commands, text commands.

    >>> print(tidy(r"$\left(\dfrac{1}{2},\, 5\text{ cm}\right)$."))
    (\frac{1}{2},5 cm)
    """
    text = _bare(text)
    if "\\" in text:
        text = text.replace(r"\$", "$").replace(r"\%", "%")
        text = _TEXT_COMMAND.sub(r"\1", _DEGREES.sub(" degrees", text))
        text = re.sub(r",\s+", ",", text) if text.startswith(("(", "[", r"\{")) else text
    elif "°" in text:
        text = _DEGREES.sub(" degrees", text)
    text = text.replace("{,}", ",")
    bold = text.find("**", 2) if text.startswith("**") else -1  # Markdown; 5**2 is a power
    if bold > 0 and not text[bold + 2 : bold + 3].strip():
        text = text[2:bold] + text[bold + 2 :]
    return text.replace("−", "-").strip()


def _bare(text: str) -> str:
    r"""Remove math delimiters, a full stop and commands for spacing and size, but keep `\text{...}` as it is."""
    text = text.strip()
    if text.endswith("."):
        text = text[:-1].rstrip()
    for opening, closing in _DELIMITERS:
        inside = text[len(opening) : -len(closing)]
        if len(text) > len(opening) + len(closing) - 1 and text.startswith(opening) and text.endswith(closing):
            if opening not in inside.replace(r"\$", "") and closing not in inside.replace(r"\$", ""):
                text = inside.strip()
            break
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1].rstrip()
    if "\\" in text:
        text = _NOISE.sub("", text).replace(r"\dfrac", r"\frac").replace(r"\tfrac", r"\frac")
        text = text.replace(r"\lbrace", r"\{").replace(r"\rbrace", r"\}").replace(r"\colon", ":")
    return text


def plain(text: str) -> str:
    """A tidied text without white space, for comparing how two answers are written. `1 2` does not become `12`.

    >>> plain("x^2 + 1") == plain("x^2+1"), plain("1 234") == plain("1234"), plain("1 2") == plain("12")
    (True, True, False)
    """
    return "".join(_DIGIT_GAP.sub("\0", tidy(text)).split())


@lru_cache(maxsize=8192)
def read(text: str) -> Value | None:
    r"""The value of an answer, or None where it is of none of the kinds.

    >>> read(r"\frac{1}{2}").value, read("1,234").value, read("50\\%").percent, read("5 cm").unit
    (Fraction(1, 2), Fraction(1234, 1), True, 'cm')
    >>> read(r"\text{(B)}").letter, read("(1, 2]").closing, read(r"\sqrt{2}") is None
    ('B', ']', False)
    """
    return None if len(text) > MAX_CHARS else _value(text, depth=0)


def _value(text: str, depth: int) -> Value | None:
    set_as_text = r"\text" in text or r"\mathrm" in text or r"\mathbf" in text
    tidied = tidy(text)
    lead_in = _LEAD_IN.match(tidied)
    if lead_in and lead_in.end() < len(tidied):
        tidied = tidy(tidied[lead_in.end() :])
    value = _read(tidied, set_as_text, depth)
    if value is None or isinstance(value, (Formula, Equation)):
        rest, unit = split_unit(text)
        if unit and (formula := read_formula(rest)):
            return Quantity(formula, unit)
    return value


def split_unit(text: str) -> tuple[str, str]:
    r"""The tidied text of a formula, and its unit: set as text or, after a constant, a plain word.

    >>> split_unit(r"6\pi\text{ cm}^2"), split_unit(r"6\pi cm"), split_unit("6x cm")
    (('6\\pi', 'cm2'), ('6\\pi', 'cm'), ('6x cm', ''))
    """
    bare = _bare(text)
    start = max(bare.rfind(command) for command in (r"\text", r"\mathrm", r"\mbox"))
    match = _TEXT_UNIT.fullmatch(bare, start) if start > 0 else None
    if match and (unit := read_unit(f" {match[1].strip()}{match[2]}")):
        return tidy(bare[:start]), unit
    bare = tidy(text)
    start = bare.rfind(" ")
    match = _PLAIN_UNIT.fullmatch(bare, start) if start > 0 else None
    if match and (unit := read_unit(match[1] + match[2])):
        rest = bare[:start].rstrip()
        formula = read_formula(rest)
        value = formula.right if isinstance(formula, Equation) else formula
        if value and (unit == "degree" or value.is_constant()):
            return rest, unit
    return bare, ""


def _read(text: str, set_as_text: bool, depth: int) -> Value | None:
    if not text or depth > 2:
        return None
    if value := _number(text):
        return value
    if infinity := _INFINITY.fullmatch(text):
        return Infinity(-1 if infinity[1] == "-" else 1)
    choice = _CHOICE.fullmatch(text)
    if choice and bool(choice[1]) <= bool(choice[3]):
        return Choice(choice[2], bool(choice[1] or choice[3] or set_as_text))
    choice = _CHOICE_AND_MORE.match(text)
    if choice and depth == 0:
        content = text[choice.end() :]
        return Choice(choice[1] or choice[2], True, content, _value(content, depth=1))
    if _WRITTEN.fullmatch(text):
        return Words("".join(character for character in text.lower() if character not in "{}. "), True)
    if _WORDS.fullmatch(text):
        words = text.lower().split()
        words = words[1:] if words[0] in ("a", "an", "the") and len(words) > 1 else words
        return Words(" ".join(words), set_as_text or len(text) > 3 or words[0] in _SHORT_WORDS)
    return _sequence(text, set_as_text, depth) or read_formula(text)


def _number(text: str) -> Number | None:
    unit = ""
    if currency := _CURRENCY.match(text):
        text, unit = currency[1] + text[currency.end() :], "dollar"
    elif text[0] in "+-" and text[1:2] == " ":
        text = text[0] + text[1:].lstrip()
    if percent := text.endswith(("%", " percent")):
        text = (text[:-1] if text[-1] == "%" else text.removesuffix(" percent")).rstrip()
    for pattern, convert in _FORMS:
        match = pattern.match(text)
        if match is None or match.end() > _MAX_DIGITS:
            continue
        rest, scale = text[match.end() :], 1
        for word, factor in _SCALES.items():
            if rest.startswith(word) and not rest[len(word) : len(word) + 1].isalpha():
                rest, scale = rest[len(word) :], factor
        rest_unit = read_unit(rest) if rest and not percent else None
        if rest and rest_unit is None:
            continue
        try:
            return Number(convert(match) * scale, percent, rest_unit or unit)
        except ZeroDivisionError:
            return None
    return None


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").rstrip("."))


def _signed(value: Fraction, *signs: str | None) -> Fraction:
    return -value if signs.count("-") % 2 else value


def _from_fraction(match: re.Match) -> Fraction:
    sign, whole, top_sign, top, bottom_sign, bottom, short_top, short_bottom = match.groups()
    value = _decimal(short_top or top) / _decimal(short_bottom or bottom)
    return _signed(int(whole or 0) + _signed(value, top_sign, bottom_sign), sign)


def _from_repeating(match: re.Match) -> Fraction:
    sign, whole, start, period, digit = match.groups()
    period = period or digit
    value = Fraction(int(f"{whole}{start}{period}") - int(f"{whole}{start}" or 0), 10 ** len(period) - 1)
    return _signed(value / 10 ** len(start), sign)


_FORMS = (
    (_REPEATING, _from_repeating),
    (_SCIENTIFIC, lambda match: _signed(_decimal(match[2]) * Fraction(10) ** int(match[3] or match[4]), match[1])),
    (_POWER, lambda match: _signed(Fraction(int(match[2])) ** int(match[3] or match[4]), match[1])),
    (_MIXED, lambda match: _signed(int(match[2]) + Fraction(int(match[3]), int(match[4])), match[1])),
    (_SLASH, lambda match: _signed(_decimal(match[2]) / _decimal(match[4]), match[1], match[3])),
    (_FRACTION, _from_fraction),
    (_NUMBER, lambda match: _signed(_decimal(match[2]), match[1])),
)


def _sequence(text: str, set_as_text: bool, depth: int) -> Sequence | None:
    opening, closing, inside = "", "", text
    for left, right in _BRACKETS:
        if text.startswith(left) and text.endswith(right):
            opening, closing, inside = left[-1], right[-1], text[len(left) : -len(right)]
            break
    parts = _split(inside)
    if parts is None and opening:  # (1, 2), (3, 4)
        opening, closing, parts = "", "", _split(text)
    if parts is None or (not opening and len(parts) < 2):
        return None
    values = tuple(value for part in parts if (value := _read(part, set_as_text, depth + 1)) is not None)
    return Sequence(opening, closing, values) if len(values) == len(parts) else None


def _split(text: str) -> list[str] | None:
    """Split at commas and a last "and" outside all brackets; None where the brackets do not match."""
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                return None
        elif character in ",;" and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    if last.startswith("and ") and parts:
        last = last[4:]
    elif " and " in last and depth == 0:
        before, _, last = last.rpartition(" and ")
        parts.append(before.strip())
    return None if depth else [*parts, last.strip()]
