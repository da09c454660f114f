"""When a run evaluates its policy on held-out rows, which evaluation is the best one, and when the
run stops early.

The settings are read from the variables SWIFT_RLVR_HELD_OUT_... under ms-swift, whose callbacks
take no parameters, and are settings like others in TRL. The evaluation
itself is in swift_rlvr/training/held_out.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.utils.settings import Settings, setting


@dataclass(frozen=True)
class AlarmSettings(Settings):
    """What a run does about its alarms."""

    stop_on_alarm: bool = setting(
        False, "Stop the run at the first alarm (alarms.jsonl in its folder)."
    )


@dataclass(frozen=True)
class HeldOutSettings(Settings):
    """Held-out evaluation during training.

    >>> HeldOutSettings.from_environment({"SWIFT_RLVR_HELD_OUT_ROWS": "100"}).held_out_rows
    100
    """

    group = "held_out_"
    held_out_dataset: str | None = setting(
        None, "Held-out rows, written like dataset. They must not be in the training data."
    )
    held_out_every: int = setting(
        10,
        "Steps between evaluations. There is also one before the first step and one after the last.",
        at_least=1,
    )
    held_out_rows: int = setting(64, "How many rows to use, from the start.", at_least=1)
    held_out_samples: int = setting(
        4, "Completions per row; pass@k is logged up to this k.", at_least=1
    )
    held_out_patience: int = setting(
        0, "Stop after this many evaluations in a row without a new best; 0: never.", at_least=0
    )


def another_task(held_out: Iterable[object], trained: Iterable[object]) -> str:
    """A warning where no held-out row is of a task that is trained, else an empty text.

    held_out, trained: the names of the rows' tasks; None is no task of ours.
    """
    asked = _task_names(held_out)
    learnt = _task_names(trained)
    if asked & learnt or "mixed" in asked | learnt:
        return ""
    return (
        f"its rows have the task {', '.join(sorted(asked))}, the training's rows "
        f"{', '.join(sorted(learnt))}: its success says little about the training"
    )


def _task_names(tasks: Iterable[object]) -> set[str]:
    return {"no known task" if task is None else str(task) for task in tasks}


class Decision(NamedTuple):
    """What follows from an evaluation.

    best: it is better than those of all trained steps before. stop: why the run is to stop, or None.
    """

    best: bool = False
    stop: str | None = None


class Schedule:
    """Which steps are evaluated, and how the evaluations compare. `state` goes into checkpoints."""

    def __init__(self, settings: HeldOutSettings):
        self.settings = settings
        self.best: float | None = None
        self.best_step: int | None = None
        # The last step that was evaluated.
        self.evaluated = -1
        # How many evaluations in a row were no new best.
        self.without_best = 0

    def is_due(self, step: int, last: int) -> bool:
        """Whether a step is evaluated: before the first one, every `held_out_every`, and after the
        last one.
        """
        if step == self.evaluated:
            return False
        return step in (0, last) or step % self.settings.held_out_every == 0

    def record(self, step: int, success: float | None) -> Decision:
        """Take note of an evaluation. The model before the training has no checkpoint, and is never
        the best.
        """
        self.evaluated = step
        if step == 0:
            return Decision()
        # At a draw the earlier checkpoint stays the best: it is nearer to the reference policy.
        if success is not None and (self.best is None or success > self.best):
            self.best = success
            self.best_step = step
            self.without_best = 0
            return Decision(best=True)
        self.without_best += 1
        patience = self.settings.held_out_patience
        if not patience or self.without_best < patience:
            return Decision()
        best = "no evaluation had a success"
        if self.best is not None:
            best = f"{self.best:.3f} at step {self.best_step}"
        return Decision(
            stop=f"stopping at step {step}: {self.without_best} held-out evaluations in a row are no "
            f"better than the best, {best} (held_out_patience)"
        )

    def state(self) -> dict[str, Any]:
        """What a continuation of the run needs, as JSON."""
        names = ("best", "best_step", "evaluated", "without_best")
        return {name: getattr(self, name) for name in names}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` has given."""
        for name in self.state():
            setattr(self, name, state[name])


def figures(records: Sequence[Record]) -> dict[str, float]:
    """What is logged about an evaluation from the records of its completions, see `summarize`."""
    summary = summarize(records)
    values = {name: summary[name] for name in ("success", "strict", "format", "cut_off", "tasks")}
    for k, share in summary["pass_at_k"].items():
        # pass@1 is success.
        if k != "1":
            values[f"pass@{k}"] = share
    values["mean_length"] = summary["mean_tokens"]
    return {f"eval/{name}": float(value) for name, value in values.items() if value is not None}
