"""report.json and report.md, written after each step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_check.steps import Result
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import CHECKOUT
from swift_rlvr.utils.jsonl import read_json, write_json

JSON, MARKDOWN = "report.json", "report.md"


def write(folder: Path, results: Sequence[Result], machine: dict[str, Any]) -> None:
    """Both files. machine: name, date, gpus and what the run was told."""
    write_json(folder / JSON, {**machine, "steps": [result.as_json() for result in results]})
    lines = [f"# GPU check, {machine['date']}", "", machine["name"], ""]
    lines += ["| step | verdict | measured | s |", "|---|---|---|---|"]
    for result in results:
        measured = _cell(result.measured)
        lines.append(f"| {result.name} | {result.verdict} | {measured} | {result.seconds:.0f} |")
    for result in results:
        lines += ["", f"## {result.name}: {result.verdict}", ""]
        lines += [f"- claim: {result.claim}", f"- expected: {result.expected}"]
        lines += [f"- measured: {_cell(result.measured, 2000)}"]
        lines += ["", "```bash", *result.commands, "```"]
    text = "\n".join(lines).replace(f"{CHECKOUT}/", "")
    (folder / MARKDOWN).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> list[Result]:
    """The results of an earlier run in this folder; none where there was none."""
    try:
        found = read_json(folder / JSON)
    except InputError:
        return []
    return [Result(**result) for result in found["steps"]]


def _cell(text: str, longest: int = 300) -> str:
    """A text in one line of a table."""
    line = " ".join(text.split()).replace("|", "/")
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
