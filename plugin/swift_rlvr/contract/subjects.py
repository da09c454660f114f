"""Which rewards and tasks are meant by the names that `swift-rlvr check` gets."""

from collections.abc import Iterable, Sequence

from swift_rlvr.contract import Subject
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import reward_class
from swift_rlvr.rewards.imported import is_import_path, paths_in_file
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.registry import OWN, Refused


def installed_subjects() -> list[Subject]:
    """All rewards and tasks, in the order of the registries."""
    rewards = [Subject("reward", name) for name in REWARDS]
    return rewards + [Subject("task", name) for name in TASKS]


def subjects_named(names: Sequence[str], refused: Iterable[Refused]) -> list[Subject]:
    """The rewards and tasks that are meant: those of files and import paths, then the installed ones.

    Args:
        names: of rewards, tasks or packages, files and import paths. A reward and a task may share
            a name.
        refused: the entry points that cannot be loaded, whose packages are known nevertheless.

    Raises:
        InputError: nothing has one of the names.
    """
    meant = []
    known = {entry.distribution for entry in refused}
    for name in names:
        if is_import_path(name) or name.endswith(".py"):
            known.add(name)
            paths = [name] if is_import_path(name) else paths_in_file(name)
            for path in paths:
                reward_class(path)  # it is refused now, and not by each rule
                meant.append(Subject("reward", path))
    for subject in installed_subjects():
        short_name = subject.name.removeprefix("external_")
        names_of_subject = {subject.name, short_name, owner_of(subject)}
        known |= names_of_subject
        if not names_of_subject.isdisjoint(names):
            meant.append(subject)
    for name in names:
        if name not in known:
            packages = sorted({OWN, *REWARDS.owners.values(), *TASKS.owners.values()})
            raise InputError(
                f"no reward, task or installed package is named {name!r}; rewards: {', '.join(REWARDS)};"
                f" tasks: {', '.join(TASKS)}; packages: {', '.join(packages)}"
            )
    return meant


def owner_of(subject: Subject) -> str:
    """The package of a reward or task, or the file or module of an import path."""
    if is_import_path(subject.name):
        return subject.name.rpartition(":")[0]
    registry = REWARDS if subject.kind == "reward" else TASKS
    return registry.owner(subject.name)
