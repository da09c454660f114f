"""The command `swift-rlvr train-trl`."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swift_rlvr.cli import chat as cli_chat
from swift_rlvr.tasks import TASKS
from swift_rlvr.training.trl.settings import CHOICES, TrlSettings

Loss = Enum("Loss", {name: name for name in CHOICES["loss"]}, type=str)
ReportTo = Enum("ReportTo", {name: name for name in CHOICES["report_to"]}, type=str)
DATASET = f"NAME:FILE, FILE, NAME or NAME:SPLIT, each with #N; NAME is one of {', '.join(TASKS)}."


def _optimisation(help: str | None = None, *flags: str) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel="Optimisation")


def _objective(help: str | None = None, *flags: str) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel="Completions and objective")


def _run(help: str | None = None, *flags: str) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel="The run")


def train_trl(
    model: Annotated[str, typer.Option(help="A folder with a model, or a hub id.")],
    dataset: Annotated[str, typer.Option(help=DATASET)],
    out: Annotated[Path, typer.Option(help="Folder for the model, its checkpoints and the logs.")],
    reward: Annotated[list[str], typer.Option(help="A reward, with or without external_; may be repeated.")],
    eval_dataset: Annotated[str | None, typer.Option(help="Held-out rows, given in the same way.")] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE or REWARD.NAME=VALUE, a parameter of a reward.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="For rows without system prompt; by default the task's.")] = None,
    use_hf: Annotated[bool, typer.Option("--use-hf", help="A NAME is read from Hugging Face, not ModelScope.")] = False,
    learning_rate: Annotated[float, _optimisation()] = TrlSettings.learning_rate,
    scheduler: Annotated[
        str, _optimisation("linear, cosine, constant_with_warmup ... as transformers names them.")
    ] = TrlSettings.scheduler,
    warmup: Annotated[float, _optimisation("Share of the steps.")] = TrlSettings.warmup,
    weight_decay: Annotated[float, _optimisation()] = TrlSettings.weight_decay,
    epochs: Annotated[float, _optimisation()] = TrlSettings.epochs,
    max_steps: Annotated[int, _optimisation("-1: all of the epochs.")] = TrlSettings.max_steps,
    batch: Annotated[int, _optimisation("Completions on a device at a time.")] = TrlSettings.batch,
    eval_batch: Annotated[int, _optimisation()] = TrlSettings.eval_batch,
    accumulation: Annotated[int, _optimisation("Batches in a step.")] = TrlSettings.accumulation,
    checkpointing: Annotated[
        bool, _optimisation("Of gradients: less memory, more time.", "--checkpointing/--no-checkpointing")
    ] = TrlSettings.checkpointing,
    bf16: Annotated[bool | None, _optimisation("By default where the GPU can.", "--bf16/--no-bf16")] = None,
    generations: Annotated[int, _objective("Completions of one prompt.")] = TrlSettings.generations,
    max_completion: Annotated[int, _objective("The longest, in tokens.")] = TrlSettings.max_completion,
    temperature: Annotated[float, _objective()] = TrlSettings.temperature,
    beta: Annotated[float, _objective("Weight of the KL.")] = TrlSettings.beta,
    loss: Annotated[Loss, _objective("How TRL adds up the tokens.")] = Loss.grpo,
    logging_steps: Annotated[int, _run()] = TrlSettings.logging_steps,
    eval_steps: Annotated[int, _run()] = TrlSettings.eval_steps,
    save_steps: Annotated[int, _run()] = TrlSettings.save_steps,
    keep: Annotated[int, _run("So many of the checkpoints.")] = TrlSettings.keep,
    workers: Annotated[int, _run("Processes that load data.")] = TrlSettings.workers,
    seed: Annotated[int, _run()] = TrlSettings.seed,
    report_to: Annotated[ReportTo, _run("Besides logging.jsonl.")] = ReportTo.none,
    config: Annotated[list[str] | None, _run("NAME=VALUE, any other setting of TRL's GRPOConfig.")] = None,
    resume: Annotated[bool, _run("Go on from the last checkpoint in --out.", "--resume")] = False,
) -> None:
    """Train with TRL's GRPOTrainer, the rewards and datasets of this package.

    The defaults are the R1-Zero recipe's. After the training the saved model
    is loaded again and asked one question.
    """
    settings = TrlSettings(
        model=model,
        dataset=dataset,
        out=str(out),
        rewards=tuple(reward),
        eval_dataset=eval_dataset,
        parameters=tuple(parameters or ()),
        system=system,
        use_hf=use_hf,
        learning_rate=learning_rate,
        scheduler=scheduler,
        warmup=warmup,
        weight_decay=weight_decay,
        epochs=epochs,
        max_steps=max_steps,
        batch=batch,
        eval_batch=eval_batch,
        accumulation=accumulation,
        checkpointing=checkpointing,
        bf16=bf16,
        generations=generations,
        max_completion=max_completion,
        temperature=temperature,
        beta=beta,
        loss=loss.value,
        logging_steps=logging_steps,
        eval_steps=eval_steps,
        save_steps=save_steps,
        keep=keep,
        workers=workers,
        seed=seed,
        report_to=report_to.value,
        config=tuple(config or ()),
        resume=resume,
    )
    from swift_rlvr.training.trl.run import train

    first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started, or the only one
    console = Console(highlight=False, quiet=not first)
    try:
        saved = train(settings, console)
    except KeyboardInterrupt:
        left = "--resume goes on from its last checkpoint" if any(out.glob("checkpoint-*")) else "without a checkpoint"
        console.print(f"\ninterrupted: {out}, {left}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    if not first:
        return
    console.print(
        f"saved: {saved}; its answer to the first row of {eval_dataset or dataset}:", markup=False, soft_wrap=True
    )
    cli_chat.chat(str(saved), row=eval_dataset or dataset, use_hf=use_hf, max_new_tokens=max_completion)
