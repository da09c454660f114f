r"""The language consistency reward: reasoning in the language that is asked for, judged by its script.

Source: DeepSeek-R1 (arXiv 2501.12948, section 2.3.2): the share of words of the target language in the chain of
thought. What a word is:

- Latin, Greek, Cyrillic, Hangul, Arabic, Devanagari and Hebrew script: a run of letters. A single Latin or Greek letter
  is none: it is a variable as a rule.
- Han and kana: each character. Thai and every script that has no language here: four letters, because several of them
  are written without spaces.

Left out are code (``` and `), formulas ($, \( and \[), LaTeX commands, tags, addresses and digits. A script cannot tell
English from German: for all languages written in Latin script the reward is the same. For Japanese, Han characters
count up to four times the kana, so that Chinese does not pass for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swift_rlvr.answers import reasoning
from swift_rlvr.rewards.base import Explanation, Grade, Reward, Rule
from swift_rlvr.rewards.parameters import Parameters as BaseParameters
from swift_rlvr.rewards.parameters import parameter

LANGUAGES = {
    **dict.fromkeys(("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "tr", "vi", "id"), "Latin"),
    **{"zh": "Han", "ja": "kana", "ko": "Hangul", "ar": "Arabic", "fa": "Arabic", "ur": "Arabic", "hi": "Devanagari"},
    **{"ru": "Cyrillic", "uk": "Cyrillic", "bg": "Cyrillic", "el": "Greek", "he": "Hebrew", "th": "Thai"},
}
HAN_PER_KANA = 4
CONSISTENT = 0.99
_LETTERS_A_WORD = 4

_LATIN = (
    "A-Za-zÀ-ÖØ-öø-\u02af\u1d00-\u1d25\u1d6b-\u1d9a\u1e00-\u1eff"
    "\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab68\ufb00-\ufb06Ａ-Ｚａ-ｚ"
)
_GREEK = (
    "\u0370-\u0373\u0376-\u037d\u037f\u0386\u0388-\u03ff\u1d26-\u1d2a"
    "\u1f00-\u1fbc\u1fbe\u1fc2-\u1fcc\u1fd0-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ffc"
)
_RUNS = {  # characters of scripts whose words are runs of letters
    "Cyrillic": "\u0400-\u0481\u0483-\u052f\u1c80-\u1c88\u1d2b\u2de0-\u2dff\ua640-\ua66e\ua67f-\ua69f",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc",
    "Arabic": "\u0610-\u061a\u0620-\u065f\u066e-\u06d3\u06d5-\u06dc\u06df-\u06e8\u06ea-\u06ef\u06fa-\u06ff"
    "\u0750-\u077f\u0870-\u088e\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Devanagari": "\u0900-\u0963\u0970-\u097f\ua8e0-\ua8ff",
    "Hebrew": "\u0591-\u05bd\u05d0-\u05f4\ufb1d-\ufb4f",
}
_CHARACTERS = {
    "Han": "々〇〻\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",
}
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_SIGNS = (  # of formulas: neither \d nor words
    "ªºµ²³¹¼½¾\u1d2c-\u1d6a\u1d9b-\u1dbf\u2070-\u209c\u2100-\u218f\u2460-\u24ff\u3220-\u32ff"
    "\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff"
)
_KNOWN = "".join((_LATIN, _GREEK, *_RUNS.values(), *_CHARACTERS.values(), _THAI, _SIGNS))
_WORDS = {  # a run of at least two letters, or of one
    "Latin": re.compile(f"[{_LATIN}][{_LATIN}'’\u0300-\u036f]*[{_LATIN}]"),
    "Greek": re.compile(f"[{_GREEK}][{_GREEK}\u0300-\u036f]*[{_GREEK}]"),
    **{script: re.compile(f"[{letters}]+") for script, letters in _RUNS.items()},
}
_LETTERS = {
    **{script: (re.compile(f"[{letters}]+"), 1) for script, letters in _CHARACTERS.items()},
    "Thai": (re.compile(f"[{_THAI}]+"), _LETTERS_A_WORD),
    "other": (re.compile(rf"[^\W\d_{_KNOWN}]+"), _LETTERS_A_WORD),
}
# No branch looks for its end beyond the next place where it could begin, or else it takes all that follows, so that the
# search is linear in the text.
_LEFT_OUT = re.compile(
    r"""
    ```.*?(?:```|\Z)
    | `[^`\n]*`
    | \$\$[^$]*\$\$ | \$[^$\n]*\$
    | \\\\  # a line break in LaTeX; what follows it begins no formula
    | \\\([^\\\n]*(?:\\[^()\n][^\\\n]*)*\\\)
    | \\\[[^\\]*(?:\\[^][][^\\]*)*\\\]
    | \\(?:begin|end)\{[A-Za-z]{1,32}\*?\} | \\[A-Za-z]+
    | </?[A-Za-z][\w-]{0,32}\s?/?> | <\|[\w.-]{1,32}\|>
    | (?:https?://|www\.)[!-~]+
    """,
    re.VERBOSE | re.DOTALL,
)


def script_of(language: object) -> str | None:
    """The script by which a language is judged, or None for one that is not known; regions do not matter.

    >>> script_of("en"), script_of("zh-CN"), script_of("python")
    ('Latin', 'Han', None)
    """
    return LANGUAGES.get(re.split("[-_]", language.strip().lower())[0]) if isinstance(language, str) else None


def count_words(text: str) -> dict[str, int]:
    r"""The number of words in each script that occurs in a text.

    >>> count_words("设 $x = \\text{speed}$, 因为 x > 0, we know: 最小值")
    {'Latin': 2, 'Han': 6}
    """
    text = _LEFT_OUT.sub(" ", text)
    counts = {script: len(words.findall(text)) for script, words in _WORDS.items()}
    for script, (letters, per_word) in _LETTERS.items():
        counts[script] = -(-sum(map(len, letters.findall(text))) // per_word)
    return {script: count for script, count in counts.items() if count}


class LanguageConsistencyReward(Reward):
    """Reward the share of words in the reasoning that are in the language asked for; 0.0 where there are none.

    The language is the row's value of the column `language` or, where the row has none, the parameter. A row with a
    language that is not known counts for nothing.

    >>> reward = LanguageConsistencyReward()
    >>> reward(["<think>We add them.</think><answer>7</answer>", "<think>We 相加 them.</think>", "<think>相加</think>"])
    [1.0, 0.5, 0.0]
    >>> reward(["<think>相加</think>"], language=["zh"])
    [1.0]
    """

    name = "external_language_consistency"
    optional_columns = ("language",)
    reasons = ("consistent", "mixed", "other language", "no words", "no text", "unknown language")

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        language: str = parameter("en", "the language to reason in, by its code")

        def __post_init__(self) -> None:
            self.require(script_of(self.language) is not None, "language", "one of " + ", ".join(LANGUAGES))

    def grade(self, text: str | None, row: Mapping[str, Any]) -> Grade:
        script = script_of(self._language(row))
        if script is None:
            return Grade(None, "unknown language")
        if text is None or not text.strip():
            return Grade(0.0, "no text")
        return self._grade(count_words(reasoning(text)), script)

    @staticmethod
    def _grade(counts: dict[str, int], script: str) -> Grade:
        words = sum(counts.values())
        if not words:
            return Grade(0.0, "no words")
        own = counts.get(script, 0)
        if script == "kana":
            own += min(counts.get("Han", 0), HAN_PER_KANA * own)
        share = own / words
        return Grade(share, "consistent" if share >= CONSISTENT else "mixed" if share >= 0.5 else "other language")

    def explain_text(self, text: str | None, row: Mapping[str, Any]) -> Explanation:
        language = self._language(row)
        script = script_of(language)
        rules = [
            Rule("the language is known", script is not None, repr(language)),
            Rule("there is a text", text is not None and bool(text.strip())),
        ]
        if script is None or text is None or not text.strip():
            return Explanation(*self.grade(text, row), None, rules)
        part = reasoning(text)
        counts = count_words(part)
        reward, reason = self._grade(counts, script)
        by_script = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        rules += [
            Rule("there are words in the reasoning", bool(counts), f"words by script: {by_script}"),
            Rule(f"at least {CONSISTENT:.0%} of them are in it", reason == "consistent", f"{reward:.1%}"),
        ]
        return Explanation(reward, reason, part, rules)

    def _language(self, row: Mapping[str, Any]) -> object:
        language = row.get("language")
        return self.parameters.language if language is None else language
