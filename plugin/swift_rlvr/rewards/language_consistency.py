r"""The language consistency reward: reasoning in the language that is asked for, judged by its
script.

Source: DeepSeek-R1 (arXiv 2501.12948, section 2.3.2): the share of words of the target language in
the chain of thought. A word is a run of letters, of which a single Latin or Greek one does not
count, since it is usually a variable; in Han and kana each character; in Thai and every script that
has no language here four letters. Code, formulas, LaTeX commands, tags, addresses and digits are
skipped. For Japanese, Han characters count up to four times the kana, so that Chinese does not pass
for Japanese.
"""

import re
from dataclasses import dataclass

import regex

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import GateParameters, ShapingReward
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import reasoning

LANGUAGES = {
    **dict.fromkeys(
        ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "tr", "vi", "id"), "Latin"
    ),
    **{
        "zh": "Han",
        "ja": "kana",
        "ko": "Hangul",
        "ar": "Arabic",
        "fa": "Arabic",
        "ur": "Arabic",
        "hi": "Devanagari",
    },
    **{
        "ru": "Cyrillic",
        "uk": "Cyrillic",
        "bg": "Cyrillic",
        "el": "Greek",
        "he": "Hebrew",
        "th": "Thai",
    },
}
HAN_PER_KANA = 4
CONSISTENT = 0.99
_LETTERS_PER_WORD = {
    "Han": 1,
    "kana": 1,
    "Thai": 4,
    "other": 4,
}  # in all other scripts a run of letters is a word

_SCRIPTS = {
    **{
        name: rf"\p{{Script={name}}}"
        for name in ("Latin", "Greek", "Hangul", "Hebrew", "Han", "Thai")
    },
    # with marks and signs that Unicode counts among several scripts
    "Cyrillic": r"\p{Script=Cyrillic}\u0485\u0486",
    "Arabic": r"\p{Script=Arabic}\u0640\u064b-\u0655\u0670",
    "Devanagari": r"\p{Script=Devanagari}\u0951-\u0954",
    "kana": r"\p{Script=Hiragana}\p{Script=Katakana}ー\uff70\uff9e\uff9f",
}
_SIGNS = (  # letters of formulas, in a circle or a square, raised or lowered
    r"ªºµ\u1d2c-\u1d6a\u1d9b-\u1dbf\u2070-\u209c\u2100-\u218f\u2460-\u24ff\u3220-\u33ff"
    r"\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff"
)


def _runs(characters: str, single: bool = True) -> regex.Pattern:
    """Matches runs of those of the characters that are letters or marks, or 〇; runs of one only if
    `single`.
    """
    letter = rf"[[[{characters}]&&[\p{{L}}\p{{M}}〇]]--[{_SIGNS}]]"
    return regex.compile(
        f"{letter}+" if single else rf"{letter}[{letter}'’\u0300-\u036f]*{letter}", regex.V1
    )


_RUNS = {
    name: _runs(characters, name not in ("Latin", "Greek")) for name, characters in _SCRIPTS.items()
}
_RUNS["other"] = _runs(rf"\p{{L}}--[{''.join(_SCRIPTS.values())}]")
# Each branch looks for its end no further than the next place where it could begin, or takes the
# rest of the text, so the search is linear in the length of the text.
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
    """The script of a language, or None for a language that is not known; regions do not matter.

    >>> script_of("en"), script_of("zh-CN"), script_of("python")
    ('Latin', 'Han', None)
    """
    return (
        LANGUAGES.get(re.split("[-_]", language.strip().lower())[0])
        if isinstance(language, str)
        else None
    )


def count_words(text: str) -> dict[str, int]:
    r"""The number of words in each script that occurs in a text.

    >>> count_words("设 $x = \\text{speed}$, 因为 x > 0, we know: 最小值")
    {'Latin': 2, 'Han': 6}
    """
    text = _LEFT_OUT.sub(" ", text)
    counts = {}
    for script, runs in _RUNS.items():
        letters = [len(run) for run in runs.findall(text)]
        per_word = _LETTERS_PER_WORD.get(script)
        counts[script] = len(letters) if per_word is None else -(-sum(letters) // per_word)
    return {script: count for script, count in counts.items() if count}


class LanguageConsistencyReward(ShapingReward):
    """Reward the share of words in the reasoning that are in the language asked for; 0.0 where
    there are none.

    The language is the row's `language` or else the parameter. A row with an unknown language is
    not graded.

    >>> reward = LanguageConsistencyReward()
    >>> reward(["<think>We add them.</think><answer>7</answer>", "<think>We 相加 them.</think>", "<think>相加</think>"])
    [1.0, 0.5, 0.0]
    """

    name = "external_language_consistency"
    optional_columns = ("language",)
    reasons = ("consistent", "mixed", "other language", "no words", "no text", "unknown language")
    examples = (
        Example("<think>First, add the numbers.</think>", {"language": "en"}, 1.0),
        Example("<think>因为三加四等于七</think>", {"language": "en"}, 0.0),
        Example("<think>First, add the numbers.</think>", {"language": "klingon"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        language: str = setting("en", "the language to reason in, by its code")

        def __post_init__(self) -> None:
            super().__post_init__()
            self.require(
                script_of(self.language) is not None, "language", f"one of {', '.join(LANGUAGES)}"
            )

    def grade(self, text: str | None, row: Row) -> Explanation:
        language = self.parameters.language if row.get("language") is None else row["language"]
        script, text = script_of(language), text or ""
        rules = [
            Rule("the language is known", script is not None, repr(language)),
            Rule("there is a text", bool(text.strip())),
        ]
        if script is None:
            return Explanation(None, "unknown language", None, rules)
        if not text.strip():
            return Explanation(0.0, "no text", None, rules)
        part = reasoning(text)
        counts = count_words(part)
        words, own = sum(counts.values()), counts.get(script, 0)
        if script == "kana":
            own += min(counts.get("Han", 0), HAN_PER_KANA * own)
        share = own / words if words else 0.0
        reason = (
            "consistent" if share >= CONSISTENT else "mixed" if share >= 0.5 else "other language"
        )
        by_script = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        rules += [
            Rule("there are words in the reasoning", words > 0, f"words by script: {by_script}"),
            Rule(
                f"at least {CONSISTENT:.0%} of them are in it", share >= CONSISTENT, f"{share:.1%}"
            ),
        ]
        return Explanation(share, reason if words else "no words", part, rules)
