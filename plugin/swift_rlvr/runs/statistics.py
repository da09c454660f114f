"""Estimates from samples with their intervals: shares, pass@k, groups without a gradient; and the
summary of records.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from swift_rlvr.runs.records import Record


def by_row(records: Sequence[Record], strict: bool = False) -> dict[int, list[bool]]:
    """The successes of each row's graded completions, by the row's index.

    strict: a success counts only in the right format.
    """
    successes: dict[int, list[bool]] = defaultdict(list)
    for record in records:
        success = record.strict if strict else record.success
        if success is not None:
            successes[record.index].append(success)
    return dict(successes)


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval for a share of n trials, 95% for z = 1.96 (Wilson 1927; Brown et al.
    2001, eq. 4).
    """
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = max(0.0, (centre - spread) / scale)
    high = min(1.0, (centre + spread) / scale)
    return low, high


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Unbiased estimate of the chance that one of k samples is right, from n samples (Chen et al.
    2021, eq. 1).

    >>> pass_at_k(n=4, correct=1, k=2)
    0.5
    """
    return 1 - math.comb(n - correct, k) / math.comb(n, k)


def no_spread(n: int, correct: int, group: int) -> float:
    """The expected share of groups in which all or none are right, which teach GRPO nothing (DAPO,
    2503.14476).

    Unbiased, from n samples of which `correct` are right, as `pass_at_k` is.
    """
    all_wrong = math.comb(n - correct, group)
    all_right = math.comb(correct, group)
    return (all_wrong + all_right) / math.comb(n, group)


def bootstrap(values: Sequence[float], resamples: int = 2_000) -> tuple[float, float]:
    """A 95% bootstrap interval of the mean of values (percentiles; Efron and Tibshirani 1993,
    section 13.3).
    """
    import numpy as np

    data = np.asarray(values, dtype=float)
    # Seeded, so that the same records always have the same interval.
    generator = np.random.default_rng(0)
    means = [data[generator.integers(len(data), size=len(data))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95% interval of the mean of shares from 0 to 1: Wilson's where each is 0 or 1, else the
    bootstrap's.

    Where all are 0, Wilson's does not shrink to a point as a bootstrap would.
    """
    if values and set(values) <= {0, 1}:
        return wilson(sum(values) / len(values), len(values))
    return bootstrap(values)


def summarize(records: Sequence[Record]) -> dict[str, Any]:
    """The figures of one evaluation.

    success: the share of successes, which is pass@1. Each graded task counts once, however many
        samples it has. The interval counts tasks, because the samples of a task are not
        independent.
    strict: the same where a success must have the right format too.
    pass_at_k: for the powers of two up to the number of samples. A task with fewer than k graded
        samples is left out.
    success_by_task: of a mixture, the success of each kind of task.
    seeds, seed_spread: of several seeds, the success with each, and its standard deviation.

    >>> summarize([Record(index=0, completion="", rewards={}, success=True, tokens=7, finish="stop")])["success"]
    1.0
    """
    successes_by_row = by_row(records)
    success, success_interval = _estimate(_shares(records))
    strict, strict_interval = _estimate(_shares(records, strict=True))
    summary: dict[str, Any] = {
        "tasks": len(successes_by_row),
        "completions": len(records),
        "ungraded": 0,
        "success": success,
        "success_interval": success_interval,
        "strict": strict,
        "strict_interval": strict_interval,
        "pass_at_k": {},
        "pass_at_k_interval": {},
        "success_by_task": {},
        "success_by_task_interval": {},
    }

    k = 1
    most_samples = max(map(len, successes_by_row.values()), default=0)
    while k <= most_samples:
        estimates = []
        for successes in successes_by_row.values():
            if len(successes) >= k:
                estimates.append(pass_at_k(len(successes), sum(successes), k))
        share, interval = _estimate(estimates)
        summary["pass_at_k"][str(k)] = share
        summary["pass_at_k_interval"][str(k)] = interval
        k *= 2

    by_task: dict[str, list[Record]] = defaultdict(list)
    by_seed: dict[int, list[Record]] = defaultdict(list)
    formats, tokens, ends = list[bool](), list[int](), list[bool]()
    reasons = Counter[str]()
    for record in records:
        summary["ungraded"] += record.success is None
        reasons[record.reason] += 1
        by_task[record.task or "unknown task"].append(record)
        if record.seed is not None:
            by_seed[record.seed].append(record)
        # A server, or a file of another tool, may not say the others.
        if record.format is not None:
            formats.append(record.format)
        if record.tokens is not None:
            tokens.append(record.tokens)
        if record.finish is not None:
            ends.append(record.finish == "length")
    if len(by_task) > 1:
        for task in sorted(by_task):
            share, interval = _estimate(_shares(by_task[task]))
            summary["success_by_task"][task] = share
            summary["success_by_task_interval"][task] = interval
    # A seed of which nothing was graded has no success, and 0 would be one.
    seeds = {}
    for seed in sorted(by_seed):
        shares = _shares(by_seed[seed])
        if shares:
            seeds[str(seed)] = fmean(shares)
    if len(seeds) > 1:
        summary["seeds"] = seeds
        summary["seed_spread"] = stdev(seeds.values())

    return summary | {
        "format": fmean(formats) if formats else None,
        "mean_tokens": fmean(tokens) if tokens else None,
        "cut_off": fmean(ends) if ends else None,
        "reasons": {reason: count / len(records) for reason, count in reasons.most_common()},
    }


def _shares(records: Sequence[Record], strict: bool = False) -> list[float]:
    """The share of successes of each row that was graded."""
    return [fmean(successes) for successes in by_row(records, strict).values()]


def _estimate(shares: Sequence[float]) -> tuple[float | None, list[float] | None]:
    """The mean of shares with its interval; None if there are none."""
    if not shares:
        return None, None
    return fmean(shares), list(mean_interval(shares))


def is_number(value: object) -> bool:
    """Whether a logged value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
