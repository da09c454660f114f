"""Which rewards are to grade, with which parameters, and which columns of a row they take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.parameters import read_parameters, variable


def full_name(name: str) -> str:
    """A reward's name in the registry, which may be given without its prefix; InputError for an unknown one.

    >>> full_name("countdown"), full_name("external_countdown")
    ('external_countdown', 'external_countdown')
    """
    if name not in REWARDS:
        raise InputError(f"--reward: there is no reward {name!r}; there are {', '.join(REWARDS)}")
    return REWARDS[name].name


def build_rewards(chosen: Iterable[str], settings: Iterable[str] = ()) -> list[Reward]:
    """Build rewards with parameters written as `NAME=VALUE`, for each reward that has one, or `REWARD.NAME=VALUE`.

    A parameter not given here is taken from its environment variable, else it has its default.

    >>> build_rewards(["countdown"], ["notation=strict"])[0].parameters.notation
    'strict'
    """
    chosen = list(dict.fromkeys(map(full_name, chosen)))
    known = {name: [each.name for each in fields(REWARDS[name].Parameters)] for name in chosen}
    given: dict[str, dict[str, str]] = {name: {} for name in chosen}
    for setting in settings:
        key, equals, value = setting.partition("=")
        reward, dot, key = key.strip().rpartition(".")
        if not equals or not key:
            raise InputError(f"--set: expected NAME=VALUE or REWARD.NAME=VALUE, got {setting!r}")
        takers = [name for name in ([full_name(reward)] if dot else chosen) if key in known.get(name, ())]
        if not takers:
            has = "; ".join(f"{name} has {', '.join(known[name])}" for name in chosen)
            raise InputError(f"--set {setting}: no such parameter; {has}")
        for name in takers:
            given[name][key] = value
    return [_build(name, given[name]) for name in chosen]


def _build(name: str, given: Mapping[str, str]) -> Reward:
    # The texts are read as those of environment variables are, so that they mean the same in both places.
    variables = {variable(name, key): value for key, value in given.items()}
    kind = REWARDS[name].Parameters
    try:
        parameters = read_parameters(kind, name, environment={**os.environ, **variables}, other_names=REWARDS)
        return REWARDS[name](**{key: getattr(parameters, key) for key in given})
    except ValueError as error:
        message = str(error)
        for key in given:
            message = message.replace(variable(name, key), f"--set {key}")
        raise InputError(message) from error


def missing_column(reward: Reward, row: Mapping[str, Any]) -> str | None:
    """The first column that a reward lacks in a row, or None; in a row of another task it needs none."""
    own, task = reward.parameters.tasks, row.get("task")
    if own and task is not None and task not in own:
        return None
    return next((name for name in reward.columns if name not in row), None)


def columns_for(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """The columns that a reward uses, one value a row; what a row lacks is None, as it is in ms-swift."""
    return {name: [row.get(name) for row in rows] for name in (*reward.columns, *reward.optional_columns, "task")}
