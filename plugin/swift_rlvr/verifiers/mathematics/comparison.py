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
from itertools import product
from math import gcd
from typing import Any

from swift_rlvr.verifiers.mathematics.families import same_family
from swift_rlvr.verifiers.mathematics.functions import Computed, is_real, less, near
from swift_rlvr.verifiers.mathematics.numeric import (
    constant_multiple,
    constant_value,
    contains,
    is_constant_function,
    same_value,
    symbols,
)
from swift_rlvr.verifiers.mathematics.parser import Tree, replaced
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
    is_name,
    name_of,
    product_of,
    tree_of,
    unit_of,
    without_unit,
)

# A decimal with this many places stands for the number that rounds to it: 0.333333333333 is 1/3.
# With fewer it is exactly itself: 0.333 is not 1/3.
ENOUGH_PLACES = 12
# A gold may be a decimal that its author cut off.
_ENOUGH_PLACES_OF_GOLD = 10
# and so many of its digits have to be right
_ENOUGH_DIGITS = 9

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

# The name of a constant of integration, as in golds of College Math: C (1705), k (1805), c_1 (2550).
# (C_p is a heat capacity.)
_ARBITRARY = re.compile(r"[CcKk](_\d+)?")

_MINUS_ONE = ("number", Fraction(-1))

# One degree in radians.
_DEGREE = ("/", ("constant", "pi"), ("number", Fraction(180)))


def same(gold: Value, answer: Value) -> bool:
    """Whether an answer equals the gold. What cannot be shown to be equal is not.

    First comes what stands around the two values, then what the answer says about a value, and then
    the kind of the gold decides.

    >>> half = Number(Fraction(1, 2))
    >>> same(half, Number(Fraction(50), percent=True)), same(half, Number(Fraction(1, 2), unit="cm"))
    (True, True)
    >>> one = Number(Fraction(1))
    >>> same(Tuple((half, one)), Tuple((one, half))), same(Set((half, one)), Set((one, half)))
    (False, True)
    """
    match gold, answer:
        case Number(product=None), Number(product=None):
            return _same_number(gold, answer)

    # what stands around a value: a unit, the letter of a choice, conditions
    if product_of(gold) or product_of(answer):
        return _same_with_product(gold, answer)
    if isinstance(gold, Quantity) or isinstance(answer, Quantity):
        return _same_quantity(gold, answer)
    if isinstance(gold, Choice) or isinstance(answer, Choice):
        is_chosen = _same_choice(gold, answer)
        if is_chosen is not None:
            return is_chosen
    if isinstance(gold, Family) or isinstance(answer, Family):
        return same_family(gold, answer)
    if not (isinstance(gold, Several) and isinstance(answer, Several)):
        core = _without_conditions(gold)
        if core is not None:
            return same(core, answer)
        core = _without_conditions(answer)
        if core is not None:
            return same(gold, core)

    match answer:
        case Relation() if not isinstance(gold, Relation):
            return _same_region(gold, answer) or _is_stated_by(gold, answer)
        case Words() if not isinstance(gold, (Words, Relation)):
            return _words_are(answer, gold)

    match gold:
        case Relation():
            return _same_relation(gold, answer)
        case Words():
            return _same_words(gold, answer)
        case Region():
            return _same_region(gold, answer)
        case Approximately():
            return _same_approximation(gold, answer)
        case Matrix():
            return _same_matrix(gold, answer)
        case Several():
            return _same_several(gold, answer)
    return _same_single_value(gold, answer)


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


def _same_items(
    gold: Items[Any], answer: Items[Any], equal: Callable[[Any, Any], bool] = same
) -> bool:
    """Whether two sequences have the same items in the same order."""
    return len(gold) == len(answer) and all(map(equal, gold, answer))


# --- numbers


def _same_number(gold: Number, answer: Number) -> bool:
    if (gold.unit or gold.percent) and different_units(unit_of(gold), unit_of(answer)):
        return False
    if gold.percent and answer.percent:
        return gold.value == answer.value

    # 50% -> 1/2, and 50% -> 50, since "what percentage ...?" is also answered without the sign
    golds = {gold.value}
    if gold.percent:
        golds.add(gold.value / 100)

    # 1/2 -> 50%. A gold of 50 is answered by 50% too; one of 1/2 is not by 1/2%.
    values = {answer.value}
    if answer.percent:
        values = {answer.value / 100}
        if gold.value.denominator == 1 or abs(gold.value) >= 1:
            values.add(answer.value)
    if golds & values:
        return True
    if max(gold.places, answer.places) < _ENOUGH_PLACES_OF_GOLD:
        return False
    # 0.6666666667 -> 2/3, and not 0.6666666668
    if not answer.places and _is_long_decimal_of(gold, answer.value, _ENOUGH_PLACES_OF_GOLD):
        return True
    if _is_long_decimal_of(gold, answer.value):
        return True
    return _is_long_decimal_of(answer, gold.value)


def _is_long_decimal_of(
    number: Number, value: Computed, enough_places: int = ENOUGH_PLACES
) -> bool:
    """Whether a number is a decimal of enough places for that value."""
    if number.places < enough_places or not is_real(value):
        return False
    # 0 is not 0.0000000000001, however near
    distance = min(Fraction(1, 10**enough_places), abs(number.value) / 10**_ENOUGH_DIGITS)
    return near(value, number.value, distance)


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


def _same_approximation(gold: Approximately, answer: Value) -> bool:
    # about 5 -> 5.02, and 5 -> about 5 is wrong: it leaves open which number it is
    number = gold.number
    if isinstance(answer, Approximately):
        answer = answer.number
    if different_units(unit_of(gold), unit_of(answer)):
        return False
    tree = tree_of(without_unit(answer))
    value = None if tree is None else constant_value(tree)
    if value is None or not is_real(value):
        return False

    scales = [100 if number.percent else 1]
    # about 13.4% -> 13.4, and about 13.4 -> 13.4%: the sign may be read as a unit
    if number.percent != (unit_of(answer) == "percent") and abs(number.value) >= 1:
        scales = [1, 100]
    rounding = number.rounding
    # A whole number is rounded too, but about 1 is not 1.4, and about 0 is no number but 0.
    if number.places == 0:
        rounding = min(rounding, abs(number.value) / 20)
    return any(near(value, number.value / scale, rounding / scale) for scale in scales)


# --- units and angles. Of golds in radians, `\frac{\pi}{4}` (MATH test 1645), policies give degrees too.


def _same_quantity(gold: Value, answer: Value) -> bool:
    angle = _same_angle(gold, answer)
    if angle is not None:
        return angle
    if different_units(unit_of(gold), unit_of(answer)):
        return False
    return same(without_unit(gold), without_unit(answer))


def _same_angle(gold: Value, answer: Value) -> bool | None:
    """Whether an angle in degrees is one in radians, 60° and \\pi/3; None where not just one of
    them is in degrees.
    """
    units = (unit_of(gold), unit_of(answer))
    if units.count("degree") != 1 or not set(units) <= {"degree", "radian", ""}:
        return None
    first = tree_of(without_unit(gold))
    second = tree_of(without_unit(answer))
    if first is None or second is None:
        return None

    # 60° -> 60: the sign is a unit that may be left out. 60° -> 60 radians is another angle.
    if "radian" not in units and same_value(first, second):
        return True
    if units[0] == "degree":
        degrees, radians = first, second
    else:
        degrees, radians = second, first
    return same_value(("*", degrees, _DEGREE), radians)


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


# --- expressions


def _same_single_value(gold: Value, answer: Value) -> bool:
    # 3 -> {3}
    if isinstance(answer, Several):
        alone = _only_value(answer)
        return alone is not None and same(gold, alone)
    return bool(_same_angle(gold, answer)) or _same_expression(gold, answer)


def _same_expression(gold: Value, answer: Value) -> bool:
    first = tree_of(gold)
    second = tree_of(answer)
    if first is None or second is None:
        return False
    if same_value(first, second) or _same_antiderivative(first, second):
        return True
    renamed = _with_constants_of(first, second)
    if renamed is not second and same_value(first, renamed):
        return True
    if _same_with_products(first, second):
        return True
    # 50x/x -> 50%: a percent sign may be added to an expression as to a number
    if (
        isinstance(answer, Number)
        and answer.percent
        and same_value(("number", answer.value), first)
    ):
        return True
    if _has_long_decimal(gold, second, _ENOUGH_PLACES_OF_GOLD):
        return True
    return _has_long_decimal(answer, first, ENOUGH_PLACES)


def _same_with_products(gold: Tree, answer: Tree) -> bool:
    r"""Whether two expressions are the same where a call of one is a product: \mu(a + b) and
    \mu a + \mu b, of which only the other one shows that \mu is no function.
    """
    if not (contains(gold, "call") or contains(answer, "call")):
        return False
    gold_as_product = _with_products(gold, symbols(answer))
    answer_as_product = _with_products(answer, symbols(gold))
    if gold_as_product == gold and answer_as_product == answer:
        return False
    return same_value(gold_as_product, answer_as_product)


def _with_products(tree: Tree, factors: frozenset[str]) -> Tree:
    """The tree with a product for each call of a name that is a factor elsewhere; f and F stay
    functions.
    """
    parts = [
        _with_products(part, factors) if isinstance(part, tuple) else part for part in tree[1:]
    ]
    if tree[0] == "call" and len(parts) == 2 and parts[0] in factors - {"f", "F"}:
        name, argument = parts
        return ("*", ("symbol", name), argument)
    return (tree[0], *parts)


def _has_long_decimal(number: Value, tree: Tree, enough_places: int) -> bool:
    """Whether a value is a decimal of enough places for the constant that a tree is."""
    if not isinstance(number, Number):
        return False
    value = constant_value(tree)
    return value is not None and _is_long_decimal_of(number, value, enough_places)


def _same_antiderivative(gold: Tree, answer: Tree) -> bool:
    r"""Whether two functions with an arbitrary constant as a term are the same but for a constant:
    \sin^2 x + C and -\cos^2 x + K.

    In ax^2 + bx + c the last letter is a coefficient like the others, so a gold with a small one
    allows another name for it and nothing else.
    """
    first = _without_constant(gold)
    second = _without_constant(answer)
    if first is None or second is None:
        return False
    gold_constant, gold_rest = first
    answer_constant, answer_rest = second
    if gold_constant[1:] != answer_constant[1:]:
        return False
    # C is arbitrary beside a function of something, and not in a + b + C.
    names = symbols(gold_rest)
    if not names or names != symbols(answer_rest) or _is_sum_of_names(gold_rest):
        return False
    if same_value(gold_rest, answer_rest):
        return True
    return gold_constant.isupper() and is_constant_function(("-", gold_rest, answer_rest))


def _without_constant(tree: Tree) -> tuple[str, Tree] | None:
    """The name of the arbitrary constant that is a term of a sum, and the other terms; None where
    there is no such term, or the name stands elsewhere too.
    """
    if tree[0] not in ("+", "-"):
        return None
    sign, left, right = tree
    if sign == "+" and _is_constant_name(right):
        name, rest = right[1], left
    elif _is_constant_name(left):
        name, rest = left[1], right if sign == "+" else ("*", _MINUS_ONE, right)
    else:
        inner = _without_constant(left)
        if inner is None:
            return None
        name, rest_of_left = inner
        rest = (sign, rest_of_left, right)
    return None if name in symbols(rest) else (name, rest)


def _is_constant_name(tree: Tree) -> bool:
    return tree[0] == "symbol" and _ARBITRARY.fullmatch(tree[1]) is not None


def _is_sum_of_names(tree: Tree) -> bool:
    """Whether a tree is a + b: terms that are nothing but names, at least two."""
    if tree[0] not in ("+", "-"):
        return False
    return all(part[0] == "symbol" or _is_sum_of_names(part) for part in tree[1:])


def _with_constants_of(gold: Tree, answer: Tree) -> Tree:
    """The answer with the arbitrary constants of a general solution named as in the gold.

    C_1 e^x + C_2 e^{-x} -> c_1 e^x + c_2 e^{-x}, and Ce^x -> ke^x. Elsewhere a letter is a letter:
    Km and km are two products.
    """
    wanted = sorted(symbols(gold) - symbols(answer))
    present = sorted(symbols(answer) - symbols(gold))
    if not all(_ARBITRARY.fullmatch(name) for name in wanted + present):
        return answer
    # The letter may be another one, and its index is the gold's.
    if [name[1:] for name in wanted] != [name[1:] for name in present]:
        return answer
    has_indexes = all("_" in name for name in wanted)
    if not has_indexes and (len(wanted) > 1 or not contains(gold, "e")):
        return answer
    for old, new in zip(present, wanted, strict=True):
        answer = replaced(answer, ("symbol", old), ("symbol", new))
    return answer


# --- choices


def _same_choice(gold: Value, answer: Value) -> bool | None:
    """Whether one of several choices is the other or its content; None where one of the two may be
    a variable.
    """
    match gold, answer:
        case Choice(), Choice():
            return _same_letter(gold, answer)
        case Choice(), _:
            # (D) 12 -> 12; a gold that is a letter alone may be a variable
            if not gold.content:
                return None
            return gold.meaning is not None and same(gold.meaning, answer)
        case _, Choice():
            # Thursday -> (B) Thursday
            if answer.meaning is None or _OTHER_CHOICE.search(answer.content):
                return None
            return same(gold, answer.meaning)
    return None


def _same_letter(gold: Choice, answer: Choice) -> bool:
    # x and X are two variables, (a) and (A) one choice
    if not gold.marked and not answer.marked:
        return gold.letter == answer.letter
    if gold.letter.upper() != answer.letter.upper():
        return False
    if _OTHER_CHOICE.search(answer.content):
        return False
    # (A) 5 cm -> (A) 5 m: the letter is right and its content contradicts it
    if gold.meaning is None or answer.meaning is None:
        return True
    return same(gold.meaning, answer.meaning)


# --- conditions beside a value, as in College Math 2797: a recurrence, and behind it n \geq 1


def _without_conditions(value: Value) -> Value | None:
    """What stands before conditions on its own variables, `\\frac{1}{x}, x \\neq 0`; None where there
    are no conditions.
    """
    if not isinstance(value, Listing) or len(value.items) < 2:
        return None
    core, *conditions = value.items
    expression = core
    if isinstance(core, Relation) and _is_equality(core):
        expression = core.sides[-1]
    tree = tree_of(expression)
    if tree is None:
        return None
    for condition in conditions:
        restricted = _condition_on(condition)
        # `5, x > 3` are two answers, for 5 has no x that a condition could restrict
        if not restricted or not restricted <= symbols(tree):
            return None
    return core


def _condition_on(value: Value) -> frozenset[str]:
    """The variables that a condition restricts; none where the value is no condition."""
    if isinstance(value, Region) and value.variable:
        return frozenset((value.variable,))
    if isinstance(value, Relation) and not _is_equality(value):
        tree = tree_of(value.sides[0])
        if tree is not None:
            return symbols(tree)
    return frozenset()


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
        return _same_expression(gold, answer)

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
    return not words.marked and _same_expression(words, value)


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


def _same_matrix(gold: Matrix, answer: Value) -> bool:
    match answer:
        case Matrix():
            return gold.bars == answer.bars and _same_items(gold.rows, answer.rows, _same_items)
        case Several():
            return _matrix_is(gold, answer)
    return False


def _matrix_is(matrix: Matrix, several: Several) -> bool:
    # a determinant is a number
    if matrix.bars:
        return False
    match several:
        case Tuple(items, closed_low=True):
            # [[1, 2], [3, 4]]: a list of the rows
            rows = []
            for item in items:
                if not isinstance(item, Tuple) or not item.closed_low:
                    return False
                rows.append(item.items)
            return _same_items(matrix.rows, rows, _same_items)
        case Tuple(items) | Vector(items):
            # (1, 2) or <1, 2>: the entries of a column or of a single row
            if all(len(row) == 1 for row in matrix.rows):
                return _same_items([row[0] for row in matrix.rows], items)
            return len(matrix.rows) == 1 and _same_items(matrix.rows[0], items)
    return False


# --- several values: sets, tuples, ratios, cases


def _same_several(gold: Several, answer: Value) -> bool:
    match answer:
        case Region():
            return _same_region(gold, answer)
        case Matrix():
            return _matrix_is(answer, gold)
        case Several():
            return _same_parts(gold, answer)
    # {3} -> 3, and 1:2 -> 1/2; the time 3:30 is no quotient
    alone = None if _is_clock_time(gold) else _only_value(gold)
    return alone is not None and same(alone, answer)


def _same_parts(gold: Several, answer: Several) -> bool:
    match gold, answer:
        case Ratio(), Ratio():
            if _is_clock_time(gold):
                return _same_items(gold.items, answer.items)
            return _same_ratio(gold.items, answer.items)
        case Listing() | Sequence() | Set() | Cases(), Listing() | Sequence() | Set() | Cases():
            if in_order(gold) or _names_values_in_order(gold, answer):
                return _same_items(gold.items, answer.items)
            return _same_elements(gold.items, answer.items)
        case Tuple() | Vector(), Tuple() | Vector():
            return _same_brackets(gold, answer) and _same_items(gold.items, answer.items)
        case (Tuple() as ordered, Listing() | Sequence() | Cases() as bare) | (
            Listing() | Sequence() | Cases() as bare,
            Tuple() as ordered,
        ):
            may_drop = _may_drop_brackets(bare, ordered, len(gold.items))
            return may_drop and _same_items(gold.items, answer.items)
    # {1, 2} -> (1, 2): a set is no tuple, and a ratio is neither
    return False


def _only_value(value: Several) -> Value | None:
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


def _is_clock_time(value: Several) -> bool:
    """Whether it is 3:30 rather than a ratio: golds give ratios in lowest terms."""
    match value:
        case Ratio((Number(hours), Number(minutes))):
            if hours.denominator != 1 or minutes.denominator != 1:
                return False
            in_a_day = 0 <= hours < 24 and 10 <= minutes < 60
            return in_a_day and gcd(int(hours), int(minutes)) > 1
    return False


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
    seen = set()
    for item in gold.items:
        seen.add(item.value if isinstance(item, Number) and not unit_of(item) else item)
        # ab may be a product
        if isinstance(item, Words) and (item.marked or len(item.text) > 2):
            return True
    return len(seen) < len(gold.items)


def with_order(gold: Value, ordered: bool) -> Value:
    """The gold as a list whose order counts, or does not, whatever `in_order` would say.

    Only a bare list of values can be read in both ways. Choices, conditions and values with names of
    their own, `x = 1, y = 2`, are left as they are.
    """
    if not isinstance(gold, Listing | Sequence) or isinstance(gold, Alternatives):
        return gold
    if not ordered:
        return Alternatives(gold.items)
    lefts = _left_sides(gold)
    has_names = any(left != lefts[0] for left in lefts)
    has_others = any(isinstance(item, Choice | Region) for item in gold.items)
    if has_names or has_others or _without_conditions(gold) is not None:
        return gold
    return Sequence(gold.items)


def _names_values_in_order(gold: Several, answer: Several) -> bool:
    """Whether the gold gives values to several names and the answer has none.

    `x = 1, y = 2` -> `1, 2`, and `2, 1` is wrong. `x = 1, x = 2` names one thing twice.
    """
    names = _left_sides(gold)
    if not names or _left_sides(answer):
        return False
    return any(name != names[0] for name in names)


def _left_sides(several: Several) -> list[Value]:
    """What stands left of `=` in each item; nothing where an item is no equation."""
    lefts = []
    for item in several.items:
        if not isinstance(item, Relation) or item.operators != ("=",):
            return []
        lefts.append(item.sides[0])
    return lefts


def _same_brackets(gold: Several, answer: Several) -> bool:
    """Whether the brackets of two ordered values may stand for each other."""
    match gold, answer:
        case Tuple(), Tuple():
            # Three numbers are no interval, so that (4, 1, 6) -> [4, 1, 6]; (1, 2) -> [1, 2] may be.
            if len(gold.items) > 2 and _is_list(gold) and _is_list(answer):
                return True
            gold_ends = (gold.closed_low, gold.closed_high)
            return gold_ends == (answer.closed_low, answer.closed_high)
        case (Tuple() as ordered, Vector()) | (Vector(), Tuple() as ordered):
            # <6, -1> -> (6, -1)
            return not ordered.closed_low
    return True


def _is_list(value: Tuple) -> bool:
    """Whether its brackets are of one kind, as around a list; (1, 2] is an interval."""
    return value.closed_low == value.closed_high


def _may_drop_brackets(bare: Several, ordered: Tuple, gold_length: int) -> bool:
    """Whether values without brackets stand in the order of a tuple.

    (4, 1, 6) -> 4, 1, 6. For two values it takes names in alphabetical order, (1, 2) -> x = 1, y = 2,
    or a bare list that is in order: `2, 1` may be two solutions.
    """
    if in_order(bare) and _is_list(ordered):
        return True
    if isinstance(bare, Listing) and gold_length > 2 and _is_list(ordered):
        return True
    if ordered.closed_low:
        return False
    names = [name_of(left) for left in _left_sides(bare)]
    return bool(names) and all(names) and names == sorted(set(names))


def _same_ratio(gold: Items[Value], answer: Items[Value]) -> bool:
    """Whether two ratios are the same, 2:4 and 1:2, and with three parts 2:4:6 and 1:2:3."""
    gold_trees = [tree_of(item) for item in gold]
    answer_trees = [tree_of(item) for item in answer]
    if None in gold_trees or None in answer_trees:
        return _same_items(gold, answer)
    gold_shares = [("/", tree, gold_trees[0]) for tree in gold_trees]
    answer_shares = [("/", tree, answer_trees[0]) for tree in answer_trees]
    return _same_items(gold_shares, answer_shares, same_value)


def _same_elements(gold: Items[Value], answer: Items[Value]) -> bool:
    """Whether each element is one of the other set; how often it stands there does not count."""
    gold_numbers = _plain_numbers(gold)
    answer_numbers = _plain_numbers(answer)
    if gold_numbers is not None and answer_numbers is not None:
        if {number.value for number in gold_numbers} == {number.value for number in answer_numbers}:
            return True
        # Only a long decimal can equal a number with another value.
        numbers = (*gold_numbers, *answer_numbers)
        if all(number.places < _ENOUGH_PLACES_OF_GOLD for number in numbers):
            return False

    if _size(gold) * _size(answer) > _MAX_PAIRS:
        return False
    in_gold = [False] * len(answer)
    for element in gold:
        in_answer = False
        for index, other in enumerate(answer):
            if same(element, other):
                in_answer = True
                in_gold[index] = True
        if not in_answer:
            return False
    return all(in_gold)


def _plain_numbers(items: Items[Value]) -> list[Number] | None:
    """The items where all are numbers without a unit or a percent sign, else None."""
    numbers = []
    for item in items:
        if not isinstance(item, Number) or item.percent or item.unit:
            return None
        numbers.append(item)
    return numbers


def _size(items: Iterable[Value]) -> int:
    """The number of values, including those within tuples and sets."""
    return sum(_size(item.items) if isinstance(item, Several) else 1 for item in items)


# --- equations and inequalities


def _same_relation(gold: Relation, answer: Value) -> bool:
    if _same_region(gold, answer):
        return True
    if isinstance(answer, Relation):
        if _is_equality(gold) and _is_equality(answer):
            return _same_equality(gold, answer)
        return _same_inequality(gold, answer)
    match gold:
        case Relation(("in",), (name, region)):  # x \\in [1, 2] -> [1, 2]
            return is_name(name) and same(region, answer)
    return _is_stated_value(gold, answer)


def _is_stated_by(gold: Value, answer: Relation) -> bool:
    """Whether an answer says of a name that it is the gold: 5 -> x = 5, [1, 2] -> x \\in [1, 2]."""
    match answer:
        case Relation(("in",), (name, region)):
            return is_name(name) and same(gold, region)
    return _is_equality(answer) and _chain_equals(gold, answer)


def _is_stated_value(gold: Relation, answer: Value) -> bool:
    """Whether an answer is the value that a gold states, x = 1.5 -> 3/2, however its sides are
    written; behind x \\approx 1.4 it is any value that rounds to 1.4.
    """
    # x^2 = 5 -> 5 is wrong
    left = gold.sides[0]
    is_stated = is_name(left) or is_constant(left) or _is_formula_for_left(gold)
    if not _is_equality(gold) or not is_stated:
        return False
    return any(same(value, answer) for value in _stated(gold)[1:])


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


def _is_equality(relation: Relation) -> bool:
    return all(operator in ("=", "~") for operator in relation.operators)


def _stated(relation: Relation) -> list[Value]:
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
    sides = _stated(chain)
    is_defined = _is_named_by(sides[0], sides[1:]) or _is_made_of_names(sides[0])
    if is_defined or _begins_with_sum(sides):
        sides = sides[1:]
    elif not is_constant(sides[0]):
        return False
    exact = [side for side in sides if not isinstance(side, Approximately)]
    rounded = [side for side in sides if isinstance(side, Approximately)]
    if not exact:
        return isinstance(gold, Approximately) and all(same(gold, side) for side in rounded)
    # 3 -> 1 = 2 = 3 is wrong: all sides have to be right
    return all(same(gold, side) for side in exact) and all(same(side, exact[0]) for side in rounded)


def _is_named_by(side: Value, others: Items[Value]) -> bool:
    """Whether a side is the name of the others; the x of `x = 2x + 1` is a part of them."""
    if not is_name(side):
        return False
    name = name_of(side)
    trees = [tree for other in others if (tree := tree_of(other)) is not None]
    return not any(name in symbols(tree) for tree in trees)


def _is_made_of_names(side: Value) -> bool:
    """Whether a side is a sum, product or quotient of several names: the V/\\pi of `V/\\pi = 75`.

    The right side then says what it is. Of `x + 1 = 3`, `2x = 4` and `x^2 = 5` it does not say what
    x is: a number or a power on the left makes an equation that is still to be solved.
    """
    if not isinstance(side, Expression):
        return False
    atoms = []
    trees = [side.tree]
    while trees:
        tree = trees.pop()
        if tree[0] in ("symbol", "constant"):
            atoms.append(tree)
        elif tree[0] in ("+", "-", "*", "/"):
            trees += tree[1:]
        else:
            return False
    return bool(symbols(side.tree)) and len(set(atoms)) == len(atoms) > 1


def _begins_with_sum(sides: list[Value]) -> bool:
    """Whether `6x + 5 = 18 + 5 = 23` computes the value of a sum; `x^2 = 5` states no value."""
    first = sides[0]
    return len(sides) > 2 and isinstance(first, Expression) and first.tree[0] in ("+", "-")


def _same_equality(gold: Relation, answer: Relation) -> bool:
    answer = _with_argument_of(gold, answer)
    if is_name(gold.sides[0]) and is_name(answer.sides[0]):
        if _same_name(gold.sides[0], answer.sides[0]):
            return any(_states(value, answer) for value in _stated(gold)[1:])
        # x = 5 -> y = 5 is wrong. y = 2x + 1 -> x = (y - 1)/2 may be the same line.
        if is_constant(gold.sides[-1]) or is_constant(answer.sides[-1]):
            return False
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
    return _multiple(gold, answer) is not None


def _multiple(gold: Relation, answer: Relation) -> Computed | None:
    """The constant by which the sides of the answer are multiplied in the gold, for relations with
    two sides; None where there is none.
    """
    gold_difference = _difference(gold)
    answer_difference = _difference(answer)
    if gold_difference is None or answer_difference is None:
        return None
    return constant_multiple(gold_difference, answer_difference)


def _difference(relation: Relation) -> Tree | None:
    """The left side minus the right one; None where it is no expression with variables."""
    left, right = map(tree_of, relation.sides)
    if left is None or right is None:
        return None
    difference = ("-", left, right)
    return difference if symbols(difference) else None


def _states(value: Value, answer: Relation) -> bool:
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
    if _is_fraction(first) and _is_fraction(second):
        return same(gold, answer)
    return _in_order(first) == _in_order(second)


def _is_fraction(tree: Tree) -> bool:
    if tree[0] == "/":
        return tree[1][0] == tree[2][0] == "number"
    return tree[0] == "number"


def _in_order(tree: Tree) -> Tree:
    """The tree with the arguments of sums and products in one order."""
    if tree[0] in ("number", "symbol", "constant", "pm"):
        return tree
    parts = [_in_order(part) if isinstance(part, tuple) else part for part in tree[1:]]
    if tree[0] in ("+", "*"):
        parts.sort(key=repr)
    return (tree[0], *parts)


def _gives_value(relation: Relation) -> bool:
    """Whether it is `x = 5`, or `5 = x`."""
    left, right = relation.sides
    if name_of(left) and is_constant(right):
        return True
    return bool(name_of(right)) and is_constant(left)


def _same_inequality(gold: Relation, answer: Relation) -> bool:
    if gold.operators == answer.operators and _same_items(gold.sides, answer.sides, _same_side):
        return True
    # 3 < x is x > 3. Only `in` cannot be read from the right.
    turned = tuple(TURNED.get(operator, operator) for operator in answer.operators[::-1])
    can_turn = gold.operators == turned and "in" not in turned
    if can_turn and _same_items(gold.sides, answer.sides[::-1], _same_side):
        return True

    if len(gold.operators) != 1 or len(answer.operators) != 1:
        return False
    return _is_multiplied_inequality(gold, answer)


def _is_multiplied_inequality(gold: Relation, answer: Relation) -> bool:
    """Whether two inequalities with two sides are the same but for a factor, x < y and 2x < 2y."""
    for gold_side, answer_side in product(gold.sides, answer.sides):
        if different_units(unit_of(gold_side), unit_of(answer_side)):
            return False
    multiple = _multiple(gold, answer)
    if multiple is None:
        return False
    if gold.operators == answer.operators == ("!=",):
        return True
    (gold_operator,) = gold.operators
    (answer_operator,) = answer.operators
    if gold_operator not in TURNED:
        return False
    # x < y -> -x > -y: a negative factor turns the sign
    if gold_operator == answer_operator:
        return less(Fraction(0), multiple)
    return gold_operator == TURNED.get(answer_operator) and less(multiple, Fraction(0))
