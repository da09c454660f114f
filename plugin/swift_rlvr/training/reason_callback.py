"""Logs success and the reasons of rewards, in ms-swift's trainer and in TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

It logs `success`, `strict` and `format`, the shares of completions that `swift_rlvr.success`
defines, `reasons/<reward class>/<reason>`, and `grading/<reward>`, the seconds that a reward took in
a step. It writes records.jsonl, rewards.json and alarms.jsonl. An alarm is a warning, and with
SWIFT_RLVR_STOP_ON_ALARM=1 the end of a run. A run that has diverged ends before another checkpoint
is written. A run that is resumed goes on with the order of its rows.
"""

import logging
import math
import sys
from typing import Any

from accelerate.utils import gather_object
from torch import nn
from transformers import TrainerCallback

from swift_rlvr.rewards.imported import reward_names
from swift_rlvr.runs.folder import diverged
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.held_out import AlarmSettings
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record, judge
from swift_rlvr.success import Judges, key_of
from swift_rlvr.training.grading_time import GradingTime
from swift_rlvr.training.row_order import go_on_with_order
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.messages import completion_text

_logger = logging.getLogger(__name__)


class ReasonCallback(TrainerCallback):
    """Hands success and reasons of all ranks to the trainer's metrics, and to a log in the output
    folder.

    log: one that gets the trainer's own metrics too, as under TRL; ms-swift writes its own.
    """

    def __init__(self, args: Any, trainer: Any, log: RunLog | None = None):
        self.trainer = trainer
        self.grades = GradeLog()
        self.grading = GradingTime(self.grades)
        # Of this step's earlier batches, where it samples several.
        self._earlier: list[Record] = []
        self.writes = log is not None
        self.is_main = True  # of the ranks; known when the training begins
        if log is None:
            from swift_rlvr.training.ms_swift.reward_names import require_ours

            require_ours(reward_names(sys.argv))
            stop_on_alarm = AlarmSettings.from_environment().stop_on_alarm
            log = RunLog(args.output_dir, stop_on_alarm=stop_on_alarm)
        self.log = log

    def on_train_begin(self, args, state, control, train_dataloader=None, **kwargs):
        if not hasattr(self.trainer, "reward_funcs"):
            trainer = type(self.trainer).__name__
            problem = f"reward_reasons needs the rewards of --rlhf_type grpo; {trainer} has none"
            raise InputError(problem, "callbacks")
        if train_dataloader is not None:
            go_on_with_order(train_dataloader, state.global_step, args.gradient_accumulation_steps)
        # Before they are timed, which puts others in their place.
        for reward in self.trainer.reward_funcs:
            if hasattr(reward, "log"):
                reward.log = self.grades
        self.judges = Judges.from_rewards(functions_of(self.trainer))
        self.grading.watch(self.trainer)
        self.is_main = state.is_world_process_zero
        if not self.is_main:
            return
        self.log.rewards(self.judges)
        if self.writes:
            self.log.start(state.global_step, state.max_steps)
        else:
            self.log.resume_alarms(state.global_step)

    def on_step_begin(self, args, state, control, **kwargs):
        self.grading.clear()  # of what was graded between the steps, as in an evaluation

    def on_substep_end(self, args, state, control, **kwargs):
        # The trainers keep the advantages of one batch of completions only.
        if args.steps_per_generation < args.gradient_accumulation_steps:
            self._earlier += self._records("train", state.global_step + 1)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        self._write("train", state.global_step)
        for name, seconds in self.grading.figures().items():
            self.trainer._metrics["train"][name].append(seconds)
        if self.writes and self.is_main:
            self.log.advance(state.global_step)
        # Under ZeRO-3 a rank's parameters are empty between the steps; on_log sees the gradient.
        if model is not None and not all(weight.isfinite().all() for weight in model.parameters()):
            raise diverged(args.output_dir, state.global_step, "the weights are no longer finite")

        # The log of one rank says it; all ranks end, with a checkpoint.
        if not self.log.stop_on_alarm:
            return
        reasons = [reason for reason in gather_object([self.log.stop]) if reason]
        if not reasons:
            return
        if state.is_world_process_zero:
            _logger.warning(reasons[0])
        control.should_training_stop = True
        if getattr(args.save_strategy, "value", args.save_strategy) != "no":
            control.should_save = True

    def on_log(self, args, state, control, logs=None, **kwargs):
        logs = logs or {}
        if logs and state.is_world_process_zero:
            if self.writes:
                self.log.update(state.global_step, logs)
            else:
                for alarm in self.log.watch(state.global_step, logs):
                    _logger.warning(alarm.message)
        # An infinite norm is usual with float16's loss scaling.
        if math.isnan(logs.get("grad_norm", 0.0)):
            raise diverged(args.output_dir, state.global_step, "the norm of the gradient is nan")

    def on_prediction_step(self, args, state, control, **kwargs):
        self._write("eval", state.global_step)

    def _write(self, mode: str, step: int) -> None:
        for name, values in self.figures(mode, step).items():
            self.trainer._metrics[mode][name].extend(values)

    def figures(self, mode: str, step: int) -> dict[str, list[float]]:
        """Log the completions of a batch; what every rank's trainer is to log of them, by name."""
        records = [*self._earlier, *self._records(mode, step)]
        self._earlier.clear()
        if not records:
            return {}
        for index, record in enumerate(records):
            record.index = index
        return self.log.records(records) if self.is_main else self.log.batch_figures(records)

    def _records(self, mode: str, step: int) -> list[Record]:
        """The completions of all ranks since the last call, judged, in the order in which the
        trainers gather them.
        """
        logged = getattr(self.trainer, "_logs", {})
        records = gather_object(self.grades.take())
        if all(isinstance(reward, nn.Module) for reward in self.trainer.reward_funcs):
            # Reward models and environments report nothing: the trainer's last batch.
            batch = zip(logged.get("prompt", ()), logged.get("completion", ()), strict=True)
            for prompt, completion in batch:
                # Texts under ms-swift, and messages under TRL.
                messages = prompt
                if not isinstance(prompt, list):
                    messages = [{"role": "user", "content": str(prompt)}]
                text = completion_text(completion) or ""
                records.append(Record(index=0, completion=text, rewards={}, messages=messages))
        for record in records:
            record.step, record.mode = step, mode

        # What the trainer has logged ends with this batch, if it is of the same length.
        count = len(records)
        for key, name in names_of(self.trainer).items():
            values = list(logged["rewards"][name])[-count:]
            if len(values) == count:
                for record, value in zip(records, values, strict=True):
                    record.rewards.setdefault(key, None if math.isnan(value) else value)
        advantages = list(logged.get("advantages", ()))[-count:]
        if mode == "train" and len(advantages) == count:
            for record, advantage in zip(records, advantages, strict=True):
                record.advantage = round(advantage, 6)
        judge(records, self.judges)
        return records


def functions_of(trainer: Any) -> list[Any]:
    """The rewards of a trainer, one for each of the names that it logs."""
    functions = list(trainer.reward_funcs)
    environments = len(trainer.reward_func_names) - len(functions)
    return functions + [gym_reward] * environments


def names_of(trainer: Any) -> dict[str, str]:
    """The name that the trainer logs a reward under, by the reward's key in records."""
    names = {}
    for reward, name in zip(functions_of(trainer), trainer.reward_func_names, strict=True):
        names[key_of(reward)] = name
    return names


def gym_reward() -> None:
    """Stands for what an environment gives, with ms-swift's `use_gym_env`: the last reward, of the
    outcome.
    """
