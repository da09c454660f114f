"""SkyRL (skyrl-gym 0.4): an environment of one turn.

In the entry point of the training, as for any environment of one's own:

    from skyrl_gym.envs import register
    register(id="swift_rlvr", entry_point="swift_rlvr.adapters.skyrl:RewardEnv")
"""

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from swift_rlvr.adapters.grading import grade, row_of


class RewardEnv(BaseTextEnv):
    """One completion, its score and the end; 0.0 where no reward grades the row.

    extras: a row of the dataset with `reward_spec.ground_truth`, see `row_of`. env_config: may have
    `rewards` and `weights`.
    """

    def __init__(
        self, env_config: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None
    ):
        super().__init__()
        extras = extras or {}
        label = extras["reward_spec"]["ground_truth"]
        self.row = row_of(label, extras.get("data_source"), **(extras.get("extra_info") or {}))
        config = env_config or {}
        self.rewards, self.weights = config.get("rewards"), config.get("weights")
        self.metrics: dict[str, Any] = {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Grade the completion."""
        grades = grade(action, self.row, self.rewards, self.weights)
        # SkyRL takes means of its metrics, and a reason has none.
        for name, value in grades.items():
            if isinstance(value, float):
                self.metrics[name] = value
        score = grades["score"] or 0.0
        return BaseTextEnvStepOutput(observations=[], reward=score, done=True, metadata=grades)

    def get_metrics(self) -> dict[str, Any]:
        """Each reward that graded the completion."""
        return self.metrics
