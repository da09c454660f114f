"""Things by name: those of this package, and those that installed distributions add by an entry
point.

A look into a registry completes it first: the entry points of its group are loaded, once, in the
order of their names. So importing a registry imports nobody's package, and a package may import
this one while it is itself being imported: then its entry point waits for the next look. One that
cannot be loaded is left out with a warning that names its distribution, and the rest goes on.
"""

import logging
import os
import sys
import threading
from collections import UserDict
from collections.abc import Callable
from itertools import accumulate
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")
OWN = "swift-rlvr"
_LOCK = threading.RLock()  # of all registries, since loading one may look into the other

logger = logging.getLogger(__name__)


class Refused(NamedTuple):
    """An entry point that could not be used."""

    distribution: str
    entry_point: str  # as in pyproject.toml: NAME = OBJECT
    problem: str


class Registry(UserDict[str, Item]):
    """Items by name, in the order in which they were added; a look-up may leave out the `prefix` of
    a name.

    check: raises ValueError, naming what is wrong, for an item that cannot be added; it may look at
    `present`.
    """

    def __init__(self, group: str, check: Callable[[Any], None], prefix: str = ""):
        self.group, self.check, self.prefix = group, check, prefix
        self.present: dict[str, Item] = {}  # without looking for more
        self.owners: dict[str, str] = {}  # the distribution of each that came by an entry point
        self._refused: list[Refused] = []
        self._waiting: list[EntryPoint] | None = None
        self._loading = False

    @property
    def data(self) -> dict[str, Item]:  # type: ignore[override]  # UserDict works on it
        """All items by their full names."""
        self._complete()
        return self.present

    @property
    def refused(self) -> list[Refused]:
        """The entry points that could not be used."""
        len(self.data)  # completes it
        return self._refused

    def add(self, item: Any, owner: str = OWN) -> None:
        """Add an item by its `name`; ValueError where that is taken or `check` refuses it."""
        self.check(item)
        name = item.name
        if name in self.present:
            taken = self.present[name]
            raise ValueError(
                f"the name {name!r} is taken by {_described(taken)} of {self.owner(name)}"
            )
        self.present[name] = item
        if owner != OWN:
            self.owners[name] = owner

    def owner(self, name: str) -> str:
        """The distribution that an item came with."""
        return self.owners.get(name, OWN) if name in self.data else OWN

    def __missing__(self, name: str) -> Item:
        if name not in self:
            raise KeyError(name)
        return self.data[self.prefix + name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or f"{self.prefix}{name}" in self.data

    def _complete(self) -> None:
        if self._waiting == []:  # None: nobody has looked yet
            return
        with _LOCK:
            if self._loading:  # what is being loaded looks into the registry itself
                return
            self._loading = True
            try:
                if self._waiting is None:
                    from importlib.metadata import (
                        entry_points,  # here: it takes a tenth of the time of our rewards
                    )

                    self._waiting = sorted(
                        entry_points(group=self.group), key=lambda each: (each.name, _owner(each))
                    )
                for entry in [
                    each for each in self._waiting if not _is_being_imported(each.module)
                ]:
                    self._load(entry)
                    self._waiting.remove(
                        entry
                    )  # not before: other threads would think that it is there
            finally:
                self._loading = False

    def _load(self, entry: "EntryPoint") -> None:
        try:
            item = entry.load()
        except (Exception, SystemExit) as error:  # it is other people's code that runs here
            self._refuse(entry, f"{type(error).__name__}: {error}")
            return
        if any(item is each for each in self.present.values()):  # the package has added it itself
            self.owners[item.name] = _owner(entry)
            return
        try:
            self.add(item, _owner(entry))
        except ValueError as error:
            self._refuse(entry, str(error))

    def _refuse(self, entry: "EntryPoint", problem: str) -> None:
        self._refused.append(Refused(_owner(entry), f"{entry.name} = {entry.value}", problem))
        if (
            int(os.environ.get("RANK", 0)) == 0 and parent_process() is None
        ):  # not in every rank and worker
            text = "%s: left out %s of the distribution %s: %s"
            logger.warning(text, self.group, entry.name, _owner(entry), problem)


def _owner(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _described(item: object) -> str:
    return item.__name__ if isinstance(item, type) else "a " + type(item).__name__.lower()


def _is_being_imported(module: str) -> bool:
    """Whether the import of a module, or of a package that it is in, has begun and not ended."""
    names = accumulate(module.split("."), "{}.{}".format)
    specs = (getattr(sys.modules.get(name), "__spec__", None) for name in names)
    return any(getattr(spec, "_initializing", False) for spec in specs)
