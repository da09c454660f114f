r"""The language consistency reward: is the reasoning in the language asked for? Scripts decide.

Source: DeepSeek-R1 (arXiv 2501.12948, section 2.3.2): the share of words of the target language in
the chain of thought. A word is a run of letters, of which a single Latin or Greek one does not
count, since it is usually a variable, nor a Latin one without a vowel, such as `cm` or `xqzt`; in
Han and kana each character; in Thai and every script that has no language here four letters. Latin
and Greek letters of code, formulas, LaTeX commands, tags and addresses are skipped, those of other
scripts are not. For Japanese, Han characters count up to four times the kana, so that Chinese does
not pass for Japanese.
"""

import math
import re
import unicodedata
from dataclasses import dataclass
from itertools import chain

import regex

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import GateParameters, ShapingReward
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import CLOSE, OPEN
from swift_rlvr.verifiers.thinking import DELIMITERS, thinking_end

# Language code -> script.
LANGUAGES = {
    **dict.fromkeys(
        ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sv", "tr", "vi", "id"), "Latin"
    ),
    "zh": "Han",
    "ja": "kana",
    "ko": "Hangul",
    "ar": "Arabic",
    "fa": "Arabic",
    "ur": "Arabic",
    "hi": "Devanagari",
    "ru": "Cyrillic",
    "uk": "Cyrillic",
    "bg": "Cyrillic",
    "el": "Greek",
    "he": "Hebrew",
    "th": "Thai",
}
# Up to this many Han characters for each kana count as Japanese.
HAN_PER_KANA = 4
# From this share of words on the reasoning is consistent.
CONSISTENT = 0.99
# In all other scripts a run of letters is a word.
_LETTERS_PER_WORD = {"Han": 1, "kana": 1, "Thai": 4, "other": 4}

# Script -> its characters, as the inside of a set of `regex`.
_SCRIPTS = {
    "Latin": r"\p{Script=Latin}",
    "Greek": r"\p{Script=Greek}",
    "Hangul": r"\p{Script=Hangul}",
    "Hebrew": r"\p{Script=Hebrew}",
    "Han": r"\p{Script=Han}",
    "Thai": r"\p{Script=Thai}",
    # With marks and signs that Unicode counts among several scripts.
    "Cyrillic": r"\p{Script=Cyrillic}\u0485\u0486",
    "Arabic": r"\p{Script=Arabic}\u0640\u064b-\u0655\u0670",
    "Devanagari": r"\p{Script=Devanagari}\u0951-\u0954",
    "kana": r"\p{Script=Hiragana}\p{Script=Katakana}ー\uff70\uff9e\uff9f",
}
# Scripts whose single letters are usually variables: `x`, `α`.
_SCRIPTS_OF_VARIABLES = ("Latin", "Greek")
# Without one a run of Latin letters is an abbreviation, or no word at all.
_VOWEL = re.compile(r"[aeiouyæœøıə]", re.IGNORECASE)
# Letters of formulas, in a circle or a square, raised or lowered: `ℝ`, `①`, `²`.
_SIGNS = (
    r"ªºµ\u1d2c-\u1d6a\u1d9b-\u1dbf\u2070-\u209c\u2100-\u218f\u2460-\u24ff\u3220-\u33ff"
    r"\U0001d400-\U0001d7ff\U0001ee00-\U0001eeff"
)


def _letter(characters: str) -> str:
    """Matches one of the characters that is a letter, a mark or 〇, and no sign of a formula."""
    return rf"[[[{characters}]&&[\p{{L}}\p{{M}}〇]]--[{_SIGNS}]]"


def _run_patterns() -> dict[str, regex.Pattern]:
    """For each script, and for all others together, what matches a run of its letters."""
    patterns = {}
    for script, characters in _SCRIPTS.items():
        letter = _letter(characters)
        if script in _SCRIPTS_OF_VARIABLES:
            # Two letters at least. `don't` and a letter with combining accents are one run.
            pattern = rf"{letter}[{letter}'’\u0300-\u036f]*{letter}"
        else:
            pattern = f"{letter}+"
        patterns[script] = regex.compile(pattern, regex.V1)
    others = _letter(rf"\p{{L}}--[{''.join(_SCRIPTS.values())}]")
    patterns["other"] = regex.compile(f"{others}+", regex.V1)
    return patterns


_RUNS = _run_patterns()
# Each branch looks for its end no further than the next place where it could begin, or takes the
# rest of the text, so the search is linear in the length of the text.
_LEFT_OUT = re.compile(
    r"""
    ```.*?(?:```|\Z)  # a block of code, closed or not
    | `[^`\n]*`  # `code`
    | \$\$[^$]*\$\$ | \$[^$\n]*\$  # $$a + b$$, $a + b$
    | \\\\  # a line break in LaTeX; what follows it begins no formula
    | \\\([^\\\n]*(?:\\[^()\n][^\\\n]*)*\\\)  # \(a + b\)
    | \\\[[^\\]*(?:\\[^][][^\\]*)*\\\]  # \[a + b\]
    | \\(?:begin|end)\{[A-Za-z]{1,32}\*?\} | \\[A-Za-z]+  # \begin{align*}, \frac
    | </?[A-Za-z][\w-]{0,32}\s?/?> | <\|[\w.-]{1,32}\|>  # </b>, <|im_end|>
    | (?:https?://|www\.)[!-~]+  # https://example.org
    """,
    re.VERBOSE | re.DOTALL,
)


def script_of(language: object) -> str | None:
    """The script of a language code, or None for an unknown one. Regions do not matter.

    >>> script_of("en"), script_of("zh-CN"), script_of("python")
    ('Latin', 'Han', None)
    """
    if not isinstance(language, str):
        return None
    # "zh-CN", "pt_BR"
    code, *_ = re.split("[-_]", language.strip().lower())
    return LANGUAGES.get(code)


def count_words(text: str) -> dict[str, int]:
    r"""The number of words in each script that occurs in a text.

    >>> count_words("设 $x = \\text{speed}$, 因为 x > 0, we know: 最小值")
    {'Latin': 2, 'Han': 6}
    """
    prose = _LEFT_OUT.sub(" ", text)
    # Code and formulas are in Latin and Greek; what is in another script there is prose.
    elsewhere = " ".join(match[0] for match in _LEFT_OUT.finditer(text))
    counts = {}
    for script, pattern in _RUNS.items():
        runs = pattern.findall(prose)
        if script == "Latin":
            # "à" is "a" with an accent, and a word such as "là" has a vowel by that.
            runs = [run for run in runs if _VOWEL.search(unicodedata.normalize("NFKD", run))]
        elif script not in _SCRIPTS_OF_VARIABLES:
            runs += pattern.findall(elsewhere)
        if not runs:
            continue
        per_word = _LETTERS_PER_WORD.get(script)
        if per_word is None:
            counts[script] = len(runs)
        else:
            letters = sum(map(len, runs))
            counts[script] = math.ceil(letters / per_word)
    return counts


def thought(text: str) -> str:
    """All of a completion that is no answer: the reasoning, and what stands outside the think part
    where an answer block follows.

    >>> thought("<think>We add.</think> 相加 <answer>7</answer> 好"), thought("<think>We add.</think> It is 7.")
    ('<think>We add.</think> 相加   好', ' We add. ')
    """
    think_end = thinking_end(text)
    start = text.rfind(OPEN)
    if start < think_end or start < 0:
        thinking = text[:think_end] or text
        for delimiter in chain.from_iterable(DELIMITERS):
            thinking = thinking.replace(delimiter, " ")
        return thinking
    end = text.find(CLOSE, start)
    after = text[end + len(CLOSE) :] if end >= 0 else ""
    return f"{text[:start]} {after}"


class LanguageConsistencyReward(ShapingReward):
    """Reward the share of words outside the answer that are in the requested language.

    Reasoning without words gets 0.0. The language is the row's `language`, or else the parameter. A
    row with an unknown language is not graded.

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
        language: str = setting("en", "code of the language to reason in")

        def __post_init__(self) -> None:
            super().__post_init__()
            self.require(
                script_of(self.language) is not None, "language", f"one of {', '.join(LANGUAGES)}"
            )

    def grade(self, text: str | None, row: Row) -> Explanation:
        language = row.get("language")
        if language is None:
            language = self.parameters.language
        script = script_of(language)
        has_text = text is not None and bool(text.strip())
        rules = [
            Rule("the language is known", script is not None, repr(language)),
            Rule("there is a text", has_text),
        ]
        if script is None:
            return Explanation(None, "unknown language", None, rules)
        if text is None or not has_text:
            return Explanation(0.0, "no text", None, rules)

        part = thought(text)
        counts = count_words(part)
        in_script = counts.get(script, 0)
        if script == "kana":
            # Japanese is written with Han characters too, but never with these alone.
            in_script += min(counts.get("Han", 0), HAN_PER_KANA * in_script)
        share = in_script / sum(counts.values()) if counts else 0.0
        if not counts:
            reason = "no words"
        elif share >= CONSISTENT:
            reason = "consistent"
        elif share >= 0.5:
            reason = "mixed"
        else:
            reason = "other language"
        by_script = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        has_words = f"words by script: {by_script}"
        consistent = f"at least {CONSISTENT:.0%} of them are in it"
        rules += [
            Rule("there are words in the reasoning", bool(counts), has_words),
            Rule(consistent, share >= CONSISTENT, f"{share:.1%}"),
        ]
        return Explanation(share, reason, part, rules)
