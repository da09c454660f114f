"""Pictures in the shapes of public datasets: what reaches the trainer, and where the prompt shows it;
what cannot be read is refused.
"""

import base64
import io
import json
from pathlib import Path

import pytest
from datasets import Dataset, Features, Image, List, Value
from PIL import Image as Pillow

from pictures import content, dots, write_dots
from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.runs.records import Record
from swift_rlvr.tasks import TASKS, RowError, unread_columns
from swift_rlvr.tasks.pictures import name_of, named, placed, with_pictures
from swift_rlvr.tasks.sources import parse_source, undecoded

ONE, TWO = content(dots(1)), content(dots(2), "JPEG")
BASE64 = base64.b64encode(ONE).decode("ascii")


def asked(prepared) -> str:
    return prepared["messages"][-1]["content"]


def held(prepared) -> list[bytes]:
    return [picture["bytes"] for picture in prepared.get("images", [])]


URI = f"data:image/png;base64,{BASE64}"


def part(text):
    return {"type": "text", "text": text}


def shown(uri):
    return {"type": "image_url", "image_url": {"url": uri}}


LETTER = "Answer with the letter of the right choice."
WHO = {"question": "Who?", "answer": "Tom"}
# In the columns of R1-V's CLEVR, Geometry3K, MathVista, MMMU, ScienceQA, and others.
SHAPES = [
    ("math", {"image": ONE, "problem": "How many?", "solution": "<answer> 3 </answer>"}, "<image>How many?", [ONE]),
    (
        "math",
        {"images": [{"bytes": ONE, "path": None}], "problem": "<image>Find x.", "answer": "48"},
        "<image>Find x.",
        [ONE],
    ),
    (
        "math",
        {
            "pid": "1",
            "image": "images/1.jpg",
            "decoded_image": {"bytes": ONE, "path": None},
            "question": "How many are left?",
            "choices": None,
            "answer": "4",
            "query": "Hint: ... Question: How many are left?",
        },
        "<image>How many are left?",
        [ONE],
    ),
    (
        "choice",
        {
            "question": "Compare <image 2> with <image 1>. Which is larger?",
            "options": "['<image 1>', '<image 2>']",
            "answer": "B",
            "image_1": {"bytes": ONE, "path": "a.png"},
            "image_2": {"bytes": TWO, "path": "b.png"},
            "image_3": None,
        },
        f"Compare <image> with <image>. Which is larger?\n\nA. <image>\nB. <image>\n\n{LETTER}",
        [TWO, ONE, ONE, TWO],
    ),
    (
        "choice",
        {"image": {"bytes": ONE, "path": None}, "question": "Which?", "choices": ["a b", "c d"], "answer": 0},
        f"<image>Which?\n\nA. a b\nB. c d\n\n{LETTER}",
        [ONE],
    ),
    (
        "math",
        {"decoded_image": {"bytes": ONE}, "question": "See <image1>. How many?", "answer": "4"},
        "See <image>. How many?",
        [ONE],
    ),
    ("qa", {"image": BASE64, **WHO}, "<image>Who?", [ONE]),
    ("qa", {"image_url": {"url": f"data:image/png;base64,{BASE64}"}, **WHO}, "<image>Who?", [ONE]),
    ("qa", {"img": {"bytes": BASE64}, **WHO}, "<image>Who?", [ONE]),
    (
        "qa",
        {"images": [ONE, TWO], "question": "Is it <image> or <image>?", "answer": "Tom"},
        "Is it <image> or <image>?",
        [ONE, TWO],
    ),
    ("qa", {**WHO, "images": [ONE, TWO], "question": "Is it <image>?"}, "<image>Is it <image>?", [ONE, TWO]),
    ("qa", {"images": [ONE], "context": "A cat.", **WHO}, "<image>A cat.\n\nWho?", [ONE]),
    ("qa", {**WHO, "images": [ONE], "question": "Why `<image 3>`?"}, "<image>Why `<image 3>`?", [ONE]),
    # ms-swift would put a picture wherever the tag stands.
    ("qa", {**WHO, "images": [ONE], "question": "Why `<image>`?"}, "<image>Why `< image >`?", [ONE]),
    ("qa", {**WHO, "question": "Why `<image>` or `<video>`?"}, "Why `< image >` or `< video >`?", []),
    (
        "qa",
        {"messages": [{"role": "user", "content": [part("Is "), shown(URI), part(" one?")]}], "answer": "Tom"},
        "Is <image> one?",
        [ONE],
    ),
    (
        "math",
        {"prompt": [{"role": "user", "content": [{"type": "image"}, part("How many?")]}], "image": ONE, "answer": "1"},
        "<image>How many?",
        [ONE],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "row", "prompt", "pictures"), SHAPES)
def test_every_picture_reaches_the_trainer_in_its_place(kind, row, prompt, pictures):
    prepared = TASKS[kind].preprocess(row)
    assert asked(prepared) == prompt
    assert held(prepared) == pictures
    # A row without pictures beside it gets none.
    without = {name: value for name, value in row.items() if "image" not in name and name != "img"}
    if "image" not in str(without):
        assert "images" not in TASKS[kind].preprocess(without)


def test_a_picture_that_a_library_has_opened(tmp_path):
    """A dataset of Hugging Face's library gives Pillow's objects unless it is told not to."""
    features = Features({"images": List(Image()), "image": Image(), "q": Value("string")})
    dataset = Dataset.from_dict(
        {"images": [[dots(1)]], "image": [dots(2)], "q": ["Who?"]}, features=features
    )
    row = {"question": "Who?", "answer": "Tom"}
    opened = TASKS["qa"].preprocess({**row, "image": dataset[0]["image"]})["images"]
    assert Pillow.open(io.BytesIO(opened[0]["bytes"])).size == (60, 40)
    as_stored = undecoded(dataset)[0]
    assert set(as_stored["image"]) == set(as_stored["images"][0]) == {"bytes", "path"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("nix.png", "column 'image': there is no file 'nix.png' beside the data file"),
        (b"", "an empty file"),
        (b"<html>Not found</html>", "cannot be read as a picture"),
        (b"version https://git-lfs.github.com/spec/v1\n", "cannot be read as a picture"),
        (ONE[:-40], "cannot be read as a picture"),
        (TWO[:-200], "cannot be read as a picture"),
        ({"bytes": ONE[:100], "path": "a.png"}, "a.png: cannot be read as a picture"),
        ({"bytes": None, "path": "nix.png"}, "there is no file 'nix.png'"),
        ("data:image/png;base64,AAAA", "cannot be read as a picture"),
        (f"data:image/png;base64,{BASE64[:-3]}", "not base64"),
        ([ONE, "nix.png"], "there is no file 'nix.png'"),
        # Too many bytes for a file's name, and nobody's home.
        ("图" * 90 + ".png", "there is no file '图"),
        ("~nobody_at_all/a.png", "there is no file '~nobody"),
        (7, "expected a picture as a path"),
    ],
)
def test_a_picture_that_cannot_be_read_is_refused(value, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"image": value, "question": "<image>Who?", "answer": "Tom"}
    with pytest.raises(RowError, match=problem):
        TASKS["qa"].preprocess(row)


def test_a_drawing_that_is_all_transparency_is_refused():
    """ms-swift drops the transparency: the model would see a black square."""
    image = Pillow.new("RGBA", (20, 20), (0, 0, 0, 0))
    image.paste((0, 0, 0, 255), (5, 5, 9, 9))
    row = {"question": "Who?", "answer": "Tom"}
    with pytest.raises(RowError, match="its transparency, which ms-swift drops"):
        TASKS["qa"].preprocess({**row, "image": content(image)})
    for visible in (dots(1, "RGBA"), dots(1, "P"), dots(1, "L"), Pillow.new("RGB", (9, 9))):
        TASKS["qa"].preprocess({**row, "image": content(visible)})


def test_a_url_is_kept_and_not_opened():
    row = {"image": "https://example.org/a.png", "question": "Who?", "answer": "Tom"}
    assert TASKS["qa"].preprocess(row)["images"] == [{"bytes": None, "path": row["image"]}]


def test_paths_count_from_the_folder_of_the_data(tmp_path, monkeypatch):
    file = write_dots(tmp_path / "data")
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    rows, left_out = parse_source(f"math:{file}").usable_rows()
    assert len(rows) == 8 and not left_out
    prepared = TASKS["math"].preprocess(rows[0][1])
    assert prepared["images"] == [{"bytes": None, "path": str(tmp_path / "data/pictures/1.png")}]
    # A column of another name, renamed by a flag.
    file.write_text(file.read_text().replace('"image"', '"thumb"'))
    rows, _ = parse_source(f"math:{file}", columns={"thumb": "image"}).usable_rows()
    assert TASKS["math"].preprocess(rows[0][1])["images"] == prepared["images"]
    (tmp_path / "data/pictures/3.png").unlink()
    _, left_out = parse_source(f"math:{file}", columns={"thumb": "image"}).usable_rows()
    assert "line 3: column 'image': there is no file 'pictures/3.png'" in left_out


def test_the_same_question_about_another_picture_is_another(tmp_path):
    first, second = (
        {"image": held, "question": "How many?", "options": ["1", "2"], "answer": "A"}
        for held in (ONE, TWO)
    )
    for kind in ("math", "choice", "qa"):
        identity = TASKS[kind].identity
        assert identity(first) != identity(second)
        assert identity(first) == identity({**first, "image": {"bytes": ONE, "path": "x.png"}})
    questions = set()
    for row in (first, second):
        prepared = TASKS["qa"].preprocess(row)
        kept = {"images": named(prepared["images"])}
        record = Record(index=0, completion="", rewards={}, row=kept, messages=prepared["messages"])
        questions.add(record.question)
        assert len(record.question) < 1000
    assert len(questions) == 2


def test_messages_for_a_server():
    messages = [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": "Is <image> left of <image>?"},
    ]
    one, two = ({"bytes": held, "path": None} for held in (ONE, TWO))
    system, user = with_pictures(messages, [one, two])
    assert system == messages[0]
    assert [part["type"] for part in user["content"]] == [
        "text",
        "image_url",
        "text",
        "image_url",
        "text",
    ]
    url = user["content"][1]["image_url"]["url"]
    assert url == f"data:image/png;base64,{BASE64}"
    assert user["content"][3]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    # As ms-swift does where nothing shows them.
    (_, user) = with_pictures([messages[0], {"role": "user", "content": "Who?"}], [one])
    assert [part["type"] for part in user["content"]] == ["image_url", "text"]
    assert with_pictures(messages, []) == messages
    with pytest.raises(RowError, match="the question has <image> 2 times, and the row has 1 image"):
        placed(messages, [one])


def test_what_is_shown_is_a_name():
    assert name_of({"bytes": None, "path": "a/b.png"}) == "a/b.png"
    assert name_of({"bytes": ONE, "path": None}).endswith(" 60x40)")
    row = {"image": ONE, "question": "How many?", "answer": "1"}
    shown = ask(TASKS["math"], row)
    assert "<image>How many?" in shown.prompt


@pytest.mark.parametrize("orientation", [2, 3, 6, 8])
def test_a_picture_that_only_exif_turns_is_refused(orientation):
    """vLLM turns it for the rollouts, and ms-swift does not for the training."""
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    dots(1).save(file, "JPEG", exif=exif)
    row = {"image": file.getvalue(), "question": "How many?", "answer": "1"}
    with pytest.raises(RowError, match=f"'image': .*its EXIF orientation is {orientation}: vLLM"):
        TASKS["math"].preprocess(row)


def test_a_picture_that_exif_does_not_turn_is_taken():
    exif = Pillow.Exif()
    exif[0x0112] = 1
    file = io.BytesIO()
    dots(1).save(file, "JPEG", exif=exif)
    row = {"image": file.getvalue(), "question": "How many?", "answer": "1"}
    assert held(TASKS["math"].preprocess(row)) == [file.getvalue()]


@pytest.mark.parametrize("mode", ["I;16", "I"])
def test_a_picture_of_more_than_8_bits_is_refused_where_it_would_be_white(mode):
    """As RGB its values end at 255: six pictures of one to six dots were all the same white one."""
    row = {"question": "How many?", "answer": "1"}
    dark, bright = (content(Pillow.new(mode, (30, 30), value), "TIFF") for value in (255, 256))
    assert held(TASKS["math"].preprocess({**row, "image": dark})) == [dark]
    with pytest.raises(RowError, match="'image': .*above 255, and ms-swift makes"):
        TASKS["math"].preprocess({**row, "image": bright})


def test_a_picture_that_is_but_a_line_is_refused():
    row = {"question": "How many?", "answer": "1"}
    line, strip = (content(Pillow.new("RGB", (width, 2))) for width in (402, 400))
    assert held(TASKS["math"].preprocess({**row, "image": strip})) == [strip]
    with pytest.raises(RowError, match="'image': .* 402 x 2 pixels; Qwen's models refuse"):
        TASKS["math"].preprocess({**row, "image": line})


def test_numbers_of_pictures_do_not_move_over_an_empty_column():
    row = {"answer": "1", "image_1": None, "image_2": ONE, "image_3": TWO}
    with pytest.raises(RowError, match="numbers its images, and image_1 is empty before others"):
        TASKS["math"].preprocess({**row, "question": "What is in <image 2>?"})
    assert held(TASKS["math"].preprocess({**row, "question": "Which?"})) == [ONE, TWO]


def test_a_number_may_follow_without_a_space():
    # As MathVision writes it
    row = {"question": "<image2> or <image1>?", "answer": "1"}
    assert held(TASKS["math"].preprocess({**row, "images": [ONE, TWO]})) == [TWO, ONE]
    with pytest.raises(RowError, match="the row has 0 images"):
        TASKS["math"].preprocess(row)


def test_a_question_that_numbers_its_pictures_is_read():
    row: dict = {"question": "What is in <image 1>?", "options": ["a", "b"], "answer": "A"}
    row = {**row, "image_1": ONE, "subfield": "Arts"}
    assert unread_columns(TASKS["choice"], row) == ["subfield"]


def test_parts_of_messages_that_no_prompt_can_hold_are_refused_with_what_could():
    turn = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA"}}]}
    with pytest.raises(RowError, match="OpenAI's parts of the types text and image_url"):
        TASKS["qa"].preprocess({"messages": [turn], "answer": "Tom"})


@pytest.mark.parametrize("task", ["qa", "math", "json", "instructions", "boxes"])
def test_parts_are_read_by_each_task_that_takes_pictures(task):
    turn = {
        "role": "user",
        "content": [part("Who is that?"), {"type": "image_url", "image_url": URI}],
    }
    row = {"messages": [turn], "answer": "12", "schema": {}, "bbox": [5, 5, 30, 30]}
    row |= {"constraints": [{"id": "detectable_format:title"}]}
    prepared = TASKS[task].preprocess(row)
    assert asked(prepared).startswith("Who is that?<image>") and held(prepared) == [ONE]


def test_pictures_in_parts_lie_beside_the_data_too(tmp_path):
    (tmp_path / "1.png").write_bytes(ONE)
    turn = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "1.png"}}, part("Who?")],
    }
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"messages": [turn], "answer": "Tom"}))
    ((_, row),) = parse_source(f"qa:{file}").rows()
    (picture,) = TASKS["qa"].preprocess(row)["images"]
    assert Path(picture["path"]) == tmp_path / "1.png"


def test_a_warning_about_a_picture_names_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(Pillow, "MAX_IMAGE_PIXELS", 2000)
    dots(1).resize((61, 41)).save(tmp_path / "large.png")
    row = {"image": str(tmp_path / "large.png"), "question": "Who?", "answer": "Tom"}
    with pytest.warns(Pillow.DecompressionBombWarning, match="large.png: Image size"):
        TASKS["qa"].preprocess(row)
