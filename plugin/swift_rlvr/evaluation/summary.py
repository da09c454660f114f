"""Evaluation records -> figures: success with its interval, pass@k, format, length, reasons; before and after.

A record is one graded completion: `index` (its task), `reward` (None where it could not be graded), `format`, `reason`,
`tokens` and `finish` ("stop" or "length"), beside the texts.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.runs.statistics import pass_at_k, wilson


def summarize(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of one evaluation.

    `success` is the mean reward of 1.0 over the graded tasks, each task counting once however many samples it has, and
    its interval counts tasks, not samples: samples of one task are not independent. `strict` is the same with the
    format demanded too.

    >>> record = {"index": 0, "reward": 1.0, "format": True, "reason": "correct", "tokens": 7, "finish": "stop"}
    >>> summarize([record])["success"]
    1.0
    """
    if not records:
        raise ValueError("expected at least one record")
    by_task: dict[int, list[bool]] = defaultdict(list)
    strict: dict[int, list[bool]] = defaultdict(list)
    for record in records:
        if record["reward"] is not None:
            by_task[record["index"]].append(record["reward"] == 1.0)
            strict[record["index"]].append(record["reward"] == 1.0 and record["format"])
    samples = min(map(len, by_task.values()), default=0)
    ks = [k for k in (2**power for power in range(20)) if k <= samples]
    success = _mean([_mean(right) for right in by_task.values()]) if by_task else None
    reasons = Counter(record["reason"] for record in records)
    return {
        "tasks": len(by_task),
        "completions": len(records),
        "ungraded": sum(record["reward"] is None for record in records),
        "success": success,
        "success_interval": None if success is None else list(wilson(success, len(by_task))),
        "strict": _mean([_mean(right) for right in strict.values()]) if strict else None,
        "pass_at_k": {str(k): _mean([pass_at_k(len(right), sum(right), k) for right in by_task.values()]) for k in ks},
        "format": _mean([record["format"] for record in records]),
        "mean_tokens": _mean([record["tokens"] for record in records]),
        "cut_off": _mean([record["finish"] == "length" for record in records]),
        "reasons": {reason: count / len(records) for reason, count in reasons.most_common()},
    }


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two summaries side by side, with the settings in which they differ apart from the model."""
    old, new = before.get("settings", {}), after.get("settings", {})
    names = sorted((old.keys() | new.keys()) - {"model"})
    different = {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
    return {"before": dict(before), "after": dict(after), "different_settings": different}


def comparison_table(comparison: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows (measure, before, after) for people; reasons that make up at least 1% on either side come last."""
    sides = comparison["before"], comparison["after"]
    rows = [
        ("tasks", *(f"{side['tasks']}" for side in sides)),
        ("success", *map(_success, sides)),
        *_strict(sides),
        ("format", *(f"{side['format']:.3f}" for side in sides)),
        ("mean length in tokens", *(f"{side['mean_tokens']:.0f}" for side in sides)),
        ("cut off at the longest length", *(f"{side['cut_off']:.3f}" for side in sides)),
    ]
    for k in sides[0]["pass_at_k"].keys() & sides[1]["pass_at_k"].keys() - {"1"}:
        rows.append((f"pass@{k}", *(f"{side['pass_at_k'][k]:.3f}" for side in sides)))
    reasons = sorted(
        sides[0]["reasons"].keys() | sides[1]["reasons"].keys(),
        key=lambda reason: -max(side["reasons"].get(reason, 0) for side in sides),
    )
    for reason in reasons:
        shares = [side["reasons"].get(reason, 0) for side in sides]
        if max(shares) >= 0.01:
            rows.append((f"reason: {reason}", *(f"{share:.1%}" for share in shares)))
    return rows


def _strict(sides: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    values = [side.get("strict") for side in sides]  # None where nothing was graded
    return [("success with format", *(f"{value:.3f}" for value in values))] if None not in values else []


def _success(summary: Mapping[str, Any]) -> str:
    if summary["success"] is None:
        return "nothing graded"
    return "{:.3f} ({:.3f} to {:.3f})".format(summary["success"], *summary["success_interval"])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
