r"""Units behind numbers and formulas: `5 cm`, `104.5 \text{ mi/hr}`, `6.6 \mathrm{mi} /
\mathrm{hr}`, `12 apples`.

A gold with a unit accepts the bare number and the same unit, however it is written, and no other
unit. What is counted ("12 apples") has to have a word in common with what the gold counts, where
both say it. `ratio` is for those who want units converted.
"""

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache

_NAMES = """
    m meter meters metre metres|g gram grams gm|s sec secs second seconds|min mins minute minutes|h hr hrs hour hours
    |day days d|week weeks wk|month months|year years yr yrs|in inch inches|ft foot feet|yd yard yards yds|mi mile miles
    |lb lbs pound pounds|oz ounce ounces|ton tons tonne tonnes|gal gallon gallons|qt quart quarts|pint pints pt|cup cups
    |acre acres|hectare hectares ha|dollar dollars usd bucks|cent cents|euro euros eur|yuan rmb|rupee rupees|peso pesos
    |degree degrees deg|celsius|fahrenheit|radian radians rad|l liter liters litre litres L|mol mole moles|Hz hertz
    |N newton newtons|J joule joules|W watt watts|V volt volts|A ampere amperes amp amps|K kelvin kelvins
    |Pa pascal pascals|C coulomb coulombs|ohm ohms|F farad farads|T tesla teslas|eV|bar bars|atm|cal calorie calories
    |knot knots|rpm|rev revolution revolutions|unit units|person people persons|percent|slug slugs|psi|kip kips|AU
    |pc parsec parsecs|Wb weber webers|H henry|cd candela|dB|bit bits|byte bytes|kg kilo kilos
    |m 米 метр метра метров|cm cms 厘米 公分 см|mm mms 毫米 мм|km kms 千米 公里 км|g 克 г|kg kgs 千克 公斤 кг
    |dm 分米|mg 毫克|hectare 公顷|h 时
    |l 升 л|ml mls 毫升 мл|ton 吨|s 秒 秒钟 секунда секунды секунд|min 分钟 分鐘 минута минуты минут
    |h 小时 小時 個小時 个小时 時間 час часа часов|day 天 日 день дня дней|week 周 星期 неделя недели недель
    |month 月 个月 месяц месяца месяцев|year 年 岁 год года лет
    |yuan 元 块 块钱 人民币|dollar 美元 美金 доллар доллара долларов|euro 欧元 евро|degree 度|percent 百分点
    |dollar ドル 달러|h 시간|min 분|s 초|m メートル 미터|km キロ 킬로미터|yen 円 엔|won 원
"""  # of each unit; the first one stands for it
_UNITS = {name: names.split()[0] for names in _NAMES.split("|") for name in names.split()}
_PREFIXES = {
    "kilo": "k",
    "mega": "M",
    "giga": "G",
    "centi": "c",
    "deci": "d",
    "milli": "m",
    "micro": "μ",
    "nano": "n",
}
_METRIC = (
    "m",
    "g",
    "s",
    "l",
    "L",
    "mol",
    "Hz",
    "N",
    "J",
    "W",
    "V",
    "A",
    "Pa",
    "C",
    "eV",
    "cal",
    "F",
    "T",
    "ohm",
)
_AMBIGUOUS = ("cd", "min", "dd", "pc")
for _long, _short in _PREFIXES.items():
    _UNITS |= {
        f"{_short}{unit}": _short + _UNITS[unit]
        for unit in _METRIC
        if _short + unit not in _AMBIGUOUS
    }
    _UNITS |= {
        f"{_long}{name}": _short + unit
        for name, unit in [*_UNITS.items()]
        if unit in _METRIC and len(name) > 3
    }
_COMPOUND = {
    "mph": "mi/h",
    "kph": "km/h",
    "kmh": "km/h",
    "fps": "ft/s",
    "cc": "cm^3",
    "kWh": "kW*h",
}
_DEFINITIONS = """
    min 60 s|h 60 min|day 24 h|week 7 day|in 127/50 cm|ft 12 in|yd 3 ft|mi 1760 yd|acre 4840 yd2|hectare 10000 m2
    |l 1000 cm3|lb 16 oz|gal 4 qt|qt 2 pint|pint 2 cup|dollar 100 cent|N 1 kg*m/s2|J 1 N*m|W 1 J/s|Pa 1 N/m2
"""  # exact ones alone; of a month, a ton and a cup there are several
_DEFINED = {
    name: (Fraction(count), of) for name, count, of in map(str.split, _DEFINITIONS.split("|"))
}
_POWERS_OF_TEN = {"k": 3, "M": 6, "G": 9, "c": -2, "d": -1, "m": -3, "μ": -6, "n": -9}
_DEFINED |= {
    f"{prefix}{unit}": (Fraction(10) ** n, unit)
    for prefix, n in _POWERS_OF_TEN.items()
    for unit in _METRIC
}
_SHORT = frozenset(("day", "week"))  # of these no single letter is taken: d is a variable
_POWERS = {
    "square": 2,
    "sq": 2,
    "cubic": 3,
    "cu": 3,
    "squared": 2,
    "cubed": 3,
    "平方": 2,
    "立方": 3,
}
_WORDS_THAT_ARE_NO_UNITS = """
    or and not to plus minus times over more less than half dozen hundred thousand million billion trillion
    pi sin cos tan log ln exp sqrt if when is no none mod choose infinity squared cubed factorial root power raised
    divided multiplied zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    hundreds thousands millions billions halves third thirds fourth fourths fifth fifths sixth sixths seventh
    sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths maybe perhaps
    possibly probably either neither nor xor else otherwise alternatively instead versus but except without unless
    wrong incorrect false fails most least approximately about roughly almost nearly around frac left right infty
    cdot theta alpha beta gamma delta lambda sigma omega circ quad where for all any integer
"""
_NO_UNITS = frozenset(_WORDS_THAT_ARE_NO_UNITS.split())
_IN_BETWEEN = frozenset(
    ("of", "per", "in", "at", "on", "a", "an", "the", "each")
)  # 3 cups of flour, 18 dollars a day
COUNTED = "things"  # the first word of a unit that is none: what is counted, "things apple"
_WORDS_THAT_SAY_NOTHING = """
    total all left remaining altogether more extra only exactly item thing piece object way time different possible
"""
_SAY_NOTHING, _ANYTHING = frozenset(_WORDS_THAT_SAY_NOTHING.split()), frozenset(("person", "unit"))
_IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "mice": "mouse",
    "geese": "goose",
    "teeth": "tooth",
}
_MEASURES = frozenset(_UNITS.values()) - _ANYTHING
_SINGULARS = (
    ("ies", "y"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("sses", "ss"),
    ("ss", "ss"),
    ("s", ""),
)
_WRITTEN = re.compile(r"([*/]?)([A-Za-zμ]+)(\d*)")
_FACTOR = re.compile(
    r"\s*(?:(?P<before>square|sq\.?|cubic|cu\.?)\s+|(?P<prefix>平方|立方))?(?P<name>[A-Za-zμ\u0400-\u04ff\u3040-\u9fff\uac00-\ud7af]{1,13})\.?(?:\s+(?P<after>squared|cubed))?"
    r"(?:\s*\^\s*\{?\s*(?P<power>-?\d)\s*\}?|\s*(?P<sign>[²³]))?"
)
_JOINT = re.compile(r"\s*(?:(/|\bper\b|\ban?\b(?=\s[a-z]))|(\\cdot|[*·-])|)")
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_COUNTED = re.compile(
    r"\s*\(?\s*([A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'-]*(?:[ /][A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'-]*){0,6})\s*\)?\s*"
)
_US = re.compile(r"^U\.?S\.?\s+(?=dollar|cent)")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u1fff\u3040-\u9fff\uac00-\ud7af ]{1,20}")
# words of other scripts that deny, that give bounds and parts, and, behind a number alone, that
# count on
OTHER_DOUBT = re.compile(
    r"不|没|非|或|约|約|几|多于|最多|至多|至少|以上|以下|以内|左右|上下|超过|少于|大于|小于|倍|半|分之|错|可能|也许|如果"
    r"|ない|이상|이하|약|아니|또는|\b(?:не|нет|или|более|менее|больше|меньше|около|примерно|почти|если)\b",
    re.IGNORECASE,
)
_COUNTER = re.compile("^[个個只本張张条件位名枚支匹人]")
_COUNTS_ON = re.compile("[多余近至到十百千万亿的减加乘除]")


def read_unit(text: str, spaced: bool = True) -> str | None:
    """The unit that is the text, in one form; "things" and its words for what is counted; None for
    anything else.

    `spaced`: white space or a command sets it off from what stands before it; else only units are
    read, no words.

    >>> read_unit("square meters"), read_unit("cm^2"), read_unit("mi/hr"), read_unit("apples"), read_unit("x")
    ('m2', 'cm2', 'mi/h', 'things apple', None)
    >>> read_unit("miles per hour"), read_unit("mph"), read_unit("or 6"), read_unit("kg m/s^2")
    ('mi/h', 'mi/h', None, 'kg*m/s2')
    """
    text = _US.sub("", text.strip().rstrip(".,"))
    inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if (powers := _measured(_FRACTION.sub(r"\1 / \2", inside))) is not None:
        return _written(powers)
    if _OTHER_SCRIPT.fullmatch(text):
        doubtful = OTHER_DOUBT.search(text) or _COUNTS_ON.match(text)
        return None if doubtful else f"{COUNTED} {_COUNTER.sub('', text)}".strip()
    match = _COUNTED.fullmatch(text)
    if match is None or not spaced:
        return None
    words = [word for word in re.split(r"[ /-]", match[1].lower()) if word not in _IN_BETWEEN]
    unknown = [word for word in words if word not in _UNITS]
    if all(len(word) < 3 for word in words) or any(
        word in _NO_UNITS or len(word) < 3 for word in unknown
    ):
        return None
    return " ".join((COUNTED, *sorted(set(map(_singular, words)))))


def _measured(text: str) -> dict[str, int] | None:
    """{unit: power} of a text made of units alone; None for any other."""
    powers: dict[str, int] = {}
    position, sign = 0, 1
    while match := _FACTOR.match(text, position):
        written = match["name"]
        unit = _UNITS.get(written) or _UNITS.get(written.lower())
        compound = _COMPOUND.get(written)
        parts = _measured(compound) if compound else {unit: 1} if unit else None
        if parts is None or (unit in _SHORT and len(written) == 1):
            return None
        words = [match["before"], match["prefix"], match["after"]]
        power = next((_POWERS[word.rstrip(".")] for word in words if word), 1)
        power *= int(match["power"] or {"²": 2, "³": 3}.get(match["sign"] or "", 1))
        for name, count in parts.items():
            powers[name] = powers.get(name, 0) + sign * power * count
        position = match.end()
        if not text[position:].strip():
            return powers
        joint = _JOINT.match(text, position)
        if not joint or not joint[0]:  # not even white space
            return None
        if joint[1]:
            sign = -1
        position = joint.end()
    return None


def _written(powers: dict[str, int]) -> str:
    def product(sign: int) -> str:
        parts = sorted((name, power * sign) for name, power in powers.items() if power * sign > 0)
        return "*".join(name + (str(power) if power > 1 else "") for name, power in parts)

    above, below = product(1), product(-1)
    return f"{above}/{below}" if below else above


def _singular(word: str) -> str:
    """A word of what is counted in one form: as a unit, as a power, or in the singular."""
    if word in _UNITS or word in _POWERS:
        return _UNITS.get(word) or str(_POWERS[word])
    end, singular = next(((end, new) for end, new in _SINGULARS if word.endswith(end)), ("", ""))
    return _IRREGULAR.get(word, word.removesuffix(end) + singular)


def different_units(gold: str, answer: str) -> bool:
    """Whether two units contradict each other; a missing one contradicts none.

    >>> different_units("cm", "m"), different_units("", "m"), different_units("things apple", "things apple red")
    (True, False, False)
    >>> different_units("things apple", "things orange"), different_units("things man", "kg")
    (True, True)
    """
    if (
        not (gold and answer)
        or gold == answer
        or (gold == "dollar" and answer.startswith("dollar/"))
    ):
        return False  # $16 per hour: what the dollars are for may be added
    if not (gold.startswith(COUNTED) or answer.startswith(COUNTED)):
        return True
    first, second = (
        {*re.findall(r"[^\W\d]+|\d", unit.removeprefix(COUNTED))} for unit in (gold, answer)
    )
    if first <= _SAY_NOTHING or second <= _SAY_NOTHING:
        return False
    if (first | second) & _MEASURES:
        powers = [{word for word in words if word.isdigit()} for words in (first, second)]
        return not first & second & _MEASURES or powers[0] != powers[1]
    if gold.isascii() != answer.isascii():
        return False  # apples and 苹果
    if not gold.isascii():  # 苹果, яблок and яблока
        first, second = ({word[:2] for word in words} for words in (first, second))
    return not (first & second or (first | second) & _ANYTHING)


@lru_cache(maxsize=1024)
def _in_base_units(unit: str) -> tuple[Fraction, Counter[str]]:
    """How many of the units that are not defined by others a unit is, and the powers of those."""
    size, powers, sign = Fraction(1), Counter[str](), 1
    for joint, name, power in _WRITTEN.findall(unit):
        sign = -1 if joint == "/" else sign
        count, inner = Fraction(1), Counter({name: 1})
        if name in _DEFINED:
            count, of = _DEFINED[name]
            more, inner = _in_base_units(of)
            count *= more
        exponent = sign * int(power or 1)
        size *= count**exponent
        for each, number in inner.items():
            powers[each] += number * exponent
    return size, powers


def ratio(answer: str, gold: str) -> Fraction | None:
    """How many of the gold's units one of the answer's is, exactly; None where they measure
    different things.

    >>> ratio("h", "min"), ratio("cm", "m"), ratio("km/h", "m/s"), ratio("kg", "m")
    (Fraction(60, 1), Fraction(1, 100), Fraction(5, 18), None)
    """
    if not (answer and gold) or COUNTED in answer or COUNTED in gold:
        return None
    (one, these), (other, those) = map(_in_base_units, (answer, gold))
    return one / other if these == those else None
