"""boxes:FILE: the columns of public data sets, scales and sizes, and the rows that are refused."""

import base64
import io
import json
import struct
import zlib

import pytest

from paths import ROOT
from present import present
from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError, unread_columns
from swift_rlvr.tasks.boxes import BoxSettings
from swift_rlvr.tasks.coordinates import resized
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

TASK = TASKS["boxes"]
# A picture of 80 x 60, in which something is from (10, 15) to (30, 45).
PICTURE = TASK.examples[0]["images"][0]
BOX = [10, 15, 30, 45]
XYWH = [10.0, 15.0, 20.0, 30.0]
UNIT = [0.125, 0.25, 0.375, 0.75]
RELATIVE = [125, 250, 375, 750]
IN_JSON = json.dumps([{"bbox_2d": RELATIVE}])
REFCOCO = {
    "question_id": "469306",
    "image": PICTURE,
    "question": "Please carefully observe the area circled in the image and come up with a caption for it.",
    "answer": ["the red box", "box on the left"],
    "segmentation": [10.0, 15.0, 30.0, 45.0],
    "bbox": XYWH,
    "iscrowd": 0,
    "file_name": "COCO_train2014_1.jpg",
}
VLM_R1 = {
    "image": PICTURE,
    "problem": "Please provide the bounding box coordinate of the region this sentence describes: red box.",
    "solution": f"<answer>{BOX}</answer>",
    "normal_caption": "red box",
}
CONVERSATIONS = {
    "id": 1,
    "image": PICTURE,
    "conversations": [
        {
            "from": "human",
            "value": "<image>Where is the red box? Think in <think> </think>, answer in <answer> </answer> tags.",
        },
        {"from": "gpt", "value": str(BOX)},
    ],
}
SCREENSPOT = {
    "file_name": "pc_1.png",
    "bbox": UNIT,
    "instruction": "close this window",
    "data_type": "icon",
    "data_source": "windows",
    "image": PICTURE,
}
SCREENSPOT_PRO = {
    "img_filename": "photoshop/1.png",
    "bbox": BOX,
    "instruction": "zoom in",
    "ui_type": "icon",
    "img_size": [80, 60],
    "image": "https://example.com/1.png",
}
MS_SWIFT = {
    "messages": [
        {"role": "user", "content": "<image>Find <ref-object>."},
        {"role": "assistant", "content": "<bbox>"},
    ],
    "images": [PICTURE],
    "objects": {"ref": ["the red box"], "bbox": [BOX]},
}
MS_SWIFT_NORM1 = {
    "messages": [{"role": "user", "content": "<image>What is right of <bbox>?"}],
    "images": [PICTURE],
    "objects": {"ref": [], "bbox": [[0.0, 0.0, 0.1, 0.2], UNIT], "bbox_type": "norm1"},
}
HUGGING_FACE = {
    "image": PICTURE,
    "problem": "Where is the ball?",
    "objects": {"bbox": [XYWH], "category": [7], "area": [600.0], "iscrowd": [0]},
}
CPPE = {
    "image": PICTURE,
    "problem": "Where is the ball?",
    "objects": {"id": [1], "bbox": [XYWH], "category": [7], "area": [600.0]},
}
JXU = {
    "image_path": PICTURE,
    "bbox": BOX,
    "captions": ["the red box", "box"],
    "raw_image_info": '{"height": 60, "width": 80}',
}
QWEN = {
    "image": PICTURE,
    "question": "Where is it?",
    "answer": f'```json\n[{{"bbox_2d": {BOX}, "label": "box"}}]\n```',
}
INTERNVL = {
    "image": PICTURE,
    "conversations": [
        {"from": "human", "value": "<image>Where is the red box?"},
        {"from": "gpt", "value": f"<ref>red box</ref><box>[{BOX}]</box>"},
    ],
}
NAMED = {"image": PICTURE, "problem": "Where is it?", "bbox_xywh": XYWH}
NORMALISED = {
    "image": "https://example.com/1.png",
    "problem": "Where?",
    "normalized_bbox": RELATIVE,
}
SHAPES = {
    "lmms-lab/RefCOCO": REFCOCO,
    "VLM-R1": VLM_R1,
    "VLM-R1 conversations": CONVERSATIONS,
    "ScreenSpot": SCREENSPOT,
    "ScreenSpot-Pro": SCREENSPOT_PRO,
    "ms-swift": MS_SWIFT,
    "ms-swift norm1": MS_SWIFT_NORM1,
    "Hugging Face": HUGGING_FACE,
    "Hugging Face's cppe-5": CPPE,
    "jxu124/refcoco": JXU,
    "Qwen": QWEN,
    "InternVL": INTERNVL,
    "named": NAMED,
    "normalised": NORMALISED,
}
ASKED = {
    "lmms-lab/RefCOCO": "<image>Find this in the picture: the red box\n",
    "jxu124/refcoco": "<image>Find this in the picture: the red box\n",
    "ScreenSpot": "<image>Where in the picture do you click for this? close this window\n",
    "ms-swift": "<image>Find the red box.\n",
    "ms-swift norm1": "<image>What is right of [0, 0, 100, 200]?\n",
}


def grade(asked, completion):
    columns = {name: [asked.row.get(name)] for name in ("solution", "canvas", "asks_for")}
    ((reward, reason),) = REWARDS["box"]().grades([completion], **columns)
    return reward, reason


@pytest.mark.parametrize("name", SHAPES)
def test_public_columns_need_no_other_names(name):
    asked = ask(TASK, SHAPES[name])
    (spot,) = json.loads(asked.row["solution"])
    assert spot["bbox_2d"] == RELATIVE
    assert asked.row["canvas"] == [1000, 1000]
    assert asked.row["asks_for"] == ("point" if name.startswith("ScreenSpot") else "box")
    assert len(asked.row["images"]) == 1 and "objects" not in asked.row
    assert grade(asked, asked.graded) == (1.0, "correct")
    assert grade(asked, asked.answering("[0, 0, 1000, 1000]"))[0] == 0.0
    assert asked.prompt.startswith(ASKED.get(name, asked.prompt))
    assert "<bbox>" not in asked.prompt and "<ref-object>" not in asked.prompt
    assert TASK.unused(SHAPES[name]) == []
    assert "messages" not in unread_columns(TASK, SHAPES[name])


@pytest.mark.parametrize(
    ("coordinates", "at", "canvas", "words"),
    [
        ("relative", RELATIVE, [1000, 1000], "from 0 to 1000"),
        ("unit", UNIT, [1, 1], "from 0 to 1 of"),
        ("absolute", BOX, [80, 60], "in pixels"),
        ("resized", [10.5, 14, 31.5, 42], [84, 56], "in pixels"),
    ],
)
@pytest.mark.parametrize("row", [NAMED, MS_SWIFT_NORM1, VLM_R1], ids=("xywh", "norm1", "pixels"))
def test_answers_in_the_coordinates_that_the_prompt_asks_for_are_paid(
    monkeypatch, row, coordinates, at, canvas, words
):
    """... and those of another scale are not."""
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", coordinates)
    asked = ask(TASK, row)
    assert words in asked.prompt
    assert asked.row["canvas"] == canvas
    assert json.loads(asked.row["solution"]) == [{"bbox_2d": at}]
    for other in (RELATIVE, UNIT, BOX):
        is_near = all(abs(one - two) <= 3 for one, two in zip(other, at, strict=True))
        is_same = is_near and coordinates != "unit"
        expected = 1.0 if other == at or is_same and other == BOX else 0.0
        assert grade(asked, json.dumps(other))[0] == expected, other


@pytest.mark.parametrize(
    ("said", "coordinates", "scale", "message"),
    [
        ("", "relative", None, None),
        ("Answer in coordinates from 0 to 1000.", "relative", "absolute", None),
        ("Answer in coordinates from 0 to 1000.", "relative", None, "GOLD_COORDINATES to what"),
        ("Coordinates are normalized to [0, 1].", "relative", None, "take that sentence out"),
        ("Answer in pixel coordinates.", "resized", None, None),
        ("Answer in pixel coordinates.", "relative", None, "take that sentence out"),
        ("There are 0 to 1 red boxes.", "relative", None, None),
    ],
)
def test_a_question_that_says_another_scale_is_refused(
    monkeypatch, said, coordinates, scale, message
):
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", coordinates)
    if scale:
        monkeypatch.setenv("SWIFT_RLVR_GOLD_COORDINATES", scale)
    row = {"image": PICTURE, "problem": f"Where is the red box? {said}", "boxes": BOX}
    if message is None:
        assert grade(ask(TASK, row), ask(TASK, row).graded) == (1.0, "correct")
        return
    with pytest.raises(RowError, match=message):
        TASK.preprocess(row)


def test_the_form_of_the_prompt_is_what_the_reward_pays():
    rows = {
        '[{"bbox_2d": [x1, y1, x2, y2]}]': NAMED,
        '[{"point_2d": [x, y]}]': SCREENSPOT,
        '[{"bbox_2d": [x1, y1, x2, y2], "label": "..."}]': {
            **NAMED,
            "bbox_xywh": None,
            "boxes": [
                {"bbox_2d": BOX, "label": "cup"},
                {"bbox_2d": [40, 0, 50, 9], "label": "jug"},
            ],
        },
    }
    for form, row in rows.items():
        asked = ask(TASK, row)
        assert f": {form}, in coordinates from 0 to 1000" in asked.prompt
        assert asked.prompt.count("bbox_2d") + asked.prompt.count("point_2d") == 1
        written = present(asked.graded)
        assert [*json.loads(written)[0]] == [
            *json.loads(form.replace("x1, y1, x2, y2", "").replace("x, y", ""))[0]
        ]
        assert grade(asked, written) == (1.0, "correct")
    asked = ask(TASK, CONVERSATIONS)
    assert asked.form == "tags" and "nothing else" not in asked.prompt
    assert present(asked.graded).endswith(f"<answer>{IN_JSON}</answer>")


def test_the_page_shows_the_prompt_and_the_settings():
    page = (ROOT / "docs" / "rewards" / "boxes.md").read_text(encoding="utf-8")
    _, _, asked = ask(TASK, NAMED).prompt.partition("\n\n")
    assert f"`{asked}`" in page
    for name in ("COORDINATES", "GOLD_COORDINATES", "GOLD_BOXES", "ASKS_FOR"):
        assert f"`SWIFT_RLVR_{name}`" in page
        assert name.lower() in BoxSettings.__dataclass_fields__


def test_labels_are_asked_for_where_the_question_does_not_say_them():
    boxes = [{"bbox_2d": BOX, "label": "cup"}]
    row = {"image": PICTURE, "boxes": boxes}
    said = TASK.preprocess({**row, "problem": "Where is the cup?"})
    assert "label" not in said["solution"] and "label" not in said["messages"][-1]["content"]
    unsaid = TASK.preprocess({**row, "problem": "What is there?"})
    assert json.loads(unsaid["solution"])[0]["label"] == "cup"
    objects = {"ref": ["jug", "cup"], "bbox": [[1, 1, 9, 9], BOX]}
    messages = [
        {"role": "user", "content": "What is there beside <ref-object> at <bbox>?"},
        {"role": "assistant", "content": "<ref-object><bbox>"},
    ]
    prepared = TASK.preprocess({"messages": messages, "objects": objects, "images": [PICTURE]})
    assert json.loads(prepared["solution"]) == [{"bbox_2d": RELATIVE, "label": "cup"}]


def test_the_settings_say_how_a_file_is_read(monkeypatch):
    row = {"image": PICTURE, "problem": "Where?", "bbox": XYWH}
    assert json.loads(TASK.preprocess({**row, "bbox": BOX})["solution"]) == [{"bbox_2d": RELATIVE}]
    monkeypatch.setenv("SWIFT_RLVR_GOLD_BOXES", "xywh")
    assert TASK.preprocess(row)["solution"] == IN_JSON
    monkeypatch.setenv("SWIFT_RLVR_GOLD_BOXES", "xyxy")
    monkeypatch.setenv("SWIFT_RLVR_GOLD_COORDINATES", "relative")
    assert TASK.preprocess({**row, "bbox": RELATIVE})["solution"] == IN_JSON
    monkeypatch.setenv("SWIFT_RLVR_ASKS_FOR", "point")
    assert TASK.preprocess({**row, "bbox": RELATIVE})["asks_for"] == "point"
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", "percent")
    with pytest.raises(InputError, match="SWIFT_RLVR_COORDINATES: must be one of relative, unit"):
        TASK.preprocess(row)


def png(width, height):
    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes((width + 1) * height))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_the_size_of_an_image_is_read_from_wherever_it_is(tmp_path, monkeypatch):
    from PIL import Image

    content = png(80, 60)
    file = tmp_path / "a.png"
    file.write_bytes(content)
    monkeypatch.setenv("ROOT_IMAGE_DIR", str(tmp_path))
    images = [
        str(file),
        "a.png",
        [str(file)],
        {"path": str(file), "bytes": None},
        {"bytes": content, "path": None},
        PICTURE,
        base64.b64encode(png(80, 60)).decode() + " " * 2000,
        Image.open(io.BytesIO(content)),
    ]
    for image in images:
        row = {"image": image, "problem": "Where?", "bbox": BOX}
        assert TASK.preprocess(row)["solution"] == IN_JSON
    # Columns come first: an image may be a smaller copy.
    row = {"image": str(file), "problem": "Where?", "bbox": [20, 30, 60, 90]}
    assert TASK.preprocess({**row, "width": 160, "height": 120})["solution"] == IN_JSON


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**NAMED, "bbox_xywh": None}, "column 'boxes': no boxes in the columns image, problem"),
        ({**NAMED, "image": None}, "column 'images': no image in the columns"),
        ({**NAMED, "image": "missing.png"}, "column 'image': there is no file 'missing.png'"),
        ({**NAMED, "problem": None}, "column 'problem': no question in the columns"),
        (
            {**NAMED, "bbox_xywh": "left"},
            "column 'bbox_xywh': expected boxes or points, got 'left'",
        ),
        ({**NAMED, "bbox_xywh": [1, 2, 3]}, "column 'bbox_xywh': expected boxes or points"),
        ({**NAMED, "bbox_xywh": [1, 2, float("nan"), 4]}, "column 'bbox_xywh': expected boxes"),
        (
            {**NAMED, "bbox_xywh": [1, 2, 0, 4]},
            "column 'bbox_xywh': .* is no box: x1 < x2 and y1 < y2 are needed",
        ),
        (
            {**NAMED, "bbox_xywh": None, "bbox": [40, 30, 20, 20]},
            "column 'bbox': .* set SWIFT_RLVR_GOLD_BOXES=xywh",
        ),
        (
            {**NAMED, "bbox_xywh": None, "bbox": RELATIVE},
            "column 'bbox': .* goes beyond the picture of 80 x 60; SWIFT_RLVR_GOLD_BOXES",
        ),
        (
            {**NAMED, "image": "https://example.com/1.png"},
            "column 'bbox_xywh': .* the size of the image is needed: columns width and height, img_size",
        ),
        (
            {**MS_SWIFT, "objects": {"ref": [], "bbox": [BOX], "image_id": [1]}},
            "column 'objects': a box is not of the first image",
        ),
        (
            {**MS_SWIFT_NORM1, "objects": {"ref": [], "bbox": [UNIT], "bbox_type": "norm1"}},
            "column 'objects': all its boxes stand in the question",
        ),
        (
            {**NAMED, "problem": "<image><image>Where?"},
            "column 'images': the question has <image> 2",
        ),
        (
            {**NAMED, "bbox_xywh": []},
            "column 'bbox_xywh': an empty list: a row of which nothing is right to find",
        ),
        (
            {**NAMED, "width": 60, "height": 80},
            "column 'images': the row says that it has 60 x 80 pixels, and it has 80 x 60",
        ),
    ],
)
def test_rows_that_cannot_be_used_say_why(row, message):
    with pytest.raises(RowError, match=message):
        TASK.preprocess(row)


def test_pixels_are_those_of_the_image_that_the_model_gets(monkeypatch):
    """The row's are of an image twice as large."""
    row = {"image": PICTURE, "problem": "Where?", "bbox": [20, 30, 60, 90]}
    row = {**row, "width": 160, "height": 120}
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", "absolute")
    prepared = TASK.preprocess(row)
    assert json.loads(prepared["solution"]) == [{"bbox_2d": BOX}]
    assert prepared["canvas"] == [80, 60]
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", "resized")
    assert TASK.preprocess(row)["canvas"] == list(resized(80, 60))


def test_pixels_need_no_size_where_pixels_are_asked_for(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", "absolute")
    prepared = TASK.preprocess({**NAMED, "image": "https://example.com/1.png"})
    assert json.loads(prepared["solution"]) == [{"bbox_2d": BOX}] and "canvas" not in prepared
    monkeypatch.setenv("SWIFT_RLVR_COORDINATES", "resized")
    with pytest.raises(RowError, match="the size of the image is needed"):
        TASK.preprocess({**NAMED, "image": "https://example.com/1.png"})


# (width, height) -> what smart_resize of qwen-vl-utils 0.0.14 gives.
@pytest.mark.parametrize(
    ("size", "tokens", "expected"),
    [
        ((80, 60), None, (84, 56)),
        ((640, 480), None, (644, 476)),
        ((10, 10), None, (56, 56)),
        ((1920, 1080), "1280", (1316, 728)),
        ((4000, 3000), "256", (504, 364)),
    ],
)
def test_the_size_that_qwen_sees(monkeypatch, size, tokens, expected):
    if tokens:
        monkeypatch.setenv("MAX_PIXELS", str(int(tokens) * 28 * 28))
        assert resized(*size) == expected
        monkeypatch.setenv("IMAGE_MAX_TOKEN_NUM", tokens)
        monkeypatch.setenv("MAX_PIXELS", "many")
    assert resized(*size) == expected


def test_a_size_that_cannot_be_read_names_its_variable(monkeypatch):
    monkeypatch.setenv("MAX_PIXELS", "many")
    with pytest.raises(InputError, match="MAX_PIXELS: must be a whole number"):
        resized(80, 60)


def test_the_same_question_of_another_picture_is_another_one():
    other = "data:image/png;base64," + base64.b64encode(png(80, 60)).decode()
    assert TASK.identity(NAMED) != TASK.identity({**NAMED, "image": other})
    assert TASK.identity(NAMED) == TASK.identity({**NAMED, "id": 3})


def test_the_check_says_where_the_whole_picture_is_paid(tmp_path):
    rows = [
        {"image": PICTURE, "problem": "Where is the sky?", "bbox": [0, 0, 80, 50]},
        {"image": PICTURE, "problem": "Where is the box?", "bbox": BOX},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    findings = check_dataset(parse_source(f"boxes:{file}"))
    assert dict(findings.remarks) == {
        "the whole picture as a box is paid, since the right box is as large": 1
    }
    earned = {each.strategy.name: each for each in findings.earned}
    assert earned["the whole picture as a box"].paid == [1]
    assert not any(each.strategy.knows_gold for each in findings.earned)
    file.write_text(json.dumps(rows[1]))
    findings = check_dataset(parse_source(f"boxes:{file}"))
    assert not findings.remarks and not findings.earned and not findings.doubts


def test_a_label_that_is_a_whole_number_is_asked_for_and_counts():
    row = {
        "image": PICTURE,
        "problem": "Which digits are there?",
        "boxes": [{"bbox_2d": BOX, "label": 3}],
    }
    prepared = TASK.preprocess(row)
    assert json.loads(prepared["solution"])[0]["label"] == "3"
    assert '"label": "..."' in prepared["messages"][-1]["content"]
    at = json.loads(prepared["solution"])[0]["bbox_2d"]
    answers = [json.dumps([{"bbox_2d": at, "label": label}]) for label in (3, "3", 4, True)]
    columns = {name: [prepared[name]] * 4 for name in ("solution", "canvas", "asks_for", "task")}
    assert REWARDS["box"]()(answers, **columns) == [1.0, 1.0, 0.0, 0.0]


def test_the_check_names_right_boxes_that_contradict_each_other(tmp_path):
    asked = {"image": PICTURE, "problem": "Where is the box?"}
    near = [BOX[0], BOX[1], BOX[2], BOX[3] - 1]
    rows = [{**asked, "bbox": BOX}, {**asked, "bbox": near}, {**asked, "bbox": [50, 20, 70, 50]}]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    findings = check_dataset(parse_source(f"boxes:{file}"))
    ((line, golds),) = findings.row_doubts["contradictions"]
    assert line == 3 and golds.count("bbox_2d") == 2
    assert any(
        "an earlier row asks the same, with another gold" in each for each in findings.doubts
    )


@pytest.mark.parametrize(
    ("width", "beyond", "said", "doubted"),
    [
        (1600, None, None, True),
        (1600, [1100, 900, 1500, 1100], None, False),
        (1000, None, None, False),
        (1600, None, "relative", False),
        (1600, None, "absolute", False),
    ],
)
def test_the_check_doubts_pixels_that_end_at_1000_in_larger_pictures(
    tmp_path, monkeypatch, width, beyond, said, doubted
):
    if said:
        monkeypatch.setenv("SWIFT_RLVR_GOLD_COORDINATES", said)
    path = tmp_path / "rows.jsonl"
    rows = []
    for number in range(12):
        box = beyond if beyond and number == 7 else [40 * number, 300, 500 + 40 * number, 740]
        size = {"width": width, "height": width * 3 // 4}
        question = f"Where is part {number}?"
        rows.append({"image": PICTURE, "problem": question, "boxes": box, **size})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_dataset(parse_source(f"boxes:{path}"))
    assert found.bad == 0
    doubt = "12 rows: the picture has more than 1,000 pixels a side, and no box goes beyond 1000"
    assert any(doubt in each for each in found.doubts) == doubted
