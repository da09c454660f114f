"""Further inputs from given ones: of the same types, in their range, and with what all given ones
have in common.

A row has a few inputs, and nothing says which others a solution must accept. So an input is made by
changing given ones a little, and it is kept only if it has every property that all given ones have:
sorted where all are sorted, no negative number where none is, an index that is within the list,
equally long lists, balanced brackets. That is how Daikon infers invariants from runs (Ernst et al.
2007). A property that is common by chance costs a few inputs, and never makes an invalid one.

`nearby_calls` does this for the arguments of a function, `nearby_texts` for what a program reads.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

# A property of so few numbers is chance more often than not.
_FEW = 4
_LONGEST = 200  # elements of a list, and characters of a text, that is changed
_SEVERAL_LETTERS = 6  # that say which letters there are
_TRIES = 60  # for each input that is asked for
# A line of at most so many words has a meaning for each of them, such as "n m".
_RECORD = 4

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,10}")
_ROMAN = re.compile(r"(?=.)M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_RUN = re.compile(r"[0-9]+|[A-Za-z]+|.", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]{3,}")
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}

Arguments = list[Any]
Path = tuple[Hashable, ...]


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
    pools = _Pools(given, numbers)
    common = _deliberate(set.intersection(*(properties(arguments) for arguments in given)))
    known = {repr(arguments) for arguments in given}
    made = []
    for _ in range(_TRIES * count):
        arguments = pools.change(rng.choice(given), rng)
        if repr(arguments) in known or not pools.admits(arguments):
            continue
        if not common <= properties(arguments):
            continue
        known.add(repr(arguments))
        made.append(arguments)
        if len(made) == count:
            break
    return made


def nearby_texts(given: Sequence[str], count: int, rng: random.Random) -> list[str]:
    r"""The same for the input of a program: it has as many lines, and words in a line, as a given
    one.

    >>> nearby_texts(["2\n5 7\n", "3\n1 2 9\n"], 2, random.Random(0))
    ['3\n1 4 9\n', '3\n1 2 10\n']
    """
    tables = [_table(text) for text in given]
    words = _words_by_place(tables)
    may_rename = not any(_is_vocabulary(pool) or _closed(pool) for pool in words.values())
    common = set.intersection(*(_text_properties(table) for table in tables))
    known = set(given)
    made = []
    for _ in range(_TRIES * count):
        number = rng.randrange(len(tables))
        table = _change_table(tables[number], words, rng)
        if may_rename and rng.random() < 0.2:
            renamed = _renaming(rng)
            table = [[word.translate(renamed) for word in row] for row in table]
        end = "\n" if given[number].endswith("\n") else ""
        text = "\n".join(" ".join(line) for line in table) + end
        if text in known or not common <= _text_properties(table):
            continue
        known.add(text)
        made.append(text)
        if len(made) == count:
            break
    return made


# --- What values have in common


def properties(arguments: Arguments) -> set[Hashable]:
    """All that holds of these arguments, by name and place; of an input that was made, what holds
    of all given ones has to hold as well.
    """
    holding: set[Hashable] = {len(arguments)}
    for path, values in _by_path(arguments).items():
        for name in _of_values(values):
            holding.add((path, name))
    places = range(len(arguments))
    for one, other in permutations(places, 2):
        for name in _of_pair(arguments[one], arguments[other]):
            holding.add((one, other, name))
    return holding


def _deliberate(common: set[Hashable]) -> set[Hashable]:
    """The common properties without what is only the handiest example: 1, 2, 3 in this order is a
    list as any other, where 2, 3, 1 is a permutation.
    """
    handy: set[Hashable] = set()
    for start in (0, 1):
        for counts, order in (("counts from", "sorted"), ("all count from", "all sorted")):
            for known in common:
                if not isinstance(known, tuple) or known[-1] != f"{counts} {start}":
                    continue
                if (*known[:-1], order) in common:
                    handy |= {known, (*known[:-1], "all sorted")}
    return common - handy


def _by_path(arguments: Arguments) -> dict[Path, list[Any]]:
    """The values at each place; all elements of a list have one place, those of a tuple have one
    each.
    """
    found: dict[Path, list[Any]] = defaultdict(list)

    def visit(value: Any, path: Path) -> None:
        found[path].append(value)
        match value:
            case tuple():
                for index, element in enumerate(value):
                    visit(element, (*path, index))
            case list() | set() | frozenset():
                for element in value:
                    visit(element, (*path, "*"))
            case dict():
                for key, element in value.items():
                    visit(key, (*path, "key"))
                    visit(element, (*path, "value"))

    for index, argument in enumerate(arguments):
        visit(argument, (index,))
    return found


def _of_values(values: list[Any]) -> Iterator[Hashable]:
    """What all values at one place have in common."""
    for kind in {type(value) for value in values}:
        # Of each kind that is there: a list may hold texts and numbers.
        of_kind = [value for value in values if type(value) is kind]
        yield from _tests_that_hold(of_kind, _TESTS.get(kind, {}))
    kinds = {type(value) for value in values}
    for kind in (bool, int, float, str, list, tuple, dict, set, type(None)):
        if kind not in kinds:
            yield ("no", kind)
    for value in values[:1]:
        if type(value) is str and len(_RUN.findall(value)) > 1:
            layout = _layout(value)
            if all(type(other) is str and _layout(other) == layout for other in values):
                yield ("layout", layout)
    lengths = {len(value) for value in values if isinstance(value, (list, tuple, str))}
    # The rows of a matrix, and words of one length.
    if len(values) > 1 and len(lengths) == 1:
        yield "equally long"
    # A pair, a board of three by three.
    if len(lengths) == 1 and all(isinstance(value, list) for value in values):
        yield ("length", *lengths)
    if all(isinstance(value, str) for value in values):
        # "5 apples and 6 oranges"
        for word in set.intersection(*({*_WORD.findall(value)} for value in values)):
            yield ("word", word)
    if len(values) >= _FEW and all(type(value) is int for value in values):
        if all(value % 2 == 0 for value in values):
            yield "even"
        if all(value % 2 for value in values):
            yield "odd"


def _tests_that_hold(values: list[Any], tests: dict[str, Callable[[Any], bool]]) -> Iterator[str]:
    for name, test in tests.items():
        if all(test(value) for value in values):
            yield name


def _is_sorted(values: Sequence[Any]) -> bool:
    return _compares(lambda: all(one <= other for one, other in _neighbours(values)))


def _is_descending(values: Sequence[Any]) -> bool:
    return _compares(lambda: all(one >= other for one, other in _neighbours(values)))


def _neighbours(values: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(values, values[1:], strict=False)


def _compares(test: Callable[[], bool]) -> bool:
    """Whether a comparison holds; False where the values cannot be compared."""
    try:
        return bool(test())
    except TypeError:
        return False


def _is_distinct(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) == len(values)


def _counts_from(start: int) -> Callable[[Sequence[Any]], bool]:
    """Whether the elements are start, start + 1 and so on, in any order."""

    def test(values: Sequence[Any]) -> bool:
        return _compares(lambda: sorted(values) == list(range(start, start + len(values))))

    return test


def _flat(rows: Sequence[Any]) -> list[Any]:
    """The elements of the rows of a table."""
    elements: list[Any] = []
    for row in rows:
        elements += row if isinstance(row, (list, tuple)) else [row]
    return elements


def _is_square(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, (list, tuple)) and len(row) == len(rows) for row in rows)


def _are_two_different(pair: Sequence[Any]) -> bool:
    """Whether it is an edge or an interval: two different numbers, or none."""
    return len(pair) == 2 and pair[0] != pair[1]


def _is_balanced(text: str) -> bool:
    opened = []
    for sign in text:
        if sign in _BRACKETS.values():
            opened.append(sign)
        elif sign in _BRACKETS and (not opened or opened.pop() != _BRACKETS[sign]):
            return False
    return not opened


def _has_no_stray_space(text: str) -> bool:
    return text == " ".join(text.split())


def _has_no_leading_zero(text: str) -> bool:
    return not re.search(r"(?<![0-9.])0[0-9]", text)


_SIGNS = {
    "not negative": lambda value: value >= 0,
    "positive": lambda value: value > 0,
    "negative": lambda value: value < 0,
    "not 1": lambda value: value != 1,
}
_SEQUENCE = {
    "not empty": lambda values: len(values) > 0,
    "several": lambda values: len(values) > 1,
    "sorted": _is_sorted,
    "descending": _is_descending,
    "distinct": _is_distinct,
    "counts from 0": _counts_from(0),
    "counts from 1": _counts_from(1),
    "square": _is_square,
    "all distinct": lambda rows: _is_distinct(_flat(rows)),
    "all sorted": lambda rows: _is_sorted(_flat(rows)),
    "all count from 0": lambda rows: _counts_from(0)(_flat(rows)),
    "all count from 1": lambda rows: _counts_from(1)(_flat(rows)),
    "two different": _are_two_different,
}
_TEXT = {
    "not empty": lambda text: text != "",
    "several": lambda text: len(text) > 1,
    "digits": str.isdigit,
    "letters": str.isalpha,
    "no letter": lambda text: not re.search(r"[A-Za-z]", text),
    "no digit": lambda text: not re.search(r"[0-9]", text),
    "lower case": lambda text: text == text.lower(),
    "upper case": lambda text: text == text.upper(),
    "begins with a capital": lambda text: text[:1].isupper(),
    "begins with a letter": lambda text: text[:1].isalpha(),
    "no space": lambda text: " " not in text,
    "words": _has_no_stray_space,
    "several words": lambda text: len(text.split()) > 1,
    "distinct": _is_distinct,
    "sorted": _is_sorted,
    "balanced": _is_balanced,
    "Roman": lambda text: _ROMAN.fullmatch(text) is not None,
    "no leading zero": _has_no_leading_zero,
    "a number": lambda text: _WHOLE.fullmatch(text) is not None,
}
_TESTS: dict[type, dict[str, Callable[[Any], bool]]] = {
    int: _SIGNS,
    float: _SIGNS,
    str: _TEXT,
    list: _SEQUENCE,
    tuple: {name: _SEQUENCE[name] for name in ("sorted", "descending", "distinct", "not empty")},
    set: {"not empty": lambda values: len(values) > 0},
    dict: {"not empty": lambda values: len(values) > 0},
}


def _of_pair(one: Any, other: Any) -> Iterator[str]:
    """What holds between two arguments."""
    if _is_number(one) and _is_number(other):
        if one < other:
            yield "less"
        if one <= other:
            yield "at most"
        if one != other:
            yield "different"
        if type(one) is type(other) is int and one and other % one == 0:
            yield "divides"
    sized = (list, tuple, str)
    if isinstance(one, sized) and isinstance(other, sized):
        difference = len(one) - len(other)
        if abs(difference) <= 2:
            yield f"longer by {difference}"
        if len(one) <= len(other):
            yield "no longer"
        if one != other:
            yield "another one"
    if isinstance(one, str) and isinstance(other, str):
        if one in other:
            yield "part"
        if sorted(one) == sorted(other):
            yield "same letters"
    if type(one) is int and isinstance(other, sized):
        yield from _of_number_and_sequence(one, other)
    elif isinstance(other, (list, tuple)) and one in other:
        yield "element"


def _of_number_and_sequence(number: int, sequence: Sequence[Any]) -> Iterator[str]:
    length = len(sequence)
    if number == length:
        yield "the length"
    if number <= length:
        yield "a position"
    if number < length:
        yield "an index"
    if isinstance(sequence, str):
        return
    if number in sequence:
        yield "element"
    elements = [value for value in sequence if type(value) is int]
    for row in sequence:
        if isinstance(row, (list, tuple)):
            elements += [value for value in row if type(value) is int]
    if all(value < number for value in elements):
        yield "above all"
    if all(value <= number for value in elements):
        yield "bounds all"
    if elements and min(elements) <= number <= max(elements):
        yield "within"
    if len(elements) == length <= _LONGEST:
        sums = sum(a + b == number for a, b in combinations(elements, 2))
        if sums:
            yield "sum of two"
        if sums == 1:
            yield "sum of two in one way"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- Changing values


class _Pools:
    """The values of all given inputs by their place, of which changes are made."""

    def __init__(self, given: Sequence[Arguments], numbers: Sequence[float] = ()):
        self.given = given
        self.numbers = numbers
        self.values: dict[Path, list[Any]] = defaultdict(list)
        for arguments in given:
            for path, values in _by_path(arguments).items():
                self.values[path] += values
        self.alphabets: dict[Path, set[str]] = {}
        for path, values in self.values.items():
            alphabet = _closed([value for value in values if isinstance(value, str)])
            if alphabet:
                self.alphabets[path] = alphabet

    def change(self, arguments: Arguments, rng: random.Random) -> Arguments:
        """Arguments like these, of which one or several are others."""
        if rng.random() < 0.25:
            return _change_alike(arguments, rng)
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
            mixed[index] = self.another(mixed[index], (index,), rng)
        return mixed

    def admits(self, arguments: Arguments) -> bool:
        """Whether no text has a letter that its place cannot have, such as a 2 in "0110"."""
        for path, values in _by_path(arguments).items():
            alphabet = self.alphabets.get(path)
            for value in values:
                if alphabet and isinstance(value, str) and not set(value) <= alphabet:
                    return False
        return True

    def another(self, value: Any, path: Path, rng: random.Random) -> Any:
        """A value for this place."""
        pool = [other for other in self.values[path] if type(other) is type(value)] or [value]
        if rng.random() < 0.1:
            return rng.choice(pool)
        match value:
            case bool():
                return rng.random() < 0.5
            case int():
                return _another_int(value, pool, rng, self.numbers)
            case float():
                return _another_float(value, pool, rng, self.numbers)
            case str():
                return _another_text(value, pool, rng)
            case list():
                return self._another_list(value, path, pool, rng)
            case tuple():
                changed = list(value)
                for index in _some_of(changed, rng):
                    changed[index] = self.another(changed[index], (*path, index), rng)
                return tuple(changed)
            case set():
                return set(self._another_list(sorted(value, key=repr), path, [], rng))
            case dict():
                changed_values = {}
                for key, element in value.items():
                    if rng.random() < 0.5:
                        element = self.another(element, (*path, "value"), rng)
                    changed_values[key] = element
                return changed_values
        return value

    def _another_list(self, value: list, path: Path, pool: list[list], rng: random.Random) -> list:
        changed = list(value)
        if not changed or len(changed) > _LONGEST:
            return changed
        inner = (*path, "*")
        # Sorted and counted lists would hardly ever come out of the changes.
        fix = _restored(pool or [value])
        match rng.randrange(6):
            case 0:
                rng.shuffle(changed)
            case 1:
                del changed[rng.randrange(len(changed))]
            case 2:
                changed.insert(rng.randrange(len(changed) + 1), rng.choice(changed))
            case 3:
                more = [self.another(rng.choice(changed), inner, rng) for _ in range(2)]
                changed[rng.randrange(len(changed) + 1) : 0] = more
            case 4:
                other = rng.choice(pool or [value])
                changed = (
                    changed[: rng.randint(0, len(changed))] + other[rng.randint(0, len(other)) :]
                )
            case _:
                for index in _some_of(changed, rng):
                    changed[index] = self.another(changed[index], inner, rng)
        return fix(changed)


def _restored(pool: list[list]) -> Callable[[list], list]:
    """What brings a changed list back into the order that all lists of the pool have."""
    if all(map(_counts_from(1), pool)) or all(map(_counts_from(0), pool)):
        return lambda values: values
    if all(map(_is_sorted, pool)):
        return lambda values: _sorted_or_not(values, reverse=False)
    if all(map(_is_descending, pool)):
        return lambda values: _sorted_or_not(values, reverse=True)
    return lambda values: values


def _sorted_or_not(values: list, reverse: bool) -> list:
    try:
        return sorted(values, reverse=reverse)
    except TypeError:
        return values


def _some_of(values: Sequence[Any], rng: random.Random) -> list[int]:
    """Places of some of the values, of one at least."""
    if not values:
        return []
    return sorted(rng.sample(range(len(values)), rng.randint(1, min(3, len(values)))))


def _another_int(
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
    value: float, pool: list[float], rng: random.Random, numbers: Sequence[float] = ()
) -> float:
    pool = [number for number in pool if abs(number) < 1e15]
    if not pool:
        return value
    decimals = max(len(repr(number).partition(".")[2]) for number in pool)
    unit = 10 ** min(decimals, 6)
    scaled = [round(number * unit) for number in pool]
    steps = [round(number * unit) for number in numbers if abs(number) < 1e15]
    return _another_int(rng.choice(scaled), scaled, rng, steps) / unit


def _closed(texts: list[str]) -> set[str] | None:
    """The letters of texts that have few different ones, such as 01 and ACGT; else None."""
    letters = "".join(texts)
    alphabet = set(letters)
    return alphabet if len(alphabet) <= 4 and len(letters) >= _SEVERAL_LETTERS else None


def _another_text(value: str, pool: list[str], rng: random.Random) -> str:
    if len(value) > _LONGEST:
        return value
    if len({_mask(text) for text in pool}) == 1 and len(_RUN.findall(value)) > 1:
        return _same_mask(pool, rng)
    letters = list(value)
    alphabet = sorted({letter for text in pool for letter in text})
    match rng.randrange(8 if " " in value else 6):
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
            for index in _some_of(letters, rng):
                letters[index] = rng.choice(alphabet)
        case 5:
            # Another word, with letters that the pool need not have.
            letters = [_like(letter, rng) if rng.random() < 0.4 else letter for letter in letters]
        case 6 | 7:
            words = value.split(" ")
            rng.shuffle(words)
            if rng.random() < 0.5:
                words[rng.randrange(len(words))] = rng.choice(rng.choice(pool).split(" "))
            return " ".join(words)
    return "".join(letters)


def _like(sign: str, rng: random.Random) -> str:
    """Another sign of the same kind: a letter of the same case, or a digit."""
    if "a" <= sign <= "z":
        return rng.choice("abcdefghijklmnopqrstuvwxyz")
    if "A" <= sign <= "Z":
        return rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if "0" <= sign <= "9":
        return rng.choice("0123456789")
    return sign


def _mask(text: str) -> str:
    """How a text is laid out: `2024-01-31` is `9-9-9`."""
    text = re.sub(r"[0-9]+", "9", text)
    return re.sub(r"[A-Za-z]+", "a", text)


def _layout(text: str) -> str:
    """The same with the length of each number."""
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"[0-9]", "9", text))


def _same_mask(pool: list[str], rng: random.Random) -> str:
    """A text that is laid out as all in the pool are. Its numbers are within the range of theirs."""
    columns = list(zip(*(_RUN.findall(text) for text in pool), strict=True))
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


def _change_alike(arguments: Arguments, rng: random.Random) -> Arguments:
    """The same change everywhere, which keeps palindromes, anagrams and the like what they are."""
    match rng.randrange(4):
        case 0:
            renamed = _renaming(rng)
            return [
                _map_leaves(value, str, lambda text: text.translate(renamed)) for value in arguments
            ]
        case 1:
            shift = rng.choice((1, 2, 3))
            return [_map_leaves(value, int, lambda number: number + shift) for value in arguments]
        case 2:
            return [value[::-1] if _is_loose(value) else value for value in arguments]
    place = rng.randrange(len(arguments)) if arguments else 0
    changed = list(arguments)
    if arguments and _is_loose(changed[place]) and len(changed[place]) < _LONGEST:
        changed[place] = changed[place] + changed[place]
    return changed


def _is_loose(value: Any) -> bool:
    """Whether it may be turned round or doubled: a list, or a text without numbers, as in a date."""
    if isinstance(value, str):
        return not re.search(r"[0-9]", value)
    return isinstance(value, list)


def _renaming(rng: random.Random) -> dict[int, str]:
    """Each letter to another one of its case."""
    table: dict[int, str] = {}
    for letters in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        others = list(letters)
        rng.shuffle(others)
        table |= dict(zip(map(ord, letters), others, strict=True))
    return table


def _map_leaves(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    match value:
        case list():
            return [_map_leaves(element, kind, change) for element in value]
        case tuple():
            return tuple(_map_leaves(element, kind, change) for element in value)
        case dict():
            return {key: _map_leaves(element, kind, change) for key, element in value.items()}
    return change(value) if type(value) is kind else value


# --- The input of a program


Table = list[list[str]]


def _table(text: str) -> Table:
    """The words of each line."""
    return [line.split() for line in text.rstrip("\n").split("\n")]


def _place(table: Table, line: int, position: int) -> Hashable:
    """Words that mean the same have one place: those of a long line, and those at one position of
    lines of a few words. The first line is its own kind.
    """
    length = len(table[line])
    if length > _RECORD:
        return (line == 0, "long")
    return (line == 0, length, position)


def _words_by_place(tables: Sequence[Table]) -> dict[Hashable, list[str]]:
    words: dict[Hashable, list[str]] = defaultdict(list)
    for table in tables:
        for line, row in enumerate(table):
            for position, word in enumerate(row):
                words[_place(table, line, position)].append(word)
    return words


def _sizes(table: Table) -> Iterator[tuple[int, int, str]]:
    """The words that say how much follows: line, position, and what of."""
    for line, row in enumerate(table):
        following = table[line + 1] if line + 1 < len(table) else []
        for position, word in enumerate(row):
            if not _WHOLE.fullmatch(word):
                continue
            number = int(word)
            if number == len(table) - line - 1:
                yield line, position, "lines"
            if number == len(following):
                yield line, position, "words"
            if following and number == len(following[0]):
                yield line, position, "letters"
            # "3 7 8 9"; that 1 stands before one word is chance.
            if number == len(row) - position - 1 > 1:
                yield line, position, "words behind"


def _change_table(table: Table, words: dict[Hashable, list[str]], rng: random.Random) -> Table:
    """The same lines with some other words. What says how much follows stays."""
    changed = [list(row) for row in table]
    sizes = {(line, position) for line, position, _ in _sizes(table)}
    free = []
    for line, row in enumerate(table):
        free += [(line, place) for place in range(len(row)) if (line, place) not in sizes]
    if not free:
        return changed
    line, _ = rng.choice(free)
    row = changed[line]
    places = [place for one, place in free if one == line]
    one, other = rng.choice(places), rng.choice(places)
    if type(_value(row[one])) is type(_value(row[other])) and rng.random() < 0.4:
        # Two words change places, or one stands twice.
        if rng.random() < 0.7:
            row[one], row[other] = row[other], row[one]
        else:
            row[one] = row[other]
    for line, place in rng.sample(free, rng.randint(1, min(4, len(free)))):
        pool = words[_place(table, line, place)]
        changed[line][place] = _another_word(changed[line][place], pool, rng)
    return changed


def _is_vocabulary(pool: list[str]) -> bool:
    """Whether words come more than once, as commands and names do."""
    words = [word for word in pool if word.isalpha()]
    return len(set(words)) < len(words)


def _another_word(word: str, pool: list[str], rng: random.Random) -> str:
    """A word of the same kind; one of letters is as long as before."""
    pool = [other for other in pool if type(_value(other)) is type(_value(word))] or [word]
    if _WHOLE.fullmatch(word):
        numbers = [int(other) for other in pool if _WHOLE.fullmatch(other)]
        # The limits of a task are not known: no further than the largest given number.
        number = _another_int(int(word), numbers, rng)
        return str(min(number, max(*numbers, 10)))
    if _DECIMAL.fullmatch(word):
        decimals = len(word.partition(".")[2])
        decimal_numbers = [float(other) for other in pool if _DECIMAL.fullmatch(other)]
        low, high = min(decimal_numbers), max(decimal_numbers)
        return f"{rng.uniform(low, high):.{decimals}f}"
    if _is_vocabulary(pool):
        return rng.choice([other for other in pool if other.isalpha()])
    alphabet = sorted({letter for other in pool for letter in other})
    letters = list(word)
    if rng.random() < 0.3:
        rng.shuffle(letters)
        return "".join(letters)
    for index in _some_of(letters, rng):
        letters[index] = rng.choice(alphabet)
    return "".join(letters)


def _text_properties(table: Table) -> set[Hashable]:
    """All that holds of an input; see `properties`."""
    holding: set[Hashable] = set()
    for line, position, what in _sizes(table):
        holding.add(("size", line, position, what))
    by_kind: dict[tuple[bool, int | str], list[list[Any]]] = defaultdict(list)
    for line, row in enumerate(table):
        values = [_value(word) for word in row]
        # The list in the second line may have as many elements as a record elsewhere.
        holding |= {("line", line, name) for name in properties([values])}
        kind = (line == 0, len(row) if len(row) <= _RECORD else "long")
        by_kind[kind].append(values)
    for kind, rows in by_kind.items():
        is_record = kind[1] != "long"
        if is_record:
            common = set.intersection(*({*properties(row)} for row in rows))
        else:
            common = set.intersection(*({*properties([row])} for row in rows))
        holding |= {(kind, name) for name in common}
        whole = [[tuple(row) for row in rows]]
        holding |= {(kind, "rows", name) for name in properties(whole)}
    first = table[0][0] if table[0] else ""
    if _WHOLE.fullmatch(first):
        for row in table:
            numbers = [int(word) for word in row if _WHOLE.fullmatch(word)]
            width = len(row) if len(row) <= _RECORD else "long"
            if not all(number <= int(first) for number in numbers):
                holding.add(("exceeds", width))
        lengths = {len(row) if len(row) <= _RECORD else "long" for row in table}
        for width in lengths:
            if ("exceeds", width) not in holding:
                holding.add(("bounded by the first", width))
    return {name for name in holding if not (isinstance(name, tuple) and name[0] == "exceeds")}


def _value(word: str) -> Any:
    if _WHOLE.fullmatch(word):
        return int(word)
    if _DECIMAL.fullmatch(word):
        return float(word)
    return word
