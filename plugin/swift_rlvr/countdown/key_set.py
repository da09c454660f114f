"""A set of 64-bit keys that takes them by the ten thousand, in 16 to 32 bytes each."""

from __future__ import annotations

import numpy as np

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class KeySet:
    """Keys seen so far. An open-addressing hash table in one array, in which 0 is an empty place.

    >>> seen = KeySet()
    >>> seen.add(np.array([5, 7, 5], np.uint64)).tolist(), seen.add(np.array([9, 7], np.uint64)).tolist(), len(seen)
    ([True, True, False], [True, False], 3)
    """

    def __init__(self):
        self._count = 0
        self._resize(1 << 16)

    def __len__(self) -> int:
        return self._count

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add keys, none of them 0. True for each that is new, the first of equal ones."""
        unique, first = np.unique(keys, return_index=True)
        while 2 * (self._count + len(unique)) > len(self._table):
            old = self._table[self._table != 0]
            self._resize(2 * len(self._table))
            for start in range(0, len(old), 1 << 20):  # in parts, for the memory
                self._insert(old[start : start + (1 << 20)])
        is_new = np.zeros(len(keys), bool)
        is_new[first[self._insert(unique)]] = True
        self._count += int(is_new.sum())
        return is_new

    def _resize(self, places: int) -> None:
        self._table = np.zeros(places, np.uint64)
        self._shift = np.uint64(64 - places.bit_length() + 1)

    def _insert(self, keys: np.ndarray) -> np.ndarray:
        """Which of these different keys were not there."""
        is_new = np.zeros(len(keys), bool)
        left = np.arange(len(keys))
        place = (keys * _SPREAD >> self._shift).astype(np.int64)
        while len(left):
            at, mine = place[left], keys[left]
            there = self._table[at]
            empty = there == 0
            self._table[at[empty]] = mine[empty]  # of several keys for one place the last stays
            won = empty & (self._table[at] == mine)
            is_new[left[won]] = True
            left = left[~(won | (there == mine))]
            place[left] = (place[left] + 1) & (len(self._table) - 1)
        return is_new
