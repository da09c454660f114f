"""The random reward: 1 or 0 by lot, the control that shows whether a gain is the reward's.

Source: Spurious Rewards (arXiv 2506.10947): MATH-500 rose by 21.4 points for Qwen2.5-Math-7B with
such a reward, and by 29.1 with the right one; Llama3 and OLMo2 often gained nothing. The authors
explain it by GRPO's clipping, which favours what a model does most anyway. So a gain is the
verifier's as far as it exceeds that of the same run with this reward.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import Example, Explanation, Grade, Reward, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import SHAPING
from swift_rlvr.utils.settings import setting


class RandomReward(Reward):
    """Reward 1 with probability `p`, else 0, whatever the text says.

    The random number is a hash of seed, step and text. The step comes from the trainer, if it
    passes one: then no text stays lucky, and the policy has nothing to learn.

    >>> RandomReward()(["0", "1", "2", "3", "0"])
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """

    name = "external_random"
    role = SHAPING
    optional_columns = ("trainer_state",)
    reasons = ("drawn", "not drawn")
    examples = (Example("1", {}, 1.0), Example("2", {}, 0.0))

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        p: float = setting(0.5, "probability of reward 1", at_least=0.0, at_most=1.0)
        seed: int = setting(0, "random seed; the same seed gives the same rewards")

    def grades(self, completions: Sequence, /, **columns: Any) -> list[Grade]:
        """As of every reward; trainers hand over one state, not one a completion."""
        self._check_column("completions", completions)
        step = getattr(columns.get("trainer_state"), "global_step", None)
        return super().grades(
            completions, **{**columns, "trainer_state": [step] * len(completions)}
        )

    def grade(self, text: str | None, row: Row) -> Explanation:
        parts = f"{self.parameters.seed} {row.get('trainer_state')} {text}".encode(
            "utf-8", "surrogatepass"
        )
        lot = int.from_bytes(hashlib.sha256(parts).digest()[:8], "big") / 2**64
        drawn = lot < self.parameters.p
        rules = [Rule("the random number is below p", None, f"{lot:.3f}, p {self.parameters.p:g}")]
        return Explanation(float(drawn), self.reasons[not drawn], text, rules)
