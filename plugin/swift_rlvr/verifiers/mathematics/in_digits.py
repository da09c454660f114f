"""What people write in words, in digits and signs: `twenty-five apples`, `two thirds`, `USD 5`,
`二十五元`, `the point (1, 2)`.

`reading.py` reads the digits. A text is rewritten as a whole or not at all: "one of the two" stays,
and so does 三角形, a triangle.
"""

import re

from swift_rlvr.verifiers.mathematics.plain_numbers import number_in_words

# longer texts are sentences
_MAX_CHARS = 120

# --- English

_ORDINAL_WORDS = """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
"""
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS.split())}
_TENTH_WORDS = "x x twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_ORDINALS |= {word: 10 * ten for ten, word in enumerate(_TENTH_WORDS.split()) if ten > 1}
# one half, two thirds, three quarters
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4}
for _word, _number in _ORDINALS.items():
    if _number > 2:
        _PARTS |= {_word: _number, f"{_word}s": _number}
_PARTS |= {"hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000}
_SCALES = ("hundred", "thousand", "million", "billion")
# behind a number in words: what is counted or measured, up to four words in lower case
_COUNTED = re.compile(r"[a-z]+(?:[ -][a-z]+){0,3}")

_CURRENCY_CODE = re.compile(
    r"(?:(?P<before>USD|EUR|GBP|INR|CNY|RMB|JPY)\s?(?P<number>-?\d[\d,.]*)"
    r"|(?P<amount>-?\d[\d,.]*)\s?(?P<after>GBP|INR|CNY|JPY))"
)
_CURRENCIES = {
    "USD": "{} dollars",
    "EUR": "{} euros",
    "GBP": "£{}",
    "INR": "₹{}",
    "CNY": "{} yuan",
    "RMB": "{} yuan",
    "JPY": "{} yen",
}
_MIXED = re.compile(r"(-?\d+) and (\d+)\s*/\s*(\d+)")

# --- relations and points

# x is greater than or equal to 5; all real numbers x such that x > 5
_SUCH_THAT = re.compile(
    r"all (?:real (?:numbers|values)|values)(?: (?:of )?[a-z])? (?:such that|where|with|for which) (?P<rest>.+)"
)
_IN_WORDS = re.compile(
    r"(?P<name>[a-z]) is (?:strictly )?(?P<words>greater than or equal to|less than or equal to|greater than"
    r"|less than|not equal to|at least|at most) (?P<bound>[^a-z,;]+|[^,;]*\\[^,;]*)"
)
_RELATIONS = {
    "greater than or equal to": r"\geq",
    "at least": r"\geq",
    "less than or equal to": r"\leq",
    "at most": r"\leq",
    "greater than": ">",
    "less than": "<",
    "not equal to": r"\neq",
}
# the point (1, 2), P(1, 2), A = (1, 2)
_POINT = re.compile(
    r"(?:(?:at )?the )?(?:(?:point|vertex|center|centre|coordinates)(?: is| are| at)? )?"
    r"[A-Z]?\s?=?\s?(?P<point>\(.+,.+\))"
)
_SUBSCRIPT = re.compile(r"(?<![A-Za-z\\])([a-z])_\{?(\d)\}?(?=\s*=)")

# --- Chinese and Japanese

_DIGITS = dict(
    zip("零〇一二两三四五六七八九兩", (0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 2), strict=True)
)
_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_NUMERAL = "[零〇一二两兩三四五六七八九十百千万萬亿億]"
# what may be counted: of any other word a numeral may be a part, as in 三角形 and 一样
_UNITS = """
    % 元 块 塊 円 圆 个 個 人 只 隻 本 张 張 条 條 颗 棵 名 位 次 件 支 匹 辆
    枚 盒 箱 袋 瓶 杯 朵 枝 页 种 岁 歳 天 秒 度 米 吨 升 克 厘米
    千米 公里 分米 毫米 千克 公斤 毫升 小时 小時 时间 時間 分钟 平方米 平方厘米 立方米 立方厘米 美元
"""
_ANY_UNIT = "|".join(sorted(_UNITS.split(), key=len, reverse=True))
_CHINESE = re.compile(
    rf"(?P<sign>[负負-])?(?:(?P<whole>{_NUMERAL}+)又)?"
    rf"(?:(?P<below>{_NUMERAL}+)分之(?P<above>{_NUMERAL}+)"
    rf"|(?P<number>{_NUMERAL}+)(?:[点點](?P<places>[零〇一二三四五六七八九]+))?)"
    rf"(?P<unit>{_ANY_UNIT})?"
)


def in_digits(text: str) -> str:
    r"""A tidied text with its words for numbers, money, points and relations in digits and signs; as it
    is where it has none, or is more than that.

    >>> [in_digits(text) for text in ("twenty-five apples", "two thirds", "one and a half", "fifth", "USD 5")]
    ['25 apples', '2/3', '1 1/2', '5th', '5 dollars']
    >>> [in_digits(text) for text in ("二十五元", "三分之二", "百分之五十", "x is at least 5", "the point (1, 2)")]
    ['25元', '2/3', '50%', 'x \\geq 5', '(1, 2)']
    >>> [in_digits(text) for text in ("one or two", "one to one", "三角形", "第五", "Paris")]
    ['one or two', 'one to one', '三角形', '第五', 'Paris']
    """
    text = text.strip()
    if not text or len(text) > _MAX_CHARS:
        return text
    if not text.isascii():
        return _from_chinese(text) or text
    mixed = _MIXED.fullmatch(text)
    if mixed and int(mixed[2]) < int(mixed[3]):
        return f"{mixed[1]} {mixed[2]}/{mixed[3]}"
    money = _CURRENCY_CODE.fullmatch(text)
    if money:
        return _CURRENCIES[money["before"] or money["after"]].format(
            money["number"] or money["amount"]
        )
    return _from_words(text) or _from_relation(text) or text


def _from_words(text: str) -> str | None:
    """Digits for a number in words, with what is counted behind it, or for an ordinal."""
    words = text.lower().replace("-", " ").replace("per cent", "percent").split()
    if not words:
        return None
    # 5 per cent
    if words[0][0].isdigit():
        return " ".join(words) if words[1:] == ["percent"] else None
    ordinal = _ordinal(words[1:] if words[0] == "the" else words)
    if ordinal is not None:
        return f"{ordinal}th"
    # half, a half, a third; a million
    if words[0] in ("half", "a", "an"):
        words = ["one", *words[1:]] if words[0] in ("a", "an") else ["one", *words]
        if len(words) < 2 or words[1] not in (*_PARTS, *_SCALES):
            return None

    for length in range(len(words), 0, -1):
        number = number_in_words(" ".join(words[:length]))
        if number is not None:
            break
    else:
        return None
    rest = words[length:]
    if not rest:
        return str(number)
    if len(rest) == 1 and rest[0] in _PARTS:
        return f"{number}/{_PARTS[rest[0]]}"
    if rest[0] == "and" and rest[-1] in _PARTS and len(rest) == 3:
        above = 1 if rest[1] == "a" else number_in_words(rest[1])
        # "two and three halves" is no mixed number
        return f"{number} {above}/{_PARTS[rest[2]]}" if above and above < _PARTS[rest[2]] else None
    if rest[0] == "point":
        digits = [number_in_words(word) for word in rest[1:]]
        if digits and all(digit is not None and 0 <= digit <= 9 for digit in digits):
            return f"{number}.{''.join(map(str, digits))}"
        return None
    if not _COUNTED.fullmatch(" ".join(rest)):
        return None
    # "one or two", "one half of the pie"
    is_more = any(word in _PARTS or word in ("or", "and", "to") for word in rest)
    return None if is_more else f"{number} {' '.join(rest)}"


def _ordinal(words: list[str]) -> int | None:
    """The number of "fifth", "twenty first"."""
    if len(words) == 1:
        return _ORDINALS.get(words[0])
    if len(words) == 2 and 0 < _ORDINALS.get(words[1], 0) < 10:
        tens = number_in_words(words[0])
        if tens is not None and tens >= 20:
            return tens + _ORDINALS[words[1]]
    return None


def _from_relation(text: str) -> str | None:
    """Signs for a relation in words, and a point without its name."""
    such_that = _SUCH_THAT.fullmatch(text)
    if such_that:
        rest = such_that["rest"]
        return _from_relation(rest) or rest
    relation = _IN_WORDS.fullmatch(text)
    if relation:
        return f"{relation['name']} {_RELATIONS[relation['words']]} {relation['bound']}"
    point = _POINT.fullmatch(text)
    if point:
        return point["point"]
    # x_1 = 2, x_2 = 5: the solutions of one equation
    names = _SUBSCRIPT.findall(text)
    is_numbered = [int(number) for _, number in names] == list(range(1, len(names) + 1))
    if len(names) > 1 and is_numbered and len({letter for letter, _ in names}) == 1:
        return _SUBSCRIPT.sub(r"\1", text)
    return None


def _from_chinese(text: str) -> str | None:
    """Digits for a Chinese numeral, with its unit where that is a usual one."""
    match = _CHINESE.fullmatch(text.replace(" ", ""))
    if match is None:
        return None
    sign = "-" if match["sign"] else ""
    unit = match["unit"] or ""
    if not match["below"]:
        number = _chinese_number(match["number"])
        if number is None or match["whole"]:
            return None
        places = "".join(str(_DIGITS[digit]) for digit in match["places"] or "")
        return f"{sign}{number}{'.' if places else ''}{places}{unit}"

    above = _chinese_number(match["above"])
    if above is not None and match["below"] == "百":
        return None if match["whole"] or unit else f"{sign}{above}%"
    below = _chinese_number(match["below"])
    whole = _chinese_number(match["whole"] or "零")
    if above is None or whole is None or not below:
        return None
    return f"{sign}{whole} {above}/{below}{unit}" if whole else f"{sign}{above}/{below}{unit}"


def _chinese_number(numeral: str) -> int | None:
    """The number of 一百二十; None where the parts are in no order, as in 二五."""
    total = 0
    # what is counted below the next 万, and the digit that waits for its 十
    part = 0
    digit: int | None = None
    last = 10**9
    last_myriad = 10**9
    for sign in numeral:
        if sign in _DIGITS:
            # 零 stands between, and two digits in a row are no number
            if digit not in (None, 0):
                return None
            digit = _DIGITS[sign]
        elif sign in _TENS:
            if _TENS[sign] >= last or (digit is None and sign != "十") or digit == 0:
                return None
            last = _TENS[sign]
            part += (1 if digit is None else digit) * last
            digit = None
        else:
            part += digit or 0
            if part == 0 or _MYRIADS[sign] >= last_myriad:
                return None
            last_myriad = _MYRIADS[sign]
            total += part * last_myriad
            part = 0
            digit = None
            last = 10**9
    # 一百二 is 120 in speech, and 102 to a careless reader
    if digit and last in (100, 1000) and "零" not in numeral and "〇" not in numeral:
        return None
    if digit and last_myriad < 10**9 and part == 0 and not re.search("[零〇].$", numeral):
        return None
    return total + part + (digit or 0)
