"""Operations on computed values: exact fractions as long as an operation keeps them, else real or
complex numbers of 120 digits.

Sizes are limited, not seconds: what would be too large is `Undefined`.
"""

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

from mpmath import MPContext

# The largest results: 20,000 bits are about 6,000 digits.
MAX_BITS = 20_000
MAX_POWER = 10_000
MAX_FACTORIAL = 2_000
# of a binomial with more than that above: \binom{2014}{2}
_MAX_CHOSEN_FROM, _MAX_CHOSEN = 1_000_000, 500
# of the logarithm of a power that is not exact: e^40000
_MAX_LOGARITHM = 40_000
# the largest angles and other arguments whose values need no more digits than are computed
_MAX_ARGUMENT = 10_000
# of tanh and coth, which are 1 but for so small a part that no comparison would see it
_MAX_HYPERBOLIC = 150
# the largest roots that are tried exactly
_MAX_ROOT_DEGREE = 20
_MAX_ROOT_BITS = 2_000

# Its functions change its precision while they run, hence `one_thread`.
_context = MPContext()
_DIGITS = 120
_context.dps = _DIGITS
# Of 120 digits some are lost on the way, so that 60 are relied on; what is left of 1 - 1 is zero.
_NOTHING = _context.mpf(10) ** -100
_RELATIVE = _context.mpf(10) ** -60

# A Fraction, or the context's mpf or mpc.
Computed = Any


# --- threads and processes

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
    _context.dps = _DIGITS


os.register_at_fork(after_in_child=_in_child)


@contextmanager
def computing_with(digits: int) -> Iterator[None]:
    """More digits, or fewer, for a block that holds the lock of `one_thread`."""
    _context.dps = digits
    try:
        yield
    finally:
        _context.dps = _DIGITS


# --- arithmetic


class Undefined(ArithmeticError):
    """There is no value: division by zero, a size beyond the limits, an operation without a value
    here.
    """


def inexact(value: Computed) -> Computed:
    """The value as a number of 120 digits."""
    if isinstance(value, Fraction):
        return _context.mpf(value.numerator) / value.denominator
    return value


def _checked(value: Computed) -> Computed:
    """The value. Raises Undefined where it is too large."""
    if isinstance(value, Fraction):
        if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
            raise Undefined
    elif not _context.isfinite(value):
        raise Undefined
    return value


def _pair(a: Computed, b: Computed) -> tuple[Computed, Computed]:
    """Both as fractions where both are, else both inexact."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a, b
    return inexact(a), inexact(b)


def plus(a: Computed, b: Computed) -> Computed:
    """The sum. Raises Undefined where it is too large."""
    a, b = _pair(a, b)
    return _checked(a + b)


def minus(a: Computed, b: Computed) -> Computed:
    """The difference. Raises Undefined where it is too large."""
    a, b = _pair(a, b)
    return _checked(a - b)


def times(a: Computed, b: Computed) -> Computed:
    """The product. Raises Undefined where it is too large."""
    a, b = _pair(a, b)
    return _checked(a * b)


def divide(a: Computed, b: Computed) -> Computed:
    """The quotient. Raises Undefined for a divisor of zero and a result that is too large."""
    if is_zero(b):
        raise Undefined
    a, b = _pair(a, b)
    return _checked(a / b)


# --- powers and roots


def power(a: Computed, b: Computed) -> Computed:
    """The power, real for roots of odd degree.

    Raises:
        Undefined: there is none, or one that is too large.
    """
    if isinstance(b, Fraction) and b.denominator == 1:
        # small powers of fractions are exact
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
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        if a > 0:
            # 4^{3/2} is exactly 8
            root = _exact_root(a, b.denominator)
            if root is not None:
                return power(root, Fraction(b.numerator))
        elif b.denominator % 2:
            # (-8)^{1/3} is -2, as at school, and not the complex root that mpmath takes
            root = -_context.root(inexact(-a), b.denominator)
            return power(root, Fraction(b.numerator))
    return _bounded(inexact(a), inexact(b))


def _bounded(a: Computed, b: Computed) -> Computed:
    """The power of two inexact values, once its size is known to be one that can be computed."""
    size = abs(_context.log(abs(a))) * abs(b)
    # written so that a size of nan is too large, too
    if not size < _MAX_LOGARITHM:
        raise Undefined
    return _checked(a**b)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The root of a positive fraction, where it is a fraction: 2/3 for 4/9 and 2."""
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if degree > _MAX_ROOT_DEGREE or bits > _MAX_ROOT_BITS:
        return None
    numerator = _integer_root(value.numerator, degree)
    denominator = _integer_root(value.denominator, degree)
    root = Fraction(numerator, denominator)
    return root if root**degree == value else None


def _integer_root(number: int, degree: int) -> int:
    """The largest integer whose power is at most the number, by bisection."""
    if degree == 2:
        return math.isqrt(number)
    low = 0
    high = 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**degree <= number:
            low = middle
        else:
            high = middle - 1
    return low


def _square_root(a: Computed) -> Computed:
    if isinstance(a, Fraction) and a >= 0:
        root = _exact_root(a, 2)
        if root is not None:
            return root
    return _context.sqrt(inexact(a))


def _root(a: Computed, degree: Computed) -> Computed:
    if not isinstance(degree, Fraction) or degree.denominator != 1 or not 2 <= degree <= MAX_POWER:
        return power(a, divide(Fraction(1), degree))
    # \sqrt[3]{-\pi} is real, too
    if is_real(a) and not isinstance(a, Fraction) and a < 0 and degree % 2:
        return -power(-a, 1 / degree)
    return power(a, 1 / degree)


# --- other functions


def _factorial(a: Computed) -> Computed:
    if isinstance(a, Fraction) and a.denominator == 1:
        if not 0 <= a <= MAX_FACTORIAL:
            raise Undefined
        return Fraction(math.factorial(int(a)))
    if abs(a) > MAX_FACTORIAL:
        raise Undefined
    return _checked(_context.gamma(inexact(a) + 1))


def _binomial(n: Computed, k: Computed) -> Computed:
    if isinstance(n, Fraction) and isinstance(k, Fraction) and n.denominator == k.denominator == 1:
        if k < 0 or not 0 <= n <= _MAX_CHOSEN_FROM:
            raise Undefined
        if n > MAX_FACTORIAL and min(k, n - k) > _MAX_CHOSEN:
            raise Undefined
        return Fraction(math.comb(int(n), int(k)))
    return divide(_factorial(n), times(_factorial(k), _factorial(minus(n, k))))


def logarithm(a: Computed, base: int = 0) -> Computed:
    """The logarithm to a base; 0 stands for e."""
    if base:
        return divide(logarithm(a), _context.log(base))
    if is_zero(a):
        raise Undefined
    if a == 1:
        return Fraction(0)
    return _context.log(inexact(a))


def _of_small(
    function: Callable[[Computed], Computed], largest: int = _MAX_ARGUMENT
) -> Callable[[Computed], Computed]:
    """The function for arguments whose values need no more digits than are computed."""

    def applied(a: Computed) -> Computed:
        value = inexact(a)
        if abs(value) > largest:
            raise Undefined
        return _checked(function(value))

    return applied


def _of_integers(function: Callable[..., int]) -> Callable[..., Computed]:
    """The function for integers; for anything else, `\\gcd(a, b)`, one that is not known."""

    def applied(*values: Computed) -> Computed:
        if all(isinstance(value, Fraction) and value.denominator == 1 for value in values):
            return Fraction(function(*map(int, values)))
        return opaque(function.__name__, *values)

    return applied


def _of_reals(function: Callable[..., Computed]) -> Callable[..., Computed]:
    """The function for real values; complex ones have no order."""

    def applied(*values: Computed) -> Computed:
        if not all(map(is_real, values)):
            raise Undefined
        return function(*values)

    return applied


def _to_whole(
    exactly: Callable[[Fraction], int], function: Callable[[Computed], Computed]
) -> Callable[[Computed], Computed]:
    """A way to round, which for values that are not exact is a function of mpmath."""

    def applied(a: Computed) -> Computed:
        if isinstance(a, Fraction):
            return Fraction(exactly(a))
        # so near to an integer that it may lie on either side
        if not is_real(a) or abs(a) > 1e30 or abs(a - _context.nint(a)) < 1e-30:
            raise Undefined
        return Fraction(int(function(a)))

    return applied


def radians(degrees: Computed) -> Computed:
    """An angle in radians."""
    return inexact(degrees) * _context.pi / 180


def constant(name: str) -> Computed:
    """The value of pi, e or i. Raises Undefined for infinity."""
    if name == "infinity":
        raise Undefined
    return {"pi": +_context.pi, "e": +_context.e, "i": _context.mpc(0, 1)}[name]


def opaque(name: str, *values: Computed) -> Computed:
    """A value for a function that is not known: the same for the same arguments, and for no
    others.
    """
    arguments = []
    for value in values:
        # Of 120 digits 25 are enough to tell arguments apart; the last ones depend on the way.
        if isinstance(value, Fraction):
            arguments.append(str(value))
        else:
            arguments.append(_context.nstr(_context.mpc(value), 25))
    digest = hashlib.sha256(repr((name, arguments)).encode()).digest()
    return Fraction(int.from_bytes(digest[:8], "big"), 1 << 62) + Fraction(1, 3)


# --- the functions by the names that `parser` gives them

ARITHMETIC = {"+": plus, "-": minus, "*": times, "/": divide, "^": power}
TRIGONOMETRY = frozenset(("sin", "cos", "tan", "cot", "sec", "csc"))

FUNCTIONS: dict[str, Callable[..., Computed]] = {
    "sqrt": _square_root,
    "root": _root,
    "!": _factorial,
    "binomial": _binomial,
    "ln": logarithm,
    "lg": partial(logarithm, base=10),
    "exp": partial(power, _context.e),
    "abs": abs,
    "sgn": _of_reals(lambda a: Fraction((a > 0) - (a < 0))),
    "floor": _to_whole(math.floor, _context.floor),
    "ceil": _to_whole(math.ceil, _context.ceil),
    "gcd": _of_integers(math.gcd),
    "lcm": _of_integers(math.lcm),
    "max": _of_reals(partial(max, key=inexact)),
    "min": _of_reals(partial(min, key=inexact)),
    "norm": partial(opaque, "norm"),
    "det": partial(opaque, "det"),
}
for _name in (*sorted(TRIGONOMETRY), "sinh", "cosh"):
    FUNCTIONS[_name] = _of_small(getattr(_context, _name))
for _name in ("tanh", "coth"):
    FUNCTIONS[_name] = _of_small(getattr(_context, _name), _MAX_HYPERBOLIC)
# \arcsin is mpmath's asin, and arsinh its asinh
for _name in ("sin", "cos", "tan", "cot"):
    FUNCTIONS[f"arc{_name}"] = _of_small(getattr(_context, f"a{_name}"))
for _name in ("sinh", "cosh", "tanh"):
    FUNCTIONS[f"ar{_name}"] = _of_small(getattr(_context, f"a{_name}"))


# --- comparisons


def is_zero(value: Computed) -> bool:
    """Whether a value is zero, to all digits that can be relied on."""
    if isinstance(value, Fraction):
        return not value
    return abs(value) < _NOTHING


def is_real(value: Computed) -> bool:
    """Whether a value is real, to all digits that can be relied on."""
    if isinstance(value, Fraction) or not hasattr(value, "imag"):
        return True
    return abs(value.imag) <= _RELATIVE * abs(value.real) or abs(value.imag) < _NOTHING


def agree(a: Computed, b: Computed) -> bool:
    """Whether two values are the same, to all digits that can be relied on."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = _pair(a, b)
    size = max(abs(a), abs(b))
    return bool(abs(a - b) <= _RELATIVE * size or size < _NOTHING)


def magnitude(value: Computed) -> int:
    """How many digits a value has before its point, or zeros behind it: 4 for 1000 and 1/1000."""
    size = abs(inexact(value))
    return 0 if size == 0 else 1 + abs(int(_context.log10(size)))


def differ_by_less(a: Computed, b: Computed, power_of_ten: int) -> bool:
    """Whether |a - b| < 10^power_of_ten."""
    return bool(abs(inexact(a) - inexact(b)) < _context.mpf(10) ** power_of_ten)


def less(a: Computed, b: Computed) -> bool:
    """Whether a < b, for real values that do not agree."""
    a, b = _pair(a, b)
    if isinstance(a, Fraction):
        return bool(a < b)
    return bool(_context.re(a) < _context.re(b))


def near(value: Computed, center: Fraction, distance: Fraction) -> bool:
    """Whether a real value is at most so far from the center; a rounding error more, for values
    that are not exact.
    """
    if isinstance(value, Fraction):
        return abs(value - center) <= distance
    return bool(abs(_context.re(value) - inexact(center)) <= inexact(distance) * (1 + _RELATIVE))


def as_fraction(value: Computed, largest: int = 10_000) -> Fraction | None:
    """The fraction with a denominator up to `largest` that a value is, if it is one."""
    if isinstance(value, Fraction):
        return value
    if not is_real(value):
        return None
    digits = str(_context.nstr(_context.re(value), 40))
    guess = Fraction(digits).limit_denominator(largest)
    return guess if agree(inexact(guess), value) else None


def is_whole(value: Computed) -> bool:
    """Whether a value is a whole number."""
    fraction = as_fraction(value, 1)
    return fraction is not None and fraction.denominator == 1
