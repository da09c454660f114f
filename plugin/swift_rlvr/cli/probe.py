"""`swift-rlvr probe`: what GRPO can learn from a dataset, before you train on it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import print_figures, table
from swift_rlvr.evaluation import compare as comparing
from swift_rlvr.evaluation import probe as probing
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.launch.settings import GrpoSettings
from swift_rlvr.utils.errors import InputError


def probe(
    context: typer.Context,
    dataset: Annotated[
        str, flags.dataset_option("The rows to train on (500 of a NAME without #N)")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    model: flags.Model = None,
    model_name: flags.ServedModel = None,
    num_generations: flags.NumGenerations = 16,
    group_size: Annotated[
        int, typer.Option(help="Completions per prompt in training.")
    ] = GrpoSettings.num_generations,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="LOW..HIGH",
            help="Write rows whose pass rate is in this range to OUT/keep.jsonl.",
        ),
    ] = None,
    temperature: flags.Temperature = SamplingSettings.temperature,
    max_completion_length: flags.MaxCompletionLength = SamplingSettings.max_completion_length,
    batch_size: flags.BatchSize = 512,
    seed: flags.Seed = SamplingSettings.seed,
    engine: flags.Engine = "auto",
    server: flags.Server = None,
    system: flags.System = None,
    columns: flags.Columns = "",
    reward_funcs: flags.RewardNames = None,
    use_hf: flags.UseHf = False,
) -> None:
    """Measure what GRPO can learn from a dataset, and find the rows worth training on.

    Completions are graded by the verifier and the format of their task or, with
    --reward_funcs, by the rewards of your run.

    If it is interrupted, run the same command again to continue. Once the samples
    exist, you can change --keep or --group_size without sampling again.

    swift-rlvr probe MODEL --dataset gsm8k --keep 0.1..0.9 --out hard

    swift-rlvr probe --server http://127.0.0.1:8000 --model NAME --dataset gsm8k --out hard
    """
    # What can be refused at once, before a model is loaded.
    pass_rates = None if keep is None else probing.parse_keep(keep)
    sampling = flags.sampling_settings(context)
    console = Console(highlight=False)
    try:
        summary = probing.probe(
            sampling,
            dataset,
            out,
            console,
            group_size,
            system,
            pass_rates,
            columns,
            reward_funcs or (),
        )
    except KeyboardInterrupt:
        console.print("\ninterrupted; run the same command again to continue", markup=False)
        raise typer.Exit(130) from None

    no_spread = comparing.figure_text(summary, "no_spread", ".3f")
    figures = comparing.figures_table(summary)
    figures.append((f"groups of {group_size} without a gradient", no_spread))
    print_figures(
        console, f"{comparing.model_of(summary)} on {dataset}", ("measure", "value"), figures
    )
    rows = []
    for name, count in summary["pass_rates"].items():
        rows.append((name, f"{count:,}", f"{count / summary['tasks']:.1%}"))
    numbers = ("rows", "share")
    rates = table("pass rate of a row", *numbers, numbers=numbers, rows=rows)
    console.print("", rates, sep="\n")
    files = f"\n{out}: records.jsonl, probe.jsonl, summary.json"
    console.print(files, markup=False, soft_wrap=True)

    kept = summary.get("keep")
    if kept and kept["rows"]:
        counts = f"{kept['rows']:,} of {kept['of']:,} rows, pass rate {kept['range']}"
        flag = f"--dataset {summary['settings']['task']}:{kept['file']}"
        text = f"{kept['file']}: {counts}; train on it with {flag}"
        console.print(text, markup=False, soft_wrap=True)
    # Last, since it is what the reader came for.
    console.print(Text(f"\n{summary['verdict']}", "bold"), soft_wrap=True)
    # An error, so that a script does not go on to train on a file that was not written.
    if kept and not kept["rows"]:
        problem = "no row has a pass rate in this range; try another one, the samples are kept"
        raise InputError(f"{kept['range']}: {problem}", "keep")
