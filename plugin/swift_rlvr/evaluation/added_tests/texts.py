r"""Further inputs for a program that reads standard input, from given ones: as many lines, and words in
a line, as a given one has, other words, and what all given ones have in common.

An input is read as a table: a list of lines, each a list of words. Which words mean the same is guessed
from where they stand: in `3\n1 2 9\n` the 3 says how many follow, and the others are of one kind.
"""

import random
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

from swift_rlvr.evaluation.added_tests.leaves import (
    another_int,
    renaming,
    small_alphabet,
    some_places,
)
from swift_rlvr.evaluation.added_tests.properties import WHOLE_NUMBER, distinct, properties

# A line of at most so many words has a meaning for each of them, such as "n m".
_RECORD = 4
_DECIMAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,10}")

Table = list[list[str]]


def nearby_texts(given: Sequence[str], count: int, rng: random.Random) -> list[str]:
    r"""Up to `count` inputs that are none of the given ones, no two alike.

    >>> nearby_texts(["2\n5 7\n", "3\n1 2 9\n"], 2, random.Random(0))
    ['3\n1 4 9\n', '3\n1 2 10\n']
    """
    tables = []
    for text in given:
        tables.append([line.split() for line in text.rstrip("\n").split("\n")])
    pools: dict[Hashable, list[str]] = defaultdict(list)
    for table in tables:
        for line, row in enumerate(table):
            for position, word in enumerate(row):
                pools[_kind_of_word(table, line, position)].append(word)
    # Commands and letters such as ACGT mean something; other words may be any.
    may_rename = not any(_is_vocabulary(pool) or small_alphabet(pool) for pool in pools.values())
    common = set.intersection(*map(_properties, tables))

    def propose() -> tuple[str, tuple[str, Table]]:
        number = rng.randrange(len(tables))
        table = _changed(tables[number], pools, rng)
        if may_rename and rng.random() < 0.2:
            letters = renaming(rng)
            # The same in all lines: a word that stands twice means the same thing.
            for row in table:
                row[:] = [word.translate(letters) for word in row]
        text = "\n".join(map(" ".join, table))
        if given[number].endswith("\n"):
            text += "\n"
        return text, (text, table)

    def holds(made: tuple[str, Table]) -> bool:
        _, table = made
        return common <= _properties(table)

    return [text for text, _ in distinct(propose, given, count, holds)]


def _kind_of_word(table: Table, line: int, position: int) -> Hashable:
    """A key that words share if they mean the same: all words of long lines, and the words at one
    position of lines with as many words. The first line has keys of its own.
    """
    width = _width(table[line])
    return (line == 0, width) if width == "long" else (line == 0, width, position)


def _width(row: Sequence[Any]) -> int | str:
    """The number of words of a record; a longer line is a list, whatever its length."""
    return len(row) if len(row) <= _RECORD else "long"


def _value(word: str) -> Any:
    """A word as a number, where it is one."""
    if WHOLE_NUMBER.fullmatch(word):
        return int(word)
    if _DECIMAL.fullmatch(word):
        return float(word)
    return word


# --- What holds of an input


def _properties(table: Table) -> set[Hashable]:
    """All that holds of an input: what says how much follows; the properties of each line, of the
    lines of a width, and of these lines as a list; whether the first number bounds those of a width.
    """
    holding: set[Hashable] = {("size", *size) for size in _sizes(table)}
    rows_by_kind: dict[tuple[bool, int | str], list[list[Any]]] = defaultdict(list)
    for line, row in enumerate(table):
        values = list(map(_value, row))
        # The list in the second line may have as many elements as a record elsewhere.
        for name in properties([values]):
            holding.add(("line", line, name))
        rows_by_kind[line == 0, _width(row)].append(values)

    for kind, rows in rows_by_kind.items():
        _, width = kind
        # The words of a record are arguments, those of a long line are one list.
        arguments = [[row] for row in rows] if width == "long" else rows
        for name in set.intersection(*map(properties, arguments)):
            holding.add((kind, name))
        for name in properties([list(map(tuple, rows))]):
            holding.add((kind, "rows", name))

    # "n m", and then edges between nodes that are numbered up to n.
    first = table[0][0] if table[0] else ""
    if WHOLE_NUMBER.fullmatch(first):
        above = set()
        for row in table:
            for word in row:
                if WHOLE_NUMBER.fullmatch(word) and int(word) > int(first):
                    above.add(_width(row))
        for row in table:
            if _width(row) not in above:
                holding.add(("bounded by the first", _width(row)))
    return holding


def _sizes(table: Table) -> set[tuple[int, int, str]]:
    """The words that say how much follows: line, position, and what of."""
    sizes = set()
    for line, row in enumerate(table):
        following = table[line + 1] if line + 1 < len(table) else []
        for position, word in enumerate(row):
            if not WHOLE_NUMBER.fullmatch(word):
                continue
            number = int(word)
            if number == len(table) - line - 1:
                sizes.add((line, position, "lines"))
            if number == len(following):
                sizes.add((line, position, "words"))
            if following and number == len(following[0]):
                sizes.add((line, position, "letters"))
            # "3 7 8 9"; that 1 stands before one word is chance.
            if number == len(row) - position - 1 > 1:
                sizes.add((line, position, "words behind"))
    return sizes


# --- Changing an input


def _changed(table: Table, pools: dict[Hashable, list[str]], rng: random.Random) -> Table:
    """The same lines with some other words. What says how much follows stays."""
    changed = [list(row) for row in table]
    sizes = {(line, position) for line, position, _ in _sizes(table)}
    free = []
    free_in_line: dict[int, list[int]] = defaultdict(list)
    for line, row in enumerate(table):
        for place in range(len(row)):
            if (line, place) not in sizes:
                free.append((line, place))
                free_in_line[line].append(place)
    if not free:
        return changed
    line, _ = rng.choice(free)
    row = changed[line]
    places = free_in_line[line]
    one, other = rng.choice(places), rng.choice(places)
    if type(_value(row[one])) is type(_value(row[other])) and rng.random() < 0.4:
        # Two words change places, or one stands twice.
        if rng.random() < 0.7:
            row[one], row[other] = row[other], row[one]
        else:
            row[one] = row[other]
    for line, place in rng.sample(free, rng.randint(1, min(4, len(free)))):
        pool = pools[_kind_of_word(table, line, place)]
        changed[line][place] = _another_word(changed[line][place], pool, rng)
    return changed


def _another_word(word: str, pool: list[str], rng: random.Random) -> str:
    """A word of the same kind; one of letters is as long as before."""
    value = _value(word)
    words = []
    values = []
    for other in pool:
        other_value = _value(other)
        if type(other_value) is type(value):
            words.append(other)
            values.append(other_value)
    # It may have changed places with a word of another kind.
    if not words:
        words, values = [word], [value]
    match value:
        case int():
            # The limits of a task are not known: no further than the largest given number.
            number = another_int(value, values, rng)
            return str(min(number, max(*values, 10)))
        case float():
            decimals = len(word.partition(".")[2])
            return f"{rng.uniform(min(values), max(values)):.{decimals}f}"
    if _is_vocabulary(words):
        return rng.choice([other for other in words if other.isalpha()])
    letters = list(word)
    if rng.random() < 0.3:
        rng.shuffle(letters)
        return "".join(letters)
    alphabet = sorted(set("".join(words)))
    for index in some_places(letters, rng):
        letters[index] = rng.choice(alphabet)
    return "".join(letters)


def _is_vocabulary(pool: list[str]) -> bool:
    """Whether words come more than once, as commands and names do."""
    words = [word for word in pool if word.isalpha()]
    return len(set(words)) < len(words)
