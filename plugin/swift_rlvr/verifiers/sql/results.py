"""What a query gives, and whether two queries give the same."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

Row = tuple[Any, ...]
# Orders of columns that are tried, where the columns' values allow for more than one.
_MOST_ORDERS = 200
# What differs from 0 by less is 0.
_NOTHING = 1e-9

# How an answer's result differs from the gold's.
WRONG_COLUMNS = "wrong number of columns"
WRONG_ROWS = "wrong rows"
WRONG_ORDER = "wrong order"


class Result(NamedTuple):
    """The names of the columns, and the rows in the order in which they came."""

    columns: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    """What is the same. tolerance: the share by which numbers may differ, where one is no whole
    number.
    """

    tolerance: float = 1e-6
    any_column_order: bool = False

    def difference(self, gold: "Expected", answer: Result) -> str | None:
        """Why an answer's result is not the gold's, one of the reasons above; None where it is.

        Rows that occur twice have to occur twice.

        >>> gold = Expected(Result(("a",), [(1,), (2,)]), [(0, 1), (1, 2)])
        >>> [Comparison().difference(gold, Result(("b",), rows)) for rows in ([(1,), (2.0,)], [(2,), (1,)], [(1,)])]
        [None, 'wrong order', 'wrong rows']
        """
        width = len(gold.result.columns)
        if len(answer.columns) != width:
            return WRONG_COLUMNS
        if len(answer.rows) != len(gold.result.rows):
            return WRONG_ROWS
        # Of all orders of the columns the best one counts: that in which no more than the order is wrong.
        reason = WRONG_ROWS
        for order in self._orders(gold.result, answer):
            rows = answer.rows
            if order != tuple(range(width)):
                rows = list(map(itemgetter(*order), rows))
            if gold.tied and self._are_of_tied(gold, rows):
                return None
            if not self.same(gold.result.rows, rows):
                continue
            if self._are_in_order(gold.blocks, gold.result.rows, rows):
                return None
            reason = WRONG_ORDER
        return reason

    def _are_of_tied(self, gold: "Expected", rows: Sequence[Row]) -> bool:
        """Whether these rows are the gold's, with others of its tied ones in the last places."""
        *blocks, (cut, end) = gold.blocks
        if not self._are_in_order(blocks, gold.result.rows, rows):
            return False
        # Each of the tied rows can take one place alone.
        left = list(gold.tied)
        for row in rows[cut:end]:
            for each in left:
                if self.same([each], [row]):
                    left.remove(each)
                    break
            else:
                return False
        return True

    def _are_in_order(
        self, blocks: Sequence[tuple[int, int]], gold: Sequence[Row], answer: Sequence[Row]
    ) -> bool:
        """Whether each block of rows has the gold's, in any order."""
        return all(self.same(gold[start:end], answer[start:end]) for start, end in blocks)

    def _orders(self, gold: Result, answer: Result) -> Iterator[tuple[int, ...]]:
        """The orders of the answer's columns that may be the gold's, its own first."""
        width = len(gold.columns)
        own = tuple(range(width))
        yield own
        if not self.any_column_order or width < 2:
            return
        # Only a column with the same values can stand for one of the gold's, so that few orders are left.
        answers = [_column(answer.rows, column) for column in own]
        fitting = []
        for column in own:
            values = _column(gold.rows, column)
            fitting.append([each for each in own if self.same(values, answers[each])])
        for number, order in enumerate(_choices(fitting)):
            if number == _MOST_ORDERS:
                return
            if order != own:
                yield order

    def same(self, gold: Sequence[Row], answer: Sequence[Row]) -> bool:
        """Whether these are the same rows in any order."""
        if len(gold) != len(answer):
            return False
        if Counter(gold) == Counter(answer):
            return True
        # Only floats may differ by a little.
        if not any(isinstance(value, float) for value in chain.from_iterable((*gold, *answer))):
            return False
        # Equal texts first, so that numbers which differ by their last digits do not part them.
        golds = sorted(gold, key=_key)
        answers = sorted(answer, key=_key)
        pairs = zip(chain.from_iterable(golds), chain.from_iterable(answers), strict=True)
        for value, other in pairs:
            are_numbers = isinstance(value, (int, float)) and isinstance(other, (int, float))
            if are_numbers and float in (type(value), type(other)):
                if not math.isclose(value, other, rel_tol=self.tolerance, abs_tol=_NOTHING):
                    return False
            elif type(value) is not type(other) or value != other:
                return False
        return True


@dataclass(frozen=True)
class Expected:
    """What the gold gives on a database.

    blocks: the places of the rows within which the order is free; empty where all of it is. tied: where
    LIMIT cuts rows that are equal in all that they are sorted by, those of which any may fill the last
    of the blocks.
    """

    result: Result
    blocks: Sequence[tuple[int, int]] = ()
    tied: Sequence[Row] = ()


def tied_blocks(keys: Sequence[Any]) -> list[tuple[int, int]]:
    """The places of rows with the same key, one after the other.

    >>> tied_blocks(["a", "a", "b"])
    [(0, 2), (2, 3)]
    """
    blocks: list[tuple[int, int]] = []
    for index, key in enumerate(keys):
        if index and key == keys[index - 1]:
            blocks[-1] = (blocks[-1][0], index + 1)
        else:
            blocks.append((index, index + 1))
    return blocks


def _column(rows: Sequence[Row], column: int) -> list[Row]:
    """One column of some rows, as rows."""
    return [(row[column],) for row in rows]


def _choices(fitting: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """One of each, all different."""
    if not fitting:
        yield ()
        return
    *before, last = fitting
    for others in _choices(before):
        for column in last:
            if column not in others:
                yield (*others, column)


def _key(row: Row) -> tuple[Any, ...]:
    texts: list[tuple[int, Any]] = []
    numbers = []
    for value in row:
        if isinstance(value, (int, float)):
            numbers.append(value)
            texts.append((0, ""))
        elif isinstance(value, str):
            texts.append((1, value))
        else:
            texts.append((2, "" if value is None else repr(value)))
    return texts, numbers


def rows_that_differ(
    gold: Sequence[Row], answer: Sequence[Row], most: int
) -> tuple[list[Row], list[Row]]:
    """The first rows that only the gold has, and those that only the answer has."""
    missing = list((Counter(map(_rounded, gold)) - Counter(map(_rounded, answer))).elements())
    further = list((Counter(map(_rounded, answer)) - Counter(map(_rounded, gold))).elements())
    return missing[:most], further[:most]


def _rounded(row: Row) -> Row:
    return tuple(float(f"{value:.6g}") if isinstance(value, float) else value for value in row)
