"""How the tests are shared out among the processes of `-n`: a file at a time, the longest first, so that no process is
left with one when the others have ended.
"""

from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

# These files read trainings on one rollout server, which one process starts once.
ONE_SERVER = tuple(
    f"tests/e2e/test_{name}.py"
    for name in (
        *("mixed_tasks", "training", "nodes", "recipes", "probe", "own_rewards", "weight_sync"),
        *("held_out", "curriculum"),
    )
)
# Before all others: they take minutes, and wait in half of them, while the other processes use the processor.
LONGEST = (
    "tests/e2e/test_faults.py",
    *ONE_SERVER,
    "tests/e2e/test_language_model.py",
    "tests/e2e/test_lora.py",
    "tests/e2e/test_pictures.py",
    "tests/e2e/test_multi_turn.py",
    "tests/e2e/test_refusals.py",
)


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts them by LONGEST, then by the number of tests in a file, and leaves the order within a file."""
    tests = Counter(item.location[0] for item in items)
    places = {file: place for place, file in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, int]:
        file = item.location[0]
        return places.get(file, len(places)), -tests[file]

    items.sort(key=place)


class ByFile(LoadFileScheduling):
    """xdist's `--dist loadfile`, but the files with one server count as one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return ONE_SERVER[0] if file in ONE_SERVER else file
