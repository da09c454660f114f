"""The length reward: as many points as the completion is long."""

from dataclasses import dataclass

from swift_rlvr.rewards.base import Explanation, Grade, Reward, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters, parameter
from swift_rlvr.rewards.token_length import TOKEN_COLUMNS, completion_length, token_ids, with_unit


class LengthReward(Reward):
    """Reward scale * length, to watch how training behaves with a reward that is easy to understand.

    A policy soon learns to write without end. For any other purpose set `max_length`, or a negative scale, which
    rewards short completions.

    >>> LengthReward()([" blue.", " in the sky."])
    [6.0, 12.0]
    >>> LengthReward(unit="tokens", scale=-0.5)([" in the sky."], response_token_ids=[[304, 279, 12884, 13]])
    [-2.0]
    """

    name = "external_length"
    optional_columns = TOKEN_COLUMNS
    reasons = ("length", "no text")

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        unit: str = parameter("characters", "`characters` or `tokens`; characters where the row has no token ids")
        scale: float = parameter(1.0, "what the length is multiplied by")
        max_length: int = parameter(0, "longer completions count as this long; 0: no limit")

        def __post_init__(self) -> None:
            self.require(self.unit in ("characters", "tokens"), "unit", "'characters' or 'tokens'")
            self.require(self.max_length >= 0, "max_length", "0 or more")

    def grade(self, text: str | None, row: Row) -> Grade:
        row = self._counted(row)
        if text is None and token_ids(row) is None:
            return Grade(0.0, "no text")
        length = completion_length(text, row)
        if self.parameters.max_length:
            length = min(length, self.parameters.max_length)
        return Grade(self.parameters.scale * length + 0.0, "length")  # + 0.0 turns -0.0 into 0.0

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        reward, reason = self.grade(text, row)
        limit = self.parameters.max_length
        detail = with_unit(text, self._counted(row)) + (f", of which at most {limit} count" if limit else "")
        rules = [
            Rule("there is a text to measure", reason != "no text"),
            Rule("length", None, detail),
            Rule("reward", None, f"the length times {self.parameters.scale:g} is {reward:g}"),
        ]
        return Explanation(reward, reason, text, rules)

    def _counted(self, row: Row) -> Row:
        """The row, without its token ids where characters are counted."""
        return row if self.parameters.unit == "tokens" else {}
