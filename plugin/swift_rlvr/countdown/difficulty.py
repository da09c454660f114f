"""How hard Countdown tasks are: how many random attempts it takes until one of them hits the target, on average.

An attempt takes two of the numbers at random, in random order, joins them by one of + - * /, and goes on with the
result in place of the two until one number is left. Its chance of success is exact for up to EXACT numbers. With more,
random first steps leave EXACT of them, and the chance is the mean over DRAWS such starts.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import quantiles
from typing import Any

EXACT, DRAWS = 4, 32
Value = tuple[int, int]  # numerator and denominator > 0, reduced


def chance(nums: Sequence[int], target: int) -> float:
    """The chance that a random attempt hits the target.

    >>> chance([2, 3], 5), chance([2, 3], 1), chance([2, 3], 7)
    (0.25, 0.125, 0.0)
    """
    values = tuple(sorted((number, 1) for number in nums))
    memory: dict[tuple[Value, ...], float] = {}
    if len(values) <= EXACT:
        return _chance(values, (target, 1), memory)
    draw = random.Random(repr((values, target)))
    return sum(_chance(_reduced(values, draw), (target, 1), memory) for _ in range(DRAWS)) / DRAWS


def summary(tasks: Iterable[tuple[Sequence[int], int]]) -> dict[int, list[float]]:
    """For each count of numbers the chances of its tasks, in their order."""
    chances: dict[int, list[float]] = {}
    for nums, target in tasks:
        chances.setdefault(len(nums), []).append(chance(nums, target))
    return dict(sorted(chances.items()))


def figures(chances: Mapping[int, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """For each count of numbers: how many tasks, how many without a hit, and quartiles of the attempts needed.

    >>> figures({2: [0.25, 0.125, 0.0]})
    {'2': {'tasks': 3, 'no_hit': 1, 'attempts': [5, 6, 7]}}
    """
    rows = {}
    for count, values in chances.items():
        attempts = sorted(1 / value for value in values if value)
        quartiles = quantiles(attempts, n=4, method="inclusive") if len(attempts) > 1 else attempts * 3
        rows[str(count)] = {
            "tasks": len(values),
            "no_hit": len(values) - len(attempts),
            "attempts": [round(value) for value in quartiles],
        }
    return rows


def draw_picture(chances: Mapping[int, Sequence[float]], title: str, path: str | Path) -> None:
    """A histogram of the attempts needed, one row of axes for each count of numbers."""
    from matplotlib.figure import Figure

    all_attempts = [1 / value for values in chances.values() for value in values if value] or [1.0]
    low, high = math.log10(min(all_attempts)), math.log10(max(all_attempts))
    edges = [10 ** (low + (high - low + 1e-9) * step / 24) for step in range(25)]
    figure = Figure(figsize=(8, 1.2 + 1.9 * len(chances)), layout="constrained")
    axes = figure.subplots(len(chances), 1, sharex=True, squeeze=False)[:, 0]
    for number, (axis, (count, values)) in enumerate(zip(axes, chances.items(), strict=True)):
        attempts = [1 / value for value in values if value]
        axis.hist(attempts, bins=edges, color=f"C{number}", edgecolor="white", linewidth=0.5)
        if attempts:
            middle = sorted(attempts)[len(attempts) // 2]
            axis.axvline(middle, color="black", linestyle="--", linewidth=1, label=f"median {middle:,.0f}")
            axis.legend(frameon=False)
        missed = len(values) - len(attempts)
        note = f", {missed:,} without a hit" if missed else ""
        axis.set_title(f"{count} numbers: {len(values):,} tasks{note}", loc="left", fontsize=10)
        axis.set_ylabel("tasks")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set(xscale="log", xlabel="random attempts until a hit, on average")
    axes[-1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _chance(values: tuple[Value, ...], target: Value, memory: dict[tuple[Value, ...], float]) -> float:
    if len(values) == 1:
        return float(values[0] == target)
    if values not in memory:
        total = 0.0
        for first, second in combinations(range(len(values)), 2):
            rest = values[:first] + values[first + 1 : second] + values[second + 1 :]
            for weight, result in _results(values[first], values[second]):
                total += weight * _chance(tuple(sorted((*rest, result))), target, memory)
        memory[values] = total / math.comb(len(values), 2)
    return memory[values]


def _results(left: Value, right: Value) -> list[tuple[float, Value]]:
    """The possible results of two numbers, each with its chance; a division by zero has none."""
    (a, b), (c, d) = left, right
    results = [
        (0.25, a * d + c * b, b * d),
        (0.125, a * d - c * b, b * d),
        (0.125, c * b - a * d, b * d),
        (0.25, a * c, b * d),
        (0.125, a * d, b * c),
        (0.125, c * b, d * a),
    ]
    return [(weight, _reduced_fraction(n, d)) for weight, n, d in results if d]


def _reduced_fraction(numerator: int, denominator: int) -> Value:
    divisor = math.gcd(numerator, denominator) * (1 if denominator > 0 else -1)
    return numerator // divisor, denominator // divisor


def _reduced(values: tuple[Value, ...], draw: random.Random) -> tuple[Value, ...]:
    """The values after random steps, until EXACT are left or a division by zero has ended the attempt."""
    left = list(values)
    while len(left) > EXACT:
        second, first = (left.pop(place) for place in sorted(draw.sample(range(len(left)), 2), reverse=True))
        pick = draw.random()
        for weight, result in _results(first, second):
            pick -= weight
            if pick < 0:
                left.append(result)
                break
        else:
            return ((0, 0),)  # equals no target
    return tuple(sorted(left))
