"""Makes Countdown tasks: all solvable, no two alike, the splits apart, the same ones on any
machine.

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

from swift_rlvr.verifiers.countdown.settings import CountdownSettings
from swift_rlvr.verifiers.countdown.solver import difficulty, targets

Row = dict[str, Any]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

CANDIDATES = 1 << 14  # of a chunk
PATIENCE, LEAST_NEW = (
    32,
    0.02,
)  # drawing ends after so many chunks of whose tasks no more than this share were new
_LISTED = 5 * 10**6  # expressions that are tried in some seconds
_EXPRESSIONS = (
    1,
    1,
    6,
    100,
    2500,
)  # about, over so many numbers; sets of more numbers are never listed
_LARGEST = (
    2**30
)  # numerator and denominator of a drawn value, so that int64 holds what is made of two
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
    tasks = _listed(settings, split, seed) if holds_few(settings) else _drawn(settings, split, seed)
    if settings.by_difficulty:
        tasks = (task for task in tasks if _is_as_difficult(task, settings))
    made = 0
    for task in islice(tasks, rows):
        made += 1
        yield task
    if rows is not None and made < rows:
        raise IndexError(f"{rows} rows wanted, and {made} {split} tasks found with these settings")


def make_levels(
    levels: Sequence[CountdownSettings], split: str, seed: int, rows: int
) -> Iterator[Row]:
    """`rows` tasks of each level with the column `level`, counted from 0, for
    `swift_rlvr.runs.curriculum`.

    Levels take turns, so that the first N rows hold each about equally often. No two tasks are
    alike, also of different levels. IndexError where a level holds fewer.
    """
    seen: set[tuple[int, ...]] = set()
    each = [
        make_tasks(settings, split, int(mix(seed, level)[0]))
        for level, settings in enumerate(levels)
    ]
    for number in range(rows):
        for level, tasks in enumerate(each):
            task = next(
                (task for task in tasks if (task["target"], *sorted(task["nums"])) not in seen),
                None,
            )
            if task is None:
                raise IndexError(
                    f"{rows} rows of each level wanted, and level {level} holds {number} {split} tasks"
                )
            seen.add((task["target"], *sorted(task["nums"])))
            yield {**task, "level": level}


@lru_cache
def holds_few(settings: CountdownSettings) -> bool:
    """Whether all tasks are listed; otherwise they are drawn, and `make_tasks` needs a number of
    rows to end soon.
    """
    sizes, (low, high) = range(settings.count[0], settings.count[1] + 1), settings.number
    if sizes[-1] >= len(_EXPRESSIONS):
        return False
    sets = [
        comb(len(settings.tiles) if settings.tiles else high - low + size, size) for size in sizes
    ]
    return sum(some * _EXPRESSIONS[size] for some, size in zip(sets, sizes, strict=True)) <= _LISTED


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums`
    does not matter.
    """
    return next(split for split in _HASHED if _in_split(mix(target, *sorted(nums)), split)[0])


def mix(*values: int | npt.NDArray[Any]) -> Words:
    """A hash of numbers and arrays (n,) to 64 bits, (n,) or (1,): the finalizer of SplitMix64, once
    for each value.
    """
    state = np.zeros(1, np.uint64)  # arithmetic of uint64 arrays wraps around, without a warning
    for value in values:
        words = (
            np.array([value % 2**64], np.uint64)
            if isinstance(value, int)
            else value.astype(np.uint64)
        )
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
        different = (np.diff(np.sort(picks, axis=0), axis=0) > 0).all(axis=0)
        words, picks = words[:, different], picks[:, different]
    nums = values[picks]

    above, below = (
        nums.copy(),
        np.ones_like(nums),
    )  # numerators and denominators of the values that are left
    valid, candidates = np.ones(nums.shape[1], bool), np.arange(nums.shape[1])
    for last in range(size - 1, 0, -1):  # join the last value with any other one
        word = words[size + last - 1]
        other = (word & 0xFFFF) % last
        a, b, c, d = above[other, candidates], below[other, candidates], above[last], below[last]
        one, two, common = a * d, c * b, b * d  # a/b is one/common, and c/d is two/common
        results = {
            "+": [(one + two, common)] * 2,
            "-": [(np.abs(one - two), common)] * 2,
            "*": [(a * c, common)] * 2,
            "/": [(one, two), (two, one)],
        }
        choices = [result for symbol in settings.operators for result in results[symbol]]
        numerators, denominators = zip(*choices, strict=True)
        chosen = (word >> 16) % len(numerators)
        numerator, denominator = np.choose(chosen, numerators), np.choose(chosen, denominators)
        valid &= (denominator > 0) & (denominator < _LARGEST) & (numerator < _LARGEST)
        denominator = np.maximum(denominator, 1)
        if not settings.fractions:
            valid &= numerator % denominator == 0
        if settings.largest is not None:
            valid &= numerator <= settings.largest * denominator
        above[other, candidates], below[other, candidates] = numerator, denominator

    target = above[0] // below[0]
    valid &= (
        (target * below[0] == above[0])
        & (target >= settings.target[0])
        & (target <= settings.target[1])
    )
    return _shuffled(nums.T[valid], words[-1][valid]), target[valid]


def _in_split(hashes: Words, split: str) -> npt.NDArray[np.bool_]:
    return np.searchsorted(_ENDS, hashes, side="right") == _HASHED.index(split)


def _shuffled(nums: Ints, words: Ints | Words) -> Ints:
    """Each row of (tasks, numbers) in the order that its random word gives, so that the order tells
    nothing.
    """
    order = (
        words.astype("<u8")
        .view(np.uint8)
        .reshape(-1, 8)[:, : nums.shape[1]]
        .argsort(axis=1, kind="stable")
    )
    return np.take_along_axis(nums, order, axis=1)


@lru_cache(maxsize=4)
def _all_tasks(settings: CountdownSettings) -> list[Ints]:
    """Every task: for each size (tasks, numbers and the target)."""
    tasks, (low, high) = [], settings.number
    for size in range(settings.count[0], settings.count[1] + 1):
        sets: Iterable[tuple[int, ...]] = combinations_with_replacement(range(low, high + 1), size)
        if settings.tiles:
            sets = sorted(set(combinations(sorted(settings.tiles), size)))
        rows = [(*nums, target) for nums in sets for target in targets(nums, settings)]
        tasks.append(np.array(rows, np.int64).reshape(-1, size + 1))
    return tasks


def _listed(settings: CountdownSettings, split: str, seed: int) -> Iterator[Row]:
    """Every task of the split, in the order that the seed gives."""
    ordered: list[tuple[int, list[int], int]] = []
    for tasks in _all_tasks(settings):
        nums, target = tasks[:, :-1], tasks[:, -1]
        mine = _in_split(mix(target, *nums.T), split)
        nums, target = nums[mine], target[mine]
        order = mix(int(mix(seed)[0]), nums.shape[1], *nums.T, target)
        ordered += zip(
            order.tolist(), _shuffled(nums, mix(order, 1)).tolist(), target.tolist(), strict=True
        )
    return ({"nums": numbers, "target": goal} for _, numbers, goal in sorted(ordered))


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
    seen: set[int] = set()
    drawn = before = 0
    for chunk in count():
        if chunk and chunk % PATIENCE == 0:
            if len(seen) - before <= drawn * LEAST_NEW:
                return
            drawn, before = 0, len(seen)
        nums, target = draw(settings, size, seed, chunk)
        # Different tasks that share a hash count as a repetition: among a million with a
        # probability of about 1e-7.
        hashes = mix(target, *np.sort(nums, axis=1).T)
        mine = _in_split(hashes, split)
        drawn += int(mine.sum())
        for value, row, goal in zip(
            hashes[mine].tolist(), nums[mine].tolist(), target[mine].tolist(), strict=True
        ):
            if value not in seen:
                seen.add(value)
                yield {"nums": row, "target": goal}


def _is_as_difficult(task: Row, settings: CountdownSettings) -> bool:
    measures = difficulty(task["nums"], task["target"], settings)
    wanted = settings.with_solutions, settings.with_depth
    return all(
        bounds is None or bounds[0] <= measure <= bounds[1]
        for bounds, measure in zip(wanted, measures, strict=True)
    )
