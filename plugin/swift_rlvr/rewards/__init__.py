"""All rewards. What each computes, from which source and with which parameters, stands in README.md beside this file."""

from swift_rlvr.rewards.base import Explanation, Grade, Reward, Rule
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.registry import REWARDS, add_reward

__all__ = ["REWARDS", "Explanation", "Grade", "Reward", "Rule", "add_reward"]

for reward in (CountdownReward,):
    add_reward(reward)
