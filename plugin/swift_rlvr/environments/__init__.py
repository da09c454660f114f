"""Several turns: the policy answers, the verifier says why that was wrong, the policy tries again. See README.md."""

from swift_rlvr.environments.feedback import FEEDBACK_TOKENS, FeedbackEnvironment, Turn, judging_reward

__all__ = ["FEEDBACK_TOKENS", "FeedbackEnvironment", "Turn", "judging_reward"]
