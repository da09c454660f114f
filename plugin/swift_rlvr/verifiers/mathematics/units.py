r"""Units behind numbers and formulas: `5 cm`, `104.5 \text{ mi/hr}`, `6.6 \mathrm{mi} /
\mathrm{hr}`, `12 apples`.

A gold with a unit accepts the bare number and the same unit, however it is written, and no other
unit. What is counted ("12 apples") has to have a word in common with what the gold counts, where
both say it. `ratio` is for those who want units converted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from swift_rlvr.verifiers.languages import CHINESE_DOUBT, words_of
from swift_rlvr.verifiers.mathematics.numeric import constant_value
from swift_rlvr.verifiers.mathematics.parser import Tree, read_expression

# --- units and their names

# the names of each unit; the first one stands for it
_NAMES = """
    m meter meters metre metres|g gram grams gm|s sec secs second seconds|min mins minute minutes|h hr hrs hour hours
    |day days|week weeks wk|month months|year years yr yrs|in inch inches|ft foot feet|yd yard yards yds|mi mile miles
    |lb lbs|pound pounds|oz ounce ounces|ton tons tonne tonnes|gal gallon gallons|qt quart quarts|pint pints pt|cup cups
    |acre acres|hectare hectares ha|dollar dollars usd bucks|cent cents|euro euros eur|yuan rmb|rupee rupees|peso pesos
    |gbp|degree degrees deg|celsius|fahrenheit|radian radians rad|l liter liters litre litres L|mol mole moles|Hz hertz
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
"""
# of units with prefixes, long and short, and the power of ten: km, kilometers
_PREFIXES = {
    "kilo": ("k", 3),
    "mega": ("M", 6),
    "giga": ("G", 9),
    "centi": ("c", -2),
    "deci": ("d", -1),
    "milli": ("m", -3),
    "micro": ("μ", -6),
    "nano": ("n", -9),
}
# The units that have prefixes, and the short ones of each: nobody writes gigameters, and GM and kT
# are products of variables.
_SHORT_PREFIXES = {
    "m": "kcdmμnM", "g": "kmμM", "s": "mμn", "l": "cdmμ", "L": "cdmμ", "mol": "kmμ",
    "Hz": "kMG", "N": "kMm", "J": "kMGm", "W": "kMGm", "V": "kmM", "A": "mμn", "Pa": "kMG",
    "C": "mμn", "eV": "kMGm", "cal": "k", "F": "mμn", "T": "mμ", "ohm": "kM",
}  # fmt: skip


# {name: unit} of all units, with and without prefixes
_UNITS: dict[str, str] = {}
for _group in _NAMES.split("|"):
    _names = _group.split()
    _UNITS |= dict.fromkeys(_names, _names[0])
for _long_prefix, (_short_prefix, _) in _PREFIXES.items():
    for _unit, _short_prefixes in _SHORT_PREFIXES.items():
        if _short_prefix in _short_prefixes:
            _UNITS[_short_prefix + _unit] = _short_prefix + _UNITS[_unit]
    # long prefixes stand before long names alone: kilogram, not kilog
    for _name, _unit in list(_UNITS.items()):
        if _unit in _SHORT_PREFIXES and len(_name) > 3:
            _UNITS[_long_prefix + _name] = _short_prefix + _unit
# units of two parts with a name of their own
_COMPOUND = {
    "mph": {"mi": 1, "h": -1},
    "kph": {"km": 1, "h": -1},
    "kmh": {"km": 1, "h": -1},
    "fps": {"ft": 1, "s": -1},
    "mps": {"m": 1, "s": -1},
    "cc": {"cm": 3},
    "kWh": {"kW": 1, "h": 1},
    "Hz": {"s": -1},
    "hertz": {"s": -1},
}
# {name: {unit: power}} of all of them
_PARTS = {name: {unit: 1} for name, unit in _UNITS.items()} | _COMPOUND
# KM and Meters are sloppy, but M is no meter and Mm no millimeter
_AS_WRITTEN = re.compile(r".|M[^L]")
# 25 degrees C, 25 degrees Celsius; 5 ms^{-1} is a speed
_NAMED_POWERS = {
    (("C", 1), ("degree", 1)): "celsius",
    (("celsius", 1), ("degree", 1)): "celsius",
    (("F", 1), ("degree", 1)): "fahrenheit",
    (("degree", 1), ("fahrenheit", 1)): "fahrenheit",
    (("ms", -1),): "m/s",
}
# Exact definitions alone. A month, a ton and a cup have none: there are several of each.
_DEFINITIONS = """
    min 60 s|h 60 min|day 24 h|week 7 day|in 127/50 cm|ft 12 in|yd 3 ft|mi 1760 yd|acre 4840 yd2|hectare 10000 m2
    |l 1000 cm3|lb 16 oz|pound 1 lb|gal 4 qt|qt 2 pint|pint 2 cup|dollar 100 cent|N 1 kg*m/s2|J 1 N*m|W 1 J/s|Pa 1 N/m2
"""
# {unit: (how many, of which other unit)}
_DEFINED: dict[str, tuple[Fraction, str]] = {}
for _definition in _DEFINITIONS.split("|"):
    _name, _count, _other = _definition.split()
    _DEFINED[_name] = Fraction(_count), _other
for _prefix, _power in _PREFIXES.values():
    for _unit in _SHORT_PREFIXES:
        _DEFINED[_prefix + _unit] = Fraction(10) ** _power, _unit

# square meters, cubic feet, 平方米, m²
_POWERS = dict.fromkeys(("square", "sq", "sq.", "squared", "平方", "²"), 2)
_POWERS |= dict.fromkeys(("cubic", "cu", "cu.", "cubed", "立方", "³"), 3)

# --- letters that may be a unit or variables: 2mg, 3V

# abbreviations that nobody takes for a product of variables
_ABBREVIATIONS = """
    cm mm km dm nm kg ml mL dl dL cl cL kW MW GW kJ MJ kV kPa MPa GPa Pa Hz kHz MHz GHz keV MeV GeV
    min mins sec secs hr hrs ft in lb lbs oz yd mi mph kph kmh gal qt mol deg rad rpm atm psi cal
    kcal dB usd eur rmb kWh cc fps mps ohm wk yr pt
"""
_SURELY_UNITS = frozenset(_ABBREVIATIONS.split())
# units of one letter that are multiplied or divided by one another, in the form of `read_unit`
_COMPOUNDS_OF_LETTERS = """
    m/s m/s2 m/h J/K N/m N/m2 V/m C/m C/m2 C/m3 W/m2 g/l g/L J/C N/C A/m J/g N*m J*s A*h A*s V*s N*s
    W*h C*m V*m
"""
_USUAL_COMPOUNDS = frozenset(_COMPOUNDS_OF_LETTERS.split())
_LETTERS = re.compile(r"[A-Za-z]+")
_NEIGHBOURS = "abcdefghijklmnopqrstuvwxyz"


def may_be_variables(letters: str, spaced: bool) -> bool:
    r"""Whether letters behind a number that `read_unit` reads may be a product of variables.

    spaced: white space sets them off from a number without LaTeX, as in "5 m".

    >>> may_be_variables("mg", False), may_be_variables("m g", True), may_be_variables("cm", False)
    (True, True, False)
    >>> may_be_variables("m", True), may_be_variables("abc", True), may_be_variables("men", True)
    (False, True, False)
    """
    words = _LETTERS.findall(letters)
    # the parser takes more letters for a name
    if not words or max(map(len, words)) > 3 or not _SURELY_UNITS.isdisjoint(words):
        return False
    if not _PARTS.keys() >= set(words):
        # what is counted: "5 men", and not "5 abc" or "5 xyz"
        is_counted = all(
            word not in _NEIGHBOURS and re.search("[aeiouy]", word)
            for word in map(str.lower, words)
        )
        return not (spaced and is_counted)
    unit = read_unit(letters)
    # 576\pi m^2: an area with its unit set off
    if unit in _USUAL_COMPOUNDS or (unit in ("m2", "m3") and letters.startswith(" ")):
        return False
    return not spaced or len(words) > 1


def product_of_letters(text: str, letters: str) -> Tree | None:
    """The product that a text is if the letters at its end may be variables, of which `read_unit`
    makes a unit: 2mg. Returns None if they are certainly a unit.
    """
    spaced = letters[:1].isspace() and "\\" not in text
    return read_expression(text) if may_be_variables(letters, spaced) else None


# --- what is counted: 12 apples, 3 cups of flour

# the first word of a unit that is none: what is counted, "things apple"
COUNTED = "things"
# Behind a number these make another number of it, deny it, or leave it open: "5 million", "5 or 6",
# "5 is wrong". Read as what is counted, they would earn the credit of 5.
_WORDS_THAT_ARE_NO_UNITS = """
    or and not to plus minus times over more less than half dozen hundred thousand million billion trillion
    pi sin cos tan log ln exp sqrt if when is no none mod choose infinity squared cubed factorial root power raised
    divided multiplied zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    hundreds thousands millions billions halves third thirds fourth fourths fifth fifths sixth sixths seventh
    sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths thousandth thousandths maybe perhaps
    possibly probably either neither nor xor else otherwise alternatively instead versus but except without unless
    wrong incorrect false fails most least approximately about roughly almost nearly around frac left right infty
    unsure uncertain doubtful ish guess guessed guessing nicht kein keine pas non niet nie değil bukan tidak
    cdot theta alpha beta gamma delta lambda sigma omega circ quad where for all any integer too
"""
_NO_UNITS = frozenset(_WORDS_THAT_ARE_NO_UNITS.split())
# 3 cups of flour, 18 dollars a day
_WORDS_IN_BETWEEN = """
    of per in at on a an the each al am au de del den der di do du en im la le par por pro
"""
_IN_BETWEEN = frozenset(_WORDS_IN_BETWEEN.split())
# words that contradict no other word: 12 left, 12 different apples
_WORDS_THAT_SAY_NOTHING = """
    total all left remaining altogether more extra only exactly item thing piece object way time different possible
"""
_SAY_NOTHING = frozenset(_WORDS_THAT_SAY_NOTHING.split())
# of these, what is counted and so is not measured: 18 ways are not 18 minutes
_ARE_COUNTED = frozenset(("item", "thing", "piece", "object", "way", "time"))
# 15% increase is no 15% decrease, 5 km north is not 5 km south
_OPPOSITE_WORDS = """
    increase decrease|gain loss|profit loss|rise fall|north south|east west|above below|ahead behind|late early
    |older younger|taller shorter|faster slower|heavier lighter|clockwise counterclockwise
"""
_OPPOSITES = [frozenset(pair.split()) for pair in _OPPOSITE_WORDS.split("|")]
# 12 students are 12 people
_ANYTHING = frozenset(("person", "unit"))
# with these, 12 men are not 12 kg
_MEASURES = frozenset(_UNITS.values()) - _ANYTHING
_IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "mice": "mouse",
    "geese": "goose",
    "teeth": "tooth",
}
# a word of what is counted as a unit, as a power, or in the singular
_IN_SINGULAR = _IRREGULAR | {word: str(power) for word, power in _POWERS.items()} | _UNITS
# other words by their ending
_SINGULARS = {"ies": "y", "ches": "ch", "shes": "sh", "xes": "x", "sses": "ss", "ss": "ss", "s": ""}
_PLURAL = re.compile(rf"(?:{'|'.join(_SINGULARS)})\Z")
# apples, brown-eyed children, miles/hour
_COUNTED = re.compile(
    r"\s*\(?\s*([A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'&-]*(?:[ /][A-Za-zÀ-ɏ][A-Za-zÀ-ɏ'&-]*){0,6})\s*\)?\s*"
)

# DS, TV
_ABBREVIATION = re.compile(r"\b[A-Z]{2}\b")

# --- other scripts: 5 个苹果, 5 яблок

_OTHER_SCRIPT = re.compile(r"[\u0400-\u1fff\u3040-\u9fff\uac00-\ud7af ]{1,20}")
# words that deny, that give bounds and parts: 不是5, 5以上, 5倍
OTHER_DOUBT = re.compile(
    rf"{CHINESE_DOUBT}|{words_of('doubt')}|\b(?:{words_of('deny', latin=False)})\b", re.IGNORECASE
)
# words between a number and what is counted: 5个苹果, 5 apples
_COUNTER = re.compile("^[个個只本張张条件位名枚支匹人]")
# behind a number, these count on: 5百, five hundred
_COUNTS_ON = re.compile("[多余近至到十百千万亿的减加乘除]")

# --- units as they are written

_FACTOR = re.compile(
    # square m, 平方米
    r"\s*(?:(?P<before>square|sq\.?|cubic|cu\.?)\s+|(?P<prefix>平方|立方))?"
    # m, meters, 米
    r"(?P<name>[A-Za-zμ\u0400-\u04ff\u3040-\u9fff\uac00-\ud7af]{1,13})\.?"
    # m squared, m^2, m^{-2}, m²
    r"(?:\s+(?P<after>squared|cubed))?"
    r"(?:\s*\^\s*\{?\s*(?P<power>-?\d)\s*\}?|\s*(?P<sign>[²³]))?"
)
# between factors: m/s, miles per hour, dollars a day; N m, N \cdot m
_JOINT = re.compile(r"\s*(?:(/|\bper\b|\ban?\b(?=\s[a-z]))|(\\cdot|[*·-])|)")
# \frac{m}{s}
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
# J/(kg \cdot K): all that is behind a slash is below it
_BELOW = re.compile(r"/\s*\(([^()/]+)\)\s*\Z")
# U.S. dollars
_US = re.compile(r"^U\.?S\.?\s+(?=dollar|cent)")
# a factor of a unit in the one form that `read_unit` writes: kg*m/s2
_IN_ONE_FORM = re.compile(r"([*/]?)([A-Za-zμ]+)(\d*)")


def read_unit(text: str, spaced: bool = True) -> str | None:
    """The unit that is the text, in one form; "things" and its words for what is counted. Returns
    None for anything else.

    `spaced`: white space or a command sets it off from what stands before it; else only units are
    read, no words.

    >>> read_unit("square meters"), read_unit("cm^2"), read_unit("mi/hr"), read_unit("apples"), read_unit("x")
    ('m2', 'cm2', 'mi/h', 'things apple', None)
    >>> read_unit("miles per hour"), read_unit("mph"), read_unit("or 6"), read_unit("kg m/s^2")
    ('mi/h', 'mi/h', None, 'kg*m/s2')
    """
    text = _US.sub("", text.strip().rstrip(".,"))
    inside = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    powers = _measured(_FRACTION.sub(r"\1 / \2", _BELOW.sub(r"/\1", inside)))
    if powers is not None:
        # kg*m/s2 of {"s": -2, "m": 1, "kg": 1}
        factors = tuple(sorted(powers.items()))
        if factors in _NAMED_POWERS:
            return _NAMED_POWERS[factors]
        above: list[str] = []
        below: list[str] = []
        for name, power in factors:
            factor = name if abs(power) == 1 else f"{name}{abs(power)}"
            if power > 0:
                above.append(factor)
            elif power < 0:
                below.append(factor)
        product = "*".join(above)
        return f"{product}/{'*'.join(below)}" if below else product
    if _OTHER_SCRIPT.fullmatch(text):
        if OTHER_DOUBT.search(text) or _COUNTS_ON.match(text):
            return None
        return f"{COUNTED} {_COUNTER.sub('', text)}".strip()
    return _counted(text) if spaced else None


def _counted(text: str) -> str | None:
    """What is counted, as words in the singular and in alphabetical order."""
    match = _COUNTED.fullmatch(text)
    if match is None:
        return None
    words = [word for word in re.split(r"[ /-]", match[1].lower()) if word not in _IN_BETWEEN]
    # variables: 5 x, 5 ab
    if max(map(len, words), default=0) < 3:
        return None
    # 95 DS games
    abbreviations = {word.lower() for word in _ABBREVIATION.findall(match[1])}
    for word in words:
        is_short = len(word) < 3 and word not in abbreviations
        if word not in _UNITS and (word in _NO_UNITS or is_short):
            return None
    singular = {
        _IN_SINGULAR.get(word) or _PLURAL.sub(lambda ending: _SINGULARS[ending[0]], word)
        for word in words
    }
    return " ".join((COUNTED, *sorted(singular)))


def _measured(text: str) -> dict[str, int] | None:
    """{unit: power} of a text made of units alone. Returns None for any other."""
    powers: dict[str, int] = {}
    position = 0
    # -1 behind a slash: m/s
    sign = 1
    while match := _FACTOR.match(text, position):
        name = match["name"]
        if name not in _PARTS and not _AS_WRITTEN.fullmatch(name):
            name = name.lower()
        if name not in _PARTS:
            return None
        power = sign * int(match["power"] or 1)
        for mark in match.group("before", "prefix", "after", "sign"):
            power *= _POWERS.get(mark, 1)
        for unit, count in _PARTS[name].items():
            powers[unit] = powers.get(unit, 0) + power * count
        position = match.end()
        if not text[position:].strip():
            return powers
        joint = _JOINT.match(text, position)
        # not even white space: `ms2` and the like
        if not joint or not joint[0]:
            return None
        if joint[1]:
            sign = -1
        position = joint.end()
    return None


# --- units at the end of a text

# 30°, 26°C; in `\sin 30°` the degrees belong to the argument
_DEGREE_TAIL = re.compile(r"\s*°\s*([CF]?)$")
_DEGREES = {"C": "celsius", "F": "fahrenheit", "": "degree"}
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
# 12 (apples)
_COUNT_IN_PARENTHESES = re.compile(r"(.*\d[^()]*?)\s*\(\s*([A-Za-z][A-Za-z' -]*)\s*\)")
# 5\Omega, 5 \text{ k}\Omega, 5\,\mu\text{F}: Greek letters that are a unit or a prefix; 3\mu g is a product
_GREEK_TAIL = re.compile(
    r"\s?(?:(?:\\text\{\s?)?(?P<prefix>[kM])?\s?\}?\s?(?P<ohm>\\Omega)|\\mu\s?\\text\{\s?(?P<name>[A-Za-z]{1,3}))\s?\}?$"
)
# where a unit set as text may begin: \text{ cm}, \frac{\text{mi}}{\text{hr}}
_TEXT_UNIT_START = re.compile(r"\\text\{|\\frac\s*\{\s*\\text")
# "6x + 1 square cm" from the last space or an earlier one on
_PLAIN_UNIT_START = re.compile(r"\s[A-Za-z]")
_PLAIN_TAIL = re.compile(r"\s([A-Za-zµμ][A-Za-z/ ^0-9*{}µμ.-]{0,40})$")
# how many of the last places where a unit may begin are tried
_MAX_TEXT_STARTS, _MAX_PLAIN_STARTS = 8, 6


def units_at_end(text: str) -> Iterator[tuple[str, str, Tree | None]]:
    r"""Each way to take a unit off the end of a text: what stands before it, the unit, and the whole as
    a product where the letters of the unit may be variables.

    >>> list(units_at_end(r"6\pi\text{ cm}")), list(units_at_end("30°")), list(units_at_end("2x"))
    ([('6\\pi', 'cm', None)], [('30', 'degree', None)], [])
    """
    degrees = _DEGREE_TAIL.search(text)
    if degrees and not _TRIGONOMETRY.search(text):
        yield text[: degrees.start()], _DEGREES[degrees[1]], None
        return
    greek = _GREEK_TAIL.search(text) if "\\Omega" in text or "\\mu" in text else None
    if greek and greek.start():
        name = f"{greek['prefix'] or ''}ohm" if greek["ohm"] else f"μ{greek['name']}"
        unit = read_unit(name, spaced=False)
        if unit:
            # 2\Omega may be a product, and 2 \Omega is not
            is_product = " " not in greek[0] and "\\text" not in greek[0]
            yield text[: greek.start()], unit, read_expression(text) if is_product else None
            return
    counted = _COUNT_IN_PARENTHESES.fullmatch(text) if text.endswith(")") else None
    if counted and (unit := read_unit(counted[2])):
        yield counted[1], unit, None
    if pair := _unit_in_text(text):
        yield *pair, None
    elif pair := _plain_unit(text):
        rest, unit = pair
        yield rest, unit, product_of_letters(text, text[len(rest) :])


def _unit_in_text(text: str) -> tuple[str, str] | None:
    r"""`5\text{ cm}` -> ("5", "cm")."""
    if r"\text{" not in text:
        return None
    # a unit needs something before it
    starts = [match.start() for match in _TEXT_UNIT_START.finditer(text) if match.start()]
    for start in starts[-_MAX_TEXT_STARTS:]:
        content = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text[start:])
        if "\\" in content.replace(r"\cdot", "").replace(r"\frac", ""):
            continue
        unit = read_unit(re.sub(r"\s+", " ", content))
        if not unit:
            continue
        before = text[:start]
        # 5 / \text{s} and 5-\text{cm}; behind what is counted a sign would be a term that is lost
        if not unit.startswith(COUNTED):
            before = before.rstrip(" /-").rstrip()
        return before, unit
    return None


def _plain_unit(text: str) -> tuple[str, str] | None:
    r"""`6\pi cm` -> (`6\pi`, "cm"), where what stands before is a constant: in `2x m` both are
    variables.
    """
    starts = [match.start() for match in _PLAIN_UNIT_START.finditer(text)]
    for start in starts[-_MAX_PLAIN_STARTS:]:
        tail = _PLAIN_TAIL.search(text, start)
        unit = read_unit(tail[1]) if tail else None
        if tail is None or not unit:
            continue
        rest = text[: tail.start()].rstrip()
        tree = read_expression(rest.rpartition("=")[2].strip())
        if tree is not None and constant_value(tree) is not None:
            return rest, unit
    return None


# --- two units


def different_units(gold: str, answer: str) -> bool:
    """Whether two units contradict each other; a missing one contradicts none.

    >>> different_units("cm", "m"), different_units("", "m"), different_units("things apple", "things apple red")
    (True, False, False)
    >>> different_units("things apple", "things orange"), different_units("things man", "kg")
    (True, True)
    """
    if not gold or not answer or gold == answer:
        return False
    # pounds are money or a weight, whichever the other one is
    if "pound" in gold or "pound" in answer:
        for meaning in ("lb", "gbp"):
            if not different_units(
                gold.replace("pound", meaning), answer.replace("pound", meaning)
            ):
                return False
        return True
    # $16 per hour: what the dollars are for may be added
    if gold == "dollar" and answer.startswith("dollar/"):
        return False
    # 25 °C is also written 25 C, the sign of a coulomb
    if {gold, answer} == {"celsius", "C"}:
        return False
    if not (gold.startswith(COUNTED) or answer.startswith(COUNTED)):
        return True

    # what is counted, by one of them at least
    if are_opposite(gold, answer):
        return True
    first, second = _words_of(gold), _words_of(answer)
    if first & _MEASURES and second & _ARE_COUNTED and not first & second:
        return True
    if first <= _SAY_NOTHING or second <= _SAY_NOTHING:
        return False
    # 3 cups of flour are 3 cups, 25 square meters of carpet are not 25 m
    if (first | second) & _MEASURES:
        if not first & second & _MEASURES:
            return True
        return set(filter(str.isdigit, first)) != set(filter(str.isdigit, second))
    # apples and 苹果: nothing is translated
    if gold.isascii() != answer.isascii():
        return False
    # 苹果, яблок and яблока: words of other scripts are compared by their beginning
    if not gold.isascii():
        first = {word[:2] for word in first}
        second = {word[:2] for word in second}
    in_common = (first & second) | ((first | second) & _ANYTHING)
    return not in_common


def are_opposite(gold: str, answer: str) -> bool:
    """Whether what is counted has words that contradict each other.

    >>> are_opposite("things increase", "things decrease"), are_opposite("things increase", "things growth")
    (True, False)
    """
    difference = _words_of(gold) ^ _words_of(answer)
    return any(pair <= difference for pair in _OPPOSITES)


def _words_of(unit: str) -> set[str]:
    """The words and powers of a unit: {"m", "2", "carpet"}."""
    return set(re.findall(r"[^\W\d]+|\d", unit.removeprefix(COUNTED)))


@lru_cache(maxsize=1024)
def _in_base_units(unit: str) -> tuple[Fraction, Counter[str]]:
    """How many of the units that are not defined by others a unit is, and the powers of those."""
    size = Fraction(1)
    powers: Counter[str] = Counter()
    sign = 1
    for joint, name, power in _IN_ONE_FORM.findall(unit):
        if joint == "/":
            sign = -1
        exponent = sign * int(power or 1)
        if name not in _DEFINED:
            powers[name] += exponent
            continue
        count, other = _DEFINED[name]
        other_size, other_powers = _in_base_units(other)
        size *= (count * other_size) ** exponent
        for base, base_power in other_powers.items():
            powers[base] += base_power * exponent
    return size, powers


def ratio(answer: str, gold: str) -> Fraction | None:
    """How many of the gold's units one of the answer's is, exactly. Returns None if they
    measure different things.

    >>> ratio("h", "min"), ratio("cm", "m"), ratio("km/h", "m/s"), ratio("kg", "m")
    (Fraction(60, 1), Fraction(1, 100), Fraction(5, 18), None)
    """
    if not (answer and gold) or COUNTED in answer or COUNTED in gold:
        return None
    answer_size, answer_powers = _in_base_units(answer)
    gold_size, gold_powers = _in_base_units(gold)
    return answer_size / gold_size if answer_powers == gold_powers else None
