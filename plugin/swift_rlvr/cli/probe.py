"""The command `swift-rlvr probe`: what a model does with a dataset before it is trained on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import print_figures, table
from swift_rlvr.data.sources import SUFFIXES
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.compare import measures
from swift_rlvr.sampling import SamplingSettings

SHOWN_REASONS = 5  # of each reward


def probe(
    context: typer.Context,
    model: flags.Model,
    dataset: Annotated[
        str, typer.Option(metavar="DATASET", help=f"The rows to train on, 500 of a NAME without #N: {flags.DATASET}")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the results. With --keep also FILE.jsonl, for the rows; the folder is then FILE."
        ),
    ],
    num_generations: flags.NumGenerations = 16,
    group_size: Annotated[int, typer.Option(help="Completions per prompt in the training.")] = 8,
    keep: Annotated[
        str | None, typer.Option(metavar="LOW..HIGH", help="Write the rows with such a pass rate, as 0.1..0.9.")
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

    --keep 0.1..0.9 --out hard.jsonl writes those rows to hard.jsonl.
    """
    from swift_rlvr.evaluation import probe as probing

    kept = None if keep is None else probing.parse_keep(keep)
    if out.suffix in SUFFIXES and out.suffix != ".jsonl":
        raise InputError(f"must be a folder or end in .jsonl, got {out}", "out")
    file = out if out.suffix == ".jsonl" else None
    if file is not None and kept is None:
        raise InputError(f"must be a folder without --keep, got {out}", "out")
    folder = out.with_suffix("") if file is not None else out
    sampling = SamplingSettings(**flags.settings_in(SamplingSettings, context))
    console = Console(highlight=False)
    try:
        summary = probing.probe(sampling, dataset, folder, console, system, group_size, kept, file)
    except KeyboardInterrupt:
        console.print("\ninterrupted; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None
    show(console, f"{model} on {dataset}", summary)
    console.print(f"\n{folder}: records.jsonl, probe.jsonl, summary.json", markup=False, soft_wrap=True)
    if "keep" in summary:
        found, task = summary["keep"], summary["settings"]["task"]
        console.print(
            f"{found['file']}: {found['rows']:,} of {found['of']:,} rows, pass rate {found['range']}; "
            f"train on it with --dataset {task}:{found['file']}",
            markup=False,
            soft_wrap=True,
        )
    console.print(Text(f"\n{summary['verdict']}", "bold"), soft_wrap=True)


def show(console: Console, title: str, summary: Mapping[str, Any]) -> None:
    """The tables of a probe: success, pass rates of the rows, spread of the rewards, and why completions fail."""
    label = f"groups of {summary['group_size']} without a gradient"
    interval = summary["no_spread_interval"]
    share = "-" if interval is None else "{:.3f} ({:.3f} to {:.3f})".format(summary["no_spread"], *interval)
    rates = [(name, f"{count:,}", f"{count / summary['tasks']:.1%}") for name, count in summary["pass_rates"].items()]
    rewards, fails = [], []
    for name, figures in summary["rewards"].items():
        values = (figures[key] for key in ("mean", "spread", "rows_without_spread"))
        rewards.append((name, *("-" if value is None else f"{value:.3f}" for value in values)))
        total = figures["graded"] + figures["ungraded"]
        for number, (reason, count) in enumerate(list(figures["fails"].items())[:SHOWN_REASONS]):
            fails.append(("" if number else name, reason, f"{count:,}", f"{count / total:.1%}"))
    print_figures(console, title, ("measure", "value"), [*measures(summary), (label, share)])
    numbers = ("rows", "share", "mean", "spread in a row", "rows without", "completions")
    console.print("", table("pass rate of a row", *numbers[:2], numbers=numbers, rows=rates), "", sep="\n")
    console.print(table("reward", *numbers[2:5], numbers=numbers, rows=rewards), "")
    if fails:
        console.print(table("reward below 1", "reason", "completions", "share", numbers=numbers, rows=fails))
