"""Answers within words: a sentence that states one value, and "The answer is ..." at the end of a
completion.

Most of the rules here refuse. A sentence that names the right number may say that it is wrong, a
part, a bound or one of several, and a policy that is paid for naming numbers learns to name many.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.verifiers.mathematics.comparison import same
from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.reading import CALLED_CORRECT, DENIAL, NO_STATEMENT, read
from swift_rlvr.verifiers.mathematics.units import OTHER_DOUBT
from swift_rlvr.verifiers.mathematics.values import Choice, Number, Relation, Value, Words

# --- mathematics set off from words

# $$5$$, $5$, \(5\), \[5\]. "$5 and Tom $6" is money
_SEGMENT = re.compile(
    r"\$\$(.+?)\$\$|\$(?![\d.,]+\s+[a-z]+\s)([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
# also in a fence, in quotes of three, or in \begin{align*}...\end{align*}
_BLOCK = re.compile(
    r"```\w*\n(.+?)\n\s*```|\"\"\"(.+?)\"\"\"|'''(.+?)'''"
    rf"|{_SEGMENT.pattern}"
    r"|\\begin\{(?:equation|align|gather)\*?\}(.+?)\\end\{\w+\*?\}",
    re.DOTALL,
)
# what prose has not: signs, digits, and single letters other than "a" and "I"
_NO_PROSE = re.compile(
    r"[^\w\s.,:;!*\"'’“”，。、：；！]|\d|(?<![^\W\d_])(?<!')(?![aAI](?![^\W\d_]))[A-Za-z](?!'|[^\W\d_])"
)

# --- numbers of a sentence

# 12, 1,234.5, 3/4, but not the digits of x2, 2^3 or .5
_NUMERAL = re.compile(r"(?<![A-Za-z0-9_{^.!])\d+(?:[.,]\d+)*(?:/\d+)?")
_AMOUNT = rf"(?P<number>[$€£]?{_NUMERAL.pattern})"
_FIRST_NUMERAL = re.compile(rf"\s*{_AMOUNT}")
# behind a numeral, it is an operand: 48 + 24, 3 bags x 4
_OPERATOR = re.compile(r"\s*(?:[A-Za-z]+\s+){0,3}(?:[-+*/=×÷^]|\\|x\s*\d)")
# a number in words beside the numeral makes two numbers of one sentence, "two of the 5" ...
_NUMBER_WORD = re.compile(
    # ... unless it belongs to what is known: "in two weeks", "the three girls"
    r"(?P<known>\b(?:the|these|those|this|that|which|his|her|their|its|our|my|your|all|both|each"
    r"|every|per|no|first|last|next|other|another|for|in|within|after)\s+)?"
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|dozens?|hundreds?|thirds?|quarters?)\b(?!-[a-z])"
    # words that change a number, even behind "the": "the half of 5"
    r"|(?P<never>\b(?:half|halves|twice|doubled?|tripled?|squared|cubed|factorial|fourth|fifth"
    r"|power)\b)"
    # 三, but not 第三, the third
    r"|(?<!第)[二三四五六七八九]",
    re.IGNORECASE,
)
# behind these words a numeral is a part, a bound, an operand or a name rather than what the
# sentence states
_NOT_BEFORE = re.compile(
    # a bound or an approximation: about 5, up to 5, close to 5
    r"(?:\b(?:about|around|roughly|approximately|almost|nearly|over|under|above|below|up to"
    r"|close to|near|shy of|short of|between|until|from"
    # an operand: minus 5, 3 of the 5, divided by 5, if 5 ...
    r"|plus|minus|times|of (?:the|these|those)|(?:multipl|divid)\w+ (?:\w+ )?by|if\b[^,]*"
    r"|number (?:after|before)|contains|divides"
    # a name or what somebody else says: theorem 5, step 5, reward 5
    r"|mentions|said|circa|theorem|lemma|choice|hint|note"
    r"|steps?|options?|parts?|questions?|problems?|cases?|examples?|equation|reward|score"
    # a part: the square root of 5, half the sum of 5
    r"|(?:root|cube|square|power|percent|part|rest|out|most|some|multiple|factor|sum|product) of)"
    # "from 3 to 5" and "add it to 5", but not "equal to 5" or "comes to 5"
    r"|(?<!equal)(?<!amounts)(?<!comes)(?<!adds up)(?<!increased)(?<!decreased)(?<!simplifies)"
    r"(?<!reduces)\s+to"
    # 第5, the fifth; 减5, minus 5
    r"|[负第减加乘除])\s*$",
    re.IGNORECASE,
)

# --- what states a number

# what a number stands behind in a statement, besides the past of any verb in -ed
_VERBS = """
    is are was were be am become becomes became equal equals has have had make makes made get gets got
    give gives gave yield yields cost costs need needs take takes took spend spends spent pay pays paid
    buy buys bought sell sells sold eat eats ate drink drinks drank win wins won lose loses lost leave
    leaves left leaving run runs ran ride rides rode drive drives drove fly flies flew walk walks swim
    swims swam work works save saves earn earns use uses keep keeps kept hold holds held read reads
    write writes wrote draw draws drew score scores collect collects total totals totaling weigh weighs
    measure measures last lasts travel travels receive receives find finds found grow grows grew bring
    brings brought build builds built catch catches caught sleep sleeps slept send sends sent put puts
    es son tiene tienen hay cuesta gana ist sind hat haben kostet verdient est sont a ont fait font
    gagne coûte vaut donne è sono ha costa é são tem zijn heeft kost jest są ma wynosi kosztuje adalah
    ganha guadagna zarabia
"""
_STATING = "|".join(_VERBS.split())
# between the verb and the number: "is only 5", "save for 5", "a total of 5", "has noch 5"
_FILLERS = (
    r"only|just|exactly|still|now|also|then|each|for|noch|nur|solo|encore|aún|ancora|a total of"
    r"|(?:a|an|the|its)\s+(?:total\s+)?(?:area|length|height|width|depth|volume|distance|speed|cost"
    r"|price|profit|probability|perimeter|circumference|radius|weight|mass|age|value|amount|number"
    r"|rate|average|mean|median|total)\s+of"
)
# ... or one or two other words, as in "takes her 5" and "has length 5", but none of these, which
# make the number a part, a bound or a name: "is divisible by 5", "is the opposite of 5"
_NO_OBJECT = (
    r"(?:by|of|off|from|to|than|under|over|above|below|near|about|around|like|as|at|in|on|with"
    r"|without|between|until|up|page|pages|step|option|part|question|problem|number|line|row"
    r"|chapter|exercise|equation|figure|least|most|that|which|whether)\b"
)
_STATES = re.compile(
    rf"\b(?:(?:{_STATING}|(?!numbered|called|named|labell?ed|marked)\w{{2,}}ed)\b"
    # equal to 5, comes to 5, increased to 5
    r"(?:\s+to\b)?|(?:comes|amounts|adds up|simplifies|reduces|evaluates) to\b)"
    rf"(?:\s+(?:{_FILLERS}))*(?:\s+(?!{_NO_OBJECT})[^\W\d]+){{0,2}}[:\s]*\Z",
    re.IGNORECASE,
)
# right behind these a number is a statement of its own: "Of the students, 5 walk", "Total: 5"
_BEGINS_STATEMENT = re.compile(r"(?:\A\W*|[,:;=–—]\s*|\bthen\s+)\Z")
# in these scripts only what `OTHER_DOUBT` knows is refused
_OTHER_LETTERS = re.compile(r"[\u0400-\u1fff\u3040-\u9fff\uac00-\ud7af]")


def _is_stated(before: str) -> bool:
    """Whether the words before a number make a statement of it.

    >>> _is_stated("She earned "), _is_stated("It takes her "), _is_stated("some say ")
    (True, True, False)
    >>> _is_stated("divisible by "), _is_stated("The answer is divisible by ")
    (False, False)
    """
    if _BEGINS_STATEMENT.search(before) or _OTHER_LETTERS.search(before):
        return True
    return _STATES.search(before) is not None


# --- parts of a sentence

# "If 22 of 30 stay, ": what is known stands before the comma
_CLAUSE = re.compile(
    r"\W*(?:if|to|since|because|when|given|with|using|converting)\b[^,]*,\s*", re.IGNORECASE
)
# **Total cost**: 5
_LABEL = re.compile(r"[*_]*[A-Z][A-Za-z' ]{1,40}[*_]*\s*[:=]\s*[*_]*\s*")
# 1. Add the numbers
_ENUMERATED = re.compile(r"\s*\d+[.):]\s")
# the verbs behind which a value is stated: it is 5, she earned 5
_STATEMENT = re.compile(
    r"=|\b(?:is|are|was|were|equals?|gives?|makes?|total|has|have|needs?|costs?|sold|earns?|gets?"
    r"|earned|spent|paid|made|bought|saved)\b:?",
    re.IGNORECASE,
)
# it is a total of 5
_STATED = re.compile(
    rf"(?:{_STATEMENT.pattern})\s*(?:a total of\s+)?{_AMOUNT}",
    re.IGNORECASE,
)
# right before the value these leave no doubt of what is stated: "the three of them are 5"
_COPULA = re.compile(r"\b(?:is|are|was|were|be|equals|equal to)[:\s]*$", re.IGNORECASE)
# before the last of several statements, these make it the result of the others
_CONCLUSION = re.compile(
    r"\b(?:so|then|thus|therefore|hence|in all|in total|altogether|total)\b", re.IGNORECASE
)
# behind a value, these say nothing: 5 in all
_IN_ALL = re.compile(
    r"\s+(?:in all|in total|altogether|total|left|over|now|together|as well|each|per person)\s*$",
    re.IGNORECASE,
)
# behind a number, these say that it is a difference: 5 more apples
_MORE = re.compile(r"^\s+(?:more|extra|additional|different|other)\b")
# where the unit of a number ends: "5 apples | in the basket", "5 dollars | every day"
_ENDS_QUANTITY = re.compile(
    r"\s*[,;.](?=\s|$)"
    r"|\s+(?:in|on|at|for|of|to|from|with|by|during|after|before|as|that|which|who|when|while"
    r"|because|since|so|if|and|left|remaining|now|more|every|each|over|altogether|total"
    # a day, in Spanish, French, German, Portuguese, Italian and Polish
    r"|al|par|am|pro|por|en|de|dziennie|im|elke|pour|para)\b",
    re.IGNORECASE,
)
# a word rather than the name of a command or an environment
_WORD = re.compile(r"(?<![\\A-Za-z])(?<!\\begin\{)(?<!\\end\{)[A-Za-z][a-z]{2,}")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
# "I doubt that the answer is 5", "some say the answer is 5"
_ATTITUDE = re.compile(
    r"\b(?:(?<!no )(?<!without )doubt|deny|denie|disagree|disput|refut|wonder|sa(?:y|id)s?|claim|suspect|whether)\w*\b",
    re.IGNORECASE,
)

# longer texts are no sentence
_MAX_SENTENCE_CHARS = 1000
# how many ends of a quantity are tried
_MAX_ENDS = 8


def stated_value(text: str, only: bool = False) -> Value | None:
    """The one value that a sentence states, or None where it states several, denies one or leaves
    it open.

    With `only` its number has to be the only one in the sentence.

    >>> stated_value("48 / 2 = 24 in May and 48 + 24 = 72 in all").value, stated_value("Total: \\\\(9\\\\)").value
    (Fraction(72, 1), Fraction(9, 1))
    >>> stated_value("She earned $130 for the first two weeks").value, stated_value("Ann has 8, and Tom has 4")
    (Fraction(130, 1), None)
    >>> stated_value("it is 2 or 3"), stated_value("not 5"), stated_value("I tried 1, then 2 and then 3")
    (None, None, None)
    """
    if len(text) > _MAX_SENTENCE_CHARS:
        return None
    if NO_STATEMENT.search(text) or _OR.search(text) or OTHER_DOUBT.search(text):
        return None
    # "If 22 of 30 stay, 8 leave" states 8
    clause = _CLAUSE.match(text)
    if clause:
        text = text[clause.end() :]
    segments = list(_SEGMENT.finditer(text))
    if segments:
        return _value_of_segments(text, segments, only)
    return _value_of_prose(text, only)


def _value_of_prose(text: str, only: bool) -> Value | None:
    """The value of a sentence without mathematics that is set off from it."""
    label = _LABEL.match(text)
    if label:
        value = _value(text[label.end() :])
        if value is not None:
            return value
    numerals = list(_NUMERAL.finditer(text))
    if only and len(numerals) != 1:
        return None
    # the beginning of a list, or of what is cut off
    if _ENUMERATED.match(text) or text.rstrip().endswith(":"):
        return None
    if len(numerals) == 1:
        value = _quantity(text, numerals[0], only)
        # of "5 apples for Ann, x = 5" the equation states it
        if value is not None or "=" not in text:
            return value
    return _last_stated(text)


def _value_of_segments(text: str, segments: list[re.Match[str]], in_gold: bool) -> Value | None:
    """The value of a sentence with mathematics in it, all of which has to say the same."""
    contents = [_content(segment) for segment in segments]
    if len({tidy(content) for content in contents}) > 1:
        return None
    # "\\(5\\) + 1", "\\(5\\), 6"
    if _NO_PROSE.search(_SEGMENT.sub(" ", text)):
        return None
    before = text[: segments[0].start()]
    if _is_no_statement(before):
        return None
    # "Area \\(= 6\\)" has its verb within
    is_equation = contents[0].startswith("=")
    if not (in_gold or is_equation or _is_stated(before)):
        return None
    return _value(contents[0].removeprefix("="))


def _content(segment: re.Match[str]) -> str:
    """What stands between the marks of a segment or block."""
    return next(filter(None, segment.groups())).strip()


def _is_no_statement(before: str) -> bool:
    """Whether the words before a value say that it is a part, a bound or a name, or hold a number
    of their own.
    """
    if _NOT_BEFORE.search(before):
        return True
    if _COPULA.search(before):
        return False
    return any(word["never"] or not word["known"] for word in _NUMBER_WORD.finditer(before))


def _quantity(text: str, numeral: re.Match[str], in_gold: bool) -> Value | None:
    """The only number of a sentence, with its unit. A gold need not be a statement."""
    before = text[: numeral.start()].rstrip("$€£¥")
    after = text[numeral.end() :]
    if _NO_PROSE.search(before) or _is_no_statement(before):
        return None
    if not (in_gold or _is_stated(before)):
        return None
    # "12 + x", "12^{n}": the number is a part of a formula
    if re.search(r"[\\+*/=<>^()\[\]{}|-]", after):
        return None
    return _with_unit(text[len(before) : numeral.end()], after)


def _with_unit(number: str, after: str) -> Value | None:
    """A number with its unit, which is the first of the words behind it or the first few."""
    # "5 and a half", "5 hundred"
    if any(not word["known"] for word in _NUMBER_WORD.finditer(after)):
        return None
    after = _MORE.sub("", after)
    ends = [len(after)]
    for match in _ENDS_QUANTITY.finditer(after):
        ends.append(match.start())
    for end in sorted(ends[:_MAX_ENDS]):
        value = _value(number + after[:end])
        if value is not None:
            return value
    return None


def _last_stated(text: str) -> Value | None:
    """The value that the last statement of a sentence gives, where no other one gives another."""
    statements = list(_STATEMENT.finditer(text))
    if not statements:
        return None
    # a formula that could not be read: what is left of its last `=` may contradict the gold
    if statements[-1][0] == "=" and not _WORD.search(text):
        return None

    # an operand is not stated: "it is 48 + 24"
    stated = [match for match in _STATED.finditer(text) if not _OPERATOR.match(text, match.end())]
    if _contradicts_itself(text, stated):
        return None

    value = _value(text[statements[-1].end() :])
    if value is not None or not stated:
        return value
    # "they have 12 apples in the basket": the number and the first words behind it
    last = stated[-1]
    after = text[last.end() :]
    return None if _NUMERAL.search(text, last.end()) else _with_unit(last["number"], after)


def _contradicts_itself(text: str, stated: list[re.Match[str]]) -> bool:
    """Whether a sentence states several numbers, of which the last does not follow from the
    others.
    """
    numbers = {_number(match) for match in stated}
    # "72 clips were sold": the sentence begins with what it states
    first = _FIRST_NUMERAL.match(text)
    if first and not _OPERATOR.match(text, first.end()):
        numbers.add(_number(first))
        return len(numbers) > 1
    if len(numbers) < 2:
        return False
    # "Ann has 8, Tom has 4, so they have 12": the conclusion is behind all numbers but the last
    before_last = stated[-2].end()
    if _CONCLUSION.search(text, 0, before_last):
        return True
    return not _CONCLUSION.search(text, before_last)


def _number(match: re.Match[str]) -> Fraction | str:
    """A stated number as a value, so that 5 and 5.0 are one; as text where it is none (1.2.3)."""
    text = match["number"].strip("$€£").replace(",", "")
    if "/" in text or text.count(".") > 1:
        return text
    return Fraction(text)


def _value(text: str) -> Value | None:
    """What a text is read as, other than words."""
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


# --- the answer at the end of a completion that marks none

_MARKER = re.compile(
    # The answer, the answer to the question, the correct option, 答案
    r"(?:\banswers?\b(?:\s+to\s+[^\n.:=]{1,60}?)?|\b(?:correct|right)\s+(?:option|choice)\b"
    r"|\b(?:respuesta|réponse|antwort|resposta|risposta|odpowiedź|ответ|cevap)\b|答え|정답"
    r"|答案|结果)"
    # ... is: 5, **: 5, or a heading with the answer on the lines behind it
    r"(?:(?P<verb>"
    # cevap 7'dir: the verb is behind the number
    r"(?<=cevap)\s+(?=[\d$\\])"
    r"|\s*(?:\*\*)?\s*(?:\b(?:is|are|was|es|est|ist|è|é|jest)\b|:|=|：|是|为|は)(?:\s*[:：])?(?:\*\*)?)"
    r"|[ \t*_]*(?=\n))",
    re.IGNORECASE,
)
# ### Final Answer, **Answer:**
_HEADING = re.compile(
    r"[\s#*_]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer\s*:?[*_]*)?", re.IGNORECASE
)
# what stands before a marker in its sentence
_SENTENCE_END = re.compile(r"[\n.!?。]")
# "Answer: Let's check" announces an answer, and gives none
_ANNOUNCES = re.compile(
    r"[ \t*_]*(?:let['’]?s\b|let (?:us|me)\b|first,|to (?:find|solve|determine|answer)\b"
    r"|we (?:need|have|know|can|start|begin)\b|i (?:need|have|will|can)\b"
    r"|here(?:['’]s| is| are)\b|step (?:\d|by)\b)",
    re.IGNORECASE,
)
# cevap 7'dir, cevap 7 olur
_TURKISH_VERB = re.compile(r"['’][dt][ıiuü]r$|\s+(?:olur|olacaktır|olarak bulunur)$")
# "(A) is wrong", behind another letter
_CALLED_WRONG = re.compile(
    r"\(?\b([A-H])\b\)?(?:,? (?:and|or) \(?([A-H])\b\)?)?"
    r" (?:is|are) (?:wrong|incorrect|false|not (?:correct|right|true))\b"
)
# where the answer on its line ends; the point of 3.5 ends nothing
_ANSWER_END = re.compile(r"(?<!\d)[.!。](?:\s|$)|(?<=\d)\.(?=\s|$)|。")
# a unit behind a block: $5$ cm.
_UNIT_AFTER = re.compile(r"\s+([A-Za-z][A-Za-z /]{0,30})\.?\s*$")
# 故选B, 选 A、C
_CHOSEN = re.compile(
    r"(?:故选|应选|因此选|所以选|选)\s*[:：]?\s*\(?([A-H](?:\s*[,、]?\s*[A-H])*)\)?\s*[。.]?\s*$"
)


def is_heading(text: str) -> bool:
    """Whether a line only announces the answer: "Final Answer", "**Answer:**"."""
    return bool(text) and _HEADING.fullmatch(text) is not None


def is_bare(text: str) -> bool:
    """Whether a whole completion is one line that is read as a value, and not as words."""
    return "\n" not in text and not _MARKER.search(text) and not in_words(read(text))


# right before a box: "it is not \boxed{5}"; also \text{not } in an outer one
_NOT_THE_BOX = re.compile(
    r"(?:\bnot(?:\s+(?:be|equal\s+to))?|n['’]t(?:\s+be)?|\bcannot\s+be|\bnever|\bor\s+is\s+it"
    r"|(?<!no )(?<!without )\bdoubt(?:\s+that)?(?:\s+(?:it|the\s+answer)\s+is)?)[\s$\\({\[}:*]*\Z",
    re.IGNORECASE,
)
# ... and right behind it: "\boxed{5} is wrong", "\boxed{5}?"
_BOX_IS_WRONG = re.compile(
    r"[ \t$\\)}\].,*]*(?:\?|(?:is|was|are|were|would\s+be|seems|looks)\s+(?:also\s+|clearly\s+)?"
    r"(?:not|wrong|incorrect|false|impossible|invalid|excluded|rejected)\b|isn['’]t\b"
    r"|or\s+(?:not|is\s+it|maybe|perhaps)\b|(?:maybe|perhaps|not)\b)",
    re.IGNORECASE,
)
_OR_ANOTHER = re.compile(r"[\s$\\)}\],*]*\bor\s+[$\\(]*([^\s$,;()]+)")
_LONGEST_CONTEXT = 80  # characters on either side


def is_taken_back(before: str, content: str, after: str) -> bool:
    r"""Whether the words around a box say that its content is not the answer, or another is as well.

    >>> is_taken_back("It is not $", "5", "$."), is_taken_back("It is $", "5", "$ or $6$.")
    (True, True)
    >>> is_taken_back("It is ", r"\frac12", " or 0.5."), is_taken_back("It is ", "5", ". Is it not?")
    (False, False)
    """
    if _NOT_THE_BOX.search(before[-_LONGEST_CONTEXT:]):
        return True
    after = after[:_LONGEST_CONTEXT]
    if _BOX_IS_WRONG.match(after):
        return True
    other = _OR_ANOTHER.match(after)
    value = read(other[1].rstrip(".")) if other else None
    if not isinstance(value, Number):
        return False
    stated = read(content)
    return stated is not None and not same(stated, value)


class _Marked(NamedTuple):
    """An answer behind a marker."""

    answer: str
    is_block: bool  # in mathematics, quotes or a fence
    spread: bool  # on other lines than the marker
    after: str  # what follows it, on its line or, where it is spread, up to the end


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
    marker = None
    before = ""
    for match, sentence in _markers(tail):
        marker, before = match, sentence
    if marker is None:
        return _chosen(tail)
    marked = _behind(tail[marker.end() :])
    if _is_doubtful(before, marked):
        return None
    if not marked.is_block:
        answer = marked.answer.strip().strip("*").strip()
        return _TURKISH_VERB.sub("", answer) or None
    unit = _UNIT_AFTER.match(marked.after)
    if unit:
        with_unit = f"{marked.answer} {unit[1]}"
        if isinstance(read(with_unit), Number):
            return with_unit
    return marked.answer


def _markers(tail: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each marker of an answer, and the part of its sentence before it.

    A marker without a verb has to be a heading: "This is not the answer" announces nothing. What
    follows it has to be an answer, and not the beginning of a solution.
    """
    for match in _MARKER.finditer(tail):
        if _ANNOUNCES.match(tail, match.end()):
            continue
        sentence = _SENTENCE_END.split(tail[: match.start()])[-1]
        if match["verb"] or is_heading(f"{sentence}answer"):
            yield match, sentence


def _behind(rest: str) -> _Marked:
    """The answer in what stands behind a marker."""
    start = len(rest) - len(rest.lstrip(" \t\n*_"))
    spread = "\n" in rest[:start]
    rest = rest[start:]
    block = _BLOCK.match(rest)
    if block:
        answer = _content(block)
        after = rest[block.end() :]
        spread = spread or "\n" in block[0]
    else:
        line = rest.partition("\n")[0]
        answer = line
        after = rest[len(line) :]
        end = _ANSWER_END.search(line)
        if end:
            answer = line[: end.start()]
            after = rest[end.end() :]
    if not spread:
        after = after.partition("\n")[0]
    return _Marked(answer, block is not None, spread, after)


def _is_doubtful(before: str, marked: _Marked) -> bool:
    """Whether the words around an answer deny it or leave it open, or give another one."""
    # a block may hold words of its own, such as \text{or}; the reader judges them
    line = "" if marked.is_block else marked.answer
    after = marked.after
    chosen = read(line)
    if isinstance(chosen, Choice):
        after = _without_other_letters(after, chosen.letter)
        called_correct = {match[1] or match[2] for match in CALLED_CORRECT.finditer(after)}
        if called_correct - {chosen.letter.upper()}:
            return True
    if any(DENIAL.search(words) for words in (before, after, line)):
        return True
    if _ATTITUDE.search(before):
        return True
    if _OR.search(marked.after) or _OR.search(line):
        return True
    if not (marked.is_block or marked.spread):
        return False
    # more lines or formulas behind it: the answer may be among them
    other_formulas = {tidy(_content(segment)) for segment in _SEGMENT.finditer(marked.after)}
    other_numbers = set(_NUMERAL.findall(marked.after)) - set(_NUMERAL.findall(marked.answer))
    return bool(other_formulas - {tidy(marked.answer)} or other_numbers)


def _without_other_letters(after: str, letter: str) -> str:
    """The words behind a chosen letter, without those that only call other letters wrong."""

    def other(match: re.Match[str]) -> str:
        return match[0] if letter.upper() in match.groups() else ""

    return _CALLED_WRONG.sub(other, after)


def _chosen(tail: str) -> str | None:
    """The choice that the end of a text calls correct."""
    chosen = _CHOSEN.search(tail)
    if chosen:
        return chosen[1]
    sentence = _SENTENCE_END.split(tail.rstrip(" \n.!*"))[-1].strip(" *")
    # "A is correct. B is correct." chooses nothing
    letters = {match[1] for match in CALLED_CORRECT.finditer(tail)}
    if len(letters) == 1 and isinstance(read(sentence), Choice):
        return sentence
    return None
