"""What Countdown tasks look like: the settings of the generator and its presets. Plain Python, without numpy."""

from dataclasses import dataclass

from swift_rlvr.errors import InputError

OPERATORS = "+-*/"


@dataclass(frozen=True)
class CountdownSettings:
    """What tasks look like. Ranges are inclusive pairs (lowest, highest); None stands for no limit.

    count: how many numbers, each used exactly once; 2 to 8. The sizes in the range come about equally often, until a
        small one has no task left: train of the preset `tutorial` has some 350,000 tasks with 3 numbers.
    number: the value of each, drawn evenly; or, with `tiles`, the range that these lie in.
    target: the value to reach.
    operators: a selection of "+-*/".
    negative, fractions: whether an intermediate result may be negative, and whether it may be a fraction.
    largest: the largest intermediate result.
    tiles: numbers are drawn from these without replacement.
    solutions: how many essentially different solutions (see forms.py) a task has.
    needs: how many different operators a task needs: the fewest in one of its solutions.
    depth: how deep sums and products are nested in the shallowest solution: 1 for a sum or a product of the numbers.

    >>> CountdownSettings(count=(3, 9), number=(1, 9), target=(1, 40))
    Traceback (most recent call last):
    swift_rlvr.errors.InputError: count must be (lowest, highest) within 2..8, got (3, 9)
    """

    count: tuple[int, int]
    number: tuple[int, int]
    target: tuple[int, int]
    operators: str = OPERATORS
    negative: bool = True
    fractions: bool = True
    largest: int | None = None
    tiles: tuple[int, ...] | None = None
    solutions: tuple[int, int] | None = None
    needs: tuple[int, int] | None = None
    depth: tuple[int, int] | None = None

    def __post_init__(self):
        ranges = [("count", 2, 8), ("number", 1, 1000), ("target", 1, 10**6)]
        ranges += [("solutions", 1, 10**9), ("needs", 1, 4), ("depth", 1, 7)]
        for name, low, high in ranges:
            pair = getattr(self, name)
            if pair is not None and not low <= pair[0] <= pair[1] <= high:
                raise InputError(f"must be (lowest, highest) within {low}..{high}, got ({pair[0]}, {pair[1]})", name)
        if not self.operators or set(self.operators) - set(OPERATORS):
            raise InputError(f'must be a selection of "{OPERATORS}", got {self.operators!r}', "operators")
        if self.largest is not None and self.largest < self.target[1]:
            raise InputError(f"must be at least the highest target {self.target[1]}, got {self.largest}", "largest")
        if self.tiles is not None:
            low, high = self.number
            if not all(low <= tile <= high for tile in self.tiles) or not self.count[1] <= len(self.tiles) <= 64:
                raise InputError(
                    f"must be {self.count[1]} to 64 numbers within number={self.number}, got {self.tiles}", "tiles"
                )
        if self.by_difficulty and self.count[1] > 6:
            raise InputError(f"solutions, needs and depth are known for 6 numbers at most, got count={self.count}")

    @property
    def by_difficulty(self) -> bool:
        """Whether tasks are chosen by their solutions."""
        return not self.solutions is self.needs is self.depth is None

    @property
    def restricted(self) -> bool:
        """Whether some intermediate results or operators are not allowed."""
        return not (self.negative and self.fractions and self.largest is None and set(self.operators) == set(OPERATORS))


TUTORIAL = CountdownSettings(count=(3, 4), number=(1, 99), target=(10, 100))
TV = CountdownSettings(
    count=(6, 6), number=(1, 100), target=(101, 999), tiles=(*range(1, 11), *range(1, 11), 25, 50, 75, 100)
)
GAME24 = CountdownSettings(count=(4, 4), number=(1, 13), target=(24, 24))
TINY = CountdownSettings(count=(3, 3), number=(1, 9), target=(1, 40), negative=False, fractions=False, largest=99)
PRESETS = {"tutorial": TUTORIAL, "tv": TV, "24": GAME24, "tiny": TINY}
PRESET_HELP = (
    "tutorial: 3 to 4 numbers of 1..99, target 10..100; tv: all six of 24 tiles (1..10 twice, 25, 50, 75, 100), target "
    "101..999; 24: 4 numbers of 1..13, target 24; tiny: 3 numbers of 1..9, target 1..40, whole results."
)
