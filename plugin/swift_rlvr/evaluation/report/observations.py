"""What there is to observe of a run, in figures. An experiment with the same task may have seen the same
things: `Task.seen_in_experiment`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from swift_rlvr.evaluation.report.curves import Steps, points, smoothed, smoothing_window
from swift_rlvr.evaluation.report.reading import Run

UNKNOWN = "not logged"


def observations(run: Run, failures: Mapping[int, Mapping[str, int]]) -> dict[str, str]:
    """The figure of each observation in words. First and last mean the first and the last tenth of
    the steps.

    failures: by step, the reasons of wrong completions.
    """
    # Without any spread no group has a gradient, whatever the success is.
    spread = _change(run.steps, "reward_std")
    if spread != UNKNOWN:
        spread = f"standard deviation {spread}"
        without_any = _change(run.steps, "frac_reward_zero_std")
        if without_any != UNKNOWN:
            spread += f"; groups without spread {without_any}"

    length = _change(run.steps, "completions/mean_length", ".0f")
    if length != UNKNOWN:
        shortest, step = _extreme(run.steps, "completions/mean_length", min)
        length = f"{length} tokens, shortest {shortest:.0f} around step {step:,}"

    reasons = Counter[str]()
    _, last_steps = _tenths(sorted(failures))
    for step in last_steps:
        reasons.update(failures[step])
    kinds = "reasons not logged"
    if reasons:
        frequent = reasons.most_common(3)
        shares = [f"{reason} {count / reasons.total():.0%}" for reason, count in frequent]
        kinds = f"last failures: {', '.join(shares)}"

    return {
        "Success": success_in_training(run),
        "Format": _change(run.steps, "format"),
        "Spread within a group": spread,
        "Kinds of failure": kinds,
        "Length": length,
    }


def success_in_training(run: Run) -> str:
    """The success that a run has logged, of its completions and of held-out tasks."""
    text = _change(run.steps, "success")
    if text == UNKNOWN:
        return UNKNOWN
    best, step = _extreme(run.steps, "success", max)
    text += f", best {best:.2f} around step {step:,}"
    held_out = points(run.held_out, "eval/success")
    if held_out:
        _, first = held_out[0]
        _, last = held_out[-1]
        step, best = max(held_out, key=lambda point: point[1])
        text += f"; held-out tasks {first:.2f} → {last:.2f}, best {best:.2f} at step {step:,}"
    return text


def _tenths(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The first and the last tenth, each of at least one value where there is one."""
    size = max(1, len(values) // 10)
    return values[:size], values[-size:]


def _change(steps: Steps, key: str, form: str = ".2f") -> str:
    """The mean over the first and the last tenth of the steps."""
    logged = points(steps, key)
    if not logged:
        return UNKNOWN
    first, last = _tenths([value for _, value in logged])
    return f"{fmean(first):{form}} → {fmean(last):{form}}"


def _extreme(steps: Steps, key: str, choose: Callable) -> tuple[float, int]:
    """The highest or lowest smoothed value and its step. choose: max or min."""
    # The best single step is mostly luck, so the extreme is that of the curve which the page draws.
    numbers, logged = zip(*points(steps, key), strict=True)
    values = smoothed(logged, smoothing_window(len(logged)))
    return choose(zip(values, numbers, strict=True), key=lambda pair: pair[0])
