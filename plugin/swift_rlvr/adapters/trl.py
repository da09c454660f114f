"""`trl grpo --reward_funcs` and Axolotl's `reward_funcs`: every reward by its import path.

    trl grpo --reward_funcs swift_rlvr.adapters.trl.countdown swift_rlvr.adapters.trl.format ...

The name is that in `--reward_funcs`, with or without external_; parameters are set by variables.
None stays None, which TRL leaves out of a row's sum.
"""

from swift_rlvr.rewards import REWARDS, Reward


def __getattr__(name: str) -> Reward:
    if name not in REWARDS:
        raise AttributeError(f"module {__name__!r} has no reward {name!r}")
    return REWARDS[name]()


def __dir__() -> list[str]:
    return [name.removeprefix("external_") for name in REWARDS]
