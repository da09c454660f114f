"""Lists every essentially different expression over some operands, once, as a table that numpy can evaluate.

Two expressions are essentially the same if they become equal by the rules of reordering:
- sums and differences are flattened to signed terms, products and quotients to factors above and below the line, and
  neither terms nor factors have an order: a - (b - c) = c + a - b, a / (b / c) = a * c / b;
- a sign moves out of a factor that is a sum: x - (a - b) * c = x + (b - a) * c;
- equal numbers are interchangeable.
Nothing else is the same: neither 2 * 2 and 2 + 2 nor a * 1 and a / 1. With n different operands there are 1, 6, 68,
1170, 27142, 793002 such forms (https://oeis.org/A140606), which the tests check.

How: every form has hashes that the rules do not change. As a term it has one for what is added and one for what is
subtracted, which a minus sign exchanges; as a factor it has a sign and one hash for what stands above and one for what
stands below the line, which a division exchanges. The hashes of a sum are the sums of those of its terms; the same
holds for products.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from swift_rlvr.countdown.arrays import Words, mix_arrays
from swift_rlvr.countdown.settings import OPERATORS, CountdownSettings
from swift_rlvr.countdown.splits import mix

ADD, SUB, MUL, DIV = range(4)
_LEAF, _SUM, _PRODUCT = 4, 5, 6
_OPERATORS_IN = np.array([bits.bit_count() for bits in range(16)], np.int8)
_FORM = np.dtype(
    [(name, np.int8) for name in ("operator", "sign", "depth", "used")]
    + [(name, np.int32) for name in ("left", "right")]
    + [(name, np.uint64) for name in ("key", "plus", "minus", "above", "below")]
)


@dataclass
class Forms:
    """Forms over the parts of a multiset of operands, smaller parts first.

    Form i < `operands` is operand i; any other is `left operator right`, where left and right are places before i.
    Those of one block are over the same operands; those of the last block use all of them.
    """

    operands: int
    size: int  # how many operands, each as often as it occurs
    blocks: list[tuple[int, int]]  # (first, end) of each
    # One entry for each form, (forms,):
    operator: npt.NDArray[np.int8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    key: Words  # equal for forms that are essentially the same
    depth: npt.NDArray[np.int8]  # how deep sums and products are nested
    used: npt.NDArray[np.int8]  # bit i: OPERATORS[i] occurs when written without needless parentheses

    def __len__(self) -> int:
        return len(self.operator)

    def runs(self, start: int, end: int) -> list[tuple[int, slice]]:
        """(operator, the places of the forms with it) for each operator in a block, which is sorted by operators."""
        edges = (start + np.searchsorted(self.operator[start:end], np.arange(5, dtype=np.int8))).tolist()
        return [(i, slice(edges[i], edges[i + 1])) for i in range(4) if edges[i] < edges[i + 1]]


def forms_for(multiplicities: tuple[int, ...], settings: CountdownSettings) -> Forms:
    """The forms with the operators of the settings; in every way of writing them where the settings are restricted."""
    operators = "".join(symbol for symbol in OPERATORS if symbol in settings.operators)
    return forms_over(multiplicities, operators, settings.restricted)


@lru_cache(maxsize=64)
def forms_over(multiplicities: tuple[int, ...], operators: str = OPERATORS, every_way: bool = False) -> Forms:
    """The forms over as many different operands as there are multiplicities, operand i occurring that often.

    Each form once, written so that it divides by zero only where every way to write it does. With `every_way` each way
    to write it instead, with the same key: it matters where intermediate results or operators are restricted.

    >>> [forms.blocks[-1][1] - forms.blocks[-1][0] for forms in map(forms_over, [(1, 1), (1, 1, 1), (2, 1)])]
    [6, 68, 40]
    """
    n = len(multiplicities)
    labels = np.arange(1, n + 1)
    leaves = np.zeros(n, _FORM)
    leaves["operator"], leaves["sign"] = _LEAF, 1
    leaves["left"] = leaves["right"] = np.arange(n)
    leaves["plus"], leaves["above"] = mix_arrays(labels, 1), mix_arrays(labels, 2)
    leaves["key"] = _key(leaves)
    parts = {tuple(int(i == j) for j in range(n)): (i, leaves[i : i + 1]) for i in range(n)}  # (place of first, forms)
    tables, total = [leaves], n
    for part in sorted(product(*(range(m + 1) for m in multiplicities)), key=sum):
        if sum(part) < 2:
            continue
        combined = []
        for one in product(*(range(m + 1) for m in part)):
            other = tuple(m - k for m, k in zip(part, one, strict=True))
            if other <= one and any(other):
                combined += _combined(*parts[one], *parts[other], operators, every_way)
        table = np.concatenate(combined)
        table["key"] = _key(table)
        table = table if every_way else _each_once(table)
        table = table[np.argsort(table["operator"], kind="stable")]
        parts[part] = (total, table)
        total += len(table)
        tables.append(table)
    blocks = [(start, start + len(table)) for start, table in parts.values() if start >= n]
    whole = np.concatenate(tables)
    names = ("operator", "left", "right", "key", "depth", "used")
    forms = Forms(n, sum(multiplicities), blocks, *(np.ascontiguousarray(whole[name]) for name in names))
    if every_way and operators == OPERATORS:
        plain, last = forms_over(multiplicities), slice(*forms.blocks[-1])
        start, end = plain.blocks[-1]
        order = start + np.argsort(plain.key[start:end])
        forms.used[last] = plain.used[order[np.searchsorted(plain.key[order], forms.key[last])]]
    return forms


def _each_once(table: np.ndarray) -> np.ndarray:
    """One row for each key, with the fewest operators that a way to write it uses."""
    # x + (b - a) * c rather than x - (a - b) * c: then what is added to it is added to a sum without a minus sign
    order = np.lexsort((table["operator"], table["key"]))
    fewest = np.lexsort((_OPERATORS_IN[table["used"]], table["key"]))
    new = np.diff(table["key"][order], prepend=~table["key"][order[:1]]) != 0
    chosen = table[order[new]]
    chosen["used"] = table["used"][fewest[new]]
    return chosen


def _combined(x_start, x, y_start, y, operators: str, every_way: bool) -> list[np.ndarray]:
    """Every form `x operator y` and `y operator x`. Without every_way only those that flattening cannot shorten."""
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(len(x)), np.arange(len(y)), indexing="ij"))
    combined = []
    for operator, symbol in enumerate(OPERATORS):
        if symbol not in operators:
            continue
        flat = SUB if operator in (ADD, SUB) else DIV
        keep = slice(None) if every_way else (x["operator"][i] != flat) & (y["operator"][j] != flat)
        one, other = (i[keep] + x_start, x[i[keep]]), (j[keep] + y_start, y[j[keep]])
        combined.append(_joined(operator, *one, *other))
        if operator in (SUB, DIV):
            combined.append(_joined(operator, *other, *one))
    return combined


def _joined(operator: int, left, a, right, b) -> np.ndarray:
    """The forms `a operator b`, pair by pair, without their keys; left and right are the places of a and b."""
    made = np.zeros(len(a), _FORM)
    is_sum = operator in (ADD, SUB)
    inside = (ADD, SUB) if is_sum else (MUL, DIV)
    made["operator"], made["left"], made["right"] = operator, left, right
    made["used"] = a["used"] | b["used"] | np.int8(1 << operator)
    made["depth"] = 1 + np.maximum(*(form["depth"] - np.isin(form["operator"], inside) for form in (a, b)))
    one, other = ("plus", "minus") if is_sum else ("above", "below")
    turned = (other, one) if operator in (SUB, DIV) else (one, other)
    made[one], made[other] = a[one] + b[turned[0]], a[other] + b[turned[1]]
    if is_sum:
        low, high = np.minimum(made["plus"], made["minus"]), np.maximum(made["plus"], made["minus"])
        # 0: equal to its own negative, such as 3 - 3
        made["sign"] = np.where(low == high, 0, np.where(low == made["plus"], 1, -1))
        made["above"] = mix_arrays(low, high, _SUM)
    else:
        made["sign"] = a["sign"] * b["sign"]
        term = mix_arrays(made["above"], made["below"], _PRODUCT)
        made["plus"], made["minus"] = term * (made["sign"] >= 0), term * (made["sign"] <= 0)
    return made


def _key(table: np.ndarray) -> Words:
    return table["plus"] + table["minus"] * np.uint64(mix(3) | 1)
