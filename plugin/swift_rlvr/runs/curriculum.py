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
PRIOR = 8.0  # completions that the prior counts as
WIDTH, STEEPEST = 0.15, 4.0  # of the bell around the target; of the tilt that brings the mean there


@dataclass(frozen=True)
class CurriculumSettings(Settings):
    """How rows are drawn. Under ms-swift the callback `curriculum` switches it on, and the others
    are variables.

    >>> CurriculumSettings.from_environment({"SWIFT_RLVR_CURRICULUM_TARGET": "0.7"}, curriculum=True).curriculum_target
    0.7
    """

    group = "curriculum_"
    curriculum: bool = setting(
        False, "Draw rows by their column `level`, so that success stays near a target."
    )
    curriculum_target: float = setting(
        0.5, "The share of right completions to stay near.", more_than=0, less_than=1
    )
    curriculum_memory: int = setting(5, "Batches after which a result counts half.", at_least=1)
    curriculum_floor: float = setting(
        0.1, "The share of rows that is drawn evenly from all levels.", at_least=0, at_most=1
    )

    def as_json(self) -> dict[str, Any]:
        """What the run's args.json holds of this; InputError where others are given without
        `curriculum`.
        """
        if self.curriculum:
            return asdict(self)
        self.check_unset("curriculum")
        return {"curriculum": False}


def check_has_verifier(rewards: Sequence[Any]) -> None:
    """InputError where no reward says what is right, which a curriculum goes by."""
    if not Judges.from_rewards(rewards).has_verifier:
        raise InputError(
            "must hold a reward that tells right from wrong, which curriculum goes by",
            "reward_funcs",
        )


def curriculum_of(
    rows: Sequence[Mapping[str, Any]], settings: CurriculumSettings, seed: int
) -> "Curriculum | None":
    """That of a run with these rows; None where none is asked for."""
    return (
        Curriculum([row.get(COLUMN) for row in rows], settings, seed)
        if settings.curriculum
        else None
    )


class Curriculum:
    """Draws the rows of each batch, and takes note of their rewards. `state` goes into checkpoints.

    levels: that of each row. InputError where one is no whole number, or where there is only one.
    """

    def __init__(self, levels: Sequence[Any], settings: CurriculumSettings, seed: int):
        for number, level in enumerate(levels, start=1):
            if isinstance(level, bool) or not isinstance(level, int):
                raise InputError(
                    f"curriculum needs the column {COLUMN!r} with a whole number in every row, got {level!r} in row "
                    f"{number}; `swift-rlvr dataset make countdown --levels` writes one",
                    "dataset",
                )
        self.levels, self.settings, self.seed = levels, settings, seed
        self.rows = {
            level: [row for row, each in enumerate(levels) if each == level]
            for level in sorted(set(levels))
        }
        if len(self.rows) < 2:
            raise InputError(
                f"curriculum needs rows of several levels, got only {list(self.rows)}", "dataset"
            )
        self.batches = 0
        self.drawn = dict.fromkeys(self.rows, 0)  # rows of each level so far
        self._orders: dict[
            int, tuple[int, list[int]]
        ] = {}  # of each level: the epoch, and its rows in their order
        self.right, self.graded = (
            dict.fromkeys(self.rows, 0.0),
            dict.fromkeys(self.rows, 0.0),
        )  # discounted

    def success(self) -> dict[int, float]:
        """The share of right completions to expect of each level; at the target where nothing is
        known.
        """
        prior = PRIOR * self.settings.curriculum_target
        return {
            level: (self.right[level] + prior) / (self.graded[level] + PRIOR) for level in self.rows
        }

    def shares(self) -> dict[int, float]:
        """The share of rows to draw of each level.

        A bell around the target, tilted towards easy or hard levels as far as the mean success
        needs it to be at the
        target: the closest to the bell, by relative entropy, with that mean. Beside it, the floor.
        """
        success, target, floor = (
            self.success(),
            self.settings.curriculum_target,
            self.settings.curriculum_floor,
        )

        def tilted(slope: float) -> dict[int, float]:
            weights = {
                level: math.exp(-(((p - target) / WIDTH) ** 2) / 2 + slope * (p - target))
                for level, p in success.items()
            }
            total = math.fsum(weights.values())
            return {
                level: floor / len(weights) + (1 - floor) * weight / total
                for level, weight in weights.items()
            }

        low, high = -STEEPEST, STEEPEST
        for _ in range(50):  # the mean rises with the slope
            slope = (low + high) / 2
            mean = math.fsum(share * success[level] for level, share in tilted(slope).items())
            low, high = (slope, high) if mean < target else (low, slope)
        return tilted((low + high) / 2)

    def draw(self, count: int) -> list[int]:
        """The numbers of `count` rows: each level as often as its share says, to within one row
        (systematic sampling).

        The rows of a level come in a seeded order, each once before any comes again.
        """
        chance = random.Random(f"{self.seed} batch {self.batches}")
        start, reached = chance.random(), 0.0
        places: list[int] = []  # levels
        shares = list(self.shares().items())
        for level, share in shares:
            reached += share * count
            places += [level] * (min(count, max(0, math.ceil(reached - start))) - len(places))
        places += [shares[-1][0]] * (count - len(places))  # where the shares' sum was rounded down
        chance.shuffle(places)
        self.batches += 1
        return [self._next(level) for level in places]

    def _next(self, level: int) -> int:
        epoch, place = divmod(self.drawn[level], len(self.rows[level]))
        self.drawn[level] += 1
        if self._orders.get(level, (None, []))[0] != epoch:
            order = list(self.rows[level])
            random.Random(f"{self.seed} level {level} epoch {epoch}").shuffle(order)
            self._orders[level] = epoch, order
        return self._orders[level][1][place]

    def record(self, rows: Sequence[int], successes: Sequence[bool | None]) -> dict[str, float]:
        """Take note of a batch: which completions are right, None where one could not be graded.

        rows: of each completion. Returns what there is to log: the mean level of the batch, and for
        each level its share of the batch and its success as estimated now.
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
        figures = {
            "curriculum/level": sum(level * count for level, count in counts.items()) / len(rows)
        }
        for level, expected in self.success().items():
            figures[f"curriculum/share_{level}"] = counts[level] / len(rows)
            figures[f"curriculum/success_{level}"] = expected
        return figures

    def state(self) -> dict[str, Any]:
        """What a continuation of the run needs, as JSON."""
        counts = [
            [level, self.drawn[level], self.right[level], self.graded[level]] for level in self.rows
        ]
        return {"batches": self.batches, "levels": counts}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; InputError where it is of other levels."""
        levels = [level for level, *_ in state["levels"]]
        if levels != list(self.rows):
            raise InputError(
                f"has the levels {list(self.rows)}, and the checkpoint's run had {levels}",
                "dataset",
            )
        self.batches = state["batches"]
        for level, drawn, right, graded in state["levels"]:
            self.drawn[level], self.right[level], self.graded[level] = drawn, right, graded
