"""What people write in words, in digits and signs: `twenty-five apples`, `two thirds`, `USD 5`,
`二十五元`, `the point (1, 2)`.

`reading.py` reads the digits. A text is rewritten as a whole or not at all: "one of the two" stays,
and so does 三角形, a triangle.
"""

import re
from typing import Any

from swift_rlvr.verifiers.mathematics.plain_numbers import NUMBER_WORDS, TENS, number_in_words
from swift_rlvr.verifiers.patterns import compiled_later

# longer texts are sentences
_MAX_CHARS = 120

# --- English

_ORDINAL_WORDS = """
    zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
"""
_ORDINALS = {word: number for number, word in enumerate(_ORDINAL_WORDS.split())}
_TENTH_WORDS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_ORDINALS |= {word: 10 * tens for tens, word in enumerate(_TENTH_WORDS.split(), start=2)}
# one half, two thirds, three quarters
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4}
for _word, _number in _ORDINALS.items():
    if _number > 2:
        _PARTS |= {_word: _number, f"{_word}s": _number}
_PARTS |= {"hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000}
# the fifth, twenty-first
_ORDINALS |= {
    f"{tens} {word}": number + _ORDINALS[word]
    for tens, number in TENS.items()
    for word in _ORDINAL_WORDS.split()[1:10]
}

_DIGIT_WORD = "(?:zero|one|two|three|four|five|six|seven|eight|nine)"
_PART = f"(?P<part>{'|'.join(_PARTS)})"
_NUMBER_WORD = f"(?:zero|{'|'.join(NUMBER_WORDS)}|and|hundred|thousand|million|billion|trillion)"
# twenty five; a half, a third, a million
_NUMBER = (
    rf"(?:(?:minus |negative )?{_NUMBER_WORD}(?: {_NUMBER_WORD})*"
    rf"|an?(?= (?:{'|'.join(_PARTS)}|hundred|thousand|million|billion)\b)(?: {_NUMBER_WORD})*)"
)
# what is counted or measured: up to four words, of which none goes on counting, as in "one or two"
# and "one half of the pie"
_COUNTED = rf"(?P<rest>(?!.*\b(?:{'|'.join(_PARTS)}|or|and|to|point)\b)[a-z]+(?: [a-z]+){{0,3}})"

_CURRENCY_CODE = re.compile(
    r"(?:(?P<before>USD|EUR|GBP|INR|Rs|CNY|RMB|JPY)\.?\s?(?P<number>-?\d[\d,.]*)"
    r"|(?P<amount>-?\d[\d,.]*)\s?(?P<after>GBP|INR|CNY|JPY))"
)
_CURRENCIES = {
    "USD": "{} dollars",
    "EUR": "{} euros",
    "GBP": "£{}",
    "INR": "₹{}",
    "Rs": "₹{}",
    "CNY": "{} yuan",
    "RMB": "{} yuan",
    "JPY": "{} yen",
}

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
# 一千二百三十四, of which any part may be missing. A digit stands alone, behind 十 or behind 零: 一百二
# is 120 in speech, and 102 to a careless reader.
_ONE_TO_NINE = "[一二两兩三四五六七八九]"
_BELOW_MYRIAD = (
    rf"({_ONE_TO_NINE}千)?(?:[零〇]?({_ONE_TO_NINE}百))?(?:(?:[零〇](?=[^十]))?({_ONE_TO_NINE}?十))?"
    rf"(?:(?:[零〇]|(?<![百千万萬亿億]))({_ONE_TO_NINE}))?"
)
_CHINESE_NUMBER = re.compile(
    rf"(?:(?!亿|億){_BELOW_MYRIAD}[亿億])?(?:(?!万|萬)[零〇]?{_BELOW_MYRIAD}[万萬])?{_BELOW_MYRIAD}"
)
# what each group of it counts
_SIZES = [size * myriad for myriad in (10**8, 10**4, 1) for size in (1000, 100, 10, 1)]

_NUMERAL = "[零〇一二两兩三四五六七八九十百千万萬亿億]+"
# what may be counted: of any other word a numeral may be a part, as in 三角形 and 一样
_UNITS = """
    % 元 块 塊 円 圆 个 個 人 只 隻 本 张 張 条 條 颗 棵 名 位 次 件 支 匹 辆
    枚 盒 箱 袋 瓶 杯 朵 枝 页 种 岁 歳 天 秒 度 米 吨 升 克 厘米
    千米 公里 分米 毫米 千克 公斤 毫升 小时 小時 时间 時間 分钟 平方米 平方厘米 立方米 立方厘米 美元
"""
_UNIT = f"(?P<rest>{'|'.join(sorted(_UNITS.split(), key=len, reverse=True))}|)"
_MINUS = "(?P<sign>[负負-]?)"

# --- numbers in words, and how each is written in digits. `_value` reads the numbers of a match.

_FORMS = [
    # 5 per cent
    (r"(?P<rest>\d\S*) per ?cent", "{rest} percent"),
    # 3 and 1/2
    (r"(?P<whole>-?\d+) and (?P<above>\d+)\s*/\s*(?P<part>\d+)", "{whole} {above}/{part}"),
    # twenty-five
    (rf"(?P<number>{_NUMBER})", "{number}"),
    # two thirds
    (rf"(?P<number>{_NUMBER}) {_PART}", "{number}/{part}"),
    # one and a half, but "two and three halves" is no mixed number
    (rf"(?P<whole>{_NUMBER}) and (?P<above>{_NUMBER}) {_PART}", "{whole} {above}/{part}"),
    # two point five
    (
        rf"(?P<number>{_NUMBER}) point (?P<places>{_DIGIT_WORD}(?: {_DIGIT_WORD})*)",
        "{number}.{places}",
    ),
    # twenty-five apples
    (rf"(?P<number>{_NUMBER}) {_COUNTED}", "{number} {rest}"),
    # 百分之50, 百分之五十
    (rf"{_MINUS}百分之(?P<rest>\d[\d.]*)", "{sign}{rest}%"),
    (rf"{_MINUS}百分之(?P<number>{_NUMERAL})", "{sign}{number}%"),
    # 三分之二, 一又三分之二
    (
        rf"{_MINUS}(?P<part>{_NUMERAL})分之(?P<above>{_NUMERAL}){_UNIT}",
        "{sign}{above}/{part}{rest}",
    ),
    (
        rf"{_MINUS}(?P<whole>{_NUMERAL})又(?P<part>{_NUMERAL})分之(?P<above>{_NUMERAL}){_UNIT}",
        "{sign}{whole} {above}/{part}{rest}",
    ),
    # 二十五元, 二点五
    (rf"{_MINUS}(?P<number>{_NUMERAL}){_UNIT}", "{sign}{number}{rest}"),
    (
        rf"{_MINUS}(?P<number>{_NUMERAL})[点點](?P<places>[零〇一二三四五六七八九]+){_UNIT}",
        "{sign}{number}.{places}{rest}",
    ),
]
_NUMBERS = [(compiled_later(form), written) for form, written in _FORMS]


def in_digits(text: str) -> str:
    r"""A tidied text with its numbers, money, points and relations in digits and signs. Returns the text
    as it is if it has none of these in words, or is more than one of them.

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
    money = _CURRENCY_CODE.fullmatch(text)
    if money:
        return _CURRENCIES[money["before"] or money["after"]].format(
            money["number"] or money["amount"]
        )
    return _from_words(text) or _from_relation(text) or text


def _from_words(text: str) -> str | None:
    """Digits for a number in words, with what is counted behind it, or for an ordinal."""
    words = text.lower()
    if words.isascii():
        # the hyphen of twenty-five, and not a minus
        words = re.sub(r"(?<=[a-z])-", " ", words)
    else:
        words = words.replace(" ", "")
    ordinal = _ORDINALS.get(words.removeprefix("the "))
    if ordinal is not None:
        return f"{ordinal}th"
    if words == "half":
        words = "one half"
    for form, written in _NUMBERS:
        match = form.fullmatch(words)
        if match is None:
            continue
        parts = {name: _value(name, part) for name, part in match.groupdict().items()}
        if None in parts.values() or parts.get("part") == 0:
            continue
        if "whole" not in parts or parts["above"] < parts["part"]:
            return written.format(**parts)
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


def _value(name: str, text: str) -> Any:
    """What a group of `_NUMBERS` says: a number, or the text behind or before one."""
    if name == "rest":
        return text
    if name == "sign":
        return "-" if text else ""
    if name == "places":
        digits = text.split() if text.isascii() else text
        return "".join(str(_value("number", digit)) for digit in digits)
    if text.lstrip("-").isdigit():
        return int(text)
    if text.isascii():
        return _PARTS.get(text) or number_in_words(re.sub(r"^an?\b", "one", text))
    if text in ("零", "〇"):
        return 0
    # 一百二十; the parts of 二五 are in no order
    match = _CHINESE_NUMBER.fullmatch(text)
    if match is None:
        return None
    total = 0
    for count, size in zip(match.groups(), _SIZES, strict=True):
        if count:
            # 十 is one ten
            total += _DIGITS.get(count[0], 1) * size
    return total
