"""The walk-through of GRPO runs as it stands and shows what is stored in it."""

import io
import json
import math
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from matplotlib import image

from grpo.notebook_outputs import WALKTHROUGH, code_cells, execute, stored

NOTEBOOK = json.loads(WALKTHROUGH.read_text(encoding="utf-8"))
CELLS = code_cells(NOTEBOOK)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
HINT = "run `python tests/grpo/notebook_outputs.py` if the new output is right"


@pytest.fixture(scope="module")
def shown():
    """What the cells show now; run in a process of its own, since other tests import ms-swift."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(execute, WALKTHROUGH).result(timeout=1800)


def same_text(a: str, b: str) -> bool:
    """Whether both are the same words in the same lines, and their numbers equal, fractions up to
    0.1% or 0.0002.
    """
    numbers = [NUMBER.findall(text) for text in (a, b)]
    words = [[NUMBER.sub("#", line).split() for line in text.splitlines()] for text in (a, b)]
    return words[0] == words[1] and all(
        x == y
        or ("." in x and "." in y and math.isclose(float(x), float(y), rel_tol=1e-3, abs_tol=2e-4))
        for x, y in zip(*numbers, strict=True)
    )


def distance(a: bytes, b: bytes) -> float:
    """Mean difference of two PNG files' pixels, 0 to 1; infinite where they are not of the same
    size.
    """
    first, second = (image.imread(io.BytesIO(picture)) for picture in (a, b))
    return float(np.abs(first - second).mean()) if first.shape == second.shape else math.inf


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CELLS)))
def test_a_cell_shows_what_is_stored(shown, number):
    now, then = shown[number], stored(CELLS[number])
    assert same_text(now.text, then.text), f"prints\n{now.text}\nstored is\n{then.text}\n{HINT}"
    assert len(now.pictures) == len(then.pictures), HINT
    for picture, old in zip(now.pictures, then.pictures, strict=True):
        assert distance(picture, old) < 0.0002, HINT
