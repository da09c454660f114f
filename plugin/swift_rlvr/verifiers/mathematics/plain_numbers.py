"""Plain numbers: decimals, fractions, mixed and scientific numbers, with percent, money, scale
words and units.
"""

import re
from fractions import Fraction

from swift_rlvr.verifiers.mathematics.units import read_unit
from swift_rlvr.verifiers.mathematics.values import Number

_MAX_DIGITS = 400
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(rf"([+-]?)({_DECIMAL})")
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\(?:overline|bar|dot)\s*(?:\{\s*(\d+)\s*\}|(\d))")
_FRACTION = re.compile(
    rf"([+-]?)(?:(\d+)\s*)?\\frac\s*(?:\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}\s*\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}|(\d)\s*(\d))"
)
_SLASH = re.compile(rf"([+-]?)({_DECIMAL})\s*/\s*([+-]?)({_DECIMAL})")
_MIXED = re.compile(r"([+-]?)(\d+)\s+(\d+)\s*/\s*(\d+)")
_SCIENTIFIC = re.compile(
    rf"([+-]?)({_DECIMAL})\s*(?:[eE]\s*([+-]?\d{{1,3}})|(?:\\times|\\cdot|[*xX])\s*10\s*\^\s*\{{?\s*([+-]?\d{{1,3}})\s*\}}?)"
)
_RATE = re.compile(r"\s*/|\s+(?:per|an?)\s")
_CURRENCY = re.compile(r"([+-]?)\s*(?:US)?([$€£¥₹])\s*")
# pounds of money and of weight are one
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "lb", "¥": "yuan", "₹": "rupee"}
_POWER = re.compile(r"([+-]?)(\d{1,4})\s*\^\s*(?:\{\s*([+-]?\d{1,2})\s*\}|(\d+))")
_ORDINAL = re.compile(r"(\d{1,9})\s*(?:\^\s*)?\{?\s*(?:st|nd|rd|th)\s*\}?")  # 9th, 9^{\text{th}}
_SCALES = {
    " thousand": 10**3,
    " million": 10**6,
    " billion": 10**9,
    " trillion": 10**12,
    "万": 10**4,
    "亿": 10**8,
}
_BEFORE_AND = ("hundred", "thousand", "million", "billion")
_ONE_TO_NINETEEN = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_ONES = {word: number for number, word in enumerate(_ONE_TO_NINETEEN.split())}
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}


def number_in_words(text: str) -> int | None:
    """The number of "forty two", "one hundred and five" or "negative five"."""
    words = text.lower().replace("-", " ").split()
    if words[0] in ("negative", "minus"):
        value = (
            number_in_words(" ".join(words[1:]))
            if len(words) > 1 and words[1] in _ONES | _TENS
            else None
        )
        return None if value is None else -value
    total = part = 0
    last = ""
    for word in words:
        if word in _TENS and last not in _TENS and last not in _ONES:
            part += _TENS[word]
        elif word in _ONES and (last not in _ONES) and (last not in _TENS or 0 < _ONES[word] < 10):
            part += _ONES[word]
        elif word == "hundred" and 0 < part < 10:
            part *= 100
        elif part and (scale := _SCALES.get(f" {word}", 0)) and total % (1000 * scale) == 0:
            total += part * scale
            part = 0
        elif word != "and" or last not in _BEFORE_AND:
            return None
        last = word
    return None if last == "and" else total + part


def read_number(text: str) -> Number | None:
    """The number that a tidied text is, with its unit; None for any other text."""
    if ordinal := _ORDINAL.fullmatch(text):
        return Number(Fraction(ordinal[1]), unit="ordinal")
    if text.lower().startswith("negative "):
        text = f"-{text[9:].lstrip()}"
    unit = ""
    if currency := _CURRENCY.match(text):
        text, unit = currency[1] + text[currency.end() :], _CURRENCIES[currency[2]]
    elif text[-1] in _CURRENCIES:
        text, unit = text[:-1].removesuffix("US").rstrip(), _CURRENCIES[text[-1]]
    if not text:
        return None
    if text[0] in "+-" and text[1:2] == " ":
        text = text[0] + text[1:].lstrip()
    if percent := text.endswith(("%", " percent")):
        text = (text[:-1] if text[-1] == "%" else text.removesuffix(" percent")).rstrip()
    for pattern, convert in _FORMS:
        match = pattern.match(text)
        if (
            match is None
            or match.end() > _MAX_DIGITS
            or (match[0][-1] == "." and text[match.end() :].strip())
        ):
            continue
        rest, scale = text[match.end() :], 1
        for word, factor in _SCALES.items():
            if rest.startswith(word) and not (
                "a" <= rest[len(word) : len(word) + 1].lower() <= "z"
            ):
                rest, scale = rest[len(word) :], factor
        if currency and _RATE.match(rest):  # $5 per hour
            rest = f" {unit}{rest}"
        rest_unit = read_unit(rest, rest[0] in " (") if rest.strip() and not percent else None
        if rest.strip() and rest_unit is None:
            continue
        try:
            value = convert(match) * scale
        except ZeroDivisionError:
            return None
        places = len(match[2].partition(".")[2]) if pattern is _NUMBER and scale == 1 else 0
        return Number(value, percent, rest_unit or unit, places)
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
    value = Fraction(
        int(f"{whole}{start}{period}") - int(f"{whole}{start}" or 0), 10 ** len(period) - 1
    )
    return _signed(value / 10 ** len(start), sign)


_FORMS = (
    (_REPEATING, _from_repeating),
    (
        _SCIENTIFIC,
        lambda match: _signed(
            _decimal(match[2]) * Fraction(10) ** int(match[3] or match[4]), match[1]
        ),
    ),
    (_POWER, lambda match: _signed(Fraction(int(match[2])) ** int(match[3] or match[4]), match[1])),
    (
        _MIXED,
        lambda match: _signed(int(match[2]) + Fraction(int(match[3]), int(match[4])), match[1]),
    ),
    (_SLASH, lambda match: _signed(_decimal(match[2]) / _decimal(match[4]), match[1], match[3])),
    (_FRACTION, _from_fraction),
    (_NUMBER, lambda match: _signed(_decimal(match[2]), match[1])),
)
