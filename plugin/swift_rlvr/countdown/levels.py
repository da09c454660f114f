"""Countdown tasks by level, from easy to hard, for a training that draws them by how often it solves each.

A level is settings of its own: how many numbers, their range and the target's, how deep sums and products are nested,
how many solutions there are. `swift-rlvr dataset make countdown --preset tiny --levels` writes them to a file, whose
column `level` `swift_rlvr.runs.curriculum` reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from swift_rlvr.countdown.generator import make_tasks
from swift_rlvr.countdown.settings import TINY, TUTORIAL, TV, CountdownSettings
from swift_rlvr.countdown.splits import mix

MANY = 10**9  # solutions

LEVELS: dict[str, tuple[CountdownSettings, ...]] = {
    "tiny": (  # the first four are the preset, the tiny model's own tasks; those after it are new to that model
        replace(TINY, depth=(1, 1), solutions=(2, MANY)),
        replace(TINY, depth=(2, 2), solutions=(2, MANY)),
        replace(TINY, depth=(1, 1), solutions=(1, 1)),
        replace(TINY, depth=(2, 2), solutions=(1, 1)),
        replace(TINY, target=(41, 99)),
        replace(TINY, count=(4, 4), solutions=(1, 3)),
    ),
    "tutorial": (  # the third and fourth are most of the preset
        replace(TUTORIAL, count=(3, 3), number=(1, 20), target=(10, 60), depth=(1, 1)),
        replace(TUTORIAL, count=(3, 3), number=(1, 20), target=(10, 60), depth=(2, 3)),
        replace(TUTORIAL, count=(3, 3), number=(21, 99)),
        replace(TUTORIAL, count=(4, 4), solutions=(4, MANY)),
        replace(TUTORIAL, count=(4, 4), solutions=(1, 3)),
        replace(TUTORIAL, count=(5, 5), target=(101, 999), solutions=(1, 10)),
        TV,
    ),
}


def level_tasks(levels: tuple[CountdownSettings, ...], split: str, seed: int, rows: int) -> Iterator[dict]:
    """`rows` tasks of each level with the column `level`, counted from 0; levels take turns, so that the first N rows
    hold each about equally often. No two are alike, also of different levels. IndexError where a level holds fewer.

    >>> tasks = list(level_tasks(LEVELS["tiny"], "train", seed=0, rows=2))
    >>> [task["level"] for task in tasks], [len(task["nums"]) for task in tasks]
    ([0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], [3, 3, 3, 3, 3, 4, 3, 3, 3, 3, 3, 4])
    """
    seen: set[tuple[int, ...]] = set()

    def new(level: int, settings: CountdownSettings) -> Iterator[dict]:
        for task in make_tasks(settings, split, mix(seed, level), None):
            key = (task["target"], *sorted(task["nums"]))
            if key not in seen:
                seen.add(key)
                yield {**task, "level": level}

    each = [islice(new(level, settings), rows) for level, settings in enumerate(levels)]
    for number in range(rows):
        for level, tasks in enumerate(each):
            task = next(tasks, None)
            if task is None:
                raise IndexError(f"{rows} rows of each level wanted, and level {level} holds {number} {split} tasks")
            yield task
