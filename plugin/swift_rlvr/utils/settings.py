"""How a setting is declared: once, as a field of a frozen dataclass.

The field says its name, type, default, meaning and accepted values. A value comes from a keyword,
from a text (`Text`), from an environment variable (`from_environment`), or from flags and YAML
(`swift_rlvr.training.arguments`). A value that cannot be used raises an InputError that says what
is accepted. Its `field` is the setting's name; whoever reads a flag or a variable puts that in its
place.
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

# What the variables of settings begin with, but for those of a reward or of the launcher.
PREFIX = "SWIFT_RLVR_"

# How messages name the types of a setting, and those of a list's items.
_TYPES = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}
_LISTS = {int: "whole numbers", float: "finite numbers", str: "comma-separated names"}

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_BOUNDS = {
    "at_least": operator.ge,
    "more_than": operator.gt,
    "at_most": operator.le,
    "less_than": operator.lt,
}
# A message lists all known names only where that is still readable.
_MOST_NAMES = 20


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
    """A field of a `Settings`: its default, its meaning, and the numbers or texts it accepts.

    The bounds of a list are those of its items. `metadata` is for one kind of reader, such as a
    reward's `flag`.
    """
    all_bounds = {
        "at_least": at_least,
        "more_than": more_than,
        "at_most": at_most,
        "less_than": less_than,
    }
    bounds = {name: bound for name, bound in all_bounds.items() if bound is not None}
    accepts = Accepts(bounds, tuple(choices))
    return field(default=default, metadata={"help": help, "accepts": accepts, **metadata})


class Accepts(NamedTuple):
    """What a setting accepts besides its type.

    bounds: limits of a number, by their names in `setting`. choices: the texts, where only some
    are accepted.
    """

    bounds: Mapping[str, float] = {}
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.bounds:
            texts = [f"{name.replace('_', ' ')} {bound}" for name, bound in self.bounds.items()]
            return " and ".join(texts)
        return f"one of {', '.join(self.choices)}"

    def allows(self, value: Any) -> bool:
        """Whether a value of the setting's type is accepted."""
        if self.choices and value not in self.choices:
            return False
        if self.bounds and not math.isfinite(value):
            return False
        return all(_BOUNDS[name](value, bound) for name, bound in self.bounds.items())


class Text(str):
    """The text of a variable or a flag, which stands for a value of its setting's type.

    Commas separate the names or numbers of a list. `tuple[int, int]` is a range: 3-5, or one
    number.
    """


@dataclass(frozen=True)
class Settings:
    """Settings that are checked when they are built.

    A subclass checks in `__post_init__` what the declaration of a field cannot say. A setting's
    variable is `variable_prefix` and the setting's name, in capitals. `group` is how the names of
    the settings begin that have a variable.
    """

    variable_prefix: ClassVar[str] = PREFIX
    group: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Convert every value to its type; InputError if that fails or is out of range."""
        hints = _hints(type(self))  # type: ignore[arg-type]  # mypy sees the metaclass's __hash__
        for declared in fields(self):
            name = declared.name
            value = as_type(getattr(self, name), hints[name], name)
            object.__setattr__(self, name, value)
        for declared in fields(self):
            accepts = declared.metadata.get("accepts", Accepts())
            value = getattr(self, declared.name)
            if not all(accepts.allows(item) for item in as_list(value)):
                raise InputError(f"must be {accepts}, got {value!r}", declared.name)

    def require(self, condition: bool, name: str, accepted: str) -> None:
        """InputError with the setting, its value and what is accepted, unless `condition` holds."""
        if not condition:
            raise InputError(f"must be {accepted}, got {getattr(self, name)!r}", name)

    def check_unset(self, switch: str) -> None:
        """InputError if a setting is not at its default: none has an effect without `switch`."""
        default = type(self)()
        for declared in fields(self):
            if getattr(self, declared.name) != getattr(default, declared.name):
                raise InputError(f"has no effect without {switch}", declared.name)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, **values: Any) -> Self:
        """The settings that environment variables give; an empty variable counts as unset.

        values: of the settings that have no variable.

        Raises:
            InputError: a bad value, or a variable of the group that is no setting; `field` is the
                variable's name.
        """
        environ = os.environ if environ is None else environ
        prefix = cls.variable_prefix
        names = {}
        for declared in fields(cls):
            if declared.name.startswith(cls.group):
                names[f"{prefix}{declared.name}".upper()] = declared.name

        if cls.group:
            start = f"{prefix}{cls.group}".upper()
            for variable in environ:
                if variable.startswith(start) and variable not in names:
                    raise InputError(no_setting(cls.group.strip("_"), variable, names))
        for variable, name in names.items():
            if environ.get(variable):
                values[name] = Text(environ[variable])
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.problem, f"{prefix}{error.field}".upper()) from error


def no_setting(owner: str, name: str, known: Collection[str], hint: str = "") -> str:
    """A message for a name that is no setting of `owner`.

    hint: what is better than the nearest name, such as what another library's name is here.

    >>> no_setting("cosine", "maxlen", ["max_len", "unit"])
    "cosine has no setting 'maxlen'; the nearest is max_len; it has max_len, unit"
    """
    message = f"{owner} has no setting {name!r}"
    nearest = get_close_matches(name, known, 1)
    if hint:
        message += f"; {hint}"
    elif nearest:
        message += f"; the nearest is {nearest[0]}"
    if len(known) <= _MOST_NAMES:
        message += f"; it has {', '.join(known)}"
    return message


def as_type(value: Any, hint: Any, name: str) -> Any:
    """The value as one of the hint's type; InputError, with the setting's name, where it is none.

    >>> as_type(Text("3-5"), tuple[int, int], "count")
    (3, 5)
    """
    try:
        return _convert(value, hint)
    except TypeError:
        raise InputError(f"must be {_type_name(hint)}, got {value!r}", name) from None


_hints = cache(get_type_hints)


def _without_none(hint: Any) -> Any:
    """`int` for `int | None`."""
    if NoneType not in get_args(hint):
        return hint
    (other,) = (choice for choice in get_args(hint) if choice is not NoneType)
    return other


def _item_type(hint: Any) -> Any:
    """The type of a list's or a tuple's items; None for a single value."""
    return get_args(hint)[0] if get_origin(hint) in (list, tuple) else None


def _is_range(hint: Any) -> bool:
    """Whether a hint is that of a range from low to high, such as `tuple[int, int]`."""
    item = _item_type(hint)
    return item is not None and get_args(hint) == (item, item)


def _type_name(hint: Any) -> str:
    hint = _without_none(hint)
    if _is_range(hint):
        return "a range such as 3-5"
    item = _item_type(hint)
    return _TYPES[hint] if item is None else _LISTS[item]


def _convert(value: Any, hint: Any) -> Any:
    """The value as one of the hint's type; TypeError if it stands for none."""
    if value is None and NoneType in get_args(hint):
        return None
    hint = _without_none(hint)
    if _item_type(hint) is None:
        return _convert_single(value, hint)
    return _convert_items(value, hint)


def _convert_items(value: Any, hint: Any) -> Any:
    if isinstance(value, str):
        value = _split(value, _is_range(hint))
    if not isinstance(value, (list, tuple)):
        raise TypeError
    container = get_origin(hint)
    items = container(_convert(entry, _item_type(hint)) for entry in value)
    if _is_range(hint) and (len(items) != 2 or items[0] > items[1]):
        raise TypeError
    return items


def _split(text: str, is_range: bool) -> list[Text]:
    """`a, b` as two texts; for a range `3-5` as two, and `3` as twice the same."""
    if not is_range:
        return [Text(part) for part in text.split(",") if part.strip()]
    low, dash, high = text.partition("-")
    return [Text(low), Text(high if dash else low)]


def _convert_single(value: Any, cls: Any) -> Any:
    if isinstance(value, Text):
        value = value.strip()
        if cls is bool:
            value = _BOOLEANS.get(value.lower(), value)
        else:
            with suppress(ValueError):
                value = cls(value)
    if cls is float and type(value) is int:
        value = float(value)
    # True is an int to Python, and no number to a user.
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
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


Number = TypeVar("Number", int, float)


def number(
    settings: Mapping[str, Any], name: str, default: Number, at_least: int | None = None
) -> Number:
    """A setting, or the first of a list, as a number of the default's type.

    Raises:
        InputError: it is anything else, or below `at_least`.

    >>> number({"max_steps": "100"}, "max_steps", -1), number({}, "beta", 0.04)
    (100, 0.04)
    """
    values = as_list(settings.get(name))
    value = values[0] if values else default
    kind = type(default)
    with suppress(TypeError, ValueError):
        result = float(value)
        # `int` would cut 2.5 to 2.
        is_exact = math.isfinite(result) and kind(result) == result
        if is_exact and (at_least is None or result >= at_least):
            return kind(result)
    expected = "a number" if kind is float else "a whole number"
    if at_least is not None:
        expected += f" of at least {at_least}"
    raise InputError(f"must be {expected}, got {settings.get(name)!r}", name)
