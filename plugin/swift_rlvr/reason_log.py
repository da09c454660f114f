"""Why completions got their rewards, during training: shares in TensorBoard and W&B, and a JSONL file for each sample.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

logs `reasons/<reward class>/<reason>`, the share of the step's completions with that reason, next to ms-swift's
`rewards/<reward class>/mean`, and writes `reasons.jsonl` beside ms-swift's completions.jsonl. Under TRL:

    trainer.add_callback(ReasonCallback(trainer.args, trainer))
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback

from swift_rlvr.rewards.base import Grade, Reward

FILE_NAME = "reasons.jsonl"


class ReasonLog:
    """Collects grades until they are taken.

    >>> log = ReasonLog()
    >>> log.add("FormatReward", [Grade(1.0, "ok"), Grade(0.0, "no answer part")])
    >>> log.take()
    [{'FormatReward': (1.0, 'ok')}, {'FormatReward': (0.0, 'no answer part')}]
    >>> log.take()
    []
    """

    def __init__(self):
        self._grades: dict[str, list[Grade]] = {}

    def add(self, name: str, grades: list[Grade]) -> None:
        self._grades.setdefault(name, []).extend(grades)

    def take(self) -> list[dict[str, tuple[float | None, str]]]:
        """The grades since the last call: for each sample, in order, those of every reward."""
        samples: list[dict[str, tuple[float | None, str]]] = []
        for name, grades in self._grades.items():
            samples += [{} for _ in range(len(grades) - len(samples))]
            for sample, grade in zip(samples, grades, strict=False):
                sample[name] = tuple(grade)
        self._grades = {}
        return samples


class ReasonCallback(TrainerCallback):
    """Hands the reasons of all ranks to the trainer's metrics and to `reasons.jsonl` in the output folder.

    A line is one completion: `step`, `mode` ("train" or "eval"), `index` (its place among the completions of the step,
    as in completions.jsonl), `rewards` and `reasons`, both by the class name of the reward.

    Args:
        args: the training arguments; output_dir is used.
        trainer: a GRPO trainer of ms-swift or TRL.
    """

    def __init__(self, args: Any, trainer: Any):
        self.trainer, self.log = trainer, ReasonLog()
        self.path = Path(args.output_dir) / FILE_NAME
        self._seen: dict[str, set[str]] = {}

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
        counts: dict[str, Counter] = {}
        for sample in samples:
            for name, (_, reason) in sample.items():
                counts.setdefault(name, Counter())[reason] += 1
        metrics = self.trainer._metrics[mode]
        for name, reasons in counts.items():
            # A reason that was seen once is logged in every step from then on: its mean has to count the zeros.
            seen = self._seen.setdefault(name, set())
            seen.update(reasons)
            for reason in seen:
                metrics[f"reasons/{name}/{reason.replace(' ', '_')}"].append(reasons[reason] / reasons.total())
        if self.trainer.accelerator.is_main_process:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                for index, sample in enumerate(samples):
                    line = {"step": step, "mode": mode, "index": index}
                    line["rewards"] = {name: reward for name, (reward, _) in sample.items()}
                    line["reasons"] = {name: reason for name, (_, reason) in sample.items()}
                    file.write(json.dumps(line) + "\n")
