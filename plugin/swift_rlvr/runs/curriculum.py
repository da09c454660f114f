"""Difficulty that follows the model: which rows a training draws next, by how often the model
solves each level.

Rows have a whole number in the column `level`. A level's success is estimated from the rewards of
the training itself, with a Beta prior at the target and exponential forgetting (as discounted
bandits do: Garivier and Moulines 2011), so that a level that was not drawn for long counts as worth
another try. Levels are drawn near the target, as AdaRFT holds the reward near one (Shi et al. 2025,
arXiv 2504.05520); at the usual target of 0.5 completions differ the most (Foster et al. 2025, arXiv
2502.12272). Plain Python: what is drawn depends on the levels of the rows, the seed and the
rewards.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swift_rlvr.success import Judges
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, setting

COLUMN = "level"
# How many completions the prior counts as.
PRIOR = 8.0
# The width of the bell around the target, and the steepest tilt that brings the mean there.
WIDTH = 0.15
STEEPEST = 4.0


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """How rows are drawn. Under ms-swift the callback `curriculum` switches it on, and the other
    settings are variables.

    >>> CurriculumSettings.from_environment({"SWIFT_RLVR_CURRICULUM_TARGET": "0.7"}, curriculum=True).curriculum_target
    0.7
    """

    group = "curriculum_"
    curriculum: bool = setting(
        False, "Draw rows by their column `level`, so that success stays near a target."
    )
    curriculum_target: float = setting(
        0.5, "Target share of right completions.", more_than=0, less_than=1
    )
    curriculum_memory: int = setting(5, "Half-life of a result, in batches.", at_least=1)
    curriculum_floor: float = setting(
        0.1, "Share of rows drawn evenly from all levels.", at_least=0, at_most=1
    )

    def as_json(self) -> dict[str, Any]:
        """What the run's args.json holds of this; InputError where settings are given without
        `curriculum`.
        """
        if self.curriculum:
            return asdict(self)
        self.check_unset("curriculum")
        return {"curriculum": False}


def check_has_verifier(rewards: Sequence[Any]) -> None:
    """InputError if no reward says what is right, which a curriculum goes by."""
    if not Judges.from_rewards(rewards).has_verifier:
        raise InputError(
            "must include a verifier, because curriculum follows success",
            "reward_funcs",
        )


def curriculum_of(
    rows: Sequence[Mapping[str, Any]], settings: CurriculumSettings, seed: int
) -> "Curriculum | None":
    """The curriculum of a run with these rows; None if it is not switched on."""
    if not settings.curriculum:
        return None
    return Curriculum([row.get(COLUMN) for row in rows], settings, seed)


class Curriculum:
    """Draws the rows of each batch, and takes note of their rewards. `state` goes into checkpoints.

    levels: that of each row. InputError if one is no whole number, or where there is only one.
    """

    def __init__(self, levels: Sequence[Any], settings: CurriculumSettings, seed: int):
        self.levels = levels
        self.settings = settings
        self.seed = seed
        rows: dict[int, list[int]] = {}
        for number, level in enumerate(levels):
            if isinstance(level, bool) or not isinstance(level, int):
                raise InputError(
                    f"curriculum needs the column {COLUMN!r} with a whole number in every row, got "
                    f"{level!r} in row {number + 1}; `swift-rlvr dataset make countdown --levels` "
                    "writes one",
                    "dataset",
                )
            rows.setdefault(level, []).append(number)
        # The numbers of the rows of each level, the lowest level first.
        self.rows = {level: rows[level] for level in sorted(rows)}
        if len(self.rows) < 2:
            raise InputError(
                f"curriculum needs rows of several levels, got only {list(self.rows)}", "dataset"
            )
        self.batches = 0
        # By level: the rows drawn so far.
        self.drawn = dict.fromkeys(self.rows, 0)
        # By level: the completions that were right and that were graded, discounted.
        self.right = dict.fromkeys(self.rows, 0.0)
        self.graded = dict.fromkeys(self.rows, 0.0)
        # By level: the epoch, and the level's rows in the order of that epoch.
        self._orders: dict[int, tuple[int, list[int]]] = {}

    def success(self) -> dict[int, float]:
        """The share of right completions to expect of each level; at the target where nothing is
        known.
        """
        prior = PRIOR * self.settings.curriculum_target
        expected = {}
        for level in self.rows:
            expected[level] = (self.right[level] + prior) / (self.graded[level] + PRIOR)
        return expected

    def shares(self) -> dict[int, float]:
        """The share of rows to draw of each level.

        It is a bell around the target, tilted towards easy or hard levels as far as the mean
        success needs it to be at the target: the closest to the bell, by relative entropy, with
        that mean. Beside it, every level has its part of the floor.
        """
        success = self.success()
        # The mean success rises with the slope, so the slope is found by bisection.
        low = -STEEPEST
        high = STEEPEST
        for _ in range(50):
            slope = (low + high) / 2
            shares = self._tilted_bell(success, slope)
            mean = math.fsum(share * success[level] for level, share in shares.items())
            if mean < self.settings.curriculum_target:
                low = slope
            else:
                high = slope
        return self._tilted_bell(success, (low + high) / 2)

    def _tilted_bell(self, success: Mapping[int, float], slope: float) -> dict[int, float]:
        """The shares for a slope, the floor included. success: to expect of each level."""
        floor = self.settings.curriculum_floor
        weights = {}
        for level, expected in success.items():
            distance = expected - self.settings.curriculum_target
            weights[level] = math.exp(-((distance / WIDTH) ** 2) / 2 + slope * distance)
        total = math.fsum(weights.values())
        shares = {}
        for level, weight in weights.items():
            shares[level] = floor / len(weights) + (1 - floor) * weight / total
        return shares

    def draw(self, count: int) -> list[int]:
        """The numbers of `count` rows: each level as often as its share says, to within one row
        (systematic sampling).

        The rows of a level come in a seeded order, each once before any comes again.
        """
        # Seeded for each batch alone: a run that was resumed draws as one that was not.
        chance = random.Random(f"{self.seed} batch {self.batches}")
        # Points at a distance of 1, of which the first is drawn; each level gets those in its part.
        start = chance.random()
        reached = 0.0
        drawn_levels: list[int] = []
        shares = self.shares()
        for level, share in shares.items():
            reached += share * count
            points = min(count, max(0, math.ceil(reached - start)))
            drawn_levels += [level] * (points - len(drawn_levels))
        # Where the shares' sum was rounded down.
        last_level = list(shares)[-1]
        drawn_levels += [last_level] * (count - len(drawn_levels))
        chance.shuffle(drawn_levels)
        self.batches += 1

        drawn = []
        for level in drawn_levels:
            epoch, place = divmod(self.drawn[level], len(self.rows[level]))
            self.drawn[level] += 1
            if level not in self._orders or self._orders[level][0] != epoch:
                order = list(self.rows[level])
                random.Random(f"{self.seed} level {level} epoch {epoch}").shuffle(order)
                self._orders[level] = (epoch, order)
            _, order = self._orders[level]
            drawn.append(order[place])
        return drawn

    def record(self, rows: Sequence[int], successes: Sequence[bool | None]) -> dict[str, float]:
        """Take note of a batch: which completions are right, None if one could not be graded.

        rows: the row of each completion. Returns what there is to log: the mean level of the batch,
        and for each level its share of the batch and its success as estimated now.
        """
        forget = 0.5 ** (1 / self.settings.curriculum_memory)
        for level in self.rows:
            self.right[level] *= forget
            self.graded[level] *= forget
        for row, success in zip(rows, successes, strict=True):
            if success is not None:
                self.right[self.levels[row]] += success
                self.graded[self.levels[row]] += 1
        counts = Counter(self.levels[row] for row in rows)
        mean_level = sum(level * count for level, count in counts.items()) / len(rows)
        figures = {"curriculum/level": mean_level}
        for level, expected in self.success().items():
            figures[f"curriculum/share_{level}"] = counts[level] / len(rows)
            figures[f"curriculum/success_{level}"] = expected
        return figures

    def state(self) -> dict[str, Any]:
        """What a continuation of the run needs, as JSON."""
        levels = []
        for level in self.rows:
            levels.append([level, self.drawn[level], self.right[level], self.graded[level]])
        return {"batches": self.batches, "levels": levels}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; InputError if it is of other levels."""
        # With other levels the rows have changed, and what was learned of them says nothing.
        levels = [level for level, *_ in state["levels"]]
        if levels != list(self.rows):
            raise InputError(
                f"has the levels {list(self.rows)}, but the run of the checkpoint had {levels}",
                "dataset",
            )
        self.batches = state["batches"]
        for level, drawn, right, graded in state["levels"]:
            self.drawn[level] = drawn
            self.right[level] = right
            self.graded[level] = graded
