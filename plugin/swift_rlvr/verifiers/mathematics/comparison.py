"""Whether an answer equals the gold, for every pair of kinds of `values.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from fractions import Fraction
from itertools import product
from math import gcd
from typing import Any

from swift_rlvr.verifiers.mathematics.families import same_family
from swift_rlvr.verifiers.mathematics.functions import Value as Computed
from swift_rlvr.verifiers.mathematics.functions import is_real, less, near
from swift_rlvr.verifiers.mathematics.numeric import (
    constant_multiple,
    constant_value,
    same_value,
    symbols,
)
from swift_rlvr.verifiers.mathematics.parser import Tree, replaced
from swift_rlvr.verifiers.mathematics.sets import EMPTY, REALS
from swift_rlvr.verifiers.mathematics.units import different_units, ratio
from swift_rlvr.verifiers.mathematics.values import (
    TURNED,
    Approximately,
    Choice,
    Expression,
    Family,
    Matrix,
    Number,
    Quantity,
    Region,
    Relation,
    Residue,
    Sequence,
    Value,
    Words,
    as_region,
    is_constant,
    is_name,
    name_of,
    tree_of,
    unit_of,
    without_unit,
)

# a decimal with so many stands for the number that it rounds; with fewer it is exactly itself
ENOUGH_PLACES = 12
_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")
_IN_BASE = re.compile(r"(-?[0-9]+)_[0-9]+")
_ARBITRARY = re.compile(r"[CcKk](_\w+)?")
_DEGREE = ("/", ("constant", "pi"), ("number", Fraction(180)))
# comparisons of values for two sets, each element with each; sets of plain numbers need none
_MAX_PAIRS = 2500


def same(gold: Value, answer: Value) -> bool:
    """Whether an answer equals the gold. What cannot be shown to be equal is not.

    The kinds of the two decide how they are compared: the first rule of `_RULES` for one of them
    that knows a verdict, and for what is left, whether they are expressions with the same value.

    >>> half = Number(Fraction(1, 2))
    >>> same(half, Number(Fraction(50), percent=True)), same(half, Number(Fraction(1, 2), unit="cm")), same(half, half)
    (True, True, True)
    >>> same(Sequence("(", ")", (half, half)), Sequence("(", ")", (half, Number(Fraction(1)))))
    False
    """
    if isinstance(gold, Number) and isinstance(answer, Number):
        return _same_number(gold, answer)
    kinds = type(gold), type(answer)
    for kind, rule in _RULES:
        if kind in kinds and (verdict := rule(gold, answer)) is not None:
            return verdict
    return bool(_same_angle(gold, answer)) or _same_expression(gold, answer)


def _same_quantity(gold: Value, answer: Value) -> bool:
    if (angle := _same_angle(gold, answer)) is not None:
        return angle
    return not different_units(unit_of(gold), unit_of(answer)) and same(
        without_unit(gold), without_unit(answer)
    )


def _same_angle(gold: Value, answer: Value) -> bool | None:
    """Whether an angle in degrees is one in radians, 60° and \\pi/3; None where not just one of
    them is in degrees.
    """
    units = unit_of(gold), unit_of(answer)
    if units.count("degree") != 1 or not set(units) <= {"degree", "radian", ""}:
        return None
    first, second = tree_of(without_unit(gold)), tree_of(without_unit(answer))
    if first is None or second is None:
        return None
    degrees, radians = (first, second) if units[0] == "degree" else (second, first)
    return ("radian" not in units and same_value(first, second)) or same_value(
        ("*", degrees, _DEGREE), radians
    )


def _same_number(gold: Number, answer: Number) -> bool:
    if different_units(unit_of(gold), unit_of(answer)):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value
    values = {answer.value / 100 if answer.percent else answer.value}
    if answer.percent and (gold.value.denominator == 1 or abs(gold.value) >= 1):
        values.add(answer.value)  # "what percentage ...": the sign may be read as a unit
    golds = {gold.value / 100, gold.value} if gold.percent else {gold.value}
    return bool(golds & values) or _rounds(gold, answer.value) or _rounds(answer, gold.value)


def _rounds(number: Number, value: Computed) -> bool:
    """Whether a number is a decimal of enough places for that value."""
    if number.places < ENOUGH_PLACES or not is_real(value):
        return False
    return near(value, number.value, Fraction(1, 10**ENOUGH_PLACES))


def _same_expression(gold: Value, answer: Value) -> bool:
    first, second = tree_of(gold), tree_of(answer)
    if first is None or second is None:
        return False
    if same_value(first, second) or same_value(first, _with_constants_of(first, second)):
        return True
    for number, other in ((gold, second), (answer, first)):
        if isinstance(number, Number):
            if number.percent and number is answer and same_value(("number", number.value), other):
                return True
            value = constant_value(other)
            if value is not None and _rounds(number, value):
                return True
    return False


def _with_constants_of(gold: Tree, answer: Tree) -> Tree:
    """The answer with its arbitrary constants, beside a variable, named as in the gold.

    `+ c` is `+ C`; `+ K` is `+ C` only where each is the one such name of its side, a term of it
    and in no other term.
    """
    names = symbols(gold), symbols(answer)
    wanted, present = names[0] - names[1], names[1] - names[0]
    if not wanted or wanted == names[0] or not all(map(_ARBITRARY.fullmatch, wanted | present)):
        return answer
    old, new = (sorted(side, key=str.lower) for side in (present, wanted))
    if [*map(str.lower, old)] != [*map(str.lower, new)]:
        constants = [{*filter(_ARBITRARY.fullmatch, side)} for side in names]
        if len(old) != 1 or len(new) != 1 or constants != [wanted, present]:
            return answer
        if not (_is_added(gold, new[0]) and _is_added(answer, old[0])):
            return answer
    elif len({*map(str.lower, old)}) < len(old):
        return answer
    for name, other in zip(old, new, strict=True):
        answer = replaced(answer, ("symbol", name), ("symbol", other))
    return answer


def _is_added(tree: Tree, name: str) -> bool:
    """Whether a name is a term of a sum, and occurs nowhere else in it."""
    if tree[0] not in ("+", "-"):
        return tree == ("symbol", name)
    holding = [part for part in tree[1:] if name in symbols(part)]
    return len(holding) == 1 and _is_added(holding[0], name)


def _same_choice(gold: Value, answer: Value) -> bool | None:
    """None where one of the two may be a variable."""
    if not isinstance(gold, Choice):  # "Thursday" is answered by "(B) Thursday"
        assert isinstance(answer, Choice)
        if answer.meaning is None or _OTHER_CHOICE.search(answer.content):
            return None
        return same(gold, answer.meaning)
    if not isinstance(answer, Choice):  # "(D) 12" is answered by 12 as well as by D
        return gold.meaning is not None and same(gold.meaning, answer) if gold.content else None
    if not (gold.marked or answer.marked):
        return gold.letter == answer.letter
    if gold.letter.upper() != answer.letter.upper():
        return False
    if _OTHER_CHOICE.search(answer.content):  # "(A) is wrong, (B) is right"
        return False
    return gold.meaning is None or answer.meaning is None or same(gold.meaning, answer.meaning)


def _same_residue(gold: Value, answer: Value) -> bool:
    if not isinstance(gold, Residue):
        return False
    if not isinstance(answer, Residue):  # what the gold adds may be left out
        return (gold.name is None or is_name(gold.name)) and same(gold.value, answer)
    named_apart = (
        gold.name is not None and answer.name is not None and not same(gold.name, answer.name)
    )
    if named_apart or not same(gold.modulus, answer.modulus):
        return False
    numbers = [
        value.value
        for value in (gold.value, answer.value, gold.modulus)
        if isinstance(value, Number)
    ]
    if len(numbers) == 3 and numbers[2]:
        return ((numbers[0] - numbers[1]) / numbers[2]).denominator == 1
    return same(gold.value, answer.value)


def _same_without_conditions(gold: Value, answer: Value) -> bool | None:
    """The verdict where one side adds conditions on its variables, `\\frac{1}{x}, x \\neq 0`; None
    where none does.
    """
    if isinstance(gold, Sequence) == isinstance(answer, Sequence):
        return None
    sequence = gold if isinstance(gold, Sequence) else answer
    assert isinstance(sequence, Sequence)
    if sequence.opening or len(sequence.items) < 2:
        return None
    core, *conditions = sequence.items
    tree = tree_of(core.sides[-1] if isinstance(core, Relation) and _is_equality(core) else core)
    if tree is None or not all(
        (names := _condition_on(item)) and names <= symbols(tree) for item in conditions
    ):
        return None
    return same(core, answer) if sequence is gold else same(gold, core)


def _condition_on(value: Value) -> frozenset[str]:
    """The variables that a condition restricts; none where the value is no condition."""
    if isinstance(value, Region) and value.variable:
        return frozenset((value.variable,))
    if (
        isinstance(value, Relation)
        and not _is_equality(value)
        and (tree := tree_of(value.sides[0]))
    ):
        return symbols(tree)
    return frozenset()


def _same_words(gold: Value, answer: Value) -> bool:
    """Words and words, or a value of another kind: several choices, and sets in words."""
    match gold, answer:
        case Words(), Words():
            unmarked = not (gold.marked or answer.marked)
            return gold.text == answer.text or (unmarked and _same_expression(gold, answer))
        case Words(), _ if based := _IN_BASE.fullmatch(
            gold.text
        ):  # what the gold adds may be left out
            return isinstance(answer, Number) and not answer.unit and str(answer.value) == based[1]
        case (Words() as words, other) | (other, Words() as words):
            if isinstance(other, Sequence) and other.opening in ("", "{"):  # AC for A, C
                letters = [item.letter.lower() for item in other.items if isinstance(item, Choice)]
                return len(letters) == len(other.items) and sorted(words.text) == sorted(letters)
            if words.text == "no solution":
                return isinstance(other, Region) and other.numbers.equals(EMPTY)
            if words.text in ("all real numbers", "all reals", "real numbers", "any real number"):
                return isinstance(other, Region) and other.numbers.equals(REALS)
            return not words.marked and _same_expression(words, other)
    return False


def _same_region(gold: Value, answer: Value) -> bool:
    first, second = as_region(gold), as_region(answer)
    if (
        first is None
        or second is None
        or (first.variable and second.variable and first.variable != second.variable)
    ):
        return False
    return first.numbers.equals(second.numbers)


def _same_approximation(gold: Value, answer: Value) -> bool:
    if not isinstance(gold, Approximately):
        return False  # about 5 is not 5
    number = gold.number
    if isinstance(answer, Approximately):
        answer = answer.number
    tree = tree_of(without_unit(answer))
    value = (
        None
        if tree is None or different_units(unit_of(gold), unit_of(answer))
        else constant_value(tree)
    )
    if value is None or not is_real(value):
        return False
    half_a_unit = Fraction(1, 2 * 10**number.places)  # in the last place
    percents = number.percent, unit_of(answer) == "percent"
    scales = {100 if number.percent else 1}
    if (
        any(percents) and not all(percents) and abs(number.value) >= 1
    ):  # the sign may be read as a unit
        scales = {1, 100}
    return any(near(value, number.value / scale, half_a_unit / scale) for scale in scales)


def rounds_to(gold: Value, answer: Value) -> bool:
    """Whether a gold that is a decimal is an answer rounded to its places, such as 21.93 for
    21\\frac{13}{14}.
    """
    match gold:
        case Number(places=places) if places:
            return same(Approximately(gold), answer)
        case Relation(("=",), (name, Number(places=places))) if places and is_name(name):
            return same(gold._replace(operators=("~",)), answer)
    return False


def same_converted(gold: Value, answer: Value) -> bool:
    """Whether two quantities in different units are the same, exactly: 1200 cm and 12 m, 1.5 hours
    and 90 minutes.
    """
    match gold, answer:
        case Relation(("=",), (name, value)), Relation(("=",), (other, stated)) if is_name(
            name
        ) and is_name(other):
            return _same_name(name, other) and same_converted(value, stated)
        case (Relation(("=",), (name, value)), other) | (
            other,
            Relation(("=",), (name, value)),
        ) if is_name(name):
            return same_converted(*((value, other) if gold is not other else (other, value)))
    factor = ratio(unit_of(answer), unit_of(gold))
    first, second = tree_of(without_unit(gold)), tree_of(without_unit(answer))
    if factor is None or first is None or second is None:
        return False
    return same_value(first, ("*", ("number", factor), second))


def _same_matrix(gold: Value, answer: Value) -> bool:
    match gold, answer:
        case Matrix(), Matrix():
            return gold.bars == answer.bars and _same_items(gold.rows, answer.rows, _same_items)
        case (Matrix(False, rows), Sequence(opening, _, items)) | (
            Sequence(opening, _, items),
            Matrix(False, rows),
        ):
            if opening == "[":  # [[1, 2], [3, 4]]
                lists = [
                    item.items
                    for item in items
                    if isinstance(item, Sequence) and item.opening == "["
                ]
                return len(lists) == len(items) and _same_items(rows, lists, _same_items)
            if opening in ("(", "<"):  # a vector
                column = all(len(row) == 1 for row in rows)
                entries = tuple(row[0] for row in rows) if column else rows[0]
                return (column or len(rows) == 1) and _same_items(entries, items)
    return False


def _same_items(
    gold: Items[Any], answer: Items[Any], equal: Callable[[Any, Any], bool] = same
) -> bool:
    return len(gold) == len(answer) and all(map(equal, gold, answer))


def _same_sequence(gold: Value, answer: Value) -> bool:
    if not isinstance(answer, Sequence):
        assert isinstance(gold, Sequence)
        return not _is_time(gold) and (alone := _alone(gold)) is not None and same(alone, answer)
    if not isinstance(gold, Sequence):
        return (alone := _alone(answer)) is not None and same(gold, alone)
    sides = (gold.opening, gold.closing), (answer.opening, answer.closing)
    if ":" in (gold.opening, answer.opening):
        same_ratio = _same_items if _is_time(gold) else _same_ratio
        return sides[0] == sides[1] and same_ratio(gold.items, answer.items)
    if all(side in (("{", "}"), ("", ""), ("cases", "")) for side in sides):
        lefts = _left_sides(gold)
        if lefts and not _left_sides(answer) and any(left != lefts[0] for left in lefts):
            return _same_items(gold.items, answer.items)  # x = 1, y = 2: in this order
        return _same_set(gold.items, answer.items)
    is_list = (
        all(side in (("(", ")"), ("[", "]"), ("", "")) for side in sides) and len(gold.items) > 2
    )
    if not is_list and sides[0] != sides[1] and {gold.opening, answer.opening} != {"(", "<"}:
        bare, other = (gold, answer) if gold.opening in ("", "cases") else (answer, gold)
        names = [name_of(left) for left in _left_sides(bare)]  # x = 1, y = 2 is (1, 2)
        in_order = bool(names) and all(names) and names == sorted(set(names))
        if bare.opening not in ("", "cases") or other.opening != "(" or not in_order:
            return False
    return _same_items(gold.items, answer.items)


def _alone(value: Sequence) -> Value | None:
    """The element of a set of one; of a ratio of two, the quotient."""
    if len(value.items) == 1 and value.opening in ("{", ""):
        return value.items[0]
    if value.opening == ":" and len(value.items) == 2:
        first, second = map(tree_of, value.items)
        if first and second:
            return Expression(("/", first, second))
    return None


def _is_time(value: Sequence) -> bool:
    """Whether it is 3:30 rather than a ratio: golds give ratios in lowest terms."""
    numbers = [
        item.value
        for item in value.items
        if isinstance(item, Number) and item.value.denominator == 1
    ]
    if value.opening != ":" or len(value.items) != 2 or len(numbers) != 2:
        return False
    hours, minutes = map(int, numbers)
    return 0 <= hours < 24 and 10 <= minutes < 60 and gcd(hours, minutes) > 1


def _left_sides(sequence: Sequence) -> list[Value]:
    """What stands left of `=` in each item; nothing where an item is no equation."""
    lefts = [
        item.sides[0]
        for item in sequence.items
        if isinstance(item, Relation) and item.operators == ("=",)
    ]
    return lefts if len(lefts) == len(sequence.items) else []


def _same_ratio(gold: Items[Value], answer: Items[Value]) -> bool:
    trees = [[tree_of(item) for item in items] for items in (gold, answer)]
    if None in trees[0] or None in trees[1]:
        return _same_items(gold, answer)
    first, second = ([("/", tree, parts[0]) for tree in parts] for parts in trees)
    return _same_items(first, second, same_value)


def _same_set(gold: Items[Value], answer: Items[Value]) -> bool:
    numbers = [
        item
        for item in (*gold, *answer)
        if isinstance(item, Number) and not (item.percent or item.unit)
    ]
    if len(numbers) == len(gold) + len(answer):
        if {number.value for number in numbers[: len(gold)]} == {
            number.value for number in numbers[len(gold) :]
        }:
            return True
        if all(number.places < ENOUGH_PLACES for number in numbers):
            return False
    if _size(gold) * _size(answer) > _MAX_PAIRS:
        return False
    table = [[same(first, second) for second in answer] for first in gold]
    return (
        all(map(any, table))
        and all(map(any, zip(*table, strict=True)))
        and bool(table) == bool(answer)
    )


def _size(items: Iterable[Value]) -> int:
    """The number of values, including those within sequences."""
    return sum(_size(item.items) if isinstance(item, Sequence) else 1 for item in items)


def _same_relation(gold: Value, answer: Value) -> bool:
    if _same_region(gold, answer):
        return True
    match gold, answer:
        case Relation(), Relation():
            both = _is_equality(gold) and _is_equality(answer)
            return _same_equality(gold, answer) if both else _same_inequality(gold, answer)
        case Relation(("in",), (name, region)), _:  # x in [1, 2]
            return is_name(name) and same(region, answer)
        case _, Relation(("in",), (name, region)):
            return is_name(name) and same(gold, region)
        case Relation(_, (left, *_)), _:
            # The value that the gold states, however its sides are written; about-values are
            # rounded ones.
            states = _is_equality(gold) and (is_name(left) or is_constant(left))
            return states and any(same(value, answer) for value in _stated(gold)[1:])
        case _, Relation():
            return _is_equality(answer) and _chain_equals(gold, answer)
    return False


def _is_equality(relation: Relation) -> bool:
    return all(operator in ("=", "~") for operator in relation.operators)


def _stated(relation: Relation) -> list[Value]:
    """The sides of a chain, with those behind a sign for "about" as approximations."""
    sides: list[Value] = [relation.sides[0]]
    for operator, side in zip(relation.operators, relation.sides[1:], strict=True):
        sides.append(Approximately(side) if operator == "~" and isinstance(side, Number) else side)
    return sides


def _chain_equals(gold: Value, chain: Relation) -> bool:
    """Whether `x = 2 + 3 = 5` or `c = \\sqrt{17} \\approx 4.12` states the gold, and nothing
    false.
    """
    sides = _stated(chain)
    if is_name(sides[0]):
        sides = sides[1:]
    elif len(sides) > 2 and isinstance(sides[0], Expression) and sides[0].tree[0] in ("+", "-"):
        sides = sides[1:]  # `6x + 5 = 18 + 5 = 23` is the value of a sum; `x^2 = 5` is not 5
    elif not is_constant(sides[0]):
        return False
    exact = [side for side in sides if not isinstance(side, Approximately)]
    rounded = [side for side in sides if isinstance(side, Approximately)]
    if not exact:
        return isinstance(gold, Approximately) and all(same(gold, side) for side in rounded)
    return all(same(gold, side) for side in exact) and all(same(side, exact[0]) for side in rounded)


def _same_equality(gold: Relation, answer: Relation) -> bool:
    answer = _with_argument_of(gold, answer)
    if is_name(gold.sides[0]) and is_name(answer.sides[0]):
        if _same_name(gold.sides[0], answer.sides[0]):
            return any(_states(value, answer) for value in _stated(gold)[1:])
        if is_constant(gold.sides[-1]) or is_constant(answer.sides[-1]):
            return False
    if gold.operators != answer.operators:
        return False
    if any(
        _same_items(gold.sides, sides, _same_side) for sides in (answer.sides, answer.sides[::-1])
    ):
        return True
    if gold.operators != ("=",) or _gives_value(gold) != _gives_value(answer):
        return False  # 3x + 2 = 17 is the question, not the answer
    differences = _differences(gold, answer)
    return bool(differences) and constant_multiple(*differences) is not None


def _differences(*relations: Relation) -> list[Tree]:
    """The left side minus the right one of each; nothing where one is no expression with
    variables.
    """
    sides = [[tree_of(side) for side in relation.sides] for relation in relations]
    trees = [("-", left, right) for left, right in sides if left and right]
    return trees if len(trees) == len(relations) and all(map(symbols, trees)) else []


def _states(value: Value, answer: Relation) -> bool:
    """Whether an answer with a name on its left states that the name has this value."""
    rest = Relation(answer.operators[1:], answer.sides[1:])
    if answer.operators[0] == "~":
        return (
            isinstance(value, Approximately) and len(rest.sides) == 1 and same(value, rest.sides[0])
        )
    return _chain_equals(value, rest) if rest.operators else same(value, rest.sides[0])


def _with_argument_of(gold: Relation, answer: Relation) -> Relation:
    """`f(n) = n + 1` as `f(x) = x + 1`, where the gold calls the argument x."""
    match tree_of(gold.sides[0]), tree_of(answer.sides[0]):
        case ("call", _, ("symbol", new)), ("call", _, ("symbol", old)):
            trees = [tree_of(side) for side in answer.sides]
            used = frozenset().union(*(symbols(tree) for tree in trees[1:] if tree))
            if old in used and new not in used:  # P(B) = 1/2 is not P(A) = 1/2
                sides = [
                    side
                    if tree is None
                    else Expression(replaced(tree, ("symbol", old), ("symbol", new)))
                    for side, tree in zip(answer.sides, trees, strict=True)
                ]
                return answer._replace(sides=tuple(sides))
    return answer


def _same_name(gold: Value, answer: Value) -> bool:
    """Whether two sides name the same; y and f(x) do."""
    match tree_of(gold), tree_of(answer):
        case (("symbol", "y"), ("call", *_)) | (("call", *_), ("symbol", "y")):
            return True
    return _same_side(gold, answer)


def _same_side(gold: Value, answer: Value) -> bool:
    """Sides without variables have to be written alike: `\\log_3 27 = 3` is not `\\log_6 216 =
    3`.
    """
    first, second = tree_of(gold), tree_of(answer)
    if first is None or second is None or symbols(first) or symbols(second):
        return same(gold, answer)
    if _is_fraction(first) and _is_fraction(second):
        return same(gold, answer)
    return _in_order(first) == _in_order(second)


def _is_fraction(tree: Tree) -> bool:
    return tree[0] == "number" or (tree[0] == "/" and tree[1][0] == tree[2][0] == "number")


def _in_order(tree: Tree) -> Tree:
    """The tree with the arguments of sums and products in one order."""
    if tree[0] in ("number", "symbol", "constant", "pm"):
        return tree
    parts = [_in_order(part) if isinstance(part, tuple) else part for part in tree[1:]]
    return (tree[0], *(sorted(parts, key=repr) if tree[0] in ("+", "*") else parts))


def _gives_value(relation: Relation) -> bool:
    """Whether it is `x = 5`, or `5 = x`."""
    return any(
        bool(name_of(one)) and is_constant(other)
        for one, other in (relation.sides, relation.sides[::-1])
    )


def _same_inequality(gold: Relation, answer: Relation) -> bool:
    if gold.operators == answer.operators and _same_items(gold.sides, answer.sides, _same_side):
        return True
    turned = tuple(TURNED.get(operator, operator) for operator in answer.operators[::-1])
    if (
        gold.operators == turned
        and "in" not in turned
        and _same_items(gold.sides, answer.sides[::-1], _same_side)
    ):
        return True
    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    if any(
        different_units(unit_of(one), unit_of(other))
        for one, other in product(gold.sides, answer.sides)
    ):
        return False
    differences = _differences(gold, answer)
    multiple = constant_multiple(*differences) if differences else None
    if multiple is None or gold.operators == answer.operators == ("!=",):
        return multiple is not None
    signs = [
        sign
        for operators, sign in ((answer.operators, 1), (turned, -1))
        if operators == gold.operators
    ]
    return gold.operators[0] in TURNED and any(less(Fraction(0), multiple * sign) for sign in signs)


# The kinds that hold other values stand before those: what is around a value is compared first.
_RULES: tuple[tuple[type, Callable[[Value, Value], bool | None]], ...] = (
    (Quantity, _same_quantity),
    (Choice, _same_choice),
    (Family, same_family),
    (Residue, _same_residue),
    (Sequence, _same_without_conditions),
    (Relation, _same_relation),
    (Words, _same_words),
    (Region, _same_region),
    (Approximately, _same_approximation),
    (Matrix, _same_matrix),
    (Sequence, _same_sequence),
)
