r"""Answers that can be compared exactly without computer algebra: numbers, choices, words, formulas, sequences of them.

`read` turns the text of an answer, LaTeX or plain, into a value of one of these kinds, or None where it is something
else; `same` compares two of them with rational arithmetic and says None where only computer algebra can tell. Together
they settle most answers of a mathematical dataset in microseconds; the others go to `swift_rlvr.math_judge`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.math_exact import Equation, Formula, read_formula, same_formula

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
_CURRENCY = "$€£¥₹"
_CHOICE = re.compile(r"(\(\s*)?([A-Za-z])(\s*\)|[.:)])?")
_CHOICE_AND_MORE = re.compile(r"(?:\(([A-Z])\)\s*|([A-Z])[.):]\s+)(?=[^\s,;/|&])(?!(?:and|or)\b)")
_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")
_DIGIT_GAP = re.compile(r"(?<=\d)\s+(?=\d)(?!\d{3}(?!\d))")
_WRITTEN = re.compile(
    r"(?P<base>[0-9A-F]+_\{?\d+\}?)|(?P<date>\d{4}-\d\d-\d\d)|(?P<time>\d{1,2}:\d\d\s*[AaPp]\.?\s?[Mm]\.?)"
)
_SHORT_WORDS = frozenset(("yes", "no", "on", "in", "up", "odd", "even", "true", "false", "all", "none"))
_POWER = re.compile(r"([+-]?)(\d{1,4})\s*\^\s*(?:\{\s*([+-]?\d{1,2})\s*\}|(\d))")
_WORDS = re.compile(r"(?:an? )?[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)*")
_BRACKETS = {"(": ")", "[": "]", r"\{": r"\}", "{": "}"}
_UNIT_WORDS = re.compile(
    r"\s*((?:square |cubic |sq\.? |cu\.? )?[A-Za-z]{1,12}(?:[ -][A-Za-z]{1,12}){0,4})"
    r"(\.|\s*\^\s*\{?[23]\}?|[²³])?"
)
_UNITS = {
    unit: names[0]
    for names in (
        "cm centimeter centimeters centimetre centimetres", "mm millimeter millimeters", "m meter meters metre metres",
        "km kilometer kilometers kilometre kilometres", "in inch inches", "ft foot feet", "yd yard yards",
        "mi mile miles", "g gram grams", "kg kilogram kilograms kilos", "mg milligram milligrams",
        "lb lbs pound pounds", "oz ounce ounces", "s sec secs second seconds", "min mins minute minutes",
        "h hr hrs hour hours", "day days", "week weeks", "month months", "year years", "dollar dollars usd",
        "cent cents", "euro euros", "degree degrees deg", "radian radians rad", "l liter liters litre litres",
        "ml milliliter milliliters", "mph", "km/h kmh kph", "m/s", "unit units", "hz hertz", "n newton newtons",
        "j joule joules", "w watt watts", "v volt volts", "k kelvin",
    )
    for names in [names.split()]
    for unit in names
}  # fmt: skip
_COMPOUND_UNIT = re.compile(r"\s*(km/h|m/s)(?:\s*\^\s*\{?2\}?)?")
_MATHEMATICS = """
    or and not to plus minus times over more less than half dozen hundred thousand million billion trillion percent
    pi sin cos tan log ln exp sqrt if when is no none mod choose infinity squared cubed factorial root power raised
    divided multiplied zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    hundreds thousands millions billions halves third thirds fourth fourths fifth fifths sixth sixths seventh
    sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths maybe perhaps
    possibly probably either neither nor xor else otherwise alternatively instead versus but except without unless
    wrong incorrect false approximately about roughly almost nearly around
"""
_NO_UNITS = frozenset(_MATHEMATICS.split())
_IN_BETWEEN = frozenset(("of", "per", "in", "at", "on", "a", "an"))  # 3 cups of flour, 18 dollars a day
_SCALES = {" thousand": 10**3, " million": 10**6, " billion": 10**9, " trillion": 10**12}


class Number(NamedTuple):
    value: Fraction
    percent: bool = False
    unit: str = ""


class Infinity(NamedTuple):
    sign: int


class Choice(NamedTuple):
    letter: str
    marked: bool
    """In parentheses, with a full stop, or set as text: certainly a choice and no variable."""
    content: str = ""
    """What the choice says, where it follows the letter."""


class Words(NamedTuple):
    text: str
    marked: bool
    """Set as text, or long: certainly no product of variables."""


class Sequence(NamedTuple):
    opening: str
    """One of ( [ { or, where there are no brackets, nothing."""
    closing: str
    items: tuple


class Quantity(NamedTuple):
    """A formula, or an equation, with a unit; a number has its unit in itself."""

    value: Formula | Equation
    unit: str


Value = Number | Infinity | Choice | Words | Sequence | Formula | Equation | Quantity


def tidy(text: str) -> str:
    r"""The text without what does not change its meaning: math delimiters, spacing commands, text commands.

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
    """The text without math delimiters, a full stop and commands for the looks; texts in it are still commands."""
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
    """A tidied text without white space, to see whether two answers are written alike. `1 2` does not become `12`.

    >>> plain("x^2 + 1") == plain("x^2+1"), plain("1 234") == plain("1234"), plain("1 2") == plain("12")
    (True, True, False)
    """
    return "".join(_DIGIT_GAP.sub("\0", tidy(text)).split())


@lru_cache(maxsize=8192)
def read(text: str) -> Value | None:
    r"""Read an answer; None where it is neither a number nor any other of the kinds.

    >>> read(r"\frac{1}{2}").value, read("1,234").value, read("50\\%").percent, read("5 cm").unit
    (Fraction(1, 2), Fraction(1234, 1), True, 'cm')
    >>> read(r"\text{(B)}").letter, read("(1, 2]").closing, read(r"\sqrt{2}") is None
    ('B', ']', False)
    """
    if len(text) > MAX_CHARS:
        return None
    set_as_text = r"\text" in text or r"\mathrm" in text or r"\mathbf" in text
    written, text = text, tidy(text)
    lead_in = _LEAD_IN.match(text)
    if lead_in and lead_in.end() < len(text):
        text = tidy(text[lead_in.end() :])
    value = _read(text, set_as_text, depth=0)
    return (_quantity(written) or value) if value is None or isinstance(value, (Formula, Equation)) else value


def _quantity(text: str) -> Quantity | None:
    rest, unit = split_unit(text)
    value = read_formula(rest) if unit else None
    return None if value is None else Quantity(value, unit)


def split_unit(text: str) -> tuple[str, str]:
    r"""The tidied text of a formula and the unit after it, set as text or, after a constant, a word.

    >>> split_unit(r"6\pi\text{ cm}^2"), split_unit(r"6\pi cm"), split_unit("6x cm")
    (('6\\pi', 'cm2'), ('6\\pi', 'cm'), ('6x cm', ''))
    """
    bare = _bare(text)
    start = max(bare.rfind(command) for command in (r"\text", r"\mathrm", r"\mbox"))
    match = _TEXT_UNIT.fullmatch(bare, start) if start > 0 else None
    unit = _unit(f" {match[1].strip()}{match[2]}") if match else None
    if unit:
        return tidy(bare[:start]), unit
    bare = tidy(text)
    start = bare.rfind(" ")
    match = _PLAIN_UNIT.fullmatch(bare, start) if start > 0 else None
    unit = _unit(match[1] + match[2]) if match else None
    if unit:
        value = read_formula(bare[:start].rstrip())
        value = value.right if isinstance(value, Equation) else value
        if value is not None and (unit == "degree" or value.is_constant()):
            return bare[:start].rstrip(), unit
    return bare, ""


def _read(text: str, set_as_text: bool, depth: int) -> Value | None:
    if not text or depth > 2:
        return None
    value = _number(text)
    if value is not None:
        return value
    infinity = _INFINITY.fullmatch(text)
    if infinity:
        return Infinity(-1 if infinity[1] == "-" else 1)
    choice = _CHOICE.fullmatch(text)
    if choice and bool(choice[1]) <= bool(choice[3]):
        return Choice(choice[2], bool(choice[1] or choice[3] or set_as_text))
    choice = _CHOICE_AND_MORE.match(text)
    if choice and depth == 0:
        return Choice(choice[1] or choice[2], True, text[choice.end() :])
    if _WRITTEN.fullmatch(text):
        return Words("".join(character for character in text.lower() if character not in "{}. "), True)
    if _WORDS.fullmatch(text):
        words = text.lower().split()
        words = words[1:] if words[0] in ("a", "an", "the") and len(words) > 1 else words
        return Words(" ".join(words), set_as_text or len(text) > 3 or words[0] in _SHORT_WORDS)
    sequence = _sequence(text, set_as_text, depth)
    return read_formula(text) if sequence is None else sequence


def _number(text: str) -> Number | None:
    percent = False
    unit = ""
    if text[0] in _CURRENCY or (len(text) > 1 and text[0] in "+-" and text[1] in _CURRENCY):
        text = text.replace(text[0] if text[0] in _CURRENCY else text[1], "", 1)
        unit = "dollar"
    elif text[0] in "+-" and text[1:2] == " ":
        text = text[0] + text[1:].lstrip()
    if text.endswith(("%", " percent")):
        text, percent = (text[:-1] if text[-1] == "%" else text[:-8]).rstrip(), True
    for pattern, convert in _FORMS:
        match = pattern.match(text)
        if match is None or match.end() > _MAX_DIGITS:
            continue
        rest, scale = text[match.end() :], 1
        for word, factor in _SCALES.items():
            if rest.startswith(word) and not rest[len(word) : len(word) + 1].isalpha():
                rest, scale = rest[len(word) :], factor
        if rest:
            found = None if percent else _unit(rest)
            if found is None:
                continue
            unit = found
        try:
            value = convert(match)
        except ZeroDivisionError:
            return None
        return Number(value * scale, percent, unit)
    return None


def _unit(text: str) -> str | None:
    """The unit that follows a number, in its shortest name; None where the text is something else."""
    compound = _COMPOUND_UNIT.fullmatch(text)
    if compound:
        return "".join(text.split())
    match = _UNIT_WORDS.fullmatch(text)
    if match is None:
        return None
    words = match[1].lower().replace("-", " ").split()
    power = "".join(character for character in match[2] or "" if character in "23²³").translate(_SUPERSCRIPTS)
    if words[0] in _POWERS:
        power = _POWERS[words.pop(0)]
    elif words[0].rstrip(".") in _POWERS:
        power = _POWERS[words.pop(0).rstrip(".")]
    if len(words) == 2 and words[1] in _POWERS and words[0] in _UNITS and not match[2]:
        power = _POWERS[words.pop()]
    if not words:
        return None
    if len(words) == 1 and words[0] in _UNITS:
        return _UNITS[words[0]] + power
    # Things that are counted: "12 apples". A single letter is a variable, and some words are mathematics.
    if text[0] == " " and not match[2] and (len(words[-1]) > 2 or words[-1] in _UNITS) and len(words[0]) > 1:
        things = [word for word in words if word not in _IN_BETWEEN and word not in _UNITS]
        if all(len(word) > 2 and word not in _NO_UNITS for word in things):
            return "things"
    return None


_SUPERSCRIPTS = str.maketrans("²³", "23")
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3", "squared": "2", "cubed": "3"}


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").rstrip("."))


def _signed(value: Fraction, *signs: str | None) -> Fraction:
    return -value if signs.count("-") % 2 else value


def _from_fraction(match: re.Match) -> Fraction:
    sign, whole, top_sign, top, bottom_sign, bottom, short_top, short_bottom = match.groups()
    value = _decimal(short_top or top) / _decimal(short_bottom or bottom)
    if whole:
        return _signed(int(whole) + _signed(value, top_sign, bottom_sign), sign)
    return _signed(value, sign, top_sign, bottom_sign)


def _from_repeating(match: re.Match) -> Fraction:
    sign, whole, start, period, digit = match.groups()
    period = period or digit
    value = Fraction(int(f"{whole}{start}{period}") - int(f"{whole}{start}" or 0), 10 ** len(period) - 1)
    return _signed(value / 10 ** len(start), sign)


def _from_scientific(match: re.Match) -> Fraction:
    return _signed(_decimal(match[2]) * Fraction(10) ** int(match[3] or match[4]), match[1])


_FORMS = (
    (_REPEATING, _from_repeating),
    (_SCIENTIFIC, _from_scientific),
    (_POWER, lambda match: _signed(Fraction(int(match[2])) ** int(match[3] or match[4]), match[1])),
    (_MIXED, lambda match: _signed(int(match[2]) + Fraction(int(match[3]), int(match[4])), match[1])),
    (_SLASH, lambda match: _signed(_decimal(match[2]) / _decimal(match[4]), match[1], match[3])),
    (_FRACTION, _from_fraction),
    (_NUMBER, lambda match: _signed(_decimal(match[2]), match[1])),
)


def _sequence(text: str, set_as_text: bool, depth: int) -> Sequence | None:
    opening, closing, whole = "", "", text
    for left, right in _BRACKETS.items():
        if text.startswith(left):
            for end in (")", "]") if left in "([" else (right,):
                if text.endswith(end):
                    opening, closing, text = left[-1], end[-1], text[len(left) : len(text) - len(end)]
                    break
            break
    parts = _split(text)
    if parts is None and opening:  # (1, 2), (3, 4)
        opening, closing, parts = "", "", _split(whole)
    if parts is None or (not opening and len(parts) < 2):
        return None
    items = tuple(_read(part, set_as_text, depth + 1) for part in parts)
    return None if None in items else Sequence(opening, closing, items)


def _split(text: str) -> list[str] | None:
    """Split at the commas (and a last "and") that stand outside all brackets; None where brackets do not match."""
    parts, depth, start = [], 0, 0
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
        last = last[4:].strip()
    elif " and " in last and depth == 0:
        before, _, last = last.rpartition(" and ")
        parts.append(before.strip())
    parts.append(last.strip())
    return None if depth else parts


def same(gold: Value, answer: Value) -> bool | None:
    """Whether an answer equals the gold; None where these kinds cannot tell.

    >>> same(read("0.5"), read("1/2")), same(read("(1, 2)"), read("(2, 1)")), same(read("1, 2"), read("2, 1"))
    (True, False, True)
    >>> same(read("5 cm"), read("5")), same(read("5 cm"), read("5 m")), same(read("(1, 2)"), read("1, 2")) is None
    (True, False, True)
    """
    if isinstance(gold, Number) and isinstance(answer, Number):
        return _same_number(gold, answer)
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        units = [value.unit for value in (gold, answer) if isinstance(value, (Quantity, Number))]
        if _different_units(units[0], units[-1]):
            return False
        return same(*(value.value if isinstance(value, Quantity) else value for value in (gold, answer)))
    if isinstance(gold, Choice) and gold.content and not isinstance(answer, Choice):
        content = read(gold.content)  # "(D) 12" is answered by 12 as well as by D
        return None if content is None else same(content, answer)
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return _same_choice(gold, answer)
    if isinstance(gold, Words) and isinstance(answer, Words):
        return True if gold.text == answer.text else (False if gold.marked or answer.marked else None)
    if isinstance(gold, Sequence) and isinstance(answer, Sequence):
        return _same_sequence(gold, answer)
    if isinstance(gold, Infinity) and isinstance(answer, Infinity):
        return gold == answer
    if isinstance(gold, (Formula, Equation)) or isinstance(answer, (Formula, Equation)):
        formulas = [_formula(value) for value in (gold, answer)]
        return None if None in formulas else same_formula(*formulas)
    if isinstance(gold, Sequence) or isinstance(answer, Sequence):
        sequence = gold if isinstance(gold, Sequence) else answer
        return None if len(sequence.items) < 2 else False
    if isinstance(gold, Number) or isinstance(answer, Number):
        other = answer if isinstance(gold, Number) else gold
        return False if isinstance(other, Infinity) or other.marked else None
    return None


def _formula(value: Value) -> Formula | Equation | None:
    if isinstance(value, (Formula, Equation)):
        return value
    if isinstance(value, Number) and not value.percent:
        return Formula({(1, ()): value.value} if value.value else {}, {(1, ()): Fraction(1)})
    if isinstance(value, Choice) and not value.marked:
        return read_formula(value.letter)
    return None


def _same_choice(gold: Choice, answer: Choice) -> bool | None:
    if not (gold.marked or answer.marked):
        return gold.letter == answer.letter
    if gold.letter.upper() != answer.letter.upper():
        return False
    if _OTHER_CHOICE.search(answer.content):  # "(A) is wrong, (B) is right"
        return None if gold.content else False
    contents = read(gold.content), read(answer.content)
    return None in contents or same(*contents) is not False


def _different_units(gold: str, answer: str) -> bool:
    return bool(gold and answer) and gold != answer and "things" not in (gold, answer)


def _same_number(gold: Number, answer: Number) -> bool:
    if _different_units(gold.unit, answer.unit):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value
    values = {answer.value / 100 if answer.percent else answer.value}
    if answer.percent and (gold.percent or gold.value.denominator == 1 or abs(gold.value) >= 1):
        values.add(answer.value)  # "what percentage ...": the sign is as good as a unit
    golds = {gold.value / 100, gold.value} if gold.percent else {gold.value}
    return bool(golds & values)


def _same_sequence(gold: Sequence, answer: Sequence) -> bool | None:
    sides = (gold.opening, gold.closing), (answer.opening, answer.closing)
    if all(side in (("{", "}"), ("", "")) for side in sides):
        return _same_set(gold.items, answer.items)
    if sides[0] != sides[1]:
        return None if ("", "") in sides else False
    if len(gold.items) != len(answer.items):
        return False
    outcomes = [same(*pair) for pair in zip(gold.items, answer.items, strict=True)]
    return False if False in outcomes else None if None in outcomes else True


def _same_set(gold: tuple, answer: tuple) -> bool | None:
    table = [[same(first, second) for second in answer] for first in gold]
    if any(None in row for row in table):
        return None
    return all(map(any, table)) and all(map(any, zip(*table, strict=True)))
