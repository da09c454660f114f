"""Every value that a set of numbers can have under + - * /, exactly, with an expression for each.

For making tasks and for gold answers; rewards use the verifier instead, which reads an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

OPERATORS = "+-*/"


def all_values(
    nums: Sequence[int], operators: str = OPERATORS, largest: int | None = None
) -> dict[tuple[int, int], str]:
    """Every value of an expression that uses each of `nums` once, as reduced (numerator, denominator > 0).

    `largest` None allows any intermediate result; a number allows only whole ones from 0 to that number.

    >>> all_values([2, 6])
    {(8, 1): '(2 + 6)', (-4, 1): '(2 - 6)', (4, 1): '(6 - 2)', (12, 1): '(2 * 6)', (1, 3): '(2 / 6)', (3, 1): '(6 / 2)'}
    >>> list(all_values([2, 6], operators="-/", largest=99))
    [(4, 1), (3, 1)]
    """
    return _values(tuple(sorted(nums)), operators, largest)


def solve(nums: Sequence[int], target: int) -> str | None:
    """An expression over exactly `nums` with the exact value `target`, or None where there is none.

    >>> solve([3, 3, 8, 8], 24)
    '(8 / (3 - (8 / 3)))'
    >>> solve([1, 1, 1], 24) is None
    True
    """
    return all_values(nums).get((target, 1))


def _values(nums: tuple[int, ...], operators: str, largest: int | None) -> dict[tuple[int, int], str]:
    if len(nums) == 1:
        return {(nums[0], 1): str(nums[0])}
    # Few pairs serve many multisets; larger parts have too many values to be kept.
    return _pair_values(nums, operators, largest) if len(nums) == 2 else _combined(nums, operators, largest)


def _combined(nums: tuple[int, ...], operators: str, largest: int | None) -> dict[tuple[int, int], str]:
    values: dict[tuple[int, int], str] = {}
    # Bit i of mask: nums[i] is in the left part. The last number stays on the right, as both orders are tried below.
    pairs = {_parted(nums, mask) for mask in range(1, 2 ** (len(nums) - 1))}
    for left, right in sorted(pairs):
        for (an, ad), a in _values(left, operators, largest).items():
            for (bn, bd), b in _values(right, operators, largest).items():
                for n, d, x, op, y in (
                    (an * bd + bn * ad, ad * bd, a, "+", b),
                    (an * bd - bn * ad, ad * bd, a, "-", b),
                    (bn * ad - an * bd, ad * bd, b, "-", a),
                    (an * bn, ad * bd, a, "*", b),
                    (an * bd, ad * bn, a, "/", b),
                    (bn * ad, bd * an, b, "/", a),
                ):
                    if d == 0 or op not in operators:
                        continue
                    divisor = gcd(n, d) if d > 0 else -gcd(n, d)
                    value = (n // divisor, d // divisor)
                    if value not in values and (largest is None or (value[1] == 1 and 0 <= value[0] <= largest)):
                        values[value] = f"({x} {op} {y})"
    return values


_pair_values = lru_cache(maxsize=2**16)(_combined)


def _parted(nums: tuple[int, ...], mask: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left = tuple(number for i, number in enumerate(nums) if mask >> i & 1)
    return left, tuple(number for i, number in enumerate(nums) if not mask >> i & 1)
