"""The report: `curves.png`, and the page `report.html` with tables, curves and a browser of
completions.

What a model wrote is only in blocks of compressed JSON in base64, and the script shows it as text,
never as HTML. The page's content security policy allows the scripts and styles of this package, by
their hashes, and no network.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.report import texts
from swift_rlvr.evaluation.report.completions import COMPLETIONS, PageCompletions, packed
from swift_rlvr.evaluation.report.curves import Steps, curves, draw, panels_of
from swift_rlvr.evaluation.report.reading import Run, read_runs
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError, NotInstalledError
from swift_rlvr.utils.jsonl import replacing

PAGE = "report.html"
CURVES = "curves.png"

STYLES = ("uPlot.min.css", "page.css")
SCRIPTS = ("uPlot.iife.min.js", "page.js")


def write_report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path,
    comparisons: Sequence[Mapping[str, Any]] = (),
    limit: int | None = None,
    tell: Callable[[str], object] = lambda note: None,
    columns: Mapping[str, str] | None = None,
    answered: Source | None = None,
) -> tuple[Path | None, Path]:
    """Write `curves.png` and `report.html` into the folder `out`; returns their paths, None for a
    picture not drawn.

    Args:
        runs: their folders or those above them, folders of evaluations, files of completions.
        comparisons: from `swift_rlvr.evaluation.compare`.
        limit: the most completions on the page.
        tell: called with each thing that is missing or left out.
        columns, answered: of files of completions, as in `find_files`.
    """
    if isinstance(runs, (str, Path)):
        runs = [runs]
    out = Path(out)
    read = read_runs(runs, columns, answered)
    completions = PageCompletions(read, limit or COMPLETIONS)
    steps: dict[str, Steps] = {}
    counts = []
    for run in read:
        steps[run.label] = run.merged_steps()
        counts.append("1 step" if len(run.steps) == 1 else f"{len(run.steps):,} steps")
        for note in run.notes:
            tell(f"{run.label}: {note}")
    # Without matplotlib, and without a log, there is still the page.
    picture = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(steps.values()):
            draw(steps, out / CURVES, title=f"{title_of(read)}, {' and '.join(counts)}")
            picture = out / CURVES
    except NotInstalledError as error:
        tell(f"{CURVES} was not written: {error}")
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or out}: {error.strerror}", field="out"
        ) from error
    # As a whole, so that whoever reloads it while it is written sees the one before.
    with replacing(out / PAGE) as file:
        file.writelines(page(read, steps, completions, comparisons))
    return picture, out / PAGE


def title_of(runs: Sequence[Run]) -> str:
    """What was trained on what: "GRPO: Qwen/Qwen2.5-3B-Instruct on countdown"."""
    models: dict[str, None] = {}
    tasks: dict[str, None] = {}
    for run in runs:
        model = run.settings.get("model")
        if isinstance(model, str):
            # A hub id, or the end of a path: "weights" alone names no model.
            models["/".join(Path(model).parts[-2:]).lstrip("/")] = None
        tasks |= dict.fromkeys(run.tasks)
    title = "Completions" if all(run.graded is not None for run in runs) else "GRPO"
    if any(models):
        title += f": {', '.join(filter(None, models))}"
    if tasks:
        title += f" on {', '.join(tasks)}"
    if len(runs) > 1 or title in ("GRPO", "Completions"):
        title += f" ({', '.join(run.label for run in runs)})"
    return title


def page(
    runs: Sequence[Run],
    steps: Mapping[str, Steps],
    completions: PageCompletions,
    comparisons: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """The parts of the HTML, in order; only the blocks of data are large."""
    styles, style_sources = _inline("style", STYLES)
    scripts, script_sources = _inline("script", SCRIPTS)
    # Nothing from the network, and no script but these: a completion is what a stranger wrote.
    policy = [
        "default-src 'none'",
        f"script-src {script_sources}",
        f"style-src {style_sources}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    parts = {
        "policy": "; ".join(policy),
        "title": escape(title_of(runs)),
        "styles": styles,
        "verdict": texts.verdict(runs, comparisons),
        "notes": texts.notes(runs),
        "tables": "\n".join(texts.tables(runs, completions, comparisons)),
        # It stands in a comment of HTML, which two hyphens would end.
        "license": escape(_asset("uPlot.LICENSE").replace("--", "- -")),
        "scripts": scripts,
    }
    # The template's text and the names in {{...}}, by turns.
    for number, part in enumerate(re.split(r"\{\{(\w+)\}\}", _asset("page.html"))):
        if number % 2 == 0:
            yield part
        elif part == "figures":
            # Before the scripts, which begin with them while the rest is still being loaded.
            yield _block("page", packed(_page_data(runs, steps, completions)))
            yield _block("columns", packed(completions.data()))
            for name, block in completions.prompts.items():
                yield _block(name, block)
        elif part == "texts":
            for name, block in completions.texts.packed.items():
                yield _block(name, block)
        else:
            yield parts[part]


def _block(name: str, block: str) -> str:
    return f'<script type="text/plain" id="block-{name}">{block}</script>\n'


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _inline(tag: str, names: Sequence[str]) -> tuple[str, str]:
    """Assets as elements of the page, and the sources of a content security policy that allow them
    (CSP level 3, section 2.3.1).
    """
    elements = []
    sources = []
    for name in names:
        text = _asset(name)
        elements.append(f"<{tag}>{text}</{tag}>")
        digest = b64encode(sha256(text.encode()).digest()).decode()
        sources.append(f"'sha256-{digest}'")
    return "\n".join(elements), " ".join(sources)


def _page_data(
    runs: Sequence[Run], steps: Mapping[str, Steps], completions: PageCompletions
) -> dict[str, Any]:
    """What the page's script knows beside the columns of the completions."""
    verifiers = {}
    alarms = []
    for number, run in enumerate(runs):
        for key in run.verifiers:
            verifiers[key] = run.judges.judges[key].full
        for alarm in run.alarms:
            alarms.append(
                {
                    "run": number,
                    "step": alarm.step,
                    "alarm": alarm.kind.replace("_", " "),
                    "message": alarm.message,
                    "completions": alarm.completions,
                }
            )
    rules = []
    for name, outcome, names in completions.rules:
        rules.append({"reward": name, "outcome": outcome, "rules": names})
    labels = [run.label for run in runs]
    panels = []
    for panel in panels_of(steps):
        drawn = []
        for curve in curves(panel, steps):
            values, smooth = _rounded(curve.values), _rounded(curve.smooth)
            drawn.append(asdict(replace(curve, values=values, smooth=smooth)))
        panels.append(
            {
                "title": panel.title,
                "unit": panel.unit,
                "top": panel.top,
                "runs": labels.index(panel.run) if panel.run else None,
                "curves": drawn,
            }
        )
    return {
        "runs": labels,
        "panels": panels,
        "alarms": alarms,
        "total": completions.total,
        "names": list(completions.names),
        "rules": rules,
        "verifiers": verifiers,
        "starts": completions.texts.starts,
        "promptStarts": completions.prompt_starts,
    }


def _rounded(values: Sequence[float]) -> list[float]:
    """With more digits than a curve can show; a float has up to seventeen, which the page would carry."""
    return [round(value, 8) for value in values]
