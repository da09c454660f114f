"""`swift-rlvr evaluate`: how often a model is right on held-out tasks."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import print_figures
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.utils.errors import InputError


def evaluate(
    context: typer.Context,
    model: flags.Model,
    dataset: Annotated[str, flags.dataset_option("Held-out tasks (500 of a NAME without #N)")],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and summary.json.")],
    num_generations: flags.NumGenerations = 1,
    temperature: flags.Temperature = 1.0,
    max_completion_length: flags.MaxCompletionLength = 1024,
    batch_size: flags.BatchSize = 64,
    seed: flags.Seed = 0,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Several seeds instead of --seed, such as 0,1,2. Shows success for each and the spread."
        ),
    ] = None,
    greedy: Annotated[
        bool,
        typer.Option(
            "--greedy", help="Also sample one greedy completion per task, shown in its own column."
        ),
    ] = False,
    engine: flags.Engine = "auto",
    server: flags.Server = None,
    system: flags.System = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
) -> None:
    """Sample a model on held-out tasks and grade its completions."""
    from swift_rlvr.evaluation import evaluate as evaluation

    sampling = SamplingSettings(**flags.settings_in(SamplingSettings, context))
    console = Console(highlight=False)
    several_seeds = _read_seeds(seeds)
    summary = evaluation.evaluate(
        sampling, dataset, out, console, system, several_seeds, greedy, columns
    )
    if greedy:
        figures = comparing.figures_table(summary, summary["greedy"])
        print_figures(console, model, ("measure", "sampled", "greedy"), figures)
    else:
        print_figures(console, model, ("measure", "value"), comparing.figures_table(summary))
    console.print(f"records and summary in {out}", markup=False, soft_wrap=True)


def _read_seeds(text: str | None) -> list[int]:
    """`0,1,2` as numbers; empty where --seeds was not given."""
    if text is None:
        return []
    if re.fullmatch(r"[0-9]{1,9}(, *[0-9]{1,9})*", text) is None:
        raise InputError(f"must be whole numbers such as 0,1,2, got {text}", "seeds")
    return [int(number) for number in text.split(",")]
