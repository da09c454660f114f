"""Text -> one of the kinds in `values.py`: numbers, choices and words first, then structure, then expressions."""

import functools
import re
from collections.abc import Iterator
from fractions import Fraction

from swift_rlvr.math_answers.brackets import closed_at, split
from swift_rlvr.math_answers.notation import clean, plain, tidy
from swift_rlvr.math_answers.numeric import constant_value
from swift_rlvr.math_answers.parser import KNOWN, Tree, read_expression, replaced
from swift_rlvr.math_answers.plain_numbers import number_in_words, read_number
from swift_rlvr.math_answers.sets import EMPTY, INFINITY, MINUS_INFINITY, REALS, Piece, RealSet
from swift_rlvr.math_answers.units import read_unit
from swift_rlvr.math_answers.values import (
    Approximately,
    Choice,
    Expression,
    Family,
    Infinity,
    Matrix,
    Number,
    Quantity,
    Region,
    Relation,
    Residue,
    Sequence,
    Value,
    Words,
    as_region,
    end_of,
    name_of,
    tree_of,
)

MAX_CHARS = 2000
_MAX_DIGITS, _MAX_DEPTH, _MAX_PARTS = 400, 6, 1200
_LEAD_IN = re.compile(
    r"(?:(?:so|thus|hence|therefore)\b,?\s*)?(?:the\s+|my\s+)?(?:final\s+|correct\s+)?"
    r"(?:(?:answer|result|solution|value|option|choice|total)\s*(?:is|:|=|was)\s*:?\s*|(?:option|choice)\s+(?=\(?[A-Z]\)?$))"
    r"|(?-i:[A-Z][a-z]{2,}(?: [a-z]+){0,3}):\s+|(?:答案|结果|选项?|故选)\s*(?:是|为|:|=)?\s*",
    re.IGNORECASE,
)
_INFINITY = re.compile(r"([+-]?)\s*\\infty")
_CHOICE = re.compile(r"(\(\s*)?([A-Za-z])(\s*\)|[.:)])?")
_CHOICE_AND_MORE = re.compile(r"(?:\(([A-H])\)\s*|([A-H])[.):]\s+)(?=[^\s,;/|&])(?!(?:and|or)\b)")
_WRITTEN = re.compile(
    r"(?P<base>[0-9A-F]+_\{?\d+\}?)|(?P<date>\d{4}-\d\d-\d\d)|(?P<time>\d{1,2}:\d\d\s*[AaPp]\.?\s?[Mm]\.?)"
)
_SHORT_WORDS = frozenset(("yes", "no", "on", "in", "up", "odd", "even", "true", "false", "all", "none"))
_WORDS = re.compile(r"(?:an? )?[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)*|[^\x00-\x7f]{1,20}|[A-Z][a-z]{2,} \d{1,4}")
_BRACKETS = (("(", ")"), ("(", "]"), ("[", ")"), ("[", "]"), (r"\{", r"\}"), ("{", "}"), (r"\langle", r"\rangle"))
_OR = re.compile(r"\s+or\s+|\s*\\text\{\s*,?\s*or\s*\}\s*|\\lor(?![A-Za-z])")
_AND = re.compile(
    r"[,;]\s*(?:\\text\{\s*(?:and|or)\s*\}|and\s|or\s)?|\s+and\s+|\\text\{\s*,?\s*and\s*\}|\\land(?![A-Za-z])"
)
_SPACED = re.compile(r"-?\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?)+")
_ABOUT = re.compile(
    r"\\approx(?![A-Za-z])|\\sim(?![A-Za-z])|≅|(?:\\text\{\s*)?(?:about|approximately|approx\.?|roughly)(?:\s*\}|\s)",
    re.IGNORECASE,
)
_MODULUS = re.compile(r"(?:\\pmod|\(\s*(?:\\bmod|\\mod|mod)\b)\s*(\{?\s*\w+\s*\}?)\s*\)?$")
_CONGRUENT = re.compile(r"\\equiv(?![A-Za-z])|=")
_RELATION = re.compile(r"\\(?:leq|geq|neq|approx|equiv|in|simeq|cong|sim)(?![A-Za-z])|<=|>=|!=|==|[<>=≅≃]")
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
_SYNONYMS = {word: group.partition("|")[0] for group in _SYNONYM_GROUPS for word in group.split("|")}
_SETS = dict.fromkeys((r"\mathbb{R}", r"\mathbb R", r"\text{all real numbers}", "all real numbers"), REALS)
_SETS |= dict.fromkeys((r"\emptyset", r"\{\}", r"\{ \}"), EMPTY)
_EXCEPT = re.compile(r"(?:\\text\{)?\s*all real numbers except(?: for)?\s*\}?\s*(?:x\s*=)?\s*(.+)")
_LETTERS = r"[a-zA-Z]"
_INTEGER = re.compile(
    rf"[\s,;(]*(?:\\text\{{[\s,(]*)?(?:(?:for|where|with)\s+)?(?:(?:any|all|every|some|each)\s+)?"
    rf"(?:integers?\s*\}}?\s*(?P<a>{_LETTERS})(?:\s*\}})?"
    rf"|(?P<b>{_LETTERS})\s*(?:\\in|∈)\s*(?:\\mathbb\s*\{{?\s*Z\s*\}}?|\\text\{{Z\}}|Z)"
    rf"|\}}?\s*(?P<c>{_LETTERS})\s*(?:\\text\{{)?\s*(?:is|are)?\s*(?:an?y?\s+)?integers?)\s*\}}?\s*\)?"
)
_MATRIX = re.compile(
    r"\\begin\s*\{([pbvBV]?matrix|smallmatrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}", re.DOTALL
)
_ANY_MATRIX = re.compile(
    r"[\[(]?\s*\\begin\s*\{([pb]?matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*?)\\end\s*\{\1\}\s*[\])]?", re.DOTALL
)
_CASES = re.compile(r"\\begin\s*\{(cases|array|aligned|align\*?)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}", re.DOTALL)
_ROW = re.compile(r"\\\\\s*(?:\[[^\]]*\])?|\\(?=[-\d])")  # `\-3` where one backslash of `\\-3` got lost
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
    >>> read(r"\text{(B)}").letter, read("(1, 2]").closing, read("see above")
    ('B', ']', Words(text='see above', marked=True))
    """
    if len(text) > MAX_CHARS:
        return None
    in_text = any(command in text for command in (r"\text", r"\mathrm", r"\mathbf"))
    cleaned = clean(text)
    if whole := _ALL_TEXT.fullmatch(cleaned):
        cleaned = clean(whole[1])
    lead_in = _LEAD_IN.match(cleaned)
    if lead_in and lead_in.end() < len(cleaned):
        cleaned = clean(cleaned[lead_in.end() :])
    return _read(cleaned, in_text, 0)


def why_unreadable(text: str) -> str:
    r"""What keeps a text from being read, in words.

    >>> why_unreadable(r"\frac{1}{"), why_unreadable(r"\foo{3}"), why_unreadable("3 apples are left, I think")
    ('a bracket is not closed', 'unknown: \\foo', 'words that are no value: apples, are, left, think')
    """
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS:,} characters"
    cleaned = clean(text)
    if split(cleaned, _AND) is None:
        return "a bracket is not closed"
    commands = dict.fromkeys(re.findall(r"\\[A-Za-z]+", cleaned))
    if unknown := [command for command in commands if command[1:] not in _KNOWN]:
        return f"unknown: {', '.join(unknown)}"
    words = dict.fromkeys(re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", tidy(text)))
    return f"words that are no value: {', '.join(words)}" if words else "no notation that is known"


def _read(text: str, in_text: bool, depth: int) -> Value | None:
    """The value of a cleaned text; `in_text`: some of it was set as text, so that words are no variables."""
    text = text.strip()
    if not text or depth > _MAX_DEPTH:
        return None
    return _simple(tidy(text), (in_text and not depth) or r"\text{" in text, depth) or _structured(text, in_text, depth)


def _read_each(texts: list[str], in_text: bool, depth: int) -> tuple[Value, ...] | None:
    """The values of all parts of a text, or None where one of them has none."""
    values = [_read(text, in_text, depth + 1) for text in texts]
    return None if None in values else tuple(values)  # type: ignore[arg-type]


def _simple(text: str, in_text: bool, depth: int) -> Value | None:
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
        return Choice(choice[1] or choice[2], True, content, _read(content, False, 1))
    if _WRITTEN.fullmatch(text):
        return Words("".join(character for character in text.lower() if character not in "{}. "), True)
    if _WORDS.fullmatch(text) and not _is_connected(text):
        if (value := number_in_words(text)) is not None:
            return Number(Fraction(value))
        words = text.lower().split()
        words = words[1:] if words[0] in ("a", "an", "the") and len(words) > 1 else words
        words = _SYNONYMS.get(" ".join(words), " ".join(words)).split()
        return Words(" ".join(words), in_text or len(text) > 3 or not text.isascii() or words[0] in _SHORT_WORDS)
    return None


def _is_connected(text: str) -> bool:
    return text.lower().startswith(("not ", "either ", "neither ")) or bool(re.search(r"\b(?:or|and)\b", text))


def _structured(text: str, in_text: bool, depth: int) -> Value | None:
    text = _without_braces(text)
    for reader in (
        _family,
        _alternatives,
        _residue,
        _list,
        _spaced,
        _relation,
        _set,
        _bracketed,
        _matrix,
        _approximate,
        _ratio,
        _formula,
    ):
        found = reader(text, in_text, depth)
        if found is not None:
            return found if found != _NOTHING else None
    return None


_NOTHING = Words("\0", True)  # a reader's word that no other one should try


def _without_braces(text: str) -> str:
    while text.startswith("{") and text.endswith("}") and closed_at(text) == len(text):
        text = text[1:-1].strip()
    return text


# --- readers: a value, None where the text is something else, _NOTHING where nothing else can read it


def _family(text: str, in_text: bool, depth: int) -> Value | None:
    if depth > 1 or not ("nteger" in text or "Z" in text):
        return None
    for match in _INTEGER.finditer(text):
        if match.end() == len(text) and match.start() > 0:
            inner = _read(text[: match.start()], in_text, depth + 1)
            name = match["a"] or match["b"] or match["c"]
            return _NOTHING if inner is None else Family(name, inner)
    return None


def _alternatives(text: str, in_text: bool, depth: int) -> Value | None:
    """`a or b`: the union of two regions, or a set of values."""
    found = split(text, _OR)
    if found is None or len(found[0]) < 2:
        return None
    values = _read_each(found[0][:_MAX_PARTS], in_text, depth)
    if values is None:
        return _NOTHING
    regions = [region for value in values if isinstance(value, (Region, Relation)) and (region := as_region(value))]
    if len(regions) < len(values):
        return Sequence("", "", values)
    numbers = functools.reduce(RealSet.union, [region.numbers for region in regions])
    names = {region.variable for region in regions}
    return Region(names.pop(), numbers) if len(names) == 1 else _NOTHING


def _list(text: str, in_text: bool, depth: int) -> Value | None:
    found = split(text, _AND)
    if found is None or len(found[0]) < 2:
        return None
    parts = found[0]
    if not parts[-1] and len(parts) > 2:
        parts.pop()
    if len(parts) > _MAX_PARTS:
        return _NOTHING
    items = _read_each(parts, in_text, depth)
    if items is None:
        return _NOTHING
    regions = [item for item in items if isinstance(item, Region)]
    if len(regions) == len(items) and len({region.variable for region in regions}) == 1:  # x > 1 and x < 5
        numbers = functools.reduce(RealSet.intersection, [region.numbers for region in regions])
        return Region(regions[0].variable, numbers)
    return Sequence("", "", _named_alike(_flat(items)))


def _residue(text: str, in_text: bool, depth: int) -> Value | None:
    r"""`x \equiv 3 \pmod 7`."""
    match = _MODULUS.search(text)
    if match is None or split(text, _AND) != ([text], []):
        return None
    modulus = _read(match[1].strip("{} "), in_text, depth + 1)
    sides = split(text[: match.start()], _CONGRUENT)
    if modulus is None or sides is None or len(sides[0]) > 2:
        return _NOTHING
    values = _read_each(sides[0], in_text, depth)
    return _NOTHING if values is None else Residue(values[0] if len(values) == 2 else None, values[-1], modulus)


def _spaced(text: str, in_text: bool, depth: int) -> Value | None:
    """`-2 3 5`: several numbers with spaces between them."""
    if not _SPACED.fullmatch(text) or re.fullmatch(r"[+-]?\d{1,3}(?: \d{3})+", text):
        return None
    return Sequence("", "", tuple(Number(Fraction(part)) for part in text.split()[:_MAX_PARTS]))


def _flat(items: tuple[Value, ...]) -> tuple[Value, ...]:
    r"""With the values of `\pm` and the like as elements of their own."""
    flat: list[Value] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Sequence) and item.opening == "" else (item,))
    return tuple(flat)


def _named_alike(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """In `x = 1, 2` the name belongs to both."""
    first = items[0]
    if (
        isinstance(first, Relation)
        and first.operators == ("=",)
        and not any(isinstance(item, (Relation, Region)) for item in items[1:])
    ):
        return (first, *(Relation(("=",), (first.sides[0], item)) for item in items[1:]))
    return items


def _relation(text: str, in_text: bool, depth: int) -> Value | None:
    found = split(text, _RELATION)
    if found is None or len(found[0]) < 2 or not found[0][0]:
        return None
    parts, signs = found
    operators = tuple(_OPERATORS.get(sign, sign) for sign in signs)
    sides = tuple(_side(part, in_text, depth) for part in parts)
    if any(side is None for side in sides):
        return _NOTHING
    relation = Relation(operators, tuple(side for side in sides if side is not None))
    if operators == ("=",) and isinstance(relation.sides[1], Sequence) and relation.sides[1].opening == "":
        left = relation.sides[0]  # x = \pm 2
        return Sequence("", "", tuple(Relation(("=",), (left, item)) for item in relation.sides[1].items))
    return _region_of(relation) or relation


def _side(text: str, in_text: bool, depth: int) -> Value | None:
    return _read(text, in_text, depth + 1) or (Words(plain(text).lower(), True) if _is_label(text) else None)


def _is_label(text: str) -> bool:
    r"""Whether a side is a name in words: `\text{Balcony seat price}`, `Domain of f`."""
    return bool(re.fullmatch(r"\\text\{[A-Za-z ]+\}|[A-Za-z]+(?: [A-Za-z]+)+", text.strip()))


def _region_of(relation: Relation) -> Region | None:
    """The numbers for which `x > 3`, `-1 < x <= 2` or `x != 5` holds; None where it is no condition on one variable."""
    places = [number for number, side in enumerate(relation.sides) if name_of(side)]
    if len(places) != 1 or not all(operator in ("<", "<=", ">", ">=", "!=") for operator in relation.operators):
        return None
    name = name_of(relation.sides[places[0]])
    numbers = REALS
    for number, operator in enumerate(relation.operators):
        left, right = relation.sides[number], relation.sides[number + 1]
        if number + 1 == places[0]:
            left, right, operator = right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        elif number != places[0]:
            return None
        if operator == "!=":
            items = right.items if isinstance(right, Sequence) and right.opening == "" else (right,)
            excluded = as_region(Sequence("{", "}", items))
            if excluded is None or any(isinstance(end_of(item), float) for item in items):
                return None
            numbers = numbers.without(excluded.numbers)
            continue
        if (end := end_of(right)) is None:
            return None
        closed = operator in ("<=", ">=") and not isinstance(end, float)
        piece = Piece(end, closed, INFINITY, False) if operator[0] == ">" else Piece(MINUS_INFINITY, False, end, closed)
        numbers = numbers.intersection(RealSet.of(piece))
    return Region(name, numbers)


def _set(text: str, in_text: bool, depth: int) -> Value | None:
    if text in _SETS:
        return Region("", _SETS[text])
    if excluded := _EXCEPT.fullmatch(text):
        region = as_region(value) if (value := _read(r"\{" + excluded[1] + r"\}", in_text, depth + 1)) else None
        return region and Region("", REALS.without(region.numbers))
    found = split(text, _SET_OPERATOR)
    if found is None or len(found[0]) < 2:
        return None
    values = _read_each(found[0], in_text, depth) or ()
    regions = [region for value in values if (region := as_region(value))]
    if len(regions) < len(found[0]):
        return None
    result = regions[0]
    for sign, region in zip(found[1], regions[1:], strict=True):
        operation = {r"\cap": RealSet.intersection, r"\setminus": RealSet.without}.get(sign, RealSet.union)
        result = Region(result.variable or region.variable, operation(result.numbers, region.numbers))
    return result


def _bracketed(text: str, in_text: bool, depth: int) -> Value | None:
    for left, right in _BRACKETS:
        if not (text.startswith(left) and text.endswith(right) and len(text) > len(left) + len(right) - 1):
            continue
        if closed_at(text) != len(text):
            return None
        inside = text[len(left) : -len(right)].strip()
        if left in (r"\{", "{"):
            builder = split(inside, re.compile(r"\||:"))
            if builder and len(builder[0]) == 2:  # { x | x > 0 }
                condition = _read(builder[0][1], in_text, depth + 1)
                region = as_region(condition) if condition else None
                variable = builder[0][0].partition(r"\in")[0].strip()
                return region if region is not None and region.variable in ("", variable) else None
        parts = split(inside, re.compile(r"[,;]|\\text\{\s*and\s*\}"))
        if parts is None or len(parts[0]) > _MAX_PARTS:
            return None
        if len(parts[0]) < 2 and left != r"\{":
            return None  # (x + 1) is an expression
        items = _read_each(parts[0], in_text, depth)
        if items is None:
            return _NOTHING if len(parts[0]) > 1 else None
        opening = {r"\{": "{", r"\langle": "<"}.get(left, left)
        closing = {r"\}": "}", r"\rangle": ">"}.get(right, right)
        return Sequence(opening, closing, _flat(items) if opening == "{" else items)
    return None


def _matrix(text: str, in_text: bool, depth: int) -> Value | None:
    if "\\begin" not in text:
        return None
    place = text.find("\\begin")
    before, after = text[:place].strip(), text[place:]
    bars, opening = False, before[-2:] if before.endswith(r"\{") else before[-1:]
    if opening in ("[", "(", "|", r"\{") and opening:
        closing = {"[": "]", "(": ")", "|": "|", r"\{": "."}[opening]
        stripped = after.rstrip()
        if stripped.endswith(closing) and opening != r"\{":
            after, before = stripped[: -len(closing)], before[: -len(opening)]
            bars = opening == "|"
        elif opening == r"\{":
            after, before = stripped.rstrip("."), before[:-2]
    if opening == r"\{" or "{cases}" in after or "{align" in after:
        return _cases(after, in_text, depth) if not before else None
    match = _MATRIX.fullmatch(after.strip())
    if match is None or "\\begin" in match[2]:
        return None if opening == r"\{" else _combination(text, depth)
    factor = read_expression(before)
    rows = []
    for row in _ROW.split(match[2]):
        if row.strip():
            cells = _read_each(row.replace(r"\hline", "").split("&"), in_text, depth)
            if cells is None:
                return _NOTHING
            rows.append(tuple(_scaled(factor, cell) for cell in cells))
    if factor is None and before:
        return None
    return Matrix(bars or match[1] in ("vmatrix", "Vmatrix"), tuple(rows)) if rows else None


def _combination(text: str, depth: int) -> Value | None:
    """A sum of matrices with factors: entry by entry."""
    matrices = list(_ANY_MATRIX.finditer(text))
    cells = [[row.split("&") for row in _ROW.split(match[2]) if row.strip()] for match in matrices]
    shapes = {tuple(map(len, rows)) for rows in cells}
    if len(shapes) != 1 or len(matrices) > 8:
        return None
    pieces = _ANY_MATRIX.sub("\0", text).split("\0")
    if any(not re.search(r"[+-]", piece) for piece in pieces[1:-1]):  # a product of matrices
        return None
    rows: list[tuple[Value, ...]] = []
    for number, length in enumerate(shapes.pop()):
        row = []
        for column in range(length):
            entries = [f"({each[number][column]})" for each in cells]
            joined = "".join(piece + entry for piece, entry in zip(pieces, [*entries, ""], strict=True))
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


def _cases(text: str, in_text: bool, depth: int) -> Value | None:
    match = _CASES.fullmatch(text.strip())
    if match is None or "\\begin" in match[2]:
        return None
    items: list[Value] = []
    for row in _ROW.split(match[2]):
        if not row.strip():
            continue
        cells = [
            cell.strip().rstrip(",")
            for cell in re.split(r"(?<!\\)&|\\text\{\s*(?:if|for|when)\s*\}", row)
            if cell.strip(" ,")
        ]
        values = _read_each([re.sub(r"^(?:if|for|when)\s", "", cell) for cell in cells], in_text, depth)
        if values is None:
            return _NOTHING
        items.append(values[0] if len(values) == 1 else Sequence("(", ")", values))
    return Sequence("cases", "", tuple(items)) if items else None


def _approximate(text: str, in_text: bool, depth: int) -> Value | None:
    match = _ABOUT.match(text)
    if match is None:
        return None
    value = _read(text[match.end() :], in_text, depth + 1)
    return Approximately(value) if isinstance(value, Number) else _NOTHING


def _ratio(text: str, in_text: bool, depth: int) -> Value | None:
    found = split(text, re.compile(":"))
    if found is None or len(found[0]) < 2:
        return None
    values = _read_each(found[0], in_text, depth)
    if values is None:
        return _NOTHING
    regions = [region for value in values if (region := as_region(value))]
    if len(regions) == len(values) == 2:  # `x > 2: (2, \infty)` says it twice
        return regions[0] if regions[0].numbers.equals(regions[1].numbers) else _NOTHING
    return Sequence(":", "", values)


def _formula(text: str, in_text: bool, depth: int) -> Value | None:
    """An expression, also with a unit behind it."""
    for rest, unit in _units(text):
        inner = _read(rest, in_text, depth + 1)
        if inner is not None and not isinstance(inner, (Words, Choice, Quantity)):
            if isinstance(inner, Number):
                return inner._replace(unit=unit) if not inner.unit else None
            return Quantity(inner, unit)
    tree = read_expression(text)
    if tree is None:
        return None
    if "pm" in text or r"\mp" in text:
        return Sequence("", "", tuple(Expression(_with_sign(tree, sign)) for sign in (1, -1)))
    value = constant_value(tree)
    if isinstance(value, Fraction) and tree[0] != "symbol":
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
        starts = [match.start() for match in re.finditer(r"\\text\{|\\frac\s*\{\s*\\text", text) if match.start()]
        for start in starts[-8:]:
            tail = text[start:]
            content = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", tail)
            if "\\" in content.replace(r"\cdot", "").replace(r"\frac", ""):
                continue
            if unit := read_unit(re.sub(r"\s+", " ", content)):
                yield text[:start].rstrip(" /-").rstrip() if unit != "things" else text[:start], unit
                return
    for match in (
        _PLAIN_TAIL.search(text, place) for place in [m.start() for m in re.finditer(r"\s[A-Za-z]", text)][-6:]
    ):
        if match and (unit := read_unit(match[1])):
            rest = text[: match.start()].rstrip()
            tree = read_expression(rest.rpartition("=")[2].strip())
            if tree is not None and constant_value(tree) is not None:
                yield rest, unit
                return
