"""The walk-through of GRPO runs as it stands, shows what is stored in it, and prints the values it was written for."""

import io
import json
import math
import re
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from matplotlib import image
from notebook_outputs import WALKTHROUGH, code_cells, execute, store, stored

NOTEBOOK = json.loads(WALKTHROUGH.read_text(encoding="utf-8"))
CELLS = code_cells(NOTEBOOK)
REPOSITORY = WALKTHROUGH.parents[3]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
HINT = "run `python tests/notebook_outputs.py` if the new output is right"


@pytest.fixture(scope="module")
def shown():
    """What the cells show now; run in a process of its own, since other tests import ms-swift."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(execute, WALKTHROUGH).result(timeout=300)


def same_text(a: str, b: str) -> bool:
    """Whether both are the same words in the same lines, and their numbers equal, fractions up to 0.1% or 0.0002."""
    numbers = [NUMBER.findall(text) for text in (a, b)]
    words = [[NUMBER.sub("#", line).split() for line in text.splitlines()] for text in (a, b)]
    return words[0] == words[1] and all(
        x == y or ("." in x and "." in y and math.isclose(float(x), float(y), rel_tol=1e-3, abs_tol=2e-4))
        for x, y in zip(*numbers, strict=True)
    )


def distance(a: bytes, b: bytes) -> float:
    """Mean difference of two PNG files' pixels, 0 to 1; infinite where they are not of the same size."""
    a, b = (image.imread(io.BytesIO(picture)) for picture in (a, b))
    return float(np.abs(a - b).mean()) if a.shape == b.shape else math.inf


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CELLS)))
def test_a_cell_shows_what_is_stored(shown, number):
    now, then = shown[number], stored(CELLS[number])
    assert same_text(now.text, then.text), f"prints\n{now.text}\nstored is\n{then.text}\n{HINT}"
    assert len(now.pictures) == len(then.pictures), HINT
    for picture, old in zip(now.pictures, then.pictures, strict=True):
        assert distance(picture, old) < 0.0002, HINT


def test_the_values_of_the_notebook_it_follows():
    printed = " ".join(" ".join(stored(cell).text.split()) for cell in CELLS)
    assert "length: [6.0, 12.0]" in printed
    assert "1.2379 0.0982 -0.1375 -1.1986" in printed
    assert "0.8513 -0.8513 0.8513 -0.8513" in printed
    assert "boxed: [1.0, 0.0, None]" in printed


def test_the_loss_is_that_of_plain_arithmetic():
    """Rewards 100 and 66, epsilon 0.01, beta 0.01: the log-probabilities of the notebook, token by token."""
    completions = [  # reward; policy, old policy and reference of each token that counts
        (100, [(-1.2, -1.205, -1.1), (-0.5, -0.55, -0.6), (-2.0, -1.95, -2.2)]),
        (66, [(-0.9, -0.95, -1.0), (-1.6, -1.55, -1.4)]),
    ]
    means = []
    for reward, tokens in completions:
        advantage = (reward - 83) / (math.sqrt(17**2 + 17**2) + 0.01)
        total = 0.0
        for policy, old, ref in tokens:
            ratio = math.exp(policy - old)
            objective = min(ratio * advantage, min(max(ratio, 0.99), 1.01) * advantage)
            total += objective - 0.01 * (math.exp(ref - policy) - (ref - policy) - 1)
        means.append(total / len(tokens))
    printed = "".join(stored(cell).text for cell in CELLS)
    (found,) = re.findall(r"^policy_loss (\S+)$", printed, flags=re.MULTILINE)
    assert float(found) == pytest.approx(-sum(means) / 2, abs=1e-6)


def test_the_file_is_as_jupyter_writes_it():
    text = WALKTHROUGH.read_text(encoding="utf-8")
    assert text == json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n"
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids)
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    assert sum(len(stored(cell).pictures) for cell in CELLS) == 4


def test_what_it_points_to_is_there():
    text = "".join("".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "markdown")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")]
    commands = re.findall(r"`(?:bash|python) (\S+\.(?:sh|py))`", text)
    assert len(links) >= 4 and len(commands) == 2
    missing = [link for link in links if not (WALKTHROUGH.parent / link).exists()]
    missing += [command for command in commands if not (REPOSITORY / command).is_file()]
    assert not missing


@pytest.mark.parametrize(
    "a, b, same",
    [
        ("mean 0.50000  -0.0", "mean  0.50002 0.0", True),
        ("mean 0.500", "mean 0.502", False),
        ("40 tokens", "41 tokens", False),
        ("[1.0, None]", "[1.0, 1.0]", False),
        ("a 1.0\nb 2.0", "a 1.0 b 2.0", False),
        ("a 1.0", "a 1.0\nb 2.0", False),
        ("is True", "is False", False),
    ],
)
def test_what_counts_as_the_same_text(a, b, same):
    assert same_text(a, b) is same


def notebook_of(tmp_path, *sources):
    cells = [{"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Title"]}]
    for number, source in enumerate(sources):
        cell = {"cell_type": "code", "execution_count": None, "id": f"c{number}", "metadata": {}, "outputs": []}
        cells.append({**cell, "source": source.splitlines(keepends=True)})
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_text_and_pictures_are_stored_cell_by_cell(tmp_path):
    draw = "from matplotlib import pyplot as plt\nplt.subplots(figsize=(2, 1), dpi=50)[1].plot([{}, 0.5])\nplt.show()"
    path = notebook_of(tmp_path, "x = 1\nprint(x)", "print(x + 1)\nprint('é')", draw.format(0), draw.format(1))
    store(path)
    cells = code_cells(json.loads(path.read_text(encoding="utf-8")))
    assert [stored(cell).text for cell in cells] == ["1\n", "2\né\n", "", ""]
    (first,), (second,) = (stored(cell).pictures for cell in cells[2:])
    assert image.imread(io.BytesIO(first)).shape[:2] == (50, 100)
    assert distance(first, second) > 0.0002, "another curve is another picture"
    store(path)
    again = [stored(cell) for cell in code_cells(json.loads(path.read_text(encoding="utf-8")))]
    assert again == [stored(cell) for cell in cells], "bit by bit the same"


def test_a_value_that_only_jupyter_would_show_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="print it"):
        execute(notebook_of(tmp_path, "x = 1\nx"))


def test_an_error_in_a_cell_names_the_cell(tmp_path):
    path = notebook_of(tmp_path, "x = 1", "y = 2\nx / 0")
    before = path.read_text()
    with pytest.raises(ZeroDivisionError) as caught:
        store(path)
    where = traceback.extract_tb(caught.tb)[-1]
    assert (where.filename, where.lineno, where.line) == ("<cell 1>", 2, "x / 0")
    assert path.read_text() == before, "and nothing is stored"
