"""Makes Countdown tasks: every one solvable, no two alike, train and test apart, any row without the rows before it.

    >>> make_task(TINY, "train", seed=0, index=5) == make_task(TINY, "train", seed=0, index=5)
    True

Two tasks are the same if they have the same multiset of numbers and the same target. How uniqueness comes about:
- A multiset of numbers is a rank among all multisets of its size; a permutation of the ranks, keyed by seed and split,
  puts them in order.
- That order is cut into blocks of about BLOCK multisets. Each block lists its tasks once: first one target of every
  multiset, in a seeded order, then a second one of every multiset, and so on.
- Row i reads one entry of one block. Different rows read different entries, hence never the same task.
- Whether a task belongs to train or test is a hash of the task alone, so no seed and no preset can mix them.
Sizes of multisets take turns: with 3 to 4 numbers, even rows have 3.

Leaves out: speed (a row with four numbers takes milliseconds) and weights on difficulty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count, islice
from math import comb

from .countdown_solver import OPERATORS, all_values

BLOCK = 512
# Rows taken from a block before the next block has its turn. Half a block, so that no numbers come twice early on.
PASS = BLOCK // 2
# Large, because the tiny preset has about a thousand tasks and a test needs some hundreds of them.
TEST_SHARE = 1 / 3
SPLITS = ("train", "test")
_MASK = 2**64 - 1


@dataclass(frozen=True)
class CountdownSettings:
    """What tasks look like. Ranges are inclusive pairs (lowest, highest).

    count: how many numbers; number: the value of each; target: the value to reach.
    operators: a selection of "+-*/".
    whole: every intermediate result is a whole number, not negative and at most `largest`.
        Otherwise intermediate results may be any fraction, also negative, as the reward allows.
    """

    count: tuple[int, int]
    number: tuple[int, int]
    target: tuple[int, int]
    operators: str = OPERATORS
    whole: bool = False
    largest: int = 99

    def __post_init__(self):
        for name, low, high in (("count", 2, 5), ("number", 1, 1000), ("target", 1, 10**6)):
            first, last = getattr(self, name)
            if not low <= first <= last <= high:
                raise ValueError(f"{name} must be (lowest, highest) within {low}..{high}, got ({first}, {last})")
        if not self.operators or set(self.operators) - set(OPERATORS):
            raise ValueError(f'operators must be a selection of "{OPERATORS}", got {self.operators!r}')
        if self.whole and self.largest < self.target[1]:
            raise ValueError(f"largest must be at least the highest target {self.target[1]}, got {self.largest}")


TUTORIAL = CountdownSettings(count=(3, 4), number=(1, 99), target=(10, 100))
TINY = CountdownSettings(count=(3, 3), number=(1, 9), target=(1, 40), whole=True)
PRESETS = {"tutorial": TUTORIAL, "tiny": TINY}


def make_task(settings: CountdownSettings, split: str, seed: int, index: int) -> dict[str, list[int] | int]:
    """Row `index` of the dataset that (settings, split, seed) stands for: `{"nums": [...], "target": ...}`.

    Raises IndexError where the settings hold no such row. Row i does not depend on which rows were made before.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    if index < 0:
        raise IndexError(f"index must be at least 0, got {index}")
    low, high = settings.count
    size, position = low + index % (high - low + 1), index // (high - low + 1)
    number_of_blocks = max(1, _multisets(settings, size) // BLOCK)
    turn, inside = divmod(position, number_of_blocks * PASS)
    offset = turn * PASS + inside % PASS
    found, rest = _block(settings, split, seed, size, inside // PASS)
    found.extend(islice(rest, max(0, offset + 1 - len(found))))
    if offset >= len(found):
        raise IndexError(f"no row {index}: these settings do not hold that many {split} tasks")
    nums, target = found[offset]
    # The order of the numbers is no part of the task, but a model should not learn that it is sorted.
    shuffled = sorted(range(size), key=lambda place: _mix(seed, index, place))
    return {"nums": [nums[place] for place in shuffled], "target": target}


def make_tasks(settings: CountdownSettings, split: str, seed: int, rows: int | None) -> Iterator[dict]:
    """The first `rows` rows, or every row there is where `rows` is None. IndexError if there are fewer than `rows`."""
    for index in count() if rows is None else range(rows):
        try:
            yield make_task(settings, split, seed, index)
        except IndexError:
            if rows is None:
                return
            raise IndexError(f"{rows} rows wanted, and these settings hold {index} {split} tasks") from None


def split_of(nums: Sequence[int], target: int) -> str:
    """The split that a task belongs to, whatever the settings and the seed. The order of `nums` does not matter."""
    return "test" if _mix(target, *sorted(nums)) < TEST_SHARE * 2**64 else "train"


def reachable(nums: Sequence[int], settings: CountdownSettings) -> dict[int, str]:
    """Every target within the settings' range that `nums` can reach, each number used once, with one expression.

    >>> reachable([4, 4, 9], TINY)[25]
    '((4 * 4) + 9)'
    """
    low, high = settings.target
    values = all_values(nums, settings.operators, settings.largest if settings.whole else None)
    return {n: text for (n, d), text in sorted(values.items()) if d == 1 and low <= n <= high}


def _multisets(settings: CountdownSettings, size: int) -> int:
    low, high = settings.number
    return comb(high - low + size, size)


@lru_cache(maxsize=16)
def _block(settings, split, seed, size, block) -> tuple[list, Iterator]:
    """The tasks of one block: those found so far, and an iterator over the rest that `make_task` draws on."""
    total = _multisets(settings, size)
    blocks = max(1, total // BLOCK)
    key = _mix(seed, SPLITS.index(split))
    order = [_permuted(i, total, key) for i in range(block * total // blocks, (block + 1) * total // blocks)]

    @cache
    def targets(rank: int) -> tuple[tuple[int, ...], list[int]]:
        nums = _unrank(rank, size, settings.number[0])
        mine = [target for target in reachable(nums, settings) if split_of(nums, target) == split]
        return nums, sorted(mine, key=lambda target: _mix(key, rank, target))

    def tasks() -> Iterator[tuple[tuple[int, ...], int]]:
        for nth in count():
            left = [rank for rank in order if nth < len(targets(rank)[1])] if nth else order
            if not left:
                return
            for rank in left:
                nums, mine = targets(rank)
                if nth < len(mine):
                    yield nums, mine[nth]

    return [], tasks()


def _unrank(rank: int, size: int, lowest: int) -> tuple[int, ...]:
    """The sorted multiset that has this rank among all of its size, in the combinatorial number system."""
    nums = []
    for place in range(size, 0, -1):
        top = place - 1
        while comb(top + 1, place) <= rank:
            top += 1
        rank -= comb(top, place)
        nums.append(lowest + top - place + 1)
    return tuple(reversed(nums))


def _permuted(index: int, size: int, seed: int) -> int:
    """Where a permutation of range(size), keyed by `seed`, sends `index`.

    A Feistel network of four rounds on the next even number of bits; results outside the range are sent through again,
    which ends because a permutation's cycle comes back to where it began (cycle walking: Black and Rogaway 2002).
    """
    half = (max(size - 1, 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for round_ in range(4):
            left, right = right, left ^ (_mix(seed, round_, right) & mask)
        index = left << half | right
        if index < size:
            return index


def _mix(*values: int) -> int:
    """A hash of integers to 64 bits: the finalizer of SplitMix64, once for each value."""
    state = 0
    for value in values:
        state = (state ^ value & _MASK) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state
