"""The command `swift-rlvr train`: GRPO with ms-swift, with this package's own trainer or with TRL's."""

import os
import shlex
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import chat as cli_chat
from swift_rlvr.cli import dataset, launch
from swift_rlvr.errors import DivergedError, InputError, require
from swift_rlvr.launch.machine import this_machine
from swift_rlvr.launch.plan import name_recipe, switch
from swift_rlvr.recipes import Recipe, flags_of_variables, read_flags, read_recipe

# The settings are the trainers', and their names are too many for typer: see `swift_rlvr.training.arguments`.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


GSM8K = Path("output/gsm8k_1024.jsonl")  # the rows with at most 300 tokens of prompt and 200 of answer
USAGE = "Usage: swift-rlvr train [RECIPE.yaml | countdown | scratch | trl] [--name value ...]"


def train(context: typer.Context) -> None:
    """Train with GRPO: train [RECIPE.yaml | countdown | scratch | trl] [--name value ...]

    A recipe of ms-swift (rlhf_type: grpo) is launched with its rollout server and
    watched; see scripts/README.md. Others are for this package's own trainer
    (trainer: scratch, the default) or TRL's (trainer: trl). In place of a recipe,
    countdown, scratch and trl stand for those of scripts/configs that fit this
    machine.

    Settings have ms-swift's and TRL's names, as flags or as keys of the file;
    flags override the file. With --trainer scratch|trl and --help all are listed.
    Variables say what the machine has: MODEL, DATASET, OUTPUT and others.
    DRY_RUN=1 stops after the plan.

    Our own trainer and TRL's load the saved model again and ask it the first
    question of the dataset; they go on with --resume_from_checkpoint true, ms-swift
    with RESUME=1. Exit status: 2 for settings that cannot be used, 3 where training
    diverges, 130 where it is interrupted.

    swift-rlvr train scripts/configs/countdown_scratch_cpu.yaml --max_steps 10
    """
    if not context.args or context.args in (["--help"], ["-h"]):
        typer.echo(f"{USAGE}\n")
        typer.echo(cleandoc(train.__doc__ or ""))
        return
    words = name_recipe(context.args, this_machine())
    recipe = None if words[0].startswith("-") else read_recipe(words[0])
    if recipe is not None and "rlhf_type" in recipe.settings:
        raise typer.Exit(launch.launch(words, Console(highlight=False)))
    _train_here(words, recipe)


def _prepare(words: list[str], recipe: Recipe | None) -> None:
    """Make the file of short GSM8K rows that the GSM8K recipe is trained on, where it is not there yet."""
    settings = {**(recipe.settings if recipe else {}), **read_flags(words[1 if recipe else 0 :])}
    if settings.get("dataset") == f"gsm8k:{GSM8K}" and not GSM8K.exists():
        use_hf = bool(settings.get("use_hf", False))
        dataset.prepare("gsm8k", settings["model"], GSM8K, 300, 200, 1024, use_hf=use_hf)


def _train_here(words: list[str], recipe: Recipe | None) -> None:
    """Our own trainer or TRL's, in this process, on the first visible GPU."""
    for_wandb = recipe is not None and os.environ.get("WANDB_API_KEY") and recipe.settings.get("report_to")
    first = 0 if recipe is None else 1
    words[first:first] = [
        *flags_of_variables(os.environ, ("MODEL", "DATASET", "OUTPUT", "USE_HF")),
        *(["--report_to", "wandb"] if for_wandb else []),
    ]
    gpus = this_machine().gpus
    if len(gpus) > 1 and "RANK" not in os.environ:
        os.environ |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpus[0].index}
    if switch(os.environ, "DRY_RUN", False):
        device = f"CUDA_VISIBLE_DEVICES={gpus[0].index} " if gpus else ""
        typer.echo(f"{device}swift-rlvr train {shlex.join(words)}")
        return
    require("transformers", "train", "swift-rlvr train")
    _prepare(words, recipe)
    from swift_rlvr.training.arguments import TRAINERS, read_command

    rank_zero = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, or the only one
    console = Console(highlight=False, quiet=not rank_zero)
    try:
        command = read_command(words)
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
        trained.model,
        dataset=trained.dataset,
        use_hf=trained.use_hf,
        max_completion_length=trained.max_completion_length,
    )
