"""What a run under TRL shows on the terminal and leaves in files: `swift_rlvr.runs.log`, fed by TRL's trainer."""

from __future__ import annotations

from typing import Any

from accelerate.utils import gather_object
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl import GRPOTrainer

from swift_rlvr.runs.log import RunLog


class RecordingTrainer(GRPOTrainer):
    """TRL's trainer, which keeps the prompts of the last training batch as messages.

    Its own record of them, beside the completions in `_logs`, lacks the special tokens that separate the turns.
    """

    prompts: list | None = None
    """Of this process; None where the last batch was one of the evaluation, or is logged."""

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        self.prompts = list(prompts) if self.model.training else None
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)


class LogCallback(TrainerCallback):
    """Writes what a `RecordingTrainer` logs, and its completions, to a `RunLog`."""

    def __init__(self, trainer: Any, log: RunLog):
        self.trainer, self.log = trainer, log

    @classmethod
    def install(cls, trainer: Any, log: RunLog) -> None:
        """Put it in the place of the trainer's own progress bar, and of ms-swift's where that was imported."""
        for callback in list(trainer.callback_handler.callbacks):
            if isinstance(callback, (ProgressCallback, PrinterCallback)):
                trainer.remove_callback(callback)
        trainer.add_callback(cls(trainer, log))

    def on_train_begin(self, args, state, control, **kwargs):
        self.log.start(state.global_step, state.max_steps)

    def on_step_end(self, args, state, control, **kwargs):
        self.log.advance(state.global_step)

    def on_log(self, args, state, control, logs=None, **kwargs):
        prompts, self.trainer.prompts = self.trainer.prompts, None
        prompts = gather_object(prompts or [])  # of all ranks, in the order of `_logs`
        if not state.is_world_process_zero:
            return
        self.log.update(state.global_step, logs)
        if prompts and "reward" in logs:
            recorded, tokenizer = self.trainer._logs, self.trainer.processing_class
            table = {
                "prompt": tokenizer.apply_chat_template(prompts, add_generation_prompt=True, tokenize=False),
                "completion": list(recorded["completion"]),
                **{name: list(values) for name, values in recorded["rewards"].items()},
                "advantages": list(recorded["advantages"]),
            }
            self.log.completions(state.global_step, table)
