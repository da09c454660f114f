"""The parameters of a reward, and where their values come from.

Each reward has a frozen dataclass `Parameters`. A value comes from the keyword with which the reward is built, from the
environment (``EXTERNAL_COSINE_MAX_LEN=2000``), from ms-swift's flag (``--cosine_max_len 2000``) or is the default, see
README.md. A variable that fits no parameter and a value that does not fit are errors: after a typing mistake nobody
should train with the default.
"""

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, get_origin, get_type_hints

from swift_rlvr.errors import InputError

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_ACCEPTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    tuple: "names, with commas",
}


def parameter(
    default: Any,
    help: str,
    flag: str | None = None,
    at_least: float | None = None,
    choices: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
) -> Any:
    """A field of a reward's `Parameters`: its default, what it means, ms-swift's flag for the same thing, its range.

    `elsewhere` are other names of it, in open-r1 and TRL: none of them is accepted, and the error names ours.
    """
    metadata = {"help": help, "flag": flag, "at_least": at_least, "choices": choices, "elsewhere": elsewhere}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class BaseParameters:
    """The parameters of every reward. What a field cannot say about its range is checked in `__post_init__`."""

    tasks: tuple[str, ...] = parameter(
        (),
        "values of the column `task` to grade; none: all, of a verifier those that name it",
    )
    warn_after: int = parameter(20, "batches without a reward other than 0 after which to warn; 0: never", at_least=0)

    def require(self, condition: bool, name: str, accepted: str) -> None:
        """Raise InputError naming the parameter, its value and what is accepted, unless `condition` holds."""
        if not condition:
            raise InputError(f"must be {accepted}, not {getattr(self, name)!r}", field=name)


def variable(reward_name: str, parameter_name: str) -> str:
    """The environment variable of a parameter, such as EXTERNAL_COSINE_MAX_LEN."""
    return f"{reward_name}_{parameter_name}".upper()


def name_here(cls: type[BaseParameters], name: str) -> str | None:
    """What a parameter is called here that has this name in open-r1, TRL or ms-swift; None for an unknown name.

    >>> from swift_rlvr.rewards import REWARDS
    >>> cosine = REWARDS["external_cosine"].Parameters
    >>> name_here(cosine, "max_value_correct"), name_here(cosine, "cosine_max_len"), name_here(cosine, "max_length")
    ('min_len_value_correct', 'max_len', None)
    """
    for each in fields(cls):
        if name in (each.metadata.get("flag"), *each.metadata.get("elsewhere", ())):
            return each.name
    return None


def read_parameters(
    cls: type[BaseParameters],
    reward_name: str,
    args: object = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    other_names: Iterable[str] = (),
) -> Any:
    """Build a reward's parameters from keywords, environment, ms-swift's flags and defaults, in this order.

    `other_names` are the other rewards, so that EXTERNAL_FORMAT_STRICT_TASKS is not read as one of external_format's.

    Raises:
        TypeError: for a keyword that is not a parameter.
        InputError: for a value that does not fit or a variable that fits no parameter. Its field is the variable, the
            flag, or reward and keyword, as in "external_cosine: max_len".

    >>> read_parameters(BaseParameters, "external_mine", environment={"EXTERNAL_MINE_TASKS": "math, gsm8k"}).tasks
    ('math', 'gsm8k')
    """
    environment = os.environ if environment is None else environment
    known = {each.name: each for each in fields(cls)}
    overrides = overrides or {}
    unknown = sorted(overrides.keys() - known.keys())
    if unknown:
        here = name_here(cls, unknown[0])
        answer = f"{unknown[0]} is {here} here" if here else f"it has {', '.join(known)}"
        raise TypeError(f"{reward_name} has no parameter {unknown[0]!r}; {answer}")
    _refuse_unknown_variables(cls, reward_name, environment, other_names)
    types = _types(cls)
    sources = {name: f"{reward_name}: {name}" for name in known}
    values = {}
    try:
        for name, each in known.items():
            own, flag = variable(reward_name, name), each.metadata.get("flag")
            if name in overrides:
                value = overrides[name]
            elif own in environment:
                value, sources[name] = _from_text(environment[own], types[name]), own
            elif flag and was_given(args, flag):
                value, sources[name] = getattr(args, flag), f"--{flag}"
            else:
                continue
            values[name] = _checked(each, value, types[name])
        return cls(**values)
    except InputError as error:
        raise InputError(error.problem, sources.get(error.field or "", error.field)) from None
    except ValueError as error:
        raise InputError(f"{reward_name}: {error}") from None


def values_from_texts(cls: type[BaseParameters], texts: Mapping[str, str]) -> dict[str, Any]:
    """Keywords from texts, which are read as the texts of environment variables are.

    >>> values_from_texts(BaseParameters, {"tasks": "math, gsm8k", "warn_after": "5"})
    {'tasks': ('math', 'gsm8k'), 'warn_after': 5}
    """
    types = _types(cls)
    return {name: _from_text(text, types[name]) for name, text in texts.items()}


def stray_variables(names: Iterable[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Environment variables that look like a reward's parameter and belong to none of the rewards: typing mistakes.

    >>> stray_variables(["external_cosine"], {"EXTERNAL_COSIN_MAX_LEN": "9", "EXTERNAL_COSINE_MAX_LEN": "9"})
    ['EXTERNAL_COSIN_MAX_LEN']
    """
    environment = os.environ if environment is None else environment
    prefixes = tuple(name.upper() + "_" for name in names)
    return sorted(name for name in environment if name.startswith("EXTERNAL_") and not name.startswith(prefixes))


def was_given(args: object, flag: str) -> bool:
    """Whether an ms-swift flag was given: it is on the command line, even with its default, or has another value."""
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


def _refuse_unknown_variables(
    cls: type[BaseParameters], reward_name: str, environment: Mapping[str, str], other_names: Iterable[str]
) -> None:
    prefix = reward_name.upper() + "_"
    longer = tuple(name.upper() + "_" for name in other_names if name.upper().startswith(prefix))
    accepted = [variable(reward_name, each.name) for each in fields(cls)]
    for name in environment:
        if name.startswith(prefix) and name not in accepted and not (longer and name.startswith(longer)):
            here = name_here(cls, name.removeprefix(prefix).lower())
            answer = f"it is {variable(reward_name, here)} here" if here else f"it has {', '.join(accepted)}"
            raise ValueError(f"{name} is set, and {reward_name} has no such parameter; {answer}")


def _types(cls: type[BaseParameters]) -> dict[str, type]:
    return {name: get_origin(each) or each for name, each in get_type_hints(cls).items()}


def _from_text(text: str, cls: type) -> Any:
    """The value that a text stands for; the text itself where it stands for none, which `_checked` then refuses."""
    text = text.strip()
    if cls is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if cls is bool:
        return _BOOLEANS.get(text.lower(), text)
    try:
        value = cls(text)
    except ValueError:
        return text
    return text if cls is float and not math.isfinite(value) else value


def _checked(parameter: Field, value: Any, cls: type) -> Any:
    """The value as the parameter's type, and in its range; names may be one text with commas."""
    if cls is tuple:
        value = _from_text(value, cls) if isinstance(value, str) else value
        fits = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    elif isinstance(value, bool):
        fits = cls is bool
    elif cls is float:
        fits = isinstance(value, (int, float)) and math.isfinite(value)
    else:
        fits = isinstance(value, cls)
    accepted = _ACCEPTED[cls]
    minimum, choices = parameter.metadata.get("at_least"), parameter.metadata.get("choices")
    if fits and minimum is not None:
        fits, accepted = value >= minimum, f"{minimum} or more"
    elif fits and choices:
        fits, accepted = value in choices, " or ".join(map(repr, choices))
    if not fits:
        raise InputError(f"must be {accepted}, not {value!r}", field=parameter.name)
    return cls(value)
