"""Further arguments for a function, from given ones: of the same types, in their range, and with what
all given ones have in common (`properties.py`).

A row has a few calls. Further ones are made by changing given ones a little. A change that loses a
common property is thrown away.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from swift_rlvr.evaluation.added_tests.properties import (
    RUN,
    Arguments,
    Path,
    common_properties,
    counts_from,
    distinct,
    is_descending,
    is_sorted,
    layout,
    properties,
    values_by_place,
)

_LONGEST = 200  # elements of a list, and characters of a text, that is changed
_SEVERAL_LETTERS = 6  # that say which letters there are
# By letter or digit, all of its kind.
_SAME_KIND = {sign: kind for kind in (ascii_lowercase, ascii_uppercase, digits) for sign in kind}


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
                argument = other[index] if index < len(other) else argument
            mixed.append(argument)
        places = [index for index in range(len(mixed)) if rng.random() < 0.6]
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
            case bool():
                return rng.random() < 0.5
            case int():
                return another_int(value, pool, rng, self.numbers)
            case float():
                return _another_float(value, pool, rng, self.numbers)
            case str():
                return _another_text(value, pool, rng)
            case list():
                return self._another_list(value, path, pool)
            case tuple():
                changed = list(value)
                for index in some_places(changed, rng):
                    changed[index] = self._another(changed[index], (*path, index))
                return tuple(changed)
            case set():
                return set(self._another_list(sorted(value, key=repr), path, []))
            case dict():
                return self._another_dict(value, (*path, "value"))
        return value

    def _another_dict(self, value: dict, path: Path) -> dict:
        """The same keys, some with other values. path: of the values."""
        changed = dict(value)
        for key in changed:
            if self.rng.random() < 0.5:
                changed[key] = self._another(changed[key], path)
        return changed

    def _another_list(self, value: list, path: Path, pool: list[list]) -> list:
        """A list in which elements have been moved, left out, added or changed."""
        rng = self.rng
        changed = list(value)
        if not changed or len(changed) > _LONGEST:
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
    if any(all(map(partial(counts_from, start), pool)) for start in (0, 1)):
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


def some_places(values: Sequence[Any], rng: random.Random) -> list[int]:
    """The indices of one to three of the values."""
    if not values:
        return []
    return sorted(rng.sample(range(len(values)), rng.randint(1, min(3, len(values)))))


# --- Numbers


def another_int(
    value: int, pool: list[int], rng: random.Random, numbers: Sequence[float] = ()
) -> int:
    """A number near the given ones: below the least one only so far that its sign stays, and above
    the largest one by half, since a right solution may take exponential time. Or one of `numbers`
    in this range, or next to it.
    """
    least, largest = min(pool), max(pool)
    span = largest - least
    low = least - span // 2 if least < 0 else least - max(0, least - 2) // 2
    high = largest + (max(span // 2, largest // 2, 3) if largest > 0 else 0)
    match rng.randrange(5):
        case 0:
            return min(max(value + rng.choice((-2, -1, 1, 2)), low), high)
        case 1:
            return rng.randint(least, largest)
        case 2 if numbers:
            near = round(rng.choice(numbers)) + rng.choice((-1, 0, 1))
            if low <= near <= high:
                return near
    return rng.randint(low, high)


def _another_float(
    value: float, pool: list[float], rng: random.Random, numbers: Sequence[float]
) -> float:
    """A number with as many decimals as the given ones, changed as a whole number would be."""
    pool = [number for number in pool if abs(number) < 1e15]
    if not pool:
        return value
    decimals = max(len(repr(number).partition(".")[2]) for number in pool)
    unit = 10 ** min(decimals, 6)
    scaled = [round(number * unit) for number in pool]
    steps = [round(number * unit) for number in numbers if abs(number) < 1e15]
    return another_int(rng.choice(scaled), scaled, rng, steps) / unit


# --- Texts


def small_alphabet(texts: list[str]) -> set[str] | None:
    """The letters of texts that have few different ones, such as 01 and ACGT; else None."""
    letters = "".join(texts)
    alphabet = set(letters)
    return alphabet if len(alphabet) <= 4 and len(letters) >= _SEVERAL_LETTERS else None


def _another_text(value: str, pool: list[str], rng: random.Random) -> str:
    """A text of the same layout, or with other letters or words."""
    if len(value) > _LONGEST:
        return value
    # Whatever the length of their numbers: `2024-1-31` is `9-9-9`.
    layouts = {re.sub("9+", "9", layout(text)) for text in pool}
    if len(layouts) == 1 and len(RUN.findall(value)) > 1:
        return _same_layout(pool, rng)
    change = rng.randrange(8 if " " in value else 6)
    if change < 6:
        return _with_other_letters(value, pool, change, rng)
    words = value.split(" ")
    rng.shuffle(words)
    if rng.random() < 0.5:
        words[rng.randrange(len(words))] = rng.choice(rng.choice(pool).split(" "))
    return " ".join(words)


def _with_other_letters(value: str, pool: list[str], change: int, rng: random.Random) -> str:
    letters = list(value)
    alphabet = sorted(set("".join(pool)))
    match change:
        case 0:
            rng.shuffle(letters)
        case 1 if letters:
            del letters[rng.randrange(len(letters))]
        case 2 if letters:
            letters.insert(rng.randrange(len(letters) + 1), rng.choice(letters))
        case 3:
            other = rng.choice(pool)
            letters = [*value[: rng.randint(0, len(value))], *other[rng.randint(0, len(other)) :]]
        case 4 if alphabet:
            for index in some_places(letters, rng):
                letters[index] = rng.choice(alphabet)
        case 5:
            # Another word, with letters that the pool need not have.
            letters = [_of_same_kind(letter, rng) for letter in letters]
    return "".join(letters)


def _of_same_kind(letter: str, rng: random.Random) -> str:
    """A letter, or in two of five cases another of its kind."""
    if rng.random() < 0.4 and letter in _SAME_KIND:
        return rng.choice(_SAME_KIND[letter])
    return letter


def _same_layout(pool: list[str], rng: random.Random) -> str:
    """A text that is laid out as all in the pool are. Its numbers are within the range of theirs."""
    columns = list(zip(*(RUN.findall(text) for text in pool), strict=True))
    parts = []
    for runs in columns:
        part = rng.choice(runs)
        if part.isdecimal():
            numbers = [int(run) for run in runs]
            number = rng.randint(min(numbers), max(numbers))
            is_padded = any(run[0] == "0" and len(run) > 1 for run in runs)
            part = str(number).zfill(len(part) if is_padded else 0)
        parts.append(part)
    return "".join(parts)


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
        if _is_loose(changed[place]) and len(changed[place]) < _LONGEST:
            changed[place] = changed[place] + changed[place]
    return changed


def _is_loose(value: Any) -> bool:
    """Whether it may be turned round or doubled: a list, or a text without numbers, as in a date."""
    if isinstance(value, str):
        return not re.search(r"[0-9]", value)
    return isinstance(value, list)


def renaming(rng: random.Random) -> dict[int, str]:
    """Each letter to another one of its case."""
    table: dict[int, str] = {}
    for letters in (ascii_lowercase, ascii_uppercase):
        others = list(letters)
        rng.shuffle(others)
        table |= dict(zip(map(ord, letters), others, strict=True))
    return table


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
