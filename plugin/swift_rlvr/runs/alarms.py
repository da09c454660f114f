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
from swift_rlvr.success import RAISED, shares_of
from swift_rlvr.utils.jsonl import read_jsonl

KINDS = (
    "held_out_success",
    "success",
    "kl",
    "length",
    "no_spread",
    "ungraded",
    "errors",
)
REMEDY = "a smaller learning_rate or a larger beta may help."

# Logged steps in a mean of success, format and groups without spread.
WINDOW = 10
# Logged steps in a mean of KL and length.
SHORT = 5
# Logged steps before, with which KL and length are compared.
BACK = 20
# Completions that an alarm shows.
EXAMPLES = 3


class FallLimits(NamedTuple):
    """When success has fallen far below its best.

    low: at most this share of the best. certain: further below it than so many standard errors.
    times: so many times in a row.
    """

    low: float
    certain: float
    times: int


TRAINING_FALL = FallLimits(low=0.7, certain=4.0, times=SHORT)
HELD_OUT_FALL = FallLimits(low=0.75, certain=2.0, times=2)
# A fall of success that is too slight for an alarm, however certain it is.
SLIGHT_FALL = 0.05
# A rise of the format while success falls, which the alarm of the fall mentions.
FORMAT_RISE = 0.05
# KL that is too large, and how many times as large as before.
KL_LIMIT = 0.5
KL_GROWTH = 10.0
# The mean length, against that of before.
GROWTH = 2.0
SHRINKAGE = 1 / 3
# The share of completions at the longest length.
CUT_OFF = 0.5
# The share that is cut off from the start on, of a run without success.
CUT_OFF_FROM_START, NO_SUCCESS = 0.9, 0.05
# The share of groups without spread.
NO_SPREAD = 0.9
# The share of completions that the verifier could not grade, in so many logged steps in a row.
UNGRADED, UNGRADED_STEPS = 0.9, 3
# The share of the completions of a step on which a function raises.
ERRORS = 0.1

# A kind, and what is wrong.
Warnings = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Alarm:
    """kind: one of KINDS. message: one or two sentences for people. completions: some of the last
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
    """The alarms' memory of a run. `raised`: the kinds that are not raised again."""

    def __init__(self, raised: Sequence[str] = ()):
        self.raised = set(raised)
        self._rows: deque[Mapping[str, Any]] = deque(maxlen=BACK + SHORT)
        # By kind, success and held_out_success: the best so far, and how often in a row it is low.
        self._best: dict[str, Window] = {}
        self._low = Counter[str]()
        # The shares of completions that were cut off in the first steps.
        self._first_cut_off: list[float] = []
        # The shares of groups without spread in the first steps.
        self._first_no_spread: list[float] = []
        self._examples: tuple[str, ...] = ()

    def batch(self, prompts: Sequence[str], completions: Sequence[str]) -> None:
        """Note the completions of a step, of which an alarm shows some: of different prompts, where
        there are enough.
        """
        first_by_prompt: dict[str, str] = {}
        for prompt, completion in zip(prompts, completions, strict=True):
            first_by_prompt.setdefault(prompt, completion)
        examples: Sequence[str] = list(first_by_prompt.values())
        if len(examples) < EXAMPLES:
            examples = completions
        self._examples = tuple(examples[:EXAMPLES])

    def row(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a logged line raises: of a training step, or with `eval/success` of a
        held-out evaluation.
        """
        known = {name: value for name, value in metrics.items() if is_number(value)}
        if "eval/success" in known:
            warnings = self._of_held_out(step, known)
        elif "reward" in known:
            self._rows.append(known)
            warnings = chain(
                self._of_success(step),
                self._of_kl(),
                self._of_cut_off(),
                self._of_length(),
                self._of_spread(),
                self._of_ungraded(),
                self._of_errors(),
            )
        else:
            return []
        alarms = []
        for kind, message in warnings:
            if kind not in self.raised:
                self.raised.add(kind)
                alarms.append(Alarm(step, kind, f"step {step}: {message}", self._examples))
        return alarms

    def _last(self, name: str, steps: int) -> list[float]:
        """The values of a name in the last logged steps, of those that have it."""
        return _values(name, list(self._rows)[-steps:])

    def _of_held_out(self, step: int, row: Mapping[str, Any]) -> Warnings:
        success = row["eval/success"]
        noise = success * (1 - success) / max(1.0, row.get("eval/tasks", 64))
        now = Window(step, success, noise, row.get("eval/format"))
        best = self._fallen_from("held_out_success", now, HELD_OUT_FALL)
        if best is None:
            return
        yield (
            "held_out_success",
            f"success on the held-out tasks is {now.success:.2f}, down from {best.success:.2f} at step "
            f"{best.step}, and was this low in {HELD_OUT_FALL.times} evaluations in a row. Training "
            "now makes the model worse: go back to the best checkpoint, with a smaller "
            f"learning_rate or a larger beta.{_rise_of_format(now, best)}",
        )

    def _of_success(self, step: int) -> Warnings:
        values = self._last("success", WINDOW)
        formats = self._last("format", WINDOW)
        if len(values) < WINDOW:
            return
        mean_format = fmean(formats) if len(formats) == WINDOW else None
        # The variance of the mean, from successive differences: a trend is no noise (von Neumann 1941).
        differences = [(after - before) ** 2 for before, after in pairwise(values)]
        noise = fmean(differences) / 2 / len(values)
        now = Window(step, fmean(values), noise, mean_format)
        best = self._fallen_from("success", now, TRAINING_FALL)
        if best is None:
            return
        yield (
            "success",
            f"success is {now.success:.2f} over the last {WINDOW} logged steps, down from "
            f"{best.success:.2f} around step {best.step}. The run may be collapsing: {REMEDY}"
            f"{_rise_of_format(now, best)}",
        )

    def _fallen_from(self, kind: str, now: Window, limits: FallLimits) -> Window | None:
        """The best success so far, where the one of now is far below it, and was so before; else
        None.
        """
        # One bad window is noise: only several in a row, each far below the best, are a fall.
        best = self._best.get(kind)
        if best is None or now.success > best.success:
            self._best[kind] = now
            self._low[kind] = 0
            return None
        fall = best.success - now.success
        standard_error = math.sqrt(best.noise + now.noise)
        is_certain = fall > max(SLIGHT_FALL, limits.certain * standard_error)
        if is_certain and now.success <= limits.low * best.success:
            self._low[kind] += 1
        else:
            self._low[kind] = 0
        return best if self._low[kind] >= limits.times else None

    def _of_kl(self) -> Warnings:
        values = self._last("kl", BACK + SHORT)
        last = values[-SHORT:]
        before = values[:-SHORT][:SHORT]
        if len(before) < SHORT:
            return
        if min(last) > max(KL_LIMIT, KL_GROWTH * fmean(before)):
            yield (
                "kl",
                f"the KL to the reference policy is {fmean(last):.2g} over the last {SHORT} logged "
                f"steps, up from {fmean(before):.2g} {len(values) - SHORT} logged steps earlier. The "
                f"policy is drifting away from its start: {REMEDY}",
            )

    def _of_cut_off(self) -> Warnings:
        shares = self._last("completions/clipped_ratio", SHORT)
        if len(self._first_cut_off) < SHORT:
            self._first_cut_off += shares[-1:]
            success = self._last("success", SHORT)
            is_solved = bool(success) and fmean(success) > NO_SUCCESS
            is_cut_off = min(self._first_cut_off, default=0) >= CUT_OFF_FROM_START
            if len(self._first_cut_off) == SHORT and is_cut_off and not is_solved:
                yield (
                    "length",
                    f"{fmean(self._first_cut_off):.0%} of the completions of the first {SHORT} logged "
                    "steps are cut off at max_completion_length, and none or few are right: allow more "
                    "tokens, or look at the completions in records.jsonl.",
                )
            return
        if len(shares) < SHORT:
            return
        at_first = fmean(self._first_cut_off)
        if min(shares) >= CUT_OFF > 2 * at_first:
            yield (
                "length",
                f"{fmean(shares):.0%} of the completions of the last {SHORT} logged steps are cut "
                f"off at max_completion_length, up from {at_first:.0%} at the start: they no longer "
                "end, or need more tokens.",
            )

    def _of_length(self) -> Warnings:
        rows = list(self._rows)
        if len(rows) < BACK + SHORT:
            return
        before = _mean("completions/mean_length", rows[:SHORT])
        now = _mean("completions/mean_length", rows[-SHORT:])
        if not before or now is None:
            return
        success_before = _mean("success", rows[:SHORT])
        success_now = _mean("success", rows[-SHORT:])
        if success_before is not None and success_now is not None and success_now > success_before:
            return
        if not SHRINKAGE * before < now < GROWTH * before:
            yield (
                "length",
                f"the mean length of a completion went from {before:.0f} to {now:.0f} tokens in "
                f"{BACK} logged steps, but success did not rise: the policy seems to learn length "
                "only.",
            )

    def _of_spread(self) -> Warnings:
        shares = self._last("frac_reward_zero_std", WINDOW)
        success = self._last("success", WINDOW)
        if len(self._first_no_spread) < SHORT:
            self._first_no_spread += shares[-1:]
            if len(self._first_no_spread) == SHORT and min(self._first_no_spread) == 1:
                why = f" (success is {fmean(success):.2f})" if success else ""
                yield (
                    "no_spread",
                    f"in the first {SHORT} logged steps no group had completions with different "
                    f"rewards{why}, so nothing was learned. Use tasks that the model solves sometimes, "
                    "and rewards that tell completions apart; `swift-rlvr probe` measures both.",
                )
        if len(shares) == WINDOW and fmean(shares) >= NO_SPREAD:
            why = f" (success is {fmean(success):.2f})" if success else ""
            yield (
                "no_spread",
                f"in {fmean(shares):.0%} of the groups of the last {WINDOW} logged steps all "
                f"completions got the same reward{why}, so these groups give no gradient. Use tasks "
                "that the model solves sometimes, neither always nor never.",
            )

    def _of_ungraded(self) -> Warnings:
        shares = [row.get("ungraded", 0.0) for row in list(self._rows)[-UNGRADED_STEPS:]]
        if len(shares) == UNGRADED_STEPS and min(shares) >= UNGRADED:
            yield (
                "ungraded",
                f"the verifier could not grade {fmean(shares):.0%} of the completions of the last "
                f"{UNGRADED_STEPS} logged steps: its gold is missing, unreadable or of another task, "
                "and the run does not learn to be right. `swift-rlvr dataset check` says which rows "
                "and why.",
            )

    def _of_errors(self) -> Warnings:
        # In a single step: a run that learns from zeros is to be seen at once.
        for name, share in shares_of(RAISED, self._rows[-1]).items():
            if share >= ERRORS:
                yield (
                    "errors",
                    f"{name} raised an error on {share:.0%} of the completions of a step, which earn "
                    f"nothing for that. The log has the first traceback (records.jsonl: '{RAISED}').",
                )


def _rise_of_format(now: Window, best: Window) -> str:
    """A sentence where the format has risen while success fell, else an empty text."""
    if now.format is None or best.format is None or now.format < best.format + FORMAT_RISE:
        return ""
    return (
        f" The format went up from {best.format:.2f} to {now.format:.2f} meanwhile: the policy learns "
        "the format instead of the task."
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


def _values(name: str, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [row[name] for row in rows if name in row]


def _mean(name: str, rows: Sequence[Mapping[str, Any]]) -> float | None:
    values = _values(name, rows)
    return fmean(values) if values else None
