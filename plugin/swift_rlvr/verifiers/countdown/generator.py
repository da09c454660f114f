"""Makes Countdown tasks: all solvable, no two alike, the splits apart, the same ones on any
machine.

>>> from swift_rlvr.verifiers.countdown.task_settings import TUTORIAL
>>> next(make_tasks(TUTORIAL, "train", seed=0, rows=1))
{'nums': [21, 63, 51], 'target': 93}

Two tasks are the same if they have the same multiset of numbers and the same target; a hash of both
decides the split. Where the settings hold few tasks, all are listed, in an order that the seed
gives. Otherwise numbers are drawn and joined at random, many at once as numpy arrays, and what
becomes of them is the target if it is in range. The hashes of all tasks are remembered, about 80
bytes each.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, count, islice
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from swift_rlvr.verifiers.countdown.solver import difficulty, targets
from swift_rlvr.verifiers.countdown.task_settings import CountdownSettings

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# Drawing.
CANDIDATES = 1 << 14  # of a chunk
# It ends after so many chunks of whose tasks no more than this share were new.
PATIENCE = 32
LEAST_NEW = 0.02
# numerator and denominator of a drawn value, so that int64 holds what is made of two
_LARGEST = 2**30

# Listing.
_LISTED = 5 * 10**6  # expressions that are tried in some seconds
# about, over so many numbers; sets of more numbers are never listed
_EXPRESSIONS = (1, 1, 6, 100, 2500)

# The splits in the order of their hashes, and where each ends. Much for test: the tiny preset has a
# thousand tasks.
_HASHED = ("test", "validation", "train")
_ENDS = np.array([int(1 / 3 * 2**64), int(0.38 * 2**64)], np.uint64)


def make_tasks(
    settings: CountdownSettings, split: str, seed: int, rows: int | None = None
) -> Iterator[Row]:
    """So many different tasks, or all where `rows` is None: dicts with nums and target.

    To choose them by difficulty takes a millisecond for 4 numbers and half a second for 6.
    IndexError at the end where there are fewer.
    """
    if holds_few(settings):
        tasks = _listed(settings, split, seed)
    else:
        tasks = _drawn(settings, split, seed)
    if settings.by_difficulty:
        tasks = (task for task in tasks if _is_as_difficult(task, settings))
    made = 0
    for task in islice(tasks, rows):
        made += 1
        yield task
    if rows is not None and made < rows:
        raise IndexError(
            f"asked for {rows} rows, but these settings give only {made} {split} tasks"
        )


def make_levels(
    levels: Sequence[CountdownSettings], split: str, seed: int, rows: int
) -> Iterator[Row]:
    """`rows` tasks of each level, with the column `level`, counted from 0, for a curriculum.

    Levels take turns, so that the first N rows hold each about equally often. No two tasks are
    alike, also of different levels. IndexError where a level holds fewer.
    """
    streams = []
    for level, settings in enumerate(levels):
        level_seed = int(mix(seed, level)[0])
        streams.append(make_tasks(settings, split, level_seed))
    seen: set[tuple[int, ...]] = set()
    for number in range(rows):
        for level, tasks in enumerate(streams):
            for task in tasks:
                key = (task["target"], *sorted(task["nums"]))
                if key not in seen:
                    seen.add(key)
                    yield {**task, "level": level}
                    break
            else:
                raise IndexError(
                    f"asked for {rows} rows of each level, but level {level} has only {number} {split} tasks"
                )


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


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums`
    does not matter.
    """
    hashes = mix(target, *sorted(nums))
    return next(split for split in _HASHED if _in_split(hashes, split)[0])


def mix(*values: int | npt.NDArray[Any]) -> Words:
    """A hash of numbers and arrays (n,) to 64 bits, (n,) or (1,): the finalizer of SplitMix64, once
    for each value.
    """
    state = np.zeros(1, np.uint64)  # arithmetic of uint64 arrays wraps around, without a warning
    for value in values:
        if isinstance(value, int):
            words = np.array([value % 2**64], np.uint64)
        else:
            words = value.astype(np.uint64)
        state = (state ^ words) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


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
    return _shuffled(nums.T[valid], words[-1][valid]), target[valid]


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


def _in_split(hashes: Words, split: str) -> npt.NDArray[np.bool_]:
    return np.searchsorted(_ENDS, hashes, side="right") == _HASHED.index(split)


def _shuffled(nums: Ints, words: Ints | Words) -> Ints:
    """Each row of (tasks, numbers) in the order that its random word gives, so that the order tells
    nothing.
    """
    # Each byte of a word is the key of one number. The same on machines of any byte order.
    keys = words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : nums.shape[1]]
    order = keys.argsort(axis=1, kind="stable")
    return np.take_along_axis(nums, order, axis=1)


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


def _listed(settings: CountdownSettings, split: str, seed: int) -> Iterator[Row]:
    """Every task of the split, in the order that the seed gives."""
    ordered: list[tuple[int, list[int], int]] = []
    for tasks in _all_tasks(settings):
        hashes = mix(tasks[:, -1], *tasks[:, :-1].T)
        tasks = tasks[_in_split(hashes, split)]
        nums = tasks[:, :-1]
        target = tasks[:, -1]
        order = mix(int(mix(seed)[0]), nums.shape[1], *nums.T, target)
        shuffled = _shuffled(nums, mix(order, 1))
        ordered += zip(order.tolist(), shuffled.tolist(), target.tolist(), strict=True)
    ordered.sort()
    for _, numbers, goal in ordered:
        yield {"nums": numbers, "target": goal}


def _drawn(settings: CountdownSettings, split: str, seed: int) -> Iterator[Row]:
    """Random tasks, each once. The sizes take turns, until hardly a task of one is left."""
    sizes = [
        _drawn_of_size(settings, size, split, seed)
        for size in range(settings.count[0], settings.count[1] + 1)
    ]
    while sizes:
        for tasks in list(sizes):
            if task := next(tasks, None):
                yield task
            else:
                sizes.remove(tasks)


def _drawn_of_size(settings: CountdownSettings, size: int, split: str, seed: int) -> Iterator[Row]:
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
        mine = _in_split(hashes, split)
        drawn += int(mine.sum())
        tasks = zip(hashes[mine].tolist(), nums[mine].tolist(), target[mine].tolist(), strict=True)
        for task_hash, numbers, goal in tasks:
            if task_hash not in seen:
                seen.add(task_hash)
                yield {"nums": numbers, "target": goal}


def _is_as_difficult(task: Row, settings: CountdownSettings) -> bool:
    solutions, depth = difficulty(task["nums"], task["target"], settings)
    return _is_within(solutions, settings.with_solutions) and _is_within(depth, settings.with_depth)


def _is_within(value: int, bounds: tuple[int, int] | None) -> bool:
    return bounds is None or bounds[0] <= value <= bounds[1]
