"""All rewards. docs/rewards says what each computes and its source, `swift-rlvr rewards` the rest."""

from swift_rlvr.rewards.accuracy import AccuracyReward
from swift_rlvr.rewards.base import (
    REWARDS,
    Example,
    Explanation,
    Grade,
    Reward,
    Rule,
    add_reward,
    rules_in_order,
)
from swift_rlvr.rewards.box import BoxReward
from swift_rlvr.rewards.boxed import BoxedReward
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.rewards.cosine import CosineLengthReward
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.exact_match import ExactMatchReward
from swift_rlvr.rewards.format import FormatReward, FormatStrictReward
from swift_rlvr.rewards.function import reward
from swift_rlvr.rewards.gym import ReasoningGymReward
from swift_rlvr.rewards.instructions import InstructionsReward
from swift_rlvr.rewards.json_schema import JsonReward
from swift_rlvr.rewards.language_consistency import LanguageConsistencyReward
from swift_rlvr.rewards.length import LengthReward
from swift_rlvr.rewards.random import RandomReward
from swift_rlvr.rewards.reasoning_steps import ReasoningStepsReward
from swift_rlvr.rewards.repetition_penalty import RepetitionPenaltyReward
from swift_rlvr.rewards.soft_overlong import SoftOverlongReward
from swift_rlvr.rewards.sql import SqlReward
from swift_rlvr.rewards.tag_count import TagCountReward
from swift_rlvr.rewards.tool_call import ToolCallReward

__all__ = [
    "REWARDS",
    "Example",
    "Explanation",
    "Grade",
    "Reward",
    "Rule",
    "add_reward",
    "reward",
    "rules_in_order",
]

# In the order in which they are listed: verifiers, then what has to do with form, then the rest.
_REWARDS: tuple[type[Reward], ...] = (
    CountdownReward,
    AccuracyReward,
    CodeReward,
    ExactMatchReward,
    JsonReward,
    ToolCallReward,
    BoxReward,
    ReasoningGymReward,
    SqlReward,
    InstructionsReward,
    CosineLengthReward,
    FormatReward,
    FormatStrictReward,
    TagCountReward,
    BoxedReward,
    ReasoningStepsReward,
    LanguageConsistencyReward,
    RepetitionPenaltyReward,
    LengthReward,
    SoftOverlongReward,
    RandomReward,
)
for _cls in _REWARDS:
    add_reward(_cls)
