"""Logs the reasons of rewards in trainers that are built on transformers' Trainer, ms-swift's and TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

logs `reasons/<reward class>/<reason>`, the share of the step's completions with that reason, next to ms-swift's
`rewards/<reward class>/mean`, and writes `reasons.jsonl` beside ms-swift's completions.jsonl. Beside ms-swift's
`frac_reward_zero_std` it logs `groups/only_shaping`, see `swift_rlvr.runs.reasons`. It also ends a run that
has diverged with `DivergedError`, before another checkpoint is written; the exit status of `swift rlhf` is then 1. The
alarms of `swift_rlvr.runs.alarms` are logged as warnings and in alarms.jsonl; SWIFT_RLVR_STOP_ON_ALARM=1 ends the run.
ms-swift 3.12 has no `--callbacks`: there the plugin adds it to every GRPO training.
"""

import logging
import math
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback

from swift_rlvr.runs.folder import diverged
from swift_rlvr.runs.held_out import stop_on_alarm
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.reasons import ReasonLog, only_shaping
from swift_rlvr.runs.turns import first_prompts

_logger = logging.getLogger(__name__)


class ReasonCallback(TrainerCallback):
    """Hands the reasons of all ranks to the trainer's metrics and to `log`, by default in the output folder.

    Under TRL: `trainer.add_callback(ReasonCallback(trainer.args, trainer))`.
    """

    def __init__(self, args: Any, trainer: Any, log: RunLog | None = None):
        self.trainer, self.reasons = trainer, ReasonLog()
        self.watches = log is None  # where the trainer writes the log; a RunLog watches what it is given to write
        self.log = log or RunLog(args.output_dir, stop_on_alarm=stop_on_alarm())

    def on_train_begin(self, args, state, control, **kwargs):
        for reward in self.trainer.reward_funcs:
            if hasattr(reward, "log"):
                reward.log = self.reasons
        if self.watches and state.is_world_process_zero:
            self.log.resume_alarms(state.global_step)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self._write("train", state.global_step)
        # Under ZeRO-3 a rank's parameters are empty between the steps; on_log sees the gradient then.
        if model is not None and not all(weight.isfinite().all() for weight in model.parameters()):
            raise diverged(args.output_dir, state.global_step, "the weights are no longer finite")
        if self.log.stop_on_alarm and any(stops := gather_object([self.log.stop])):
            if state.is_world_process_zero:
                _logger.warning(next(filter(None, stops)))
            control.should_training_stop = True
            save = getattr(args.save_strategy, "value", args.save_strategy)
            control.should_save = control.should_save or save != "no"

    def on_log(self, args, state, control, logs=None, **kwargs):
        if math.isnan((logs or {}).get("grad_norm", 0.0)):  # an infinite norm is usual with float16's loss scaling
            raise diverged(args.output_dir, state.global_step, "the norm of the gradient is nan")
        if self.watches and logs and state.is_world_process_zero:
            recorded = getattr(self.trainer, "_logs", {})
            if "reward" in logs and recorded.get("prompt") and len(recorded["prompt"]) == len(recorded["completion"]):
                self.log.alarms.batch(state.global_step, first_prompts(recorded), list(recorded["completion"]))
            for alarm in self.log.watch(state.global_step, logs):
                _logger.warning(alarm.message)

    def on_prediction_step(self, args, state, control, **kwargs):
        self._write("eval", state.global_step)

    def _write(self, mode: str, step: int) -> None:
        samples = gather_object(self.reasons.take())  # of all ranks in order, as ms-swift gathers completions
        if not samples:
            return
        main = self.trainer.accelerator.is_main_process
        shares = self.log.reasons(step, samples, mode) if main else self.log.reason_shares(samples)
        for name, share in (shares | self._groups(mode, len(samples))).items():
            self.trainer._metrics[mode][name].append(share)

    def _groups(self, mode: str, count: int) -> dict[str, float]:
        """`only_shaping` of the last `count` completions, from the trainer's record of all functions on all ranks."""
        trainer = self.trainer
        size = trainer.num_generations if mode == "train" else getattr(trainer, "num_generations_eval", 1)
        recorded = [list(trainer._logs["rewards"][name])[-count:] for name in trainer.reward_func_names]
        # ms-swift's schedulers of several turns make groups of any size, an evaluation often those of one.
        if getattr(trainer, "dynamic_num_samples", False) or size < 2 or len(recorded[0]) % size:
            return {}
        functions = [*trainer.reward_funcs, *[gym_reward] * (len(recorded) - len(trainer.reward_funcs))]
        return only_shaping(functions, recorded, trainer.reward_weights.tolist(), size)


def gym_reward() -> None:
    """Stands for what an environment gives, with ms-swift's `use_gym_env`: the last reward, of the outcome."""
