"""A run of `swift_rlvr.grpo` from a model's name and a dataset's name: what the command `swift-rlvr train` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from swift_rlvr.errors import InputError
from swift_rlvr.grpo import GRPOSettings, GRPOTrainer
from swift_rlvr.jsonl import read_json
from swift_rlvr.models import load_pretrained, load_tokenizer
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.folder import ARGS, checkpoints
from swift_rlvr.training.rows import read_data


@dataclass(frozen=True)
class Run:
    """What to train on what.

    model: a folder with the model and its tokenizer, or a hub id. dataset: see `dataset_files.parse_source`.
    out: the folder for checkpoints and logs. rewards: names in REWARDS. parameters: of rewards, `NAME=VALUE`.
    system: for rows without a system prompt of their own; None for the task's. resume: from the last checkpoint.
    """

    model: str
    dataset: str
    out: Path
    rewards: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    system: str | None = None
    use_hf: bool = False
    resume: bool = False

    def as_json(self) -> dict[str, Any]:
        """What a continuation must agree in."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("out", "resume", "system")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}


def train_run(run: Run, given: Mapping[str, Any], console: Console) -> Path:
    """Train and return the path of the last checkpoint. given: fields of GRPOSettings; bf16 None: where the GPU can.

    Raises:
        InputError: settings, files, models or rewards that cannot be used; before anything is trained.
        swift_rlvr.grpo.TrainingError: the loss is no longer finite.
    """
    cuda = torch.cuda.is_available()
    bf16 = (cuda and torch.cuda.is_bf16_supported()) if given.get("bf16") is None else given["bf16"]
    try:
        settings = GRPOSettings(**{**given, "bf16": bf16})
    except InputError as error:
        raise InputError(_as_flag(str(error))) from error
    resume_from = _checkpoint(run)
    rewards = build_rewards(run.rewards, run.parameters)
    data = read_data("--dataset", run.dataset, rewards, console, system=run.system, use_hf=run.use_hf)
    tokenizer = load_tokenizer(run.model)
    device = "cuda" if cuda else "cpu"
    with console.status(f"Loading {run.model}"):
        model, reference = (
            load_pretrained(AutoModelForCausalLM, run.model, dtype=torch.float32).to(device) if needed else None
            for needed in (True, settings.beta > 0)
        )
    rows = [{"messages": row["prompt"], **row} for row in data.rows]
    info = {**run.as_json(), "system": data.system}
    try:
        trainer = GRPOTrainer(
            model, tokenizer, rewards, rows, settings, run.out, reference=reference, info=info, console=console
        )
    except InputError as error:
        raise InputError(_as_flag(str(error))) from error
    console.print(
        f"{len(data.rows):,} rows, {trainer.max_steps:,} updates with {settings.batch_size} completions in groups of "
        f"{settings.num_generations}, on {device}" + (", bf16" if bf16 else ""),
        markup=False,
    )
    return trainer.train(resume_from)


def _checkpoint(run: Run) -> Path | None:
    """The checkpoint to go on from, None for a new run; InputError where the folder does not hold what it should."""
    if run.out.exists() and not run.out.is_dir():
        raise InputError(f"--out {run.out}: there is a file of that name, expected a folder")
    there = checkpoints(run.out)
    if not run.resume:
        if there or (run.out / ARGS).exists():
            raise InputError(
                f"--out {run.out}: holds another run; choose another folder, or go on with that run from its last "
                "checkpoint with --resume"
            )
        return None
    if not there:
        raise InputError(f"--resume: {run.out} has no checkpoint to go on from")
    before = read_json(there[-1] / ARGS)
    for name, value in run.as_json().items():
        if before.get(name) != value:
            raise InputError(f"--resume: the run in {run.out} has {name} {before.get(name)}, not {value}")
    return there[-1]


def _as_flag(message: str) -> str:
    """A message that begins with the name of a setting, with the flag in its place."""
    name, space, rest = message.partition(" ")
    known = {field.name for field in fields(GRPOSettings)}
    flag = "reward_weight" if name == "reward_weights" else name
    return f"--{flag.replace('_', '-')}{space}{rest}" if name in known else message
