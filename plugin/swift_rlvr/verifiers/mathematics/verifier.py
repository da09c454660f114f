r"""The math verifier: is the final answer of a completion mathematically equal to the gold?

`swift_rlvr.verifiers.statements.final_statement` finds the answer. The gold is marked by answer tags,
a box or ``####``, or is the bare answer: LaTeX, plain text or a number.

An answer that is written like the gold is right, whatever it is. Otherwise both are read
(`reading.py`), all of the text or nothing, and compared (`comparison.py`): numbers and rational
functions exactly, other expressions by their values at several points (`numeric.py`). No clock, no
process and no chance takes part: a verdict depends on the two texts alone.

More lenient than math_verify: a gold with a unit accepts the bare number; ``50\%`` equals 50 and
1/2; a choice may be written A, (A), A. or \text{A}, and its text may follow. Stricter: a decimal is
exactly itself (0.333333 is not 1/3) unless it has twelve places; different units are not equal; of
an equation both sides count.
"""

import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.verifiers.answers import has_unclosed_answer, marked_answer
from swift_rlvr.verifiers.mathematics.comparison import rounds_to, same, same_converted
from swift_rlvr.verifiers.mathematics.dates import possible_dates, same_moment
from swift_rlvr.verifiers.mathematics.in_digits import in_digits
from swift_rlvr.verifiers.mathematics.lists import with_order
from swift_rlvr.verifiers.mathematics.notation import plain, tidy
from swift_rlvr.verifiers.mathematics.plain_numbers import (
    prime_factors,
    quantity_of_parts,
    read_plain,
    with_decimal_comma,
)
from swift_rlvr.verifiers.mathematics.reading import MAX_CHARS, read
from swift_rlvr.verifiers.mathematics.sentences import in_words, stated_value
from swift_rlvr.verifiers.mathematics.values import (
    Alternatives,
    Choice,
    Family,
    Number,
    Ratio,
    Value,
    Words,
    as_region,
    is_unsolved,
)
from swift_rlvr.verifiers.statements import Reader, final_statement

logger = logging.getLogger(__name__)
# longer answers earn nothing, unless they are sequences of numbers or written like the gold
MAX_ANSWER_CHARS = 1000
# a letter, and the text of its choice: C, 12 cm
_CHOICE_AND_VALUE = re.compile(r"([A-H]),\s+((?!(?:and|or|\(?[A-J])\b)\S.*)")
# a line that begins with one goes on with the line above
_OPERATORS = tuple("=+*/<>&")
# how much of a completion and of a gold the log shows
_LOGGED_CHARS = 500
# a gold of more words is a sentence; "on a Monday" is an answer
MOST_WORDS = 3
# a product of so many different primes, written out, is a factorisation; 2 \cdot 5^{10} is a number
_FACTORS = 3
# of a gold that is an int: Python refuses to write much longer ones
_MOST_BITS = 4_000
# a decimal, such as 0.5, but not the full stop of "5."
_DECIMAL = re.compile(r"\.\d")


class Reason(StrEnum):
    """Why a completion got its reward; the value is the text for logs."""

    # the gold is missing, or the answer is written in another way and the gold cannot be read, or
    # in two ways
    BAD_GOLD = "bad gold"
    # a mistake of this package: the row is not graded, and the log has the traceback
    ERROR = "error"
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # over MAX_ANSWER_CHARS characters
    UNREADABLE = "unreadable answer"
    WRONG = "wrong answer"
    CORRECT = "correct"

    @property
    def reward(self) -> float | None:
        """What a completion earns for it."""
        if self in (Reason.BAD_GOLD, Reason.ERROR):
            return None
        return 1.0 if self is Reason.CORRECT else 0.0


_RIGHT_OR_WRONG = {True: Reason.CORRECT, False: Reason.WRONG}
# 03/05/2021 is two dates, of which nobody here can say which is meant
_SAME_MOMENT = {"yes": Reason.CORRECT, "no": Reason.WRONG, "maybe": Reason.BAD_GOLD}


class Verdict(NamedTuple):
    """What a completion earns, and why."""

    # 1.0 for a right answer, 0.0 for a wrong one, None if the row cannot be graded
    reward: float | None
    reason: Reason
    answer: str | None = None  # as written
    # "answer tag", "boxed", "####", "JSON", "text" behind "The answer is", "last line" or "bare"
    marked: str | None = None
    gold: str | None = None  # taken out of its marks


class Leniency(NamedTuple):
    """What is right besides what equals the gold."""

    # for a gold that is a decimal, an exact form that rounds to it: sqrt(2) for 1.41
    rounded_gold: bool = False
    # for a gold with a unit, the same quantity in another one: 1200 cm for 12 m
    convert_units: bool = False
    # whether the order of a list counts; None: by the list alone, see `lists.in_order`
    ordered: bool | None = None


EXACT = Leniency()

# How the last line of a solution begins.
_CONCLUDES = re.compile(r"\s*(?:therefore|thus|hence|so|consequently)\b", re.IGNORECASE)


class _Gold(NamedTuple):
    """A gold answer, read once for all the completions that it grades."""

    text: str
    value: Value | None
    plain: str
    # a value within words: another sentence with it may say something else
    in_sentence: bool = False
    # 2 h 30 min: it has several units, and an answer may have any of them
    in_parts: bool = False

    @property
    def is_sentence(self) -> bool:
        """Words without a value: what is not written like them may still say the same."""
        return isinstance(self.value, Words) and len(self.value.text.split()) > MOST_WORDS


def grade(
    text: str | None,
    gold: object,
    leniency: Leniency = EXACT,
    gold_is_list: bool = False,
    form: str | None = None,
) -> Verdict:
    """Grade one completion by one gold.

    With `gold_is_list` a gold may be a list, of which any element will do; otherwise a list is a
    bad gold. A text that is a list of texts in JSON, as in Skywork-OR1, says so itself. `form` is
    where the answer stands, see `swift_rlvr.verifiers.statements`.

    >>> str(grade(r"so \\boxed{\\sqrt{8}}", r"2\\sqrt{2}").reason), str(grade(r"\\boxed{3}", "$4$").reason)
    ('correct', 'wrong answer')
    """
    # ["121", "11^2"]
    if isinstance(gold, str) and gold.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            listed = json.loads(gold)
            if listed and all(isinstance(each, str) for each in listed):
                gold, gold_is_list = listed, True
    if not isinstance(gold, (list, tuple)):
        return _grade(text, gold, leniency, form)

    golds = gold if gold_is_list else ()
    verdicts = [_grade(text, each, leniency, form) for each in golds]
    # A gold that cannot be read does no harm beside others.
    return max(
        verdicts,
        key=lambda verdict: -1.0 if verdict.reward is None else verdict.reward,
        default=Verdict(None, Reason.BAD_GOLD),
    )


def _grade(text: str | None, gold: object, leniency: Leniency, form: str | None) -> Verdict:
    """Grade one completion by one gold that is no list."""
    marked = answer = gold_text = None
    try:
        readable = read_gold(gold)
        if readable is None:
            return Verdict(None, Reason.BAD_GOLD)
        gold_text = readable.text
        statement = None if text is None else final_statement(text, form, _READER)
        if statement is not None:
            marked, answer, unit = statement
            # a unit that stands outside of the mark: $5$ cm
            if unit and isinstance(read(f"{answer} {unit}"), Number):
                answer = f"{answer} {unit}"
            # "The answer is C, 12 cm", but not "C, D"
            choice = _CHOICE_AND_VALUE.fullmatch(answer) if marked == "text" else None
            if choice:
                answer = f"({choice[1]}) {choice[2]}"
            reason = _compare(readable, answer, leniency)
        elif has_unclosed_answer(text or ""):
            reason = Reason.UNCLOSED_ANSWER
        else:
            reason = Reason.NO_ANSWER
    except Exception:
        # a mistake of this package: neither the model nor the gold is charged with it
        logger.exception(
            "please report this: completion ...%r, gold ...%r",
            (text or "")[-_LOGGED_CHARS:],
            str(gold)[-_LOGGED_CHARS:],
        )
        reason = Reason.ERROR
    return Verdict(reason.reward, reason, answer, marked, gold_text)


def read_gold(gold: object) -> _Gold | None:
    """The gold answer of a row. Returns None if it has none.

    Its text may still be unreadable: then it grades only what is written like it.

    >>> read_gold("So 3 + 4 = 7.\\n#### 7").text, read_gold(r"Hence $x = \\boxed{\\frac12}$.").text, read_gold(7).text
    ('7', '\\\\frac12', '7')
    >>> read_gold(None), read_gold("  "), read_gold("$$")
    (None, None, None)
    """
    # a missing value of a column of numbers is nan
    if isinstance(gold, bool) or (isinstance(gold, float) and not math.isfinite(gold)):
        return None
    if isinstance(gold, int) and gold.bit_length() > _MOST_BITS:
        return None
    if isinstance(gold, (int, float)):
        return _read_gold(repr(gold))
    if isinstance(gold, str):
        return _read_gold(gold)
    return None


class ReadableGold(NamedTuple):
    """A gold answer out of its marks.

    is_words: words rather than a value. in_sentence: a value that a sentence states.
    """

    text: str
    is_words: bool
    in_sentence: bool


def readable_gold(gold: object) -> ReadableGold | None:
    """The gold answer of a row where it can be read.

    >>> readable_gold(r"Hence $x = \\boxed{\\frac12}$.").text, readable_gold("on Monday").is_words
    ('\\\\frac12', True)
    >>> readable_gold("We add 5 and 3, which is 8. So Tom has 8 apples.").in_sentence, readable_gold(r"\\frac{1}{")
    (True, None)
    """
    readable = read_gold(gold)
    if readable is None or readable.value is None or readable.is_sentence:
        return None
    return ReadableGold(readable.text, in_words(readable.value), readable.in_sentence)


_NAMED_POINT = re.compile(r"[A-Z]\s?=?\s?\(")
# 1/2 (0.5), 1/2 (or 0.5)
_AGAIN_IN_BRACKETS = re.compile(r"(?P<value>[^()]+?)\s+\((?:or |i\.e\.,? |= ?)?(?P<again>[^()]+)\)")


def _written_twice(text: str) -> tuple[Number, Number] | None:
    """A number, and the one in brackets behind it, which is no factor there.

    >>> [number.value for number in _written_twice("1/2 (0.5)")], _written_twice("2(3)"), _written_twice("2 (x)")
    ([Fraction(1, 2), Fraction(1, 2)], None, None)
    """
    twice = _AGAIN_IN_BRACKETS.fullmatch(tidy(text)) if text.endswith(")") else None
    if twice is None:
        return None
    value, again = read(twice["value"]), read(twice["again"])
    return (value, again) if isinstance(value, Number) and isinstance(again, Number) else None


@lru_cache(maxsize=4096)
def _read_gold(gold: str) -> _Gold | None:
    number = read_plain(gold)
    if number is not None:
        return _Gold(gold, number, gold)
    marked = marked_answer(gold)
    text = marked[1] if marked else gold.strip()
    plain_text = plain(text) if len(text) <= MAX_CHARS else text
    if not plain_text.strip("$"):
        return None
    quantity = quantity_of_parts(tidy(text)) if len(text) <= MAX_CHARS else None
    if quantity is not None:
        return _Gold(text, quantity, plain_text, in_parts=True)
    twice = _written_twice(text)
    value = read(text)
    if twice is not None:
        value = twice[0] if same(*twice) else None
    # 0.5 or 1/2
    if isinstance(value, Alternatives) and all(same(value.items[0], each) for each in value.items):
        value = value.items[0]
    # The name of a point in a gold tells it from others: B(1, 2) is not A(1, 2).
    if in_words(value) and not _NAMED_POINT.match(text):
        value = _value_in_digits(text) or value
    if value is not None:
        return _Gold(text, value, plain_text)

    # A sentence with one number states it. Of several numbers it states the one that an answer of
    # these words would state, and a solution in words, as in Orca-Math, that of its last line.
    sentences = [(text, True), (text, False)]
    last_line = text.rsplit("\n", 1)[-1]
    if _CONCLUDES.match(last_line):
        sentences.append((last_line, True))
    for sentence, only in sentences:
        value = stated_value(sentence, only)
        if value is not None:
            # the whole of it is still right
            return _Gold(sentence, value, plain_text, in_sentence=True)
    return _Gold(text, None, plain_text)


def _is_another(stated: str, other: str) -> bool:
    """Whether what is named beside a statement is another number, or another letter beside a letter:
    "7 or 8", not "1/2 or 0.5".
    """
    value = read(other)
    if not isinstance(value, Number | Choice):
        return False
    value_before = read(stated)
    if value_before is None or (isinstance(value, Choice) and not isinstance(value_before, Choice)):
        return False
    # \sqrt{5} (2.24)
    return not same(value_before, value) and not rounds_to(value, value_before)


def _is_value(line: str) -> bool:
    """Whether a line is a value: no words, other than those of a date or a number."""
    if line[:1] in _OPERATORS:
        return False
    if not in_words(read(line)) or possible_dates(tidy(line)):
        return True
    return _value_in_digits(line) is not None


_READER = Reader(_is_another, _is_value)
# 1 234 567, but neither 1 234/5 nor 1 234 56
_IN_THOUSANDS = re.compile(r"(?<![\d.,/ ])\d{1,3}(?: \d{3})+(?![\d/]| \d)")
# 5 \pmod{7}, without its white space
_RESIDUE = re.compile(r"(\d{1,9})(?:\\pmod|\(\\?mod)\{?\d{1,9}[})]?")
# between the parts of a ratio
_TO = re.compile(r"\s+to\s+|\\text\s*\{\s*to\s*\}")


def _compare(gold: _Gold, answer: str, leniency: Leniency) -> Reason:
    """Whether an answer is right, or why not: as it is written, as a plain number, or as a value."""
    if not answer:
        return Reason.EMPTY_ANSWER
    if answer == gold.text:
        return Reason.CORRECT
    # Most answers need no more than this: read two numbers, and compare.
    number = read_plain(answer)
    if number is not None and isinstance(gold.value, Number):
        return _RIGHT_OR_WRONG[_is_right(gold.value, number, answer, leniency)]
    if len(answer) > MAX_CHARS:
        return Reason.TOO_LONG
    if plain(answer) == gold.plain:
        return Reason.CORRECT
    moment = same_moment(tidy(gold.text), tidy(answer))
    if moment is not None:
        return _SAME_MOMENT[moment]
    if gold.value is None:
        return Reason.BAD_GOLD
    # A gold that is factorised asks for the factors: their product is in the question.
    factors = prime_factors(gold.plain)
    if factors is not None and len(factors) >= _FACTORS:
        return _RIGHT_OR_WRONG[prime_factors(plain(answer)) == factors]

    if gold.in_parts:
        leniency = leniency._replace(convert_units=True)
    # one of the values that the answer may be read as
    is_readable = False
    for value in _values(gold, answer):
        if _is_right(gold.value, value, answer, leniency):
            return Reason.CORRECT
        is_readable = True
    # What may be right all the same cannot be graded: other words for a gold that is a sentence
    if gold.is_sentence:
        return Reason.BAD_GOLD
    whole = read(answer)
    if whole is not None:
        # (-2, 2) for |x| < 2: no inequality is solved here
        if as_region(whole) is not None and is_unsolved(gold.value):
            return Reason.BAD_GOLD
        # 3.75 for 3,75, which is read as two numbers
        number = with_decimal_comma(tidy(gold.text)) if "," in gold.text else None
        if number is not None and same(number, whole):
            return Reason.BAD_GOLD
    if is_readable:
        return Reason.WRONG
    return Reason.TOO_LONG if len(answer) > MAX_ANSWER_CHARS else Reason.UNREADABLE


def _values(gold: _Gold, answer: str) -> Iterator[Value]:
    """The value that an answer is, and the ones that it states in words."""
    twice = _written_twice(answer)
    if twice is not None:
        if same(*twice):
            yield twice[0]
        return
    value = read(answer)
    if value is not None:
        yield value
    # 2 hours and 30 minutes, which may be a list of two
    written = tidy(answer)
    in_one_unit = quantity_of_parts(written)
    if in_one_unit is not None:
        yield in_one_unit
    # words may be a sentence that states the value: "Tom has 5 apples"
    if in_words(value) and not gold.in_sentence:
        stated = stated_value(answer)
        if stated is not None:
            yield stated
    # 3:2 -> 3 to 2, which is a range where the gold is none
    if isinstance(gold.value, Ratio):
        ratio = read(_TO.sub(":", answer))
        if ratio is not None:
            yield ratio
    if isinstance(gold.value, Number):
        # 1234567 -> 1 234 567, which is a row of numbers where the gold is one
        if _IN_THOUSANDS.search(written):
            number = read(_IN_THOUSANDS.sub(lambda digits: digits[0].replace(" ", ""), written))
            if number is not None:
                yield number
        # 1234.5 -> 1.234,50, which is a list of two
        number = with_decimal_comma(written) if "," in written else None
        if number is not None:
            yield number
    # 5 \pmod 7 -> 5: the modulus may be left out, as a unit may be, other than in x \equiv 5 \pmod 7
    if isinstance(gold.value, Family):
        residue = _RESIDUE.fullmatch(gold.plain)
        if residue and residue[1] == plain(answer):
            yield gold.value
    # "twenty-five apples"; of x_1 = 2, x_2 = 5 the numbers are names where the gold has them
    if "_" not in gold.text:
        rewritten = _value_in_digits(answer)
        if rewritten is not None:
            yield rewritten


def _value_in_digits(text: str) -> Value | None:
    """The value of a text whose numbers or relations are written in words. Returns None for others."""
    words = tidy(text)
    written = in_digits(words)
    value = None if written == words else read(written)
    return None if in_words(value) else value


def _is_right(gold: Value, value: Value, answer: str, leniency: Leniency) -> bool:
    if leniency.ordered is not None:
        gold = with_order(gold, leniency.ordered)
    if same(gold, value):
        return True
    # 1.414 for 1.41 is another rounding, and no exact form
    if leniency.rounded_gold and not _DECIMAL.search(answer) and rounds_to(gold, value):
        return True
    return leniency.convert_units and same_converted(gold, value)
