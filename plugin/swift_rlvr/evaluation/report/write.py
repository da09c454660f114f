"""The report: `report.html` and `curves.png`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError, require
from swift_rlvr.evaluation.report.completions import COMPLETIONS, Collector
from swift_rlvr.evaluation.report.curves import draw
from swift_rlvr.evaluation.report.observations import thinking_rows
from swift_rlvr.evaluation.report.page import page
from swift_rlvr.evaluation.report.reading import Run, read_runs

PAGE, CURVES = "report.html", "curves.png"


def write_report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path,
    comparisons: Sequence[Mapping[str, Any]] = (),
    limit: int | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> tuple[Path | None, Path]:
    """Write `curves.png` and `report.html` into the folder `out`; returns their paths, None where there are no curves.

    Args:
        runs: folders of runs, or ms-swift's output folders above them.
        comparisons: of evaluations before and after a training, from `swift_rlvr.evaluation.summary.compare`.
        limit: the most completions on the page; by default as many as a browser handles well.
        tell: called with each thing that is missing or left out; the page says the same.
    """
    require("matplotlib", extra="report", purpose="`swift-rlvr report`")
    found, out = read_runs([runs] if isinstance(runs, (str, Path)) else runs), Path(out)
    collected = Collector(found, limit or COMPLETIONS).collect()
    rows = {run.label: merged(run, thoughts) for run, thoughts in zip(found, collected.thinking, strict=True)}
    for run in found:
        for note in run.notes:
            tell(f"{run.label}: {note}")
    picture = out / CURVES if any(rows.values()) else None
    try:
        out.mkdir(parents=True, exist_ok=True)
        if picture is not None:
            steps = " and ".join(f"{len(run.steps):,} steps" for run in found)
            draw(rows, picture, title=f"GRPO, {steps}")
        part = out / f"{PAGE}.part"
        try:
            with part.open("w", encoding="utf-8") as file:
                file.writelines(page(found, rows, collected, comparisons))
            part.replace(out / PAGE)
        finally:
            with suppress(OSError):
                part.unlink()
    except OSError as error:
        raise InputError(f"cannot write {error.filename or out}: {error.strerror}", field="out") from error
    return picture, out / PAGE


def merged(run: Run, thoughts: Mapping[int, Mapping[str, float]]) -> list[dict[str, Any]]:
    """One row for each step with all that is known of it: what was logged, held-out figures, the way of thinking."""
    rows: dict[int, dict[str, Any]] = {}
    for row in (*run.steps, *run.held_out, *thinking_rows(thoughts)):
        rows.setdefault(row["step"], {}).update(row)
    return [rows[step] for step in sorted(rows)]
