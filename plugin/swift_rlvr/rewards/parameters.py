"""The parameters of a reward, and where their values come from.

Each reward has a frozen dataclass `Parameters`. A value comes from a keyword, from the environment
(``EXTERNAL_COSINE_MAX_LEN=2000``), from ms-swift's flag (``--cosine_max_len 2000``) or is the
default. A variable that fits no parameter and a value that does not fit are errors: nobody should
train with the default by mistake.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, Text, no_setting, setting

Parameters = TypeVar("Parameters", bound="BaseParameters")


@dataclass(frozen=True)
class BaseParameters(Settings):
    """The parameters of every reward. A `setting` here may have a `flag`, ms-swift's for the same
    thing.
    """

    tasks: tuple[str, ...] = setting(
        (), "values of the column `task` to grade; none: all, of a verifier those that name it"
    )


def variable(reward_name: str, parameter_name: str) -> str:
    """The environment variable of a parameter, such as EXTERNAL_COSINE_MAX_LEN."""
    return f"{reward_name}_{parameter_name}".upper()


def read_parameters(
    cls: type[Parameters],
    reward_name: str,
    args: object = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    other_names: Iterable[str] = (),
) -> Parameters:
    """Build a reward's parameters from keywords, environment, ms-swift's flags and defaults, in
    this order.

    `other_names` are the other rewards, so that EXTERNAL_FORMAT_STRICT_TASKS is not read as one of
    external_format's. TypeError for an unknown keyword; InputError for a value that does not fit,
    its field being the variable, the flag, or reward and keyword, as in "external_cosine: max_len",
    and for a variable that fits no parameter.

    >>> read_parameters(BaseParameters, "external_mine", environment={"EXTERNAL_MINE_TASKS": "math, gsm8k"}).tasks
    ('math', 'gsm8k')
    """
    environment, overrides = os.environ if environment is None else environment, overrides or {}
    known = [each.name for each in fields(cls)]
    for name in overrides:
        if name not in known:
            raise TypeError(no_setting(reward_name, name, known))
    prefix = f"{reward_name}_".upper()
    longer = tuple(f"{name}_".upper() for name in other_names if name.upper().startswith(prefix))
    variables = [variable(reward_name, name) for name in known]
    for name in environment:
        if (
            name.startswith(prefix)
            and name not in variables
            and not (longer and name.startswith(longer))
        ):
            raise InputError(no_setting(reward_name, name, variables))
    values, sources = {}, {name: f"{reward_name}: {name}" for name in known}
    for each in fields(cls):
        own, flag = variable(reward_name, each.name), each.metadata.get("flag")
        if each.name in overrides:
            values[each.name] = overrides[each.name]
        elif own in environment:
            values[each.name], sources[each.name] = Text(environment[own]), own
        elif flag and was_given(args, flag):
            values[each.name], sources[each.name] = getattr(args, flag), f"--{flag}"
    try:
        return cls(**values)
    except InputError as error:
        raise InputError(error.problem, sources.get(error.field or "", error.field)) from None


def stray_variables(
    names: Iterable[str], environment: Mapping[str, str] | None = None
) -> list[str]:
    """Environment variables that look like a reward's parameter and belong to none of the rewards:
    typing mistakes.

    >>> stray_variables(["external_cosine"], {"EXTERNAL_COSIN_MAX_LEN": "9", "EXTERNAL_COSINE_MAX_LEN": "9"})
    ['EXTERNAL_COSIN_MAX_LEN']
    """
    environment = os.environ if environment is None else environment
    prefixes = tuple(name.upper() + "_" for name in names)
    return sorted(
        name
        for name in environment
        if name.startswith("EXTERNAL_") and not name.startswith(prefixes)
    )


def was_given(args: object, flag: str) -> bool:
    """Whether an ms-swift flag was given: it is on the command line, even with its default, or has
    another value.
    """
    value = getattr(args, flag, None)
    if value is None:
        return False
    if any(word.partition("=")[0].replace("-", "_") == f"__{flag}" for word in sys.argv):
        return True
    declared = getattr(type(args), "__dataclass_fields__", {}).get(flag)
    if declared is None or declared.default is MISSING:
        return False
    if declared.default is None:  # ms-swift fills in a length that was not given
        return value != getattr(args, "max_completion_length", None)
    return value != declared.default
