"""The commands `swift-rlvr evaluate`, `compare` and `report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.summary import compare, comparison_table
from swift_rlvr.jsonl import read_json, write_json
from swift_rlvr.tasks import TASKS

console = Console()


def evaluate_model(
    model: Annotated[str, typer.Argument(help="A folder with a model or a checkpoint, or a hub id.")],
    data: Annotated[Path, typer.Option(help="Held-out tasks, a .jsonl file.")],
    out: Annotated[Path, typer.Option(help="Folder for records.jsonl and summary.json.")],
    task: Annotated[str, typer.Option(help=f"One of {', '.join(TASKS)}.")] = "countdown",
    rows: Annotated[int | None, typer.Option(help="Only the first so many tasks.")] = None,
    samples: Annotated[int, typer.Option(help="Completions per task.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(help="The longest completion, in tokens.")] = 1024,
    batch_size: Annotated[int, typer.Option(help="Completions at a time (transformers).")] = 64,
    seed: Annotated[int, typer.Option(help="Same seed, same completions.")] = 0,
    backend: Annotated[str, typer.Option(help="auto: vllm with a GPU, else transformers.")] = "auto",
    system: Annotated[
        str | None, typer.Option(help="System prompt; by default the one of the training, else the task's.")
    ] = None,
) -> None:
    """Sample a model on held-out tasks and grade what it writes."""
    from swift_rlvr.evaluation.evaluate import EvalSettings, evaluate
    from swift_rlvr.evaluation.sampling import SamplingSettings

    sampling = SamplingSettings(model, samples, temperature, max_new_tokens, batch_size, seed, backend)
    summary = evaluate(EvalSettings(sampling, str(data), task, rows, system), out, console)
    _print_table(f"{model}", ("measure", "value"), [row[:2] for row in comparison_table(compare(summary, summary))])
    console.print(f"records and summary in {out}")


def compare_evaluations(
    before: Annotated[Path, typer.Argument(help="Folder or summary.json of the evaluation before training.")],
    after: Annotated[Path, typer.Argument(help="The same after training.")],
    out: Annotated[Path | None, typer.Option(help="A .json file for both and their differences.")] = None,
) -> None:
    """Show two evaluations side by side."""
    comparison = compare(*(_read_summary(path) for path in (before, after)))
    _print_table("Held-out tasks", ("", "before", "after"), comparison_table(comparison))
    for name, (first, second) in comparison["different_settings"].items():
        console.print(f"[yellow]note:[/yellow] {name} differs: {first!r} before, {second!r} after", highlight=False)
    if out is not None:
        write_json(out, comparison)
        console.print(f"saved as {out}")


def report_run(
    run: Annotated[Path, typer.Argument(help="ms-swift's --output_dir, or the v<N>-<time> folder in it.")],
    out: Annotated[Path, typer.Option(help="Folder for curves.png and report.md.")],
    comparison: Annotated[Path | None, typer.Option(help="What `swift-rlvr compare --out` wrote.")] = None,
    examples: Annotated[int, typer.Option(min=1, help="Completions to show of each step shown.")] = 3,
) -> None:
    """Draw the curves of a training run and show completions of early and late steps."""
    from swift_rlvr.evaluation.report import write_report

    for path in write_report(run, out, None if comparison is None else read_json(comparison), examples):
        console.print(f"written: {path}")


def _read_summary(path: Path) -> dict:
    path = path / "summary.json" if path.is_dir() else path
    summary = read_json(path)
    if "success" not in summary:
        raise InputError(f'{path}: expected a summary of `swift-rlvr evaluate`, which has "success"')
    return summary


def _print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
