"""What there is to observe of a run, as in the Countdown experiment, in figures; first and last logged values.

The experiment: Qwen2.5-3B-Instruct, 2,000 steps of 128 completions (scripts/configs/countdown.yaml).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.evaluation.report.curves import finite, panels, smoothed, smoothing_window
from swift_rlvr.evaluation.report.reading import Run

Rows = Sequence[Mapping[str, Any]]
Thinking = Mapping[int, Mapping[str, float]]  # by step, the sums over its completions

EXPERIMENT = {
    "Success": "rises to about 0.5",
    "Format": "stays at 0.9 to 1",
    "Spread within a group": "standard deviation 0.2 to 0.3 at the end: not converged",
    "Kinds of failure": "many are slips of arithmetic",
    "Length": "falls until about step 200, then rises to about 350 tokens",
    "Way of thinking": "from prose with made-up numbers to combinations tried one by one, with too low, too high",
}
UNKNOWN = "not logged"


def observations(run: Run, thoughts: Thinking, failures: Mapping[int, Mapping[str, int]]) -> dict[str, str]:
    """The figure of each observation in words. First and last mean the first and the last tenth of the steps.

    thoughts, failures: by step, what was counted in the completions.
    """
    found = {
        "Success": _success(run),
        "Format": _change(run.steps, "format"),
        "Spread within a group": _spread(run.steps),
        "Kinds of failure": _failures(failures, thoughts),
        "Length": _length(run.steps),
    }
    return found | ({"Way of thinking": _thinking(thoughts)} if run.is_countdown else {})


def first_and_last(run: Run) -> dict[str, tuple[str, str]]:
    """The logged values of the first and of the last step, by panel and key."""
    return {
        f"{panel.title}: {label}": (figure(run.steps[0].get(key)), figure(run.steps[-1].get(key)))
        for panel in panels(run.steps)
        for key, label in panel.keys.items()
    }


def thinking_rows(thoughts: Thinking) -> list[dict[str, Any]]:
    """Rows for the curves: trials a completion, and the share of completions with a comment."""
    return [
        {
            "step": step,
            "thinking/trials": sums["trials"] / sums["completions"],
            "thinking/comments": sums["comments"] / sums["completions"],
        }
        for step, sums in sorted(thoughts.items())
    ]


def figure(value: Any) -> str:
    """
    >>> figure(0.28125), figure(None), figure(60)
    ('0.2812', '-', '60')
    """
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-"


def _values(rows: Rows, key: str) -> list[tuple[int, float]]:
    return [(row["step"], row[key]) for row in rows if finite(row.get(key))]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    part = max(1, len(values) // 10)
    return sum(values[:part]) / part, sum(values[-part:]) / part


def _change(rows: Rows, key: str, digits: str = ".2f") -> str:
    points = _values(rows, key)
    if not points:
        return UNKNOWN
    first, last = _ends([value for _, value in points])
    return f"{first:{digits}} → {last:{digits}}"


def _success(run: Run) -> str:
    points = _values(run.steps, "success")
    if not points:
        return UNKNOWN
    smooth = smoothed([value for _, value in points], smoothing_window(len(points)))
    best = max(range(len(points)), key=smooth.__getitem__)
    text = f"{_change(run.steps, 'success')}, best {smooth[best]:.2f} around step {points[best][0]:,}"
    held_out = _values(run.held_out, "eval/success")
    if held_out:
        at, top = max(held_out, key=lambda point: point[1])
        text += f"; held-out tasks {held_out[0][1]:.2f} → {held_out[-1][1]:.2f}, best {top:.2f} at step {at:,}"
    return text


def _spread(rows: Rows) -> str:
    spread = _change(rows, "reward_std")
    if spread == UNKNOWN:
        return UNKNOWN
    none = _change(rows, "frac_reward_zero_std")
    return f"standard deviation {spread}" + ("" if none == UNKNOWN else f"; groups without any {none}")


def _failures(failures: Mapping[int, Mapping[str, int]], thoughts: Thinking) -> str:
    """Of the last tenth of the steps: why the verifier did not pay."""
    failed: Counter[str] = Counter()
    for step in sorted(failures)[-max(1, len(failures) // 10) :]:
        failed.update(failures[step])
    shares = [f"{reason} {count / failed.total():.0%}" for reason, count in failed.most_common(3)]
    text = f"of the last failures: {', '.join(shares)}" if shares else "the reasons are not logged"
    equations = _sums(thoughts, "equations")
    if any(count for count, _ in equations):
        part = max(1, len(equations) // 10)
        ends = [
            _share(_sums(thoughts, "false")[place], equations[place]) for place in (slice(part), slice(-part, None))
        ]
        if None not in ends:
            text += f"; equations that do not hold {ends[0]:.1%} → {ends[1]:.1%}"
    return text


def _length(rows: Rows) -> str:
    points = _values(rows, "completions/mean_length")
    if not points:
        return UNKNOWN
    smooth = smoothed([value for _, value in points], smoothing_window(len(points)))
    low = min(range(len(points)), key=smooth.__getitem__)
    change = _change(rows, "completions/mean_length", ".0f")
    return f"{change} tokens, shortest {smooth[low]:.0f} around step {points[low][0]:,}"


def _thinking(thoughts: Thinking) -> str:
    rows = thinking_rows(thoughts)
    if not rows:
        return "there are no completions"
    comments = _ends([row["thinking/comments"] for row in rows])
    return (
        f"{_change(rows, 'thinking/trials', '.1f')} trials a completion; "
        f"{comments[0]:.0%} → {comments[1]:.0%} of them say low or high"
    )


def _sums(thoughts: Thinking, name: str) -> list[tuple[float, int]]:
    return [(sums[name], step) for step, sums in sorted(thoughts.items())]


def _share(part: Sequence[tuple[float, int]], whole: Sequence[tuple[float, int]]) -> float | None:
    total = sum(value for value, _ in whole)
    return sum(value for value, _ in part) / total if total else None
