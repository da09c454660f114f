"""The command `swift-rlvr`: which commands there are, and how they end on a mistake.

Each command is in the file of its name. A mistake in what the user gave ends a command with exit
code 2 and a message that names the flag or the file. Any other error is a bug and shows its
traceback.
"""

from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from swift_rlvr import __version__
from swift_rlvr.cli import flags
from swift_rlvr.cli.attack import attack
from swift_rlvr.cli.check import check
from swift_rlvr.cli.compare import compare
from swift_rlvr.cli.dataset.check import check_dataset
from swift_rlvr.cli.dataset.make_countdown import make_countdown
from swift_rlvr.cli.dataset.make_reasoning_gym import make_reasoning_gym
from swift_rlvr.cli.dataset.make_sft import make_sft
from swift_rlvr.cli.dataset.prepare import prepare
from swift_rlvr.cli.dataset.show import show
from swift_rlvr.cli.doctor import doctor
from swift_rlvr.cli.evaluate import evaluate
from swift_rlvr.cli.explain import explain
from swift_rlvr.cli.model import model
from swift_rlvr.cli.new import new
from swift_rlvr.cli.plugin import plugin
from swift_rlvr.cli.probe import probe
from swift_rlvr.cli.render import plain_help, print_error
from swift_rlvr.cli.report import report
from swift_rlvr.cli.rewards import rewards
from swift_rlvr.cli.score import score
from swift_rlvr.cli.train import train
from swift_rlvr.rewards.imported import FIELD
from swift_rlvr.utils.errors import InputError


class Command(TyperCommand):
    """A command whose flags are spelled with underscores, as those of the training are.

    Hyphens are read as underscores. An InputError is shown with the flag in place of the field,
    and ends the command with exit code 2.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.context_settings.setdefault(
            "token_normalize_func", lambda name: name.replace("-", "_")
        )
        self.help = plain_help(self.help or "")
        for parameter in self.params:
            if isinstance(parameter, (TyperOption, TyperArgument)):
                parameter.help = plain_help(parameter.help or "")
            # typer writes hyphens where a flag has no name of its own.
            if isinstance(parameter, TyperOption):
                parameter.opts[:] = [_with_underscores(name) for name in parameter.opts]
                parameter.secondary_opts[:] = map(_with_underscores, parameter.secondary_opts)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            message = str(error)
            # `check` and `attack` have rewards as arguments, and no --reward_funcs to correct. A launch
            # takes flags that typer does not know.
            takes_any_flag = self.context_settings.get("ignore_unknown_options")
            has_flag = any(error.field in parameter.opts for parameter in self.params)
            if error.field == FIELD and not has_flag and not takes_any_flag:
                message = error.problem
            # A library names the field of its settings, the user knows the flag.
            for parameter in self.params:
                if parameter.name is not None and parameter.name == error.field:
                    is_option = isinstance(parameter, TyperOption)
                    flag = parameter.opts[0] if is_option else parameter.name.upper()
                    message = f"{flag}: {error.problem}"
            print_error(message)
            raise typer.Exit(2) from None


def _with_underscores(flag: str) -> str:
    return f"--{flag[2:].replace('-', '_')}"


def show_version(wanted: bool) -> None:
    """Print the version and end, where --version was given."""
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


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.callback()(options)
dataset_app = typer.Typer(help="Make, check, show and prepare datasets.", no_args_is_help=True)
make_app = typer.Typer(help="Write a generated dataset to a file.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
dataset_app.add_typer(make_app, name="make")

make_app.command("countdown", cls=Command)(make_countdown)
make_app.command("reasoning_gym", cls=Command)(make_reasoning_gym)
make_app.command("sft", cls=Command)(make_sft)
dataset_app.command("check", cls=Command)(check_dataset)
dataset_app.command("show", cls=Command)(show)
dataset_app.command("prepare", cls=Command)(prepare)

for command in (
    rewards,
    explain,
    score,
    probe,
    evaluate,
    compare,
    report,
    model,
    plugin,
    new,
    check,
    attack,
):
    app.command(command.__name__, cls=Command)(command)
# The flags of a launch are ms-swift's and TRL's: too many for typer to know.
app.command("train", cls=Command, context_settings=flags.LAUNCH)(train)
app.command("doctor", cls=Command, context_settings=flags.LAUNCH)(doctor)
