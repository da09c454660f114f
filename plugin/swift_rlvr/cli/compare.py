"""`swift-rlvr compare`: whether a model is better after training than before."""

from pathlib import Path
from typing import Annotated

import typer

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import note, print_figures, terminal
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.evaluation.graded_files import evaluated
from swift_rlvr.tasks.sources import parse_columns
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json


def compare(
    before: Annotated[
        Path,
        typer.Argument(help="Folder or summary.json of an evaluation, or a file of completions."),
    ],
    after: Annotated[Path, typer.Argument(help="The same after training, or of another model.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Write both evaluations and the comparison to this .json file."),
    ] = None,
    dataset: flags.Answered = None,
    columns: flags.Columns = "",
) -> None:
    """Show two evaluations side by side, and test whether they differ by more than chance.

    The test needs completions of both for the same tasks; a task that only one of
    them has is left out. Completions of other tools are read and graded as in
    swift-rlvr score.

    swift-rlvr compare samples_gsm8k_before.jsonl samples_gsm8k_after.jsonl
    """
    console = terminal()
    if out is not None and out.suffix != ".json":
        raise InputError(f"must end in .json, got {out}", "out")
    # The file of an earlier comparison may be written again; what is compared may not.
    if out is not None and out.resolve() in (before.resolve(), after.resolve()):
        raise InputError(f"{out} is compared, and would be overwritten", "out")
    answered = flags.answered_by(dataset, columns)
    first = evaluated(before, parse_columns(columns), answered)
    second = evaluated(after, parse_columns(columns), answered)
    comparison = comparing.side_by_side(first.summary, second.summary)
    notes = []
    without_records = []
    for path, evaluation in ((before, first), (after, second)):
        notes += [f"{path}: {text}" for text in evaluation.notes]
        if not evaluation.records:
            without_records.append(str(path))
    # A summary.json that was moved away from its records can be shown, and not be tested.
    if not without_records:
        comparison["paired"] = comparing.paired(first.records, second.records)
        why = "no graded task of the one, by its prompt or id and its gold, is in the other"
    else:
        why = f"{' and '.join(without_records)} has figures alone; give what has the completions"
    if not comparison.get("paired"):
        comparison["not_tested"] = why
    for text in notes:
        console.print(note(text))

    figures = comparing.figures_table(comparison["before"], comparison["after"])
    print_figures(console, "Held-out tasks", ("", "before", "after"), figures)
    if comparison.get("paired"):
        console.print(comparing.in_words(comparison["paired"]))
    else:
        console.print(note(f"the difference was not tested: {comparison['not_tested']}"))
    for difference in comparing.settings_in_words(comparison):
        console.print(note(difference))
    if out is not None:
        write_json(out, comparison)
        console.print(f"written: {out}")
