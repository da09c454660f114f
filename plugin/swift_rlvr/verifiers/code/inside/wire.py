"""What is said between the process of the tests and that of the code: values as JSON.

Plain values cross by value, subclasses of them as the plain type. Anything else is left to those who
write and read: they hand over an object, or refuse to.
"""

import builtins
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import EllipsisType, ModuleType, NoneType
from typing import Any

from .values import DEEPEST, Opaque, decode, encode

_SEQUENCES = {each.__name__: each for each in (deque, frozenset, set, tuple, list)}
# the first of which a value is an instance
_MAPPINGS = {each.__name__: each for each in (Counter, OrderedDict, dict)}
_COLLECTIONS = (*_SEQUENCES.values(), *_MAPPINGS.values())

# Values that are made by a call: of what, and with what, as far as that is plain. A subclass, such as a
# time of pandas', is no such value.
_Made = tuple[Callable, Callable[[Any], tuple]]
_MADE: dict[type, _Made] = {
    range: (range, lambda value: (value.start, value.stop, value.step)),
    Decimal: (Decimal, lambda value: (str(value),)),
    date: (date.fromisoformat, lambda value: (value.isoformat(),)),
    datetime: (datetime.fromisoformat, lambda value: (value.isoformat(),)),
    time: (time.fromisoformat, lambda value: (value.isoformat(),)),
    timedelta: (timedelta, lambda value: (value.days, value.seconds, value.microseconds)),
    bytearray: (bytearray.fromhex, lambda value: (value.hex(),)),
    EllipsisType: (lambda: ..., lambda value: ()),
}
_MAKERS = {cls.__name__: make for cls, (make, _) in _MADE.items()}


def write(value: object, hand_over: Callable[[object], list], depth: int = 0) -> object:
    """A value as JSON. Raises Opaque where it is nested too deep, and what `hand_over` does of what is
    not plain.
    """
    if isinstance(value, (str, float, int, NoneType)):
        return encode(value)
    if depth > DEEPEST:
        raise Opaque("nested too deep")
    cls = type(value)
    if isinstance(value, _COLLECTIONS):
        return _collection(value, hand_over, depth + 1)
    if isinstance(value, Set):  # the keys of a dict
        return ["set", *(write(each, hand_over, depth + 1) for each in value)]
    if cls in _MADE:
        return [cls.__name__, *_MADE[cls][1](value)]
    if isinstance(value, type) and value is vars(builtins).get(name := value.__name__):
        return ["type", name]
    # an array of numbers or text
    if (cls.__module__, cls.__name__) == ("numpy", "ndarray"):
        array: Any = value
        if array.dtype.kind in "biufcSU":
            return ["array", array.dtype.str, write(array.tolist(), hand_over, depth + 1)]
    try:
        return encode(value)
    except Opaque:
        return hand_over(value)


def _collection(value: Any, hand_over: Callable[[object], list], depth: int) -> list:
    for name, cls in _SEQUENCES.items():
        if isinstance(value, cls):
            return [name, *(write(each, hand_over, depth) for each in value)]
    written: list = [next(name for name, cls in _MAPPINGS.items() if isinstance(value, cls))]
    for key, item in value.items():
        written.append([write(key, hand_over, depth), write(item, hand_over, depth)])
    return written


def read(written: object, take: Callable[[list], object], has_arrays: bool = True) -> Any:
    """What `write` wrote, in plain types of this process; anything else is what `take` makes of it.
    Raises whatever comes of what nobody has written.
    """
    if not isinstance(written, list):
        if isinstance(written, dict):
            raise ValueError("an object is no value")
        return written
    name, *items = written
    if name in _SEQUENCES:
        return _SEQUENCES[name]([read(each, take, has_arrays) for each in items])
    if name in _MAPPINGS:
        pairs = []
        for key, item in items:
            pairs.append((read(key, take, has_arrays), read(item, take, has_arrays)))
        return _MAPPINGS[name](dict(pairs))
    if name in _MAKERS:
        return _MAKERS[name](*items)
    match written:
        case ["type", name] if isinstance(vars(builtins)[name], type):
            return vars(builtins)[name]
        case ["array", kind, elements]:
            values = read(elements, take)
            if not has_arrays:
                return values
            numpy: ModuleType = sys.modules["numpy"]
            return numpy.array(values, dtype=kind)
        case ["int" | "bytes" | "text" | "complex" | "fraction", *_]:
            return decode(written)
    return take(written)


def refill(container: Any, content: Any) -> None:
    """Have a container that can be changed hold this, and nothing else."""
    container.clear()
    add = container.update if isinstance(container, (dict, set)) else container.extend
    add(content)
