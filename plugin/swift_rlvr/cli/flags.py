"""The flags of the commands that sample, with the help that `SamplingSettings` declares, which checks their values too.

Defaults are the commands' own: a probe samples more than an evaluation, and a chat answers shortly.
"""

from dataclasses import fields
from typing import Annotated

import typer

from swift_rlvr.sampling import SamplingSettings

_HELP = {each.name: each.metadata["help"] for each in fields(SamplingSettings)}

Model = Annotated[str, typer.Argument(help=_HELP["model"])]
NumGenerations = Annotated[int, typer.Option(help=_HELP["num_generations"])]
Temperature = Annotated[float, typer.Option(help=_HELP["temperature"])]
MaxCompletionLength = Annotated[int, typer.Option(help=_HELP["max_completion_length"])]
BatchSize = Annotated[int, typer.Option(help=_HELP["batch_size"])]
Seed = Annotated[int, typer.Option(help=_HELP["seed"])]
Engine = Annotated[str, typer.Option(help=_HELP["engine"])]
Server = Annotated[str | None, typer.Option(metavar="URL", help=_HELP["server"])]
