"""Answers within words: a sentence that states one value, and "The answer is ..." at the end of a
completion.
"""

import re
from fractions import Fraction

from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.reading import CALLED_CORRECT, DENIAL, NO_STATEMENT, read
from swift_rlvr.verifiers.mathematics.units import OTHER_DOUBT
from swift_rlvr.verifiers.mathematics.values import Choice, Number, Relation, Value, Words

_SEGMENT = re.compile(
    r"\$\$(.+?)\$\$|\$(?![\d.,]+\s+[a-z]+\s)([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
_BLOCK = re.compile(
    rf"```\w*\n(.+?)\n\s*```|\"\"\"(.+?)\"\"\"|'''(.+?)'''|{_SEGMENT.pattern}"
    r"|\\begin\{(?:equation|align|gather)\*?\}(.+?)\\end\{\w+\*?\}",
    re.DOTALL,
)
_CLAUSE = re.compile(
    r"\W*(?:if|to|since|because|when|given|with|using|converting)\b[^,]*,\s*", re.IGNORECASE
)
_NUMERAL = re.compile(r"(?<![A-Za-z0-9_{^.!])\d+(?:[.,]\d+)*(?:/\d+)?")
_NO_PROSE = re.compile(
    r"[^\w\s.,:;!*\"'’“”，。、：；！]|\d|(?<![A-Za-z'])(?![aAI](?![A-Za-z]))[A-Za-z](?![A-Za-z'])"
)
_STATEMENT = re.compile(
    r"=|\b(?:is|are|was|were|equals?|gives?|makes?|total|has|have|needs?|costs?|sold|earns?|gets?|earned|spent|paid|made"
    r"|bought|saved)\b:?",
    re.IGNORECASE,
)
_OR = re.compile(r"\bor\b")
_IN_ALL = re.compile(
    r"\s+(?:in all|in total|altogether|total|left|over|now|together|as well|each|per person)\s*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\\A-Za-z])(?<!\\begin\{)(?<!\\end\{)[A-Za-z][a-z]{2,}")
_LABEL = re.compile(r"[*_]*[A-Z][A-Za-z' ]{1,40}[*_]*\s*[:=]\s*[*_]*\s*")
# behind these words a numeral is a part, a bound, an operand or a name rather than what the
# sentence states
_NOT_BEFORE = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|almost|nearly|over|under|above|below|up to|close to|near|shy of"
    r"|short of|between|until|from|plus|minus|times|of (?:the|these|those)|(?:multipl|divid)\w+ (?:\w+ )?by|if\b[^,]*"
    r"|number (?:after|before)|contains|divides|mentions|said|circa|theorem|lemma|choice|hint|note"
    r"|steps?|options?|parts?|questions?|problems?|cases?|examples?|equation|reward|score"
    r"|(?:root|cube|square|power|percent|part|rest|out|most|some|multiple|factor|sum|product) of)"
    r"|(?<!equal)(?<!amounts)(?<!comes)(?<!adds up)(?<!increased)(?<!decreased)(?<!simplifies)(?<!reduces)\s+to"
    r"|[负第减加乘除])\s*$",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    r"(?P<known>\b(?:the|these|those|this|that|which|his|her|their|its|our|my|your|all|both|each|every|per|no|first|last"
    r"|next|other|another|for|in|within|after)\s+)?\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|dozens?|hundreds?|thirds?|quarters?)\b(?!-[a-z])|(?P<never>\b(?:half|halves|twice|doubled?|tripled?|squared|cubed|factorial|fourth|fifth|power)\b)"
    r"|(?<!第)[二三四五六七八九]",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\b(?:is|are|was|were|be|equals|equal to)[:\s]*$", re.IGNORECASE)
_ENDS_QUANTITY = re.compile(
    r"\s*[,;.](?=\s|$)|\s+(?:in|on|at|for|of|to|from|with|by|during|after|before|as|that|which|who|when|while|because|since"
    r"|so|if|and|left|remaining|now|more|every|each|over|altogether|total)\b",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"(?:{_STATEMENT.pattern})\s*(?:a total of\s+)?(?P<number>[$€£]?{_NUMERAL.pattern})",
    re.IGNORECASE,
)
_FIRST = re.compile(rf"\s*(?P<number>[$€£]?{_NUMERAL.pattern})")
_OPERATOR = re.compile(r"\s*(?:[A-Za-z]+\s+){0,3}(?:[-+*/=×÷^]|\\|x\s*\d)")
_CONCLUSION = re.compile(
    r"\b(?:so|then|thus|therefore|hence|in all|in total|altogether|total)\b", re.IGNORECASE
)
_ENUMERATED = re.compile(r"\s*\d+[.):]\s")
_MARKER = re.compile(
    r"(?:\banswers?\b(?:\s+to\s+[^\n.:=]{1,60}?)?|\b(?:correct|right)\s+(?:option|choice)\b|答案|结果)"
    r"(?:\s*(?P<verb>(?:\*\*)?\s*(?:\b(?:is|are|was)\b|:|=|：|是|为)(?:\s*[:：])?(?:\*\*)?)|[ \t*_]*(?=\n))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[\n.!?。]")
_HEADING = re.compile(
    r"[\s#*_]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer\s*:?[*_]*)?", re.IGNORECASE
)
_CHOSEN = re.compile(
    r"(?:故选|应选|因此选|所以选|选)\s*[:：]?\s*\(?([A-H](?:\s*[,、]?\s*[A-H])*)\)?\s*[。.]?\s*$"
)
_END = re.compile(r"(?<!\d)[.!。](?:\s|$)|(?<=\d)\.(?=\s|$)|。")


def stated_value(text: str, only: bool = False) -> Value | None:
    """The one value that a sentence states, or None: where it states several, denies one or leaves
    it open.

    With `only` its number has to be the only one in the sentence.

    >>> stated_value("48 / 2 = 24 in May and 48 + 24 = 72 in all").value, stated_value("Total: \\\\(9\\\\)").value
    (Fraction(72, 1), Fraction(9, 1))
    >>> stated_value("She earned $130 for the first two weeks").value, stated_value("Ann has 8, and Tom has 4")
    (Fraction(130, 1), None)
    >>> stated_value("it is 2 or 3"), stated_value("not 5"), stated_value("I tried 1, then 2 and then 3")
    (None, None, None)
    """
    if (
        len(text) > 1000
        or NO_STATEMENT.search(text)
        or _OR.search(text)
        or OTHER_DOUBT.search(text)
    ):
        return None
    if clause := _CLAUSE.match(text):  # If 22 of 30 stay, 8 leave
        text = text[clause.end() :]
    segments = list(_SEGMENT.finditer(text))
    if segments:
        contents = [_content(segment) for segment in segments]
        outside = _SEGMENT.sub(" ", text)
        if len({tidy(content) for content in contents}) > 1 or _NO_PROSE.search(outside):
            return None
        return (
            None
            if _is_no_statement(text[: segments[0].start()])
            else _value(contents[0].removeprefix("="))
        )
    label = _LABEL.match(text)
    if label and (value := _value(text[label.end() :])) is not None:
        return value
    numerals = list(_NUMERAL.finditer(text))
    if (only and len(numerals) != 1) or _ENUMERATED.match(text) or text.rstrip().endswith(":"):
        return None
    if len(numerals) == 1 and (value := _quantity(text, numerals[0])) is not None:
        return value
    return _last_stated(text) if len(numerals) != 1 or "=" in text else None


def _content(segment: re.Match[str]) -> str:
    return next(filter(None, segment.groups())).strip()


def _is_no_statement(before: str) -> bool:
    """Whether the words before a value say that it is a part, a bound or a name, or hold a number
    of their own.
    """
    if _NOT_BEFORE.search(before):
        return True
    words = () if _COPULA.search(before) else _NUMBER_WORD.finditer(before)
    return any(word["never"] or not word["known"] for word in words)


def _quantity(text: str, numeral: re.Match[str]) -> Value | None:
    """The only number of a sentence, with its unit."""
    before, after = text[: numeral.start()].rstrip("$€£¥"), text[numeral.end() :]
    if (
        _NO_PROSE.search(before)
        or _is_no_statement(before)
        or not re.fullmatch(r"[^\\+*/=<>^()\[\]{}|-]*", after)
    ):
        return None
    return _with_unit(text[len(before) : numeral.end()], after)


def _with_unit(number: str, after: str) -> Value | None:
    """A number with as much as is its unit of the words behind it."""
    if any(not word["known"] for word in _NUMBER_WORD.finditer(after)):
        return None
    after = re.sub(r"^\s+(?:more|extra|additional|different|other)\b", "", after)
    ends = [len(after), *(match.start() for match in _ENDS_QUANTITY.finditer(after))][:8]
    values = (_value(number + after[:end]) for end in sorted(ends))
    return next((value for value in values if value is not None), None)


def _last_stated(text: str) -> Value | None:
    """The value that the last statement of a sentence gives, where no other one gives another."""
    stated = [match for match in _STATED.finditer(text) if not _OPERATOR.match(text, match.end())]
    statements = list(_STATEMENT.finditer(text))
    if not statements or (statements[-1][0] == "=" and not _WORD.search(text)):
        return None  # a formula that cannot be read: what is left of = may contradict the gold
    first = _FIRST.match(text)
    leads = first is not None and not _OPERATOR.match(text, first.end())
    values = {_number(match) for match in (stated + [first] if first and leads else stated)}
    if len(values) > 1:
        before_last = stated[-2].end() if len(stated) > 1 else 0
        if (
            leads
            or _CONCLUSION.search(text, 0, before_last)
            or not _CONCLUSION.search(text, before_last)
        ):
            return None
    value = _value(text[statements[-1].end() :])
    if value is None and stated and not _NUMERAL.search(text, stated[-1].end()):
        return _with_unit(stated[-1]["number"], text[stated[-1].end() :])
    return value


def _number(match: re.Match[str]) -> Fraction | str:
    text = match["number"].strip("$€£").replace(",", "")
    return text if "/" in text or text.count(".") > 1 else Fraction(text)


def _value(text: str) -> Value | None:
    text = _IN_ALL.sub("", text.strip().rstrip(".")).strip().strip("*")
    value = read(text) if text else None
    return None if isinstance(value, Words) else value


def in_words(value: Value | None) -> bool:
    """Whether a text is read as words, or not at all, so that it may be a sentence that states a
    value.
    """
    if isinstance(value, Relation):
        return any(isinstance(side, Words) for side in value.sides)
    return value is None or isinstance(value, Words)


def is_heading(text: str) -> bool:
    """Whether a line only announces the answer: "Final Answer", "**Answer:**"."""
    return bool(text) and _HEADING.fullmatch(text) is not None


def is_bare(text: str) -> bool:
    """Whether a whole completion is one line that is read as a value, and not as words."""
    return "\n" not in text and not _MARKER.search(text) and not in_words(read(text))


def answer_at_end(tail: str) -> str | None:
    """What the last "the answer is ..." of a text gives as the answer; None where it says something
    else, or denies it.

    The answer stands behind it on the line, or on the next lines: alone, in display mathematics, in
    quotes or a fence.

    >>> answer_at_end("So the answer is $5$."), answer_at_end("The answer is not $5$."), answer_at_end("Answer: 34")
    ('5', None, '34')
    >>> answer_at_end("**Answer:**\\n\\\\[\\n5\\n\\\\]"), answer_at_end("Answer:\\n5\\n6")
    ('5', None)
    """
    last, before = None, ""
    for match in _MARKER.finditer(tail):
        said = _SENTENCE_END.split(tail[: match.start()])[-1]
        if match["verb"] or is_heading(f"{said}answer"):
            last, before = match, said
    if last is None:
        return _chosen(tail)
    rest = tail[last.end() :]
    start = len(rest) - len(rest.lstrip(" \t\n*_"))
    spread, rest = "\n" in rest[:start], rest[start:]  # over several lines
    if block := _BLOCK.match(rest):
        answer, after = _content(block), rest[block.end() :]
        spread = spread or "\n" in block[0]
    else:
        line = rest.partition("\n")[0]
        end = _END.search(line)
        answer, after = (
            line[: end.start()] if end else line,
            rest[end.end() if end else len(line) :],
        )
    after = after if spread else after.partition("\n")[0]
    said = [before, after, "" if block else answer]
    if any(map(DENIAL.search, said)) or any(map(_OR.search, said[1:])):
        return None
    if block or spread:
        others = {tidy(_content(segment)) for segment in _SEGMENT.finditer(after)} - {tidy(answer)}
        if others or set(_NUMERAL.findall(after)) - set(_NUMERAL.findall(answer)):
            return None
    if block:
        unit = re.match(r"\s+([A-Za-z][A-Za-z /]{0,30})\.?\s*$", after)
        return (
            f"{answer} {unit[1]}"
            if unit and isinstance(read(f"{answer} {unit[1]}"), Number)
            else answer
        )
    return answer.strip().strip("*").strip() or None


def _chosen(tail: str) -> str | None:
    """The choice that the end of a text calls correct."""
    if chosen := _CHOSEN.search(tail):
        return chosen[1]
    sentence = _SENTENCE_END.split(tail.rstrip(" \n.!*"))[-1].strip(" *")
    letters = {match[1] for match in CALLED_CORRECT.finditer(tail)}
    return sentence if len(letters) == 1 and isinstance(read(sentence), Choice) else None
