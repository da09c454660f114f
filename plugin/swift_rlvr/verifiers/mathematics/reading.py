"""Text -> one of the kinds in `values.py`: numbers, choices and words first, then structure, then
expressions.
"""

import functools
import re
from collections.abc import Iterator
from fractions import Fraction

from swift_rlvr.verifiers.mathematics.brackets import closed_at, split
from swift_rlvr.verifiers.mathematics.notation import clean, plain, tidy
from swift_rlvr.verifiers.mathematics.numeric import constant_value
from swift_rlvr.verifiers.mathematics.parser import KNOWN, Tree, read_expression, replaced
from swift_rlvr.verifiers.mathematics.plain_numbers import number_in_words, read_number
from swift_rlvr.verifiers.mathematics.sets import EMPTY, INFINITY, MINUS_INFINITY, REALS, RealSet
from swift_rlvr.verifiers.mathematics.units import COUNTED, read_unit
from swift_rlvr.verifiers.mathematics.values import (
    TURNED,
    Approximately,
    Cases,
    Choice,
    Expression,
    Family,
    Infinity,
    Listing,
    Matrix,
    Number,
    Quantity,
    Ratio,
    Region,
    Relation,
    Residue,
    Set,
    Tuple,
    Value,
    Vector,
    Words,
    as_region,
    bound_of,
    name_of,
    tree_of,
)

MAX_CHARS = 2000
_MAX_DIGITS, _MAX_DEPTH, _MAX_PARTS = 400, 6, 1200
_LEAD_IN = re.compile(
    r"(?:so|thus|hence|therefore),?\s+|(?:we|i)\s+(?:find|get|have|obtain|conclude)(?:\s+that)?,?\s+|=\s*(?![=<>])"
    r"|(?:the\s+|my\s+)?(?:final\s+|correct\s+|right\s+)?(?:answer|result|solution|value|option|choice|total)"
    r"(?:\s+to\s+(?:the|this|question|problem)(?:\s+(?:question|problem))?(?:\s+\d{1,3})?)?\s*(?:is|:|=|was)\s*:?\s*"
    r"|(?:option|choice)\s+(?=\(?[A-Z]\)?$)|(?:the\s+)?(?:final\s+)?answer\s+(?=[-\d\\(])"
    r"|(?-i:[A-Z][a-z]{2,}(?: [a-z]+){0,3}):\s+"
    r"|(?:答案|结果|选项?|故选)\s*(?:是|为|:|=)?\s*",
    re.IGNORECASE,
)
# words that take back, or leave open, what stands beside them; those that do so within a sentence
# that states a value
DENIAL = re.compile(
    r"\b(?:not|never|\w+n['’]t|wrong|incorrect|false|neither|nor|either|unless|except|instead|maybe|perhaps|possibly"
    r"|possible answers?|candidates?|probably|might|could|cannot|unsure|guess|but|however|rather|although|at least"
    r"|at most|than|hardly)\b|不是|不对|错|不知道|可能|也许",
    re.IGNORECASE,
)
NO_STATEMENT = re.compile(
    rf"{DENIAL.pattern}|\?|\b(?:no|whether|suppose|assum(?:e|ing)|let|example|used to|given|hint|fails?|reject(?:ed)?"
    r"|excluded?)\b",
    re.IGNORECASE,
)
CORRECT = re.compile(
    r"(?:(?:the\s+)?(?:option|choice|answer)\s+)?\(?((?-i:[A-H]))\)?\s+is\s+(?:the\s+)?(?:correct|right)"
    r"(?:\s+(?:option|choice|answer|one))?",
    re.IGNORECASE,
)
_INFINITY = re.compile(r"([+-]?)\s*\\infty")
_CHOICE = re.compile(r"(\(\s*)?([A-Za-z])(\s*\)|[.:)])?")
_CHOICE_AND_MORE = re.compile(
    r"(?:\(([A-H])\)\s*|([A-H])(?:[.):]\s+|\s+-\s+(?=[A-Z][a-z])|\s+(?=\((?:[A-Z][a-z]|\d).*\)$)))(?=[^\s,;/|&])(?!\(?(?:and|or)\b)"
)
_WRITTEN = re.compile(
    r"(?P<base>-?[0-9A-F]+_\{?\d+\}?)|(?P<date>\d{4}-\d\d-\d\d)|(?P<time>\d{1,2}:\d\d\s*[AaPp]\.?\s?[Mm]\.?)"
)
_SHORT_WORDS = frozenset(
    ("yes", "no", "on", "in", "up", "odd", "even", "true", "false", "all", "none")
)
_WORDS = re.compile(
    r"(?:an? )?[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)*|[^\x00-\x7f]{1,20}|[A-Z][a-z]{2,} \d{1,4}"
)
_BRACKETS = (
    ("(", ")"),
    ("(", "]"),
    ("[", ")"),
    ("[", "]"),
    (r"\{", r"\}"),
    ("{", "}"),
    (r"\langle", r"\rangle"),
)
_OR = re.compile(r"\s+or\s+|\s*\\text\{\s*,?\s*or\s*\}\s*|\\lor(?![A-Za-z])")
_AND = re.compile(
    r"[,;]\s*(?:\\text\{\s*(?:and|or)\s*\}|and\s|or\s)?|\s+and\s+|\\text\{\s*,?\s*and\s*\}|\\land(?![A-Za-z])"
)
_CALCULATION = re.compile(r"[=+*/]|\\times|\\cdot|\d\s*-\s*\d")
_IN_THOUSANDS = re.compile(r"(?<![\d.,(\[{])\d{1,3}(?:,\d{3})+(?![\d,)\]}])")
_SPACED = re.compile(r"-?\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?)+")
_ABOUT = re.compile(
    r"\\approx(?![A-Za-z])|\\sim(?![A-Za-z])|≅|(?:\\text\{\s*)?(?:about|approximately|approx\.?|roughly)(?:\s*\}|\s)",
    re.IGNORECASE,
)
_MODULUS = re.compile(r"(?:\\pmod|\(\s*(?:\\bmod|\\mod|mod)\b)\s*(\{?\s*\w+\s*\}?)\s*\)?$")
_CONGRUENT = re.compile(r"\\equiv(?![A-Za-z])|=")
_RELATION = re.compile(
    r"\\(?:leq|geq|neq|approx|equiv|in|simeq|cong|sim)(?![A-Za-z])|<=|>=|!=|==|[<>=≅≃]"
)
_STRUCTURE = """
    leq geq neq approx equiv in simeq cong sim text lor land cup cap setminus emptyset begin end hline mathbb bmod
    pmod infty
"""
_KNOWN = KNOWN.union(_STRUCTURE.split())
_OPERATORS = {r"\leq": "<=", r"\geq": ">=", r"\neq": "!=", r"\in": "in", r"\equiv": "==", "==": "="}
_OPERATORS |= dict.fromkeys((r"\approx", r"\simeq", r"\cong", r"\sim", "≅", "≃"), "~")
_SET_OPERATOR = re.compile(r"\\(?:cup|cap|setminus)(?![A-Za-z])|(?<![A-Za-z\\])U(?![A-Za-z])")
_SYNONYM_GROUPS = (
    "no solution|no solutions|no real solution|no real solutions|there are no solutions|there is no solution",
    "does not exist|dne|doesn't exist|undefined|not defined",
    "infinitely many|infinite|infinitely many solutions",
    "yes|true",
    "no|false",
    "impossible|not possible|cannot be done",
)
_SYNONYMS = {
    word: group.partition("|")[0] for group in _SYNONYM_GROUPS for word in group.split("|")
}
_SETS = dict.fromkeys(
    (r"\mathbb{R}", r"\mathbb R", r"\text{all real numbers}", "all real numbers"), REALS
)
_SETS |= dict.fromkeys((r"\emptyset", r"\{\}", r"\{ \}"), EMPTY)
_SUCH_THAT, _SEPARATOR, _COLON = map(re.compile, (r"\||:", r"[,;]|\\text\{\s*and\s*\}", ":"))
_EXCEPT = re.compile(r"(?:\\text\{)?\s*all real numbers except(?: for)?\s*\}?\s*(?:x\s*=)?\s*(.+)")
_LETTERS = r"[a-zA-Z]"
_INTEGER = re.compile(
    rf"[\s,;(]*(?:\\text\{{[\s,(]*)?(?:(?:for|where|with)\s+)?(?:(?:any|all|every|some|each)\s+)?"
    rf"(?:integers?\s*\}}?\s*(?P<a>{_LETTERS})(?:\s*\}})?"
    rf"|(?P<b>{_LETTERS})\s*(?:\\in|∈)\s*(?:\\mathbb\s*\{{?\s*Z\s*\}}?|\\text\{{Z\}}|Z)"
    rf"|\}}?\s*(?P<c>{_LETTERS})\s*(?:\\text\{{)?\s*(?:is|are)?\s*(?:an?y?\s+)?integers?)\s*\}}?\s*\)?"
)
_MATRIX = re.compile(
    r"\\begin\s*\{([pbvBV]?matrix|smallmatrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}",
    re.DOTALL,
)
_ANY_MATRIX = re.compile(
    r"[\[(]?\s*\\begin\s*\{([pb]?matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*?)\\end\s*\{\1\}\s*[\])]?",
    re.DOTALL,
)
_CASES = re.compile(
    r"\\begin\s*\{(cases|array|aligned|align\*?)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}",
    re.DOTALL,
)
_CLOSINGS = {"[": "]", "(": ")", "|": "|"}  # around a matrix
_CELL = re.compile(r"(?<!\\)&|\\text\{\s*(?:if|for|when)\s*\}")
_ROW = re.compile(
    r"\\\\\s*(?:\[[^\]]*\])?|\\(?=[-\d])"
)  # `\-3` where one backslash of `\\-3` got lost
_COUNT_IN_PARENTHESES = re.compile(r"(.*\d[^()]*?)\s*\(\s*([A-Za-z][A-Za-z' -]*)\s*\)")
_ALL_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_DEGREE_TAIL = re.compile(r"\s*°\s*([CF]?)$")
_PLAIN_TAIL = re.compile(r"\s([A-Za-zµμ][A-Za-z/ ^0-9*{}µμ.-]{0,40})$")


@functools.lru_cache(maxsize=8192)
def read(text: str) -> Value | None:
    r"""The value of an answer, or None where it is of none of the kinds.

    >>> read(r"\frac{1}{2}").value, read("1,234").value, read("50\\%").percent, read("5 cm").unit
    (Fraction(1, 2), Fraction(1234, 1), True, 'cm')
    >>> read(r"\text{(B)}").letter, read("(1, 2]").closed_high, read("see above")
    ('B', True, Words(text='see above', marked=True))
    """
    if len(text) > MAX_CHARS:
        return None
    in_text = any(command in text for command in (r"\text", r"\mathrm", r"\mathbf"))
    cleaned = clean(text)
    if whole := _ALL_TEXT.fullmatch(cleaned):
        cleaned = clean(whole[1])
    for _ in range(3):  # So, the answer is: = 5
        lead_in = _LEAD_IN.match(cleaned)
        if lead_in is None or lead_in.end() == len(cleaned) or NO_STATEMENT.search(lead_in[0]):
            break
        cleaned = clean(cleaned[lead_in.end() :])
    if correct := CORRECT.fullmatch(cleaned):
        cleaned = f"({correct[1]})"
    return _read(cleaned, 0, in_text)


def why_unreadable(text: str) -> str:
    r"""What keeps a text from being read, in words.

    >>> why_unreadable(r"\frac{1}{"), why_unreadable(r"\foo{3}"), why_unreadable("3 apples are left, I think")
    ('a bracket is not closed', 'unknown: \\foo', 'words that are no value: apples, are, left, think')
    """
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS:,} characters"
    cleaned = clean(text)
    if not split(cleaned, _AND)[0]:
        return "a bracket is not closed"
    commands = dict.fromkeys(re.findall(r"\\[A-Za-z]+", cleaned))
    if unknown := [command for command in commands if command[1:] not in _KNOWN]:
        return f"unknown: {', '.join(unknown)}"
    words = dict.fromkeys(re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", tidy(text)))
    return f"words that are no value: {', '.join(words)}" if words else "no notation that is known"


class _NoValue(Exception):
    """A text has a structure, and a part of it has no value; no other reader should try."""


def _read(text: str, depth: int, in_text: bool = False) -> Value | None:
    """The value of a cleaned text; `in_text`: some of it was set as text, so that words are no
    variables.
    """
    text = text.strip()
    if not text or depth > _MAX_DEPTH:
        return None
    if value := _simple(tidy(text), depth, in_text or r"\text{" in text):
        return value
    while text.startswith("{") and text.endswith("}") and closed_at(text) == len(text):
        text = text[1:-1].strip()
    try:
        return next(
            (value for reader in _READERS if (value := reader(text, depth)) is not None), None
        )
    except _NoValue:
        return None


def _read_part(text: str, depth: int) -> Value:
    """The value of a part of a text that is read at this depth. Raises _NoValue."""
    value = _read(text, depth + 1)
    if value is None:
        raise _NoValue
    return value


def _read_each(texts: list[str], depth: int) -> tuple[Value, ...]:
    """The values of all parts of a text that is read at this depth. Raises _NoValue."""
    return tuple([_read_part(text, depth) for text in texts])


def _simple(text: str, depth: int, in_text: bool) -> Value | None:
    """A number with its unit, infinity, a choice, or words."""
    if not text:
        return None
    if number := read_number(text):
        return number
    if infinity := _INFINITY.fullmatch(text):
        return Infinity(-1 if infinity[1] == "-" else 1)
    choice = _CHOICE.fullmatch(text)
    if choice and bool(choice[1]) <= bool(choice[3]):
        return Choice(choice[2], bool(choice[1] or choice[3] or in_text))
    choice = _CHOICE_AND_MORE.match(text)
    if choice and depth == 0:
        content = text[choice.end() :]
        if content[0] == "(" and closed_at(content) == len(content) > 3:
            content = content[1:-1]
        return Choice(choice[1] or choice[2], True, content, _read(content, 1))
    if _WRITTEN.fullmatch(text):
        return Words(
            "".join(character for character in text.lower() if character not in "{}. "), True
        )
    if not _WORDS.fullmatch(text):
        return None
    if (value := number_in_words(text)) is not None:
        return Number(Fraction(value))
    if text.lower().startswith(("not ", "either ", "neither ")) or re.search(
        r"\b(?:or|and)\b", text
    ):
        return None
    words = text.lower().split()
    words = words[1:] if words[0] in ("a", "an", "the") and len(words) > 1 else words
    words = _SYNONYMS.get(" ".join(words), " ".join(words)).split()
    return Words(
        " ".join(words), in_text or len(text) > 3 or not text.isascii() or words[0] in _SHORT_WORDS
    )


# --- readers: a value, or None where the text is something else


def _family(text: str, depth: int) -> Value | None:
    if depth > 1 or not ("nteger" in text or "Z" in text):
        return None
    for match in _INTEGER.finditer(text):
        if match.end() == len(text) and match.start() > 0:
            return Family(
                match["a"] or match["b"] or match["c"], _read_part(text[: match.start()], depth)
            )
    return None


def _alternatives(text: str, depth: int) -> Value | None:
    """`a or b`: the union of two regions, or a set of values."""
    parts, _ = split(text, _OR)
    if len(parts) < 2:
        return None
    values = _read_each(parts[:_MAX_PARTS], depth)
    regions = [
        region
        for value in values
        if isinstance(value, (Region, Relation)) and (region := as_region(value))
    ]
    if len(regions) < len(values):
        return Listing(values)
    if len({region.variable for region in regions}) > 1:
        raise _NoValue
    return Region(
        regions[0].variable, functools.reduce(RealSet.union, [region.numbers for region in regions])
    )


def _residue(text: str, depth: int) -> Value | None:
    r"""`x \equiv 3 \pmod 7`."""
    match = _MODULUS.search(text)
    if match is None or split(text, _AND) != ([text], []):
        return None
    modulus = _read_part(match[1].strip("{} "), depth)
    sides, _ = split(text[: match.start()], _CONGRUENT)
    if not 1 <= len(sides) <= 2:
        raise _NoValue
    values = _read_each(sides, depth)
    return Residue(values[0] if len(values) == 2 else None, values[-1], modulus)


def _list(text: str, depth: int) -> Value | None:
    if "," in text and _CALCULATION.search(text):
        text = _IN_THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    parts, _ = split(text, _AND)
    if len(parts) < 2:
        return None
    if not parts[-1] and len(parts) > 2:
        parts.pop()
    if len(parts) > _MAX_PARTS:
        raise _NoValue
    items = _read_each(parts, depth)
    regions = [
        region
        for item in items
        if isinstance(item, (Region, Relation)) and (region := as_region(item))
    ]
    if (
        len(regions) == len(items) and len({region.variable for region in regions}) == 1
    ):  # x > 1 and x < 5
        numbers = functools.reduce(RealSet.intersection, [region.numbers for region in regions])
        return Region(regions[0].variable, numbers)
    first, *others = _flat(items)
    match first:
        case Relation(("=",), (name, _)) if not any(
            isinstance(item, (Relation, Region)) for item in others
        ):
            others = [
                Relation(("=",), (name, item)) for item in others
            ]  # in `x = 1, 2` the name belongs to both
    return Listing((first, *others))


def _spaced(text: str, depth: int) -> Value | None:
    """`-2 3 5`: several numbers with spaces between them."""
    if not _SPACED.fullmatch(text) or re.fullmatch(r"[+-]?\d{1,3}(?: \d{3})+", text):
        return None
    return Listing(tuple(Number(Fraction(part)) for part in text.split()[:_MAX_PARTS]))


def _flat(items: tuple[Value, ...]) -> tuple[Value, ...]:
    r"""With the values of `\pm` and the like as elements of their own."""
    flat: list[Value] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Listing) else (item,))
    return tuple(flat)


def _relation(text: str, depth: int) -> Value | None:
    parts, signs = split(text, _RELATION)
    if len(parts) < 2 or not parts[0]:
        return None
    operators = tuple(_OPERATORS.get(sign, sign) for sign in signs)
    relation = Relation(operators, tuple([_side(part, depth) for part in parts]))
    left, right = relation.sides[:2]
    if operators == ("=",) and isinstance(right, Listing):  # x = \pm 2
        return Listing(tuple(Relation(("=",), (left, item)) for item in right.items))
    return _region_of(relation) or relation


def _side(text: str, depth: int) -> Value:
    r"""A value, or a name in words: `\text{Balcony seat price}`, `Domain of f`. Raises _NoValue."""
    value = _read(text, depth + 1)
    if value is None and re.fullmatch(
        r"\\text\{[A-Za-z ]+\}|[A-Za-z]+(?: [A-Za-z]+)+", text.strip()
    ):
        value = Words(plain(text).lower(), True)
    if value is not None and not (isinstance(value, Words) and NO_STATEMENT.search(text)):
        return value
    raise _NoValue


def _region_of(relation: Relation) -> Region | None:
    """The numbers for which `x > 3`, `-1 < x <= 2` or `x != 5` holds; None where it is no condition
    on one variable.
    """
    named = [index for index, side in enumerate(relation.sides) if name_of(side)]
    if len(named) != 1:
        return None
    numbers = REALS
    for index, operator in enumerate(relation.operators):
        left, right = relation.sides[index : index + 2]
        if named[0] not in (index, index + 1):
            return None
        part = (
            _numbers(operator, right)
            if named[0] == index
            else _numbers(TURNED.get(operator, operator), left)
        )
        if part is None:
            return None
        numbers = numbers.intersection(part)
    return Region(name_of(relation.sides[named[0]]), numbers)


def _numbers(operator: str, value: Value) -> RealSet | None:
    """The numbers that are larger or smaller than a value, or other than several values."""
    if operator == "!=":
        items = value.items if isinstance(value, Listing) else (value,)
        excluded = as_region(Set(items))
        if excluded is None or any(isinstance(bound_of(item), float) for item in items):
            return None
        return REALS.without(excluded.numbers)
    bound = bound_of(value)
    if bound is None or operator not in TURNED:
        return None
    closed = len(operator) == 2 and not isinstance(bound, float)
    if operator[0] == ">":
        return RealSet.interval(bound, closed, INFINITY, False)
    return RealSet.interval(MINUS_INFINITY, False, bound, closed)


def _set(text: str, depth: int) -> Value | None:
    if text in _SETS:
        return Region("", _SETS[text])
    if excluded := _EXCEPT.fullmatch(text):
        region = (
            as_region(value) if (value := _read(r"\{" + excluded[1] + r"\}", depth + 1)) else None
        )
        return region and Region("", REALS.without(region.numbers))
    parts, signs = split(text, _SET_OPERATOR)
    if len(parts) < 2:
        return None
    regions = [
        region
        for part in parts
        if (value := _read(part, depth + 1)) and (region := as_region(value))
    ]
    if len(regions) < len(parts):
        return None
    result = regions[0]
    for sign, region in zip(signs, regions[1:], strict=True):
        operation = {r"\cap": RealSet.intersection, r"\setminus": RealSet.without}.get(
            sign, RealSet.union
        )
        result = Region(
            result.variable or region.variable, operation(result.numbers, region.numbers)
        )
    return result


def _bracketed(text: str, depth: int) -> Value | None:
    for left, right in _BRACKETS:
        if not (
            text.startswith(left)
            and text.endswith(right)
            and len(text) > len(left) + len(right) - 1
        ):
            continue
        if closed_at(text) != len(text):
            return None
        inside = text[len(left) : -len(right)].strip()
        if left in (r"\{", "{"):
            builder, _ = split(inside, _SUCH_THAT)
            if len(builder) == 2:  # { x | x > 0 }
                condition = _read(builder[1], depth + 1)
                region = as_region(condition) if condition else None
                variable = builder[0].partition(r"\in")[0].strip()
                return region if region is not None and region.variable in ("", variable) else None
        parts, _ = split(inside, _SEPARATOR)
        if (
            len(parts) == 1 and left == "(" and _RELATION.search(inside)
        ):  # (1 < x \land x < 2) \lor ...
            value = _read(inside, depth + 1)
            return value if isinstance(value, Region) else None
        if not parts or len(parts) > _MAX_PARTS or (len(parts) < 2 and left != r"\{"):
            return None  # (x + 1) is an expression
        if len(parts) == 1:
            value = _read(parts[0], depth + 1)
            return value and Set(_flat((value,)))
        items = _read_each(parts, depth)
        if left in (r"\{", "{"):
            return Set(_flat(items))
        if left == r"\langle":
            return Vector(items)
        return Tuple(items, closed_low=left == "[", closed_high=right == "]")
    return None


def _matrix(text: str, depth: int) -> Value | None:
    if "\\begin" not in text:
        return None
    start = text.find("\\begin")
    before, after = text[:start].strip(), text[start:].strip()
    if before.endswith(r"\{"):
        return _cases(after.rstrip("."), depth) if before == r"\{" else None
    bars, opening = False, before[-1:]
    if opening in _CLOSINGS and after.endswith(_CLOSINGS[opening]):
        before, after, bars = before[:-1], after[:-1], opening == "|"
    if "{cases}" in after or "{align" in after:
        return _cases(after, depth) if not before else None
    match = _MATRIX.fullmatch(after.strip())
    if match is None or "\\begin" in match[2]:
        return _combination(text)
    factor = read_expression(before)
    texts = [row.replace(r"\hline", "").split("&") for row in _ROW.split(match[2]) if row.strip()]
    rows = tuple(
        [tuple([_scaled(factor, cell) for cell in _read_each(row, depth)]) for row in texts]
    )
    if not rows or (before and factor is None):
        return None
    return Matrix(bars or match[1] in ("vmatrix", "Vmatrix"), rows)


def _combination(text: str) -> Value | None:
    """A sum of matrices with factors: entry by entry."""
    matrices = list(_ANY_MATRIX.finditer(text))
    cells = [[row.split("&") for row in _ROW.split(match[2]) if row.strip()] for match in matrices]
    sizes = {tuple(map(len, rows)) for rows in cells}
    if len(sizes) != 1 or len(matrices) > 8:
        return None
    pieces = _ANY_MATRIX.sub("\0", text).split("\0")
    if any(not re.search(r"[+-]", piece) for piece in pieces[1:-1]):  # a product of matrices
        return None
    rows: list[tuple[Value, ...]] = []
    for number, length in enumerate(sizes.pop()):
        row = []
        for column in range(length):
            entries = [f"({each[number][column]})" for each in cells]
            joined = "".join(
                piece + entry for piece, entry in zip(pieces, [*entries, ""], strict=True)
            )
            tree = read_expression(joined)
            if tree is None:
                return None
            row.append(Expression(tree))
        rows.append(tuple(row))
    return Matrix(False, tuple(rows))


def _scaled(factor: Tree | None, cell: Value) -> Value:
    if factor is None:
        return cell
    tree = tree_of(cell)
    return cell if tree is None else Expression(("*", factor, tree))


def _cases(text: str, depth: int) -> Value | None:
    match = _CASES.fullmatch(text.strip())
    if match is None or "\\begin" in match[2]:
        return None
    items: list[Value] = []
    for row in _ROW.split(match[2]):
        cells = [cell.strip().rstrip(",") for cell in _CELL.split(row) if cell.strip(" ,")]
        if row.strip():
            values = _read_each([re.sub(r"^(?:if|for|when)\s", "", cell) for cell in cells], depth)
            items.append(values[0] if len(values) == 1 else Tuple(values))
    return Cases(tuple(items)) if items else None


def _approximate(text: str, depth: int) -> Value | None:
    match = _ABOUT.match(text)
    if match is None:
        return None
    value = _read(text[match.end() :], depth + 1)
    if not isinstance(value, Number):
        raise _NoValue
    return Approximately(value)


def _ratio(text: str, depth: int) -> Value | None:
    parts, _ = split(text, _COLON)
    if len(parts) < 2:
        return None
    values = _read_each(parts, depth)
    regions = [region for value in values if (region := as_region(value))]
    if len(regions) == len(values) == 2:  # `x > 2: (2, \infty)` says it twice
        if not regions[0].numbers.equals(regions[1].numbers):
            raise _NoValue
        return regions[0]
    return Ratio(values)


def _formula(text: str, depth: int) -> Value | None:
    """An expression, also with a unit behind it."""
    for rest, unit in _units(text):
        inner = _read(rest, depth + 1)
        if isinstance(inner, Number):
            return inner._replace(unit=unit) if not inner.unit else None
        if inner is not None and not isinstance(inner, (Words, Choice, Quantity)):
            return Quantity(inner, unit)
    tree = read_expression(text)
    if tree is None:
        return None
    if "pm" in text or r"\mp" in text:
        return Listing(tuple(Expression(_with_sign(tree, sign)) for sign in (1, -1)))
    value = constant_value(tree)
    if isinstance(value, Fraction) and tree[0] not in ("symbol", "call"):
        return Expression(("number", value))
    return Expression(tree)


def _with_sign(tree: Tree, sign: int) -> Tree:
    r"""The tree with one of the signs of `\pm`."""
    for value in (1, -1):
        tree = replaced(tree, ("pm", value), ("number", Fraction(value * sign)))
    return tree


def _units(text: str) -> Iterator[tuple[str, str]]:
    r"""(what stands before, unit) for each way to take a unit off the end."""
    if (degrees := _DEGREE_TAIL.search(text)) and not _TRIGONOMETRY.search(text):
        yield text[: degrees.start()], {"C": "celsius", "F": "fahrenheit", "": "degree"}[degrees[1]]
        return
    if (counted := _COUNT_IN_PARENTHESES.fullmatch(text)) and (unit := read_unit(counted[2])):
        yield counted[1], unit
    if r"\text{" in text:
        starts = [
            match.start()
            for match in re.finditer(r"\\text\{|\\frac\s*\{\s*\\text", text)
            if match.start()
        ]
        for start in starts[-8:]:
            content = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text[start:])
            if "\\" in content.replace(r"\cdot", "").replace(r"\frac", ""):
                continue
            if unit := read_unit(re.sub(r"\s+", " ", content)):
                yield (
                    text[:start].rstrip(" /-").rstrip()
                    if not unit.startswith(COUNTED)
                    else text[:start],
                    unit,
                )
                return
    for start in [match.start() for match in re.finditer(r"\s[A-Za-z]", text)][-6:]:
        tail = _PLAIN_TAIL.search(text, start)
        if tail and (unit := read_unit(tail[1])):
            rest = text[: tail.start()].rstrip()
            tree = read_expression(rest.rpartition("=")[2].strip())
            if tree is not None and constant_value(tree) is not None:
                yield rest, unit
                return


_READERS = (
    *(_family, _alternatives, _residue, _list, _spaced, _relation),
    *(_set, _bracketed, _matrix, _approximate, _ratio, _formula),
)
