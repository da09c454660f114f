"""Small pictures for tests, and files of rows with them."""

import io
from pathlib import Path

from PIL import Image, ImageDraw

from swift_rlvr.utils.jsonl import write_jsonl


def dots(count: int, mode: str = "RGB") -> Image.Image:
    """So many red dots on white."""
    image = Image.new("RGB", (60, 40), "white")
    draw = ImageDraw.Draw(image)
    for number in range(count):
        left, top = 4 + 14 * (number % 4), 6 + 16 * (number // 4)
        draw.ellipse((left, top, left + 9, top + 9), fill="red")
    return image.convert(mode)


def content(image: Image.Image, kind: str = "PNG") -> bytes:
    """The bytes of its file."""
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def write_dots(folder: Path, counts=(1, 2, 3, 4, 5, 6, 7, 8)) -> Path:
    """A file of rows in CLEVR's columns, and its pictures in a folder beside it."""
    (folder / "pictures").mkdir(parents=True)
    rows = []
    for count in counts:
        name = f"pictures/{count}.png"
        dots(count).save(folder / name)
        solution = f"<answer> {count} </answer>"
        rows.append({"image": name, "problem": "How many dots are there?", "solution": solution})
    file = folder / "dots.jsonl"
    write_jsonl(file, rows)
    return file
