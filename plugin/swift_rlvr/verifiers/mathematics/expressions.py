r"""Whether two values that are one expression are the same: formulas, angles, rounded numbers.

Formulas are equal where their values are (`numeric.py`). What is said here besides: which letter is
a constant of integration, which call is a product, and which decimal stands for a number.
"""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from swift_rlvr.verifiers.mathematics.functions import is_real, near
from swift_rlvr.verifiers.mathematics.numeric import (
    constant_value,
    contains,
    is_constant_function,
    parts,
    same_value,
    symbols,
)
from swift_rlvr.verifiers.mathematics.parser import Tree, replaced, with_each_part
from swift_rlvr.verifiers.mathematics.plain_numbers import (
    ENOUGH_PLACES,
    ENOUGH_PLACES_OF_GOLD,
    is_long_decimal_of,
)
from swift_rlvr.verifiers.mathematics.units import different_units
from swift_rlvr.verifiers.mathematics.values import (
    Approximately,
    Number,
    Value,
    tree_of,
    unit_of,
    without_unit,
)

# The name of a constant of integration, as in golds of College Math: C (1705), k (1805), c_1 (2550).
# (C_p is a heat capacity.)
_ARBITRARY = re.compile(r"[CcKk](_\d+)?")
# ... and of those in a general solution: A e^x + B e^{-x}
_LETTER_OF_CONSTANT = re.compile(r"[A-D]")
_MOST_CONSTANTS = 3

_MINUS_ONE = ("number", Fraction(-1))

# One degree in radians.
_DEGREE = ("/", ("constant", "pi"), ("number", Fraction(180)))


def same_expression(gold: Value, answer: Value) -> bool:
    first = tree_of(gold)
    second = tree_of(answer)
    if first is None or second is None:
        return False
    if same_value(first, second) or _same_antiderivative(first, second):
        return True
    # as the gold names its arbitrary constants, and with a call of one as a product: \mu(a + b) and
    # \mu a + \mu b, of which only the other one shows that \mu is no function
    renamed = _with_constants_named_as_in(first, second)
    first_as_product = _calls_as_products(first, symbols(second))
    second_as_product = _calls_as_products(second, symbols(first))
    for pair in ((first, renamed), (first_as_product, second_as_product)):
        if pair != (first, second) and same_value(*pair):
            return True
    for solution in _with_constants_exchanged(first, second):
        if same_value(first, solution):
            return True
    # 50x/x -> 50%: a percent sign may be added to an expression as to a number
    if (
        isinstance(answer, Number)
        and answer.percent
        and same_value(("number", answer.value), first)
    ):
        return True
    if _has_long_decimal(gold, second, ENOUGH_PLACES_OF_GOLD):
        return True
    return _has_long_decimal(answer, first, ENOUGH_PLACES)


def _has_long_decimal(number: Value, tree: Tree, enough_places: int) -> bool:
    """Whether a value is a decimal of enough places for the constant that a tree is."""
    if not isinstance(number, Number):
        return False
    value = constant_value(tree)
    return value is not None and is_long_decimal_of(number, value, enough_places)


def _calls_as_products(tree: Tree, factors: frozenset[str]) -> Tree:
    """The tree with a product for each call of a name that is a factor elsewhere; f and F stay
    functions.
    """
    tree = with_each_part(tree, lambda part: _calls_as_products(part, factors))
    match tree:
        case ("call", name, argument) if name in factors - {"f", "F"}:
            return ("*", ("symbol", name), argument)
    return tree


# --- arbitrary constants


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
    """The name of the arbitrary constant that is a term of a sum, and the other terms. Returns None
    if there is no such term, or the name stands elsewhere too.
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


def _with_constants_named_as_in(gold: Tree, answer: Tree) -> Tree:
    """The answer with the arbitrary constants of a general solution named as in the gold.

    C_1 e^x + C_2 e^{-x} -> c_1 e^x + c_2 e^{-x}, and Ce^x -> ke^x. Elsewhere a letter is a letter:
    Km and km are two products.
    """
    wanted = sorted(symbols(gold) - symbols(answer))
    present = sorted(symbols(answer) - symbols(gold))
    if not all(map(_ARBITRARY.fullmatch, wanted)):
        return answer
    if not all(
        _ARBITRARY.fullmatch(name) or _LETTER_OF_CONSTANT.fullmatch(name) for name in present
    ):
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


def _with_constants_exchanged(gold: Tree, answer: Tree) -> Iterator[Tree]:
    """The answer with its arbitrary constants named as the gold's in every other way, where both are the
    general solution of an equation: c_1 e^x + c_2 e^{-x} -> c_2 e^x + c_1 e^{-x}, A e^x + B e^{-x}.

    Two that are given have different values: in m_1 c_1 + m_2 c_2 the heat capacities are not arbitrary. So
    the gold must be a function of one name, and each constant must stand in it once.
    """
    names = symbols(gold)
    constants = [name for name in names if "_" in name and _ARBITRARY.fullmatch(name)]
    variables = names - {*constants}
    if not 2 <= len(constants) <= _MOST_CONSTANTS or len(variables) != 1:
        return
    others = sorted(symbols(answer) - variables)
    if len(others) != len(constants) or not variables <= symbols(answer):
        return
    # C_1 and C_2, or A and B; c_9 is a slip
    indexes = sorted(name[1:] for name in constants)
    if sorted(name[1:] for name in others) != indexes and not all(
        map(_LETTER_OF_CONSTANT.fullmatch, others)
    ):
        return
    leaves = Counter(part[1] for part in parts(gold) if part[0] == "symbol")
    if any(leaves[name] > 1 for name in constants):
        return
    for order in permutations(constants):
        # by names of neither, so that none is taken for another
        solution = answer
        for number, name in enumerate(others):
            solution = replaced(solution, ("symbol", name), ("symbol", f"exchanged_{number}"))
        for number, name in enumerate(order):
            solution = replaced(solution, ("symbol", f"exchanged_{number}"), ("symbol", name))
        yield solution


# --- angles and rounded numbers. Of golds in radians, `\frac{\pi}{4}` (MATH test 1645), policies give degrees too.


def same_angle(gold: Value, answer: Value) -> bool | None:
    """Whether an angle in degrees is one in radians, 60° and \\pi/3. Returns None if not just
    one of them is in degrees.
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


def same_approximation(gold: Approximately, answer: Value) -> bool:
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
