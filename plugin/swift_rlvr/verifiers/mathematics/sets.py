"""Sets of real numbers: unions of intervals and points, with bounds that are constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swift_rlvr.verifiers.mathematics.functions import agree, less

# A value of `numeric`, or one of the infinities. Only these are floats.
Bound = Any
MINUS_INFINITY = float("-inf")
INFINITY = float("inf")


def _same_bound(a: Bound, b: Bound) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return a == b
    return agree(a, b)


def _less(a: Bound, b: Bound) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        # Beside an infinity every number is as good as 0.
        first = a if isinstance(a, float) else 0.0
        second = b if isinstance(b, float) else 0.0
        return first < second
    return not agree(a, b) and less(a, b)


@dataclass(frozen=True)
class RealSet:
    """A set by its bounds, in rising order and none needless.

    `inside` says in turn whether the set holds what is below the first bound, the bound itself,
    what is between it and the next one, and so on, up to what is above the last bound.

    >>> RealSet.interval(1, True, 2, False)
    RealSet(bounds=(1, 2), inside=(False, True, True, False, False))
    """

    bounds: tuple[Bound, ...] = ()
    inside: tuple[bool, ...] = (False,)

    @staticmethod
    def interval(low: Bound, closed_low: bool, high: Bound, closed_high: bool) -> RealSet:
        """The numbers between two bounds; none if they are in the wrong order."""
        if _less(low, high):
            return RealSet((low, high), (False, closed_low, True, closed_high, False))
        # [2, 2] is one number; (2, 2] is empty
        if closed_low and closed_high and _same_bound(low, high):
            return RealSet.of(low)
        return EMPTY

    @staticmethod
    def of(*numbers: Bound) -> RealSet:
        """A set of single numbers."""
        result = EMPTY
        for number in numbers:
            result = result.union(RealSet((number,), (False, True, False)))
        return result

    def union(self, other: RealSet) -> RealSet:
        """The numbers in either set."""
        return self._combined(other, lambda in_self, in_other: in_self or in_other)

    def without(self, other: RealSet) -> RealSet:
        """The numbers that are not in the other set; an infinity, where something is taken away, is
        none.
        """
        numbers = self.intersection(REALS) if other.bounds else self
        return numbers._combined(other, lambda in_self, in_other: in_self and not in_other)

    def intersection(self, other: RealSet) -> RealSet:
        """The numbers in both sets."""
        return self._combined(other, lambda in_self, in_other: in_self and in_other)

    def equals(self, other: RealSet) -> bool:
        """Whether both sets have the same numbers; a closed infinity is not an open one."""
        return self.inside == other.inside and all(map(_same_bound, self.bounds, other.bounds))

    def _combined(self, other: RealSet, keep: Callable[[bool, bool], bool]) -> RealSet:
        """The numbers for which `keep` is true, given whether they are in the one and in the other
        set.
        """
        bounds: list[Bound] = []
        inside = [keep(self.inside[0], other.inside[0])]
        # How many bounds have been passed. After n of them, `inside` has the next bound at 2n + 1
        # and what is below it at 2n.
        passed_self = passed_other = 0
        while passed_self < len(self.bounds) or passed_other < len(other.bounds):
            next_self = self.bounds[passed_self] if passed_self < len(self.bounds) else None
            next_other = other.bounds[passed_other] if passed_other < len(other.bounds) else None
            if next_other is None or (next_self is not None and _less(next_self, next_other)):
                bound = next_self
            else:
                bound = next_other
            # Both where the two sets have the same bound.
            is_of_self = next_self is not None and not _less(bound, next_self)
            is_of_other = next_other is not None and not _less(bound, next_other)

            on_bound = keep(
                self.inside[2 * passed_self + is_of_self],
                other.inside[2 * passed_other + is_of_other],
            )
            passed_self += is_of_self
            passed_other += is_of_other
            above = keep(self.inside[2 * passed_self], other.inside[2 * passed_other])
            # A bound inside the set, or outside of it, is needless.
            if not inside[-1] == on_bound == above:
                bounds.append(bound)
                inside += [on_bound, above]
        return RealSet(tuple(bounds), tuple(inside))


EMPTY = RealSet()
REALS = RealSet.interval(MINUS_INFINITY, False, INFINITY, False)
