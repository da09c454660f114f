"""Arrays of Countdown tasks: chunks of them, their hashes, splits and keys, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.countdown.splits import mix, split_bounds

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Chunk:
    """Tasks in the order in which they were drawn. Arrays with one entry, or row, for each."""

    keys: np.ndarray  # uint64, equal where two tasks are the same and never 0; see `pack`
    size: np.ndarray  # how many numbers
    nums: np.ndarray  # (tasks, highest count), filled up with 0
    target: np.ndarray
    solution: list[str] | None = None
    extra: dict[str, np.ndarray | list] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, which: np.ndarray) -> Chunk:
        """The tasks at these places, or where a mask is true."""
        if which.dtype == bool:
            which = np.flatnonzero(which)
        pick = lambda column: column[which] if isinstance(column, np.ndarray) else [column[i] for i in which]  # noqa: E731
        return Chunk(
            *(pick(column) for column in (self.keys, self.size, self.nums, self.target)),
            None if self.solution is None else pick(self.solution),
            None if self.extra is None else {name: pick(column) for name, column in self.extra.items()},
        )


def mix_arrays(*values: np.ndarray) -> np.ndarray:
    """`countdown_settings.mix` of arrays, element by element."""
    state = np.uint64(0)
    for value in values:
        value = np.atleast_1d(value).astype(np.uint64)  # numpy warns of scalars that wrap around, not of arrays
        state = _finalized((state ^ value) + _GOLDEN)
    return state


def random_words(seed: int, which: int, index: np.ndarray) -> np.ndarray:
    """Word `which` of each candidate: SplitMix64 with a start of its own, at counter `index`."""
    return _finalized(index * _GOLDEN + np.uint64(mix(seed, which)))


def in_split(columns: list[np.ndarray], target: np.ndarray, split: str | None) -> np.ndarray:
    """Which tasks belong to `split`, to any where it is None; columns are the sorted numbers."""
    if split is None:
        return np.ones(len(target), bool)
    first, end = split_bounds(split)
    place = mix_arrays(target, *columns)
    mask = place >= np.uint64(first)
    return mask & (place < np.uint64(end)) if end < 2**64 else mask


def pack(settings: CountdownSettings, columns: list[np.ndarray], target: np.ndarray) -> np.ndarray:
    """A key for each task, never 0. Different tasks have different keys where numbers and target fit into 64 bits.

    Otherwise (7 or 8 numbers up to some hundreds) the key is a hash, and a task is lost where two of them meet.
    """
    low, high = settings.number
    lowest, highest = settings.target
    base, targets = high - low + 2, highest - lowest + 1
    if base ** settings.count[1] * targets >= 2**64:
        return np.maximum(mix_arrays(target, *columns, np.uint64(len(columns))), np.uint64(1))
    key = np.zeros(len(target), np.uint64)
    for column in columns:  # the numbers count from 1, so that fewer numbers are another key
        key = key * np.uint64(base) + (column - (low - 1)).astype(np.uint64)
    return key * np.uint64(targets) + (target - lowest).astype(np.uint64)


def sort_columns(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Sort row by row, by a network of comparisons: for a few columns many times as fast as np.sort."""
    columns = list(columns)
    for end in range(len(columns) - 1, 0, -1):
        for i in range(end):
            a, b = columns[i], columns[i + 1]
            columns[i], columns[i + 1] = np.minimum(a, b), np.maximum(a, b)
    return columns


def shuffled(nums: np.ndarray, word: np.ndarray) -> np.ndarray:
    """Each row in the order that its random word gives; a model should not learn that the order tells something."""
    order = word.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : nums.shape[1]].argsort(axis=1, kind="stable")
    return np.take_along_axis(nums, order, axis=1)


def _finalized(state: np.ndarray) -> np.ndarray:
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return state ^ state >> np.uint64(31)
