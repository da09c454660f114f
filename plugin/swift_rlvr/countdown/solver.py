"""Solves Countdown tasks exactly: one solution, or all essentially different ones.

What counts as essentially different is defined in forms.py, which lists those expressions once for every number of
operands; the first task with 6 numbers waits half a second for that list. With 7 and 8 numbers there are millions, so
one solution is searched by joining two numbers in every way and solving the rest: at once where there are many
solutions; to find that there is none takes seconds with 7 numbers and minutes with 8.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from swift_rlvr.countdown.counting import hits_of
from swift_rlvr.countdown.forms import Forms, forms_for
from swift_rlvr.countdown.notation import Written, join
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

MOST_NUMBERS, MOST_LISTED, LARGEST = 8, 6, 10**9
ANYTHING = CountdownSettings(count=(2, 8), number=(1, 1000), target=(1, 10**6))

Operand = tuple[Fraction, Written]


def solve(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> str | None:
    """An expression over exactly `nums` with the exact value `target`, or None where there is none.

    Only the settings' operators and limits of intermediate results count. ValueError unless 1 to 8 numbers in 0..10**9.

    >>> solve([3, 3, 8, 8], 24)
    '8 / (3 - 8 / 3)'
    >>> solve([1, 1, 1], 24) is None
    True
    """
    return next(_solutions(nums, target, settings, MOST_NUMBERS, first=True), None)


def solutions(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> list[str]:
    """Every essentially different solution, once, shortest first; for at most 6 numbers.

    >>> solutions([4, 4, 10, 10], 24)
    ['(10 * 10 - 4) / 4']
    """
    return sorted(_solutions(nums, target, settings, MOST_LISTED, first=False), key=lambda text: (len(text), text))


def _solutions(nums, target: int, settings: CountdownSettings, most: int, first: bool) -> Iterator[str]:
    if not 1 <= len(nums) <= most:
        raise ValueError(f"expected 1 to {most} numbers, got {len(nums)}")
    for number in (*nums, abs(target)):
        if not 0 <= number <= LARGEST:
            raise ValueError(f"expected whole numbers within 0..{LARGEST}, got {number}")
    return _solved([(Fraction(number), (str(number), "atom")) for number in nums], target, settings, first)


def _solved(operands: list[Operand], target: int, settings: CountdownSettings, first: bool) -> Iterator[str]:
    if len(operands) == 1:
        if operands[0][0] == target:
            yield operands[0][1][0]
        return
    if len(operands) > MOST_LISTED:
        for fewer in _one_fewer(operands, settings):
            yield from _solved(fewer, target, settings, first)
        return
    names: dict[Fraction, list[Written]] = {}
    for value, name in operands:
        names.setdefault(value, []).append(name)
    different = sorted(names, key=lambda value: -len(names[value]))
    forms = forms_for(tuple(len(names[value]) for value in different), settings)
    bits = sum(1 + max(value.numerator.bit_length(), value.denominator.bit_length()) for value, _ in operands)
    exact = np.int64 if bits < 62 else object
    above = np.array([[value.numerator] for value in different], exact)  # (different operands, 1 task)
    below = np.array([[value.denominator] for value in different], exact)
    seen = set()
    for form in hits_of(forms, above, np.array([target], exact), settings, below, first)[0].tolist():
        if forms.key[form] not in seen:
            seen.add(forms.key[form])
            yield _written(forms, form, [iter(names[value]) for value in different])[0]


def _written(forms: Forms, form: int, unused: list[Iterator[Written]]) -> Written:
    """How a form is written, with the names that the operands still have unused."""
    if form < forms.operands:
        return next(unused[form])
    left = _written(forms, forms.left[form], unused)
    return join(left, OPERATORS[forms.operator[form]], _written(forms, forms.right[form], unused))


def _one_fewer(operands: list[Operand], settings: CountdownSettings) -> Iterator[list[Operand]]:
    """The operands with two of them joined to one, in every way that is allowed; equal results once."""
    seen = set()
    for i, j in combinations(range(len(operands)), 2):
        rest = [operand for place, operand in enumerate(operands) if place not in (i, j)]
        for joined in _results(operands[i], operands[j], settings):
            state = (*sorted(value for value, _ in rest), joined[0])
            if state not in seen:
                seen.add(state)
                yield [*rest, joined]


def _results(one: Operand, other: Operand, settings: CountdownSettings) -> Iterator[Operand]:
    for symbol, (a, left), (b, right) in (
        ("+", one, other), ("-", one, other), ("-", other, one), ("*", one, other), ("/", one, other), ("/", other, one)
    ):  # fmt: skip
        if symbol not in settings.operators or (symbol == "/" and not b):
            continue
        value = a + b if symbol == "+" else a - b if symbol == "-" else a * b if symbol == "*" else a / b
        if (
            (settings.negative or value >= 0)
            and (settings.fractions or value.denominator == 1)
            and (settings.largest is None or abs(value) <= settings.largest)
        ):
            yield value, join(left, symbol, right)
