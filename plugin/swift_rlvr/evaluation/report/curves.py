"""Logged steps -> panels of curves, for one run or several, and a picture of them for papers."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.utils.errors import require

SUCCESS = "curriculum/success_"  # and the level, of a training that draws its rows by it
BY_TASK = ("success/", "eval/success/")  # and the task, of a mixture
LINES = 2  # of a run in a panel of several, where colours tell the runs apart: solid and dashed

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Panel:
    """One set of axes: the logged values `keys`, each with its legend, over the training step."""

    title: str
    unit: str
    keys: dict[str, str]
    top: float | None = None
    run: str | None = None  # the only run whose values it shows


def points(rows: Rows, key: str) -> list[tuple[int, float]]:
    """The steps in which a value was logged, with it."""
    return [(row["step"], row[key]) for row in rows if is_number(row.get(key))]


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """Centred moving average; at the ends over as many values as there are.

    >>> smoothed([0, 3, 6, 9], window=3)
    [1.5, 3.0, 6.0, 7.5]
    """
    half = window // 2
    parts = [values[max(0, i - half) : i + half + 1] for i in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def smoothing_window(steps: int) -> int:
    """Over how many steps the curves are averaged, an odd number."""
    return max(1, steps // 8) | 1


def panels(steps: Rows) -> list[Panel]:
    """The panels that the logged values allow: success, rewards, held-out tasks, format, and the
    rest.
    """
    logged = {key for step in steps for key, value in step.items() if is_number(value)}
    means = [
        match for key in sorted(logged) if (match := re.fullmatch("(eval_)?rewards/(.*)/mean", key))
    ]
    rewards, own = (
        {match[0]: match[2] for match in means if match[1] == prefix} for prefix in (None, "eval_")
    )
    held_out = {"eval/success": "success", "eval/strict": "strict"}
    largest = max(
        (key for key in logged if key.startswith("eval/pass@")),
        key=lambda key: int(key[10:]),
        default=None,
    )
    held_out |= {largest: largest.removeprefix("eval/")} if largest else {}
    by_level = sorted(int(key[len(SUCCESS) :]) for key in logged if key.startswith(SUCCESS))
    levels = {f"{SUCCESS}{level}": f"level {level}" for level in by_level}
    tasks, own_tasks = (
        {key: key[len(start) :] for key in sorted(logged) if key.startswith(start)}
        for start in BY_TASK
    )
    wanted = [
        Panel(
            "Success",
            "share of completions",
            {"success": "success", "strict": "in the format too"},
            1.05,
        ),
        Panel("Success by task", "share of completions", tasks, 1.05),
        Panel("Rewards", "mean", rewards or {"reward": "reward"}),
        Panel("Held-out tasks", "share", held_out, 1.05),
        Panel("Held-out success by task", "share", own_tasks, 1.05),
        Panel("Held-out reward", "mean", own),
        Panel(
            "Format",
            "share in the format",
            {"format": "training", "eval/format": "held-out tasks"},
            1.05,
        ),
        Panel(
            "Completion length",
            "tokens",
            {"completions/mean_length": "mean", "completions/max_length": "longest"},
        ),
        Panel(
            "Held-out length",
            "tokens",
            {"eval/mean_length": "mean", "eval_completions/mean_length": "mean"},
        ),
        Panel(
            "Spread of the reward within a group",
            "standard deviation",
            {"reward_std": "all rewards, weighted"},
        ),
        Panel("KL to the reference policy", "nats per token (k3)", {"kl": "KL"}),
        Panel(
            "Groups without spread (no gradient)", "share", {"frac_reward_zero_std": "groups"}, 1.05
        ),
        Panel("Level of the tasks that are drawn", "mean", {"curriculum/level": "level"}),
        Panel("Success by level, estimated", "share of completions", levels, 1.05),
    ]
    shown = [
        replace(panel, keys={key: name for key, name in panel.keys.items() if key in logged})
        for panel in wanted
    ]
    return [panel for panel in shown if panel.keys] + reason_panels(steps)


def reason_panels(steps: Rows, rewards: int = 4, reasons: int = 6) -> list[Panel]:
    """The most frequent reasons of the rewards; ms-swift logs them with `--callbacks
    reward_reasons`.
    """
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for key, value in (each for step in steps for each in step.items()):
        if (
            key.startswith("reasons/")
            and not key.endswith(f"/{OTHER_TASK.replace(' ', '_')}")
            and is_number(value)
        ):
            totals[key.split("/")[1]][key] += value
    shown = []
    for name in sorted(totals)[:rewards]:
        frequent = [key for key, _ in totals[name].most_common(reasons)]
        frequent = [key for key in frequent if totals[name][key] >= 0.01 * len(steps)] or frequent[
            :1
        ]
        legend = {key: key.rpartition("/")[2].replace("_", " ") for key in frequent}
        only = f", {legend[frequent[0]]}" if len(frequent) == 1 else ""
        shown.append(Panel(f"Why: {name}{only}", "share of completions", legend, 1.05))
    return shown


def panels_of(runs: Mapping[str, Rows]) -> list[Panel]:
    """The panels of one run or several. One with more keys than there are kinds of lines is there
    once for each run.
    """
    shown = []
    for panel in panels([row for rows in runs.values() for row in rows]):
        if len(runs) == 1 or len(panel.keys) <= LINES:
            shown.append(panel)
            continue
        for label, rows in runs.items():
            if any(points(rows, key) for key in panel.keys):
                shown.append(replace(panel, title=f"{panel.title} · {label}", run=label))
    return shown


def curves(panel: Panel, runs: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """The lines of a panel: a colour for each run where it shows several, else for each key;
    smooth: their average.
    """
    several = len(runs) > 1 and panel.run is None
    drawn = []
    for number, (label, rows) in enumerate(runs.items()):
        if panel.run not in (None, label):
            continue
        for place, (key, name) in enumerate(panel.keys.items()):
            if not (logged := points(rows, key)):
                continue
            steps, values = map(list, zip(*logged, strict=True))
            smooth = smoothed(values, 1 if key.startswith("eval") else smoothing_window(len(steps)))
            if several:
                name = f"{label} · {name}" if len(panel.keys) > 1 else label
            curve = {
                "label": name,
                "color": number if several else place,
                "dashed": several and place > 0,
            }
            drawn.append(curve | {"steps": steps, "values": values, "smooth": smooth})
    return drawn


def draw(runs: Mapping[str, Rows], path: str | Path, title: str = "") -> None:
    """Write one PNG with all panels: raw values faint, their moving average as a line."""
    require("matplotlib", extra="report", purpose="curves.png")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = panels_of(runs)
    rows = (len(shown) + 1) // 2
    figure, axes = pyplot.subplots(
        rows, 2, figsize=(11, 3.1 * rows + 0.4), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes.flat, shown, strict=False):
        drawn = curves(panel, runs)
        for curve in drawn:
            x = curve["steps"]
            style: dict[str, Any] = {
                "color": f"C{curve['color']}",
                "linestyle": "--" if curve["dashed"] else "-",
            }
            axis.plot(x, curve["smooth"], linewidth=2, label=_plain(curve["label"]), **style)
            axis.plot(
                x,
                curve["values"],
                linewidth=1,
                alpha=0.3,
                marker="o" if len(x) < 3 else "",
                **style,
            )
        axis.set(title=_plain(panel.title), xlabel="training step", ylabel=_plain(panel.unit))
        top = panel.top or (axis.dataLim.y1 * 1.05 if axis.dataLim.y1 > 0 else None)
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]) if axis.dataLim.y0 < 0 else 0, top=top)
        axis.grid(alpha=0.3)
        if len(drawn) > 1:
            columns = max(1, 76 // (max(len(curve["label"]) for curve in drawn) + 8))
            axis.legend(
                frameon=False,
                fontsize="small",
                ncols=columns,
                loc="upper center",
                bbox_to_anchor=(0.5, -0.2),
            )
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    window = smoothing_window(max(map(len, runs.values())))
    averaged = f"lines: mean over {window} steps" if window > 1 else ""
    figure.suptitle(_plain(" · ".join(part for part in (title, averaged) if part)))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _plain(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")
