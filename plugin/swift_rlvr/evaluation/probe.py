"""Has GRPO something to learn from a dataset with this model? Samples every row, grades it, and
finds the rows to keep.

`swift-rlvr probe MODEL --dataset DATASET --out DIR` writes records.jsonl, one graded completion a
line and added to as the samples come in; settings.json, by which an interrupted probe goes on;
probe.jsonl, one row of the dataset a line; and summary.json. With --keep LOW..HIGH the rows whose
pass rate is in that range go to keep.jsonl.
"""

import re
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.evaluation.sampled import SETTINGS, Rows, Sampler
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.runs.folder import as_json
from swift_rlvr.runs.grades import reason_of
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import mean_interval, no_spread, summarize, wilson
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, write_json, write_jsonl

BINS = ("0", "up to 0.25", "up to 0.5", "up to 0.75", "below 1", "1")
PLENTY, LITTLE = 0.5, 0.1  # shares of the groups with a gradient, for the closing sentence


def parse_keep(text: str) -> tuple[float, float]:
    """The pass rates of the rows that are worth training on, both ends included, from LOW..HIGH;
    else InputError.
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\.\.([0-9]*\.?[0-9]+)", text)
    low, high = (float(match[1]), float(match[2])) if match else (1.0, 0.0)
    if not low <= high <= 1:
        raise InputError(
            f"must be LOW..HIGH, two pass rates from 0 to 1 such as 0.1..0.9, got {text}", "keep"
        )
    return low, high


def probe(
    sampling: SamplingSettings,
    dataset: str,
    out: Path,
    console: Console,
    system: str | None = None,
    group_size: int = 8,
    keep: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Probe, or go on with an interrupted probe; writes the files into the folder `out` and returns
    the summary.

    dataset, system: as in `Rows.read`. group_size: the completions per prompt of the training, at
    most `sampling.num_generations`. keep: the pass rates of the rows to write to out/keep.jsonl;
    where no row has one, `rows` in the summary's `keep` is 0, and no file is written.
    """
    if group_size < 2:
        raise InputError(f"must be at least 2, got {group_size}", "group_size")
    if sampling.num_generations < group_size:
        problem = f"must be at least --group_size, {group_size}, got {sampling.num_generations}"
        raise InputError(problem, "num_generations")
    rows = Rows.read(dataset, sampling.model, system, sampling.use_hf)
    with Sampler(sampling, rows, console) as sampler:
        records = sampler.fill(out, rows.settings(sampling, dataset))
    groups = [
        records[i : i + sampling.num_generations]
        for i in range(0, len(records), sampling.num_generations)
    ]
    per_row = [_figures(rows, group, group_size) for group in groups]
    graded = [row for row in per_row if row["pass_rate"] is not None]
    if not graded:
        raise InputError(
            f"no completion for {rows.source} could be graded: {reason_of(records[0])}"
        )
    shares = [row["no_spread"] for row in graded if row["no_spread"] is not None]
    rates = Counter(
        bisect_left((0, 0.25, 0.5, 0.75), row["pass_rate"]) + (row["pass_rate"] == 1)
        for row in graded
    )
    summary = {
        "settings": read_json(out / SETTINGS),
        **summarize(records),
        "group_size": group_size,
        "no_spread": statistics.fmean(shares) if shares else None,
        "no_spread_interval": list(mean_interval(shares)) if shares else None,
        "pass_rates": {name: rates[number] for number, name in enumerate(BINS)},
    }
    summary["verdict"] = verdict(summary)
    write_jsonl(out / "probe.jsonl", per_row)
    if keep is not None:
        summary["keep"] = _write_kept(keep, out / "keep.jsonl", rows, graded)
    write_json(out / "summary.json", summary)
    return summary


def verdict(summary: Mapping[str, Any]) -> str:
    """One sentence: has GRPO something to learn from here?

    What counts is the share of groups that have a gradient, 1 - `no_spread`; the limits are rules
    of thumb of this package. pass@k far above pass@1 says that right answers are within reach of
    the sampling.

    >>> verdict({"success": 0.0, "completions": 144, "no_spread": 1.0, "group_size": 8})
    'GRPO has nothing to learn from here: none of 144 completions is right; take easier rows or a warm start.'
    """
    share = 0.0 if summary["no_spread"] is None else 1 - summary["no_spread"]
    group = summary["group_size"]
    if not summary["success"]:
        return (
            f"GRPO has nothing to learn from here: none of {summary['completions']:,} completions is right; "
            "take easier rows or a warm start."
        )
    if summary["success"] == 1:
        return "GRPO has nothing to learn from here: every completion is right; take harder rows."
    most = max(summary["pass_at_k"], key=int)
    within = f"pass@{most} is {summary['pass_at_k'][most]:.2f}, pass@1 {summary['success']:.2f}"
    if share >= PLENTY:
        return f"GRPO has plenty to learn from here: {share:.0%} of the groups of {group} have a gradient; {within}."
    hard = summary["success"] < 0.5
    amount = "something" if share >= LITTLE else "little"
    return (
        f"GRPO has {amount} to learn from here: {share:.0%} of the groups of {group} have a gradient, "
        f"most others are all {'wrong' if hard else 'right'}; {within}; --keep 0.1..0.9 leaves the rows that teach."
    )


def _figures(rows: Rows, records: Sequence[Record], group_size: int) -> dict[str, Any]:
    """One row of the dataset: its pass rate with Wilson's interval, and why its completions
    fail.
    """
    index = records[0].index
    right = [record.success for record in records if record.success is not None]
    n, correct = len(right), sum(right)
    columns = rows.source.task.reward_columns or tuple(rows.prepared[index])
    return {
        "index": index,
        "line": rows.lines[index],
        **{name: value for name, value in records[0].row.items() if name in columns},
        "graded": n,
        "right": correct,
        "pass_rate": correct / n if n else None,
        "interval": list(wilson(correct / n, n)) if n else None,
        "no_spread": no_spread(n, correct, group_size) if n >= group_size else None,
        "format": statistics.fmean(bool(record.format) for record in records),
        "mean_tokens": statistics.fmean(record.tokens or 0 for record in records),
        "reasons": dict(Counter(reason_of(record) for record in records).most_common()),
    }


def _write_kept(
    keep: tuple[float, float], file: Path, rows: Rows, graded: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    low, high = keep
    kept = [row for row in graded if low <= row["pass_rate"] <= high]
    chosen = [{**rows.raw[row["index"]], "pass_rate": row["pass_rate"]} for row in kept]
    if chosen:
        write_jsonl(file, map(as_json, chosen))  # dates and the like as text
    return {"range": f"{low:g}..{high:g}", "file": str(file), "rows": len(kept), "of": len(graded)}
