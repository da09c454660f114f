"""The command `swift-rlvr probe`: what a model does with a dataset before it is trained on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.dataset import DATASET, HubIsHf
from swift_rlvr.cli.evaluate import print_figures
from swift_rlvr.cli.render import table
from swift_rlvr.data.sources import SUFFIXES
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.summary import measures

SHOWN_REASONS = 5  # of each reward


def probe(
    model: flags.Model,
    dataset: Annotated[
        str, typer.Option(metavar="DATASET", help=f"The rows to train on, 500 of a NAME without #N: {DATASET}")
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
    system: Annotated[str | None, typer.Option(help="By default the one of the training, else the task's.")] = None,
    use_hf: HubIsHf = False,
) -> None:
    """Sample a dataset with a model: what GRPO can learn from it, and the rows worth training on.

    Interrupted, the same command goes on; with the samples there, another
    --keep or --group_size takes no sampling.

    --keep 0.1..0.9 --out hard.jsonl writes those rows to hard.jsonl, and as many
    random ones to hard.control.jsonl to compare with.
    """
    from swift_rlvr.evaluation import probe as probing
    from swift_rlvr.sampling import SamplingSettings

    kept = None if keep is None else probing.parse_keep(keep)
    if out.suffix in SUFFIXES and out.suffix != ".jsonl":
        raise InputError(f"must be a folder or end in .jsonl, got {out}", "out")
    file = out if out.suffix == ".jsonl" else None
    if file is not None and kept is None:
        raise InputError(f"must be a folder without --keep, got {out}", "out")
    folder = out.with_suffix("") if file is not None else out
    sampling = SamplingSettings(
        model, num_generations, temperature, max_completion_length, batch_size, seed, engine, use_hf, server
    )
    console = Console(highlight=False)
    try:
        summary = probing.probe(sampling, dataset, folder, console, system, group_size, kept, file)
    except KeyboardInterrupt:
        console.print("\ninterrupted; the same command goes on from here", markup=False)
        raise typer.Exit(130) from None
    show(console, f"{model} on {dataset}", summary)
    console.print(f"\n{folder}: records.jsonl, probe.jsonl, summary.json", markup=False, soft_wrap=True)
    if "keep" in summary:
        _say_kept(console, summary["keep"], summary["settings"]["task"])
    console.print(Text(f"\n{summary['verdict']}", "bold"), soft_wrap=True)


def show(console: Console, title: str, summary: Mapping[str, Any]) -> None:
    """The tables of a probe: success, pass rates of the rows, spread of the rewards, and why completions fail."""
    label = f"groups of {summary['group_size']} without a gradient"
    interval = summary["no_spread_interval"]
    share = "-" if interval is None else "{:.3f} ({:.3f} to {:.3f})".format(summary["no_spread"], *interval)
    print_figures(console, title, ("measure", "value"), [*measures([summary]), (label, share)])
    console.print()
    rates = table("pass rate of a row", "rows", "share", numbers=("rows", "share"))
    for name, count in summary["pass_rates"].items():
        rates.add_row(name, f"{count:,}", f"{count / summary['tasks']:.1%}")
    console.print(rates, "")
    numbers = ("mean", "spread in a row", "rows without")
    rewards = table("reward", *numbers, numbers=numbers)
    for name, figures in summary["rewards"].items():
        values = (figures[key] for key in ("mean", "spread", "rows_without_spread"))
        rewards.add_row(name, *("-" if value is None else f"{value:.3f}" for value in values))
    console.print(rewards, "")
    task_rewards = {name: figures for name, figures in summary["rewards"].items() if figures["fails"]}
    fails = table("reward below 1", "reason", "completions", "share", numbers=("completions", "share"))
    for name, figures in task_rewards.items():
        total = figures["graded"] + figures["ungraded"]
        for number, (reason, count) in enumerate(list(figures["fails"].items())[:SHOWN_REASONS]):
            fails.add_row("" if number else name, Text(reason), f"{count:,}", f"{count / total:.1%}")
    if task_rewards:
        console.print(fails)


def _say_kept(console: Console, kept: Mapping[str, Any], task: str) -> None:
    console.print(
        f"{kept['file']}: {kept['rows']:,} of {kept['of']:,} rows, pass rate {kept['range']}; "
        f"train on it with --dataset {task}:{kept['file']}",
        markup=False,
        soft_wrap=True,
    )
    console.print(
        f"{kept['control']}: as many drawn at random from all {kept['of']:,}, {kept['in_both']:,} of them in both",
        markup=False,
        soft_wrap=True,
    )
