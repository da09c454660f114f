"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and a summary.

`swift-rlvr evaluate MODEL --dataset FILE --out DIR` writes records.jsonl, one graded completion a line, and
summary.json; with --greedy both for the greedy completions too, in the folder DIR/greedy; with --max_turns both for the
conversations that go on after a wrong answer with the verifier's feedback, in DIR/turns.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.data.prompts import system_prompt
from swift_rlvr.data.sources import Source, parse_source
from swift_rlvr.environments import FEEDBACK_TOKENS
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.summary import check_ks, summarize
from swift_rlvr.evaluation.turns import summarize_turns, take_turns
from swift_rlvr.jsonl import write_json
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.records import Record, write_records
from swift_rlvr.sampling import SamplingSettings, choose_engine, open_engine
from swift_rlvr.sampling.progress import sample_with_bar
from swift_rlvr.tasks.task import with_system

HUB_ROWS = 500  # by default, of a dataset on a hub: +-0.04 on success


def evaluate(
    sampling: SamplingSettings,
    dataset: str,
    out: str | Path,
    console: Console,
    system: str | None = None,
    seeds: Sequence[int] = (),
    greedy: bool = False,
    ks: Collection[int] = (),
    max_turns: int = 1,
) -> dict[str, Any]:
    """Run an evaluation, write its two files into the folder `out` and return the summary.

    Args:
        dataset: as in `swift_rlvr.data.sources.parse_source`, 500 rows of a NAME without #N; `sampling.use_hf` is for
            a NAME too.
        system: the system prompt; None for the one the model was trained with, see `system_prompt`.
        seeds: sample once with each of them, and count all the samples; none is `sampling.seed`.
        greedy: write one greedy completion of each task too, into out/greedy; its summary is `greedy` of the summary.
        ks: the k of pass@k, see `summarize`.
        max_turns: with more than 1, wrong samples are continued after feedback; `turns` of the summary is theirs.
    """
    if max_turns < 1:
        raise InputError(f"must be at least 1, got {max_turns}", "max_turns")
    seeds = list(seeds) or [sampling.seed]
    for seed in seeds:
        replace(sampling, seed=seed)  # is it one?
    check_ks(ks, sampling.num_generations * len(seeds))
    if len(set(seeds)) < len(seeds):
        raise InputError(f"must be different ones, got {','.join(map(str, seeds))}", "seeds")
    if sampling.temperature == 0 and (greedy or len(seeds) > 1):
        raise InputError("samples greedily at 0; --greedy and --seeds are for one above", "temperature")
    source = capped_source(dataset, sampling.use_hf)
    rows = read_rows(source)
    prompt = system_prompt(sampling.model, source.task)[0] if system is None else system
    conversations = [with_system(row["messages"], prompt, override=system is not None) for row in rows]
    used = {**asdict(sampling), "engine": choose_engine(sampling)}
    used |= {"task": source.task.name, "dataset": dataset, "rows": len(rows), "system": prompt}
    used |= {"seed": None, "seeds": seeds} if len(seeds) > 1 else {"seed": seeds[0]}
    records: list[Record] = []
    continued: list[Record] = []
    growth = (max_turns - 1) * (sampling.max_completion_length + FEEDBACK_TOKENS)
    with open_engine(replace(sampling, seed=seeds[0]), conversations, growth) as engine:
        for place, seed in enumerate(seeds):
            samples = sample_with_bar(engine, conversations, console, seed=seed)
            made = [(records, grade_samples(source.task, rows, conversations, samples))]
            if max_turns > 1:
                again = take_turns(engine, seed, source.task, rows, conversations, samples, max_turns, console)
                made.append((continued, again))
            for all_of_them, graded in made:
                for record in graded:
                    record.sample += place * sampling.num_generations
                    record.seed = seed if len(seeds) > 1 else None
                all_of_them += graded
        if greedy:
            samples = sample_with_bar(engine, conversations, console, n=1, temperature=0)
            likeliest = grade_samples(source.task, rows, conversations, samples)
    for each in (records, continued):
        each.sort(key=lambda record: (record.index, record.sample))
    summary = {"settings": used, **summarize(records, ks)}
    if max_turns > 1:
        summary["turns"] = {
            "settings": used | {"max_turns": max_turns},
            **summarize_turns(records, continued, max_turns),
        }
        _write(Path(out) / "turns", continued, summary["turns"])
    if greedy:
        summary["greedy"] = {"settings": used | {"num_generations": 1, "temperature": 0}, **summarize(likeliest)}
        _write(Path(out) / "greedy", likeliest, summary["greedy"])
    _write(Path(out), records, summary)
    return summary


def _write(folder: Path, records: Sequence[Record], summary: dict[str, Any]) -> None:
    write_records(folder / RECORDS, records)
    write_json(folder / "summary.json", summary)


def capped_source(name: str, use_hf: bool) -> Source:
    """The dataset of this name, as in `parse_source`; of one on a hub without #N only the first HUB_ROWS rows."""
    source = parse_source(name, use_hf)
    return replace(source, limit=HUB_ROWS) if source.path is None and source.limit is None else source


def read_rows(source: Source) -> list[dict[str, Any]]:
    """The rows, preprocessed; InputError, naming the line, for a row that cannot be used."""
    rows = []
    for line, row in source.rows():
        with source.at(line):
            rows.append(source.task.preprocess(row))
    return rows
