"""Warnings about a run that goes wrong, from the lines of its log: live in all trainers, and afterwards in a report.

    alarms = Alarms()
    alarms.batch(step, prompts, completions)     # where there are completions
    for alarm in alarms.row(step, metrics):      # a line of LOG
        print(alarm.message)

Each kind is raised once a run. Where a limit speaks of steps it means logged steps. The limits were chosen so that the
runs of the quickstart, in which success doubles and the length nearly triples, raise none.
"""

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from swift_rlvr.jsonl import read_jsonl
from swift_rlvr.runs.folder import LOG, RECORDS
from swift_rlvr.runs.records import read_records

WINDOW = 10  # logged steps in a mean of success, format and groups without spread
SHORT = 5  # in a mean of KL, length and templates; also the steps in a row that success must be low
LOW, CERTAIN = 0.7, 4.0  # success: at most this share of its best, and further below than so many standard errors
HELD_OUT_LOW, HELD_OUT_CERTAIN, HELD_OUT_ROWS = 0.75, 2.0, 2  # the same for evaluations, so many in a row
KL_LIMIT, KL_GROWTH = 0.5, 10.0  # more than this, and than so many times that of BACK logged steps before
GROWTH, SHRINKAGE, BACK = 2.0, 1 / 3, 20  # of the length, against so many logged steps before
CUT_OFF = 0.5  # share of completions at the longest length
FORMAT_RISE = 0.05
NO_SPREAD = 0.9  # share of groups
TEMPLATE, TEMPLATE_RISE = 0.5, 0.25  # share of completions, and how much more than at the start
EXAMPLES = 3
KINDS = ("held_out_success", "success", "format", "kl", "length", "no_spread", "template")


@dataclass(frozen=True)
class Alarm:
    """kind: one of KINDS. message: one or two sentences for people. completions: three of the last batch."""

    step: int
    kind: str
    message: str
    completions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The line of ALARMS."""
        return {**asdict(self), "completions": list(self.completions)}


class Window(NamedTuple):
    """The means over WINDOW logged steps that end at `step`, and the variance of the success's mean."""

    step: int
    success: float
    noise: float
    format: float | None


class Alarms:
    """The state of a run as far as the alarms need it. `raised`: the kinds that are not to be raised again."""

    def __init__(self, raised: Sequence[str] = ()):
        self.raised = set(raised)
        self._rows: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=max(BACK + SHORT, WINDOW))
        self._kl: deque[float] = deque(maxlen=BACK + SHORT)
        self._best: Window | None = None
        self._low = self._held_out_low = 0  # in a row
        self._held_out: tuple[int, float, float | None] | None = None  # the best: step, success, format
        self._cut_off: list[float] = []  # of the first steps
        self._templates: deque[float] = deque(maxlen=SHORT)
        self._first_templates: list[float] = []
        self._batch: tuple[Sequence[str], Sequence[str]] = ((), ())
        self._repeated: list[str] = []  # completions of the last batch with its most frequent template

    def batch(self, step: int, prompts: Sequence[str], completions: Sequence[str]) -> None:
        """The completions of a step, to be handed over before the step's row."""
        share, self._repeated = most_frequent_template(prompts, completions)
        self._batch = prompts, completions
        self._templates.append(share)
        if len(self._first_templates) < SHORT:
            self._first_templates.append(share)

    def row(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """The alarms that a logged line raises: of a training step, or with `eval/success` of a held-out evaluation."""
        known = {name: value for name, value in metrics.items() if _is_number(value)}
        if "eval/success" in known:
            checks = [self._of_held_out(step, known)]
        elif "reward" in known:
            self._rows.append((step, known))
            checks = [self._of_success(step), self._of_kl(known), self._of_length(), self._of_spread(),
                      self._of_templates()]  # fmt: skip
        else:
            return []
        alarms = []
        for kind, message in (each for check in checks for each in check):
            if kind not in self.raised:
                self.raised.add(kind)
                examples = self._repeated[:EXAMPLES] if kind == "template" else self._examples()
                alarms.append(Alarm(step, kind, f"step {step}: {message}", tuple(examples)))
        return alarms

    def _examples(self) -> list[str]:
        """Completions of the last batch, of different prompts as far as there are some."""
        order: dict[tuple[int, int], str] = {}
        seen: Counter[str] = Counter()
        for place, (prompt, completion) in enumerate(zip(*self._batch, strict=True)):
            order[(seen[prompt], place)] = completion
            seen[prompt] += 1
        return [order[key] for key in sorted(order)][:EXAMPLES]

    def _of_held_out(self, step: int, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        success, format = row["eval/success"], row.get("eval/format")
        if self._held_out is None or success > self._held_out[1]:
            self._held_out, self._held_out_low = (step, success, format), 0
            return []
        at, best, format_then = self._held_out
        rows = max(1.0, row.get("eval/tasks", 64))
        noise = math.sqrt((best * (1 - best) + success * (1 - success)) / rows)
        low = success <= HELD_OUT_LOW * best and best - success > HELD_OUT_CERTAIN * noise
        self._held_out_low = self._held_out_low + 1 if low else 0
        if self._held_out_low < HELD_OUT_ROWS:
            return []
        found = [(
            "held_out_success",
            f"success on the held-out tasks is {success:.2f}, and was {best:.2f} at step {at}; it was this low in "
            f"{self._held_out_low} evaluations in a row. What the run learns now makes it worse: go back to the best "
            "checkpoint, with a smaller learning_rate or a larger beta.",
        )]  # fmt: skip
        if format is not None and format_then is not None and format >= format_then + FORMAT_RISE:
            found.append(("format", _format_message("of the held-out tasks", at, format_then, format, best, success)))
        return found

    def _of_success(self, step: int) -> list[tuple[str, str]]:
        rows = [row for _, row in list(self._rows)[-WINDOW:]]
        values = [row["success"] for row in rows if "success" in row]
        if len(values) < WINDOW:
            return []
        formats = [row["format"] for row in rows if "format" in row]
        now = Window(step, fmean(values), _noise(values), fmean(formats) if len(formats) == WINDOW else None)
        if self._best is None or now.success > self._best.success:
            self._best, self._low = now, 0
            return []
        best, found = self._best, []
        fall = best.success - now.success
        low = now.success <= LOW * best.success and fall > CERTAIN * math.sqrt(best.noise + now.noise) and fall > 0.05
        self._low = self._low + 1 if low else 0
        if self._low >= SHORT:
            found.append((
                "success",
                f"success is {now.success:.2f} over the last {WINDOW} logged steps, and was "
                f"{best.success:.2f} around step {best.step}. The run may be collapsing: a smaller learning_rate or a "
                "larger beta may help.",
            ))  # fmt: skip
        if low and now.format is not None and best.format is not None and now.format >= best.format + FORMAT_RISE:
            message = _format_message(
                "of the completions", best.step, best.format, now.format, best.success, now.success
            )
            found.append(("format", message))
        return found

    def _of_kl(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        if "kl" not in row:
            return []
        self._kl.append(row["kl"])
        last, before = list(self._kl)[-SHORT:], list(self._kl)[:-SHORT][:SHORT]
        if len(before) < SHORT or min(last) <= max(KL_LIMIT, KL_GROWTH * fmean(before)):
            return []
        return [(
            "kl",
            f"the KL to the reference policy is {fmean(last):.2g} over the last {SHORT} logged steps, and was "
            f"{fmean(before):.2g} {len(self._kl) - SHORT} logged steps before. The policy runs away from its start: a "
            "smaller learning_rate or a larger beta may help.",
        )]  # fmt: skip

    def _of_length(self) -> list[tuple[str, str]]:
        rows = [row for _, row in self._rows]
        cut = [row["completions/clipped_ratio"] for row in rows[-SHORT:] if "completions/clipped_ratio" in row]
        if len(self._cut_off) < SHORT:
            self._cut_off += cut[-1:]
        elif len(cut) == SHORT and min(cut) >= CUT_OFF > 2 * fmean(self._cut_off):
            return [(
                "length",
                f"{fmean(cut):.0%} of the completions of the last {SHORT} logged steps are cut off at "
                f"max_completion_length, and {fmean(self._cut_off):.0%} were at the start: they no longer come to an "
                "end, or need more room.",
            )]  # fmt: skip
        if len(rows) < BACK + SHORT:
            return []
        (then, success_then), (now, success) = map(_length_and_success, (rows[:SHORT], rows[-SHORT:]))
        if not then or now is None or (success is not None and success_then is not None and success > success_then):
            return []
        if SHRINKAGE * then < now < GROWTH * then:
            return []
        return [(
            "length",
            f"the mean length of a completion went from {then:.0f} to {now:.0f} tokens in {BACK} logged steps, and "
            "success did not rise with it: length seems to be what is learnt.",
        )]  # fmt: skip

    def _of_spread(self) -> list[tuple[str, str]]:
        name = "frac_reward_zero_std"
        rows = [row for _, row in list(self._rows)[-WINDOW:] if name in row]
        if len(rows) < WINDOW or (share := fmean(row[name] for row in rows)) < NO_SPREAD:
            return []
        success = [row["success"] for row in rows if "success" in row]
        why = f" (success is {fmean(success):.2f})" if success else ""
        return [(
            "no_spread",
            f"in {share:.0%} of the groups of the last {WINDOW} logged steps all completions got the same reward{why}: "
            "such groups teach nothing. Other tasks, neither solved always nor never, are needed.",
        )]  # fmt: skip

    def _of_templates(self) -> list[tuple[str, str]]:
        if len(self._templates) < SHORT or len(self._first_templates) < SHORT:
            return []
        share = fmean(self._templates)
        if share < TEMPLATE or share < fmean(self._first_templates) + TEMPLATE_RISE:
            return []
        return [(
            "template",
            f"{share:.0%} of the completions of the last {SHORT} logged steps are the same but for their numbers, "
            "whatever was asked: one template is repeated.",
        )]  # fmt: skip


def template(completion: str) -> str:
    """A completion without its numbers and the width of its white space.

    >>> template("<answer>12 + 3 =  15</answer>")
    '<answer># + # = #</answer>'
    """
    return " ".join(re.sub(r"\d+(?:[.,]\d+)*", "#", completion).split())


def most_frequent_template(prompts: Sequence[str], completions: Sequence[str]) -> tuple[float, list[str]]:
    """The share of the completions with the template that most prompts' completions have, and one of each prompt.

    0 where there are fewer than three prompts, and where less than half of them have a completion of that template:
    completions of one prompt may well be alike.
    """
    by_template: defaultdict[str, list[int]] = defaultdict(list)
    for place, completion in enumerate(completions):
        by_template[template(completion)].append(place)
    asked = set(prompts)
    if len(asked) < EXAMPLES:
        return 0.0, []
    firsts = [{prompts[place]: completions[place] for place in reversed(own)} for own in by_template.values()]
    first, own = max(zip(firsts, by_template.values(), strict=True), key=lambda pair: (len(pair[0]), len(pair[1])))
    if len(first) < len(asked) / 2:
        return 0.0, []
    return len(own) / len(completions), list(first.values())


def replay(folder: str | Path, until: float, raised: Sequence[str] = ()) -> Alarms:
    """The state after the steps of a run up to `until`, for its continuation: what was raised is not raised again."""
    alarms, batches = Alarms(raised), _batches(Path(folder))
    waiting = next(batches, None)
    for _, row in read_jsonl(Path(folder) / LOG):
        if "global_step/max_steps" not in row or "train_runtime" in row:
            continue
        step = int(row["global_step/max_steps"].split("/")[0])
        if step > until:
            break
        while "reward" in row and waiting is not None and waiting[0] <= step:
            alarms.batch(*waiting)
            waiting = next(batches, None)
        alarms.row(step, row)
    return alarms


def _batches(folder: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Step, questions and completions of each batch of a training, from its records."""
    if not (folder / RECORDS).is_file():
        return
    of_training = (record for record in read_records(folder / RECORDS) if record.mode == "train")
    for step, records in groupby(of_training, key=lambda record: record.step or 0):
        batch = list(records)
        yield step, [record.question for record in batch], [record.completion for record in batch]


def _format_message(of: str, at: int, before: float, now: float, best: float, success: float) -> str:
    return (
        f"the format {of} went up from {before:.2f} to {now:.2f} since step {at} while success fell from {best:.2f} to "
        f"{success:.2f}: the format is learnt in place of the task."
    )


def _length_and_success(rows: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    lengths = [row["completions/mean_length"] for row in rows if "completions/mean_length" in row]
    success = [row["success"] for row in rows if "success" in row]
    return fmean(lengths) if lengths else None, fmean(success) if success else None


def _noise(values: Sequence[float]) -> float:
    """The variance of the mean of values, from their successive differences: a trend is no noise (von Neumann 1941)."""
    differences = [(after - before) ** 2 for before, after in pairwise(values)]
    return fmean(differences) / 2 / len(values)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
