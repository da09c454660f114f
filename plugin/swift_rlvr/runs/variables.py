"""Settings from environment variables, for ms-swift's callbacks, which take no parameters.

A variable's name is PREFIX and the setting's in capitals. The classes are frozen dataclasses that raise InputError.
"""

import os
from collections.abc import Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from swift_rlvr.errors import InputError

PREFIX = "SWIFT_RLVR_"
Settings = TypeVar("Settings")


def setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def from_environment(cls: type[Settings], part: str, what: str, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in the variables that begin with PREFIX and `part`; InputError with the name of a bad variable.

    cls: the dataclass. part: such as "HELD_OUT_". what: what they are settings of, for messages.
    """
    environ = os.environ if environ is None else environ
    types: dict[str, tuple[str, Any]] = {
        PREFIX + each.name.upper(): (each.name, str if each.default is None else type(each.default))
        for each in fields(cls)  # type: ignore[arg-type]
        if each.name.upper().startswith(part)
    }
    values: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX + part) or not text:
            continue
        if variable not in types:
            nearest = get_close_matches(variable, types, 1)
            hint = f"; the nearest is {nearest[0]}" if nearest else ""
            raise InputError(f"is no variable of the {what}, which has {', '.join(types)}{hint}", variable)
        name, kind = types[variable]
        try:
            values[name] = kind(text)
        except ValueError:
            raise InputError(f"must be {'a whole' if kind is int else 'a'} number, got {text!r}", variable) from None
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(error.problem, PREFIX + str(error.field).upper()) from error
