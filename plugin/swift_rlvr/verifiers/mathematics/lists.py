"""What several values say by the way they are written: whether their order counts, what their
brackets mean, and which of them are conditions on the first.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd

from swift_rlvr.verifiers.mathematics.functions import is_real
from swift_rlvr.verifiers.mathematics.numeric import points, symbols, value_at
from swift_rlvr.verifiers.mathematics.parser import Tree
from swift_rlvr.verifiers.mathematics.sets import INFINITY, MINUS_INFINITY, RealSet
from swift_rlvr.verifiers.mathematics.values import (
    Alternatives,
    Cases,
    Choice,
    Expression,
    Listing,
    Number,
    Ratio,
    Region,
    Relation,
    Restricted,
    Sequence,
    Set,
    Several,
    Tuple,
    Value,
    Vector,
    Words,
    as_region,
    is_equality,
    name_of,
    tree_of,
    unit_of,
)

_ZERO = ("number", Fraction(0))
# the letters of numbered terms: a_n = 2n - 1, n \geq 1
_COUNTING = ("k", "m", "n")

# --- order


def in_order(gold: Several) -> bool:
    """Whether the order and the number of a bare list's values count, by the list alone.

    They do where numbers stand in a row with spaces between them, where a value occurs twice, and
    for words: `1 0`, `1, 1, 2`, `red, green`. Distinct values, and letters of choices, may be the
    solutions of an equation, in any order.
    """
    if isinstance(gold, Sequence):
        return True
    # `x = 1 or x = 1` and \pm 0 say the same twice
    if type(gold) is not Listing:
        return False
    for item in gold.items:
        # ab may be a product
        if isinstance(item, Words) and (item.marked or len(item.text) > 2):
            return True
    return len(distinct(gold.items)) < len(gold.items)


def distinct(items: Iterable[Value]) -> dict[Value | Fraction, Value]:
    """The values, each once: plain numbers, 1 and 1.0, by what they are, and others by how they are
    read.
    """
    values: dict[Value | Fraction, Value] = {}
    for item in items:
        if isinstance(item, Number) and not unit_of(item):
            values[item.value] = item
        else:
            values[item] = item
    return values


def with_order(gold: Value, ordered: bool) -> Value:
    """The gold as a list whose order counts, or does not, whatever `in_order` would say.

    Only a bare list of values can be read in both ways. Choices, conditions and values with names of
    their own, `x = 1, y = 2`, are left as they are.
    """
    if not isinstance(gold, Listing | Sequence) or isinstance(gold, Alternatives):
        return gold
    if not ordered:
        return Alternatives(gold.items)
    has_others = any(isinstance(item, Choice | Region) for item in gold.items)
    if has_several_names(gold) or has_others or without_conditions(gold) is not None:
        return gold
    return Sequence(gold.items)


def names_values_in_order(gold: Several, answer: Several) -> bool:
    """Whether the gold gives values to several names and the answer has none.

    `x = 1, y = 2` -> `1, 2`, and `2, 1` is wrong. `x = 1, x = 2` names one thing twice.
    """
    return has_several_names(gold) and not _left_sides(answer)


def has_several_names(several: Several) -> bool:
    """Whether it gives values to several names, `x = 1, y = 2`, and nothing else."""
    names = _left_sides(several)
    return any(name != names[0] for name in names)


def _left_sides(several: Several) -> list[Value]:
    """What stands left of `=` in each item; nothing where an item is no equation."""
    lefts = []
    for item in several.items:
        if not isinstance(item, Relation) or item.operators != ("=",):
            return []
        lefts.append(item.sides[0])
    return lefts


# --- brackets and colons


def same_brackets(gold: Several, answer: Several) -> bool:
    """Whether the brackets of two ordered values may stand for each other, or be left out.

    {1, 2} -> (1, 2) is wrong: a set is no tuple, and a ratio is neither.
    """
    match gold, answer:
        case Tuple(), Tuple():
            # Three numbers are no interval, so that (4, 1, 6) -> [4, 1, 6]; (1, 2) -> [1, 2] may be.
            if len(gold.items) > 2 and _is_list(gold) and _is_list(answer):
                return True
            gold_ends = (gold.closed_low, gold.closed_high)
            return gold_ends == (answer.closed_low, answer.closed_high)
        case (Vector(), Vector()) | (Ratio(), Ratio()):
            return True
        case (Tuple() as ordered, Vector()) | (Vector(), Tuple() as ordered):
            # <6, -1> -> (6, -1)
            return not ordered.closed_low
        case (Tuple() as ordered, Listing() | Sequence() | Cases() as bare) | (
            Listing() | Sequence() | Cases() as bare,
            Tuple() as ordered,
        ):
            # (4, 1, 6) -> 4, 1, 6
            if in_order(bare) and _is_list(ordered):
                return True
            if isinstance(bare, Listing) and len(bare.items) > 2 and _is_list(ordered):
                return True
            if ordered.closed_low:
                return False
            # For two values it takes names in alphabetical order, (1, 2) -> x = 1, y = 2, since `2, 1` may
            # be two solutions.
            names = [name_of(left) for left in _left_sides(bare)]
            return bool(names) and all(names) and names == sorted(set(names))
    return False


def _is_list(value: Tuple) -> bool:
    """Whether its brackets are of one kind, as around a list; (1, 2] is an interval."""
    return value.closed_low == value.closed_high


def only_value(value: Several) -> Value | None:
    """The element of a set of one; of a ratio of two, the quotient."""
    match value:
        case Listing() | Set() if len(value.items) == 1:
            return value.items[0]
        case Ratio((first, second)):
            numerator = tree_of(first)
            denominator = tree_of(second)
            if numerator and denominator:
                return Expression(("/", numerator, denominator))
    return None


def shares(ratio: Ratio) -> tuple[Value, ...]:
    """The parts of a ratio as multiples of the first one, so that 2:4:6 and 1:2:3 have the same; as
    they are where one is no expression.
    """
    shares: list[Value] = []
    first = tree_of(ratio.items[0])
    for item in ratio.items:
        tree = tree_of(item)
        if first is None or tree is None:
            return ratio.items
        shares.append(Expression(("/", tree, first)))
    return tuple(shares)


def is_clock_time(value: Several) -> bool:
    """Whether it is 3:30 rather than a ratio: golds give ratios in lowest terms."""
    match value:
        case Ratio((Number(hours), Number(minutes))):
            if hours.denominator != 1 or minutes.denominator != 1:
                return False
            in_a_day = 0 <= hours < 24 and 10 <= minutes < 60
            return in_a_day and gcd(int(hours), int(minutes)) > 1
    return False


# --- conditions beside a value, as in College Math 2797: a recurrence, and behind it n \geq 1


def without_conditions(value: Value, only_domain: bool = False) -> Value | None:
    """What stands before conditions on its own variables, `\\frac{1}{x}, x \\neq 0`. Returns None if
    there are no conditions.

    With `only_domain` they may only say where the value exists: behind a comma anything else may be
    a second answer, as in `(x - 3)(x + 3), x > 3`.
    """
    # `x - 3 or x > 3` are two answers
    if not isinstance(value, Listing) or isinstance(value, Alternatives):
        return None
    core, *conditions = value.items
    expression = core
    if isinstance(core, Relation) and is_equality(core):
        expression = core.sides[-1]
    tree = tree_of(expression)
    if tree is None:
        return None
    for condition in conditions:
        restricted = None
        if isinstance(condition, Region):
            restricted = frozenset((condition.variable,)) - {""}
        elif isinstance(condition, Relation) and not is_equality(condition):
            left = tree_of(condition.sides[0])
            restricted = symbols(left) if left else None
        # `5, x > 3` are two answers, for 5 has no x that a condition could restrict
        if not restricted or not restricted <= symbols(tree):
            return None
        # brackets, and "for", join no second answer
        if only_domain and not isinstance(value, Restricted) and not _is_of_domain(condition, tree):
            return None
    return core


def _is_of_domain(condition: Value, tree: Tree) -> bool:
    """Whether a condition is one that is usual beside an expression, or that it needs to exist."""
    region = as_region(condition)
    if region is None:
        # x + 2 \neq 0, n \in \mathbb{N}, a > b > 0
        if not isinstance(condition, Relation):
            return False
        if not {"!=", "in"}.isdisjoint(condition.operators):
            return True
        return any(tree_of(side) == _ZERO for side in condition.sides)

    bounds, inside = region.numbers.bounds, region.numbers.inside
    # x \neq 2: a factor that was cancelled leaves no trace in the value
    if bounds[:1] == (MINUS_INFINITY,) and bounds[-1] == INFINITY and all(inside[2:-1:2]):
        return True
    # lengths and the like are positive: x > 0, 0 < x < 10
    if 0 in bounds and any(inside[::2]):
        return True
    # the number of a term: n \geq 1
    if region.variable in _COUNTING and bounds in ((1, INFINITY), (2, INFINITY)) and inside[1]:
        return True
    return _exists_only_in(region, tree)


def _exists_only_in(region: Region, tree: Tree) -> bool:
    """Whether an expression has real values at points in a region, and none at points outside of it."""
    is_outside_tried = exists = False
    for point in points(symbols(tree)):
        value = value_at(tree, point)
        has_value = value is not None and is_real(value)
        number = RealSet.of(point[region.variable])
        if number.without(region.numbers).bounds:
            is_outside_tried = True
            if has_value:
                return False
        elif has_value:
            exists = True
    return exists and is_outside_tried
