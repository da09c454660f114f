"""Objects of the other process as they look in this one.

Each class of the other side has a class here, with those special methods that it has there, so that
`isinstance`, `issubclass`, `callable` and `except` say what they would say there.
"""

import copy
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .crossing import Peer

# What a special method does, for the process that has the object.
UNARY: dict[str, Callable] = {
    "__len__": len,
    "__iter__": iter,
    "__next__": next,
    "__reversed__": reversed,
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__index__": operator.index,
    "__neg__": operator.neg,
    "__pos__": operator.pos,
    "__invert__": operator.invert,
    "__abs__": abs,
    "__trunc__": math.trunc,
    "__floor__": math.floor,
    "__ceil__": math.ceil,
    "__copy__": copy.copy,
}
_ITEMS: dict[str, Callable] = {
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
    "__round__": round,
}
_COMPARISONS: dict[str, Callable] = {
    name: getattr(operator, name) for name in ("__lt__", "__le__", "__gt__", "__ge__")
}
_ARITHMETIC: dict[str, Callable] = {"__divmod__": divmod}
for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
):
    _ARITHMETIC[f"__{_name}__"] = getattr(operator, f"__{_name}__")
    _ARITHMETIC[f"__i{_name}__"] = getattr(operator, f"__i{_name}__")


def _reflected(operation: Callable) -> Callable:
    return lambda value, other: operation(other, value)


for _name in [*_ARITHMETIC]:
    if _name[2:3] != "i":
        _ARITHMETIC[f"__r{_name[2:]}"] = _reflected(_ARITHMETIC[_name])

OPERATIONS: dict[str, Callable] = {
    **UNARY,
    **_ITEMS,
    **_COMPARISONS,
    **_ARITHMETIC,
    "__contains__": operator.contains,
    "__eq__": operator.eq,
    "__hash__": hash,
    "__str__": str,
    "__repr__": repr,
    "__deepcopy__": lambda value, memo=None: copy.deepcopy(value),
}
# What a class can have; the others are there for every object.
SPECIAL = (
    {*OPERATIONS} - {"__eq__", "__hash__", "__str__", "__repr__", "__copy__", "__deepcopy__"}
    | {"__call__"}
)  # fmt: skip

# What a process may ask for by a name such as ``__name__``. Anything else belongs to a protocol by
# which a library takes an object for one of its own: numpy would read memory where
# ``__array_interface__`` says that an array is.
_ASKED = {
    *("__name__", "__qualname__", "__doc__", "__annotations__", "__wrapped__", "__defaults__"),
    *("__kwdefaults__", "__members__", "__match_args__", "__dataclass_fields__"),
    *("__abstractmethods__", "__version__", "__func__", "__self__"),
}


def _require_asked(name: str, owner: str) -> None:
    if name[:2] == "__" and name not in _ASKED:
        raise AttributeError(f"{owner} has no attribute {name}")


# Methods by which an object says whether it is equal to another.
_EQUALITY = {"equals", "equal", "eq", "ne", "is_equal", "isequal", "isEqual", "is_equal_to", "same"}


class Foreign:
    """An object of the other process.

    An object that the tests made themselves, by a call of a class, may meet their values in an
    operator: its operators are what is tested. Any other may not: a function's result that claims
    ``7 in result`` or ``result - 7 == 0`` would learn the 7, and say what is wanted; so would
    ``result.holds(7)``, which is refused where the answer is no more than true or false. So does
    the object of a class that stands where the tests call a function: see `Peer.named`.
    """

    __slots__ = ("_is_made_", "_is_method_", "_number_", "_peer_")
    _peer_: "Peer"
    _number_: int
    _is_made_: bool
    _is_method_: bool  # of an object that the tests have not made

    def __getattr__(self, name: str) -> Any:
        _require_asked(name, type(self).__name__)
        is_free = self._is_made_ or self._peer_.is_trusting
        if name in _EQUALITY and not is_free:
            raise TypeError(f"{type(self).__name__}.{name} cannot be asked: it is the code's own")
        value = self._peer_.request("getattr", self, name)
        if isinstance(value, Foreign) and value._peer_ is self._peer_ and not is_free:
            object.__setattr__(value, "_is_method_", True)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        self._peer_.request("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._peer_.request("delattr", self, name)

    def __eq__(self, other: object) -> Any:
        # Two objects of the code are equal if their class says so. What the tests have, and all
        # that is plain, is never equal to an object of the code, which is not asked.
        if self is other:
            return True
        if not _meets(self, other):
            return NotImplemented
        return self._peer_.request("operate", "__eq__", self, other)

    def __ne__(self, other: object) -> Any:
        result = self.__eq__(other)
        return result if result is NotImplemented else not result

    def __hash__(self) -> int:
        return self._peer_.request("operate", "__hash__", self)

    def __str__(self) -> str:
        return self._peer_.request("operate", "__str__", self)

    def __repr__(self) -> str:
        return self._peer_.request("operate", "__repr__", self)

    def __copy__(self) -> Any:
        return self._peer_.request("operate", "__copy__", self)

    def __deepcopy__(self, memo: object) -> Any:
        return self._peer_.request("operate", "__deepcopy__", self)


def _meets(value: Foreign, other: object) -> bool:
    """Whether both are the other side's, so that it may be asked about them."""
    return isinstance(other, Foreign) and other._peer_ is value._peer_


class ForeignClass(type):
    """The class of a class of the other process; `peer_of` and `number_of` say of which."""

    def __new__(mcs, name: str, bases: tuple, space: dict) -> Any:
        raise TypeError(f"{name} cannot derive from a class of the other process")

    def __call__(cls, *arguments: object, **keywords: object) -> Any:
        peer = peer_of(cls)
        value = peer.request("call", cls, arguments, keywords)
        return peer.made(value) if number_of(cls) in peer.constructors else value

    def __getattr__(cls, name: str) -> Any:
        peer = peer_of(cls)
        _require_asked(name, cls.__name__)
        is_free = number_of(cls) in peer.constructors or peer.is_trusting
        if name in _EQUALITY and not is_free:
            raise TypeError(f"{cls.__name__}.{name} cannot be asked: it is the code's own")
        value = peer.named(name, peer.request("getattr", cls, name))
        if isinstance(value, Foreign) and value._peer_ is peer and not is_free:
            object.__setattr__(value, "_is_method_", True)
        return value

    def __setattr__(cls, name: str, value: object) -> None:
        peer_of(cls).request("setattr", cls, name, value)

    # as an enumeration has them
    def __iter__(cls) -> Any:
        return peer_of(cls).request("operate", "__iter__", cls)

    def __len__(cls) -> int:
        return peer_of(cls).request("operate", "__len__", cls)

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: object) -> Any:
        return peer_of(cls).request("operate", "__getitem__", cls, key)


def _call(self: Foreign, *arguments: object, **keywords: object) -> Any:
    result = self._peer_.request("call", self, arguments, keywords)
    if self._is_method_ and isinstance(result, bool) and (arguments or keywords):
        raise TypeError("a result of the code cannot be asked about a value: the answer is its own")
    return result


def _plain_method(name: str) -> Callable:
    def method(self: Foreign, *operands: object) -> Any:
        return self._peer_.request("operate", name, self, *operands)

    return method


def _operator(name: str) -> Callable:
    def method(self: Foreign, other: object) -> Any:
        if not (self._is_made_ or self._peer_.is_trusting or _meets(self, other)):
            return NotImplemented
        result = self._peer_.request("operate", name, self, other)
        return self._peer_.made(result) if self._is_made_ else result

    return method


def _contains(self: Foreign, wanted: object) -> bool:
    if self._is_made_ or self._peer_.is_trusting or _meets(self, wanted):
        return self._peer_.request("operate", "__contains__", self, wanted)
    # It is not told what is looked for.
    return any(each is wanted or each == wanted for each in self)  # type: ignore[attr-defined]


_METHODS: dict[str, Callable] = {"__call__": _call, "__contains__": _contains}
for _name in (*UNARY, *_ITEMS):
    _METHODS[_name] = _plain_method(_name)
for _name in (*_COMPARISONS, *_ARITHMETIC):
    _METHODS[_name] = _operator(_name)


def _text(self: BaseException) -> str:
    """What the error says of itself: its class may say it in its own way."""
    text = vars(self).get("_text_")
    return BaseException.__str__(self) if text is None else text


def build_class(
    peer: "Peer", number: int, name: str, bases: list[type], special: list[str]
) -> type:
    """The class here of a class there: a proxy, or a class of exceptions, which can be raised."""
    errors = tuple(base for base in bases if issubclass(base, BaseException))
    if errors:
        space = {"_class_": (peer, number), "__module__": "solution", "__str__": _text}
        return type(name, errors, space)
    methods: dict[str, Any] = {"__slots__": (), "__module__": "solution"}
    for each in special:
        if each in _METHODS:
            methods[each] = _METHODS[each]
    parents = tuple(base for base in bases if issubclass(base, Foreign)) or (Foreign,)
    try:
        cls = type.__new__(ForeignClass, name, parents, methods)
    except TypeError:  # orders of bases that do not go together without what was left out
        cls = type.__new__(ForeignClass, name, (Foreign,), methods)
    type.__setattr__(cls, "_class_", (peer, number))
    return cls


def peer_of(cls: type) -> "Peer":
    """Whose class it is."""
    return cls.__dict__["_class_"][0]


def number_of(cls: type) -> int:
    """Which of the other side's classes it is."""
    return cls.__dict__["_class_"][1]


def build_object(peer: "Peer", cls: type, number: int, is_made: bool) -> Foreign:
    """The object here of an object there."""
    value: Foreign = object.__new__(cls)
    object.__setattr__(value, "_peer_", peer)
    object.__setattr__(value, "_number_", number)
    object.__setattr__(value, "_is_made_", is_made)
    object.__setattr__(value, "_is_method_", False)
    return value
