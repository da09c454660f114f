"""Numbers and dates beside those that a column has: one more or less, between two of them, below all or
above all.
"""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Any

# Beyond it a float has no number one more, and SQLite no whole one.
_LARGEST = 10**12
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def beside(values: Sequence[Any], compared: Sequence[Any], rng: random.Random) -> dict[Any, Any]:
    """For each number or date of a column another one: one more or less, between it and the next one,
    below all or above all. What the gold compares with stays, and so do texts and flags.

    >>> beside([25, 31, 43], [30], random.Random(0))
    {25: 24, 31: 37, 43: 44}
    >>> beside(["a", "2024-02-29"], [], random.Random(0))
    {'2024-02-29': '2024-02-28'}
    """
    days: dict[Any, int] = {}
    for value in values:
        day = day_of(value)
        if day is not None:
            days[value] = day
    if not days:
        return _numbers_beside(values, compared, rng)
    # Days are numbers too. What is no day is None, which no number equals.
    moved = _numbers_beside([*days.values()], list(map(day_of, compared)), rng)
    instead = {}
    for text, day in days.items():
        # None that a calendar has not.
        if day in moved and 1 <= moved[day] <= date.max.toordinal():
            instead[text] = date.fromordinal(moved[day]).isoformat()
    return instead


def has_order(value: Any) -> bool:
    """Whether there are values beside one: of a number or a date."""
    return isinstance(value, (int, float)) or day_of(value) is not None


def day_of(value: Any) -> int | None:
    """The number of a day, of a text that is a date."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    with suppress(ValueError):
        return date.fromisoformat(value).toordinal()
    return None


def _numbers_beside(
    values: Sequence[Any], compared: Sequence[Any], rng: random.Random
) -> dict[Any, Any]:
    numbers = sorted(value for value in values if isinstance(value, (int, float)))
    if not numbers or {*numbers} <= {0, 1} or max(map(abs, numbers)) > _LARGEST:
        return {}
    gap = max(1, (numbers[-1] - numbers[0]) // 2)
    taken = {*numbers} & {*compared}
    instead: dict[Any, Any] = {}
    for place, value in enumerate(numbers):
        if value in compared:
            continue
        # The ends move outwards: a wrong condition may hold for all values but those beyond them.
        if place == 0:
            near = [value - 1, value - gap]
        elif place == len(numbers) - 1:
            near = [value + 1, value + gap]
        else:
            between = value + (numbers[place + 1] - value) / 2
            near = [value + 1, value - 1, int(between) if isinstance(value, int) else between]
        rng.shuffle(near)
        # No two values become one, or GROUP BY and DISTINCT would give fewer rows than they should.
        for new in (*near, value):
            # Where nothing is negative, nothing becomes so.
            is_allowed = new >= 0 or numbers[0] < 0
            if is_allowed and new not in taken:
                break
        else:
            new = max(taken) + 1
        taken.add(new)
        instead[value] = new
    return instead
