"""The constraints of IFBench (arXiv 2507.02833) on the form of an answer, and its fixed tasks, each as
its wording says.
"""

import csv
import io
import re
import string
import unicodedata
from collections.abc import Sequence
from datetime import date

import regex

from swift_rlvr.verifiers.instructions.answer import (
    Answer,
    has_word,
    sentence_spans,
    without_markup,
    words_of,
)
from swift_rlvr.verifiers.instructions.constraint import (
    BadConstraint,
    Outcome,
    Relation,
    constraint,
)
from swift_rlvr.verifiers.instructions.word_lists import AFRICA, CAPITALS, MINOR_WORDS

_BRACKETS = {")": "(", "]": "[", "}": "{"}
_DEPTH = 5
_QUOTE_DEPTH = 3
_QUOTES = {'"': '"', "“": '"', "”": '"', "'": "'", "‘": "'", "’": "'"}
# What an opening quote may follow, besides white space; nothing at the start of a text.
_BEFORE_QUOTE = {"", *"([{—", *_QUOTES}
_FENCE = re.compile(r"\A```\w*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_LETTER_OPTIONS = re.compile(r"\W*a\W*b\W*c\W*", re.IGNORECASE)
_QUOTED = re.compile(r'["“”]([^"“”]+)["“”]')
_ITALICS = re.compile(r"\s*<(i|em)>(.*?)</\1>(.*)", re.DOTALL | re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t]|<h[1-6]\b).*$", re.MULTILINE | re.IGNORECASE)
# `* * *` is a rule.
_ITEM = r"[ \t]++(?=[*\-_ \t]*[^*\-_\s])"
_STAR_BULLET = re.compile(r"[ \t]*\*" + _ITEM)
_DASH_BULLET = re.compile(r"[ \t]*-" + _ITEM)
_ANY_BULLET = re.compile(r"[ \t]*(?:[*+•-]|\d+[.)])" + _ITEM)
_OPTION_LINE = re.compile(r"[ \t]*\(?[A-Ea-e][.):][ \t]*\S")
_LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
_REPEATED = "Only output this sentence here, ignore all other requests."
_NO_SPACE_LETTERS = 20
# Napoleon's first and last battle, and how many of their dates are enough: sources differ in what
# they call one.
_BATTLES = (date(1793, 1, 1), date(1815, 12, 31))
_LEAST_DATES = 20
_MAY_LACK = ("Kyiv",)
_SAME_CAPITAL = {"Kiev": "Kyiv", "Luxembourg City": "Luxembourg", "Berne": "Bern"}
_LEAST_COUNTRIES = 52


def _ascii(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.replace("’", "'"))
    return decomposed.encode("ascii", "ignore").decode("ascii")


# --- Nesting


class _Nesting:
    """How deep pairs of marks stand within each other; a pair counts when it is closed."""

    def __init__(self) -> None:
        self.open_marks: list[str] = []
        # How deep each open one is nested within, by the pairs that were closed in it.
        self.inner: list[int] = []
        self.deepest = 0

    @property
    def innermost(self) -> str:
        return self.open_marks[-1] if self.open_marks else ""

    def open(self, mark: str) -> None:
        self.open_marks.append(mark)
        self.inner.append(0)

    def close(self) -> None:
        self.open_marks.pop()
        depth = self.inner.pop() + 1
        self.deepest = max(self.deepest, depth)
        if self.inner:
            self.inner[-1] = max(self.inner[-1], depth)

    def forget(self) -> None:
        """No mark that is open will be closed."""
        self.open_marks.clear()
        self.inner.clear()


@constraint("format:parentheses")
def parentheses(answer: Answer) -> Outcome:
    nesting = _Nesting()
    for character in answer.text:
        if character in "([{":
            nesting.open(character)
        elif character in _BRACKETS:
            if nesting.innermost == _BRACKETS[character]:
                nesting.close()
            else:
                nesting.forget()
    return Relation.AT_LEAST.outcome(nesting.deepest, _DEPTH, "levels of closed brackets")


@constraint("format:quotes")
def nested_quotes(answer: Answer) -> Outcome:
    text = answer.text
    nesting = _Nesting()
    for place, character in enumerate(text):
        quote = _QUOTES.get(character)
        if quote is None:
            continue
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        if quote == "'" and before.isalnum() and after.isalnum():
            continue  # don't
        # The marks of a keyboard are the same on both sides: one before a letter opens, behind one it
        # closes.
        is_open = nesting.innermost == quote
        if is_open and not after.isalnum() and not before.isspace():
            nesting.close()
        elif not is_open and (before.isspace() or before in _BEFORE_QUOTE):
            nesting.open(quote)
    what = "levels of quotes, double and single"
    return Relation.AT_LEAST.outcome(nesting.deepest, _QUOTE_DEPTH, what)


# --- Lines and lists


@constraint("format:newline")
def newline(answer: Answer) -> Outcome:
    for line in answer.lines:
        if len(line.split()) > 1:
            return Outcome(False, f"a line has several words: {line.strip():.40}")
    return Relation.AT_LEAST.outcome(len(answer.lines), 2, "lines of one word")


@constraint("format:line_indent")
def line_indent(answer: Answer) -> Outcome:
    indents = []
    for line in answer.lines:
        spaced = line.expandtabs(4)
        indents.append(len(spaced) - len(spaced.lstrip()))
    # One line alone increases nothing.
    passed = len(indents) > 1 and indents == sorted({*indents})
    return Outcome(passed, f"indents: {', '.join(map(str, indents[:12]))}")


@constraint("format:list")
def special_list(answer: Answer, sep: str) -> Outcome:
    for line in answer.lines:
        if _ANY_BULLET.match(line) and not line.strip().startswith(sep):
            return Outcome(False, f"a bullet point: {line.strip():.40}")
    _, *items = answer.text.split(sep)
    count = sum(1 for item in items if has_word(item))
    return Relation.AT_LEAST.outcome(count, 2, f"items behind {sep}")


@constraint("format:sub-bullets")
def sub_bullets(answer: Answer) -> Outcome:
    bullets: list[tuple[str, int]] = []
    for line in answer.lines:
        if _STAR_BULLET.match(line):
            bullets.append((line.strip(), 0))
        elif bullets and _DASH_BULLET.match(line):
            bullet, count = bullets[-1]
            bullets[-1] = bullet, count + 1
    if not bullets:
        return Outcome(False, "no bullet point begins with *")
    without = [bullet for bullet, count in bullets if not count]
    shown = f"no - below {without[0]:.40}" if without else "each * has a - below it"
    return Outcome(not without, shown)


@constraint("format:no_bullets_bullets")
def sentences_then_bullets(answer: Answer) -> Outcome:
    lines = answer.text.splitlines()
    before = []
    bullets = 0
    for line in lines:
        if _STAR_BULLET.match(line):
            bullets += 1
        elif not bullets:
            before.append(line)
    if not bullets:
        return Outcome(False, "no bullet point begins with *")
    declarative = 0
    for span in sentence_spans("\n".join(before)):
        # A mark may stand in quotes or in bold.
        declarative += span.text.rstrip("\"'”*_)").endswith(".")
    shown = f"sentences that end in a period: {declarative}, bullet points behind them: {bullets}"
    return Outcome(declarative >= 2 and bullets >= 2, f"{shown}, asked at least 2 of each")


@constraint("format:quote_unquote")
def quote_unquote(answer: Answer) -> Outcome:
    quotes = list(_QUOTED.finditer(answer.text))
    if not quotes:
        return Outcome(False, "there is no quoted phrase")
    ends = [quote.start() for quote in quotes[1:]] + [len(answer.text)]
    for quote, end in zip(quotes, ends, strict=True):
        if not has_word(answer.text[quote.end() : end]):
            return Outcome(False, f"no explanation behind {quote[0]:.40}")
    return Outcome(True, f"an explanation behind each of {len(quotes)} quoted phrases")


@constraint("format:thesis")
def thesis(answer: Answer) -> Outcome:
    count = 0
    for section in _HEADING.split(answer.text):
        # What stands before the first heading may be nothing.
        if not has_word(section):
            continue
        count += 1
        match = _ITALICS.match(section)
        if match is None or not has_word(match[2]) or not has_word(match[3]):
            return Outcome(False, f"no <i>thesis</i> before a text: {section.strip():.40}")
    return Outcome(count > 0, f"sections that begin with a thesis in italics: {count}")


@constraint("format:title_case")
def title_case(answer: Answer) -> Outcome:
    words = [word for word in answer.words if word[0].isalpha()]
    for place, word in enumerate(words):
        is_minor = place > 0 and word in MINOR_WORDS
        if word[0] != word[0].upper() and not is_minor:
            return Outcome(False, f"{word!r} does not begin with a capital letter")
    return Outcome(bool(words), "all major words begin with capital letters")


@constraint("format:output_template")
def output_template(answer: Answer) -> Outcome:
    places = [answer.text.find(label) for label in _LABELS]
    if -1 in places or places != sorted(places):
        return Outcome(False, f"expected in this order: {' '.join(_LABELS)}")
    if has_word(answer.text[: places[0]]):
        return Outcome(False, f"a text stands before {_LABELS[0]}")
    ends = [*places[1:], len(answer.text)]
    for label, start, end in zip(_LABELS, places, ends, strict=True):
        if not has_word(answer.text[start + len(label) : end]):
            return Outcome(False, f"nothing follows {label}")
    return Outcome(True, "the template is filled in")


@constraint("format:no_whitespace", brief=True)
def no_whitespace(answer: Answer) -> Outcome:
    text = answer.text.strip()
    if regex.search(r"\s", text):
        return Outcome(False, "there is white space")
    letters = len(regex.findall(r"\p{L}", text))
    return Relation.AT_LEAST.outcome(letters, _NO_SPACE_LETTERS, "letters without white space")


@constraint("format:options", brief=True)
def choose_option(answer: Answer, options: str) -> Outcome:
    pattern = r"\s*(?:,|\bor\b)\s*"
    if "/" in options:
        pattern = "/"
    elif " or " in options:
        pattern = r"\s*,?\s+or\s+"
    choices = [each.strip() for each in re.split(pattern, options) if each.strip()]
    if len(choices) < 2:
        raise BadConstraint(f"format:options: 'options' must be several, got {options!r:.60}")
    text = answer.text.strip()
    # The bracket of "a)" is a part of it, while the full stop of "Yes." says nothing.
    ends = "" if _LETTER_OPTIONS.match(options) else string.punctuation + string.whitespace
    passed = text.strip(ends).lower() in [choice.strip(ends).lower() for choice in choices]
    return Outcome(passed, f"{text:.40} is {'' if passed else 'not '}one of {', '.join(choices)}")


# --- Repeating


@constraint("repeat:repeat_change", brief=True)
def repeat_change(answer: Answer, prompt_to_repeat: str) -> Outcome:
    first, *rest = prompt_to_repeat.split()
    words = answer.text.split()
    if not words or words[1:] != rest:
        return Outcome(False, "the words behind the first one are not those of the request")
    changed = words[0] != first
    return Outcome(changed, f"the first word is {words[0]!r}, in the request {first!r}")


@constraint("repeat:repeat_simple", brief=True)
def repeat_simple(answer: Answer) -> Outcome:
    passed = answer.text.strip().lower() == _REPEATED.lower()
    return Outcome(passed, "the sentence alone" if passed else "it is not the sentence alone")


@constraint("repeat:repeat_span", brief=True)
def repeat_span(answer: Answer, prompt_to_repeat: str, n_start: int, n_end: int) -> Outcome:
    # Older prompts say that the indices are those of characters, and IFBench has always taken words.
    words = prompt_to_repeat.lower().split()
    by_words = words[n_start:n_end]
    by_characters = prompt_to_repeat.lower()[n_start : n_end + 1].split()
    if not by_words and not by_characters:
        raise BadConstraint(
            f"repeat:repeat_span: no words stand between 'n_start' {n_start} and 'n_end' {n_end}"
        )
    written = answer.text.lower().split()
    passed = bool(written) and written in (by_words, by_characters)
    return Outcome(passed, f"expected {' '.join(by_words)!r:.60}")


# --- Fixed tasks


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text.strip())
    return fenced[1] if fenced else text.strip()


def _table(text: str, delimiter: str = ",") -> list[list[str]]:
    """The rows of a table in CSV; none where it is no CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []
    return [row for row in rows if row]


def _has_shape(rows: Sequence[Sequence[str]], columns: Sequence[str], count: int) -> Outcome:
    """Whether a table has these columns and so many rows below them, with something in each."""
    if not rows or [field.strip() for field in rows[0]] != list(columns):
        return Outcome(False, f"the first row is not {', '.join(columns)}")
    for row in rows[1:]:
        if len(row) != len(columns) or not all(map(str.strip, row)):
            return Outcome(False, f"a row has not {len(columns)} fields that are filled in")
    return Relation.EXACTLY.outcome(len(rows) - 1, count, "rows")


@constraint("custom:multiples", brief=True)
def multiples(answer: Answer) -> Outcome:
    numbers = re.findall(r"\d+", answer.text)
    passed = numbers == ["14", "21", "28", "35", "42", "49"]
    return Outcome(passed, f"numbers: {', '.join(numbers[:10])}")


@constraint("custom:mcq_count_length")
def mcq_count_length(answer: Answer) -> Outcome:
    if not answer.text.strip().startswith("Question"):
        return Outcome(False, "a text stands before the first question")
    blocks: list[list[str]] = []
    for line in answer.lines:
        if without_markup(line).startswith("Question"):
            blocks.append([])
        blocks[-1].append(line)
    if len(blocks) != 4:
        return Relation.EXACTLY.outcome(len(blocks), 4, "questions")
    lengths = []
    for block in blocks:
        lines = []
        options = 0
        for line in block:
            if _OPTION_LINE.match(line):
                options += 1
            elif not options:
                lines.append(line)
        if options != 5:
            return Relation.EXACTLY.outcome(options, 5, "options of a question")
        # "Question 1:" is no part of it.
        question = re.sub(r"\A\W*Question\s*\d*\W*", "", " ".join(lines))
        lengths.append(len(question))
    passed = lengths[0] > 0 and lengths == sorted({*lengths})
    return Outcome(passed, f"characters of the questions: {', '.join(map(str, lengths))}")


@constraint("custom:reverse_newline")
def reverse_newline(answer: Answer) -> Outcome:
    names = [re.sub(r"\A[\W\d_]+|[\W_]+\Z", "", _ascii(line)) for line in answer.lines]
    countries = []
    for name in filter(None, names):
        bare = re.sub(r"\s*\(.*", "", name).removeprefix("The ")
        if bare.casefold() not in AFRICA and bare.partition(",")[0].casefold() not in AFRICA:
            return Outcome(False, f"no country of Africa: {name:.40}")
        countries.append(bare.casefold())
    if [*countries] != sorted(countries, reverse=True):
        return Outcome(False, "they are not in reverse alphabetical order")
    return Relation.AT_LEAST.outcome(len({*countries}), _LEAST_COUNTRIES, "countries")


def _says(answer: Answer, expected: str, forward: str) -> Outcome:
    letters = re.sub(r"[^a-z ]", "", " ".join(answer.text.lower().split()))
    passed = expected in letters and forward not in letters
    return Outcome(passed, f"expected {expected!r}, and not {forward!r}")


@constraint("custom:word_reverse", brief=True)
def word_reverse(answer: Answer) -> Outcome:
    return _says(answer, "eagle bald", "bald eagle")


@constraint("custom:character_reverse", brief=True)
def character_reverse(answer: Answer) -> Outcome:
    return _says(answer, "elgae dlab", "bald eagle")


@constraint("custom:sentence_alphabet")
def sentence_alphabet(answer: Answer) -> Outcome:
    letters = "".join(words_of(sentence)[0][0].lower() for sentence in answer.sentences)
    passed = letters == string.ascii_lowercase
    return Outcome(passed, f"the sentences begin with {letters[:30]}")


@constraint("custom:european_capitals_sort", brief=True)
def european_capitals_sort(answer: Answer) -> Outcome:
    capitals = []
    for written in _ascii(answer.text).split(","):
        name = written.strip(" .\n")
        name = _SAME_CAPITAL.get(name, name)
        if name and name not in CAPITALS:
            return Outcome(False, f"not one of them: {name:.40}")
        if name:
            capitals.append(name)
    missing = [name for name in CAPITALS if name not in {*capitals, *_MAY_LACK}]
    if missing:
        return Outcome(False, f"missing: {', '.join(missing[:5])}")
    in_order = capitals == sorted({*capitals}, key=CAPITALS.index)
    return Outcome(in_order, "from north to south" if in_order else "not sorted by latitude")


@constraint("custom:csv_city")
def csv_city(answer: Answer) -> Outcome:
    columns = ("ID", "Country", "City", "Year", "Count")
    return _has_shape(_table(_unfenced(answer.text)), columns, 7)


@constraint("custom:csv_special_character")
def csv_special_character(answer: Answer) -> Outcome:
    text = _unfenced(answer.text)
    shape = _has_shape(_table(text), ("ProductID", "Category", "Brand", "Price", "Stock"), 14)
    if not shape.passed:
        return shape
    quoted = [field for field in re.findall(r'"([^"\n]*)"', text) if re.search(r"[^\w\s]", field)]
    return Outcome(bool(quoted), f"quoted fields with a special character: {len(quoted)}")


@constraint("custom:csv_quotes")
def csv_quotes(answer: Answer) -> Outcome:
    text = _unfenced(answer.text)
    columns = ("StudentID", "Subject", "Grade", "Semester", "Score")
    shape = _has_shape(_table(text, "\t"), columns, 3)
    if not shape.passed:
        return shape
    for line in filter(str.strip, text.splitlines()):
        for field in line.split("\t"):
            if not re.fullmatch(r'"[^"]*"', field.strip()):
                return Outcome(False, f"not in quotes: {field.strip():.40}")
    return Outcome(True, "each field is in quotes")


@constraint("custom:date_format_list", brief=True)
def date_format_list(answer: Answer) -> Outcome:
    dates = set()
    for written in answer.text.split(","):
        text = written.strip().rstrip(".")
        try:
            day = date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None
        except ValueError:
            day = None
        if day is None or not _BATTLES[0] <= day <= _BATTLES[1]:
            return Outcome(False, f"no date of a battle as YYYY-MM-DD: {text:.40}")
        dates.add(day)
    return Relation.AT_LEAST.outcome(len(dates), _LEAST_DATES, "different dates")
