r"""Whether an answer equals the gold, for every pair of kinds of `values.py`.

What cannot be shown to be equal is wrong. The gold and the answer don't change places: an answer
may leave out a unit, a name, a condition or the text of a choice, and it may not be less exact.
Examples in comments read gold -> answer; most are rows of `tests/verifiers/mathematics/pairs.jsonl`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from fractions import Fraction
from itertools import chain, product
from typing import Any

from swift_rlvr.verifiers.mathematics.expressions import (
    same_angle,
    same_approximation,
    same_expression,
)
from swift_rlvr.verifiers.mathematics.families import same_family
from swift_rlvr.verifiers.mathematics.functions import Computed, less
from swift_rlvr.verifiers.mathematics.lists import (
    in_order,
    is_clock_time,
    names_values_in_order,
    only_value,
    same_brackets,
    without_conditions,
)
from swift_rlvr.verifiers.mathematics.numeric import constant_multiple, same_value, symbols
from swift_rlvr.verifiers.mathematics.parser import Tree, is_fraction, replaced, with_each_part
from swift_rlvr.verifiers.mathematics.plain_numbers import ENOUGH_PLACES_OF_GOLD, same_number
from swift_rlvr.verifiers.mathematics.sets import EMPTY, REALS
from swift_rlvr.verifiers.mathematics.units import different_units, ratio
from swift_rlvr.verifiers.mathematics.values import (
    TURNED,
    Approximately,
    Cases,
    Choice,
    Expression,
    Family,
    Listing,
    Matrix,
    Number,
    Quantity,
    Ratio,
    Region,
    Relation,
    Sequence,
    Set,
    Several,
    Tuple,
    Value,
    Vector,
    Words,
    as_region,
    is_constant,
    is_equality,
    is_name,
    name_of,
    product_of,
    tree_of,
    unit_of,
    without_unit,
)

# Most comparisons of one value with another that two sets may take, each element with each: 50 by
# 50 values. Sets of plain numbers need none.
_MAX_PAIRS = 2500

# A choice named in the text of another one, which so names two: (A) is wrong, (B) is right.
_OTHER_CHOICE = re.compile(r"\([A-Z]\)|(?<![A-Za-z])[A-Z][.):](?:\s|$)")

# A number with its base, 1101_2. Its digits alone are right where the gold has the base.
_IN_BASE = re.compile(r"(-?[0-9]+)_[0-9]+")

# What the words of an answer say about real numbers, as `reading` leaves them.
_NO_SOLUTION = "no solution"
_ALL_REALS = ("all real numbers", "all reals", "real numbers", "any real number")


def same(gold: Value, answer: Value) -> bool:
    """Whether an answer equals the gold. What cannot be shown to be equal is not.

    First comes what stands around the two values: a unit, the letter of a choice, conditions. Then
    their kinds decide.

    >>> half = Number(Fraction(1, 2))
    >>> same(half, Number(Fraction(50), percent=True)), same(half, Number(Fraction(1, 2), unit="cm"))
    (True, True)
    >>> one = Number(Fraction(1))
    >>> same(Tuple((half, one)), Tuple((one, half))), same(Set((half, one)), Set((one, half)))
    (False, True)
    """
    match gold, answer:
        case Number(product=None), Number(product=None):
            return same_number(gold, answer)
        case (Number(product=tuple()) | Quantity(product=tuple()), _) | (
            _,
            Number(product=tuple()) | Quantity(product=tuple()),
        ):
            return _same_with_product(gold, answer)
        case (Quantity(), _) | (_, Quantity()):
            angle = same_angle(gold, answer)
            if angle is not None:
                return angle
            if different_units(unit_of(gold), unit_of(answer)):
                return False
            return same(without_unit(gold), without_unit(answer))
        case (Choice(), _) | (_, Choice()) if (is_chosen := _same_choice(gold, answer)) is not None:
            return is_chosen
        case (Family(), _) | (_, Family()):
            return same_family(gold, answer)

    if not (isinstance(gold, Several) and isinstance(answer, Several)):
        core = without_conditions(gold)
        if core is not None:
            return same(core, answer)
        core = without_conditions(answer)
        if core is not None:
            return same(gold, core)
    return _same_kind(gold, answer)


def _same_kind(gold: Value, answer: Value) -> bool:
    """Whether an answer equals the gold, where nothing stands around the two. Names and words come
    first: an answer may say in them what the gold is.
    """
    match gold, answer:
        case Relation(), _:
            return _same_relation(gold, answer)
        case _, Relation():
            return _answer_states(gold, answer)
        case Words(), _:
            return _same_words(gold, answer)
        case _, Words():
            return _words_are(answer, gold)
        case Region(), _:
            return _same_region(gold, answer)
        case Approximately(), _:
            return same_approximation(gold, answer)
        case Matrix(), _:
            return _matrix_is(gold, answer)
        case Several(), _:
            return _same_several(gold, answer)
        case _, Several():
            # 3 -> {3}
            alone = only_value(answer)
            return alone is not None and same(gold, alone)
    return bool(same_angle(gold, answer)) or same_expression(gold, answer)


# --- letters that may be a unit or variables


def _same_with_product(gold: Value, answer: Value) -> bool:
    """Whether an answer equals a gold, where the letters of one of them may be a unit or variables.

    2mg -> 2gm as variables, and -> 2 \\text{ mg} as a unit, but not -> 2: a unit may be left out,
    and a variable may not.
    """
    for value in _readings(gold):
        for other in _readings(answer):
            is_unit_left_out = product_of(gold) and unit_of(value) and not unit_of(other)
            if not is_unit_left_out and same(value, other):
                return True
    return False


def _readings(value: Value) -> list[Value]:
    """A value with its unit and, where the letters of that may be variables, with these."""
    if not isinstance(value, (Number, Quantity)) or value.product is None:
        return [value]
    return [value._replace(product=None), Expression(value.product)]


# --- choices


def _same_choice(gold: Value, answer: Value) -> bool | None:
    """Whether one of several choices is the other or its content. Returns None if one of the two may
    be a variable.
    """
    match gold, answer:
        case Choice(marked=False), Choice(marked=False):
            # x and X are two variables, (a) and (A) one choice
            return gold.letter == answer.letter
        case Choice(), Choice():
            if gold.letter.upper() != answer.letter.upper() or _names_other_choice(answer):
                return False
            # (A) 5 cm -> (A) 5 m: the letter is right and its content contradicts it
            if gold.meaning is None or answer.meaning is None:
                return True
            return same(gold.meaning, answer.meaning)
        case Choice(), _ if gold.content:
            # (D) 12 -> 12; a gold that is a letter alone may be a variable
            return gold.meaning is not None and same(gold.meaning, answer)
        case _, Choice():
            # Thursday -> (B) Thursday
            if answer.meaning is None or _names_other_choice(answer):
                return None
            return same(gold, answer.meaning)
    return None


def _names_other_choice(answer: Choice) -> bool:
    return _OTHER_CHOICE.search(answer.content) is not None


# --- words


def _same_words(gold: Words, answer: Value) -> bool:
    """Words and words, or a value of another kind: several choices, and sets in words."""
    if isinstance(answer, Words):
        if gold.text == answer.text:
            return True
        lowered = gold.text.lower()
        if gold.marked or answer.marked:
            return lowered == answer.text.lower()
        # Bob -> bob: two letters are rather a product, and Rx is another one than rx
        if len(lowered) > 2 and {gold.text, answer.text} == {lowered, lowered.capitalize()}:
            return True
        return same_expression(gold, answer)

    in_base = _IN_BASE.fullmatch(gold.text)
    if in_base:
        # 1101_2 -> 1101: the base may be left out, as a unit may be
        if not isinstance(answer, Number) or answer.unit:
            return False
        return str(answer.value) == in_base[1]
    return _words_are(gold, answer)


def _words_are(words: Words, value: Value) -> bool:
    """Whether words say what a value of another kind says."""
    if isinstance(value, Listing | Set):
        # BD -> B, D
        letters = [item.letter.lower() for item in value.items if isinstance(item, Choice)]
        return len(letters) == len(value.items) and sorted(words.text.lower()) == sorted(letters)
    if words.text == _NO_SOLUTION:
        return isinstance(value, Region) and value.numbers.equals(EMPTY)
    if words.text in _ALL_REALS:
        return isinstance(value, Region) and value.numbers.equals(REALS)
    return not words.marked and same_expression(words, value)


# --- regions


def _same_region(gold: Value, answer: Value) -> bool:
    first = as_region(gold)
    second = as_region(answer)
    if first is None or second is None:
        return False
    # x > 3 -> (3, \infty), and x > 3 -> y > 3 is wrong
    if first.variable and second.variable and first.variable != second.variable:
        return False
    return first.numbers.equals(second.numbers)


# --- matrices


def _matrix_is(matrix: Matrix, value: Value) -> bool:
    """Whether a matrix is another one, or is written as a vector or as a list of its rows."""
    match value:
        case Matrix():
            return matrix.bars == value.bars and _same_items(matrix.rows, value.rows, _same_items)
        case _ if matrix.bars:
            # a determinant is a number
            number = _determinant(matrix)
            return number is not None and same_expression(Expression(number), value)
        case Tuple(items, closed_low=True):
            # [[1, 2], [3, 4]]
            rows = []
            for item in items:
                if not isinstance(item, Tuple) or not item.closed_low:
                    return False
                rows.append(item.items)
            return _same_items(matrix.rows, rows, _same_items)
        case Tuple(items) | Vector(items):
            # (1, 2) or <1, 2>: the entries of a column or of a single row
            entries = list(chain.from_iterable(matrix.rows))
            is_line = len(matrix.rows) in (1, len(entries))
            return is_line and _same_items(entries, items)
    return False


# Larger determinants have too many terms.
_MAX_DETERMINANT = 4


def _determinant(matrix: Matrix) -> Tree | None:
    """The determinant of a matrix, written out along its first row. None if it is not square, too
    large, or has other entries than expressions.
    """
    rows = [[tree_of(entry) for entry in row] for row in matrix.rows]
    if len(rows) > _MAX_DETERMINANT or any(len(row) != len(rows) or None in row for row in rows):
        return None
    return _expanded(rows)


def _expanded(rows: list[list[Any]]) -> Tree:
    first, *others = rows
    if not others:
        return first[0]
    terms: list[Tree] = []
    for column, entry in enumerate(first):
        minor = _expanded([row[:column] + row[column + 1 :] for row in others])
        sign = ("number", Fraction((-1) ** column))
        terms.append(("*", sign, ("*", entry, minor)))
    total = terms[0]
    for term in terms[1:]:
        total = ("+", total, term)
    return total


# --- several values: sets, tuples, ratios, cases


def _same_several(gold: Several, answer: Value) -> bool:
    match gold, answer:
        case _, Region():
            return _same_region(gold, answer)
        case _, Matrix():
            return _matrix_is(answer, gold)
        case Ratio(), Ratio():
            return _same_ratio(gold, answer)
        case Listing() | Sequence() | Set() | Cases(), Listing() | Sequence() | Set() | Cases():
            return _same_list(gold, answer)
        case _, Several():
            return same_brackets(gold, answer) and _same_items(gold.items, answer.items)
    # {3} -> 3, and 1:2 -> 1/2; the time 3:30 is no quotient
    alone = None if is_clock_time(gold) else only_value(gold)
    return alone is not None and same(alone, answer)


def _same_items(
    gold: Items[Any], answer: Items[Any], equal: Callable[[Any, Any], bool] = same
) -> bool:
    """Whether two sequences have the same items in the same order."""
    return len(gold) == len(answer) and all(map(equal, gold, answer))


def _same_ratio(gold: Ratio, answer: Ratio) -> bool:
    """Whether two ratios are the same, 2:4 and 1:2, and with three parts 2:4:6 and 1:2:3."""
    gold_trees = [tree_of(item) for item in gold.items]
    answer_trees = [tree_of(item) for item in answer.items]
    if is_clock_time(gold) or None in gold_trees or None in answer_trees:
        return _same_items(gold.items, answer.items)
    gold_shares = [("/", tree, gold_trees[0]) for tree in gold_trees]
    answer_shares = [("/", tree, answer_trees[0]) for tree in answer_trees]
    return _same_items(gold_shares, answer_shares, same_value)


def _same_list(gold: Several, answer: Several) -> bool:
    """Whether two lists are the same: in their order where it counts, else each element is one of
    the other list, and how often it stands there does not count.
    """
    if in_order(gold) or names_values_in_order(gold, answer):
        return _same_items(gold.items, answer.items)
    is_same = _same_plain_numbers(gold, answer)
    if is_same is not None:
        return is_same
    if _size(gold.items) * _size(answer.items) > _MAX_PAIRS:
        return False
    in_gold = [False] * len(answer.items)
    for element in gold.items:
        in_answer = False
        for index, other in enumerate(answer.items):
            if same(element, other):
                in_answer = True
                in_gold[index] = True
        if not in_answer:
            return False
    return all(in_gold)


def _same_plain_numbers(gold: Several, answer: Several) -> bool | None:
    """Whether two lists hold the same numbers. Returns None if an item is something else, or has a
    unit or a percent sign, or is so long a decimal that another number may equal it.
    """
    values: list[set[Fraction]] = []
    are_short = True
    for several in (gold, answer):
        numbers = set()
        for item in several.items:
            if not isinstance(item, Number) or item.percent or item.unit:
                return None
            numbers.add(item.value)
            are_short = are_short and item.places < ENOUGH_PLACES_OF_GOLD
        values.append(numbers)
    is_same = values[0] == values[1]
    return is_same if is_same or are_short else None


def _size(items: Iterable[Value]) -> int:
    """The number of values, including those within tuples and sets."""
    size = 0
    for item in items:
        size += _size(item.items) if isinstance(item, Several) else 1
    return size


# --- equations and inequalities


def _same_relation(gold: Relation, answer: Value) -> bool:
    if _same_region(gold, answer):
        return True
    if isinstance(answer, Relation):
        if is_equality(gold) and is_equality(answer):
            return _same_equality(gold, answer)
        return _same_inequality(gold, answer)
    match gold:
        case Relation(("in",), (name, region)):  # x \\in [1, 2] -> [1, 2]
            return is_name(name) and same(region, answer)

    # the value that a gold states, x = 1.5 -> 3/2, however its sides are written, and behind
    # x \approx 1.4 any value that rounds to 1.4; x^2 = 5 -> 5 is wrong
    left = gold.sides[0]
    is_stated = is_name(left) or is_constant(left) or _is_formula_for_left(gold)
    if not is_equality(gold) or not is_stated:
        return False
    return any(same(value, answer) for value in _stated_sides(gold)[1:])


def _answer_states(gold: Value, answer: Relation) -> bool:
    """Whether an answer says of a name that it is the gold: 5 -> x = 5, [1, 2] -> x \\in [1, 2]."""
    if _same_region(gold, answer):
        return True
    match answer:
        case Relation(("in",), (name, region)):
            return is_name(name) and same(gold, region)
    return is_equality(answer) and _chain_equals(gold, answer)


def _is_formula_for_left(relation: Relation) -> bool:
    """Whether the right side says what the left one is, in other variables: C_p - C_v = nR. Of
    x^2 + y^2 = 25, and of x + y = z, the right side is no answer.
    """
    if len(relation.sides) != 2:
        return False
    left, right = map(tree_of, relation.sides)
    if left is None or right is None or right[0] == "symbol":
        return False
    return bool(symbols(right)) and not symbols(left) & symbols(right)


def _stated_sides(relation: Relation) -> list[Value]:
    """The sides of a chain, with those behind a sign for "about" as approximations."""
    sides: list[Value] = [relation.sides[0]]
    for operator, side in zip(relation.operators, relation.sides[1:], strict=True):
        if operator == "~" and isinstance(side, Number):
            side = Approximately(side)
        sides.append(side)
    return sides


def _chain_equals(gold: Value, chain: Relation) -> bool:
    """Whether `x = 2 + 3 = 5` or `c = \\sqrt{17} \\approx 4.12` states the gold, and nothing
    false.
    """
    sides = _stated_sides(chain)
    if _is_defined(sides):
        sides = sides[1:]
    elif not is_constant(sides[0]):
        return False
    exact = [side for side in sides if not isinstance(side, Approximately)]
    rounded = [side for side in sides if isinstance(side, Approximately)]
    if not exact:
        return isinstance(gold, Approximately) and all(same(gold, side) for side in rounded)
    # 3 -> 1 = 2 = 3 is wrong: all sides have to be right
    return all(same(gold, side) for side in exact) and all(same(side, exact[0]) for side in rounded)


def _is_defined(sides: list[Value]) -> bool:
    """Whether the first side of a chain stands for the others, so that it claims nothing itself: the
    x of `x = 2 + 3 = 5`.
    """
    left, *others = sides
    # the x of `x = 2x + 1` is a part of the other side
    if is_name(left):
        name = name_of(left)
        trees = [tree_of(other) for other in others]
        if not any(name in symbols(tree) for tree in trees if tree is not None):
            return True
    if not isinstance(left, Expression):
        return False
    # `6x + 5 = 18 + 5 = 23` computes the value of a sum; `x^2 = 5` states no value
    if len(sides) > 2 and left.tree[0] in ("+", "-"):
        return True

    # of a sum, product or quotient of several names, the V/\pi of `V/\pi = 75`, the right side says
    # what it is. Of `x + 1 = 3`, `2x = 4` and `x^2 = 5` it does not say what x is: a number or a
    # power on the left makes an equation that is still to be solved
    atoms = []
    parts = [left.tree]
    while parts:
        part = parts.pop()
        if part[0] in ("symbol", "constant"):
            atoms.append(part)
        elif part[0] in ("+", "-", "*", "/"):
            parts += part[1:]
        else:
            return False
    return bool(symbols(left.tree)) and len(set(atoms)) == len(atoms) > 1


def _same_equality(gold: Relation, answer: Relation) -> bool:
    answer = _with_argument_of(gold, answer)
    if is_name(gold.sides[0]) and is_name(answer.sides[0]):
        if _same_name(gold.sides[0], answer.sides[0]):
            return any(_name_has_value(value, answer) for value in _stated_sides(gold)[1:])
        # x = 5 -> y = 5 is wrong. y = 2x + 1 -> x = (y - 1)/2 may be the same line.
        if is_constant(gold.sides[-1]) or is_constant(answer.sides[-1]):
            return False
    # x = 5 -> 10/2 = 5
    is_calculation = is_name(gold.sides[0]) and is_constant(answer.sides[0])
    if is_calculation and any(_chain_equals(value, answer) for value in _stated_sides(gold)[1:]):
        return True
    if gold.operators != answer.operators:
        return False
    if _same_items(gold.sides, answer.sides, _same_side):
        return True
    if _same_items(gold.sides, answer.sides[::-1], _same_side):
        return True
    # x = 5 -> 3x + 2 = 17: the equation may be the question, and is no answer to it
    if gold.operators != ("=",) or _gives_value(gold) != _gives_value(answer):
        return False
    # x^2 + 3 = 0 -> 2x^2 + 6 = 0
    return _multiple_of(gold, answer) is not None


def _multiple_of(gold: Relation, answer: Relation) -> Computed | None:
    """The constant by which the sides of the answer are multiplied in the gold, for relations with
    two sides. Returns None if there is none.
    """
    gold_difference = _difference(gold)
    answer_difference = _difference(answer)
    if gold_difference is None or answer_difference is None:
        return None
    return constant_multiple(gold_difference, answer_difference)


def _difference(relation: Relation) -> Tree | None:
    """The left side minus the right one. Returns None if it is no expression with variables."""
    left, right = map(tree_of, relation.sides)
    if left is None or right is None:
        return None
    difference = ("-", left, right)
    return difference if symbols(difference) else None


def _gives_value(relation: Relation) -> bool:
    """Whether it is `x = 5`, or `5 = x`."""
    left, right = relation.sides
    if name_of(left) and is_constant(right):
        return True
    return bool(name_of(right)) and is_constant(left)


def _name_has_value(value: Value, answer: Relation) -> bool:
    """Whether an answer with a name on its left states that the name has this value."""
    rest = Relation(answer.operators[1:], answer.sides[1:])
    # x = 1.4 -> x \approx 1.4 is wrong: it leaves open which number x is
    if answer.operators[0] == "~":
        if not isinstance(value, Approximately) or len(rest.sides) != 1:
            return False
        return same(value, rest.sides[0])
    if rest.operators:
        return _chain_equals(value, rest)
    return same(value, rest.sides[0])


def _with_argument_of(gold: Relation, answer: Relation) -> Relation:
    """`f(n) = n + 1` as `f(x) = x + 1`, where the gold calls the argument x."""
    match tree_of(gold.sides[0]), tree_of(answer.sides[0]):
        case ("call", _, ("symbol", new)), ("call", _, ("symbol", old)):
            pass
        case _:
            return answer
    used: set[str] = set()
    for side in answer.sides[1:]:
        tree = tree_of(side)
        if tree is not None:
            used |= symbols(tree)
    # P(B) = 1/2 is not P(A) = 1/2: what the right side does not use is no argument, but a name
    if old not in used or new in used:
        return answer
    sides = []
    for side in answer.sides:
        tree = tree_of(side)
        if tree is not None:
            side = Expression(replaced(tree, ("symbol", old), ("symbol", new)))
        sides.append(side)
    return answer._replace(sides=tuple(sides))


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
    first = tree_of(gold)
    second = tree_of(answer)
    if first is None or second is None or symbols(first) or symbols(second):
        return same(gold, answer)
    if is_fraction(first) and is_fraction(second):
        return same(gold, answer)
    return _in_one_order(first) == _in_one_order(second)


def _in_one_order(tree: Tree) -> Tree:
    """The tree with the arguments of sums and products in one order."""
    if tree[0] in ("number", "symbol", "constant", "pm"):
        return tree
    kind, *parts = with_each_part(tree, _in_one_order)
    if kind in ("+", "*"):
        parts.sort(key=repr)
    return (kind, *parts)


def _same_inequality(gold: Relation, answer: Relation) -> bool:
    if gold.operators == answer.operators and _same_items(gold.sides, answer.sides, _same_side):
        return True
    # 3 < x is x > 3. Only `in` cannot be read from the right.
    turned = tuple(TURNED.get(operator, operator) for operator in answer.operators[::-1])
    can_turn = gold.operators == turned and "in" not in turned
    if can_turn and _same_items(gold.sides, answer.sides[::-1], _same_side):
        return True

    # the same but for a factor: x < y -> 2x < 2y
    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    for gold_side, answer_side in product(gold.sides, answer.sides):
        if different_units(unit_of(gold_side), unit_of(answer_side)):
            return False
    multiple = _multiple_of(gold, answer)
    if multiple is None:
        return False
    if gold.operators == answer.operators == ("!=",):
        return True
    # x < y -> -x > -y: a negative factor turns the sign
    (operator,) = answer.operators
    if less(multiple, Fraction(0)):
        operator = TURNED.get(operator, operator)
    return operator in TURNED and (operator,) == gold.operators


# --- what else is right with some leniency


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
        case Relation(("=",), (name, value)), Relation(("=",), (other_name, other_value)) if (
            is_name(name) and is_name(other_name)
        ):
            return _same_name(name, other_name) and same_converted(value, other_value)
        case Relation(("=",), (name, value)), _ if is_name(name):
            return same_converted(value, answer)
        case _, Relation(("=",), (name, value)) if is_name(name):
            return same_converted(gold, value)
    factor = ratio(unit_of(answer), unit_of(gold))
    first = tree_of(without_unit(gold))
    second = tree_of(without_unit(answer))
    if factor is None or first is None or second is None:
        return False
    return same_value(first, ("*", ("number", factor), second))
