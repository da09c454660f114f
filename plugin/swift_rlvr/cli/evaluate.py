"""The commands `swift-rlvr evaluate` and `compare`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.dataset import DATASET, HubIsHf
from swift_rlvr.cli.render import table
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation import summary as summaries
from swift_rlvr.jsonl import read_json, write_json
from swift_rlvr.runs.records import read_records


def evaluate(
    model: flags.Model,
    dataset: Annotated[
        str, typer.Option(metavar="DATASET", help=f"Held-out tasks, 500 of a NAME without #N: {DATASET}")
    ],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and summary.json.")],
    num_generations: flags.NumGenerations = 1,
    temperature: flags.Temperature = 1.0,
    max_completion_length: flags.MaxCompletionLength = 1024,
    batch_size: flags.BatchSize = 64,
    seed: flags.Seed = 0,
    seeds: Annotated[
        str | None, typer.Option(help="Several in place of --seed, such as 0,1,2: success with each, and its spread.")
    ] = None,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="A greedy completion per task too, in a column of its own.")
    ] = False,
    engine: flags.Engine = "auto",
    server: flags.Server = None,
    system: Annotated[str | None, typer.Option(help="By default the one of the training, else the task's.")] = None,
    use_hf: HubIsHf = False,
) -> None:
    """Sample a model on held-out tasks and grade what it writes."""
    from swift_rlvr.evaluation import evaluate as evaluation
    from swift_rlvr.sampling import SamplingSettings

    sampling = SamplingSettings(
        model, num_generations, temperature, max_completion_length, batch_size, seed, engine, use_hf, server
    )
    console = Console(highlight=False)
    if seeds is not None and re.fullmatch(r"[0-9]{1,9}(, *[0-9]{1,9})*", seeds) is None:
        raise InputError(f"must be whole numbers such as 0,1,2, got {seeds}", "seeds")
    several = [int(number) for number in seeds.split(",")] if seeds else []
    summary = evaluation.evaluate(sampling, dataset, out, console, system, several, greedy)
    sides = {"sampled": summary} | ({"greedy": summary["greedy"]} if greedy else {})
    headings = ("measure", *(sides if len(sides) > 1 else ["value"]))
    print_figures(console, model, headings, summaries.figures_table(list(sides.values())))
    console.print(f"records and summary in {out}", markup=False, soft_wrap=True)


def compare(
    before: Annotated[Path, typer.Argument(help="Folder or summary.json of the evaluation before training.")],
    after: Annotated[Path, typer.Argument(help="The same after training.")],
    out: Annotated[Path | None, typer.Option(help="A .json file for both and their differences.")] = None,
) -> None:
    """Show two evaluations side by side, and whether they differ by more than chance.

    For that both have to be folders with records.jsonl, of the same tasks.
    """
    from swift_rlvr.evaluation import paired

    console = Console(highlight=False)
    comparison = summaries.compare(_read_summary(before), _read_summary(after))
    files = [folder / "records.jsonl" for folder in (before, after)]
    if all(file.is_file() for file in files):
        comparison["paired"] = paired.paired(*(list(read_records(file)) for file in files))
    print_figures(console, "Held-out tasks", ("", "before", "after"), summaries.comparison_table(comparison))
    if comparison.get("paired"):
        console.print(paired.in_words(comparison["paired"]), soft_wrap=True)
    elif "paired" in comparison:
        console.print(Text.assemble(("note:", "yellow"), " the two are not of the same tasks"), soft_wrap=True)
    for name, (first, second) in comparison["different_settings"].items():
        note = f" {name} differs: {first!r} before, {second!r} after"
        console.print(Text.assemble(("note:", "yellow"), note), soft_wrap=True)
    if out is not None:
        write_json(out, comparison)
        console.print(f"written: {out}", markup=False, soft_wrap=True)


def _read_summary(path: Path) -> dict:
    path = path / "summary.json" if path.is_dir() else path
    summary = read_json(path)
    if "success" not in summary:
        raise InputError(f'{path}: expected a summary of `swift-rlvr evaluate`, which has "success"')
    return summary


def print_figures(console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of figures under a title."""
    figures = table(*headings, numbers=headings[1:])
    for row in rows:
        figures.add_row(*row)
    console.print(Text(title, "bold"), figures, sep="\n")
