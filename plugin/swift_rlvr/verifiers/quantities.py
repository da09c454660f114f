"""Whether two short texts are the same number, amount, range, date or time of day: `twenty-five` and
25, `$5` and `5 dollars`, `5-10 km` and `5 to 10 kilometers`, `March 5, 2021` and `2021-03-05`.

For answers that are compared as texts. Unlike in mathematics nothing may be left out or computed:
5 km is neither 5 nor 5000 m, and 3.10, which may be a version, is not 3.1. A number within other words
is none: "Apollo 11".
"""

import re
from typing import Literal

from swift_rlvr.verifiers.answers import normalised_answer
from swift_rlvr.verifiers.mathematics.dates import same_moment
from swift_rlvr.verifiers.mathematics.in_digits import in_digits
from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.units import COUNTED, read_unit

# longer texts are no quantity
_MAX_CHARS = 80

# 1,234.50; 007 is a name
_NUMBER = r"(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d+)?"
_AMOUNT = re.compile(
    rf"(?P<sign>-?)(?:US)?(?P<money>[$€£¥₹])?\s?(?P<number>{_NUMBER})"
    r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?\s?(?P<unit>\D.*)?",
    re.IGNORECASE,
)
# 5-10, 5 to 10 years, from 5 to 10, between 5 and 10
_RANGE = re.compile(
    rf"(?:(?:from\s)?(?P<first>{_NUMBER})(?:\s?-\s?|\sto\s)|between\s(?P<low>{_NUMBER})\sand\s)"
    rf"(?P<last>{_NUMBER})\s?(?P<unit>\D.*)?",
    re.IGNORECASE,
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# ¥ is the sign of two
_CURRENCIES = {
    "$": {"dollar"},
    "€": {"euro"},
    "£": {"pound sterling"},
    "¥": {"yuan", "yen"},
    "₹": {"rupee"},
}
_MONEY = set().union(*_CURRENCIES.values())
_ORDINAL = re.compile(r"(?:the )?(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
# a fraction, or a mixed number
_FRACTION = re.compile(r"-?(?:\d+ )?\d+/\d+")
_PERCENT = re.compile(r"%|per\s?cent")


def same_quantity(gold: str, answer: str) -> Literal["yes", "no", "maybe"]:
    """Whether an answer is the quantity or the moment of a gold; "maybe" for 03/05/2021 and March 5, 2021.

    >>> [same_quantity(*pair) for pair in (("25", "twenty-five"), ("5-10", "5 to 10"), ("$5", "5 dollars"))]
    ['yes', 'yes', 'yes']
    >>> [same_quantity(*pair) for pair in (("5 km", "5"), ("3.10", "3.1"), ("007", "7"), ("Rhine", "Rhine"))]
    ['no', 'no', 'no', 'no']
    """
    if len(gold) > _MAX_CHARS or len(answer) > _MAX_CHARS:
        return "no"
    first, second = tidy(gold), tidy(answer)
    moment = same_moment(first, second)
    if moment is not None:
        return moment
    return "yes" if _forms(first) & _forms(second) else "no"


def _forms(text: str) -> set[str]:
    """A quantity in the form that all its ways of writing have; two for 5 pounds, money or a weight, and
    none for any other text.
    """
    written = in_digits(text)
    ordinal = _ORDINAL.fullmatch(written)
    if ordinal:
        return {f"{ordinal[1]}th"}
    span = _RANGE.fullmatch(written)
    if span:
        first = _plain(span["first"] or span["low"])
        return {f"{first} to {_plain(span['last'])} {unit}" for unit in _units(span["unit"])}
    amount = _AMOUNT.fullmatch(written)
    if amount is None:
        # "one half"
        return {written} if _FRACTION.fullmatch(written) else set()

    # a number with its money, percent or unit
    number = _plain(amount["number"])
    scale = _SCALES.get((amount["scale"] or "").lower(), 0)
    if scale:
        whole, _, places = number.partition(".")
        if len(places) > scale:
            return set()
        number = (whole + places.ljust(scale, "0")).lstrip("0")
    # $5 per hour
    if amount["money"] and amount["unit"]:
        return set()
    units = _CURRENCIES[amount["money"]] if amount["money"] else _units(amount["unit"])
    # $5.00 is $5
    if units & _MONEY:
        number = number.removesuffix(".00")
    return {f"{amount['sign']}{number} {unit}" for unit in units}


def _plain(number: str) -> str:
    return number.replace(",", "")


def _units(text: str | None) -> set[str]:
    """What a unit may be, in one form; words for what is counted as texts are compared elsewhere."""
    text = (text or "").strip()
    if _PERCENT.fullmatch(text):
        return {"%"}
    if text in _CURRENCIES:
        return _CURRENCIES[text]
    unit = read_unit(text) if text else ""
    is_measured = unit is not None and not unit.startswith(COUNTED)
    if not unit or not is_measured:
        return {normalised_answer(text)}
    # pounds are money or a weight
    return {unit.replace("pound", meaning) for meaning in ("lb", "pound sterling")}
