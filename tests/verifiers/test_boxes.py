"""Boxes: reading, IoU and pairing, beside the plainest way to do the same."""

import random
from itertools import permutations

import pytest

from swift_rlvr.verifiers.boxes import (
    NotBoxes,
    Spot,
    best_pairs,
    in_json,
    iou,
    read_column,
    read_gold,
    spots_in,
)


def drawn_box(drawn, side=20):
    x1, x2 = sorted(drawn.sample(range(side), 2))
    y1, y2 = sorted(drawn.sample(range(side), 2))
    return Spot((x1, y1, x2, y2))


def cells(box):
    x1, y1, x2, y2 = box.at
    return {(x, y) for x in range(x1, x2) for y in range(y1, y2)}


def test_iou_is_the_share_of_the_cells_that_both_have():
    drawn = random.Random(1)
    for _ in range(500):
        one, other = drawn_box(drawn), drawn_box(drawn)
        expected = len(cells(one) & cells(other)) / len(cells(one) | cells(other))
        assert iou(one, other) == pytest.approx(expected)
        assert iou(other, one) == iou(one, other)


def test_the_scale_of_the_sides_says_nothing():
    """So that boxes may be compared in pixels or from 0 to 1000."""
    drawn = random.Random(2)
    for _ in range(200):
        one, other = drawn_box(drawn), drawn_box(drawn)
        scaled = []
        for box in (one, other):
            x1, y1, x2, y2 = box.at
            scaled.append(Spot((x1 / 6.4, y1 / 4.8, x2 / 6.4, y2 / 4.8)))
        assert iou(*scaled) == pytest.approx(iou(one, other))


def sum_of(weights, pairs):
    return sum(weights[row][column] for row, column in pairs.items())


def test_no_other_pairs_weigh_more():
    drawn = random.Random(3)
    for _ in range(300):
        rows, columns = drawn.randint(1, 5), drawn.randint(1, 5)
        weights = [
            [drawn.choice((0, 1, drawn.random())) for _ in range(columns)] for _ in range(rows)
        ]
        pairs = best_pairs(weights)
        assert len({*pairs.values()}) == len(pairs)
        wide = max(rows, columns)
        padded = [[*row, *[0] * (wide - columns)] for row in weights]
        padded += [[0] * wide for _ in range(wide - rows)]
        most = max(
            sum(padded[row][column] for row, column in enumerate(order))
            for order in permutations(range(wide))
        )
        assert sum_of(weights, pairs) == pytest.approx(most)


def test_there_are_no_pairs_of_nothing():
    assert best_pairs([]) == best_pairs([[]]) == best_pairs([[0.0]]) == {}


def test_what_is_written_is_read_again():
    for spots in ([Spot((1, 2, 3.5, 4), "cup"), Spot((5, 6, 7, 8))], [Spot((1, 2), "Tür")]):
        assert read_gold(in_json(spots)) == spots


@pytest.mark.parametrize(
    "value",
    [None, True, 3, "3", {}, {"bbox_2d": None}, {"x": 1}, [1], [1, 2, 3], [[1, 2], 3], [None] * 4]
    + [[True, 0, 1, 1], ["1", 2, 3, 4], [1, 2, 3, 1e7], [1, 2, 3, float("nan")], [[[1, 2, 3, 4]]]]
    + [{"bbox_2d": [1, 2]}, {"point_2d": [1, 2, 3, 4]}, {"bbox": [1, 2, 3, 4], "point": [1, 2]}],
)
def test_what_is_no_box_is_refused(value):
    with pytest.raises(NotBoxes):
        spots_in(value)
    with pytest.raises(NotBoxes):
        read_column(value)
