"""Which results are the same."""

import pytest

from swift_rlvr.verifiers.sql.results import (
    WRONG_COLUMNS,
    WRONG_ORDER,
    WRONG_ROWS,
    Comparison,
    Expected,
    Result,
    rows_that_differ,
    tied_blocks,
)


def difference(gold, answer, blocks=(), **settings):
    width = len(gold[0]) if gold else 1
    names = tuple("abcdefgh"[:width])
    answered = tuple("abcdefgh"[: len(answer[0]) if answer else width])
    return Comparison(**settings).difference(
        Expected(Result(names, gold), blocks), Result(answered, answer)
    )


@pytest.mark.parametrize(
    ("gold", "answer", "found"),
    [
        # (the gold's rows, the answer's, what differs)
        ([(1,), (2,)], [(2,), (1,)], None),
        ([(1,), (1,)], [(1,)], WRONG_ROWS),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], WRONG_ROWS),
        ([(1, "a")], [(1,)], WRONG_COLUMNS),
        ([(1,)], [(1, 1)], WRONG_COLUMNS),
        ([(1,)], [(1.0,)], None),
        ([(1,)], [("1",)], WRONG_ROWS),
        ([(0.1 + 0.2,)], [(0.3,)], None),
        ([(2 / 3, "a"), (1 / 3, "a")], [(0.33333333, "a"), (0.66666667, "a")], None),
        ([(0.5,)], [(0.50001,)], WRONG_ROWS),
        ([(1000001,)], [(1000002,)], WRONG_ROWS),
        ([(None,)], [(0,)], WRONG_ROWS),
        ([(None,)], [("NULL",)], WRONG_ROWS),
        ([(None, 0.5)], [(None, 0.5000000001)], None),
        ([("a",)], [("A",)], WRONG_ROWS),
        ([(b"a",)], [("a",)], WRONG_ROWS),
        ([(0.0,)], [(1e-12,)], None),
        ([], [], None),
        ([], [(1,)], WRONG_ROWS),
    ],
)
def test_rows_are_compared_as_a_bag(gold, answer, found):
    assert difference(gold, answer) == found


def test_columns_may_change_places_where_that_is_asked_for():
    gold, answer = [(1, "a", 2), (3, "b", 3)], [("a", 1, 2), ("b", 3, 3)]
    assert difference(gold, answer) == WRONG_ROWS
    assert difference(gold, answer, any_column_order=True) is None
    # Each column has the gold's values, and the rows have not.
    mixed = [("b", 1, 2), ("a", 3, 3)]
    assert difference(gold, mixed, any_column_order=True) == WRONG_ROWS
    same = [(1,) * 8] * 2
    assert difference(same, [(1,) * 7 + (2,)] * 2, any_column_order=True) == WRONG_ROWS


def test_order_counts_but_for_ties():
    gold = [("a",), ("b",), ("c",)]
    assert difference(gold, [("b",), ("a",), ("c",)], [(0, 1), (1, 2), (2, 3)]) == WRONG_ORDER
    assert difference(gold, [("b",), ("a",), ("c",)], [(0, 2), (2, 3)]) is None
    assert difference(gold, [("c",), ("a",), ("b",)], [(0, 2), (2, 3)]) == WRONG_ORDER


def test_blocks_of_ties():
    assert tied_blocks([3, 3, 2, 1, 1]) == [(0, 2), (2, 3), (3, 5)]
    assert tied_blocks([]) == []


def test_the_rows_that_differ():
    missing, further = rows_that_differ([(1,), (1,), (0.1 + 0.2,)], [(1,), (0.3,), (2,)], most=3)
    assert (missing, further) == ([(1,)], [(2,)])
