"""The 25 constraints of IFEval (arXiv 2311.07911), each as its wording says.

Where Google's check and its wording differ, the wording counts; `docs/rewards/instructions.md` lists
where they do. The names of arguments are the dataset's.
"""

import os
import re

import regex

from swift_rlvr.verifiers.instructions.answer import (
    Answer,
    folded_words,
    has_word,
    occurrences,
    without_markup,
    words_of,
)
from swift_rlvr.verifiers.instructions.constraint import (
    BadConstraint,
    Outcome,
    Relation,
    constraint,
)
from swift_rlvr.verifiers.instructions.spoken import is_in, language_code
from swift_rlvr.verifiers.json_values import NotJson, read_json

# In IFEval the options stand in the prompt alone.
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
# What may stand beside an option that takes another one back.
_SMALL_WORDS = frozenset(
    ("actually", "or", "rather", "well", "wait", "sorry", "but", "hmm", "also", "and", "then")
    + ("i", "mean", "it", "is", "it's")
)
# An item's text begins behind a space, and may be bold; `---` and `* * *` are rules.
_BULLET = re.compile(r"^[ \t]*[*-][ \t]++(?=[*\-_ \t]*[^*\-_\s])", re.MULTILINE)
_HIGHLIGHT = re.compile(r"(\*{1,3})(?=[^\s*])([^\n*]+)(?<=[^\s*])\1(?!\*)")
# In brackets, and not the text of a link.
_PLACEHOLDER = re.compile(r"\[([^\[\]\n]{2,200})\](?!\()")
_TWO_LETTERS = re.compile(r"[^\W\d_].*[^\W\d_]")
_MARKUP_IN_WORD = re.compile(r"(?<=[^\W_])[*_~]+(?=[^\W_])")
_TITLE = re.compile(r"<<([^<>\n]+)>>")
_DIVIDER = re.compile(r"(?<!\S)(?:\*\*\*|\* \* \*)(?!\S)")
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n?(.*?)\n?```\Z", re.DOTALL | re.IGNORECASE)
# "‚" opens quotes in German, where a letter follows.
_COMMAS = re.compile(r"[,，،﹐︐՝߸፣᠂᠈⸲⸴⹁⹌ꓹ꘍꛵]|(?<=\w)‚|‚(?=\s|\Z)")
_IDEOGRAPHIC_COMMAS = re.compile("[、﹑︑､]")
# Thai and Lao end no sentence with a mark.
_WITHOUT_MARKS = regex.compile(r"[\p{Script=Thai}\p{Script=Lao}]")
_MOST_WITHOUT_MARKS = 0.2
_KANA = regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}]")
_HAN = regex.compile(r"\p{Script=Han}")
_QUOTES = ('"', "“", "”", "„", "«", "»")
_OF_A_KEYBOARD = str.maketrans("“”„’‘ʼ‐‑", "\"\"\"'''--")
_AT_THE_END = "\"'”’*_ \t\n"
_SECTION_NUMBER = r"\s*(\d+|[IVXLC]+\b|[A-Z]\b)"


# --- Keywords


@constraint("keywords:existence")
def existence(answer: Answer, keywords: tuple[str, ...]) -> Outcome:
    missing = []
    only_listed = []
    for keyword in keywords:
        if _is_mentioned(keyword, answer.prose):
            continue
        missing.append(keyword)
        if _is_mentioned(keyword, answer.text):
            only_listed.append(keyword)
    if only_listed:
        return Outcome(False, f"stand in a bare list of keywords alone: {', '.join(only_listed)}")
    if missing:
        return Outcome(False, f"missing: {', '.join(missing)}")
    return Outcome(True, "all keywords are there")


def _is_mentioned(keyword: str, text: str) -> bool:
    """Whether a keyword is in a text, also in the plural."""
    return any(occurrences(form, text) for form in (keyword, f"{keyword}s", f"{keyword}es"))


@constraint("keywords:frequency")
def frequency(answer: Answer, keyword: str, frequency: int, relation: Relation) -> Outcome:
    least, _ = relation.bounds(frequency)
    # Where many are asked for, a bare list of them does not count; where few are, it does.
    text = answer.prose if least > 1 else answer.text
    return relation.outcome(occurrences(keyword, text), frequency, f"{keyword!r}")


@constraint("keywords:forbidden_words")
def forbidden_words(answer: Answer, forbidden_words: tuple[str, ...]) -> Outcome:
    # Markup within a word hides none: wa**te**r, w_a_t_e_r.
    plain = _MARKUP_IN_WORD.sub("", answer.text)
    present = []
    for word in forbidden_words:
        if occurrences(word, answer.text) or occurrences(word, plain):
            present.append(word)
    return Outcome(not present, f"present: {', '.join(present)}" if present else "none is there")


@constraint("keywords:letter_frequency")
def letter_frequency(
    answer: Answer, letter: str, let_frequency: int, let_relation: Relation
) -> Outcome:
    if len(letter) != 1:
        raise BadConstraint(
            f"keywords:letter_frequency: 'letter' must be one character, got {letter!r}"
        )
    count = answer.text.lower().count(letter.lower())
    return let_relation.outcome(count, let_frequency, f"the letter {letter}")


# --- Language and case


@constraint("language:response_language")
def response_language(answer: Answer, language: str) -> Outcome:
    code = language_code(language)
    if code is None:
        raise BadConstraint(
            f"language:response_language: the language {language!r} is not known here"
        )
    return Outcome(*is_in(answer.text, code))


def _in_english(answer: Answer) -> Outcome | None:
    """The failure of an answer that is in another language. A few words may be in any."""
    spoken = is_in(answer.text.lower(), "en")
    return Outcome(False, spoken.detail) if spoken.passed is False else None


@constraint("change_case:english_capital")
def english_capital(answer: Answer) -> Outcome:
    lower = [word for word in answer.words if word != word.upper()]
    if lower:
        return Outcome(False, f"not in capitals: {', '.join(lower[:3])}")
    return _in_english(answer) or Outcome(answer.text.isupper(), "all letters are capitals")


@constraint("change_case:english_lowercase")
def english_lowercase(answer: Answer) -> Outcome:
    upper = [word for word in answer.words if word != word.lower()]
    if upper:
        return Outcome(False, f"with a capital letter: {', '.join(upper[:3])}")
    return _in_english(answer) or Outcome(answer.text.islower(), "no letter is a capital")


@constraint("change_case:capital_word_frequency")
def capital_word_frequency(
    answer: Answer, capital_frequency: int, capital_relation: Relation
) -> Outcome:
    count = sum(1 for word in answer.words if word.isupper())
    return capital_relation.outcome(count, capital_frequency, "words in capitals")


# --- Length


@constraint("length_constraints:number_words")
def number_words(answer: Answer, num_words: int, relation: Relation) -> Outcome:
    return relation.outcome(len(answer.words), num_words, "words")


@constraint("length_constraints:number_sentences")
def number_sentences(answer: Answer, num_sentences: int, relation: Relation) -> Outcome:
    if len(_WITHOUT_MARKS.findall(answer.text)) > _MOST_WITHOUT_MARKS * len(answer.text):
        return Outcome(None, "where a sentence of Thai or Lao ends, no mark says")
    return relation.outcome(len(answer.sentences), num_sentences, "sentences")


@constraint("length_constraints:number_paragraphs")
def number_paragraphs(answer: Answer, num_paragraphs: int) -> Outcome:
    paragraphs = _between(_DIVIDER.split(answer.text))
    if not all(map(has_word, paragraphs)):
        return Outcome(False, "a paragraph between two *** is empty")
    count = len(paragraphs)
    return Relation.EXACTLY.outcome(count, num_paragraphs, "paragraphs divided by ***")


def _between(parts: list[str]) -> list[str]:
    """What dividers part, of a text that is split at them. One may stand before the first part and one
    behind the last.
    """
    start = 0 if parts[0].strip() else 1
    end = len(parts) if parts[-1].strip() else len(parts) - 1
    return parts[start:end]


@constraint("length_constraints:nth_paragraph_first_word")
def nth_paragraph_first_word(
    answer: Answer, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> Outcome:
    if not 1 <= nth_paragraph <= num_paragraphs:
        raise BadConstraint(
            "length_constraints:nth_paragraph_first_word: 'nth_paragraph' must be from 1 to "
            f"{num_paragraphs}, got {nth_paragraph}"
        )
    count = len(answer.paragraphs)
    if count != num_paragraphs:
        return Relation.EXACTLY.outcome(count, num_paragraphs, "paragraphs between blank lines")
    paragraph = without_markup(answer.paragraphs[nth_paragraph - 1]).lstrip("\"'“‘")
    words = words_of(paragraph)
    expected = words_of(first_word.casefold())
    first = [word.casefold() for word in words[: len(expected)]]
    passed = first == expected
    return Outcome(passed, f"paragraph {nth_paragraph} starts with {' '.join(words[:1])!r}")


# --- Content


@constraint("detectable_content:number_placeholders")
def number_placeholders(answer: Answer, num_placeholders: int) -> Outcome:
    # [1] is a note, and [x] a box.
    count = sum(1 for text in _PLACEHOLDER.findall(answer.text) if _TWO_LETTERS.search(text))
    return Relation.AT_LEAST.outcome(count, num_placeholders, "placeholders")


@constraint("detectable_content:postscript")
def postscript(answer: Answer, postscript_marker: str) -> Outcome:
    # "P. S." for "P.S."
    letters = [re.escape(part) for part in re.findall(r"[^.\s]+\.?", postscript_marker)]
    marker = re.compile(
        r"(?:\A|\n[ \t>*#_\-]*|[.!?。！？][\"'”’)*_]*\s+[*_]{0,3})("
        + r"\s?".join(letters)
        + r"\.?)",
        re.IGNORECASE,
    )
    *_, found = [None, *marker.finditer(answer.text)]
    if found is None:
        return Outcome(False, f"no postscript that starts with {postscript_marker!r}")
    text = answer.text[found.end() :]
    if not has_word(text):
        return Outcome(False, "the postscript is empty")
    if not has_word(answer.text[: found.start(1)]):
        return Outcome(False, "nothing stands before the postscript")
    return Outcome(True, f"a postscript of {len(words_of(text))} words")


# --- Format


@constraint("detectable_format:number_bullet_lists")
def number_bullet_lists(answer: Answer, num_bullets: int) -> Outcome:
    count = len(_BULLET.findall(answer.text))
    return Relation.EXACTLY.outcome(count, num_bullets, "bullet points")


@constraint("detectable_format:constrained_response", brief=True)
def constrained_response(answer: Answer, options: tuple[str, ...] = _OPTIONS) -> Outcome:
    text = answer.text
    chosen: list[str] = []
    folded = {option.casefold() for option in options}
    # Of "yes" and "yes, certainly" the longer one is looked for first.
    for option in sorted(set(options), key=len, reverse=True):
        pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, option.split())) + r"(?!\w)"
        # "A" is no article, and the case of single words may be what tells two apart.
        is_phrase = len(option.split()) > 1 and len(folded) == len({*options})
        found = re.compile(pattern, re.IGNORECASE if is_phrase else 0)
        if found.search(text):
            chosen.append(option)
            text = found.sub(" ", text)
    if chosen:
        chosen += [each for each in _taken_back(text, options) if each not in chosen]
    if len(chosen) == 1:
        return Outcome(True, f"the answer is {chosen[0]!r}")
    return Outcome(False, f"options in the answer: {', '.join(map(repr, chosen)) or 'none'}")


def _taken_back(text: str, options: tuple[str, ...]) -> list[str]:
    """The options of which a sentence says what tells them from the others: "Actually no." where they
    are "My answer is yes." and "My answer is no.".
    """
    written = {option: folded_words(option) for option in options}
    common = len(os.path.commonprefix([*written.values()]))
    if not common or len(options) < 2:
        return []
    said = []
    for sentence in re.split(r"[.!?;:\n]", text):
        said.append([word for word in folded_words(sentence) if word not in _SMALL_WORDS])
    return [option for option, words in written.items() if words[common:] in said]


@constraint("detectable_format:number_highlighted_sections")
def number_highlighted_sections(answer: Answer, num_highlights: int) -> Outcome:
    count = sum(1 for match in _HIGHLIGHT.finditer(answer.text) if has_word(match[2]))
    return Relation.AT_LEAST.outcome(count, num_highlights, "highlighted sections")


@constraint("detectable_format:multiple_sections")
def multiple_sections(answer: Answer, section_spliter: str, num_sections: int) -> Outcome:
    heading = re.compile(
        r"\s+".join(map(re.escape, section_spliter.split())) + _SECTION_NUMBER, re.IGNORECASE
    )
    sections: dict[str, bool] = {}  # whether there is a text, by the number
    number = ""
    for line in answer.lines:
        match = heading.match(without_markup(line))
        if match:
            number = match[1]
            sections.setdefault(number, has_word(without_markup(line)[match.end() :]))
        elif number:
            sections[number] |= has_word(line)
    count = sum(sections.values())
    return Relation.AT_LEAST.outcome(
        count, num_sections, f"sections with a text, {section_spliter} X"
    )


@constraint("detectable_format:json_format")
def json_format(answer: Answer) -> Outcome:
    text = answer.text.strip()
    fenced = _FENCE.match(text)
    try:
        value = read_json(fenced[1] if fenced else text)
    except NotJson as error:
        return Outcome(False, f"not JSON: {error}")
    # A text in quotes is JSON too, but wraps nothing.
    passed = isinstance(value, (dict, list)) and bool(value)
    return Outcome(passed, f"a JSON {type(value).__name__} of the whole answer")


@constraint("detectable_format:title")
def title(answer: Answer) -> Outcome:
    titles = [found for found in _TITLE.findall(answer.text) if has_word(found)]
    return Outcome(bool(titles), f"title: {titles[0]!r}" if titles else "no <<title>>")


# --- Combinations


def _without_typography(text: str) -> str:
    """A text on one line, without case, and with the quotes, apostrophes and hyphens of a keyboard."""
    return " ".join(text.split()).casefold().translate(_OF_A_KEYBOARD)


@constraint("combination:two_responses")
def two_responses(answer: Answer) -> Outcome:
    responses = _between(re.split(r"(?<!\*)\*{6}(?!\*)", answer.text))
    if len(responses) != 2 or not all(map(has_word, responses)):
        return Outcome(False, f"responses divided by ******: {len(responses)}, asked exactly 2")
    first, second = map(folded_words, responses)
    return Outcome(first != second, "the two differ" if first != second else "the two are the same")


@constraint("combination:repeat_prompt")
def repeat_prompt(answer: Answer, prompt_to_repeat: str) -> Outcome:
    expected = _without_typography(prompt_to_repeat)
    text = _without_typography(answer.text)
    if not text.startswith(expected):
        return Outcome(False, "it does not begin with the request, word for word")
    has_answer = has_word(text[len(expected) :])
    return Outcome(has_answer, "the request, and an answer" if has_answer else "no answer follows")


# --- Beginning and end


@constraint("startend:end_checker")
def end_checker(answer: Answer, end_phrase: str) -> Outcome:
    expected = _without_typography(end_phrase)
    text = _without_typography(answer.text)
    passed = text.endswith(expected) or text.rstrip(_AT_THE_END).endswith(
        expected.rstrip(_AT_THE_END)
    )
    return Outcome(passed, f"it ends with {answer.text.strip()[-40:]!r}")


@constraint("startend:quotation")
def quotation(answer: Answer) -> Outcome:
    text = answer.text.strip()
    passed = len(text) > 2 and text[0] in _QUOTES and text[-1] in _QUOTES
    return Outcome(passed, f"from {text[:1]!r} to {text[-1:]!r}")


# --- Punctuation


@constraint("punctuation:no_comma")
def no_comma(answer: Answer) -> Outcome:
    count = len(_COMMAS.findall(answer.text))
    # In Chinese it divides the items of a list, and is no comma.
    if _KANA.search(answer.text) or not _HAN.search(answer.text):
        count += len(_IDEOGRAPHIC_COMMAS.findall(answer.text))
    return Outcome(count == 0, f"commas: {count}")
