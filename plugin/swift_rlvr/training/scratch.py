"""A run of this package's own trainer, `swift_rlvr.grpo`: what `swift-rlvr train --trainer scratch`
does.
"""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from swift_rlvr.evaluation.models import load_pretrained, load_tokenizer
from swift_rlvr.evaluation.sampling.checkpoint import download
from swift_rlvr.grpo.settings import GRPOSettings
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.curriculum import CurriculumSettings, curriculum_of
from swift_rlvr.runs.folder import checkpoint_to_resume
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.training.arguments import Command, RunArguments
from swift_rlvr.training.rows import read_data
from swift_rlvr.utils.settings import setting


@dataclass(frozen=True, kw_only=True)
class ScratchArguments(RunArguments):
    """What to train on what, where to, and from where."""

    output_dir: str = setting(help="Folder for the checkpoints and the logs.")
    resume_from_checkpoint: str | None = setting(
        None, "true for the last checkpoint in output_dir, or one of them."
    )


def read(command: Command) -> Any:
    """The settings of a command line, an instance of each class."""
    return command.parse((ScratchArguments, GRPOSettings, HeldOutSettings, CurriculumSettings))


def run(command: Command, console: Console) -> str:
    """Train; the result is the folder of the last checkpoint. InputError before the training,
    DivergedError in it.
    """
    arguments, settings, evaluation, drawing = read(command)
    checkpoint = checkpoint_to_resume(arguments.output_dir, arguments.resume_from_checkpoint)
    rewards = build_rewards(arguments.reward_funcs)
    prompts, system = read_data(arguments, rewards, console)
    # What is wrong until here is said before torch is imported, which takes seconds.
    import torch
    from transformers import AutoModelForCausalLM

    from swift_rlvr.grpo import GRPOTrainer
    from swift_rlvr.training.held_out import held_out_rows

    held_out = held_out_rows(arguments, evaluation, prompts, console)
    info = {**arguments.as_json(system, rewards), **asdict(evaluation), **drawing.as_json()}
    curriculum = curriculum_of(prompts, drawing, settings.seed)
    folder = download(arguments.model, arguments.use_hf)
    tokenizer = load_tokenizer(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with console.status(f"Loading {arguments.model}"):
        model, reference = (
            load_pretrained(AutoModelForCausalLM, folder, dtype=torch.float32).to(device)
            if needed
            else None
            for needed in (True, settings.beta > 0)
        )
    rows = [{"messages": row["prompt"], **row} for row in prompts]
    trainer = GRPOTrainer(
        model,
        tokenizer,
        rewards,
        rows,
        settings,
        arguments.output_dir,
        reference=reference,
        info=info,
        console=console,
        held_out=held_out,
        stop_on_alarm=arguments.stop_on_alarm,
        curriculum=curriculum,
    )
    console.print(
        f"{len(rows):,} rows, {trainer.max_steps:,} updates with {settings.batch_size} completions in groups of "
        f"{settings.num_generations}, on {device}" + (", bf16" if trainer.settings.bf16 else ""),
        markup=False,
    )
    return str(trainer.train(checkpoint))
