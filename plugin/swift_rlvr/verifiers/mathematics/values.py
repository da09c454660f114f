"""The kinds of answers that `swift_rlvr.verifiers.mathematics.reading` reads from text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.verifiers.mathematics.functions import is_real
from swift_rlvr.verifiers.mathematics.numeric import constant_value, symbols
from swift_rlvr.verifiers.mathematics.parser import Tree, read_expression
from swift_rlvr.verifiers.mathematics.sets import INFINITY, MINUS_INFINITY, REALS, Bound, RealSet

# --- single values


class Number(NamedTuple):
    """A rational number, with what stands behind it: `12`, `50\\%`, `3.50 cm`."""

    value: Fraction
    percent: bool = False
    unit: str = ""
    places: int = 0  # decimal places as written: 2 for 3.50, and for 3.50 \\times 10^8
    exponent: int = 0  # of the power of ten behind the decimal: 8 in the latter, 6 in 3.5 million
    # what it is where the letters of its unit are variables: 2mg, which is no unit at all then
    product: Tree | None = None

    @property
    def rounding(self) -> Fraction:
        """How far the value may be from one that is rounded to it: half of the last place that is
        written. 0 for a fraction, which is no rounded number.

        >>> Number(Fraction(2900), places=1, exponent=3).rounding, Number(Fraction(1, 3)).rounding
        (Fraction(50, 1), Fraction(0, 1))
        """
        last_place = Fraction(10) ** (self.exponent - self.places)
        is_rounded = (self.value / last_place).denominator == 1
        return last_place / 2 if is_rounded else Fraction(0)


class Infinity(NamedTuple):
    """Infinity, or minus infinity."""

    sign: int


class Choice(NamedTuple):
    """A letter that stands for one of several answers, or for a variable: `(B)`, `B`, `(B) 12`."""

    letter: str
    # in parentheses, with a full stop, or set as text: certainly a choice and not a variable
    marked: bool
    content: str = ""  # the text of the choice, where it follows the letter
    meaning: Value | None = None  # the value of that text


class Words(NamedTuple):
    """Words that are an answer, such as `yes`, a date, or letters that may be variables."""

    text: str
    marked: bool  # set as text, or long: certainly not a product of variables


class Expression(NamedTuple):
    """What `parser.read_expression` reads."""

    tree: Tree


class Region(NamedTuple):
    """The real numbers that solved inequalities or intervals describe: `x \\ge \\frac{1}{2}` (CARP 365)."""

    variable: str  # "" where none is named
    numbers: RealSet


# --- values with other values in them


class Quantity(NamedTuple):
    """An expression or a relation with a unit. (A `Number` carries its own unit.)"""

    value: Value
    unit: str
    product: Tree | None = None  # where the letters of the unit may be variables, as of a Number


class Approximately(NamedTuple):
    """A decimal behind a sign for "about": any value that rounds to it. `\\approx 17.10 \\mathrm{ft}` (College
    Math 2616), and the golds of physics.
    """

    number: Number


class Relation(NamedTuple):
    """`a = b`, `a < b <= c`, `a \\approx b` ...: one operator less than sides."""

    operators: tuple[str, ...]  # = ~ < <= > >= != in ==
    sides: tuple[Value, ...]


class Matrix(NamedTuple):
    """A matrix or a determinant."""

    bars: bool  # a determinant
    rows: tuple[tuple[Value, ...], ...]


class Family(NamedTuple):
    """A value for every integer: `2 n\\pi - \\pi/2`, any integer n (College Math 1991)."""

    parameter: str
    value: Value


@dataclass(frozen=True)
class Several:
    """Several values. What stands around and between them decides whether their order matters.

    The kinds are dataclasses: two NamedTuples of different classes with the same items would be
    equal.

    >>> items = (Infinity(1),)
    >>> Set(items) == Set(items), Set(items) == Tuple(items)
    (True, False)
    """

    items: tuple[Value, ...]


class Listing(Several):
    """Values without brackets, with commas or "and" between them: `1, 2`, `x = 1, x = 2`.

    Whether their order matters is decided by the gold and the question (`lists.in_order`).
    """


class Alternatives(Listing):
    """Values of which each is one, in any order: `x = -2 or x = 2` (College Math 1416), `1 \\pm \\sqrt{19}`
    (MATH test 2896).
    """


class Restricted(Listing):
    """A value, and behind it in brackets or after "for" the conditions on its variables:
    `2n - 1 (n \\geq 1)`. A comma alone may also join a second answer.
    """


class Sequence(Several):
    """Values in an order, with repetition: numbers with spaces between them, `-2 3 5` (DeepMind
    Mathematics, in MathCoder's outputs).
    """


class Set(Several):
    """Values in braces, in any order: `\\{1, 2\\}`."""


class Cases(Several):
    """The rows of `\\begin{cases}`, in any order: a system, or a function piece by piece."""


class Ratio(Several):
    """Values with colons between them: `2 : 3`, and also the time `3:30`."""


class Vector(Several):
    """Values in angle brackets: `\\langle 1, 2 \\rangle`."""


@dataclass(frozen=True)
class Tuple(Several):
    """Values in parentheses or square brackets: a point, a list or, of two, an interval.

    `(1, 2)` may be a point or an open interval, and `[1, 2]` a list or a closed interval. What it is
    compared with decides which one is meant.
    """

    closed_low: bool = False  # [1, 2] and [1, 2)
    closed_high: bool = False  # [1, 2] and (1, 2]


Value = (
    Number
    | Infinity
    | Choice
    | Words
    | Expression
    | Region
    | Quantity
    | Approximately
    | Relation
    | Matrix
    | Family
    | Several
)

# a < b is b > a: the operators with their sides exchanged
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


# --- what several kinds have in common


def tree_of(value: Value) -> Tree | None:
    """The expression of a value that is one."""
    if isinstance(value, Expression):
        return value.tree
    if isinstance(value, (Number, Quantity)) and value.product is not None:
        return value.product
    if isinstance(value, Number):
        return ("number", value.value / 100 if value.percent else value.value)
    # `x` and `ab` are read as a choice and as words, and may be a variable and a product
    if isinstance(value, Choice) and not value.marked:
        return read_expression(value.letter)
    if isinstance(value, Words) and not value.marked:
        return read_expression(value.text)
    if isinstance(value, Infinity):
        return ("*", ("number", Fraction(value.sign)), ("constant", "infinity"))
    return None


def unit_of(value: Value) -> str:
    """The unit that a value carries, "percent" among them, or an empty text."""
    if isinstance(value, Approximately):
        value = value.number
    if isinstance(value, Number) and value.percent:
        return "percent"
    if isinstance(value, (Number, Quantity)):
        return value.unit
    return ""


def without_unit(value: Value) -> Value:
    """The value without its unit."""
    if isinstance(value, Quantity):
        return value.value
    if isinstance(value, Number):
        return value._replace(unit="", product=None)
    return value


def product_of(value: Value) -> Tree | None:
    """The product of variables that a value with a unit may be: 2mg."""
    return value.product if isinstance(value, (Number, Quantity)) else None


def name_of(value: Value) -> str:
    """The variable that a value is, or an empty text."""
    if isinstance(value, Choice) and not value.marked:
        return value.letter
    if isinstance(value, Expression) and value.tree[0] == "symbol":
        return value.tree[1]
    return ""


def is_constant(value: Value) -> bool:
    """Whether a value is an expression without variables."""
    tree = tree_of(value)
    return tree is not None and not symbols(tree)


def is_equality(relation: Relation) -> bool:
    """Whether all signs of a relation say that its sides are equal, exactly or about."""
    return all(operator in ("=", "~") for operator in relation.operators)


# --- regions


def as_region(value: Value) -> Region | None:
    """The numbers of an interval, of a set of numbers, or of `x in` one of these.

    An inequality that is solved, `x > 3`, is read as a region. One that is not, `2x < 6`, says the
    question again: it is none.
    """
    match value:
        case Region():
            return value
        case Relation(("in",), (variable, members)):
            name = name_of(variable)
            region = as_region(members) if name else None
            return region and region._replace(variable=name)
        case Tuple((low, high)):
            first, last = bound_of(low), bound_of(high)
            if first is None or last is None:
                return None
            numbers = RealSet.interval(first, value.closed_low, last, value.closed_high)
            # (3, 2) and [2, 2] are points: whoever means the empty set, or {2}, writes that
            return Region("", numbers) if len(numbers.bounds) == 2 else None
        case Set(items):
            elements = [bound_of(item) for item in items]
            if None in elements:
                return None
            return Region("", RealSet.of(*elements))
    return None


def solved_region(relation: Relation) -> Region | None:
    """The numbers for which `x > 3`, `-1 < x <= 2` or `x != 5` holds. Returns None if the relation is
    no condition on one variable.
    """
    places_of_names = [place for place, side in enumerate(relation.sides) if name_of(side)]
    if len(places_of_names) != 1:
        return None
    variable = places_of_names[0]
    numbers = REALS
    for place, operator in enumerate(relation.operators):
        left, right = relation.sides[place : place + 2]
        if variable == place:
            part = _numbers(operator, right)
        elif variable == place + 1:
            part = _numbers(TURNED.get(operator, operator), left)
        else:
            return None
        if part is None:
            return None
        numbers = numbers.intersection(part)
    return Region(name_of(relation.sides[variable]), numbers)


def _numbers(operator: str, value: Value) -> RealSet | None:
    r"""The numbers that are larger or smaller than a value, or other than several values."""
    if operator == "!=":
        # `x \neq 1, 2` excludes both
        items = value.items if isinstance(value, Listing) else (value,)
        excluded = as_region(Set(items))
        # infinities are floats
        if excluded is None or any(isinstance(bound_of(item), float) for item in items):
            return None
        return REALS.without(excluded.numbers)
    bound = bound_of(value)
    if bound is None or operator not in TURNED:
        return None
    # `x <= \infty` holds for all numbers, none of which is infinity
    closed = operator in ("<=", ">=") and not isinstance(bound, float)
    if operator[0] == ">":
        return RealSet.interval(bound, closed, INFINITY, False)
    return RealSet.interval(MINUS_INFINITY, False, bound, closed)


def is_unsolved(value: Value) -> bool:
    """Whether a value is an inequality in one variable that is not solved: `|x| < 2`."""
    if not isinstance(value, Relation) or not {*TURNED, "!="} & {*value.operators}:
        return False
    trees = [tree_of(side) for side in value.sides]
    names = frozenset().union(*(symbols(tree) for tree in trees if tree is not None))
    return len(names) == 1


def bound_of(value: Value) -> Bound | None:
    """The value as a bound of an interval, where it is a real constant or infinity."""
    if isinstance(value, Infinity):
        return INFINITY if value.sign > 0 else MINUS_INFINITY
    if isinstance(value, Number) and (value.percent or value.unit):
        return None
    tree = tree_of(value)
    number = None if tree is None else constant_value(tree)
    return number if number is not None and is_real(number) else None


# --- names: what stands on the left of `x = 5`


def is_name(value: Value) -> bool:
    """Whether a side is what a value is given to: a variable, `f(x)`, AB, `\\cos \\theta`, a tuple,
    words.
    """
    match value:
        case Words():
            return True
        # (x, y) = (1, 2), a:b = 2:3
        case Listing(items) | Ratio(items) | Tuple(items, closed_low=False):
            return all(map(is_name, items))
        case Several():
            return False
    tree = tree_of(value)
    return tree is not None and _names_something(tree)


def _names_something(tree: Tree) -> bool:
    match tree:
        # e and i are letters too: e = 5 where an eccentricity is asked for
        case ("symbol" | "call", *_) | ("constant", "e" | "i"):
            return True
        # |AB|, \cos \theta, \det A
        case ("abs" | "sin" | "cos" | "tan" | "cot" | "norm" | "det", argument, *_):
            return _names_something(argument)
        # AB, the length of a side
        case ("*", *factors):
            return all(map(_names_something, factors))
        # f^{-1}
        case ("^", ("symbol", _), ("*", ("number", -1), ("number", 1))):
            return True
    return False
