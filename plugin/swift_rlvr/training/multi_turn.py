"""Several turns in ms-swift's GRPO: the scheduler `rlvr_feedback` and the reward `external_turn_discount`.

    swift rollout --external_plugins plugin/rlvr_plugin.py --multi_turn_scheduler rlvr_feedback --max_turns 2 ...
    swift rlhf --external_plugins plugin/rlvr_plugin.py --multi_turn_scheduler rlvr_feedback --max_turns 2 \
        --reward_funcs external_countdown external_turn_discount ...

`swift-rlvr train` gives the server these flags when the recipe has them. The rewards judge the last turn, as ms-swift
calls them with its text. swift_rlvr/environments/README.md is the page about it.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swift.rollout.multi_turn import MultiTurnScheduler, multi_turns

from swift_rlvr.environments import FeedbackEnvironment, judging_reward
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import Grade, Reward
from swift_rlvr.rewards.base import Row
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.rewards.parameters import BaseParameters, parameter
from swift_rlvr.training.compat import orms

SCHEDULER = "rlvr_feedback"
REWARD = "SWIFT_RLVR_FEEDBACK_REWARD"  # variable: the reward that says what is wrong; by default that of the row's task


class FeedbackScheduler(MultiTurnScheduler):
    """Up to `max_turns` tries; after a wrong one the user's next message is the rule that the row's verifier failed.

    It adds nothing to the tokens of a turn, so ms-swift's own mask holds: 1 for what was sampled, 0 for the rest. A
    turn that is cut off is the last one, as in ms-swift.
    """

    def __init__(self, infer_engine: Any = None, max_turns: int | None = None, **kwargs: Any):
        super().__init__(infer_engine, max_turns, **kwargs)
        if not max_turns:
            raise InputError(f"is needed with --multi_turn_scheduler {SCHEDULER}, such as 2", "max_turns")
        self._turns = max_turns
        self._rewards: dict[Any, Reward] = {}  # by task
        self._conversations: dict[str, FeedbackEnvironment] = {}

    async def on_trajectory_start(self, requests: list[Any]) -> None:
        for request in requests:
            environment = FeedbackEnvironment(self._reward(request.data_dict), self._turns)
            environment.reset(request.data_dict)
            self._conversations[request.uuid] = environment

    async def on_turn_end(self, infer_request: Any, response_choice: Any, current_turn: int) -> dict[str, Any]:
        environment = self._conversations[infer_request.uuid]
        # A verifier may take seconds, and the other conversations go on.
        judged = await asyncio.to_thread(environment.step, response_choice.message.content)
        done = judged.done or response_choice.finish_reason == "length"
        if done:
            del self._conversations[infer_request.uuid]
        reasons = [step.reason for step in environment.steps]
        return {"done": done, "rollout_infos": {"turn_reasons": reasons, "outcome": judged.outcome}}

    def step(self, infer_request: Any, response_choice: Any, current_turn: int) -> dict[str, Any]:
        feedback = self._conversations[infer_request.uuid].steps[-1].feedback
        infer_request.messages.append({"role": "user", "content": feedback})
        return {"infer_request": infer_request}

    def _reward(self, row: Mapping[str, Any]) -> Reward:
        """The reward that judges the row; InputError where there is none, or it lacks a column."""
        task = row.get("task")
        if task not in self._rewards:
            name = os.environ.get(REWARD)
            reward = build_rewards([name])[0] if name else judging_reward(task)
            if reward is None:
                columns = ", ".join(row) or "none: does the trainer have --multi_turn_scheduler too?"
                raise InputError(
                    f"no reward is for the task {task!r}; name one, such as external_accuracy. The row's columns: "
                    f"{columns}", REWARD,
                )  # fmt: skip
            self._rewards[task] = reward
        reward = self._rewards[task]
        if column := missing_column(reward, row):
            raise InputError(f"{reward.name} needs the column {column!r} and the row has {', '.join(row)}", SCHEDULER)
        return reward


class TurnDiscount(Reward):
    """What a right answer loses for coming late: outcome * (factor ** (turn - 1) - 1), 0 for all others.

    Beside the verifier's reward it makes that outcome * factor ** (turn - 1), and the verifier's mean stays the share
    of right answers. It never makes a wrong answer better than another, or a late one better than an early one.

    >>> late = {"num_turns": 2, "outcome": 1.0}
    >>> TurnDiscount(factor=0.75)(["7", "7"], rollout_infos=[late, {"num_turns": 1, "outcome": 1.0}])
    [-0.25, 0.0]
    """

    name = "external_turn_discount"
    columns = ("rollout_infos",)
    reasons = ("first turn", "later turn", "not right", "not graded")
    shapes = True
    zero_is_best = True

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        factor: float = parameter(0.9, "what a right answer is worth one turn later, from 0 to 1", at_least=0)

        def __post_init__(self) -> None:
            self.require(self.factor <= 1, "factor", "from 0 to 1")

    def grade(self, text: str | None, row: Row) -> Grade:
        infos = row["rollout_infos"] or {}
        if "outcome" not in infos:
            raise InputError(f"needs --multi_turn_scheduler {SCHEDULER}, on the rollout server too", self.name)
        turn, outcome = infos["num_turns"], infos["outcome"]
        if outcome is None:
            return Grade(None, "not graded")
        if outcome <= 0:
            return Grade(0.0, "not right")
        return Grade(outcome * (self.parameters.factor ** (turn - 1) - 1), "later turn" if turn > 1 else "first turn")


def register() -> list[str]:
    """Make both known to ms-swift, and return the reward's name; ValueError for a name that is taken."""
    for name, registry, entry in ((SCHEDULER, multi_turns, FeedbackScheduler), (TurnDiscount.name, orms, TurnDiscount)):
        if name in registry:
            raise ValueError(f"{name} is registered already: load this plugin once")
        registry[name] = entry
    return [TurnDiscount.name]
