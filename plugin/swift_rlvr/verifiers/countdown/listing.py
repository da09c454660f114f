"""All Countdown tasks of settings that hold few, in an order that the seed gives."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np

from swift_rlvr.verifiers.countdown.hashes import Ints, in_split, mix, shuffled
from swift_rlvr.verifiers.countdown.solver import targets
from swift_rlvr.verifiers.countdown.task_settings import CountdownSettings, Task

_LISTED = 5 * 10**6  # expressions that are tried in some seconds
# about, over so many numbers; sets of more numbers are never listed
_EXPRESSIONS = (1, 1, 6, 100, 2500)


@lru_cache
def holds_few(settings: CountdownSettings) -> bool:
    """Whether all tasks are listed; otherwise they are drawn, and `make_tasks` needs a number of
    rows to end soon.
    """
    fewest, most = settings.count
    if most >= len(_EXPRESSIONS):
        return False
    low, high = settings.number
    expressions = 0
    for size in range(fewest, most + 1):
        if settings.tiles:
            sets = comb(len(settings.tiles), size)
        else:
            # with repetition, of high - low + 1 numbers
            sets = comb(high - low + size, size)
        expressions += sets * _EXPRESSIONS[size]
    return expressions <= _LISTED


def listed_tasks(settings: CountdownSettings, split: str, seed: int) -> Iterator[Task]:
    """Every task of the split, in the order that the seed gives."""
    ordered: list[tuple[int, list[int], int]] = []
    for tasks in _all_tasks(settings):
        hashes = mix(tasks[:, -1], *tasks[:, :-1].T)
        tasks = tasks[in_split(hashes, split)]
        nums = tasks[:, :-1]
        target = tasks[:, -1]
        order = mix(int(mix(seed)[0]), nums.shape[1], *nums.T, target)
        in_order = shuffled(nums, mix(order, 1))
        ordered += zip(order.tolist(), in_order.tolist(), target.tolist(), strict=True)
    ordered.sort()
    for _, numbers, goal in ordered:
        yield {"nums": numbers, "target": goal}


@lru_cache(maxsize=4)
def _all_tasks(settings: CountdownSettings) -> list[Ints]:
    """Every task: for each size (tasks, numbers and the target)."""
    low, high = settings.number
    tasks = []
    for size in range(settings.count[0], settings.count[1] + 1):
        sets: Iterable[tuple[int, ...]]
        if settings.tiles:
            sets = sorted(set(combinations(sorted(settings.tiles), size)))
        else:
            sets = combinations_with_replacement(range(low, high + 1), size)
        rows: list[tuple[int, ...]] = []
        for nums in sets:
            rows += [(*nums, target) for target in targets(nums, settings)]
        tasks.append(np.array(rows, np.int64).reshape(-1, size + 1))
    return tasks
