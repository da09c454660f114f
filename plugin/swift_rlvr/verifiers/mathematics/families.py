"""Solutions with a parameter for every integer: `k\\pi + 1, k \\in \\mathbb{Z}`, compared as sets
of numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from swift_rlvr.verifiers.mathematics.functions import Value as Number
from swift_rlvr.verifiers.mathematics.functions import (
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

_MAX_RESIDUES = 200


def same_family(gold: Value, answer: Value) -> bool:
    """Whether two solutions, at least one with a parameter, have the same values in all."""
    first, second = _progressions(gold), _progressions(answer)
    if first is None or second is None:
        return gold == answer
    names = [
        _left_names(value.value if isinstance(value, Family) else value) for value in (gold, answer)
    ]
    if all(names) and names[0] != names[1]:
        return False
    common = _common_step([step for _, step in first + second])
    if common is None:
        return False
    golds, answers = (
        [value for each in family for value in _residues(*each, common)]
        for family in (first, second)
    )
    return _covers(golds, answers, common) and _covers(answers, golds, common)


def _left_names(value: Value) -> set[str]:
    if isinstance(value, Several):
        return set().union(*map(_left_names, value.items))
    name = name_of(value.sides[0]) if isinstance(value, Relation) else ""
    return {name} if name else set()


def _progressions(value: Value) -> list[tuple[Number, Number]] | None:
    """[(a value, the step to the next one), ...]; None where a part of the solution is something
    else.
    """
    trees: list[Tree] = []
    items = [value.value if isinstance(value, Family) else value]
    while items:
        match item := items.pop():
            case Listing(parts) | Set(parts):
                items.extend(parts)
            case Relation(("=",), (name, part)) if is_name(name):
                items.append(part)
            case _:
                tree = tree_of(without_unit(item))
                if tree is None:
                    return None
                trees.append(tree)
    names = {value.parameter} if isinstance(value, Family) else set().union(*map(symbols, trees))
    if len(names) != 1:
        return None
    progressions = [_progression(tree, *names) for tree in trees]
    return None if None in progressions else progressions  # type: ignore[return-value]


def _progression(tree: Tree, parameter: str) -> tuple[Number, Number] | None:
    """The value for 0 and the step, where all steps are the same."""
    values = [value_at(tree, {parameter: Fraction(number)}) for number in (0, 1, 2, 5)]
    if None in values or not all(map(is_real, values)):
        return None
    step, next_step, five = (
        minus(values[high], values[low]) for high, low in ((1, 0), (2, 1), (3, 0))
    )
    even = not is_zero(step) and agree(next_step, step) and agree(five, times(step, Fraction(5)))
    return (values[0], step) if even else None


def _common_step(steps: list[Number]) -> Number | None:
    """The smallest number that all steps divide; None where there is none, or only a very large
    one.
    """
    ratios = [ratio for step in steps if (ratio := as_fraction(divide(step, steps[0]))) is not None]
    if len(ratios) < len(steps):
        return None
    multiple = Fraction(
        lcm(*(ratio.numerator for ratio in ratios)), gcd(*(ratio.denominator for ratio in ratios))
    )
    if any(abs(multiple / ratio) > _MAX_RESIDUES for ratio in ratios if ratio):
        return None
    return times(steps[0], multiple)


def _residues(offset: Number, step: Number, common: Number) -> list[Number]:
    count = as_fraction(divide(common, step))
    number = abs(int(count)) if count else 1
    return [plus(offset, times(step, Fraction(index))) for index in range(number)]


def _covers(these: list[Number], those: list[Number], common: Number) -> bool:
    """Whether each of those equals one of these up to a multiple of the common step."""
    return all(any(is_whole(divide(minus(b, a), common)) for a in these) for b in those)
