"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and
a summary.

`swift-rlvr evaluate MODEL --dataset FILE --out DIR` writes records.jsonl and summary.json, and
settings.json, by which an interrupted evaluation goes on. With --greedy the folder DIR/greedy gets
the same for the greedy completions.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.evaluation.sample_dataset import SampledDataset, Sampler
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.runs.folder import SUMMARY
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
    columns: str = "",
    reward_funcs: Sequence[str] = (),
) -> dict[str, Any]:
    """Run an evaluation, or go on with an interrupted one; writes its files into the folder `out`,
    returns the summary.

    Args:
        dataset, system, columns, reward_funcs: as in `SampledDataset.read`.
        seeds: sample once with each of them, and count all the samples; by default only with
            `sampling.seed`.
        greedy: also one greedy completion of each task, in out/greedy, and in `greedy` of the
            summary.
    """
    seeds = list(seeds) or [sampling.seed]
    for seed in seeds:
        replace(sampling, seed=seed)  # InputError if it is out of range
    if len(set(seeds)) < len(seeds):
        raise InputError(f"must be different seeds, got {','.join(map(str, seeds))}", "seeds")
    if sampling.temperature == 0 and (greedy or len(seeds) > 1):
        raise InputError(
            "must be above 0 with --greedy or --seeds, because 0 samples greedily", "temperature"
        )
    sampling = replace(sampling, seed=seeds[0])
    out = Path(out)
    sampled = SampledDataset.read(
        dataset, sampling.model, system, sampling.use_hf, columns, reward_funcs
    )
    settings = sampled.settings(sampling, dataset)
    if len(seeds) > 1:
        settings |= {"seed": None, "seeds": seeds}
    with Sampler(sampling, sampled, console) as sampler:
        records = sampler.fill(out, settings, [{"seed": seed} for seed in seeds])
        summary = sampler.summary(out, records)
        # Before the greedy completions, which may be interrupted.
        write_json(out / SUMMARY, summary)
        if greedy:
            changes: dict[str, Any] = {"num_generations": 1, "temperature": 0}
            records = sampler.fill(out / "greedy", settings | changes, [changes])
            summary["greedy"] = sampler.summary(out / "greedy", records)
            write_json(out / "greedy" / SUMMARY, summary["greedy"])
            write_json(out / SUMMARY, summary)
    return summary
