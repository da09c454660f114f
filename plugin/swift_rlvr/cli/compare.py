"""`swift-rlvr compare`: whether a model is better after training than before."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swift_rlvr.cli.render import note, print_figures
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, write_json


def compare(
    before: Annotated[
        Path, typer.Argument(help="Folder or summary.json of the evaluation before training.")
    ],
    after: Annotated[
        Path, typer.Argument(help="Folder or summary.json of the evaluation after training.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Write both evaluations and the comparison to this .json file."),
    ] = None,
) -> None:
    """Show two evaluations side by side, and test whether they differ by more than chance.

    The test needs two folders with records.jsonl, evaluated on the same tasks.
    """
    console = Console(highlight=False, soft_wrap=True)
    comparison = comparing.compare(_read_summary(before), _read_summary(after))
    records_before = before / "records.jsonl"
    records_after = after / "records.jsonl"
    if records_before.is_file() and records_after.is_file():
        comparison["paired"] = comparing.paired(
            list(read_records(records_before)), list(read_records(records_after))
        )

    figures = comparing.figures_table(comparison["before"], comparison["after"])
    print_figures(console, "Held-out tasks", ("", "before", "after"), figures)
    if comparison.get("paired"):
        console.print(comparing.in_words(comparison["paired"]))
    elif "paired" in comparison:
        console.print(
            note("the two evaluations used different tasks, so the difference was not tested")
        )
    for name, (first, second) in comparison["different_settings"].items():
        console.print(note(f"{name} differs: {first!r} before, {second!r} after"))
    if out is not None:
        write_json(out, comparison)
        console.print(f"written: {out}", markup=False)


def _read_summary(path: Path) -> dict:
    path = path / "summary.json" if path.is_dir() else path
    summary = read_json(path)
    if "success" not in summary:
        raise InputError(
            f'{path}: expected a summary written by `swift-rlvr evaluate`; this file has no "success"'
        )
    return summary
