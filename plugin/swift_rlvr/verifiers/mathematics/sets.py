"""Sets of real numbers: unions of intervals and points, with bounds that are constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from swift_rlvr.verifiers.mathematics.functions import agree, less

Bound = Any  # a value of `numeric`, or one of these
MINUS_INFINITY, INFINITY = float("-inf"), float("inf")


def _same_bound(a: Bound, b: Bound) -> bool:
    return a == b if isinstance(a, float) or isinstance(b, float) else agree(a, b)


def _less(a: Bound, b: Bound) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return (a if isinstance(a, float) else 0.0) < (b if isinstance(b, float) else 0.0)
    return not agree(a, b) and less(a, b)


@dataclass(frozen=True)
class RealSet:
    """A set by its bounds, in rising order and none needless.

    `inside` says in turn of what is below the first bound, of the bound itself, of what is between
    it and the next one and so on, up to what is above the last bound, whether it is in the set.
    """

    bounds: tuple[Bound, ...] = ()
    inside: tuple[bool, ...] = (False,)

    @staticmethod
    def interval(low: Bound, closed_low: bool, high: Bound, closed_high: bool) -> RealSet:
        """The numbers between two bounds; none where they are in the wrong order."""
        if _less(low, high):
            return RealSet((low, high), (False, closed_low, True, closed_high, False))
        return RealSet.of(low) if closed_low and closed_high and _same_bound(low, high) else EMPTY

    @staticmethod
    def of(*numbers: Bound) -> RealSet:
        """A set of single numbers."""
        return reduce(
            RealSet.union, [RealSet((number,), (False, True, False)) for number in numbers], EMPTY
        )

    def union(self, other: RealSet) -> RealSet:
        """The numbers in either set."""
        return self._combined(other, lambda here, there: here or there)

    def without(self, other: RealSet) -> RealSet:
        """The numbers that are not in the other set; an infinity, where something is taken away, is
        none.
        """
        numbers = self.intersection(REALS) if other.bounds else self
        return numbers._combined(other, lambda here, there: here and not there)

    def intersection(self, other: RealSet) -> RealSet:
        """The numbers in both sets."""
        return self._combined(other, lambda here, there: here and there)

    def equals(self, other: RealSet) -> bool:
        """Whether both sets have the same numbers; a closed infinity is not an open one."""
        return self.inside == other.inside and all(map(_same_bound, self.bounds, other.bounds))

    def _combined(self, other: RealSet, keep: Callable[[bool, bool], bool]) -> RealSet:
        """The numbers for which `keep` is true, given whether they are in the one and in the other
        set.
        """
        bounds, inside = [], [keep(self.inside[0], other.inside[0])]
        first = second = 0  # how many bounds have been passed
        while first < len(self.bounds) or second < len(other.bounds):
            rest, others = self.bounds[first : first + 1], other.bounds[second : second + 1]
            bound = rest[0] if not others or (rest and _less(rest[0], others[0])) else others[0]
            mine, theirs = (bool(next_) and not _less(bound, next_[0]) for next_ in (rest, others))
            on = keep(self.inside[2 * first + mine], other.inside[2 * second + theirs])
            first, second = first + mine, second + theirs
            above = keep(self.inside[2 * first], other.inside[2 * second])
            if not inside[-1] == on == above:
                bounds.append(bound)
                inside += [on, above]
        return RealSet(tuple(bounds), tuple(inside))


EMPTY = RealSet()
REALS = RealSet.interval(MINUS_INFINITY, False, INFINITY, False)
