"""The repetition penalty: the more n-grams of a text have occurred before, the lower the reward."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.rewards.length import TOKEN_COLUMNS, token_ids
from swift_rlvr.utils.settings import setting

# Scripts written without spaces, of which each character is a unit: Thai and Lao, Myanmar, Khmer;
# CJK punctuation, Kana and Bopomofo; Han; full-width forms and half-width Kana; Han beyond the
# 16-bit plane.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3001-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
# The number in wait1, wait-2 and step_3, which are one word; not that of x1, 3rd, 2x or H2O.
_NUMBER_OF_WORD = re.compile(r"(?<=[^\W\d_]{3})[-_.]?\d+(?=[^\w\s]*(?:\s|\Z))")


def words(text: str) -> list[str]:
    """A text's words in lower case, and its characters where the script has no spaces. A number at
    the end of a word is no part of it: words that are only counted are the same.

    >>> words("wait1 wait-2, x1")
    ['wait', 'wait,', 'x1']
    >>> words("The answer is 42. 答えは42です")
    ['the', 'answer', 'is', '42.', '答', 'え', 'は', '42', 'で', 'す']
    """
    return _WORD.findall(_NUMBER_OF_WORD.sub("", text.lower()))


def count_ngrams(units: Sequence, n: int) -> tuple[int, int]:
    """Return how many different n-grams there are, and how many in all.

    >>> count_ngrams("to be or not to be".split(), 2)
    (4, 5)
    """
    shifted = [units[start:] for start in range(n)]
    ngrams = zip(*shifted, strict=False)
    total = max(0, len(units) - n + 1)
    return len(set(ngrams)), total


class RepetitionPenaltyReward(ShapingReward):
    """Reward (1 - different n-grams / all n-grams) * max_penalty.

    A text of fewer than n words gets 0. With ``unit="tokens"`` the trainer's token ids are
    compared. Source: the R1-Zero recipe's repetition penalty, after open-r1 and "Demystifying Long
    Chain-of-Thought Reasoning in LLMs" (arXiv 2502.03373), appendix C.2.

    >>> RepetitionPenaltyReward(n_grams=2)(["wait wait wait wait wait", "every pair of words is new"])
    [-0.07500000000000001, 0.0]
    """

    name = "external_repetition_penalty"
    optional_columns = TOKEN_COLUMNS
    reasons = ("no repetition", "repetition", "too short", "no text")
    examples = (
        Example("no three words of this text are found again in it", {}, 0.0),
        Example("a b c a b c", {}, -0.025),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        n_grams: int = setting(
            3,
            "n, the number of words or tokens compared at once",
            at_least=1,
            at_most=100,
            flag="repetition_n_grams",
            elsewhere={"ngram_size": "open-r1"},
        )
        max_penalty: float = setting(
            -0.1, "the reward for endless repetition", at_most=0, flag="repetition_max_penalty"
        )
        unit: str = setting(
            "words",
            "the unit of an n-gram; rows without token ids use words",
            choices=("words", "tokens"),
        )

    @property
    def least(self) -> float:
        return self.parameters.max_penalty

    def grade(self, text: str | None, row: Row) -> Explanation:
        units: Sequence | None = None
        unit = "tokens"
        if self.parameters.unit == "tokens":
            units = token_ids(row)
        if units is None:
            if text is None:
                return NO_TEXT
            unit = "words"
            units = words(text)
        n = self.parameters.n_grams
        max_penalty = self.parameters.max_penalty
        different, total = count_ngrams(units, n)
        reward = 0.0
        all_differ = None
        counted = ""
        if total == 0:
            reason = "too short"
        else:
            # Adding 0.0 turns -0.0 into 0.0.
            reward = (1 - different / total) * max_penalty + 0.0
            all_differ = different == total
            reason = "no repetition" if all_differ else "repetition"
            counted = f"{different} of {total} different"
        rules = [
            Rule(f"it has at least {n} {unit}", total > 0, f"{len(units)} {unit}"),
            Rule(f"no {n} {unit} in a row occur twice", all_differ, counted),
            Rule("reward", None, f"{reward:g}, at worst {max_penalty:g}"),
        ]
        return Explanation(reward, reason, text, rules)
