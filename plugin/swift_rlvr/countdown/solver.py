"""Solves Countdown tasks exactly: one solution, or all essentially different ones, and how difficult a task is.

The search goes backwards from the target: the numbers are split in two parts, and each value b of the smaller part
tells what the larger one has to make: target - b, target + b, target / b and so on. 6 numbers take about half a second.

Two solutions are essentially the same if they become equal by these rules:
- sums and differences are flattened to signed terms, products and quotients to factors above and below the line, and
  neither terms nor factors have an order: a - (b - c) = c + a - b, a / (b / c) = a * c / b;
- a sign moves out of a factor that is a sum: x - (a - b) * c = x + (b - a) * c;
- equal numbers are interchangeable.
Nothing else is the same: neither 2 * 2 and 2 + 2 nor a * 1 and a / 1. With n different numbers there are 1, 6, 68,
1170, 27142, 793002 expressions (https://oeis.org/A140606), which the tests check for n up to 4.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from math import prod
from typing import Any

from swift_rlvr.countdown.arithmetic import Number, divide
from swift_rlvr.countdown.settings import MOST_NUMBERS, OPERATORS, CountdownSettings

LARGEST = 10**9
ANYTHING = CountdownSettings(count=(2, MOST_NUMBERS), number=(1, 1000), target=(1, 10**6))

Numbers = tuple[int, ...]  # sorted
Tree = int | tuple[str, "Tree", "Tree"]  # a number, or (operator, left, right)
Key = tuple[Any, ...]  # hashable and sortable


def solve(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> str | None:
    """An expression over exactly `nums` with the exact value `target`, or None where there is none.

    Only the settings' operators and limits of intermediate results count. ValueError unless 1 to 6 numbers in 0..10**9.

    >>> solve([3, 3, 8, 8], 24)
    '8 / (3 - 8 / 3)'
    >>> solve([1, 1, 1], 24) is None
    True
    """
    trees = _Search(settings, first=True).trees(_checked(nums, target), target)
    return _text(trees[0]) if trees else None


def solutions(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> list[str]:
    """Every essentially different solution, once, shortest first. Arguments and errors as of `solve`.

    >>> solutions([4, 4, 10, 10], 24)
    ['(10 * 10 - 4) / 4']
    """
    trees = _Search(settings).trees(_checked(nums, target), target)
    return sorted(map(_text, trees), key=lambda text: (len(text), text))


def difficulty(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> dict[str, Any]:
    """How many solutions a task has, and how difficult they are. Arguments and errors as of `solve`.

    Returns:
        solutions: how many essentially different ones there are.
        operators: the fewest that a solution gets by with, such as "+*"; "" without one. a - (b - c) is written as
            a + c - b and has two (where "+" is not allowed, one).
        depth: how deep sums and products are nested in the shallowest solution, which may be another one: 1 for
            a + c - b, 2 for (a + c) * b; 0 without one.

    >>> difficulty([3, 3, 8, 8], 24), difficulty([4, 6, 1, 1], 24)["operators"]
    ({'solutions': 1, 'operators': '-/', 'depth': 3}, '*')
    """
    trees = _Search(settings).trees(_checked(nums, target), target)
    operators = ["".join(symbol for symbol in OPERATORS if symbol in _text(tree)) for tree in trees]
    operators.sort(key=lambda symbols: (len(symbols), list(map(OPERATORS.index, symbols))))
    depth = min(map(_depth, trees), default=0)
    return {"solutions": len(trees), "operators": operators[0] if operators else "", "depth": depth}


def targets(nums: Sequence[int], settings: CountdownSettings) -> list[int]:
    """Every target within the settings' range that can be reached with the numbers, sorted.

    >>> targets([1, 1, 1], CountdownSettings(count=(3, 3), number=(1, 9), target=(1, 40)))
    [1, 2, 3]
    """
    low, high = settings.target
    values = _Search(settings).results(tuple(sorted(nums)))
    return sorted({int(value) for value in values if value.denominator == 1 and low <= value <= high})


def _checked(nums: Sequence[int], target: int) -> Numbers:
    if not 1 <= len(nums) <= MOST_NUMBERS:
        raise ValueError(f"expected 1 to {MOST_NUMBERS} numbers, got {len(nums)}")
    for number in (*nums, abs(target)):
        if not 0 <= number <= LARGEST:
            raise ValueError(f"expected whole numbers within 0..{LARGEST}, got {number}")
    return tuple(sorted(nums))


class _Search:
    """What parts of a task's numbers can make. With `first`, the search ends with the first tree."""

    def __init__(self, settings: CountdownSettings, first: bool = False):
        self.settings, self.first = settings, first
        self.values = cache(lambda nums: set(self.results(nums)))
        self.trees = cache(self._trees)

    def results(self, nums: Numbers) -> Iterator[Number]:
        """Every value of an expression over exactly these numbers, some repeatedly."""
        if len(nums) == 1:
            yield nums[0]
        for larger, smaller in _splits(nums):
            for a, b in product(self.values(larger), self.values(smaller)):
                joined: list[tuple[str, Number]] = [("+", a + b), ("-", a - b), ("-", b - a), ("*", a * b)]
                joined += [("/", divide(a, b))] if b else []
                joined += [("/", divide(b, a))] if a else []
                yield from (value for operator, value in joined if self._allows(operator, value))

    def _trees(self, nums: Numbers, target: Number) -> list[Tree]:
        """Every essentially different expression over exactly these numbers that has the value `target`."""
        if len(nums) <= 3 and target not in self.values(nums):  # with more, listing the values takes longer
            return []
        if len(nums) == 1:
            return [nums[0]]
        alike: dict[Key, list[Tree]] = {}
        for larger, smaller in _splits(nums):
            for b in self.values(smaller):
                for operator, a, in_order in self._goals(target, b, larger):
                    for left, right in product(self.trees(larger, a), self.trees(smaller, b)):
                        tree = (operator, left, right) if in_order else (operator, right, left)
                        if self.first:
                            return [tree]
                        alike.setdefault(_canonical(tree), []).append(tree)
        return [min(trees, key=_needless) for trees in alike.values()]

    def _goals(self, target: Number, b: Number, larger: Numbers) -> Iterator[tuple[str, Number, bool]]:
        """(operator, value a of the larger part, whether a stands first) with which a and b make the target."""
        goals: list[tuple[str, Number, bool]] = [("+", target - b, True)]
        goals += [("-", target + b, True), ("-", b - target, False)]
        if b:
            goals += [("*", divide(target, b), True), ("/", target * b, True)]
            goals += [("/", divide(b, target), False)] if target else []
        elif not target:  # 0 * a and 0 / a are 0 for any a
            goals += [goal for a in self.values(larger) for goal in (("*", a, True), ("/", a, False)) if a or goal[2]]
        return ((operator, a, in_order) for operator, a, in_order in goals if self._allows(operator, a))

    def _allows(self, operator: str, value: Number) -> bool:
        settings = self.settings
        return (
            operator in settings.operators
            and (settings.negative or value >= 0)
            and (settings.fractions or value.denominator == 1)
            and (settings.largest is None or -settings.largest <= value <= settings.largest)
        )


@lru_cache(maxsize=4096)
def _splits(nums: Numbers) -> list[tuple[Numbers, Numbers]]:
    """Each way to split the numbers in two parts, the larger part first."""
    splits = []
    for size in range(1, len(nums) // 2 + 1):
        for chosen in combinations(range(len(nums)), size):
            smaller = tuple(nums[i] for i in chosen)
            larger = tuple(number for i, number in enumerate(nums) if i not in chosen)
            if len(larger) > size or larger >= smaller:
                splits.append((larger, smaller))
    return list(dict.fromkeys(splits))


def _canonical(tree: Tree) -> tuple[int, Key]:
    """The same for trees that are essentially the same: the sign (0: equal to its negative) and the rest."""
    if isinstance(tree, int):
        return 1, ("", tree)
    if tree[0] in "+-":
        signed = [(*_canonical(part), side) for part, side in _flat(tree, "+-")]
        terms = sorted((key, sign * side) for sign, key, side in signed)
        negated = sorted((key, -sign) for key, sign in terms)
        return (terms > negated) - (terms < negated), ("+-", *max(terms, negated))
    factors = [(*_canonical(part), side) for part, side in _flat(tree, "*/")]
    return prod(sign for sign, *_ in factors), ("*/", *sorted((key, side) for _, key, side in factors))


def _flat(tree: Tree, operators: str) -> list[tuple[Tree, int]]:
    """The terms of a sum ("+-") or the factors of a product ("*/"), each with -1 if it is subtracted or divides."""
    if isinstance(tree, int) or tree[0] not in operators:
        return [(tree, 1)]
    operator, left, right = tree
    side = -1 if operator in "-/" else 1
    return _flat(left, operators) + [(part, side * inner) for part, inner in _flat(right, operators)]


def _depth(tree: Tree, outside: str = "") -> int:
    if isinstance(tree, int):
        return 0
    operator, left, right = tree
    inside = "+-" if operator in "+-" else "*/"
    return (inside != outside) + max(_depth(left, inside), _depth(right, inside))


def _needless(tree: Tree) -> tuple[int, int, str]:
    """Least for the tree that is written without needless parentheses and operators."""
    text = _text(tree)
    return len(text), len(set(text) & set(OPERATORS)), text


def _text(tree: Tree) -> str:
    """The expression, with parentheses where the order of evaluation needs them."""
    if isinstance(tree, int):
        return str(tree)
    operator, left, right = tree
    x, y = _text(left), _text(right)
    if operator in "*/" and isinstance(left, tuple) and left[0] in "+-":
        x = f"({x})"
    if isinstance(right, tuple) and (right[0] in "+-" or operator in "*/"):
        y = f"({y})"
    return f"{x} {operator} {y}"
