"""Rewards from the names of a command line, and the columns that a reward takes from a row."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError, did_you_mean


def build_rewards(names: Iterable[str]) -> list[Reward]:
    """Each reward once, with the parameters of its environment variables; the prefix of a name may
    be left out.

    >>> [reward.name for reward in build_rewards(["countdown", "external_countdown"])]
    ['external_countdown']
    """
    classes = {}
    for name in names:
        if name not in REWARDS:
            known = did_you_mean(name, REWARDS) or f"there are {', '.join(REWARDS)}"
            raise InputError(f"--reward_funcs: there is no reward {name!r}; {known}")
        classes[REWARDS[name].name] = REWARDS[name]
    return [cls() for cls in classes.values()]


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
    idle = [
        reward
        for reward in rewards
        if (own := reward.own_tasks) and None not in tasks and not {*own} & {*tasks}
    ]
    if any(reward.role == VERIFIER and reward not in idle for reward in rewards):
        idle = [reward for reward in idle if reward.role != VERIFIER]
    for reward in idle:
        remedy = "choose others, or set their parameter tasks"
        verifiers = [TASKS[task].verifier for task in sorted(map(str, tasks)) if task in TASKS]
        if reward.verifier and verifiers:
            remedy = f"{reward.name.upper()}_ACCURACY={verifiers[0]}"
        yield reward, remedy


def columns_for(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """The columns that a reward uses, one value per row, None where a row has none, as in
    ms-swift.
    """
    return {
        name: [row.get(name) for row in rows]
        for name in (*reward.columns, *reward.optional_columns, "task")
    }
