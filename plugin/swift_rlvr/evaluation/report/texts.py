"""The texts and tables of the report's page, as HTML: whether training helped, what is remarkable about
the data, figures, observations, settings.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from swift_rlvr.evaluation.compare import (
    figure_text,
    figures_table,
    in_words,
    model_of,
    settings_in_words,
)
from swift_rlvr.evaluation.report.completions import PageCompletions
from swift_rlvr.evaluation.report.observations import observations, success_in_training
from swift_rlvr.evaluation.report.reading import Run
from swift_rlvr.tasks import TASKS

# The settings that the page shows, in this order.
SETTINGS = (
    "model",
    "rlhf_type",
    "learning_rate",
    "lr_scheduler_type",
    "beta",
    "epsilon",
    "num_generations",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "num_iterations",
    "temperature",
    "top_p",
    "max_completion_length",
    "max_steps",
    "loss_type",
    "advantage_estimator",
    "reward_funcs",
    "rewards",
    "reward_weights",
    "seed",
)
LONGEST_SETTING = 200


def tables(
    runs: Sequence[Run],
    completions: PageCompletions,
    comparisons: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    """The tables of the page, in order."""
    for comparison in comparisons:
        yield _comparison(comparison)
    for run in runs:
        if run.summary is not None:
            title = f"{run.label}, step {run.steps[-1]['step']:,}" if run.steps else run.label
            yield _table(title, ["", "value"], figures_table(run.summary))
    # Of a training: completions alone have no first and last tenth.
    if any(run.graded is None for run in runs):
        yield _observations(runs, completions)
    yield _settings(runs)


def verdict(runs: Sequence[Run], comparisons: Sequence[Mapping[str, Any]]) -> str:
    """Whether training helped: the comparisons with their p-values, else the logged success."""
    text = ""
    for comparison in comparisons:
        before = figure_text(comparison["before"], "success", ".3f")
        after = figure_text(comparison["after"], "success", ".3f")
        conclusion = ""
        if comparison.get("paired"):
            conclusion = in_words(comparison["paired"])
        elif comparison.get("not_tested"):
            conclusion = f"The difference was not tested: {comparison['not_tested']}."
        figures = f"Held-out success: {before} before, {after} after."
        text += f"<p><b>{escape(figures)}</b> {escape(conclusion)}</p>"
    if comparisons:
        return text

    for run in runs:
        # Also completions with steps, such as verl's dumps, are of a training.
        if run.summary is None or run.steps:
            figures = f"Success in training: {success_in_training(run)}."
        else:
            success = figure_text(run.summary, "success", ".3f")
            figures = f"Success: {success} of {run.summary['tasks']:,} tasks."
        label = f"{run.label}: " if len(runs) > 1 else ""
        text += f"<p><b>{escape(label + figures)}</b> </p>"
    return text + (
        '<p class="hint">For a p-value, run swift-rlvr evaluate before and after training, then '
        "swift-rlvr compare --out, and pass the result with --comparison.</p>"
    )


def notes(runs: Sequence[Run]) -> str:
    items = ""
    for run in runs:
        label = f"<b>{escape(run.label)}</b>: " if len(runs) > 1 else ""
        for note in run.notes:
            items += f"<li>{label}{escape(note)}</li>"
    if not items:
        return ""
    return f'<section class="notes"><h2>Notes on the data</h2><ul>{items}</ul></section>'


def _observations(runs: Sequence[Run], completions: PageCompletions) -> str:
    """The observations; where all runs are of one task, beside what an experiment with it has seen."""
    figures = []
    for run, failures in zip(runs, completions.failures, strict=True):
        figures.append(observations(run, failures))
    headings = ["", *(run.label for run in runs)]
    seen: Mapping[str, str] = {}
    task = runs[0].judged_task
    if task is not None and all(run.judged_task == task for run in runs):
        seen = TASKS[task].seen_in_experiment
    if seen:
        headings.append(f"{task} experiment".capitalize())
    rows = []
    for name in figures[0]:
        row = [name, *(figure[name] for figure in figures)]
        if seen:
            row.append(seen.get(name, ""))
        rows.append(row)
    return _table("Observations", headings, rows, "text")


def _comparison(comparison: Mapping[str, Any]) -> str:
    rows = figures_table(comparison["before"], comparison["after"])
    table = _table("Held-out tasks before and after training", ["", "before", "after"], rows)
    models = []
    for side in ("before", "after"):
        models.append(f"{side}: {model_of(comparison[side]) or side}")
    # Settings that differ besides the model are another reason for a difference than the training.
    sentences = [f"{'; '.join(models)}."]
    if comparison.get("paired"):
        sentences.append(in_words(comparison["paired"]))
    sentences += [f"{difference}." for difference in settings_in_words(comparison)]
    return f"{table}<p>{escape(' '.join(sentences))}</p>"


def _settings(runs: Sequence[Run]) -> str:
    rows = []
    some_differ = False
    for name in SETTINGS:
        texts = []
        is_known = False
        for run in runs:
            value = run.settings.get(name)
            is_known |= value is not None
            # A list of names is read without its brackets and quotes, and breaks between them.
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                value = ", ".join(value)
            texts.append(value if isinstance(value, str) else json.dumps(value))
        # Some only one trainer has, such as rlhf_type.
        if not is_known:
            continue
        heading = name
        if len(set(texts)) > 1:
            heading += " *"
            some_differ = True
        rows.append([heading, *(text[:LONGEST_SETTING] for text in texts)])
    if not rows:
        return ""
    table = _table("Settings", ["", *(run.label for run in runs)], rows, "text")
    return table + ("<p>* differs between the runs</p>" if some_differ else "")


def _table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers"
) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = ""
    for heading, *cells in rows:
        columns = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        body += f'<tr><th scope="row">{escape(heading)}</th>{columns}</tr>'
    caption = escape(title)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table class="{kind}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
