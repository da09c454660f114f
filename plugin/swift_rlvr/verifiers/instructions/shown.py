"""What a reader sees of an answer: without what is not shown, and with one letter for what looks alike.

A policy that is paid for a keyword may write it into a comment of HTML, and one that must not write a
word may put a character into it that nobody sees. Code is left as it is.
"""

import html
import unicodedata

import regex

_CODE = regex.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", regex.DOTALL)
# An unclosed comment hides what follows it.
_COMMENT = regex.compile(r"<!--.*?(?:-->|\Z)", regex.DOTALL)
_HIDDEN = regex.compile(
    r"<(?P<tag>\w+)\b[^<>]*(?:display\s*:\s*none|visibility\s*:\s*hidden|\shidden\b)[^<>]*>"
    r".*?(?:</(?P=tag)\s*>|\Z)",
    regex.DOTALL | regex.IGNORECASE,
)
# A tag with attributes, of which a text may be one.
_WITH_ATTRIBUTES = regex.compile(r"<[a-z][a-z0-9]*\s+[a-z-]+\s*=[^<>]*>", regex.IGNORECASE)
# Markdown's definition of a link, [name]: address (title), shows nothing.
_LINK = regex.compile(
    r"^ {0,3}\[[^\]\n]+\]:[ \t]*(?:#|<>|https?:\S*)(?:[ \t].*)?$", regex.MULTILINE
)
_ENTITY = regex.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
# What Unicode calls ignorable, but for what joins and varies the signs of scripts and emojis.
_INVISIBLE = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}--[\u200c\u200d\ufe0e\ufe0f]]", regex.V1
)
_JOINERS = regex.compile(r"(?<=\p{Script=Latin})[\u200c\u200d]+(?=\p{Script=Latin})")
# Letters and digits of other widths, and those of formulas, stand for the usual ones.
_STYLED = regex.compile(r"[０-９Ａ-Ｚａ-ｚ\U0001d400-\U0001d7ff]")
_WORD = regex.compile(r"[\p{L}\p{M}]+")
_IS_LATIN = regex.compile(r"\p{Script=Latin}")
_LOOKS_LATIN = regex.compile(r"[\p{Script=Cyrillic}\p{Script=Greek}]")
_ALIKE = str.maketrans(
    "аеорсухіјѕԁһӏԛԝАВЕКМНОРСТУХІЈЅοανυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhlqwABEKMHOPCTYXIJSoavuABEZHIKMNOPTYX",
)


def as_shown(text: str) -> str:
    """An answer as a reader sees it.

    >>> as_shown("A river. <!-- volcano --> It is w\\u200bet, &#44; and `<!-- code -->` stays.")
    'A river.  It is wet, , and `<!-- code -->` stays.'
    """
    if text.lstrip().startswith(("{", "[{")):  # JSON shows all of itself
        return _with_usual_letters(text)
    parts = _CODE.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _without_hidden(parts[place])
    return _with_usual_letters("".join(parts))


def _without_hidden(text: str) -> str:
    if "<" in text:
        for pattern in (_COMMENT, _HIDDEN, _WITH_ATTRIBUTES):
            text = pattern.sub("", text)
    if "]:" in text:
        text = _LINK.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text


def _with_usual_letters(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _JOINERS.sub("", _INVISIBLE.sub("", text)))
    text = _STYLED.sub(lambda letter: unicodedata.normalize("NFKC", letter[0]), text)
    if _LOOKS_LATIN.search(text):
        text = _WORD.sub(_of_one_script, text)
    return text


def _of_one_script(word: regex.Match[str]) -> str:
    """A word of Latin letters and some that look like them, in Latin letters alone."""
    is_mixed = _IS_LATIN.search(word[0]) and _LOOKS_LATIN.search(word[0])
    return word[0].translate(_ALIKE) if is_mixed else word[0]
