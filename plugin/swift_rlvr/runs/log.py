"""What a run writes about itself, in ms-swift's form, so that the same commands read the runs of
all trainers.

The terminal shows a progress bar and a line for each logged step. The launcher shows the same
`line` for ms-swift.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from swift_rlvr.runs.alarms import Alarm, Alarms, replay
from swift_rlvr.runs.folder import ALARMS, COMPLETIONS, HELD_OUT, LOG, RECORDS, REWARDS
from swift_rlvr.runs.records import Record, append_records
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.success import MEMORISED, ONLY_TOGETHER, RAISED, Judgement, Judges, shares_of
from swift_rlvr.utils.jsonl import read_jsonl, write_json

# Before the name of a reward: the seconds that it took in a step.
GRADING = "grading/"
# Between a rank and a reward that takes long: what the rank writes, and a supervisor looks for.
STILL_GRADING = "still grades with"
# A step's line names the rewards where grading takes more seconds than this, and this share of the
# step; of several those that take this share of the grading.
SLOW_SECONDS, SLOW_SHARE, NAMED_SHARE = 1.0, 0.2, 0.25


class RunLog(ExitStack):
    """The log of the run in `folder`: REWARDS, LOG, RECORDS, HELD_OUT and ALARMS.

    The progress bar, and TensorBoard files in `runs/` where tensorboard is installed, need a `with`
    statement. With `stop_on_alarm`, `stop` says after an alarm why the run is to end.
    """

    def __init__(
        self,
        folder: str | Path,
        console: Console | None = None,
        tensorboard: bool = False,
        stop_on_alarm: bool = False,
    ):
        super().__init__()
        self.folder = Path(folder)
        self.console = console or Console(quiet=True)
        self.alarms = Alarms()
        self.stop_on_alarm = stop_on_alarm
        self.stop: str | None = None
        self.judges = Judges({})
        self.board: Any = None
        self._tensorboard = tensorboard and find_spec("tensorboard") is not None
        # Whether a verifier has left a completion ungraded.
        self._seen_ungraded = False
        # The reasons so far, by reward.
        self._seen_reasons: defaultdict[str, set[str]] = defaultdict(set)
        # Without the time left, which `line` shows.
        columns = ("GRPO", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, console=self.console)

    def __enter__(self) -> Self:
        self.enter_context(self.progress)
        if self._tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = self.enter_context(SummaryWriter(str(self.folder / "runs")))
        return self

    def start(self, first: int, last: int) -> None:
        """Begin to count time and steps.

        What the logs hold of later steps, or of an attempt that made none, is taken out.

        first: steps that were made before. last: the number of the last step.
        """
        # With -1 the evaluation before the first step goes too, for it is made again.
        cut_logs(self.folder, first or -1)
        self.first = first
        self.last = last
        self.started = time.monotonic()
        self._last_line = self.started
        # Without the evaluations.
        self._seconds_in_steps = 0.0
        self.bar = self.progress.add_task("", total=last, completed=first)
        self.resume_alarms(first)

    def resume_alarms(self, step: int) -> None:
        """Bring the alarms to where they were after a step of the log, from which the run goes
        on.
        """
        if not step or not (self.folder / LOG).is_file():
            return
        raised = []
        if (self.folder / ALARMS).is_file():
            for _, row in read_jsonl(self.folder / ALARMS):
                if row["step"] <= step:
                    raised.append(row["kind"])
        self.alarms = replay(self.folder, step, raised)

    def advance(self, step: int) -> None:
        """Show that a step was made."""
        self.progress.update(self.bar, completed=step)

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Log a step or an evaluation.

        None and NaN are left out: the mean of a reward that graded nothing.
        """
        known = {}
        for name, value in metrics.items():
            if is_number(value):
                known[name] = round(value, 8) if isinstance(value, float) else value
        now = time.monotonic()
        # The time of an evaluation says nothing of the steps to come.
        if not any(name.startswith("eval") for name in known):
            self._seconds_in_steps += now - self._last_line
        self._last_line = now
        seconds_a_step = self._seconds_in_steps / max(1, step - self.first)
        row = {
            **known,
            "global_step/max_steps": f"{step}/{self.last}",
            "elapsed_time": f"{now - self.started:.0f}s",
            "remaining_time": f"{seconds_a_step * (self.last - step):.0f}s",
            "train_speed(s/it)": round(seconds_a_step, 6),
        }
        self._append(LOG, row)
        self.advance(step)
        # The closing line of transformers' trainer has this value, and is no step.
        if "train_runtime" not in known:
            self.console.print(line(row), markup=False, soft_wrap=True)
        if self.board:
            for name, value in known.items():
                tag = name if name.startswith("eval/") else f"train/{name}"
                self.board.add_scalar(tag, value, step)
        self.watch(step, known)

    def watch(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a logged line raises; they are written and shown."""
        raised = self.alarms.row(step, metrics)
        for alarm in raised:
            self._append(ALARMS, asdict(alarm))
            warning = f"Warning: {alarm.message}"
            self.console.print(warning, style="yellow", markup=False, soft_wrap=True)
        if raised and self.stop_on_alarm and self.stop is None:
            self.stop = (
                f"stopping at step {step} because of an alarm: {raised[0].kind} (stop_on_alarm)"
            )
        return raised

    def held_out(self, records: Sequence[Record]) -> None:
        """Log the graded completions of a held-out evaluation, which name their step."""
        append_records(self.folder / HELD_OUT, records)

    def rewards(self, judges: Judges) -> None:
        """Write down which reward has which role, and under which name it is logged."""
        self.judges = judges
        write_json(self.folder / REWARDS, judges.as_json())

    def records(self, records: Sequence[Record]) -> dict[str, list[float]]:
        """Log a batch of graded completions; returns what is to be logged with its step, see
        `batch_figures`.
        """
        if records:
            append_records(self.folder / RECORDS, records)
        if records and records[0].mode == "train":
            questions = [record.question for record in records]
            completions = [record.completion for record in records]
            self.alarms.batch(questions, completions)
        return self.batch_figures(records)

    def batch_figures(self, records: Sequence[Record]) -> dict[str, list[float]]:
        """By name, the values of a batch whose mean is to be logged.

        `success`, `strict` and `format` have a value for each completion, 0 or 1, so that a mean
        over several batches is one over completions. So has `ungraded`, 1 where the run has a verifier
        that could not grade the completion, from the first such one on. `memorised` has one for each
        completion of a row with added tests: 1 where it passes only the visible ones. Each reason has
        its share. A reason that was seen once is there in every step from then on, so that a mean over steps
        counts the zeros.

        >>> log = RunLog("run")
        >>> right = Record(index=0, completion="", rewards={}, reasons={"external_format": "ok"}, success=True)
        >>> wrong = Record(index=1, completion="", rewards={}, reasons={"external_format": "no answer"}, success=False)
        >>> log.batch_figures([right, wrong])
        {'success': [1.0, 0.0], 'reasons/external_format/no_answer': [0.5], 'reasons/external_format/ok': [0.5]}
        >>> ungraded = Record(index=0, completion="", rewards={}, reasons={"external_format": "ok"})
        >>> log.batch_figures([ungraded])
        {'reasons/external_format/no_answer': [0.0], 'reasons/external_format/ok': [1.0]}
        """
        measured: defaultdict[str, list[float]] = defaultdict(list)
        ungraded: list[float] = []
        # The share of each reason among those of its reward.
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for record in records:
            for measure in Judgement._fields:
                value = getattr(record, measure)
                if value is not None:
                    measured[measure].append(float(value))
            ungraded.append(float(record.success is None))
            is_memorised = MEMORISED in record.reasons.values()
            if is_memorised or record.row.get("added_tests") is not None:
                measured["memorised"].append(float(is_memorised))
            for name, reason in record.reasons.items():
                counts[name][reason] += 1
        figures = dict(measured)

        # Zeros count in a mean over steps, but a run in which all can be graded need not show them.
        if self.judges.has_verifier:
            self._seen_ungraded |= 1.0 in ungraded
            if self._seen_ungraded:
                figures["ungraded"] = ungraded
        for name, reasons in counts.items():
            seen = self._seen_reasons[name]
            seen.update(reasons)
            for reason in sorted(seen):
                key = f"reasons/{self.judges.logged_as(name)}/{reason.replace(' ', '_')}"
                figures[key] = [reasons[reason] / reasons.total()]
        return figures

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def line(row: Mapping[str, Any]) -> str:
    """What the terminal shows of a logged step or evaluation, a line of LOG. It fits into 80 columns
    for a long run too, unless grading is slow.

    success, format: of the step's completions, see `swift_rlvr.success`; the reward where no
    success is logged; the loss where there is no reward either, as in `swift sft`. memorised: the
    share that passes only the visible tests, where tests were added. length: tokens of a
    completion. not graded: the share that the verifier could not grade. only together: the share of
    code that passes its tests only in one process with them, which `external_code` grades with
    together=true alone. errors: the share on which a function raised, and which one. Then the seconds
    that the step took, or the mean step, and the time that is left. grading: the seconds that slow
    rewards took, where that is a good part of the step.

    >>> row = {"reward": 1.2, "success": 0.3125, "format": 0.98, "completions/mean_length": 84.25,
    ...        "kl": 0.0021, "global_step/max_steps": "7/60", "train_speed(s/it)": 4.8}
    >>> line(row)
    'step  7/60 success 0.31 format 0.98 length  84 KL 0.0021  4.8 s left 4:14'
    >>> line({"reward": 1.2, "global_step/max_steps": "7/60", "step_time": 9.6, "grading/external_code": 4.21})
    'step  7/60 reward 1.20  9.6 s left 8:28 grading 4.2 s (external_code)'
    >>> line({"reward": 1.2, "reasons/ShortReward/raised_an_error": 0.125, "global_step/max_steps": "7/60"})
    'step  7/60 reward 1.20 errors 0.12 (ShortReward)'
    >>> share = {"reasons/CodeReward/passes_only_together_with_its_tests": 0.25}
    >>> line({"success": 0.5, **share, "global_step/max_steps": "7/60"})
    'step  7/60 success 0.50 only together 0.25'
    >>> line({"success": 0.5, "ungraded": 0.75, "global_step/max_steps": "7/60"})
    'step  7/60 success 0.50 not graded 0.75'
    >>> line({"reward": 1.2, "global_step/max_steps": "7/60"})
    'step  7/60 reward 1.20'
    >>> line({"loss": 0.8123, "global_step/max_steps": "7/60"})
    'step  7/60 loss 0.812'
    >>> line({"eval/success": 0.3, "eval/strict": 0.25, "eval/pass@2": 0.4, "eval/format": 0.9, "eval/mean_length": 90,
    ...       "eval/seconds": 3.2, "global_step/max_steps": "10/60"})
    'held out, step 10/60 success 0.30 strict 0.25 pass@2 0.40 format 0.90 length  90 in 3.2 s'
    """
    step, last = map(int, row["global_step/max_steps"].split("/"))
    place = f"step {step:{len(str(last))}}/{last}"
    known = {name: value for name, value in row.items() if is_number(value)}
    held_out = _without_prefix("eval/", known)
    evaluation = _without_prefix("eval_", known)  # ms-swift's own
    if held_out:
        parts = [f"held out, {place}", *_held_out_parts(held_out)]
    elif evaluation:
        parts = [f"evaluation at {place}", *_step_parts(evaluation)]
    else:
        parts = [place, *_step_parts(known)]
        # ms-swift's time of the last step, else the mean.
        seconds = known.get("step_time", known.get("train_speed(s/it)"))
        if seconds is not None:
            parts.append(f"{seconds:4.3g} s left {clock(seconds * (last - step))}")
            # Which rewards grading waited for, where that is a good part of the step.
            grading = _without_prefix(GRADING, known)
            total = sum(grading.values())
            if total > max(SLOW_SECONDS, SLOW_SHARE * seconds):
                slowest_first = sorted(grading, key=lambda name: -grading[name])
                slow = [name for name in slowest_first if grading[name] >= NAMED_SHARE * total]
                names = ", ".join(slow or slowest_first[:1])
                parts.append(f"grading {total:.1f} s ({names})")
    return " ".join(parts).rstrip()


def _without_prefix(prefix: str, known: Mapping[str, float]) -> dict[str, float]:
    return {
        name.removeprefix(prefix): value for name, value in known.items() if name.startswith(prefix)
    }


def _held_out_parts(known: Mapping[str, float]) -> list[str]:
    passes = [name for name in known if name.startswith("pass@")]
    largest_k = sorted(passes, key=lambda name: int(name.removeprefix("pass@")))[-1:]
    parts = []
    for name in ("success", "strict", *largest_k, "format"):
        if name in known:
            parts.append(f"{name} {known[name]:.2f}")
    if "mean_length" in known:
        parts.append(f"length {known['mean_length']:3.0f}")
    if "seconds" in known:
        parts.append(f"in {known['seconds']:.2g} s")
    return parts


def _step_parts(known: Mapping[str, float]) -> list[str]:
    parts = []
    for name in ("success" if "success" in known else "reward", "memorised", "format"):
        if name in known:
            parts.append(f"{name} {known[name]:.2f}")
    if not parts and "loss" in known:
        parts.append(f"loss {known['loss']:.3f}")
    if "completions/mean_length" in known:
        parts.append(f"length {known['completions/mean_length']:3.0f}")
    if "kl" in known:
        parts.append(f"KL {known['kl']:<6.2g}")
    if known.get("ungraded"):
        parts.append(f"not graded {known['ungraded']:.2f}")
    together = shares_of(ONLY_TOGETHER, known)
    if together:
        parts.append(f"only together {max(together.values()):.2f}")
    errors = shares_of(RAISED, known)
    if errors:
        parts.append(f"errors {max(errors.values()):.2f} ({', '.join(errors)})")
    return parts


def clock(seconds: float) -> str:
    """A duration in minutes and seconds, or in hours.

    >>> clock(254.4), clock(4500)
    ('4:14', '1.25 h')
    """
    if seconds >= 3600:
        return f"{seconds / 3600:.3g} h"
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02}"


def pace(count: int, seconds: float) -> str:
    """How fast completions were made or graded, also where one takes several seconds.

    >>> pace(3840, 4.41), pace(96, 40), pace(96, 399)
    ('871 a second', '2.4 a second', '4.2 s each')
    """
    rate = count / max(seconds, 1e-3)
    if rate < 1:
        return f"{seconds / count:.1f} s each"
    decimals = 0 if rate >= 10 else 1
    return f"{rate:,.{decimals}f} a second"


def cut_logs(folder: str | Path, step: int) -> int | None:
    """Take out of a run's logs what came after a step, before the run goes on from that step's
    checkpoint.

    Those lines are made again. They are moved to files beside the logs, such as logging.lost.jsonl.
    So are the closing lines of the trainer, and a line whose end was not written. Returns the last
    step that is lost, or None.
    """
    last_lost = None
    for name in (LOG, COMPLETIONS, RECORDS, HELD_OUT, ALARMS):
        path = Path(folder) / name
        if not path.is_file():
            continue
        part = path.with_name(f"{path.name}.part")
        removed = path.with_suffix(".lost.jsonl")
        # As bytes: the last line may end in the middle of a character.
        with path.open("rb") as old, part.open("wb") as kept, removed.open("ab") as lost:
            for text in old:
                number = _step_of(text)
                is_kept = number is not None and number <= step
                file = kept if is_kept else lost
                file.write(text.removesuffix(b"\n") + b"\n")
                if name == LOG and number is not None and not is_kept:
                    last_lost = max(number, last_lost or 0)
        # At once, so that a launch that is killed here leaves one of the two logs whole.
        part.replace(path)
        if not removed.stat().st_size:
            removed.unlink()
    return last_lost


def _step_of(text: bytes) -> int | None:
    """The step of a line of one of the logs; None for a closing line, and for one that is not
    whole.
    """
    try:
        row = json.loads(text)
        if "train_runtime" in row:
            return None
        if "global_step/max_steps" in row:
            return int(row["global_step/max_steps"].split("/")[0])
        # In ms-swift's tables of completions the step is a column.
        step = row["step"]
        return int(step[-1] if isinstance(step, list) else step)
    except (ValueError, KeyError, IndexError):
        return None
