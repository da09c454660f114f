"""Solutions with a parameter for every integer: `k\\pi + 1, k \\in \\mathbb{Z}`, compared as sets
of numbers.

Every solution is a progression: a value and the step to the next one. Two families are the same if
they have the same values up to a multiple of a common step: `2k\\pi` and `(2k + 1)\\pi` together
are `k\\pi`.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from swift_rlvr.verifiers.mathematics.functions import (
    Computed,
    agree,
    as_fraction,
    divide,
    is_real,
    is_whole,
    is_zero,
    minus,
    plus,
    times,
)
from swift_rlvr.verifiers.mathematics.numeric import symbols, value_at
from swift_rlvr.verifiers.mathematics.parser import Tree
from swift_rlvr.verifiers.mathematics.values import (
    Family,
    Listing,
    Relation,
    Set,
    Several,
    Value,
    is_name,
    name_of,
    tree_of,
    without_unit,
)

# Most values of one progression within the common step: k\pi/100 beside 2k\pi.
_MAX_RESIDUES = 200

# The integers at which a solution has to lie on one line: k + k(k - 1)(k - 2) does at the first three.
_INTEGERS = (0, 1, 2, 5)

# The value for the integer 0, and the step to the next one.
Progression = tuple[Computed, Computed]


def same_family(gold: Value, answer: Value) -> bool:
    """Whether two solutions, at least one with a parameter, have the same values in all."""
    gold_progressions = _progressions(gold)
    answer_progressions = _progressions(answer)
    if gold_progressions is None or answer_progressions is None:
        return gold == answer
    # x = k\pi -> k\pi, and x = k\pi -> y = k\pi is wrong
    gold_names = _left_names(gold)
    answer_names = _left_names(answer)
    if gold_names and answer_names and gold_names != answer_names:
        return False

    common = _common_step([step for _, step in gold_progressions + answer_progressions])
    if common is None:
        return False
    gold_values = _values_within(gold_progressions, common)
    answer_values = _values_within(answer_progressions, common)
    if not _covers(gold_values, answer_values, common):
        return False
    return _covers(answer_values, gold_values, common)


def _left_names(value: Value) -> set[str]:
    """The variables that the equations of a solution give values to."""
    if isinstance(value, Family):
        return _left_names(value.value)
    if isinstance(value, Several):
        return set().union(*map(_left_names, value.items))
    name = name_of(value.sides[0]) if isinstance(value, Relation) else ""
    return {name} if name else set()


def _progressions(value: Value) -> list[Progression] | None:
    """The progressions of a solution. Returns None if a part of it is something else."""
    # the expressions of its list, with or without `x =` before them
    trees: list[Tree] = []
    remaining = [value]
    while remaining:
        match item := remaining.pop():
            # alone, or of several: x \equiv 1 \pmod 4 or x \equiv 3 \pmod 4
            case Family(_, solutions):
                remaining.append(solutions)
            case Listing(items) | Set(items):
                remaining.extend(items)
            case Relation(("=",), (name, right)) if is_name(name):
                remaining.append(right)
            case _:
                tree = tree_of(without_unit(item))
                if tree is None:
                    return None
                trees.append(tree)

    if isinstance(value, Family):
        parameters = {value.parameter}
    else:
        # An answer may leave out k \in \mathbb{Z}: its one variable is the parameter then.
        parameters = set().union(*map(symbols, trees))
    if len(parameters) != 1:
        return None
    (parameter,) = parameters
    progressions = []
    for tree in trees:
        values = [value_at(tree, {parameter: Fraction(integer)}) for integer in _INTEGERS]
        if None in values or not all(map(is_real, values)):
            return None
        at_0, at_1, at_2, at_5 = values
        step = minus(at_1, at_0)
        next_step = minus(at_2, at_1)
        five_steps = minus(at_5, at_0)
        # the steps of k^2 differ
        if is_zero(step) or not agree(next_step, step):
            return None
        if not agree(five_steps, times(step, Fraction(5))):
            return None
        progressions.append((at_0, step))
    return progressions


def _common_step(steps: list[Computed]) -> Computed | None:
    """The smallest number that all steps divide. Returns None if there is none, or only a very
    large one.
    """
    ratios = []
    for step in steps:
        ratio = as_fraction(divide(step, steps[0]))
        # \pi and 1 have no common multiple
        if ratio is None:
            return None
        ratios.append(ratio)
    numerators = [ratio.numerator for ratio in ratios]
    denominators = [ratio.denominator for ratio in ratios]
    multiple = Fraction(lcm(*numerators), gcd(*denominators))
    if any(abs(multiple / ratio) > _MAX_RESIDUES for ratio in ratios if ratio):
        return None
    return times(steps[0], multiple)


def _values_within(progressions: list[Progression], common: Computed) -> list[Computed]:
    """The values of progressions up to the common step, after which they repeat."""
    values = []
    for offset, step in progressions:
        count = as_fraction(divide(common, step))
        number = abs(int(count)) if count else 1
        for index in range(number):
            values.append(plus(offset, times(step, Fraction(index))))
    return values


def _covers(values: list[Computed], others: list[Computed], common: Computed) -> bool:
    """Whether each of the others equals one of the values up to a multiple of the common step."""

    def is_covered(other: Computed) -> bool:
        return any(is_whole(divide(minus(other, value), common)) for value in values)

    return all(map(is_covered, others))
