"""The soft overlong punishment: nothing for a completion within the limit, less and less for one
that comes close.
"""

from dataclasses import dataclass, replace

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.rewards.length import TOKEN_COLUMNS, completion_length
from swift_rlvr.utils.settings import setting

DEFAULT_MAX_LENGTH = 1024  # without a trainer's limit; that of the Countdown experiment


class SoftOverlongReward(ShapingReward):
    """Reward 0 up to max_length - cache_length, then falling in a straight line to -1 at
    max_length, and -1 beyond.

    From DAPO (arXiv 2503.14476), equation 13: a completion that is cut off at the limit is punished
    in full, and one that comes close in part. ms-swift's own `soft_overlong` keeps falling below
    -1; the equation does not.

    >>> reward = SoftOverlongReward(max_length=100, cache_length=20)
    >>> reward(["..."] * 4, completion_ids=[[7] * 80, [7] * 90, [7] * 100, [7] * 500])
    [0.0, -0.5, -1.0, -1.0]
    """

    name = "external_soft_overlong"
    optional_columns = TOKEN_COLUMNS
    reasons = ("within the limit", "in the cache", "beyond the limit", "no text")
    examples = (
        Example("short", {"response_token_ids": [1] * 10}, 0.0),
        Example("long", {"response_token_ids": [1] * 1024}, -1.0),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        max_length: int = setting(
            0,
            "length from which the reward is -1; 0: the training's max_completion_length, or "
            f"{DEFAULT_MAX_LENGTH} outside a training",
            flag="soft_max_length",
            elsewhere={"max_completion_len": "TRL"},
            at_least=0,
        )
        cache_length: int = setting(
            0,
            "how far before max_length the reward starts to fall; 0: a fifth of max_length",
            flag="soft_cache_length",
            elsewhere={"soft_punish_cache": "TRL"},
            at_least=0,
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            fits = self.max_length == 0 or self.cache_length <= self.max_length
            self.require(fits, "cache_length", f"at most max_length, {self.max_length}")

    def __init__(self, args: object = None, **parameters):
        super().__init__(args, **parameters)
        longest = (
            self.parameters.max_length
            or getattr(args, "max_completion_length", None)
            or DEFAULT_MAX_LENGTH
        )
        # DAPO has a cache of 4,096 in 20,480 tokens.
        cache = self.parameters.cache_length or max(1, longest // 5)
        self.parameters = replace(self.parameters, max_length=longest, cache_length=cache)

    @property
    def least(self) -> float:
        return -1.0

    def grade(self, text: str | None, row: Row) -> Explanation:
        length, unit = completion_length(text, row)
        if text is None and unit == "characters":
            return NO_TEXT
        longest, cache = self.parameters.max_length, self.parameters.cache_length
        start, limit = longest - cache, "the length is at most max_length"
        if length <= start:
            reward, reason = 0.0, "within the limit"
        elif length <= longest:
            reward, reason = (start - length) / cache, "in the cache"
        else:
            reward, reason = -1.0, "beyond the limit"
        rules = [
            Rule(limit, length <= longest, f"{length} {unit}, max_length {longest}"),
            Rule(
                f"{limit} - cache_length",
                length <= start,
                f"{length} {unit}, max_length - cache_length {start}",
            ),
            Rule("reward", None, f"{reward:g}"),
        ]
        return Explanation(reward, reason, text, rules)
