"""Flags with the help that a setting's declaration has; its class checks the values. Defaults are the commands' own."""

from dataclasses import fields
from typing import Annotated, Any

import typer

from swift_rlvr.sampling import SamplingSettings
from swift_rlvr.settings import Settings


def help_of(cls: type[Settings], name: str) -> str:
    """What a setting means, as its declaration says."""
    return str({each.name: each.metadata["help"] for each in fields(cls)}[name])


def option(cls: type[Settings], name: str, **options: Any) -> Any:
    """typer's option for a setting. options: typer's own, such as `metavar`."""
    return typer.Option(help=help_of(cls, name), **options)


Model = Annotated[str, typer.Argument(help=help_of(SamplingSettings, "model"))]
NumGenerations = Annotated[int, option(SamplingSettings, "num_generations")]
Temperature = Annotated[float, option(SamplingSettings, "temperature")]
MaxCompletionLength = Annotated[int, option(SamplingSettings, "max_completion_length")]
BatchSize = Annotated[int, option(SamplingSettings, "batch_size")]
Seed = Annotated[int, option(SamplingSettings, "seed")]
Engine = Annotated[str, option(SamplingSettings, "engine")]
Server = Annotated[str | None, option(SamplingSettings, "server", metavar="URL")]
