"""Held-out evaluation while a model trains: fixed rows, sampled and graded every N steps, in all
three trainers.

    SWIFT_RLVR_HELD_OUT_DATASET=countdown:datasets/countdown/tiny_validation.jsonl \
        swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks held_out ...
    swift-rlvr train --trainer trl --held_out_dataset
    countdown:datasets/countdown/tiny_validation.jsonl ...

logs `eval/...`, writes held_out.jsonl, keeps the best checkpoint, to which the link `best` leads,
and can stop early. The settings are those of `swift_rlvr.runs.held_out.HeldOutSettings`. The
completions come from the trainer's own sampler with the training's temperature and length, from the
weights of the step, which it sends before it samples.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from accelerate.utils import broadcast_object_list, gather_object
from rich.console import Console
from transformers import TrainerCallback

from swift_rlvr.evaluation.grading import grade_samples
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.runs.folder import link_best
from swift_rlvr.runs.held_out import Decision, HeldOutSettings, Schedule, another_task, figures
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record
from swift_rlvr.success import FORMAT, role_of
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.training.arguments import RunArguments
from swift_rlvr.training.ms_swift.sampling import sample as sample_ms_swift
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX

# of samples that are drawn in the trainer's own process: the same for every evaluation
SEED = 20_000
STATE = "swift_rlvr.held_out"  # in trainer_state.json
Messages = list[dict[str, str]]


class Evaluation(NamedTuple):
    """figures: to be logged. records: the graded completions. decision: what follows from it."""

    figures: dict[str, float]
    records: list[Record]
    decision: Decision


class HeldOut:
    """The held-out rows with their schedule; `conversations[i]` are the messages of `rows[i]`.

    system: for rows without a system turn; None for the task's own. add_system: False under
    ms-swift, which adds it.
    say: shows a message to the user. InputError where the dataset cannot be used.
    """

    def __init__(
        self,
        settings: HeldOutSettings,
        *,
        use_hf: bool = False,
        system: str | None = None,
        add_system: bool = True,
        say: Callable[[str], object] = lambda text: print(text, file=sys.stderr),
    ):
        self.settings, self.samples, self.say = settings, settings.held_out_samples, say
        self.schedule = Schedule(settings)
        if settings.held_out_dataset is None:
            problem = f"is required: NAME:FILE, as dataset (under ms-swift the variable {PREFIX}HELD_OUT_DATASET)"
            raise InputError(problem, "held_out_dataset")
        try:
            source = parse_source(settings.held_out_dataset, use_hf)
            self.task, self.rows = source.task, []
            for line, row in islice(source.rows(), settings.held_out_rows):
                with source.at(line):
                    self.rows.append(source.task.preprocess(row))
        except InputError as error:
            raise InputError(str(error), "held_out_dataset") from error
        prompt = source.task.system if system is None else system
        self.conversations: list[Messages] = [
            with_system(row["messages"], prompt) if add_system else row["messages"]
            for row in self.rows
        ]

    def leave_out(self, trained: Iterable[tuple[Messages, object]]) -> None:
        """Take out the rows whose prompt is one of the training's too, and say how many; InputError
        if that is all.

        trained: messages and task of each row, None for a row without one. That they have no task
        in common is said.
        """
        asked, tasks = set(), set[object]()
        for messages, task in trained:
            asked.add(_asked(messages))
            tasks.add(task)
        if problem := another_task({row.get("task") for row in self.rows}, tasks):
            self.say(f"{self.settings.held_out_dataset}: {problem}")
        kept = [
            place
            for place, messages in enumerate(self.conversations)
            if _asked(messages) not in asked
        ]
        count = len(self.rows)
        if not kept:
            problem = f"all {count} prompts of {self.settings.held_out_dataset} are in the training too: expected rows"
            raise InputError(
                f"{problem} that it does not see, such as another split", "held_out_dataset"
            )
        if shared := count - len(kept):
            self.say(
                f"{shared} of {count} held-out prompts are in the training too: left out of the evaluation"
            )
        self.rows = [self.rows[place] for place in kept]
        self.conversations = [self.conversations[place] for place in kept]

    def judge(
        self, step: int, completions: Sequence[Completion], started: float, rewards: Sequence[Any]
    ) -> Evaluation:
        """Grade an evaluation's completions, `samples` for each row in order.

        started: `time.perf_counter()` before they were sampled. rewards: those of the run, whose
        format rewards count.
        """
        expected = len(self.rows) * self.samples
        if len(completions) != expected:
            raise RuntimeError(
                f"expected {expected} completions of held-out rows, got {len(completions)}"
            )
        groups = [
            completions[start : start + self.samples] for start in range(0, expected, self.samples)
        ]
        formats = [reward for reward in rewards if role_of(reward) == FORMAT]
        records = grade_samples(self.task, self.rows, self.conversations, groups, formats)
        for record in records:
            record.step = step
        result = figures(records)
        seconds = time.perf_counter() - started
        decision = self.schedule.record(step, result.get("eval/success"))
        return Evaluation({**result, "eval/seconds": seconds}, records, decision)


def held_out_rows(
    arguments: RunArguments,
    settings: HeldOutSettings,
    rows: Sequence[Mapping[str, Any]],
    console: Console,
) -> HeldOut | None:
    """The held-out rows of a run under TRL or our own trainer, none of them among `rows`; None
    where none are asked.
    """
    if settings.held_out_dataset is None:
        settings.check_unset("held_out_dataset")
        return None

    def say(text: str) -> None:
        console.print(text, style="yellow", markup=False, soft_wrap=True)

    held_out = HeldOut(settings, use_hf=arguments.use_hf, system=arguments.system, say=say)
    held_out.leave_out((row["prompt"], row.get("task")) for row in rows)
    return held_out


def _asked(messages: Messages) -> tuple[str, ...]:
    """What a conversation asks: the user's turns, whatever the system prompt is. Content may be
    parts, with images.
    """
    return tuple(str(turn["content"]) for turn in messages if turn["role"] == "user")


class HeldOutCallback(TrainerCallback):
    """Held-out evaluation in ms-swift's trainer, and with arguments in TRL's. All ranks sample, and
    rank 0 grades.

    held_out: rows that are not in the training; by default those of the variables, compared with
    ms-swift's dataset.
    sample: `sample(trainer, rows)` gives a completion for each row of this rank.
    """

    def __init__(
        self,
        args: Any,
        trainer: Any,
        held_out: HeldOut | None = None,
        sample: Callable | None = None,
        log: RunLog | None = None,
    ):
        self.checked = held_out is not None
        self.trainer, self.sample = trainer, sample or sample_ms_swift
        if held_out is None:
            use_hf = os.environ.get("USE_HF", "0").lower() in ("1", "true")
            held_out = HeldOut(HeldOutSettings.from_environment(), use_hf=use_hf, add_system=False)
        self.held_out, self.log = held_out, log or RunLog(args.output_dir)
        if getattr(args, "async_generate", False):
            raise InputError(
                "must be false with held_out: it samples one step ahead", "async_generate"
            )
        strategy, metric = (
            str(getattr(args.eval_strategy, "value", args.eval_strategy)),
            args.metric_for_best_model,
        )
        if strategy != "no" and metric is not None:
            problem = (
                "must be no beside held_out, which keeps the best checkpoint by its own success"
            )
            raise InputError(
                f"{problem}; got {strategy!r}, which keeps it by {metric}", "eval_strategy"
            )

    def on_train_begin(self, args, state, control, **kwargs):
        schedule = self.held_out.schedule
        if not state.is_world_process_zero:
            self.held_out.say = lambda text: None
        if any(
            getattr(self.trainer, name, None)
            for name in ("multi_turn_scheduler", "enable_server_multi_turn")
        ):
            self.held_out.say(
                "held-out success is of whole conversations: the last answer counts, after all feedback"
            )
        if not self.checked:
            dataset = self.trainer.train_dataset
            if hasattr(dataset, "__len__"):
                self.held_out.leave_out((row["messages"], row.get("task")) for row in dataset)
            else:
                self.held_out.say(
                    "the training's rows are streamed: whether held-out rows are among them is unknown"
                )
            self.checked = True
        if state.global_step and (saved := (state.stateful_callbacks or {}).get(STATE)):
            schedule.load(saved)

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 0:
            self._evaluate(args, state, control)

    def on_step_end(self, args, state, control, **kwargs):
        self._evaluate(args, state, control)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.best_model_checkpoint and state.best_global_step:
            link_best(args.output_dir, state.best_global_step)

    def _evaluate(self, args, state, control) -> None:
        step, last, schedule = state.global_step, state.max_steps, self.held_out.schedule
        if not schedule.is_due(step, last):
            return
        accelerator = self.trainer.accelerator
        started = time.perf_counter()
        wanted = [
            place for place in range(len(self.held_out.rows)) for _ in range(self.held_out.samples)
        ]
        # All ranks get as many; what is too much at the end is sampled and thrown away.
        ranks = accelerator.num_processes
        size = -(-len(wanted) // ranks)
        padded = (wanted * (1 + ranks))[: size * ranks]
        mine = padded[accelerator.process_index * size : (accelerator.process_index + 1) * size]
        rows = [
            {**self.held_out.rows[place], "messages": self.held_out.conversations[place]}
            for place in mine
        ]
        devices = [accelerator.device] if accelerator.device.type == "cuda" else []
        with torch.random.fork_rng(
            devices=devices
        ):  # the evaluation changes nothing in the training
            torch.manual_seed(SEED + accelerator.process_index)
            sampled = self.sample(self.trainer, rows)
        if len(sampled) != len(rows):
            raise RuntimeError(
                f"expected a completion of each of {len(rows)} held-out prompts, got {len(sampled)}"
            )
        completions = gather_object(sampled)[: len(wanted)]
        shared: list[Any] = [None]
        if accelerator.is_main_process:
            evaluation = self.held_out.judge(step, completions, started, self.trainer.reward_funcs)
            self.log.held_out(evaluation.records)
            shared = [(evaluation.figures, evaluation.decision, schedule.state())]
        result, decision, schedule_state = broadcast_object_list(shared)[0]
        if not accelerator.is_main_process:
            schedule.load(schedule_state)
        state.stateful_callbacks[STATE] = schedule_state
        should_log = (
            control.should_log
        )  # the handler's on_log resets it, and the step's own line is still to come
        self.trainer.callback_handler.on_log(args, state, control, dict(result))
        control.should_log = should_log
        saves = str(getattr(args.save_strategy, "value", args.save_strategy)) != "no"
        if decision.best:
            state.best_metric, state.best_global_step = result["eval/success"], step
        if decision.stop:
            self.held_out.say(decision.stop)
            control.should_training_stop = True
        if decision.best or decision.stop:
            control.should_save = control.should_save or saves
