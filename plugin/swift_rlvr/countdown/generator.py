"""Makes Countdown tasks: all solvable, no two alike, the splits apart, the same ones on any number of workers.

    >>> from swift_rlvr.countdown.settings import TINY
    >>> make_task(TINY, "train", seed=0, index=5) == list(make_tasks(TINY, "train", seed=0, rows=6))[5]
    True

Two tasks are the same if they have the same multiset of numbers and the same target. Row i of the dataset that
(settings, split, seed) stands for is:
- where the settings hold few tasks: entry i of the list of all of them, in a seeded order.
- otherwise: the i-th of an endless sequence of random candidates (drawing.py) that is a task of the split and none
  of those before. Drawing is cheap and done in this process, which remembers the keys of all tasks, 56 bytes each;
  counting solutions and writing lines is what workers do.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations, combinations_with_replacement, count, islice
from math import comb

import numpy as np

from swift_rlvr.countdown.arrays import Chunk, concatenate, in_split, mix_arrays, shuffled, task_keys
from swift_rlvr.countdown.counting import all_targets, difficulty
from swift_rlvr.countdown.drawing import draw_chunk
from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.countdown.solver import solve
from swift_rlvr.countdown.splits import mix, split_bounds
from swift_rlvr.parallel import map_in_order

FEW = 5 * 10**7  # values to compute in order to list every task: a second or two
# About how many of them there are for one set of 0, 1, ... 6 numbers.
_FORMS, _FORMS_EVERY_WAY = (1, 1, 8, 90, 1500, 34_000, 10**6), (1, 1, 8, 130, 3800, 150_000, 10**7)
PATIENCE = 32  # chunks without a new task after which there are taken to be no more
_BATCH = 4096  # most rows handed on together


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
    if index < 0:
        raise IndexError(f"index must be at least 0, got {index}")
    made, rest = _made(settings, split, seed)
    made.extend(islice(rest, max(0, index + 1 - len(made))))
    if index >= len(made):
        raise IndexError(f"no row {index}: these settings do not hold that many {split} tasks")
    return {"nums": list(made[index]["nums"]), "target": made[index]["target"]}


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

    `finish` is a picklable function that the workers apply to each part. IndexError at the end, if there are fewer.
    """
    split_bounds(split)
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    slow = columns.solutions or columns.difficulty
    if few := _are_few(settings):
        chunks, slow = iter([_listed(settings, split, seed)]), slow or columns.solution
    else:
        chunks = _different(settings, split, seed, columns.solution, workers)
    if not (slow or finish) or (settings.by_difficulty and not few):  # little to do, or the workers are busy choosing
        workers = 1
    done = skip
    pieces = _pieces(chunks, skip, rows, _BATCH // (_parts(settings) if slow else 1))
    for chunk in map_in_order(partial(_completed, settings, columns, finish), pieces, workers):
        done += len(chunk)
        yield chunk
    if rows is not None and done < rows:
        held = f"{done} {split} tasks" if few else f"few more than the {done} {split} tasks found so far"
        raise IndexError(f"{rows} rows wanted, and these settings hold {held}")


def rows_of(chunk: Chunk) -> list[dict]:
    """The tasks of a chunk, one dict each."""
    nums = [row[:size] for row, size in zip(chunk.nums.tolist(), chunk.size.tolist(), strict=True)]
    columns = {"nums": nums, "target": chunk.target.tolist()}
    columns |= {name: values.tolist() for name, values in chunk.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@lru_cache(maxsize=4)
def _made(settings: CountdownSettings, split: str, seed: int) -> tuple[list[dict], Iterator[dict]]:
    """Rows that exist already, and those that follow."""
    return [], make_tasks(settings, split, seed, None)


def _parts(settings: CountdownSettings) -> int:
    """How many times fewer tasks to take at once where their solutions are counted: more numbers, slower counting."""
    return {5: 8, 6: 64}.get(settings.count[1], 1) * (4 if settings.restricted else 1)


def _different(settings: CountdownSettings, split: str, seed: int, solution: bool, workers: int) -> Iterator[Chunk]:
    """Random tasks, each once, by the chunk; empty chunks among them."""
    parts = _parts(settings) if settings.by_difficulty else 1
    chunks: Iterable[Chunk] = (draw_chunk(settings, split, seed, number, solution, parts) for number in count())
    if settings.by_difficulty:
        chunks = map_in_order(partial(_chosen, settings), chunks, workers)
    seen: set[int] = set()
    without = 0
    for chunk in chunks:
        new = []
        for place, key in enumerate(chunk.keys.tolist()):
            if key not in seen:
                seen.add(key)
                new.append(place)
        yield chunk.take(np.array(new, np.int64))
        without = 0 if new else without + 1
        if without > PATIENCE * parts:
            return


def _pieces(chunks: Iterable[Chunk], skip: int, rows: int | None, size: int) -> Iterator[Chunk]:
    """Tasks skip, skip + 1, ... up to task rows - 1, `size` at most at a time."""
    start = 0
    for chunk in chunks:
        end = len(chunk) if rows is None else min(len(chunk), rows - start)
        for first in range(max(skip - start, 0), end, size):
            yield chunk.take(slice(first, min(first + size, end)))
        start += len(chunk)
        if rows is not None and start >= rows:
            return


def _completed(settings: CountdownSettings, columns: Columns, finish, chunk: Chunk) -> Chunk:
    added = dict(chunk.columns)
    if columns.solution and "solution" not in added:
        added["solution"] = np.array([solve(row["nums"], row["target"], settings) for row in rows_of(chunk)], object)
    if columns.solutions or columns.difficulty:
        measures = difficulty(chunk.nums, chunk.target, settings)
        added |= measures if columns.difficulty else {"solutions": measures["solutions"]}
    chunk = replace(chunk, columns=added)
    return chunk if finish is None else finish(chunk)


def _chosen(settings: CountdownSettings, chunk: Chunk) -> Chunk:
    """The tasks, each once, that are as difficult as the settings ask for."""
    chunk = chunk.take(np.sort(np.unique(chunk.keys, return_index=True)[1]))
    measures = difficulty(chunk.nums, chunk.target, settings)
    measures["needs"] = np.array([len(operators) for operators in measures["operators"]])
    mask = np.ones(len(chunk), bool)
    for name in ("solutions", "needs", "depth"):
        if bounds := getattr(settings, name):
            mask &= (measures[name] >= bounds[0]) & (measures[name] <= bounds[1])
    return chunk.take(mask)


@lru_cache
def _are_few(settings: CountdownSettings) -> bool:
    (fewest, most), (low, high) = settings.count, settings.number
    if most >= len(_FORMS):
        return False
    total = 0
    for size in range(fewest, most + 1):
        sets = comb(len(settings.tiles), size) if settings.tiles else comb(high - low + size, size)
        total += sets * (_FORMS_EVERY_WAY if settings.restricted else _FORMS)[size]
    return total <= FEW


@lru_cache(maxsize=4)
def _listed(settings: CountdownSettings, split: str, seed: int) -> Chunk:
    """Every task of the split, in the order that the seed gives."""
    orders, chunks = [], []
    for size in range(settings.count[0], settings.count[1] + 1):
        low, high = settings.number
        if settings.tiles:
            sets = np.array(sorted(set(combinations(sorted(settings.tiles), size))))
        else:
            sets = np.array(list(combinations_with_replacement(range(low, high + 1), size)))
        row, target = all_targets(sets, settings)
        nums = sets[row]
        keys = task_keys(nums, target)
        mine = in_split(keys, split)
        nums, target = nums[mine], target[mine]
        order = mix_arrays(mix(seed), size, *nums.T, target)
        orders.append(order)
        chunks.append(Chunk(keys[mine], shuffled(nums, mix_arrays(order, 1), settings.count[1]), target))
    chunk = concatenate(chunks).take(np.argsort(np.concatenate(orders)))
    return _chosen(settings, chunk) if settings.by_difficulty else chunk
