"""The command `swift-rlvr train`: GRPO without ms-swift or TRL, on one GPU or a CPU, with `swift_rlvr.grpo`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from swift_rlvr.cli import chat as cli_chat
from swift_rlvr.errors import InputError
from swift_rlvr.tasks import TASKS

DATASET = f"NAME:FILE, FILE, NAME or NAME:SPLIT, each with #N; NAME is one of {', '.join(TASKS)}."
# Flags are the fields of GRPOSettings: panel -> field -> help. The settings need torch; the command line must not.
PANELS: dict[str, dict[str, tuple[type, Any, str]]] = {
    "Completions": {
        "num_generations": (int, 8, "Completions for each prompt."),
        "batch_size": (int, 8, "Completions a step, a multiple of the above."),
        "max_completion_length": (int, 512, "The longest, in tokens."),
        "temperature": (float, 1.0, ""),
        "top_p": (float, 0.9, "1: all tokens."),
        "top_k": (int, 50, "0: all tokens."),
        "sampler": (str, "transformers", "transformers or vllm."),
    },
    "Objective": {
        "loss_type": (str, "grpo", "grpo, dapo or dr_grpo: how tokens are averaged."),
        "importance_sampling_level": (str, "token", "token, or sequence (GSPO)."),
        "num_iterations": (int, 1, "Updates with each batch, mu."),
        "epsilon": (float, 0.2, "Clip range."),
        "epsilon_high": (float, None, "Its upper end, where it differs."),
        "beta": (float, 0.04, "Weight of the KL."),
        "scale_rewards": (bool, True, "Divide by the group's standard deviation."),
    },
    "Optimisation": {
        "max_steps": (int, -1, "Updates; -1: all epochs."),
        "num_train_epochs": (int, 1, ""),
        "learning_rate": (float, 1e-6, ""),
        "lr_scheduler_type": (str, "constant", "constant or cosine."),
        "warmup_ratio": (float, 0.0, "Share of the updates."),
        "weight_decay": (float, 0.0, ""),
        "adam_beta1": (float, 0.9, ""),
        "adam_beta2": (float, 0.999, ""),
        "max_grad_norm": (float, 1.0, "0: no clipping."),
        "micro_batch_size": (int, 4, "Completions in memory at a time."),
        "sampling_batch_size": (int, 64, "Completions sampled at a time (transformers)."),
        "gradient_checkpointing": (bool, False, "Less memory, more time."),
        "bf16": (bool, None, "By default where the GPU can."),
    },
    "The run": {
        "save_steps": (int, 100, "Updates between checkpoints."),
        "save_total_limit": (int, 2, "So many are kept."),
        "seed": (int, 42, ""),
    },
}


def train(
    model: Annotated[str, typer.Option(help="A folder with a model, or a hub id.")],
    dataset: Annotated[str, typer.Option(help=DATASET)],
    out: Annotated[Path, typer.Option(help="Folder for the checkpoints and the logs.")],
    reward: Annotated[list[str], typer.Option(help="A reward, with or without external_; may be repeated.")],
    reward_weight: Annotated[
        list[float] | None, typer.Option(help="One for each reward, in their order; by default 1.")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE or REWARD.NAME=VALUE, a parameter of a reward.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="For rows without system prompt; by default the task's.")] = None,
    use_hf: Annotated[bool, typer.Option("--use-hf", help="A NAME is read from Hugging Face, not ModelScope.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")] = False,
    **settings: Any,
) -> None:
    """Train with GRPO from scratch, on one GPU or a CPU.

    The defaults are those of the GSM8K recipe. After the training the saved
    model is loaded again and asked the first question of the dataset.
    """
    from swift_rlvr.grpo import TrainingError
    from swift_rlvr.training.scratch import Run, train_run

    console = Console(highlight=False)
    weights = tuple(reward_weight) if reward_weight else None
    run = Run(model, dataset, out, tuple(reward), tuple(parameters or ()), system, use_hf, resume)
    try:
        saved = train_run(run, {**settings, "reward_weights": weights}, console)
    except TrainingError as error:
        raise InputError(str(error)) from error
    except KeyboardInterrupt:
        console.print(f"\ninterrupted; with --resume it goes on from the last checkpoint in {out}", markup=False)
        raise typer.Exit(130) from None
    console.print(f"saved: {saved}; its answer to the first row of {dataset}:", markup=False, soft_wrap=True)
    cli_chat.chat(str(saved), row=dataset, use_hf=use_hf, max_new_tokens=max(200, settings["max_completion_length"]))


def _with_settings(command: Any) -> Any:
    """The command with the flags of PANELS in place of its **settings."""
    own = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    kept = [p.replace(annotation=hints[name]) for name, p in own.parameters.items() if name != "settings"]
    flags = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[
                kind | None if default is None else kind, typer.Option(help=said or None, rich_help_panel=panel)
            ],
        )
        for panel, options in PANELS.items()
        for name, (kind, default, said) in options.items()
    ]
    command.__signature__ = own.replace(parameters=[*kept, *flags])
    command.__annotations__ = {p.name: p.annotation for p in [*kept, *flags]}
    return command


train = _with_settings(train)
