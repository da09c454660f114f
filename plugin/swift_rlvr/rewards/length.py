"""The length reward: as many points as the completion is long."""

from dataclasses import dataclass

from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.rewards.grade import Example, Explanation, Row, Rule
from swift_rlvr.rewards.token_length import TOKEN_COLUMNS, UNITS, completion_length
from swift_rlvr.settings import setting


class LengthReward(ShapingReward):
    """Reward scale * length, to watch how training behaves; a negative scale rewards short completions.

    >>> LengthReward(unit="tokens", scale=-0.5)([" in the sky."], response_token_ids=[[304, 279, 12884, 13]])
    [-2.0]
    """

    name = "external_length"
    optional_columns = TOKEN_COLUMNS
    reasons = ("length", "no text")
    examples = (
        Example("seven..", {}, 7.0),
        Example("six...", {}, 6.0),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        unit: str = setting(
            "characters", "`characters` or `tokens`; characters if a row has no token ids", choices=UNITS
        )
        scale: float = setting(1.0, "what the length is multiplied by")
        max_length: int = setting(0, "longer completions count as this long; 0: no limit", at_least=0)

        def __post_init__(self) -> None:
            super().__post_init__()
            limited = not self.gated or self.scale >= 0 or self.max_length > 0
            self.require(limited, "max_length", "more than 0 with a gate and a negative scale")

    @property
    def least(self) -> float:
        return min(0.0, self.parameters.scale * self.parameters.max_length)

    def shape(self, text: str | None, row: Row) -> Explanation:
        length, unit = completion_length(text, row, self.parameters.unit)
        if text is None and unit == "characters":
            return NO_TEXT
        limit, scale = self.parameters.max_length, self.parameters.scale
        reward = scale * min(length, limit or length) + 0.0  # + 0.0 turns -0.0 into 0.0
        rules = [
            Rule("length", None, f"{length} {unit}" + (f", of which at most {limit} count" if limit else "")),
            Rule("reward", None, f"the length times {scale:g} is {reward:g}"),
        ]
        return Explanation(reward, "length", text, rules)
