"""The kinds of answers that `swift_rlvr.verifiers.mathematics.reading` reads from text."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.verifiers.mathematics.inequalities import solution_set
from swift_rlvr.verifiers.mathematics.numeric import constant_value, is_real, symbols
from swift_rlvr.verifiers.mathematics.parser import Tree, read_expression
from swift_rlvr.verifiers.mathematics.sets import INFINITY, MINUS_INFINITY, Bound, RealSet


class Number(NamedTuple):
    """A rational number, with what stands behind it."""

    value: Fraction
    percent: bool = False
    unit: str = ""
    places: int = 0  # decimal places as written


class Infinity(NamedTuple):
    """Infinity, or minus infinity."""

    sign: int


class Choice(NamedTuple):
    """A letter that stands for one of several answers, or for a variable."""

    letter: str
    # in parentheses, with a full stop, or set as text: certainly a choice and not a variable
    marked: bool
    content: str = ""  # the text of the choice, where it follows the letter
    meaning: Value | None = None  # the value of that text


class Words(NamedTuple):
    """Words that are an answer, such as `yes`, a date, or letters that may be variables."""

    text: str
    marked: bool  # set as text, or long: certainly not a product of variables


class Sequence(NamedTuple):
    """Values with or without brackets: a set, a point, an interval, a ratio, cases."""

    opening: str  # one of ( [ { <, ":" for a ratio, "cases", or "" without brackets
    closing: str
    items: tuple[Value, ...]


class Expression(NamedTuple):
    """What `parser.read_expression` reads."""

    tree: Tree


class Quantity(NamedTuple):
    """An expression or a relation with a unit. (A `Number` carries its own unit.)"""

    value: Value
    unit: str


class Approximately(NamedTuple):
    """A decimal behind a sign for "about": any value that rounds to it."""

    number: Number


class Relation(NamedTuple):
    """`a = b`, `a < b <= c`, `a \\approx b` ...: one operator less than sides."""

    operators: tuple[str, ...]  # = ~ < <= != in ==
    sides: tuple[Value, ...]


TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}  # the operators with their sides exchanged


class Residue(NamedTuple):
    """`x \\equiv 3 \\pmod 7`; `name` is None where only `3 \\pmod 7` is written."""

    name: Value | None
    value: Value
    modulus: Value


class Region(NamedTuple):
    """The real numbers that inequalities or intervals describe."""

    variable: str  # "" where none is named
    numbers: RealSet


class Matrix(NamedTuple):
    """A matrix or a determinant."""

    bars: bool  # a determinant
    rows: tuple[tuple[Value, ...], ...]


class Family(NamedTuple):
    """A value for every integer: `k\\pi + 1, k \\in \\mathbb{Z}`."""

    parameter: str
    value: Value


_Single = Number | Infinity | Words | Expression | Region  # no other values in them
Value = (
    _Single | Choice | Sequence | Quantity | Approximately | Relation | Residue | Matrix | Family
)


def tree_of(value: Value) -> Tree | None:
    """The expression of a value that is one."""
    if isinstance(value, Expression):
        return value.tree
    if isinstance(value, Number):
        return ("number", value.value / 100 if value.percent else value.value)
    if isinstance(value, (Choice, Words)) and not value.marked:
        return read_expression(value.letter if isinstance(value, Choice) else value.text)
    if isinstance(value, Infinity):
        return ("*", ("number", Fraction(value.sign)), ("constant", "infinity"))
    return None


def unit_of(value: Value) -> str:
    """The unit that a value carries, "percent" among them, or an empty text."""
    if isinstance(value, Approximately):
        value = value.number
    if isinstance(value, Number) and value.percent:
        return "percent"
    return value.unit if isinstance(value, (Quantity, Number)) else ""


def without_unit(value: Value) -> Value:
    """The value without its unit."""
    if isinstance(value, Quantity):
        return value.value
    return value._replace(unit="") if isinstance(value, Number) else value


def name_of(value: Value) -> str:
    """The variable that a value is, or an empty text."""
    if isinstance(value, Choice) and not value.marked:
        return value.letter
    return value.tree[1] if isinstance(value, Expression) and value.tree[0] == "symbol" else ""


def is_constant(value: Value) -> bool:
    """Whether a value is an expression without variables."""
    tree = tree_of(value)
    return tree is not None and not symbols(tree)


def as_region(value: Value) -> Region | None:
    """The numbers of an interval, of a set of numbers, of `x in` one of these, or that solve an
    inequality.
    """
    if isinstance(value, Region):
        return value
    if isinstance(value, Relation) and value.operators[0] in ("<", "<=", ">", ">=", "!="):
        sides = [None if unit_of(side) else tree_of(side) for side in value.sides]
        solved = None if None in sides else solution_set(value.operators, sides)  # type: ignore[arg-type]
        return solved and Region(*solved)
    if (
        isinstance(value, Relation)
        and value.operators == ("in",)
        and (name := name_of(value.sides[0]))
    ):
        inner = as_region(value.sides[1])
        return inner and inner._replace(variable=name)
    if isinstance(value, Sequence):
        if value.opening in ("(", "[") and len(value.items) == 2:
            low, high = map(bound_of, value.items)
            if low is None or high is None:
                return None
            return Region(
                "", RealSet.interval(low, value.opening == "[", high, value.closing == "]")
            )
        if value.opening == "{":
            numbers = [bound_of(item) for item in value.items]
            return None if None in numbers else Region("", RealSet.of(*numbers))
    return None


def bound_of(value: Value) -> Bound | None:
    """The value as a bound of an interval, where it is a real constant or infinity."""
    if isinstance(value, Infinity):
        return INFINITY if value.sign > 0 else MINUS_INFINITY
    if isinstance(value, Number) and (value.percent or value.unit):
        return None
    tree = tree_of(value)
    number = None if tree is None else constant_value(tree)
    return number if number is not None and is_real(number) else None


def is_name(value: Value) -> bool:
    """Whether a side is what a value is given to: a variable, `f(x)`, AB, `\\cos \\theta`, a tuple,
    words.
    """
    if isinstance(value, Words):
        return True
    if isinstance(value, Sequence):
        return value.opening in ("(", "") and all(map(is_name, value.items))
    tree = tree_of(value)
    return tree is not None and _names_something(tree)


def _names_something(tree: Tree) -> bool:
    match tree:
        case ("symbol" | "call", *_) | ("constant", "e" | "i"):
            return True
        case ("abs" | "sin" | "cos" | "tan" | "cot" | "norm" | "det", of, *_):
            return _names_something(of)
        case ("*", *factors):
            return all(map(_names_something, factors))
        case ("/", ("*", ("symbol", "d"), _) as above, ("*", ("symbol", "d"), _) as below):  # dy/dx
            return _names_something(above) and _names_something(below)
        case ("^", ("symbol", _), ("*", ("number", -1), ("number", 1))):  # f^{-1}
            return True
    return False
