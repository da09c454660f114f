"""The package reasoning-gym itself: imported once, on demand, also without pycosat, which pip has
to compile.

Its `__init__` imports all tasks and what any of them needs; only zebra puzzles need pycosat.
"""

import sys
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from swift_rlvr.utils.errors import InputError, require

# unless a dataset string says `?refused=yes`, for what tests/verifiers/reasoning_gym/test_audit.py
# shows
REFUSED = {
    "boxnet": "no right answer is known, so that nothing shows that one can be earned",
    "propositional_logic": "a premise that is copied counts as a conclusion, so that nothing has to be inferred",
    "rush_hour": "no right answer is known, so that nothing shows that one can be earned",
}


def is_missing(name: str) -> bool:
    """Whether a task cannot be used because its dependency is not installed."""
    return name == "zebra_puzzles" and find_spec("pycosat") is None


def why_refused(name: str) -> str | None:
    """Why a task is refused, with the remedy, or None."""
    if is_missing(name):
        return "it needs pycosat, which is not installed: pip install pycosat"
    return REFUSED.get(name)


@cache
def load() -> Any:
    """The module `reasoning_gym.factory`; InputError, naming the extra, where reasoning-gym is not
    installed.
    """
    require("reasoning_gym", extra="reasoning-gym", purpose="this")
    stands_in = find_spec("pycosat") is None
    if stands_in:
        sys.modules["pycosat"] = ModuleType("pycosat")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of dependencies, when they are compiled
            import reasoning_gym.factory as factory
    finally:
        if stands_in:
            del sys.modules["pycosat"]  # so that nobody else takes it for installed
    return factory


def datasets() -> Mapping[str, tuple[type, type]]:
    """The classes (dataset, config) of all tasks by name. `composite`, which is a mixture of the
    others, is not one.
    """
    tasks = dict(sorted(load().DATASETS.items()))
    tasks.pop("composite", None)
    return tasks


def create(name: str, settings: Mapping[str, Any], **more: Any) -> Any:
    """A dataset of reasoning-gym; InputError where its config refuses the settings."""
    dataset, config = datasets()[name]
    try:
        return dataset(config(**settings, **more))
    except (AssertionError, ValueError, TypeError) as error:
        raise InputError(
            f"reasoning_gym:{name} rejects its settings: {error or type(error).__name__}"
        ) from error
