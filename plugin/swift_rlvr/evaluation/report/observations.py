"""What there is to observe of a run, as in the Countdown experiment, in figures.

The experiment: Qwen2.5-3B-Instruct, 2,000 steps of 128 completions
(scripts/configs/countdown.yaml).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from swift_rlvr.evaluation.report.curves import Rows, points, smoothed, smoothing_window
from swift_rlvr.evaluation.report.reading import Run

EXPERIMENT = {
    "Success": "rises to about 0.5",
    "Format": "stays at 0.9 to 1",
    "Spread within a group": "standard deviation 0.2 to 0.3 at the end: not converged",
    "Kinds of failure": "many are slips of arithmetic",
    "Length": "falls until about step 200, then rises to about 350 tokens",
}
UNKNOWN = "not logged"


def observations(run: Run, failures: Mapping[int, Mapping[str, int]]) -> dict[str, str]:
    """The figure of each observation in words. First and last mean the first and the last tenth of
    the steps.

    failures: by step, the reasons of wrong completions.
    """
    success, spread, none = (
        _change(run.steps, key) for key in ("success", "reward_std", "frac_reward_zero_std")
    )
    length = _change(run.steps, "completions/mean_length", ".0f")
    if success != UNKNOWN:
        success += ", best {:.2f} around step {:,}".format(*_extreme(run.steps, "success", max))
        if held_out := points(run.held_out, "eval/success"):
            at, top = max(held_out, key=lambda point: point[1])
            success += f"; held-out tasks {held_out[0][1]:.2f} → {held_out[-1][1]:.2f}, best {top:.2f} at step {at:,}"
    if spread != UNKNOWN:
        spread = f"standard deviation {spread}" + (
            "" if none == UNKNOWN else f"; groups without any {none}"
        )
    if length != UNKNOWN:
        shortest = _extreme(run.steps, "completions/mean_length", min)
        length += " tokens, shortest {:.0f} around step {:,}".format(*shortest)
    failed = sum((Counter(failures[step]) for step in _tenths(sorted(failures))[1]), Counter[str]())
    shares = ", ".join(
        f"{reason} {count / failed.total():.0%}" for reason, count in failed.most_common(3)
    )
    return {
        "Success": success,
        "Format": _change(run.steps, "format"),
        "Spread within a group": spread,
        "Kinds of failure": f"of the last failures: {shares}"
        if shares
        else "the reasons are not logged",
        "Length": length,
    }


def _tenths(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    part = max(1, len(values) // 10)
    return values[:part], values[-part:]


def _change(rows: Rows, key: str, form: str = ".2f") -> str:
    logged = points(rows, key)
    return (
        " → ".join(f"{fmean(value for _, value in part):{form}}" for part in _tenths(logged))
        if logged
        else UNKNOWN
    )


def _extreme(rows: Rows, key: str, choose: Callable) -> tuple[float, int]:
    """The highest or lowest smoothed value and its step. choose: max or min."""
    steps, values = zip(*points(rows, key), strict=True)
    return choose(
        zip(smoothed(values, smoothing_window(len(values))), steps, strict=True),
        key=lambda pair: pair[0],
    )
