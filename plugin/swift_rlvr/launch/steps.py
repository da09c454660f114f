"""The steps of a training, as its log grows: a line for each, and how long none has come."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from swift_rlvr.launch.progress import Display, Tail
from swift_rlvr.launch.stale_weights import K3_KL, K3_STEPS, K3_WARNING, StaleWeights
from swift_rlvr.runs.log import line
from swift_rlvr.utils.jsonl import LineError, parse_object

# Seconds without a step after which a line says who does not answer, and how many times the longest
# step until then they are at least. Before the first step models are loaded and kernels compiled.
QUIET, QUIET_STEPS, QUIET_AT_FIRST = 60, 3, 600

# Why a training has ended that ms-swift ends with 0, as if it had been one.
NO_STEP = "the training made no step: its dataset has fewer rows than are sampled at once"


class Steps:
    """Shows what a trainer adds to its log. step: the last one that was logged; 0 before the first."""

    def __init__(self, log: Path, display: Display):
        self.step = 0
        self.display = display
        self._tail = Tail(log)
        self._weights = StaleWeights(log)
        self._last_at = time.monotonic()  # when a step was logged
        self._longest = 0.0
        self._quiet_until = float(QUIET_AT_FIRST)  # seconds since then, to the next line about it

    def when(self) -> str:
        """Where the training is, for the end of a message."""
        return f", after step {self.step}" if self.step else ", before the first step"

    def read(self) -> str:
        """Show the steps that were logged since the last call. Returns why the run has to end; "" if
        it goes on.
        """
        cause = ""
        for text in self._tail.lines():
            with suppress(LineError):
                row = parse_object(text)
                if "global_step/max_steps" not in row:  # what the model is
                    continue
                if "train_runtime" in row:  # the closing line
                    if row["global_step/max_steps"].startswith("0/"):
                        cause = cause or NO_STEP
                    continue
                self._show(row)
                cause = cause or self._stale_weights(row)
        return cause

    def _show(self, row: Mapping[str, Any]) -> None:
        step, last = row["global_step/max_steps"].split("/")
        now = time.monotonic()
        # Of the first step only ms-swift knows how long it took.
        seconds = now - self._last_at if self.step else row.get("step_time", 0.0)
        self._longest = max(self._longest, seconds)
        self._last_at = now
        self._quiet_until = max(QUIET, QUIET_STEPS * self._longest)
        self.step = int(step)
        self.display.print(line(row), highlight=True)
        self.display.show(f"step {min(self.step + 1, int(last))} of {last}")

    def _stale_weights(self, row: Mapping[str, Any]) -> str:
        """Warn where the server seems to sample with old weights. Returns why the run has to end, if
        that goes on.
        """
        if row.get(K3_KL) is None:
            return ""
        text = f"{self._weights.add(row[K3_KL])}{self.when()}"
        if self._weights.high_steps == K3_WARNING:
            question = "does the rollout server get every update of the weights?"
            self.display.print(f"Warning: {text}: {question}", "yellow")
        if self._weights.high_steps != K3_STEPS:
            return ""
        cause = "the rollout server samples with other weights than the trainer's: a weight update was lost"
        return f"{cause}: {text}"

    def quiet(self) -> float:
        """Seconds without a step, if it is time to say so: after long, and again after twice the time;
        else 0.
        """
        seconds = time.monotonic() - self._last_at
        if seconds < self._quiet_until:
            return 0.0
        self._quiet_until = 2 * seconds
        return seconds
