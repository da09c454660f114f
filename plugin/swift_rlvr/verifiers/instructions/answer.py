r"""The text of an answer, in words, sentences, paragraphs and lines.

A word is a run of letters and digits, with the apostrophes and hyphens within it. Scripts without
spaces have other words: each character of Chinese and Japanese is one, and four letters of Thai,
Lao, Khmer and Burmese are. A sentence ends with its mark, which needs no space behind it in
Chinese and Japanese. IFEval counts ``\w+``, by which a page of Chinese is one word.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

# Scripts whose characters are words, and those that are written without spaces.
_CHARACTERS = r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー"
_WITHOUT_SPACES = r"\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_CHARACTERS}{_WITHOUT_SPACES}]]"
_WORD = regex.compile(
    rf"[{_CHARACTERS}]"
    rf"|[{_WITHOUT_SPACES}]{{1,4}}"
    r"|\p{Nd}+(?:[.,:]\p{Nd}+)+"
    rf"|{_LETTER}+(?:['’\-‐‑]{_LETTER}+)*",
    regex.V1,
)
_SAYS_SOMETHING = regex.compile(rf"\p{{L}}.*\p{{L}}|[{_CHARACTERS}{_WITHOUT_SPACES}]", regex.V1)
_HAS_WORD = regex.compile(r"[\p{L}\p{N}]")
# Marks of Latin and most other scripts end a sentence before a space, those of Chinese, Japanese and
# Hindi always. Quotes and brackets that close behind a mark belong to the sentence.
_MARKS = regex.compile(
    r"(?P<mark>[.!?…‽؟۔]+|(?P<wide>[。！？｡।॥።။។]+))(?P<closing>[\"'”’»)\]*_]*)(?=(?P<space>\s|\Z)|)"
)
_ABBREVIATIONS = frozenset(
    (
        *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "inc", "ltd", "co", "corp", "vs"),
        *("etc", "e.g", "i.e", "a.m", "p.m", "u.s", "u.k", "no", "fig", "approx", "dept", "ph.d"),
        *("gen", "col", "capt", "lt", "sgt", "rev", "hon", "cf", "al"),
    )
)
# Before these a point is one of the abbreviation alone: "the U.S. is", but not "No. It is".
_NEVER_LAST = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "gen", "col", "capt", "lt", "sgt", "rev", "hon", "cf", "vs")
)
_TOKEN_BEFORE = re.compile(r"[^\s(\[\"“'‘*_]*\Z")
_LONGEST_TOKEN = 40
# "1." and "a." at the beginning of a line number a list.
_LIST_NUMBER = re.compile(r"(?:\A|\n)[ \t>*#_\-]*(?:\d{1,3}|[A-Za-z])\Z")
_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
# Apostrophes and hyphens that say the same in a word.
_ALIKE = ("'’ʼ", "-‐‑")
# What markdown puts before the text of a line.
_MARKUP = "#>*_-+ \t`"
# A text that stands in the prompt too is copied from this many words in a row on.
_COPIED = 6
# Of the words of a long answer one in so many has to be another, up to the most.
_WORDS_PER_DISTINCT = 8
_MOST_DISTINCT = 100
# From this share of keywords on a sentence is a bare list of them.
_BARE = 2 / 3


def words_of(text: str) -> list[str]:
    """The words of a text, in order.

    >>> words_of("Don't stop: 3.5 well-known cafés"), words_of("我爱 GRPO"), len(words_of("สวัสดีครับ"))
    (["Don't", 'stop', '3.5', 'well-known', 'cafés'], ['我', '爱', 'GRPO'], 3)
    """
    return _WORD.findall(text)


def folded_words(text: str) -> list[str]:
    """The words of a text, in order, all without case."""
    return [word.casefold() for word in words_of(text)]


def has_word(text: str) -> bool:
    """Whether there is a letter or a digit in a text."""
    return _HAS_WORD.search(text) is not None


@dataclass(frozen=True)
class Span:
    """A sentence: its text, and where it stands in the answer."""

    start: int
    end: int
    text: str


def sentence_spans(text: str) -> list[Span]:
    """The sentences of a text, with their marks. What has no word is none.

    >>> [each.text for each in sentence_spans('Dr. Tom has 3.5 kg. "Why?" he asked. So')]
    ['Dr. Tom has 3.5 kg.', '"Why?" he asked.', 'So']
    >>> [each.text for each in sentence_spans("我来了。你呢？")]
    ['我来了。', '你呢？']
    """
    spans: list[Span] = []
    start = 0
    # Where nothing is written large, a small letter says nothing.
    is_lower = text.islower()
    for mark in _MARKS.finditer(text):
        if _ends_sentence(text, mark, is_lower):
            _add_span(spans, text, start, mark.end())
            start = mark.end()
    _add_span(spans, text, start, len(text))
    return spans


def _add_span(spans: list[Span], text: str, start: int, end: int) -> None:
    sentence = text[start:end]
    if has_word(sentence):
        begin = start + len(sentence) - len(sentence.lstrip())
        spans.append(Span(begin, end, sentence.strip()))


def _ends_sentence(text: str, mark: regex.Match[str], is_lower: bool) -> bool:
    if mark["wide"]:
        return True
    if mark["space"] is None:
        return False
    following = text[mark.end() : mark.end() + 20].lstrip()[:1]
    goes_on = following.islower() and not is_lower
    # "Why?" he asked.
    if mark["closing"] and goes_on:
        return False
    if mark["mark"] != ".":
        return True
    before = text[max(0, mark.start() - _LONGEST_TOKEN) : mark.start()]
    if _LIST_NUMBER.search(before):
        return False
    found = _TOKEN_BEFORE.search(before)
    token = found[0].lower() if found else ""
    return not _is_abbreviation(token, following, goes_on)


def _is_abbreviation(token: str, following: str, goes_on: bool) -> bool:
    """Whether the full stop behind a word is a part of it. following: the first character behind the
    full stop. goes_on: whether that is a small letter, so that the sentence may go on.
    """
    if token in _NEVER_LAST or (goes_on and token in _ABBREVIATIONS):
        return True
    # J. Smith
    is_letter = len(token) == 1 and token.isalpha() and token != "i"
    return is_letter and bool(following)


@lru_cache(maxsize=512)
def _pattern_of(phrase: str) -> regex.Pattern[str]:
    phrase = unicodedata.normalize("NFC", phrase)
    parts = [_with_any_marks(part) for part in phrase.split()]
    # A letter next to it would make it part of another word, but not in scripts without spaces.
    before = rf"(?<!{_LETTER})" if regex.match(_LETTER, phrase, regex.V1) else ""
    after = rf"(?!{_LETTER})" if regex.search(rf"{_LETTER}\Z", phrase, regex.V1) else ""
    return regex.compile(before + r"\s+".join(parts) + after, regex.V1 | regex.IGNORECASE)


def _with_any_marks(word: str) -> str:
    """A pattern of a word, with the apostrophes and hyphens of a keyboard or of typography."""
    pattern = ""
    for character in word:
        alike = next((marks for marks in _ALIKE if character in marks), "")
        pattern += f"[{regex.escape(alike)}]" if alike else regex.escape(character)
    return pattern


def occurrences(phrase: str, text: str) -> int:
    """How often a word or phrase stands in a text, as whole words, without regard to case and to the
    form of apostrophes and hyphens.

    >>> occurrences("art", "Art, not an article: ART"), occurrences("C++", "I like c++."), occurrences("爱", "我爱你")
    (2, 1, 1)
    """
    return len(_pattern_of(phrase).findall(text))


@dataclass(frozen=True)
class Answer:
    """What a completion says, without its thinking.

    keywords: all that the row's constraints ask for.
    """

    text: str
    keywords: tuple[str, ...] = ()

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.text)

    @cached_property
    def folded_words(self) -> list[str]:
        """Without case."""
        return [word.casefold() for word in self.words]

    @cached_property
    def spans(self) -> list[Span]:
        return sentence_spans(self.text)

    @cached_property
    def sentences(self) -> list[str]:
        return [span.text for span in self.spans]

    @cached_property
    def paragraphs(self) -> list[str]:
        """Between blank lines."""
        return [each.strip() for each in _PARAGRAPH.split(self.text) if has_word(each)]

    @cached_property
    def lines(self) -> list[str]:
        """Those that are not blank, with their indents."""
        return [line for line in self.text.splitlines() if line.strip()]

    @cached_property
    def prose(self) -> str:
        """The text without bare lists of the keywords, such as "Keywords: bank, river" at its end.

        A keyword alone in a line may be a heading or the item of a list. Several lines of nothing
        else at the end are a bare list too.
        """
        kept = self.text.splitlines()
        trailing = 0
        while trailing < len(kept) and self._is_bare(kept[-1 - trailing], least=1):
            trailing += 1
        if trailing > 1:
            kept = kept[:-trailing]
        lines = []
        for line in kept:
            parts = re.split(r"(?<=[.!?;])\s+", line)
            lines.append(" ".join(part for part in parts if not self._is_bare(part, least=2)))
        return "\n".join(lines)

    def _is_bare(self, text: str, least: int) -> bool:
        """Whether a text is nothing but keywords, at least so many."""
        if not self.keywords or not has_word(text):
            return False
        count = 0
        covered = 0
        for keyword in self.keywords:
            found = occurrences(keyword, text)
            count += found
            covered += found * len(words_of(keyword))
        return count >= least and covered > _BARE * len(words_of(text))


def without_markup(text: str) -> str:
    """A line without what markdown puts before and behind its text.

    >>> without_markup("## *Section 1*")
    'Section 1'
    """
    return text.strip().lstrip(_MARKUP).rstrip("*_` \t")


def distinct_own_words(answer: Answer, prompt: str) -> tuple[int, int]:
    """How many different words an answer has, and how many of them are its own: not in a passage of
    six words that the prompt has too, or in the whole prompt where that is shorter. Numbers and
    single letters are none.

    >>> distinct_own_words(Answer("Write a poem. Roses are red."), "Write a poem.")
    (5, 3)
    """
    words = answer.folded_words
    different = {word for word in {*words} if _SAYS_SOMETHING.search(word)}
    prompt_words = folded_words(prompt)
    length = min(_COPIED, len(prompt_words))
    if not length:
        return len(different), len(different)

    own = [True] * len(words)
    passages = set(_passages(prompt_words, length))
    for start, passage in enumerate(_passages(words, length)):
        if passage in passages:
            own[start : start + length] = [False] * length
    of_answer = {word for word, is_own in zip(words, own, strict=True) if is_own}
    return len(different), len(different & of_answer)


def _passages(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def enough_words(answer: Answer, least: int) -> int:
    """How many different words an answer of this length needs: at least `least`, and more where it
    is long, so that a few words again and again are not enough.
    """
    return max(least, min(len(answer.words) // _WORDS_PER_DISTINCT, _MOST_DISTINCT))
