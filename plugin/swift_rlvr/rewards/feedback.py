"""Several turns: the policy answers, the verifier says why that was wrong, the policy tries again.
See docs/guides/multi_turn.md.

What the policy sees is the reason, a fixed text of the reward, and for rewards with `shows_details`
the detail of the failed rule. Others may name the gold there (`external_accuracy`) or a hidden test
(`external_code`). Detail in which a policy could have written anything, such as a special token, is
left out.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from swift_rlvr.rewards import REWARDS, Reward  # noqa: F401 - REWARDS in a doctest
from swift_rlvr.success import Judges

TRY_AGAIN = "Try again."
FEEDBACK_TOKENS = 256  # at most, of one feedback with the template's tokens around it
_PLAIN = re.compile(
    r"[\w .,:;=%*/+-]{1,160}"
)  # no brackets of any kind: special tokens and templates need one


class Feedback(NamedTuple):
    """What follows an answer: the next message of the user, None if none helps, and the
    verdict's reason.
    """

    text: str | None
    reason: str


def feedback_on(reward: Reward, completion: object, row: Mapping[str, Any]) -> Feedback:
    """Judge an answer alone, whatever it says about feedback and turns.

    None follows a success, a row that cannot be graded, and under a reward that is no verifier an
    answer that fails none of its rules.

    >>> row = {"nums": [1, 2, 3], "target": 9}
    >>> feedback_on(REWARDS["countdown"](), "<answer>1+2</answer>", row)
    Feedback(text='Missing number: 3. Try again.', reason='missing number')
    >>> feedback_on(REWARDS["countdown"](), "<answer>(1+2)*3</answer>", row)
    Feedback(text=None, reason='correct')
    """
    explanation = reward.explain(completion, row)
    failed = next((rule for rule in explanation.rules if rule.passed is False), None)
    success = Judges.from_rewards([reward]).of({reward.name: explanation.reward}).success
    if explanation.reward is None or success or (success is None and failed is None):
        return Feedback(None, explanation.reason)
    text = explanation.reason[:1].upper() + explanation.reason[1:]
    if reward.shows_details and failed is not None and _PLAIN.fullmatch(failed.detail):
        text += f": {failed.detail}"
    return Feedback(f"{text}. {TRY_AGAIN}", explanation.reason)
