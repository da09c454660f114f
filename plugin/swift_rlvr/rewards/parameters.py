"""The parameters of a reward, and where their values come from.

Each reward has a frozen dataclass `Parameters`. A value comes from a keyword, from the environment
(``EXTERNAL_COSINE_MAX_LEN=2000``), from ms-swift's flag (``--cosine_max_len 2000``) or is the
default. A variable that fits no parameter and a value that does not fit are errors: nobody should
train with the default by mistake.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, Text, no_setting, setting

Parameters = TypeVar("Parameters", bound="BaseParameters")


@dataclass(frozen=True)
class BaseParameters(Settings):
    """The parameters of every reward. A `setting` here may have a `flag`, ms-swift's for the same
    thing, and `elsewhere`: its names in other libraries, each with the library.
    """

    tasks: tuple[str, ...] = setting(
        (),
        "tasks to grade, by the column `task`; by default a verifier grades the tasks that name it, "
        "other rewards grade all",
    )
    thinking_opened: bool = setting(
        False,
        "the chat template ends the prompt with <think>, so completions begin inside the thinking; "
        "by default the columns thinking_opened, prompts and messages say it",
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
    # What stands in the place of ms-swift's arguments, and is none, would be ignored.
    if isinstance(args, (str, int, float, Mapping, list, tuple)):
        raise TypeError(
            f"{reward_name}: parameters are given by name, NAME=VALUE, not as {args!r:.80}"
        )
    environment = os.environ if environment is None else environment
    overrides = overrides or {}
    _refuse_unknown(cls, reward_name, overrides, environment, other_names)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for parameter in fields(cls):
        name = parameter.name
        sources[name] = f"{reward_name}: {name}"
        own_variable = variable(reward_name, name)
        flag = parameter.metadata.get("flag")
        if name in overrides:
            values[name] = overrides[name]
        elif own_variable in environment:
            values[name] = Text(environment[own_variable])
            sources[name] = own_variable
        elif flag and was_given(args, flag):
            values[name] = getattr(args, flag)
            sources[name] = f"--{flag}"
    try:
        return cls(**values)
    except InputError as error:
        field = sources.get(error.field or "", error.field)
        raise InputError(error.problem, field) from None


def names_elsewhere(cls: type[BaseParameters]) -> dict[str, tuple[str, Field]]:
    """The libraries and the parameters of a reward, by the parameters' names in those libraries.

    The nearest name may be another parameter: open-r1's `min_value_correct` is not
    `min_len_value_correct` but its opposite.
    """
    names = {}
    for parameter in fields(cls):
        for name, library in parameter.metadata.get("elsewhere", {}).items():
            names[name] = library, parameter
    return names


def _called_here(cls: type[BaseParameters], name: str, write: Callable[[str], str]) -> str:
    """What another library's name for a parameter is here; empty for any other name.

    write: how the parameter's own name is written where `name` stands.
    """
    library, parameter = names_elsewhere(cls).get(name, ("", None))
    return f"{library}'s {name} is {write(parameter.name)} here" if parameter else ""


def flag_elsewhere(
    flag: str, rewards: Iterable[tuple[str, type[BaseParameters]]], variables: bool = False
) -> str:
    """What another library's flag for a parameter of a reward is called here; empty if it is no
    such flag.

    Args:
        rewards: names and parameters of the rewards.
        variables: name the environment variable, where the trainer has no flag for it.
    """
    for reward_name, cls in rewards:
        for parameter in fields(cls):
            swift_flag = parameter.metadata.get("flag")
            if swift_flag is None:
                continue
            libraries = {swift_flag: "ms-swift"}
            for name, library in parameter.metadata.get("elsewhere", {}).items():
                libraries[name] = library
                # open-r1's flags begin with the reward, as in cosine_min_value_correct.
                libraries[f"{swift_flag.partition('_')[0]}_{name}"] = library
            if flag in libraries:
                ours = variable(reward_name, parameter.name) if variables else f"--{swift_flag}"
                return f"{libraries[flag]}'s {flag} is {ours} here"
    return ""


def _refuse_unknown(
    cls: type[BaseParameters],
    reward_name: str,
    overrides: Mapping[str, Any],
    environment: Mapping[str, str],
    other_names: Iterable[str],
) -> None:
    """TypeError for a keyword that is no parameter; InputError for a variable that looks like one of
    this reward and fits no parameter.
    """
    # A trainer that was handed the class calls it as if it were the reward.
    if "completions" in overrides:
        short_name = reward_name.removeprefix("external_")
        problem = f'this is its class; make the reward with REWARDS["{short_name}"]()'
        raise TypeError(f"{reward_name}: {problem}")
    known = [parameter.name for parameter in fields(cls)]
    for name in overrides:
        if name not in known:
            raise TypeError(no_setting(reward_name, name, known, _called_here(cls, name, str)))

    prefix = f"{reward_name}_".upper()
    variables = [variable(reward_name, name) for name in known]
    strays = [name for name in environment if name.startswith(prefix) and name not in variables]
    if not strays:
        return
    # Only now, since it looks into the registry and loads the rewards of other packages.
    longer = tuple(f"{name}_".upper() for name in other_names if name.upper().startswith(prefix))
    for name in strays:
        if longer and name.startswith(longer):
            continue
        other = name.removeprefix(prefix).lower()
        hint = _called_here(cls, other, lambda own_name: variable(reward_name, own_name))
        raise InputError(no_setting(reward_name, name, variables, hint))


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
    """Whether an ms-swift flag was given.

    It was if it is written on the command line, where ms-swift also puts the keys of a YAML file, or
    if its value is not the declared default: a resumed run reads its flags from a checkpoint. Our
    defaults differ from ms-swift's, so a flag that repeats ms-swift's default does matter here.
    """
    value = getattr(args, flag, None)
    if value is None:
        return False
    declared = getattr(type(args), "__dataclass_fields__", {}).get(flag)
    if declared is None or declared.default is MISSING:
        return False
    # ms-swift accepts both spellings.
    spellings = {f"--{flag}", f"--{flag.replace('_', '-')}"}
    if any(word.partition("=")[0] in spellings for word in sys.argv[1:]):
        return True
    if declared.default is None:  # ms-swift fills in a length that was not given
        return bool(value != getattr(args, "max_completion_length", None))
    return bool(value != declared.default)
