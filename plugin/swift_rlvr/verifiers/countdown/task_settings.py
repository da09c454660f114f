"""What Countdown tasks look like: the settings of the generator, its presets and levels."""

from dataclasses import dataclass, replace
from typing import Any

from swift_rlvr.utils.settings import Settings, setting

OPERATORS = "+-*/"
SPLITS = ("train", "validation", "test")
MOST_NUMBERS = 6
Range = tuple[int, int]
Task = dict[str, Any]
"""The numbers and the target, as `nums` and `target`."""


@dataclass(frozen=True)
class CountdownSettings(Settings):
    """What tasks look like. Ranges are inclusive pairs (lowest, highest); None stands for no
    limit.
    """

    count: Range = setting(
        help="How many numbers are given, such as 3-5.", at_least=2, at_most=MOST_NUMBERS
    )
    number: Range = setting(
        help="Range of the given numbers; without tiles they are drawn evenly.",
        at_least=1,
        at_most=1000,
    )
    target: Range = setting(help="Range of the target.", at_least=1, at_most=10**6)
    operators: str = setting(OPERATORS, f'Allowed operators, some of "{OPERATORS}".')
    negative: bool = setting(True, "Whether an intermediate result may be negative.")
    fractions: bool = setting(True, "Whether an intermediate result may be a fraction.")
    largest: int | None = setting(None, "Largest allowed intermediate result.")
    tiles: tuple[int, ...] | None = setting(
        None, "Numbers are drawn from these without replacement."
    )
    with_solutions: Range | None = setting(
        None, "How many different solutions a task has.", at_least=1
    )
    with_depth: Range | None = setting(
        None, "How deeply the sums and products of a solution are nested.", at_least=1, at_most=5
    )

    def __post_init__(self) -> None:
        """InputError for a setting that is out of its range or does not go with the others."""
        super().__post_init__()
        are_operators = set() < set(self.operators) <= set(OPERATORS)
        self.require(are_operators, "operators", f'a selection of "{OPERATORS}"')

        highest_target = self.target[1]
        allows_target = self.largest is None or self.largest >= highest_target
        self.require(allows_target, "largest", f"at least the highest target {highest_target}")

        if self.tiles is not None:
            low, high = self.number
            most = self.count[1]
            are_tiles = len(self.tiles) >= most and all(low <= tile <= high for tile in self.tiles)
            self.require(are_tiles, "tiles", f"at least {most} numbers within number={self.number}")

    @property
    def by_difficulty(self) -> bool:
        """Whether tasks are chosen by their solutions."""
        return bool(self.with_solutions or self.with_depth)

    def want_difficulty(self, solutions: int, depth: int) -> bool:
        """Whether a task may have so many solutions, the shallowest of this depth."""
        for value, bounds in ((solutions, self.with_solutions), (depth, self.with_depth)):
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                return False
        return True


TUTORIAL = CountdownSettings(count=(3, 4), number=(1, 99), target=(10, 100))
TV = CountdownSettings(
    count=(6, 6),
    number=(1, 100),
    target=(101, 999),
    tiles=(*range(1, 11), *range(1, 11), 25, 50, 75, 100),
)
GAME24 = CountdownSettings(count=(4, 4), number=(1, 13), target=(24, 24))
TINY = CountdownSettings(
    count=(3, 3), number=(1, 9), target=(1, 40), negative=False, fractions=False, largest=99
)
PRESETS = {"tutorial": TUTORIAL, "tv": TV, "24": GAME24, "tiny": TINY}
PRESET_HELP = (
    "tutorial: 3 to 4 numbers of 1..99, target 10..100; tv: all six of 24 tiles (1..10 twice, 25, 50, 75, 100), target "
    "101..999; 24: 4 numbers of 1..13, target 24; tiny: 3 numbers of 1..9, target 1..40, whole results."
)
MANY = 10**9  # solutions
# Levels of a preset from easy to hard, see `generator.make_levels`.
LEVELS: dict[str, tuple[CountdownSettings, ...]] = {
    # the first four are the preset, the tiny model's own tasks; those after it are new to that
    # model
    "tiny": (
        replace(TINY, with_depth=(1, 1), with_solutions=(2, MANY)),
        replace(TINY, with_depth=(2, 2), with_solutions=(2, MANY)),
        replace(TINY, with_depth=(1, 1), with_solutions=(1, 1)),
        replace(TINY, with_depth=(2, 2), with_solutions=(1, 1)),
        replace(TINY, target=(41, 99)),
        replace(TINY, count=(4, 4), with_solutions=(1, 3)),
    ),
    "tutorial": (  # the third and fourth are most of the preset
        replace(TUTORIAL, count=(3, 3), number=(1, 20), target=(10, 60), with_depth=(1, 1)),
        replace(TUTORIAL, count=(3, 3), number=(1, 20), target=(10, 60), with_depth=(2, 3)),
        replace(TUTORIAL, count=(3, 3), number=(21, 99)),
        replace(TUTORIAL, count=(4, 4), with_solutions=(4, MANY)),
        replace(TUTORIAL, count=(4, 4), with_solutions=(1, 3)),
        replace(TUTORIAL, count=(5, 5), target=(101, 999), with_solutions=(1, 10)),
        TV,
    ),
}
