"""How a setting is declared: name, type, default, meaning and accepted values, once, as a field of
a frozen dataclass.

Values come from keywords, texts (`Text`), environment variables (`from_environment`), or flags and
YAML (`swift_rlvr.training.arguments`). For one that cannot be used there is an InputError that says
what is accepted; its field is the setting's name, which a reader replaces with its flag or
variable.
"""

import math
import operator
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, get_args, get_origin, get_type_hints

from swift_rlvr.utils.errors import InputError

PREFIX = "SWIFT_RLVR_"  # of variables that are not a reward's or the launcher's
_TYPES = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}
_LISTS = {int: "whole numbers", float: "finite numbers", str: "names, with commas"}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_BOUNDS = {
    "at_least": operator.ge,
    "more_than": operator.gt,
    "at_most": operator.le,
    "less_than": operator.lt,
}


def setting(
    default: Any = MISSING,
    help: str = "",
    *,
    at_least: float | None = None,
    more_than: float | None = None,
    at_most: float | None = None,
    less_than: float | None = None,
    choices: Collection[str] = (),
    **metadata: Any,
) -> Any:
    """A field of a `Settings`: its default, what it means, and the numbers or texts that it may be.

    The bounds of a list are those of its items. metadata: for one kind of reader, such as a
    reward's `flag`.
    """
    bounds = {
        "at_least": at_least,
        "more_than": more_than,
        "at_most": at_most,
        "less_than": less_than,
    }
    accepts = Accepts(
        {name: bound for name, bound in bounds.items() if bound is not None}, tuple(choices)
    )
    return field(default=default, metadata={"help": help, "accepts": accepts, **metadata})


class Accepts(NamedTuple):
    """What a setting may be besides its type: numbers within bounds, by name as in `setting`, or
    one of some texts.
    """

    bounds: Mapping[str, float] = {}
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        bounds = " and ".join(
            f"{name.replace('_', ' ')} {bound}" for name, bound in self.bounds.items()
        )
        return bounds or f"one of {', '.join(self.choices)}"

    def allows(self, value: Any) -> bool:
        """Whether a value of the setting's type may be it."""
        if self.bounds:
            return math.isfinite(value) and all(
                _BOUNDS[name](value, bound) for name, bound in self.bounds.items()
            )
        return not self.choices or value in self.choices


class Text(str):
    """The text of a variable or flag, which stands for a value of its setting's type.

    Names and numbers of a list are separated by commas; `tuple[int, int]` is a range, 3-5 or one
    number.
    """


@dataclass(frozen=True)
class Settings:
    """Settings that are checked when they are built; what a field cannot say, `__post_init__` of a
    subclass checks.

    A setting's variable is called `variable_prefix` and its name in capitals. group: how the names
    of settings begin that have one.
    """

    variable_prefix: ClassVar[str] = PREFIX
    group: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """InputError for a value of another type or out of its range."""
        hints = _hints(type(self))  # type: ignore[arg-type]  # mypy takes a class's __hash__ for its metaclass's
        for each in fields(self):
            object.__setattr__(
                self, each.name, as_type(getattr(self, each.name), hints[each.name], each.name)
            )
        check_ranges(type(self), self)

    def require(self, condition: bool, name: str, accepted: str) -> None:
        """InputError naming the setting, its value and what is accepted, unless `condition`
        holds.
        """
        if not condition:
            raise InputError(f"must be {accepted}, got {getattr(self, name)!r}", name)

    def check_unset(self, switch: str) -> None:
        """InputError for a setting with another value than its default: none has an effect without
        `switch`.
        """
        default = type(self)()
        for each in fields(self):
            if getattr(self, each.name) != getattr(default, each.name):
                raise InputError(f"has no effect without {switch}", each.name)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, **values: Any) -> Self:
        """The settings in environment variables, an empty one being as none. values: of those that
        have no variable.

        InputError, with the variable's name, for a bad value, and for a variable of the group that
        is no setting.
        """
        environ, prefix = os.environ if environ is None else environ, cls.variable_prefix
        known = {
            f"{prefix}{each.name}".upper(): each.name
            for each in fields(cls)
            if each.name.startswith(cls.group)
        }
        for variable in environ:
            if (
                cls.group
                and variable.startswith(f"{prefix}{cls.group}".upper())
                and variable not in known
            ):
                raise InputError(no_setting(cls.group.strip("_"), variable, known))
        values |= {
            name: Text(environ[variable])
            for variable, name in known.items()
            if environ.get(variable)
        }
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.problem, f"{prefix}{error.field}".upper()) from error


def check_ranges(cls: type[Settings], values: object) -> None:
    """InputError where an attribute of `values` is no value that `cls` accepts for its setting of
    this name.

    values: an instance, or another library's settings, of which only the numbers are checked.
    """
    for each in fields(cls):
        value, accepts = getattr(values, each.name, None), each.metadata.get("accepts", Accepts())
        items = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
        if (accepts.bounds or isinstance(values, cls)) and not all(map(accepts.allows, items)):
            raise InputError(f"must be {accepts}, got {value!r}", each.name)


def no_setting(owner: str, name: str, known: Collection[str]) -> str:
    """What to say of a name that is no setting of `owner`.

    >>> no_setting("cosine", "maxlen", ["max_len", "unit"])
    "cosine has no setting 'maxlen'; the nearest is max_len; it has max_len, unit"
    """
    message = f"{owner} has no setting {name!r}"
    nearest = get_close_matches(name, known, 1)
    message += f"; the nearest is {nearest[0]}" if nearest else ""
    return message + (f"; it has {', '.join(known)}" if len(known) <= 20 else "")


def as_type(value: Any, hint: Any, name: str) -> Any:
    """The value, or what a `Text` stands for, as one of the hint's type; InputError, with the
    setting, for no such.
    """
    try:
        return _as_type(value, hint)
    except TypeError:
        raise InputError(f"must be {_described(hint)}, got {value!r}", name) from None


_hints = cache(get_type_hints)


def _inner(hint: Any) -> tuple[Any, Any]:
    """The type of a hint without None, and that of its items where it is one of lists or tuples."""
    if NoneType in get_args(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    return hint, get_args(hint)[0] if get_origin(hint) in (list, tuple) else None


def _described(hint: Any) -> str:
    cls, item = _inner(hint)
    if item is None:
        return _TYPES[cls]
    return "a range such as 3-5" if get_args(cls) == (item, item) else _LISTS[item]


def _as_type(value: Any, hint: Any) -> Any:
    """The value as one of the hint's type; TypeError where it stands for none."""
    cls, item = _inner(hint)
    if value is None and cls is not hint:
        return None
    if item is not None:
        is_range = get_args(cls) == (item, item)
        if isinstance(value, str):
            low, dash, high = value.partition("-")
            texts = (
                [low, high if dash else low] if is_range else filter(str.strip, value.split(","))
            )
            value = list(map(Text, texts))
        if not isinstance(value, (list, tuple)):
            raise TypeError
        value = get_origin(cls)(_as_type(each, item) for each in value)
        if is_range and (len(value) != 2 or value[0] > value[1]):
            raise TypeError
        return value
    if isinstance(value, Text):
        value = value.strip()
        with suppress(ValueError):
            value = _BOOLEANS.get(value.lower(), value) if cls is bool else cls(value)
    if cls is float and type(value) is int:
        value = float(value)
    if not isinstance(value, cls) or isinstance(value, bool) != (cls is bool):
        raise TypeError
    if cls is float and not math.isfinite(value):
        raise TypeError
    return value


def as_list(value: Any) -> list[Any]:
    """A setting that takes one value or several, as a list.

    >>> as_list("format"), as_list(None)
    (['format'], [])
    """
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


Number = TypeVar("Number", int, float)


def number(
    settings: Mapping[str, Any], name: str, default: Number, at_least: int | None = None
) -> Number:
    """A setting, or the first of a list, as a number like its default; InputError for anything
    else.

    >>> number({"max_steps": "100"}, "max_steps", -1), number({}, "beta", 0.04)
    (100, 0.04)
    """
    value = next(iter(as_list(settings.get(name))), default)
    with suppress(TypeError, ValueError):
        result = float(value)
        if (
            math.isfinite(result)
            and type(default)(result) == result
            and (at_least is None or result >= at_least)
        ):
            return type(default)(result)
    expected = "a number" if isinstance(default, float) else "a whole number"
    expected += "" if at_least is None else f" of at least {at_least}"
    raise InputError(f"must be {expected}, got {settings.get(name)!r}", name)
