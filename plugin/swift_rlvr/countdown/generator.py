"""Makes Countdown tasks: every one solvable, no two alike, the splits apart, the same ones on any number of workers.

    >>> make_task(TINY, "train", seed=0, index=5) == list(make_tasks(TINY, "train", seed=0, rows=6))[5]
    True

Two tasks are the same if they have the same multiset of numbers and the same target. Row i of the dataset that
(settings, split, seed) stands for is:
- where the settings hold few tasks: entry i of the list of all of them, in a seeded order. Nothing is missing, and to
  ask for more is an error that says how many there are.
- otherwise: the i-th of an endless row of random candidates (countdown_draw.py) that is a task of the split and none
  of those before. Chunks of candidates are pure functions of their number, so workers make them in any order; one
  process takes them in their order and drops what it has seen, by a table of 64-bit keys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, combinations_with_replacement, count
from math import comb
from multiprocessing import get_context

import numpy as np

from swift_rlvr.countdown.arrays import Chunk, in_split, mix_arrays, pack, shuffled
from swift_rlvr.countdown.counting import all_targets, count_solutions, difficulty, forms_to_evaluate
from swift_rlvr.countdown.drawing import draw_chunk
from swift_rlvr.countdown.key_set import KeySet
from swift_rlvr.countdown.settings import PRESETS, TINY, TUTORIAL, CountdownSettings
from swift_rlvr.countdown.solver import reachable, solve
from swift_rlvr.countdown.splits import SPLITS, mix, split_bounds, split_of

__all__ = ["PRESETS", "SPLITS", "TINY", "TUTORIAL", "Columns", "CountdownSettings", "batches", "holds", "make_task"]
__all__ += ["make_tasks", "reachable", "split_of"]

FEW = 5 * 10**7  # values to compute in order to list every task: a second or two
PATIENCE = 32  # chunks without a new task after which there are taken to be no more
_BATCH = 4096  # rows of a list that are handed on together


@dataclass(frozen=True)
class Columns:
    """What to add to each task: an expression that solves it, the number of solutions, the measures of difficulty."""

    solution: bool = False
    solutions: bool = False
    difficulty: bool = False


TASK_ONLY = Columns()


def make_tasks(
    settings: CountdownSettings, split: str, seed: int, rows: int | None, workers: int = 1, columns: Columns = TASK_ONLY
) -> Iterator[dict]:
    """The first `rows` rows, or every row there is where `rows` is None. IndexError if there are fewer than `rows`."""
    for chunk in batches(settings, split, seed, rows, workers=workers, columns=columns):
        yield from rows_of(chunk)


def make_task(settings: CountdownSettings, split: str, seed: int, index: int) -> dict[str, list[int] | int]:
    """Row `index` of the dataset that (settings, split, seed) stands for: `{"nums": [...], "target": ...}`.

    Raises IndexError where there is no such row. Makes the rows before it on the way and keeps them for later calls;
    for many rows, and for late ones, use `make_tasks`.
    """
    split_bounds(split)
    if index < 0:
        raise IndexError(f"index must be at least 0, got {index}")
    found, rest = _stream(settings, split, seed)
    while index >= len(found):
        found.extend(rows_of(next(rest, [])) or _no_row(settings, split, index))
    return {"nums": list(found[index]["nums"]), "target": found[index]["target"]}


def holds(settings: CountdownSettings, split: str) -> int | None:
    """How many tasks of `split` there are, or None where they are too many to be listed."""
    split_bounds(split)
    return len(_listed(settings, split, 0)) if _are_few(settings) else None


def batches(
    settings: CountdownSettings,
    split: str,
    seed: int,
    rows: int | None,
    *,
    skip: int = 0,
    workers: int = 1,
    columns: Columns = TASK_ONLY,
    finish: Callable[[Chunk], Chunk] | None = None,
) -> Iterator[Chunk]:
    """Rows skip, skip + 1, ... up to row rows - 1, or to the last where `rows` is None, in parts of some thousands.

    finish: a picklable function for what is to be done with the parts in the workers, such as to write them out.
    Raises IndexError, at the end, if there are fewer than `rows`.
    """
    split_bounds(split)
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    done = 0
    for start, chunk in _unique(settings, split, seed, skip, workers, columns, finish):
        first, last = max(skip - start, 0), len(chunk) if rows is None else min(len(chunk), rows - start)
        done = start + len(chunk)
        if first < last:
            yield chunk if last - first == len(chunk) else chunk.take(np.arange(first, last))
        if rows is not None and done >= rows:
            return
    if rows is not None and done < rows:
        _no_row(settings, split, done, rows)


def rows_of(chunk: Chunk | list) -> list[dict]:
    """The tasks of a chunk, one dict each."""
    if not len(chunk):
        return []
    nums = [row[:size] for row, size in zip(chunk.nums.tolist(), chunk.size.tolist(), strict=True)]
    columns = {"nums": nums, "target": chunk.target.tolist()}
    if chunk.solution is not None:
        columns["solution"] = chunk.solution
    for name, values in (chunk.extra or {}).items():
        columns[name] = values.tolist() if isinstance(values, np.ndarray) else values
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _no_row(settings, split, held, wanted=None):
    if wanted is None:
        raise IndexError(f"no row {held}: these settings do not hold that many {split} tasks")
    if _are_few(settings):
        raise IndexError(f"{wanted} rows wanted, and these settings hold {held} {split} tasks")
    raise IndexError(
        f"{wanted} rows wanted, and these settings hold few more than the {held} {split} tasks found so far"
    )


@lru_cache(maxsize=4)
def _stream(settings, split, seed) -> tuple[list, Iterator]:
    return [], batches(settings, split, seed, None)


def _unique(settings, split, seed, skip, workers, columns, finish) -> Iterator[tuple[int, Chunk]]:
    """(row of its first task, chunk) for the chunks of different tasks, from the one with row `skip`, in order."""
    if _are_few(settings):
        tasks = _listed(settings, split, seed)
        starts = range(skip // _BATCH * _BATCH, len(tasks), _BATCH)
        parts = (tasks.take(np.arange(start, min(start + _BATCH, len(tasks)))) for start in starts)
        yield from zip(starts, _in_order(partial(_completed, settings, columns, finish), parts, workers), strict=True)
        return
    parts, seen, start, last_new = _parts(settings, columns), KeySet(), 0, 0
    full = partial(_drawn, settings, split, seed, columns, finish, parts)
    # What is skipped is needed for its keys only, which are had without the columns.
    draw, number = (partial(_drawn, settings, split, seed, TASK_ONLY, None, parts) if skip else full), 0
    while True:
        for place, chunk in zip(count(number), _in_order(draw, count(number), workers)):
            new = seen.add(chunk.keys)
            if new.any():
                last_new = place // parts
            elif place // parts > last_new + PATIENCE:
                return
            if draw is not full and start + new.sum() > skip:
                yield start, full(place).take(new)
            elif draw is full and new.any():
                yield start, chunk if new.all() else chunk.take(new)
            start += int(new.sum())
            if draw is not full and start > skip:
                break
        draw, number = full, place + 1


def _parts(settings, columns) -> int:
    """How much smaller chunks should be, where it takes long to count solutions."""
    if not (columns.solutions or columns.difficulty or settings.by_difficulty):
        return 1
    return {5: 8, 6: 64}.get(settings.count[1], 1) * (4 if settings.restricted else 1)


def _in_order(function, inputs, workers) -> Iterator:
    """map(function, inputs) on several processes, with no more than a few results waiting."""
    if workers == 1:
        yield from map(function, inputs)
        return
    # spawn: the parent may have threads, of a progress bar or of a library, that a fork would leave in disorder
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        inputs, waiting = iter(inputs), deque()
        while True:
            while len(waiting) < 3 * workers and (given := next(inputs, None)) is not None:
                waiting.append(pool.submit(function, given))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _drawn(settings, split, seed, columns, finish, parts, number) -> Chunk:
    chunk = draw_chunk(settings, split, seed, number, columns.solution, parts)
    if columns.solutions or columns.difficulty or settings.by_difficulty:  # nothing is counted twice
        _, first = np.unique(chunk.keys, return_index=True)
        chunk = chunk.take(np.sort(first))
    if settings.by_difficulty:
        chunk = chunk.take(_wanted(settings, chunk))
    return _completed(settings, columns, finish, chunk)


def _completed(settings, columns, finish, chunk) -> Chunk:
    """A chunk with the columns that were asked for."""
    if columns.solution and chunk.solution is None:
        chunk.solution = [solve(row["nums"], row["target"], settings) for row in rows_of(chunk)]
    if columns.difficulty:
        chunk.extra = _by_size(partial(difficulty, settings=settings), chunk)
    elif columns.solutions:
        chunk.extra = _by_size(lambda nums, target: {"solutions": count_solutions(nums, target, settings)}, chunk)
    return chunk if finish is None else finish(chunk)


def _by_size(function, chunk) -> dict[str, np.ndarray]:
    """The columns of a function of (numbers, targets), called for each number of numbers."""
    columns = {}
    for size in np.unique(chunk.size) if len(chunk) else [chunk.nums.shape[1]]:  # without tasks, empty columns
        which = np.flatnonzero(chunk.size == size)
        for name, values in function(chunk.nums[which, :size], chunk.target[which]).items():
            values = np.asarray(values, object if isinstance(values, list) else None)
            columns.setdefault(name, np.zeros(len(chunk), values.dtype))[which] = values
    return columns


def _wanted(settings, chunk) -> np.ndarray:
    """Which tasks are as difficult as the settings ask for."""
    if settings.needs is settings.depth is None:
        found = _by_size(lambda nums, target: {"solutions": count_solutions(nums, target, settings)}, chunk)
    else:
        found = _by_size(partial(difficulty, settings=settings), chunk)
        found["needs"] = np.array([len(operators) for operators in found["operators"]])
    mask = np.ones(len(chunk), bool)
    for name in ("solutions", "needs", "depth"):
        wanted = getattr(settings, name)
        if wanted is not None:
            mask &= (found[name] >= wanted[0]) & (found[name] <= wanted[1])
    return mask


@lru_cache
def _are_few(settings) -> bool:
    """Whether every task can be listed."""
    total = 0
    for size in range(settings.count[0], settings.count[1] + 1):
        low, high = settings.number
        sets = comb(len(settings.tiles), size) if settings.tiles else comb(high - low + size, size)
        total += forms_to_evaluate(sets, size, settings)
    return total <= FEW


@lru_cache(maxsize=4)
def _listed(settings, split, seed) -> Chunk:
    """Every task of the split, in the order that the seed gives."""
    parts = []
    for size in range(settings.count[0], settings.count[1] + 1):
        low, high = settings.number
        if settings.tiles:
            sets = sorted(set(combinations(sorted(settings.tiles), size)))
        else:
            sets = list(combinations_with_replacement(range(low, high + 1), size))
        sets = np.array(sets, np.int64)
        row, target = all_targets(sets, settings)
        nums = sets[row]
        mine = in_split(list(nums.T), target, split)
        nums, target = nums[mine], target[mine]
        keys = pack(settings, list(nums.T), target)
        order = mix_arrays(np.uint64(mix(seed)), np.uint64(size), *nums.T, target)
        filled = np.zeros((len(nums), settings.count[1]), np.int64)
        filled[:, :size] = shuffled(nums, mix_arrays(order, np.uint64(1)))
        parts.append((order, keys, np.full(len(nums), size), filled, target))
    order, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    chunk = Chunk(*columns).take(np.argsort(order))
    return chunk.take(_wanted(settings, chunk)) if settings.by_difficulty and len(chunk) else chunk
