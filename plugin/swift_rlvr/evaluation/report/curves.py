"""Logged steps -> panels of curves, for one run or several, and a picture of them for papers."""

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.utils.errors import require

# The beginnings of logged names that end in a level, of a curriculum, or in a task, of a mixture.
BY_LEVEL = "curriculum/success_"
BY_TASK = "success/"
HELD_OUT_BY_TASK = "eval/success/"
HELD_OUT_PASS = "eval/pass@"
# "rewards/CountdownReward/mean", or "eval_rewards/..." of ms-swift's own evaluation.
_MEAN = re.compile("(eval_)?rewards/(.*)/mean")

# Lines of a run in a panel of several, where colours tell the runs apart: solid and dashed.
LINES = 2
# Characters that fit on a panel.
LONGEST_TITLE = 48
LONGEST_LEGEND = 60
# Characters that fit above all panels, beside how the lines are smoothed.
LONGEST_SUPTITLE = 90
# The top of an axis for shares, which are at most 1.
SHARE_TOP = 1.05

# Logged lines, each with its `step`.
Steps = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Panel:
    """One set of axes: the logged values `keys`, each with its legend, over the training step.

    top: of the axis; None for as high as the values. run: the only run whose values it shows.
    """

    title: str
    unit: str
    keys: dict[str, str]
    top: float | None = None
    run: str | None = None


@dataclass(frozen=True)
class Curve:
    """A line of a panel: logged values over their steps. smooth: their moving average. color: a number."""

    label: str
    color: int
    dashed: bool
    steps: list[int]
    values: list[float]
    smooth: list[float]


def points(steps: Steps, key: str) -> list[tuple[int, float]]:
    """The steps in which a value was logged, with it."""
    return [(row["step"], row[key]) for row in steps if is_number(row.get(key))]


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """Centred moving average; at the ends over as many values as there are.

    >>> smoothed([0, 3, 6, 9], window=3)
    [1.5, 3.0, 6.0, 7.5]
    """
    half = window // 2
    averages = []
    for index in range(len(values)):
        part = values[max(0, index - half) : index + half + 1]
        averages.append(sum(part) / len(part))
    return averages


def smoothing_window(steps: int) -> int:
    """Over how many steps the curves are averaged, an odd number."""
    return max(1, steps // 8) | 1


def panels(steps: Steps) -> list[Panel]:
    """The panels that the logged values allow: success, rewards, held-out tasks, format, and the
    rest.
    """
    # ms-swift also logs texts, such as the time that is left.
    logged = set()
    for row in steps:
        for key, value in row.items():
            if is_number(value):
                logged.add(key)
    held_out = {"eval/success": "success", "eval/strict": "success with format"}
    ks = _numbers_after(HELD_OUT_PASS, logged)
    # The largest k alone: pass@1 is success, and those between lie between.
    if ks:
        held_out[f"{HELD_OUT_PASS}{ks[-1]}"] = f"pass@{ks[-1]}"
    levels = {}
    for level in _numbers_after(BY_LEVEL, logged):
        levels[f"{BY_LEVEL}{level}"] = f"level {level}"

    def shares(title: str, keys: dict[str, str], unit: str = "share of completions") -> Panel:
        return Panel(title, unit, keys, SHARE_TOP)

    lengths = {"completions/mean_length": "mean", "completions/max_length": "longest"}
    # Ours, and that of ms-swift's own evaluation.
    held_out_lengths = {"eval/mean_length": "mean", "eval_completions/mean_length": "mean"}
    formats = {"format": "training", "eval/format": "held-out tasks"}
    possible = [
        shares("Success", {"success": "success", "strict": "success with format"}),
        shares("Memorised tests", {"memorised": "pass only the visible tests"}),
        shares("Success by task", _named_after(BY_TASK, logged)),
        Panel("Rewards", "mean", _means(logged, None) or {"reward": "reward"}),
        shares("Held-out tasks", held_out, "share"),
        shares("Held-out success by task", _named_after(HELD_OUT_BY_TASK, logged), "share"),
        Panel("Held-out reward", "mean", _means(logged, "eval_")),
        shares("Format", formats, "share in the right format"),
        Panel("Completion length", "tokens", lengths),
        Panel("Held-out length", "tokens", held_out_lengths),
        Panel(
            "Reward spread within a group",
            "standard deviation",
            {"reward_std": "all rewards, weighted"},
        ),
        Panel("KL to the reference policy", "nats per token (k3)", {"kl": "KL"}),
        shares("Groups without spread (no gradient)", {"frac_reward_zero_std": "groups"}, "share"),
        Panel("Level of the sampled tasks", "mean", {"curriculum/level": "level"}),
        shares("Success by level, estimated", levels),
    ]
    shown = []
    for panel in possible:
        keys = {key: legend for key, legend in panel.keys.items() if key in logged}
        if keys:
            shown.append(replace(panel, keys=keys))
    return shown + reason_panels(steps)


def _named_after(start: str, logged: Iterable[str]) -> dict[str, str]:
    """The logged names that begin so, with what follows as their legend."""
    return {key: key.removeprefix(start) for key in sorted(logged) if key.startswith(start)}


def _means(logged: Iterable[str], prefix: str | None) -> dict[str, str]:
    """The means of the rewards, with the rewards' names. prefix: "eval_" or None."""
    means = {}
    for key in sorted(logged):
        match = _MEAN.fullmatch(key)
        if match is not None and match[1] == prefix:
            means[key] = match[2]
    return means


def _numbers_after(start: str, logged: Iterable[str]) -> list[int]:
    """The numbers in which logged names end that begin so, ascending."""
    return sorted(map(int, _named_after(start, logged).values()))


def reason_panels(steps: Steps, rewards: int = 4, reasons: int = 6) -> list[Panel]:
    """The most frequent reasons of the rewards; ms-swift logs them with `--callbacks
    reward_reasons`.

    rewards, reasons: how many rewards are shown, and how many reasons of each.
    """
    other_task = OTHER_TASK.replace(" ", "_")
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for row in steps:
        for key, value in row.items():
            # A key is "reasons/REWARD/REASON".
            if not key.startswith("reasons/") or key.endswith(f"/{other_task}"):
                continue
            if is_number(value):
                totals[key.split("/")[1]][key] += value
    shown = []
    for name in sorted(totals)[:rewards]:
        legend: dict[str, str] = {}
        for key, total in totals[name].most_common(reasons):
            # The first one in any case; others where they are at least a hundredth of all.
            if not legend or total >= 0.01 * len(steps):
                legend[key] = key.rpartition("/")[2].replace("_", " ")
        title = f"Why: {name}"
        if len(legend) == 1:
            (only,) = legend.values()
            title += f", {only}"
        shown.append(Panel(title, "share of completions", legend, SHARE_TOP))
    return shown


def panels_of(runs: Mapping[str, Steps]) -> list[Panel]:
    """The panels of one run or several. One with more keys than there are kinds of lines is there
    once for each run.
    """
    shown = []
    for panel in panels(list(chain.from_iterable(runs.values()))):
        if len(runs) == 1 or len(panel.keys) <= LINES:
            shown.append(panel)
            continue
        for label, steps in runs.items():
            if any(points(steps, key) for key in panel.keys):
                shown.append(replace(panel, title=f"{panel.title} · {label}", run=label))
    return shown


def curves(panel: Panel, runs: Mapping[str, Steps]) -> list[Curve]:
    """The lines of a panel: a colour for each run where it shows several, else for each key."""
    shows_several = len(runs) > 1 and panel.run is None
    drawn = []
    for run_number, (run, steps) in enumerate(runs.items()):
        if panel.run not in (None, run):
            continue
        for key_number, (key, legend) in enumerate(panel.keys.items()):
            logged = points(steps, key)
            if not logged:
                continue
            numbers, values = map(list, zip(*logged, strict=True))
            # There are few evaluations, each over many completions.
            window = 1 if key.startswith("eval") else smoothing_window(len(values))
            label = legend
            if shows_several:
                label = f"{run} · {legend}" if len(panel.keys) > 1 else run
            curve = Curve(
                label=label,
                color=run_number if shows_several else key_number,
                # Often the same as success, which has to be seen behind it.
                dashed=key_number > 0 and (shows_several or key.endswith("strict")),
                steps=numbers,
                values=values,
                smooth=smoothed(values, window),
            )
            drawn.append(curve)
    return drawn


def draw(runs: Mapping[str, Steps], path: str | Path, title: str = "") -> None:
    """Write one PNG with all panels: raw values faint, their moving average as a line."""
    require("matplotlib", extra="report", purpose="curves.png")
    import matplotlib

    # No window: most trainings run on machines without a screen.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = panels_of(runs)
    rows = (len(shown) + 1) // 2
    figure, axes = pyplot.subplots(
        rows, 2, figsize=(11, 3.1 * rows + 0.4), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes.flat, shown, strict=False):
        draw_panel(axis, panel, curves(panel, runs))
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    window = smoothing_window(max(map(len, runs.values())))
    averaged = f"lines: mean over {window} steps" if window > 1 else ""
    parts = (fitting(title, LONGEST_SUPTITLE), averaged)
    figure.suptitle(_plain(" · ".join(filter(None, parts))))
    with warnings.catch_warnings():
        # A name in Chinese or an emoji, which the page shows and matplotlib's font draws as boxes.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        figure.savefig(path, dpi=110)
    pyplot.close(figure)


def draw_panel(axis: Any, panel: Panel, drawn: Sequence[Curve]) -> None:
    """Draw the curves of a panel on matplotlib's axes."""
    for curve in drawn:
        style: dict[str, Any] = {
            "color": f"C{curve.color}",
            "linestyle": "--" if curve.dashed else "-",
        }
        # One or two points make no line that could be seen.
        marker = "o" if len(curve.steps) < 3 else ""
        label = _plain(fitting(curve.label, LONGEST_LEGEND))
        axis.plot(curve.steps, curve.smooth, linewidth=2, marker=marker, label=label, **style)
        axis.plot(curve.steps, curve.values, linewidth=1, alpha=0.3, **style)
    title = _plain(fitting(panel.title, LONGEST_TITLE))
    axis.set(title=title, xlabel="training step", ylabel=_plain(panel.unit))

    data = axis.dataLim
    bottom = min(0, axis.get_ylim()[0]) if data.y0 < 0 else 0
    top = panel.top
    if top is None and data.y1 > 0:
        # Room above the highest value, also where others are far below zero.
        top = data.y1 + 0.05 * (data.y1 - bottom)
    axis.set_ylim(bottom=bottom, top=top)
    if data.x0 == data.x1:
        # A single step, between whole ones.
        axis.set_xlim(data.x0 - 1, data.x1 + 1)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(alpha=0.3)
    if len(drawn) > 1:
        from matplotlib.transforms import ScaledTranslation

        longest = max(len(fitting(curve.label, LONGEST_LEGEND)) for curve in drawn)
        # In points, since a legend of many lines makes the axes lower, and not their label.
        below_label = ScaledTranslation(0, -34 / 72, axis.figure.dpi_scale_trans)
        axis.legend(
            frameon=False,
            fontsize="small",
            # About 76 characters fit below the axes, and a line's sample takes 8.
            ncols=max(1, 76 // (longest + 8)),
            loc="upper center",
            bbox_to_anchor=(0.5, 0),
            bbox_transform=axis.transAxes + below_label,
        )


def fitting(text: str, longest: int) -> str:
    """The text, without its middle where it is too long.

    >>> fitting("Rewards · out/stable/seed-7/run-12", longest=27)
    'Rewards · o ... ed-7/run-12'
    """
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def _plain(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")
