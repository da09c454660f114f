"""Values of plain types as JSON that keeps them apart."""

import math
from collections import Counter
from collections.abc import Iterable, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
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
        if str.isascii(value):
            return value
        try:
            str.encode(value)
        except UnicodeEncodeError:  # JSON makes one character of two surrogates
            return ["text", *map(ord, value)]
        return value
    if isinstance(value, int):
        # Longer ones in base 16: reading a decimal takes quadratic time.
        return value if abs(value) < 1 << 63 else ["int", hex(value)]
    if depth > DEEPEST:
        raise Opaque("nested too deep")
    within = depth + 1
    if isinstance(value, (list, tuple)):
        name = "list" if isinstance(value, list) else "tuple"
        return [name, *(encode(each, within) for each in value)]
    if isinstance(value, Set):  # also the keys of a dict
        return ["set", *(encode(each, within) for each in value)]
    if isinstance(value, dict):
        items = value.items()
        return ["dict", *([encode(key, within), encode(item, within)] for key, item in items)]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", value.hex()]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, Rational):
        return ["fraction", hex(value.numerator), hex(value.denominator)]
    # 1e999999999 as a fraction would fill the memory.
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 1000:
        return encode(Fraction(value))
    # an array, or a number of numpy's
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist())
    raise Opaque(f"of type {type(value).__name__}", value)


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
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
        case ["text", *numbers]:
            return "".join(map(chr, numbers))
        case ["fraction", numerator, denominator]:
            # Fraction divides by the greatest common divisor, in quadratic time.
            if max(len(numerator), len(denominator)) > _LONGEST_FRACTION:
                raise ValueError("a fraction of very many digits")
            return Fraction(int(numerator, 16), int(denominator, 16))
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["dict", *items]:
            keys = _hashable(key for key, _ in items)
            values = [decode(value) for _, value in items]
            return dict(zip(keys, values, strict=True))
        case ["set", *items]:
            return set(_hashable(items))
        case ["list" | "tuple" as name, *items]:
            return _COLLECTIONS[name](map(decode, items))
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
