"""Warnings about a run that goes wrong, from the lines of its log: live in all trainers, and
afterwards in a report.

    alarms = Alarms()
    alarms.batch(prompts, completions)           # where there are completions
    for alarm in alarms.row(step, metrics):      # a line of LOG
        print(alarm.message)

Each kind is raised once a run. Where a limit speaks of steps it means logged steps. The limits were
chosen so that the runs of the quickstart, in which success doubles and the length nearly triples,
raise none.
"""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from swift_rlvr.runs.folder import LOG
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.utils.jsonl import read_jsonl

WINDOW = 10  # logged steps in a mean of success, format and groups without spread
SHORT = 5  # in a mean of KL and length; also the steps in a row that success must be low
LOW, CERTAIN = (
    0.7,
    4.0,
)  # success: at most this share of its best, and further below than so many standard errors
HELD_OUT_LOW, HELD_OUT_CERTAIN, HELD_OUT_ROWS = (
    0.75,
    2.0,
    2,
)  # the same for evaluations, so many in a row
KL_LIMIT, KL_GROWTH = (
    0.5,
    10.0,
)  # more than this, and than so many times that of BACK logged steps before
GROWTH, SHRINKAGE, BACK = 2.0, 1 / 3, 20  # of the length, against so many logged steps before
CUT_OFF = 0.5  # share of completions at the longest length
FORMAT_RISE = 0.05
NO_SPREAD = 0.9  # share of groups
EXAMPLES = 3
SLIGHT = 0.05  # a fall of success that is none
REMEDY = "a smaller learning_rate or a larger beta may help."
KINDS = ("held_out_success", "success", "format", "kl", "length", "no_spread")
Found = Iterator[tuple[str, str]]  # kinds and messages


@dataclass(frozen=True)
class Alarm:
    """kind: one of KINDS. message: one or two sentences for people. completions: three of the last
    batch.
    """

    step: int
    kind: str
    message: str
    completions: tuple[str, ...] = ()


class Window(NamedTuple):
    """Mean success and format over WINDOW logged steps that end at `step`, or of an evaluation.

    noise: the variance of the success.
    """

    step: int
    success: float
    noise: float
    format: float | None


class Alarms:
    """The state of a run as far as the alarms need it. `raised`: the kinds that are not to be
    raised again.
    """

    def __init__(self, raised: Sequence[str] = ()):
        self.raised = set(raised)
        self._rows: deque[Mapping[str, Any]] = deque(maxlen=BACK + SHORT)
        self._best: dict[str, Window] = {}  # by kind, success and held_out_success
        self._low: Counter[str] = Counter()  # by kind: how often in a row
        self._cut_off: list[float] = []  # of the first steps
        self._examples: tuple[str, ...] = ()

    def batch(self, prompts: Sequence[str], completions: Sequence[str]) -> None:
        """The completions of a step, of which an alarm shows some, of different prompts as far as
        there are some.
        """
        firsts = dict(reversed(list(zip(prompts, completions, strict=True))))
        different = [firsts[prompt] for prompt in dict.fromkeys(prompts)]
        self._examples = tuple(
            (different if len(different) >= EXAMPLES else completions)[:EXAMPLES]
        )

    def row(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a logged line raises: of a training step, or with `eval/success` of a
        held-out evaluation.
        """
        known = {name: value for name, value in metrics.items() if is_number(value)}
        if "eval/success" in known:
            found = self._of_held_out(step, known)
        elif "reward" in known:
            self._rows.append(known)
            found = chain(
                self._of_success(step), self._of_kl(), self._of_length(), self._of_spread()
            )
        else:
            return []
        alarms = []
        for kind, message in found:
            if kind not in self.raised:
                self.raised.add(kind)
                alarms.append(Alarm(step, kind, f"step {step}: {message}", self._examples))
        return alarms

    def _last(self, name: str, steps: int) -> list[float]:
        """The values of a name in the last logged steps, of those that have it."""
        return [row[name] for row in list(self._rows)[-steps:] if name in row]

    def _of_held_out(self, step: int, row: Mapping[str, Any]) -> Found:
        success = row["eval/success"]
        noise = success * (1 - success) / max(1.0, row.get("eval/tasks", 64))
        yield from self._of_fall(
            "held_out_success",
            Window(step, success, noise, row.get("eval/format")),
            (HELD_OUT_LOW, HELD_OUT_CERTAIN, HELD_OUT_ROWS),
            "success on the held-out tasks is {:.2f}, and was {:.2f} at step {}; it was this low in "
            f"{HELD_OUT_ROWS} evaluations in a row. What the run learns now makes it worse: go back to the best "
            "checkpoint, with a smaller learning_rate or a larger beta.",
            "of the held-out tasks",
        )

    def _of_success(self, step: int) -> Found:
        values, formats = self._last("success", WINDOW), self._last("format", WINDOW)
        if len(values) < WINDOW:
            return
        now = Window(
            step, fmean(values), _noise(values), fmean(formats) if len(formats) == WINDOW else None
        )
        yield from self._of_fall(
            "success",
            now,
            (LOW, CERTAIN, SHORT),
            f"success is {{:.2f}} over the last {WINDOW} logged steps, and was {{:.2f}} around step {{}}. The run may "
            f"be collapsing: {REMEDY}",
            "of the completions",
        )

    def _of_fall(
        self, kind: str, now: Window, limits: tuple[float, float, int], message: str, of: str
    ) -> Found:
        """Of a success that is far below the best one, so many times in a row; message: of now, the
        best and its step.

        limits: the share of the best, the number of standard errors below it, and how many times in
        a row.
        """
        low, certain, times = limits
        best = self._best.get(kind)
        if best is None or now.success > best.success:
            self._best[kind], self._low[kind] = now, 0
            return
        fall = best.success - now.success
        is_low = now.success <= low * best.success and fall > max(
            SLIGHT, certain * math.sqrt(best.noise + now.noise)
        )
        self._low[kind] = self._low[kind] + 1 if is_low else 0
        if self._low[kind] < times:
            return
        yield kind, message.format(now.success, best.success, best.step)
        if (
            now.format is not None
            and best.format is not None
            and now.format >= best.format + FORMAT_RISE
        ):
            yield (
                "format",
                f"the format {of} went up from {best.format:.2f} to {now.format:.2f} since step {best.step} while "
                f"success fell from {best.success:.2f} to {now.success:.2f}: the format is learnt in place of the "
                "task.",
            )

    def _of_kl(self) -> Found:
        values = self._last("kl", BACK + SHORT)
        last, before = values[-SHORT:], values[:-SHORT][:SHORT]
        if len(before) == SHORT and min(last) > max(KL_LIMIT, KL_GROWTH * fmean(before)):
            yield (
                "kl",
                f"the KL to the reference policy is {fmean(last):.2g} over the last {SHORT} logged steps, and was "
                f"{fmean(before):.2g} {len(values) - SHORT} logged steps before. The policy runs away from its start: "
                f"{REMEDY}",
            )

    def _of_length(self) -> Found:
        cut = self._last("completions/clipped_ratio", SHORT)
        if len(self._cut_off) < SHORT:
            self._cut_off += cut[-1:]
        elif len(cut) == SHORT and min(cut) >= CUT_OFF > 2 * fmean(self._cut_off):
            yield (
                "length",
                f"{fmean(cut):.0%} of the completions of the last {SHORT} logged steps are cut off at "
                f"max_completion_length, and {fmean(self._cut_off):.0%} were at the start: they no longer come to an "
                "end, or need more tokens.",
            )
        rows = list(self._rows)
        if len(rows) < BACK + SHORT:
            return
        (then, success_then), (now, success) = map(
            _length_and_success, (rows[:SHORT], rows[-SHORT:])
        )
        if (
            not then
            or now is None
            or (success is not None and success_then is not None and success > success_then)
        ):
            return
        if not SHRINKAGE * then < now < GROWTH * then:
            yield (
                "length",
                f"the mean length of a completion went from {then:.0f} to {now:.0f} tokens in {BACK} logged steps, and "
                "success did not rise with it: length seems to be what is learnt.",
            )

    def _of_spread(self) -> Found:
        shares, success = self._last("frac_reward_zero_std", WINDOW), self._last("success", WINDOW)
        if len(shares) == WINDOW and fmean(shares) >= NO_SPREAD:
            why = f" (success is {fmean(success):.2f})" if success else ""
            yield (
                "no_spread",
                f"in {fmean(shares):.0%} of the groups of the last {WINDOW} logged steps all completions got the same "
                f"reward{why}: such groups teach nothing. Other tasks, neither solved always nor never, are needed.",
            )


def replay(folder: str | Path, until: float, raised: Sequence[str] = ()) -> Alarms:
    """The state after the steps of a run up to `until`, for its continuation: what was raised is
    not raised again.
    """
    alarms = Alarms(raised)
    for _, row in read_jsonl(Path(folder) / LOG):
        if "global_step/max_steps" in row and "train_runtime" not in row:
            step = int(row["global_step/max_steps"].split("/")[0])
            if step <= until:
                alarms.row(step, row)
    return alarms


def _length_and_success(rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    lengths = [row["completions/mean_length"] for row in rows if "completions/mean_length" in row]
    success = [row["success"] for row in rows if "success" in row]
    return fmean(lengths) if lengths else None, fmean(success) if success else None


def _noise(values: Sequence[float]) -> float:
    """The variance of the mean of values, from their successive differences: a trend is no noise
    (von Neumann 1941).
    """
    differences = [(after - before) ** 2 for before, after in pairwise(values)]
    return fmean(differences) / 2 / len(values)
