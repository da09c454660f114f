"""Counts the solutions of many Countdown tasks at once, and finds every target that numbers reach.

Solutions are counted as essentially different ones, see countdown_forms.py. A solution counts where some way to write
it keeps to the settings: operators, no division by zero, and the intermediate results that they allow.

Floats choose and integers decide: a form is evaluated in float64 for many tasks at once, and each one within reach of
the target is confirmed with exact numerators and denominators.
Leaves out: more than 6 numbers, for which there are millions of forms (countdown_solver.py solves one such task).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np

from swift_rlvr.countdown.forms import ADD, DIV, MUL, SUB, Forms, forms_over
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

_CELLS = 1 << 16  # of a table of forms and tasks, so that it stays in the processor's cache
_OPERATORS_OF = ["".join(s for i, s in enumerate(OPERATORS) if bits >> i & 1) for bits in range(16)]


def count_solutions(nums: np.ndarray, target: np.ndarray, settings: CountdownSettings) -> np.ndarray:
    """How many essentially different solutions each task has; nums is an array (tasks, numbers), in any order.

    >>> from .countdown_settings import GAME24
    >>> count_solutions(np.array([[3, 3, 8, 8], [1, 1, 1, 1], [4, 6, 1, 1]]), np.array([24, 24, 24]), GAME24).tolist()
    [1, 0, 6]
    """
    solutions = np.zeros(len(nums), np.int64)
    for which, operands, forms in _groups(nums, settings, settings.restricted):
        for start, form, task in _hits(forms, operands, target[which], settings):
            task, form = _each_once(forms, start + task, form) if settings.restricted else (start + task, form)
            solutions[which] += np.bincount(task, minlength=len(which))
    return solutions


def difficulty(nums: np.ndarray, target: np.ndarray, settings: CountdownSettings) -> dict[str, np.ndarray | list]:
    """For each task `solutions`, and over all of them the fewest `operators` (such as "+*") and the least `depth`.

    They are those of a solution as it is written without needless parentheses: a - (b - c) is a + c - b and has two
    operators (where "+" is not allowed, one). Depth is how deep sums and products are nested: 1 for a + c - b, 2 for
    (a + c) * b. The fewest operators and the least depth may be those of different solutions; without a solution they
    are "" and 0.

    >>> from .countdown_settings import GAME24
    >>> {name: str(each[0]) for name, each in difficulty(np.array([[3, 3, 8, 8]]), np.array([24]), GAME24).items()}
    {'solutions': '1', 'operators': '-/', 'depth': '3'}
    """
    solutions = np.zeros(len(nums), np.int64)
    depth, used = np.full(len(nums), 127), np.full(len(nums), 127)
    for which, operands, forms in _groups(nums, settings, settings.restricted):
        for start, form, task in _hits(forms, operands, target[which], settings):
            task = start + task
            once = _each_once(forms, task, form)[0] if settings.restricted else task
            solutions[which] += np.bincount(once, minlength=len(which))
            np.minimum.at(depth, which[task], forms.depth[form])
            np.minimum.at(used, which[task], _RANK[forms.used[form]])
    none = solutions == 0
    depth[none] = used[none] = 0
    return {"solutions": solutions, "operators": [_OPERATORS_OF[_BY_RANK[rank]] for rank in used], "depth": depth}


def all_targets(nums: np.ndarray, settings: CountdownSettings) -> tuple[np.ndarray, np.ndarray]:
    """Every (row of nums, target within the settings' range) that can be reached, once, sorted.

    >>> from .countdown_settings import TINY
    >>> all_targets(np.array([[1, 1, 1], [9, 9, 9]]), TINY)[1].tolist()
    [1, 2, 3, 2, 8, 9, 10, 27]
    """
    found = [np.zeros((0, 2), np.int64)]
    for which, operands, forms in _groups(nums, settings, settings.restricted):
        for start, _, task, value in _hits(forms, operands, None, settings):
            pairs = np.unique(which[start + task] * (settings.target[1] + 1) + value)
            found.append(np.stack(np.divmod(pairs, settings.target[1] + 1), axis=1))
    pairs = np.concatenate(found)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[:, 0], pairs[:, 1]


def forms_to_evaluate(multisets: int, size: int, settings: CountdownSettings) -> int:
    """About how many values `all_targets` computes."""
    if size > 6:
        return 10**18
    return (
        multisets
        * ((1, 1, 8, 130, 3800, 150_000, 10**7) if settings.restricted else (1, 1, 8, 90, 1500, 34_000, 10**6))[size]
    )


# Sets of operators in order of preference: fewer, and then those that come first.
_BY_RANK = sorted(range(16), key=lambda bits: (bits.bit_count(), [symbol for symbol in range(4) if bits >> symbol & 1]))
_RANK = np.argsort(np.array(_BY_RANK))


def _groups(nums, settings, every_way) -> Iterator[tuple[np.ndarray, np.ndarray, Forms]]:
    """(places of tasks, their different numbers, the forms), for tasks whose numbers repeat in the same way."""
    ordered = np.sort(nums, axis=1)
    repeats = (ordered[:, 1:] == ordered[:, :-1]) @ (1 << np.arange(nums.shape[1] - 1))
    for code in np.unique(repeats):
        which = np.flatnonzero(repeats == code)
        starts = [0] + [i + 1 for i in range(nums.shape[1] - 1) if not code >> i & 1]
        lengths = np.diff([*starts, nums.shape[1]])
        order = np.argsort(-lengths, kind="stable")  # one table serves 3 3 5 and 3 5 5
        operands = ordered[np.ix_(which, np.array(starts)[order])]
        yield which, operands, forms_over(tuple(lengths[order].tolist()), settings.operators, every_way)


def _each_once(forms, task, form):
    """Hits without those of a task and a form that was hit already, in another way of writing it."""
    order = np.lexsort((forms.key[form], task))
    task, form = task[order], form[order]
    key = forms.key[form]
    new = np.ones(len(task), bool)
    new[1:] = (task[1:] != task[:-1]) | (key[1:] != key[:-1])
    return task[new], form[new]


def _hits(forms, operands, target, settings) -> Iterator[tuple]:
    """(first task, *`hits_of` a slice of the tasks), slice by slice."""
    step = max(1, _CELLS // len(forms))
    bits = (log2(operands.max(initial=1)) + 1) * forms.size
    operands = operands.astype(np.int64 if bits < 62 else object)
    for start in range(0, len(operands), step):
        wanted = None if target is None else target[start : start + step]
        yield (start, *hits_of(forms, operands[start : start + step].T, wanted, settings))


def hits_of(forms, above, target, settings, below=None, first=False) -> tuple[np.ndarray, ...]:
    """(forms, tasks): which forms over all operands have which task's target as their exact value.

    above, below: numerators and denominators, an array (operands, tasks) each, of Python ints where 62 bits could be
    too few. With no target: the forms whose values are whole and within the settings' range, and these values as a
    third array. With `first`, some hits where there are any.
    """
    last, upper, tasks = forms.blocks[-1], forms.blocks[-1][0], above.shape[1]
    below = np.ones_like(above) if below is None else below
    n, d = np.empty((upper, tasks), above.dtype), np.empty((upper, tasks), above.dtype)
    value = np.empty((upper, tasks))
    n[: forms.operands], d[: forms.operands], value[: forms.operands] = above, below, above / below
    most = float(max(np.abs(above).max(initial=1), below.max(initial=1)))
    slack = max(1e-7, 1e-15 * most ** (forms.size - 1))  # float64's error in a difference of two large values
    found = []
    with np.errstate(all="ignore"):
        for block in forms.blocks[:-1]:
            _evaluate(forms, block, n, d)
            run = slice(*block)
            value[run] = _allowed(n[run], d[run], settings)
            if settings.restricted:
                d[run][np.isnan(value[run])] = 0  # and so for all that is made of it
        for kind, run in forms.runs(last):
            a, b = value[forms.left[run]], value[forms.right[run]]
            result = a + b if kind == ADD else a - b if kind == SUB else a * b if kind == MUL else a / b
            if target is None:
                goal = np.rint(result)
                near = (np.abs(result - goal) <= slack) & (goal >= settings.target[0]) & (goal <= settings.target[1])
            else:
                result -= target.astype(np.float64)
                near = np.abs(result, out=result) <= slack
            form, task = np.nonzero(near)
            goals = goal[form, task].astype(np.int64) if target is None else target[task]
            form += run.start
            left, right = forms.left[form], forms.right[form]
            above, below = _exactly(kind, n[left, task], d[left, task], n[right, task], d[right, task])
            right_ones = np.asarray((above == goals * below) & (below != 0), bool)
            found.append((form[right_ones], task[right_ones], goals[right_ones]))
            if first and len(found[-1][0]):
                break
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 3
    return tuple(columns if target is None else columns[:2])


def exact_values(forms, above, below, settings) -> tuple[list[int], list[int]]:
    """Numerators and denominators of the forms over all operands of one task, 0 for those that are not allowed."""
    n, d = (np.concatenate([each, np.zeros(len(forms) - len(each), each.dtype)])[:, None] for each in (above, below))
    with np.errstate(all="ignore"):
        for block in forms.blocks:
            _evaluate(forms, block, n, d)
            run = slice(*block)
            d[run][np.isnan(_allowed(n[run], d[run], settings))] = 0
    start = forms.blocks[-1][0]
    return n[start:, 0].tolist(), d[start:, 0].tolist()


def _evaluate(forms, block, n, d) -> None:
    for kind, run in forms.runs(block):
        left, right = forms.left[run], forms.right[run]
        n[run], d[run] = _exactly(kind, n[left], d[left], n[right], d[right])


def _exactly(kind, an, ad, bn, bd):
    """Numerator and denominator of a result; a denominator of 0 is a division by zero."""
    if kind == MUL:
        return an * bn, ad * bd
    if kind == DIV:
        return an * bd, ad * bn * (bd != 0)  # nothing that a division by zero went into has a value
    return (an * bd + bn * ad if kind == ADD else an * bd - bn * ad), ad * bd


def _allowed(above, below, settings) -> np.ndarray:
    """Intermediate results as floats, NaN where the settings do not allow them."""
    value = np.where(below != 0, above / np.where(below != 0, below, 1), np.nan).astype(np.float64)
    if not settings.negative:
        value[value < 0] = np.nan
    if not settings.fractions:
        value[(np.rint(value) != value) | (above != np.rint(np.nan_to_num(value)).astype(above.dtype) * below)] = np.nan
    if settings.largest is not None:
        value[np.abs(value) > settings.largest] = np.nan
    return value
