r"""Values of trees at points, and whether two trees have the same values.

Two expressions are taken as equal if their values are at all points at which both are defined and
real (or complex where `i` occurs). Rational functions are compared exactly. For anything else,
agreement to 60 digits at several points that have nothing to do with each other is as good as a
proof for expressions of this length. The number of steps is limited, not the time. So a verdict
depends on the two texts alone.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, partial, reduce
from typing import TypeGuard

from swift_rlvr.verifiers.mathematics.functions import (
    ARITHMETIC,
    FUNCTIONS,
    TRIGONOMETRY,
    Computed,
    Undefined,
    agree,
    computing_with,
    constant,
    differ_by_less,
    divide,
    is_real,
    is_zero,
    logarithm,
    magnitude,
    one_thread,
    opaque,
    plus,
    radians,
    times,
)
from swift_rlvr.verifiers.mathematics.parser import Tree

# Most terms of a finite sum, and most nodes that are evaluated for one value.
MAX_TERMS = 200
MAX_STEPS = 2_000

# A value for each variable: {"x": Fraction(5, 2)}.
Point = Mapping[str, Fraction]

# For each point, the range in which every variable gets a value of its own.
_RANGES = ((1, 3), (0, 1), (3, 9), (-1, 0), (-4, -1), (9, 40), (1, 2), (-40, -9))
# More of them where there are several variables, so that some are positive and some negative.
_MIXED = ((-3, 3), (-9, 9), (-2, 2), (0, 12))
# For each further point, the largest whole number: sums, n! and binomials have no other values.
_LARGEST_INTEGERS = (6, 9, 12, 4)
# Where both sides have values at too few of these points: near zero, for arcsines and the like, and
# far away, for roots. \sqrt{x - 100} has none below 100.
_FURTHER = (
    *((0, 1),) * 5,
    *((-1, 1),) * 3,
    *((40, 200), (200, 1000), (500, 5000), (-200, -40), (-1000, -200)),
)
# What is drawn in the ranges depends on a number for each point. These begin where no others are.
_FIRST_FURTHER = 50
_FIRST_INTEGER = 90

# Points at which both sides need values, where there are variables.
_ENOUGH = 3

# An infinite series is known by so many of its terms: two with the same ones are the same, and no
# other expression is.
_SERIES_TERMS = 24
# A sum up to n is known by its bounds and three terms. At small integers different terms, such as k
# and k^2, may be equal.
_SAMPLES = (Fraction(3, 7), Fraction(8, 7), Fraction(20, 7))
# Where values agree, they are computed once more: with so many digits more than their largest part
# has, of which so many may be lost to rounding. More than the last number take too long.
_SPARE_DIGITS = 200
_LOST_DIGITS = 40
_MAX_DIGITS = 6_000


# The functions by the base of a bare logarithm; 0 stands for e.
_FUNCTIONS = {
    base: FUNCTIONS | {"log": partial(logarithm, base=base), "degrees": lambda value: value}
    for base in (0, 10)
}


class TooLong(Undefined):
    """The evaluation takes more steps than are allowed, at any point."""


class _Evaluation:
    """Evaluates trees at one point; `logarithm` is the base of a bare log."""

    def __init__(self, point: Point, logarithm: int = 0):
        self.point = point
        self.functions = _FUNCTIONS[logarithm]
        self.steps = 0

    def value(self, tree: Tree, in_angle: bool = False) -> Computed:
        """The value of a tree; `in_angle` within the argument of a sine or the like, where degrees
        are an angle. Elsewhere they are a unit, and 30° is 30.
        """
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLong
        kind = tree[0]
        if kind == "number":
            return tree[1]
        if kind == "symbol":
            return self.point[tree[1]]
        if kind == "constant":
            return constant(tree[1])
        operation = ARITHMETIC.get(kind)
        if operation is not None:
            return operation(self.value(tree[1], in_angle), self.value(tree[2], in_angle))
        match kind:
            case "degrees" if in_angle:
                return radians(self.value(tree[1]))
            case "pm":
                raise Undefined
            case "sum" | "prod":
                return self._series(tree)
            case "call":
                return opaque(tree[1], *[self.value(part) for part in tree[2:]])
        values = [self.value(part, kind in TRIGONOMETRY) for part in tree[1:]]
        return self.functions[kind](*values)

    def _series(self, tree: Tree) -> Computed:
        kind, (_, name), first, last, body = tree
        low = self.value(first)
        high = None if last == ("constant", "infinity") else self.value(last)
        if _is_integer(low) and _is_integer(high):
            if not 0 <= high - low < MAX_TERMS:
                raise Undefined
            terms = self._terms(name, _numbers_from(low, int(high - low) + 1), body)
            return reduce(plus if kind == "sum" else times, terms)
        # A sum of n terms has a value for whole numbers n alone.
        if symbols(first) | symbols(last):
            raise Undefined
        if kind == "sum" and high is None and isinstance(low, Fraction):
            terms = self._terms(name, _numbers_from(low, _SERIES_TERMS), body)
            # a multiple of the terms, so that twice a series is that of twice its terms
            return times(opaque("series"), reduce(plus, terms))
        # Whatever it is, the same series has the same terms.
        terms = self._terms(name, _SAMPLES, body)
        return opaque(kind, low, Fraction(0) if high is None else high, *terms)

    def _terms(self, name: str, numbers: Iterable[Fraction], body: Tree) -> list[Computed]:
        """The value of a tree for each of the values of a variable."""
        point = self.point
        terms = []
        try:
            for number in numbers:
                self.point = {**point, name: number}
                terms.append(self.value(body))
        finally:
            self.point = point
        return terms


def _numbers_from(first: Fraction, count: int) -> list[Fraction]:
    return [first + number for number in range(count)]


class _Measuring(_Evaluation):
    """Notes the largest magnitude of all values on the way."""

    largest = 0

    def value(self, tree: Tree, in_angle: bool = False) -> Computed:
        value = super().value(tree, in_angle)
        self.largest = max(self.largest, magnitude(value))
        return value


def _is_integer(value: Computed | None) -> TypeGuard[Fraction]:
    return isinstance(value, Fraction) and value.denominator == 1


def evaluate(tree: Tree, point: Point, logarithm: int = 0) -> Computed:
    """The value of a tree at a point.

    Raises:
        Undefined: there is none.
    """
    try:
        return _Evaluation(point, logarithm).value(tree)
    except Undefined:
        raise
    # what mpmath raises, and a variable without a value
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise Undefined(str(error)) from None


def value_at(tree: Tree, point: Point) -> Computed | None:
    """The value at a point. Returns None if there is none."""
    with one_thread(), contextlib.suppress(TooLong):
        return _value(tree, point)
    return None


@lru_cache(maxsize=8192)
def constant_value(tree: Tree) -> Computed | None:
    """The value of a tree without variables. Returns None if it has some, or no value."""
    if symbols(tree) or contains(tree, "pm"):
        return None
    return value_at(tree, {})


def _value(tree: Tree, point: Point, logarithm: int = 0) -> Computed | None:
    """The value at a point. Returns None if there is none. Raises TooLong."""
    try:
        return evaluate(tree, point, logarithm)
    except TooLong:
        raise
    except Undefined:
        return None


# --- what is in a tree


@lru_cache(maxsize=8192)
def symbols(tree: Tree) -> frozenset[str]:
    """The names of the variables, without those that a sum or a product runs over."""
    if tree[0] == "symbol":
        return frozenset((tree[1],))
    if tree[0] in ("number", "constant", "pm"):
        return frozenset()
    if tree[0] in ("sum", "prod"):
        _, (_, name), first, last, body = tree
        return symbols(first) | symbols(last) | (symbols(body) - {name})
    return frozenset().union(*(symbols(part) for part in tree[1:] if isinstance(part, tuple)))


def contains(tree: Tree, *kinds: str) -> bool:
    """Whether a node of these kinds, or a constant of this name, occurs in a tree."""
    return any(
        part[0] in kinds or (part[0] == "constant" and part[1] in kinds) for part in parts(tree)
    )


def parts(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees in it."""
    remaining = [tree]
    while remaining:
        part = remaining.pop()
        yield part
        remaining.extend(child for child in part[1:] if isinstance(child, tuple))


# --- points


def points(names: frozenset[str], further: bool = False) -> Iterator[dict[str, Fraction]]:
    """Points with a value for each name, the same ones every time; one point without names for a
    constant, and none further.
    """
    if further:
        if names:
            for number, bounds in enumerate(_FURTHER, _FIRST_FURTHER):
                yield _point(names, number, bounds)
        return
    if not names:
        yield {}
        return
    ranges = _RANGES + (_MIXED if len(names) > 1 else ())
    for number, bounds in enumerate(ranges):
        yield _point(names, number, bounds)
    for number, largest in enumerate(_LARGEST_INTEGERS, _FIRST_INTEGER):
        yield {name: Fraction(2 + int(_share(name, number) * largest)) for name in names}


def _point(names: frozenset[str], number: int, bounds: tuple[int, int]) -> dict[str, Fraction]:
    low, high = bounds
    return {name: low + (high - low) * _share(name, number) for name in names}


@lru_cache(maxsize=4096)
def _share(name: str, number: int) -> Fraction:
    """A fraction between 0 and 1 that looks like chance, and is always the same."""
    digest = hashlib.sha256(f"{number} {name}".encode()).digest()
    return Fraction(1 + int.from_bytes(digest[:2], "big") % 9973, 9974)


# --- comparisons


def same_value(first: Tree, second: Tree) -> bool:
    r"""Whether two trees have the same values, with a bare logarithm of base e or 10.

    >>> from swift_rlvr.verifiers.mathematics.parser import read_expression as read
    >>> same_value(read(r"\sin 2x"), read(r"2\sin x\cos x")), same_value(read("|x|"), read("x"))
    (True, False)
    """
    if first == second:
        return True
    bases = (0, 10) if contains(("", first, second), "log") else (0,)
    with contextlib.suppress(TooLong):
        return any(_same_at_points(first, second, base) for base in bases)
    return False


def _same_at_points(first: Tree, second: Tree, logarithm: int) -> bool:
    names = symbols(first) | symbols(second)
    # \sqrt{x} is no function of negative numbers, where there is no i
    only_reals = names and not contains(("", first, second), "i")
    enough = _ENOUGH if names else 1
    agreed = 0
    with one_thread():
        for further in (False, True):
            for point, (a, b) in _values((first, second), points(names, further), logarithm):
                if only_reals and not (is_real(a) and is_real(b)):
                    continue
                if not agree(a, b):
                    return False
                if not agreed and not _agree_with_more_digits(first, second, point, logarithm):
                    return False
                agreed += 1
            if agreed >= enough:
                return True
    return False


def _values(
    trees: Iterable[Tree], at: Iterable[Point], logarithm: int = 0
) -> Iterator[tuple[Point, list[Computed]]]:
    """Each point at which all trees have a value, and the values. Raises TooLong."""
    for point in at:
        if point or logarithm:
            values = [_value(tree, point, logarithm) for tree in trees]
        else:
            # of a set with many elements each is compared with many
            values = [constant_value(tree) for tree in trees]
        if None not in values:
            yield point, values


def _agree_with_more_digits(first: Tree, second: Tree, point: Point, logarithm: int) -> bool:
    """Whether values that agree to 60 digits still do with as many as their parts ask for: \\tanh 100
    differs from 1 in the 87th, and 2^{-2004} from 0 in the 604th.

    What would need too many is not shown to be equal.
    """
    largest = 0
    is_exact = True
    for tree in (first, second):
        measuring = _Measuring(point, logarithm)
        is_exact = isinstance(measuring.value(tree), Fraction) and is_exact
        largest = max(largest, measuring.largest)
    if is_exact:
        return True
    # A rounding error is at most that of the largest part, through the largest factor.
    digits = _SPARE_DIGITS + 4 * largest
    if digits > _MAX_DIGITS:
        return False
    with computing_with(digits):
        a = _value(first, point, logarithm)
        b = _value(second, point, logarithm)
        if a is None or b is None:
            return True
        return differ_by_less(a, b, 2 * largest + _LOST_DIGITS - digits)


def constant_multiple(first: Tree, second: Tree) -> Computed | None:
    """The constant, not zero, that the first tree is of the second at all points where both are
    defined. Returns None if there is none.

    Both have to depend on each of their variables: an identity is no equation.
    """
    with contextlib.suppress(TooLong), one_thread():
        names = symbols(first)
        if names != symbols(second):
            return None
        for tree in (first, second):
            if not all(_depends(tree, name) for name in names):
                return None
        quotients: list[Computed] = []
        for _, (a, b) in _values((first, second), points(names)):
            if is_zero(a) != is_zero(b):
                return None
            if is_zero(a) or not is_real(a) or not is_real(b):
                continue
            quotients.append(divide(a, b))
            if not agree(quotients[0], quotients[-1]):
                return None
        return quotients[0] if len(quotients) >= _ENOUGH else None
    return None


def is_constant_function(tree: Tree) -> bool:
    r"""Whether a tree with variables has the same value at all points where it is defined.

    >>> from swift_rlvr.verifiers.mathematics.parser import read_expression as read
    >>> is_constant_function(read(r"\sin^2 x + \cos^2 x")), is_constant_function(read("x - x^2"))
    (True, False)
    """
    values: list[Computed] = []
    with contextlib.suppress(TooLong), one_thread():
        for _, (value,) in _values((tree,), points(symbols(tree))):
            if not is_real(value):
                continue
            values.append(value)
            if not agree(values[0], value):
                return False
    return len(values) >= _ENOUGH


def _depends(tree: Tree, name: str) -> bool:
    """Whether the value changes with a variable."""
    for point in points(symbols(tree)):
        value = _value(tree, point)
        moved = _value(tree, {**point, name: point[name] + Fraction(1, 7)})
        if value is not None and moved is not None and not agree(value, moved):
            return True
    return False
