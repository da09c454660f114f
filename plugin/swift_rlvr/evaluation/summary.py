"""Evaluation records -> figures: success with its interval, pass@k, format, length, reasons; before and after.

The records are `swift_rlvr.runs.records.Record`; `index` tells their tasks apart.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from swift_rlvr.runs.grades import reason_of
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import by_row, mean_interval, pass_at_k, powers_of_two


def summarize(records: Sequence[Record]) -> dict[str, Any]:
    """The figures of one evaluation.

    `success` is the share of successes over the graded tasks, each task counting once however many samples it has, and
    its interval counts tasks, not samples: samples of one task are not independent. That is pass@1. `strict` is the
    same with the format demanded too. Where the samples are of several seeds, `seeds` has success for each, and
    `seed_spread` their standard deviation.

    pass@k is of the powers of two up to the number of samples; a task with fewer graded ones than k has no part in it.

    >>> summarize([Record(index=0, completion="", rewards={}, success=True, tokens=7, finish="stop")])["success"]
    1.0
    """
    if not records:
        raise ValueError("expected at least one record")
    right, strict = by_row(records), by_row(records, strict=True)
    passes = {}
    for k in powers_of_two(max(map(len, right.values()), default=0)):
        if shares := [pass_at_k(len(each), sum(each), k) for each in right.values() if len(each) >= k]:
            passes[str(k)] = (fmean(shares), mean_interval(shares))
    success, success_interval = _share(right)
    strict_share, strict_interval = _share(strict)
    reasons = Counter(reason_of(record) for record in records)
    return {
        "tasks": len(right),
        "completions": len(records),
        "ungraded": sum(record.success is None for record in records),
        "success": success,
        "success_interval": success_interval,
        "strict": strict_share,
        "strict_interval": strict_interval,
        "pass_at_k": {k: share for k, (share, _) in passes.items()},
        "pass_at_k_interval": {k: list(interval) for k, (_, interval) in passes.items()},
        **_by_seed(records),
        "format": fmean([bool(record.format) for record in records]),
        "mean_tokens": fmean([record.tokens or 0 for record in records]),
        "cut_off": fmean([record.finish == "length" for record in records]),
        "reasons": {reason: count / len(records) for reason, count in reasons.most_common()},
    }


def _by_seed(records: Sequence[Record]) -> dict[str, Any]:
    seeds: dict[int, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.seed is not None and record.success is not None:
            seeds[record.seed][record.index].append(record.success)
    if len(seeds) < 2:
        return {}
    shares = {str(seed): fmean([fmean(right) for right in tasks.values()]) for seed, tasks in seeds.items()}
    return {"seeds": shares, "seed_spread": stdev(shares.values())}


def _share(tasks: Mapping[int, Sequence[bool]]) -> tuple[float | None, list[float] | None]:
    if not tasks:
        return None, None
    shares = [fmean(right) for right in tasks.values()]
    return fmean(shares), list(mean_interval(shares))


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two summaries side by side, with the settings in which they differ apart from the model."""
    old, new = before.get("settings", {}), after.get("settings", {})
    names = sorted((old.keys() | new.keys()) - {"model", "weights"})
    different = {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
    return {"before": dict(before), "after": dict(after), "different_settings": different}


def comparison_table(comparison: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows (measure, before, after) for people, see `figures_table`."""
    return figures_table((comparison["before"], comparison["after"]))


def figures_table(sides: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows (measure, its value in each summary); reasons that make up at least 1% in one of them come last."""
    most: Counter[str] = Counter()
    for side in sides:
        most |= Counter(side["reasons"])
    shown = [reason for reason, share in most.most_common() if share >= 0.01]
    shares = [(f"reason: {each}", *(f"{side['reasons'].get(each, 0):.1%}" for side in sides)) for each in shown]
    return measures(sides) + shares


def measures(sides: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows (measure, its value in each summary); "-" where a summary lacks it."""

    def row(label: str, name: str, key: str | None = None) -> tuple[str, ...]:
        values = [(side.get(name), side.get(f"{name}_interval")) for side in sides]
        if key is not None:
            values = [((value or {}).get(key), (interval or {}).get(key)) for value, interval in values]
        return (label, *(_text(*each) for each in values))

    def keys(name: str) -> list[str]:
        return sorted({key for side in sides for key in side.get(name, ())}, key=int)

    def figures(label: str, name: str, form: str) -> tuple[str, ...]:
        return (label, *(f"{side[name]:{form}}" for side in sides))

    rows = [
        figures("tasks", "tasks", ","),
        row("success", "success"),
        row("success with format", "strict"),
        *(row(f"pass@{k}", "pass_at_k", k) for k in keys("pass_at_k") if k != "1"),  # that is success
        *(row(f"success with seed {seed}", "seeds", seed) for seed in keys("seeds")),
        row("standard deviation over seeds", "seed_spread"),
        figures("format", "format", ".3f"),
        figures("mean length in tokens", "mean_tokens", ".0f"),
        figures("cut off at the longest length", "cut_off", ".3f"),
    ]
    return [each for each in rows if each[0] == "success" or set(each[1:]) != {"-"}]  # "-": nothing was graded


def _text(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if interval is None else " ({:.3f} to {:.3f})".format(*interval))
