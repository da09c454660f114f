r"""The math verifier: is the final answer of a completion mathematically equal to the gold?

`swift_rlvr.verifiers.answers.marked_answer` finds the answer. Where nothing marks it, "the answer
is $...$" and "Answer: ..." are searched for in the last 1,000 characters; without these the whole
completion may be one bare value. The gold is marked in the same ways, or is the bare answer: LaTeX,
plain text or a number.

An answer that is written like the gold is right, whatever it is. Else both are read (`reading.py`),
all of the text or nothing, and compared (`comparison.py`): numbers and rational functions exactly,
other expressions by their values at several points (`numeric.py`). No clock, no process and no
chance takes part: a verdict depends on the two texts alone.

More lenient than math_verify: a gold with a unit accepts the bare number; ``50\%`` equals 50 and
1/2; a choice may be written A, (A), A. or \text{A}, and its text may follow. Stricter: a decimal is
exactly itself (0.333333 is not 1/3) unless it has twelve places; different units are not equal; of
an equation both sides count.
"""

import logging
import math
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from swift_rlvr.verifiers.answers import (
    after_think,
    has_unclosed_answer,
    marked_answer,
    without_end_tokens,
)
from swift_rlvr.verifiers.mathematics.comparison import rounds_to, same, same_converted
from swift_rlvr.verifiers.mathematics.notation import plain
from swift_rlvr.verifiers.mathematics.reading import MAX_CHARS, read
from swift_rlvr.verifiers.mathematics.sentences import (
    answer_at_end,
    in_words,
    is_bare,
    is_heading,
    stated_value,
)
from swift_rlvr.verifiers.mathematics.values import Several, Value

logger = logging.getLogger(__name__)
# longer answers earn nothing, unless they are sequences of numbers or written like the gold
MAX_ANSWER_CHARS = 1000
_TAIL_CHARS = 1000
_DECIMAL = re.compile(r"\.\d")


class Reason(StrEnum):
    """Why a completion got its reward; the value is the text for logs."""

    # the gold is missing, or cannot be read and the answer is written in another way
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
        return None if self in (Reason.BAD_GOLD, Reason.ERROR) else float(self is Reason.CORRECT)


class MathVerdict(NamedTuple):
    """What a completion earns, and why."""

    reward: (
        float | None
    )  # 1.0 for a right answer, 0.0 for a wrong one, None where the row cannot be graded
    reason: Reason
    answer: str | None = None  # as written
    # "answer tag", "boxed", "####", "text" where it is searched for, or "bare"
    marked: str | None = None
    gold: str | None = None  # taken out of its marks


class Leniency(NamedTuple):
    """What is right besides what equals the gold."""

    rounded_gold: bool = False  # for a gold that is a decimal, a form without one that rounds to it
    convert_units: bool = False  # for a gold with a unit, the same quantity in another one


EXACT = Leniency()


class _Gold(NamedTuple):
    text: str
    value: Value | None
    plain: str
    in_sentence: bool  # a value within words: another sentence with it may say something else


def grade_all(
    texts: Sequence[str | None],
    golds: Sequence[object],
    gold_is_list: bool = False,
    leniency: Leniency = EXACT,
) -> list[MathVerdict]:
    """Grade each completion by the gold of the same index.

    With `gold_is_list` a gold may be a list, of which any element will do; else a list is a bad
    gold.

    >>> [verdict.reward for verdict in grade_all(["<answer>0.5</answer>", "so it is 2"], [r"\\frac{1}{2}", "2"])]
    [1.0, 0.0]
    """
    return [
        _grade_any(text, gold, gold_is_list, leniency)
        for text, gold in zip(texts, golds, strict=True)
    ]


def _grade_any(
    text: str | None, gold: object, gold_is_list: bool, leniency: Leniency
) -> MathVerdict:
    if not isinstance(gold, (list, tuple)):
        return grade(text, gold, leniency)
    if not gold_is_list:
        return MathVerdict(None, Reason.BAD_GOLD)
    verdicts = [grade(text, element, leniency) for element in gold] or [grade(text, None)]
    return max(verdicts, key=lambda verdict: -1.0 if verdict.reward is None else verdict.reward)


def grade(text: str | None, gold: object, leniency: Leniency = EXACT) -> MathVerdict:
    """Grade one completion by one gold.

    >>> str(grade(r"so \\boxed{\\sqrt{8}}", r"2\\sqrt{2}").reason), str(grade(r"\\boxed{3}", "$4$").reason)
    ('correct', 'wrong answer')
    """
    marked = answer = gold_text = None
    try:
        known = read_gold(gold)
        if known is None:
            return MathVerdict(None, Reason.BAD_GOLD)
        gold_text = known.text
        found = _find_answer(text)
        if isinstance(found, Reason):
            return MathVerdict(found.reward, found, gold=gold_text)
        marked, answer = found
        reason = _compare(known, answer, leniency)
    except Exception:  # a mistake of ours: neither the model nor the gold is charged with it
        logger.exception(
            "please report this: completion ...%r, gold ...%r",
            (text or "")[-500:],
            str(gold)[-500:],
        )
        reason = Reason.ERROR
    return MathVerdict(reason.reward, reason, answer, marked, gold_text)


def read_gold(gold: object) -> _Gold | None:
    """The gold answer of a row, or None where there is none. It may still turn out to be
    unreadable.

    >>> read_gold("So 3 + 4 = 7.\\n#### 7").text, read_gold(r"Hence $x = \\boxed{\\frac12}$.").text, read_gold(7).text
    ('7', '\\\\frac12', '7')
    >>> read_gold(None), read_gold("  "), read_gold("$$")
    (None, None, None)
    """
    if isinstance(gold, bool) or (isinstance(gold, float) and not math.isfinite(gold)):
        return None
    text = repr(gold) if isinstance(gold, (int, float)) else gold
    return _read_gold(text) if isinstance(text, str) else None


def readable_gold(gold: object) -> tuple[str, bool] | None:
    """The gold answer of a row, out of its marks, where it can be read, and whether it is words
    rather than a value.

    >>> readable_gold(r"Hence $x = \\boxed{\\frac12}$."), readable_gold("on Monday"), readable_gold(r"\\frac{1}{")
    (('\\\\frac12', False), ('on Monday', True), None)
    """
    known = read_gold(gold)
    return None if known is None or known.value is None else (known.text, in_words(known.value))


@lru_cache(maxsize=4096)
def _read_gold(gold: str) -> _Gold | None:
    _, text = marked_answer(gold) or ("", gold.strip())
    plain_text = plain(text) if len(text) <= MAX_CHARS else text
    if not plain_text.strip("$"):
        return None
    value = read(text)
    stated = stated_value(text, only=True) if value is None else None
    return _Gold(text, value or stated, plain_text, stated is not None)


def _find_answer(text: str | None) -> Reason | tuple[str, str]:
    """How a completion marks its answer, and the answer; or why there is none."""
    if text is None:
        return Reason.NO_ANSWER
    marked = marked_answer(text)
    if marked and not (marked[0] == "####" and is_heading(marked[1])):  # else `#### Final answer`
        return marked
    if has_unclosed_answer(text):
        return Reason.UNCLOSED_ANSWER
    final = without_end_tokens(after_think(text)).strip()
    if answer := answer_at_end(final[-_TAIL_CHARS:]):
        return "text", answer
    return ("bare", final) if len(final) <= _TAIL_CHARS and is_bare(final) else Reason.NO_ANSWER


def _compare(gold: _Gold, answer: str, leniency: Leniency) -> Reason:
    if not answer:
        return Reason.EMPTY_ANSWER
    if len(answer) > MAX_CHARS:
        return Reason.CORRECT if answer == gold.text else Reason.TOO_LONG
    if plain(answer) == gold.plain:
        return Reason.CORRECT
    if gold.value is None:
        return Reason.BAD_GOLD
    value = read(answer)
    if value is not None and _is_right(gold.value, value, answer, leniency):
        return Reason.CORRECT
    if in_words(value) and not gold.in_sentence:
        value = stated_value(answer) or value
        if value is not None and _is_right(gold.value, value, answer, leniency):
            return Reason.CORRECT
    if value is not None:
        return Reason.WRONG
    return Reason.TOO_LONG if len(answer) > MAX_ANSWER_CHARS else Reason.UNREADABLE


def _is_unevaluated(part: Any) -> bool:
    """Whether it contains an integral or a derivative: of a gold without one it is the question
    said again.
    """
    if isinstance(part, Several):
        part = part.items
    return isinstance(part, tuple) and (
        part[:1] in (("int",), ("derivative",)) or any(map(_is_unevaluated, part))
    )


def _is_right(gold: Value, value: Value, answer: str, leniency: Leniency) -> bool:
    if _is_unevaluated(value) and not _is_unevaluated(gold):
        return False
    if same(gold, value):
        return True
    if leniency.rounded_gold and not _DECIMAL.search(answer) and rounds_to(gold, value):
        return True
    return leniency.convert_units and same_converted(gold, value)
