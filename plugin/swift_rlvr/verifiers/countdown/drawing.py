"""Countdown tasks drawn at random, many at once as numpy arrays.

Numbers are drawn and joined at random, and what becomes of them is the target if it is in range. The
hashes of all tasks are remembered, about 80 bytes each.
"""

from collections.abc import Iterator
from itertools import count

import numpy as np

from swift_rlvr.verifiers.countdown.hashes import Ints, in_split, mix, shuffled
from swift_rlvr.verifiers.countdown.task_settings import CountdownSettings, Task

CANDIDATES = 1 << 14  # of a chunk
# It ends after so many chunks of whose tasks no more than this share were new.
PATIENCE = 32
LEAST_NEW = 0.02
# numerator and denominator of a drawn value, so that int64 holds what is made of two
_LARGEST = 2**30


def drawn_tasks(settings: CountdownSettings, split: str, seed: int) -> Iterator[Task]:
    """Random tasks, each once. The sizes take turns, until hardly a task of one is left."""
    fewest, most = settings.count
    sizes = []
    for size in range(fewest, most + 1):
        sizes.append(_drawn_of_size(settings, size, split, seed))
    while sizes:
        for tasks in list(sizes):
            if task := next(tasks, None):
                yield task
            else:
                sizes.remove(tasks)


def _drawn_of_size(settings: CountdownSettings, size: int, split: str, seed: int) -> Iterator[Task]:
    """Random tasks with so many numbers, until hardly any is new."""
    seen: set[int] = set()  # hashes of tasks
    drawn = 0  # tasks of the split since the last look
    seen_before = 0  # at the last look
    for chunk in count():
        if chunk and chunk % PATIENCE == 0:
            if len(seen) - seen_before <= drawn * LEAST_NEW:
                return
            drawn = 0
            seen_before = len(seen)
        nums, target = draw(settings, size, seed, chunk)
        # Different tasks that share a hash count as a repetition: among a million with a
        # probability of about 1e-7.
        hashes = mix(target, *np.sort(nums, axis=1).T)
        mine = in_split(hashes, split)
        drawn += int(mine.sum())
        tasks = zip(hashes[mine].tolist(), nums[mine].tolist(), target[mine].tolist(), strict=True)
        for task_hash, numbers, goal in tasks:
            if task_hash not in seen:
                seen.add(task_hash)
                yield {"nums": numbers, "target": goal}


def draw(settings: CountdownSettings, size: int, seed: int, chunk: int) -> tuple[Ints, Ints]:
    """Solvable tasks with `size` numbers, (tasks, size), and their targets, (tasks,); repetitions
    among them.

    A pure function of its arguments, on any machine. The values of an expression are exact
    fractions, never negative: of two values the smaller is subtracted. Those that come near the
    limits of int64 are dropped.
    """
    words = np.random.PCG64(int(mix(seed, size, chunk)[0])).random_raw((2 * size, CANDIDATES))
    words = (words >> np.uint64(1)).astype(np.int64)
    low, high = settings.number
    values = np.array(settings.tiles or range(low, high + 1))
    picks = words[:size] % len(values)
    if settings.tiles:
        # Each tile is there once.
        different = (np.diff(np.sort(picks, axis=0), axis=0) > 0).all(axis=0)
        words = words[:, different]
        picks = picks[:, different]
    nums = values[picks]  # (size, candidates)

    # The values that are left, as fractions (size, candidates).
    numerators = nums.copy()
    denominators = np.ones_like(nums)
    candidates = np.arange(nums.shape[1])
    valid = np.ones(nums.shape[1], bool)
    for last in range(size - 1, 0, -1):
        # Join the last value with any other one, and put the result in the place of that.
        word = words[size + last - 1]
        other = (word & 0xFFFF) % last
        left = numerators[other, candidates], denominators[other, candidates]
        right = numerators[last], denominators[last]
        results = _results(left, right, settings.operators)
        chosen = (word >> 16) % len(results)
        numerator = np.choose(chosen, [above for above, _ in results])
        denominator = np.choose(chosen, [below for _, below in results])

        valid &= (denominator > 0) & (denominator < _LARGEST) & (numerator < _LARGEST)
        # What is not valid goes on as anything that can be divided by.
        denominator = np.maximum(denominator, 1)
        if not settings.fractions:
            valid &= numerator % denominator == 0
        if settings.largest is not None:
            valid &= numerator <= settings.largest * denominator
        numerators[other, candidates] = numerator
        denominators[other, candidates] = denominator

    lowest, highest = settings.target
    target = numerators[0] // denominators[0]
    valid &= target * denominators[0] == numerators[0]  # a whole number
    valid &= (target >= lowest) & (target <= highest)
    return shuffled(nums.T[valid], words[-1][valid]), target[valid]


def _results(
    left: tuple[Ints, Ints], right: tuple[Ints, Ints], operators: str
) -> list[tuple[Ints, Ints]]:
    """What two values can be joined to, all as (numerator, denominator), two for each operator."""
    a, b = left
    c, d = right
    # a/b is one/common, and c/d is two/common
    one = a * d
    two = c * b
    common = b * d
    results = {
        "+": [(one + two, common)] * 2,
        "-": [(np.abs(one - two), common)] * 2,
        "*": [(a * c, common)] * 2,
        "/": [(one, two), (two, one)],
    }
    joined: list[tuple[Ints, Ints]] = []
    for symbol in operators:
        joined += results[symbol]
    return joined
