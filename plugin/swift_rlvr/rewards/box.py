"""The reward of grounding: boxes that meet the right ones, points in the right boxes or near the right
points.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from swift_rlvr.rewards.base import Attempt, Example, Explanation, Reward, Row, Rule, explained_by
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import CLOSE, OPEN, last_answer
from swift_rlvr.verifiers.boxes import (
    BOX,
    MOST,
    POINT,
    NotBoxes,
    Spot,
    best_pairs,
    distance,
    in_json,
    iou,
    is_inside,
    read_gold,
    read_spots,
    same_label,
    with_tags,
)
from swift_rlvr.verifiers.json_values import MOST_CHARS, TEXT_AROUND, TOO_LONG, TWO_VALUES, NotJson
from swift_rlvr.verifiers.thinking import after_thinking, without_end_tokens

# What answers give, by default: what the right answer is.
_SAME = "same"
# The most that an answer earns which is not right.
_MOST_PARTIAL = 0.99
# What a right pair weighs beside its overlap, so that as many pairs as there can be are right.
_RIGHT_PAIR = 2.0 * MOST
# Boxes that are listed by `explain`.
_SHOWN = 20
# Reason -> what has to hold, in the order in which it is checked.
RULES = {
    "bad gold": "the row's right answer is boxes or points that can be read",
    "bad canvas": "the column canvas is the width and the height that coordinates are read in",
    "no answer": "there is an answer after the thinking",
    "several answers": "it stands in one answer block, and nothing follows that",
    TOO_LONG: f"it has at most {MOST_CHARS:,} characters",
    TEXT_AROUND: "there is nothing around the boxes",
    TWO_VALUES: "it is one value, such as one list of boxes",
    "unreadable": "it is boxes or points in a form that is read",
    "no box": "it has a box or a point",
    "too many": f"it has at most {MOST} of them",
    "other form": "it gives boxes where boxes are asked for, and points where points are",
    "empty box": "its boxes have an inside: x1 < x2 and y1 < y2",
    "wrong number": "it has as many as are right",
    "wrong label": "each has the label of a right one",
    "wrong place": "each meets a right one",
}
_CUP = {"solution": "[100, 100, 300, 300]", "canvas": [1000, 1000]}


class _Pair(NamedTuple):
    """How well a gold and an answer go together.

    overlap: of boxes their IoU; of points 1 where the answer is right, else 0.
    """

    overlap: float
    is_right: bool
    has_label: bool


class _Asked(NamedTuple):
    """What a row asks for. form: box or point. canvas: the width and the height of coordinates."""

    golds: list[Spot]
    form: str
    canvas: tuple[float, float] | None


class _Fault(ValueError):
    """Why a row or an answer is not compared: one of RULES, and what in it is wrong."""

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class BoxReward(Reward):
    """Reward 1.0 for exactly the boxes, or points, that the row's `solution` has, in any order.

    A box is right if its IoU with a right box is `threshold` at least, and a point if it lies in the
    right box, or not farther than `radius` from the right point. Right ones and answers are paired one
    to one, so that as many pairs as there can be are right; one that is missing or left over makes the
    answer wrong. Labels count where the right answer has them. Both are in the same coordinates;
    `boxes:FILE` brings the right ones into those that its prompt asks for.

    The answer is what follows the thinking, or the answer block in it, and nothing but boxes. With
    ``partial=True`` an answer that is not right earns the sum of the pairs' IoU over the number of
    right boxes or of answers, whichever is larger; what is no better than the whole picture counts
    as 0.

    >>> texts = ['[{"bbox_2d": [100, 100, 300, 300]}]', "[100, 100, 300, 190]", "[0, 0, 1000, 1000]"]
    >>> columns = {name: [value] * 3 for name, value in _CUP.items()}
    >>> BoxReward()(texts, **columns), BoxReward(partial=True)(texts, **columns)
    ([1.0, 0.0, 0.0], [1.0, 0.45, 0.0])
    """

    name = "external_box"
    role = VERIFIER
    columns = ("solution",)
    optional_columns = ("canvas", "asks_for")
    columns_elsewhere = {"solution": ("bbox", "bbox_2d", "boxes", "gold", "ground_truth", "answer")}
    reasons = (*RULES, "correct")
    examples = (
        Example(
            '<think>On the left.</think>[{"bbox_2d": [100, 110, 300, 310], "label": "cup"}]',
            _CUP,
            1.0,
        ),
        Example("[0, 0, 1000, 1000]", _CUP, 0.0),
        Example("[100, 100, 300, 300], [500, 500, 700, 700]", _CUP, 0.0),
        Example("[100, 100, 300, 300]", {"solution": "on the left"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        threshold: float = setting(
            0.5, "the IoU from which on a box is right", more_than=0, at_most=1
        )
        radius: float = setting(
            0.05,
            "how far a point may be from the right point, as a share of the picture's sides",
            more_than=0,
            less_than=1,
        )
        asks_for: str = setting(
            _SAME,
            "what answers give: box, point or the same as the right answer; a point is right in a "
            "right box. The column asks_for of a row comes first",
            choices=(_SAME, BOX, POINT),
        )
        partial: bool = setting(
            False, "reward a box that is not right by its IoU, and several by their mean"
        )
        text_around: bool = setting(
            False, "accept text around the boxes; all boxes in the answer still count"
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            golds = _gold(row["solution"])
            canvas = _canvas(row.get("canvas"))
        except NotBoxes:
            return []
        if canvas is None:
            return []
        if row.get("asks_for") == POINT:
            areas = [gold.area for gold in golds if gold.form == BOX]
            if any(2 * area > canvas[0] * canvas[1] for area in areas):
                return ["most points of the picture are paid, since the right box is as large"]
            return []
        whole = in_json([Spot((0, 0, *canvas))])
        if cls().grade(whole, row).reward == cls.full_reward:
            return ["the whole picture as a box is paid, since the right box is as large"]
        return []

    @classmethod
    def attempts(cls, row: Row) -> list[Attempt]:
        try:
            golds = _gold(row["solution"])
            canvas = _canvas(row.get("canvas"))
        except NotBoxes:
            return []
        if (row.get("asks_for") or golds[0].form) == POINT:
            return _attempts_of_points(golds, canvas)
        return _attempts_of_boxes(golds, canvas)

    def grade(self, text: str | None, row: Row) -> Explanation:
        try:
            asked = self._asked(row)
        except _Fault as fault:
            return explained_by(RULES, None, fault.reason, detail=fault.detail)
        written = None
        try:
            written = _answer_in(text or "")
            spots = _spots_in(written, asked.form, self.parameters.text_around)
        except _Fault as fault:
            return explained_by(RULES, 0.0, fault.reason, written, fault.detail)

        table = []
        for gold in asked.golds:
            table.append([self._pair(gold, spot, asked.canvas) for spot in spots])
        # An answer meets at most one gold: those that are right come first, then the nearest.
        weights = []
        for pairs_of_gold in table:
            weights.append([pair.overlap + _RIGHT_PAIR * pair.is_right for pair in pairs_of_gold])
        met = best_pairs(weights)
        pairs = []
        for gold_index, spot_index in met.items():
            pairs.append(table[gold_index][spot_index])

        # Partial pay is divided by whichever are more, so that neither a box too many nor one too few pays.
        reason = _reason(table, pairs)
        share = 1.0 if reason == "correct" else 0.0
        if reason != "correct" and self.parameters.partial:
            most = max(len(asked.golds), len(spots))
            share = min(_MOST_PARTIAL, sum(pair.overlap for pair in pairs) / most)
        rules = _rules(asked, spots, table, met)
        return explained_by(RULES, share, reason, written, further=rules)

    def _asked(self, row: Row) -> _Asked:
        """What a row asks for; _Fault if nobody could answer it."""
        try:
            golds = _gold(row["solution"])
        except NotBoxes as error:
            raise _Fault("bad gold", str(error)) from None
        form = row.get("asks_for") or self.parameters.asks_for
        if form == _SAME:
            form = golds[0].form
        if form not in (BOX, POINT) or (form == BOX and golds[0].form == POINT):
            detail = f"{form!r:.40} is asked for, and the right answer is a {golds[0].form}"
            raise _Fault("bad gold", detail)
        try:
            canvas = _canvas(row.get("canvas"))
        except NotBoxes as error:
            raise _Fault("bad canvas", str(error)) from None
        if canvas is None and golds[0].form == POINT:
            detail = "without it nobody can say how near a point is to another one"
            raise _Fault("bad canvas", detail)
        return _Asked(golds, form, canvas)

    def _pair(self, gold: Spot, answer: Spot, canvas: Sequence[float] | None) -> _Pair:
        if not same_label(gold, answer):
            return _Pair(0.0, False, False)
        if answer.form == POINT:
            if gold.form == BOX:
                is_right = is_inside(answer, gold)
            else:
                is_right = distance(gold, answer, canvas or (1, 1)) <= self.parameters.radius
            return _Pair(float(is_right), is_right, True)
        overlap = iou(gold, answer)
        is_right = overlap >= self.parameters.threshold
        # The whole picture has the IoU of the gold's share of it, without having found anything.
        if not is_right and canvas is not None and overlap <= gold.area / (canvas[0] * canvas[1]):
            overlap = 0.0
        return _Pair(overlap, is_right, True)


def _answer_in(text: str) -> str:
    """What of a completion is its answer: what follows the thinking, or the answer block at its end."""
    # GLM has marks of its own for an answer of boxes.
    text = with_tags(text)
    answer = without_end_tokens(after_thinking(text)).strip()
    block = last_answer(text)
    if block is not None:
        # A policy must not write two guesses, of which the last or the first would be taken.
        if answer.count(OPEN) > 1 or (answer and not answer.endswith(CLOSE)):
            raise _Fault("several answers")
        answer = block.strip()
    if not answer:
        raise _Fault("no answer")
    return answer


def _spots_in(written: str, form: str, text_around: bool) -> list[Spot]:
    """The boxes or points of an answer; _Fault if it has none that could be right."""
    try:
        spots = read_spots(written, text_around)
    except NotJson as error:
        reason = error.reason if error.reason in RULES else "unreadable"
        raise _Fault(reason, str(error)) from None
    except NotBoxes as error:
        raise _Fault("unreadable", str(error)) from None
    if not spots:
        raise _Fault("no box")
    if len(spots) > MOST:
        raise _Fault("too many", f"it has {len(spots):,}")
    for spot in spots:
        if spot.form != form:
            raise _Fault("other form", f"a {form} is asked for, got {spot}")
        if spot.is_empty:
            raise _Fault("empty box", str(spot))
    return spots


def _reason(table: Sequence[Sequence[_Pair]], pairs: Sequence[_Pair]) -> str:
    """What of an answer is wrong. table: a row of pairs for each gold. pairs: those that are made."""
    # In the order in which RULES has them: an answer with several faults gets the first.
    columns = list(zip(*table, strict=True))
    if len(table) != len(columns):
        return "wrong number"
    if len(pairs) == len(table) and all(pair.is_right for pair in pairs):
        return "correct"
    for column in columns:
        if not any(pair.has_label for pair in column):
            return "wrong label"
    return "wrong place"


# The completions of a group have the same row.
_read_gold = lru_cache(maxsize=1024)(read_gold)


def _gold(value: Any) -> list[Spot]:
    return _read_gold(value if isinstance(value, str) else json.dumps(value, default=str))


def _canvas(value: Any) -> tuple[float, float] | None:
    """The width and the height of the coordinates; None if a row does not say them."""
    if value is None or value == "":
        return None
    try:
        width, height = json.loads(value) if isinstance(value, str) else value
        sides = float(width), float(height)
    except (TypeError, ValueError):
        raise NotBoxes(f"expected [width, height], got {value!r:.60}") from None
    if not all(0 < side < float("inf") for side in sides):
        raise NotBoxes(f"expected [width, height], got {value!r:.60}")
    return sides


# --- for people


def _rules(
    asked: _Asked,
    spots: Sequence[Spot],
    table: Sequence[Sequence[_Pair]],
    met: dict[int, int],
) -> list[Rule]:
    """A rule for each right box or point, with the answer that it met, and for each answer left over."""
    golds, canvas = asked.golds, asked.canvas
    rules = []
    for index, gold in enumerate(golds[:_SHOWN]):
        name = f"right {gold.form} {index + 1}, {gold}"
        if index not in met:
            rules.append(Rule(name, False, "no answer meets it"))
            continue
        spot = spots[met[index]]
        pair = table[index][met[index]]
        detail = f"answer {met[index] + 1}, {spot}: {_nearness(gold, spot, canvas)}"
        rules.append(Rule(name, pair.is_right, detail))
    left_over = [index for index in range(len(spots)) if index not in met.values()]
    for index in left_over[:_SHOWN]:
        spot = spots[index]
        nearest = max(range(len(golds)), key=lambda gold: _closeness(golds[gold], spot))
        detail = f"{_nearness(golds[nearest], spot, canvas)} with right {nearest + 1}"
        if not table[nearest][index].has_label:
            detail += f", whose label is {golds[nearest].label!r:.60}"
        if canvas is not None and max(spot.at[0::2]) > canvas[0]:
            detail += f"; it lies outside of {canvas[0]:g} x {canvas[1]:g}: is its scale another?"
        rules.append(Rule(f"answer {index + 1}, {spot}, meets a right one", False, detail))
    return rules


def _closeness(gold: Spot, answer: Spot) -> float:
    if answer.form == BOX:
        return iou(gold, answer)
    middle = gold if gold.form == POINT else Spot(_middle(gold.at))
    return -distance(middle, answer, (1, 1))


def _nearness(gold: Spot, answer: Spot, canvas: Sequence[float] | None) -> str:
    if answer.form == BOX:
        return f"IoU {iou(gold, answer):.3f}"
    if gold.form == BOX:
        return "inside" if is_inside(answer, gold) else "outside"
    return f"distance {distance(gold, answer, canvas or (1, 1)):.3f}"


def _middle(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


# --- what must not be paid


def _tiles(canvas: Sequence[float]) -> list[Spot]:
    """The picture cut into 8 times 8 boxes."""
    width, height = canvas[0] / 8, canvas[1] / 8
    tiles = []
    for column in range(8):
        for row in range(8):
            x, y = column * width, row * height
            tiles.append(Spot((x, y, x + width, y + height)))
    return tiles


def _scaled(spots: Sequence[Spot], factor: float) -> list[Spot]:
    return [Spot(tuple(factor * number for number in spot.at), spot.label) for spot in spots]


def _attempts_of_boxes(golds: Sequence[Spot], canvas: Sequence[float] | None) -> list[Attempt]:
    """Boxes without work, as far as the size of the picture is known, and right ones that are hedged,
    of another scale or in another order.
    """
    attempts = []
    if canvas is not None:
        width, height = canvas
        whole = Spot((0, 0, width, height))
        middle = Spot((width / 4, height / 4, 3 * width / 4, 3 * height / 4))
        attempts += [
            Attempt("the whole picture as a box", in_json([whole])),
            Attempt("the middle of the picture as a box", in_json([middle])),
            Attempt("boxes all over the picture", in_json(_tiles(canvas))),
            Attempt("the right boxes and the whole picture", in_json([*golds, whole]), True),
        ]
    turned = [Spot((*gold.at[2:], *gold.at[:2]), gold.label) for gold in golds]
    attempts += [
        Attempt("the right boxes twice", in_json([*golds, *golds]), True),
        Attempt("the right boxes in a larger scale", in_json(_scaled(golds, 3)), True),
        Attempt("the right boxes in a smaller scale", in_json(_scaled(golds, 0.001)), True),
        Attempt("the right boxes with turned corners", in_json(turned), True),
    ]
    sizes = []
    for gold in golds:
        x1, y1, x2, y2 = gold.at
        sizes.append(Spot((x1, y1, x2 - x1, y2 - y1), gold.label))
    # A box in the picture's corner is nearly the same in both.
    if all(iou(gold, size) < 0.1 for gold, size in zip(golds, sizes, strict=True)):
        attempts.append(Attempt("the right boxes as x, y, w, h", in_json(sizes), True))
    return attempts


def _attempts_of_points(golds: Sequence[Spot], canvas: Sequence[float] | None) -> list[Attempt]:
    """The same for points."""
    points = []
    for gold in golds:
        points.append(gold if gold.form == POINT else Spot(_middle(gold.at), gold.label))
    attempts = [Attempt("the right points twice", in_json([*points, *points]), True)]
    if golds[0].form == BOX:
        attempts.append(Attempt("the right boxes for points", in_json(golds), True))
    if canvas is not None:
        middle = Spot((canvas[0] / 2, canvas[1] / 2))
        everywhere = [Spot(_middle(tile.at)) for tile in _tiles(canvas)]
        attempts += [
            Attempt("the middle of the picture as a point", in_json([middle])),
            Attempt("the corner of the picture as a point", in_json([Spot((0, 0))])),
            Attempt("points all over the picture", in_json(everywhere)),
        ]
        # A point near the picture's corner moves little.
        if all(distance(point, Spot((0, 0)), canvas) > 0.5 for point in points):
            smaller = in_json(_scaled(points, 0.001))
            attempts.append(Attempt("the right points in a smaller scale", smaller, True))
            larger = in_json(_scaled(points, 3))
            attempts.append(Attempt("the right points in a larger scale", larger, True))
    return attempts
