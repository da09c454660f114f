"""Names of our rewards that another plugin of ms-swift takes, such as ms-swift's own Countdown
example, which also calls its reward external_countdown.

A plugin that is loaded before ours is found when ours registers its rewards. One that is loaded
later replaces them without a word, so the names are looked at again once all plugins are loaded:
when a dataset is read, when a callback is made, and by the doctor.
"""

import sys
from collections.abc import Iterable

from swift.rewards import orms

from swift_rlvr.rewards import REWARDS


def described(reward: object) -> str:
    """A reward of others for messages: its name, and the file that it is from."""
    name = getattr(reward, "__name__", type(reward).__name__)
    return f"{name} of {_file(reward)}"


def _file(reward: object) -> str:
    """The file that a reward is from, or its module where that has none."""
    module = getattr(reward, "__module__", "")
    return getattr(sys.modules.get(module), "__file__", None) or module


def replaced(names: Iterable[str]) -> dict[str, str]:
    """Those of these names that are our rewards' and stand for another's, which is described."""
    others = {}
    for name in names:
        registered = orms.get(name)
        if name in REWARDS.data and registered not in (None, REWARDS.data[name]):
            others[name] = described(registered)
    return others


def late(names: Iterable[str]) -> dict[str, str]:
    """Those of these names that are rewards of a plugin which was loaded after ours, so that ms-swift
    does not know them; each with the plugin's file.
    """
    return {
        name: _file(REWARDS.data[name])
        for name in names
        if name in REWARDS.data and name not in orms
    }


def is_loaded() -> bool:
    """Whether this package's plugin is: some of the rewards are ours."""
    return any(orms.get(name) is reward for name, reward in REWARDS.data.items())


def require_ours(names: Iterable[str]) -> None:
    """ValueError if a plugin that was loaded after ours has replaced one of these rewards, or
    came too late to have its own.
    """
    if not is_loaded():
        return
    names = list(names)
    for name, file in late(names).items():
        raise ValueError(
            f"ms-swift does not know the reward {name}: name {file} in --external_plugins before "
            "this package's plugin, which registers it"
        )
    for name, other in replaced(names).items():
        raise ValueError(
            f"{other} has replaced this package's reward {name}: remove that plugin from "
            "--external_plugins, or register its reward under another name"
        )
