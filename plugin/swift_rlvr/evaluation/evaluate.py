"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and
a summary.

`swift-rlvr evaluate MODEL --dataset FILE --out DIR` writes records.jsonl and summary.json, and
settings.json, by which an interrupted evaluation goes on; with --greedy the same for the greedy
completions, in the folder DIR/greedy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.evaluation.sampled import Rows, Sampler
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json


def evaluate(
    sampling: SamplingSettings,
    dataset: str,
    out: str | Path,
    console: Console,
    system: str | None = None,
    seeds: Sequence[int] = (),
    greedy: bool = False,
) -> dict[str, Any]:
    """Run an evaluation, or go on with an interrupted one; writes its files into the folder `out`,
    returns the summary.

    dataset, system: as in `Rows.read`. seeds: sample once with each of them, and count all the
    samples; none is `sampling.seed`. greedy: one greedy completion of each task too, in out/greedy,
    and in `greedy` of the summary.
    """
    seeds = list(seeds) or [sampling.seed]
    for seed in seeds:
        replace(sampling, seed=seed)  # is it one?
    if len(set(seeds)) < len(seeds):
        raise InputError(f"must be different ones, got {','.join(map(str, seeds))}", "seeds")
    if sampling.temperature == 0 and (greedy or len(seeds) > 1):
        raise InputError(
            "samples greedily at 0; --greedy and --seeds are for one above", "temperature"
        )
    sampling, out = replace(sampling, seed=seeds[0]), Path(out)
    rows = Rows.read(dataset, sampling.model, system, sampling.use_hf)
    used = rows.settings(sampling, dataset) | (
        {"seed": None, "seeds": seeds} if len(seeds) > 1 else {}
    )
    with Sampler(sampling, rows, console) as sampler:

        def evaluated(
            folder: Path, changes: dict[str, Any], draws: Sequence[Mapping[str, Any]]
        ) -> dict[str, Any]:
            settings = used | changes
            summary = {"settings": settings, **summarize(sampler.fill(folder, settings, draws))}
            write_json(folder / "summary.json", summary)
            return summary

        summary = evaluated(out, {}, [{"seed": seed} for seed in seeds])
        if greedy:
            changes: dict[str, Any] = {"num_generations": 1, "temperature": 0}
            summary["greedy"] = evaluated(out / "greedy", changes, [changes])
            write_json(out / "summary.json", summary)
    return summary
