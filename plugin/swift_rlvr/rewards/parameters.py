"""The parameters of a reward, and where their values come from.

Each reward has a frozen dataclass `Parameters`. A value is taken from the first of these that has one:

1. the keyword with which the reward is built in Python, ``CosineLengthReward(max_len=2000)``;
2. the environment variable named after the reward and the parameter, ``EXTERNAL_COSINE_MAX_LEN=2000 swift rlhf ...``,
   as ms-swift's own plugins and models take theirs;
3. ms-swift's flag for the same thing, where there is one and it was given: ``--cosine_max_len 2000``;
4. the default.

A variable that begins with a reward's name and fits none of its parameters is an error, and so is a value of another
type, not a number or infinite: a typing mistake must not train with the default.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, get_type_hints

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    tuple: "names, with commas",
}


def parameter(default: Any, help: str, flag: str | None = None) -> Any:
    """A field of a reward's `Parameters`: its default, what it means, and ms-swift's flag for the same thing."""
    return field(default=default, metadata={"help": help, "flag": flag})


@dataclass(frozen=True)
class Parameters:
    """What every reward can be told. Subclasses add fields and check them in `__post_init__` with `require`."""

    tasks: tuple[str, ...] = parameter((), "values of the column `task` to which the reward applies; none: all")
    warn_after: int = parameter(20, "batches without a reward other than 0 after which to warn; 0: never")

    def require(self, condition: bool, name: str, accepted: str) -> None:
        """Raise ValueError naming the parameter, its value and what is accepted, unless `condition` holds."""
        if not condition:
            raise ValueError(f"{name} must be {accepted}, not {getattr(self, name)!r}")


def variable(reward_name: str, parameter_name: str) -> str:
    """The environment variable of a parameter.

    >>> variable("external_cosine", "max_len")
    'EXTERNAL_COSINE_MAX_LEN'
    """
    return f"{reward_name}_{parameter_name}".upper()


def read_parameters(
    kind: type[Parameters],
    reward_name: str,
    args: object = None,
    given: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    other_names: Iterable[str] = (),
) -> Parameters:
    """Build a reward's parameters from keywords, environment, ms-swift's flags and defaults, in this order.

    Args:
        kind: the dataclass. reward_name: the reward's key in the registry.
        args: ms-swift's training arguments, or None.
        given: keywords. environment: the variables; None for those of the process.
        other_names: the other rewards, so that EXTERNAL_FORMAT_STRICT_TASKS is not read as one of external_format's.

    Raises:
        TypeError: for a keyword that is no parameter.
        ValueError: for a value that does not fit or a variable that fits no parameter.

    >>> read_parameters(Parameters, "external_mine", environment={"EXTERNAL_MINE_TASKS": "math, gsm8k"}).tasks
    ('math', 'gsm8k')
    """
    environment = os.environ if environment is None else environment
    known = {each.name: each for each in fields(kind)}
    given = dict(given or {})
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise TypeError(f"{reward_name} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    _refuse_unknown_variables(known, reward_name, environment, other_names)
    types = get_type_hints(kind)
    values = {}
    for name, each in known.items():
        flag = each.metadata.get("flag")
        if name in given:
            values[name] = given[name]
        elif variable(reward_name, name) in environment:
            values[name] = _parse(variable(reward_name, name), environment[variable(reward_name, name)], types[name])
        elif flag and was_given(args, flag):
            values[name] = getattr(args, flag)
    try:
        return kind(**{name: _checked(name, value, types[name]) for name, value in values.items()})
    except ValueError as error:
        raise ValueError(f"{reward_name}: {error}") from None


def stray_variables(names: Iterable[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Environment variables that look like a reward's parameter and belong to none of the rewards: typing mistakes.

    >>> stray_variables(["external_cosine"], {"EXTERNAL_COSIN_MAX_LEN": "9", "EXTERNAL_COSINE_MAX_LEN": "9"})
    ['EXTERNAL_COSIN_MAX_LEN']
    """
    environment = os.environ if environment is None else environment
    prefixes = tuple(name.upper() + "_" for name in names)
    return sorted(name for name in environment if name.startswith("EXTERNAL_") and not name.startswith(prefixes))


def was_given(args: object, flag: str) -> bool:
    """Whether an ms-swift flag was given, told from the command line or from a value that is not its default.

    The default alone cannot tell: `--repetition_max_penalty -1.0` is ms-swift's default, and a wish all the same.
    """
    value = getattr(args, flag, None)
    if value is None:
        return False
    spellings = (f"--{flag}", f"--{flag.replace('_', '-')}")
    if any(word.partition("=")[0] in spellings for word in sys.argv):
        return True
    declared = getattr(type(args), "__dataclass_fields__", {}).get(flag)
    if declared is None or declared.default is MISSING:
        return False
    if declared.default is None:  # a length that was not given is filled in by ms-swift with this one
        return value != getattr(args, "max_completion_length", None)
    return value != declared.default


def _refuse_unknown_variables(known, reward_name: str, environment: Mapping[str, str], other_names: Iterable[str]):
    prefix = reward_name.upper() + "_"
    longer = tuple(name.upper() + "_" for name in other_names if name.upper().startswith(prefix))
    accepted = [variable(reward_name, name) for name in known]
    for name in environment:
        if name.startswith(prefix) and name not in accepted and not (longer and name.startswith(longer)):
            raise ValueError(f"{name} is set, and {reward_name} has no such parameter; it has {', '.join(accepted)}")


def _parse(name: str, text: str, kind: Any) -> Any:
    kind = getattr(kind, "__origin__", kind)
    text = text.strip()
    try:
        if kind is bool:
            return _BOOLEANS[text.lower()]
        if kind is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        value = kind(text)
        if kind is float and not math.isfinite(value):
            raise ValueError
        return value
    except (KeyError, ValueError):
        raise ValueError(f"{name} must be {_KINDS[kind]}, not {text!r}") from None


def _checked(name: str, value: Any, kind: Any) -> Any:
    """The value of a keyword or flag as the parameter's type; names may be one text with commas, as in a variable."""
    kind = getattr(kind, "__origin__", kind)
    if kind is tuple and isinstance(value, str):
        return _parse(name, value, kind)
    if kind is tuple:
        fits = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    elif kind is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    else:
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not fits:
        raise ValueError(f"{name} must be {_KINDS[kind]}, not {value!r}")
    return kind(value) if kind in (tuple, float) else value
