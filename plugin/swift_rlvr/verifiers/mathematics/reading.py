r"""Text of an answer -> one of the kinds of value in `values.py`.

`read` tries the kinds in turn: numbers, choices and words first, then structure such as lists,
relations and matrices, and expressions last. All of a text is read, or nothing. A text that is read
in part would earn credit for the part, whatever the rest says: "5 or 6" is not 5.
"""

import functools
import re
from collections.abc import Sequence as Items
from fractions import Fraction

from swift_rlvr.verifiers.languages import CALLED_CORRECT, CHINESE_DOUBT, DENIAL, words_of
from swift_rlvr.verifiers.mathematics.brackets import closed_at, split
from swift_rlvr.verifiers.mathematics.notation import clean, plain, tidy
from swift_rlvr.verifiers.mathematics.numeric import constant_value
from swift_rlvr.verifiers.mathematics.parser import KNOWN, read_expression, replaced
from swift_rlvr.verifiers.mathematics.plain_numbers import (
    number_in_words,
    read_number,
    with_decimal_comma,
)
from swift_rlvr.verifiers.mathematics.sets import EMPTY, REALS, RealSet
from swift_rlvr.verifiers.mathematics.units import units_at_end
from swift_rlvr.verifiers.mathematics.values import (
    Alternatives,
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
    Restricted,
    Sequence,
    Set,
    Tuple,
    Value,
    Vector,
    Words,
    as_region,
    is_constant,
    solved_region,
    tree_of,
)

# --- limits, so that no text is slow to read

# longer texts are right only where they are written like the gold
MAX_CHARS = 2000
# values within values: a list of sets of points has three levels
_MAX_DEPTH = 6
# elements of a list
_MAX_PARTS = 1200

# --- words that doubt or deny. `sentences.py` uses them too: all of them refuse false credit

# What DENIAL is in English, in other languages that are written as English is.
_OTHER_DENIAL = rf"\b(?:{words_of('deny', latin=True)})\b|\bn['’](?:est|a|ont)\b"
# "Is it 5?", "suppose it is 5", "the given 5", "case 5 fails": within a sentence, what is asked,
# assumed or rejected is not stated
NO_STATEMENT = re.compile(
    rf"{DENIAL.pattern}|{_OTHER_DENIAL}|\?|\b(?:no|whether|suppose|assum(?:e|ing)|let|example|used to|given|hint"
    r"|fails?|reject(?:ed)?|excluded?|doubt\w*|den(?:y|ies|ied)|disagree\w*|disput\w+|page|say|says"
    r"|claims?)\b",
    re.IGNORECASE,
)

# --- words around an answer

# x + 1 if x \neq 1; not "unless", which turns its condition round, nor "such that", which makes a set
BEFORE_CONDITION = (
    "where|when(?:ever)?|for|(?:only )?if|with|provided(?: that)?|as long as|given(?: that)?|assuming(?: that)?"
    "|on (?:the )?condition that|subject to"
)
_LEAD_IN = re.compile(
    # So, 5
    r"(?:so|thus|hence|therefore),?\s+"
    # We find that 5
    r"|(?:we|i)\s+(?:find|get|have|obtain|conclude)(?:\s+that)?,?\s+"
    # = 5, as the end of a calculation
    r"|=\s*(?![=<>])"
    # The final answer to this question is: 5
    r"|(?:the\s+|my\s+)?(?:final\s+|correct\s+|right\s+)?"
    r"(?:answer|result|solution|value|option|choice|total)"
    r"(?:\s+to\s+(?:the|this|question|problem)(?:\s+(?:question|problem))?(?:\s+\d{1,3})?)?"
    r"\s*(?:is|:|=|was)\s*:?\s*"
    # Option B
    r"|(?:option|choice)\s+(?=\(?[A-Z]\)?$)"
    # The answer 5
    r"|(?:the\s+)?(?:final\s+)?answer\s+(?=[-\d\\(])"
    # Number of apples: 5
    r"|(?-i:[A-Z][a-z]{2,}(?: [a-z]+){0,3}):\s+"
    # 答案是5
    r"|(?:答案|结果|选项?|故选)\s*(?:是|为|:|=)?\s*"
    # 最大值为5, but not 不为5 and 约为5
    # but neither 另一个是5 nor 第一个是5, which is one of several
    rf"|(?:半[径轴]|(?!{CHINESE_DOUBT}|[另第]|其中|之一)[\u4e00-\u9fff]){{1,8}}(?:为|是|等于)\s*(?=[-\d\\(])",
    re.IGNORECASE,
)
# "(A) and (B) are correct"
_CALLED_CORRECT_TOGETHER = re.compile(
    r"(\(?[A-H]\)?(?:\s*(?:,|and|&|,\s*and)\s*\(?[A-H]\)?)+)"
    r"\s+are\s+(?:both\s+|all\s+)?(?:the\s+)?(?:correct|right|true)"
    r"(?:\s+(?:options|choices|answers|ones|statements))?"
)
# [A], [B], [D]
_LETTERS_IN_BRACKETS = re.compile(r"\[[A-H]\](?:\s*(?:,|and|&|,\s*and)?\s*\[[A-H]\])+")
_LABEL_IN_TEXT = re.compile(r"\\text\{([^{}]*(?::|is|was|=|为|是|等于)\s*)\}(?=\s*[^\s])")
# f(x) = 2x for all x, 2x for all x: the question says for which x; \text{...} may stand around any part
_FOR_ALL = re.compile(
    r"(?P<formula>[A-Za-z]\s*\(\s*[a-z]\b.*?|(?:(?!\\[lgn]eq?(?![A-Za-z]))[^=<>])+?)"
    r"(?<=[^\s,;(])[\s,;(]*(?:\\forall|(?:\\text\{[\s,(]*)?for\s++(?:all|any|every|each))\s*+\}?\s*+"
    # real numbers x, positive integers n
    r"(?:\\text\{\s*+)?(?:(?:real|rational|complex|natural|positive|non-?negative)\s++)*(?:(?:number|integer)s?\s*+)?\}?\s*+"
    # x, y \in \mathbb{R}; n \geq 1
    r"(?P<name>[a-z])(?:\s*+,\s*+[a-z])*"
    r"(?:\s*+\\in\s*+\\mathbb\s*+\{?\s*+[A-Z]\s*+\}?|\s*+\}?\s*+(?:\\geq?\s*+[01]|(?:\\gt|>)\s*+0))?[\s)}]*"
)
# e^x + C, where C is an arbitrary constant
_OF_CONSTANT = re.compile(
    r"(?P<formula>.+?)(?<=[^\s,;(])[\s,;(]*(?:\\text\{[\s,(]*)?(?:where|with)\s*+\}?\s*+(?P<name>[A-Za-z])\s*+(?:\\text\{\s*+)?"
    r"(?:is|as|being)\s++(?:an?|the|any)\s++(?:arbitrary\s++|integration\s++|real\s++)*constant(?:\s++of\s++integration)?[\s)}]*"
)
_CONCLUSION = re.compile(r"\\Rightarrow(?![A-Za-z])")
_WIDE_GAP = re.compile(r"\s{3,}")
# an answer that is set as text from its beginning to its end: \text{yes}
_ALL_TEXT = re.compile(r"\\text\{([^{}]*)\}")
# ]1, 2[ \cup [3, 4[, where a bracket that is turned outwards leaves out its bound
_ONE_INTERVAL = re.compile(r"([\[\](])([^\[\]()]*[,;][^\[\]()]*)([\[\])])")
_OUTWARD = re.compile(
    rf"(?:[A-Za-z]\s*\\in\s*)?{_ONE_INTERVAL.pattern}(?:\s*\\(?:cup|cap|setminus)\s*{_ONE_INTERVAL.pattern})*"
)
# "So, the answer is: = 5" has three lead-ins
_MAX_LEAD_INS = 3


@functools.lru_cache(maxsize=8192)
def read(text: str) -> Value | None:
    r"""The value of an answer. Returns None if it is of none of the kinds.

    >>> read(r"\frac{1}{2}").value, read("1,234").value, read("50\\%").percent, read("5 cm").unit
    (Fraction(1, 2), Fraction(1234, 1), True, 'cm')
    >>> read(r"\text{(B)}").letter, read("(1, 2]").closed_high, read("see above")
    ('B', True, Words(text='see above', marked=True))
    """
    if len(text) > MAX_CHARS:
        return None
    in_text = any(command in text for command in (r"\text", r"\mathrm", r"\mathbf"))
    # The patterns below allow white space in many places: a thousand spaces would take them minutes.
    cleaned = _WIDE_GAP.sub("  ", clean(text))
    if whole := _ALL_TEXT.fullmatch(cleaned):
        cleaned = clean(whole[1])
    cleaned = _conclusion_of(cleaned)
    if _OUTWARD.fullmatch(cleaned):
        cleaned = _ONE_INTERVAL.sub(
            lambda match: f"{match[1].replace(']', '(')}{match[2]}{match[3].replace('[', ')')}",
            cleaned,
        )
    if correct := CALLED_CORRECT.fullmatch(cleaned):
        cleaned = f"({correct[1] or correct[2]})"
    elif several := _CALLED_CORRECT_TOGETHER.fullmatch(cleaned):
        cleaned = several[1]
    elif _LETTERS_IN_BRACKETS.fullmatch(cleaned):
        cleaned = ", ".join(f"({letter})" for letter in re.findall("[A-H]", cleaned))
    return _read(cleaned, 0, in_text)


def _conclusion_of(text: str) -> str:
    """The answer itself, without the words that lead to it and the steps of a derivation."""
    # \text{Answer: } 5
    if label := _LABEL_IN_TEXT.match(text):
        text = f"{label[1]} {text[label.end() :]}"
    for _ in range(_MAX_LEAD_INS):
        lead_in = _LEAD_IN.match(text)
        # "The possible answer: 5" leaves it open, and a lead-in before nothing is the answer itself
        if lead_in is None or lead_in.end() == len(text) or NO_STATEMENT.search(lead_in[0]):
            break
        text = clean(text[lead_in.end() :])
    for word, pattern in (("for", _FOR_ALL), ("constant", _OF_CONSTANT)):
        said = pattern.fullmatch(text) if word in text else None
        if said and said["name"] in re.sub(r"\\[A-Za-z]+", "", said["formula"]):
            text = said["formula"]
    # of a derivation the last step: x - 4 = 15 \Rightarrow x = 19; p \Rightarrow q derives nothing
    if r"\Rightarrow" in text:
        steps, _ = split(text, _CONCLUSION)
        if len(steps) > 1 and all(map(_RELATION.search, steps)):
            return steps[-1].strip()
    return text


# commands of the structures below, beside those that the parser of expressions knows
_STRUCTURE = """
    leq geq neq approx equiv in simeq cong sim text lor land cup cap setminus emptyset
    begin end hline mathbb infty
"""
_KNOWN_COMMANDS = KNOWN.union(_STRUCTURE.split())


def why_unreadable(text: str) -> str:
    r"""What keeps a text from being read, in words.

    >>> why_unreadable(r"\frac{1}{"), why_unreadable(r"\foo{3}"), why_unreadable("3 apples are left, I think")
    ('a bracket is not closed', 'unknown: \\foo', 'words that are no value: apples, are, left, think')
    >>> why_unreadable("3,75")
    'its comma may be a decimal one: write a point, or a space behind the comma of a list'
    """
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS:,} characters"
    cleaned = clean(text)
    if with_decimal_comma(tidy(text)):
        return (
            "its comma may be a decimal one: write a point, or a space behind the comma of a list"
        )
    if not split(cleaned, _AND)[0]:
        return "a bracket is not closed"
    # dicts rather than sets: each once, in the order of the text
    commands = dict.fromkeys(re.findall(r"\\[A-Za-z]+", cleaned))
    unknown = [command for command in commands if command[1:] not in _KNOWN_COMMANDS]
    if unknown:
        return f"unknown: {', '.join(unknown)}"
    words = dict.fromkeys(re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", tidy(text)))
    if words:
        return f"words that are no value: {', '.join(words)}"
    return "no notation that is known"


class _NoValue(Exception):
    """A text has a structure, and a part of it has no value; no other reader should try."""


def _read(text: str, depth: int, in_text: bool = False) -> Value | None:
    """The value of a cleaned text.

    With `in_text` some of it was set as text, so that its words are no variables.
    """
    text = text.strip()
    if not text or depth > _MAX_DEPTH:
        return None
    value = _simple(tidy(text), depth, in_text or r"\text{" in text)
    if value is not None:
        return value
    # braces around all of it only group: {1, 2}
    while text.startswith("{") and text.endswith("}") and closed_at(text) == len(text):
        text = text[1:-1].strip()
    try:
        for reader in _READERS:
            value = reader(text, depth)
            if value is not None:
                return value
    except _NoValue:
        pass
    return None


def _read_part(text: str, depth: int) -> Value:
    """The value of a part of a text that is read at this depth. Raises _NoValue."""
    value = _read(text, depth + 1)
    if value is None:
        raise _NoValue
    return value


def _read_parts(texts: Items[str], depth: int) -> tuple[Value, ...]:
    """The values of all parts of a text that is read at this depth. Raises _NoValue, also if there are
    too many.
    """
    if len(texts) > _MAX_PARTS:
        raise _NoValue
    return tuple([_read_part(text, depth) for text in texts])


# --- numbers, choices and words

_INFINITY = re.compile(
    r"(?P<minus>-|(?:minus|negative)\s)?(?:\+|(?:plus|positive)\s)?\s*(?:\\infty|infinity)",
    re.IGNORECASE,
)

# A, (A), A), A. and A:
_CHOICE = re.compile(r"(\(\s*)?([A-Za-z])(\s*\)|[.:)])?")
# a choice with its text behind it, up to where the text begins. "A and B", "A, B" and "A/C" are
# several choices, of which naming the right one earns nothing.
_CHOICE_AND_TEXT = re.compile(
    # (B) 12
    r"(?:\(([A-H])\)\s*"
    # B. 12
    r"|([A-H])(?:[.):]\s+"
    # B - Thursday
    r"|\s+-\s+(?=[A-Z][a-z])"
    # B (Thursday)
    r"|\s+(?=\((?:[A-Z][a-z]|[a-z]{3}|\d).*\)$))"
    # (b) oscillates
    r"|\(([a-h])\)\s+(?=[A-Za-z]{3}))"
    r"(?=[^\s,;/|&])(?!\(?(?:and|or)\b)"
)

# _{\text{two}}
_BASES = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|sixteen"
# what is compared as it is written
_AS_WRITTEN = re.compile(
    # a number in a base: 1A_{16}, (1A)_{16}, 1A_{\text{sixteen}}, 1A in base 16
    r"(?P<opening>\()?(?P<digits>-?[0-9A-F]+)(?(opening)\))"
    rf"(?:_\{{?\s?\(?(?:base )?|\s\(?(?:in )?base )(?P<base>\d+|{_BASES})\s?[)}}]{{0,2}}"
    # 0x1A
    r"|0x[0-9A-Fa-f]+"
    # 2024-01-15
    r"|\d{4}-\d\d-\d\d"
    # 4:30 p.m., 4 p.m.
    r"|0?(?P<time>\d{1,2}(?::\d\d)?\s*[AaPp]\.?\s?[Mm]\.?)"
    # 00:06 and 3:05, which are no ratios
    r"|0(?P<early>\d:[0-5]\d)|\d{1,2}:0\d"
)
# -2 3 5, but 1 234 567 is one number
_SPACED = re.compile(
    r"(?![+-]?\d{1,3}(?: \d{3})+\Z)-?\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?)+",
)
_WORDS = re.compile(
    # an ellipse, blue-green, Ann's house
    r"(?:an? )?[A-Za-z]{2,}(?:[ '-]+[A-Za-z]+)*"
    # 众数
    r"|[^\x00-\x7f]{1,20}"
    # April 15
    r"|[A-Z][a-z]{2,} \d{1,4}"
)
# ad - bc, which is no hyphenated word as blue-green and no-go are
_DIFFERENCE = re.compile(r"(?!no|so|co|go|ex)[a-z]{1,2}(?: ?- ?[a-z]{1,2})+")
# "not a square", "even or odd"
_NO_SINGLE_ANSWER = re.compile(r"(?i:\A(?:not|either|neither) )|\b(?:or|and)\b")
# words of two to four letters that are no products of variables
_SHORT_WORDS = frozenset(
    ("yes", "no", "on", "in", "up", "odd", "even", "true", "false", "all", "none")
)
# no real solutions, there is no solution, the system has no solution
_NO_SOLUTION = re.compile(
    r"(?:there (?:is|are) |(?:(?:the|this) )?(?:given )?(?:equation|inequality|system(?: of \w+)?) has )?"
    r"no (?:real )?solutions?(?: exists?)?"
)
# words -> those that stand for them
_SYNONYMS = {
    "无解": "no solution",
    "dne": "does not exist",
    "doesn't exist": "does not exist",
    "undefined": "does not exist",
    "not defined": "does not exist",
    "不存在": "does not exist",
    "infinite": "infinitely many",
    "infinitely many solutions": "infinitely many",
    "infinite number of solutions": "infinitely many",
    "true": "yes",
    "false": "no",
    "not possible": "impossible",
    "cannot be done": "impossible",
}


def _simple(text: str, depth: int, in_text: bool) -> Value | None:
    """A number with its unit, several with spaces between them, infinity, a choice, or words."""
    if not text:
        return None
    if number := read_number(text, in_text):
        return number
    if _SPACED.fullmatch(text):
        return Sequence(tuple(Number(Fraction(part)) for part in text.split()[:_MAX_PARTS]))
    if infinity := _INFINITY.fullmatch(text):
        return Infinity(-1 if infinity["minus"] else 1)
    if choice := _read_choice(text, depth, in_text):
        return choice
    if as_written := _AS_WRITTEN.fullmatch(text):
        # 1A_{16} and 1a_16, 4:30 p.m. and 04:30 PM, 4 p.m. and 4:00 pm
        written = as_written["time"] or as_written["early"] or text
        if base := as_written["base"]:
            in_digits = base if base.isdigit() else number_in_words(base)
            written = f"{as_written['digits']}_{in_digits}"
        return Words(re.sub(r"[{}. ]|:00(?=\s*[ap])", "", written.lower()), True)
    return _read_words(text, in_text)


def _read_choice(text: str, depth: int, in_text: bool) -> Choice | None:
    letter = _CHOICE.fullmatch(text)
    # an opening parenthesis has to be closed
    if letter and (letter[3] or not letter[1]):
        marked = bool(letter[1] or letter[3] or in_text)
        return Choice(letter[2], marked)

    # within a list, "(A) and more" is one of several answers
    start = _CHOICE_AND_TEXT.match(text)
    if start is None or depth > 0:
        return None
    content = text[start.end() :]
    if content[0] == "(" and closed_at(content) == len(content) > 3:
        content = content[1:-1]
    return Choice(start[1] or start[2] or start[3], True, content, _read(content, 1))


def _read_words(text: str, in_text: bool) -> Number | Words | None:
    if not _WORDS.fullmatch(text) or (not in_text and _DIFFERENCE.fullmatch(text)):
        return None
    number = number_in_words(text)
    if number is not None:
        return Number(Fraction(number))
    if _NO_SINGLE_ANSWER.search(text):
        return None

    words = text.lower().split()
    if words[0] in ("a", "an", "the") and len(words) > 1:
        words = words[1:]
    joined = " ".join(words)
    joined = "no solution" if _NO_SOLUTION.fullmatch(joined) else _SYNONYMS.get(joined, joined)
    is_short = joined.partition(" ")[0] in _SHORT_WORDS
    marked = in_text or len(text) > 3 or not text.isascii() or is_short
    # Unmarked, two or three letters may also be a product of variables: mM, which is not m^2.
    return Words(joined if marked else text, marked)


# --- readers of structure: each returns a value, or None if the text is something else. Where a part
# that has to be a value is none, it raises _NoValue.

# integers that a solution runs over, at the end of a text; \text{...} may stand around any part
_LETTER = r"[a-zA-Z]"
_FOR_INTEGERS = re.compile(
    r"(?<=[^\s,;(])[\s,;(]*(?:\\text\{[\s,(]*)?"
    r"(?:(?:for|where|with)\s+)?(?:(?:any|all|every|some|each)\s+)?"
    # for any integer n
    rf"(?:integers?\s*\}}?\s*(?P<a>{_LETTER})(?:\s*\}})?"
    # n \in \mathbb{Z}
    rf"|\}}?\s*(?P<b>{_LETTER})\s*(?:\\in|∈)\s*(?:\\mathbb\s*\{{?\s*Z\s*\}}?|\\text\{{Z\}}|Z)"
    # where n is an integer
    rf"|\}}?\s*(?P<c>{_LETTER})\s*(?:\\text\{{)?\s*(?:is|are)?\s*(?:an?y?\s+)?integers?)"
    r"\s*\}?\s*\)?"
)


def _family(text: str, depth: int) -> Value | None:
    r"""`k\pi + 1, k \in \mathbb{Z}`."""
    if depth > 1 or not ("nteger" in text or "Z" in text):
        return None
    for match in _FOR_INTEGERS.finditer(text):
        if match.end() == len(text) and match.start() > 0:
            parameter = match["a"] or match["b"] or match["c"]
            return Family(parameter, _read_part(text[: match.start()], depth))
    return None


# x \equiv 5 \pmod{7}, 5 (mod 7)
_CONGRUENCE = re.compile(
    r"(?:(?P<name>[A-Za-z])\s*\\equiv)?(?P<value>[^=<>]+?)(?:\\pmod|\(\s*\\?mod|(?(name)\\b?mod|(?!)))"
    r"\s*+\{?\s*+(?P<modulus>\d{1,6})\s*+\}?\s*+\)?"
)


def _congruence(text: str, depth: int) -> Value | None:
    r"""`x \equiv 5 \pmod 7`, which is `x = 7k + 5, k \in \mathbb{Z}`."""
    match = _CONGRUENCE.fullmatch(text) if "mod" in text else None
    if match is None:
        return None
    value = _read_part(match["value"], depth)
    solutions: list[Value] = []
    for item in _flat((value,)):
        tree = tree_of(item)
        if tree is None or not is_constant(item):
            return None
        multiple = ("*", ("number", Fraction(match["modulus"])), ("symbol", "k"))
        solution: Value = Expression(("+", tree, multiple))
        if match["name"]:
            solution = Relation(("=",), (Expression(("symbol", match["name"])), solution))
        solutions.append(solution)
    return Family("k", Alternatives(tuple(solutions)))


# "or", also as text, in Chinese or as the sign of logic
_OR = re.compile(
    r"\s+(?:or|OR)\s+|\s*\\text\{\s*,?\s*(?:or|或者?)\s*\}\s*|\\lor(?![A-Za-z])|,?\s*或者?"
)


def _alternatives(text: str, depth: int) -> Value | None:
    """`a or b`: the union of two regions, or a set of values."""
    parts, _ = split(text, _OR)
    if len(parts) < 2:
        return None
    values = _read_parts(parts, depth)
    conditions = _conditions(values)
    if conditions is None:
        return Alternatives(_named_as_first(_flat(values)))
    # `x > 1 or y < 0` is no set of numbers
    if len(conditions) > 1:
        raise _NoValue
    ((variable, regions),) = conditions.items()
    return Region(variable, functools.reduce(RealSet.union, regions))


def _conditions(values: tuple[Value, ...]) -> dict[str, list[RealSet]] | None:
    """For each variable, the numbers for which each condition on it holds. Returns None if a value is
    no condition.
    """
    conditions: dict[str, list[RealSet]] = {}
    for value in values:
        region = as_region(value) if isinstance(value, (Region, Relation)) else None
        if region is None:
            return None
        conditions.setdefault(region.variable, []).append(region.numbers)
    return conditions


# "1, 2", "1; 2", "1, and 2", "1 and 2", also with the words as text, in Chinese or as the sign of logic
_AND = re.compile(
    r"[,;]\s*(?:\\text\{\s*(?:and|or)\s*\}|and\s|or\s)?|\s+and\s+"
    r"|\\text\{\s*,?\s*(?:and|[和与且])\s*\}|\\land(?![A-Za-z])|\s*[和与且]"
)
# in a calculation the commas of 1,000 + 2,000 are no separators, but those of (1,200) are
_CALCULATION = re.compile(r"[=+*/]|\\times|\\cdot|\d\s*-\s*\d")
_IN_THOUSANDS = re.compile(r"(?<![\d.,(\[{])\d{1,3}(?:,\d{3})+(?![\d,)\]}])")


# 2n - 1 (n \geq 1), 2n - 1 for n \in \mathbb{N}
_CONDITION = r"[A-Za-z]\s*(?:\\in(?![A-Za-z])|\\[gl]eq|\\neq|[<>])[^()]*"
_WITH_CONDITION = re.compile(
    rf"(.*[^\s,;(])\s*\(\s*({_CONDITION})\)"
    rf"|(.*[^\s,;(])[\s,;]*(?:\b(?:{BEFORE_CONDITION})\b|\\text\s*\{{[\s,]*(?:{BEFORE_CONDITION})\s*\}})"
    rf"\s*({_CONDITION})"
)
_MAY_HAVE_CONDITION = re.compile(rf"\)\Z|\b(?:{BEFORE_CONDITION})\b")


def _list(text: str, depth: int) -> Value | None:
    """`1, 2 and 3`; conditions such as `x > 1 and x < 5` are one region."""
    kind = Listing
    if _MAY_HAVE_CONDITION.search(text):
        written = _WITH_CONDITION.fullmatch(text)
        # `x (x > 0), -x (x < 0)` has a condition for each value
        if written and len(split(written[1] or written[3], _AND)[0]) == 1:
            kind = Restricted
            text = f"{written[1] or written[3]}, {written[2] or written[4]}"
    if "," in text and _CALCULATION.search(text):
        text = _IN_THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    parts, _ = split(text, _AND)
    if len(parts) < 2:
        return None
    # "1, 2,"
    if not parts[-1] and len(parts) > 2:
        parts.pop()
    items = _read_parts(parts, depth)

    conditions = _conditions(items)
    if conditions is not None and len(conditions) == 1:
        ((variable, regions),) = conditions.items()
        return Region(variable, functools.reduce(RealSet.intersection, regions))

    pieces = [Tuple(item.items) for item in items if isinstance(item, Restricted)]
    if len(pieces) == len(items):
        return Cases(tuple(pieces))
    # of `x (x > 0), 5` it is open where the second value holds
    if pieces:
        raise _NoValue
    return kind(_named_as_first(_flat(items)))


def _named_as_first(items: tuple[Value, ...]) -> tuple[Value, ...]:
    """`x = 1, 2` as `x = 1, x = 2`; in `x = 1, y = 2` each value has a name of its own."""
    # the last equation may be followed by values without a name: `x = 1, x = 2, 4`
    for index, item in enumerate(items):
        match item:
            case Relation(("=",), (name, _)):
                others = items[index + 1 :]
                if not any(isinstance(other, (Relation, Region)) for other in others):
                    named = [Relation(("=",), (name, other)) for other in others]
                    return (*items[: index + 1], *named)
            case _:
                break
    return items


def _flat(items: tuple[Value, ...]) -> tuple[Value, ...]:
    r"""The items, with the two values of a `\pm` as two items."""
    flat: list[Value] = []
    for item in items:
        if isinstance(item, Listing):
            flat.extend(item.items)
        else:
            flat.append(item)
    return tuple(flat)


# --- relations: equations, inequalities and memberships

_RELATION = re.compile(
    r"\\(?:leq|geq|neq|approx|equiv|in|simeq|cong|sim)(?![A-Za-z])|<=|>=|!=|==|[<>=]"
)
_OPERATORS = {operator: operator for operator in ("<", "<=", ">", ">=", "=", "!=")}
_OPERATORS |= {
    r"\leq": "<=",
    r"\geq": ">=",
    r"\neq": "!=",
    r"\in": "in",
    r"\equiv": "==",
    "==": "=",
}
_OPERATORS |= dict.fromkeys((r"\approx", r"\simeq", r"\cong", r"\sim"), "~")
# \text{Profit and Loss}, x value
_NAME_IN_WORDS = re.compile(r"\\text\{[A-Za-z ]+\}|[A-Za-z]+(?: [A-Za-z]+)+")
# A \cap B, (\complement_U A) \cup B: what sets are called
_ONE_SET = r"(?:\\complement\s*_\s*\{?\s*[A-Z]\s*\}?\s*)?[A-Z](?:'|\s*\^\s*\{?\s*c\s*\}?)?"
_ONE_SET = rf"(?:{_ONE_SET}|\(\s*{_ONE_SET}\s*\))"
_NAME_OF_SET = re.compile(
    rf"(?=.*\\(?:c|setminus)){_ONE_SET}(?:\s*\\(?:cup|cap|setminus)\s*{_ONE_SET})*"
)


# y(x), x(t)
_VALUE_OF_FUNCTION = re.compile(r"([uvxyz])\s*\(\s*(?!\1)([a-z])\s*\)")


# P(X \geq 2), P(A | B), P(A \cap B), E(X + Y), \max f(x): what has a value, whatever stands in it
_NAME_OF_VALUE = re.compile(
    r"(?:P|E|D|Var|Pr|\\Pr|\\text\{\s*(?:Var|Pr|P|E)\s*\}|\\mathbb\s*\{?\s*[PE]\s*\}?)\s*(?P<of>[(\[].*)"
    r"|\\(?:max|min)(?:\s*[A-Za-z](?:\s*\(\s*[a-z]\s*\))?)?"
    # |A \cup B|
    r"|\|\s*[A-Z]\s*\\(?:cup|cap|setminus)\s*[A-Z]\s*\|"
    # \int x^2 dx, which says the question again, and no more than that
    r"|\\i{1,3}nt(?![A-Za-z])(?:(?!(?<![A-Za-z\\])d\s*[A-Za-z]).)*(?:(?<![A-Za-z\\])d\s*[A-Za-z]\s*)+"
)


def _is_name(text: str) -> bool:
    """Whether the left side of an equation is a name that is no expression: of a set, how many it has, a
    probability, a largest value or an integral.
    """
    if _NAME_OF_SET.fullmatch(text):
        return True
    name = _NAME_OF_VALUE.fullmatch(text)
    return name is not None and (not name["of"] or closed_at(name["of"]) == len(name["of"]))


def _relation(text: str, depth: int) -> Value | None:
    """`x = 5`, `1 < x <= 2`, `A = (1, 2)`."""
    parts, signs = split(text, _RELATION)
    if len(parts) < 2 or not parts[0]:
        return None
    sides: list[Value] = []
    for part in parts:
        side = _read(part, depth + 1)
        # y(x) = x + 1: elsewhere y(x) may be a product
        if not sides and (function := _VALUE_OF_FUNCTION.fullmatch(part)):
            side = Expression(("call", function[1], ("symbol", function[2])))
        # \text{Profit and Loss} = 25
        is_name = _NAME_IN_WORDS.fullmatch(part) or (not sides and _is_name(part))
        if is_name and not isinstance(side, Expression):
            side = Words(plain(part).lower(), True)
        # `wrong answer = 5` says nothing of the right one
        if side is None or (isinstance(side, Words) and NO_STATEMENT.search(part)):
            raise _NoValue
        sides.append(side)

    operators = tuple(map(_OPERATORS.__getitem__, signs))
    relation = Relation(operators, tuple(sides))
    match relation:
        # `x = \pm 2` is `x = 2, x = -2`
        case Relation(("=",), (left, Listing() as right)):
            return type(right)(tuple([Relation(("=",), (left, item)) for item in right.items]))
    return solved_region(relation) or relation


# --- sets and brackets

_SETS = dict.fromkeys(
    (r"\mathbb{R}", r"\mathbb R", r"\text{all real numbers}", "all real numbers"), REALS
)
_SETS |= dict.fromkeys((r"\emptyset", r"\{\}", r"\{ \}"), EMPTY)
# \text{all real numbers except } x = 4
_EXCEPT = re.compile(r"(?:\\text\{)?\s*all real numbers except(?: for)?\s*\}?\s*(?:x\s*=)?\s*(.+)")
# also U, as the union is typed: (-\infty, 1) U (2, \infty)
_SET_OPERATOR = re.compile(r"\\(?:cup|cap|setminus)(?![A-Za-z])|(?<![A-Za-z\\])U(?![A-Za-z])")
_SET_OPERATIONS = {r"\cap": RealSet.intersection, r"\setminus": RealSet.without}


def _set(text: str, depth: int) -> Value | None:
    r"""`\mathbb{R}`, `(1, 2) \cup \{5\}`."""
    if text in _SETS:
        return Region("", _SETS[text])
    exception = _EXCEPT.fullmatch(text)
    if exception:
        excluded = _read_region(r"\{" + exception[1] + r"\}", depth)
        if excluded is None:
            return None
        return Region("", REALS.without(excluded.numbers))

    parts, signs = split(text, _SET_OPERATOR)
    if len(parts) < 2:
        return None
    regions: list[Region] = []
    for part in parts:
        region = _read_region(part, depth)
        if region is None:
            return None
        regions.append(region)

    # from left to right, as people write them
    result = regions[0]
    for sign, region in zip(signs, regions[1:], strict=True):
        combine = _SET_OPERATIONS.get(sign, RealSet.union)
        numbers = combine(result.numbers, region.numbers)
        result = Region(result.variable or region.variable, numbers)
    return result


def _read_region(text: str, depth: int) -> Region | None:
    value = _read(text, depth + 1)
    return None if value is None else as_region(value)


_BRACKETS = (
    ("(", ")"),
    ("(", "]"),
    ("[", ")"),
    ("[", "]"),
    (r"\{", r"\}"),
    ("{", "}"),
    (r"\langle", r"\rangle"),
)
# { x | x > 0 }, { x : x > 0 }
_SUCH_THAT = re.compile(r"\||:")
_SEPARATOR = re.compile(r"[,;]|\\text\{\s*and\s*\}")


def _bracketed(text: str, depth: int) -> Value | None:
    r"""`(1, 2)`, `[1, 2)`, `\{1, 2\}`, `\langle 1, 2 \rangle`."""
    for left, right in _BRACKETS:
        if text.startswith(left) and text.endswith(right):
            break
    else:
        return None
    # (1)(2)
    if closed_at(text) != len(text):
        return None
    inside = text[len(left) : -len(right)].strip()
    if left in (r"\{", "{"):
        return _in_braces(left, inside, depth)

    parts, _ = split(inside, _SEPARATOR)
    if not parts:
        return None
    if len(parts) == 1:
        # the condition of `(1 < x \land x < 2) \lor ...`; others, such as `(x + 1)`, are expressions
        if left == "(" and _RELATION.search(inside):
            value = _read(inside, depth + 1)
            return value if isinstance(value, Region) else None
        return None
    items = _read_parts(parts, depth)
    if left == r"\langle":
        return Vector(items)
    return Tuple(items, closed_low=left == "[", closed_high=right == "]")


def _in_braces(left: str, inside: str, depth: int) -> Value | None:
    r"""`\{1, 2\}`, `\{5\}`, `\{x \mid x > 0\}`; braces without a backslash around one value only group."""
    builder, _ = split(inside, _SUCH_THAT)
    if len(builder) == 2:
        # of { x | x > 0 } the condition has to be about the name
        name, condition = builder
        region = _read_region(condition, depth)
        variable = name.partition(r"\in")[0].strip()
        return region if region and region.variable in ("", variable) else None
    parts, _ = split(inside, _SEPARATOR)
    if not parts or (len(parts) == 1 and left == "{"):
        return None
    return Set(_flat(_read_parts(parts, depth)))


# --- matrices and cases

# \begin{pmatrix} ... \end{pmatrix}, \begin{array}{cc} ... \end{array}
_MATRIX = re.compile(
    r"\\begin\s*\{([pbvBV]?matrix|smallmatrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}",
    re.DOTALL,
)
# each matrix of a sum, with its brackets
_ANY_MATRIX = re.compile(
    r"[\[(]?\s*\\begin\s*\{([pb]?matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*?)\\end\s*\{\1\}\s*[\])]?",
    re.DOTALL,
)
_CASES = re.compile(
    r"(?P<brace>\\\{)?\s*\\begin\s*\{(?P<name>cases|array|aligned|align\*?)\}\s*(?:\{[lcr|\s]*\})?"
    r"(?P<rows>.*)\\end\s*\{(?P=name)\}\s*\.?",
    re.DOTALL,
)
# brackets that are written around an array
_AROUND_MATRIX = {"[": "]", "(": ")", "|": "|"}
# (1, 2)^T, also ^{\top}: a row that is written for a column
_TRANSPOSED = re.compile(r"(.*[)\]}])\s*\^\s*\{?\s*(?:T|\\text\{\s*T\s*\}|\\top|\\intercal)\s*\}?")
# cells of cases: 1 & x > 0, 1 \text{ if } x > 0
_CELL = re.compile(r"(?<!\\)&|\\text\{\s*(?:if|for|when)\s*\}")
# `\\`, `\\[2pt]`, and `\-3` where one backslash of `\\-3` got lost
_ROW = re.compile(r"\\\\\s*(?:\[[^\]]*\])?|\\(?=[-\d])")
# x &= 5, x =& 5, where it separates no cells
_ALIGNMENT = re.compile(r"(?<!\\)&\s*(?==)|(?<==)\s*&")
_MAX_MATRICES = 8


def _matrix(text: str, depth: int) -> Value | None:
    r"""A matrix, with a factor or in a sum: `2 \begin{pmatrix} 1 & 2 \end{pmatrix}`."""
    start = text.find("\\begin")
    if start < 0:
        return None
    before = text[:start].strip()
    after = text[start:].strip()
    has_bars = False
    opening = before[-1:]
    if opening in _AROUND_MATRIX and after.endswith(_AROUND_MATRIX[opening]):
        before = before[:-1]
        after = after[:-1].strip()
        has_bars = opening == "|"

    match = _MATRIX.fullmatch(after)
    if match is None or "\\begin" in match[2]:
        return _combination(text)
    has_bars = has_bars or match[1] in ("vmatrix", "Vmatrix")
    rows = _rows(match[2])
    if before:
        # of a determinant only one row is multiplied by its factor
        for row in rows[:1] if has_bars else rows:
            row[:] = [f"{before} \\cdot ({cell})" for cell in row]
    return Matrix(has_bars, tuple([_read_parts(row, depth) for row in rows]))


def _transposed(text: str, depth: int) -> Value | None:
    """`(1, 2)^T` and `\\begin{pmatrix} 1 & 2 \\end{pmatrix}^T`."""
    match = _TRANSPOSED.fullmatch(text) if "^" in text else None
    if match is None:
        return None
    value = _read(match[1], depth + 1)
    if isinstance(value, Matrix) and len(set(map(len, value.rows))) == 1:
        return value._replace(rows=tuple(zip(*value.rows, strict=True)))
    if isinstance(value, Tuple) and value.closed_low == value.closed_high:
        return Matrix(False, tuple([(item,) for item in value.items]))
    return None


def _rows(text: str) -> list[list[str]]:
    """The cells of each row of a matrix. Raises _NoValue if there is none."""
    text = text.replace(r"\hline", "")
    rows = [row.split("&") for row in _ROW.split(text) if row.strip()]
    if not rows:
        raise _NoValue
    return rows


def _combination(text: str) -> Value | None:
    """A sum of matrices with factors, entry by entry."""
    matches = list(_ANY_MATRIX.finditer(text))
    matrices = [_rows(match[2]) for match in matches]
    sizes = {tuple(map(len, rows)) for rows in matrices}
    if len(sizes) != 1 or len(matrices) > _MAX_MATRICES:
        return None
    # what stands before, between and behind the matrices; a product of matrices is no sum
    pieces = _ANY_MATRIX.sub("\0", text).split("\0")
    if any(not re.search(r"[+-]", piece) for piece in pieces[1:-1]):
        return None
    rows: list[tuple[Value, ...]] = []
    for row_number, length in enumerate(sizes.pop()):
        row: list[Value] = []
        for column in range(length):
            # of the terms 1 and x between the pieces 2, +3 and nothing: 2(1)+3(x)
            entry = pieces[0]
            for matrix, piece in zip(matrices, pieces[1:], strict=True):
                entry += f"({matrix[row_number][column]}){piece}"
            tree = read_expression(entry)
            if tree is None:
                return None
            row.append(Expression(tree))
        rows.append(tuple(row))
    return Matrix(False, tuple(rows))


def _cases(text: str, depth: int) -> Value | None:
    r"""`\begin{cases} 1 & x > 0 \\ 0 & x \leq 0 \end{cases}`, or a system of equations."""
    match = _CASES.fullmatch(text)
    if match is None or "\\begin" in match["rows"]:
        return None
    # an array is a matrix, other than with a brace on its left alone
    if match["name"] == "array" and not match["brace"]:
        return None
    rows: list[str] = []
    for row in _ROW.split(_ALIGNMENT.sub(" ", match["rows"])):
        # x &= 40 + 2 \\ &= 42: the row goes on with the one above
        if rows and row.lstrip().startswith("="):
            rows[-1] += row
        elif row.strip():
            rows.append(row)
    items: list[Value] = []
    for row in rows:
        cells: list[str] = []
        for cell in _CELL.split(row):
            if cell.strip(" ,"):
                cells.append(re.sub(r"^(?:if|for|when)\s", "", cell.strip().rstrip(",")))
        values = _read_parts(cells, depth)
        # a cell alone is an equation of a system
        items.append(values[0] if len(values) == 1 else Tuple(values))
    # an equation alone, such as a calculation over several lines
    if len(items) == 1 and isinstance(items[0], Relation):
        return items[0]
    return Cases(_without_otherwise(items)) if items else None


_OTHERWISE = ("otherwise", "else", "其他", "其它")


def _without_otherwise(rows: list[Value]) -> tuple[Value, ...]:
    """The rows with the numbers that "otherwise" stands for, where the conditions of the others are on one
    variable.
    """
    *others, last = rows
    match last:
        case Tuple((value, Words(text))) if text in _OTHERWISE:
            pass
        case _:
            return tuple(rows)
    covered = RealSet.of()
    names = set()
    for row in others:
        region = as_region(row.items[-1]) if isinstance(row, Tuple) else None
        if region is None:
            return tuple(rows)
        names.add(region.variable)
        covered = covered.union(region.numbers)
    if len(names) != 1:
        return tuple(rows)
    return (*others, Tuple((value, Region(names.pop(), REALS.without(covered)))))


# --- approximations and ratios

_ABOUT = re.compile(
    # \approx 5, \sim 5
    r"\\approx(?![A-Za-z])|\\sim(?![A-Za-z])"
    # about 5, \text{about } 5
    r"|(?:\\text\{\s*)?(?:about|approximately|approx\.?|roughly)(?:\s*\}|\s)",
    re.IGNORECASE,
)
_COLON = re.compile(":")


def _approximate(text: str, depth: int) -> Value | None:
    """`about 5`."""
    match = _ABOUT.match(text)
    if match is None:
        return None
    value = _read(text[match.end() :], depth + 1)
    if not isinstance(value, Number):
        raise _NoValue
    return Approximately(value)


def _ratio(text: str, depth: int) -> Value | None:
    """`1:2`."""
    parts, _ = split(text, _COLON)
    if len(parts) < 2:
        return None
    values = _read_parts(parts, depth)
    if len(values) == 2:
        first, second = map(as_region, values)
        # `x > 2: (2, \infty)` says the same twice
        if first is not None and second is not None:
            if not first.numbers.equals(second.numbers):
                raise _NoValue
            return first
    return Ratio(values)


# --- expressions, also with a unit behind them


def _formula(text: str, depth: int) -> Value | None:
    r"""`2\sqrt{3}`, `6\pi \text{ cm}`, `1 \pm \sqrt{2}`."""
    for rest, unit, product in units_at_end(text):
        inner = _read(rest, depth + 1)
        if isinstance(inner, Number):
            # one number has one unit
            return None if inner.unit else inner._replace(unit=unit, product=product)
        if inner is not None and not isinstance(inner, (Words, Choice, Quantity)):
            return Quantity(inner, unit, product)
    tree = read_expression(text)
    if tree is None:
        return None
    if "pm" in text or r"\mp" in text:
        both = []
        for sign in (Fraction(1), Fraction(-1)):
            signed = replaced(tree, ("pm", 1), ("number", sign))
            both.append(Expression(replaced(signed, ("pm", -1), ("number", -sign))))
        return Alternatives(tuple(both))
    value = constant_value(tree)
    # a rational constant is compared faster as one number
    if isinstance(value, Fraction) and tree[0] not in ("symbol", "call"):
        return Expression(("number", value))
    return Expression(tree)


# In this order: what binds its parts least comes first. `x = 1, 2` is a list of relations.
_READERS = (
    _family,
    _congruence,
    _alternatives,
    _list,
    _relation,
    _set,
    _bracketed,
    _cases,
    _transposed,
    _matrix,
    _approximate,
    _ratio,
    _formula,
)
