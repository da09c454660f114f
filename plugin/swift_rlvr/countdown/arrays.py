"""Many Countdown tasks at once as arrays. Their uint64 arithmetic wraps around on purpose, as in `splits.mix`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from swift_rlvr.countdown.splits import mix, split_bounds

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Chunk:
    """Tasks in the order in which they were drawn."""

    keys: Words  # (tasks,), see `task_keys`
    nums: Ints  # (tasks, most numbers), filled up with 0
    target: Ints  # (tasks,)
    columns: dict[str, np.ndarray] = field(default_factory=dict)  # further ones: (tasks,), of int64 or str as objects

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size(self) -> Ints:
        """How many numbers each task has: (tasks,)."""
        return np.count_nonzero(self.nums, axis=1)

    def take(self, which: Ints | Mask | slice) -> Self:
        """The tasks at these places, where a mask is true, or of a slice."""
        columns = {name: column[which] for name, column in self.columns.items()}
        return type(self)(self.keys[which], self.nums[which], self.target[which], columns)


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """The tasks of several chunks that have the same columns."""
    return Chunk(
        np.concatenate([chunk.keys for chunk in chunks]),
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


def task_keys(nums: Ints, target: Ints) -> Words:
    """The hash that decides the split of each task, and tells whether two are the same: (tasks,).

    `nums` (tasks, numbers) may be in any order. Different tasks that share a key count as a repetition; among a million
    tasks that happens with a probability of about 1e-7.
    """
    return mix_arrays(target, *np.sort(nums, axis=1).T)


def in_split(keys: Words, split: str | None) -> Mask:
    """Which tasks (n,) belong to `split`, all where it is None."""
    if split is None:
        return np.ones(len(keys), bool)
    first, end = split_bounds(split)
    return (keys >= np.uint64(first)) & (keys <= np.uint64(end - 1))


def shuffled(nums: Ints, word: Words, width: int) -> Ints:
    """Each row of (n, numbers) in the order that its random word (n,) gives, filled up with 0: (n, width)."""
    order = word.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : nums.shape[1]].argsort(axis=1, kind="stable")
    return np.pad(np.take_along_axis(nums, order, axis=1), ((0, 0), (0, width - nums.shape[1])))


def _finalized(state: Words) -> Words:
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return state ^ state >> np.uint64(31)
