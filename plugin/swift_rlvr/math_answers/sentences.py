"""Answers within words: a sentence that states one value, and "The answer is ..." at the end of a completion."""

import re

from swift_rlvr.math_answers.notation import tidy
from swift_rlvr.math_answers.reading import read
from swift_rlvr.math_answers.values import Number, Value, Words

_SEGMENT = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMERAL = re.compile(r"(?<![\w{^.!])\d+(?:[.,]\d+)*(?:/\d+)?")
_NO_PROSE = re.compile(r"[^A-Za-z\s.,:;!*_\"'\u0080-\uffff]|(?<![A-Za-z'])(?![aAI](?![A-Za-z]))[A-Za-z](?![A-Za-z'])")
_STATEMENT = re.compile(
    r"=|\b(?:is|are|was|were|equals?|gives?|makes?|total|has|have|needs?|costs?|sold|earns?|gets?)\b:?", re.IGNORECASE
)
_DENIAL = re.compile(
    r"\b(?:not|never|isn.t|wasn.t|aren.t|wrong|incorrect|neither|nor|either|unless|except|instead|maybe|perhaps|possibly"
    r"|probably|might|could|don.t|cannot|can.t|unsure|guess|but|however|rather|although|at least|at most|than)\b"
    r"|不是|不对|错|不知道|可能|也许",
    re.IGNORECASE,
)
_OR = re.compile(r"\bor\b")
_IN_ALL = re.compile(
    r"\s+(?:in all|in total|altogether|total|left|over|now|together|as well|each|per person)\s*$", re.IGNORECASE
)
_WORD = re.compile(r"(?<![\\A-Za-z])(?<!\\begin\{)(?<!\\end\{)[A-Za-z][a-z]{2,}")
_LABEL = re.compile(r"[*_]*[A-Z][A-Za-z' ]{1,40}[*_]*\s*[:=]\s*[*_]*\s*")
_ANSWER = re.compile(
    r"(?P<before>[^\n.!?。]*?)(?:\banswers?\b|答案|结果)\s*(?P<verb>(?:\*\*)?\s*(?:is|are|was|:|=|：|是|为)(?:\s*[:：])?(?:\*\*)?)\s*(?P<rest>[^\n]*)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(r"(?:故选|应选|因此选|所以选|选)\s*[:：]?\s*\(?([A-H](?:\s*[,、]?\s*[A-H])*)\)?\s*[。.]?\s*$")
_END = re.compile(r"(?<!\d)[.!。](?:\s|$)|(?<=\d)\.(?=\s|$)|。")


def stated_value(text: str, only: bool = False) -> Value | None:
    """The one value that a sentence states, or None: where it names several, denies one or leaves it open.

    With `only` it has to be the only one in the sentence.

    >>> stated_value("48 / 2 = 24 in May and 48 + 24 = 72 in all").value, stated_value("Total: \\\\(9\\\\)").value
    (Fraction(72, 1), Fraction(9, 1))
    >>> stated_value("it is 2 or 3"), stated_value("not 5"), stated_value("I tried 1, then 2 and then 3")
    (None, None, None)
    """
    if _DENIAL.search(text) or _OR.search(text) or len(text) > 1000:
        return None
    segments = [next(filter(None, match.groups())) for match in _SEGMENT.finditer(text)]
    if segments:
        outside = _SEGMENT.sub(" ", text)
        if len({tidy(segment) for segment in segments}) > 1 or _NO_PROSE.search(outside):
            return None
        return _value(segments[0].strip().removeprefix("=").strip())
    label = _LABEL.match(text)
    if label and (value := _value(text[label.end() :])) is not None:
        return value
    numerals = _NUMERAL.findall(text)
    if only and len(numerals) != 1:
        return None
    last = None
    for match in _STATEMENT.finditer(text):
        last = match
    if last is not None and last[0] == "=" and not _WORD.search(text):
        return None  # a formula that cannot be read: what is left of = may contradict the gold
    if last is not None and (value := _value(text[last.end() :])) is not None:
        return value
    if len(numerals) == 1:
        before, _, after = text.partition(numerals[0])
        if (
            not _NO_PROSE.search(before.rstrip("$"))
            and re.fullmatch(r"[^\\+*/=<>^()\[\]{}|-]*", after)
            and not after[:1].isalpha()
        ):
            return _value(before[len(before.rstrip("$")) :] + numerals[0] + after)
    return None


def _value(text: str) -> Value | None:
    text = _IN_ALL.sub("", text.strip().rstrip(".")).strip().strip("*")
    value = read(text) if text else None
    return None if isinstance(value, Words) else value


def answer_at_end(tail: str) -> str | None:
    """What the last "the answer is ..." of a text gives as the answer; None where it says something else, or denies it.

    >>> answer_at_end("So the answer is $5$."), answer_at_end("The answer is not $5$."), answer_at_end("Answer: 34")
    ('5', None, '34')
    """
    last = None
    for match in _ANSWER.finditer(tail):
        last = match
    if last is None:
        chosen = _CHOSEN.search(tail)
        return chosen[1] if chosen else None
    if _DENIAL.search(last["before"]) or tail[last.end() :].strip() and _ANSWER.search(tail[last.end() :]):
        return None
    rest = last["rest"].strip()
    segment = _SEGMENT.match(rest)
    if segment:
        after = rest[segment.end() :]
        if _DENIAL.search(after) or _OR.search(after) or _SEGMENT.search(after) or _NUMERAL.search(after):
            return None
        unit = re.match(r"\s+([A-Za-z][A-Za-z /]{0,30})\.?\s*$", after)
        found = next(filter(None, segment.groups())).strip()
        return f"{found} {unit[1]}" if unit and isinstance(read(f"{found} {unit[1]}"), Number) else found
    end = _END.search(rest)
    answer = rest[: end.start()] if end else rest
    following = rest[end.end() :] if end else ""
    if _DENIAL.search(answer) or _DENIAL.search(following) or _OR.search(answer):
        return None
    return answer.strip().strip("*").strip() or None
