"""The command `swift-rlvr train`: GRPO without ms-swift, with this package's own trainer or with TRL's."""

import os
from importlib import import_module
from inspect import cleandoc

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import chat as cli_chat
from swift_rlvr.errors import DivergedError, InputError, require

# The settings are the trainers', and their names are too many for typer: see `swift_rlvr.training.arguments`.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def train(context: typer.Context) -> None:
    """Train with GRPO, without ms-swift: train [CONFIG.yaml] [--trainer scratch|trl] [--name value ...]

    --trainer scratch (the default) is this package's own trainer, on one GPU or
    a CPU; its defaults are those of the GSM8K recipe. --trainer trl is TRL's.

    Settings have ms-swift's and TRL's names, as flags or as keys of the file;
    flags override the file. With --trainer and --help all are listed. Needed:
    --model, --dataset, --reward_funcs and --output_dir. A run that was stopped
    goes on with --resume_from_checkpoint true.

    After the training the saved model is loaded again and asked the first
    question of the dataset. Exit status: 2 for settings that cannot be used,
    3 where training diverges, 130 where it is interrupted.

    swift-rlvr train scripts/configs/countdown_scratch_cpu.yaml --max_steps 10
    """
    if not context.args or context.args in (["--help"], ["-h"]):
        typer.echo("Usage: swift-rlvr train [CONFIG.yaml] [--trainer scratch|trl] [--name value ...]\n")
        typer.echo(cleandoc(train.__doc__ or ""))
        return
    require("transformers", "train", "swift-rlvr train")
    from swift_rlvr.training.arguments import TRAINERS, read_command

    rank_zero = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, or the only one
    console = Console(highlight=False, quiet=not rank_zero)
    try:
        command = read_command(context.args)
        if command.trainer == "trl":
            require("trl", "trl", "--trainer trl")
        trained = import_module(TRAINERS[command.trainer]).run(command, console)
    except InputError as error:
        raise InputError(error.problem, error.field and f"--{error.field}") from error
    except DivergedError as error:
        Console(stderr=True).print(Text.assemble(("Error:", "red"), f" {error}"), highlight=False, soft_wrap=True)
        raise typer.Exit(3) from None
    except KeyboardInterrupt:
        console.print("\ninterrupted; --resume_from_checkpoint true goes on from the last checkpoint", markup=False)
        raise typer.Exit(130) from None
    if not rank_zero:
        return
    note = f"saved: {trained.model}; its answer to the first row of {trained.dataset}:"
    console.print(note, markup=False, soft_wrap=True)
    cli_chat.chat(
        trained.model, row=trained.dataset, use_hf=trained.use_hf, max_new_tokens=trained.max_completion_length
    )
