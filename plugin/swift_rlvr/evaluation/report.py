"""The files of a training run -> a picture of its curves and a page of its completions.

Reads what every trainer writes: `logging.jsonl` (one object per logging step), `completions.jsonl` (one table per
logging step; ms-swift writes it with `--log_completions true`), and the summaries of evaluations.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError, require
from swift_rlvr.evaluation.summary import comparison_table
from swift_rlvr.jsonl import read_jsonl
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.format import FormatReward
from swift_rlvr.runs.folder import COMPLETIONS, LOG, find_run

FORMATS = {"Format"} | {reward.__name__ for reward in REWARDS.values() if issubclass(reward, FormatReward)}
"""The rewards for the format, by the class names under which the trainers log them: ms-swift's own, and ours."""


@dataclass(frozen=True)
class Panel:
    """One set of axes: the logged values `keys`, each with its legend, over the training step."""

    title: str
    unit: str
    keys: dict[str, str]
    top: float | None = None


def read_steps(run: str | Path) -> list[dict[str, Any]]:
    """The training steps of a run in order, each with `step` (from 1); of one that a resumed run repeats, the last."""
    path, steps = Path(run) / LOG, {}
    for number, row in read_jsonl(path):
        if "reward" not in row:
            continue  # an evaluation, or the end of the training
        step = re.match(r"([0-9]+)/", str(row.get("global_step/max_steps")))
        if step is None:
            raise InputError(f'{path}, line {number}: expected "global_step/max_steps" such as "7/100"')
        steps[int(step[1])] = {"step": int(step[1]), **row}
    if not steps:
        raise InputError(f'{path}: no training step is logged, no line has "reward"')
    return [steps[step] for step in sorted(steps)]


def smoothed(values: Sequence[float], window: int) -> list[float]:
    """Centred moving average; at the ends over as many values as there are.

    >>> smoothed([0, 3, 6, 9], window=3)
    [1.5, 3.0, 6.0, 7.5]
    """
    half = window // 2
    parts = [values[max(0, i - half) : i + half + 1] for i in range(len(values))]
    return [sum(part) / len(part) for part in parts]


def panels(steps: Sequence[dict[str, Any]]) -> list[Panel]:
    """The panels that the logged values allow: the rewards for the format, all other rewards, and the rest."""
    logged = {key for step in steps for key in step}
    names = {key: key.split("/")[1] for key in sorted(logged) if re.fullmatch("rewards/.*/mean", key)}
    rewards = {key: name for key, name in names.items() if name not in FORMATS}
    formats = {key: name for key, name in names.items() if name in FORMATS}
    reward = next(iter(rewards.values()), "")
    wanted = [
        Panel("Reward", f"mean {reward}" if len(rewards) == 1 else "mean", rewards or {"reward": "reward"}),
        Panel("Format", "share in the format", formats, 1.05),
        Panel("Completion length", "tokens", {"completions/mean_length": "mean", "completions/max_length": "longest"}),
        Panel("Spread of the reward within a group", "standard deviation", {"reward_std": "all rewards, weighted"}),
        Panel("KL to the reference policy", "nats per token (k3)", {"kl": "KL"}),
        Panel("Groups without spread (no gradient)", "share", {"frac_reward_zero_std": "groups"}, 1.05),
    ]
    return [panel for panel in wanted if logged & panel.keys.keys()] + reason_panels(steps)


def reason_panels(steps: Sequence[dict[str, Any]], rewards: int = 4, reasons: int = 6) -> list[Panel]:
    """The most frequent reasons of the rewards; ms-swift logs them with `--callbacks reward_reasons`."""
    totals: dict[str, dict[str, float]] = {}
    for step in steps:
        for key, value in step.items():
            if key.startswith("reasons/") and _finite(value):
                shares = totals.setdefault(key.split("/")[1], {})
                shares[key] = shares.get(key, 0.0) + value
    shown = []
    for name in sorted(totals)[:rewards]:
        frequent = sorted(totals[name], key=lambda key: -totals[name][key])[:reasons]
        frequent = [key for key in frequent if totals[name][key] >= 0.01 * len(steps)] or frequent[:1]
        legend = {key: key.rpartition("/")[2].replace("_", " ") for key in frequent}
        shown.append(Panel(f"Why: {name}", "share of completions", legend, 1.05))
    return shown


def read_completions(run: str | Path) -> list[dict[str, Any]]:
    """The logged tables of completions in order, each a dict of lists of equal length; [] where none was logged."""
    path = Path(run) / COMPLETIONS
    if not path.is_file():
        return []
    tables = []
    for number, table in read_jsonl(path):
        if not {"step", "prompt", "completion"} <= table.keys():
            raise InputError(f"{path}, line {number}: expected the lists step, prompt and completion")
        if table["completion"]:
            tables.append(table)
    return tables


def write_report(
    run: str | Path, out: str | Path, comparison: Mapping[str, Any] | None = None, examples: int = 3
) -> tuple[Path, Path]:
    """Write `curves.png` and `report.md` into the folder `out`; returns their paths.

    Args:
        comparison: of the evaluations before and after training, from `swift_rlvr.evaluation.summary.compare`.
        examples: completions to show of each of the first, the middle and the last logged step.
    """
    run, out = find_run(run), Path(out)
    steps, tables = read_steps(run), read_completions(run)
    curves, page = out / "curves.png", out / "report.md"
    draw(steps, curves, title=f"GRPO, {len(steps)} steps")
    lines = [f"# {run.name}", "", f"![curves]({curves.name})", ""]
    lines += ["| logged in training | first step | last step |", "|---|---|---|"]
    lines += [
        f"| {panel.title}: {label} | {_figure(steps[0].get(key))} | {_figure(steps[-1].get(key))} |"
        for panel in panels(steps)
        for key, label in panel.keys.items()
    ]
    if comparison is not None:
        lines += ["", "| held-out tasks | before | after |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in comparison_table(comparison)]
    for table in {id(tables[i]): tables[i] for i in (0, len(tables) // 2, -1)}.values() if tables else ():
        lines += ["", f"## Completions of step {table['step'][0]}", ""]
        lines += [f"{examples} of {len(table['completion'])}, evenly spaced, not selected."]
        for i in range(0, len(table["completion"]), max(1, -(-len(table["completion"]) // examples))):
            lines += _example(table, i)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return curves, page


def draw(steps: Sequence[dict[str, Any]], path: str | Path, title: str = "") -> None:
    """Write one PNG with all panels: raw values faint, their moving average as a line."""
    require("matplotlib", extra="report", purpose="`swift-rlvr report`")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = panels(steps)
    rows = (len(shown) + 1) // 2
    figure, axes = pyplot.subplots(rows, 2, figsize=(11, 3.1 * rows + 0.4), squeeze=False, layout="constrained")
    window = max(1, len(steps) // 8) | 1
    for axis, panel in zip(axes.flat, shown, strict=False):
        for key, label in panel.keys.items():
            points = [(step["step"], step[key]) for step in steps if _finite(step.get(key))]
            if not points:
                continue
            x, y = zip(*points, strict=True)
            (line,) = axis.plot(x, smoothed(y, window), linewidth=2, label=label)
            axis.plot(x, y, linewidth=1, alpha=0.3, color=line.get_color())
        axis.set(title=panel.title, xlabel="training step", ylabel=panel.unit)
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]) if axis.dataLim.y0 < 0 else 0, top=panel.top)
        axis.grid(alpha=0.3)
        if len(panel.keys) > 1:
            many = {"ncols": 3, "fontsize": "small", "loc": "upper center"} if len(panel.keys) > 2 else {}
            axis.legend(frameon=False, **many)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    averaged = f"lines: mean over {window} steps" if window > 1 else ""
    figure.suptitle(" · ".join(part for part in (title, averaged) if part))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-"


def _example(table: Mapping[str, Any], i: int, longest: int = 2000) -> list[str]:
    """Markdown of one logged completion: its prompt's user turn, its rewards, its text."""
    names = [name for name in table if name not in ("step", "prompt", "completion") and len(table[name]) > i]
    values = ", ".join(f"{name} {_figure(table[name][i])}" for name in names)
    text = str(table["completion"][i])
    if len(text) > longest:
        text = f"{text[:longest]} ... ({len(text) - longest} more characters)"
    # A fence longer than any run of backticks in the text, so that no completion can end it.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return ["", f"**{_question(str(table['prompt'][i]))}** {values}", "", fence, text, fence]


def _question(prompt: str) -> str:
    """The first line of the last user turn of a rendered prompt; the first 100 characters of what has no such turn."""
    turn = prompt.rpartition("<|im_start|>user\n")[2] or prompt
    return turn.strip().splitlines()[0][:100] if turn.strip() else ""
