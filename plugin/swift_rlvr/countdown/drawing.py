"""Draws Countdown tasks by the ten thousand: random numbers in a random expression, whose value becomes the target.

Candidate i is a pure function of (settings, seed, i): its numbers, shape and operators come from SplitMix64 at counter
i. Chunks have a fixed number of candidates, so any can be made at any time. A candidate becomes a task if its value
is a whole number in the range of targets, its intermediate results are allowed, and it belongs to the split.

Exact: int64 numerators and denominators. Where n numbers could exceed 62 bits, expressions that come near are dropped.
"""

from functools import lru_cache
from itertools import count
from math import log2
from typing import Any

import numpy as np

from swift_rlvr.countdown.arrays import Chunk, Ints, Words, concatenate, in_split, random_words, shuffled, task_keys
from swift_rlvr.countdown.forms import DIV, SUB
from swift_rlvr.countdown.notation import Written, join
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

CANDIDATES = 1 << 16  # of a chunk, about: enough to share numpy's cost of a call, few enough for the processor's cache
_LEAST = 256  # candidates of one shape in a chunk
_SWAPPED = 4  # added to the code of an operator whose operands are exchanged
_NUMBERS_AT, _OPERATORS_AT, _ORDER_AT = 1, 9, 10  # which word of a candidate is for what
Shape = Any  # a binary tree: None for a number, else (left, right)


def draw_chunk(
    settings: CountdownSettings, split: str | None, seed: int, number: int, solution: bool = False, parts: int = 1
) -> Chunk:
    """Chunk `number` of the tasks that (settings, seed) stands for, of `split` unless None; repetitions among them.

    With `parts`, chunks are that many times smaller; the tasks are the same, in the same order.

    >>> chunk = draw_chunk(CountdownSettings((3, 4), (1, 99), (10, 100)), "train", seed=0, number=7, solution=True)
    >>> bool((chunk.target >= 10).all()), len(chunk.columns["solution"]) == len(chunk) > 1000
    (True, True)
    """
    slots = _slots(settings)
    each = max(1, max(_LEAST, CANDIDATES // len(slots)) // parts)
    # Candidates take turns among the slots, so that rows of all sizes and shapes are mixed.
    indexes = np.arange(each, dtype=np.uint64) * np.uint64(len(slots)) + np.uint64(number * each * len(slots))
    drawn = [
        _draw_slot(settings, split, seed, indexes + np.uint64(place), size, shape, solution)
        for place, (size, shape) in enumerate(slots)
    ]
    order = np.argsort(np.concatenate([index for index, _ in drawn]), kind="stable")
    return concatenate([chunk for _, chunk in drawn]).take(order)


@lru_cache
def _slots(settings: CountdownSettings) -> list[tuple[int, Shape]]:
    """(how many numbers, shape of the expression) that candidates take turns among.

    More turns for sizes whose candidates are tasks less often, as seen in a sample, so that rows of all sizes are about
    equally many; at most 16 times as many, or sizes that reach hardly anything would take all the time.
    """
    sizes = range(settings.count[0], settings.count[1] + 1)
    most = max(len(_shapes(size)) for size in sizes)
    turns = {size: [(size, _shapes(size)[turn % len(_shapes(size))]) for turn in range(most)] for size in sizes}
    sample = np.arange(max(256, (1 << 14) // most), dtype=np.uint64)
    tasks = {
        size: 1 + sum(len(_draw_slot(settings, None, 0, sample, *slot, False)[0]) for slot in turns[size])
        for size in sizes
    }
    repeated = {size: turns[size] * min(16, round(max(tasks.values()) / tasks[size])) for size in sizes}
    longest = max(map(len, repeated.values()))
    # Evenly interleaved: the slots of each size at the same pace.
    places = [
        (k * longest // len(slots), size, slot) for size, slots in repeated.items() for k, slot in enumerate(slots)
    ]
    return [slot for _, _, slot in sorted(places, key=lambda place: place[:2])]


@lru_cache
def _shapes(size: int) -> list[Shape]:
    """Binary trees with `size` leaves that do not become equal by exchanging two branches."""
    if size == 1:
        return [None]
    shapes: list[Shape] = []
    for left in range(size - 1, (size - 1) // 2, -1):
        for i, a in enumerate(_shapes(left)):
            others = _shapes(size - left)
            shapes += [(a, b) for b in (others[: i + 1] if 2 * left == size else others)]
    return shapes


def _draw_numbers(settings: CountdownSettings, seed: int, index: Words, size: int) -> tuple[Words, list[Ints]]:
    """The candidates that have numbers, (n,), and these, `size` times (n,)."""
    low, high = (0, len(settings.tiles) - 1) if settings.tiles else settings.number
    span, columns = np.uint64(high - low + 1), []
    for i in range(size):  # three fields of 21 bits in a word
        word = random_words(seed, _NUMBERS_AT + i // 3, index) >> np.uint64(21 * (i % 3))
        columns.append(((word & np.uint64((1 << 21) - 1)) * span >> np.uint64(21)).astype(np.int64) + low)
    if settings.tiles is None:
        return index, columns
    seen, twice = np.zeros(len(index), np.int64), np.zeros(len(index), bool)
    for column in columns:
        bit = np.int64(1) << column
        twice |= (seen & bit) != 0
        seen |= bit
    return index[~twice], [np.array(settings.tiles, np.int64)[column[~twice]] for column in columns]


def _draw_slot(
    settings: CountdownSettings, split: str | None, seed: int, index: Words, size: int, shape: Shape, solution: bool
) -> tuple[Words, Chunk]:
    """The candidates of one shape that are tasks of the split: their indexes, (tasks,), and the tasks."""
    index, nums = _draw_numbers(settings, seed, index, size)
    tree = _Evaluation(settings, nums, random_words(seed, _OPERATORS_AT, index))
    numerator, denominator = tree.evaluate(shape)
    low, high = settings.target
    with np.errstate(divide="ignore", invalid="ignore"):
        value = numerator / denominator
        # Floats choose, integers decide.
        near = np.flatnonzero(tree.valid & (value > low - 0.5) & (value < high + 0.5) & (value == np.rint(value)))
    near = near[numerator[near] == value[near].astype(np.int64) * denominator[near]]
    target = value[near].astype(np.int64)
    rows = np.stack([column[near] for column in nums], axis=1)
    keys = task_keys(rows, target)
    mine = in_split(keys, split)
    near, target, rows = near[mine], target[mine], rows[mine]
    columns = {"solution": tree.texts(shape, near, rows)} if solution else {}
    # In a random order, so that the order tells nothing of the solution.
    shown = shuffled(rows, random_words(seed, _ORDER_AT, index[near]), settings.count[1])
    return index[near], Chunk(keys[mine], shown, target, columns)


class _Evaluation:
    """Evaluates one shape for many candidates (n,); `valid` (n,) says where every intermediate result was allowed."""

    def __init__(self, settings: CountdownSettings, nums: list[Ints], word: Words):
        self.settings, self.word = settings, word
        self.valid = np.ones(len(word), bool)
        self.codes: list[np.ndarray] = []  # for each operation, from the inside: which it is, (n,)
        self.leaves, self.one = iter(nums), np.ones(len(word), np.int64)
        self.operators = np.array([OPERATORS.index(symbol) for symbol in settings.operators], np.uint8)
        bits = settings.count[1] * log2(settings.number[1]) + settings.count[1]
        self.limit = None if bits < 62 else 2**30
        # Signs can be moved out of any expression with a positive value, if there is a sum to turn a difference into:
        # nothing is lost where the larger operand stands first.
        self.ordered = not settings.negative or "+" in settings.operators

    def evaluate(self, shape: Shape) -> tuple[Ints, Ints]:
        """(numerator, denominator) of a branch, (n,) each; the denominator is never 0 where valid."""
        if shape is None:
            return next(self.leaves), self.one
        (an, ad), (bn, bd) = self.evaluate(shape[0]), self.evaluate(shape[1])
        field, self.word = self.word & np.uint64(511), self.word >> np.uint64(9)
        choice = (field & np.uint64(255)) * np.uint64(len(self.operators)) >> np.uint64(8)
        operator = self.operators[choice.astype(np.uint8)]
        back = field > np.uint64(255)
        one, other, denominator = an * bd, bn * ad, ad * bd
        if self.settings.fractions:
            swap = back if not self.ordered else np.where(operator == SUB, one < other, back)
        else:
            swap = one < other if self.ordered else np.where(operator == DIV, np.abs(one) < np.abs(other), back)
        first, second = np.where(swap, other, one), np.where(swap, one, other)
        numerator = np.choose(operator, (one + other, first - second, an * bn, first))
        divides = operator == DIV
        self.codes.append(operator + _SWAPPED * (swap & (divides | (operator == SUB))))
        self.valid &= ~divides | (second != 0)
        if self.settings.fractions:
            denominator = np.where(divides, second, denominator)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                quotient = np.nan_to_num(first / second, posinf=0.0, neginf=0.0).astype(np.int64)
            self.valid &= ~divides | (quotient * second == first)
            numerator = np.where(divides, quotient, numerator)
        if self.settings.largest is not None:
            self.valid &= np.abs(numerator) <= self.settings.largest * np.abs(denominator)
        if self.limit is not None:
            self.valid &= np.maximum(np.abs(numerator), np.abs(denominator)) < self.limit
        return numerator, denominator

    def texts(self, shape: Shape, which: Ints, rows: Ints) -> np.ndarray:
        """The expression of each of these candidates, whose numbers are `rows` (tasks, numbers): str as objects."""
        codes = np.stack([code[which] for code in self.codes], axis=1).tolist()
        texts = [_template(shape, tuple(code)).format(*row) for code, row in zip(codes, rows.tolist(), strict=True)]
        return np.array(texts, object)


@lru_cache(maxsize=2**14)
def _template(shape: Shape, codes: tuple[int, ...]) -> str:
    """The expression with "{0}" for the first number, and so on."""
    places, remaining = count(), iter(codes)

    def written(branch: Shape) -> Written:
        if branch is None:
            return f"{{{next(places)}}}", "atom"
        left, right = written(branch[0]), written(branch[1])
        swapped, operator = divmod(next(remaining), _SWAPPED)
        return join(right, OPERATORS[operator], left) if swapped else join(left, OPERATORS[operator], right)

    return written(shape)[0]
