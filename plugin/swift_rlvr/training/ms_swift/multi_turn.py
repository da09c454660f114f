"""Several turns in ms-swift's GRPO: the scheduler `rlvr_feedback`.

    swift rollout --external_plugins plugin/rlvr_plugin.py \
        --multi_turn_scheduler rlvr_feedback --max_turns 2 ...
    swift rlhf --external_plugins plugin/rlvr_plugin.py \
        --multi_turn_scheduler rlvr_feedback --max_turns 2 ...

`swift-rlvr train` gives the server these flags when the recipe has them. See
docs/guides/multi_turn.md.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swift.rollout.multi_turn import MultiTurnScheduler, multi_turns

from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.rewards.feedback import Feedback, feedback_on
from swift_rlvr.tasks import verifier_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX, Settings, setting

SCHEDULER = "rlvr_feedback"
REWARD = f"{PREFIX}FEEDBACK_REWARD"


@dataclass(frozen=True)
class FeedbackSettings(Settings):
    """A variable of the process that the scheduler runs in."""

    group = "feedback_"
    feedback_reward: str | None = setting(
        None, "The verifier whose feedback the model gets. Default: the task's."
    )


class FeedbackScheduler(MultiTurnScheduler):
    """Up to `max_turns` tries; after a wrong one the user's next message is the rule that the row's
    verifier failed.

    A turn that is cut off is the last one, as in ms-swift.
    """

    def __init__(self, infer_engine: Any = None, max_turns: int | None = None, **kwargs: Any):
        super().__init__(infer_engine, max_turns, **kwargs)
        if not max_turns:
            problem = f"is needed with --multi_turn_scheduler {SCHEDULER}, such as 2"
            raise InputError(problem, "max_turns")
        self._max_turns = max_turns
        self._settings = FeedbackSettings.from_environment()
        self._rewards: dict[Any, Reward] = {}  # by task
        self._conversations: dict[str, list[Feedback]] = {}  # by request

    async def on_trajectory_start(self, requests: list[Any]) -> None:
        """Begin a conversation for each request; InputError if its row cannot be judged."""
        for request in requests:
            self._reward(request.data_dict)
            self._conversations[request.uuid] = []

    async def on_turn_end(
        self, infer_request: Any, response_choice: Any, current_turn: int
    ) -> dict[str, Any]:
        """Judge an answer: whether the conversation is over, and the reasons of its turns."""
        turns = self._conversations[infer_request.uuid]
        row = infer_request.data_dict
        reward = self._reward(row)
        # In a thread: a verifier may take seconds, and the other conversations go on.
        turn = await asyncio.to_thread(feedback_on, reward, response_choice.message.content, row)
        turns.append(turn)
        is_last = len(turns) >= self._max_turns or response_choice.finish_reason == "length"
        done = turn.text is None or is_last
        if done:
            del self._conversations[infer_request.uuid]
        return {"done": done, "rollout_infos": {"turn_reasons": [turn.reason for turn in turns]}}

    def step(self, infer_request: Any, response_choice: Any, current_turn: int) -> dict[str, Any]:
        """The request with the feedback on the last answer as the user's next message."""
        feedback = self._conversations[infer_request.uuid][-1].text
        infer_request.messages.append({"role": "user", "content": feedback})
        return {"infer_request": infer_request}

    def _reward(self, row: Mapping[str, Any]) -> Reward:
        """The reward that judges the row; InputError if there is none, or it lacks a column."""
        task = row.get("task")
        if task not in self._rewards:
            self._rewards[task] = self._reward_of(task, row)
        reward = self._rewards[task]
        column = missing_column(reward, row)
        if column is not None:
            present = ", ".join(row)
            problem = f"{reward.name} needs the column {column!r} and the row has {present}"
            raise InputError(problem, SCHEDULER)
        return reward

    def _reward_of(self, task: Any, row: Mapping[str, Any]) -> Reward:
        name = self._settings.feedback_reward or verifier_of(task)
        if name is None:
            columns = ", ".join(row) or "none; set --multi_turn_scheduler for the trainer too"
            raise InputError(
                f"the task {task!r} has no known verifier; name one, such as external_accuracy. "
                f"The row's columns: {columns}",
                REWARD,
            )
        (reward,) = build_rewards([name])
        tasks = reward.own_tasks
        if tasks and task is not None and task not in tasks:
            problem = f"{reward.name} grades the tasks {', '.join(tasks)}, but a row has the task {task!r}"
            raise InputError(problem, REWARD)
        return reward


def register_scheduler() -> None:
    """Make the scheduler known to ms-swift where that has the hooks it needs; ValueError if the
    name is taken.
    """
    if SCHEDULER in multi_turns:
        raise ValueError(
            f"the scheduler {SCHEDULER} is already registered; load this plugin only once"
        )
    if hasattr(MultiTurnScheduler, "on_turn_end"):
        multi_turns[SCHEDULER] = FeedbackScheduler
