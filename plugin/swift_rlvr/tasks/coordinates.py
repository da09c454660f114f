"""The scales of boxes in a picture, and how right boxes come from a row's scale into that of answers."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swift_rlvr.tasks.task import RowError
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.boxes import BOX, Spot

# Scales: 0 to 1000, 0 to 1, pixels of the image, and pixels of the image as Qwen2.5-VL sees it.
RELATIVE, UNIT, ABSOLUTE, RESIZED = "relative", "unit", "absolute", "resized"
# Two corners, or a corner, width and height.
XYXY, XYWH = "xyxy", "xywh"
GOLD_COORDINATES = f"{PREFIX}GOLD_COORDINATES"
GOLD_BOXES = f"{PREFIX}GOLD_BOXES"
# A question that speaks of coordinates may say their scale itself.
_COORDINATES = re.compile(r"coordinat|normali[sz]ed", re.IGNORECASE)
_SAID = {
    RELATIVE: re.compile(r"\b0 ?(?:to|and|-|–|,) ?(?:999|1,?000)\b"),
    UNIT: re.compile(r"\b0 ?(?:to|and|-|–|,) ?1\b(?![.,]?\d)"),
    ABSOLUTE: re.compile(r"\b(?:in|absolute) pixels?\b|\bpixel coordinates\b"),
}
# How far a box may leave its picture, as a share of that.
_BEYOND = 0.01
# Sides that were rounded, as to multiples of 28, may distort a small picture so much.
_MOST_DISTORTED = 1.25
# Qwen2-VL's and Qwen2.5-VL's side of a token, and how many tokens a picture may have.
_TOKEN_SIDE = 28
_FEWEST_TOKENS, _MOST_TOKENS = 4, 16384


@dataclass(frozen=True)
class Change:
    """From the coordinates of a row to those of answers.

    scale, form: the row's. size: the width and height that the row's pixels are of, from its columns or
    else its image; seen: those of the image itself, which a model gets. None if nobody knows.
    """

    scale: str
    form: str
    coordinates: str
    size: tuple[int, int] | None
    seen: tuple[int, int] | None
    column: str

    @property
    def canvas(self) -> tuple[int, int] | None:
        """The width and the height of answers."""
        return _sides(self.coordinates, self.seen)

    def of(self, spot: Spot) -> Spot:
        """RowError if a box is empty, lies outside of the picture, or the picture's size lacks."""
        at = self._corners(spot)
        before, after = self._canvases(spot, at)
        digits = 4 if self.coordinates == UNIT else 2
        numbers = []
        for number, old, new in zip(at, before * 2, after * 2, strict=False):
            changed = round(number * new / old, digits)
            numbers.append(int(changed) if changed == int(changed) else changed)
        answer = Spot(tuple(numbers), spot.label)
        if answer.is_empty:
            problem = f"{spot} is too small for answers in {self.coordinates} coordinates"
            raise RowError("boxes", problem, "box that is too small", self.column)
        return answer

    def _corners(self, spot: Spot) -> tuple[float, ...]:
        """The numbers of a point, or of a box's two corners."""
        at = spot.at
        if self.form == XYWH and spot.form == BOX:
            x, y, width, height = at
            at = (x, y, x + width, y + height)
        if Spot(at).is_empty:
            problem = (
                f"{spot} is no box: x1 < x2 and y1 < y2 are needed; where it is x, y, width and "
                f"height, set {GOLD_BOXES}={XYWH}"
            )
            raise RowError("boxes", problem, "box that is empty", self.column)
        return at

    def _canvases(
        self, spot: Spot, at: tuple[float, ...]
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """The sides of the row's coordinates and of the answers'."""
        before, after = _sides(self.scale, self.size), self.canvas
        if before is not None:
            for number, side in zip(at, before * 2, strict=False):
                if not -_BEYOND * side <= number <= (1 + _BEYOND) * side:
                    problem = (
                        f"{spot} goes beyond the picture of {before[0]} x {before[1]}; {GOLD_BOXES} "
                        f"({XYXY}, {XYWH}) and {GOLD_COORDINATES} ({RELATIVE}, {UNIT}, {ABSOLUTE}) "
                        "say how boxes are read"
                    )
                    raise RowError("boxes", problem, "box beyond the picture", self.column)
        if self.scale == self.coordinates and before == after:
            return (1, 1), (1, 1)
        if before is None or after is None:
            problem = (
                f"its numbers are {self.scale} and answers are {self.coordinates}, so the size of "
                "the image is needed: columns width and height, img_size, or an image whose "
                "file can be read, with the package pillow"
            )
            raise RowError("boxes", problem, "no size of the image", self.column)
        return before, after


def _sides(scale: str, size: tuple[int, int] | None) -> tuple[int, int] | None:
    """The largest coordinates of a scale; None if they are the unknown size of an image."""
    if scale == UNIT:
        return 1, 1
    if scale == RELATIVE:
        return 1000, 1000
    return resized(*size) if scale == RESIZED and size is not None else size


def resized(width: int, height: int) -> tuple[int, int]:
    """The size that Qwen2.5-VL gets an image in: sides that are multiples of 28, and not more or fewer
    tokens than the variables say that ms-swift reads.

    Source: smart_resize of the package qwen-vl-utils.

    >>> resized(640, 480)
    (644, 476)
    """
    fewest = _tokens("IMAGE_MIN_TOKEN_NUM", "MIN_PIXELS", _FEWEST_TOKENS) * _TOKEN_SIDE**2
    most = _tokens("IMAGE_MAX_TOKEN_NUM", "MAX_PIXELS", _MOST_TOKENS) * _TOKEN_SIDE**2
    sides = [max(1, round(side / _TOKEN_SIDE)) for side in (width, height)]
    pixels = sides[0] * sides[1] * _TOKEN_SIDE**2
    if pixels > most:
        factor = math.sqrt(width * height / most) * _TOKEN_SIDE
        sides = [max(1, math.floor(side / factor)) for side in (width, height)]
    elif pixels < fewest:
        factor = math.sqrt(fewest / (width * height)) / _TOKEN_SIDE
        sides = [math.ceil(side * factor) for side in (width, height)]
    return sides[0] * _TOKEN_SIDE, sides[1] * _TOKEN_SIDE


def _tokens(variable: str, of_pixels: str, default: int) -> int:
    for name, side in ((variable, 1), (of_pixels, _TOKEN_SIDE**2)):
        text = os.environ.get(name, "").strip()
        if text:
            if not text.isdecimal() or int(text) < side:
                raise InputError(f"must be a whole number, at least {side}, got {text!r}", name)
            return int(text) // side
    return default


def scale_of(spots: Iterable[Spot]) -> str:
    """The scale of numbers of which nothing is said: no box has less than a pixel."""
    largest = max(max(spot.at) for spot in spots)
    return UNIT if largest <= 1 else ABSOLUTE


def require_one_scale(question: str, coordinates: str, scale: str, is_said: bool) -> None:
    """RowError if a question says another scale than the rest of its prompt, or than the right boxes
    seem to have and nothing but their numbers says so.
    """
    if not _COORDINATES.search(question):
        return
    for said, pattern in _SAID.items():
        if not pattern.search(question):
            continue
        if said != (ABSOLUTE if coordinates == RESIZED else coordinates):
            problem = (
                f"the question asks for {said} coordinates, and the prompt for {coordinates} ones: "
                f"take that sentence out of the question, or set {PREFIX}COORDINATES"
            )
            raise RowError("problem", problem, "question with another scale")
        if said != scale and not is_said:
            problem = (
                f"the question asks for {said} coordinates, and the right boxes look {scale}: set "
                f"{GOLD_COORDINATES} to what they are ({RELATIVE}, {UNIT}, {ABSOLUTE})"
            )
            raise RowError("boxes", problem, "boxes whose scale is not known")


def require_one_shape(size: Sequence[int], seen: Sequence[int]) -> None:
    """RowError if a row's size is that of no smaller or larger copy of its image."""
    wider, higher = seen[0] / size[0], seen[1] / size[1]
    if max(wider, higher) > _MOST_DISTORTED * min(wider, higher):
        problem = (
            f"the row says that it has {size[0]} x {size[1]} pixels, and it has {seen[0]} x {seen[1]}; "
            "is it turned or cropped, or are width and height swapped?"
        )
        raise RowError("images", problem, "image of another shape")
