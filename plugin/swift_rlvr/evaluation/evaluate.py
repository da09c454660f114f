"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and a summary.

`swift-rlvr evaluate MODEL --data FILE --out DIR` writes records.jsonl, one graded completion a line, and summary.json.
"""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.data.prompts import system_prompt
from swift_rlvr.data.sources import Source, parse_source
from swift_rlvr.evaluation.sampling import SamplingSettings, choose_backend, sample
from swift_rlvr.evaluation.summary import summarize
from swift_rlvr.jsonl import write_json, write_jsonl
from swift_rlvr.tasks.task import with_system

HUB_ROWS = 500  # by default, of a dataset on a hub: +-0.04 on success


def evaluate(
    sampling: SamplingSettings,
    data: str,
    out: str | Path,
    console: Console,
    limit: int | None = None,
    system: str | None = None,
) -> dict[str, Any]:
    """Run an evaluation, write its two files into the folder `out` and return the summary.

    Args:
        data: a dataset as in `swift_rlvr.data.sources.parse_source`; `sampling.use_hf` is for a NAME too.
        limit: only the first so many rows; None for all rows of a file, and 500 of a NAME without #N.
        system: the system prompt; None for the one the model was trained with, see `system_prompt`.
    """
    source = parse_source(data, sampling.use_hf)
    if limit is None and source.path is None and source.limit is None:
        limit = HUB_ROWS
    rows = read_rows(source, limit)
    prompt = system_prompt(sampling.model, source.task)[0] if system is None else system
    conversations = [with_system(row["messages"], prompt, override=system is not None) for row in rows]
    records = grade_samples(source.task, rows, sample(sampling, conversations, console))
    used = {**asdict(sampling), "backend": choose_backend(sampling.backend)}
    used |= {"task": source.task.name, "data": data, "rows": limit, "system": prompt}
    summary = {"settings": used, **summarize(records)}
    write_jsonl(Path(out) / "records.jsonl", records)
    write_json(Path(out) / "summary.json", summary)
    return summary


def read_rows(source: Source, limit: int | None = None) -> list[dict[str, Any]]:
    """The first `limit` rows, or all, preprocessed; InputError, naming the line, for a row that cannot be used."""
    rows = []
    for line, row in islice(source.rows(), limit):
        with source.at(line):
            rows.append(source.task.preprocess(row))
    return rows
