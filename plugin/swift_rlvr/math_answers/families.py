"""Solutions with a parameter for every integer: `k\\pi + 1, k \\in \\mathbb{Z}`, compared as sets of numbers."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from swift_rlvr.math_answers.functions import Value as Number
from swift_rlvr.math_answers.functions import agree, as_fraction, divide, is_real, is_whole, is_zero, minus, plus, times
from swift_rlvr.math_answers.numeric import symbols, value_at
from swift_rlvr.math_answers.parser import Tree
from swift_rlvr.math_answers.values import Family, Relation, Sequence, Value, is_name, name_of, tree_of, without_unit

_MAX_RESIDUES = 200


def same_family(gold: Value, answer: Value) -> bool:
    families = [family for value in (gold, answer) if (family := _progressions(value)) is not None]
    if len(families) < 2:
        return False
    names = [_left_names(value.value if isinstance(value, Family) else value) for value in (gold, answer)]
    if all(names) and names[0] != names[1]:
        return False
    steps = [step for family in families for _, step in family]
    common = _common_step(steps)
    if common is None:
        return False
    residues = [[_residues(offset, step, common) for offset, step in family] for family in families]
    first, second = ([value for part in parts for value in part] for parts in residues)
    return _covers(first, second, common) and _covers(second, first, common)


def _left_names(value: Value) -> set[str]:
    if isinstance(value, Sequence):
        return set().union(*map(_left_names, value.items))
    name = name_of(value.sides[0]) if isinstance(value, Relation) else ""
    return {name} if name else set()


def _progressions(value: Value) -> list[tuple[Number, Number]] | None:
    """[(a value, the step to the next one), ...]"""
    parameter = value.parameter if isinstance(value, Family) else ""
    items = [value.value if isinstance(value, Family) else value]
    trees: list[Tree] = []
    while items:
        item = items.pop()
        if isinstance(item, Sequence) and item.opening in ("", "{"):
            items.extend(item.items)
            continue
        if isinstance(item, Relation) and item.operators == ("=",) and is_name(item.sides[0]):
            items.append(item.sides[1])
            continue
        tree = tree_of(without_unit(item))
        if tree is None:
            return None
        trees.append(tree)
    if not parameter:
        names = frozenset().union(*map(symbols, trees))
        if len(names) != 1:
            return None
        parameter = next(iter(names))
    result = []
    for tree in trees:
        values = [value_at(tree, {parameter: Fraction(number)}) for number in (0, 1, 2, 5)]
        if None in values:
            return None
        step = minus(values[1], values[0])
        if is_zero(step) or not all(map(is_real, values)):
            return None
        if not agree(minus(values[2], values[1]), step) or not agree(
            minus(values[3], values[0]), times(step, Fraction(5))
        ):
            return None
        result.append((values[0], step))
    return result


def _common_step(steps: list[Number]) -> Number | None:
    """The smallest number that all steps divide; None where there is none, or only a very large one."""
    ratios = [as_fraction(divide(step, steps[0])) for step in steps]
    if any(ratio is None for ratio in ratios):
        return None
    multiple = Fraction(1)
    for ratio in ratios:
        assert ratio is not None
        multiple = Fraction(
            lcm(multiple.numerator * ratio.denominator, abs(ratio.numerator) * multiple.denominator),
            multiple.denominator * ratio.denominator,
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
