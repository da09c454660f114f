"""Summaries of evaluations side by side, see `swift_rlvr.runs.statistics.summarize`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


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
        row("format", "format"),
        figures("mean length in tokens", "mean_tokens", ".0f"),
        row("cut off at the longest length", "cut_off"),
    ]
    return [each for each in rows if each[0] == "success" or set(each[1:]) != {"-"}]  # "-": nothing was graded


def _text(value: float | None, interval: Sequence[float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" + ("" if interval is None else " ({:.3f} to {:.3f})".format(*interval))
