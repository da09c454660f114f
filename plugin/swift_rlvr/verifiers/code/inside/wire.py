"""What is said between the process of the tests and that of the code: values as JSON.

Plain values cross by value, subclasses of them as the plain type; an argument that is a list, a
dict, a set, a deque or a bytearray keeps its identity, and what the other side has changed in it is
changed here. Anything else crosses as a handle, by what `Reader` and `Writer` are given.
"""

import builtins
import operator
import sys
from collections import Counter, OrderedDict, deque, namedtuple
from collections.abc import Callable, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

from .values import DEEPEST, Opaque, decode, encode

# Python writes and reads JSON by calls of C's, which need a stack.
_CONSTANTS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_MUTABLE = (list, dict, set, deque, bytearray)
_EMPTY = {each.__name__: each for each in (list, set, deque, bytearray, dict, Counter, OrderedDict)}

# Values that are made by a call: of what, and with what, as far as that is plain. A subclass, such as a
# time of pandas', is no such value.
_Made = tuple[Callable, Callable[[Any], tuple]]
_MADE: dict[type, _Made] = {
    range: (range, lambda value: (value.start, value.stop, value.step)),
    slice: (slice, lambda value: (value.start, value.stop, value.step)),
    Decimal: (Decimal, lambda value: (str(value),)),
    date: (date.fromisoformat, lambda value: (value.isoformat(),)),
    datetime: (datetime.fromisoformat, lambda value: (value.isoformat(),)),
    time: (time.fromisoformat, lambda value: (value.isoformat(),)),
    timedelta: (timedelta, lambda value: (value.days, value.seconds, value.microseconds)),
}
_MAKERS = {cls.__name__: make for cls, (make, _) in _MADE.items()}


def _snapshot(container: object) -> list:
    """The elements of a container, to see later whether they are still the same objects."""
    if isinstance(container, dict):
        return [*container.keys(), *container.values()]
    return list(container)  # type: ignore[call-overload]


class Writer:
    """Writes the values of one message.

    Attributes:
        containers: what can be changed in place, in the order in which it was met.
    """

    def __init__(
        self,
        hand_over: Callable[[object], list],
        containers: list | None = None,
        has_arrays: bool = False,
    ):
        self.containers: list = list(containers or ())
        self._hand_over = hand_over
        self._has_arrays = has_arrays
        self._numbers = {id(each): number for number, each in enumerate(self.containers)}

    def write(self, value: object) -> object:
        """A value as JSON. What is nested too deep is handed over as an object."""
        known = len(self.containers)
        try:
            return self._write(value, 0)
        except Opaque:
            for each in self.containers[known:]:
                del self._numbers[id(each)]
            del self.containers[known:]
            return self._hand_over(value)

    def changes(self, before: list[list]) -> list:
        """Number and content of each of the first containers that is not as it was before."""
        changed = []
        for number, elements in enumerate(before):
            container = self.containers[number]
            now = _snapshot(container)
            if len(now) != len(elements) or any(map(operator.is_not, now, elements)):
                changed.append([number, self._content(container, 1)])
        return changed

    def _write(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, (bool, str, float)):
            return encode(value)
        if type(value) is int and -(1 << 63) < value < 1 << 63:
            return value
        if depth > DEEPEST:
            raise Opaque("nested too deep")
        if isinstance(value, _MUTABLE):
            return self._container(value, depth)
        if isinstance(value, tuple):
            return self._tuple(value, depth)
        if isinstance(value, frozenset):
            return ["frozenset", *self._items(value, depth)]
        return self._other(value)

    def _items(self, values: object, depth: int) -> list:
        return [self._write(each, depth + 1) for each in values]  # type: ignore[attr-defined]

    def _container(self, value: object, depth: int) -> list:
        number = self._numbers.get(id(value))
        if number is not None:
            return ["again", number]
        self._numbers[id(value)] = len(self.containers)
        self.containers.append(value)
        return self._content(value, depth)

    def _content(self, value: object, depth: int) -> list:
        if isinstance(value, dict):
            # A default of its own stays with the other side: missing keys are missing.
            name = "dict"
            if isinstance(value, Counter):
                name = "Counter"
            elif isinstance(value, OrderedDict):
                name = "OrderedDict"
            pairs = []
            for key, item in value.items():
                pairs.append([self._write(key, depth + 1), self._write(item, depth + 1)])
            return [name, *pairs]
        if isinstance(value, bytearray):
            return ["bytearray", value.hex()]
        if isinstance(value, deque):
            return ["deque", value.maxlen, *self._items(value, depth)]
        return ["set" if isinstance(value, set) else "list", *self._items(value, depth)]

    def _tuple(self, value: tuple, depth: int) -> list:
        fields = getattr(value, "_fields", None)
        if fields is None:
            return ["tuple", *self._items(value, depth)]
        return ["named", type(value).__name__, list(fields), *self._items(value, depth)]

    def _other(self, value: Any) -> object:
        if type(value) in _MADE:
            _, arguments = _MADE[type(value)]
            return [type(value).__name__, *(self._write(each, 1) for each in arguments(value))]
        if isinstance(value, type):
            name = value.__name__
            if vars(builtins).get(name) is value:
                return ["type", name]
            return self._hand_over(value)
        for name, constant in _CONSTANTS.items():
            if value is constant:
                return ["constant", name]
        if self._has_arrays and _is_array(value):
            return ["array", value.dtype.str, self._write(value.tolist(), 1)]
        if isinstance(value, Set) and not isinstance(value, set):
            return ["set", *self._items(value, 1)]  # the keys of a dict
        try:
            return encode(value)
        except Opaque:
            return self._hand_over(value)


def _is_array(value: Any) -> bool:
    """Whether it is an array of numpy's that holds numbers or text."""
    cls = type(value)
    is_numpy = cls.__name__ == "ndarray" and cls.__module__ == "numpy"
    return is_numpy and value.dtype.kind in "biufcSU"


class Reader:
    """Reads what a `Writer` wrote; for anything else it raises whatever comes of it.

    Attributes:
        containers: those of the message, numbered as the writer's.
    """

    def __init__(self, take: Callable[[list], object], containers: list | None = None):
        self.containers: list = list(containers or ())
        self._take = take

    def read(self, value: object) -> object:
        """A value, in plain types of this process."""
        if not isinstance(value, list):
            if isinstance(value, dict):
                raise ValueError("an object is no value")
            return value
        name, *items = value
        if name in _EMPTY:
            return self._container(name, items)
        if name in _MAKERS:
            return _MAKERS[name](*self._all(items))
        reading = getattr(self, f"_read_{name}", None)
        if reading is not None:
            return reading(items)
        if name in ("int", "bytes", "text", "complex", "fraction"):
            return decode(value)
        return self._take(value)

    def snapshots(self) -> list[list]:
        """What the containers hold now, for `Writer.changes`."""
        return [_snapshot(each) for each in self.containers]

    def apply(self, changed: list) -> None:
        """Change the containers of the request as the other side did."""
        sent = len(self.containers)
        for number, (_, *items) in changed:
            if not 0 <= number < sent:
                raise ValueError("no such container")
            self._fill(self.containers[number], items)

    def _container(self, name: str, items: list) -> Any:
        container: Any = _EMPTY[name]() if name != "deque" else deque(maxlen=items[0])
        # It may be among its own elements.
        self.containers.append(container)
        self._fill(container, items)
        return container

    def _fill(self, container: Any, items: list) -> None:
        """Have a container hold these, and nothing else."""
        if isinstance(container, bytearray):
            container[:] = bytes.fromhex(items[0])
            return
        content: list
        if isinstance(container, dict):
            content = [(self.read(key), self.read(item)) for key, item in items]
        else:
            content = self._all(items[1:] if isinstance(container, deque) else items)
        container.clear()
        if isinstance(container, dict):
            for key, item in content:
                container[key] = item
        elif isinstance(container, set):
            container.update(content)
        else:
            container.extend(content)

    def _all(self, items: list) -> list:
        return [self.read(each) for each in items]

    def _read_again(self, items: list) -> object:
        (number,) = items
        return self.containers[number]

    def _read_tuple(self, items: list) -> tuple:
        return tuple(self._all(items))

    def _read_named(self, items: list) -> tuple:
        name, fields, *values = items
        return namedtuple(name, fields, rename=True)(*self._all(values))

    def _read_frozenset(self, items: list) -> frozenset:
        return frozenset(self._all(items))

    def _read_type(self, items: list) -> type:
        value = vars(builtins)[items[0]]
        if not isinstance(value, type):
            raise ValueError("no type")
        return value

    def _read_constant(self, items: list) -> object:
        return _CONSTANTS[items[0]]

    def _read_array(self, items: list) -> object:
        kind, values = items
        numpy: ModuleType | None = sys.modules.get("numpy")
        read = self.read(values)
        return read if numpy is None else numpy.array(read, dtype=kind)
