"""Hashes of Countdown tasks, which decide the split of each and its order: the same on any machine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# The splits in the order of their hashes, and where each ends. Much for test: the tiny preset has a
# thousand tasks.
_HASHED = ("test", "validation", "train")
_ENDS = np.array([int(1 / 3 * 2**64), int(0.38 * 2**64)], np.uint64)


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


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums`
    does not matter.
    """
    hashes = mix(target, *sorted(nums))
    return next(split for split in _HASHED if in_split(hashes, split)[0])


def in_split(hashes: Words, split: str) -> npt.NDArray[np.bool_]:
    """Which of some tasks belong to a split."""
    return np.searchsorted(_ENDS, hashes, side="right") == _HASHED.index(split)


def shuffled(nums: Ints, words: Ints | Words) -> Ints:
    """Each row of (tasks, numbers) in the order that its random word gives, so that the order tells
    nothing.
    """
    # Each byte of a word is the key of one number. The same on machines of any byte order.
    keys = words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : nums.shape[1]]
    order = keys.argsort(axis=1, kind="stable")
    return np.take_along_axis(nums, order, axis=1)
