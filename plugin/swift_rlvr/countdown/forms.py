"""Lists every essentially different expression over some operands, once, as a table that numpy can evaluate.

Two expressions are essentially the same if they become equal by the rules of reordering:
- sums and differences are flattened to signed terms, products and quotients to factors above and below the line, and
  neither terms nor factors have an order: a - (b - c) = c + a - b, a / (b / c) = a * c / b;
- a sign moves out of a factor that is a sum: x - (a - b) * c = x + (b - a) * c;
- equal numbers are not told apart.
Nothing else is the same: neither 2 * 2 and 2 + 2 nor a * 1 and a / 1. With n different operands there are 1, 6, 68,
1170, 27142, 793002 such forms (https://oeis.org/A140606), which the tests check.

How: every form has hashes that the rules do not change. As a term it has one for what is added and one for what is
taken away, which a minus sign exchanges; as a factor it has a sign and one hash for what stands above and one for what
stands below the line, which a division exchanges. Those of a sum are the sums of those of its terms; products likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from swift_rlvr.countdown.arrays import mix_arrays
from swift_rlvr.countdown.settings import OPERATORS
from swift_rlvr.countdown.splits import mix

ADD, SUB, MUL, DIV = range(4)
_LEAF, _SUM, _PRODUCT = 4, np.uint64(5), np.uint64(6)
_OPERATORS_IN = np.array([bits.bit_count() for bits in range(16)], np.int8)
_KINDS = ("operator", "left", "right", "key", "plus", "minus", "above", "below", "sign", "depth", "used")


@dataclass
class Forms:
    """Forms over the parts of a multiset of operands, smaller parts first; the arrays have one entry for each.

    Form i < `operands` is operand i; any other is `left operator right`, where left and right are places before i.
    Those of one block are over the same operands; those of the last block use all of them.
    """

    operands: int
    operator: np.ndarray
    left: np.ndarray
    right: np.ndarray
    key: np.ndarray  # uint64: equal for forms that are essentially the same
    depth: np.ndarray  # how deep sums and products are nested
    used: np.ndarray  # bit i: OPERATORS[i] occurs when written without needless parentheses, if all are allowed
    blocks: list[tuple[int, int]]
    size: int  # how many operands, each as often as it occurs

    def __post_init__(self):
        self._runs = {}
        for start, end in self.blocks:
            edges = (start + np.searchsorted(self.operator[start:end], np.arange(5))).tolist()
            runs = [(kind, slice(edges[kind], edges[kind + 1])) for kind in range(4) if edges[kind] < edges[kind + 1]]
            self._runs[start] = runs

    def __len__(self) -> int:
        return len(self.operator)

    def runs(self, block: tuple[int, int]) -> list[tuple[int, slice]]:
        """(operator, slice) for the runs of one operator that a block is sorted into."""
        return self._runs[block[0]]


@lru_cache(maxsize=64)
def forms_over(multiplicities: tuple[int, ...], operators: str = OPERATORS, every_way: bool = False) -> Forms:
    """The forms over as many different operands as there are multiplicities, operand i occurring that often.

    Each form once, written so that it divides by zero only where every way to write it does. With `every_way` each way
    to write it instead, by the same key: it matters where intermediate results or operators are restricted.

    >>> [forms.blocks[-1][1] - forms.blocks[-1][0] for forms in map(forms_over, [(1, 1), (1, 1, 1), (2, 1)])]
    [6, 68, 40]
    """
    n = len(multiplicities)
    labels = np.arange(1, n + 1)
    leaf = {
        "operator": np.full(n, _LEAF, np.int8),
        "left": np.arange(n, dtype=np.int32),
        "right": np.arange(n, dtype=np.int32),
        "plus": mix_arrays(labels, np.uint64(1)),
        "minus": np.zeros(n, np.uint64),
        "above": mix_arrays(labels, np.uint64(2)),
        "below": np.zeros(n, np.uint64),
        "sign": np.ones(n, np.int8),
        "depth": np.zeros(n, np.int8),
        "used": np.zeros(n, np.int8),
    }
    leaf["key"] = _key(leaf)
    parts = {tuple(int(i == j) for j in range(n)): {name: leaf[name][i : i + 1] for name in _KINDS} for i in range(n)}
    places = {part: (i, i + 1) for i, part in enumerate(parts)}
    blocks, total = [leaf], n
    for part in sorted(product(*(range(m + 1) for m in multiplicities)), key=sum):
        if sum(part) < 2:
            continue
        made = []
        for one in product(*(range(m + 1) for m in part)):
            other = tuple(m - k for m, k in zip(part, one, strict=True))
            if other <= one and any(other):
                made += _combined(parts[one], parts[other], places[one][0], places[other][0], operators, every_way)
        block = {name: np.concatenate([each[name] for each in made]) for name in made[0]}
        block["key"] = _key(block)
        if not every_way:
            # x + (b - a) * c rather than x - (a - b) * c: what is added to it, is added to a sum without a minus sign
            order = np.lexsort((block["operator"], block["key"]))
            fewest = np.lexsort((_OPERATORS_IN[block["used"]], block["key"]))
            new = np.diff(block["key"][order], prepend=~block["key"][order[:1]]) != 0
            used = block["used"][fewest[new]]
            block = {name: column[order[new]] for name, column in block.items()} | {"used": used}
        order = np.argsort(block["operator"], kind="stable")
        block = {name: column[order] for name, column in block.items()}
        parts[part], places[part] = block, (total, total + len(order))
        total += len(order)
        blocks.append(block)
    columns = ("operator", "left", "right", "key", "depth", "used")
    joined = [np.concatenate([block[name] for block in blocks]) for name in columns]
    forms = Forms(n, *joined, [place for place in places.values() if place[0] >= n], sum(multiplicities))
    if every_way and operators == OPERATORS:
        plain, last = forms_over(multiplicities), slice(*forms.blocks[-1])
        start, end = plain.blocks[-1]
        order = start + np.argsort(plain.key[start:end])
        forms.used[last] = plain.used[order[np.searchsorted(plain.key[order], forms.key[last])]]
    return forms


def _combined(x, y, x_start, y_start, operators, every_way) -> list[dict]:
    """Every form `x operator y` and `y operator x`. Without every_way only those that flattening cannot shorten."""
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(len(x["key"])), np.arange(len(y["key"])), indexing="ij"))
    made = []
    for kind, symbol in enumerate(OPERATORS):
        if symbol not in operators:
            continue
        flat = SUB if kind in (ADD, SUB) else DIV
        keep = slice(None) if every_way else (x["operator"][i] != flat) & (y["operator"][j] != flat)
        a, b = _pick(x, i[keep], x_start), _pick(y, j[keep], y_start)
        made.append(_joined(kind, a, b))
        if kind in (SUB, DIV):
            made.append(_joined(kind, b, a))
    return made


def _pick(block, which, start) -> dict:
    return {name: column[which] for name, column in block.items()} | {"place": (which + start).astype(np.int32)}


def _joined(kind, a, b) -> dict:
    is_sum = kind in (ADD, SUB)
    inside = (ADD, SUB) if is_sum else (MUL, DIV)
    one, other = (each["depth"] - np.isin(each["operator"], inside) for each in (a, b))
    made = {
        "operator": np.full(len(one), kind, np.int8),
        "left": a["place"],
        "right": b["place"],
        "depth": (np.maximum(one, other) + 1).astype(np.int8),
        "used": a["used"] | b["used"] | np.int8(1 << kind),
    }
    if is_sum:
        made["plus"], made["minus"] = _both(a, b, "plus", "minus", exchanged=kind == SUB)
        low, high = np.minimum(made["plus"], made["minus"]), np.maximum(made["plus"], made["minus"])
        # 0: equal to its own negative, such as 3 - 3
        made["sign"] = np.where(low == high, 0, np.where(low == made["plus"], 1, -1)).astype(np.int8)
        made["above"], made["below"] = mix_arrays(low, high, _SUM), np.zeros(len(one), np.uint64)
    else:
        made["above"], made["below"] = _both(a, b, "above", "below", exchanged=kind == DIV)
        made["sign"] = a["sign"] * b["sign"]
        term = mix_arrays(made["above"], made["below"], _PRODUCT)
        made["plus"] = np.where(made["sign"] >= 0, term, np.uint64(0))
        made["minus"] = np.where(made["sign"] <= 0, term, np.uint64(0))
    return made


def _both(a, b, one, other, exchanged) -> tuple[np.ndarray, np.ndarray]:
    if exchanged:
        return a[one] + b[other], a[other] + b[one]
    return a[one] + b[one], a[other] + b[other]


def _key(block) -> np.ndarray:
    return block["plus"] + block["minus"] * np.uint64(mix(3) | 1)
