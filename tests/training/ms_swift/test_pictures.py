"""Pictures on the whole way to a model that sees: from files in the shapes of public datasets through
ms-swift's loader and its template.
"""

import base64
import io
import shutil

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
import numpy
import torch
from datasets import Dataset, Features, Image, List, Value
from PIL import Image as Pillow
from swift.dataset import load_dataset
from swift.model import get_processor
from swift.template import get_template
from swift.utils import import_external_file

from paths import DATASETS, ROOT
from pictures import content, dots, write_dots
from small_models import TOKENS_OF_A_PICTURE, VISION_MODEL_TYPE, save_vision_model
from swift_rlvr.utils.jsonl import write_jsonl

pytestmark = [pytest.mark.slow, pytest.mark.product]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    import_external_file(str(ROOT / "plugin" / "rlvr_plugin.py"))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    model = save_vision_model(tmp_path_factory.mktemp("model"))
    template = get_template(get_processor(str(model), model_type=VISION_MODEL_TYPE))
    template.set_mode("train")
    return template


def encoded(template, name, folder):
    """Each row of a dataset as its model gets it."""
    rows = load_dataset(name, remove_unused_columns=False, load_from_cache_file=False)[0]
    return [(row, template.encode(dict(row))) for row in rows]


def shown(template, row) -> list[torch.Tensor]:
    """What the model sees: the pictures of an encoded row, one after another."""
    pixels = row.get("pixel_values")
    return [] if pixels is None else list(pixels)


def pixels_of(template, image) -> torch.Tensor:
    processor = template.processor.image_processor
    return processor([image.convert("RGB")], return_tensors="pt")["pixel_values"][0]


def holds(folder, form):
    """Three rows about one, two and three dots, whose pictures are held in some form."""
    rows = []
    for count in (1, 2, 3):
        held = content(dots(count))
        name = f"{count}.png"
        (folder / name).write_bytes(held)
        values: dict[str, dict] = {
            "path": {"image": name},
            "paths": {"images": [name]},
            "object": {"images": [{"path": name}]},
            "base64": {"image": base64.b64encode(held).decode("ascii")},
            "data URI": {"image_url": {"url": "data:image/png;base64," + base64.b64encode(held).decode("ascii")}},
            "numbered": {"image_1": name, "image_2": None},
        }  # fmt: skip
        rows.append({**values[form], "question": "How many dots are there?", "answer": str(count)})
    file = folder / "rows.jsonl"
    write_jsonl(file, rows)
    return f"math:{file}"


@pytest.mark.parametrize("form", ["path", "paths", "object", "base64", "data URI", "numbered"])
def test_the_model_sees_the_picture_of_its_row(template, tmp_path, monkeypatch, form):
    name = holds(tmp_path, form)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    rows = encoded(template, name, tmp_path)
    assert len(rows) == 3
    token = template.image_token_index
    for count, (row, inputs) in enumerate(rows, start=1):
        assert row["solution"] == str(count)
        (pixels,) = shown(template, inputs)
        assert torch.allclose(pixels.float(), pixels_of(template, dots(count)).float(), atol=1e-2)
        assert inputs["input_ids"].count(token) == TOKENS_OF_A_PICTURE
        # In front of the question, in the user's turn.
        text = template.tokenizer.decode([each for each in inputs["input_ids"] if each != token])
        assert "USER: \nHow many dots are there?" in text


@pytest.mark.parametrize("is_list", [True, False])
def test_parquet_of_hugging_faces_library(template, tmp_path, is_list):
    pictures = [dots(count) for count in (1, 2)]
    values = [[picture] for picture in pictures] if is_list else pictures
    feature = List(Image()) if is_list else Image()
    features = Features({"images": feature, "problem": Value("string"), "answer": Value("string")})
    table = {"images": values, "problem": ["<image>How many?"] * 2, "answer": ["1", "2"]}
    Dataset.from_dict(table, features=features).to_parquet(tmp_path / "train.parquet")
    rows = encoded(template, f"math:{tmp_path / 'train.parquet'}", tmp_path)
    for count, (_, inputs) in enumerate(rows, start=1):
        (pixels,) = shown(template, inputs)
        assert torch.allclose(pixels.float(), pixels_of(template, dots(count)).float(), atol=1e-2)


def test_rows_with_and_without_pictures_in_one_file(template, tmp_path):
    """A path, bytes, two pictures and none: every column keeps one type, and no row loses its own."""
    (tmp_path / "one.png").write_bytes(content(dots(1)))
    held = base64.b64encode(content(dots(2))).decode("ascii")
    rows: list[dict] = [
        {"task": "math", "image": "one.png", "question": "How many?", "answer": "1"},
        {"task": "math", "question": "What is 1 + 1?", "answer": "2"},
        {
            "task": "qa",
            "images": [held, "one.png"],
            "question": "<image> or <image>?",
            "answer": "a",
        },
        {"task": "choice", "question": "Which?", "choices": ["a", "b"], "answer": "B"},
    ]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    loaded = encoded(template, f"mixed:{tmp_path / 'rows.jsonl'}", tmp_path)
    assert [len(shown(template, inputs)) for _, inputs in loaded] == [1, 0, 2, 0]
    assert [row["task"] for row, _ in loaded] == ["math", "math", "qa", "choice"]
    first, second = shown(template, loaded[2][1])
    assert torch.allclose(first.float(), pixels_of(template, dots(2)).float(), atol=1e-2)
    assert torch.allclose(second.float(), pixels_of(template, dots(1)).float(), atol=1e-2)


def test_what_ms_swift_makes_of_a_transparent_drawing(template, tmp_path):
    """The reason why `pictures.content_of` refuses one: it is black all over."""
    drawing = Pillow.new("RGBA", (56, 56), (0, 0, 0, 0))
    drawing.paste((0, 0, 0, 255), (5, 5, 30, 30))
    file = io.BytesIO()
    drawing.save(file, "PNG")
    row = {
        "messages": [{"role": "user", "content": "<image>What is it?"}],
        "images": [{"bytes": file.getvalue(), "path": None}],
    }
    (pixels,) = shown(template, template.encode(row))
    assert len(numpy.unique(pixels[0].float().numpy())) == 1


def test_unreadable_pictures_end_the_loading(tmp_path):
    file = write_dots(tmp_path / "data", range(1, 16))
    for count in range(1, 12):
        (tmp_path / "data" / "pictures" / f"{count}.png").write_bytes(b"<html>404</html>")
    with pytest.raises(ValueError, match="unreadable picture: 11") as caught:
        load_dataset(f"math:{file}", load_from_cache_file=False)
    assert "column 'image': " in str(caught.value) and "1.png: cannot be read as a picture" in str(
        caught.value
    )


def test_pictures_that_went_away_end_the_loading_too(tmp_path):
    """Before a training begins, which lets the error pass."""
    shutil.copytree(DATASETS / "pictures", tmp_path / "pictures")
    for path in (tmp_path / "pictures").glob("dots_*.png"):
        path.unlink()
    with pytest.raises(ValueError, match="dots_0.png"):
        load_dataset(f"math:{tmp_path}/pictures/dots.jsonl", load_from_cache_file=False)


def test_the_model_sees_the_pictures_in_parts_of_messages_and_none_in_code(template, tmp_path):
    rows = []
    for count in (1, 2):
        (tmp_path / f"{count}.png").write_bytes(content(dots(count)))
        parts = [
            {"type": "text", "text": "What is `<image>` in HTML, and how many dots are in "},
            {"type": "image_url", "image_url": {"url": f"{count}.png"}},
            {"type": "text", "text": "?"},
        ]
        rows.append({"messages": [{"role": "user", "content": parts}], "answer": str(count)})
    write_jsonl(tmp_path / "rows.jsonl", rows)
    for count, (_, inputs) in enumerate(
        encoded(template, f"math:{tmp_path / 'rows.jsonl'}", tmp_path), start=1
    ):
        (pixels,) = shown(template, inputs)
        assert torch.allclose(pixels.float(), pixels_of(template, dots(count)).float(), atol=1e-2)
