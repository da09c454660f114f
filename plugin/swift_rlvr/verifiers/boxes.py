r"""Boxes and points in a picture: how models write them, how far two of them agree, and which answer
belongs to which right one.

A box is its upper left and its lower right corner, x1, y1, x2, y2, a point x and y; the numbers are of
whatever scale the row has. Read are

- JSON: ``[x1, y1, x2, y2]``, a list of such lists, an object with ``bbox_2d``, ``bbox`` or ``box``
  (``point_2d`` or ``point``), as Qwen2.5-VL and Qwen3-VL write it, or a list of such objects
- the tags of Qwen-VL, Qwen2-VL and InternVL: ``<ref>cup</ref><box>(x1,y1),(x2,y2)</box>``,
  ``<box>[[x1, y1, x2, y2]]</box>``, also with their special tokens, and what is left where these were
  not decoded: ``(x1,y1),(x2,y2)``

A box without width or height, or with its corners turned round, is none.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from swift_rlvr.verifiers.answers import CLOSE, OPEN, normalised_answer
from swift_rlvr.verifiers.denials import is_denied
from swift_rlvr.verifiers.json_values import (
    MOST_CHARS,
    TEXT_AROUND,
    TOO_LONG,
    TWO_VALUES,
    NotJson,
    read_answer,
    read_json,
    shortened,
    values_in,
)

# What a right answer and an answer may have at most: the time to pair them grows with its cube.
MOST = 100
# No picture is as large.
LARGEST = 1_000_000
BOX, POINT = "box", "point"
# The keys of an object, the likeliest first, and what they hold.
_FORMS = {"bbox_2d": BOX, "bbox": BOX, "box": BOX, "point_2d": POINT, "point": POINT}
# The keys that we write.
_KEYS = {BOX: "bbox_2d", POINT: "point_2d"}
_LABELS = ("label", "ref", "class", "category", "name")
_WORDS = ("label", "ref", "name")
# Qwen2-VL's special tokens, and the tags that stand for them in Qwen-VL and InternVL.
_TOKENS = {
    "<|box_start|>": "<box>",
    "<|box_end|>": "</box>",
    "<|object_ref_start|>": "<ref>",
    "<|object_ref_end|>": "</ref>",
}
_NUMBER = r"\s*(-?[0-9]{1,7}(?:\.[0-9]{1,8})?)\s*"
_CORNER = rf"\({_NUMBER},{_NUMBER}\)"
_CORNERS = re.compile(rf"{_CORNER}(?:\s*,\s*{_CORNER})?")
_IN_TAGS = r"(?:<ref>(?P<label>[^<]{0,300})</ref>\s*)?<box>(?P<tagged>[^<]{1,4000})</box>"
_TAGGED = re.compile(_IN_TAGS)
# A box with its tags, or in brackets, as ms-swift writes one by default, or bare.
_WRITTEN = re.compile(
    rf"{_IN_TAGS}|\[\s*(?P<bracketed>{_CORNERS.pattern})\s*\]|(?P<bare>{_CORNERS.pattern})"
)
# A second box in a text beside the first one: [600, 200 or (600,200
_OPENS_BOX = re.compile(r"[\[(]\s*-?[0-9.]+\s*,\s*-?[0-9]")
_BETWEEN = re.compile(r"[\s,;]*")


class NotBoxes(ValueError):
    """A text, or a value, that is no boxes and no points."""


class Spot(NamedTuple):
    """A box, of four numbers, or a point, of two, and its label, where it has one."""

    at: tuple[float, ...]
    label: str | None = None

    @property
    def form(self) -> str:
        return BOX if len(self.at) == 4 else POINT

    @property
    def is_empty(self) -> bool:
        """Whether it is a box without an inside."""
        return self.form == BOX and (self.at[0] >= self.at[2] or self.at[1] >= self.at[3])

    @property
    def area(self) -> float:
        x1, y1, x2, y2 = self.at
        return (x2 - x1) * (y2 - y1)

    def __str__(self) -> str:
        numbers = json.dumps(list(self.at))
        return f"{numbers} ({self.label})" if self.label else numbers


# --- reading


def with_tags(text: str) -> str:
    """A completion in which boxes have tags instead of special tokens, which would else be taken for
    the tokens at its end.
    """
    if "<|" in text:
        for token, tag in _TOKENS.items():
            text = text.replace(token, tag)
        # GLM-4.1V and GLM-4.5V mark their answer, and may do so in the tags that a prompt asks for.
        tags = ("", "") if OPEN in text else (OPEN, CLOSE)
        text = text.replace("<|begin_of_box|>", tags[0]).replace("<|end_of_box|>", tags[1])
    return text


def spots_in(value: Any) -> list[Spot]:
    """The boxes or points that a value of JSON is; NotBoxes where it is none.

    >>> spots_in([{"bbox_2d": [10, 20, 30, 40], "label": "cup"}, {"point_2d": [5, 6]}])
    [Spot(at=(10, 20, 30, 40), label='cup'), Spot(at=(5, 6), label=None)]
    >>> spots_in([10, 20, 30, 40]) == spots_in([[10, 20, 30, 40]])
    True
    """
    if isinstance(value, list) and not any(isinstance(each, (list, dict)) for each in value):
        return [Spot(_numbers(value))] if value else []
    spots = []
    for each in value if isinstance(value, list) else [value]:
        spots.append(_spot_of(each) if isinstance(each, dict) else Spot(_numbers(each)))
    return spots


def _spot_of(value: Mapping[str, Any]) -> Spot:
    """The box or point of an object. What else is in it are texts and numbers: a second box beside
    the first one would be a second answer.
    """
    places = [name for name in value if name in _FORMS]
    if len(places) != 1:
        raise NotBoxes(f"an object has one of {', '.join(_FORMS)}, got {shortened(value)}")
    (place,) = places
    for name, inner in value.items():
        is_several = isinstance(inner, (list, dict)) or _OPENS_BOX.search(f"{name} {inner}")
        if is_several and name != place:
            raise NotBoxes(f"{name!r:.40} beside a box must be a text or a number, and no box")
    at = _numbers(value[place])
    if Spot(at).form != _FORMS[place]:
        count = 4 if _FORMS[place] == BOX else 2
        raise NotBoxes(f"{place} has {count} numbers, got {shortened(value[place])}")
    for name, inner in value.items():
        if name in _LABELS and isinstance(inner, str):
            return Spot(at, inner)
        # The digit in a picture. A number of a class says nothing to those who have no list of them.
        if name in _WORDS and type(inner) is int:
            return Spot(at, str(inner))
    return Spot(at)


def _numbers(value: Any) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 4):
        raise NotBoxes(f"expected [x1, y1, x2, y2] or [x, y], got {shortened(value)}")
    for number in value:
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not is_number or not abs(number) <= LARGEST:
            raise NotBoxes(f"expected a number up to {LARGEST:,}, got {shortened(number)}")
    return tuple(value)


def written_in_tags(text: str) -> list[Spot] | None:
    """The boxes or points of a text that writes them in tags or as corners, and nothing else; None
    where it does not.

    >>> written_in_tags("<ref>cup</ref><box>(10,20),(30,40)</box>")
    [Spot(at=(10.0, 20.0, 30.0, 40.0), label='cup')]
    >>> written_in_tags("<box>[[1, 2, 3, 4], [5, 6, 7, 8]]</box>") == written_in_tags("(1,2),(3,4)\\n(5,6),(7,8)")
    True
    """
    spots: list[Spot] = []
    position = 0
    for written in _WRITTEN.finditer(text):
        if not _BETWEEN.fullmatch(text, position, written.start()):
            return None
        position = written.end()
        corners = written["tagged"] or written["bracketed"] or written["bare"]
        spots += _labelled(corners, written["label"])
    if not spots or not _BETWEEN.fullmatch(text, position):
        return None
    return spots


def _labelled(corners: str, label: str | None) -> list[Spot]:
    """The boxes that stand in a tag or as corners, each with the label before them."""
    label = label.strip() if label else None
    if label and _OPENS_BOX.search(label):
        raise NotBoxes(f"{label!r:.40} beside a box must be a text, and no box")
    corners = corners.strip()
    written = _CORNERS.fullmatch(corners)
    if written:
        numbers = [float(number) for number in written.groups() if number is not None]
        return [Spot(_numbers(numbers), label)]
    try:
        inner = spots_in(read_json(corners))
    except NotJson as error:
        raise NotBoxes(f"in the tag {corners!r:.60}: {error}") from None
    return [Spot(spot.at, label) for spot in inner]


def read_spots(text: str, text_around: bool = False) -> list[Spot]:
    """The boxes or points that a text gives, alone or in a block of Markdown; NotJson or NotBoxes where
    it gives something else, or several lists of them.

    text_around: whether it may be a text in which they stand.
    """
    if len(text) > MOST_CHARS:
        raise NotJson(TOO_LONG, f"it has {len(text):,} characters, at most {MOST_CHARS:,} are read")
    spots = written_in_tags(text)
    if spots is not None:
        return spots
    if text_around and _TAGGED.search(text):
        if values_in(_TAGGED.sub(" ", text)):
            raise NotJson(TWO_VALUES, "it has boxes in tags and JSON")
        spots = []
        for tagged in _TAGGED.finditer(text):
            if is_denied(text, *tagged.span()):
                raise NotJson(TEXT_AROUND, "the words around it take it back")
            spots += _labelled(tagged["tagged"], tagged["label"])
        return spots
    _, value = read_answer(text, text_around)
    return spots_in(value)


def read_column(value: Any) -> list[Spot]:
    """The boxes or points of a row: a text as models write it, also in answer tags, or a value. NotBoxes
    where it is none of these, or has none.
    """
    if isinstance(value, str):
        text = with_tags(value).strip()
        text = text.removeprefix(OPEN).removesuffix(CLOSE).strip()
        try:
            spots = read_spots(text)
        except NotJson as error:
            raise NotBoxes(str(error)) from None
    else:
        spots = spots_in(_as_lists(value))
    if not spots:
        raise NotBoxes("there is no box in it")
    if len(spots) > MOST:
        raise NotBoxes(f"it has {len(spots)} boxes, at most {MOST} are graded")
    if len({spot.form for spot in spots}) > 1:
        raise NotBoxes("it has boxes and points")
    return spots


def read_gold(value: Any) -> list[Spot]:
    """The same for a right answer: NotBoxes for an empty box, too.

    >>> read_gold("<answer>[10, 20, 30, 40]</answer>")
    [Spot(at=(10, 20, 30, 40), label=None)]
    """
    spots = read_column(value)
    for spot in spots:
        if spot.is_empty:
            raise NotBoxes(f"{spot} is empty: x1 < x2 and y1 < y2 are needed")
    return spots


def _as_lists(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_as_lists(each) for each in value]
    return value


def in_json(spots: Sequence[Spot]) -> str:
    """Boxes or points as Qwen2.5-VL and Qwen3-VL write them.

    >>> in_json([Spot((10, 20, 30, 40), "cup")])
    '[{"bbox_2d": [10, 20, 30, 40], "label": "cup"}]'
    """
    objects = []
    for spot in spots:
        written: dict[str, Any] = {_KEYS[spot.form]: list(spot.at)}
        if spot.label is not None:
            written["label"] = spot.label
        objects.append(written)
    return json.dumps(objects, ensure_ascii=False)


# --- comparing


def iou(one: Spot, other: Spot) -> float:
    """The intersection of two boxes over their union, of areas without a further pixel at the edge.

    >>> iou(Spot((0, 0, 10, 10)), Spot((0, 5, 10, 15)))
    0.3333333333333333
    """
    width = min(one.at[2], other.at[2]) - max(one.at[0], other.at[0])
    height = min(one.at[3], other.at[3]) - max(one.at[1], other.at[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / (one.area + other.area - both)


def is_inside(point: Spot, box: Spot) -> bool:
    """Whether a point is in a box or on its edge."""
    (x, y), (x1, y1, x2, y2) = point.at, box.at
    return x1 <= x <= x2 and y1 <= y <= y2


def distance(one: Spot, other: Spot, canvas: Sequence[float]) -> float:
    """How far two points are apart, as a share of the picture's sides, each of which counts as 1.

    >>> distance(Spot((0, 0)), Spot((30, 40)), (100, 100))
    0.5
    """
    shares = []
    for here, there, side in zip(one.at, other.at, canvas, strict=True):
        shares.append((here - there) / side)
    return math.hypot(*shares)


def same_label(gold: Spot, answer: Spot) -> bool:
    """Whether an answer has the gold's label; a gold without one has any."""
    if gold.label is None:
        return True
    return answer.label is not None and normalised_answer(gold.label) == normalised_answer(
        answer.label
    )


def best_pairs(weights: Sequence[Sequence[float]]) -> dict[int, int]:
    """The column of each row, so that the sum of their weights is as large as it can be, and no column
    is taken twice. Pairs that weigh nothing are left out.

    This is the Hungarian method with potentials: Kuhn, The Hungarian method for the assignment
    problem, 1955; in the form of Jonker and Volgenant, 1987.

    >>> best_pairs([[0.9, 0.8], [0.8, 0.0]])
    {0: 1, 1: 0}
    """
    if not weights or not weights[0]:
        return {}
    if len(weights) > len(weights[0]):
        turned = best_pairs(list(zip(*weights, strict=True)))
        return dict(sorted((row, column) for column, row in turned.items()))

    row_potentials = [0.0] * len(weights)
    column_potentials = [0.0] * len(weights[0])
    row_of: list[int | None] = [None] * len(weights[0])
    for start in range(len(weights)):
        column, came_from = _way_to_free_column(
            start, weights, row_of, row_potentials, column_potentials
        )
        # Each column on the way back gets the row of the one before it.
        while column is not None:
            before = came_from[column]
            row_of[column] = start if before is None else row_of[before]
            column = before

    pairs = {}
    for column_index, owner in enumerate(row_of):
        if owner is not None and weights[owner][column_index] > 0:
            pairs[owner] = column_index
    return dict(sorted(pairs.items()))


def _way_to_free_column(
    start: int,
    weights: Sequence[Sequence[float]],
    row_of: Sequence[int | None],
    row_potentials: list[float],
    column_potentials: list[float],
) -> tuple[int | None, list[int | None]]:
    """The column that is free and the cheapest to reach from a new row over columns that are taken, and
    from which column each was reached. The potentials are changed on the way.
    """
    columns = range(len(row_of))
    cheapest = [math.inf] * len(columns)
    came_from: list[int | None] = [None] * len(columns)
    left = set(columns)
    reached: list[tuple[int, int]] = []  # columns with their rows
    row: int | None = start
    column: int | None = None
    while row is not None:
        step = math.inf
        nearest = -1
        for each in left:
            cost = -weights[row][each] - row_potentials[row] - column_potentials[each]
            if cost < cheapest[each]:
                cheapest[each] = cost
                came_from[each] = column
            if cheapest[each] < step:
                step = cheapest[each]
                nearest = each
        column = nearest
        row_potentials[start] += step
        for each, owner in reached:
            row_potentials[owner] += step
            column_potentials[each] -= step
        for each in left:
            cheapest[each] -= step
        left.remove(column)
        row = row_of[column]
        if row is not None:
            reached.append((column, row))
    return column, came_from
