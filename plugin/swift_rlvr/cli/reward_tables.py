"""The command `swift-rlvr rewards`: which rewards there are, and what there is to know of one."""

import inspect
import json
from dataclasses import fields
from typing import Annotated, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from swift_rlvr.cli.flags import reward_names
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.parameters import variable
from swift_rlvr.utils.errors import InputError


def rewards(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A reward, with or without external_.",
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
        if name not in REWARDS:
            raise InputError(f"must be one of {', '.join(REWARDS)}, got {name!r}", field="name")
        show_one(console, REWARDS[name]())
        return
    for each, cls in REWARDS.items():  # with those of other packages
        summary = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())
        console.print(Text.assemble((each, "bold"), f" ({cls.role})"))
        console.print(Padding(Text(f"{summary}\nColumns: {columns_text(cls())}"), (0, 0, 0, 4)))
    console.print(
        "\nA column in parentheses is used where it is present.\nAll about one: swift-rlvr rewards NAME"
    )


def show_one(console: Console, reward: Reward) -> None:
    """Print what a reward says of itself, what its examples earn, and its parameters."""
    cls = type(reward)
    console.print(f"{cls.name}, {cls.role}, logged as {cls.__name__}", style="bold")
    console.print(f"\n{inspect.getdoc(cls)}\n")
    console.print(f"Tasks: {', '.join(reward.own_tasks) or 'all'}")
    console.print(f"Columns: {columns_text(reward)}")
    console.print(f"Reasons: {', '.join(reward.reasons)}")
    for example in cls.examples:
        console.print(
            f"Example: {example.completion!r} with {json.dumps(dict(example.row))} earns {example.reward}"
        )
    hints = get_type_hints(cls.Parameters)
    for each in fields(cls.Parameters):
        default = ",".join(each.default) if isinstance(each.default, tuple) else str(each.default)
        flag = each.metadata.get("flag")
        names = variable(cls.name, each.name) + (f", in ms-swift --{flag}" if flag else "")
        hint, accepts = hints[each.name], each.metadata["accepts"]
        accepted = "names, with commas" if get_origin(hint) is tuple else hint.__name__
        accepted += f", {accepts}" if any(accepts) else ""
        console.print(f"\n{each.name}: {accepted}; default {default or 'none'}", style="bold")
        console.print(Padding(Text(f"{each.metadata['help']}\n{names}"), (0, 0, 0, 4)))


def columns_text(reward: Reward) -> str:
    """The columns that a reward needs, and in parentheses those that it can use."""
    return (
        ", ".join([*reward.columns, *(f"({name})" for name in reward.optional_columns)]) or "none"
    )
