r"""The form in which a prompt asks for the answer, and an answer in that form.

A form is one of `FORMS`, or a regular expression whose one group is the answer. A prompt says it in
words or with an example: "put your final answer within \boxed{}", ``<answer> 7 </answer>``. Where a
prompt asks for two at once, as for a box in tags, the outer one is its form, and `ideal_completion`
writes both.
"""

import json
import re
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.verifiers.answers import boxed_answer
from swift_rlvr.verifiers.languages import announcing
from swift_rlvr.verifiers.patterns import compiled_later

TAGS = "tags"  # <answer> 7 </answer>
BOXED = "boxed"  # \boxed{7}
HASH = "hash"  # #### 7, on a line
MARKER = "marker"  # Answer: 7, on a line
JSON = "json"  # {"answer": "7"}
LAST_LINE = "last_line"  # 7, a value or a letter alone on the last line
CODE = "code"  # ```python
# Not of a prompt: of a task whose answer is the whole response, or calls of tools.
WHOLE = "whole"
CALLS = "calls"
# Each that a prompt asks for, with the words for it.
FORMS = {
    TAGS: "<answer> tags",
    BOXED: r"\boxed{}",
    HASH: "####",
    MARKER: '"Answer:"',
    JSON: "JSON",
    LAST_LINE: "the answer alone on the last line",
    CODE: "a code block",
}

# "you do not need to use a \boxed command": what is not asked for.
_NEGATED = re.compile(
    r"(?:do not|don't|need not|never|without|instead of|rather than|不要|无需|不用)"
    r"[^.\n。<]{0,40}?"
    r"(?:\\f?boxed\w*(?:\{[^{}]*\})?|####|\bJSON\b|code blocks?)",
    re.IGNORECASE,
)
# What stands where the answer goes: $ANSWER, [answer], <number>, {answer}, \boxed{A}, X
_PLACE = r"(?:\$|\\|\[|<|\{|\.\.|…|___|(?-i:X\b|[A-Z]{4,}\b))"
QUOTES = "\"'`“”‘’„«»「」『』"
_QUOTE = f"[{QUOTES}*]"
# What asks for an answer, rather than the words of a question: "give only the number" does, "the
# only number that ..." does not.
SAY = (
    r"\b(?:answer|respond|reply|output|return|provide|give|write|print|state|choose|specify|specifying"
    r"|express)\b"
)
_ANSWER_TAGS = re.compile(r"</answer>|<answer>[^<]{0,40}\btags?\b|\btags?\b[^<]{0,40}<answer>")
# Tags around the reasoning, of tools and pictures, and those of HTML.
NO_ANSWER_TAGS = (
    "think(?:ing)?|reason(?:ing)?|thoughts?|scratchpad|analysis|plan|explanation|rationale|steps?"
    "|tools?|tool_calls?|tool_response|function|image|img|video|audio|box|point"
    "|[abiopqsu]|br|li|[ou]l|em|strong|code|pre|su[bp]|table|t[dhr]|div|span|h[1-6]|html|head|body"
)
# Tags of another name, as in <SOLUTION></SOLUTION>.
OTHER_TAGS = "final_answer|finalanswer|final_result|final|result|solution|ans"
_OTHER_TAGS = re.compile(
    rf"<(?P<tag>{OTHER_TAGS})>[^<>]{{0,60}}</(?P=tag)>"
    # of any name, where the answer is asked for in them: "put the query between <sql> and </sql>"
    r"|\b(?:put|place|write|give|enclose|wrap|return|provide|between|within|inside|in)\b[^.\n<>]{0,60}"
    rf"<(?P<any>(?!(?:{NO_ANSWER_TAGS})>)[a-z]\w*)>(?:\s*|[^<>]{{1,20}})</(?P=any)>",
    re.IGNORECASE,
)
_BOXED = re.compile(
    # \boxed{}, also where its backslash is lost
    r"\\f?boxed|\bboxed\{"
    # "in boxed form", "put the answer in a box", "box your final answer"
    r"|\bboxed (?:answer|form|format|notation|latex)\b|答案[^。\n]{0,20}框"
    r"|\banswers?\b[^.\n]{0,60}\b(?:in|within|inside) a (?:latex )?box\b"
    r"|\bbox (?:your|the) (?:final )?answer",
    re.IGNORECASE,
)
# A heading of Markdown, "#### Constraints", is none.
_HASH = re.compile(
    # `####`, #### <answer>, #### 42
    rf"{_QUOTE}####|(?<!#)####\s*(?:{_PLACE}|{_QUOTE}|[-+$]*\d[\d,.]*\s*$|$)"
    # "after ####"
    r"|\b(?:with|after|behind|by|following|using|of)\s+####(?!#)",
    re.MULTILINE,
)
_CODE = re.compile(
    # ```python, "in a code block"
    r"```\s*(?:python|py|cpp|c\+\+|java|javascript|rust|go)\b|\bcode blocks?\b|代码块"
    # "Solve it in Python", "write a program that ...", "your code should ..."
    r"|\b(?:write|implement|complete|solve|submit)\b[^.\n]{0,80}(?:\bpython\b|\bc\+\+)"
    r"|\bwrite a (?:\w+ )?program (?:that|to|which|in)\b"
    r"|\byour (?:code|program) (?:should|must|will|here)\b"
    # "read from standard input", def add(a, b):
    r"|\b(?:standard input|stdin)\b|^\s*def \w+\(.*\).*:\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_JSON = re.compile(
    # "answer in JSON"
    r"\b(?:answer|respond|response|return|output|reply|provide|give|write|present|format|solution)\w*\b"
    r"[^.\n]{0,80}\bJSON\b"
    # "a JSON object"
    r"|\bJSON\b[^.\n]{0,30}(?:\b(?:format|object|output|answer)|\{\s*\"\w+\"\s*:)|JSON ?格式"
    # {"answer": ...}
    r"|\{\s*\"(?:final_)?answer\"\s*:",
    re.IGNORECASE,
)
_MARKER = re.compile(
    # "Therefore, the final answer is"
    rf"{_QUOTE}\s*(?:therefore,? |so,? )?(?:the )?(?:final |correct |best )*answer\s*(?::|is\b)"
    # Answer: $ANSWER, the answer is (X)
    rf"|\b(?:final |correct |best )*answer(?: is)?\s*:\s*\**\s*{_PLACE}"
    r"|\banswer is (?:\((?:X|letter)|\[|<|(?-i:[A-Z]{4,}\b))"
    # The examples of chain-of-thought prompts: "A: ... The answer is 11."
    r"|(?-i:^A: [^\n]*\bThe answer is\b)"
    rf"|答案(?:是|为)?\s*[：:]\s*{_PLACE}|{_QUOTE}(?:所以|因此)?(?:最终)?答案\s*(?:是|为|：|:)",
    re.IGNORECASE | re.MULTILINE,
)
# The marker as a prompt shows it, in any language: „Antwort: N“, "The final answer is [answer].",
# Respuesta: <número>. The place of the answer is in brackets, or a capital in quotes.
BRACKETED = (
    r"(?:\$?\\boxed\{[^{}\n]*\}\$?|<[^<>\n]{1,40}>|\[[^\[\]\n]{1,40}\]|\{[^{}\n]{1,40}\}|\([A-Z]\))"
)
_IN_PLACE = rf"(?:{BRACKETED}|\$?(?-i:[A-Z]+(?![A-Za-z]))\$?|\$answer\b|\.\.\.|…|_{{3,}})"
# No part of a longer word; before it kana are particles.
_WORD_START = r"(?<![^\W\d_ぁ-ヿ一-鿿])"
_SHOWN_MARKER = compiled_later(
    # "end with 'FINAL: N'": any words, where they are the end of the completion
    rf"(?:\b(?:end|finish|conclude|last line|final line)\b[^.\n]{{0,60}}?{_QUOTE}(?P<any>[A-Z][\w ]{{0,25}}:\s*)"
    # or those that announce an answer, and what stands before them
    rf"|[{QUOTES}]\s*(?P<words>[^\n\"“”„«»「」『』]{{0,30}}?{_WORD_START}"
    rf"(?:(?:the )?(?:final |correct )?answer\s*(?:is\b|:)|{announcing(labels=True)}|答案(?:是|为)?)\s*[:：]?\s*))"
    rf"(?P<place>{_IN_PLACE})(?P<after>[^\n{QUOTES}]{{0,40}})[{QUOTES}]"
    # without quotes
    rf"|{_WORD_START}(?P<bare>(?:{announcing(labels=True)})\s*){BRACKETED}",
    re.IGNORECASE,
)
_LAST_LINE = re.compile(
    # "... the letter of the right choice", not "... how often the letter e occurs"
    rf"{SAY}[^.\n]{{0,80}}\b(?:letter|letters of)\b(?!\s+[\"'“]?\w\b)|\bletters? (?:only|alone)\b"
    # "give only the number", "in a single word"
    rf"|{SAY}[^.\n]{{0,30}}\b(?:only|just|nothing but) (?:with |by )?(?:the|a|an|one|your)\b"
    r"|\banswer (?:only|alone)\b|\b(?:with|in|using) (?:a |one )single (?:word|number|phrase|integer)\b"
    # "the last line of your response"
    r"|\b(?:last|final) line of (?:your|the) (?:response|answer|output|reply)\b"
    r"|\b(?:answer|number|value|result)\b[^.\n]{0,40}\bon (?:the|a|its) (?:last|final|separate|own) line\b"
    # A prompt that the model goes on with.
    r"|\banswer(?: is)?\s*:\s*\Z|答案\s*[：:]\s*\Z"
    r"|选项(?:的)?字母|只(?:需要?|要)?(?:回答|输出|给出)",
    re.IGNORECASE,
)
# In the order in which they are looked for, after tags and boxes.
_PATTERNS = (
    (HASH, _HASH),
    (MARKER, _MARKER),
    (MARKER, _SHOWN_MARKER),
    (CODE, _CODE),
    (JSON, _JSON),
    (LAST_LINE, _LAST_LINE),
)
# The tags around the reasoning, <think> or another, and whether each tag has a line of its own.
_THINK_TAGS = re.compile(r"<(?P<tag>think|thinking|reasoning|thought|scratchpad)>")
_ON_ITS_LINE = re.compile(r"<answer>[ \t]*\n")
# The key of the answer in an object of JSON.
_KEY = re.compile(r"[\"'`](\w*answer\w*|solution|result)[\"'`]", re.IGNORECASE)
# ... or the last one that is shown: {"step": "...", "value": N}, keys "step" and "value"
_LAST_KEY = re.compile(
    r"\{(?:[^{}]*,)?\s*\"(?P<shown>\w+)\"\s*:[^{}:]*\}|\bkeys?\b[^.\n]*[\"'`](?P<named>\w+)[\"'`]"
)
# The group of a regular expression for a form: (.*?), (.+), ([^<]*)
_GROUP = re.compile(r"(?<!\\)\((?!\?)(?:[^()\\]|\\.)*\)")
_ONE_LINE = (HASH, MARKER, LAST_LINE)


# A check asks for the form of each row's prompt again for every answer that it tries.
@lru_cache(maxsize=1024)
def _without_negated(prompt: str) -> str:
    """A prompt without the forms that it does not want."""
    return _NEGATED.sub(" ", prompt)


@lru_cache(maxsize=1024)
def asked_form(prompt: str) -> str | None:
    r"""The form in which a prompt, the text of its system and user turns, asks for the answer; None
    where it says nothing of that.

    >>> asked_form(r"What is 3 + 4? Put your final answer within \boxed{}.")
    'boxed'
    >>> asked_form('The last line should be of the form Answer: $ANSWER. You need not use a \\boxed command.')
    'marker'
    >>> asked_form("Which is a metal?\nA. salt\nB. iron\n\nAnswer with the letter of the right choice.")
    'last_line'
    >>> asked_form("Place it between <SOLUTION> and </SOLUTION>."), asked_form("What is 3 + 4?")
    ('<SOLUTION>(.*?)</SOLUTION>', None)
    """
    text = _without_negated(prompt)
    # `<answer>` alone may be the place of the answer, as in "#### <answer>".
    if "<answer>" in text and _ANSWER_TAGS.search(text):
        return TAGS
    if _BOXED.search(text):
        return BOXED
    other = _OTHER_TAGS.search(text)
    if other:
        tag = other["tag"] or other["any"]
        return f"<{tag}>(.*?)</{tag}>"
    for form, pattern in _PATTERNS:
        if pattern.search(text):
            return form
    return None


def completion_in_form(
    form: str, reasoning: str, answer: str, thinking_opened: bool = False
) -> str:
    r"""An ideal completion: the reasoning, and then the answer in a form.

    thinking_opened: whether the prompt ends inside a think part; the completion closes it.
    ValueError for a regular expression that is more than its one group between two texts.

    >>> completion_in_form("hash", "3 + 4 = 7", "7"), completion_in_form("boxed", "3 + 4 = 7", "7", True)
    ('3 + 4 = 7\n#### 7', '3 + 4 = 7\n</think>\n\\boxed{7}')
    >>> completion_in_form("tags", "3 + 4 = 7", "7")
    '<think>3 + 4 = 7</think>\n<answer>7</answer>'
    """
    tag = "think" if form == TAGS else None
    return _thought(reasoning, _statement(form, answer), tag, thinking_opened)


def says_where(prompt: str) -> bool:
    """Whether a prompt says where the answer stands, and not only what it is, such as a letter, or
    that it is a program.

    >>> says_where("End with #### and the number."), says_where("Answer with the letter."), says_where("1 + 1?")
    (True, False, False)
    """
    return asked_form(prompt) not in (None, LAST_LINE, CODE)


def ideal_completion(
    prompt: str, reasoning: str, answer: str, thinking_opened: bool = False
) -> str:
    r"""What a prompt asks for, in full: the answer in its form, with the box, the reasoning's tags
    and the line breaks that the prompt shows. Where it names no form, the answer is alone on the
    last line, and a program, an answer that is a fenced block, in its block.

    >>> system = "Answer as <reasoning>\n...\n</reasoning>\n<answer>\n\\boxed{...}\n</answer>"
    >>> ideal_completion(system, "3 + 4", "7")
    '<reasoning>\n3 + 4\n</reasoning>\n<answer>\n\\boxed{7}\n</answer>'
    """
    asked = _asked(prompt)
    form = asked.form
    is_program = answer.lstrip().startswith("```")
    if is_program and form != TAGS:
        form = CODE
    elif form == CODE:  # the block is in the question
        form = LAST_LINE
    elif form == TAGS and not is_program and asked.has_box:
        answer = _statement(BOXED, answer)

    line_break = "\n" if form == TAGS and asked.on_its_line else ""
    if line_break:
        answer = f"\n{answer.strip()}\n"
    # with the key or the words that the prompt shows for it
    if form == JSON and asked.key is not None:
        statement = json.dumps({asked.key: answer}, ensure_ascii=False)
    elif form == MARKER and asked.around is not None:
        before, after = asked.around
        statement = f"{before}{_unboxed(answer)}{after}".rstrip()
    else:
        statement = _statement(form, answer)
    return _thought(reasoning, statement, asked.tag, thinking_opened, line_break)


class _Asked(NamedTuple):
    """How a prompt wants its answer.

    tag: of the thinking. on_its_line: whether tags stand on lines of their own. key: of JSON. around: what
    stands before and behind the answer, where the prompt shows that.
    """

    form: str
    has_box: bool
    tag: str | None
    on_its_line: bool
    key: str | None
    around: tuple[str, str] | None


# An attack asks this of each prompt sixty times, of one after the other.
@lru_cache(maxsize=4096)
def _asked(prompt: str) -> _Asked:
    form = asked_form(prompt) or LAST_LINE
    text = _without_negated(prompt)
    thinks = _THINK_TAGS.search(text)
    key = form == JSON and (_KEY.search(text) or _LAST_KEY.search(text))
    shown = form == MARKER and _SHOWN_MARKER.search(text)
    around = None
    if shown:
        before = shown["any"] or shown["words"] or shown["bare"]
        around = (before.lstrip(), shown["after"] or "")
    return _Asked(
        form,
        has_box=_BOXED.search(text) is not None,
        tag=thinks["tag"] if thinks else None,
        on_its_line=_ON_ITS_LINE.search(text) is not None,
        key=key[key.lastindex or 0] if key else None,
        around=around,
    )


def answer_alone(prompt: str, reasoning: str, answer: str, thinking_opened: bool = False) -> str:
    r"""What a prompt asks for whose answers have a form of their own, such as JSON: the answer and
    nothing beside it, after a thinking where the prompt asks for one, and in answer tags likewise.

    >>> answer_alone("Extract the name as JSON.", "It is Ann.", '{"name": "Ann"}')
    '{"name": "Ann"}'
    >>> answer_alone("Extract the name as JSON.", "It is Ann.", '{"name": "Ann"}', True)
    'It is Ann.\n</think>\n{"name": "Ann"}'
    """
    if asked_form(prompt) == TAGS:
        return ideal_completion(prompt, reasoning, answer, thinking_opened)
    thinks = _THINK_TAGS.search(prompt)
    if not thinks and not thinking_opened:
        return answer
    return _thought(reasoning, answer, thinks["tag"] if thinks else None, thinking_opened)


def _thought(
    reasoning: str, statement: str, tag: str | None, thinking_opened: bool, line_break: str = ""
) -> str:
    """A statement behind its reasoning, which stands in tags where the prompt asks for some."""
    if thinking_opened:
        return f"{reasoning}\n</think>\n{statement}"
    if tag:
        return f"<{tag}>{line_break}{reasoning}{line_break}</{tag}>\n{statement}"
    return f"{reasoning}\n{statement}"


def _statement(form: str, answer: str) -> str:
    """An answer in a form, without the reasoning; ValueError for an expression that is more than its
    one group between two texts.
    """
    if form in _ONE_LINE or form == JSON:
        answer = _unboxed(answer)
    match form:
        case "tags":
            return f"<answer>{answer}</answer>"
        case "boxed":
            return answer if r"\boxed" in answer else rf"\boxed{{{answer}}}"
        case "hash":
            return f"#### {answer}"
        case "marker":
            return f"Answer: {answer}"
        case "json":
            return json.dumps({"answer": answer}, ensure_ascii=False)
        case "last_line":
            return answer
        case "code":
            return answer.strip() if "```" in answer else f"```python\n{answer.strip()}\n```"

    # a text of which the one group of an expression is the answer
    before, *others = _GROUP.split(form)
    if len(others) != 1:
        raise ValueError(
            f"expected one of {', '.join(FORMS)} or an expression with one group, got {form!r}"
        )
    text = f"{_literal(before)}{answer}{_literal(others[0])}"
    found = re.search(form, text, re.DOTALL)
    if found is None or found[1].strip() != answer.strip():
        raise ValueError(f"expected a group between two texts, got {form!r}")
    return text


def _unboxed(answer: str) -> str:
    """An answer without the box of its own in which a gold may be written."""
    return (boxed_answer(answer) or answer).strip()


def _literal(pattern: str) -> str:
    """The text that a part of an expression stands for: white space and escapes are written out."""
    spaced = re.sub(r"\\s[*+]?", " ", pattern).strip("^$")
    return re.sub(r"\\(.)", r"\1", spaced)
