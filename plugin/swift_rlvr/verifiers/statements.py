r"""The final answer of a completion: which statement of it counts, for every verifier.

Where the row, the dataset or the reward names a form (`answer_forms.py`), only an answer in that
form is read. Otherwise complete answer tags after the thinking win, whatever stands before or
behind them: a prompt has asked for them. Without tags it is the last statement after the thinking,
of whatever kind: a box, ``####``, ``{"answer": ...}``, a block fenced as ``answer``, ``<final_answer>`` and
other tags, "Answer: ...", "The answer is ..." in any of the languages of `languages.py`, 【答案】, or a
letter or a value alone on the last line, or in bold at its end. Two values that differ within one
statement are none.

Most of the rules here refuse: a policy that is paid for naming values learns to name many.
"""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from swift_rlvr.verifiers.answer_forms import (
    BOXED,
    CODE,
    FORMS,
    HASH,
    JSON,
    LAST_LINE,
    MARKER,
    OTHER_TAGS,
    TAGS,
)
from swift_rlvr.verifiers.answers import (
    OPEN,
    boxed_statement,
    find_code,
    has_unclosed_answer,
    last_answer,
    normalised_answer,
    with_latex_boxes,
    without_struck,
)
from swift_rlvr.verifiers.languages import (
    AFTER_OF_OTHERS,
    ANNOUNCES,
    ANOTHER_CASE,
    ANSWER_IS,
    ANSWER_IS_OF_OTHERS,
    BOX_IS_WRONG,
    CALLED_CORRECT,
    CALLED_WRONG,
    CALLED_WRONG_BEFORE,
    CHOSEN,
    CONTRASTS,
    CORRECTED,
    DENIAL,
    DENIAL_OF_OTHERS,
    DENIALS,
    DENIED_AT_END,
    DOUBT,
    DOUBT_BEFORE,
    HEADING,
    LABEL_OF_LAST_LINE,
    LEAD_IN,
    NOT_ANOTHER_BUT,
    OF_MISTAKE,
    OR,
    OR_OF_OTHERS,
    REASON_BEHIND,
    RESULT,
    SECOND_THOUGHT,
    SURELY,
    TAKEN_BACK,
    TAKES_BACK,
    TRUTH,
    VALUE_IS_DENIED,
    VALUE_NOT_ANOTHER,
    Contrast,
)
from swift_rlvr.verifiers.thinking import after_thinking, without_end_tokens

ACCEPTED_FORMS = f"one of {', '.join(FORMS)} or a regular expression with one group"
# where an answer behind words is searched for: at the end of a text
TAIL_CHARS = 1000
# a longer last line is no value alone
_LONGEST_LAST_LINE = 200


class Statement(NamedTuple):
    """A final answer.

    mark: what marks it: "answer tag", "boxed", "####", "JSON", "text" or "last line".
    unit: words behind a formula that may be its unit: $5$ cm.
    """

    mark: str
    answer: str
    unit: str = ""


class Reader(NamedTuple):
    """What a verifier knows of values.

    is_another: whether what is named behind "or" is another value than the one stated. is_value:
    whether a line is nothing but a value.
    """

    is_another: Callable[[str, str], bool]
    is_value: Callable[[str], bool]


# A letter or a number, alone: (C), **42**
_LETTER_ALONE = re.compile(r"[\s*(\[$]*(?:\\text\{)?([A-J])[\s*)\].}$]*")
_NUMBER_ALONE = re.compile(r"[\s*$]*-?[$€£]?\d[\d,]*(?:\.\d+)?(?:/\d+)?%?[\s*$.]*")


WORDS = Reader(
    is_another=lambda stated, other: normalised_answer(stated) != normalised_answer(other),
    is_value=lambda line: bool(_LETTER_ALONE.fullmatch(line) or _NUMBER_ALONE.fullmatch(line)),
)


def final_statement(text: str, form: str | None = None, reader: Reader = WORDS) -> Statement | None:
    r"""The final answer of a completion; None where it states none, or takes it back.

    form: one of `answer_forms.FORMS`, or a regular expression whose one group is the answer: then
    nothing else is read. ValueError for another.

    >>> final_statement("So \\boxed{7}.\nFinal answer: 8").answer, final_statement("\\boxed{8}\n#### 7").answer
    ('8', '7')
    >>> final_statement("<answer>7</answer> Final answer: 8").answer, final_statement("The answer is 7 or 8.")
    ('7', None)
    >>> final_statement("\\boxed{7} #### 8", form="boxed").answer
    '7'
    """
    text = with_latex_boxes(text)
    if form == CODE:
        code = find_code(text)
        return None if code is None else Statement(form, code)
    tail = text[-TAIL_CHARS:]
    for sign in (*_STRIKING, *_DENYING):
        if sign in tail:
            text = _without_denied(text, reader)
            break
    end = text[-_CONTRAST_CHARS:]
    for sign, contrast in _SIGNS_OF_CONTRAST:
        if sign in end and contrast.is_denied.search(end):
            text = _without_denied(text, reader, contrast)
    if form:
        return _in_form(text, form, reader)
    block = last_answer(text)
    if block is not None:
        return _in_block(block, reader)
    final = without_end_tokens(after_thinking(text)).strip()
    mark = _last_mark(final)
    if mark is not None:
        return _at_mark(final, mark, reader)
    if has_unclosed_answer(text):
        return None
    # a worked solution in tags that only ends with its answer
    if "</" in final:
        final = _OTHER_TAG.sub(r"\g<content>", final).strip()

    tail = final[-TAIL_CHARS:]
    marker = _last_marker(tail)
    if marker is not None:
        return _behind_marker(tail, marker, reader)
    chosen = _chosen(tail)
    if chosen:
        return Statement("text", chosen)
    # "Ergebnis: 7" names the result of a step as well, and so counts on the last line alone
    label = LABEL_OF_LAST_LINE.search(tail)
    if label:
        marker = _Marker(label.start("answer"), "", is_english=False)
        labelled = _behind_marker(tail, marker, reader)
        if labelled is not None:
            return labelled
    return _last_line(final, reader) or _last_result(tail, reader) or _last_bold(final, reader)


# what strikes a value out or denies it, one of which stands in a text that `_without_denied` changes
_STRIKING = ("~~", "</del>", "</strike>", "\\sout", "cancel")
_DENYING = ("not ", "Not ", "n't ", "n’t ", "rather than ", "instead of ", "不是", "并非")
# in other languages, which are looked for nearer to the end: most texts have none of them
_SIGNS_OF_CONTRAST = [(sign, contrast) for contrast in CONTRASTS for sign in contrast.signs]
_CONTRAST_CHARS = 300


def _without_denied(text: str, reader: Reader, contrast: Contrast | None = None) -> str:
    """A text without what its end strikes out, or names only to tell the answer from it: "7 (not 8)" and
    "not 8 but 7" are "7". contrast: as another language than English and Chinese says so.
    """

    def without_other(match: re.Match[str]) -> str:
        stated, other = match.group("stated", "other")
        if not reader.is_another(_unboxed(stated), _unboxed(other)):
            return match[0]
        return match["kept"] or ""

    if contrast is not None:
        end = text[-_CONTRAST_CHARS:]
        for form in contrast.forms:
            end = form.sub(without_other, end)
        return text[:-_CONTRAST_CHARS] + end

    tail = text[-TAIL_CHARS:]
    if any(sign in tail for sign in _STRIKING):
        tail = without_struck(tail)
    # Many texts have a "not", and few deny a value, which is soon seen.
    if VALUE_IS_DENIED.search(tail):
        tail = NOT_ANOTHER_BUT.sub(without_other, tail)
        tail = VALUE_NOT_ANOTHER.sub(without_other, tail)
    return text[:-TAIL_CHARS] + tail


def _unboxed(value: str) -> str:
    return value[len("\\boxed{") : -1] if value.startswith("\\boxed{") else value


def check_form(form: object) -> str | None:
    """A form as it is, or None for None and ""; ValueError for one that is unknown or has not one
    group.
    """
    if form is None or form == "":
        return None
    if isinstance(form, str) and form in FORMS:
        return form
    problem = f"answer_form must be {ACCEPTED_FORMS}, got {form!r:.80}"
    if not isinstance(form, str):
        raise ValueError(problem)
    try:
        groups = re.compile(form).groups
    except re.error as error:
        raise ValueError(f"{problem}: {error}") from None
    if groups != 1:
        raise ValueError(problem)
    return form


def _in_form(text: str, form: str, reader: Reader) -> Statement | None:
    """The last answer in one form, and nothing else."""
    check_form(form)
    if form == TAGS:
        block = last_answer(text)
        return None if block is None else _in_block(block, reader)
    final = without_end_tokens(after_thinking(text)).strip()
    if form == MARKER:
        return _behind_last_marker(final, reader)
    if form == LAST_LINE:
        line = final.rpartition("\n")[2].strip().strip("*").strip()
        return Statement("last line", line) if line else None
    if form in _MARK_OF_FORM:
        mark = _MARK_OF_FORM[form](final)
        if mark is None or _is_taken_back(final, mark, reader):
            return None
        return mark.statement
    groups = re.findall(form, final, re.DOTALL)
    return Statement("answer_form", groups[-1].strip()) if groups else None


def _in_block(block: str, reader: Reader) -> Statement | None:
    """The answer in an answer block: its box, the mark that all of it is, or all of it."""
    mark = _boxed(block)
    if mark is None:
        # A prompt may ask for tags, and its question for JSON, a fence or a label.
        whole = block.strip()
        inner = _last_mark(whole)
        if inner is not None:
            around = whole[: inner.start] + whole[inner.end :]
            if around.replace("```json", "").strip("` \n") == "":
                return inner.statement
        label = _LABEL_OF_BLOCK.match(whole)
        return Statement("answer tag", whole[label.end() :] if label else whole)
    if _is_taken_back(block, mark, reader):
        return _behind_last_marker(block[mark.end :], reader)
    return mark.statement


# All that may stand before an answer in its block: #ANSWER#: 7, ### Answer: 7
_LABEL_OF_BLOCK = re.compile(
    r"(?!\w)[^\w\n]*+(?:the )?(?:final |correct )?answer[*#_|\]]{0,3}\s*[:：](?:[*_]{0,2}\s+)(?=[^\n]+\Z)",
    re.IGNORECASE,
)


# --- marks


class _Mark(NamedTuple):
    """A statement that is marked, and its place.

    last: what stands last in it: the content of the last of several boxes.
    """

    statement: Statement
    start: int
    end: int
    last: str


def _last_mark(final: str) -> _Mark | None:
    """The mark that ends last. A box within another mark is its content."""
    last = None
    for sign, find in _MARKS.items():
        if sign not in final:
            continue
        mark = find(final)
        if mark is None or (last is not None and mark.end <= last.end):
            continue
        # behind another mark `#### Explanation` is a heading of Markdown
        if find is _hash and last is not None and not _VALUE.match(mark.last):
            continue
        last = mark
    return last


def _at_mark(final: str, mark: _Mark, reader: Reader) -> Statement | None:
    """What a mark states, or what the words behind it state in its place."""
    rest = final[mark.end :]
    # in `\boxed{7}<answer>8` another answer is begun
    if OPEN in rest:
        return None
    if _is_taken_back(final, mark, reader):
        return _behind_last_marker(rest, reader)

    tail = rest[-TAIL_CHARS:].strip(_CLOSING_SIGNS)
    marker = _last_marker(tail) if tail else None
    if marker is not None and _VALUE.match(tail, marker.end):
        stated = _behind_marker(tail, marker, reader)
        if stated is not None:
            return stated
        # "\boxed{7}. The answer is 7, but ..." says nothing new, "... is 7 or 8" does
        value = tail[marker.end :].lstrip(" $\\([*").removeprefix("boxed{")
        is_repeated = bool(mark.last) and value.startswith(mark.last)
        if not is_repeated or _OR_ANOTHER.match(value[len(mark.last) :]):
            return None

    _, line_break, line = rest.rpartition("\n")
    letter = _LETTER_ALONE.fullmatch(line) if line_break else None
    return Statement("last line", letter[1]) if letter else mark.statement


def _boxed(text: str) -> _Mark | None:
    boxed = boxed_statement(text)
    if boxed is None:
        return None
    statement = Statement("boxed", boxed.answer.strip())
    return _Mark(statement, boxed.start, boxed.end, boxed.last)


def _hash(text: str) -> _Mark | None:
    """What follows the last ``####`` on its line, as in GSM8K, unless it is a heading."""
    start = text.rfind("####")
    if start < 0:
        return None
    content_start = start + len("####")
    rest = text[content_start:]
    line = rest.strip().partition("\n")[0].strip()
    if is_heading(line):
        return None
    end = content_start + len(rest) - len(rest.lstrip()) + len(line)
    return _with_box("####", line, start, end)


# "answer": 3, 'final_answer': "C"
_JSON_VALUE = re.compile(
    r"""["'](?:final[_ ]?|correct[_ ]?)?answer["']\s*:\s*
    (?P<value> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | \[[^\[\]{}]*\] | [^\s,{}\[\]"'][^,{}\n]* )
    \s*(?:[,}\n*`]|\Z)""",
    re.VERBOSE | re.IGNORECASE,
)
_LONGEST_KEY = 20
# "\frac" in JSON would be a form feed; a model that writes so means LaTeX
_LATEX_IN_JSON = re.compile(r"(?<!\\)\\[A-Za-z]{2,}")
# between two objects of which one is meant
_OR_BEFORE = re.compile(r"\bor[\s`]*\Z")


def _json(text: str) -> _Mark | None:
    """The value of the last key "answer" of an object."""
    key_end = max(text.rfind('nswer"'), text.rfind("nswer'"))
    if key_end < 0:
        return None
    matches = list(_JSON_VALUE.finditer(text, max(0, key_end - _LONGEST_KEY)))
    if not matches:
        return None
    found = matches[-1]
    start = text.rfind("{", 0, found.start())
    if start < 0:
        # Alone on its line, as Qwen's prompt for multiple choice asks for it: "answer": "C"
        start = found.start()
        before = text[text.rfind("\n", 0, start) + 1 : start]
        if before.strip("*` ") or found["value"][0] not in "\"'":
            return None
    end = text.find("}", found.end() - 1)
    return _json_value(text, found["value"], start, found.end() if end < 0 else end + 1)


# Other keys name the result of a step, too, and so count at the end alone, beside texts such as the
# reasoning: {"reasoning": "...", "final": 7}
_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_OTHER_KEY = re.compile(r'"(?:final(?:[_ ](?:result|value|solution))?|result|solution)"\s*:', re.I)
_OTHER_VALUE = re.compile(
    rf"\s*(?P<value>{_STRING}|[^\s,{{}}\[\]\"'][^,{{}}\n]*)"
    rf"(?:\s*,\s*{_STRING}\s*:\s*{_STRING})*+\s*\}}[\s`*]*\Z"
)


def _json_of_other_key(text: str) -> _Mark | None:
    """The value of the one key that names a result, in an object that ends a text."""
    tail_start = max(0, len(text) - TAIL_CHARS)
    keys = list(_OTHER_KEY.finditer(text, tail_start))
    found = _OTHER_VALUE.match(text, keys[-1].end()) if keys else None
    start = text.rfind("{", 0, keys[-1].start()) if keys else -1
    if found is None or start < 0:
        return None
    # {"result": 7, "final": 8} gives two
    if keys[1:] and keys[-2].start() > start:
        return None
    return _json_value(text, found["value"], start, len(text.rstrip("` *\n")))


def _json_value(text: str, written: str, start: int, end: int) -> _Mark:
    """The value of a key in an object from `start` to `end`, as JSON or Python write it."""
    written = written.strip()
    value = written
    if written[0] in "\"'":
        value = written[1:-1]
        if written[0] == '"' and not _LATEX_IN_JSON.search(written):
            with suppress(ValueError):
                value = json.loads(written, strict=False)
        else:
            value = value.replace("\\\\", "\\")
    mark = _with_box("JSON", value.strip(), start, end)
    if _OR_BEFORE.search(text, max(0, start - 10), start):
        return mark._replace(last="", statement=Statement("JSON", ""))
    return mark


# ```answer
_ANSWER_FENCE = re.compile(r"```[ \t]*(?:final[_ ]?)?answer[ \t]*\n", re.IGNORECASE)


def _fence(text: str) -> _Mark | None:
    """The last block that is labelled as the answer."""
    # Of blocks that are not closed it looks at the last two alone, which one closing fence can belong to.
    for opening in list(_ANSWER_FENCE.finditer(text))[:-3:-1]:
        close = text.find("```", opening.end())
        if close >= 0:
            content = text[opening.end() : close].strip()
            return _with_box("answer tag", content, opening.start(), close + 3)
    return None


# What a prompt asks for in place of <answer>, up to its end or to another one.
_OTHER_TAG = re.compile(
    rf"<(?P<tag>{OTHER_TAGS})>(?P<content>(?:(?!<(?:{OTHER_TAGS})>).)*?)</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)


def _other_tag(text: str) -> _Mark | None:
    """The last tag of another name. A text that only ends with its answer, as a worked solution in
    <solution> does, is read as if it had no tag.
    """
    tags = list(_OTHER_TAG.finditer(text))
    if not tags:
        return None
    found = tags[-1]
    content = found["content"].strip()
    is_answer = found["tag"].casefold() == "final_answer"
    if not is_answer and ("\n" in content or _last_marker(content) or "boxed" in content):
        return None
    return _with_box("answer tag", content, found.start(), found.end())


def _chinese_mark(text: str) -> _Mark | None:
    """What follows the last 【答案】 on its line; an explanation may follow."""
    start = text.rfind("【答案】")
    if start < 0:
        return None
    content_start = start + len("【答案】")
    rest = text[content_start:]
    line = rest.lstrip(" :：\n").partition("\n")[0]
    end = content_start + rest.find(line) + len(line) if line else len(text)
    answer = without_end_tokens(line).strip(" 。.")
    if DENIAL.search(answer) or OR_OF_OTHERS.search(answer):
        answer = ""
    return _with_box("text", answer, start, end)


def _with_box(mark: str, content: str, start: int, end: int) -> _Mark:
    r"""A mark, with the content of the box that it is: #### \boxed{7}, but not #### not \boxed{7}"""
    boxed = boxed_statement(content)
    answer = content
    if boxed is not None:
        around = content[: boxed.start].lstrip(_OPENING_SIGNS) + content[boxed.end :]
        if not around.strip(_CLOSING_SIGNS):
            answer = boxed.answer.strip()
    return _Mark(Statement(mark, answer), start, end, content)


# By what a mark cannot be without, which is soon looked for. #### is behind the marks that tell
# whether it is a heading.
_MARKS: dict[str, Callable[[str], _Mark | None]] = {
    "box": _boxed,
    'nswer"': _json,
    "nswer'": _json,
    '":': _json_of_other_key,
    "```": _fence,
    "</": _other_tag,
    "####": _hash,
    "【答案】": _chinese_mark,
}
_MARK_OF_FORM = {BOXED: _boxed, HASH: _hash, JSON: _json}


# what may stand right before and right behind a mark
_OPENING_SIGNS = " \t\n$\\({[}:*"
_CLOSING_SIGNS = " \n\t.,;$\\)]}*`"
# \boxed{5} or 6, \boxed{5} (or 6)
_OR_ANOTHER = re.compile(
    r"[\s$\\)}\],*(]*(?:text\s*\{\s*(?:or|或)\s*\}|\bor\s|或)\s*[$\\(]*([^\s$,;()]+)"
)
# \boxed{5}(6), but not (6 cm), and not the number of an equation, \boxed{x = 5} \quad (6)
_ANOTHER_IN_BRACKETS = re.compile(r"[ $]*\(\$?(-?\d+(?:[.,/]\d+)*)\$?\)(?!\s*\w)")
_LONGEST_CONTEXT = 80  # characters on either side


def _is_taken_back(text: str, mark: _Mark, reader: Reader) -> bool:
    """Whether the words around a mark say that it is not the answer, or that another is as well."""
    is_boxed = mark.statement.mark == "boxed"
    after = text[mark.end : mark.end + _LONGEST_CONTEXT]
    # Most marks end the text.
    if after.strip(_CLOSING_SIGNS):
        if _is_corrected(mark.last, after, reader) or (is_boxed and BOX_IS_WRONG.match(after)):
            return True
        case = ANOTHER_CASE.match(after)
        if case and reader.is_another(mark.last, (case["also"] or case["instead"]).rstrip(".,")):
            return True
        other = None
        if is_boxed:
            other = _OR_ANOTHER.match(after)
            if other is None:
                other = _ANOTHER_IN_BRACKETS.match(after)
                # a letter or words may have a number behind them: \boxed{B} (12), \boxed{Gagarin} (1961)
                if _LETTER_ALONE.fullmatch(mark.last) or (other and not reader.is_value(mark.last)):
                    other = None
        if other and reader.is_another(mark.last, other[1].rstrip(".")):
            return True

    before = text[max(0, mark.start - _LONGEST_CONTEXT) : mark.start].rstrip(_OPENING_SIGNS)
    if not is_boxed or not before:
        return False
    before = before.lower()
    sentence = _SENTENCE_END.split(before)[-1]
    if CALLED_WRONG_BEFORE.fullmatch(sentence):
        return True
    # The sentence may be longer than the words that deny.
    if "would" in sentence and _is_of_mistake(text[max(0, mark.start - TAIL_CHARS) : mark.start]):
        return True
    # Most boxes stand behind none of these words, which is soon seen.
    words = " ".join(before.split())
    return words.endswith(DENIALS) and DENIED_AT_END.search(words) is not None


def _is_of_mistake(before: str) -> bool:
    """Whether the sentence that a text ends with is about what somebody would get by a mistake."""
    return OF_MISTAKE.search(_SENTENCE_END.split(before)[-1]) is not None


def _is_corrected(answer: str, after: str, reader: Reader) -> bool:
    """Whether the sentence right behind an answer takes it back: "Wait, that is wrong.", "No, it is 8"."""
    if TAKEN_BACK.match(after):
        return True
    corrected = CORRECTED.match(after)
    if corrected is None:
        return False
    other = corrected["other"] or corrected["alone"] or corrected["due"]
    return reader.is_another(answer, other.rstrip(".,"))


# --- words behind which an answer stands

# $$5$$, $5$, \(5\), \[5\]. "$5 and Tom $6" is money
SEGMENT = re.compile(
    r"\$\$(.+?)\$\$|\$(?![\d.,]+\s+[a-z]+\s)([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
# also in a fence, in quotes of three, or in \begin{align*}...\end{align*}
BLOCK = re.compile(
    r"```\w*\n(.+?)\n\s*```|\"\"\"(.+?)\"\"\"|'''(.+?)'''"
    rf"|{SEGMENT.pattern}"
    r"|\\begin\{(?:equation|align|gather)\*?\}(.+?)\\end\{\w+\*?\}",
    re.DOTALL,
)
# $3$ and $5$, $x = 1$, $y = 2$: one list
_LIST_OF_SEGMENTS = re.compile(
    rf"(?:{SEGMENT.pattern})(?:(?:\s*[,;，、]\s*(?:and\s+)?|\s+and\s+|\s*和\s*)(?:{SEGMENT.pattern}))+",
    re.DOTALL,
)
# what says nothing around an answer: **5** ✅
_AROUND_ANSWER = " \t\n*✅✔✓🎉\ufe0f"
# 12, 1,234.5, 3/4, but not the digits of x2, 2^3 or .5
NUMERAL = re.compile(r"(?<![A-Za-z0-9_{^.!])\d+(?:[.,]\d+)*(?:/\d+)?")
# what ends a sentence; the point of 3.5 does not
_POINT = re.compile(r"[\n!?。।]|\.(?!\d)")
# what stands before a marker in its sentence
_SENTENCE_END = re.compile(r"[\n.!?。।]")
# ... where a conclusion begins in it, or a reason ends, whose denials are not the answer's: "x is not 8, so
# the answer is 7", "since x cannot be 8, the answer is 7"; not "if x is not 8, ..."
_CONCLUSION = re.compile(
    r"(?:\A\W*(?:since|because|as|given that)\b.*,|(?:[,;]|\band)\s+(?:so|therefore|thus|hence|consequently),?)"
    r"\s+(?:(?:we|i) (?:find|get|see|know|conclude) that\s+)?(?:(?:the|our|my)\s+)?(?:(?:final|correct|right)\s+)?\Z",
    re.IGNORECASE,
)
# A, (A), A. and its text
_LETTER = re.compile(r"[\s*(\[]*([A-H])(?:[)\].:*]+(?:\s.*)?|\s*)\Z", re.DOTALL)
# where the answer on its line ends; the point of 3.5 ends nothing, and 0.333... goes on
_ANSWER_END = re.compile(r"(?<!\d)(?<!\.\.)[.!。।](?:\s|$)|(?<=\d)\.(?=\s|$)|[。।]")
# nor do those of names
_POINTS_OF_NAMES = re.compile(
    # Dr. Smith
    r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|Sr|Jr|Rev|Gen|Lt|Col|Capt|Sen|Gov)\."
    # Rs. 5, 5 sq. cm
    r"|\b(?:Rs|sq|cu)\.(?=\s*\S)"
    # J. K. Rowling
    r"|(?<!\S)(?:[A-Z]\.\s?)+[A-Z]\."
    # George W. Bush, where nothing follows
    r"|[A-Z][\w'’-]+ [A-Z]\.(?=\s[A-Z][\w'’-]+[.!]?\s*\Z)"
)
# "3/4, or 0.75" and "3/4 (or 0.75)" may give one value twice
_OR_AGAIN = re.compile(r"(\S+?),? (?:or|\((?=.*\)\Z)or) (\S+?)\)?")
# There are **5** of them; 2**3 is a power
_BOLD = re.compile(r"(?<![\w)\]*])\*\*(?=[^\s*])([^*]*[^\s*])\*\*(?![\w(*])")
# a unit behind a block: $5$ cm.
_UNIT_AFTER = re.compile(r"\s+([A-Za-z][A-Za-z /]{0,30})\.?\s*$")
# what a value begins with, behind a mark that gives another one
_VALUE = re.compile(
    r"[\s*_#>]*"
    # 5, -$5, \(5, {.5
    r"(?:[$€£]?\\?[(\[{]?\s*[-+−]?[$€£]?[.,]?\d"
    # $x$, \(x\), \frac
    r"|\$|\\[(\[a-z]"
    # (A) alone, "A or B"
    r"|\(?[A-J]\b[).:]*\s*(?:\n|\Z|[.,;]|or\b|and\b)"
    # x = 5, x \leq 5
    r"|[a-zA-Z]\s*(?:[=^+*/<>]|\\(?:le|ge|ne)))"
)


def is_heading(text: str) -> bool:
    """Whether a line only announces the answer: "Final Answer", "**Answer:**"."""
    return bool(text) and HEADING.fullmatch(text) is not None


class _Marker(NamedTuple):
    """Words behind which an answer stands.

    end: where they end. before: the part of their sentence before them.
    """

    end: int
    before: str
    is_english: bool


def _last_marker(tail: str) -> _Marker | None:
    """The last marker in English or Chinese, or one in another language behind it.

    One without a verb has to be a heading: "This is not the answer" announces nothing. What follows
    it has to be an answer, and not the beginning of a solution.
    """
    last = None
    for match in ANSWER_IS.finditer(tail):
        if ANNOUNCES.match(tail, match.end()):
            continue
        before = _SENTENCE_END.split(tail[: match.start()])[-1]
        if match["verb"] or is_heading(f"{before}answer"):
            last = _Marker(match.end(), before, is_english=True)
    start = 0 if last is None else last.end
    for match in ANSWER_IS_OF_OTHERS.finditer(tail, start):
        before = _SENTENCE_END.split(tail[: match.start()])[-1]
        last = _Marker(match.end(), before, is_english=False)
    return last


def _behind_last_marker(text: str, reader: Reader) -> Statement | None:
    tail = without_end_tokens(text)[-TAIL_CHARS:]
    marker = _last_marker(tail)
    return None if marker is None else _behind_marker(tail, marker, reader)


def _behind_marker(tail: str, marker: _Marker, reader: Reader) -> Statement | None:
    """What the words behind a marker state; None where they state two values, or deny one."""
    behind = _behind(tail[marker.end :])
    # before it: "I doubt that the answer is 5"
    if DOUBT_BEFORE.search(marker.before) and not _CONCLUSION.search(marker.before):
        return None
    if "would" in tail[: marker.end] and _is_of_mistake(tail[: marker.end]):
        return None
    if not marker.is_english and DENIAL_OF_OTHERS.search(marker.before):
        return None

    # behind it: another choice that is correct, a second thought
    if behind.letter and _called_correct(behind.after) - {behind.letter}:
        return None
    if behind.rest and _is_corrected(behind.answer, behind.rest[:_LONGEST_CONTEXT], reader):
        return None
    if behind.is_spread and not behind.is_block:
        if _gives_another(behind, reader):
            return None
    elif DOUBT.search(behind.after):
        return None

    # A block may hold words of its own, such as \text{or}; the reader judges them.
    if behind.is_block:
        # more formulas behind it: the answer may be among them
        if _other_values(behind.answer, behind.after):
            return None
        unit = _UNIT_AFTER.match(behind.after)
        return Statement("text", behind.answer, unit[1] if unit else "")
    if not behind.is_spread and SECOND_THOUGHT.search(behind.after):
        return None

    # in it: "5, but ..." and "5 or 6", unless it is one value twice
    words = behind.answer
    again = _OR_AGAIN.fullmatch(words) if "or " in words else None
    if again and reader.is_value(again[2]) and not reader.is_another(again[1], again[2]):
        words = f"{again[1]} or {again[2]}"
    elif DOUBT.search(words) and not TRUTH.fullmatch(words):
        return None

    answer = REASON_BEHIND.sub("", words)
    answer = _BOLD.sub(r"\1", answer).strip(_AROUND_ANSWER)
    surely = SURELY.match(answer)
    if surely:
        answer = answer[surely.end() :]
    if not marker.is_english:
        if OR_OF_OTHERS.search(answer):
            return None
        answer = AFTER_OF_OTHERS.sub("", answer)
    return Statement("text", answer) if answer else None


class _Behind(NamedTuple):
    """An answer behind a marker: on its line, or on the next lines alone, in display mathematics,
    in quotes or a fence.

    is_block: it is in mathematics, quotes or a fence. is_spread: it is on other lines than the
    marker. letter: of the choice that it is, if it is one. after: what follows it, on its line or,
    where it is spread, up to the end. rest: what follows it, up to the end.
    """

    answer: str
    is_block: bool
    is_spread: bool
    letter: str | None
    after: str
    rest: str


def _behind(rest: str) -> _Behind:
    """The answer in what stands behind a marker."""
    start = len(rest) - len(rest.lstrip(" \t\n*_"))
    is_spread = "\n" in rest[:start]
    rest = rest[start:]
    block = BLOCK.match(rest)
    letter = None
    if block:
        together = _LIST_OF_SEGMENTS.match(rest)
        # "$7$, and $7$ is prime" lists nothing
        if together and _other_values(content_of(block), together[0]):
            answer, after = together[0], rest[together.end() :]
        else:
            answer, after = content_of(block), rest[block.end() :]
        is_spread = is_spread or "\n" in block[0]
    else:
        line = rest.partition("\n")[0]
        end = _ANSWER_END.search(line)
        if end and line[: end.start()][-1:].isalpha():
            # the point may be a name's
            end = _ANSWER_END.search(_POINTS_OF_NAMES.sub(lambda name: "_" * len(name[0]), line))
        answer = line[: end.start()] if end else line
        after = rest[end.end() if end else len(line) :]
        letter = _LETTER.match(answer)
    rest = after
    if not is_spread:
        after = after.partition("\n")[0]
    # words that only call other letters wrong
    if letter:
        after = CALLED_WRONG.sub(
            lambda match: match[0] if letter[1] in match.groups() else "", after
        )
    return _Behind(answer, block is not None, is_spread, letter[1] if letter else None, after, rest)


# "1. Add the numbers" behind "Answer:": the point has been cut off
_ENUMERATED = re.compile(r"[ \t]*[A-Za-z].*\n\s*\d+[.)]\s")


def _gives_another(behind: _Behind, reader: Reader) -> bool:
    """Whether what follows an answer that has a line of its own gives another, or takes it back.

    An explanation may follow, with numbers of its own; a line that is a value is another answer.
    """
    # what stands right below belongs to it
    paragraph, _, explanation = behind.after.partition("\n\n")
    if DOUBT.search(paragraph):
        return True
    is_step = _ENUMERATED.match(behind.after) or _other_values(behind.answer, paragraph)
    if is_step and behind.letter is None:
        return True
    for line in explanation.split("\n"):
        if TAKES_BACK.search(line):
            return True
        value = line.strip().strip("*").strip()
        if value and _squeezed(value) != _squeezed(behind.answer) and reader.is_value(value):
            return True
    return False


def _other_values(answer: str, text: str) -> bool:
    """Whether a text has formulas or numbers that an answer has not."""
    formulas = {_squeezed(content_of(segment)) for segment in SEGMENT.finditer(text)}
    numbers = set(NUMERAL.findall(text)) - set(NUMERAL.findall(answer))
    return bool(formulas - {_squeezed(answer)} or numbers)


def content_of(segment: re.Match[str]) -> str:
    """What stands between the marks of a segment or block."""
    return next(filter(None, segment.groups())).strip()


def _squeezed(formula: str) -> str:
    return "".join(formula.replace("\\dfrac", "\\frac").split()).rstrip(".")


def _called_correct(text: str) -> set[str]:
    """The letters of all choices that a text calls correct."""
    return {match[1] or match[2] for match in CALLED_CORRECT.finditer(text)}


def _chosen(tail: str) -> str | None:
    """The choice that the end of a text calls correct."""
    chosen = CHOSEN.search(tail)
    if chosen:
        return chosen[1]
    # "A is correct. B is correct." chooses nothing
    if len(_called_correct(tail)) != 1:
        return None
    sentence = _SENTENCE_END.split(tail.rstrip(" \n.!*"))[-1].strip(" *")
    lead_in = LEAD_IN.match(sentence)
    if lead_in:
        sentence = sentence[lead_in.end() :]
    called = CALLED_CORRECT.fullmatch(sentence) or _LETTER_ALONE.fullmatch(sentence)
    return sentence if called else None


def _last_line(final: str, reader: Reader) -> Statement | None:
    """A value alone on the last line. The last of several such lines is none: they are a list."""
    before, value = _without_last_line(final)
    longest = _LONGEST_LAST_LINE if before else TAIL_CHARS
    if len(value) > longest or not reader.is_value(value):
        return None
    _, above = _without_last_line(before)
    # above it an equation is a step
    is_other = "=" not in above and _squeezed(above) != _squeezed(value)
    if above and is_other and reader.is_value(above):
        return None
    return Statement("last line" if before else "bare", value)


def _without_last_line(text: str) -> tuple[str, str]:
    """A text without its last line, and that line without what is around it. Mathematics on display
    is one line, however it is broken.
    """
    text = text.rstrip()
    start = -1
    for opening, closing in ("$$", "$$"), (r"\[", r"\]"):
        if text.rstrip(" .").endswith(closing):
            start = text.rfind(opening, 0, text.rfind(closing))
    line_start = text.rfind("\n", 0, start if start >= 0 else len(text)) + 1
    line = " ".join(text[line_start:].split("\n"))
    return text[:line_start], line.strip(_AROUND_ANSWER)


# "So it is **7**.", "He has **7** apples left.", and no point of a list
_IN_ALL = r"(?: (?:left|remaining|in total|in all|altogether))?"
_BOLD_AT_END = re.compile(
    r"(?![ \t]*(?:[-*+•]|\d+[.)])\s)(?P<before>[^*\n]*)\*\*(?P<value>[^*\n]+)\*\*(?:(?P<unit>(?: [A-Za-z]+){1,2}?)"
    rf"{_IN_ALL})?[.!。]?\s*\Z"
)


# Before a value in the middle of a sentence, these state it: "Tom has **7** apples", not "we started with
# **7** apples" nor "if there are **7** apples"
_VERBS = (
    r"\b(?:is|are|was|were|has|have|had|costs?|equals|gets?|needs?|earns?|makes?|takes?|a total of)"
)
_STATES = re.compile(
    r"(?!.*\b(?:if|when|suppose|assum\w+|let|first|question|problem)\b).*" + _VERBS + r"\s*\Z",
    re.IGNORECASE,
)
# **The area is 12.**, and no heading: **Step 3: the area is 12**
_BOLD_LINE = re.compile(
    rf"\s*\*\*(?P<before>[^*\n\d]*{_VERBS}\s+)(?P<value>[^*\n]+?){_IN_ALL}\.?\*\*(?P<unit>)[.。]?\s*\Z",
    re.IGNORECASE,
)
# ... and before any in bold, these make it another number: "it is roughly **7**", "now divide by **7**"
_NOT_STATED = re.compile(
    r"\b(?:about|around|roughly|approximately|nearly|almost|under|over|minus|plus|times|(?:divid|multipl)\w+ by)\s*\Z"
    r"|\b(?:suppose|assume|assuming|none of)\b",
    re.IGNORECASE,
)
_ENGLISH_OF = re.compile(r"(?<=[a-z]) of (?=[\w$\\])")


def _last_bold(final: str, reader: Reader) -> Statement | None:
    """The value in bold at the end of the last line, which has no other: 'I get **7**.' All of the line may
    be in bold.
    """
    line = final.rpartition("\n")[2]
    if len(line) > _LONGEST_LAST_LINE:
        return None
    whole = _BOLD_LINE.match(line)
    found = whole or _BOLD_AT_END.match(line)
    if found is None:
        return None
    value = found["value"].strip() + (found["unit"] or "")
    if not reader.is_value(value):
        return None
    before = found["before"]
    if (whole or found["unit"]) and not _STATES.match(before):
        return None
    if _NOT_STATED.search(before) or DOUBT_BEFORE.search(before) or OR.search(before):
        return None
    # "The area of the triangle is **12**": an or in Dutch, where a value stands before it
    before = _ENGLISH_OF.sub(" ", before)
    if OR_OF_OTHERS.search(before) or DENIAL_OF_OTHERS.search(before):
        return None
    return Statement("last line", value)


def _last_result(tail: str, reader: Reader) -> Statement | None:
    """The value that the last sentence gives as the result: "Das Ergebnis ist 7." The same words
    name the result of a step before it.
    """
    sentence_start = 0
    for end in _POINT.finditer(tail.rstrip(" .!。।*\n")):
        sentence_start = end.end()
    if len(tail) - sentence_start > _LONGEST_LAST_LINE:
        return None
    result = RESULT.search(tail, sentence_start)
    if result is None or not _VALUE.match(tail, result.end()):
        return None
    before = tail[sentence_start : result.start()]
    return _behind_marker(tail, _Marker(result.end(), before, is_english=False), reader)
