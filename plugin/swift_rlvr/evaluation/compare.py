"""Evaluations side by side, and two of the same tasks compared task by task: is the difference one,
or chance?

A summary is what `swift_rlvr.runs.statistics.summarize` makes of an evaluation's records.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import bootstrap, by_row

RESAMPLES = 10_000


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two summaries side by side, with the settings in which they differ apart from the model."""
    old, new = before.get("settings", {}), after.get("settings", {})
    names = sorted((old.keys() | new.keys()) - {"model", "weights"})
    different = {
        name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)
    }
    return {"before": dict(before), "after": dict(after), "different_settings": different}


def figures_table(*sides: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows (measure, its value in each summary), "-" where a summary lacks it.

    Reasons that make up at least 1% in one of them come last.
    """
    labels = {
        "success_by_task": "success of {}",
        "pass_at_k": "pass@{}",
        "seeds": "success with seed {}",
    }
    flat = [dict(side) for side in sides]
    for name, label in labels.items():
        for part in ("", "_interval"):
            for side in flat:
                side |= {
                    label.format(key) + part: value
                    for key, value in side.get(name + part, {}).items()
                }
    labelled = (
        label.format(key)
        for name, label in labels.items()
        for side in sides
        for key in side.get(name, ())
    )
    names = [name for name in dict.fromkeys(labelled) if name != "pass@1"]  # which is success
    rows = {
        "tasks": ("tasks", ","),
        "success": ("success", ".3f"),
        "success with format": ("strict", ".3f"),
        **{name: (name, ".3f") for name in names},
        "standard deviation over seeds": ("seed_spread", ".3f"),
        "format": ("format", ".3f"),
        "mean length in tokens": ("mean_tokens", ".0f"),
        "cut off at the longest length": ("cut_off", ".3f"),
    }
    texts = [
        (label, *(figure_text(side, name, form) for side in flat))
        for label, (name, form) in rows.items()
    ]
    texts = [
        each for each in texts if each[0] == "success" or set(each[1:]) != {"-"}
    ]  # "-": nothing was graded
    most: Counter[str] = Counter()
    for each in sides:
        most |= Counter(each["reasons"])
    shown = [reason for reason, share in most.most_common() if share >= 0.01]
    return texts + [
        (f"reason: {each}", *(f"{side['reasons'].get(each, 0):.1%}" for side in sides))
        for each in shown
    ]


def figure_text(side: Mapping[str, Any], name: str, form: str) -> str:
    """A figure of a summary with its interval, if it has one; "-" where it is unknown."""
    value, interval = side.get(name), side.get(f"{name}_interval")
    if value is None:
        return "-"
    return f"{value:{form}}" + ("" if interval is None else " ({:.3f} to {:.3f})".format(*interval))


def paired(before: Sequence[Record], after: Sequence[Record]) -> dict[str, Any] | None:
    """The difference in success over the tasks that both have graded; None where they are not of
    the same tasks.

    Success of a task is the share of its completions that are right. `interval` is a 95% bootstrap
    interval over tasks (percentiles; Efron and Tibshirani 1993, section 13.3). `p` is McNemar's
    exact one (1947) where a task is right or wrong, else that of flipping the signs of the tasks'
    differences (Fisher's randomization test). Neither depends on anything but the records.

    >>> graded = lambda success: [Record(index=i, completion="", rewards={}, success=success) for i in range(6)]
    >>> paired(graded(False), graded(True))["p"]
    0.03125
    """
    import numpy as np

    if {record.index: record.row for record in before} != {
        record.index: record.row for record in after
    }:
        return None
    old, new = by_row(before), by_row(after)
    if not (shared := sorted(old.keys() & new.keys())):
        return None
    differences = np.array([fmean(new[index]) - fmean(old[index]) for index in shared])
    return {
        "tasks": len(shared),
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "difference": float(differences.mean()),
        "interval": list(bootstrap(differences.tolist(), RESAMPLES)),
        "p": _p_value(differences),
    }


def _p_value(differences: Any) -> float:
    import numpy as np

    changed = differences[differences != 0]
    count = len(changed)
    if not count:
        return 1.0
    if set(changed.tolist()) <= {-1.0, 1.0}:
        fewer = min((changed > 0).sum(), (changed < 0).sum())
        return min(1.0, 2 * sum(math.comb(count, k) for k in range(int(fewer) + 1)) / 2**count)
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(RESAMPLES, count))
    extreme = np.abs(signs @ changed) >= abs(changed.sum()) - 1e-9
    return float((1 + extreme.sum()) / (1 + RESAMPLES))


def in_words(result: Mapping[str, Any]) -> str:
    """One sentence for people.

    >>> in_words({"tasks": 9, "better": 7, "worse": 0, "difference": 0.78, "interval": [0.5, 1.0], "p": 0.0156})
    'Success differs by +0.780 (+0.500 to +1.000) on 9 tasks: 7 better, 0 worse, p = 0.016. That is a difference.'
    """
    low, high = result["interval"]
    p = "p < 0.001" if result["p"] < 0.001 else f"p = {result['p']:.3f}"
    clear = result["p"] < 0.05 and low * high > 0
    return (
        f"Success differs by {result['difference']:+.3f} ({low:+.3f} to {high:+.3f}) on {result['tasks']:,} tasks: "
        f"{result['better']:,} better, {result['worse']:,} worse, {p}. "
        + ("That is a difference." if clear else "That may be chance.")
    )
