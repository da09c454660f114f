"""Draws Countdown tasks by the ten thousand: random numbers in a random expression, whose value becomes the target.

Candidate i is a pure function of (settings, seed, i): its numbers, the shape of its expression and the operators come
from SplitMix64 at counter i. Candidates are numbered across chunks of a fixed size, so that a chunk can be made by any
worker at any time: `draw_chunk`. Those whose value is no whole number in the range of targets, whose intermediate
results are not allowed, or which belong to another split, are left out; the expression is a solution of the rest.

Exact: int64 numerators and denominators. Where n numbers could exceed 62 bits, expressions that come near are left out.
Leaves out: repetitions (countdown_generator.py) and what is known of solutions (countdown_count.py).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import log2

import numpy as np

from swift_rlvr.countdown.arrays import Chunk, in_split, pack, random_words, shuffled, sort_columns
from swift_rlvr.countdown.notation import join
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings

CANDIDATES = 1 << 16  # of a chunk, about: enough to share numpy's cost of a call, few enough for the processor's cache
_SAMPLE = 1 << 14
_ADD, _SUB, _MUL, _DIV, _SUB_BACK, _DIV_BACK = range(6)
_SYMBOLS = ("+", "-", "*", "/", "-", "/")
_NUMBERS_AT, _OPERATORS_AT, _ORDER_AT = 1, 9, 10  # which word of a candidate is for what


def draw_chunk(
    settings: CountdownSettings, split: str | None, seed: int, number: int, solution: bool = False, parts: int = 1
) -> Chunk:
    """Chunk `number` of the tasks that (settings, seed) stands for, those of `split`; repetitions among them.

    split: None for those of all splits. parts: a power of 2 up to 256, by which chunks are smaller: the tasks of chunks
    4 and 5 for parts=2 are those of chunk 2 for parts=1, in the same order.

    >>> chunk = draw_chunk(CountdownSettings((3, 4), (1, 99), (10, 100)), "train", seed=0, number=7, solution=True)
    >>> bool((chunk.target >= 10).all()), len(chunk.solution) == len(chunk.target) > 1000
    (True, True)
    """
    slots = _slots(settings)
    each = max(1, CANDIDATES // len(slots) // 256) * 256 // parts
    drawn = []
    for place, (size, shape) in enumerate(slots):
        # Candidates take turns among the slots, so that rows of all sizes and shapes are mixed.
        index = np.arange(each, dtype=np.uint64) * np.uint64(len(slots)) + np.uint64(number * each * len(slots) + place)
        drawn.append(_draw_slot(settings, split, seed, index, size, shape, solution))
    index = np.concatenate([part[0] for part in drawn])
    order = np.argsort(index, kind="stable")
    chunk = Chunk(
        np.concatenate([part[1] for part in drawn]),
        np.repeat([slot[0] for slot in slots], [len(part[0]) for part in drawn]),
        np.concatenate([part[2] for part in drawn]),
        np.concatenate([part[3] for part in drawn]),
        [text for part in drawn for text in part[4]] if solution else None,
    )
    return chunk.take(order)


@lru_cache
def _slots(settings: CountdownSettings) -> list[tuple[int, tuple]]:
    """(how many numbers, shape of the expression) for candidates by turns.

    More turns for sizes whose candidates are tasks less often, as seen in a sample, so that rows of all sizes are about
    equally many; at most 16 times as many, or sizes that reach hardly anything would take all the time.
    """
    sizes = range(settings.count[0], settings.count[1] + 1)
    most = max(len(_shapes(size)) for size in sizes)
    turns = {size: [(size, _shapes(size)[turn % len(_shapes(size))]) for turn in range(most)] for size in sizes}
    if len(sizes) == 1:
        return turns[sizes[0]]
    sample = np.arange(max(256, _SAMPLE // most), dtype=np.uint64)
    found = {
        size: 1 + sum(len(_draw_slot(settings, None, 0, sample, *slot, False)[0]) for slot in turns[size])
        for size in sizes
    }
    best = max(found.values())
    repeated = {size: turns[size] * min(16, round(best / found[size])) for size in sizes}
    longest = max(map(len, repeated.values()))
    # Evenly interleaved: the slots of each size at the same pace.
    places = [
        (k * longest // len(slots), size, slot) for size, slots in repeated.items() for k, slot in enumerate(slots)
    ]
    return [slot for _, _, slot in sorted(places, key=lambda place: place[:2])]


@lru_cache
def _shapes(size: int) -> list:
    """Binary trees with `size` leaves that do not become equal by exchanging two branches; None is a leaf."""
    if size == 1:
        return [None]
    found = []
    for left in range(size - 1, (size - 1) // 2, -1):
        for i, a in enumerate(_shapes(left)):
            others = _shapes(size - left)
            found += [(a, b) for b in (others[: i + 1] if 2 * left == size else others)]
    return found


def _draw_numbers(settings, seed, index, size) -> tuple[list[np.ndarray], np.ndarray | bool]:
    low, high = (0, len(settings.tiles) - 1) if settings.tiles else settings.number
    span, columns, word = np.uint64(high - low + 1), [], None
    for i in range(size):  # three fields of 21 bits in a word
        word = random_words(seed, _NUMBERS_AT + i // 3, index) if i % 3 == 0 else word >> np.uint64(21)
        field = word & np.uint64((1 << 21) - 1)
        columns.append((field * span >> np.uint64(21)).astype(np.int64) + low)
    if settings.tiles is None:
        return columns, True
    seen, twice = np.zeros(len(index), np.int64), np.zeros(len(index), bool)
    for column in columns:
        bit = np.int64(1) << column
        twice |= (seen & bit) != 0
        seen |= bit
    return [np.array(settings.tiles, np.int64)[column] for column in columns], ~twice


def _draw_slot(settings, split, seed, index, size, shape, solution):
    """(index, keys, nums, target, solutions) of the candidates of one shape that are tasks of the split."""
    nums, valid = _draw_numbers(settings, seed, index, size)
    if valid is not True:
        index, nums = index[valid], [column[valid] for column in nums]
    tree = _Evaluation(settings, nums, random_words(seed, _OPERATORS_AT, index), len(index), solution)
    numerator, denominator = tree.evaluate(shape)
    denominator = np.ones_like(numerator) if denominator is None else denominator
    low, high = settings.target
    with np.errstate(divide="ignore", invalid="ignore"):
        value = numerator / denominator
        # Floats choose, integers decide.
        near = np.flatnonzero(tree.valid & (value > low - 0.5) & (value < high + 0.5) & (value == np.rint(value)))
    target = value[near].astype(np.int64)
    near = near[numerator[near] == target * denominator[near]]
    target = value[near].astype(np.int64)
    chosen = [column[near] for column in nums]
    ordered = sort_columns(chosen)
    mine = in_split(ordered, target, split)
    near, target = near[mine], target[mine]
    keys = pack(settings, [column[mine] for column in ordered], target)
    rows = np.zeros((len(near), settings.count[1]), np.int64)
    rows[:, :size] = np.stack([column[mine] for column in chosen], axis=1)
    texts = tree.texts(shape, near, rows) if solution else None
    rows[:, :size] = shuffled(rows[:, :size], random_words(seed, _ORDER_AT, index[near]))
    return index[near], keys, rows, target, texts


class _Evaluation:
    """Evaluates one shape for many candidates; `valid` says where every intermediate result was allowed."""

    def __init__(self, settings, nums, word, length, keep_codes):
        self.settings, self.nums, self.word = settings, nums, word
        self.valid = np.ones(length, bool)
        self.codes = [] if keep_codes else None
        self.leaves = iter(nums)
        self.kinds = np.array([OPERATORS.index(symbol) for symbol in settings.operators], np.uint8)
        bits = settings.count[1] * log2(settings.number[1]) + settings.count[1]
        self.limit = None if bits < 62 else 2**30
        # Signs can be moved out of any expression with a positive value, if there is a sum to turn a difference into:
        # nothing is lost where the larger operand stands first.
        self.ordered = not settings.negative or "+" in settings.operators

    def evaluate(self, shape):
        """(numerator, denominator) of a branch; the denominator is never 0 where valid."""
        if shape is None:
            return next(self.leaves), None
        (an, ad), (bn, bd) = self.evaluate(shape[0]), self.evaluate(shape[1])
        field, self.word = self.word & np.uint64(511), self.word >> np.uint64(9)
        kind = self.kinds[((field & np.uint64(255)) * np.uint64(len(self.kinds)) >> np.uint64(8)).astype(np.uint8)]
        back = field > np.uint64(255)
        one = an if bd is None else an * bd
        other = bn if ad is None else bn * ad
        both = ad if bd is None else bd if ad is None else ad * bd
        if self.settings.fractions:
            swap = back if not self.ordered else np.where(kind == _SUB, one < other, back)
        else:
            swap = one < other if self.ordered else np.where(kind == _DIV, np.abs(one) < np.abs(other), back)
        first, second = np.where(swap, other, one), np.where(swap, one, other)
        product = an * bn
        numerator = np.choose(kind, (one + other, first - second, product, first))
        if self.codes is not None:
            self.codes.append(
                np.where(swap & (kind == _SUB), _SUB_BACK, np.where(swap & (kind == _DIV), _DIV_BACK, kind))
            )
        divides = kind == _DIV
        self.valid &= ~divides | (second != 0)
        if self.settings.fractions:
            denominator = np.where(divides, second, 1 if both is None else both)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                quotient = np.nan_to_num(first / second, posinf=0.0, neginf=0.0).astype(np.int64)
            self.valid &= ~divides | (quotient * second == first)
            numerator, denominator = np.where(divides, quotient, numerator), None
        self._restrict(numerator, denominator)
        return numerator, denominator

    def texts(self, shape, which, rows) -> list[str]:
        """The expression of each of these candidates, whose numbers are `rows`."""
        codes = np.stack([code[which] for code in self.codes], axis=1).tolist()
        return [_template(shape, tuple(code)).format(*row) for code, row in zip(codes, rows.tolist(), strict=True)]

    def _restrict(self, numerator, denominator):
        size = np.abs(numerator)
        if self.settings.largest is not None:
            self.valid &= size <= self.settings.largest * (1 if denominator is None else np.abs(denominator))
        if self.limit is not None:
            self.valid &= size < self.limit
            if denominator is not None:
                self.valid &= np.abs(denominator) < self.limit


@lru_cache(maxsize=2**14)
def _template(shape, codes) -> str:
    """The expression with "{0}" for the first number, and so on."""
    places, codes = count(), iter(codes)

    def written(branch):
        if branch is None:
            return f"{{{next(places)}}}", "atom"
        left, right = written(branch[0]), written(branch[1])
        code = next(codes)
        if code in (_SUB_BACK, _DIV_BACK):
            left, right = right, left
        return join(left, _SYMBOLS[code], right)

    return written(shape)[0]
