"""What a run writes about itself, in ms-swift's form, so that the same commands read the runs of all trainers.

The terminal shows a progress bar and a line for each logged step.
"""

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.runs.folder import COMPLETIONS, LOG, REASONS
from swift_rlvr.runs.reasons import Sample

SHOWN = {"reward": "reward", "completions/mean_length": "length", "kl": "kl", "loss": "loss", "learning_rate": "lr"}


class RunLog:
    """The log of the run in `folder`: LOG, COMPLETIONS and REASONS.

    The progress bar, and TensorBoard files in `runs/` where tensorboard is installed, need a `with` statement.
    """

    def __init__(self, folder: str | Path, console: Console | None = None, tensorboard: bool = False):
        self.folder, self.console = Path(folder), console or Console(quiet=True)
        self._seen: defaultdict[str, set[str]] = defaultdict(set)  # the reasons so far, by reward
        self.board: Any = None
        self._tensorboard = tensorboard and find_spec("tensorboard") is not None
        columns = ("GRPO", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "left", TimeRemainingColumn())
        self.progress = Progress(*columns, console=self.console)

    def __enter__(self) -> Self:
        self._open = ExitStack()
        self._open.enter_context(self.progress)
        if self._tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = self._open.enter_context(SummaryWriter(str(self.folder / "runs")))
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.close()

    def start(self, first: int, last: int) -> None:
        """Begin to count time and steps. first: steps that were made before; last: the number of the last one."""
        self.first, self.last, self.started = first, last, time.monotonic()
        self.bar = self.progress.add_task("", total=last, completed=first)

    def advance(self, step: int) -> None:
        self.progress.update(self.bar, completed=step)

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Log a step or an evaluation. None and NaN are left out: the mean of a reward that graded nothing."""
        known = {name: value for name, value in metrics.items() if not _is_missing(value)}
        known = {name: round(value, 8) if isinstance(value, float) else value for name, value in known.items()}
        elapsed = time.monotonic() - self.started
        speed = elapsed / max(1, step - self.first)
        times = {"elapsed_time": f"{elapsed:.0f}s", "remaining_time": f"{speed * (self.last - step):.0f}s",
                 "train_speed(s/it)": round(speed, 6)}  # fmt: skip
        self._append(LOG, {**known, "global_step/max_steps": f"{step}/{self.last}", **times})
        self.advance(step)
        if "train_runtime" not in known:  # the closing line of transformers' trainer
            self.console.print(line(known, step, self.last), markup=False, soft_wrap=True)
        if self.board:
            for name, value in known.items():
                self.board.add_scalar(f"train/{name}", value, step)

    def completions(self, step: int, table: Mapping[str, Sequence[Any]]) -> None:
        """Log a batch: columns `prompt`, `completion`, `advantages` and one for each reward, NaN where it gave None."""
        columns = {name: [None if _is_missing(value) else value for value in values] for name, values in table.items()}
        self._append(COMPLETIONS, {"step": [str(step)] * len(table["completion"]), **columns})

    def reasons(self, step: int, samples: Sequence[Sample], mode: str = "train") -> dict[str, float]:
        """Log why a batch got its rewards; returns the share of each reason, to be logged with the step's metrics.

        The lines have `step`, `mode` ("train" or "eval"), `index` (its place among the completions of the step, as in
        COMPLETIONS), `rewards` and `reasons`, both by the class name of the reward.
        """
        lines = []
        for index, sample in enumerate(samples):
            rewards = {name: reward for name, (reward, _) in sample.items()}
            reasons = {name: reason for name, (_, reason) in sample.items()}
            lines.append({"step": step, "mode": mode, "index": index, "rewards": rewards, "reasons": reasons})
        if lines:
            self._append(REASONS, *lines)
        return self.reason_shares(samples)

    def reason_shares(self, samples: Sequence[Sample]) -> dict[str, float]:
        """The share of each reason in a step's samples, under the names that are logged.

        A reason that was seen once is there in every step from then on, so that a mean over steps counts the zeros.

        >>> log = RunLog("run")
        >>> log.reason_shares([{"FormatReward": (1.0, "ok")}, {"FormatReward": (0.0, "no answer part")}])
        {'reasons/FormatReward/no_answer_part': 0.5, 'reasons/FormatReward/ok': 0.5}
        >>> log.reason_shares([{"FormatReward": (1.0, "ok")}])
        {'reasons/FormatReward/no_answer_part': 0.0, 'reasons/FormatReward/ok': 1.0}
        """
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for sample in samples:
            for name, (_, reason) in sample.items():
                counts[name][reason] += 1
        shares = {}
        for name, reasons in counts.items():
            self._seen[name].update(reasons)
            for reason in sorted(self._seen[name]):
                shares[f"reasons/{name}/{reason.replace(' ', '_')}"] = reasons[reason] / reasons.total()
        return shares

    def _append(self, name: str, *rows: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def line(metrics: Mapping[str, Any], step: int, last: int) -> str:
    """What the terminal shows of a logged step, or of an evaluation.

    >>> line({"loss": 0.0123, "reward": 1.25, "rewards/FormatReward/mean": 1.0, "learning_rate": 5e-05}, 10, 60)
    'step 10/60  reward 1.25  Format 1  loss 0.0123  lr 5e-05'
    """
    prefix = "eval_" if any(name.startswith("eval_") for name in metrics) else ""
    parts = []
    for name, label in SHOWN.items():
        if prefix + name in metrics:
            parts.append(f"{label} {metrics[prefix + name]:.3g}")
        if name == "reward":
            for key, value in metrics.items():
                if key.startswith(f"{prefix}rewards/") and key.endswith("/mean"):
                    parts.append(f"{key.split('/')[1].removesuffix('Reward')} {value:.3g}")
    return "  ".join([f"{'evaluation at ' if prefix else ''}step {step}/{last}", *parts])


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
