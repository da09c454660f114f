"""Pairs of constraints that no answer can meet together."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from swift_rlvr.verifiers.instructions.answer import occurrences, words_of
from swift_rlvr.verifiers.instructions.constraint import Constraint, Relation
from swift_rlvr.verifiers.instructions.spoken import language_code

_CAPITALS = "change_case:english_capital"
_LOWER = "change_case:english_lowercase"
_JSON = "detectable_format:json_format"
_QUOTATION = "startend:quotation"
_LANGUAGE = "language:response_language"
_TWO = "combination:two_responses"
_REPEAT = "combination:repeat_prompt"
# What a constraint wants to stand in the answer, by its arguments.
_TEXTS = {
    "keywords:existence": ("keywords",),
    "startend:end_checker": ("end_phrase",),
    "detectable_content:postscript": ("postscript_marker",),
    "length_constraints:nth_paragraph_first_word": ("first_word",),
    "detectable_format:multiple_sections": ("section_spliter",),
    _REPEAT: ("prompt_to_repeat",),
    "repeat:repeat_change": ("prompt_to_repeat",),
    "sentence:keyword": ("word",),
    "words:words_position": ("keyword",),
    "words:keywords_specific_position": ("keyword",),
    "count:keywords_multiple": tuple(f"keyword{number}" for number in range(1, 6)),
    "format:list": ("sep",),
}
# What is counted, by the arguments that say the relation and the number, and those that say of what.
_COUNTS: dict[str, tuple[str, str | Relation, str, tuple[str, ...]]] = {
    "length_constraints:number_words": ("words", "relation", "num_words", ()),
    "length_constraints:number_sentences": ("sentences", "relation", "num_sentences", ()),
    "length_constraints:number_paragraphs": (
        "paragraphs divided by ***",
        Relation.EXACTLY,
        "num_paragraphs",
        (),
    ),
    "length_constraints:nth_paragraph_first_word": (
        "paragraphs between blank lines",
        Relation.EXACTLY,
        "num_paragraphs",
        (),
    ),
    "detectable_format:number_bullet_lists": ("bullets", Relation.EXACTLY, "num_bullets", ()),
    "change_case:capital_word_frequency": (
        "words in capitals",
        "capital_relation",
        "capital_frequency",
        (),
    ),
    "keywords:frequency": ("the keyword", "relation", "frequency", ("keyword",)),
    "keywords:letter_frequency": ("the letter", "let_relation", "let_frequency", ("letter",)),
    "count:numbers": ("numbers", Relation.EXACTLY, "N", ()),
    "count:unique_word_count": ("words", Relation.AT_LEAST, "N", ()),
}


def contradictions(constraints: Sequence[Constraint]) -> Iterator[str]:
    """The pairs of a row's constraints that contradict each other, and why.

    >>> from swift_rlvr.verifiers.instructions import read_constraints
    >>> pair = ["punctuation:no_comma", "startend:end_checker"]
    >>> list(contradictions(read_constraints(pair, [{}, {"end_phrase": "Well, bye."}])))
    ["punctuation:no_comma and startend:end_checker: 'Well, bye.' has a comma"]
    """
    for first, second in combinations(constraints, 2):
        why = _why(first, second) or _why(second, first)
        if why:
            yield f"{first.name} and {second.name}: {why}"


def _why(one: Constraint, other: Constraint) -> str:
    """Why two constraints contradict each other, as the first one sees it; empty where it sees
    nothing.
    """
    if one.name in _RULES:
        why = _RULES[one.name](one, other)
        if why:
            return why
    return _counts_apart(one, other)


def texts_of(constraint: Constraint) -> list[str]:
    """What a constraint wants to stand in the answer."""
    if constraint.name == "keywords:frequency":
        # "less than 3 times" is met without the keyword.
        least, _ = constraint.arguments["relation"].bounds(constraint.arguments["frequency"])
        return [constraint.arguments["keyword"]] if least else []
    texts: list[str] = []
    for name in _TEXTS.get(constraint.name, ()):
        value = constraint.arguments[name]
        texts += value if isinstance(value, tuple) else [value]
    return texts


def word_bounds(constraint: Constraint) -> tuple[int, int | None]:
    """How many words a constraint allows by itself."""
    if constraint.name == "count:word_count_range":
        return constraint.arguments["min_words"], constraint.arguments["max_words"]
    if constraint.name in _COUNTS and _COUNTS[constraint.name][0] == "words":
        return _bounds(constraint)
    return 0, None


def _bounds(constraint: Constraint) -> tuple[int, int | None]:
    _, relation, number, _ = _COUNTS[constraint.name]
    if not isinstance(relation, Relation):
        relation = constraint.arguments[relation]
    return relation.bounds(constraint.arguments[number])


def _counts_apart(one: Constraint, other: Constraint) -> str:
    """Two counts of the same thing that cannot be equal, and counts that only many words can have."""
    what = _counted_by_both(one, other)
    if what:
        bounds = _bounds(one), _bounds(other)
    else:
        # What says nothing of words has bounds that no other can miss.
        bounds = word_bounds(one), word_bounds(other)
        what = "words"
    least = max(bounds[0][0], bounds[1][0])
    mosts = [most for _, most in bounds if most is not None]
    if mosts and least > min(mosts):
        return f"{what}: at least {least} and at most {min(mosts)}"
    return ""


def _counted_by_both(one: Constraint, other: Constraint) -> str:
    """What two constraints count; empty where they count different things, or one counts nothing."""
    if one.name not in _COUNTS or other.name not in _COUNTS:
        return ""
    what, _, _, names = _COUNTS[one.name]
    if what != _COUNTS[other.name][0]:
        return ""
    # the same keyword, or the same letter
    for name in names:
        if str(one.arguments[name]).casefold() != str(other.arguments.get(name)).casefold():
            return ""
    return what


# --- What a constraint contradicts

Rule = Callable[[Constraint, Constraint], str]
_RULES: dict[str, Rule] = {}


def _of(*names: str) -> Callable[[Rule], Rule]:
    """A decorator for what constraints of these names contradict: why they contradict another one,
    empty where they do not.
    """

    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return register


@_of("punctuation:no_comma")
def _no_comma(one: Constraint, other: Constraint) -> str:
    for text in texts_of(other):
        if "," in text or "，" in text:
            return f"{text[:60]!r} has a comma"
    if other.name in ("custom:csv_city", "custom:csv_special_character", "count:punctuation"):
        return "the other one needs commas"
    return ""


@_of("keywords:forbidden_words")
def _forbidden(one: Constraint, other: Constraint) -> str:
    for word in one.arguments["forbidden_words"]:
        for text in texts_of(other):
            if occurrences(word, text):
                return f"{word!r} is forbidden and asked for"
    return ""


@_of(_LOWER)
def _lower(one: Constraint, other: Constraint) -> str:
    if other.name in (_CAPITALS, "format:title_case"):
        return "small and capital letters"
    if other.name == "change_case:capital_word_frequency" and _bounds(other)[0]:
        return "words in capitals are asked for"
    return _english(one, other)


@_of(_CAPITALS)
def _capitals(one: Constraint, other: Constraint) -> str:
    if other.name == "change_case:capital_word_frequency":
        # All words of the answer are, and a short answer is not what the other one means.
        _, most = _bounds(other)
        return f"at most {most} words may be in capitals" if most is not None else ""
    return _english(one, other)


def _english(one: Constraint, other: Constraint) -> str:
    if other.name == _LANGUAGE and language_code(other.arguments["language"]) != "en":
        return f"English, and the language {other.arguments['language']}"
    return ""


@_of(_LANGUAGE)
def _language(one: Constraint, other: Constraint) -> str:
    if other.name != _LANGUAGE:
        return ""
    languages = one.arguments["language"], other.arguments["language"]
    codes = {language_code(language) for language in languages}
    return f"the languages {' and '.join(sorted(languages))}" if len(codes) > 1 else ""


@_of(_JSON)
def _json(one: Constraint, other: Constraint) -> str:
    texts_beside = ("detectable_content:postscript", "detectable_format:constrained_response")
    if other.name in (_QUOTATION, _REPEAT, _TWO, *texts_beside):
        return "the whole answer is JSON"
    if other.name == "startend:end_checker":
        is_end_of_json = other.arguments["end_phrase"].endswith(("}", "]", "```"))
        return "" if is_end_of_json else "JSON does not end with that phrase"
    return ""


@_of(_QUOTATION)
def _quotation(one: Constraint, other: Constraint) -> str:
    if other.name == _REPEAT and not other.arguments["prompt_to_repeat"].startswith('"'):
        return "the first character is a quote, and of the request it is not"
    return ""


@_of("startend:end_checker")
def _ends(one: Constraint, other: Constraint) -> str:
    if other.name != one.name:
        return ""
    first, second = (
        " ".join(each.arguments["end_phrase"].casefold().split()) for each in (one, other)
    )
    if first.endswith(second) or second.endswith(first):
        return ""
    return "two different ends"


@_of("keywords:letter_frequency")
def _letters(one: Constraint, other: Constraint) -> str:
    letter = one.arguments["letter"].lower()
    _, most = _bounds(one)
    if most is None:
        return ""
    # The rest of the answer may do without the letter, what it has to repeat may not.
    count = sum(text.lower().count(letter) for text in texts_of(other))
    return f"the texts that are asked for have {letter!r} {count} times" if count > most else ""


@_of("length_constraints:number_words", "count:word_count_range")
def _words(one: Constraint, other: Constraint) -> str:
    _, most = word_bounds(one)
    if most is None:
        return ""
    least = sum(len(words_of(text)) for text in texts_of(other))
    if other.name == "keywords:frequency":
        # Its keyword is asked for so many times.
        least *= _bounds(other)[0]
    elif other.name in _COUNTS and other.name != "keywords:letter_frequency":
        # A sentence, a bullet and a paragraph have a word at least.
        least = max(least, _bounds(other)[0])
    return f"at least {least} words are needed, and at most {most} allowed" if least > most else ""
