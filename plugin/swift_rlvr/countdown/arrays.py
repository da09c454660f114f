"""Many Countdown tasks at once as arrays: chunks of them, their hashes, splits and keys.

uint64 arithmetic wraps around here, on purpose: it is that of `splits.mix`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.countdown.splits import mix, split_bounds

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Chunk:
    """Tasks in the order in which they were drawn."""

    keys: Words  # (tasks,), equal where two tasks are the same, see `pack`
    size: Ints  # (tasks,), how many numbers
    nums: Ints  # (tasks, most numbers), filled up with 0
    target: Ints  # (tasks,)
    columns: dict[str, np.ndarray] = field(default_factory=dict)  # further ones: (tasks,), of int64 or str as objects

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, which: Ints | Mask | slice) -> Chunk:
        """The tasks at these places, where a mask is true, or of a slice."""
        columns = {name: column[which] for name, column in self.columns.items()}
        return Chunk(self.keys[which], self.size[which], self.nums[which], self.target[which], columns)


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """The tasks of several chunks that have the same columns."""
    return Chunk(
        np.concatenate([chunk.keys for chunk in chunks]),
        np.concatenate([chunk.size for chunk in chunks]),
        np.concatenate([chunk.nums for chunk in chunks]),
        np.concatenate([chunk.target for chunk in chunks]),
        {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns},
    )


def mix_arrays(*values: npt.ArrayLike) -> Words:
    """`splits.mix` of arrays (n,) and numbers, element by element: (n,)."""
    state = np.zeros(1, np.uint64)
    for value in values:
        words = np.atleast_1d(value).astype(np.uint64)  # numpy warns of scalars that wrap around, not of arrays
        state = _finalized((state ^ words) + _GOLDEN)
    return state


def random_words(seed: int, which: int, index: Words) -> Words:
    """Word `which` of each candidate (n,): SplitMix64 with a start of its own, at counter `index`."""
    return _finalized(index * _GOLDEN + np.uint64(mix(seed, which)))


def in_split(columns: Sequence[Ints], target: Ints, split: str | None) -> Mask:
    """Which tasks (n,) belong to `split`, all where it is None; columns are the sorted numbers, (n,) each."""
    if split is None:
        return np.ones(len(target), bool)
    first, end = split_bounds(split)
    place = mix_arrays(target, *columns)
    return (place >= np.uint64(first)) & (place <= np.uint64(end - 1))


def pack(settings: CountdownSettings, columns: Sequence[Ints], target: Ints) -> Words:
    """A key for each task (n,). Different tasks have different keys where numbers and target fit into 64 bits.

    Otherwise (7 or 8 numbers up to some hundreds) the key is a hash, and a task is lost where two of them meet.
    """
    low, high = settings.number
    lowest, highest = settings.target
    base, targets = high - low + 2, highest - lowest + 1
    if base ** settings.count[1] * targets >= 2**64:
        return mix_arrays(target, *columns, len(columns))
    key = np.zeros(len(target), np.uint64)
    for column in columns:  # the numbers count from 1, so that fewer numbers are another key
        key = key * np.uint64(base) + (column - (low - 1)).astype(np.uint64)
    return key * np.uint64(targets) + (target - lowest).astype(np.uint64)


def sort_columns(columns: Sequence[Ints]) -> list[Ints]:
    """Sort row by row, by a network of comparisons: for a few columns (n,) many times as fast as np.sort."""
    columns = list(columns)
    for end in range(len(columns) - 1, 0, -1):
        for i in range(end):
            a, b = columns[i], columns[i + 1]
            columns[i], columns[i + 1] = np.minimum(a, b), np.maximum(a, b)
    return columns


def shuffled(nums: Ints, word: Words) -> Ints:
    """Each row of (n, numbers) in the order that its random word (n,) gives, so that the order tells nothing."""
    order = word.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : nums.shape[1]].argsort(axis=1, kind="stable")
    return np.take_along_axis(nums, order, axis=1)


def _finalized(state: Words) -> Words:
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return state ^ state >> np.uint64(31)
