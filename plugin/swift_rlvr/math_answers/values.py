"""The kinds of answers that can be compared exactly without computer algebra, and their comparison.

`swift_rlvr.math_answers.reading` reads them from text.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.math_answers.formulas import Equation, Formula, same_formula
from swift_rlvr.math_answers.parser import read_formula

_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")
_MAX_PAIRS = 2500
"""Of values that are compared for two sets, each with each; those of plain numbers need no pairs."""


class Number(NamedTuple):
    value: Fraction
    percent: bool = False
    unit: str = ""


class Infinity(NamedTuple):
    sign: int


class Choice(NamedTuple):
    letter: str
    marked: bool
    """In parentheses, with a full stop, or set as text: certainly a choice and no variable."""
    content: str = ""
    """What the choice says, where it follows the letter."""
    meaning: Value | None = None
    """The content, read."""


class Words(NamedTuple):
    text: str
    marked: bool
    """Set as text, or long: certainly no product of variables."""


class Sequence(NamedTuple):
    opening: str
    """One of ( [ { or, where there are no brackets, nothing."""
    closing: str
    items: tuple


class Quantity(NamedTuple):
    """A formula, or an equation, with a unit; a number has its unit in itself."""

    value: Formula | Equation
    unit: str


Value = Number | Infinity | Choice | Words | Sequence | Formula | Equation | Quantity


def same(gold: Value, answer: Value) -> bool | None:
    """Whether an answer equals the gold; None where these kinds cannot tell.

    >>> half = Number(Fraction(1, 2))
    >>> same(half, Number(Fraction(50), percent=True)), same(half, Number(Fraction(1, 2), unit="cm")), same(half, half)
    (True, True, True)
    >>> pair = [Sequence("(", ")", (half, Infinity(1))), Sequence("(", ")", (Infinity(1), half))]
    >>> same(*pair), same(pair[0], Sequence("", "", (half, Infinity(1)))) is None
    (False, True)
    """
    if isinstance(gold, Number) and isinstance(answer, Number):
        return _same_number(gold, answer)
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        units = [value.unit for value in (gold, answer) if isinstance(value, (Quantity, Number))]
        if _different_units(units[0], units[-1]):
            return False
        return same(*(value.value if isinstance(value, Quantity) else value for value in (gold, answer)))
    if isinstance(gold, Choice) and gold.content and not isinstance(answer, Choice):
        # "(D) 12" is answered by 12 as well as by D.
        return None if gold.meaning is None else same(gold.meaning, answer)
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return _same_choice(gold, answer)
    if isinstance(gold, Words) and isinstance(answer, Words):
        return True if gold.text == answer.text else (False if gold.marked or answer.marked else None)
    if isinstance(gold, Sequence) and isinstance(answer, Sequence):
        return _same_sequence(gold, answer)
    if isinstance(gold, Infinity) and isinstance(answer, Infinity):
        return gold == answer
    if isinstance(gold, (Formula, Equation)) or isinstance(answer, (Formula, Equation)):
        formulas = [_formula(value) for value in (gold, answer)]
        return None if None in formulas else same_formula(*formulas)
    if isinstance(gold, Sequence) or isinstance(answer, Sequence):
        sequence = gold if isinstance(gold, Sequence) else answer
        return None if len(sequence.items) < 2 else False
    if isinstance(gold, Number) or isinstance(answer, Number):
        other = answer if isinstance(gold, Number) else gold
        return False if isinstance(other, Infinity) or other.marked else None
    return None


def _formula(value: Value) -> Formula | Equation | None:
    if isinstance(value, (Formula, Equation)):
        return value
    if isinstance(value, Number) and not value.percent:
        return Formula({(1, ()): value.value} if value.value else {}, {(1, ()): Fraction(1)})
    if isinstance(value, Choice) and not value.marked:
        return read_formula(value.letter)
    return None


def _same_choice(gold: Choice, answer: Choice) -> bool | None:
    if not (gold.marked or answer.marked):
        return gold.letter == answer.letter
    if gold.letter.upper() != answer.letter.upper():
        return False
    if _OTHER_CHOICE.search(answer.content):  # "(A) is wrong, (B) is right"
        return None if gold.content else False
    meanings = gold.meaning, answer.meaning
    return None in meanings or same(*meanings) is not False


def _different_units(gold: str, answer: str) -> bool:
    return bool(gold and answer) and gold != answer and "things" not in (gold, answer)


def _same_number(gold: Number, answer: Number) -> bool:
    if _different_units(gold.unit, answer.unit):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value
    values = {answer.value / 100 if answer.percent else answer.value}
    if answer.percent and (gold.percent or gold.value.denominator == 1 or abs(gold.value) >= 1):
        values.add(answer.value)  # "what percentage ...": the sign is as good as a unit
    golds = {gold.value / 100, gold.value} if gold.percent else {gold.value}
    return bool(golds & values)


def _same_sequence(gold: Sequence, answer: Sequence) -> bool | None:
    sides = (gold.opening, gold.closing), (answer.opening, answer.closing)
    if all(side in (("{", "}"), ("", "")) for side in sides):
        return _same_set(gold.items, answer.items)
    if sides[0] != sides[1]:
        return None if ("", "") in sides else False
    if len(gold.items) != len(answer.items):
        return False
    outcomes = [same(*pair) for pair in zip(gold.items, answer.items, strict=True)]
    return False if False in outcomes else None if None in outcomes else True


def _same_set(gold: tuple, answer: tuple) -> bool | None:
    if all(isinstance(item, Number) and not (item.percent or item.unit) for item in gold + answer):
        return {item.value for item in gold} == {item.value for item in answer}
    if _size(gold) * _size(answer) > _MAX_PAIRS:
        return None
    table = [[same(first, second) for second in answer] for first in gold]
    if any(None in row for row in table):
        return None
    return all(map(any, table)) and all(map(any, zip(*table, strict=True)))


def _size(items: tuple) -> int:
    """How many values there are, those within sequences included."""
    return sum(_size(item.items) if isinstance(item, Sequence) else 1 for item in items)
