"""Logs the reasons of rewards in trainers that are built on transformers' Trainer, ms-swift's and TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

logs `reasons/<reward class>/<reason>`, the share of the step's completions with that reason, next to ms-swift's
`rewards/<reward class>/mean`, and writes `reasons.jsonl` beside ms-swift's completions.jsonl. Under TRL:

    trainer.add_callback(ReasonCallback(trainer.args, trainer))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback

from swift_rlvr.rewards.base import Reward
from swift_rlvr.runs.reasons import FILE_NAME, ReasonLog, ReasonShares, append_reasons


class ReasonCallback(TrainerCallback):
    """Hands the reasons of all ranks to the trainer's metrics and to `reasons.jsonl` in the output folder.

    Args:
        args: the training arguments; output_dir is used.
        trainer: a GRPO trainer of ms-swift or TRL.
    """

    def __init__(self, args: Any, trainer: Any):
        self.trainer, self.log, self.shares = trainer, ReasonLog(), ReasonShares()
        self.path = Path(args.output_dir) / FILE_NAME

    def on_train_begin(self, args, state, control, **kwargs):
        for reward in self.trainer.reward_funcs:
            if isinstance(reward, Reward):
                reward.log = self.log

    def on_step_end(self, args, state, control, **kwargs):
        self._flush("train", state.global_step)

    def on_prediction_step(self, args, state, control, **kwargs):
        self._flush("eval", state.global_step)

    def _flush(self, mode: str, step: int) -> None:
        samples = gather_object(self.log.take())  # of all ranks, in their order, as ms-swift gathers completions
        if not samples:
            return
        for name, share in self.shares.update(samples).items():
            self.trainer._metrics[mode][name].append(share)
        if self.trainer.accelerator.is_main_process:
            append_reasons(self.path, samples, step, mode)
