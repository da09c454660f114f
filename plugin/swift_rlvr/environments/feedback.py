"""A conversation in which a reward of this package answers each try with the rule that it fails.

    environment = FeedbackEnvironment(REWARDS["external_countdown"](), turns=2)
    environment.reset(row)
    environment.step("<answer>1+2</answer>").feedback    # 'Missing number: 3. Try again.'

What the policy sees is the reason, a fixed text of the reward, and for rewards with `shows_details` the detail of the
failed rule. Others may name the gold there (`external_accuracy`) or a hidden test (`external_code`). Detail in which a
policy could have written anything, such as a special token, is left out.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from swift_rlvr.errors import InputError
from swift_rlvr.rewards import REWARDS, Explanation, Reward
from swift_rlvr.success import Judges
from swift_rlvr.tasks import verifier_of

TRY_AGAIN = "Try again."
FEEDBACK_TOKENS = 256  # at most, of one feedback with the template's tokens around it
_PLAIN = re.compile(r"[\w .,:;=%*/+-]{1,160}")  # no brackets of any kind: special tokens and templates need one


class Turn(NamedTuple):
    """What follows one answer of the policy.

    feedback: the next message of the user, None at the end. reward: of the conversation, once it is done, and 0.0
    before; None where the row cannot be graded. turn: counts from 1. reason, outcome: the verdict on this answer, not
    discounted.
    """

    feedback: str | None
    reward: float | None
    done: bool
    turn: int
    reason: str
    outcome: float | None


class FeedbackEnvironment:
    """Up to `turns` tries at one row. Its reward is the last try's, times `discount` for every turn before that.

    It needs no torch and no trainer; swift_rlvr.training.multi_turn adapts it to ms-swift. A reward below zero is not
    discounted, so that no policy gains by being wrong once more. What earlier answers said, and what an answer says
    about feedback and turns, does not count: each is judged alone. `history` holds the turns since `reset`.

    Args:
        reward: any reward of this package. A conversation ends with a success; under a reward that is no verifier with
            an answer that fails none of its rules.
        turns: how many tries there are at most.
        discount: from 0 to 1; 1 makes a right answer worth the same on every turn.

    Raises:
        InputError: for turns or a discount out of range.

    >>> environment = FeedbackEnvironment(REWARDS["countdown"](), turns=2, discount=0.9)
    >>> environment.reset({"nums": [1, 2, 3], "target": 9})
    >>> environment.step("<answer>1+2</answer>")[:3]
    ('Missing number: 3. Try again.', 0.0, False)
    >>> environment.step("<answer>(1+2)*3</answer>")[:3]
    (None, 0.9, True)
    """

    def __init__(self, reward: Reward, turns: int = 2, discount: float = 1.0):
        if turns < 1:
            raise InputError(f"must be at least 1, got {turns}", "turns")
        if not 0 <= discount <= 1:
            raise InputError(f"must be from 0 to 1, got {discount}: later answers are not to earn more", "discount")
        self.reward, self.turns, self.discount = reward, turns, discount
        self._judges = Judges.from_rewards([reward])
        self.row: dict[str, Any] = {}
        self.history: list[Turn] = []

    def reset(self, row: Mapping[str, Any]) -> None:
        """Begin a conversation about a row: its columns, among them those that the reward needs."""
        self.row, self.history = dict(row), []

    def step(self, completion: object) -> Turn:
        """Judge the policy's next answer. After the end it changes nothing: the last turn is returned again."""
        if not self.history or not self.history[-1].done:
            self.history.append(self._judge(completion, len(self.history) + 1))
        return self.history[-1]

    def end(self) -> Turn:
        """End the conversation after the last answer, where the trainer cut it off; RuntimeError before the first."""
        if not self.history:
            raise RuntimeError("the conversation has no answer yet")
        last = self.history[-1]
        if not last.done:
            self.history[-1] = last._replace(feedback=None, done=True, reward=self._discounted(last.outcome, last.turn))
        return self.history[-1]

    def _judge(self, completion: object, turn: int) -> Turn:
        explanation = self.reward.explain(completion, self.row)
        outcome, reason = explanation.reward, explanation.reason
        success = self._judges.of({self.reward.name: outcome}).success
        if success is None:  # no verifier
            success = all(rule.passed is not False for rule in explanation.rules)
        if outcome is None or success or turn >= self.turns:
            return Turn(None, self._discounted(outcome, turn), True, turn, reason, outcome)
        feedback = feedback_text(explanation, self.reward.shows_details)
        return Turn(feedback, 0.0, False, turn, reason, outcome)

    def _discounted(self, outcome: float | None, turn: int) -> float | None:
        return outcome * self.discount ** (turn - 1) if outcome is not None and outcome > 0 else outcome


def feedback_text(explanation: Explanation, with_detail: bool) -> str:
    """The reason, and where it may be shown the failed rule's detail, as a message to the policy."""
    failed = next((rule for rule in explanation.rules if rule.passed is False), None)
    text = explanation.reason[:1].upper() + explanation.reason[1:]
    if with_detail and failed is not None and _PLAIN.fullmatch(failed.detail):
        text += f": {failed.detail}"
    return f"{text}. {TRY_AGAIN}"


def judging_reward(task: object) -> Reward | None:
    """The verifier of a task, by its name, with its parameters from the environment; None for an unknown task.

    >>> judging_reward("countdown").name, judging_reward("gsm8k").name, judging_reward("chess")
    ('external_countdown', 'external_accuracy', None)
    """
    verifier = verifier_of(task)
    return None if verifier is None else REWARDS[verifier]()
