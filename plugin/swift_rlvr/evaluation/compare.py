"""Evaluations side by side, and two of the same tasks compared task by task: is the difference real,
or chance?

A summary is what `swift_rlvr.runs.statistics.summarize` makes of an evaluation's records.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_files import ids_in, is_id
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import bootstrap

RESAMPLES = 10_000

# Figures of a summary: name, label, format. Those of _BY_KEY come between.
_FIRST = (
    ("tasks", "tasks", ","),
    ("ungraded", "completions not graded", ","),
    ("success", "success", ".3f"),
    ("strict", "success with format", ".3f"),
)
_LAST = (
    ("seed_spread", "standard deviation over seeds", ".3f"),
    ("format", "format", ".3f"),
    ("mean_tokens", "mean length in tokens", ".0f"),
    ("cut_off", "cut off at the length limit", ".3f"),
    ("cut_short", "of these by the server's context", ".3f"),
)
# Figures with a row only where one of the summaries has something there.
_SELDOM = ("ungraded", "cut_short")
# Parts of a summary that hold a figure for each key, and the label of such a figure.
_BY_KEY = {
    "success_by_task": "success of {}",
    "pass_at_k": "pass@{}",
    "seeds": "success with seed {}",
}


def side_by_side(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two summaries side by side, with the settings in which they differ apart from the model."""
    old = before.get("settings", {})
    new = after.get("settings", {})
    different = {}
    # A file of completions has no settings.
    if "settings" in before and "settings" in after:
        for name in sorted((old.keys() | new.keys()) - {"model", "weights", "served_model"}):
            if old.get(name) != new.get(name):
                different[name] = [old.get(name), new.get(name)]
    return {"before": dict(before), "after": dict(after), "different_settings": different}


def settings_in_words(comparison: Mapping[str, Any]) -> list[str]:
    """The settings in which two evaluations differ, for people.

    >>> settings_in_words({"different_settings": {"seed": [0, 1], "system": ["Think.", None]}})
    ['seed differs: 0 before, 1 after', "system differs: 'Think.' before, not set after"]
    """
    differences = []
    for name, values in comparison.get("different_settings", {}).items():
        before, after = ("not set" if value is None else repr(value) for value in values)
        differences.append(f"{name} differs: {before} before, {after} after")
    return differences


def model_of(summary: Mapping[str, Any]) -> str | None:
    """The model that was evaluated: the one that a server has answered with, else the one asked
    for.
    """
    settings = summary.get("settings", {})
    return settings.get("served_model") or settings.get("model")


def figures_table(*summaries: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows (measure, its value in each summary), "-" where a summary lacks it.

    Reasons that make up at least 1% in one of them come last.
    """
    # The figures of _BY_KEY, and their intervals, stand under their labels beside the others.
    flat = [dict(summary) for summary in summaries]
    by_key: dict[str, tuple[str, str, str]] = {}
    for part, label in _BY_KEY.items():
        for summary, figures in zip(summaries, flat, strict=True):
            for key, value in summary.get(part, {}).items():
                name = label.format(key)
                by_key[name] = (name, name, ".3f")
                figures[name] = value
                figures[f"{name}_interval"] = summary.get(f"{part}_interval", {}).get(key)
    # It is success, which is there already.
    by_key.pop("pass@1", None)

    rows: list[tuple[str, ...]] = []
    for name, label, form in (*_FIRST, *by_key.values(), *_LAST):
        texts = [figure_text(figures, name, form) for figures in flat]
        is_nothing = name in _SELDOM and not any(figures.get(name) for figures in flat)
        # Success has a row also where nothing was graded.
        if name == "success" or (set(texts) != {"-"} and not is_nothing):
            rows.append((label, *texts))

    # The union of counters takes the larger share of each reason: one that has come up or gone away
    # counts by the side on which it was frequent.
    highest_shares: Counter[str] = Counter()
    for summary in summaries:
        highest_shares |= Counter(summary["reasons"])
    for reason, highest in highest_shares.most_common():
        if highest >= 0.01:
            shares = [summary["reasons"].get(reason, 0) for summary in summaries]
            rows.append((f"reason: {reason}", *map("{:.1%}".format, shares)))
    return rows


def figure_text(summary: Mapping[str, Any], name: str, form: str) -> str:
    """A figure of a summary with its interval, if it has one; "-" where it is unknown."""
    value = summary.get(name)
    interval = summary.get(f"{name}_interval")
    if value is None:
        return "-"
    if interval is None:
        return f"{value:{form}}"
    low, high = interval
    return f"{value:{form}} ({low:.3f} to {high:.3f})"


def paired(before: Sequence[Record], after: Sequence[Record]) -> dict[str, Any] | None:
    """The difference in success over the tasks that both have graded; None if no task of the one can
    be found in the other.

    Tasks are found by their index where both evaluations are of the same rows, else by their prompt
    or id, with their gold. `unpaired` counts the graded tasks of each that have no counterpart.
    `by_order`: neither a prompt nor an id confirms that the tasks of a pair are the same.

    Success of a task is the share of its completions that are right. `interval` is a 95% bootstrap
    interval over tasks (percentiles; Efron and Tibshirani 1993, section 13.3). `p` is McNemar's
    exact one (1947) where a task is right or wrong, else that of flipping the signs of the tasks'
    differences (Fisher's randomization test). Neither depends on anything but the records.

    >>> graded = lambda success: [Record(index=i, completion="", rewards={}, success=success) for i in range(6)]
    >>> paired(graded(False), graded(True))["p"]
    0.03125
    """
    import numpy as np

    pairs = _pairs(before, after)
    if pairs is None:
        return None
    old, new = pairs.before, pairs.after
    shared = sorted(old.keys() & new.keys())
    differences = np.array([fmean(new[task]) - fmean(old[task]) for task in shared])
    # Both tests are of the tasks that differ: the others say nothing about which side is better.
    changed = differences[differences != 0]
    count = len(changed)
    if set(changed.tolist()) <= {-1.0, 1.0}:
        # McNemar's exact test: the two-sided binomial one for the tasks that have changed.
        fewer = int(min((changed > 0).sum(), (changed < 0).sum()))
        ways = sum(math.comb(count, k) for k in range(fewer + 1))
        p = min(1.0, 2 * ways / 2**count)
    else:
        # By chance each difference could as well have had the other sign. The observed one counts as a
        # draw, so p is never 0 (Phipson and Smyth 2010), and equal sums differ by rounding.
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(RESAMPLES, count))
        extreme = np.abs(signs @ changed) >= abs(changed.sum()) - 1e-9
        p = float((1 + extreme.sum()) / (1 + RESAMPLES))
    return {
        "tasks": len(shared),
        "unpaired": [len(old) - len(shared), len(new) - len(shared)],
        "by_order": pairs.by_order,
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "difference": float(differences.mean()),
        "interval": list(bootstrap(differences.tolist(), RESAMPLES)),
        "p": p,
    }


# Tells a record's task from others; None where it says nothing.
_Name = Callable[[Record], str | None]


class _Pairs(NamedTuple):
    """The graded successes of two evaluations, by names of their tasks, some of which both have.

    by_order: whether the names say nothing but where a row stood.
    """

    before: dict[str, list[bool]]
    after: dict[str, list[bool]]
    by_order: bool


def _pairs(before: Sequence[Record], after: Sequence[Record]) -> _Pairs | None:
    """The successes by the surest name by which tasks of the one are found in the other."""

    def by_index(records: Sequence[Record]) -> tuple[dict[int, Any], dict[int, str | None]]:
        """The rows, and what each asks."""
        rows = {}
        prompts = {}
        for record in records:
            rows[record.index] = record.row
            prompts[record.index] = _prompt(record)
        return rows, prompts

    rows_before, prompts_before = by_index(before)
    rows_after, prompts_after = by_index(after)
    same_rows = rows_before == rows_after
    # Otherwise a row may be missing, or they come in another order.
    ways: list[tuple[_Name, bool]] = [(_prompt, False), (_id, False)]
    if same_rows and prompts_before == prompts_after:
        is_named = all(_prompt(each) or _id(each) for each in before)
        ways = [(_index, not is_named)]
    elif same_rows:
        ways.append((_index, True))

    for name, by_order in ways:
        old = _successes(before, name)
        new = _successes(after, name)
        if old.keys() & new.keys():
            return _Pairs(old, new, by_order)
    return None


def _index(record: Record) -> str | None:
    return str(record.index)


def _prompt(record: Record) -> str | None:
    """What the user asks, without the system prompt, which may be what is compared; with the gold."""
    asked = [turn.get("content") for turn in record.first_prompt if turn.get("role") == "user"]
    return _with_gold(asked, record) if asked else None


def _id(record: Record) -> str | None:
    ids = ids_in(record.row)
    return _with_gold(ids, record) if ids else None


def _with_gold(name: Any, record: Record) -> str:
    gold = {column: value for column, value in record.row.items() if not is_id(column)}
    return json.dumps([name, gold], sort_keys=True, default=str)


def _successes(records: Sequence[Record], name: _Name) -> dict[str, list[bool]]:
    """The successes of each task's graded completions."""
    successes: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        task = name(record)
        if task is not None and record.success is not None:
            successes[task].append(record.success)
    return successes


def in_words(result: Mapping[str, Any]) -> str:
    """The result for people, with what was left out.

    >>> in_words({"tasks": 9, "better": 7, "worse": 0, "difference": 0.78, "interval": [0.5, 1.0], "p": 0.0156})
    'Success differs by +0.780 (+0.500 to +1.000) on 9 tasks: 7 better, 0 worse, p = 0.016. This is significant.'
    """
    low, high = result["interval"]
    tasks = "1 task" if result["tasks"] == 1 else f"{result['tasks']:,} tasks"
    p = "p < 0.001" if result["p"] < 0.001 else f"p = {result['p']:.3f}"
    # Of few tasks the test and the interval, which are computed in different ways, may disagree.
    is_clear = result["p"] < 0.05 and low * high > 0
    conclusion = "This is significant." if is_clear else "This may be chance."
    text = (
        f"Success differs by {result['difference']:+.3f} ({low:+.3f} to {high:+.3f}) on {tasks}: "
        f"{result['better']:,} better, {result['worse']:,} worse, {p}. {conclusion}"
    )
    # Comparisons that were written earlier do not say it.
    old, new = result.get("unpaired", (0, 0))
    if old or new:
        text += (
            f" Tasks that are left out, since the other evaluation has not graded them: {old:,} of "
            f"before, {new:,} of after."
        )
    if result.get("by_order"):
        text += (
            " No prompt or id confirms which tasks are the same, so they are paired by their order: "
            "this holds only if both have the same tasks in the same order."
        )
    return text
