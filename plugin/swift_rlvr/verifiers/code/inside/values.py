"""Values of plain types as JSON that keeps them apart."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

# How deep lists may be nested, for instance one that contains itself.
DEEPEST = 300
_SAME_HASH = 64  # elements of a set, or keys of a dict, that may be hashed alike
_LONGEST_FRACTION = 1 << 14  # hexadecimal digits
_COLLECTIONS = {"list": list, "tuple": tuple}


# How near a float must be that a function returns, as in the output of a program: within this of the
# size of the expected one, which counts as at least this and at most 1.
_NEAR = 1e-6


class Opaque(Exception):
    """A value that is not made of plain types; `part` is what is not."""

    def __init__(self, problem: str, part: object = None):
        super().__init__(problem)
        self.part = part


def encode(value: object, depth: int = 0) -> object:
    """Write a value of plain types, or subclasses of them, as JSON that keeps them apart;
    `decode` reads it.

    >>> encode((1, [2.5, None], {"a": {3}}))
    ['tuple', 1, ['list', 2.5, None], ['dict', ['a', ['set', 3]]]]
    """
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, int):
        # Longer ones in base 16: reading a decimal takes quadratic time.
        return value if abs(value) < 1 << 63 else ["int", hex(value)]
    if depth > DEEPEST:
        raise Opaque("nested too deep")
    if isinstance(value, (list, tuple, Set, dict)):
        return _encode_collection(value, depth + 1)
    for types, write in _WRITERS:
        if isinstance(value, types):
            return write(value)
    # an array, or a number of numpy's
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist())
    raise _opaque(value)


def _encode_text(value: str) -> object:
    if str.isascii(value):
        return value
    try:
        str.encode(value)
    except UnicodeEncodeError:  # JSON makes one character of two surrogates
        return ["text", *map(ord, value)]
    return value


def _encode_collection(value: Any, depth: int) -> list:
    if isinstance(value, dict):
        items = value.items()
        return ["dict", *([encode(key, depth), encode(item, depth)] for key, item in items)]
    name = "set"  # also the keys of a dict
    if isinstance(value, (list, tuple)):
        name = "list" if isinstance(value, list) else "tuple"
    return [name, *(encode(each, depth) for each in value)]


def _encode_decimal(value: Decimal) -> object:
    # 1e999999999 as a fraction would fill the memory.
    if value.is_finite() and abs(value.adjusted()) < 1000:
        return encode(Fraction(value))
    raise _opaque(value)


def _opaque(value: object) -> Opaque:
    return Opaque(f"of type {type(value).__name__}", value)


# How values are written that hold no others, by the first type that fits.
_WRITERS: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    ((bytes, bytearray), lambda value: ["bytes", value.hex()]),
    (complex, lambda value: ["complex", value.real, value.imag]),
    (Integral, lambda value: encode(int(value))),  # numpy's
    (Rational, lambda value: ["fraction", hex(value.numerator), hex(value.denominator)]),
    (Decimal, _encode_decimal),
)


def _read_fraction(numerator: str, denominator: str) -> Fraction:
    # Fraction divides by the greatest common divisor, in quadratic time.
    if max(len(numerator), len(denominator)) > _LONGEST_FRACTION:
        raise ValueError("a fraction of very many digits")
    return Fraction(int(numerator, 16), int(denominator, 16))


# How they are read, by the name under which they are written.
_READERS: dict[str, Callable[..., object]] = {
    "int": lambda digits: int(digits, 16),
    "text": lambda *numbers: "".join(map(chr, numbers)),
    "bytes": bytes.fromhex,
    "complex": complex,
    "fraction": _read_fraction,
}


def decode(value: Any) -> Any:
    """Read what `encode` wrote; for anything else it raises one of the errors that
    `check` catches.

    The work grows with the length alone: numbers that code has chosen to be hashed alike, whose
    sets take quadratic time, are refused, and so are fractions of very many digits.

    >>> decode(["tuple", 1, ["list", 2.5, None], ["dict", ["a", ["set", 3]]]])
    (1, [2.5, None], {'a': {3}})
    """
    if not isinstance(value, (list, dict)):
        return value
    match value:
        case ["list" | "tuple" as name, *items]:
            return _COLLECTIONS[name](map(decode, items))
        case ["dict", *items]:
            keys = _hashable(key for key, _ in items)
            values = [decode(value) for _, value in items]
            return dict(zip(keys, values, strict=True))
        case ["set", *items]:
            return set(_hashable(items))
        case [str(name), *parts] if name in _READERS:
            return _READERS[name](*parts)
    raise ValueError("unknown type")


def _hashable(items: Iterable[Any]) -> list[object]:
    """Decode elements of a set or keys of a dict. Raises ValueError where too many have the same
    hash.
    """
    values = [decode(item) for item in items]
    hashes = Counter(map(hash, values))
    if values and max(hashes.values()) > _SAME_HASH:
        raise ValueError("too many values that are hashed alike")
    return values


def same_value(value: Any, expected: Any) -> bool:
    """Whether a value of plain types is the expected one, as Python compares them, but that numbers
    may differ from floats that are expected, also in lists, tuples and dicts, as little as in the
    output of a program.

    >>> same_value([0.1 * 3], [0.3]), same_value((1,), [1]), same_value(10**9 + 1, 1e9)
    (True, False, False)
    """
    if value == expected:
        return True
    if type(expected) is float:
        if type(value) not in (float, int, Fraction) or not -math.inf < expected < math.inf:
            return False
        return bool(abs(value - expected) <= _NEAR * min(max(abs(expected), _NEAR), 1.0))
    if type(value) is not type(expected):
        return False
    if isinstance(expected, (list, tuple)):
        return len(value) == len(expected) and all(map(same_value, value, expected))
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(
            same_value(value[key], item) for key, item in expected.items()
        )
    return False
