"""What there is to observe of a run, as in the Countdown experiment, in figures.

The experiment: Qwen2.5-3B-Instruct, 2,000 steps of 128 completions
(scripts/configs/countdown.yaml).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from swift_rlvr.evaluation.report.curves import Steps, points, smoothed, smoothing_window
from swift_rlvr.evaluation.report.reading import Run

EXPERIMENT_TASK = "countdown"
# What the experiment has seen of each observation.
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
    return {
        "Success": _success(run),
        "Format": _change(run.steps, "format"),
        "Spread within a group": _spread(run),
        "Kinds of failure": _failures(failures),
        "Length": _length(run),
    }


def observed_success(run: Run) -> str:
    """The success that a run has logged, of its completions and of held-out tasks, in a sentence."""
    return f"Success in training: {_success(run)}."


def _success(run: Run) -> str:
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


def _spread(run: Run) -> str:
    spread = _change(run.steps, "reward_std")
    without_any = _change(run.steps, "frac_reward_zero_std")
    if spread == UNKNOWN:
        return UNKNOWN
    text = f"standard deviation {spread}"
    if without_any != UNKNOWN:
        text += f"; groups without spread {without_any}"
    return text


def _failures(failures: Mapping[int, Mapping[str, int]]) -> str:
    """The most frequent reasons of the last tenth of the steps."""
    reasons = Counter[str]()
    _, last_steps = _tenths(sorted(failures))
    for step in last_steps:
        reasons.update(failures[step])
    if not reasons:
        return "reasons not logged"
    shares = []
    for reason, count in reasons.most_common(3):
        shares.append(f"{reason} {count / reasons.total():.0%}")
    return f"last failures: {', '.join(shares)}"


def _length(run: Run) -> str:
    length = _change(run.steps, "completions/mean_length", ".0f")
    if length == UNKNOWN:
        return UNKNOWN
    shortest, step = _extreme(run.steps, "completions/mean_length", min)
    return f"{length} tokens, shortest {shortest:.0f} around step {step:,}"


def _tenths(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The first and the last tenth, each of at least one value where there is one."""
    size = max(1, len(values) // 10)
    return values[:size], values[-size:]


def _change(steps: Steps, key: str, form: str = ".2f") -> str:
    """The mean over the first and the last tenth of the steps."""
    logged = points(steps, key)
    if not logged:
        return UNKNOWN
    first, last = (fmean(value for _, value in tenth) for tenth in _tenths(logged))
    return f"{first:{form}} → {last:{form}}"


def _extreme(steps: Steps, key: str, choose: Callable) -> tuple[float, int]:
    """The highest or lowest smoothed value and its step. choose: max or min."""
    logged = points(steps, key)
    values = smoothed([value for _, value in logged], smoothing_window(len(logged)))
    numbers = [step for step, _ in logged]
    return choose(zip(values, numbers, strict=True), key=lambda pair: pair[0])
