"""Rewards from the names and settings of a command line, and the columns that a reward takes from a row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.settings import Text, no_setting


def full_name(name: str) -> str:
    """A reward's name in the registry; the prefix may be left out. InputError for an unknown one.

    >>> full_name("countdown"), full_name("external_countdown")
    ('external_countdown', 'external_countdown')
    """
    if name not in REWARDS:
        raise InputError(f"--reward_funcs: there is no reward {name!r}; there are {', '.join(REWARDS)}")
    return REWARDS[name].name


def build_rewards(names: Iterable[str], settings: Iterable[str] = ()) -> list[Reward]:
    """Build rewards with parameters written as `NAME=VALUE`, for each reward that has one, or `REWARD.NAME=VALUE`.

    A parameter that is not set here comes from its environment variable, or else has its default.

    >>> build_rewards(["countdown"], ["notation=strict"])[0].parameters.notation
    'strict'
    """
    texts: dict[str, dict[str, Text]] = {full_name(name): {} for name in names}
    known = {name: [each.name for each in fields(REWARDS[name].Parameters)] for name in texts}
    for setting in settings:
        key, equals, value = setting.partition("=")
        reward, dot, key = key.strip().rpartition(".")
        if not equals or not key:
            raise InputError(f"--set: expected NAME=VALUE or REWARD.NAME=VALUE, got {setting!r}")
        takers = [name for name in ([full_name(reward)] if dot else texts) if key in known.get(name, ())]
        if not takers:
            answers = (no_setting(name, key, known[name]) for name in texts)
            raise InputError(f"--set {setting}: {'; '.join(answers)}")
        for name in takers:
            texts[name][key] = Text(value)
    return [_build(REWARDS[name], overrides) for name, overrides in texts.items()]


def _build(cls: type[Reward], overrides: Mapping[str, Text]) -> Reward:
    try:
        return cls(**overrides)
    except InputError as error:
        name = (error.field or "").removeprefix(f"{cls.name}: ")
        raise InputError(error.problem, f"--set {name}" if name in overrides else error.field) from error


def missing_column(reward: Reward, row: Mapping[str, Any]) -> str | None:
    """The first column that a reward lacks in a row, or None; in a row of another task it needs none."""
    own, task = reward.own_tasks, row.get("task")
    if own and task is not None and task not in own:
        return None
    return next((name for name in reward.columns if name not in row), None)


def columns_for(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """The columns that a reward uses, one value per row, None where a row has none, as in ms-swift."""
    return {name: [row.get(name) for row in rows] for name in (*reward.columns, *reward.optional_columns, "task")}
