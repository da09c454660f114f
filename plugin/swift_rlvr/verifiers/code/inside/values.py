"""Values of plain types as JSON that keeps them apart."""

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


class Opaque(Exception):
    """A value that is not made of plain types."""


def encode(value: object, depth: int = 0) -> object:
    """Write a value of plain types, or subclasses of them, as JSON that keeps them apart;
    `decode` reads it.

    >>> encode((1, [2.5, None], {"a": {3}}))
    ['tuple', 1, ['list', 2.5, None], ['dict', ['a', ['set', 3]]]]
    """
    if value is None or isinstance(value, (bool, str, float)):
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
    raise Opaque(f"of type {type(value).__name__}")


def decode(value: Any) -> Any:
    """Read what `encode` wrote; for anything else it raises one of the errors that
    `check` catches.

    The work grows with the length alone: numbers that code has chosen to be hashed alike, whose
    sets take quadratic time, are refused, and so are fractions of very many digits.

    >>> decode(["tuple", 1, ["list", 2.5, None], ["dict", ["a", ["set", 3]]]])
    (1, [2.5, None], {'a': {3}})
    """
    match value:
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
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
        case list() | dict():
            raise ValueError("unknown type")
    return value


def _hashable(items: Iterable[Any]) -> list[object]:
    """Decode elements of a set or keys of a dict. Raises ValueError where too many have the same
    hash.
    """
    values = [decode(item) for item in items]
    hashes = Counter(map(hash, values))
    if values and max(hashes.values()) > _SAME_HASH:
        raise ValueError("too many values that are hashed alike")
    return values
