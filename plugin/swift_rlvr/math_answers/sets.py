"""Sets of real numbers: unions of intervals and points, with bounds that are constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swift_rlvr.math_answers.numeric import agree, less

Bound = Any  # a value of `numeric`, or one of these
MINUS_INFINITY, INFINITY = float("-inf"), float("inf")


def _same_bound(a: Bound, b: Bound) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, float) and isinstance(b, float) and a == b
    return agree(a, b)


def _less(a: Bound, b: Bound) -> bool:
    """Whether a < b."""
    if isinstance(a, float) or isinstance(b, float):
        return (a if isinstance(a, float) else 0.0) < (b if isinstance(b, float) else 0.0)
    return not agree(a, b) and less(a, b)


@dataclass(frozen=True)
class Piece:
    """The numbers between two bounds."""

    low: Bound
    closed_low: bool
    high: Bound
    closed_high: bool

    def is_empty(self) -> bool:
        return _less(self.high, self.low) or (
            _same_bound(self.low, self.high) and not (self.closed_low and self.closed_high)
        )


@dataclass(frozen=True)
class RealSet:
    """Pieces in rising order, none touching the next."""

    pieces: tuple[Piece, ...]

    @staticmethod
    def of(*pieces: Piece) -> RealSet:
        ordered: list[Piece] = []
        for piece in (piece for piece in pieces if not piece.is_empty()):
            index = 0
            while index < len(ordered) and _starts_before(ordered[index], piece):
                index += 1
            ordered.insert(index, piece)
        merged: list[Piece] = []
        for piece in ordered:
            if merged and _touch(merged[-1], piece):
                merged[-1] = _joined(merged[-1], piece)
            else:
                merged.append(piece)
        return RealSet(tuple(merged))

    @staticmethod
    def interval(low: Bound, closed_low: bool, high: Bound, closed_high: bool) -> RealSet:
        return RealSet.of(Piece(low, closed_low, high, closed_high))

    def union(self, other: RealSet) -> RealSet:
        return RealSet.of(*self.pieces, *other.pieces)

    def without(self, other: RealSet) -> RealSet:
        rest = list(self.pieces)
        for cut in other.pieces:
            rest = [
                part
                for piece in rest
                for part in (
                    _meet(piece, Piece(MINUS_INFINITY, False, cut.low, not cut.closed_low)),
                    _meet(piece, Piece(cut.high, not cut.closed_high, INFINITY, False)),
                )
            ]
        return RealSet.of(*rest)

    def intersection(self, other: RealSet) -> RealSet:
        return RealSet.of(*(_meet(a, b) for a in self.pieces for b in other.pieces))

    def equals(self, other: RealSet) -> bool:
        return len(self.pieces) == len(other.pieces) and all(
            _same_bound(a.low, b.low)
            and _same_bound(a.high, b.high)
            and (a.closed_low, a.closed_high) == (b.closed_low, b.closed_high)
            for a, b in zip(self.pieces, other.pieces, strict=True)
        )


REALS = RealSet.interval(MINUS_INFINITY, False, INFINITY, False)
EMPTY = RealSet(())


def _starts_before(a: Piece, b: Piece) -> bool:
    return _less(a.low, b.low) or (_same_bound(a.low, b.low) and a.closed_low and not b.closed_low)


def _touch(a: Piece, b: Piece) -> bool:
    """Whether a, which starts first, and b leave nothing between them."""
    return _less(b.low, a.high) or (_same_bound(a.high, b.low) and (a.closed_high or b.closed_low))


def _joined(a: Piece, b: Piece) -> Piece:
    if _less(a.high, b.high):
        return Piece(a.low, a.closed_low, b.high, b.closed_high)
    closed = a.closed_high or (_same_bound(a.high, b.high) and b.closed_high)
    return Piece(a.low, a.closed_low, a.high, closed)


def _meet(a: Piece, b: Piece) -> Piece:
    low, closed_low = (b.low, b.closed_low) if _less(a.low, b.low) else (a.low, a.closed_low)
    if _same_bound(a.low, b.low):
        closed_low = a.closed_low and b.closed_low
    high, closed_high = (b.high, b.closed_high) if _less(b.high, a.high) else (a.high, a.closed_high)
    if _same_bound(a.high, b.high):
        closed_high = a.closed_high and b.closed_high
    return Piece(low, closed_low, high, closed_high)
