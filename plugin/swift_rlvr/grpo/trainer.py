"""The loop: sample a group for each prompt, score, compare within the group, update. All of GRPO,
on one device.

One step of the algorithm is `rollout` and `num_iterations` times `update`; the rest of this file
keeps the books.
"""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import torch
from rich.console import Console
from transformers import get_scheduler

from swift_rlvr.evaluation.models import fitting_prompts
from swift_rlvr.evaluation.sampling import Completion, SamplingSettings, mixed_seed
from swift_rlvr.evaluation.sampling.engines import TransformersEngine
from swift_rlvr.grpo.objective import group_advantages, token_weights, total_reward
from swift_rlvr.grpo.policy import Batch, Policy, collate
from swift_rlvr.grpo.settings import GRPOSettings, check_enough_rows
from swift_rlvr.rewards import Reward
from swift_rlvr.runs.curriculum import Curriculum, check_has_verifier
from swift_rlvr.runs.folder import ARGS, check_same_settings, checkpoints, diverged, link_best
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record, is_long, judge
from swift_rlvr.success import Judges, key_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json

STATE = "trainer_state.pt"  # in a checkpoint, beside the model and ARGS


class GRPOTrainer:
    """GRPO (DeepSeekMath, algorithm 1, without its outer loop) on one GPU or CPU.

    Args:
        model: a transformers causal language model in float32, on its device; reference: another
        one, for the KL.
        rewards: functions `reward(completions, **columns) -> list[float | None]`, logged under
        their `__name__`.
        rows: each with `messages` and the columns of the rewards, as `Task.preprocess` makes them.
        folder: for checkpoints and logs. info: what goes into args.json beside the settings.
        held_out: a `swift_rlvr.training.held_out.HeldOut`, whose best checkpoint is kept.
        curriculum: draws the rows of each step; without one, all come in a new order in each epoch.
    InputError where the settings do not fit the rows, the rewards or the model.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        rewards: Sequence[Callable],
        rows: Sequence[Mapping[str, Any]],
        settings: GRPOSettings,
        folder: str | Path,
        *,
        reference: Any = None,
        info: Mapping[str, Any] | None = None,
        console: Console | None = None,
        held_out: Any = None,
        stop_on_alarm: bool = False,
        curriculum: Curriculum | None = None,
    ):
        self.model, self.tokenizer, self.rewards, self.rows = model, tokenizer, rewards, rows
        self.folder, self.console = Path(folder), console or Console(highlight=False)
        self.held_out, self.stop_on_alarm, self.curriculum = held_out, stop_on_alarm, curriculum
        if settings.bf16 is None:
            on_gpu = next(model.parameters()).device.type == "cuda"
            settings = replace(settings, bf16=on_gpu and torch.cuda.is_bf16_supported())
        self.settings, self.judges = settings, Judges.from_rewards(rewards)
        system = [
            turn["content"]
            for row in rows[:1]
            for turn in row["messages"]
            if turn["role"] == "system"
        ] or [None]
        self.info = {"trainer": "scratch", "system": system[0], **asdict(settings), **(info or {})}
        check_enough_rows(len(rows), settings.batch_size, settings.num_generations)
        if not rewards:
            raise InputError("must hold at least one reward", "reward_funcs")
        if curriculum:
            check_has_verifier(rewards)
        each_has_one = len(settings.reward_weights or rewards) == len(rewards)
        settings.require(each_has_one, "reward_weights", f"one for each of {len(rewards)} rewards")
        settings.require(
            not settings.beta or reference is not None, "beta", "0 without a reference model"
        )
        asked = [*(row["messages"] for row in rows), *(held_out.conversations if held_out else [])]
        shared = (
            "num_generations",
            "temperature",
            "top_k",
            "top_p",
            "max_completion_length",
            "seed",
        )
        values = {name: getattr(settings, name) for name in shared}
        sampling = SamplingSettings(
            model.name_or_path, batch_size=settings.sampling_batch_size, **values
        )
        self.prompts = fitting_prompts(
            tokenizer, asked, settings.max_completion_length, model.config
        )
        without_dropout(model)
        if settings.gradient_checkpointing:
            model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
        self.policy = Policy(model, settings.temperature, bool(settings.bf16))
        self.reference = (
            Policy(reference.eval(), settings.temperature, bool(settings.bf16))
            if settings.beta
            else None
        )
        self.weights = torch.tensor(
            settings.reward_weights or [1.0] * len(rewards), dtype=torch.float32
        )
        self.engine = TransformersEngine(sampling, model, tokenizer, bool(settings.bf16))
        self.per_step = settings.batch_size // settings.num_generations  # prompts
        steps = (
            int(settings.num_train_epochs * len(rows)) // self.per_step * settings.num_iterations
        )
        self.max_steps = steps if settings.max_steps == -1 else settings.max_steps
        matrices, vectors = (
            [p for p in model.parameters() if (p.dim() >= 2) == wanted] for wanted in (True, False)
        )
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
            lr=settings.learning_rate,
            betas=(settings.adam_beta1, settings.adam_beta2),
            weight_decay=settings.weight_decay,
        )
        warmup = math.ceil(settings.warmup_ratio * self.max_steps)
        self.scheduler = get_scheduler(
            settings.lr_scheduler_type, self.optimizer, warmup, self.max_steps
        )
        self.step = self.seen = 0  # updates made, prompts used

    def train(self, resume_from: str | Path | None = None) -> Path:
        """Train from the beginning or from a checkpoint's folder; returns the last checkpoint's
        path.

        InputError for a checkpoint that does not fit, DivergedError where the loss or its gradient
        is not finite.
        """
        if resume_from is not None:
            self._load(resume_from)
        if self.step >= self.max_steps:
            self.console.print(
                f"finished: {resume_from} is that of the last step", markup=False, soft_wrap=True
            )
            return checkpoints(self.folder)[-1]
        saved = self.step
        write_json(self.folder / ARGS, self.info)
        log = RunLog(self.folder, self.console, tensorboard=True, stop_on_alarm=self.stop_on_alarm)
        with log:
            log.rewards(self.judges)
            log.start(self.step, self.max_steps)
            _, stop = (False, None) if self.step else self.evaluate(log)
            while self.step < self.max_steps and not stop:
                batch, records, metrics = self.rollout()
                metrics |= {name: fmean(values) for name, values in log.records(records).items()}
                for _ in range(min(self.settings.num_iterations, self.max_steps - self.step)):
                    metrics |= self.update(batch)
                    self.step += 1
                    log.update(self.step, metrics)
                is_best, stop = self.evaluate(log)
                stop = stop or log.stop
                if stop:
                    self.console.print(stop, style="yellow", markup=False, soft_wrap=True)
                if (
                    is_best
                    or stop
                    or self.step - saved >= self.settings.save_steps
                    or self.step == self.max_steps
                ):
                    self._save()
                    saved = self.step
        return checkpoints(self.folder)[-1]

    def evaluate(self, log: RunLog) -> tuple[bool, str | None]:
        """Grade the held-out rows where that is due: is the policy the best one yet, and why is the
        run to stop?
        """
        held_out = self.held_out
        if held_out is None or not held_out.schedule.is_due(self.step, self.max_steps):
            return False, None
        started = time.perf_counter()
        groups = self.engine.sample(
            held_out.conversations, num_generations=held_out.samples, seed=self.settings.seed
        )
        completions = [completion for group in groups for completion in group]
        graded = held_out.judge(self.step, completions, started, self.rewards)
        log.held_out(graded.records)
        log.update(self.step, graded.figures)
        return graded.decision.best, graded.decision.stop

    def rollout(self) -> tuple[Batch, list[Record], dict[str, float | None]]:
        """Completions of the next prompts: the batch with advantages, graded completions, and
        figures to log.
        """
        settings, times = self.settings, dict[str, float]()
        chosen = self._next_rows()
        conversations = [self.rows[number]["messages"] for number in chosen]
        with timed(times, "time/generate"):
            sampled = self.engine.sample(conversations, seed=mixed_seed(settings.seed, self.seen))
        completions = [completion for group in sampled for completion in group]
        numbers = [number for number in chosen for _ in range(settings.num_generations)]
        prompts = [self.prompts[number] for number in numbers]
        with timed(times, "time/score"):
            scores, records = self._grade(completions, numbers)
        rewards = total_reward(scores, self.weights)
        groups = torch.arange(self.per_step).repeat_interleave(settings.num_generations)
        advantages = group_advantages(rewards, groups, scale=settings.scale_rewards == "group")
        device = self.policy.device
        batch = collate(prompts, [completion.token_ids for completion in completions], 0, device)
        weights = token_weights(batch.mask, settings.loss_type, settings.max_completion_length)
        batch = replace(batch, weights=weights, advantages=advantages.to(device))
        with timed(times, "time/log_probs"):
            if self.reference:
                batch = replace(
                    batch,
                    ref=self.reference.all_log_probs(batch, settings.per_device_train_batch_size),
                )
            if (
                settings.num_iterations > 1
            ):  # else the policy is the old one, and its own log-probabilities will do
                batch = replace(
                    batch,
                    old=self.policy.all_log_probs(batch, settings.per_device_train_batch_size),
                )
        by_name = {
            reward.__name__: column for reward, column in zip(self.rewards, scores.T, strict=True)
        }
        metrics = batch_summary(rewards, groups, by_name, completions)
        for record, advantage in zip(records, advantages.tolist(), strict=True):
            record.advantage = round(advantage, 6)
        if self.curriculum:
            metrics |= self.curriculum.record(numbers, [record.success for record in records])
        return batch, records, {**metrics, **times}

    def update(self, batch: Batch) -> dict[str, float]:
        """One step of the optimizer with all of a batch; returns what there is to log about it."""
        settings, times = self.settings, dict[str, float]()
        with timed(times, "time/train"):
            self.model.train(settings.gradient_checkpointing)  # which works in training mode only
            self.optimizer.zero_grad()
            metrics = self.policy.accumulate_gradient(
                batch,
                settings.per_device_train_batch_size,
                low=settings.epsilon,
                high=settings.epsilon_high,
                beta=settings.beta,
                level=settings.importance_sampling_level,
            )
            norm = torch.nn.utils.clip_grad_norm_(
                self.model.parameters(), settings.max_grad_norm or math.inf
            ).item()
            if not (math.isfinite(metrics["loss"]) and math.isfinite(norm)):
                sign = f"the loss is {metrics['loss']}, the norm of its gradient {norm}"
                raise diverged(self.folder, self.step + 1, sign)
            rate = self.scheduler.get_last_lr()[0]
            self.optimizer.step()
            self.scheduler.step()
        epoch = self.seen / len(self.rows)
        return {**metrics, "grad_norm": norm, "learning_rate": rate, "epoch": epoch, **times}

    def _next_rows(self) -> list[int]:
        """The rows of the next step: the curriculum's, or the next of an order that depends on seed
        and epoch only.
        """
        positions = [
            divmod(number, len(self.rows)) for number in range(self.seen, self.seen + self.per_step)
        ]
        self.seen += self.per_step
        if self.curriculum:
            return self.curriculum.draw(self.per_step)
        seeds = {
            epoch: torch.Generator().manual_seed(self.settings.seed + epoch)
            for epoch, _ in positions
        }
        orders = {
            epoch: torch.randperm(len(self.rows), generator=seed).tolist()
            for epoch, seed in seeds.items()
        }
        return [orders[epoch][index] for epoch, index in positions]

    def _grade(
        self, completions: Sequence[Completion], numbers: Sequence[int]
    ) -> tuple[torch.Tensor, list[Record]]:
        """The rewards (B, F) of all functions, NaN where one returned None, and the completions'
        records.
        """
        rows, texts = (
            [self.rows[number] for number in numbers],
            [completion.text for completion in completions],
        )
        columns: dict[str, Any] = {
            name: [row.get(name) for row in rows] for name in set[str]().union(*rows)
        }
        columns["completion_ids"] = [completion.token_ids for completion in completions]
        columns["trainer_state"] = SimpleNamespace(
            global_step=self.step
        )  # not a list, as in ms-swift and TRL
        ours = [reward for reward in self.rewards if isinstance(reward, Reward)]
        names = {"task", "level"}.union(
            *((*reward.columns, *reward.optional_columns) for reward in ours)
        )
        records = [
            Record(
                index=index,
                completion=each.text,
                rewards={},
                tokens=each.tokens,
                finish=each.finish,
            )
            for index, each in enumerate(completions)
        ]
        for record, row in zip(records, rows, strict=True):
            record.step, record.mode, record.messages = self.step + 1, "train", row["messages"]
            record.row = {
                name: row[name] for name in sorted(names) if name in row and not is_long(row[name])
            }
        scores = []
        for reward in self.rewards:
            if reward in ours:
                values, reasons = map(list, zip(*reward.grades(texts, **columns), strict=True))
                for record, reason in zip(records, reasons, strict=True):
                    record.reasons[reward.name] = reason
            else:
                values = reward(texts, **columns)
            count = len(values) if isinstance(values, Sequence) else repr(values)
            if count != len(texts):
                problem = f"must return {len(texts)} values, one a completion, got {count}"
                raise InputError(f"reward {reward.__name__} {problem}")
            for record, value in zip(records, values, strict=True):
                record.rewards[key_of(reward)] = value
            scores.append([math.nan if value is None else float(value) for value in values])
        judge(records, self.judges)
        return torch.tensor(scores).T, records

    def _save(self) -> None:
        """Write `checkpoint-<step>`, which gets its name when it is complete, and delete older ones
        after that.
        """
        path, part = (self.folder / f"checkpoint-{self.step}{suffix}" for suffix in ("", ".part"))
        for old in (part, path):
            shutil.rmtree(old, ignore_errors=True)
        self.model.save_pretrained(part)
        self.tokenizer.save_pretrained(part)
        write_json(part / ARGS, self.info)
        state = {"optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict()}
        state |= {"step": self.step, "seen": self.seen}
        if self.held_out:
            state["held_out"] = self.held_out.schedule.state()
        if self.curriculum:
            state["curriculum"] = self.curriculum.state()
        torch.save(state, part / STATE)
        part.rename(path)
        best = self.held_out.schedule.best_step if self.held_out else None
        if best == self.step:
            link_best(self.folder, self.step)
        kept = [
            each
            for each in checkpoints(self.folder)
            if each.name != f"checkpoint-{best}" or each == path
        ]
        others = self.settings.save_total_limit - (
            best not in (None, self.step)
        )  # the best is one of those kept
        for old in kept[: -max(1, others)]:
            shutil.rmtree(old)

    def _load(self, path: str | Path) -> None:
        check_same_settings(path, self.info)
        try:
            state = torch.load(Path(path) / STATE, map_location="cpu", weights_only=True)
        except OSError as error:
            raise InputError(
                f"{path}: expected a checkpoint of this trainer, with {STATE} in it"
            ) from error
        saved = type(self.model).from_pretrained(path, dtype=torch.float32)
        self.model.load_state_dict(saved.state_dict())
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step, self.seen = state["step"], state["seen"]
        if self.held_out and "held_out" in state:
            self.held_out.schedule.load(state["held_out"])
        if self.curriculum:
            self.curriculum.load(state["curriculum"])


def without_dropout(model: Any) -> None:
    """Make a model give the same log-probabilities in training as in sampling: no dropout
    anywhere.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0


def batch_summary(
    rewards: torch.Tensor,
    groups: torch.Tensor,
    by_name: Mapping[str, torch.Tensor],
    completions: Sequence[Completion],
) -> dict[str, float | None]:
    """What ms-swift logs about a batch, under its names. All tensors are (B,); `groups` are ids.

    NaN counts as 0 in `rewards` and is left out of the functions' means, where it stands for None.
    """
    rewards = rewards.nan_to_num(0.0)
    spread = torch.stack([rewards[groups == group].std() for group in groups.unique()])
    metrics: dict[str, float | None] = {
        "reward": rewards.mean().item(),
        "reward_std": spread.mean().item(),
        "frac_reward_zero_std": (spread < 1e-6).float().mean().item(),
    }
    for name, values in by_name.items():
        known = values[~values.isnan()]
        metrics[f"rewards/{name}/mean"] = known.mean().item()
        metrics[f"rewards/{name}/std"] = known.std().item() if len(known) > 1 else None
    lengths = [float(completion.tokens) for completion in completions]
    for name, statistic in (("mean", fmean), ("min", min), ("max", max)):
        metrics[f"completions/{name}_length"] = statistic(lengths)
    metrics["completions/clipped_ratio"] = fmean(
        completion.finish == "length" for completion in completions
    )
    return metrics


@contextmanager
def timed(times: dict[str, float], name: str) -> Iterator[None]:
    """Enter the seconds that the block took."""
    start = time.perf_counter()
    yield
    times[name] = time.perf_counter() - start
