"""Logs success and the reasons of rewards in trainers that are built on transformers' Trainer,
ms-swift's and TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

logs `success`, `strict` and `format`, the shares of completions that `swift_rlvr.success` defines,
and `reasons/<reward class>/<reason>`; writes records.jsonl, rewards.json and alarms.jsonl, whose
alarms are warnings, with SWIFT_RLVR_STOP_ON_ALARM=1 the end of a run. One that has diverged ends
before another checkpoint is written.
"""

import logging
import math
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback

from swift_rlvr.runs.folder import diverged
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.held_out import AlarmSettings
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record, judge
from swift_rlvr.success import Judges, key_of
from swift_rlvr.verifiers.answers import completion_text

_logger = logging.getLogger(__name__)


class ReasonCallback(TrainerCallback):
    """Hands success and reasons of all ranks to the trainer's metrics and to a log in the output
    folder.

    log: one that is to get the trainer's metrics too, since the trainer writes none.
    """

    def __init__(self, args: Any, trainer: Any, log: RunLog | None = None):
        self.trainer, self.grades = trainer, GradeLog()
        self.writes = log is not None  # the log's lines too, as under TRL; ms-swift writes its own
        self.log = log or RunLog(
            args.output_dir, stop_on_alarm=AlarmSettings.from_environment().stop_on_alarm
        )

    def on_train_begin(self, args, state, control, **kwargs):
        for reward in self.trainer.reward_funcs:
            if hasattr(reward, "log"):
                reward.log = self.grades
        self.judges = Judges.from_rewards(functions_of(self.trainer))
        if state.is_world_process_zero:
            self.log.rewards(self.judges)
            if self.writes:
                self.log.start(state.global_step, state.max_steps)
            else:
                self.log.resume_alarms(state.global_step)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self._write("train", state.global_step)
        if self.writes:
            self.log.advance(state.global_step)
        # Under ZeRO-3 a rank's parameters are empty between the steps; on_log sees the gradient
        # then.
        if model is not None and not all(weight.isfinite().all() for weight in model.parameters()):
            raise diverged(args.output_dir, state.global_step, "the weights are no longer finite")
        if self.log.stop_on_alarm and any(stops := gather_object([self.log.stop])):
            if state.is_world_process_zero:
                _logger.warning(next(filter(None, stops)))
            control.should_training_stop = True
            save = getattr(args.save_strategy, "value", args.save_strategy)
            control.should_save = control.should_save or save != "no"

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and state.is_world_process_zero:
            if self.writes:
                self.log.update(state.global_step, logs)
            else:
                for alarm in self.log.watch(state.global_step, logs):
                    _logger.warning(alarm.message)
        if math.isnan(
            (logs or {}).get("grad_norm", 0.0)
        ):  # an infinite norm is usual with float16's loss scaling
            raise diverged(args.output_dir, state.global_step, "the norm of the gradient is nan")

    def on_prediction_step(self, args, state, control, **kwargs):
        self._write("eval", state.global_step)

    def _write(self, mode: str, step: int) -> None:
        records = self._records(mode, step)
        if not records:
            return
        main = self.trainer.accelerator.is_main_process
        figures = self.log.records(records) if main else self.log.batch_figures(records)
        for name, values in figures.items():
            self.trainer._metrics[mode][name].extend(values)

    def _records(self, mode: str, step: int) -> list[Record]:
        """Those of all ranks since the last call, in the order in which the trainers gather
        completions, judged.
        """
        trainer, recorded = self.trainer, getattr(self.trainer, "_logs", {})
        records = gather_object(self.grades.take())
        if not any(
            hasattr(reward, "log") for reward in trainer.reward_funcs
        ):  # none is ours: the trainer's last batch
            batch = zip(recorded.get("prompt", ()), recorded.get("completion", ()), strict=True)
            records = [_record_of(prompt, completion) for prompt, completion in batch]
        values = {
            key: list(recorded["rewards"][name])[-len(records) :]
            for key, name in names_of(trainer).items()
        }
        advantages = list(recorded.get("advantages", ()))[-len(records) :]
        for index, record in enumerate(records):
            record.index, record.step, record.mode = index, step, mode
            for key, column in values.items():
                if len(column) == len(records):
                    record.rewards.setdefault(
                        key, None if math.isnan(column[index]) else column[index]
                    )
            if len(advantages) == len(records) and mode == "train":
                record.advantage = round(advantages[index], 6)
        judge(records, self.judges)
        return records


def _record_of(prompt: Any, completion: Any) -> Record:
    """Of what a trainer logs, texts or messages."""
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": str(prompt)}]
    return Record(
        index=0, completion=completion_text(completion) or "", rewards={}, messages=messages
    )


def functions_of(trainer: Any) -> list[Any]:
    """The rewards of a trainer, one for each of the names that it logs."""
    functions = list(trainer.reward_funcs)
    return [*functions, *[gym_reward] * (len(trainer.reward_func_names) - len(functions))]


def names_of(trainer: Any) -> dict[str, str]:
    """By a reward's key in records, the name that the trainer logs it under."""
    return {
        key_of(each): name
        for each, name in zip(functions_of(trainer), trainer.reward_func_names, strict=True)
    }


def gym_reward() -> None:
    """Stands for what an environment gives, with ms-swift's `use_gym_env`: the last reward, of the
    outcome.
    """
