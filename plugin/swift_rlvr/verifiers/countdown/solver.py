"""Solves Countdown tasks exactly, and says how difficult one is by its essentially different
solutions.

The search goes backwards from the target: the numbers are split in two parts, and each value b of
the smaller part tells what the larger one has to make: target - b, target + b, target / b and so
on. 6 numbers take about half a second.

Two solutions are essentially the same if they become equal by these rules:
- sums and differences are flattened to signed terms, products and quotients to factors above and
  below the line, and neither terms nor factors have an order: a - (b - c) = c + a - b, a / (b / c)
  = a * c / b;
- a sign moves out of a factor that is a sum: x - (a - b) * c = x + (b - a) * c;
- equal numbers are interchangeable.
Nothing else is the same: neither 2 * 2 and 2 + 2 nor a * 1 and a / 1. With n different numbers
there are 1, 6, 68, 1170, 27142, 793002 expressions (https://oeis.org/A140606), which the tests
check for n up to 4.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from typing import Any

from swift_rlvr.verifiers.countdown.arithmetic import Number, divide
from swift_rlvr.verifiers.countdown.task_settings import MOST_NUMBERS, CountdownSettings

LARGEST = 10**9
ANYTHING = CountdownSettings(count=(2, MOST_NUMBERS), number=(1, 1000), target=(1, 10**6))

Numbers = tuple[int, ...]  # sorted
Tree = int | tuple[str, "Tree", "Tree"]  # a number, or (operator, left, right)
Key = tuple[Any, ...]  # hashable and sortable


def solve(nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING) -> str | None:
    """An expression over exactly `nums` with the exact value `target`, or None where there is none.

    Only the settings' operators and limits of intermediate results count. ValueError unless 1 to 6
    numbers in 0..10**9.

    >>> solve([3, 3, 8, 8], 24)
    '8 / (3 - 8 / 3)'
    """
    trees = _Search(settings, first=True).trees(_checked(nums, target), target)
    return _text(trees[0]) if trees else None


def difficulty(
    nums: Sequence[int], target: int, settings: CountdownSettings = ANYTHING
) -> tuple[int, int]:
    """How many essentially different solutions a task has, and the depth of the shallowest;
    arguments as of `solve`.

    The depth says how sums and products are nested: 1 for a + c - b, 2 for (a + c) * b; 0 without a
    solution.
    """
    trees = _Search(settings).trees(_checked(nums, target), target)
    return len(trees), min(map(_depth, trees), default=0)


def targets(nums: Sequence[int], settings: CountdownSettings) -> list[int]:
    """Every target within the settings' range that can be reached with the numbers, sorted."""
    low, high = settings.target
    reached = set()
    for value in _Search(settings).results(tuple(sorted(nums))):
        if value.denominator == 1 and low <= value <= high:
            reached.add(int(value))
    return sorted(reached)


def _checked(nums: Sequence[int], target: int) -> Numbers:
    if not 1 <= len(nums) <= MOST_NUMBERS:
        raise ValueError(f"expected 1 to {MOST_NUMBERS} numbers, got {len(nums)}")
    for number in (*nums, abs(target)):
        if not 0 <= number <= LARGEST:
            raise ValueError(f"expected whole numbers within 0..{LARGEST}, got {number}")
    return tuple(sorted(nums))


class _Search:
    """What parts of a task's numbers can make. With `first`, the search ends with the first
    tree.
    """

    def __init__(self, settings: CountdownSettings, first: bool = False):
        self.settings = settings
        self.first = first
        # The same parts occur again and again. Caches of this search alone, not of the module.
        self.values = cache(lambda nums: set(self.results(nums)))
        self.trees = cache(self._trees)

    def results(self, nums: Numbers) -> Iterator[Number]:
        """Every value of an expression over exactly these numbers, some repeatedly."""
        if len(nums) == 1:
            yield nums[0]
        for larger, smaller in _splits(nums):
            for a, b in product(self.values(larger), self.values(smaller)):
                joined: list[tuple[str, Number]] = [
                    ("+", a + b),
                    ("-", a - b),
                    ("-", b - a),
                    ("*", a * b),
                ]
                if b:
                    joined.append(("/", divide(a, b)))
                if a:
                    joined.append(("/", divide(b, a)))
                for operator, value in joined:
                    if self._allows(operator, value):
                        yield value

    def _trees(self, nums: Numbers, target: Number) -> list[Tree]:
        """Every essentially different expression over exactly these numbers that has the value
        `target`.
        """
        # with more numbers, listing the values takes longer
        if len(nums) <= 3 and target not in self.values(nums):
            return []
        if len(nums) == 1:
            return [nums[0]]
        different: dict[Key, Tree] = {}
        for larger, smaller in _splits(nums):
            for b in self.values(smaller):
                for operator, a, in_order in self._goals(target, b, larger):
                    for left, right in product(self.trees(larger, a), self.trees(smaller, b)):
                        tree = (operator, left, right) if in_order else (operator, right, left)
                        if self.first:
                            return [tree]
                        different.setdefault(_canonical(tree), tree)
        return list(different.values())

    def _goals(
        self, target: Number, b: Number, larger: Numbers
    ) -> Iterator[tuple[str, Number, bool]]:
        """(operator, value a of the larger part, whether a stands first) with which a and b make
        the target.
        """
        goals: list[tuple[str, Number, bool]] = [
            ("+", target - b, True),
            ("-", target + b, True),
            ("-", b - target, False),
        ]
        if b:
            goals.append(("*", divide(target, b), True))
            goals.append(("/", target * b, True))
            if target:
                goals.append(("/", divide(b, target), False))
        elif not target:
            # a * 0 and 0 / a are 0 for any a
            for a in self.values(larger):
                goals.append(("*", a, True))
                if a:
                    goals.append(("/", a, False))
        for goal in goals:
            operator, a, _ = goal
            if self._allows(operator, a):
                yield goal

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
    """The same for trees that are essentially the same: the sign (0: equal to its negative) and the
    rest.
    """
    if isinstance(tree, int):
        return 1, ("", tree)
    if tree[0] in "+-":
        terms = []
        for part, side in _flat(tree, "+-"):
            sign, key = _canonical(part)
            terms.append((key, sign * side))
        terms.sort()
        # Of the sum and its negative the larger one stands for both.
        negated = sorted((key, -sign) for key, sign in terms)
        sign = (terms > negated) - (terms < negated)
        return sign, ("+-", *max(terms, negated))
    sign = 1
    factors = []
    for part, side in _flat(tree, "*/"):
        part_sign, key = _canonical(part)
        sign *= part_sign
        factors.append((key, side))
    return sign, ("*/", *sorted(factors))


def _flat(tree: Tree, operators: str) -> list[tuple[Tree, int]]:
    """The terms of a sum ("+-") or the factors of a product ("*/"), each with -1 if it is
    subtracted or divides.
    """
    if isinstance(tree, int) or tree[0] not in operators:
        return [(tree, 1)]
    operator, left, right = tree
    side = -1 if operator in "-/" else 1
    parts = _flat(left, operators)
    for part, inner in _flat(right, operators):
        parts.append((part, side * inner))
    return parts


def _depth(tree: Tree, outside: str = "") -> int:
    """How sums and products are nested; `outside` is what the tree stands in, "+-" or "*/"."""
    if isinstance(tree, int):
        return 0
    operator, left, right = tree
    inside = "+-" if operator in "+-" else "*/"
    deeper = max(_depth(left, inside), _depth(right, inside))
    return deeper if inside == outside else deeper + 1


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
