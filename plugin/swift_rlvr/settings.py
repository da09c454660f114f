"""How a setting is declared: name, type, default, meaning and accepted values, once, as a field of a frozen dataclass.

    @dataclass(frozen=True)
    class Sampling(Settings):
        temperature: float = setting(1.0, "Of sampling; 0 is greedy.", at_least=0)

An instance has checked its values, whether they come from keywords, from texts (`Text`), from environment variables
(`from_environment`), or from flags and YAML (`swift_rlvr.training.arguments`). The error is always an InputError that
says what is accepted; its field is the setting's name, which a reader replaces with its flag or variable.
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
from typing import Any, Self, get_args, get_origin, get_type_hints

from swift_rlvr.errors import InputError

PREFIX = "SWIFT_RLVR_"  # of variables that are not a reward's or the launcher's
_TYPES = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}
_LISTS = {int: "whole numbers", float: "finite numbers", str: "names"}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_BOUNDS = {"at_least": operator.ge, "more_than": operator.gt, "at_most": operator.le, "less_than": operator.lt}


def setting(default: Any = MISSING, help: str = "", *, choices: Collection[str] = (), **metadata: Any) -> Any:
    """A field of a `Settings`: its default, what it means, and what it may be.

    Args:
        choices: the texts that it may be.
        metadata: bounds of a number, or of each in a list: at_least, more_than, at_most, less_than. Others are for one
            kind of reader, such as a reward's `flag` and `elsewhere`, or argparse's `action`.
    """
    return field(default=default, metadata={"help": help, "choices": tuple(choices), **metadata})


class Text(str):
    """The text of a variable or flag, which stands for a value of its setting's type."""


@dataclass(frozen=True)
class Settings:
    """Settings that are checked when they are built; what a field cannot say, `__post_init__` of a subclass checks.

    >>> @dataclass(frozen=True)
    ... class Some(Settings):
    ...     steps: int = setting(1, "How many.", at_least=1)
    ...     tasks: tuple[str, ...] = setting((), "Which.")
    >>> Some(Text("5"), "math, gsm8k")
    Some(steps=5, tasks=('math', 'gsm8k'))
    >>> Some(steps=0)
    Traceback (most recent call last):
    swift_rlvr.errors.InputError: steps must be at least 1, got 0
    """

    def __post_init__(self) -> None:
        """InputError for a value of another type or out of its range."""
        hints = _hints(type(self))  # type: ignore[arg-type]  # mypy takes a class's __hash__ for its metaclass's
        for each in fields(self):
            value, hint = getattr(self, each.name), hints[each.name]
            try:
                object.__setattr__(self, each.name, _as_type(value, hint))
            except TypeError:
                raise InputError(f"must be {_described(hint)}, got {value!r}", each.name) from None
        check_ranges(type(self), self)

    def require(self, condition: bool, name: str, accepted: str) -> None:
        """InputError naming the setting, its value and what is accepted, unless `condition` holds."""
        if not condition:
            raise InputError(f"must be {accepted}, got {getattr(self, name)!r}", name)

    @classmethod
    def from_environment(
        cls, root: str, group: str = "", environ: Mapping[str, str] | None = None, **values: Any
    ) -> Self:
        """The settings in variables that are called `root` and the setting's name; an empty one is as none.

        Args:
            group: how the names of these settings begin; another variable that begins so is an InputError.
            values: of settings that have no variable.
        """
        environ = os.environ if environ is None else environ
        known = {f"{root}{each.name}".upper(): each.name for each in fields(cls) if each.name.startswith(group)}
        for variable in environ:
            if group and variable.startswith(f"{root}{group}".upper()) and variable not in known:
                raise InputError(no_setting(group.strip("_"), variable, known))
        values |= {name: Text(environ[variable]) for variable, name in known.items() if environ.get(variable)}
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.problem, f"{root}{error.field}".upper()) from error


def check_ranges(cls: type[Settings], values: object) -> None:
    """InputError for an attribute of `values` that is not in the range which `cls` declares for a setting of its name.

    values: an instance, or another library's settings, some of which have the same names.
    """
    for each in fields(cls):
        value = getattr(values, each.name, None)
        bounds = {name: each.metadata[name] for name in _BOUNDS if name in each.metadata}
        choices = each.metadata.get("choices") if isinstance(values, cls) else ()
        for item in value if isinstance(value, (list, tuple)) else () if value is None else (value,):
            if bounds and not (math.isfinite(item) and all(_BOUNDS[name](item, bounds[name]) for name in bounds)):
                accepted = " and ".join(f"{name.replace('_', ' ')} {bound}" for name, bound in bounds.items())
                raise InputError(f"must be {accepted}, got {value!r}", each.name)
            if choices and item not in choices:
                raise InputError(f"must be one of {', '.join(choices)}, got {value!r}", each.name)


def no_setting(owner: str, name: str, known: Collection[str], elsewhere: Mapping[str, str] | None = None) -> str:
    """What to say of a name that is no setting of `owner`; elsewhere: our names for those of other libraries.

    >>> no_setting("cosine", "maxlen", ["max_len", "unit"])
    "cosine has no setting 'maxlen'; the nearest is max_len; it has max_len, unit"
    >>> no_setting("repetition", "ngram_size", ["n_grams"], {"ngram_size": "n_grams"})
    "repetition has no setting 'ngram_size'; it is n_grams here"
    """
    message = f"{owner} has no setting {name!r}"
    if elsewhere and name in elsewhere:
        return f"{message}; it is {elsewhere[name]} here"
    nearest = get_close_matches(name, known, 1)
    message += f"; the nearest is {nearest[0]}" if nearest else ""
    return message + (f"; it has {', '.join(known)}" if len(known) <= 20 else "")


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _inner(hint: Any) -> tuple[Any, Any]:
    """The type of a hint without None, and that of its items where it is one of lists or tuples."""
    if NoneType in get_args(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    return hint, get_args(hint)[0] if get_origin(hint) in (list, tuple) else None


def _described(hint: Any) -> str:
    cls, item = _inner(hint)
    if item is None:
        return _TYPES[cls]
    return f"two {_LISTS[item]}" if get_args(cls) == (item, item) else f"{_LISTS[item]}, with commas"


def _as_type(value: Any, hint: Any) -> Any:
    """The value as one of the hint's type; TypeError where it stands for none."""
    cls, item = _inner(hint)
    if value is None and cls is not hint:
        return None
    if item is not None:
        values = [Text(part) for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(values, (list, tuple)) or get_args(cls) == (item, item) and len(values) != 2:
            raise TypeError
        return get_origin(cls)(_as_type(each, item) for each in values)
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
