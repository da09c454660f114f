"""Numbers and texts near given ones: what arguments and lines of an input consist of."""

import random
import re
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from swift_rlvr.evaluation.added_tests.properties import RUN, layout

LONGEST = 200  # characters of a text, and elements of a list, that is changed
_SEVERAL_LETTERS = 6  # that say which letters there are
# By letter or digit, all of its kind.
_SAME_KIND: dict[str, str] = {}
for _kind in (ascii_lowercase, ascii_uppercase, digits):
    _SAME_KIND |= dict.fromkeys(_kind, _kind)


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


def another_float(
    value: float, pool: list[float], rng: random.Random, numbers: Sequence[float]
) -> float:
    """A number with as many decimals as the given ones, changed as a whole number would be."""
    # Larger ones, infinity and NaN have no decimals that could be counted.
    pool = [number for number in pool if abs(number) < 1e15]
    if not pool:
        return value
    decimals = max(len(repr(number).partition(".")[2]) for number in pool)
    # 0.1 + 0.2 has seventeen decimals, and means one.
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


def another_text(value: str, pool: list[str], rng: random.Random) -> str:
    """A text of the same layout, or with other letters or words."""
    if len(value) > LONGEST:
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
            for index, letter in enumerate(letters):
                if rng.random() < 0.4 and letter in _SAME_KIND:
                    letters[index] = rng.choice(_SAME_KIND[letter])
    return "".join(letters)


def _same_layout(pool: list[str], rng: random.Random) -> str:
    """A text that is laid out as all in the pool are. Its numbers are within the range of theirs."""
    runs_of_texts = map(RUN.findall, pool)
    parts = []
    for runs in zip(*runs_of_texts, strict=True):
        part = rng.choice(runs)
        if part.isdecimal():
            numbers = []
            is_padded = False
            for run in runs:
                numbers.append(int(run))
                # "01" of a month, where "0" alone is a number.
                is_padded |= run[0] == "0" and len(run) > 1
            number = rng.randint(min(numbers), max(numbers))
            part = str(number).zfill(len(part) if is_padded else 0)
        parts.append(part)
    return "".join(parts)


def renaming(rng: random.Random) -> dict[int, str]:
    """Each letter to another one of its case."""
    table: dict[int, str] = {}
    for letters in (ascii_lowercase, ascii_uppercase):
        others = list(letters)
        rng.shuffle(others)
        table |= dict(zip(map(ord, letters), others, strict=True))
    return table
