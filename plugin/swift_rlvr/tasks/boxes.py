"""Where something is in a picture: `boxes:FILE`, a question or an expression, an image, and the right
boxes or points.

The question is looked for as `own.py` does it, the boxes under the names in `GOLDS`, as four numbers,
lists of them, text in any form that `swift_rlvr.verifiers.boxes` reads, or ms-swift's and Hugging
Face's `objects`. In ms-swift's rows `<ref-object>` and `<bbox>` of the question are filled in here, so
that the prompt is the same for every trainer, and no column `objects` is handed on.

The prompt ends with the form that is asked for, and with the scale of its coordinates: the setting
SWIFT_RLVR_COORDINATES. The right answer is brought into that scale, so that the reward compares numbers
of one kind. Where they have another one, the size of the image is needed, from columns or its file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.tasks.columns import (
    KEPT_NAMES,
    NAMES,
    PICTURES,
    VARIABLES,
    find_columns,
    kept_columns,
    parsed,
    unused_passages,
    value_at,
)
from swift_rlvr.tasks.coordinates import (
    ABSOLUTE,
    RELATIVE,
    RESIZED,
    UNIT,
    XYWH,
    XYXY,
    Change,
    require_one_scale,
    require_one_shape,
    scale_of,
)
from swift_rlvr.tasks.json_schema import JsonAnswerTask
from swift_rlvr.tasks.own import prompt_of, turns_of
from swift_rlvr.tasks.pictures import Picture, content_of, digests, placed
from swift_rlvr.tasks.task import Gold, Row, RowError, columns_named, normalised, shown, turns_text
from swift_rlvr.utils.settings import PREFIX, Settings, setting
from swift_rlvr.verifiers.answer_forms import TAGS, asked_form
from swift_rlvr.verifiers.answers import normalised_answer
from swift_rlvr.verifiers.boxes import BOX, POINT, NotBoxes, Spot, in_json, read_column

# The usual names of the columns, the likeliest first. A box is looked for in all of these, and in the
# last turn of the assistant; of the first ones nothing else is expected.
BOXES = (
    *("boxes", "bboxes", "bbox", "bbox_2d", "box", "bounding_box", "bounding_boxes", "gt_bbox"),
    *("gt_bboxes", "gt_boxes", "bbox_xyxy", "bbox_xywh", "bboxes_xyxy", "bboxes_xywh"),
    *("normalized_bbox", "objects", "points", "point", "point_2d"),
)
GOLDS = (
    *(*BOXES, "solution", "gold", "ground_truth", "reward_model.ground_truth", "answer", "target"),
    *("output", "response", "completion"),
)
# What is looked for, where a row has no question.
EXPRESSIONS = (
    *("expression", "referring_expression", "phrase", "ref", "refs", "raw_sentences"),
    *("captions", "caption", "normal_caption", "description", "objects.ref"),
)
_WIDTHS = ("width", "image_width", "img_width", "objects.width", "raw_image_info.width")
_HEIGHTS = ("height", "image_height", "img_height", "objects.height", "raw_image_info.height")
_SIZES = ("img_size", "image_size")
# Columns of COCO's annotations, whose boxes are x, y, width and height.
_OF_COCO = ("segmentation", "iscrowd", "objects.iscrowd", "objects.segmentation")
# What the objects of Hugging Face's detection sets have beside boxes of COCO's form, as cppe-5's.
_OF_DETECTION = ("objects.area",)
# ScreenSpot's columns, whose questions are answered with a click.
_OF_SCREENS = ("data_type", "ui_type")
_SCREEN_TYPES = ("text", "icon")
# By the scale, what the prompt says of coordinates.
COORDINATES = {
    RELATIVE: "in coordinates from 0 to 1000 of the picture's width and height",
    UNIT: "in coordinates from 0 to 1 of the picture's width and height",
    ABSOLUTE: "in pixels of the picture",
    RESIZED: "in pixels of the picture",
}
FORMS = {
    BOX: '[{"bbox_2d": [x1, y1, x2, y2]}]',
    POINT: '[{"point_2d": [x, y]}]',
}
_TAGS_OF_SWIFT = re.compile(r"<ref-object>|<bbox>")
ASKS = "Answer with JSON and nothing else, with one object for each {form}: {shown}, {coordinates}."
ASKS_IN_TAGS = "The answer is JSON, with one object for each {form}: {shown}, {coordinates}."
FIND = "Find this in the picture: {expression}"
CLICK = "Where in the picture do you click for this? {instruction}"


@dataclass(frozen=True)
class BoxSettings(Settings):
    """Which coordinates answers have, and which the right answers of a file."""

    coordinates: str = setting(
        RELATIVE,
        "The scale of answers: relative (0 to 1000, as Qwen3-VL, InternVL), unit (0 to 1), "
        "absolute (pixels of the image) or resized (pixels of the image as Qwen2.5-VL sees it).",
        choices=(RELATIVE, UNIT, ABSOLUTE, RESIZED),
    )
    gold_coordinates: str | None = setting(
        None,
        "The scale of right answers: relative, unit or absolute. By default what the row says, "
        "unit where no number is above 1, else absolute.",
        choices=(RELATIVE, UNIT, ABSOLUTE),
    )
    gold_boxes: str | None = setting(
        None,
        "xyxy (two corners) or xywh (a corner, width and height, as COCO). By default what the "
        "row says, else xyxy.",
        choices=(XYXY, XYWH),
    )
    asks_for: str | None = setting(
        None,
        "box or point: what is asked for. By default what the right answer is, and a point in "
        "ScreenSpot's rows.",
        choices=(BOX, POINT),
    )


@dataclass(frozen=True)
class _Written:
    """Right boxes as a row has them.

    scale, form: what the row says of their coordinates; empty if it says nothing.
    """

    column: str
    spots: list[Spot]
    scale: str = ""
    form: str = ""


@dataclass(frozen=True)
class _Asked:
    """What a row holds.

    golds: in the coordinates of answers. canvas: as in `Change`. used: the columns. pixels: as
    `unsaid_pixels` returns it.
    """

    messages: list[dict[str, Any]]
    golds: list[Spot]
    canvas: tuple[int, int] | None
    asks_for: str
    kept: dict[str, Any]
    used: list[str]
    pixels: tuple[float, int] | None


def _read(row: Row) -> _Asked:
    """RowError if a row lacks something, or it cannot be used."""
    settings = BoxSettings.from_environment()
    column, question = _question_of(row)
    text = _text_of(question)
    kept = kept_columns(row, text, text)
    kept.pop("objects", None)
    if not kept.get("images"):
        where = ", ".join(map(str, row)) or "none"
        usual = "they are looked for in images, image"
        raise RowError("images", f"no image in the columns {where}; {usual}")
    written = _golds_of(row, column, text)
    change = _change_of(row, written, kept["images"][0], settings)
    is_said = bool(settings.gold_coordinates or written.scale)
    require_one_scale(text, settings.coordinates, change.scale, is_said)
    golds = [change.of(spot) for spot in written.spots]
    right = written.spots[0].form
    if settings.asks_for == BOX and right == POINT:
        problem = f"{PREFIX}ASKS_FOR is box, and the right answer is a point"
        raise RowError("boxes", problem, in_file=written.column)
    # On a screen a click anywhere within the box is right.
    asks_for = settings.asks_for or (POINT if _is_screen(row) else right)
    filled = _filled(question, row, change)
    used = [column, written.column]
    messages = prompt_of({**row, column: filled}, filled, used)
    prompt = turns_text(messages)
    if not _needs_labels(golds, prompt):
        golds = [gold._replace(label=None) for gold in golds]
    last = messages[-1]
    form = asks(asks_for, golds, settings.coordinates, in_tags=asked_form(prompt) == TAGS)
    messages = [*messages[:-1], {**last, "content": f"{last['content']}\n\n{form}"}]
    messages, kept["images"] = placed(messages, kept["images"])
    pixels = None
    if not is_said and change.scale == ABSOLUTE and change.size is not None:
        pixels = max(max(spot.at) for spot in written.spots), max(change.size)
    return _Asked(messages, golds, change.canvas, asks_for, kept, used, pixels)


def _change_of(row: Row, written: _Written, image: Picture, settings: BoxSettings) -> Change:
    size = _size_in_columns(row)
    content = content_of(image)
    seen = (content.width, content.height) if content else size
    if size is not None and seen is not None:
        require_one_shape(size, seen)
    return Change(
        scale=settings.gold_coordinates or written.scale or scale_of(written.spots),
        form=settings.gold_boxes or written.form or XYXY,
        coordinates=settings.coordinates,
        size=size or seen,
        seen=seen,
        column=written.column,
    )


def asks(asks_for: str, golds: Sequence[Spot], coordinates: str, in_tags: bool) -> str:
    """What a prompt says of its answer."""
    form = FORMS[asks_for]
    if golds[0].label is not None:
        form = form.replace("]}", '], "label": "..."}')
    words = ASKS_IN_TAGS if in_tags else ASKS
    return words.format(form=asks_for, shown=form, coordinates=COORDINATES[coordinates])


def _needs_labels(golds: Sequence[Spot], prompt: str) -> bool:
    """Whether answers have to say the labels of boxes: not where the question does."""
    if any(gold.label is None for gold in golds):
        return False
    labels = {normalised_answer(gold.label or "") for gold in golds}
    return len(labels) > 1 or labels.pop() not in normalised_answer(prompt)


# --- the question


def _question_of(row: Row) -> tuple[str, Any]:
    """The column of the question, and the question; one that is made of an expression where the row
    has nothing but that.
    """
    # lmms-lab's RefCOCO asks for a caption; its answers say what is looked for.
    if _is_coco(row) and (answers := _texts(row.get("answer"))):
        return "answer", FIND.format(expression=answers[0].strip())
    boxes = columns_named(BOXES, row)
    for column in find_columns(row)["problem"]:
        question = value_at(row, column)
        if question is None or question == "" or column in boxes:
            continue
        if isinstance(question, str) and _is_screen(row):
            question = CLICK.format(instruction=question.strip())
        return column, question
    for column in columns_named(EXPRESSIONS, row):
        texts = _texts(value_at(row, column))
        if texts:
            return column, FIND.format(expression=texts[0].strip())
    where = ", ".join(map(str, row)) or "none"
    problem = f"no question in the columns {where}; set {VARIABLES['problem']} to name another"
    raise RowError("problem", problem)


def _is_coco(row: Row) -> bool:
    return any(value_at(row, name) is not None for name in columns_named(_OF_COCO, row))


def _is_screen(row: Row) -> bool:
    return any(row.get(name) in _SCREEN_TYPES for name in columns_named(_OF_SCREENS, row))


def _text_of(question: Any) -> str:
    """What a question says: a text, or a conversation up to the assistant's last turn."""
    question = parsed(question)
    if not isinstance(question, (list, tuple)):
        return str(question)
    turns = turns_of(question)
    if turns and turns[-1]["role"] == "assistant":
        turns.pop()
    return "\n".join(str(turn.get("content")) for turn in turns)


def _filled(question: Any, row: Row, change: Change) -> Any:
    """A question in which ms-swift's `<ref-object>` and `<bbox>` are what the row's `objects` say."""
    objects = parsed(row.get("objects"))
    if not isinstance(objects, Mapping):
        return question
    refs = iter(_texts(objects.get("ref")))
    boxes = iter(_lists(objects.get("bbox")))

    def value_of(tag: re.Match[str]) -> str:
        if tag[0] == "<ref-object>":
            return next(refs, tag[0])
        box = next(boxes, None)
        if box is None:
            return tag[0]
        (spot,) = _spots([box], change.column)
        return str(list(change.of(spot).at))

    question = parsed(question)
    if isinstance(question, str):
        return _TAGS_OF_SWIFT.sub(value_of, question)
    turns = []
    for turn in turns_of(question):
        content = turn.get("content")
        if isinstance(content, str):
            turn = {**turn, "content": _TAGS_OF_SWIFT.sub(value_of, content)}
        turns.append(turn)
    return turns or question


def _texts(value: Any) -> list[str]:
    """The texts of a list; none where something else is in it."""
    value = parsed(value)
    texts = value if isinstance(value, (list, tuple)) else [value]
    is_text = all(isinstance(each, str) and each.strip() for each in texts)
    return list(texts) if is_text else []


def _lists(value: Any) -> list[Any]:
    """The boxes of a column `bbox`, which may be one."""
    value = parsed(value)
    if not isinstance(value, (list, tuple)):
        return []
    is_one = bool(value) and not isinstance(value[0], (list, tuple))
    return [value] if is_one else list(value)


# --- the right boxes


def _golds_of(row: Row, question: str, asked: str) -> _Written:
    """The right boxes of a row. RowError if none of its columns holds any.

    question: its column. asked: its text.
    """
    # What may be the right boxes, the likeliest first; also the assistant's last turn.
    possible = {}
    for column in columns_named(GOLDS, row):
        value = parsed(value_at(row, column))
        if column != question and value is not None and value != "":
            possible[column] = value
    turns = turns_of(parsed(value_at(row, question)))
    if turns and turns[-1]["role"] == "assistant":
        possible[question] = turns[-1].get("content")

    empty = []
    problems = []
    for column, value in possible.items():
        if value == []:
            empty.append(column)
            continue
        try:
            if isinstance(value, Mapping) and "bbox" in value and column == "objects":
                return _in_objects(value, column, asked, row)
            spots = _spots(value, column)
        except RowError as error:
            problems.append(error)
            continue
        scale = ""
        if "norm" in column.casefold():
            scale = UNIT if scale_of(spots) == UNIT else RELATIVE
        return _Written(column, spots, scale, _form_of(column, row))
    if problems:
        raise problems[0]
    if empty:
        problem = "an empty list: a row of which nothing is right to find cannot be graded"
        raise RowError("boxes", problem, "no boxes", empty[0])
    where = ", ".join(map(str, row)) or "none"
    flag = """--columns '{"NAME OF THE BOXES": "boxes"}'"""
    raise RowError("boxes", f"no boxes in the columns {where}; rename them with {flag}")


def _spots(value: Any, column: str) -> list[Spot]:
    try:
        return read_column(value)
    except NotBoxes as error:
        problem = f"expected boxes or points, got {shown(value)}: {error}"
        raise RowError("boxes", problem, "boxes that cannot be read", column) from None


def _in_objects(objects: Mapping[str, Any], column: str, asked: str, row: Row) -> _Written:
    """The boxes of ms-swift's `objects` behind those that stand in the question, or of Hugging Face's."""
    # ms-swift fills its tags in the order of the conversation.
    in_question = asked.count("<bbox>")
    boxes = _lists(objects["bbox"])
    images = parsed(objects.get("image_id"))
    if isinstance(images, (list, tuple)) and any(images[in_question:]):
        raise RowError("boxes", "a box is not of the first image", in_file=column)
    spots = _spots(boxes, column)[in_question:]
    if not spots:
        raise RowError("boxes", "all its boxes stand in the question", in_file=column)

    labels = _texts(objects.get("ref"))[asked.count("<ref-object>") :]
    for name in ("ref", "category", "categories", "label", "labels"):
        texts = _texts(objects.get(name))
        if len(labels) != len(spots) and len(texts) == len(boxes):
            labels = texts[in_question:]
    if len(labels) == len(spots):
        spots = [Spot(spot.at, label) for spot, label in zip(spots, labels, strict=True)]
    scale = {"norm1": UNIT, "real": ABSOLUTE}.get(str(objects.get("bbox_type")), "")
    return _Written(column, spots, scale, _form_of(column, row))


def _form_of(column: str, row: Row) -> str:
    """Whether a box has two corners or a width and a height, as the row says it."""
    has_areas = any(value_at(row, name) is not None for name in columns_named(_OF_DETECTION, row))
    if XYWH in column.casefold() or _is_coco(row) or has_areas:
        return XYWH
    return XYXY if XYXY in column.casefold() else ""


# --- the image


def _size_in_columns(row: Row) -> tuple[int, int] | None:
    """The width and height of the first image in pixels, as columns say it; None if none does."""
    for column in columns_named(_SIZES, row):
        value = parsed(value_at(row, column))
        if isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_is_side, value)):
            return int(value[0]), int(value[1])
    sides = []
    for names in (_WIDTHS, _HEIGHTS):
        for column in columns_named(names, row):
            value = parsed(value_at(row, column))
            if isinstance(value, (list, tuple)) and value:
                value = value[0]
            if _is_side(value):
                sides.append(int(value))
                break
    if len(sides) == 2:
        return sides[0], sides[1]
    return None


def _is_side(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 1 <= value <= 1_000_000


# --- the task


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `images`, `solution` and `canvas` in JSON, `asks_for`
    and `task`.
    """
    asked = _read(row)
    prepared: dict[str, Any] = {"messages": asked.messages, "solution": in_json(asked.golds)}
    if asked.canvas is not None:
        prepared["canvas"] = list(asked.canvas)
    return {**prepared, "asks_for": asked.asks_for, "task": "boxes", **asked.kept}


def unsaid_pixels(row: Row) -> tuple[float, int] | None:
    """The largest number of a row's boxes and the longest side of its image, where the numbers are
    taken for pixels because nothing says what they are; else None.
    """
    return _read(row).pixels


def identity(row: Row) -> str:
    """The same text for rows that ask the same of the same picture."""
    asked = _read(row)
    text = normalised(turns_text(asked.messages))
    return f"{text}\n{digests(asked.kept['images'])}"


def gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    asked = _read(row)
    golds = asked.golds
    if asked.asks_for == POINT and golds[0].form == BOX:
        golds = []
        for box in asked.golds:
            x1, y1, x2, y2 = box.at
            middle = round((x1 + x2) / 2, 4), round((y1 + y2) / 2, 4)
            golds.append(Spot(middle, box.label))
    return Gold(in_json(golds))


@dataclass(frozen=True)
class BoxTask(JsonAnswerTask):
    """Boxes, or points, of a picture."""

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        present = list(present)
        questions = find_columns(present)["problem"]
        return {
            "problem": [*questions, *columns_named((*EXPRESSIONS, "answer"), present)],
            "images": columns_named(PICTURES, present),
            "boxes": [*columns_named(GOLDS, present), *questions],
        }

    def names_of(self, column: str) -> Sequence[str]:
        return {"problem": NAMES["problem"], "images": PICTURES, "boxes": GOLDS}[column]

    def variable_of(self, column: str) -> str | None:
        return VARIABLES.get(column)

    def read_columns(self, row: Row) -> list[str]:
        read = (*PICTURES, *_WIDTHS, *_HEIGHTS, *_SIZES, *_OF_COCO, *_OF_SCREENS, "objects")
        return [*_read(row).used, *columns_named(read, row)]

    def unused(self, row: Row) -> list[str]:
        asked = _read(row)
        used = [*asked.used, *columns_named((*GOLDS, *EXPRESSIONS, *PICTURES, *KEPT_NAMES), row)]
        # Of several questions one is asked, and lmms-lab's RefCOCO has another one than we need.
        used += find_columns(row)["problem"]
        prompt = turns_text(asked.messages)
        return unused_passages(row, used, prompt)


# A picture of 80 x 60 pixels with a red box from (10, 10) to (30, 40).
_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAFAAAAA8CAMAAADG+c2+AAAAFVBMVEX////IKCgoWsgooEbmtB54PKA8"
    "PDyIibSgAAAAKklEQVR42u3MMQ0AAAgDsOHfNAZ4COFrBTQBVmogFAqFQqFQKPwKAeCkATfqAlmD4FLwAAAAAElFTkSuQmCC"
)
TASK = BoxTask(
    name="boxes",
    columns=("problem", "images", "boxes"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system="",
    system_in_rows=False,
    prompt="\n".join(
        (ASKS, ASKS_IN_TAGS, FIND, CLICK, *FORMS.values(), *dict.fromkeys(COORDINATES.values()))
    ),
    reward_columns=("solution", "asks_for"),
    verifier="external_box",
    further_rewards=(),
    examples=(
        {
            "problem": "Where is the red box?",
            "images": [_PICTURE],
            "width": 80,
            "height": 60,
            "boxes": [10, 10, 30, 40],
        },
        {
            "problem": "Which shapes are there, and where?",
            "images": [_PICTURE],
            "width": 80,
            "height": 60,
            "boxes": [{"bbox_2d": [10, 10, 30, 40], "label": "red box"}],
        },
    ),
)
