"""`swift-rlvr report`: one page of a run's curves and completions."""

from pathlib import Path
from typing import Annotated

import typer

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import note, terminal
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.tasks.sources import parse_columns
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json

COMPARISON = "comparison.json"


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs or evaluations, of the quickstart, ms-swift's --output_dir, or files of completions."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html and curves.png.")],
    comparison: Annotated[
        list[Path] | None,
        typer.Option(help="A file written by `swift-rlvr compare --out`. May be repeated."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most completions on the page. Default: 200,000; beyond that, a sample."
        ),
    ] = None,
    dataset: flags.Answered = None,
    columns: flags.Columns = "",
) -> None:
    """Write a page about one or several runs: verdict, curves, tables, all completions.

    The page is a single file that you open in a browser. You can make it while a
    run is still training; it then lists what is missing. Completions of other
    tools are read as by swift-rlvr score, and graded.
    """
    if out.suffix == ".html" and not out.is_dir():
        raise InputError(f"expected a folder, in which report.html is written, got {out}", "out")
    if comparison is None:
        # The quickstart writes it beside its run.
        comparison = [path / COMPARISON for path in runs if (path / COMPARISON).is_file()]
    # Before the runs are read, which takes minutes for long ones.
    comparisons = []
    for file in comparison:
        compared = read_json(file)
        if not {"before", "after"} <= compared.keys():
            problem = "expected a file written by `swift-rlvr compare --out`"
            raise InputError(f'{file}: {problem}; this one lacks "before" or "after"', "comparison")
        comparisons.append(compared)
    notes: list[str] = []
    with terminal(stderr=True).status("Reading the runs"):
        answered = flags.answered_by(dataset, columns)
        new_names = parse_columns(columns)
        written = write_report(runs, out, comparisons, limit, notes.append, new_names, answered)
    console = terminal()
    for text in notes:
        console.print(note(text))
    # There are no curves without matplotlib, or without a log.
    for path in written:
        if path is not None:
            console.print(f"written: {path}")
