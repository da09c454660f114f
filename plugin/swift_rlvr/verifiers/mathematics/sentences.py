"""A value within words: a sentence that states one.

Golds are such sentences in College Math (1723, "$l^{2} / 8$ square feet") and Orca-Math, and policies
answer in them. Most of the rules here refuse. A sentence that names the right number may say that it is wrong, a
part, a bound or one of several, and a policy that is paid for naming numbers learns to name many.
"""

import re
from fractions import Fraction

from swift_rlvr.verifiers.languages import OR
from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.plain_numbers import NUMBER_WORDS
from swift_rlvr.verifiers.mathematics.reading import BEFORE_CONDITION, NO_STATEMENT, read
from swift_rlvr.verifiers.mathematics.units import OTHER_DOUBT
from swift_rlvr.verifiers.mathematics.values import Relation, Value, Words
from swift_rlvr.verifiers.statements import NUMERAL, SEGMENT, content_of

# what prose has not: signs, digits, and single letters other than "a" and "I"
_NO_PROSE = re.compile(
    r"[^\w\s.,:;!*\"'’“”，。、：；！]|\d|(?<![^\W\d_])(?<!')(?![aAI](?![^\W\d_]))[A-Za-z](?!'|[^\W\d_])"
)

# --- numbers of a sentence

_AMOUNT = rf"(?P<number>[$€£]?{NUMERAL.pattern})"
_FIRST_NUMERAL = re.compile(rf"\s*{_AMOUNT}")
# behind a numeral, it is an operand: 48 + 24, 3 bags x 4, 3 bags = 12; not 8 such that x = 12
_OPERATOR = re.compile(
    r"\s*(?:[A-Za-z]+\s+){0,3}(?:[-+*/×÷^]|\\|x\s*\d)|\s*(?:(?:[A-Za-z]+\s+){0,2}[A-Za-z]{2,}\s+)?="
)
# a number in words beside the numeral makes two numbers of one sentence, "two of the 5" ...
_NUMBER_WORD = re.compile(
    # ... unless it belongs to what is known: "in two weeks", "the three girls"
    r"(?P<known>\b(?:the|these|those|this|that|which|his|her|their|its|our|my|your|all|both|each"
    r"|every|per|no|first|last|next|other|another|for|in|within|after)\s+)?"
    rf"\b(?:{'|'.join(NUMBER_WORDS)}"
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
# right before the value these leave no doubt of what is stated: "the three of them are 5"
_COPULA = re.compile(r"\b(?:is|are|was|were|be|equals|equal to)[:\s]*$", re.IGNORECASE)
# right behind these a number is a statement of its own: "Of the students, 5 walk", "Total: 5"
_BEGINS_STATEMENT = re.compile(r"(?:\A\W*|[,:;=–—]\s*|\bthen\s+)\Z")
# in these scripts only what `OTHER_DOUBT` knows is refused
_OTHER_LETTERS = re.compile(r"[\u0400-\u1fff\u3040-\u9fff\uac00-\ud7af]")


def _is_stated(before: str, needs_verb: bool = True) -> bool:
    """Whether the words before a number make a statement of it. They do not if they say that it is a
    part, a bound or a name, or hold a number of their own. A gold needs no verb.

    >>> _is_stated("She earned "), _is_stated("It takes her "), _is_stated("some say ")
    (True, True, False)
    >>> _is_stated("divisible by "), _is_stated("The answer is divisible by "), _is_stated("Two of the ")
    (False, False, False)
    """
    if _NOT_BEFORE.search(before):
        return False
    if not _COPULA.search(before):
        for word in _NUMBER_WORD.finditer(before):
            if word["never"] or not word["known"]:
                return False
    if not needs_verb or _BEGINS_STATEMENT.search(before) or _OTHER_LETTERS.search(before):
        return True
    return _STATES.search(before) is not None


# --- parts of a sentence

# "If 22 of 30 stay, ": what is known stands before the comma
_CLAUSE = re.compile(
    r"\W*(?:if|to|since|because|when|given|with|using|converting)\b[^,]*,\s*", re.IGNORECASE
)
# "The maximum is 5 | at x = 3", and no further words: where the value is taken is not the value
_WHERE = re.compile(
    rf"[\s,(]{{0,3}}(?:\\text\s*\{{[\s,]*)?\b(?:at|{BEFORE_CONDITION})(?:\s*\}}|\s)\s*"
    r"(?:\$|\\\()?\s*[A-Za-z]\s*="
    r"(?:\\[A-Za-z]+|[A-Za-z](?![A-Za-z])|[^=A-Za-z])*\Z"
)
# **Total cost**: 5
_LABEL = re.compile(r"[*_]*[A-Z][A-Za-z' ]{1,40}[*_]*\s*[:=]\s*[*_]*\s*")
# the beginning of a list, "1. Add the numbers", or of what is cut off
_GOES_ON = re.compile(r"\s*\d+[.):]\s|.*:\s*\Z", re.DOTALL)
# "12 + x", "12^{n}": what stands behind a number that is a part of a formula
_IN_FORMULA = re.compile(r"[\\+*/=<>^()\[\]{}|-]")
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

# -8, \sqrt{2}, (8, 9), x^2, and behind it words; not 48 / 2 = 24, which are operands
_FORMULA_FIRST = re.compile(
    r"(?!a\s|I\s|[A-Za-z]{2})[^=]*?\s[A-Za-z]{3,}\s+(?:[A-Za-z]+\s+){0,3}[A-Za-z]\s*="
)

# x, ABC, \triangle ABC, (a, b)
_NAME = re.compile(r"(?:\\(?:triangle|angle|[a-z]{2,7}line)|[A-Za-z\s(){},'])+")
_IS_VALUE = re.compile(r"\b(?:is|are|equals)\b:?[\s*$\\(]*-?[\d\\]")
# \text{Tom has 5 apples.}
_SET_AS_TEXT = re.compile(r"\\(?:text|mbox)\{([^{}]*)\}")

# what denies a value, leaves it open or names another one
_DOUBTS = (NO_STATEMENT, OR, OTHER_DOUBT)
# longer texts are no sentence
_MAX_SENTENCE_CHARS = 1000
# how many ends of a quantity are tried
_MAX_ENDS = 8


def stated_value(text: str, only: bool = False) -> Value | None:
    """The one value that a sentence states. Returns None if it states several, denies one or leaves it
    open.

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
    if (whole := _SET_AS_TEXT.match(text)) and text[whole.end() :] in ("", "."):
        text = whole[1]
    if any(doubt.search(text) for doubt in _DOUBTS):
        return None
    # "If 22 of 30 stay, 8 leave" states 8
    if clause := _CLAUSE.match(text):
        text = text[clause.end() :]
    if "=" in text and (where := _WHERE.search(text)):
        main = text[: where.start()]
        value = _value(main)
        if value is not None:
            return value
        # "The maximum of x^2 + 3 is at x = 1" and "It is minimal for x = 1" state where it is
        if (NUMERAL.search(main) or "\\" in main) and not _COPULA.search(main):
            text = main
    # "the area of $ABC$ is $5$": a formula that only names what its value is of is a word
    if text.count("$") > 1 or "\\(" in text:
        sentence = text

        def as_word(segment: re.Match[str]) -> str:
            is_name = _NAME.fullmatch(content_of(segment))
            return "it" if is_name and _IS_VALUE.search(sentence, segment.end()) else segment[0]

        text = SEGMENT.sub(as_word, sentence)
    segments = list(SEGMENT.finditer(text))
    if not segments:
        return _value_of_prose(text, only)

    # the mathematics in it, all of which has to say the same
    contents = [content_of(segment) for segment in segments]
    if len(set(map(tidy, contents))) > 1:
        return None
    # "\\(5\\) + 1", "\\(5\\), 6"
    if _NO_PROSE.search(SEGMENT.sub(" ", text)):
        return None
    # "Area \\(= 6\\)" has its verb within
    needs_verb = not (only or contents[0].startswith("="))
    if not _is_stated(text[: segments[0].start()], needs_verb):
        return None
    return _value(contents[0].removeprefix("="))


def _value_of_prose(text: str, only: bool) -> Value | None:
    """The value of a sentence without mathematics that is set off from it."""
    label = _LABEL.match(text)
    if label:
        value = _value(text[label.end() :])
        if value is not None:
            return value
    numerals = list(NUMERAL.finditer(text))
    if only and len(numerals) != 1:
        return None
    if _GOES_ON.match(text):
        return None
    if len(numerals) == 1:
        # the only number of the sentence, with its unit; a gold need not be a statement
        before = text[: numerals[0].start()].rstrip("$€£¥")
        after = text[numerals[0].end() :]
        value = None
        is_stated = not _NO_PROSE.search(before) and _is_stated(before, needs_verb=not only)
        if is_stated and not _IN_FORMULA.search(after):
            value = _with_unit(text[len(before) : numerals[0].end()], after)
        # of "5 apples for Ann, x = 5" the equation states it
        if value is not None or "=" not in text:
            return value
    return _last_stated(text)


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
    words = _SET_AS_TEXT.sub(r"\1", text)
    # A formula that could not be read, and one with words behind it: what stands before the last `=` may
    # contradict the gold, as in `\sqrt{2} such that x = 7`.
    if statements[-1][0] == "=" and (_FORMULA_FIRST.match(words) or not _WORD.search(text)):
        return None
    if _contradicts_itself(words):
        return None

    value = _value(text[statements[-1].end() :])
    stated = _stated_numbers(text)
    if value is not None or not stated:
        return value
    # "they have 12 apples in the basket": the number and the first words behind it
    last = stated[-1]
    after = text[last.end() :]
    return None if NUMERAL.search(text, last.end()) else _with_unit(last["number"], after)


def _stated_numbers(text: str) -> list[re.Match[str]]:
    """The numbers behind the verbs of a sentence; an operand is not stated: "it is 48 + 24"."""
    return [match for match in _STATED.finditer(text) if not _OPERATOR.match(text, match.end())]


def _contradicts_itself(text: str) -> bool:
    """Whether a sentence states several numbers, of which the last does not follow from the
    others.
    """
    stated = _stated_numbers(text)
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
    """What a text is read as, other than words; 1.333... goes on."""
    if text.rstrip().endswith(".."):
        return None
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
