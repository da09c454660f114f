"""Operations on values: exact fractions as long as an operation keeps them, else real or complex
numbers of 120 digits.

Sizes are limited, not seconds: what would be too large is `Undefined`.
"""

import hashlib
import math
import operator
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from mpmath import MPContext
from mpmath.calculus.quadrature import GaussLegendre

MAX_BITS, MAX_POWER, MAX_FACTORIAL = 20_000, 10_000, 2_000
_context = MPContext()  # its functions change its precision while they run, hence `one_thread`
_context.dps = 120
_NOTHING, _RELATIVE = _context.mpf(10) ** -100, _context.mpf(10) ** -60
Value = Any  # Fraction, or the context's mpf or mpc


_lock = threading.RLock()


def one_thread() -> Any:
    """The lock under which all values are computed."""
    return _lock


def _in_child() -> None:
    """After a fork, another thread of the parent may hold the old lock for ever, in the middle of a
    function.
    """
    global _lock
    _lock = threading.RLock()
    _context.dps = 120


os.register_at_fork(after_in_child=_in_child)


class Undefined(ArithmeticError):
    """There is no value: division by zero, a size beyond the limits, an operation without a value
    here.
    """


def inexact(value: Value) -> Value:
    """The value as a number of 120 digits."""
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
    return inexact(a), inexact(b)


def _of_two(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    """The operation for two values, exact where both are. It raises Undefined where the result is
    too large.
    """
    return lambda a, b: _checked(operation(*_pair(a, b)))


plus, minus, times = _of_two(operator.add), _of_two(operator.sub), _of_two(operator.mul)


def divide(a: Value, b: Value) -> Value:
    """The quotient. Raises Undefined for a divisor of zero and a result that is too large."""
    if is_zero(b):
        raise Undefined
    a, b = _pair(a, b)
    return _checked(a / b)


def power(a: Value, b: Value) -> Value:
    """The power, real for roots of odd degree. Raises Undefined where there is none, or one that is
    too large.
    """
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
        return _bounded(inexact(a), exponent)
    if is_zero(a):
        if isinstance(b, Fraction) and b > 0:
            return Fraction(0)
        raise Undefined
    exact = isinstance(a, Fraction) and isinstance(b, Fraction)
    if exact and a > 0 and (root := _exact_root(a, b.denominator)) is not None:
        return power(root, Fraction(b.numerator))
    if isinstance(b, Fraction) and b.denominator % 2 and isinstance(a, Fraction) and a < 0:
        root = -_context.root(inexact(-a), b.denominator)  # of odd degree: real, as at school
        return power(root, Fraction(b.numerator))
    return _bounded(inexact(a), inexact(b))


def _bounded(a: Value, b: Value) -> Value:
    size = abs(_context.log(abs(a))) * abs(b)
    if not size < 40_000:
        raise Undefined
    return _checked(a**b)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    if (
        degree > 20
        or value.numerator.bit_length() > 2_000
        or value.denominator.bit_length() > 2_000
    ):
        return None
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    root = Fraction(top, bottom)
    return root if root**degree == value else None


def _integer_root(number: int, degree: int) -> int:
    """The largest integer whose power is at most the number, by bisection."""
    if degree == 2:
        return math.isqrt(number)
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


def _square_root(a: Value) -> Value:
    if isinstance(a, Fraction) and a >= 0 and (root := _exact_root(a, 2)) is not None:
        return root
    return _context.sqrt(inexact(a))


def _root(a: Value, degree: Value) -> Value:
    if not isinstance(degree, Fraction) or degree.denominator != 1 or not 2 <= degree <= MAX_POWER:
        return power(a, divide(Fraction(1), degree))
    if is_real(a) and not isinstance(a, Fraction) and a < 0 and degree % 2:
        return -power(-a, 1 / degree)
    return _square_root(a) if degree == 2 else power(a, 1 / degree)


def _factorial(a: Value) -> Value:
    if isinstance(a, Fraction) and a.denominator == 1:
        if not 0 <= a <= MAX_FACTORIAL:
            raise Undefined
        return Fraction(math.factorial(int(a)))
    if abs(a) > MAX_FACTORIAL:
        raise Undefined
    return _checked(_context.gamma(inexact(a) + 1))


def _binomial(n: Value, k: Value) -> Value:
    if isinstance(n, Fraction) and isinstance(k, Fraction) and n.denominator == k.denominator == 1:
        if not (0 <= k <= MAX_FACTORIAL and 0 <= n <= MAX_FACTORIAL):
            raise Undefined
        return Fraction(math.comb(int(n), int(k)))
    return divide(_factorial(n), times(_factorial(k), _factorial(minus(n, k))))


def logarithm(a: Value, base: int = 0) -> Value:
    """The logarithm to a base; 0 stands for e."""
    if base:
        return divide(logarithm(a), _context.log(base))
    if is_zero(a):
        raise Undefined
    return Fraction(0) if a == 1 else _context.log(inexact(a))


def _exponential(a: Value) -> Value:
    return Fraction(1) if a == 0 else _bounded(_context.e, inexact(a))


def _small(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The function for arguments whose values need no more digits than are computed."""

    def checked(a: Value) -> Value:
        value = inexact(a)
        if abs(value) > 10_000:
            raise Undefined
        return _checked(function(value))

    return checked


def _integers(function: Callable[..., int]) -> Callable[..., Value]:
    def applied(*values: Value) -> Value:
        if all(isinstance(value, Fraction) and value.denominator == 1 for value in values):
            return Fraction(function(*map(int, values)))
        return opaque(function.__name__, list(values))

    return applied


def _of_reals(function: Callable[..., Value]) -> Callable[..., Value]:
    def applied(*values: Value) -> Value:
        if not all(map(is_real, values)):
            raise Undefined
        return function(*values)

    return applied


def _rounded(function: Callable[[Any], int]) -> Callable[[Value], Value]:
    def applied(a: Value) -> Value:
        if isinstance(a, Fraction):
            return Fraction(function(a))
        if not is_real(a) or abs(a) > 1e30 or abs(a - _context.nint(a)) < 1e-30:
            raise Undefined
        return Fraction(int(_context.floor(a)) if function is math.floor else int(_context.ceil(a)))

    return applied


def radians(degrees: Value) -> Value:
    """An angle in radians."""
    return inexact(degrees) * _context.pi / 180


def constant(name: str) -> Value:
    """The value of pi, e or i. Raises Undefined for infinity."""
    if name == "infinity":
        raise Undefined
    return {"pi": +_context.pi, "e": +_context.e, "i": _context.mpc(0, 1)}[name]


@lru_cache
def gauss(degree: int) -> list[tuple[Value, Value]]:
    """The points in [-1, 1] and weights of a rule of Gauss for integrals."""
    return GaussLegendre(_context).calc_nodes(degree, _context.prec)


def opaque(name: str, values: list[Value]) -> Value:
    """A value for a function that is not known: the same for the same arguments, and for no
    others.
    """
    parts = [
        value if isinstance(value, Fraction) else _context.nstr(_context.mpc(value), 25)
        for value in values
    ]
    digest = hashlib.sha256(repr((name, list(map(str, parts)))).encode()).digest()
    return Fraction(int.from_bytes(digest[:8], "big"), 1 << 62) + Fraction(1, 3)


ARITHMETIC = {"+": plus, "-": minus, "*": times, "/": divide, "^": power}
TRIGONOMETRY = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": _square_root,
    "root": _root,
    "!": _factorial,
    "binomial": _binomial,
    "ln": logarithm,
    "lg": lambda a: logarithm(a, 10),
    "exp": _exponential,
    "abs": abs,
    "sgn": _of_reals(lambda a: Fraction((a > 0) - (a < 0))),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "gcd": _integers(math.gcd),
    "lcm": _integers(math.lcm),
    "max": _of_reals(partial(max, key=inexact)),
    "min": _of_reals(partial(min, key=inexact)),
    **{
        name: _small(getattr(_context, name))
        for name in (*sorted(TRIGONOMETRY), "sinh", "cosh", "tanh", "coth")
    },
    **{
        f"arc{name}": _small(getattr(_context, f"a{name}")) for name in ("sin", "cos", "tan", "cot")
    },
    **{f"ar{name}": _small(getattr(_context, f"a{name}")) for name in ("sinh", "cosh", "tanh")},
}


def is_zero(value: Value) -> bool:
    """Whether a value is zero, to all digits that can be relied on."""
    return not value if isinstance(value, Fraction) else abs(value) < _NOTHING


def is_real(value: Value) -> bool:
    """Whether a value is real, to all digits that can be relied on."""
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


def near(value: Value, center: Fraction, distance: Fraction) -> bool:
    """Whether a real value is at most so far from the center; a rounding error more, for values
    that are not exact.
    """
    if isinstance(value, Fraction):
        return abs(value - center) <= distance
    return bool(abs(_context.re(value) - inexact(center)) <= inexact(distance) * (1 + _RELATIVE))


def as_fraction(value: Value, largest: int = 10_000) -> Fraction | None:
    """The fraction of small numbers that a value is, if it is one."""
    if isinstance(value, Fraction):
        return value
    if not is_real(value):
        return None
    guess = Fraction(str(_context.nstr(_context.re(value), 40))).limit_denominator(largest)
    return guess if agree(inexact(guess), value) else None


def is_whole(value: Value) -> bool:
    """Whether a value is a whole number."""
    fraction = as_fraction(value, 1)
    return fraction is not None and fraction.denominator == 1
