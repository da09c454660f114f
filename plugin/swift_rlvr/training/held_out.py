"""Held-out evaluation while a model trains: fixed rows, sampled and graded every N steps.

    SWIFT_RLVR_HELD_OUT_DATASET=countdown:datasets/countdown/tiny_validation.jsonl \
        swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks held_out ...
    swift-rlvr train --trainer trl \
        --held_out_dataset countdown:datasets/countdown/tiny_validation.jsonl ...

It logs `eval/...`, writes held_out.jsonl, keeps the best checkpoint, to which the link `best` leads,
and can stop early. The settings are those of `swift_rlvr.runs.held_out.HeldOutSettings`. The
completions come from the trainer's own sampler with the training's temperature and length, from the
weights of the step, which it sends before it samples.
"""

import math
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from accelerate.utils import broadcast_object_list, gather_object
from rich.console import Console
from transformers import TrainerCallback

from swift_rlvr.evaluation.grade_samples import grade_samples
from swift_rlvr.evaluation.prompts import chosen_system
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.runs.folder import link_best
from swift_rlvr.runs.held_out import Decision, HeldOutSettings, Schedule, another_task, figures
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record
from swift_rlvr.success import FORMAT, role_of
from swift_rlvr.tasks.pictures import IMAGES, Picture, digests
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.training.arguments import RunArguments
from swift_rlvr.training.grading_time import untimed
from swift_rlvr.training.ms_swift.sampling import sample as sample_ms_swift
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX

# Of the samples that are drawn in the trainer's own process: the same for every evaluation.
SEED = 20_000
STATE = "swift_rlvr.held_out"  # in trainer_state.json
Messages = list[dict[str, str]]
Pictures = Sequence[Picture] | None


class Evaluation(NamedTuple):
    """figures: to be logged. records: the graded completions. decision: what follows from it."""

    figures: dict[str, float]
    records: list[Record]
    decision: Decision


class HeldOut:
    """The held-out rows with their schedule; `conversations[i]` are the messages of `rows[i]`.

    Args:
        columns: as in `parse_columns`.
        system: for rows without a system turn; None for the task's own.
        add_system: False under ms-swift, which adds it.
        say: shows a message to the user.

    Raises:
        InputError: the dataset cannot be used.
    """

    def __init__(
        self,
        settings: HeldOutSettings,
        *,
        use_hf: bool = False,
        columns: str | None = None,
        system: str | None = None,
        add_system: bool = True,
        say: Callable[[str], object] = lambda text: print(text, file=sys.stderr),
    ):
        self.settings = settings
        self.samples = settings.held_out_samples
        self.say = say
        self.schedule = Schedule(settings)
        if settings.held_out_dataset is None:
            variable = f"{PREFIX}HELD_OUT_DATASET"
            problem = "is required: NAME:FILE, as dataset (under ms-swift the variable"
            raise InputError(f"{problem} {variable})", "held_out_dataset")
        try:
            source = parse_source(settings.held_out_dataset, use_hf, columns)
            self.task = source.task
            limit = min(source.limit or settings.held_out_rows, settings.held_out_rows)
            source = replace(source, limit=limit)
            rows, left_out = source.usable_rows()
        except InputError as error:
            raise InputError(str(error), "held_out_dataset") from error
        if left_out:
            say(left_out)
        self.rows = [source.task.preprocess(row) for _, row in rows]
        self.conversations: list[Messages] = [row["messages"] for row in self.rows]
        if add_system:
            prompt = chosen_system(source.task, system)
            self.conversations = [prompt.on(turns) for turns in self.conversations]

    def leave_out(self, trained: Iterable[tuple[Messages, object, Pictures]]) -> None:
        """Take out the rows whose prompt is one of the training's too, and say how many.

        It also says where the two have no task in common.

        Args:
            trained: messages, task and pictures of each row, None for what it has not.

        Raises:
            InputError: no row is left.
        """
        asked = set()
        tasks = set[object]()
        for messages, task, pictures in trained:
            asked.add(_question(messages, pictures))
            tasks.add(task)
        name = self.settings.held_out_dataset
        problem = another_task({row.get("task") for row in self.rows}, tasks)
        if problem:
            self.say(f"{name}: {problem}")

        count = len(self.rows)
        kept = []
        for index, messages in enumerate(self.conversations):
            if _question(messages, self.rows[index].get(IMAGES)) not in asked:
                kept.append(index)
        # A row that is trained on shows what was learned by heart.
        if not kept:
            raise InputError(
                f"all {count} prompts of {name} are in the training data too; use rows that the "
                "training does not see, such as another split",
                "held_out_dataset",
            )
        shared = count - len(kept)
        if shared:
            text = f"{shared} of {count} held-out prompts are in the training data too"
            self.say(f"{text}; they are left out of the evaluation")
        self.rows = [self.rows[index] for index in kept]
        self.conversations = [self.conversations[index] for index in kept]

    def judge(
        self, step: int, completions: Sequence[Completion], started: float, rewards: Sequence[Any]
    ) -> Evaluation:
        """Grade an evaluation's completions, `samples` for each row in order.

        Args:
            started: `time.perf_counter()` before they were sampled.
            rewards: those of the run, whose format rewards count.
        """
        # Rows and completions are paired by their place alone.
        expected = len(self.rows) * self.samples
        if len(completions) != expected:
            got = len(completions)
            raise RuntimeError(f"expected {expected} completions of held-out rows, got {got}")
        groups = []
        for start in range(0, expected, self.samples):
            groups.append(completions[start : start + self.samples])
        formats = [reward for reward in rewards if role_of(reward) == FORMAT]
        records = grade_samples(self.task, self.rows, self.conversations, groups, formats)
        for record in records:
            record.step = step
        result = figures(records)
        decision = self.schedule.record(step, result.get("eval/success"))
        result["eval/seconds"] = time.perf_counter() - started
        return Evaluation(result, records, decision)


def columns_flag(argv: Sequence[str]) -> str | None:
    """ms-swift's flag `--columns` in a command line: no argument of the trainer has its value.

    >>> columns_flag(["rlhf.py", "--columns", '{"Question": "question"}', "--beta", "0"])
    '{"Question": "question"}'
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--columns")
    settings, _ = parser.parse_known_args(list(argv[1:]))
    return settings.columns


def held_out_rows(
    arguments: RunArguments,
    settings: HeldOutSettings,
    rows: Sequence[Mapping[str, Any]],
    console: Console,
) -> HeldOut | None:
    """The held-out rows of a run with TRL, none of them among `rows`; None if none are asked."""
    if settings.held_out_dataset is None:
        settings.check_unset("held_out_dataset")
        return None

    def say(text: str) -> None:
        console.print(text, style="yellow", markup=False, soft_wrap=True)

    held_out = HeldOut(
        settings,
        use_hf=arguments.use_hf,
        columns=arguments.columns,
        system=arguments.system,
        say=say,
    )
    held_out.leave_out((row["prompt"], row.get("task"), None) for row in rows)
    return held_out


def _question(messages: Messages, pictures: Pictures = None) -> tuple[str, ...]:
    """What a conversation asks: the user's turns, whatever the system prompt is, and of which
    pictures.
    """
    texts = [str(turn["content"]) for turn in messages if turn["role"] == "user"]
    return (*texts, digests(pictures or ()))


class HeldOutCallback(TrainerCallback):
    """Held-out evaluation in ms-swift's trainer, and with arguments in TRL's. All ranks sample, and
    rank 0 grades.

    Args:
        held_out: rows that are not in the training; by default those of the variables, which are
            compared with ms-swift's dataset when the training begins.
        sample: `sample(trainer, rows)` gives a completion for each row of this rank.
        log: where the graded completions go; by default into the output folder.
    """

    def __init__(
        self,
        args: Any,
        trainer: Any,
        held_out: HeldOut | None = None,
        sample: Callable = sample_ms_swift,
        log: RunLog | None = None,
    ):
        self.trainer = trainer
        self.sample = sample
        self.checked = held_out is not None
        if held_out is None:
            use_hf = os.environ.get("USE_HF", "0").lower() in ("1", "true")
            held_out = HeldOut(
                HeldOutSettings.from_environment(),
                use_hf=use_hf,
                columns=columns_flag(sys.argv),
                add_system=False,
            )
        self.held_out = held_out
        self.log = log or RunLog(args.output_dir)
        if getattr(args, "async_generate", False):
            problem = "must be false with held_out, because it samples one step ahead"
            raise InputError(problem, "async_generate")
        # transformers would keep the best checkpoint by the one, and this by the other.
        strategy = _value(args.eval_strategy)
        metric = args.metric_for_best_model
        if strategy != "no" and metric is not None:
            raise InputError(
                "must be no beside held_out, which keeps the best checkpoint by its own success; "
                f"got {strategy!r}, which keeps it by {metric}",
                "eval_strategy",
            )

    def on_train_begin(self, args, state, control, **kwargs):
        held_out, trainer = self.held_out, self.trainer
        if not state.is_world_process_zero:
            held_out.say = lambda text: None
        has_scheduler = getattr(trainer, "multi_turn_scheduler", None)
        if has_scheduler or getattr(trainer, "enable_server_multi_turn", None):
            text = "held-out success is measured on whole conversations"
            held_out.say(f"{text}: only the last answer counts, after all feedback")
        if not self.checked:
            self.checked = True
            dataset = trainer.train_dataset
            if hasattr(dataset, "__len__"):
                held_out.leave_out(
                    (row["messages"], row.get("task"), row.get(IMAGES)) for row in dataset
                )
            else:
                text = "the training's rows are streamed"
                held_out.say(f"{text}, so held-out rows may be among them")
        saved = (state.stateful_callbacks or {}).get(STATE)
        if state.global_step and saved:
            held_out.schedule.load(saved)

    def on_step_begin(self, args, state, control, **kwargs):
        # What the model could before the training; a run that is resumed has that in its log.
        if state.global_step == 0:
            self._evaluate(args, state, control)

    def on_step_end(self, args, state, control, **kwargs):
        self._evaluate(args, state, control)

    def on_save(self, args, state, control, **kwargs):
        if state.is_world_process_zero and state.best_model_checkpoint and state.best_global_step:
            link_best(args.output_dir, state.best_global_step)

    def _evaluate(self, args, state, control) -> None:
        """Sample, grade and log where that is due, and let the trainer save or stop."""
        step = state.global_step
        schedule = self.held_out.schedule
        if not schedule.is_due(step, state.max_steps):
            return
        started = time.perf_counter()
        completions = self._sample()
        accelerator = self.trainer.accelerator
        shared: list[Any] = [None]
        # One rank grades: what follows, a save or the end, is the same for all of them.
        if accelerator.is_main_process:
            rewards = list(map(untimed, self.trainer.reward_funcs))
            evaluation = self.held_out.judge(step, completions, started, rewards)
            self.log.held_out(evaluation.records)
            shared = [(evaluation.figures, evaluation.decision, schedule.state())]
        result, decision, schedule_state = broadcast_object_list(shared)[0]
        if not accelerator.is_main_process:
            schedule.load(schedule_state)
        state.stateful_callbacks[STATE] = schedule_state

        # The handler's on_log resets should_log, and the step's own line is still to come.
        should_log = control.should_log
        self.trainer.callback_handler.on_log(args, state, control, dict(result))
        control.should_log = should_log
        if decision.best:
            state.best_metric = result["eval/success"]
            state.best_global_step = step
        if decision.stop:
            self.held_out.say(decision.stop)
            control.should_training_stop = True
        if (decision.best or decision.stop) and _value(args.save_strategy) != "no":
            control.should_save = True

    def _sample(self) -> list[Completion]:
        """The completions of all held-out rows, `samples` for each, gathered from all ranks."""
        held_out, accelerator = self.held_out, self.trainer.accelerator
        numbers = [number for number in range(len(held_out.rows)) for _ in range(held_out.samples)]
        # All ranks sample as many; what is too much at the end is thrown away.
        ranks = accelerator.num_processes
        size = math.ceil(len(numbers) / ranks)
        padded = (numbers * (1 + ranks))[: size * ranks]
        first = accelerator.process_index * size
        rows = []
        for number in padded[first : first + size]:
            rows.append({**held_out.rows[number], "messages": held_out.conversations[number]})
        # The evaluation changes nothing in the training, whose random numbers go on as before.
        devices = [accelerator.device] if accelerator.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(SEED + accelerator.process_index)
            sampled = self.sample(self.trainer, rows)
        if len(sampled) != len(rows):
            expected = f"a completion of each of {len(rows)} held-out prompts"
            raise RuntimeError(f"expected {expected}, got {len(sampled)}")
        return gather_object(sampled)[: len(numbers)]


def _value(strategy: Any) -> str:
    """A strategy of transformers' arguments, which is a text or a member of an enum."""
    return str(getattr(strategy, "value", strategy))
