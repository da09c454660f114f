"""The command `swift-rlvr rewards`: the list of the rewards, or all about one."""

import inspect
import json
from dataclasses import fields
from inspect import formatannotation
from typing import Annotated, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from swift_rlvr.cli.flags import reward_names
from swift_rlvr.cli.render import plain_help
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import reward_class
from swift_rlvr.rewards.function import FunctionReward
from swift_rlvr.rewards.imported import is_import_path, paths_in_file
from swift_rlvr.rewards.parameters import variable
from swift_rlvr.utils.errors import InputError


def rewards(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of a reward, with or without external_, or FILE.py:FUNCTION.",
            show_default="all",
            autocompletion=reward_names,
        ),
    ] = None,
) -> None:
    """List the rewards, or show what one pays for, its columns, reasons, examples and parameters.

    swift-rlvr rewards cosine
    """
    console = Console(highlight=False, markup=False)
    if name is not None:
        # FILE.py alone: all rewards in it, as in `check`.
        paths = paths_in_file(name) if name.endswith(".py") else [name]
        for path in paths:
            if not is_import_path(path) and path not in REWARDS:
                raise InputError(f"there is no reward {path!r}; {REWARDS.suggestion(path)}", "name")
            show_one(console, reward_class(path)())
        return
    for reward_name, cls in REWARDS.items():
        docstring = inspect.getdoc(cls) or ""
        first_paragraph, _, _ = docstring.partition("\n\n")
        summary = plain_help(" ".join(first_paragraph.split()))
        console.print(Text.assemble((reward_name, "bold"), f" ({cls.role})"))
        _print_indented(console, f"{summary}\nColumns: {columns_text(cls())}")
    console.print(
        "\nColumns in parentheses are optional.\nDetails of one reward: swift-rlvr rewards NAME"
    )


def show_one(console: Console, reward: Reward) -> None:
    """Print what a reward says of itself, what its examples earn, and its parameters."""
    cls = type(reward)
    console.print(f"{cls.name}, {cls.role}, logged as {cls.__name__}", style="bold")
    docstring = plain_help(inspect.getdoc(cls) or "")
    console.print(f"\n{docstring}\n")
    console.print(f"Tasks: {', '.join(reward.own_tasks) or 'all'}")
    console.print(f"Columns: {columns_text(reward)}")
    if isinstance(reward, FunctionReward):
        console.print(f"Takes: {reward.signature}")
    console.print(f"Reasons: {', '.join(reward.reasons)}")
    for example in cls.examples:
        row = json.dumps(dict(example.row))
        console.print(f"Example: {example.completion!r} with {row} earns {example.reward}")
    types = get_type_hints(cls.Parameters)
    for parameter in fields(cls.Parameters):
        accepted = formatannotation(types[parameter.name])
        if get_origin(types[parameter.name]) is tuple:
            accepted = "comma-separated names"
        # Its range, as the error for a value outside of it says it.
        limits = parameter.metadata["accepts"]
        if any(limits):
            accepted += f", {limits}"
        default = parameter.default
        if isinstance(default, tuple):
            default = ",".join(default)
        # Only "" is shown as none: 0 and False are defaults like any other.
        default_text = str(default) or "none"

        # Where it can be set: the variable for any trainer, the flag and argument of those that have one.
        names = variable(cls.name, parameter.name)
        flag = parameter.metadata.get("flag")
        if flag:
            names += f", in ms-swift --{flag}"
        for name, library in parameter.metadata.get("elsewhere", {}).items():
            names += f", in {library} {name}"
        console.print(f"\n{parameter.name}: {accepted}; default {default_text}", style="bold")
        _print_indented(console, f"{plain_help(parameter.metadata['help'])}\n{names}")


def _print_indented(console: Console, text: str) -> None:
    console.print(Padding(Text(text), (0, 0, 0, 4)))


def columns_text(reward: Reward) -> str:
    """The columns that a reward needs, and in parentheses those that it can use."""
    names = list(reward.columns)
    for name in reward.optional_columns:
        names.append(f"({name})")
    return ", ".join(names) or "none"
