"""Runs a notebook's code cells without Jupyter, and stores what they print and draw in the
notebook.

    python tests/grpo/notebook_outputs.py [examples/grpo_walkthrough.ipynb]

All cells share one namespace, as in Jupyter. Pictures are those left open at the end of a cell.
Leaves out what else a notebook can show: the value of a cell's last line, which must be printed,
and standard error.
"""

from __future__ import annotations

import base64
import io
import json
import linecache
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

WALKTHROUGH = Path(__file__).parents[2] / "examples" / "grpo_walkthrough.ipynb"


class Output(NamedTuple):
    """What a code cell shows: its printed text, and its pictures as PNG files."""

    text: str
    pictures: list[bytes]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored(cell: dict[str, Any]) -> Output:
    """What the notebook says that a cell shows."""
    text = "".join(
        "".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"
    )
    data = [output["data"] for output in cell["outputs"] if output["output_type"] == "display_data"]
    return Output(text, [base64.b64decode("".join(pictures["image/png"])) for pictures in data])


def execute(path: Path) -> list[Output]:
    """What each code cell shows when all are run in order. To be called in a process of its own."""
    import matplotlib

    matplotlib.use("agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [
        _run("".join(cell["source"]), f"<cell {i}>", namespace)
        for i, cell in enumerate(code_cells(notebook))
    ]


def _run(source: str, name: str, namespace: dict[str, Any]) -> Output:
    from matplotlib import pyplot

    linecache.cache[name] = (len(source), None, source.splitlines(True), name)  # for the traceback
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(source, name, "exec"), namespace)
    pictures = []
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(
            picture, format="png", metadata={"Software": None}
        )  # else its version
        pictures.append(picture.getvalue())
    pyplot.close("all")
    return Output(printed.getvalue(), pictures)


def store(path: Path) -> None:
    """Run the notebook and write its outputs into it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for count, (cell, output) in enumerate(
        zip(code_cells(notebook), execute(path), strict=True), 1
    ):
        cell["execution_count"], cell["outputs"] = count, []
        if output.text:
            lines = output.text.splitlines(keepends=True)
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": lines})
        for picture in output.pictures:
            data = {
                "image/png": base64.b64encode(picture).decode() + "\n",
                "text/plain": ["<Figure>"],
            }
            cell["outputs"].append({"data": data, "metadata": {}, "output_type": "display_data"})
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or [str(WALKTHROUGH)]):
        store(path)
