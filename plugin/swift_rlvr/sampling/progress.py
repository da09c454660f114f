"""How far sampling has come, shown on a console."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.runs.records import Messages
from swift_rlvr.sampling.engines import Engine
from swift_rlvr.sampling.settings import Completion


def progress_bar(console: Console) -> Progress:
    """A bar with the time that is left; it goes when it is done."""
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def sample_with_bar(
    engine: Engine, conversations: Sequence[Messages], console: Console, **options: Any
) -> list[list[Completion]]:
    """`engine.sample(conversations, **options)` with a progress bar, vLLM's own where that samples."""
    if engine.has_own_bar:
        return engine.sample(conversations, **options)
    n = options.get("num_generations") or engine.settings.num_generations
    with progress_bar(console) as progress:
        bar = progress.add_task(f"Sampling {len(conversations) * n:,} completions", total=1.0)
        return engine.sample(conversations, **options, on_progress=lambda share: progress.update(bar, completed=share))
