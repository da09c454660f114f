"""Pictures in the commands: what they show, what they write, and what they refuse."""

import base64
import importlib.util
import json

import pytest
from datasets import Dataset, Features, Image, Value
from PIL import Image as Pillow

from commands import ran, refused
from paths import DATASETS, ROOT
from pictures import content, dots, write_dots
from small_models import save_vision_model
from swift_rlvr.adapters.rows import FORMATS, PARQUET
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl

DOTS = f"math:{DATASETS}/pictures/dots.jsonl"
SHAPES = f"choice:{DATASETS}/pictures/shapes.jsonl"


@pytest.mark.parametrize("name", [DOTS, SHAPES])
def test_every_row_of_the_sample_is_fine(name):
    printed = ran("dataset", "check", name)
    assert "8 rows with pictures, all opened" in printed
    assert "Every gold earns the maximum of external_accuracy, external_format." in printed
    findings = json.loads(ran("dataset", "check", name, "--json"))
    assert (findings["with_pictures"], findings["bad"], findings["duplicates"]) == (8, 0, 0)


def test_the_sample_is_what_its_script_draws(tmp_path):
    """The files may differ by the version of Pillow, and the pictures may not."""
    spec = importlib.util.spec_from_file_location("drawn", ROOT / "scripts" / "draw_pictures.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for path in sorted((DATASETS / "pictures").glob("*.*")):
        if path.suffix == ".png":
            drawn = Pillow.open(tmp_path / path.name)
            assert drawn.tobytes() == Pillow.open(path).convert(drawn.mode).tobytes(), path.name
        elif path.suffix == ".jsonl":
            assert (tmp_path / path.name).read_text() == path.read_text()


def test_one_broken_picture_is_named_and_the_check_fails_where_all_are(tmp_path):
    file = write_dots(tmp_path / "data")
    (tmp_path / "data/pictures/3.png").write_bytes(b"")
    printed = ran("dataset", "check", f"math:{file}", columns=400)
    assert "line 3: column 'image': " in printed and "3.png: cannot be read as a picture" in printed
    assert "Every gold" not in printed and "1 of 8 rows are bad" in printed
    for path in (tmp_path / "data/pictures").iterdir():
        path.unlink()
    printed = ran("dataset", "check", f"math:{file}", code=1, columns=400)
    assert "cannot be used: no picture" in printed and "no good row is left" in printed


def test_rows_that_lost_their_picture_are_counted(tmp_path):
    held = base64.b64encode(content(dots(3))).decode("ascii")
    rows = [{"image": image, "question": "How many?", "answer": "3"} for image in (held, "", None)]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    printed = ran("dataset", "check", f"math:{tmp_path / 'rows.jsonl'}")
    assert "1 row with pictures, all opened; 2 rows without" in printed


def test_rows_that_all_lost_their_picture_contradict_each_other(tmp_path):
    golds = ("3", "4", "3", "5", "three")
    rows = [{"images": [], "question": "How many?", "answer": gold} for gold in golds]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    printed = ran("dataset", "check", f"math:{tmp_path / 'rows.jsonl'}", columns=400)
    assert "2 rows: an earlier row asks the same, with another gold (line 2: 4 and 3)" in printed
    assert "Every gold earns" not in printed


def test_a_leak_is_the_same_question_about_the_same_picture(tmp_path):
    file = write_dots(tmp_path / "data", (1, 2, 3))
    other = write_dots(tmp_path / "other", (3, 4))
    printed = ran("dataset", "check", f"math:{file}", "--against", f"math:{other}", code=1)
    assert "line 3: is also in" in printed and "line 1: is also in" not in printed


def test_a_row_is_shown_with_the_place_and_the_name_of_its_picture(tmp_path):
    model = save_vision_model(tmp_path / "model")
    printed = ran("dataset", "show", DOTS, "--model", model, "--row", 2, columns=200)
    assert "tokens beside 1 picture" in printed
    assert "<image>How many blue dots are there?" in printed
    assert "dots_1.png" in printed and "\\x89PNG" not in printed


def test_prepared_rows_keep_pictures_that_lie_in_the_file(tmp_path):
    features = Features({"image": Image(), "problem": Value("string"), "answer": Value("string")})
    table = {"image": [dots(1), dots(2)], "problem": ["How many?"] * 2, "answer": ["1", "2"]}
    Dataset.from_dict(table, features=features).to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out.jsonl"
    ran("dataset", "prepare", f"math:{tmp_path / 'rows.parquet'}", "--out", out)
    for count, (_, row) in enumerate(read_jsonl(out), start=1):
        (picture,) = TASKS["math"].preprocess(row)["images"]
        assert picture["bytes"] == content(dots(count))


@pytest.mark.parametrize("format", FORMATS)
def test_formats_without_pictures_refuse_them(tmp_path, format):
    suffix = ".parquet" if format in PARQUET else ".jsonl"
    out = tmp_path / f"out{suffix}"
    message = refused("dataset", "prepare", DOTS, "--format", format, "--out", out)
    assert "rows have images, which go to ms-swift alone" in message and not out.exists()


def test_conversations_for_supervised_training(tmp_path):
    out = tmp_path / "sft.jsonl"
    ran("dataset", "make", "sft", DOTS, "--out", out)
    rows = [row for _, row in read_jsonl(out)]
    assert len(rows) == 8
    assert [row["images"] for row in rows] == [
        [f"{DATASETS}/pictures/dots_{number}.png"] for number in range(8)
    ]
    # What was written is a dataset again, in which no picture is lost.
    source = parse_source(f"math:{out}")
    prepared = [source.task.preprocess(row) for _, row in source.rows()]
    assert [row["solution"] for row in prepared] == [str(number + 1) for number in range(8)]
    assert all(len(row["images"]) == 1 for row in prepared)
