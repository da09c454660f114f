"""The kinds of answers that `swift_rlvr.math_answers.reading` reads from text, and their exact comparison."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.math_answers.formulas import Equation, Formula, constant, same_formula
from swift_rlvr.math_answers.parser import read_formula

_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")
_MAX_PAIRS = 2500  # comparisons of values for two sets, each element with each; sets of plain numbers need none


class Number(NamedTuple):
    value: Fraction
    percent: bool = False
    unit: str = ""


class Infinity(NamedTuple):
    sign: int


class Choice(NamedTuple):
    letter: str
    marked: bool  # in parentheses, with a full stop, or set as text: certainly a choice and not a variable
    content: str = ""  # the text of the choice, where it follows the letter
    meaning: Value | None = None  # the value of that text


class Words(NamedTuple):
    text: str
    marked: bool  # set as text, or long: certainly not a product of variables


class Sequence(NamedTuple):
    opening: str  # one of ( [ {, or "" without brackets
    closing: str
    items: tuple[Value, ...]


class Quantity(NamedTuple):
    """A formula or an equation with a unit. (A `Number` carries its own unit.)"""

    value: Formula | Equation
    unit: str


Value = Number | Infinity | Choice | Words | Sequence | Formula | Equation | Quantity


def same(gold: Value, answer: Value) -> bool | None:
    """Whether an answer equals the gold; None where that cannot be decided for values of these kinds.

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
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return _same_choice(gold, answer)
    if isinstance(gold, Choice) and gold.content:  # "(D) 12" is answered by 12 as well as by D
        return None if gold.meaning is None else same(gold.meaning, answer)
    if isinstance(gold, Words) and isinstance(answer, Words):
        return True if gold.text == answer.text else (False if gold.marked or answer.marked else None)
    if isinstance(gold, Sequence) and isinstance(answer, Sequence):
        return _same_sequence(gold, answer)
    if isinstance(gold, Infinity) and isinstance(answer, Infinity):
        return gold == answer
    if isinstance(gold, (Formula, Equation)) or isinstance(answer, (Formula, Equation)):
        first, second = _formula(gold), _formula(answer)
        return same_formula(first, second) if first and second else None
    for value in (gold, answer):
        if isinstance(value, Sequence):
            return None if len(value.items) < 2 else False
    if isinstance(gold, Number) or isinstance(answer, Number):
        for value in (gold, answer):
            if isinstance(value, Infinity) or (isinstance(value, (Choice, Words)) and value.marked):
                return False
    return None


def _formula(value: Value) -> Formula | Equation | None:
    if isinstance(value, (Formula, Equation)):
        return value
    if isinstance(value, Number) and not value.percent:
        return constant(value.value)
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
    return gold.meaning is None or answer.meaning is None or same(gold.meaning, answer.meaning) is not False


def _different_units(gold: str, answer: str) -> bool:
    return bool(gold and answer) and gold != answer and "things" not in (gold, answer)


def _same_number(gold: Number, answer: Number) -> bool:
    if _different_units(gold.unit, answer.unit):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value
    values = {answer.value / 100 if answer.percent else answer.value}
    if answer.percent and (gold.value.denominator == 1 or abs(gold.value) >= 1):
        values.add(answer.value)  # "what percentage ...": the sign may be read as a unit
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
    results = [same(*pair) for pair in zip(gold.items, answer.items, strict=True)]
    return False if False in results else None if None in results else True


def _same_set(gold: tuple[Value, ...], answer: tuple[Value, ...]) -> bool | None:
    if all(isinstance(item, Number) and not (item.percent or item.unit) for item in (*gold, *answer)):
        return set(gold) == set(answer)
    if _size(gold) * _size(answer) > _MAX_PAIRS:
        return None
    table = [[same(first, second) for second in answer] for first in gold]
    if any(None in row for row in table):
        return None
    return all(map(any, table)) and all(map(any, zip(*table, strict=True)))


def _size(items: tuple[Value, ...]) -> int:
    """The number of values, including those within sequences."""
    return sum(_size(item.items) if isinstance(item, Sequence) else 1 for item in items)
