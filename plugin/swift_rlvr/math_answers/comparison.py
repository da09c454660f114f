"""Whether an answer equals the gold, for every pair of kinds of `values.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Sequence as Items
from fractions import Fraction
from math import gcd

from swift_rlvr.math_answers import numeric
from swift_rlvr.math_answers.families import same_family
from swift_rlvr.math_answers.functions import is_real, near
from swift_rlvr.math_answers.numeric import constant_value, proportional, same_value, symbols
from swift_rlvr.math_answers.parser import Tree
from swift_rlvr.math_answers.sets import REALS
from swift_rlvr.math_answers.units import different_units
from swift_rlvr.math_answers.values import (
    Approximately,
    Choice,
    Expression,
    Family,
    Infinity,
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

ENOUGH_PLACES = 12  # a decimal with so many stands for the number that it rounds; with fewer it is exactly itself
_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")
_IN_BASE = re.compile(r"([0-9]+)_[0-9]+")
_ARBITRARY = re.compile(r"[CcKk](_\w+)?")
_DEGREE = ("/", ("constant", "pi"), ("number", Fraction(180)))
_MAX_PAIRS = 2500  # comparisons of values for two sets, each element with each; sets of plain numbers need none


def same(gold: Value, answer: Value) -> bool:
    """Whether an answer equals the gold. What cannot be shown to be equal is not.

    >>> half = Number(Fraction(1, 2))
    >>> same(half, Number(Fraction(50), percent=True)), same(half, Number(Fraction(1, 2), unit="cm")), same(half, half)
    (True, True, True)
    >>> same(Sequence("(", ")", (half, Infinity(1))), Sequence("(", ")", (Infinity(1), half)))
    False
    """
    if isinstance(gold, Number) and isinstance(answer, Number):
        return _same_number(gold, answer)
    if {type(gold), type(answer)} == {Number, Expression} and _same_angle(gold, answer):
        return True
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        if (angle := _same_angle(gold, answer)) is not None:
            return angle
        if different_units(unit_of(gold), unit_of(answer)):
            return False
        return same(without_unit(gold), without_unit(answer))
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return _same_choice(gold, answer)
    if isinstance(gold, Choice) and gold.content:  # "(D) 12" is answered by 12 as well as by D
        return gold.meaning is not None and same(gold.meaning, answer)
    if isinstance(gold, Family) or isinstance(answer, Family):
        return same_family(gold, answer)
    if isinstance(gold, Residue) or isinstance(answer, Residue):
        return _same_residue(gold, answer)
    if (core := _without_conditions(gold, answer)) is not None:
        return core
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _same_relation(gold, answer)
    if isinstance(gold, Words) != isinstance(answer, Words):
        if isinstance(gold, Words) and (based := _IN_BASE.fullmatch(gold.text)):  # what the gold adds may be left out
            return isinstance(answer, Number) and not answer.unit and str(answer.value) == based[1]
        return _same_words(*((gold, answer) if isinstance(gold, Words) else (answer, gold)))
    if isinstance(gold, Region) or isinstance(answer, Region):
        return _same_region(gold, answer)
    if isinstance(gold, Approximately) or isinstance(answer, Approximately):
        return _same_approximation(gold, answer)
    if isinstance(gold, Words) and isinstance(answer, Words):
        return gold.text == answer.text or not (gold.marked or answer.marked) and _same_expression(gold, answer)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _same_matrix(gold, answer)
    if isinstance(gold, Sequence) and isinstance(answer, Sequence):
        return _same_sequence(gold, answer)
    if isinstance(gold, Sequence) or isinstance(answer, Sequence):
        return (
            _alone(gold) is not gold
            and not _is_time(gold)
            and same(_alone(gold), answer)
            or _alone(answer) is not answer
            and same(gold, _alone(answer))
        )
    if isinstance(gold, Infinity) and isinstance(answer, Infinity):
        return gold == answer
    return _same_expression(gold, answer)


def _alone(value: Value) -> Value:
    """The element of a set of one; of a ratio of two, the quotient."""
    if isinstance(value, Sequence):
        if len(value.items) == 1 and value.opening in ("{", ""):
            return value.items[0]
        if value.opening == ":" and len(value.items) == 2:
            first, second = map(tree_of, value.items)
            if first and second:
                return Expression(("/", first, second))
    return value


def _is_time(value: Value) -> bool:
    """Whether it is 3:30 rather than a ratio: golds give ratios in lowest terms."""
    if not isinstance(value, Sequence) or value.opening != ":" or len(value.items) != 2:
        return False
    hours, minutes = (item.value if isinstance(item, Number) else None for item in value.items)
    if hours is None or minutes is None or hours.denominator != 1 or minutes.denominator != 1:
        return False
    return 0 <= hours < 24 and 10 <= minutes < 60 and gcd(int(hours), int(minutes)) > 1


def _same_angle(gold: Value, answer: Value) -> bool | None:
    """Whether an angle in degrees is one in radians, 60° and \\pi/3; None where not just one of them is in degrees."""
    units = unit_of(gold), unit_of(answer)
    if units.count("degree") != 1 or not set(units) <= {"degree", "radian", ""}:
        return None
    first, second = (tree_of(without_unit(value)) for value in (gold, answer))
    if first is None or second is None:
        return None
    if "radian" not in units and same_value(first, second):
        return True
    return same_value(
        *(("*", tree, _DEGREE) if unit == "degree" else tree for tree, unit in zip((first, second), units, strict=True))
    )


def _same_number(gold: Number, answer: Number) -> bool:
    if different_units(gold.unit, answer.unit):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value
    values = {answer.value / 100 if answer.percent else answer.value}
    if answer.percent and (gold.value.denominator == 1 or abs(gold.value) >= 1):
        values.add(answer.value)  # "what percentage ...": the sign may be read as a unit
    golds = {gold.value / 100, gold.value} if gold.percent else {gold.value}
    return bool(golds & values) or _rounds(gold, answer.value) or _rounds(answer, gold.value)


def _rounds(number: Number, value: numeric.Value) -> bool:
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
            if number.percent and not isinstance(gold, Number) and same_value(("number", number.value), other):
                return True
            value = constant_value(other)
            if value is not None and _rounds(number, value):
                return True
    return False


def _with_constants_of(gold: Tree, answer: Tree) -> Tree:
    """The answer with its arbitrary constants, beside a variable, named as in the gold: `+ c` as `+ C`."""
    names = symbols(gold), symbols(answer)
    wanted, present = names[0] - names[1], names[1] - names[0]
    if not wanted or wanted == names[0] or not all(map(_ARBITRARY.fullmatch, wanted | present)):
        return answer
    old, new = ({name.lower(): name for name in side} for side in (present, wanted))
    if old.keys() != new.keys() or len(old) != len(present) or len(new) != len(wanted):
        return answer
    for name in old:
        answer = _renamed(answer, old[name], new[name])
    return answer


def _same_residue(gold: Value, answer: Value) -> bool:
    if not isinstance(gold, Residue):
        return False
    if not isinstance(answer, Residue):  # what the gold adds may be left out
        return (gold.name is None or is_name(gold.name)) and same(gold.value, answer)
    if gold.name is not None and answer.name is not None and not same(gold.name, answer.name):
        return False
    if not same(gold.modulus, answer.modulus):
        return False
    numbers = [value for value in (gold.value, answer.value, gold.modulus) if isinstance(value, Number)]
    if len(numbers) == 3 and numbers[2].value:
        return ((numbers[0].value - numbers[1].value) / numbers[2].value).denominator == 1
    return same(gold.value, answer.value)


def _without_conditions(gold: Value, answer: Value) -> bool | None:
    """The verdict where one side adds conditions on its variables, `\\frac{1}{x}, x \\neq 0`; None where none does."""
    if isinstance(gold, Sequence) == isinstance(answer, Sequence):
        return None
    sequence = gold if isinstance(gold, Sequence) else answer
    assert isinstance(sequence, Sequence)
    if sequence.opening or len(sequence.items) < 2:
        return None
    core, *conditions = sequence.items
    tree = tree_of(core.sides[-1] if isinstance(core, Relation) and _is_equality(core) else core)
    if tree is None or not all((names := _condition_on(item)) and names <= symbols(tree) for item in conditions):
        return None
    return same(core, answer) if sequence is gold else same(gold, core)


def _condition_on(value: Value) -> frozenset[str]:
    """The variables that a condition restricts; none where the value is no condition."""
    if isinstance(value, Region) and value.variable:
        return frozenset((value.variable,))
    if isinstance(value, Relation) and not _is_equality(value):
        return frozenset().union(*(symbols(tree) for side in value.sides[:1] if (tree := tree_of(side))))
    return frozenset()


def _same_words(words: Value, other: Value) -> bool:
    """Words and a value of another kind: several choices, and sets in words."""
    assert isinstance(words, Words)
    if isinstance(other, Sequence) and other.opening in ("", "{"):  # AC for A, C
        letters = [item.letter.lower() for item in other.items if isinstance(item, Choice)]
        return len(letters) == len(other.items) and sorted(words.text) == sorted(letters)
    if words.text == "no solution":
        return isinstance(other, Region) and not other.numbers.pieces
    if words.text in ("all real numbers", "all reals", "real numbers", "any real number"):
        return isinstance(other, Region) and other.numbers.equals(REALS)
    return not words.marked and _same_expression(words, other)


def _same_choice(gold: Choice, answer: Choice) -> bool:
    if not (gold.marked or answer.marked):
        return gold.letter == answer.letter
    if gold.letter.upper() != answer.letter.upper():
        return False
    if _OTHER_CHOICE.search(answer.content):  # "(A) is wrong, (B) is right"
        return False
    return gold.meaning is None or answer.meaning is None or same(gold.meaning, answer.meaning)


def _same_approximation(gold: Value, answer: Value) -> bool:
    if not isinstance(gold, Approximately):
        return False  # about 5 is not 5
    number = gold.number
    if isinstance(answer, Approximately):
        answer = answer.number
    if different_units(number.unit, unit_of(answer)):
        return False
    tree = tree_of(without_unit(answer))
    value = None if tree is None else constant_value(tree)
    return value is not None and rounds_to(value, number)


def rounds_to(value: numeric.Value, number: Number) -> bool:
    """Whether a value is at most half a unit in the last place away from a decimal."""
    return is_real(value) and near(value, number.value, Fraction(1, 2 * 10**number.places))


def _same_sequence(gold: Sequence, answer: Sequence) -> bool:
    sides = (gold.opening, gold.closing), (answer.opening, answer.closing)
    if gold.opening == ":" or answer.opening == ":":
        same_ratio = _same_items if _is_time(gold) else _same_ratio
        return sides[0] == sides[1] and same_ratio(gold.items, answer.items)
    if all(side in (("{", "}"), ("", ""), ("cases", "")) for side in sides):
        lefts = [_left_sides(sequence.items) for sequence in (gold, answer)]
        if lefts[0] and not lefts[1] and any(left != lefts[0][0] for left in lefts[0]):
            return _same_items(gold.items, answer.items)  # x = 1, y = 2: in this order
        return _same_set(gold.items, answer.items)
    if all(side in (("(", ")"), ("[", "]"), ("", "")) for side in sides) and len(gold.items) > 2:
        return _same_items(gold.items, answer.items)  # an interval has two ends: these are lists in order
    if sides[0] != sides[1] and {side[0] for side in sides} != {"(", "<"}:
        bare = next((sequence for sequence in (gold, answer) if sequence.opening in ("", "cases")), None)
        other = answer if bare is gold else gold
        if bare is None or other.opening != "(":
            return False
        variables = _names(bare.items)
        if not variables or len(set(variables)) != len(variables) or variables != sorted(variables):
            return False  # x = 1, y = 2 is (1, 2)
    return _same_items(gold.items, answer.items)


def _left_sides(items: tuple[Value, ...]) -> list[Value]:
    """What stands left of `=` in each item; nothing where an item is no equation."""
    lefts = [item.sides[0] for item in items if isinstance(item, Relation) and item.operators == ("=",)]
    return lefts if len(lefts) == len(items) else []


def _names(items: tuple[Value, ...]) -> list[str]:
    """The variables of `x = 1, y = 2`; none where an item is something else."""
    names = [name_of(left) for left in _left_sides(items)]
    return names if all(names) else []


def _same_items(gold: tuple[Value, ...], answer: tuple[Value, ...]) -> bool:
    return len(gold) == len(answer) and all(same(*pair) for pair in zip(gold, answer, strict=True))


def _same_ratio(gold: tuple[Value, ...], answer: tuple[Value, ...]) -> bool:
    quotients = []
    for items in (gold, answer):
        trees = [tree_of(item) for item in items]
        if None in trees:
            return _same_items(gold, answer)
        quotients.append([("/", tree, trees[0]) for tree in trees])
    pairs = list(zip(*quotients, strict=False))
    return len(gold) == len(answer) and all(same_value(first, second) for first, second in pairs)


def _same_set(gold: tuple[Value, ...], answer: tuple[Value, ...]) -> bool:
    if all(isinstance(item, Number) and not (item.percent or item.unit) for item in (*gold, *answer)):
        values = [{item.value for item in items if isinstance(item, Number)} for items in (gold, answer)]
        if values[0] == values[1]:
            return True
        if not any(isinstance(item, Number) and item.places >= ENOUGH_PLACES for item in (*gold, *answer)):
            return False
    if _size(gold) * _size(answer) > _MAX_PAIRS:
        return False
    table = [[same(first, second) for second in answer] for first in gold]
    return all(map(any, table)) and all(map(any, zip(*table, strict=True))) and bool(table) == bool(answer)


def _size(items: Iterable[Value]) -> int:
    """The number of values, including those within sequences."""
    return sum(_size(item.items) if isinstance(item, Sequence) else 1 for item in items)


def _same_matrix(gold: Value, answer: Value) -> bool:
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        return (
            gold.bars == answer.bars
            and [len(row) for row in gold.rows] == [len(row) for row in answer.rows]
            and all(_same_items(*rows) for rows in zip(gold.rows, answer.rows, strict=True))
        )
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    if isinstance(other, Sequence) and other.opening == "[" and not matrix.bars:  # [[1, 2], [3, 4]]
        rows = [item.items for item in other.items if isinstance(item, Sequence) and item.opening == "["]
        if len(rows) == len(other.items) == len(matrix.rows):
            return all(_same_items(*pair) for pair in zip(matrix.rows, rows, strict=True))
    if isinstance(other, Sequence) and other.opening in ("(", "<") and not matrix.bars:  # a vector
        if all(len(row) == 1 for row in matrix.rows):
            return _same_items(tuple(row[0] for row in matrix.rows), other.items)
        return len(matrix.rows) == 1 and _same_items(matrix.rows[0], other.items)
    return False


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _same_relation(gold: Value, answer: Value) -> bool:
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        if _is_equality(gold) and _is_equality(answer):
            return _same_equality(gold, answer)
        return _same_inequality(gold, answer)
    relation, other = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
    assert isinstance(relation, Relation)
    if relation.operators == ("in",):  # x in [1, 2]
        return is_name(relation.sides[0]) and same(
            *((relation.sides[1], other) if gold is relation else (other, relation.sides[1]))
        )
    if not _is_equality(relation):
        return False
    if relation is gold:
        # The value that the gold states, however its sides are written; about-values are rounded ones.
        if not (is_name(relation.sides[0]) or is_constant(relation.sides[0])):
            return False
        return any(same(value, other) for value in _stated(relation)[1:])
    return _chain_equals(other, relation)


def _is_equality(relation: Relation) -> bool:
    return all(operator in ("=", "~") for operator in relation.operators)


def _stated(relation: Relation) -> list[Value]:
    """The sides of a chain, with those behind a sign for "about" as approximations."""
    sides: list[Value] = [relation.sides[0]]
    for operator, side in zip(relation.operators, relation.sides[1:], strict=True):
        sides.append(Approximately(side) if operator == "~" and isinstance(side, Number) else side)
    return sides


def _chain_equals(gold: Value, chain: Relation) -> bool:
    """Whether `x = 2 + 3 = 5` or `c = \\sqrt{17} \\approx 4.12` states the gold, and nothing false."""
    sides = _stated(chain)
    if is_name(sides[0]):
        sides = sides[1:]
    elif not is_constant(sides[0]):
        return False
    if not sides:
        return False
    exact = [side for side in sides if not isinstance(side, Approximately)]
    rounded = [side for side in sides if isinstance(side, Approximately)]
    if not exact:
        return isinstance(gold, Approximately) and all(same(gold, side) for side in rounded)
    if not all(same(gold, side) for side in exact):
        return False
    return all(same(side, exact[0]) for side in rounded)


def _same_equality(gold: Relation, answer: Relation) -> bool:
    answer = _with_argument_of(gold, answer)
    named = is_name(gold.sides[0]), is_name(answer.sides[0])
    if all(named):
        if same_name(gold.sides[0], answer.sides[0]):
            return any(_states(value, answer) for value in _stated(gold)[1:])
        if is_constant(gold.sides[-1]) or is_constant(answer.sides[-1]):
            return False
    if gold.operators != answer.operators:
        return False
    if _same_sides(gold.sides, answer.sides) or _same_sides(gold.sides, answer.sides[::-1]):
        return True
    if gold.operators != ("=",) or _gives_value(gold) != _gives_value(answer):
        return False  # 3x + 2 = 17 is the question, not the answer
    differences = []
    for relation in (gold, answer):
        left, right = map(tree_of, relation.sides)
        if left is None or right is None:
            return False
        differences.append(("-", left, right))
    if not (symbols(differences[0]) and symbols(differences[1])):
        return False
    return proportional(*differences)


def _states(value: Value, answer: Relation) -> bool:
    """Whether an answer with a name on its left states that the name has this value."""
    rest = Relation(answer.operators[1:], answer.sides[1:])
    if answer.operators[0] == "~":
        return isinstance(value, Approximately) and len(rest.sides) == 1 and same(value, rest.sides[0])
    return _chain_equals(value, rest) if rest.operators else same(value, rest.sides[0])


def _with_argument_of(gold: Relation, answer: Relation) -> Relation:
    """`f(n) = n + 1` as `f(x) = x + 1`, where the gold calls the argument x."""
    calls = [tree_of(relation.sides[0]) for relation in (gold, answer)]
    if any(call is None or call[0] != "call" or len(call) != 3 or call[2][0] != "symbol" for call in calls):
        return answer
    old, new = (call[2][1] for call in calls[::-1] if call)
    used = frozenset().union(*(symbols(tree) for side in answer.sides[1:] if (tree := tree_of(side))))
    if old not in used or new in used:  # P(B) = 1/2 is not P(A) = 1/2
        return answer
    return answer._replace(sides=tuple(_with_name(side, old, new) for side in answer.sides))


def _with_name(side: Value, old: str, new: str) -> Value:
    tree = tree_of(side)
    return side if tree is None else Expression(_renamed(tree, old, new))


def _renamed(tree: Tree, old: str, new: str) -> Tree:
    if tree == ("symbol", old):
        return ("symbol", new)
    return (tree[0], *(_renamed(part, old, new) if isinstance(part, tuple) else part for part in tree[1:]))


def same_name(gold: Value, answer: Value) -> bool:
    """Whether two sides name the same; y and f(x) do."""
    trees = [tree_of(value) for value in (gold, answer)]
    if None not in trees and {tree[0] for tree in trees if tree} == {"symbol", "call"} and ("symbol", "y") in trees:
        return True
    return _same_side(gold, answer)


def _same_sides(gold: Items[Value], answer: Items[Value]) -> bool:
    return len(gold) == len(answer) and all(_same_side(*pair) for pair in zip(gold, answer, strict=True))


def _same_side(gold: Value, answer: Value) -> bool:
    """Sides without variables have to be written alike: `\\log_3 27 = 3` is not `\\log_6 216 = 3`."""
    first, second = tree_of(gold), tree_of(answer)
    if first is None or second is None:
        return same(gold, answer)
    if not symbols(first) and not symbols(second):
        plain = all(
            tree[0] == "number" or tree[0] == "/" and tree[1][0] == tree[2][0] == "number" for tree in (first, second)
        )
        return same(gold, answer) if plain else in_order(first) == in_order(second)
    return same(gold, answer)


def in_order(tree: Tree) -> Tree:
    """The tree with the arguments of sums and products in one order."""
    if tree[0] in ("number", "symbol", "constant", "pm"):
        return tree
    parts = [in_order(part) if isinstance(part, tuple) else part for part in tree[1:]]
    return (tree[0], *(sorted(parts, key=repr) if tree[0] in ("+", "*") else parts))


def _gives_value(relation: Relation) -> bool:
    """Whether it is `x = 5`, or `5 = x`."""
    return any(bool(name_of(one)) and is_constant(other) for one, other in (relation.sides, relation.sides[::-1]))


def _same_inequality(gold: Relation, answer: Relation) -> bool:
    if gold.operators == answer.operators and _same_sides(gold.sides, answer.sides):
        return True
    turned = tuple(_TURNED.get(operator, operator) for operator in answer.operators[::-1])
    if gold.operators == turned and "in" not in turned and _same_sides(gold.sides, answer.sides[::-1]):
        return True
    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    sides = [[tree_of(side) for side in relation.sides] for relation in (gold, answer)]
    if any(side is None for pair in sides for side in pair):
        return False
    first, second = (("-", left, right) for left, right in sides)
    if not (symbols(first) and symbols(second)):
        return False
    if gold.operators == answer.operators == ("!=",):
        return proportional(first, second)
    for operators, sign in ((answer.operators, 1), (turned, -1)):
        if operators == gold.operators and operators[0] in _TURNED and numeric.positive_multiple(first, second, sign):
            return True
    return False


def _same_region(gold: Value, answer: Value) -> bool:
    regions = [as_region(value) for value in (gold, answer)]
    if regions[0] is None or regions[1] is None:
        return False
    names = {region.variable for region in regions if region and region.variable}
    return len(names) < 2 and regions[0].numbers.equals(regions[1].numbers)
