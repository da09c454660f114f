"""Train, validation and test: a hash of the task alone decides, so no seed, size or preset can mix them.

The hash is of the target and the sorted numbers. Plain Python; `arrays.mix_arrays` does it for arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

SPLITS = ("train", "validation", "test")
# Large, because the tiny preset has about a thousand tasks and a test needs some hundreds of them.
TEST_SHARE = 1 / 3
VALIDATION_END = 0.38  # validation is what lies from TEST_SHARE to here, train the rest
_MASK = 2**64 - 1
_WORD = 2**64
_ENDS = (int(TEST_SHARE * _WORD), int(VALIDATION_END * _WORD))
_BOUNDS = {"test": (0, _ENDS[0]), "validation": _ENDS, "train": (_ENDS[1], _WORD)}


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums` does not matter.

    >>> split_of([3, 5, 7], 22) == split_of([7, 3, 5], 22) in SPLITS
    True
    """
    place = mix(target, *sorted(nums))
    return "test" if place < _BOUNDS["test"][1] else "validation" if place < _BOUNDS["validation"][1] else "train"


def split_bounds(split: str) -> tuple[int, int]:
    """The range [first, end) of hashes that a split consists of; ValueError for another name."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    return _BOUNDS[split]


def mix(*values: int) -> int:
    """A hash of integers to 64 bits: the finalizer of SplitMix64, once for each value.

    >>> hex(mix(1, 2))
    '0xbcd9dbb49673066b'
    """
    state = 0
    for value in values:
        state = (state ^ value & _MASK) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state
