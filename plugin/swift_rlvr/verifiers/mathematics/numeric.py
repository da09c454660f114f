r"""Values of trees at points, and whether two trees have the same values.

Two expressions are taken as equal if their values are at all points at which both are defined and
real (or complex where `i` occurs). Rational functions are compared exactly. For anything else,
agreement to 60 digits at several points that have nothing to do with each other is as good as a
proof for expressions of this length. The number of steps is limited, not the time. So a verdict
depends on the two texts alone.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, reduce

from swift_rlvr.verifiers.mathematics.functions import (
    ARITHMETIC,
    FUNCTIONS,
    TRIGONOMETRY,
    Undefined,
    Value,
    agree,
    constant,
    divide,
    gauss,
    inexact,
    is_real,
    is_zero,
    logarithm,
    minus,
    one_thread,
    opaque,
    plus,
    radians,
    times,
)
from swift_rlvr.verifiers.mathematics.parser import Tree

MAX_TERMS, MAX_STEPS = 200, 2_000
# of an infinite series: two with the same ones are the same, and no other expression is
_TERMS = 24
Point = Mapping[str, Fraction]
# For each point: the range in which every symbol gets a value of its own.
_RANGES = ((1, 3), (0, 1), (3, 9), (-1, 0), (-4, -1), (9, 40), (1, 2), (-40, -9))
_MIXED = ((-3, 3), (-9, 9), (-2, 2), (0, 12))
# Where both sides have values at too few of these: near zero, for arcsines and the like, and far
# away, for roots.
_FURTHER = (
    *((0, 1),) * 5,
    *((-1, 1),) * 3,
    *((40, 200), (200, 1000), (500, 5000), (-200, -40)),
    (-1000, -200),
)
_ENOUGH = 3  # points at which both have values, where there are variables
BINDING = (
    "sum",
    "prod",
    "int",
)  # kinds of trees with a variable, its bounds, and what it stands in
_STEP = Fraction(1, 10**40)  # of a derivative, which is exact to 60 digits then
_GAUSS = (4, 5, 6)  # 24, 48 and 96 points of an integral, until two of these agree to 60 digits


class TooLong(Undefined):
    """The evaluation takes more steps than are allowed, at any point."""


class _Evaluation:
    """Evaluates trees at one point; `logarithm` is the base of a bare log."""

    def __init__(self, point: Point, logarithm: int = 0):
        self.point, self.logarithm, self.steps = point, logarithm, 0

    def value(self, tree: Tree, in_angle: bool = False) -> Value:
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
        if kind == "pm":
            raise Undefined
        if kind in ARITHMETIC:
            return ARITHMETIC[kind](self.value(tree[1], in_angle), self.value(tree[2], in_angle))
        if kind == "degrees":
            value = self.value(tree[1])
            return radians(value) if in_angle else value
        if kind in ("sum", "prod"):
            return self._series(tree)
        if kind == "int":
            return self._integral(tree)
        if kind == "derivative":
            return self._slope(tree)
        if kind == "call":
            return opaque(tree[1], [self.value(part) for part in tree[2:]])
        if kind == "log":
            return logarithm(self.value(tree[1]), self.logarithm)
        values = [self.value(part, kind in TRIGONOMETRY) for part in tree[1:]]
        function = FUNCTIONS.get(kind)
        return opaque(kind, values) if function is None else function(*values)

    def _series(self, tree: Tree) -> Value:
        kind, (_, name), first, last, body = tree
        low, high = (
            self.value(first),
            self.value(last) if last != ("constant", "infinity") else None,
        )
        if (
            isinstance(low, Fraction)
            and isinstance(high, Fraction)
            and low.denominator == high.denominator == 1
        ):
            if not 0 <= high - low < MAX_TERMS:
                raise Undefined
            operation, neutral = (plus, Fraction(0)) if kind == "sum" else (times, Fraction(1))
            each = (
                self._at(name, Fraction(number), body) for number in range(int(low), int(high) + 1)
            )
            return reduce(operation, each, neutral)
        if symbols(first) | symbols(last):  # n terms are there for whole numbers n alone
            raise Undefined
        if kind == "sum" and high is None and isinstance(low, Fraction):
            terms = [self._at(name, low + number, body) for number in range(_TERMS)]
            return times(
                opaque("series", []), reduce(plus, terms)
            )  # twice a series is that of twice its terms
        # Whatever it is, the same series has the same terms.
        terms = [self._at(name, Fraction(number, 7), body) for number in (3, 8, 20)]
        return opaque(kind, [low, Fraction(0) if high is None else high, *terms])

    def _integral(self, tree: Tree) -> Value:
        """By Gauss's rule, as exact as all else here; where it does not converge, the same for the
        same integrand.
        """
        _, (_, name), first, last, body = tree
        low, high = self.value(first), self.value(last)
        middle, half = divide(plus(low, high), Fraction(2)), divide(minus(high, low), Fraction(2))
        before: Value | None = None
        for degree in _GAUSS:
            terms = (
                times(weight, self._at(name, plus(middle, times(half, x)), body))
                for x, weight in gauss(degree)
            )
            result = times(half, reduce(plus, terms))
            if before is not None and agree(before, result):
                return result
            before = result
        return opaque(
            "int",
            [low, high, *(self._at(name, Fraction(number, 7), body) for number in (3, 8, 20))],
        )

    def _slope(self, tree: Tree) -> Value:
        _, (_, name), body = tree
        if name not in symbols(body) or contains(
            body, "call", "derivative"
        ):  # y may be a function of x
            raise Undefined
        low, high = (self._at(name, plus(self.point[name], step), body) for step in (-_STEP, _STEP))
        return inexact(divide(minus(high, low), 2 * _STEP))

    def _at(self, name: str, value: Fraction, body: Tree) -> Value:
        point, self.point = self.point, {**self.point, name: value}
        try:
            return self.value(body)
        finally:
            self.point = point


def evaluate(tree: Tree, point: Point, logarithm: int = 0) -> Value:
    """The value of a tree at a point.

    Raises:
        Undefined: there is none.
    """
    try:
        return _Evaluation(point, logarithm).value(tree)
    except Undefined:
        raise
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError) as error:  # of mpmath
        raise Undefined(str(error)) from None


@lru_cache(maxsize=8192)
def symbols(tree: Tree) -> frozenset[str]:
    """The names of the variables, without those that a sum or an integral runs over."""
    if tree[0] == "symbol":
        return frozenset((tree[1],))
    if tree[0] in ("number", "constant", "pm"):
        return frozenset()
    if tree[0] in BINDING:
        return symbols(tree[2]) | symbols(tree[3]) | (symbols(tree[4]) - {tree[1][1]})
    return frozenset().union(*(symbols(part) for part in tree[1:] if isinstance(part, tuple)))


def contains(tree: Tree, *kinds: str) -> bool:
    """Whether a node of these kinds, or a constant of this name, occurs in a tree."""
    return any(
        part[0] in kinds or (part[0] == "constant" and part[1] in kinds) for part in parts(tree)
    )


def parts(tree: Tree) -> Iterator[Tree]:
    """The tree and all trees in it."""
    left = [tree]
    while left:
        yield (part := left.pop())
        left.extend(each for each in part[1:] if isinstance(each, tuple))


def points(names: frozenset[str], further: bool = False) -> Iterator[dict[str, Fraction]]:
    """Points with a value for each name, the same ones every time; one point without names for a
    constant.
    """
    if further:
        for number, (low, high) in enumerate(_FURTHER if names else (), 50):
            yield {name: low + (high - low) * _share(name, number) for name in names}
        return
    if not names:
        yield {}
        return
    for number, (low, high) in enumerate(_RANGES + (_MIXED if len(names) > 1 else ())):
        yield {name: low + (high - low) * _share(name, number) for name in names}
    for number, high in enumerate((6, 9, 12, 4)):  # whole numbers, for sums, n! and binomials
        yield {name: Fraction(2 + int(_share(name, 90 + number) * high)) for name in names}


@lru_cache(maxsize=4096)
def _share(name: str, number: int) -> Fraction:
    digest = hashlib.sha256(f"{number} {name}".encode()).digest()
    return Fraction(1 + int.from_bytes(digest[:2], "big") % 9973, 9974)


@lru_cache(maxsize=8192)
def constant_value(tree: Tree) -> Value | None:
    """The value of a tree without variables, or None where it has some or no value."""
    return None if symbols(tree) or contains(tree, "pm") else value_at(tree, {})


def same_value(first: Tree, second: Tree) -> bool:
    """Whether two trees have the same values, with a bare logarithm of base e or 10.

    >>> from swift_rlvr.verifiers.mathematics.parser import read_expression as read
    >>> same_value(read(r"\\\\sin 2x"), read(r"2\\\\sin x\\\\cos x")), same_value(read("|x|"), read("x"))
    (True, False)
    """
    if first == second:
        return True
    bases = (0, 10) if contains(("", first, second), "log") else (0,)
    with contextlib.suppress(TooLong):
        return any(_same(first, second, base) for base in bases)
    return False


def _same(first: Tree, second: Tree, logarithm: int) -> bool:
    names = symbols(first) | symbols(second)
    is_complex = not names or contains(("", first, second), "i")
    agreed = 0
    with one_thread():
        for further in (False, True):
            for point in points(names, further):
                values = [_value(tree, point, logarithm) for tree in (first, second)]
                if None in values:
                    continue
                if is_complex or (is_real(values[0]) and is_real(values[1])):
                    if not agree(*values):
                        return False
                    agreed += 1
            if agreed >= (_ENOUGH if names else 1):
                return True
    return False


def _value(tree: Tree, point: Point, logarithm: int = 0) -> Value | None:
    """The value, or None where there is none. Raises TooLong."""
    try:
        return evaluate(tree, point, logarithm)
    except TooLong:
        raise
    except Undefined:
        return None


def constant_multiple(first: Tree, second: Tree) -> Value | None:
    """The constant, not zero, that the first tree is of the second at all points where both are
    defined, or None.

    Both have to depend on each of their variables: an identity is no equation.
    """
    with contextlib.suppress(TooLong), one_thread():
        names = symbols(first)
        if names != symbols(second) or not all(
            _depends(tree, name) for tree in (first, second) for name in names
        ):
            return None
        ratios: list[Value] = []
        for point in points(names):
            values = _value(first, point), _value(second, point)
            if None in values:
                continue
            zeros = [is_zero(value) for value in values]
            if any(zeros) and not all(zeros):
                return None
            if not any(zeros) and is_real(values[0]) and is_real(values[1]):
                ratios.append(divide(*values))
                if not agree(ratios[0], ratios[-1]):
                    return None
        return ratios[0] if len(ratios) >= 3 else None
    return None


def _depends(tree: Tree, name: str) -> bool:
    """Whether the value changes with a variable."""
    for point in points(symbols(tree)):
        values = [
            _value(tree, {**point, name: point[name] + step})
            for step in (Fraction(0), Fraction(1, 7))
        ]
        if None not in values and not agree(*values):
            return True
    return False


def value_at(tree: Tree, point: Point) -> Value | None:
    """The value at a point, or None where there is none."""
    with one_thread(), contextlib.suppress(TooLong):
        return _value(tree, point)
    return None
