r"""Values of trees at points: exact fractions as long as an operation keeps them, else complex numbers of 120 digits.

Two expressions are taken as equal if their values are at all points at which both are defined and real (or complex
where `i` occurs). Rational functions are compared exactly. For anything else, agreement to 60 digits at several points
that have nothing to do with each other is as good as a proof for expressions of this length, and no step takes
long: sizes are limited (`Undefined` is raised), not seconds. So a verdict depends on the two texts alone.
"""

import contextlib
import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mpmath import MPContext

from swift_rlvr.math_answers.parser import Tree

MAX_BITS, MAX_POWER, MAX_FACTORIAL, MAX_TERMS, MAX_STEPS = 20_000, 10_000, 2_000, 200, 2_000
_context = MPContext()  # its functions change its precision while they run: one thread at a time
_context.dps = 120
_NOTHING, _RELATIVE = _context.mpf(10) ** -100, _context.mpf(10) ** -60
_lock = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.RLock()))  # another thread may have held it
Value = Any  # Fraction, or the context's mpf or mpc
Point = Mapping[str, Fraction]

# For each point: the range in which every symbol gets a value of its own.
_RANGES = ((1, 3), (0, 1), (3, 9), (-1, 0), (-4, -1), (9, 40), (1, 2), (-40, -9))
_MIXED = ((-3, 3), (-9, 9), (-2, 2), (0, 12))


class Undefined(ArithmeticError):
    """There is no value: division by zero, a size beyond the limits, an operation without a value here."""


class TooLong(Undefined):
    """The evaluation takes more steps than are allowed, at any point."""


class Evaluation:
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
            return _constant(tree[1])
        if kind == "pm":
            raise Undefined
        if kind in _ARITHMETIC:
            return _ARITHMETIC[kind](self.value(tree[1], in_angle), self.value(tree[2], in_angle))
        if kind == "degrees":
            value = self.value(tree[1])
            return _irrational(value) * _context.pi / 180 if in_angle else value
        if kind in ("sum", "prod"):
            return self.series(tree)
        if kind == "call":
            return _opaque(tree[1], [self.value(part) for part in tree[2:]])
        if kind == "log":
            value = _logarithm(self.value(tree[1]))
            return value / _context.log(self.logarithm) if self.logarithm else value
        values = [self.value(part, kind in _TRIGONOMETRY) for part in tree[1:]]
        function = _FUNCTIONS.get(kind)
        if function is None:
            return _opaque(kind, values)
        return function(*values)

    def series(self, tree: Tree) -> Value:
        kind, (_, name), first, last, body = tree
        low, high = self.value(first), self.value(last) if last != ("constant", "infinity") else None
        if isinstance(low, Fraction) and isinstance(high, Fraction) and low.denominator == high.denominator == 1:
            if not 0 <= high - low < MAX_TERMS:
                raise Undefined
            result: Value = Fraction(0 if kind == "sum" else 1)
            for number in range(int(low), int(high) + 1):
                term = self.at(name, Fraction(number), body)
                result = _plus(result, term) if kind == "sum" else _times(result, term)
            return result
        # Whatever it is, the same series has the same terms.
        terms = [self.at(name, Fraction(number, 7), body) for number in (3, 8, 20)]
        return _opaque(kind, [low, Fraction(0) if high is None else high, *terms])

    def at(self, name: str, value: Fraction, body: Tree) -> Value:
        point, self.point = self.point, {**self.point, name: value}
        try:
            return self.value(body)
        finally:
            self.point = point


# --- operations


def _irrational(value: Value) -> Value:
    if isinstance(value, Fraction):
        return _context.mpf(value.numerator) / value.denominator
    return value


def _checked(value: Value) -> Value:
    if isinstance(value, Fraction):
        if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
            raise Undefined
    elif not _context.isfinite(value):
        raise Undefined
    return value


def _pair(a: Value, b: Value) -> tuple[Value, Value]:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a, b
    return _irrational(a), _irrational(b)


def _plus(a: Value, b: Value) -> Value:
    a, b = _pair(a, b)
    return _checked(a + b)


def _minus(a: Value, b: Value) -> Value:
    a, b = _pair(a, b)
    return _checked(a - b)


def _times(a: Value, b: Value) -> Value:
    a, b = _pair(a, b)
    return _checked(a * b)


def _divide(a: Value, b: Value) -> Value:
    if is_zero(b):
        raise Undefined
    a, b = _pair(a, b)
    return _checked(a / b)


def _power(a: Value, b: Value) -> Value:
    if isinstance(b, Fraction) and b.denominator == 1:
        exponent = int(b)
        if is_zero(a) and exponent <= 0:
            raise Undefined
        if isinstance(a, Fraction):
            bits = max(a.numerator.bit_length(), a.denominator.bit_length())
            if abs(exponent) * bits <= MAX_BITS or abs(a) == 1 or not a:
                return a**exponent
        if abs(exponent) > MAX_POWER:
            raise Undefined
        return _bounded(_irrational(a), exponent)
    if is_zero(a):
        if isinstance(b, Fraction) and b > 0:
            return Fraction(0)
        raise Undefined
    if isinstance(a, Fraction) and isinstance(b, Fraction) and a > 0:
        if (root := _exact_root(a, b.denominator)) is not None:
            return _power(root, Fraction(b.numerator))
    if isinstance(b, Fraction) and b.denominator % 2 and isinstance(a, Fraction) and a < 0:
        root = -_context.root(_irrational(-a), b.denominator)  # of odd degree: real, as at school
        return _power(root, Fraction(b.numerator))
    return _bounded(_irrational(a), _irrational(b))


def _bounded(a: Value, b: Value) -> Value:
    size = abs(_context.log(abs(a))) * abs(b)
    if not size < 40_000:
        raise Undefined
    return _checked(a**b)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    if degree > 20 or value.numerator.bit_length() > 2_000 or value.denominator.bit_length() > 2_000:
        return None
    parts = []
    for part in (value.numerator, value.denominator):
        root = math.isqrt(part) if degree == 2 else _integer_root(part, degree)
        if root**degree != part:
            return None
        parts.append(root)
    return Fraction(*parts)


def _integer_root(number: int, degree: int) -> int:
    """The largest integer whose power is at most the number, by bisection."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


def _square_root(a: Value) -> Value:
    if isinstance(a, Fraction) and a >= 0 and (root := _exact_root(a, 2)) is not None:
        return root
    return _context.sqrt(_irrational(a))


def _root(a: Value, degree: Value) -> Value:
    if not isinstance(degree, Fraction) or degree.denominator != 1 or not 2 <= degree <= MAX_POWER:
        return _power(a, _divide(Fraction(1), degree))
    if is_real(a) and not isinstance(a, Fraction) and a < 0 and degree % 2:
        return -_power(-a, 1 / degree)
    return _square_root(a) if degree == 2 else _power(a, 1 / degree)


def _factorial(a: Value) -> Value:
    if isinstance(a, Fraction) and a.denominator == 1:
        if not 0 <= a <= MAX_FACTORIAL:
            raise Undefined
        return Fraction(math.factorial(int(a)))
    if abs(a) > MAX_FACTORIAL:
        raise Undefined
    return _checked(_context.gamma(_irrational(a) + 1))


def _binomial(n: Value, k: Value) -> Value:
    if isinstance(n, Fraction) and isinstance(k, Fraction) and n.denominator == k.denominator == 1:
        if not (0 <= k <= MAX_FACTORIAL and 0 <= n <= MAX_FACTORIAL):
            raise Undefined
        return Fraction(math.comb(int(n), int(k)))
    return _divide(_factorial(n), _times(_factorial(k), _factorial(_minus(n, k))))


def _logarithm(a: Value) -> Value:
    if is_zero(a):
        raise Undefined
    return Fraction(0) if a == 1 else _context.log(_irrational(a))


def _exponential(a: Value) -> Value:
    return Fraction(1) if a == 0 else _bounded(_context.e, _irrational(a))


def _small(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The function for arguments whose values need no more digits than are computed."""

    def checked(a: Value) -> Value:
        value = _irrational(a)
        if abs(value) > 10_000:
            raise Undefined
        return _checked(function(value))

    return checked


def _integers(function: Callable[..., int], name: str) -> Callable[..., Value]:
    def applied(*values: Value) -> Value:
        if all(isinstance(value, Fraction) and value.denominator == 1 for value in values):
            return Fraction(function(*map(int, values)))
        return _opaque(name, list(values))

    return applied


def _extreme(function: Callable[..., Value]) -> Callable[..., Value]:
    def applied(*values: Value) -> Value:
        if not all(map(is_real, values)):
            raise Undefined
        return function(*values, key=_irrational)

    return applied


def _rounded(function: Callable[[Any], int]) -> Callable[[Value], Value]:
    def applied(a: Value) -> Value:
        if isinstance(a, Fraction):
            return Fraction(function(a))
        if not is_real(a) or abs(a) > 1e30 or abs(a - _context.nint(a)) < 1e-30:
            raise Undefined
        return Fraction(int(_context.floor(a)) if function is math.floor else int(_context.ceil(a)))

    return applied


def _sign(a: Value) -> Value:
    if not is_real(a):
        raise Undefined
    return Fraction((a > 0) - (a < 0))


def _constant(name: str) -> Value:
    if name == "infinity":
        raise Undefined
    return {"pi": +_context.pi, "e": +_context.e, "i": _context.mpc(0, 1)}[name]


def _opaque(name: str, values: list[Value]) -> Value:
    """A value for a function that is not known: the same for the same arguments, and for no others."""
    parts = [value if isinstance(value, Fraction) else _context.nstr(_context.mpc(value), 25) for value in values]
    digest = hashlib.sha256(repr((name, list(map(str, parts)))).encode()).digest()
    return Fraction(int.from_bytes(digest[:8], "big"), 1 << 62) + Fraction(1, 3)


_ARITHMETIC: dict[str, Callable[[Value, Value], Value]] = {
    "+": _plus, "-": _minus, "*": _times, "/": _divide, "^": _power}  # fmt: skip
_TRIGONOMETRY = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": _square_root, "root": _root, "!": _factorial, "binomial": _binomial, "ln": _logarithm, "exp": _exponential,
    "lg": lambda a: _divide(_logarithm(a), _context.log(10)), "abs": abs, "floor": _rounded(math.floor), "ceil": _rounded(math.ceil),
    "gcd": _integers(math.gcd, "gcd"), "lcm": _integers(math.lcm, "lcm"), "max": _extreme(max), "min": _extreme(min), "sgn": _sign,
    **{name: _small(getattr(_context, name)) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth")},
    **{f"arc{name}": _small(getattr(_context, f"a{name}")) for name in ("sin", "cos", "tan", "cot")},
    **{f"ar{name}": _small(getattr(_context, f"a{name}")) for name in ("sinh", "cosh", "tanh")},
}  # fmt: skip


# --- comparison


def is_zero(value: Value) -> bool:
    return not value if isinstance(value, Fraction) else abs(value) < _NOTHING


def is_real(value: Value) -> bool:
    if isinstance(value, Fraction) or not hasattr(value, "imag"):
        return True
    return abs(value.imag) <= _RELATIVE * abs(value.real) or abs(value.imag) < _NOTHING


def agree(a: Value, b: Value) -> bool:
    """Whether two values are the same, to all digits that can be relied on."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = _pair(a, b)
    size = max(abs(a), abs(b))
    return bool(abs(a - b) <= _RELATIVE * size or size < _NOTHING)


def less(a: Value, b: Value) -> bool:
    """Whether a < b, for real values that do not agree."""
    a, b = _pair(a, b)
    if isinstance(a, Fraction):
        return bool(a < b)
    return bool(_context.re(a) < _context.re(b))


def evaluate(tree: Tree, point: Point, logarithm: int = 0) -> Value:
    """The value of a tree at a point.

    Raises:
        Undefined: there is none.
    """
    try:
        return Evaluation(point, logarithm).value(tree)
    except Undefined:
        raise
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError) as error:  # of mpmath
        raise Undefined(str(error)) from None


@lru_cache(maxsize=8192)
def symbols(tree: Tree) -> frozenset[str]:
    """The names of the variables, without those that a sum runs over."""
    if tree[0] == "symbol":
        return frozenset((tree[1],))
    if tree[0] in ("number", "constant", "pm"):
        return frozenset()
    if tree[0] in ("sum", "prod"):
        return symbols(tree[2]) | symbols(tree[3]) | (symbols(tree[4]) - {tree[1][1]})
    return frozenset().union(*(symbols(part) for part in tree[1:] if isinstance(part, tuple)))


def contains(tree: Tree, *kinds: str) -> bool:
    """Whether a node of these kinds, or a constant of this name, occurs in a tree."""
    if tree[0] in kinds or (tree[0] == "constant" and tree[1] in kinds):
        return True
    return any(contains(part, *kinds) for part in tree[1:] if isinstance(part, tuple))


def points(names: frozenset[str]) -> Iterator[dict[str, Fraction]]:
    """Points with a value for each name, the same ones every time; one point without names for a constant."""
    if not names:
        yield {}
        return
    for number, (low, high) in enumerate(_RANGES + (_MIXED if len(names) > 1 else ())):
        yield {name: low + (high - low) * _share(name, number) for name in names}
    yield {name: Fraction(2 + int(_share(name, 99) * 9)) for name in names}  # whole numbers, for n! and binomials


@lru_cache(maxsize=4096)
def _share(name: str, number: int) -> Fraction:
    digest = hashlib.sha256(f"{number} {name}".encode()).digest()
    return Fraction(1 + int.from_bytes(digest[:2], "big") % 9973, 9974)


@lru_cache(maxsize=8192)
def constant_value(tree: Tree) -> Value | None:
    """The value of a tree without variables, or None where it has some or no value."""
    if symbols(tree) or contains(tree, "pm"):
        return None
    try:
        with _lock:
            return evaluate(tree, {})
    except Undefined:
        return None


def same_value(first: Tree, second: Tree) -> bool:
    """Whether two trees have the same values.

    >>> from swift_rlvr.math_answers.parser import read_expression as read
    >>> same_value(read(r"\\\\sin 2x"), read(r"2\\\\sin x\\\\cos x")), same_value(read("|x|"), read("x"))
    (True, False)
    """
    if first == second:
        return True
    with contextlib.suppress(TooLong):
        return _same_in_any_base(first, second)
    return False


def _same_in_any_base(first: Tree, second: Tree) -> bool:
    return any(_same(first, second, base) for base in ((0, 10) if contains(("", first, second), "log") else (0,)))


def _same(first: Tree, second: Tree, logarithm: int) -> bool:
    names = symbols(first) | symbols(second)
    is_complex = not names or contains(("", first, second), "i")
    agreed = 0
    with _lock:
        for point in points(names):
            values = [_value(tree, point, logarithm) for tree in (first, second)]
            if None in values:
                continue
            if is_complex or (is_real(values[0]) and is_real(values[1])):
                if not agree(*values):
                    return False
                agreed += 1
    return agreed >= (3 if names else 1)


def _value(tree: Tree, point: Point, logarithm: int) -> Value | None:
    """The value, or None where there is none. Raises TooLong."""
    try:
        return evaluate(tree, point, logarithm)
    except TooLong:
        raise
    except Undefined:
        return None


def proportional(first: Tree, second: Tree) -> bool:
    with contextlib.suppress(TooLong):
        return _proportional(first, second)
    return False


def _proportional(first: Tree, second: Tree) -> bool:
    """Whether one tree is a constant multiple, not zero, of the other, at all points where both are defined.

    Both have to depend on each of their variables: an identity is no equation.
    """
    ratios: list[Value] = []
    names = symbols(first) | symbols(second)
    if symbols(first) != symbols(second) or not all(_depends(tree, name) for tree in (first, second) for name in names):
        return False
    with _lock:
        for point in points(names):
            values = _value(first, point, 0), _value(second, point, 0)
            if None in values:
                continue
            if is_zero(values[0]) or is_zero(values[1]):
                return False
            if is_real(values[0]) and is_real(values[1]):
                ratios.append(_divide(*values))
                if not agree(ratios[0], ratios[-1]):
                    return False
    return len(ratios) >= 3


def _depends(tree: Tree, name: str) -> bool:
    """Whether the value changes with a variable."""
    with _lock:
        for point in points(symbols(tree)):
            values = [_value(tree, {**point, name: point[name] + step}, 0) for step in (Fraction(0), Fraction(1, 7))]
            if None not in values and not agree(*values):
                return True
    return False


def positive_multiple(first: Tree, second: Tree, sign: int) -> bool:
    """Whether the first tree is a positive constant times the second one, or times its negative for the sign -1."""
    names = symbols(first) | symbols(second)
    if not proportional(first, second):
        return False
    for point in points(names):
        values = value_at(first, point), value_at(second, point)
        if None not in values:
            return bool(less(Fraction(0), ratio(values[0], values[1]) * sign))
    return False


def value_at(tree: Tree, point: Point) -> Value | None:
    """The value at a point, or None where there is none."""
    with _lock, contextlib.suppress(TooLong):
        return _value(tree, point, 0)
    return None


def near(value: Value, center: Fraction, distance: Fraction) -> bool:
    """Whether a real value is at most so far from the center; a rounding error more, for values that are not exact."""
    if isinstance(value, Fraction):
        return abs(value - center) <= distance
    return bool(abs(_context.re(value) - _irrational(center)) <= _irrational(distance) * (1 + _RELATIVE))


def plus(a: Value, b: Value) -> Value:
    return _plus(a, b)


def difference(a: Value, b: Value) -> Value:
    return _minus(a, b)


def times(a: Value, factor: Fraction | int) -> Value:
    return _times(a, Fraction(factor))


def ratio(a: Value, b: Value) -> Value:
    return _divide(a, b)


def as_fraction(value: Value, largest: int = 10_000) -> Fraction | None:
    """The fraction of small numbers that a value is, if it is one."""
    if isinstance(value, Fraction):
        return value
    if not is_real(value):
        return None
    guess = Fraction(str(_context.nstr(_context.re(value), 40))).limit_denominator(largest)
    return guess if agree(_irrational(guess), value) else None


def is_whole(value: Value) -> bool:
    fraction = as_fraction(value, 1)
    return fraction is not None and fraction.denominator == 1
