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
from dataclasses import dataclass

import regex  # type: ignore[import-untyped]

from swift_rlvr.answers import reasoning
from swift_rlvr.rewards.base import Explanation, Grade, Reward, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters, parameter

LANGUAGES = {
    **dict.fromkeys(("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "tr", "vi", "id"), "Latin"),
    **{"zh": "Han", "ja": "kana", "ko": "Hangul", "ar": "Arabic", "fa": "Arabic", "ur": "Arabic", "hi": "Devanagari"},
    **{"ru": "Cyrillic", "uk": "Cyrillic", "bg": "Cyrillic", "el": "Greek", "he": "Hebrew", "th": "Thai"},
}
HAN_PER_KANA = 4
CONSISTENT = 0.99
_LETTERS_A_WORD = 4

_SCRIPTS = {  # with marks and signs that Unicode counts among no script, or among several
    "Latin": r"\p{Script=Latin}",
    "Greek": r"\p{Script=Greek}",
    "Cyrillic": r"\p{Script=Cyrillic}\u0485\u0486",
    "Hangul": r"\p{Script=Hangul}",
    "Arabic": r"\p{Script=Arabic}\u0640\u064b-\u0655\u0670",
    "Devanagari": r"\p{Script=Devanagari}\u0951-\u0954",
    "Hebrew": r"\p{Script=Hebrew}",
    "Han": r"\p{Script=Han}",
    "kana": r"\p{Script=Hiragana}\p{Script=Katakana}ー\uff70\uff9e\uff9f",
    "Thai": r"\p{Script=Thai}",
}
_SIGNS = (  # letters of formulas, in a circle or a square, raised or lowered
    r"ªºµ\u1d2c-\u1d6a\u1d9b-\u1dbf\u2070-\u209c\u2100-\u218f\u2460-\u24ff\u3220-\u33ff"
    r"\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff"
)


def _letters(characters: str) -> str:
    """The class of those characters that are letters or marks; 〇 is a letter too."""
    return rf"[[[{characters}]&&[\p{{L}}\p{{M}}〇]]--[{_SIGNS}]]"


def _words(script: str) -> regex.Pattern:
    letter = _letters(_SCRIPTS[script])
    if script in ("Latin", "Greek"):
        return regex.compile(rf"{letter}[{letter}'’\u0300-\u036f]*{letter}", regex.V1)
    return regex.compile(f"{letter}+", regex.V1)


_WORDS = {
    script: _words(script) for script in ("Latin", "Greek", "Cyrillic", "Hangul", "Arabic", "Devanagari", "Hebrew")
}
_LETTERS = {  # and how many of them count as a word
    "Han": (_words("Han"), 1),
    "kana": (_words("kana"), 1),
    "Thai": (_words("Thai"), _LETTERS_A_WORD),
    "other": (regex.compile(_letters(r"\p{L}--[" + "".join(_SCRIPTS.values()) + "]") + "+", regex.V1), _LETTERS_A_WORD),
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

    def grade(self, text: str | None, row: Row) -> Grade:
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

    def explain_text(self, text: str | None, row: Row) -> Explanation:
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

    def _language(self, row: Row) -> object:
        language = row.get("language")
        return self.parameters.language if language is None else language
