r"""Plain numbers: decimals, fractions, mixed and scientific numbers, with percent, money, scale
words and units.

Most answers are plain numbers, so they are read and compared here, fast and exactly, before anything
else is tried.
"""

import math
import re
from collections import Counter
from fractions import Fraction

from swift_rlvr.verifiers.mathematics.functions import Computed, is_real, near
from swift_rlvr.verifiers.mathematics.units import (
    are_opposite,
    different_units,
    product_of_letters,
    ratio,
    read_unit,
)
from swift_rlvr.verifiers.mathematics.values import Number, unit_of

# longer numbers are no answers, and slow
_MAX_DIGITS = 400
# A decimal with this many places stands for the number that rounds to it: 0.333333333333 is 1/3.
# With fewer it is exactly itself: 0.333 is not 1/3.
ENOUGH_PLACES = 12
# A gold may be a decimal that its author cut off.
ENOUGH_PLACES_OF_GOLD = 10
# and so many of its digits have to be right
_ENOUGH_DIGITS = 9

# --- ways to write a number

# it stands first in all of them; - 5
_SIGN = r"([+-]?)\s*"
# 1,234.5, 12.5, 12., .5; in 1,23 the comma separates two numbers
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(rf"{_SIGN}({_DECIMAL})")
_REPEATING = re.compile(
    # 1.2\overline{34}, 0.\bar3, 0.\dot{3}, 0.(3)
    rf"{_SIGN}(\d*)\.(?:(\d*)(?:\\(?:overline|bar|dot)\s*(?:\{{\s*(\d+)\s*\}}|(\d))|\((\d+)\))"
    # 0.333..., 0.1666...: three times leave no doubt; of 1.41... and 2.71828... nobody knows how they go on
    r"|(\d{0,50}?)(?P<again>\d)(?P=again){2,50}\.\.\.)"
)
_FRACTION = re.compile(
    # a whole number before it makes it a mixed one: 1\frac{1}{2}
    rf"{_SIGN}(?:(\d+)\s*)?\\frac\s*"
    # \frac{-1}{2}
    rf"(?:\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}\s*\{{\s*([+-]?)\s*({_DECIMAL})\s*\}}"
    # \frac12
    r"|(\d)\s*(\d))"
)
# 1/2, -1/-2
_SLASH = re.compile(rf"{_SIGN}({_DECIMAL})\s*/\s*([+-]?)({_DECIMAL})")
# 1 1/2
_MIXED = re.compile(rf"{_SIGN}(\d+)\s+(\d+)\s*/\s*(\d+)")
_SCIENTIFIC = re.compile(
    # 1.5e3
    rf"{_SIGN}({_DECIMAL})\s*(?:[eE]\s*([+-]?\d{{1,3}})"
    # 1.5 \times 10^{3}
    r"|(?:\\times|\\cdot|[*xX])\s*10\s*\^\s*\{?\s*([+-]?\d{1,3})\s*\}?)"
)
# 2^{10}, 2^-3; -2^2 is -4
_POWER = re.compile(_SIGN + r"(\d{1,4})\s*\^\s*(?:\{\s*([+-]?\d{1,2})\s*\}|(\d+))")
# 3,75, 4,00 € and 1.234,50 where the comma is a decimal one; 1,234 is a number, and 1,5 a pair
_DECIMAL_COMMA = re.compile(
    r"""
    (?P<money> [$€£]\s? )?
    (?P<number>
        [-+]? 0,\d+
        | [-+]? \d+(?:\.\d{3})* , (?:\d\d|\d{4,})
        | [-+]? \d+,\d (?= \s?[^\W\d] | \s?[%€$£] )
        # 1.234,5
        | [-+]? [1-9]\d{0,2}(?:\.\d{3})+ ,\d+
    )
    (?P<unit> \s? (?: [^\W\d]{1,10} | [%€$£] ) )?
    """,
    re.VERBOSE,
)
# What says more stands before what is its beginning: 1.5e3 before 1.5.
_FORMS = (_REPEATING, _SCIENTIFIC, _POWER, _MIXED, _SLASH, _FRACTION, _NUMBER)
# 9th, 9^{\text{th}}
_ORDINAL = re.compile(r"(\d{1,9})\s*(?:\^\s*)?\{?\s*(?:st|nd|rd|th)\s*\}?")

# --- money

# $5, -$5, US$5
_CURRENCY = re.compile(r"([+-]?)\s*(?:US)?([$€£¥₹])\s*")
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yuan", "₹": "rupee", "¢": "cent"}
# what $5 are paid for: $5/hour, $5 per hour
_RATE = re.compile(r"\s*/|\s+(?:per|an?)\s")

# --- words

# 50%, 50 percent, 50 pct, in other languages too
_PERCENT = re.compile(
    r"\s*%\Z|(?<=\d)\s*(?:퍼센트|パーセント)\Z"
    r"|\s(?:percent|pct|prozent|procent|por ciento|por cento|per cento|pour cent|процент\w{0,3})\Z",
    re.IGNORECASE,
)
# behind a number: 5 million, 5万, the longest first
_SCALES = {
    " thousand million": 10**9,
    "万亿": 10**12,
    " thousand": 10**3,
    " million": 10**6,
    " billion": 10**9,
    " trillion": 10**12,
    "万": 10**4,
    "亿": 10**8,
}
# but not "millions" and "millionaires"
_SCALE = re.compile(rf"(?:{'|'.join(_SCALES)})(?![A-Za-z])")
# one hundred and five, but not "five and six"
_AND = re.compile(r"\b(hundred|thousand|million|billion) and (?=[a-z])")
_NEGATIVE = re.compile(r"^\s*(?:negative|minus)\s+")
_ONE_TO_NINETEEN = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_ONES = {word: number for number, word in enumerate(_ONE_TO_NINETEEN.split())}
TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
# what a word counts, other than "zero", which stands alone
_COUNTS = {word: number for word, number in (_ONES | TENS).items() if number}
# `sentences.py` and `in_digits.py` look for them
NUMBER_WORDS = tuple(_COUNTS)


def number_in_words(text: str) -> int | None:
    """The number of "forty two", "one hundred and five" or "negative five". Returns None for other words.

    >>> number_in_words("two thousand and one"), number_in_words("minus forty-two"), number_in_words("five six")
    (2001, -42, None)
    """
    text = text.lower().replace("-", " ")
    text, is_negative = _NEGATIVE.subn("", text)
    words = _AND.sub(r"\1 ", text).split()
    if words == ["zero"]:
        return 0

    total = 0
    # the thousands, millions and so on that are counted now, up to 999
    part = 0
    # the next word has to count less: behind "hundred" less than 100, and behind "forty" less than 10
    limit = 1000
    for word in words:
        scale = _SCALES.get(f" {word}")
        number = _COUNTS.get(word, limit)
        if scale:
            # "two million three thousand", but not "two thousand three million"
            if part == 0 or total % (1000 * scale) != 0:
                return None
            total += part * scale
            part = 0
            limit = 1000
        elif word == "hundred" and 0 < part < 10:
            part *= 100
            limit = 100
        elif number < limit:
            part += number
            limit = 10 if word in TENS else 0
        else:
            return None
    if not words:
        return None
    return -(total + part) if is_negative else total + part


# 12, -3.50: most golds and answers
_PLAIN = re.compile(r"-?\d{1,100}(?:\.\d{1,100})?", re.ASCII)


def read_plain(text: str) -> Number | None:
    """The number of a text that is nothing but digits, a sign and a point. Returns None for others.

    >>> read_plain("-3.50").places, read_plain("50%"), read_plain("1,234")
    (2, None, None)
    """
    if not _PLAIN.fullmatch(text):
        return None
    return Number(Fraction(text), places=len(text.partition(".")[2]))


def with_decimal_comma(text: str) -> Number | None:
    """The number that a tidied text is if its comma is a decimal one, as in most of Europe. Returns None
    if it can't be.

    >>> with_decimal_comma("1.234,50 €").value, with_decimal_comma("1,234"), with_decimal_comma("1,5")
    (Fraction(2469, 2), None, None)
    """
    match = _DECIMAL_COMMA.fullmatch(text)
    if match is None:
        return None
    number = match["number"].replace(".", "").replace(",", ".")
    return read_number(f"{match['money'] or ''}{number}{match['unit'] or ''}")


def read_number(text: str, in_text: bool = False) -> Number | None:
    """The number that a tidied text is, with its unit. Returns None for any other text.

    With `in_text` some of it was set as text, so that its letters are no variables.

    >>> str(read_number("1 1/2").value), read_number("5 cm or 6"), read_number("$1.50 per hour").unit
    ('3/2', None, 'dollar/h')
    """
    ordinal = _ORDINAL.fullmatch(text)
    if ordinal:
        return Number(Fraction(ordinal[1]), unit="ordinal")
    if text.lower().startswith("negative "):
        text = f"-{text[9:].lstrip()}"
    # the signs around it: $5, 5 US$, 50%
    money = ""
    before = _CURRENCY.match(text)
    if before:
        text = before[1] + text[before.end() :]
        money = _CURRENCIES[before[2]]
    elif text[-1] in _CURRENCIES:
        money = _CURRENCIES[text[-1]]
        text = text[:-1].removesuffix("US").rstrip()
    percent = _PERCENT.search(text) if text[-1:] == "%" or text[-1:].isalpha() else None
    if percent:
        text = text[: percent.start()]

    for form in _FORMS:
        match = form.match(text)
        if match is None or match.end() > _MAX_DIGITS:
            continue
        rest = text[match.end() :]
        # the point of "5. " ends a sentence or a line of a list
        if match[0][-1] == "." and rest.strip():
            continue
        word = _SCALE.match(rest)
        scale = _SCALES[word[0]] if word else 1
        rest = rest[word.end() :] if word else rest
        # $5 per hour
        if before and _RATE.match(rest):
            rest = f" {money}{rest}"

        # what is left is the unit; 50% cm is nothing
        unit = money
        if rest.strip():
            written_unit = None if percent else read_unit(rest, rest[0] in " (")
            if written_unit is None:
                continue
            unit = written_unit or unit
        try:
            number = _number_of(match, scale)
        except ZeroDivisionError:
            return None
        product = product_of_letters(text, rest) if unit and not in_text else None
        return number._replace(percent=percent is not None, unit=unit, product=product)
    return None


# 2 hours and 30 minutes, 5 ft 6 in, 1小时20分钟: whole numbers, but for the last
_PART = r"(\d+(?:\.\d+)?)\s?([A-Za-z\u3040-\u9fff]+)\.?"
# 45 degrees 30' 15'', as tidied texts write them
_DEGREES_IN_PARTS = re.compile(
    r"(-?)(\d{1,3}) degrees ?([0-5]?\d(?:\.\d+)?)'(?: ?([0-5]?\d(?:\.\d+)?)(?:''|\"))?"
)
_PARTS = re.compile(rf"(?:\d+\s?[A-Za-z\u3040-\u9fff]+\.?(?:,?\s*(?:and\s)?)){{1,3}}{_PART}")
_ONE_PART = re.compile(_PART)


def quantity_of_parts(text: str) -> Number | None:
    """The number of the first unit that a tidied text gives in parts, each of which is less than one of the
    unit before it. Returns None for any other text.

    >>> quantity_of_parts("2 hours and 30 minutes").value, quantity_of_parts("5 ft 6 in").unit
    (Fraction(5, 2), 'ft')
    >>> quantity_of_parts("2 hours 120 minutes"), quantity_of_parts("3 m, 20 cm"), quantity_of_parts("2 h 5 kg")
    (None, None, None)
    """
    if angle := _DEGREES_IN_PARTS.fullmatch(text):
        degrees, minutes, seconds = (Fraction(part or 0) for part in angle.groups()[1:])
        total = degrees + minutes / 60 + seconds / 3600
        return Number(_signed(total, angle[1]), unit="degree")
    if not _PARTS.fullmatch(text):
        return None
    total = Fraction(0)
    first = last = ""
    for number, name in _ONE_PART.findall(text):
        unit = read_unit(name, spaced=False) or ""
        if last:
            of_last = ratio(unit, last)
            # "2 hours 120 minutes" says the same twice
            if of_last is None or Fraction(number) * of_last >= 1:
                return None
            # "3 m, 20 cm" may be a length and a width
            if "," in text and set(str(of_last.denominator)) == {"0", "1"}:
                return None
        first = first or unit
        of_first = ratio(unit, first)
        if of_first is None:
            return None
        total += Fraction(number) * of_first
        last = unit
    return Number(total, unit=first)


def _number_of(match: re.Match[str], scale: int) -> Number:
    """The number that a match of one of `_FORMS` is, times a scale such as a million; decimals have
    places. Raises ZeroDivisionError.
    """
    sign, *parts = match.groups()
    form = match.re
    if form is _NUMBER or form is _SCIENTIFIC:
        # 12, 1.5 million, 1.5 \\times 10^6
        decimal, *powers = filter(None, parts)
        power = sum(map(int, powers))
        value = _signed(_decimal(decimal) * Fraction(10) ** power, sign)
        places = len(decimal.partition(".")[2])
        return Number(value * scale, places=places, exponent=power + len(str(scale)) - 1)
    if form is _FRACTION:
        whole, above_sign, above, below_sign, below, above_digit, below_digit = parts
        value = _decimal(above_digit or above) / _decimal(below_digit or below)
        value = int(whole or 0) + _signed(value, above_sign, below_sign)
    elif form is _SLASH:
        above, below_sign, below = parts
        value = _signed(_decimal(above) / _decimal(below), below_sign)
    elif form is _MIXED:
        whole, above, below = map(int, parts)
        value = whole + Fraction(above, below)
    elif form is _REPEATING:
        whole, *others = parts
        start, period = (other for other in others if other is not None)
        # 1.2343434... is (1234 - 12) / 990
        difference = int(f"{whole}{start}{period}") - int(f"0{whole}{start}")
        value = Fraction(difference, (10 ** len(period) - 1) * 10 ** len(start))
    else:
        base, exponent = filter(None, parts)
        value = Fraction(int(base)) ** int(exponent)
    return Number(_signed(value, sign) * scale)


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").rstrip("."))


def _signed(value: Fraction, *signs: str | None) -> Fraction:
    return -value if signs.count("-") % 2 else value


# --- two numbers


def same_number(gold: Number, answer: Number) -> bool:
    """Whether a plain number equals the gold, exactly or as a decimal that is long enough.

    >>> same_number(Number(Fraction(1, 2)), Number(Fraction(50), percent=True))
    True
    >>> same_number(Number(Fraction(1, 3)), Number(Fraction("0.333"), places=3))
    False
    """
    if (gold.unit or gold.percent) and different_units(unit_of(gold), unit_of(answer)):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value and not are_opposite(gold.unit, answer.unit)

    # 50% -> 1/2, and 50% -> 50, since "what percentage ...?" is also answered without the sign
    golds = {gold.value}
    if gold.percent:
        golds.add(gold.value / 100)

    # 1/2 -> 50%. A gold of 50 is answered by 50% too; one of 1/2 is not by 1/2%.
    values = {answer.value}
    if answer.percent:
        values = {answer.value / 100}
        if abs(gold.value) >= 1:
            values.add(answer.value)
    if golds & values:
        return True
    # 0.6666666667 -> 2/3, and not 0.6666666668
    enough_places = ENOUGH_PLACES if answer.places else ENOUGH_PLACES_OF_GOLD
    if is_long_decimal_of(gold, answer.value, enough_places):
        return True
    return is_long_decimal_of(answer, gold.value)


def is_long_decimal_of(number: Number, value: Computed, enough_places: int = ENOUGH_PLACES) -> bool:
    """Whether a number is a decimal of enough places for that value."""
    if number.places < enough_places or not is_real(value):
        return False
    # 0 is not 0.0000000000001, however near
    distance = min(Fraction(1, 10**enough_places), abs(number.value) / 10**_ENOUGH_DIGITS)
    return near(value, number.value, distance)


# --- factorisations

# 2^{3}\times11\cdot137
_PRODUCT = re.compile(
    r"\d{1,9}(?:\^\{?\d{1,3}\}?)?(?:(?:\\times|\\cdot|\*)\d{1,9}(?:\^\{?\d{1,3}\}?)?)+"
)
_POWER_OF_FACTOR = re.compile(r"(\d+)(?:\^\{?(\d+)\}?)?")


def prime_factors(text: str) -> Counter[int] | None:
    r"""How often each prime is a factor of a product that is written out, without white space. Returns
    None if the text is no product or a factor is no prime.

    >>> prime_factors(r"3\times11\times11^{2}"), prime_factors(r"3\times1507"), prime_factors("33")
    (Counter({11: 3, 3: 1}), None, None)
    """
    if not _PRODUCT.fullmatch(text):
        return None
    factors: Counter[int] = Counter()
    for base, power in _POWER_OF_FACTOR.findall(text):
        number = int(base)
        if number < 2 or any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
            return None
        factors[number] += int(power or 1)
    return factors
