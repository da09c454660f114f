"""What a run writes about itself, under the names that ms-swift uses, so that the same reports read both.

`logging.jsonl` (a line an update), `completions.jsonl` (a table a batch), `reasons.jsonl`, TensorBoard files in `runs/`
where tensorboard is installed, and a progress bar.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.runs.reasons import FILE_NAME, ReasonLog, ReasonShares, append_reasons


class RunLog:
    """To be used in a `with` statement. rewards: those of ours tell their reasons. first: updates made before."""

    def __init__(self, folder: Path, rewards: Sequence[Any], first: int, last: int, console: Console):
        self.folder, self.first, self.last, self.console, self.start = folder, first, last, console, time.time()
        self.rewards = [reward for reward in rewards if hasattr(reward, "log")]
        self.reasons, self.shares, self.board = ReasonLog(), ReasonShares(), None
        columns = ("GRPO", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "left", TimeRemainingColumn())
        self.progress = Progress(*columns, TextColumn("{task.description}"), console=console)
        self.bar = self.progress.add_task("", total=last, completed=first)

    def __enter__(self) -> RunLog:
        self.folder.mkdir(parents=True, exist_ok=True)
        for reward in self.rewards:
            reward.log = self.reasons
        self._open = ExitStack()
        self._open.enter_context(self.progress)
        if find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self.board = self._open.enter_context(SummaryWriter(str(self.folder / "runs")))
        return self

    def __exit__(self, *error: Any) -> None:
        for reward in self.rewards:
            reward.log = None
        self._open.close()

    def completions(self, step: int, table: Mapping[str, list]) -> dict[str, float]:
        """Log a batch's completions and why they got their rewards; returns the shares of the reasons."""
        self._append("completions.jsonl", {"step": [str(step)] * len(table["completion"]), **table})
        samples = self.reasons.take()
        append_reasons(self.folder / FILE_NAME, samples, step)
        return self.shares.update(samples)

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log an update. What is None is left out, as a reward's mean is where no completion was of its task."""
        metrics = {name: round(value, 8) for name, value in metrics.items() if value is not None}
        took = time.time() - self.start
        line = {**metrics, "global_step/max_steps": f"{step}/{self.last}", "elapsed_time": f"{took:.0f}s",
                "train_speed(s/it)": round(took / (step - self.first), 6)}  # fmt: skip
        self._append("logging.jsonl", line)
        if self.board:
            for name, value in metrics.items():
                self.board.add_scalar(f"train/{name}", value, step)
        said = f"reward {metrics['reward']:.3f}  tokens {metrics['completions/mean_length']:.0f}"
        self.progress.update(self.bar, completed=step, description=said)
        if not self.console.is_terminal:
            self.console.print(f"step {step}/{self.last}  {said}  loss {metrics['loss']:.4f}  {took:.0f} s")

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
