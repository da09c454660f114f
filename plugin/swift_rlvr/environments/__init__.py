"""Several turns: the policy answers, the verifier says why that was wrong, the policy tries again. See README.md."""

from swift_rlvr.environments.feedback import FeedbackEnvironment, Step, feedback_text, judging_reward

__all__ = ["FeedbackEnvironment", "Step", "feedback_text", "judging_reward"]
