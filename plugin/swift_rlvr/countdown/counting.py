"""Counts the solutions of many Countdown tasks at once, and finds every target that numbers reach.

Solutions are counted as essentially different ones, see forms.py. A solution counts where some way to write it keeps
to the settings: operators, no division by zero, and the intermediate results that they allow.

Floats choose and integers decide: a form is evaluated in float64 for many tasks at once, and each one within reach of
the target is confirmed with exact numerators and denominators. For 6 numbers at most: 7 have millions of forms.
"""

from collections.abc import Iterator
from math import log2

import numpy as np
import numpy.typing as npt

from swift_rlvr.countdown.arrays import Ints
from swift_rlvr.countdown.forms import ADD, DIV, MUL, SUB, Forms, forms_for
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

Exact = np.ndarray  # of int64, or of Python ints as objects where 62 bits could be too few

_CELLS = 1 << 16  # of a table of forms and tasks, so that it stays in the processor's cache
# Sets of operators in order of preference: fewer, and then those that come first.
_BY_RANK = sorted(range(16), key=lambda bits: (bits.bit_count(), [symbol for symbol in range(4) if bits >> symbol & 1]))
_RANK = np.argsort(np.array(_BY_RANK))
_OPERATORS_OF = np.array(["".join(s for i, s in enumerate(OPERATORS) if bits >> i & 1) for bits in _BY_RANK], object)


def difficulty(nums: Ints, target: Ints, settings: CountdownSettings) -> dict[str, np.ndarray]:
    """How many essentially different solutions each task has, and how difficult it is.

    They are taken as written without needless parentheses: a - (b - c) is a + c - b and has two operators (where "+" is
    not allowed, one). The fewest operators and the least depth may be those of different solutions. `nums` is (tasks,
    most numbers), in any order, filled up with 0; `target` is (tasks,).

    Returns:
        solutions: (tasks,), int64.
        operators: (tasks,), str as objects: the fewest that a solution gets by with, such as "+*"; "" without one.
        depth: (tasks,), int64: how deep sums and products are nested in the shallowest solution: 1 for a + c - b, 2 for
            (a + c) * b; 0 without one.

    >>> from swift_rlvr.countdown.settings import GAME24
    >>> hands = np.array([[3, 3, 8, 8], [1, 1, 1, 1], [4, 6, 1, 1]])
    >>> {name: column.tolist() for name, column in difficulty(hands, np.array([24, 24, 24]), GAME24).items()}
    {'solutions': [1, 0, 6], 'operators': ['-/', '', '*'], 'depth': [3, 0, 1]}
    """
    solutions = np.zeros(len(nums), np.int64)
    depth, rank = np.full(len(nums), 127), np.full(len(nums), 127)
    for which, operands, forms in _slices(nums, settings):
        form, task, _ = hits_of(forms, operands, target[which], settings)
        np.minimum.at(depth, which[task], forms.depth[form])
        np.minimum.at(rank, which[task], _RANK[forms.used[form]])
        if settings.restricted:  # each way to write a solution is a form of its own
            order = np.lexsort((forms.key[form], task))
            task, key = task[order], forms.key[form[order]]
            task = task[(np.diff(task, prepend=-1) != 0) | (np.diff(key, prepend=~key[:1]) != 0)]
        solutions[which] = np.bincount(task, minlength=len(which))
    depth[solutions == 0] = rank[solutions == 0] = 0
    return {"solutions": solutions, "operators": _OPERATORS_OF[rank], "depth": depth}


def all_targets(nums: Ints, settings: CountdownSettings) -> tuple[Ints, Ints]:
    """Every (row of nums, target within the settings' range) that can be reached, once, sorted: two arrays (targets,).

    >>> from swift_rlvr.countdown.settings import TINY
    >>> all_targets(np.array([[1, 1, 1], [9, 9, 9]]), TINY)[1].tolist()
    [1, 2, 3, 2, 8, 9, 10, 27]
    """
    base = settings.target[1] + 1
    pairs = [np.zeros(0, np.int64)]
    for which, operands, forms in _slices(nums, settings):
        _, row, value = hits_of(forms, operands, None, settings)
        pairs.append(np.unique(which[row] * base + value))
    return np.divmod(np.sort(np.concatenate(pairs)), base)


def _slices(nums: Ints, settings: CountdownSettings) -> Iterator[tuple[Ints, Exact, Forms]]:
    """(tasks whose numbers repeat alike (n,), their different numbers (operands, n), the forms over these)."""
    ordered, most = np.sort(nums, axis=1), nums.shape[1]
    blank = np.count_nonzero(nums == 0, axis=1)
    repeats = (ordered[:, 1:] == ordered[:, :-1]) @ (1 << np.arange(1, most))  # bit i: number i is number i - 1 again
    for first, code in np.unique(np.stack([blank, repeats]), axis=1).T.tolist():
        places = np.flatnonzero((blank == first) & (repeats == code))
        starts = np.array([i for i in range(first, most) if i == first or not code >> i & 1])
        lengths = np.diff(starts, append=most)
        order = np.argsort(-lengths, kind="stable")  # one table serves 3 3 5 and 3 5 5
        forms = forms_for(tuple(lengths[order].tolist()), settings)
        operands = ordered[np.ix_(places, starts[order])].T
        bits = (log2(operands.max(initial=1)) + 1) * forms.size
        operands = operands.astype(np.int64 if bits < 62 else object)
        step = max(1, _CELLS // len(forms))
        for start in range(0, len(places), step):
            yield places[start : start + step], operands[:, start : start + step], forms


def hits_of(
    forms: Forms,
    above: Exact,
    target: Ints | None,
    settings: CountdownSettings,
    below: Exact | int = 1,
    first: bool = False,
) -> tuple[Ints, Ints, Ints]:
    """Which forms over all operands have which task's target as their exact value: (forms, tasks, values), (hits,).

    Args:
        above, below: numerators and denominators of the operands, (operands, tasks).
        target: (tasks,); None for every whole value within the settings' range.
        first: return some hits where there are any, not all.
    """
    last, upper, tasks = forms.blocks[-1], forms.blocks[-1][0], above.shape[1]
    # Numerators, denominators and values of all forms but the last block's: (forms, tasks)
    n, d = np.empty((upper, tasks), above.dtype), np.empty((upper, tasks), above.dtype)
    value = np.empty((upper, tasks))
    n[: forms.operands], d[: forms.operands], value[: forms.operands] = above, below, above / below
    most = float(max(np.abs(above).max(initial=1), np.max(below)))
    slack = max(1e-7, 1e-15 * most ** (forms.size - 1))  # float64's error in a difference of two large values
    hits = [(np.zeros(0, np.int64),) * 3]
    with np.errstate(all="ignore"):
        for block in forms.blocks[:-1]:
            for operator, run in forms.runs(*block):
                left, right = forms.left[run], forms.right[run]
                n[run], d[run] = _exactly(operator, n[left], d[left], n[right], d[right])
            run = slice(*block)
            value[run] = _allowed(n[run], d[run], settings)
            if settings.restricted:
                d[run][np.isnan(value[run])] = 0  # and so for all that is made of it
        for operator, run in forms.runs(*last):
            a, b = value[forms.left[run]], value[forms.right[run]]
            result = a + b if operator == ADD else a - b if operator == SUB else a * b if operator == MUL else a / b
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
            above, below = _exactly(operator, n[left, task], d[left, task], n[right, task], d[right, task])
            exact = np.asarray((above == goals * below) & (below != 0), bool)
            hits.append((form[exact], task[exact], goals[exact]))
            if first and exact.any():
                break
    form, task, goals = (np.concatenate(column) for column in zip(*hits, strict=True))
    return form, task, goals


def _exactly(operator: int, an: Exact, ad: Exact, bn: Exact, bd: Exact) -> tuple[Exact, Exact]:
    """Numerator and denominator of a result; a denominator of 0 is a division by zero."""
    if operator == MUL:
        return an * bn, ad * bd
    if operator == DIV:
        return an * bd, ad * bn * (bd != 0)  # nothing that a division by zero went into has a value
    return (an * bd + bn * ad if operator == ADD else an * bd - bn * ad), ad * bd


def _allowed(above: Exact, below: Exact, settings: CountdownSettings) -> npt.NDArray[np.float64]:
    """Intermediate results as floats, NaN where the settings do not allow them."""
    value = np.where(below != 0, above / np.where(below != 0, below, 1), np.nan).astype(np.float64)
    if not settings.negative:
        value[value < 0] = np.nan
    if not settings.fractions:
        value[(np.rint(value) != value) | (above != np.rint(np.nan_to_num(value)).astype(above.dtype) * below)] = np.nan
    if settings.largest is not None:
        value[np.abs(value) > settings.largest] = np.nan
    return value
