"""Draw the pictures of datasets/pictures and write their rows: dots to count, a shape to name.

python scripts/draw_pictures.py
"""

import json
import random
from pathlib import Path

from PIL import Image, ImageDraw

FOLDER = Path(__file__).parents[1] / "datasets" / "pictures"
SIZE = 112  # pixels, four patches of Qwen2.5-VL's 28
SHAPES = ("circle", "square", "triangle", "star")
COLOURS = {"red": (200, 40, 40), "green": (40, 150, 60), "blue": (40, 80, 200)}
SEED = 46


def dots(count: int, colour: str, draw: random.Random) -> Image.Image:
    """So many dots of a colour, none of which touch, and up to three grey ones beside them."""
    image = Image.new("RGB", (SIZE, SIZE), "white")
    pen = ImageDraw.Draw(image)
    cells = [(column, row) for column in range(4) for row in range(4)]
    draw.shuffle(cells)
    for number, (column, row) in enumerate(cells[: count + draw.randrange(4)]):
        left = 28 * column + draw.randint(2, 8)
        top = 28 * row + draw.randint(2, 8)
        fill = COLOURS[colour] if number < count else (150, 150, 150)
        pen.ellipse((left, top, left + 17, top + 17), fill=fill)
    return image


def shape(name: str, colour: str, draw: random.Random) -> Image.Image:
    """One shape somewhere."""
    image = Image.new("RGB", (SIZE, SIZE), "white")
    pen = ImageDraw.Draw(image)
    left, top, size = draw.randint(6, 40), draw.randint(6, 40), draw.randint(40, 64)
    fill = COLOURS[colour]
    if name == "circle":
        pen.ellipse((left, top, left + size, top + size), fill=fill)
    elif name == "square":
        pen.rectangle((left, top, left + size, top + size), fill=fill)
    elif name == "triangle":
        corners = [(left + size // 2, top), (left, top + size), (left + size, top + size)]
        pen.polygon(corners, fill=fill)
    else:
        middle = left + size / 2, top + size / 2
        # In quarters of half its size: four points, and four corners between them.
        quarters = ((0, -4), (1, -1), (4, 0), (1, 1), (0, 4), (-1, 1), (-4, 0), (-1, -1))
        points = [(middle[0] + x * size / 8, middle[1] + y * size / 8) for x, y in quarters]
        pen.polygon(points, fill=fill)
    return image


def main(folder: Path = FOLDER) -> None:
    draw = random.Random(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    counting = []
    for number in range(8):
        colour = draw.choice(list(COLOURS))
        name = f"dots_{number}.png"
        dots(number + 1, colour, draw).save(folder / name, optimize=True)
        # In the columns of R1-V's CLEVR.
        problem = f"<image>How many {colour} dots are there?"
        counting.append(
            {"image": name, "problem": problem, "solution": f"<answer> {number + 1} </answer>"}
        )
    choosing = []
    for number in range(8):
        right, colour = SHAPES[number % 4], draw.choice(list(COLOURS))
        choices = list(SHAPES)
        draw.shuffle(choices)
        name = f"shape_{number}.png"
        shape(right, colour, draw).save(folder / name, optimize=True)
        # In the columns of ScienceQA.
        question = "Which shape is in the picture?"
        choosing.append(
            {
                "image": name,
                "question": question,
                "choices": choices,
                "answer": choices.index(right),
            }
        )
    for file, rows in (("dots.jsonl", counting), ("shapes.jsonl", choosing)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
