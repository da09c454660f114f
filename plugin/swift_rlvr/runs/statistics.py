"""Estimates from samples with their intervals: shares, pass@k, groups without a gradient; the
summary of records.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from swift_rlvr.runs.grades import reason_of
from swift_rlvr.runs.records import Record


def by_row(records: Sequence[Record], strict: bool = False) -> dict[int, list[bool]]:
    """Which graded completions of each row are successes; where `strict`, also in the right
    format.
    """
    right: dict[int, list[bool]] = defaultdict(list)
    for record in records:
        success = record.strict if strict else record.success
        if success is not None:
            right[record.index].append(success)
    return dict(right)


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval for a share of n trials, 95% for z = 1.96 (Wilson 1927; Brown et al.
    2001, eq. 4).
    """
    centre = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / (1 + z * z / n)), min(
        1.0, (centre + spread) / (1 + z * z / n)
    )


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

    The unbiased estimate from n samples of which some were right, as in `pass_at_k`.
    """
    return (math.comb(n - correct, group) + math.comb(correct, group)) / math.comb(n, group)


def bootstrap(values: Sequence[float], resamples: int = 2_000) -> tuple[float, float]:
    """A 95% bootstrap interval of the mean of values (percentiles; Efron and Tibshirani 1993,
    section 13.3).
    """
    import numpy as np

    data, generator = np.asarray(values, dtype=float), np.random.default_rng(0)
    means = [data[generator.integers(len(data), size=len(data))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95% interval of the mean of shares from 0 to 1: Wilson's where each is 0 or 1, else the
    bootstrap's.

    Wilson's does not shrink to a point where all are 0, which a bootstrap would.
    """
    if values and set(values) <= {0, 1}:
        return wilson(sum(values) / len(values), len(values))
    return bootstrap(values)


def summarize(records: Sequence[Record]) -> dict[str, Any]:
    """The figures of one evaluation.

    `success`, which is pass@1, is the share of successes over the graded tasks, each counting once
    however many samples it has; its interval counts tasks, since samples of one are not
    independent. `strict` demands the format too. Of several seeds, `seeds` has the success of each,
    and `seed_spread` its standard deviation. pass@k is of the powers of two up to the number of
    samples; a task with fewer graded ones than k has no part in it. Of a mixture, `success_by_task`
    has the success of each kind of task.

    >>> summarize([Record(index=0, completion="", rewards={}, success=True, tokens=7, finish="stop")])["success"]
    1.0
    """
    right = by_row(records)
    seeds = {record.seed for record in records if record.seed is not None}
    by_seed = {
        seed: _shares([record for record in records if record.seed == seed])
        for seed in sorted(seeds)
    }
    of_seeds = {str(seed): fmean(shares) for seed, shares in by_seed.items() if shares}
    passes = {
        str(k): _estimate(
            [pass_at_k(len(each), sum(each), k) for each in right.values() if len(each) >= k]
        )
        for k in (
            2**power for power in range(max(map(len, right.values()), default=0).bit_length())
        )
    }
    kinds: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        kinds[record.task or "unknown task"].append(record)
    by_kind = (
        {name: _estimate(_shares(own)) for name, own in sorted(kinds.items())}
        if len(kinds) > 1
        else {}
    )
    success, success_interval = _estimate(_shares(records))
    strict, strict_interval = _estimate(_shares(records, strict=True))
    formats = [record.format for record in records if record.format is not None]
    reasons = Counter(reason_of(record) for record in records)
    return {
        "tasks": len(right),
        "completions": len(records),
        "ungraded": sum(record.success is None for record in records),
        "success": success,
        "success_interval": success_interval,
        "strict": strict,
        "strict_interval": strict_interval,
        "pass_at_k": {k: share for k, (share, _) in passes.items()},
        "pass_at_k_interval": {k: interval for k, (_, interval) in passes.items()},
        "success_by_task": {name: share for name, (share, _) in by_kind.items()},
        "success_by_task_interval": {name: interval for name, (_, interval) in by_kind.items()},
        **(
            {"seeds": of_seeds, "seed_spread": stdev(of_seeds.values())}
            if len(of_seeds) > 1
            else {}
        ),
        "format": fmean(formats) if formats else None,
        "mean_tokens": fmean([record.tokens or 0 for record in records]),
        "cut_off": fmean([record.finish == "length" for record in records]),
        "reasons": {reason: count / len(records) for reason, count in reasons.most_common()},
    }


def _shares(records: Sequence[Record], strict: bool = False) -> list[float]:
    """The share of successes of each row that was graded."""
    return [fmean(right) for right in by_row(records, strict).values()]


def _estimate(shares: Sequence[float]) -> tuple[float | None, list[float] | None]:
    return (fmean(shares), list(mean_interval(shares))) if shares else (None, None)


def is_number(value: object) -> bool:
    """Whether a logged value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
