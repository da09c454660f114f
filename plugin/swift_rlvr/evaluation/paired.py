"""Two evaluations of the same tasks, compared task by task: is the difference one, or chance?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace  # noqa: F401 - in a doctest
from typing import Any

import numpy as np

from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import bootstrap, by_row

RESAMPLES = 10_000


def paired(before: Sequence[Record], after: Sequence[Record]) -> dict[str, Any] | None:
    """The difference in success over the tasks that both have graded; None where they are not of the same tasks.

    Success of a task is the share of its completions that are right. `interval` is a 95% bootstrap interval over tasks
    (percentiles; Efron and Tibshirani 1993, section 13.3). `p` is McNemar's exact one (1947) where a task is right or
    wrong, else that of flipping the signs of the tasks' differences (Fisher's randomization test). Neither depends on
    anything but the records.

    >>> before = [Record(index=index, completion="", rewards={}, success=False) for index in range(6)]
    >>> paired(before, [replace(record, success=True) for record in before])["p"]
    0.03125
    """
    if _tasks(before) != _tasks(after):
        return None
    old, new = _success(before), _success(after)
    shared = sorted(old.keys() & new.keys())
    if not shared:
        return None
    differences = np.array([new[index] - old[index] for index in shared])
    return {
        "tasks": len(shared),
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "difference": float(differences.mean()),
        "interval": list(bootstrap(differences.tolist(), RESAMPLES)),
        "p": _p_value(differences),
    }


def _tasks(records: Sequence[Record]) -> dict[int, dict[str, Any]]:
    """The columns of each task, by which two files are known to hold the same ones."""
    return {record.index: record.row for record in records}


def _success(records: Sequence[Record]) -> dict[int, float]:
    return {index: sum(right) / len(right) for index, right in by_row(records).items()}


def _p_value(differences: np.ndarray) -> float:
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
