"""The kinds of answers that `swift_rlvr.math_answers.reading` reads from text."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.math_answers.numeric import constant_value, is_real, symbols
from swift_rlvr.math_answers.parser import Tree, read_expression
from swift_rlvr.math_answers.sets import INFINITY, MINUS_INFINITY, End, RealSet


class Number(NamedTuple):
    value: Fraction
    percent: bool = False
    unit: str = ""
    places: int = 0  # decimal places as written


class Infinity(NamedTuple):
    sign: int


class Choice(NamedTuple):
    letter: str
    marked: bool  # in parentheses, with a full stop, or set as text: certainly a choice and not a variable
    content: str = ""  # the text of the choice, where it follows the letter
    meaning: Value | None = None  # the value of that text


class Words(NamedTuple):
    text: str
    marked: bool  # set as text, or long: certainly not a product of variables


class Sequence(NamedTuple):
    opening: str  # one of ( [ { <, ":" for a ratio, "cases", or "" without brackets
    closing: str
    items: tuple[Value, ...]


class Expression(NamedTuple):
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
    bars: bool  # a determinant
    rows: tuple[tuple[Value, ...], ...]


class Family(NamedTuple):
    """A value for every integer: `k\\pi + 1, k \\in \\mathbb{Z}`."""

    parameter: str
    value: Value


Value = (
    Number
    | Infinity
    | Choice
    | Words
    | Sequence
    | Expression
    | Quantity
    | Approximately
    | Relation
    | Residue
    | Region
    | Matrix
    | Family
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
    if isinstance(value, Approximately):
        return value.number.unit
    return value.unit if isinstance(value, (Quantity, Number)) else ""


def without_unit(value: Value) -> Value:
    """The value without its unit."""
    if isinstance(value, Quantity):
        return value.value
    return value._replace(unit="") if isinstance(value, Number) else value


def name_of(value: Value) -> str:
    if isinstance(value, Choice) and not value.marked:
        return value.letter
    return value.tree[1] if isinstance(value, Expression) and value.tree[0] == "symbol" else ""


def is_constant(value: Value) -> bool:
    tree = tree_of(value)
    return tree is not None and not symbols(tree)


def as_region(value: Value) -> Region | None:
    """The numbers of an interval, of a set of numbers, or of `x in` one of these."""
    if isinstance(value, Region):
        return value
    if isinstance(value, Relation) and value.operators == ("in",) and (name := name_of(value.sides[0])):
        inner = as_region(value.sides[1])
        return inner and inner._replace(variable=name)
    if isinstance(value, Sequence):
        if value.opening in ("(", "[") and len(value.items) == 2:
            ends = [end_of(item) for item in value.items]
            if ends[0] is None or ends[1] is None:
                return None
            return Region("", RealSet.interval(ends[0], value.opening == "[", ends[1], value.closing == "]"))
        if value.opening == "{":
            numbers = RealSet(())
            for item in value.items:
                if (end := end_of(item)) is None:
                    return None
                numbers = numbers.union(RealSet.interval(end, True, end, True))
            return Region("", numbers)
    return None


def end_of(value: Value) -> End | None:
    """The end of an interval, where it is a real constant or infinity."""
    if isinstance(value, Infinity):
        return INFINITY if value.sign > 0 else MINUS_INFINITY
    if isinstance(value, Number) and (value.percent or value.unit):
        return None
    tree = tree_of(value)
    number = None if tree is None else constant_value(tree)
    return number if number is not None and is_real(number) else None


def is_name(value: Value) -> bool:
    """Whether a side is what a value is given to: a variable, `f(x)`, AB, `\\cos \\theta`, a tuple, words."""
    if isinstance(value, Words):
        return True
    if isinstance(value, Sequence):
        return value.opening in ("(", "") and all(map(is_name, value.items))
    tree = tree_of(value)
    return tree is not None and _names_something(tree)


def _names_something(tree: Tree) -> bool:
    if tree[0] in ("symbol", "call") or tree == ("constant", "e") or tree == ("constant", "i"):
        return True
    if tree[0] in ("abs", "sin", "cos", "tan", "cot", "norm", "det"):
        return _names_something(tree[1])
    if tree[0] == "*":
        return all(map(_names_something, tree[1:]))
    if tree[0] == "/":  # dy/dx
        return all(part[:2] == ("*", ("symbol", "d")) and _names_something(part) for part in tree[1:])
    return (
        tree[0] == "^"
        and tree[1][0] == "symbol"
        and tree[2] == ("*", ("number", Fraction(-1)), ("number", Fraction(1)))
    )
