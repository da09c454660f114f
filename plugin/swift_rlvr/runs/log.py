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
from dataclasses import asdict, replace  # noqa: F401 - in a doctest
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from swift_rlvr.runs.alarms import Alarm, Alarms, replay
from swift_rlvr.runs.folder import ALARMS, COMPLETIONS, HELD_OUT, LOG, RECORDS, REWARDS
from swift_rlvr.runs.records import Record, append_records
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.success import Judgement, Judges
from swift_rlvr.utils.jsonl import read_jsonl, write_json


class RunLog(ExitStack):
    """The log of the run in `folder`: REWARDS, LOG, RECORDS, HELD_OUT and ALARMS.

    The progress bar, and TensorBoard files in `runs/` where tensorboard is installed, need a `with`
    statement. `stop` says why the run is to end where `stop_on_alarm` and there was an alarm.
    """

    def __init__(
        self,
        folder: str | Path,
        console: Console | None = None,
        tensorboard: bool = False,
        stop_on_alarm: bool = False,
    ):
        super().__init__()
        self.folder, self.console = Path(folder), console or Console(quiet=True)
        self.alarms, self.stop_on_alarm, self.judges = Alarms(), stop_on_alarm, Judges({})
        self.stop: str | None = None
        self._seen: defaultdict[str, set[str]] = defaultdict(set)  # the reasons so far, by reward
        self.board: Any = None
        self._tensorboard = tensorboard and find_spec("tensorboard") is not None
        columns = (
            "GRPO",
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )  # `line` has the time left
        self.progress = Progress(*columns, console=self.console)

    def __enter__(self) -> Self:
        self.enter_context(self.progress)
        if self._tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = self.enter_context(SummaryWriter(str(self.folder / "runs")))
        return self

    def start(self, first: int, last: int) -> None:
        """Begin to count time and steps. first: steps that were made before; last: the number of
        the last one.

        What the logs hold of later steps, or of an attempt that made none, is taken out.
        """
        cut_logs(self.folder, first or -1)
        self.first, self.last, self.started = first, last, time.monotonic()
        self._in_steps, self._since = (
            0.0,
            self.started,
        )  # seconds of the training steps alone; of the last line
        self.bar = self.progress.add_task("", total=last, completed=first)
        self.resume_alarms(first)

    def resume_alarms(self, step: int) -> None:
        """Bring the alarms to where they were after a step of the log, from which the run goes
        on.
        """
        if step and (self.folder / LOG).is_file():
            lines = read_jsonl(self.folder / ALARMS) if (self.folder / ALARMS).is_file() else ()
            self.alarms = replay(
                self.folder, step, [row["kind"] for _, row in lines if row["step"] <= step]
            )

    def advance(self, step: int) -> None:
        """Show that a step was made."""
        self.progress.update(self.bar, completed=step)

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Log a step or an evaluation. None and NaN are left out: the mean of a reward that graded
        nothing.
        """
        known = {name: value for name, value in metrics.items() if is_number(value)}
        known = {
            name: round(value, 8) if isinstance(value, float) else value
            for name, value in known.items()
        }
        now = time.monotonic()
        if not any(
            name.startswith("eval") for name in known
        ):  # an evaluation says nothing of the steps to come
            self._in_steps += now - self._since
        self._since, speed = now, self._in_steps / max(1, step - self.first)
        times = {
            "elapsed_time": f"{now - self.started:.0f}s",
            "remaining_time": f"{speed * (self.last - step):.0f}s",
            "train_speed(s/it)": round(speed, 6),
        }
        row = {**known, "global_step/max_steps": f"{step}/{self.last}", **times}
        self._append(LOG, row)
        self.advance(step)
        if "train_runtime" not in known:  # the closing line of transformers' trainer
            self.console.print(line(row), markup=False, soft_wrap=True)
        if self.board:
            for name, value in known.items():
                self.board.add_scalar(
                    name if name.startswith("eval/") else f"train/{name}", value, step
                )
        self.watch(step, known)

    def watch(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a logged line raises; they are written, and said."""
        raised = self.alarms.row(step, metrics)
        for alarm in raised:
            self._append(ALARMS, asdict(alarm))
            self.console.print(
                f"Warning: {alarm.message}", style="yellow", markup=False, soft_wrap=True
            )
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
            self.alarms.batch(
                [each.question for each in records], [each.completion for each in records]
            )
        return self.batch_figures(records)

    def batch_figures(self, records: Sequence[Record]) -> dict[str, list[float]]:
        """By name, the values whose mean is to be logged: `success`, `strict` and `format` of each
        completion, 0 or 1, so that a mean over several batches is one over completions; and the
        share of each reason.

        A reason that was seen once is there in every step from then on, so that a mean over steps
        counts the zeros.

        >>> log, record = RunLog("run"), Record(index=0, completion="", rewards={}, success=True)
        >>> log.batch_figures([replace(record, reasons={"external_format": reason}) for reason in ("ok", "no answer")])
        {'success': [1.0, 1.0], 'reasons/external_format/no_answer': [0.5], 'reasons/external_format/ok': [0.5]}
        >>> log.batch_figures([replace(record, reasons={"external_format": "ok"}, success=None)])
        {'reasons/external_format/no_answer': [0.0], 'reasons/external_format/ok': [1.0]}
        """
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for record in records:
            for name, reason in record.reasons.items():
                counts[name][reason] += 1
        figures: dict[str, list[float]] = {}
        for measure in Judgement._fields:
            known = [value for record in records if (value := getattr(record, measure)) is not None]
            if known:
                figures[measure] = list(map(float, known))
        for name, reasons in counts.items():
            self._seen[name].update(reasons)
            for reason in sorted(self._seen[name]):
                key = f"reasons/{self.judges.logged_as(name)}/{reason.replace(' ', '_')}"
                figures[key] = [reasons[reason] / reasons.total()]
        return figures

    def _append(self, name: str, *rows: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def line(row: Mapping[str, Any]) -> str:
    """What the terminal shows of a logged step or evaluation, a line of LOG; in 80 columns also of
    a long run.

    success, format: of the step's completions, see `swift_rlvr.success`; the reward where no
    success is logged. length: tokens of a completion; then the seconds that the step took, or the
    mean step, and the time that is left.

    >>> row = {"reward": 1.2, "success": 0.3125, "format": 0.98, "completions/mean_length": 84.25,
    ...        "kl": 0.0021, "global_step/max_steps": "7/60", "train_speed(s/it)": 4.8}
    >>> line(row)
    'step  7/60 success 0.31 format 0.98 length  84 KL 0.0021  4.8 s left 4:14'
    >>> line({"reward": 1.2, "global_step/max_steps": "7/60"})
    'step  7/60 reward 1.20'
    >>> line({"eval/success": 0.3, "eval/strict": 0.25, "eval/pass@2": 0.4, "eval/format": 0.9, "eval/mean_length": 90,
    ...       "eval/seconds": 3.2, "global_step/max_steps": "10/60"})
    'held out, step 10/60 success 0.30 strict 0.25 pass@2 0.40 format 0.90 length  90 in 3.2 s'
    """
    step, last = map(int, row["global_step/max_steps"].split("/"))
    known = {name: value for name, value in row.items() if is_number(value)}
    at = f"step {step:{len(str(last))}}/{last}"
    if any(name.startswith("eval/") for name in row):
        passes = sorted(
            (name for name in known if name.startswith("eval/pass@")),
            key=lambda name: int(name[10:]),
        )
        names = ("eval/success", "eval/strict", *passes[-1:], "eval/format")
        parts = [
            f"held out, {at}",
            *(f"{name[5:]} {known[name]:.2f}" for name in names if name in known),
        ]
        parts += [f"length {known['eval/mean_length']:3.0f}"] if "eval/mean_length" in known else []
        parts += [f"in {known['eval/seconds']:.2g} s"] if "eval/seconds" in known else []
        return " ".join(parts)
    evaluates = any(name.startswith("eval_") for name in row)
    if evaluates:
        known = {
            name.removeprefix("eval_"): value
            for name, value in known.items()
            if name.startswith("eval_")
        }
    names = ("success" if "success" in known else "reward", "format")
    parts = [f"evaluation at {at}" if evaluates else at]
    parts += [f"{name} {known[name]:.2f}" for name in names if name in known]
    parts += (
        [f"length {known['completions/mean_length']:3.0f}"]
        if "completions/mean_length" in known
        else []
    )
    parts += [f"KL {known['kl']:<6.2g}"] if "kl" in known else []
    seconds = known.get(
        "step_time", known.get("train_speed(s/it)")
    )  # ms-swift's of the last step, else the mean
    if not evaluates and seconds is not None:
        parts.append(f"{seconds:4.3g} s left {clock(seconds * (last - step))}")
    return " ".join(parts).rstrip()


def clock(seconds: float) -> str:
    """
    >>> clock(254.4), clock(4500)
    ('4:14', '1.25 h')
    """
    return (
        f"{seconds / 3600:.3g} h"
        if seconds >= 3600
        else f"{int(seconds) // 60}:{int(seconds) % 60:02}"
    )


def pace(count: int, seconds: float) -> str:
    """How fast completions were made or graded, also where one takes several seconds.

    >>> pace(3840, 4.41), pace(96, 40), pace(96, 399)
    ('871 a second', '2.4 a second', '4.2 s each')
    """
    rate = count / max(seconds, 1e-3)
    return (
        f"{rate:,.{0 if rate >= 10 else 1}f} a second"
        if rate >= 1
        else f"{seconds / count:.1f} s each"
    )


def cut_logs(folder: str | Path, step: int) -> int | None:
    """Take out of a run's logs what came after a step, before the run goes on from that step's
    checkpoint.

    Those lines are made again. They are moved to files beside the logs, such as logging.lost.jsonl,
    as are the closing lines of the trainer and a line of which the end was not written. Returns the
    last step that is lost, None for none.
    """
    last = None
    for name in (LOG, COMPLETIONS, RECORDS, HELD_OUT, ALARMS):
        path = Path(folder) / name
        if not path.is_file():
            continue
        part = path.with_name(f"{name}.part")
        removed = path.with_suffix(".lost.jsonl")
        with path.open("rb") as old, part.open("wb") as kept, removed.open("ab") as lost:
            for text in old:
                number = _step_of(text)
                is_kept = number is not None and number <= step
                (kept if is_kept else lost).write(text if text.endswith(b"\n") else text + b"\n")
                if name == LOG and number is not None and not is_kept:
                    last = max(number, last or 0)
        part.replace(path)
        if not removed.stat().st_size:
            removed.unlink()
    return last


def _step_of(text: bytes) -> int | None:
    """The step of a line of one of the logs; None for a closing line, and for one that is not
    whole.
    """
    try:
        row = json.loads(text)
        if "global_step/max_steps" in row:
            return (
                None if "train_runtime" in row else int(row["global_step/max_steps"].split("/")[0])
            )
        return int(row["step"][-1] if isinstance(row["step"], list) else row["step"])
    except (ValueError, KeyError, IndexError):
        return None
