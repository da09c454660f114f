"""Solves Countdown tasks exactly: one solution, all essentially different ones, or everything that numbers reach.

For gold answers, for tests and for `swift-rlvr solve`; rewards use the verifier instead, which reads an expression.
What counts as essentially different is defined in countdown_forms.py, which lists those expressions once for every
number of operands; the first task with 6 numbers waits half a second for that list.

Leaves out: all solutions of tasks with 7 and 8 numbers, which have millions. One solution is found by joining two
numbers in every way and solving the rest: at once where there are many solutions; to find that there is none takes
seconds with 7 numbers and minutes with 8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd

import numpy as np

from swift_rlvr.countdown.counting import exact_values, hits_of
from swift_rlvr.countdown.forms import Forms, forms_over
from swift_rlvr.countdown.notation import Written, join
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

MOST_NUMBERS, MOST_LISTED, LARGEST = 8, 6, 10**9
ANYTHING = CountdownSettings(count=(2, 8), number=(1, 1000), target=(1, 10**6))


def solve(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> str | None:
    """An expression over exactly `nums` with the exact value `target`, or None where there is none.

    Of the settings only operators and what is said of intermediate results count. Raises ValueError for fewer than one
    or more than 8 numbers, or ones outside 0..10**9.

    >>> solve([3, 3, 8, 8], 24)
    '8 / (3 - 8 / 3)'
    >>> solve([1, 1, 1], 24) is None
    True
    """
    _check(nums, target, MOST_NUMBERS)
    return next(_solved([((number, 1), (str(number), "atom")) for number in nums], target, settings, True), None)


def solutions(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> list[str]:
    """Every essentially different solution, once, shortest first; for at most 6 numbers.

    >>> solutions([4, 4, 10, 10], 24)
    ['(10 * 10 - 4) / 4']
    """
    _check(nums, target, MOST_LISTED)
    found = _solved([((number, 1), (str(number), "atom")) for number in nums], target, settings, False)
    return sorted(found, key=lambda text: (len(text), text))


def all_values(nums: Sequence[int], settings: CountdownSettings = ANYTHING) -> dict[tuple[int, int], str]:
    """Every value of an expression that uses each of `nums` once, as reduced (numerator, denominator > 0).

    >>> all_values([2, 6])
    {(8, 1): '2 + 6', (-4, 1): '2 - 6', (4, 1): '6 - 2', (12, 1): '2 * 6', (1, 3): '2 / 6', (3, 1): '6 / 2'}
    """
    _check(nums, 0, MOST_LISTED)
    if len(nums) == 1:
        return {(nums[0], 1): str(nums[0])}
    forms, operands, names = _table([((number, 1), (str(number), "atom")) for number in nums], settings)
    values = {}
    for form, n, d in zip(range(*forms.blocks[-1]), *exact_values(forms, *operands, settings), strict=True):
        if d:
            divisor = gcd(n, d) if d > 0 else -gcd(n, d)
            value = (n // divisor, d // divisor)
            if value not in values:
                values[value] = _written(forms, form, names)
    return values


def reachable(nums: Sequence[int], settings: CountdownSettings) -> dict[int, str]:
    """Every target within the settings' range that `nums` can reach, each number used once, with one expression.

    >>> from .countdown_settings import TINY
    >>> reachable([4, 4, 9], TINY)[25]
    '4 * 4 + 9'
    """
    low, high = settings.target
    return {n: text for (n, d), text in sorted(all_values(nums, settings).items()) if d == 1 and low <= n <= high}


Operand = tuple[tuple[int, int], Written]  # (numerator, denominator), how it is written


def _check(nums, target, most) -> None:
    if not 1 <= len(nums) <= most:
        raise ValueError(f"expected 1 to {most} numbers, got {len(nums)}")
    for number in (*nums, abs(target)):
        if not 0 <= number <= LARGEST:
            raise ValueError(f"expected whole numbers within 0..{LARGEST}, got {number}")


def _solved(operands: list[Operand], target, settings, first) -> Iterator[str]:
    if len(operands) == 1:
        if operands[0][0] == (target, 1):
            yield operands[0][1][0]
        return
    if len(operands) > MOST_LISTED:
        for joined in _joined_once(operands, settings):
            yield from _solved(joined, target, settings, first)
        return
    forms, values, names = _table(operands, settings)
    seen = set()
    found, _ = hits_of(forms, values[0][:, None], np.array([target], values.dtype), settings, values[1][:, None], first)
    for form in found.tolist():
        if forms.key[form] not in seen:
            seen.add(forms.key[form])
            yield _written(forms, form, names)


def _table(operands: list[Operand], settings) -> tuple[Forms, np.ndarray, list[list[Written]]]:
    """The forms over these operands, equal ones not told apart; their numerators and denominators; their names."""
    names: dict[tuple[int, int], list[Written]] = {}
    for value, name in operands:
        names.setdefault(value, []).append(name)
    counts = Counter(value for value, _ in operands).most_common()
    forms = forms_over(
        tuple(n for _, n in counts), "".join(s for s in OPERATORS if s in settings.operators), settings.restricted
    )
    bits = sum(n * max(abs(a).bit_length(), b.bit_length()) for (a, b), n in counts) + len(operands)
    values = np.array([value for value, _ in counts], np.int64 if bits < 62 else object).T
    return forms, values, [names[value] for value, _ in counts]


def _written(forms: Forms, form: int, names: list[list[Written]]) -> str:
    unused = [iter(each) for each in names]

    def written(form: int) -> Written:
        if form < forms.operands:
            return next(unused[form])
        left = written(forms.left[form])
        return join(left, OPERATORS[forms.operator[form]], written(forms.right[form]))

    return written(form)[0]


def _joined_once(operands: list[Operand], settings) -> Iterator[list[Operand]]:
    """The operands with two of them joined to one, in every way that is allowed; equal results once."""
    seen = set()
    for i, j in combinations(range(len(operands)), 2):
        rest = [operand for place, operand in enumerate(operands) if place not in (i, j)]
        forms, values, names = _table([operands[i], operands[j]], settings)
        for form, n, d in zip(range(*forms.blocks[-1]), *exact_values(forms, *values, settings), strict=True):
            if d:
                divisor = gcd(n, d) if d > 0 else -gcd(n, d)
                value = (n // divisor, d // divisor)
                state = (*sorted(operand[0] for operand in rest), value)
                if state not in seen:
                    seen.add(state)
                    kind = OPERATORS[forms.operator[form]]
                    yield [*rest, (value, (_written(forms, form, names), kind))]
