"""How well does a model solve held-out tasks? Samples completions, grades them, writes records and a summary.

`swift-rlvr evaluate MODEL --dataset FILE --out DIR` writes records.jsonl and summary.json, and settings.json, by which
an interrupted evaluation goes on; with --greedy the same for the greedy completions, in the folder DIR/greedy; with
--max_turns for the conversations that go on after a wrong answer with the verifier's feedback, in DIR/turns.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.environments import FEEDBACK_TOKENS
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.sampled import Rows, Sampler
from swift_rlvr.evaluation.summary import check_ks, summarize
from swift_rlvr.evaluation.turns import summarize_turns, take_turns
from swift_rlvr.jsonl import write_json
from swift_rlvr.runs.records import Record
from swift_rlvr.sampling import Engine, SamplingSettings


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
    """Run an evaluation, or go on with an interrupted one; writes its files into the folder `out`, returns the summary.

    Args:
        dataset, system: as in `Rows.read`; `sampling.use_hf` is for a NAME too.
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
    per_row = sampling.num_generations * len(seeds)
    check_ks(ks, per_row)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"must be different ones, got {','.join(map(str, seeds))}", "seeds")
    if sampling.temperature == 0 and (greedy or len(seeds) > 1):
        raise InputError("samples greedily at 0; --greedy and --seeds are for one above", "temperature")
    rows, out = Rows.read(dataset, sampling.model, system, sampling.use_hf), Path(out)
    used = rows.settings(sampling, dataset)
    used |= {"seed": None, "seeds": seeds} if len(seeds) > 1 else {"seed": seeds[0]}
    growth = (max_turns - 1) * (sampling.max_completion_length + FEEDBACK_TOKENS)
    with Sampler(replace(sampling, seed=seeds[0]), rows, console, growth) as sampler:

        def with_seeds(engine: Engine, positions: range, on_progress: Callable[[float], None]) -> list[Record]:
            records = []
            for number, seed in enumerate(seeds):
                for record in sampler.samples(engine, positions, on_progress, seed=seed):
                    record.sample += number * sampling.num_generations
                    record.seed = seed if len(seeds) > 1 else None
                    records.append(record)
            return sorted(records, key=lambda record: (record.index, record.sample))

        def likeliest(engine: Engine, positions: range, on_progress: Callable[[float], None]) -> list[Record]:
            return sampler.samples(engine, positions, on_progress, num_generations=1, temperature=0)

        def continued(engine: Engine, positions: range, on_progress: Callable[[float], None]) -> list[Record]:
            first = records[positions.start * per_row : positions.stop * per_row]
            return take_turns(engine, rows, first, max_turns, on_progress)

        records = sampler.fill(out, used, per_row, with_seeds)
        summary = {"settings": used, **summarize(records, ks)}
        if max_turns > 1:
            settings = used | {"max_turns": max_turns}
            last = sampler.fill(out / "turns", settings, per_row, continued)
            summary["turns"] = {"settings": settings, **summarize_turns(records, last, max_turns)}
            write_json(out / "turns" / "summary.json", summary["turns"])
        if greedy:
            settings = used | {"num_generations": 1, "temperature": 0}
            summary["greedy"] = {
                "settings": settings,
                **summarize(sampler.fill(out / "greedy", settings, 1, likeliest)),
            }
            write_json(out / "greedy" / "summary.json", summary["greedy"])
    write_json(out / "summary.json", summary)
    return summary
