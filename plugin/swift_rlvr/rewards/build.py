"""Rewards from the names of a command line, and the columns that a reward takes from a row."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.base import OPENED_BY
from swift_rlvr.rewards.imported import FIELD, import_reward, is_import_path, possible_paths
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError


def build_rewards(names: Iterable[str]) -> list[Reward]:
    """Each reward once, with the parameters of its environment variables; the prefix of a name may
    be left out. A name with a colon is an import path, see `swift_rlvr.rewards.imported`.

    InputError for a name that is unknown, or two rewards that would be logged as one.

    >>> [reward.name for reward in build_rewards(["countdown", "external_countdown"])]
    ['external_countdown']
    """
    classes: dict[str, type[Reward]] = {}
    for name in names:
        cls = reward_class(name)
        for other in classes.values():
            if other.__name__ == cls.__name__ and other.name != cls.name:
                problem = f"{other.name} and {cls.name} would both be logged as {cls.__name__}"
                raise InputError(problem, FIELD)
        classes[cls.name] = cls
    return [cls() for cls in classes.values()]


def reward_class(name: str) -> type[Reward]:
    """The class of a reward by its name or import path; InputError if there is none."""
    if is_import_path(name):
        return import_reward(name)
    if name.endswith(".py"):
        paths = ", ".join(possible_paths(name)) or "it has no function of completions"
        raise InputError(f"{name} names no function; name one as {name}:NAME ({paths})", FIELD)
    if name not in REWARDS:
        known = REWARDS.suggestion(name)
        raise InputError(f"there is no reward {name!r}; {known}", FIELD)
    return REWARDS[name]


def missing_column(reward: Reward, row: Mapping[str, Any]) -> str | None:
    """The first column that a reward lacks in a row, or None; in a row of another task it needs
    none.
    """
    own, task = reward.own_tasks, row.get("task")
    if own and task is not None and task not in own:
        return None
    return next((name for name in reward.columns if name not in row), None)


def rewards_without_rows(
    rewards: Sequence[Reward], tasks: Collection[object]
) -> Iterator[tuple[Reward, str]]:
    """The rewards that grade no row of these tasks (None: unknown), of verifiers only if none
    grades any; a remedy.
    """
    # Rows whose task nobody names may be any reward's.
    if None in tasks:
        return
    idle = []
    is_verified = False
    for reward in rewards:
        if reward.own_tasks and not {*reward.own_tasks} & {*tasks}:
            idle.append(reward)
        elif reward.role == VERIFIER:
            is_verified = True
    verifiers = [TASKS[task].verifier for task in sorted(map(str, tasks)) if task in TASKS]
    for reward in idle:
        if is_verified and reward.role == VERIFIER:
            continue
        remedy = "choose others, or set their parameter tasks"
        if reward.verifier and verifiers:
            remedy = f"{reward.name.upper()}_ACCURACY={verifiers[0]}"
        yield reward, remedy


def columns_for(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """The columns that a reward uses, one value per row, None if a row has none, as in
    ms-swift.
    """
    names = dict.fromkeys((*reward.columns, *reward.optional_columns, *OPENED_BY, "task"))
    # A function with **kwargs takes whatever a row has.
    for row in rows:
        names |= dict.fromkeys(filter(reward.takes, row))
    return {name: [row.get(name) for row in rows] for name in names}
