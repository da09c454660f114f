"""Train, validation and test: a hash of the task alone decides, so no seed, size or preset can mix them.

The hash is of the target and the sorted numbers. Plain Python; `arrays.mix_arrays` does it for arrays.
"""

from collections.abc import Sequence

SPLITS = ("train", "validation", "test")
# Large, because the tiny preset has about a thousand tasks and a test needs some hundreds of them.
_TEST_END, _VALIDATION_END = int(1 / 3 * 2**64), int(0.38 * 2**64)
_BOUNDS = {"train": (_VALIDATION_END, 2**64), "validation": (_TEST_END, _VALIDATION_END), "test": (0, _TEST_END)}
_MASK = 2**64 - 1


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums` does not matter.

    >>> split_of([3, 5, 7], 22) == split_of([7, 3, 5], 22) in SPLITS
    True
    """
    place = mix(target, *sorted(nums))
    return next(split for split, (first, end) in _BOUNDS.items() if first <= place < end)


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
