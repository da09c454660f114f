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
from swift_rlvr.verifiers.mathematics.functions import less
from swift_rlvr.verifiers.mathematics.lists import (
    distinct,
    has_several_names,
    in_order,
    is_clock_time,
    names_values_in_order,
    only_value,
    same_brackets,
    shares,
    without_conditions,
)
from swift_rlvr.verifiers.mathematics.numeric import constant_multiple, same_value, symbols
from swift_rlvr.verifiers.mathematics.parser import Tree, is_fraction, replaced, with_each_part
from swift_rlvr.verifiers.mathematics.plain_numbers import same_number
from swift_rlvr.verifiers.mathematics.sets import EMPTY, REALS
from swift_rlvr.verifiers.mathematics.units import different_units, ratio
from swift_rlvr.verifiers.mathematics.values import (
    TURNED,
    Alternatives,
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

# Most comparisons of one value with another that two sets may take: 50 values with 50 others, and these
# with those.
_MAX_PAIRS = 5000

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
        core = without_conditions(answer, only_domain=True)
        if core is not None:
            return same(gold, core)

    # Names and words come first: an answer may say in them what the gold is.
    match gold, answer:
        case (Relation() | Region(), _) | (_, Relation() | Region()) if _same_region(gold, answer):
            return True
        case Relation(), _:
            return _same_relation(gold, answer)
        case _, Relation():
            return _answer_states(gold, answer)
        case (Words(), _) | (_, Words()):
            return _same_words(gold, answer)
        case (Region(), _) | (_, Region()):
            return False
        case Approximately(), _:
            return same_approximation(gold, answer)
        case Expression(tree), Matrix() | Tuple() | Vector():
            return _is_sum_of_components(tree, answer)
        case Matrix() | Tuple() | Vector(), Expression(tree) if _is_sum_of_components(tree, gold):
            return True
        case Matrix(), _:
            return _matrix_is(gold, answer)
        case (Several(), _) | (_, Several()):
            return _same_several(gold, answer)
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


def _same_words(gold: Value, answer: Value) -> bool:
    """Words and words, or a value of another kind: several choices, and sets in words."""
    if not isinstance(gold, Words):
        return isinstance(answer, Words) and _words_are(answer, gold)
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
            number = _determinant(matrix.rows)
            return number is not None and same_expression(Expression(number), value)
        case Tuple((Tuple(closed_low=True), *_), closed_low=True):
            # [[1, 2], [3, 4]]
            rows = []
            for item in value.items:
                if not isinstance(item, Tuple) or not item.closed_low:
                    return False
                rows.append(item.items)
            return _same_items(matrix.rows, rows, _same_items)
        case Tuple(closed_low=low, closed_high=high) if low != high:
            return False
        case Tuple(items) | Vector(items):
            # (1, 2), [1, 2] or <1, 2>: the entries of a column or of a single row
            entries = list(chain.from_iterable(matrix.rows))
            is_line = len(matrix.rows) in (1, len(entries))
            return is_line and _same_items(entries, items)
    return False


# i is read as the imaginary unit
_UNIT_VECTORS = (("constant", "i"), ("symbol", "j"), ("symbol", "k"))


def _is_sum_of_components(tree: Tree, vector: Matrix | Tuple | Vector) -> bool:
    """Whether an expression is a vector as the sum of its components: 2i + 3j is (2, 3)."""
    is_interval = isinstance(vector, Tuple) and vector.closed_low
    if is_interval or symbols(tree).isdisjoint(("j", "k")):
        return False
    entries = vector.items if isinstance(vector, Several) else [*chain.from_iterable(vector.rows)]
    components = [tree_of(entry) for entry in entries]
    if isinstance(vector, Matrix) and (vector.bars or len(vector.rows) not in (1, len(entries))):
        return False
    if len(components) not in (2, 3) or None in components:
        return False
    total: Tree = ("number", Fraction(0))
    for component, unit in zip(components, _UNIT_VECTORS, strict=False):
        total = ("+", total, ("*", component, unit))
    return same_expression(Expression(total), Expression(tree))


# Larger determinants have too many terms.
_MAX_DETERMINANT = 4


def _determinant(rows: Items[Items[Value]]) -> Tree | None:
    """The determinant of a matrix, written out along its first row. Returns None if the matrix is not
    square, too large, or has other entries than expressions.
    """
    size = len(rows)
    if size > _MAX_DETERMINANT or any(len(row) != size for row in rows):
        return None
    first, *others = rows
    if not others:
        return tree_of(first[0])
    total: Tree | None = None
    for column, entry in enumerate(first):
        minor = _determinant([[*row[:column], *row[column + 1 :]] for row in others])
        tree = tree_of(entry)
        if tree is None or minor is None:
            return None
        term = ("*", ("number", Fraction((-1) ** column)), ("*", tree, minor))
        total = term if total is None else ("+", total, term)
    return total


# --- several values: sets, tuples, ratios, cases


def _same_several(gold: Value, answer: Value) -> bool:
    """Whether two values are the same, of which at least one is several."""
    match gold, answer:
        case Tuple((_, _), closed_low=True) | Tuple((_, _), closed_high=True), Matrix() if (
            as_region(gold) is not None
        ):
            # [1, 2] is an interval, and no column
            return False
        case Several(), Matrix():
            return _matrix_is(answer, gold)
        case Ratio(), Ratio() if not is_clock_time(gold):
            # 2:4:6 -> 1:2:3
            return _same_items(shares(gold), shares(answer))
        case Listing() | Sequence() | Set() | Cases(), Listing() | Sequence() | Set() | Cases():
            return _same_list(gold, answer)
        case Several(), Several():
            return same_brackets(gold, answer) and _same_items(gold.items, answer.items)
        case Several(), _:
            # {3} -> 3, and 1:2 -> 1/2; the time 3:30 is no quotient
            alone = None if is_clock_time(gold) else only_value(gold)
            return alone is not None and same(alone, answer)
        case _, Alternatives(items) if len(items) > 1:
            # 3/4 -> 3/4 or 0.75: one value, written twice
            return all(same(gold, item) and same(items[0], item) for item in items)
        case _, Several():
            # 3 -> {3}
            alone = only_value(answer)
            return alone is not None and same(gold, alone)
    return False


def _same_items(
    gold: Items[Any], answer: Items[Any], equal: Callable[[Any, Any], bool] = same
) -> bool:
    """Whether two sequences have the same items in the same order."""
    return len(gold) == len(answer) and all(map(equal, gold, answer))


def _same_list(gold: Several, answer: Several) -> bool:
    """Whether two lists are the same: in their order where it counts, else each element is one of
    the other list, and how often it stands there does not count.
    """
    # 1/x, x > 0 -> `1/x or x > 0` is wrong, and so is `x = 1 or y = 2` for `x = 1, y = 2` or `1, 2`
    if isinstance(answer, Alternatives) and not isinstance(gold, Alternatives):
        has_names = has_several_names(gold) or has_several_names(answer)
        if has_names or without_conditions(gold) is not None:
            return False
    if in_order(gold) or names_values_in_order(gold, answer):
        return _same_items(gold.items, answer.items)
    # what stands in both needs no comparison: long lists of numbers have no other elements
    in_gold = distinct(gold.items)
    in_answer = distinct(answer.items)
    only_in_gold = [item for key, item in in_gold.items() if key not in in_answer]
    only_in_answer = [item for key, item in in_answer.items() if key not in in_gold]
    pairs = _size(only_in_gold) * _size(answer.items) + _size(gold.items) * _size(only_in_answer)
    if pairs > _MAX_PAIRS:
        return False

    def is_in_answer(item: Value) -> bool:
        return any(same(item, other) for other in answer.items)

    def is_in_gold(other: Value) -> bool:
        return any(same(item, other) for item in gold.items)

    return all(map(is_in_answer, only_in_gold)) and all(map(is_in_gold, only_in_answer))


def _size(items: Iterable[Value]) -> int:
    """The number of values, including those within tuples and sets."""
    size = 0
    for item in items:
        size += _size(item.items) if isinstance(item, Several) else 1
    return size


# --- equations and inequalities


def _same_relation(gold: Relation, answer: Value) -> bool:
    if not isinstance(answer, Relation):
        # the value that a gold states, x = 1.5 -> 3/2, however its sides are written, and behind
        # x \approx 1.4 any value that rounds to 1.4; x^2 = 5 -> 5 is wrong
        return any(same(value, answer) for value in _stated(gold))
    if is_equality(gold) and is_equality(answer):
        answer = _with_argument_of(gold, answer)
        name = gold.sides[0]
        if is_name(name) and is_name(answer.sides[0]):
            if _same_name(name, answer.sides[0]):
                return any(_name_has_value(value, answer) for value in _stated(gold))
            # x = 5 -> y = 5 is wrong. y = 2x + 1 -> x = (y - 1)/2 may be the same line.
            if is_constant(gold.sides[-1]) or is_constant(answer.sides[-1]):
                return False
        # x = 5 -> 10/2 = 5
        is_calculation = is_name(name) and is_constant(answer.sides[0])
        if is_calculation and any(_answer_states(value, answer) for value in _stated(gold)):
            return True
    if gold.operators == answer.operators and _same_items(gold.sides, answer.sides, _same_side):
        return True
    # 3 < x is x > 3. Only `in` cannot be read from the right.
    turned = tuple(TURNED.get(operator, operator) for operator in reversed(answer.operators))
    is_turned = gold.operators == turned and "in" not in turned
    if is_turned and _same_items(gold.sides, answer.sides[::-1], _same_side):
        return True
    return _is_multiple(gold, answer)


def _stated(relation: Relation) -> list[Value]:
    r"""The values that a relation says its left side has: 5 of x = 5, [1, 2] of x \in [1, 2], and none
    of x^2 = 5.
    """
    left, *others = _stated_sides(relation)
    if relation.operators == ("in",):
        return others if is_name(left) else []
    if not is_equality(relation):
        return []
    if is_name(left) or is_constant(left):
        return others
    # C_p - C_v = nR says what the left side is, in other variables. Of x^2 + y^2 = 25, and of
    # x + y = z, the right side is no answer.
    if len(others) != 1:
        return []
    left_tree, right_tree = map(tree_of, relation.sides)
    if left_tree is None or right_tree is None or right_tree[0] == "symbol":
        return []
    is_formula = symbols(right_tree) and not symbols(left_tree) & symbols(right_tree)
    return others if is_formula else []


def _stated_sides(relation: Relation) -> list[Value]:
    """The sides of a chain, with those behind a sign for "about" as approximations."""
    sides: list[Value] = [relation.sides[0]]
    for operator, side in zip(relation.operators, relation.sides[1:], strict=True):
        if operator == "~" and isinstance(side, Number):
            side = Approximately(side)
        sides.append(side)
    return sides


def _answer_states(gold: Value, answer: Relation) -> bool:
    r"""Whether an answer states the gold, and nothing false: 5 -> x = 2 + 3 = 5, [1, 2] -> x \in [1, 2]
    and \sqrt{17} -> c = \sqrt{17} \approx 4.12.
    """
    left, *others = _stated_sides(answer)
    if answer.operators == ("in",):
        return is_name(left) and same(gold, others[0])
    if not is_equality(answer):
        return False
    # 3 -> 1 = 2 = 3 is wrong: all sides have to be right
    if not _is_defined(left, others):
        if not is_constant(left):
            return False
        others.insert(0, left)
    exact = [side for side in others if not isinstance(side, Approximately)]
    rounded = [side for side in others if isinstance(side, Approximately)]
    if not all(same(gold, side) for side in exact or rounded):
        return False
    return all(same(side, exact[0]) for side in rounded if exact)


def _is_defined(left: Value, others: list[Value]) -> bool:
    """Whether the first side of a chain stands for the others, so that it claims nothing itself: the
    x of `x = 2 + 3 = 5`.
    """
    # the x of `x = 2x + 1` is a part of the other side
    if is_name(left):
        name = name_of(left)
        trees = [tree_of(other) for other in others]
        if not any(name in symbols(tree) for tree in trees if tree is not None):
            return True
    if not isinstance(left, Expression):
        return False
    # `6x + 5 = 18 + 5 = 23` computes the value of a sum; `x^2 = 5` states no value
    if len(others) > 1 and left.tree[0] in ("+", "-"):
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


# The signs that a factor on both sides leaves as they are, or turns round where it is negative.
_MULTIPLIED = frozenset(("=", "!=", *TURNED))


def _is_multiple(gold: Relation, answer: Relation) -> bool:
    """Whether two relations with two sides are the same but for a factor: x < y -> 2x < 2y, and
    x^2 + 3 = 0 -> 2x^2 + 6 = 0.
    """
    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    # x = 5 -> 3x + 2 = 17: the equation may be the question, and is no answer to it
    if is_equality(gold) and _gives_value(gold) != _gives_value(answer):
        return False
    for gold_side, answer_side in product(gold.sides, answer.sides):
        if different_units(unit_of(gold_side), unit_of(answer_side)):
            return False
    gold_difference = _difference(gold)
    answer_difference = _difference(answer)
    if gold_difference is None or answer_difference is None:
        return False
    multiple = constant_multiple(gold_difference, answer_difference)
    if multiple is None:
        return False
    # x < y -> -x > -y: a negative factor turns the sign
    (operator,) = answer.operators
    if less(multiple, Fraction(0)):
        operator = TURNED.get(operator, operator)
    return operator in _MULTIPLIED and gold.operators == (operator,)


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
        return _answer_states(value, rest)
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
