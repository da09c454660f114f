"""Makes Countdown tasks: all solvable, no two alike, the splits apart, the same ones on any
machine.

>>> from swift_rlvr.verifiers.countdown.task_settings import TUTORIAL
>>> next(make_tasks(TUTORIAL, "train", seed=0, rows=1))
{'nums': [21, 63, 51], 'target': 93}

Two tasks are the same if they have the same multiset of numbers and the same target; a hash of both
decides the split (`hashes.py`). Where the settings hold few tasks, all are listed (`listing.py`);
otherwise they are drawn (`drawing.py`).
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from swift_rlvr.verifiers.countdown.drawing import drawn_tasks
from swift_rlvr.verifiers.countdown.hashes import mix
from swift_rlvr.verifiers.countdown.listing import holds_few, listed_tasks
from swift_rlvr.verifiers.countdown.solver import difficulty
from swift_rlvr.verifiers.countdown.task_settings import CountdownSettings, Task


def make_tasks(
    settings: CountdownSettings, split: str, seed: int, rows: int | None = None
) -> Iterator[Task]:
    """So many different tasks, or all where `rows` is None: dicts with nums and target.

    To choose them by difficulty takes a millisecond for 4 numbers and half a second for 6.
    IndexError at the end where there are fewer.
    """
    if holds_few(settings):
        tasks = listed_tasks(settings, split, seed)
    else:
        tasks = drawn_tasks(settings, split, seed)
    if settings.by_difficulty:
        tasks = (
            task
            for task in tasks
            if settings.want_difficulty(*difficulty(task["nums"], task["target"], settings))
        )
    made = 0
    for task in islice(tasks, rows):
        made += 1
        yield task
    if rows is not None and made < rows:
        raise IndexError(
            f"asked for {rows} rows, but these settings give only {made} {split} tasks"
        )


def make_levels(
    levels: Sequence[CountdownSettings], split: str, seed: int, rows: int
) -> Iterator[Task]:
    """`rows` tasks of each level, with the column `level`, counted from 0, for a curriculum.

    Levels take turns, so that the first N rows hold each about equally often. No two tasks are
    alike, also of different levels. IndexError where a level holds fewer.
    """
    streams = []
    for level, settings in enumerate(levels):
        level_seed = int(mix(seed, level)[0])
        streams.append(make_tasks(settings, split, level_seed))
    seen: set[tuple[int, ...]] = set()
    for number in range(rows):
        for level, tasks in enumerate(streams):
            for task in tasks:
                key = (task["target"], *sorted(task["nums"]))
                if key not in seen:
                    seen.add(key)
                    yield {**task, "level": level}
                    break
            else:
                raise IndexError(
                    f"asked for {rows} rows of each level, but level {level} has only {number} {split} tasks"
                )
