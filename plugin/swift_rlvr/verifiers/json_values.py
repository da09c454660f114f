"""JSON that a policy wrote: read as the standard has it (RFC 8259), and compared field by field.

Python's reader takes more than JSON: NaN, a key twice (of which the last one counts, so that two
answers can be given at once), numbers that become infinite. Here none of these is JSON.
"""

import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

NOT_JSON = "not JSON"
TWO_VALUES = "several values"
DUPLICATE_KEY = "duplicate key"
NOT_A_NUMBER = "not a number"
TOO_DEEP = "too deep"
TOO_LONG = "too long"
# The most characters of an answer, and the deepest that lists and objects may lie in each other:
# what walks through a value may do so by recursion.
MOST_CHARS = 200_000
DEEPEST = 64
# Above so many pairs of elements, two lists without order are compared as sorted ones.
_MOST_PAIRS = 100_000


class NotJson(ValueError):
    """A text that is not one value of JSON. reason: one of those above."""

    def __init__(self, reason: str, detail: str):
        super().__init__(detail)
        self.reason = reason


def read_json(text: str) -> Any:
    """The value that a text is; NotJson where it is none.

    >>> read_json(' {"a": [1, 2.5, null]} ')
    {'a': [1, 2.5, None]}
    >>> for text in ('{"a": 1} {"a": 2}', '{"a": 1, "a": 2}', "[NaN]", "[" * 1000 + "]" * 1000, "{'a': 1}"):
    ...     try:
    ...         read_json(text)
    ...     except NotJson as error:
    ...         print(error.reason)
    several values
    duplicate key
    not a number
    too deep
    not JSON
    """
    if len(text) > MOST_CHARS:
        raise NotJson(TOO_LONG, f"it has {len(text):,} characters, at most {MOST_CHARS:,} are read")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise NotJson(TOO_DEEP, f"lists and objects lie deeper than {DEEPEST}") from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}, column {error.colno}"
        # json has no other sign of it. A number before a text is no value of an answer.
        is_first = error.msg == "Extra data" and text.lstrip().startswith(("{", "["))
        reason = TWO_VALUES if is_first else NOT_JSON
        raise NotJson(reason, detail) from None
    if depth_of(value) > DEEPEST:
        raise NotJson(TOO_DEEP, f"lists and objects lie deeper than {DEEPEST}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        ((repeated, _),) = counts.most_common(1)
        raise NotJson(DUPLICATE_KEY, f"the key {repeated!r:.80} stands twice in one object")
    return value


def _number(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        if not math.isfinite(float(text)):
            raise NotJson(NOT_A_NUMBER, f"{text[:20]}... is larger than any number of 64 bits")
        return read(text)

    return number


def _constant(text: str) -> Any:
    raise NotJson(NOT_A_NUMBER, f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_number(float),
    parse_int=_number(int),
    parse_constant=_constant,
)


def values_in(text: str) -> list[str]:
    """The texts of the objects and lists that stand in a text, the outer ones alone. What opens like
    one and is none is passed over.

    >>> values_in('Either {"a": 1} or [2, {"b": 3}], as {x}.')
    ['{"a": 1}', '[2, {"b": 3}]']
    """
    found = []
    position = 0
    # A text of many openings would be read again from each of them.
    failures = 0
    while failures < 100:
        starts = [
            start for start in (text.find("{", position), text.find("[", position)) if start >= 0
        ]
        if not starts:
            break
        start = min(starts)
        try:
            _, end = _PLAIN_DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            failures += 1
            position = start + 1
            continue
        found.append(text[start:end])
        position = end
    return found


_PLAIN_DECODER = json.JSONDecoder()


def depth_of(value: Any) -> int:
    """How deep lists and objects lie in each other; 0 for a text or a number.

    >>> depth_of({"a": [1]}), depth_of("a")
    (2, 0)
    """
    deepest = 0
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        if isinstance(each, (dict, list)):
            depth += 1
            inner = each.values() if isinstance(each, dict) else each
            waiting += [(one, depth) for one in inner]
        deepest = max(deepest, depth)
    return deepest


def canonical(value: Any) -> str:
    """A text that is the same for values that are equal in JSON: 1 and 1.0 are, 1 and true are not.

    >>> canonical({"b": 1.0, "a": True}) == canonical({"a": True, "b": 1}), canonical([1]) == canonical([True])
    (True, False)
    """
    if isinstance(value, dict):
        pairs = [f"{json.dumps(key)}:{canonical(value[key])}" for key in sorted(value)]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


class Field(NamedTuple):
    """A value within a gold or an answer, and whether the answer has what the gold has."""

    path: str
    is_right: bool
    detail: str = ""


def compare(
    gold: Any, answer: Any, tolerance: float = 0.0, unordered: bool = False, path: str = "$"
) -> list[Field]:
    """Every field of a gold and of an answer, in the gold's order; the answer is right where all are.

    Args:
        tolerance: how far a number may be from the gold's, as a share of the gold's.
        unordered: whether the order of lists says nothing.

    >>> [field.path for field in compare({"a": 1, "b": [2, 3]}, {"a": 1.0, "b": [3, 2]}) if not field.is_right]
    ['$.b[0]', '$.b[1]']
    >>> all(field.is_right for field in compare([100, 2], [2, 101], tolerance=0.01, unordered=True))
    True
    """
    if isinstance(gold, dict) and isinstance(answer, dict):
        fields = [] if gold or answer else [Field(path, True)]
        for key, value in gold.items():
            inner = f"{path}.{key}"
            if key in answer:
                fields += compare(value, answer[key], tolerance, unordered, inner)
            else:
                fields += _each(value, inner, "is missing")
        for key, value in answer.items():
            if key not in gold:
                fields += _each(value, f"{path}.{key}", "is not in the gold")
        return fields

    if isinstance(gold, list) and isinstance(answer, list):
        fields = [] if gold or answer else [Field(path, True)]
        others = _reordered(gold, answer, tolerance) if unordered else answer
        for index, value in enumerate(gold):
            inner = f"{path}[{index}]"
            if index < len(others):
                fields += compare(value, others[index], tolerance, unordered, inner)
            else:
                fields += _each(value, inner, "is missing")
        for index, value in enumerate(others[len(gold) :], len(gold)):
            fields += _each(value, f"{path}[{index}]", "is not in the gold")
        return fields

    if same_scalar(gold, answer, tolerance):
        return [Field(path, True)]
    detail = f"expected {shortened(gold)}, got {shortened(answer)}"
    # An object in place of a number has as many wrong fields as it has.
    return [Field(each.path, False, detail) for each in _larger(gold, answer, path)]


def same_scalar(gold: Any, answer: Any, tolerance: float = 0.0) -> bool:
    """Whether two values that are no list and no object are the same: 1 is 1.0, and is not true."""
    if isinstance(gold, bool) or isinstance(answer, bool):
        return gold is answer
    if isinstance(gold, (int, float)) and isinstance(answer, (int, float)):
        return gold == answer or abs(answer - gold) <= tolerance * abs(gold)
    return type(gold) is type(answer) and bool(gold == answer)


def equal(gold: Any, answer: Any, tolerance: float = 0.0, unordered: bool = False) -> bool:
    """Whether all fields are right, see `compare`."""
    return all(field.is_right for field in compare(gold, answer, tolerance, unordered))


def shortened(value: Any) -> str:
    """A value as JSON, cut to a length that can be read."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _each(value: Any, path: str, problem: str) -> list[Field]:
    return [Field(each, False, problem) for each in _paths(value, path)]


def _larger(gold: Any, answer: Any, path: str) -> list[Field]:
    paths = max(list(_paths(gold, path)), list(_paths(answer, path)), key=len)
    return [Field(each, False) for each in paths]


def _paths(value: Any, path: str) -> Iterator[str]:
    """The paths of a value's fields; its own where it has none."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{index}]")
    else:
        yield path


def _reordered(gold: list[Any], answer: list[Any], tolerance: float) -> list[Any]:
    """The elements of an answer in the order of the gold's elements that they equal; those that equal
    none fill the places that are left.
    """
    if len(gold) * len(answer) > _MOST_PAIRS:
        places: dict[str, deque[int]] = {}
        for index, value in enumerate(answer):
            places.setdefault(canonical(value), deque()).append(index)
        partners = {}
        for index, value in enumerate(gold):
            same = places.get(canonical(value))
            if same:
                partners[index] = same.popleft()
    else:
        partners = matched(gold, answer, lambda one, other: equal(one, other, tolerance, True))
    used = set(partners.values())
    rest = deque(index for index in range(len(answer)) if index not in used)
    order = []
    for index in range(len(gold)):
        if index in partners:
            order.append(partners[index])
        elif rest:
            order.append(rest.popleft())
    return [answer[index] for index in (*order, *rest)]


def matched(
    golds: Sequence[Any], answers: Sequence[Any], fits: Callable[[Any, Any], bool]
) -> dict[int, int]:
    """As many pairs as there can be of a gold and an answer that fits it, by their indexes.

    An answer may fit several golds, so that the first that fits is not always the one to take: these
    are augmenting paths.

    >>> matched([{1, 2}, {1}], [1, 2], lambda gold, answer: answer in gold)
    {0: 1, 1: 0}
    """
    fitting = []
    for gold in golds:
        fitting.append([index for index, answer in enumerate(answers) if fits(gold, answer)])
    taken: dict[int, int] = {}  # the gold of an answer
    for start in range(len(golds)):
        came_from: dict[int, int] = {}  # the gold from which an answer was reached
        waiting = deque([start])
        free = None
        while waiting and free is None:
            gold_index = waiting.popleft()
            for index in fitting[gold_index]:
                if index in came_from:
                    continue
                came_from[index] = gold_index
                if index not in taken:
                    free = index
                    break
                waiting.append(taken[index])
        while free is not None:
            gold_index = came_from[free]
            before = next((index for index, owner in taken.items() if owner == gold_index), None)
            taken[free] = gold_index
            free = before if gold_index != start else None
    return dict(sorted((gold_index, index) for index, gold_index in taken.items()))
