"""Further arguments for a function, from given ones: of the same types, in their range, and with what
all given ones have in common (`properties.py`).

A row has a few calls. Further ones are made by changing given ones a little. A change that loses a
common property is thrown away.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from swift_rlvr.evaluation.added_tests.leaves import (
    LONGEST,
    another_float,
    another_int,
    another_text,
    renaming,
    small_alphabet,
    some_places,
)
from swift_rlvr.evaluation.added_tests.properties import (
    Arguments,
    Path,
    common_properties,
    counts_from,
    distinct,
    is_descending,
    is_sorted,
    properties,
    values_by_place,
)


def nearby_calls(
    given: Sequence[Arguments], count: int, rng: random.Random, numbers: Sequence[float] = ()
) -> list[Arguments]:
    """Up to `count` lists of arguments that are none of the given ones, no two alike.

    numbers: where a program may do another thing, such as 90 in `score >= 90`. They and their
    neighbours are tried, too, as far as they are in the range of the given ones.

    >>> given = [[[1, 2, 5], 2], [[3, 4, 8, 9], 9]]  # a sorted list, and one of its elements
    >>> made = nearby_calls(given, 5, random.Random(0))
    >>> all(numbers == sorted(numbers) and number in numbers for numbers, number in made)
    True
    """
    changes = _Changes(given, rng, numbers)
    common = common_properties(given)

    def propose() -> tuple[str, Arguments]:
        arguments = changes.of(rng.choice(given))
        return repr(arguments), arguments

    def holds(arguments: Arguments) -> bool:
        return changes.has_known_letters(arguments) and common <= properties(arguments)

    return distinct(propose, map(repr, given), count, holds)


class _Changes:
    """Changes arguments, at each place to values that are near those of all given inputs there."""

    def __init__(self, given: Sequence[Arguments], rng: random.Random, numbers: Sequence[float]):
        self.given = given
        self.rng = rng
        self.numbers = numbers
        self.values: dict[Path, list[Any]] = defaultdict(list)
        for arguments in given:
            for path, values in values_by_place(arguments).items():
                self.values[path] += values
        self.alphabets: dict[Path, set[str]] = {}
        for path, values in self.values.items():
            alphabet = small_alphabet(_of_type(str, values))
            if alphabet:
                self.alphabets[path] = alphabet

    def of(self, arguments: Arguments) -> Arguments:
        """Arguments like these, of which one or several are others."""
        rng = self.rng
        if rng.random() < 0.25:
            return _changed_everywhere(arguments, rng)
        mixed = []
        for index, argument in enumerate(arguments):
            if rng.random() < 0.2:
                other = rng.choice(self.given)
                # Calls differ in their number of arguments where some have defaults.
                argument = other[index] if index < len(other) else argument
            mixed.append(argument)
        places = [index for index in range(len(mixed)) if rng.random() < 0.6]
        # At least one, or the call would be the given one again.
        if not places and mixed:
            places = [rng.randrange(len(mixed))]
        for index in places:
            mixed[index] = self._another(mixed[index], (index,))
        return mixed

    def has_known_letters(self, arguments: Arguments) -> bool:
        """Whether no text has a letter that its place cannot have, such as a 2 in "0110"."""
        for path, values in values_by_place(arguments).items():
            alphabet = self.alphabets.get(path)
            for value in values:
                if alphabet and isinstance(value, str) and not set(value) <= alphabet:
                    return False
        return True

    def _another(self, value: Any, path: Path) -> Any:
        """A value for this place."""
        rng = self.rng
        pool = _of_type(type(value), self.values[path]) or [value]
        if rng.random() < 0.1:
            return rng.choice(pool)
        match value:
            # Before int, which a bool is too.
            case bool():
                return rng.random() < 0.5
            case int():
                return another_int(value, pool, rng, self.numbers)
            case float():
                return another_float(value, pool, rng, self.numbers)
            case str():
                return another_text(value, pool, rng)
            case list():
                return self._another_list(value, path, pool)
            case tuple():
                changed = list(value)
                for index in some_places(changed, rng):
                    changed[index] = self._another(changed[index], (*path, index))
                return tuple(changed)
            case set():
                # In an order that PYTHONHASHSEED does not change.
                return set(self._another_list(sorted(value, key=repr), path, []))
            case dict():
                # The keys stay: they may be names that the function looks up.
                with_others = dict(value)
                for key in with_others:
                    if rng.random() < 0.5:
                        with_others[key] = self._another(with_others[key], (*path, "value"))
                return with_others
        return value

    def _another_list(self, value: list, path: Path, pool: list[list]) -> list:
        """A list in which elements have been moved, left out, added or changed."""
        rng = self.rng
        changed = list(value)
        if not changed or len(changed) > LONGEST:
            return changed
        elements = (*path, "*")
        match rng.randrange(6):
            case 0:
                rng.shuffle(changed)
            case 1:
                del changed[rng.randrange(len(changed))]
            case 2:
                changed.insert(rng.randrange(len(changed) + 1), rng.choice(changed))
            case 3:
                one = self._another(rng.choice(changed), elements)
                other = self._another(rng.choice(changed), elements)
                changed[rng.randrange(len(changed) + 1) : 0] = [one, other]
            case 4:
                other = rng.choice(pool or [value])
                head = changed[: rng.randint(0, len(changed))]
                changed = head + other[rng.randint(0, len(other)) :]
            case _:
                for index in some_places(changed, rng):
                    changed[index] = self._another(changed[index], elements)
        return _in_order_of(pool or [value], changed)


def _in_order_of(pool: list[list], changed: list) -> list:
    """A changed list, sorted where all lists of the pool are: those would hardly ever come out of the
    changes. Lists that count from 0 or 1 are taken for permutations.
    """
    for start in (0, 1):
        if all(counts_from(start, each) for each in pool):
            return changed
    is_rising = all(map(is_sorted, pool))
    if not is_rising and not all(map(is_descending, pool)):
        return changed
    try:
        return sorted(changed, reverse=not is_rising)
    except TypeError:
        return changed


def _of_type(kind: type, values: Sequence[Any]) -> list[Any]:
    return [value for value in values if type(value) is kind]


# --- The same change everywhere


def _changed_everywhere(arguments: Arguments, rng: random.Random) -> Arguments:
    """The same change at all places, which keeps palindromes, anagrams and the like what they are."""

    def turned(value: Any) -> Any:
        return value[::-1] if _is_loose(value) else value

    match rng.randrange(4):
        case 0:
            table = renaming(rng)
            return _with_leaves(arguments, str, lambda text: text.translate(table))
        case 1:
            shift = rng.choice((1, 2, 3))
            return _with_leaves(arguments, int, lambda number: number + shift)
        case 2:
            return list(map(turned, arguments))
    changed = list(arguments)
    if arguments:
        place = rng.randrange(len(arguments))
        if _is_loose(changed[place]) and len(changed[place]) < LONGEST:
            changed[place] = changed[place] + changed[place]
    return changed


def _is_loose(value: Any) -> bool:
    """Whether it may be turned round or doubled: a list, or a text without numbers, as in a date."""
    if isinstance(value, str):
        return not re.search(r"[0-9]", value)
    return isinstance(value, list)


def _with_leaves(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A value in which all values of a type are changed."""
    match value:
        case list():
            return [_with_leaves(element, kind, change) for element in value]
        case tuple():
            return tuple(_with_leaves(element, kind, change) for element in value)
        case dict():
            return {key: _with_leaves(element, kind, change) for key, element in value.items()}
    return change(value) if type(value) is kind else value
