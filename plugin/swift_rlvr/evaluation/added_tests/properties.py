"""What given inputs have in common: sorted where all are sorted, no negative number where none is, an
index that is within the list, equally long lists, balanced brackets.

Nothing says which other inputs a solution must accept, so an input that is made has to have every
property that all given ones have. That is how Daikon infers invariants from runs (Ernst et al. 2007).
A property that is common by chance costs a few inputs, and never makes an invalid one.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

_TRIES = 60  # for each input that is asked for
# What is odd or even in so few numbers is so by chance.
_FEW = 4
# Elements of a list of which all pairs are added.
_LONGEST = 200

# The parts of a text: numbers, words, and each other sign.
RUN = re.compile(r"[0-9]+|[A-Za-z]+|.", re.DOTALL)
WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_ROMAN = re.compile(r"(?=.)M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_WORD = re.compile(r"[A-Za-z]{3,}")
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}

Arguments = list[Any]
Path = tuple[Hashable, ...]


def distinct(
    propose: Callable[[], tuple[Hashable, Any]],
    known: Iterable[Hashable],
    count: int,
    holds: Callable[[Any], bool],
) -> list[Any]:
    """Up to `count` of the values that `propose` makes and that hold, each with a key, which is none
    of the known ones and no other's.
    """
    seen = set(known)
    made: list[Any] = []
    for _ in range(_TRIES * count):
        key, value = propose()
        if key in seen or not holds(value):
            continue
        seen.add(key)
        made.append(value)
        if len(made) == count:
            break
    return made


def common_properties(inputs: Sequence[Arguments]) -> set[Hashable]:
    """The properties of all inputs, but for those that are only the handiest example: 1, 2, 3 in this
    order is a list as any other, where 2, 3, 1 is a permutation.
    """
    common = set.intersection(*(properties(arguments) for arguments in inputs))
    handy: set[Hashable] = set()
    for start in (0, 1):
        for counts, order in (("counts from", "sorted"), ("all count from", "all sorted")):
            for known in common:
                if not isinstance(known, tuple) or known[-1] != f"{counts} {start}":
                    continue
                if (*known[:-1], order) in common:
                    handy |= {known, (*known[:-1], "all sorted")}
    return common - handy


def properties(arguments: Arguments) -> set[Hashable]:
    """All that holds of these arguments, by place and name."""
    holding: set[Hashable] = {len(arguments)}
    for path, values in values_by_place(arguments).items():
        for name in _of_values(values):
            holding.add((path, name))
    for first, second in permutations(range(len(arguments)), 2):
        for name in _of_pair(arguments[first], arguments[second]):
            holding.add((first, second, name))
    return holding


def values_by_place(arguments: Arguments) -> dict[Path, list[Any]]:
    """The values at each place; all elements of a list have one place, those of a tuple have one
    each.

    >>> values_by_place([[3, 4], (5, "a")])
    {(0,): [[3, 4]], (0, '*'): [3, 4], (1,): [(5, 'a')], (1, 0): [5], (1, 1): ['a']}
    """
    places: dict[Path, list[Any]] = {}

    def visit(value: Any, path: Path) -> None:
        places.setdefault(path, []).append(value)
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
    return places


# --- Of the values at one place


def _of_values(values: list[Any]) -> Iterator[Hashable]:
    """What all values at one place have in common."""
    # A list may hold texts and numbers, which have properties of their own.
    by_type: dict[type, list[Any]] = defaultdict(list)
    for value in values:
        by_type[type(value)].append(value)
    for kind, of_kind in by_type.items():
        tests = _OF_A_VALUE.get(kind, {})
        if by_type.keys() == {int} and len(values) >= _FEW:
            tests = tests | _PARITY
        for name, holds in tests.items():
            if all(map(holds, of_kind)):
                yield name
    # Where no argument is None and no list has a text in it, a further one may fail by such a value.
    for kind in (bool, int, float, str, list, tuple, dict, set, type(None)):
        if kind not in by_type:
            yield ("no", kind)

    yield from _of_lengths(values)
    if by_type.keys() == {str}:
        yield from _of_texts(values)


def _of_lengths(values: list[Any]) -> Iterator[Hashable]:
    """The length that all lists and texts at a place have."""
    lengths = set()
    types = set()
    for value in values:
        types.add(type(value))
        if isinstance(value, (list, tuple, str)):
            lengths.add(len(value))
    if len(lengths) != 1:
        return
    # The rows of a matrix, and words of one length.
    if len(values) > 1:
        yield "equally long"
    # A pair, a board of three by three.
    if types == {list}:
        yield ("length", *lengths)


def _of_texts(texts: list[str]) -> Iterator[Hashable]:
    """The layout and the words that all texts have."""
    layouts = set()
    common_words = set(_WORD.findall(texts[0]))
    for text in texts:
        layouts.add(layout(text))
        common_words &= set(_WORD.findall(text))
    # `2024-01-31`
    if len(layouts) == 1 and len(RUN.findall(texts[0])) > 1:
        yield ("layout", *layouts)
    # "5 apples and 6 oranges"
    for word in common_words:
        yield ("word", word)


def layout(text: str) -> str:
    """How a text is laid out, with the length of each number: `2024-01-31` is `9999-99-99`."""
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"[0-9]", "9", text))


def is_sorted(values: Sequence[Any]) -> bool:
    """Whether no value is larger than the next one."""
    try:
        return all(one <= following for one, following in zip(values, values[1:], strict=False))
    except TypeError:
        return False


def is_descending(values: Sequence[Any]) -> bool:
    """Whether no value is smaller than the next one."""
    return is_sorted(values[::-1])


def _is_distinct(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) == len(values)


def counts_from(start: int, values: Sequence[Any]) -> bool:
    """Whether the values are start, start + 1 and so on, in any order."""
    try:
        return sorted(values) == list(range(start, start + len(values)))
    except TypeError:
        return False


def _elements_of_rows(rows: Sequence[Any]) -> list[Any]:
    """The elements of the rows of a table."""
    elements: list[Any] = []
    for row in rows:
        elements += row if isinstance(row, (list, tuple)) else [row]
    return elements


def _is_square(rows: Sequence[Any]) -> bool:
    """Whether these are the rows of a table that has as many columns."""
    return all(isinstance(row, (list, tuple)) and len(row) == len(rows) for row in rows)


def _is_balanced(text: str) -> bool:
    opened = []
    for sign in text:
        if sign in _BRACKETS.values():
            opened.append(sign)
        elif sign in _BRACKETS and (not opened or opened.pop() != _BRACKETS[sign]):
            return False
    return not opened


_Tests = dict[str, Callable[[Any], bool]]

_OF_NUMBERS: _Tests = {
    "not negative": lambda value: value >= 0,
    "positive": lambda value: value > 0,
    "negative": lambda value: value < 0,
    "not 1": lambda value: value != 1,
}
_PARITY: _Tests = {
    "even": lambda value: value % 2 == 0,
    "odd": lambda value: value % 2 == 1,
}
_OF_LISTS: _Tests = {
    "not empty": lambda values: len(values) > 0,
    "several": lambda values: len(values) > 1,
    "sorted": is_sorted,
    "descending": is_descending,
    "distinct": _is_distinct,
    "counts from 0": lambda values: counts_from(0, values),
    "counts from 1": lambda values: counts_from(1, values),
    "square": _is_square,
    "all distinct": lambda rows: _is_distinct(_elements_of_rows(rows)),
    "all sorted": lambda rows: is_sorted(_elements_of_rows(rows)),
    "all count from 0": lambda rows: counts_from(0, _elements_of_rows(rows)),
    "all count from 1": lambda rows: counts_from(1, _elements_of_rows(rows)),
    # An edge or an interval.
    "two different": lambda pair: len(pair) == 2 and pair[0] != pair[1],
}
_OF_STRINGS: _Tests = {
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
    "no stray space": lambda text: text == " ".join(text.split()),
    "several words": lambda text: len(text.split()) > 1,
    "distinct": _is_distinct,
    "sorted": is_sorted,
    "balanced": _is_balanced,
    "Roman": lambda text: _ROMAN.fullmatch(text) is not None,
    "no leading zero": lambda text: not re.search(r"(?<![0-9.])0[0-9]", text),
    "a number": lambda text: WHOLE_NUMBER.fullmatch(text) is not None,
}
_OF_A_VALUE: dict[type, _Tests] = {
    int: _OF_NUMBERS,
    float: _OF_NUMBERS,
    str: _OF_STRINGS,
    list: _OF_LISTS,
    tuple: {name: _OF_LISTS[name] for name in ("sorted", "descending", "distinct", "not empty")},
    set: {"not empty": lambda values: len(values) > 0},
    dict: {"not empty": lambda values: len(values) > 0},
}


# --- Of two arguments


_PairTests = dict[str, Callable[[Any, Any], bool]]

_NUMBERS = (int, float)
_LISTS = (list, tuple)
_SEQUENCES = (list, tuple, str)
# What may hold between two arguments of these types.
_OF_TWO: tuple[tuple[Sequence[type], Sequence[type], _PairTests], ...] = (
    (
        _NUMBERS,
        _NUMBERS,
        {
            "less": operator.lt,
            "at most": operator.le,
            "different": operator.ne,
        },
    ),
    (
        (int,),
        (int,),
        {"divides": lambda one, other: one != 0 and other % one == 0},
    ),
    (
        _SEQUENCES,
        _SEQUENCES,
        {
            "no longer": lambda one, other: len(one) <= len(other),
            "another one": operator.ne,
        },
    ),
    (
        (str,),
        (str,),
        {
            "part": lambda one, other: one in other,
            "same letters": lambda one, other: sorted(one) == sorted(other),
        },
    ),
    (
        (int,),
        _SEQUENCES,
        {
            "the length": lambda number, values: number == len(values),
            "a position": lambda number, values: number <= len(values),
            "an index": lambda number, values: number < len(values),
        },
    ),
)
_OF_NUMBER_AND_NUMBERS: _PairTests = {
    "above all": lambda number, others: all(other < number for other in others),
    "bounds all": lambda number, others: all(other <= number for other in others),
    "within": lambda number, others: bool(others) and min(others) <= number <= max(others),
}


def _holding(tests: _PairTests, one: Any, other: Any) -> Iterator[str]:
    """The names of the tests that hold of two values."""
    for name, holds in tests.items():
        if holds(one, other):
            yield name


def _of_pair(one: Any, other: Any) -> Iterator[str]:
    """What holds between two arguments."""
    for types, other_types, tests in _OF_TWO:
        if type(one) in types and type(other) in other_types:
            yield from _holding(tests, one, other)
    if type(one) in _SEQUENCES and type(other) in _SEQUENCES:
        difference = len(one) - len(other)
        if abs(difference) <= 2:
            yield f"longer by {difference}"
    if type(other) in _LISTS and one in other:
        yield "element"
    if type(one) is not int or type(other) not in _LISTS:
        return
    # A number beside the whole numbers of a list, or of the rows of a table.
    elements = [value for value in _elements_of_rows(other) if type(value) is int]
    yield from _holding(_OF_NUMBER_AND_NUMBERS, one, elements)
    if len(elements) == len(other) <= _LONGEST:
        # "The indices of the two numbers that add up to the target": exactly one pair does.
        sums = sum(first + second == one for first, second in combinations(elements, 2))
        if sums:
            yield "sum of two"
        if sums == 1:
            yield "sum of two in one way"
