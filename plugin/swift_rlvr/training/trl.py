"""The same rewards and datasets under TRL's GRPOTrainer, with ms-swift's form of logs: `train
--trainer trl`.

The settings are those of TRL's GRPOConfig under their own names. The output folder gets the trained
model with its tokenizer, the last checkpoints, and the files of `swift_rlvr.runs.folder`.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import AutoConfig, PrinterCallback, ProgressCallback
from trl import GRPOConfig

from swift_rlvr.evaluation.models import fitting_prompts, load_pretrained, load_tokenizer
from swift_rlvr.evaluation.sampling.checkpoint import download
from swift_rlvr.grpo.settings import GRPOSettings, check_enough_rows
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.curriculum import CurriculumSettings, check_has_verifier, curriculum_of
from swift_rlvr.runs.folder import (
    ARGS,
    as_json,
    check_same_settings,
    checkpoint_to_resume,
    diverged,
    is_finished,
)
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.runs.log import RunLog
from swift_rlvr.training.arguments import Command, RunArguments
from swift_rlvr.training.curriculum import CurriculumCallback
from swift_rlvr.training.held_out import HeldOutCallback, held_out_rows, sample_trl
from swift_rlvr.training.reason_callback import ReasonCallback
from swift_rlvr.training.rows import read_data
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json
from swift_rlvr.utils.settings import check_ranges, setting


@dataclass(frozen=True, kw_only=True)
class TrlArguments(RunArguments):
    """What to train on what; the rest is in TRL's GRPOConfig."""

    warmup_ratio: float = setting(
        0.0, "Share of the steps over which the rate rises.", at_least=0, less_than=1
    )


def read(command: Command) -> tuple[TrlArguments, GRPOConfig, HeldOutSettings, CurriculumSettings]:
    """The settings of a command line, with defaults for this machine where TRL's would not work."""
    cuda = torch.cuda.is_available()
    arguments, config, evaluation, drawing = command.parse(
        (TrlArguments, GRPOConfig, HeldOutSettings, CurriculumSettings),
        use_cpu=not cuda,
        bf16=cuda and torch.cuda.is_bf16_supported(),
        dataloader_pin_memory=cuda,
        logging_nan_inf_filter=False,  # which would hide a loss that is not finite
    )
    if config.output_dir == GRPOConfig.output_dir or not config.output_dir:
        raise InputError(
            "is required: a folder for the model, its checkpoints and the logs", "output_dir"
        )
    check_ranges(GRPOSettings, config)
    if config.max_steps == 0:
        raise InputError("must be at least 1, or -1 for all epochs, got 0", "max_steps")
    if arguments.warmup_ratio:
        config.warmup_steps = (
            arguments.warmup_ratio
        )  # transformers takes a number below 1 as a share
    return arguments, config, evaluation, drawing


def run(command: Command, console: Console) -> str:
    """Train; the result is the folder of the model. InputError before the training, DivergedError
    in it.
    """
    arguments, config, evaluation, drawing = read(command)
    folder = Path(config.output_dir)
    checkpoint = checkpoint_to_resume(folder, config.resume_from_checkpoint)
    rewards = build_rewards(arguments.reward_funcs)
    rows, system = read_data(arguments, rewards, console)
    held_out = held_out_rows(arguments, evaluation, rows, console)
    check_enough_rows(len(rows), config.generation_batch_size, config.num_generations)
    settings = {**arguments.as_json(system, rewards), **asdict(evaluation), **drawing.as_json()}
    info = as_json({"trainer": "trl", **config.to_dict(), **settings})
    if curriculum_of(rows, drawing, config.seed):
        check_has_verifier(rewards)
    if checkpoint is not None:
        check_same_settings(checkpoint, info)
        if is_finished(checkpoint, config.to_dict()):
            console.print(
                f"finished: {checkpoint} is that of the last step", markup=False, soft_wrap=True
            )
            return str(folder)
    console.print(f"Loading {arguments.model}", style="dim", markup=False, soft_wrap=True)
    model = download(arguments.model, arguments.use_hf)
    tokenizer = load_tokenizer(model)
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    asked = [*(row["prompt"] for row in rows), *(held_out.conversations if held_out else [])]
    fitting_prompts(
        tokenizer, asked, config.max_completion_length, load_pretrained(AutoConfig, model)
    )
    try:
        trainer = trainer_class_of(config.use_vllm)(
            model, list(rewards), config, train_dataset=rows, processing_class=tokenizer
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{arguments.model} and these settings cannot be trained by TRL: {error}"
        ) from error
    for callback in list(
        trainer.callback_handler.callbacks
    ):  # TRL's progress bar, and ms-swift's where it is imported
        if isinstance(callback, (ProgressCallback, PrinterCallback)):
            trainer.remove_callback(callback)
    with RunLog(folder, console, stop_on_alarm=arguments.stop_on_alarm) as log:
        trainer.add_callback(ReasonCallback(config, trainer, log))
        if held_out is not None:
            trainer.add_callback(HeldOutCallback(config, trainer, held_out, sample_trl, log))
        if drawing.curriculum:
            trainer.add_callback(CurriculumCallback(config, trainer, drawing))
        if trainer.is_world_process_zero():
            write_json(folder / ARGS, info)
        console.print(
            f"{len(rows):,} rows, {config.generation_batch_size} completions a step in groups of "
            f"{config.num_generations}",
            soft_wrap=True,
        )
        try:
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        except RuntimeError as error:
            if "probability tensor" not in str(
                error
            ):  # torch's words for logits that are not finite
                raise
            raise diverged(
                folder, trainer.state.global_step + 1, "the logits are no longer finite"
            ) from error
    trainer.save_model(str(folder))
    return str(folder)


def trainer_class_of(use_vllm: bool) -> Any:
    """TRL's trainer, whose import takes vLLM with it where that is installed; here only where it is
    used.
    """
    from trl import import_utils

    available = import_utils.is_vllm_available
    try:
        if not use_vllm:
            import_utils.is_vllm_available = lambda: False
        from trl import GRPOTrainer
    finally:
        import_utils.is_vllm_available = available
    return GRPOTrainer
