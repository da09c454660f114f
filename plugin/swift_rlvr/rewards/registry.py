"""The rewards, by the name under which the plugin registers them with ms-swift."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swift_rlvr.rewards.base import Reward

REWARDS: dict[str, type[Reward]] = {}


def add_reward(reward: type[Reward]) -> None:
    """Add a reward class to `REWARDS`, under its `name`.

    Raises:
        ValueError: for a name without the prefix ``external_`` (the others are ms-swift's), for a name that is taken,
            for a class name that is taken (trainers log rewards under their class's name), and for a class that does
            not say its reasons.
    """
    name = reward.name
    if not name.startswith("external_"):
        raise ValueError(f"the name of a reward must begin with 'external_', and {name!r} does not")
    if name in REWARDS:
        raise ValueError(f"the reward name {name!r} is taken by {REWARDS[name].__name__}")
    if reward.__name__ in {taken.__name__ for taken in REWARDS.values()}:
        raise ValueError(f"the class name {reward.__name__!r} is taken, and two rewards would be logged as one")
    if not reward.reasons:
        raise ValueError(f"{reward.__name__} must name every reason it gives in `reasons`")
    REWARDS[name] = reward
