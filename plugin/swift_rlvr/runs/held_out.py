"""When a run evaluates its policy on held-out rows, which evaluation is the best one, and when the run stops for it.

The settings are read from the variables SWIFT_RLVR_HELD_OUT_... under ms-swift, whose callbacks take no parameters, and
are settings like others in TRL and in our own trainer. The evaluation itself is in swift_rlvr/training/held_out.py.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace  # noqa: F401 - replace is for a doctest
from statistics import fmean
from typing import Any, NamedTuple

from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import by_row, pass_at_k, powers_of_two
from swift_rlvr.settings import Settings, setting


@dataclass(frozen=True)
class AlarmSettings(Settings):
    """What a run does about its alarms."""

    stop_on_alarm: bool = setting(False, "End the run when a warning is raised, see alarms.jsonl in its folder.")


@dataclass(frozen=True)
class HeldOutSettings(Settings):
    """Held-out evaluation during training.

    >>> HeldOutSettings.from_environment({"SWIFT_RLVR_HELD_OUT_ROWS": "100"}).held_out_rows
    100
    """

    group = "held_out_"
    held_out_dataset: str | None = setting(None, "Held-out rows, written as dataset; none of them in the training.")
    held_out_every: int = setting(
        10, "Steps between two evaluations; also before the first and after the last step.", at_least=1
    )
    held_out_rows: int = setting(64, "How many of its first rows.", at_least=1)
    held_out_samples: int = setting(4, "Completions for each row; pass@k is logged up to so many.", at_least=1)
    held_out_patience: int = setting(
        0, "Stop after so many evaluations in a row that are no new best; 0: never.", at_least=0
    )
    held_out_share: float = setting(
        0.1, "The most of the run's time; evaluations that would take more are skipped.", more_than=0, at_most=1
    )


class Decision(NamedTuple):
    """Of an evaluation. best: better than those of all trained steps before. stop: why the run is to stop, or None."""

    best: bool = False
    stop: str | None = None


class Schedule:
    """Which steps are evaluated, what that costs, and how the evaluations compare.

    Before the first step, every `held_out_every` steps, and after the last one. An evaluation between them is skipped
    where all would take more than `held_out_share` of the run's time. `state` goes into checkpoints.
    """

    def __init__(self, settings: HeldOutSettings, clock: Callable[[], float] = time.monotonic):
        self.settings, self._clock = settings, clock
        self.best: float | None = None
        self.best_step: int | None = None
        self.evaluated = -1  # the last step
        self.without_best = 0  # evaluations in a row
        self.seconds = self.longest = 0.0  # spent on evaluations, on the last one
        self.skipped = 0
        self._before = 0.0  # seconds of the run before it was resumed
        self._start = clock()

    def start(self) -> None:
        """The time of the run counts from here."""
        self._start = self._clock()

    @property
    def elapsed(self) -> float:
        """Seconds of the run, also before it was resumed."""
        return self._before + self._clock() - self._start

    @property
    def share(self) -> float:
        """Of the time of the run until now."""
        return self.seconds / self.elapsed if self.elapsed > 0 else 0.0

    def is_candidate(self, step: int, last: int) -> bool:
        """Whether a step is one that is evaluated if time allows; the same on all ranks."""
        if step == self.evaluated:
            return False
        return step in (0, last) or step % self.settings.held_out_every == 0

    def is_affordable(self, step: int, last: int) -> bool:
        """Whether time allows it, with room for the evaluation of the last step; a step that is not counts as skipped.

        What all may take is a share of the whole run, if its steps go on taking as long as until now; at each step
        the part of it may have been spent that the steps until then make up. By one rank's clock: it decides for all.
        """
        share = self.settings.held_out_share
        affordable = step in (0, last) or share == 1
        if not affordable:
            allowed = share / (1 - share) * (self.elapsed - self.seconds) * last / step
            affordable = self.seconds + 2 * self.longest <= allowed and self.seconds <= allowed * step / last
        self.skipped += not affordable
        return affordable

    def record(self, step: int, success: float | None, seconds: float) -> Decision:
        """Take note of an evaluation. The model before the training has no checkpoint, and is never the best."""
        self.evaluated, self.longest = step, seconds
        self.seconds += seconds
        if step == 0:
            return Decision()
        if success is not None and (self.best is None or success > self.best):
            self.best, self.best_step, self.without_best = success, step, 0
            return Decision(best=True)
        self.without_best += 1
        patience = self.settings.held_out_patience
        if not patience or self.without_best < patience:
            return Decision()
        best = "there was none with a success" if self.best is None else f"{self.best:.3f} at step {self.best_step}"
        return Decision(
            stop=f"stopping at step {step}: {self.without_best} held-out evaluations in a row are no better than the "
            f"best, {best} (held_out_patience)"
        )

    def state(self) -> dict[str, Any]:
        """What a continuation of the run needs, as JSON."""
        names = ("best", "best_step", "evaluated", "without_best", "seconds", "longest", "elapsed")
        return {name: getattr(self, name) for name in names}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` has given."""
        for name in ("best", "best_step", "evaluated", "without_best", "seconds", "longest"):
            setattr(self, name, state[name])
        self._before = state["elapsed"]


def figures(records: Sequence[Record]) -> dict[str, float]:
    """What is logged about an evaluation from the records of its completions.

    Success is the mean over rows of the share of right completions; strict asks for the format too.

    >>> record = Record(index=0, completion="", rewards={}, success=True, format=True, tokens=7, finish="stop")
    >>> figures([record, replace(record, success=False)])["eval/pass@2"]
    1.0
    """
    result: dict[str, float] = {}
    right, strict = by_row(records), by_row(records, strict=True)
    if right:
        result["eval/success"] = fmean(fmean(each) for each in right.values())
        if strict:
            result["eval/strict"] = fmean(fmean(each) for each in strict.values())
        for k in powers_of_two(min(map(len, right.values())))[1:]:  # pass@1 is success
            result[f"eval/pass@{k}"] = fmean(pass_at_k(len(each), sum(each), k) for each in right.values())
    if formats := [record.format for record in records if record.format is not None]:
        result["eval/format"] = fmean(formats)
    result["eval/mean_length"] = fmean(record.tokens or 0 for record in records)
    result["eval/cut_off"] = fmean(record.finish == "length" for record in records)
    result["eval/tasks"] = float(len(right))
    return result
