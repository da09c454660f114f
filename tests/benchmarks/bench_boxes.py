"""external_box beside the IoU of pycocotools, the pairing of scipy, the size in which qwen-vl-utils
shows an image to Qwen2.5-VL, and two rewards of others.

Boxes are drawn with a seed: sides between a fiftieth and nine tenths of the picture, in pictures of
COCO's sizes, so that some are small and some are most of the picture. Each row is answered rightly in
every form that is read, with boxes near the right one, and with what must not be paid. The rewards of
others are restated here by what they do, in a few lines each:

- VLM-R1 (`iou_reward`): the first answer block, in it the first four numbers in brackets, its IoU with
  a pixel added to the sides; counted as paid from 0.5 on
- whole numbers: the same of four whole numbers, without a further pixel, and 1 above 0.5, as other
  trainings do it with torchvision's box_iou

    pip download --no-deps pycocotools==2.0.11 qwen-vl-utils==0.0.14
    for wheel in pycocotools-*.whl qwen_vl_utils-*.whl; do unzip -q $wheel -d peers; done

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_boxes.py peers [--rows N] [--out FILE.jsonl]
Prints a table and, last, one line of JSON. --out gets the answers on which two differ. Exits with 1
where a right answer is not paid, where one is paid that must not be, or where our IoU, pairing or size
is another one. scipy and numpy have to be installed.
"""

import argparse
import ast
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import numpy as np
from rich.console import Console
from rich.table import Table

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.coordinates import resized
from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.boxes import Spot, best_pairs, iou

Box = tuple[int, int, int, int]
SIZES = ((640, 480), (480, 640), (640, 427), (500, 375), (1920, 1080))
_NUMBER = r"\s*(-?\d*\.?\d+)\s*"
_FOUR_NUMBERS = re.compile(rf"\[{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]")
_FOUR_INTEGERS = re.compile(r"\[(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\]")
_BLOCK = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
# What a change makes of a right box: paid where it is right, not paid, or by the IoU.
RIGHT, WRONG, BY_IOU = "right", "wrong", "by IoU"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("peers", type=Path, help="the folder in which the packages lie")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    missed = compare_iou(options.peers) + compare_pairs() + compare_sizes(options.peers)

    drawn = random.Random(46)
    answers = []
    for _ in range(options.rows):
        width, height = drawn.choice(SIZES)
        gold = drawn_box(drawn, width, height)
        for change, expected, text in answers_of(gold, width, height, drawn):
            answers.append((gold, (width, height), change, expected, text))
    golds = [json.dumps(gold) for gold, *_ in answers]
    canvases = [canvas for _, canvas, *_ in answers]
    texts = [text for *_, text in answers]
    start = time.process_time()
    ours = REWARDS["box"]()(texts, solution=golds, canvas=canvases)
    speeds = {OURS: len(texts) / (time.process_time() - start)}
    theirs = {}
    for name, reward in (("VLM-R1", vlm_r1), ("whole numbers", integers_above_half)):
        start = time.process_time()
        theirs[name] = [reward(text, gold) for text, (gold, *_) in zip(texts, answers, strict=True)]
        speeds[name] = len(texts) / (time.process_time() - start)

    counts: dict[str, Counter[str]] = {}
    differing = []
    wrong_verdicts: Counter[str] = Counter()
    for index, (gold, canvas, change, expected, text) in enumerate(answers):
        count = counts.setdefault(change, Counter())
        count["answers"] += 1
        count[OURS] += ours[index] == 1.0
        verdicts = {name: paid[index] >= 0.5 for name, paid in theirs.items()}
        for name, is_paid in verdicts.items():
            count[name] += is_paid
        if expected != BY_IOU and (ours[index] == 1.0) != (expected == RIGHT):
            wrong_verdicts[change] += 1
        if any(is_paid != (ours[index] == 1.0) for is_paid in verdicts.values()):
            verdict = {"ours": ours[index], **verdicts}
            differing.append(
                {"change": change, "gold": gold, "canvas": canvas, "text": text, **verdict}
            )
    if options.out:
        write_jsonl(options.out, differing)
    missed += sorted(wrong_verdicts)
    return report(counts, speeds, len(differing), missed)


OURS = "external_box"


def drawn_box(drawn: random.Random, width: int, height: int) -> Box:
    sides = []
    for side in (width, height):
        length = max(8, int(side * 0.02 * 45 ** drawn.random()))
        start = drawn.randint(0, side - length)
        sides.append((start, start + length))
    (x1, x2), (y1, y2) = sides
    return x1, y1, x2, y2


def answers_of(
    gold: Box, width: int, height: int, drawn: random.Random
) -> Iterator[tuple[str, str, str]]:
    """(change, what it has to earn, completion) for a right box."""
    x1, y1, x2, y2 = gold
    other = drawn_box(drawn, width, height)
    while iou(Spot(gold), Spot(other)) >= 0.1:
        other = drawn_box(drawn, width, height)
    right, wrong = json.dumps(gold), json.dumps(other)

    def tagged(text: str) -> str:
        return f"<think>I look at it.</think><answer>{text}</answer>"

    yield "right, [x1, y1, x2, y2]", RIGHT, tagged(right)
    yield "right, bbox_2d", RIGHT, tagged(f'[{{"bbox_2d": {right}, "label": "cup"}}]')
    yield "right, in a block", RIGHT, tagged(f'```json\n{{"bbox_2d": {right}}}\n```')
    yield "right, floats", RIGHT, tagged(json.dumps([float(number) for number in gold]))
    yield "right, without tags", RIGHT, f"<think>I look at it.</think>{right}"
    yield "right, <box>", RIGHT, tagged(f"<box>({x1},{y1}),({x2},{y2})</box>")
    for share in (0.05, 0.15, 0.3):
        moved = []
        for number, length in zip(gold, (x2 - x1, y2 - y1) * 2, strict=True):
            moved.append(max(0, round(number + drawn.uniform(-share, share) * length)))
        if moved[0] < moved[2] and moved[1] < moved[3]:
            yield f"edges moved by up to {share:.0%}", BY_IOU, tagged(json.dumps(moved))
    yield "another place", WRONG, tagged(wrong)
    whole = Spot((0, 0, width, height))
    is_large = iou(Spot(gold), whole) >= 0.5
    yield "whole picture", RIGHT if is_large else WRONG, tagged(json.dumps(whole.at))
    yield "right and wrong box", WRONG, tagged(f"[{right}, {wrong}]")
    yield "right or wrong box", WRONG, tagged(f"{right} or {wrong}")
    yield "two answer blocks", WRONG, f"{tagged(right)}<answer>{wrong}</answer>"
    yield "denied", WRONG, tagged(f"It is not {right}.")
    yield "in the thinking alone", WRONG, f"<think><answer>{right}</answer></think>I do not know."
    yield "turned corners", WRONG, tagged(json.dumps((x2, y2, x1, y1)))
    scaled = (x1 * 1000 / width, y1 * 1000 / height, x2 * 1000 / width, y2 * 1000 / height)
    yield "scale of 0 to 1000", BY_IOU, tagged(json.dumps([round(number) for number in scaled]))
    yield "x, y, width, height", BY_IOU, tagged(json.dumps((x1, y1, x2 - x1, y2 - y1)))


# --- rewards of others


def vlm_r1(text: str, gold: Box) -> float:
    block = _BLOCK.search(text)
    found = _FOUR_NUMBERS.search(block[1]) if block else None
    if not found:
        return 0.0
    box = [float(number) for number in found.groups()]
    left, top = max(box[0], gold[0]), max(box[1], gold[1])
    right, bottom = min(box[2] - 1, gold[2] - 1), min(box[3] - 1, gold[3] - 1)
    both = 0.0
    if left < right and top < bottom:
        both = (right - left + 1) * (bottom - top + 1)
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, gold)]
    union = sum(areas) - both
    return both / union if union else 0.0


def integers_above_half(text: str, gold: Box) -> float:
    block = _BLOCK.search(text)
    found = _FOUR_INTEGERS.search(block[1] if block else text)
    if not found:
        return 0.0
    x1, y1, x2, y2 = (int(number) for number in found.groups())
    width = min(x2, gold[2]) - max(x1, gold[0])
    height = min(y2, gold[3]) - max(y1, gold[1])
    both = max(0, width) * max(0, height)
    union = (x2 - x1) * (y2 - y1) + (gold[2] - gold[0]) * (gold[3] - gold[1]) - both
    return float(bool(union) and both / union > 0.5)


# --- libraries


def compare_iou(peers: Path) -> list[str]:
    """The IoU of 40,000 pairs beside COCO's own."""
    sys.path.insert(0, str(peers))
    from pycocotools import mask

    drawn = random.Random(7)
    ones = [drawn_box(drawn, 640, 480) for _ in range(200)]
    others = [drawn_box(drawn, 640, 480) for _ in range(200)]
    as_sizes = [
        np.array([(x1, y1, x2 - x1, y2 - y1) for x1, y1, x2, y2 in boxes], dtype=np.float64)
        for boxes in (ones, others)
    ]
    theirs = mask.iou(*as_sizes, [0] * len(others))
    largest = 0.0
    for row, one in enumerate(ones):
        for column, other in enumerate(others):
            difference = abs(iou(Spot(one), Spot(other)) - theirs[row][column])
            largest = max(largest, difference)
    print(f"IoU beside pycocotools, 40,000 pairs: largest difference {largest:.1e}")
    return ["IoU"] if largest > 1e-9 else []


def compare_pairs() -> list[str]:
    """The sum of the best pairs of 2,000 tables beside scipy's."""
    from scipy.optimize import linear_sum_assignment

    drawn = random.Random(8)
    largest = 0.0
    for _ in range(2000):
        rows, columns = drawn.randint(1, 12), drawn.randint(1, 12)
        weights = [
            [drawn.choice((0.0, drawn.random())) for _ in range(columns)] for _ in range(rows)
        ]
        ours = sum(weights[row][column] for row, column in best_pairs(weights).items())
        theirs = np.array(weights)[linear_sum_assignment(weights, maximize=True)].sum()
        largest = max(largest, abs(ours - theirs))
    print(f"pairs beside scipy, 2,000 tables: largest difference {largest:.1e}")
    return ["pairs"] if largest > 1e-9 else []


def compare_sizes(peers: Path) -> list[str]:
    """20,000 sizes of images beside smart_resize, without the packages that its module imports."""
    source = (peers / "qwen_vl_utils" / "vision_process.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"math": math, "Optional": Optional, "Tuple": tuple}
    wanted = ("MAX_RATIO", "IMAGE_MIN_TOKEN_NUM", "IMAGE_MAX_TOKEN_NUM", "smart_resize")
    for statement in ast.parse(source).body:
        called = getattr(statement, "name", None)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            called = statement.targets[0].id
        if called in wanted or (called or "").endswith("_by_factor"):
            exec(ast.unparse(statement), names)

    drawn = random.Random(9)
    other = 0
    for _ in range(20_000):
        width, height = drawn.randint(30, 6000), drawn.randint(30, 6000)
        high, wide = names["smart_resize"](height, width, 28)
        other += resized(width, height) != (wide, high)
    print(f"sizes beside qwen-vl-utils, 20,000 images: {other} are others")
    return ["sizes"] if other else []


def report(
    counts: dict[str, Counter[str]], speeds: dict[str, float], differing: int, missed: list[str]
) -> int:
    table = Table("answer", "answers", *(f"{name} pays" for name in speeds))
    for change, count in counts.items():
        table.add_row(change, f"{count['answers']:,}", *(f"{count[name]:,}" for name in speeds))
    Console().print(table)
    total = sum(count["answers"] for count in counts.values())
    figures = {
        "answers": total,
        "differing": differing,
        "answers_a_second": {name: round(speed) for name, speed in speeds.items()},
    }
    print(json.dumps({**figures, "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
