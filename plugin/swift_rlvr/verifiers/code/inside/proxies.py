"""Objects of the code as they look in the process of the tests.

Each class of the code has a class here, with those special methods that it has there, so that
`isinstance`, `issubclass`, `callable` and `except` say what they would say there.
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .crossing import Code

# What a special method does, for the process that has the object.
_PLAIN: dict[str, Callable] = {
    "__len__": len,
    "__iter__": iter,
    "__next__": next,
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__neg__": operator.neg,
    "__abs__": abs,
    "__getitem__": operator.getitem,
    "__setitem__": operator.setitem,
    "__delitem__": operator.delitem,
}
_OPERATORS: dict[str, Callable] = {}
for _name in ("lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _OPERATORS[f"__{_name}__"] = getattr(operator, _name)
for _name in ("matmul", "and", "or", "xor"):
    _OPERATORS[f"__{_name}__"] = getattr(operator, f"__{_name}__")
for _name in [*_OPERATORS][4:]:  # all but the comparisons, which have no reflected ones
    _do = _OPERATORS[_name]
    _OPERATORS[f"__r{_name[2:]}"] = lambda value, other, do=_do: do(other, value)

OPERATIONS: dict[str, Callable] = {
    **_PLAIN,
    **_OPERATORS,
    "__contains__": operator.contains,
    "__eq__": operator.eq,
    "__hash__": hash,
    "__str__": str,
    "__repr__": repr,
}
# What a class can have; the others are there for every object.
SPECIAL = {*_PLAIN, *_OPERATORS, "__contains__", "__call__"}

# Whose an object is. The tests have made it themselves, by a call of a class: its operators are what
# is tested, and may meet their values.
MADE = "made"
# A call has returned it, or it is an attribute of one that the tests have made. It may be called, as
# functions are, but an operator learns nothing: a result that claims ``7 in result`` or
# ``result - 7 == 0`` would learn the 7, and say what is wanted.
RESULT = "result"
# It is an attribute of any other. ``result.holds(7)`` would learn the 7, too, and so would a method
# that returns its own object: ``stack.name().startswith("a")``.
PART = "part"


class Foreign:
    """An object of the code's process."""

    __slots__ = ("_code_", "_number_", "_origin_")
    _code_: "Code"
    _number_: int
    _origin_: str

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            # Such a name belongs to a protocol by which a library takes an object for one of its own:
            # numpy would read memory where ``__array_interface__`` says that an array is.
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        value = self._code_.request("getattr", self, name)
        return value if self._origin_ == MADE else as_origin(value, PART)

    def __setattr__(self, name: str, value: object) -> None:
        self._code_.request("setattr", self, name, value)

    def __eq__(self, other: object) -> Any:
        # Two objects of the code are equal if their class says so. What the tests have, and all
        # that is plain, is never equal to an object of the code, which is not asked.
        if self is other:
            return True
        if not isinstance(other, Foreign):
            return NotImplemented
        return self._code_.request("operate", "__eq__", self, other)

    def __hash__(self) -> int:
        return self._code_.request("operate", "__hash__", self)

    def __str__(self) -> str:
        return self._code_.request("operate", "__str__", self)

    def __repr__(self) -> str:
        return self._code_.request("operate", "__repr__", self)


class ForeignClass(type):
    """The class of a class of the code."""

    _class_code_: "Code"
    _class_number_: int

    def __new__(mcs, name: str, bases: tuple, space: dict) -> Any:
        raise TypeError(f"{name} cannot derive from a class of the code")

    def _is_constructor(cls) -> bool:
        return cls._class_number_ in cls._class_code_.constructors

    def __call__(cls, *arguments: object, **keywords: object) -> Any:
        value = cls._class_code_.request("call", cls, arguments, keywords)
        return as_origin(value, MADE) if cls._is_constructor() else value

    def __getattr__(cls, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        value = cls._class_code_.named(name, cls._class_code_.request("getattr", cls, name))
        return value if cls._is_constructor() else as_origin(value, PART)

    def __setattr__(cls, name: str, value: object) -> None:
        cls._class_code_.request("setattr", cls, name, value)

    # as an enumeration has them
    def __iter__(cls) -> Any:
        return cls._class_code_.request("operate", "__iter__", cls)

    def __len__(cls) -> int:
        return cls._class_code_.request("operate", "__len__", cls)

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: object) -> Any:
        return cls._class_code_.request("operate", "__getitem__", cls, key)


def _plain_method(name: str) -> Callable:
    def method(self: Foreign, *operands: object) -> Any:
        return self._code_.request("operate", name, self, *operands)

    return method


def _operator(name: str) -> Callable:
    def method(self: Foreign, other: object) -> Any:
        if self._origin_ != MADE and not isinstance(other, Foreign):
            return NotImplemented
        result = self._code_.request("operate", name, self, other)
        return as_origin(result, MADE) if self._origin_ == MADE else result

    return method


class _Special(Foreign):
    """All special methods that a class of the code can have; `build_class` takes those that it has."""

    __slots__ = ()

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        if self._origin_ == PART and (arguments or keywords):
            raise TypeError(
                "a result of the code cannot be asked about a value: the answer is its own"
            )
        return self._code_.request("call", self, arguments, keywords)

    def __contains__(self, wanted: object) -> bool:
        if self._origin_ == MADE or isinstance(wanted, Foreign):
            return self._code_.request("operate", "__contains__", self, wanted)
        # It is not told what is looked for.
        return any(each is wanted or each == wanted for each in self)  # type: ignore[attr-defined]


for _name in _PLAIN:
    setattr(_Special, _name, _plain_method(_name))
for _name in _OPERATORS:
    setattr(_Special, _name, _operator(_name))


def build_class(
    code: "Code", number: int, name: str, bases: list[type], special: list[str]
) -> type:
    """The class here of a class there: a proxy, or a class of exceptions, which can be raised."""
    known = {"_class_code_": code, "_class_number_": number, "__module__": "solution"}
    errors = tuple(base for base in bases if issubclass(base, BaseException))
    if errors:
        # What the error says of itself: its class may say it in its own way.
        own = BaseException.__str__
        return type(
            name, errors, known | {"__str__": lambda error: vars(error).get("_text_", own(error))}
        )
    methods = {each: vars(_Special)[each] for each in special if each in SPECIAL}
    parents = tuple(base for base in bases if issubclass(base, Foreign)) or (Foreign,)
    try:
        cls = type.__new__(ForeignClass, name, parents, {"__slots__": (), **methods})
    except TypeError:  # orders of bases that do not go together without what was left out
        cls = type.__new__(ForeignClass, name, (Foreign,), {"__slots__": (), **methods})
    for key, value in known.items():
        type.__setattr__(cls, key, value)
    return cls


def build_object(code: "Code", cls: type, number: int, origin: str) -> Foreign:
    """The object here of an object there."""
    value: Foreign = object.__new__(cls)
    object.__setattr__(value, "_code_", code)
    object.__setattr__(value, "_number_", number)
    object.__setattr__(value, "_origin_", origin)
    return value


def as_origin(value: Any, origin: str) -> Any:
    """The same object of the code with another origin; a plain value as it is."""
    if not isinstance(value, Foreign):
        return value
    return value._code_.proxy(type(value), value._number_, origin)
