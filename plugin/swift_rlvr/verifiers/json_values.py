"""JSON that a policy wrote: read as the standard has it (RFC 8259), and compared field by field.

Python's reader takes more than JSON: NaN, a key twice (of which the last one counts, so that two
answers can be given at once), numbers that become infinite. Here none of these is JSON.
"""

import json
import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from swift_rlvr.verifiers.denials import is_denied

NOT_JSON = "not JSON"
TWO_VALUES = "several values"
DUPLICATE_KEY = "duplicate key"
NOT_A_NUMBER = "not a number"
TOO_DEEP = "too deep"
TOO_LONG = "too long"
TEXT_AROUND = "text around"
# The most characters of an answer, and the deepest that lists and objects may lie in each other:
# what walks through a value may do so by recursion.
MOST_CHARS = 200_000
DEEPEST = 64
# How many comparisons the partners of elements near each other may take; with more of them an element
# has those alone that are the same.
_MOST_COMPARISONS = 40_000
# What the openings in a text that are no JSON may cost: the characters that were read of them, and so
# many for each.
_MOST_READ_IN_VAIN = 1_000_000
_EACH_IN_VAIN = 100
_TOO_DEEP_IN_VAIN = 10_000
# What a path writes around the key of an object, or the place in a list.
_AROUND_KEY: dict[type, tuple[str, str]] = {dict: (".", ""), list: ("[", "]")}
_OPENING = re.compile(r"[\[{]")
# What opens a block of Markdown.
_FENCE = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(r"\s*(?:json[c5]?(?=[\s{\[]))?", re.IGNORECASE)


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


def loosely_read(text: str) -> Any:
    """The value of a dataset's JSON, in which a key may stand twice; ValueError where it is none, and
    for numbers that are not finite.

    >>> loosely_read('{"a": 1, "a": 2}')
    {'a': 2}
    """
    return _LOOSE_DECODER.decode(text)


def values_in(text: str) -> list[str]:
    """The texts of the objects and lists that stand in a text, the outer ones alone. What opens like
    one and is none is passed over; NotJson where there is so much of it that the text is not read to
    its end.

    >>> values_in('Either {"a": 1} or [2, {"b": 3}], as {x}.')
    ['{"a": 1}', '[2, {"b": 3}]']
    """
    found = []
    position = 0
    # A text of many openings would be read again from each of them.
    in_vain = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        try:
            _, end = _PLAIN_DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            is_read = isinstance(error, json.JSONDecodeError)
            in_vain += error.pos - start if is_read else _TOO_DEEP_IN_VAIN  # type: ignore[union-attr]
            in_vain += _EACH_IN_VAIN
            if in_vain > _MOST_READ_IN_VAIN:
                raise NotJson(NOT_JSON, "too much of it opens like JSON and is none") from None
            position = start + 1
            continue
        found.append(text[start:end])
        position = end
    return found


def read_answer(written: str, text_around: bool) -> tuple[str, Any]:
    """The JSON of an answer as text and as a value; NotJson where it is not one value alone.

    text_around: whether it may stand in a text, as the only object or list.
    """
    inner = _without_block(written)
    try:
        return inner, read_json(inner)
    except NotJson as error:
        if error.reason not in (NOT_JSON, TWO_VALUES):
            raise
        values = values_in(written)
        if len(values) > 1:
            detail = f"it has {len(values)} objects and lists"
            raise NotJson(TWO_VALUES, detail) from None
        if not values or values[0] == inner:
            raise
        if not text_around:
            raise NotJson(TEXT_AROUND, f"it is not JSON alone: {error}") from None
        start = written.index(values[0])
        if is_denied(written, start, start + len(values[0])):
            raise NotJson(TEXT_AROUND, "the words around it take it back") from None
        return values[0], read_json(values[0])


def _without_block(written: str) -> str:
    """What stands in the block of Markdown that an answer is; all of it where it is none."""
    fence = _FENCE.match(written)
    if fence is None or not written.endswith(fence[0]) or len(written) < 2 * len(fence[0]):
        return written
    inner = written[fence.end() : -len(fence[0])]
    language = _LANGUAGE.match(inner)
    return inner[language.end() :].strip() if language else inner.strip()


_PLAIN_DECODER = json.JSONDecoder()
_LOOSE_DECODER = json.JSONDecoder(
    parse_float=_number(float), parse_int=_number(int), parse_constant=_constant
)


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
    return json.dumps(_as_written(value))


def _as_written(value: Any) -> Any:
    """A value, but a float that is whole as the integer that it is written as: 1e23 is 10**23, which no
    float is, and 9007199254740992.0 is not the next integer, which Python's difference says.
    """
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    return value


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
    pairing = _Pairing(tolerance) if unordered else None
    return _fields(gold, answer, tolerance, pairing, path)


def _fields(
    gold: Any, answer: Any, tolerance: float, pairing: "_Pairing | None", path: str
) -> list[Field]:
    if type(gold) is not type(answer) or not isinstance(gold, (dict, list)):
        if same_scalar(gold, answer, tolerance):
            return [Field(path, True)]
        # An object in place of a number has as many wrong fields as it has.
        larger = max(gold, answer, key=lambda value: len(list(_paths(value, path))))
        return _all_wrong(larger, path, f"expected {shortened(gold)}, got {shortened(answer)}")

    if pairing and isinstance(gold, list):
        answer = pairing.reordered(gold, answer)
    before, after = _AROUND_KEY[type(gold)]
    golds, answers = _parts(gold), _parts(answer)
    fields = [] if golds or answers else [Field(path, True)]
    for key, value in golds.items():
        inner = f"{path}{before}{key}{after}"
        if key in answers:
            fields += _fields(value, answers[key], tolerance, pairing, inner)
        else:
            fields += _all_wrong(value, inner, "is missing")
    for key, value in answers.items():
        if key not in golds:
            inner = f"{path}{before}{key}{after}"
            fields += _all_wrong(value, inner, "is not in the gold")
    return fields


def _all_wrong(value: Any, path: str, problem: str) -> list[Field]:
    return [Field(each, False, problem) for each in _paths(value, path)]


def _parts(value: Any) -> dict[Any, Any]:
    """The values of an object by their keys, those of a list by their places; none of other values."""
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list) else {}


def _paths(value: Any, path: str) -> Iterator[str]:
    """The paths of a value's fields; its own where it has none."""
    parts = _parts(value)
    if not parts:
        yield path
        return
    before, after = _AROUND_KEY[type(value)]
    for key, inner in parts.items():
        yield from _paths(inner, f"{path}{before}{key}{after}")


def same_scalar(gold: Any, answer: Any, tolerance: float = 0.0) -> bool:
    """Whether two values that are no list and no object are the same: 1 is 1.0, and is not true."""
    if isinstance(gold, bool) or isinstance(answer, bool):
        return gold is answer
    if isinstance(gold, (int, float)) and isinstance(answer, (int, float)):
        if tolerance and abs(answer - gold) <= tolerance * abs(gold):
            return True
        return _as_written(gold) == _as_written(answer)
    return type(gold) is type(answer) and bool(gold == answer)


def equal(gold: Any, answer: Any, tolerance: float = 0.0, unordered: bool = False) -> bool:
    """Whether all fields are right, see `compare`."""
    return all(field.is_right for field in compare(gold, answer, tolerance, unordered))


def shortened(value: Any) -> str:
    """A value as JSON, cut to a length that can be read."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


class _TooManyComparisons(Exception):
    pass


class _Pairing:
    """Finds the elements of lists without order that are equal, in a bounded number of comparisons for
    all lists of one value together.
    """

    def __init__(self, tolerance: float):
        self.tolerance = tolerance
        self.left = _MOST_COMPARISONS
        self.keys: dict[int, str] = {}

    def reordered(self, gold: list[Any], answer: list[Any]) -> list[Any]:
        """The elements of an answer in the order of the gold's elements that they equal; those that
        equal none fill the places that are left.
        """
        partners = self._partners(gold, answer)
        used = set(partners.values())
        rest = deque(index for index in range(len(answer)) if index not in used)
        order = []
        for index in range(len(gold)):
            if index in partners:
                order.append(partners[index])
            elif rest:
                order.append(rest.popleft())
        return [answer[index] for index in (*order, *rest)]

    def _partners(self, gold: list[Any], answer: list[Any]) -> dict[int, int]:
        if self.tolerance:
            try:
                return matched(gold, answer, self._is_near)
            except _TooManyComparisons:
                self.left = 0
        places: dict[str, deque[int]] = {}
        for index, value in enumerate(answer):
            places.setdefault(self._key(value), deque()).append(index)
        partners = {}
        for index, value in enumerate(gold):
            same = places.get(self._key(value))
            if same:
                partners[index] = same.popleft()
        return partners

    def _is_near(self, gold: Any, answer: Any) -> bool:
        self.left -= 1
        if self.left < 0:
            raise _TooManyComparisons
        if isinstance(gold, dict) and isinstance(answer, dict):
            if len(gold) != len(answer):
                return False
            return all(key in answer and self._is_near(gold[key], answer[key]) for key in gold)
        if isinstance(gold, list) and isinstance(answer, list):
            if len(gold) != len(answer):
                return False
            return len(matched(gold, answer, self._is_near)) == len(gold)
        return same_scalar(gold, answer, self.tolerance)

    def _key(self, value: Any) -> str:
        """As `canonical`, and the same for lists that differ in their order alone."""
        if not isinstance(value, (dict, list)):
            return canonical(value)
        known = self.keys.get(id(value))
        if known is None:
            if isinstance(value, dict):
                pairs = [f"{json.dumps(key)}:{self._key(value[key])}" for key in sorted(value)]
                known = "{" + ",".join(pairs) + "}"
            else:
                known = "[" + ",".join(sorted(map(self._key, value))) + "]"
            self.keys[id(value)] = known
        return known


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
    pairs: dict[int, int] = {}
    for start in range(len(golds)):
        pairs |= _shifts(start, fitting, pairs)
    return dict(sorted(pairs.items()))


def _shifts(start: int, fitting: list[list[int]], pairs: dict[int, int]) -> dict[int, int]:
    """The pairs that give a further gold an answer, those that move for it with them; none where there
    is no way to an answer that is free.
    """
    owners = {answer: gold for gold, answer in pairs.items()}
    came_from: dict[int, int] = {}  # the gold from which an answer was reached
    waiting = deque([start])
    while waiting:
        gold = waiting.popleft()
        for answer in fitting[gold]:
            if answer in came_from:
                continue
            came_from[answer] = gold
            if answer in owners:
                waiting.append(owners[answer])
                continue
            # Back from the free answer: each gold on the way gets the one that it reached.
            shifts = {gold: answer}
            while gold != start:
                answer = pairs[gold]
                gold = came_from[answer]
                shifts[gold] = answer
            return shifts
    return {}
