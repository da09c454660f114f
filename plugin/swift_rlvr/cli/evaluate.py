"""`swift-rlvr evaluate`: how often a model is right on held-out tasks."""

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import note, print_figures
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.evaluation import evaluate as evaluation
from swift_rlvr.evaluation.probe import LONGER_CONTEXT
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.utils.errors import InputError


def evaluate(
    context: typer.Context,
    dataset: Annotated[str, flags.dataset_option("Held-out tasks (500 of a NAME without #N)")],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and summary.json.")],
    model: flags.Model = None,
    model_name: flags.ServedModel = None,
    num_generations: flags.NumGenerations = SamplingSettings.num_generations,
    temperature: flags.Temperature = SamplingSettings.temperature,
    max_completion_length: flags.MaxCompletionLength = SamplingSettings.max_completion_length,
    batch_size: flags.BatchSize = SamplingSettings.batch_size,
    seed: flags.Seed = SamplingSettings.seed,
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
    reward_funcs: flags.RewardNames = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Sample a model on held-out tasks and grade its completions.

    They are graded by the verifier and the format of their task or, with
    --reward_funcs, by the rewards of your run.

    With --server no GPU and no weights are needed here. The key is in OPENAI_API_KEY:

    swift-rlvr evaluate --server URL --model NAME --dataset math:FILE --out eval
    """
    sampling = flags.sampling_settings(context)
    console = Console(highlight=False)
    # A text, since typer would want the flag once for each.
    several_seeds = []
    if seeds is not None:
        if re.fullmatch(r"[0-9]{1,9}(, *[0-9]{1,9})*", seeds) is None:
            raise InputError(f"must be whole numbers such as 0,1,2, got {seeds}", "seeds")
        several_seeds = [int(number) for number in seeds.split(",")]
    summary = evaluation.evaluate(
        sampling,
        dataset,
        out,
        console,
        system,
        several_seeds,
        greedy,
        columns,
        reward_funcs or (),
    )
    name = str(comparing.model_of(summary))
    if greedy:
        figures = comparing.figures_table(summary, summary["greedy"])
        print_figures(console, name, ("measure", "sampled", "greedy"), figures)
    else:
        print_figures(console, name, ("measure", "value"), comparing.figures_table(summary))
    # Such a completion did not fail at the task, and a larger --max_completion_length changes nothing.
    if summary["cut_short"]:
        share = f"{summary['cut_short']:.1%}"
        text = f"the server's own context ended {share} of the completions: {LONGER_CONTEXT}"
        console.print(note(text), soft_wrap=True)
    console.print(f"records and summary in {out}", markup=False, soft_wrap=True)
