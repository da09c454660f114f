"""Things by name: those of this package, and those that installed distributions add by an entry
point.

A registry is a dict that refuses duplicates. The first look into it loads the entry points of its
group, in the order of their names. So importing a registry imports nobody's package, and a package
may import this one while it is itself being imported: its entry point then waits for the next look.
One that cannot be loaded is left out with a warning that names its distribution.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from difflib import get_close_matches
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Item = TypeVar("Item")
OWN = "swift-rlvr"

# One for all registries, since loading into one may look into the other.
_LOCK = threading.RLock()

logger = logging.getLogger(__name__)


class Refused(NamedTuple):
    """An entry point that could not be used."""

    distribution: str
    entry_point: str  # as in pyproject.toml: NAME = OBJECT
    problem: str


class Registry(MutableMapping[str, Item]):
    """Items by name, in the order in which they were added; a look-up may leave out the `prefix` of
    a name.

    read: what is added of an item; ValueError, naming what is wrong, where it cannot be added. It
    may look at `present`, the items that are there without looking for more.
    """

    def __init__(self, group: str, read: Callable[[Any], Item], prefix: str = ""):
        self.group = group
        self.read = read
        self.prefix = prefix
        self.present: dict[str, Item] = {}
        self.owners: dict[str, str] = {}  # the distribution of each that came by an entry point
        self._refused: list[Refused] = []
        self._waiting: list[EntryPoint] | None = None  # None: nobody has looked yet
        self._loading = False

    def add(self, item: Any, owner: str = OWN) -> None:
        """Add an item by its `name`; ValueError if that is taken, or the item cannot be used."""
        added: Any = self.read(item)
        name = added.name
        if name in self.present:
            taken = self.present[name]
            described = f"a {type(taken).__name__.lower()}"
            if isinstance(taken, type):
                described = taken.__name__
            raise ValueError(f"the name {name!r} is taken by {described} of {self.owner(name)}")
        self.present[name] = added
        if owner != OWN:
            self.owners[name] = owner

    @property
    def data(self) -> dict[str, Item]:
        """All items by their full names."""
        self._load_entry_points()
        return self.present

    @property
    def refused(self) -> list[Refused]:
        """The entry points that could not be used."""
        self._load_entry_points()
        return self._refused

    def owner(self, name: str) -> str:
        """The distribution that an item came with."""
        self._load_entry_points()
        return self.owners.get(name, OWN)

    def __getitem__(self, name: str) -> Item:
        items = self.data
        if name in items:
            return items[name]
        full_name = f"{self.prefix}{name}"
        if full_name in items:
            return items[full_name]
        raise KeyError(f"there is no {name!r}; {self.suggestion(name)}")

    def __contains__(self, name: object) -> bool:
        items = self.data
        return name in items or f"{self.prefix}{name}" in items

    def suggestion(self, name: str) -> str:
        """What to name in place of an unknown name: the nearest, else all."""
        # Each with and without the prefix, so that a short name is near to its own.
        full_names = {name.removeprefix(self.prefix): name for name in self}
        full_names |= {name: name for name in self}
        close = get_close_matches(str(name), list(full_names), 1)
        if close:
            return f"did you mean {full_names[close[0]]}?"
        return f"there are {', '.join(self)}"

    def __setitem__(self, name: str, item: Item) -> None:
        self.data[name] = item

    def __delitem__(self, name: str) -> None:
        del self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def _load_entry_points(self) -> None:
        if self._waiting == []:
            return
        with _LOCK:
            if self._loading:  # what is being loaded looks into the registry itself
                return
            self._loading = True
            try:
                if self._waiting is None:
                    self._waiting = _entry_points(self.group)
                for entry in list(self._waiting):
                    if not _is_being_imported(entry.module):
                        self._load(entry)
                        # Not before: other threads would think that it is there.
                        self._waiting.remove(entry)
            finally:
                self._loading = False

    def _load(self, entry: "EntryPoint") -> None:
        try:
            item = entry.load()
        except (Exception, SystemExit) as error:  # it is other people's code that runs here
            self._refuse(entry, f"{type(error).__name__}: {error}")
            return
        try:
            added: Any = self.read(item)
            name = added.name
            if name in self.present and self.present[name] is added:
                # The package has added it itself.
                self.owners[name] = _distribution(entry)
            else:
                self.add(added, _distribution(entry))
        except ValueError as error:
            self._refuse(entry, str(error))

    def _refuse(self, entry: "EntryPoint", problem: str) -> None:
        distribution = _distribution(entry)
        self._refused.append(Refused(distribution, f"{entry.name} = {entry.value}", problem))
        # One warning, not one for every rank and worker process.
        if int(os.environ.get("RANK", 0)) == 0 and parent_process() is None:
            text = "%s: left out %s of the distribution %s: %s"
            logger.warning(text, self.group, entry.name, distribution, problem)


def _entry_points(group: str) -> list["EntryPoint"]:
    # Imported here because that takes a tenth of the time of importing our rewards.
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group), key=lambda entry: (entry.name, _distribution(entry)))


def _distribution(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _is_being_imported(module: str) -> bool:
    """Whether the import of a module, or of a package that it is in, has begun and not ended."""
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            return True
    return False
