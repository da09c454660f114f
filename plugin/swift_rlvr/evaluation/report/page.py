"""The report: `curves.png`, and the page `report.html` with tables, curves and a browser of
completions.

What a model wrote is only in blocks of compressed JSON in base64, and the script shows it as text,
never as HTML. The page's content security policy allows the scripts and styles of this package, by
their hashes, and no network.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.compare import figures_table, in_words
from swift_rlvr.evaluation.report.completions import COMPLETIONS, Collector, packed
from swift_rlvr.evaluation.report.curves import Rows, curves, draw, panels_of
from swift_rlvr.evaluation.report.observations import EXPERIMENT, observations
from swift_rlvr.evaluation.report.reading import Run, read_runs
from swift_rlvr.utils.errors import InputError, NotInstalledError
from swift_rlvr.utils.jsonl import replacing

PAGE, CURVES = "report.html", "curves.png"

STYLES, SCRIPTS = ("uPlot.min.css", "page.css"), ("uPlot.iife.min.js", "page.js")
SETTINGS = (
    *(
        "model",
        "rlhf_type",
        "learning_rate",
        "lr_scheduler_type",
        "beta",
        "epsilon",
        "num_generations",
    ),
    *(
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "num_iterations",
        "temperature",
        "top_p",
    ),
    *(
        "max_completion_length",
        "max_steps",
        "loss_type",
        "advantage_estimator",
        "reward_funcs",
        "rewards",
    ),
    *("reward_weights", "seed"),
)
LONGEST_SETTING = 200


def write_report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path,
    comparisons: Sequence[Mapping[str, Any]] = (),
    limit: int | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> tuple[Path | None, Path]:
    """Write `curves.png` and `report.html` into the folder `out`; returns their paths, None for a
    picture not drawn.

    runs: their folders, or ms-swift's output folders above them. comparisons: from
    `swift_rlvr.evaluation.compare`.
    limit: the most completions on the page. tell: called with each thing that is missing or left
    out.
    """
    found, out = read_runs([runs] if isinstance(runs, (str, Path)) else runs), Path(out)
    collected, rows = (
        Collector(found, limit or COMPLETIONS),
        {run.label: _merged(run) for run in found},
    )
    for run in found:
        for note in run.notes:
            tell(f"{run.label}: {note}")
    picture = out / CURVES if any(rows.values()) else None
    try:
        out.mkdir(parents=True, exist_ok=True)
        if picture is not None:
            steps = " and ".join(f"{len(run.steps):,} steps" for run in found)
            draw(rows, picture, title=f"GRPO, {steps}")
    except NotInstalledError as error:
        picture = None
        tell(f"there is no picture, only the page: {error}")
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or out}: {error.strerror}", field="out"
        ) from error
    with replacing(out / PAGE) as file:
        file.writelines(page(found, rows, collected, comparisons))
    return picture, out / PAGE


def _merged(run: Run) -> list[dict[str, Any]]:
    """One row for each step with all that was logged of it."""
    rows: dict[int, dict[str, Any]] = {}
    for row in (*run.steps, *run.held_out):
        rows.setdefault(row["step"], {}).update(row)
    return [rows[step] for step in sorted(rows)]


def page(
    runs: Sequence[Run],
    rows: Mapping[str, Rows],
    collected: Collector,
    comparisons: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """The parts of the HTML, in order; only the blocks of data are large."""
    styles, scripts = ([_asset(name) for name in names] for names in (STYLES, SCRIPTS))
    parts = {
        "policy": f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; base-uri 'none'; "
        "form-action 'none'",
        "title": escape(f"GRPO: {', '.join(run.label for run in runs)}"),
        "styles": "\n".join(f"<style>{text}</style>" for text in styles),
        "notes": _notes(runs),
        "observations": _observations(runs, collected),
        "tables": "\n".join([*_comparisons(comparisons), _settings(runs)]),
        "license": escape(_asset("uPlot.LICENSE").replace("--", "- -")),
        "scripts": "\n".join(f"<script>{text}</script>" for text in scripts),
    }
    for number, part in enumerate(re.split(r"\{\{(\w+)\}\}", _asset("page.html"))):
        if number % 2 == 0:
            yield part
        elif (
            part == "figures"
        ):  # before the scripts, which begin with them while the rest is still being loaded
            yield _block("page", packed(_summary(runs, rows, collected)))
            yield _block("columns", packed(collected.data()))
            yield from (
                _block(name, block)
                for name, block in collected.blocks.items()
                if name.startswith("prompts")
            )
        elif part == "texts":
            for kind in ("texts", "explained"):
                yield from (
                    _block(name, block)
                    for name, block in collected.blocks.items()
                    if name.startswith(kind)
                )
        else:
            yield parts[part]


def _block(name: str, block: str) -> str:
    return f'<script type="text/plain" id="block-{name}">{block}</script>\n'


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hashes(texts: Sequence[str]) -> str:
    """The sources of a content security policy that allow these texts (CSP level 3, section
    2.3.1).
    """
    return " ".join(
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts
    )


def _summary(runs: Sequence[Run], rows: Mapping[str, Rows], collected: Collector) -> dict[str, Any]:
    return {
        "runs": [run.label for run in runs],
        "panels": [
            {
                "title": panel.title,
                "unit": panel.unit,
                "top": panel.top,
                "runs": [run.label for run in runs].index(panel.run) if panel.run else None,
                "curves": [
                    {
                        **curve,
                        **{
                            name: [round(value, 8) for value in curve[name]]
                            for name in ("values", "smooth")
                        },
                    }
                    for curve in curves(panel, rows)
                ],
            }
            for panel in panels_of(rows)
        ],
        "alarms": [
            {
                "run": number,
                "step": alarm.get("step"),
                "alarm": str(alarm.get("kind", "")).replace("_", " "),
                "message": str(alarm.get("message", "")),
                "completions": list(map(str, alarm.get("completions") or ())),
            }
            for number, run in enumerate(runs)
            for alarm in run.alarms
        ],
        "total": collected.total,
        "names": list(collected.names),
        "rules": [
            {"reward": name, "outcome": each, "rules": rules}
            for name, each, rules in collected.rules
        ],
        "verifiers": {key: run.judges.judges[key].full for run in runs for key in run.verifiers},
        "starts": collected.starts,
        "promptStarts": collected.prompt_starts,
    }


def _notes(runs: Sequence[Run]) -> str:
    notes = [(run.label, note) for run in runs for note in run.notes]
    if not notes:
        return ""
    several = len(runs) > 1
    items = "".join(
        f"<li>{f'<b>{escape(label)}</b>: ' * several}{escape(note)}</li>" for label, note in notes
    )
    return f'<section class="notes"><h2>What is missing</h2><ul>{items}</ul></section>'


def _observations(runs: Sequence[Run], collected: Collector) -> str:
    """Beside what the Countdown experiment has seen where all runs are of Countdown."""
    figures = [
        observations(run, failures) for run, failures in zip(runs, collected.failures, strict=True)
    ]
    beside = all(run.is_countdown for run in runs)
    headings = [
        "",
        *(run.label for run in runs),
        *(["in the Countdown experiment"] if beside else []),
    ]
    rows = [
        [name, *(figure[name] for figure in figures), *([text] if beside else [])]
        for name, text in EXPERIMENT.items()
    ]
    return _table("Observations", headings, rows, "text")


def _comparisons(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for comparison in comparisons:
        rows = figures_table(comparison["before"], comparison["after"])
        models = [
            str(comparison[side].get("settings", {}).get("model", side))
            for side in ("before", "after")
        ]
        table = _table("Held-out tasks, before and after", ["", "before", "after"], rows)
        sentences = [f"before: {models[0]}; after: {models[1]}."]
        if comparison.get("paired"):
            sentences.append(in_words(comparison["paired"]))
        for name, (first, second) in comparison.get("different_settings", {}).items():
            sentences.append(f"{name} differs: {first!r} before, {second!r} after.")
        yield table + f"<p>{escape(' '.join(sentences))}</p>"


def _settings(runs: Sequence[Run]) -> str:
    rows = []
    for name in SETTINGS:
        values = [run.settings.get(name) for run in runs]
        if any(value is not None for value in values):
            shown = [value if isinstance(value, str) else json.dumps(value) for value in values]
            differs = " *" if len(set(shown)) > 1 else ""
            rows.append([name + differs, *(value[:LONGEST_SETTING] for value in shown)])
    if not rows:
        return ""
    note = "<p>* differs between the runs</p>" if any(row[0].endswith("*") for row in rows) else ""
    return _table("Settings", ["", *(run.label for run in runs)], rows, "text") + note


def _table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers"
) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    caption = escape(title)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table class="{kind}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
