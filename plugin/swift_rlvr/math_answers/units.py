"""Units after numbers: `5 cm`, `12 apples`, `18 dollars a day`."""

import re

_UNIT_WORDS = re.compile(
    r"\s*((?:square |cubic |sq\.? |cu\.? )?[A-Za-z]{1,12}(?:[ -][A-Za-z]{1,12}){0,4})"
    r"(\.|\s*\^\s*\{?[23]\}?|[²³])?"
)
_UNIT_NAMES = (  # of each unit, the shortest first
    "cm centimeter centimeters centimetre centimetres", "mm millimeter millimeters", "m meter meters metre metres",
    "km kilometer kilometers kilometre kilometres", "in inch inches", "ft foot feet", "yd yard yards",
    "mi mile miles", "g gram grams", "kg kilogram kilograms kilos", "mg milligram milligrams",
    "lb lbs pound pounds", "oz ounce ounces", "s sec secs second seconds", "min mins minute minutes",
    "h hr hrs hour hours", "day days", "week weeks", "month months", "year years", "dollar dollars usd",
    "cent cents", "euro euros", "degree degrees deg", "radian radians rad", "l liter liters litre litres",
    "ml milliliter milliliters", "mph", "km/h kmh kph", "m/s", "unit units", "hz hertz", "n newton newtons",
    "j joule joules", "w watt watts", "v volt volts", "k kelvin",
)  # fmt: skip
_UNITS = {name: names.split()[0] for names in _UNIT_NAMES for name in names.split()}
_COMPOUND_UNIT = re.compile(r"\s*(km/h|m/s)(?:\s*\^\s*\{?2\}?)?")
_MATHEMATICS_AND_DOUBT = """
    or and not to plus minus times over more less than half dozen hundred thousand million billion trillion percent
    pi sin cos tan log ln exp sqrt if when is no none mod choose infinity squared cubed factorial root power raised
    divided multiplied zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    hundreds thousands millions billions halves third thirds fourth fourths fifth fifths sixth sixths seventh
    sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths maybe perhaps
    possibly probably either neither nor xor else otherwise alternatively instead versus but except without unless
    wrong incorrect false approximately about roughly almost nearly around
"""
_NO_UNITS = frozenset(_MATHEMATICS_AND_DOUBT.split())
_IN_BETWEEN = frozenset(("of", "per", "in", "at", "on", "a", "an"))  # 3 cups of flour, 18 dollars a day
_SUPERSCRIPTS = str.maketrans("²³", "23")
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3", "squared": "2", "cubed": "3"}


def read_unit(text: str) -> str | None:
    """The unit that follows a number, in its shortest name; None where the text is something else.

    >>> read_unit(" square meters"), read_unit(" cm^2"), read_unit(" apples"), read_unit("x"), read_unit(" or 6")
    ('m2', 'cm2', 'things', None, None)
    """
    if _COMPOUND_UNIT.fullmatch(text):
        return "".join(text.split())
    match = _UNIT_WORDS.fullmatch(text)
    if match is None:
        return None
    words = match[1].lower().replace("-", " ").split()
    power = "".join(character for character in match[2] or "" if character in "23²³").translate(_SUPERSCRIPTS)
    if words[0].rstrip(".") in _POWERS:
        power = _POWERS[words.pop(0).rstrip(".")]
    if len(words) == 2 and words[1] in _POWERS and words[0] in _UNITS and not match[2]:
        power = _POWERS[words.pop()]
    if len(words) == 1 and words[0] in _UNITS:
        return _UNITS[words[0]] + power
    # What is counted: "12 apples". A single letter is a variable, and some words are mathematics.
    if words and text[0] == " " and not match[2] and (words[-1] in _UNITS or len(words[-1]) > 2) and len(words[0]) > 1:
        things = [word for word in words if word not in _IN_BETWEEN and word not in _UNITS]
        if all(len(word) > 2 and word not in _NO_UNITS for word in things):
            return "things"
    return None
