"""The commands `swift-rlvr evaluate`, `compare`, `probe` and `report`."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import note, print_figures, table
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, write_json


def evaluate(
    context: typer.Context,
    model: flags.Model,
    dataset: Annotated[str, flags.dataset_option("Held-out tasks, 500 of a NAME without #N")],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and summary.json.")],
    num_generations: flags.NumGenerations = 1,
    temperature: flags.Temperature = 1.0,
    max_completion_length: flags.MaxCompletionLength = 1024,
    batch_size: flags.BatchSize = 64,
    seed: flags.Seed = 0,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Several in place of --seed, such as 0,1,2: success with each, and its spread."
        ),
    ] = None,
    greedy: Annotated[
        bool,
        typer.Option("--greedy", help="A greedy completion per task too, in a column of its own."),
    ] = False,
    engine: flags.Engine = "auto",
    server: flags.Server = None,
    system: flags.System = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Sample a model on held-out tasks and grade what it writes."""
    from swift_rlvr.evaluation import evaluate as evaluation

    sampling = SamplingSettings(**flags.settings_in(SamplingSettings, context))
    console = Console(highlight=False)
    if seeds is not None and re.fullmatch(r"[0-9]{1,9}(, *[0-9]{1,9})*", seeds) is None:
        raise InputError(f"must be whole numbers such as 0,1,2, got {seeds}", "seeds")
    several = [int(number) for number in seeds.split(",")] if seeds else []
    summary = evaluation.evaluate(sampling, dataset, out, console, system, several, greedy)
    sides = {"sampled": summary} | ({"greedy": summary["greedy"]} if greedy else {})
    headings = ("measure", *(sides if len(sides) > 1 else ["value"]))
    print_figures(console, model, headings, comparing.figures_table(*sides.values()))
    console.print(f"records and summary in {out}", markup=False, soft_wrap=True)


def compare(
    before: Annotated[
        Path, typer.Argument(help="Folder or summary.json of the evaluation before training.")
    ],
    after: Annotated[Path, typer.Argument(help="The same after training.")],
    out: Annotated[
        Path | None, typer.Option(help="A .json file for both and their differences.")
    ] = None,
) -> None:
    """Show two evaluations side by side, and whether they differ by more than chance.

    For that both have to be folders with records.jsonl, of the same tasks.
    """
    console = Console(highlight=False, soft_wrap=True)
    comparison = comparing.compare(_read_summary(before), _read_summary(after))
    files = [folder / "records.jsonl" for folder in (before, after)]
    if all(file.is_file() for file in files):
        comparison["paired"] = comparing.paired(*(list(read_records(file)) for file in files))
    figures = comparing.figures_table(comparison["before"], comparison["after"])
    print_figures(console, "Held-out tasks", ("", "before", "after"), figures)
    if comparison.get("paired"):
        console.print(comparing.in_words(comparison["paired"]))
    elif "paired" in comparison:
        console.print(note("the two are not of the same tasks"))
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
            f'{path}: expected a summary of `swift-rlvr evaluate`, which has "success"'
        )
    return summary


def probe(
    context: typer.Context,
    model: flags.Model,
    dataset: Annotated[str, flags.dataset_option("The rows to train on, 500 of a NAME without #N")],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    num_generations: flags.NumGenerations = 16,
    group_size: Annotated[int, typer.Option(help="Completions per prompt in the training.")] = 8,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="LOW..HIGH", help="Write rows with such a pass rate to OUT/keep.jsonl."
        ),
    ] = None,
    temperature: flags.Temperature = 1.0,
    max_completion_length: flags.MaxCompletionLength = 1024,
    batch_size: flags.BatchSize = 512,
    seed: flags.Seed = 0,
    engine: flags.Engine = "auto",
    server: flags.Server = None,
    system: flags.System = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Sample a dataset with a model: what GRPO can learn from it, and the rows worth training on.

    Interrupted, the same command goes on; with the samples there, another
    --keep or --group_size takes no sampling.

    swift-rlvr probe MODEL --dataset gsm8k --keep 0.1..0.9 --out hard
    """
    from swift_rlvr.evaluation import probe as probing

    kept = None if keep is None else probing.parse_keep(keep)
    sampling = SamplingSettings(**flags.settings_in(SamplingSettings, context))
    console = Console(highlight=False)
    try:
        summary = probing.probe(sampling, dataset, out, console, system, group_size, kept)
    except KeyboardInterrupt:
        console.print("\ninterrupted; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None
    share = (
        f"groups of {group_size} without a gradient",
        comparing.figure_text(summary, "no_spread", ".3f"),
    )
    figures = [*comparing.figures_table(summary), share]
    print_figures(console, f"{model} on {dataset}", ("measure", "value"), figures)
    rates = [
        (name, f"{count:,}", f"{count / summary['tasks']:.1%}")
        for name, count in summary["pass_rates"].items()
    ]
    numbers = ("rows", "share")
    console.print("", table("pass rate of a row", *numbers, numbers=numbers, rows=rates), sep="\n")
    console.print(
        f"\n{out}: records.jsonl, probe.jsonl, summary.json", markup=False, soft_wrap=True
    )
    found, task = summary.get("keep"), summary["settings"]["task"]
    if found and found["rows"]:
        kept_text = f"{found['file']}: {found['rows']:,} of {found['of']:,} rows, pass rate {found['range']}"
        console.print(
            f"{kept_text}; train on it with --dataset {task}:{found['file']}",
            markup=False,
            soft_wrap=True,
        )
    console.print(Text(f"\n{summary['verdict']}", "bold"), soft_wrap=True)
    if found and not found["rows"]:
        raise InputError(
            f"{found['range']}: no row has such a pass rate; another range takes no sampling",
            "keep",
        )


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or ms-swift's --output_dir.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html and curves.png.")],
    comparison: Annotated[
        list[Path] | None,
        typer.Option(help="What `swift-rlvr compare --out` wrote; may be repeated."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="The most completions on the page, by default 200,000; of more, a sample."
        ),
    ] = None,
) -> None:
    """Write a page of one or several runs: curves, tables, all completions.

    The page is one file, opened from disk. A run that is still training has
    one too, which says what is missing.
    """
    from swift_rlvr.evaluation.report import write_report

    comparisons, notes = [read_json(path) for path in comparison or []], list[str]()
    with Console(stderr=True).status("Reading the runs"):
        written = write_report(runs, out, comparisons, limit, notes.append)
    console = Console(highlight=False, soft_wrap=True)
    for text in notes:
        console.print(note(text))
    for path in filter(None, written):
        console.print(f"written: {path}", markup=False)
