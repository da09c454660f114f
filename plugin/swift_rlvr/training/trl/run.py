"""The same rewards and datasets under TRL's own GRPOTrainer, with ms-swift's form of logs.

    swift-rlvr train-trl --model Qwen/Qwen2.5-0.5B-Instruct --dataset numina_math_tir --use-hf --out output/r1_zero \
        --reward external_accuracy --reward external_format

leaves in the output folder the trained model with its tokenizer, `args.json`, `logging.jsonl`, `completions.jsonl`,
`reasons.jsonl` and the last checkpoints. Imports TRL, torch and transformers only when called; what can be wrong in the
settings and the data is looked for before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json, write_json
from swift_rlvr.models import load_pretrained, load_tokenizer
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.training.rows import read_data
from swift_rlvr.training.trl.settings import ARGS, TrlSettings, check_out, options


def train(settings: TrlSettings, console: Console) -> Path:
    """Run a training and return the folder with the trained model.

    InputError for settings, files, models and rewards that cannot be used, and where training diverges.
    """
    check_out(settings)
    rewards = build_rewards(settings.rewards, settings.parameters)
    for variable in stray_variables(REWARDS):
        console.print(f"{variable} is set, and no reward has a name that it begins with", style="yellow")
    told = {"system": settings.system, "use_hf": settings.use_hf}
    data = read_data("--dataset", settings.dataset, rewards, console, **told)
    held_out = None
    if settings.eval_dataset is not None:
        held_out = read_data("--eval-dataset", settings.eval_dataset, rewards, console, **told)
    prompts = settings.completions() // settings.generations
    if len(data.rows) < prompts:
        raise InputError(
            f"--dataset: {len(data.rows)} rows that can be used, and a step takes {prompts}: lower --batch or "
            "--accumulation, or raise --generations"
        )
    noted = settings.as_json(data.system) | {"reward_parameters": {each.name: _parameters(each) for each in rewards}}
    _check_same(settings, noted)
    console.print(f"Loading TRL and {settings.model}", style="dim", markup=False, soft_wrap=True)
    trainer = build_trainer(settings, rewards, data.rows, held_out and held_out.rows)
    if trainer.is_world_process_zero():
        write_json(Path(settings.out) / ARGS, noted)
    console.print(
        f"{len(data.rows):,} rows, {settings.completions()} completions a step in groups of {settings.generations}"
        + (f"; evaluated on {len(held_out.rows):,} rows every {settings.eval_steps} steps" if held_out else ""),
        soft_wrap=True,
    )
    try:
        trainer.train(resume_from_checkpoint=settings.resume or None)
    except RuntimeError as error:
        if "probability tensor" not in str(error):  # what torch says of logits that are not finite
            raise
        from swift_rlvr.training.trl.callbacks import diverged

        raise InputError(diverged(Path(settings.out), "the model's logits are no longer finite")) from error
    trainer.save_model(settings.out)
    del trainer
    gc.collect()  # its memory is for the model that is loaded next
    return Path(settings.out)


def build_trainer(settings: TrlSettings, rewards: list[Reward], rows: list[dict], held_out: list[dict] | None) -> Any:
    """TRL's GRPOTrainer with our rewards and logs; InputError where it refuses the settings."""
    from transformers import AutoConfig

    tokenizer = load_tokenizer(settings.model)
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    room = getattr(load_pretrained(AutoConfig, settings.model), "max_position_embeddings", None)
    check_lengths(settings, tokenizer, room, [*rows, *(held_out or [])])
    from swift_rlvr.training.reason_callback import ReasonCallback
    from swift_rlvr.training.trl.callbacks import RunLog, recording_trainer

    with _only_the_vllm_that_is_used(options(settings.config).get("use_vllm") is True):
        kind = recording_trainer()

    try:
        Path(settings.out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {settings.out}: cannot be made ({error.strerror})") from error
    config = build_config(settings, held_out is not None)
    try:
        trainer = kind(
            settings.model,
            reward_funcs=list(rewards),
            args=config,
            train_dataset=rows,
            eval_dataset=held_out,
            processing_class=tokenizer,
        )
    except (OSError, ValueError) as error:
        raise InputError(f"--model {settings.model} and these settings cannot be trained by TRL: {error}") from error
    RunLog.install(trainer)
    trainer.add_callback(ReasonCallback(trainer.args, trainer))
    return trainer


def build_config(settings: TrlSettings, evaluates: bool) -> Any:
    """TRL's GRPOConfig."""
    import torch
    from trl import GRPOConfig

    cuda = torch.cuda.is_available()
    fixed = {
        "output_dir": settings.out,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.scheduler,
        "warmup_steps": settings.warmup,  # below 1 it is a share
        "weight_decay": settings.weight_decay,
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps,
        "per_device_train_batch_size": settings.batch,
        "per_device_eval_batch_size": settings.eval_batch,
        "gradient_accumulation_steps": settings.accumulation,
        "gradient_checkpointing": settings.checkpointing,
        "num_generations": settings.generations,
        "max_completion_length": settings.max_completion,
        "temperature": settings.temperature,
        "beta": settings.beta,
        "loss_type": settings.loss,
        "logging_steps": settings.logging_steps,
        "logging_nan_inf_filter": False,  # which would hide a loss that is not finite
        "eval_strategy": "steps" if evaluates else "no",
        "eval_steps": settings.eval_steps,
        "save_strategy": "steps",
        "save_steps": settings.save_steps,
        "save_total_limit": settings.keep,
        "dataloader_num_workers": settings.workers,
        "dataloader_pin_memory": cuda,
        "seed": settings.seed,
        "report_to": settings.report_to,
        "use_cpu": not cuda,
        "bf16": cuda and torch.cuda.is_bf16_supported() if settings.bf16 is None else settings.bf16,
        "fp16": False,
        "remove_unused_columns": False,
    }
    further = options(settings.config)
    known = {field.name for field in fields(GRPOConfig)}
    for name in further:
        if name in fixed:
            raise InputError(f"--config {name}: has a flag of its own or is fixed, see --help")
        if name not in known:
            raise InputError(f"--config {name}: TRL's GRPOConfig has no such setting")
    try:
        return GRPOConfig(**fixed, **further)
    except (TypeError, ValueError) as error:
        raise InputError(f"TRL refuses these settings: {error}") from error


def check_lengths(settings: TrlSettings, tokenizer: Any, room: int | None, rows: Sequence[dict]) -> None:
    """InputError where the longest prompt and the longest completion are more than a model reads, `room` tokens."""
    if room is None:
        return
    if settings.max_completion >= room:
        raise InputError(
            f"--max-completion must be less than {room}, which the model reads, got {settings.max_completion}"
        )
    texts = {tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, tokenize=False) for row in rows}
    # A token is at least one byte: only texts that could be too long are counted.
    long = [text for text in texts if len(text.encode()) + settings.max_completion > room]
    longest = (
        max((len(ids) for ids in tokenizer(long, add_special_tokens=False)["input_ids"]), default=0) if long else 0
    )
    if longest + settings.max_completion > room:
        raise InputError(
            f"--max-completion must be at most {room - longest}, got {settings.max_completion}: the model reads {room} "
            f"tokens and the longest prompt has {longest}"
        )


def _check_same(settings: TrlSettings, noted: dict[str, Any]) -> None:
    """What `check_out` cannot know yet: the system prompt and the rewards' parameters of a run to resume."""
    if settings.resume:
        before = read_json(Path(settings.out) / ARGS)
        for name in ("system", "reward_parameters"):
            if before.get(name) != noted[name]:
                raise InputError(f"--resume: {name} of the run was {before.get(name)}, and now is {noted[name]}")


def _parameters(reward: Reward) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(reward.parameters).items()
    }


@contextmanager
def _only_the_vllm_that_is_used(used: bool) -> Iterator[None]:
    """Importing TRL imports vLLM where it is installed, which takes as long as all the rest: not without need."""
    import trl.import_utils as trl

    found = trl.is_vllm_available
    try:
        if not used:
            trl.is_vllm_available = lambda: False
        yield
    finally:
        trl.is_vllm_available = found
