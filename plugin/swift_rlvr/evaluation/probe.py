"""Can GRPO learn anything from a dataset with this model? Samples every row, grades it, and
finds the rows to keep.

`swift-rlvr probe MODEL --dataset DATASET --out DIR` writes records.jsonl, one graded completion a
line, to which it adds as the samples come in; settings.json, by which an interrupted probe goes on;
probe.jsonl, one row of the dataset a line; and summary.json. With --keep LOW..HIGH the rows whose
pass rate is in that range go to keep.jsonl.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from swift_rlvr.evaluation.sample_dataset import SampledDataset, SampledRow, Sampler
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.runs.folder import SUMMARY, as_json
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import mean_interval, no_spread, wilson
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json, write_jsonl

# Pass rates are counted in these bins, each up to its number; a rate belongs to the first that holds it.
BINS = {
    "0": 0.0,
    "up to 0.25": 0.25,
    "up to 0.5": 0.5,
    "up to 0.75": 0.75,
    "below 1": math.nextafter(1, 0),
    "1": 1.0,
}
# Shares of the groups with a gradient, for the closing sentence: rules of thumb of this package.
PLENTY = 0.5
LITTLE = 0.1
# A share of completions that are cut off from which on the limit is to blame, not the rows.
OFTEN_CUT_OFF = 0.2
# How servers are given a longer context.
LONGER_CONTEXT = (
    "start it with a longer one (--vllm_max_model_len of swift rollout, --max-model-len of vLLM)"
)


def parse_keep(text: str) -> tuple[float, float]:
    """The pass rates of the rows that are worth training on, both ends included, from LOW..HIGH;
    else InputError.
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\.\.([0-9]*\.?[0-9]+)", text)
    if match is not None:
        low = float(match[1])
        high = float(match[2])
        if low <= high <= 1:
            return low, high
    raise InputError(
        f"must be LOW..HIGH, two pass rates from 0 to 1 such as 0.1..0.9, got {text}", "keep"
    )


def probe(
    sampling: SamplingSettings,
    dataset: str,
    out: Path,
    console: Console,
    group_size: int,
    system: str | None = None,
    keep: tuple[float, float] | None = None,
    columns: str = "",
    reward_funcs: Sequence[str] = (),
) -> dict[str, Any]:
    """Probe, or go on with an interrupted probe; writes the files into the folder `out` and returns
    the summary.

    Args:
        dataset, system, columns, reward_funcs: as in `SampledDataset.read`.
        group_size: the completions per prompt of the training, at most `sampling.num_generations`.
        keep: the pass rates of the rows to write to out/keep.jsonl. Where no row has one, `rows` in
            the summary's `keep` is 0, and no file is written.
    """
    samples = sampling.num_generations
    if group_size < 2:
        raise InputError(f"must be at least 2, got {group_size}", "group_size")
    if samples < group_size:
        problem = f"must be at least --group_size, {group_size}, got {samples}"
        raise InputError(problem, "num_generations")

    sampled = SampledDataset.read(
        dataset, sampling.model, system, sampling.use_hf, columns, reward_funcs
    )
    with Sampler(sampling, sampled, console) as sampler:
        records = sampler.fill(out, sampled.settings(sampling, dataset))
        summary = sampler.summary(out, records)
    per_row = []
    graded = []
    shares = []
    for start in range(0, len(records), samples):
        of_row = records[start : start + samples]
        row = sampled.rows[of_row[0].index]
        # Without a verifier the task does not say what is worth showing.
        names = sampled.source.task.reward_columns or tuple(row.prepared)
        figures = _row_figures(row, of_row, names, group_size)
        per_row.append(figures)
        if figures["pass_rate"] is not None:
            graded.append(figures)
        # A row with fewer graded completions than a group says nothing about groups.
        if figures["no_spread"] is not None:
            shares.append(figures["no_spread"])
    if not graded:
        raise InputError(f"no completion for {sampled.source} could be graded: {records[0].reason}")

    summary["group_size"] = group_size
    summary["no_spread"] = summary["no_spread_interval"] = None
    if shares:
        summary["no_spread"] = statistics.fmean(shares)
        summary["no_spread_interval"] = list(mean_interval(shares))
    summary["pass_rates"] = dict.fromkeys(BINS, 0)
    for figures in graded:
        bin_of_row = next(name for name, most in BINS.items() if figures["pass_rate"] <= most)
        summary["pass_rates"][bin_of_row] += 1
    summary["verdict"] = conclusion(summary)
    write_jsonl(out / "probe.jsonl", per_row)
    if keep is not None:
        low, high = keep
        kept = []
        for figures in graded:
            pass_rate = figures["pass_rate"]
            if low <= pass_rate <= high:
                # As it was read, so that the file is a dataset of the same task.
                raw = sampled.rows[figures["index"]].raw
                kept.append(as_json({**raw, "pass_rate": pass_rate}))
        file = out / "keep.jsonl"
        # An earlier file stays where no row is in the range: the command says that there is none.
        if kept:
            write_jsonl(file, kept)
        counts = {"rows": len(kept), "of": len(graded)}
        summary["keep"] = {"range": f"{low:g}..{high:g}", "file": str(file), **counts}
    write_json(out / SUMMARY, summary)
    return summary


def conclusion(summary: Mapping[str, Any]) -> str:
    """A sentence on whether GRPO can learn anything here, and another if the limit cuts many off.

    What counts is the share of groups that have a gradient, 1 - `no_spread`. pass@k far above
    pass@1 says that right answers are within reach of the sampling.

    >>> conclusion({"success": 0.0, "completions": 144, "no_spread": 1.0, "group_size": 8}).partition(";")[0]
    'GRPO has nothing to learn from here: none of 144 completions is right'
    """
    cut_off = summary.get("cut_off") or 0.0
    verdict = _learnable(summary, is_cut_off=cut_off >= OFTEN_CUT_OFF)
    if cut_off < OFTEN_CUT_OFF:
        return verdict
    limit = summary["settings"]["max_completion_length"]
    cut_short = summary.get("cut_short", 0.0)
    # A higher limit does not help those that the server has ended before it.
    if cut_short > cut_off / 2:
        return (
            f"{verdict} The server's own context ended {cut_short:.1%} of the completions before "
            f"{limit:,} tokens: {LONGER_CONTEXT} and probe again."
        )
    return (
        f"{verdict} {cut_off:.1%} of the completions were cut off at {limit:,} tokens: raise "
        "--max_completion_length and probe again, or use a model that ends its answers."
    )


def _learnable(summary: Mapping[str, Any], is_cut_off: bool) -> str:
    """How much there is to learn, by the success and the groups with a gradient. is_cut_off: the limit
    is to blame where nothing is right, and no remedy for the rows is given.
    """
    success = summary["success"]
    if not success:
        remedy = "; use easier rows, or train on right answers first (cold start)"
        return (
            f"GRPO has nothing to learn from here: none of {summary['completions']:,} completions "
            f"is right{'' if is_cut_off else remedy}."
        )
    if success == 1:
        return "GRPO has nothing to learn from here: every completion is right; use harder rows."

    share = 0.0 if summary["no_spread"] is None else 1 - summary["no_spread"]
    gradient = f"{share:.0%} of the groups of {summary['group_size']} have a gradient"
    # The keys are texts, as in JSON, of which "8" would be more than "16".
    most = max(summary["pass_at_k"], key=int)
    within_reach = f"pass@{most} is {summary['pass_at_k'][most]:.2f}, pass@1 {success:.2f}"
    if share >= PLENTY:
        return f"GRPO has plenty to learn from here: {gradient}; {within_reach}."
    amount = "something" if share >= LITTLE else "little"
    others = "wrong" if success < 0.5 else "right"
    return (
        f"GRPO has {amount} to learn from here: {gradient}, most of the others are all {others}; "
        f"{within_reach}; --keep 0.1..0.9 keeps the rows worth training on."
    )


def _row_figures(
    row: SampledRow, records: Sequence[Record], names: Sequence[str], group_size: int
) -> dict[str, Any]:
    """One row of the dataset: its pass rate with Wilson's interval, and why its completions
    fail. names: of the columns to show.
    """
    graded = 0
    right = 0
    in_format = 0
    tokens = []
    reasons = Counter[str]()
    for record in records:
        graded += record.success is not None
        right += record.success is True
        in_format += bool(record.format)
        reasons[record.reason] += 1
        # A server need not count them.
        if record.tokens is not None:
            tokens.append(record.tokens)
    columns = {name: value for name, value in records[0].row.items() if name in names}
    return {
        "index": records[0].index,
        "line": row.line,
        **columns,
        "graded": graded,
        "right": right,
        "pass_rate": right / graded if graded else None,
        "interval": list(wilson(right / graded, graded)) if graded else None,
        "no_spread": no_spread(graded, right, group_size) if graded >= group_size else None,
        "format": in_format / len(records),
        "mean_tokens": statistics.fmean(tokens) if tokens else None,
        "reasons": dict(reasons.most_common()),
    }
