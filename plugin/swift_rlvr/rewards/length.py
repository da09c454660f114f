"""The length of a completion, in tokens where the trainer passes them, and the length reward: as
many points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.utils.settings import setting

TOKEN_COLUMNS = (
    "response_token_ids",
    "completion_ids",
)  # ms-swift's, of several turns a list of each, and TRL's
UNITS = ("characters", "tokens")


def token_ids(row: Row) -> Sequence[int] | None:
    """The token ids of a completion, those of all turns in one list, or None if the row has
    none.

    A column is skipped if it is not a list of whole numbers, or empty, with which ms-swift says
    that they are unknown.

    >>> token_ids({"completion_ids": [5, 6, 7]}), token_ids({"response_token_ids": [[5, 6], [7]]})
    ([5, 6, 7], [5, 6, 7])
    >>> token_ids({"response_token_ids": [], "completion_ids": "567"}) is None
    True
    """
    for name in TOKEN_COLUMNS:
        value = row.get(name)
        if value is not None and hasattr(value, "tolist"):  # a tensor or an array
            value = value.tolist()
        if not isinstance(value, (list, tuple)) or not value:
            continue
        # By the types, which are few, since a completion has thousands of tokens.
        if all(issubclass(cls, (list, tuple)) for cls in set(map(type, value))):
            value = [token for turn in value for token in turn]
        if value and all(
            issubclass(cls, Integral) and cls is not bool for cls in set(map(type, value))
        ):
            return value
    return None


def completion_length(text: str | None, row: Row, unit: str = "tokens") -> tuple[int, str]:
    """Return the length and its unit: "tokens" if that is asked for and the row has token ids, else
    "characters".

    >>> completion_length("four", {"completion_ids": [1, 2]}), completion_length("four", {})
    ((2, 'tokens'), (4, 'characters'))
    """
    tokens = token_ids(row) if unit == "tokens" else None
    return (len(text or ""), "characters") if tokens is None else (len(tokens), "tokens")


class LengthReward(ShapingReward):
    """Reward scale * length, to watch how training behaves; a negative scale rewards short
    completions.

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
            "characters", "the unit of length; rows without token ids use characters", choices=UNITS
        )
        scale: float = setting(1.0, "factor that multiplies the length")
        max_length: int = setting(
            0, "longer completions count as this long; 0: no limit", at_least=0
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            limited = not self.gated or self.scale >= 0 or self.max_length > 0
            self.require(
                limited, "max_length", "more than 0 if there is a gate and scale is negative"
            )

    @property
    def least(self) -> float:
        return min(0.0, self.parameters.scale * self.parameters.max_length)

    def grade(self, text: str | None, row: Row) -> Explanation:
        length, unit = completion_length(text, row, self.parameters.unit)
        if text is None and unit == "characters":
            return NO_TEXT
        limit, scale = self.parameters.max_length, self.parameters.scale
        reward = scale * min(length, limit or length) + 0.0  # + 0.0 turns -0.0 into 0.0
        rules = [
            Rule(
                "length",
                None,
                f"{length} {unit}" + (f", of which at most {limit} count" if limit else ""),
            ),
            Rule("reward", None, f"the length times {scale:g} is {reward:g}"),
        ]
        return Explanation(reward, "length", text, rules)
