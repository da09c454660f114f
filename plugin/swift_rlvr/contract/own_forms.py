"""Forms of the answer that a prompt shows and that are none of ours, such as RESULT -> x: which rewards
do not read them?

The check fills such a form with the right answer and has it graded. A question may ask for one while
our system prompt asks for tags, so that a right answer in tags alone says nothing of the other.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.contract.attack import grades_of
from swift_rlvr.evaluation.prompts import AskedRow
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.answer_form import ANSWER_FORM
from swift_rlvr.verifiers.answer_forms import (
    BRACKETED,
    LAST_LINE,
    NO_ANSWER_TAGS,
    QUOTES,
    SAY,
    completion_in_form,
    says_where,
)
from swift_rlvr.verifiers.answers import boxed_answer
from swift_rlvr.verifiers.messages import message_text
from swift_rlvr.verifiers.thinking import with_opening

_QUOTE = f"[{QUOTES}]"
_ANSWER = r"\b(?:answer|result|solution|verdict|choice)\b"
# The place of the answer, or an example of one: x, N, ANSWER, <number>, [answer], your answer, 7; in
# double brackets any words
_PLACE = re.compile(
    rf"(?<![\[<{{]){BRACKETED}(?![\]>}}])|(?<=\[\[)[\w $]{{1,20}}(?=\]\])|(?<=<<)[\w $]{{1,20}}(?=>>)"
    r"|(?<=\{\{)[\w $]{1,20}(?=\}\})|(?<![\w.])(?:(?-i:[nxNX]+|[A-Z]{4,})|\$\w+|-?\d+"
    r"|(?:(?:your|the)[ _])?(?:final[ _])?(?:answer|number|letter|value|result))(?![\w.]\w)|\.\.\.|…|_{3,}",
    re.IGNORECASE,
)
# What a prompt says right before it shows its form: "in the following format", "use this template", ...
_FORMAT = re.compile(
    r"(?:\b(?:in|of|with|using|use|follow\w*)\s+(?:exactly\s+)?(?:the|this|that|a)?\s*(?:following|exact|same)?\s*"
    r"(?:form|format|pattern|template)\b(?:\s+(?:of|like))?|\b(?:answer|output|response|reply) format\b)"
    r"\s*[:(]?\s*",
    re.IGNORECASE,
)
# ... "end with", "the last line must be"
_ENDING = re.compile(
    r"(?:\b(?:end|finish|conclude)\b[^.\n]{0,60}?\b(?:with|as|by)\b(?:\s+(?:a|the)\s+(?:line|sentence|words?))?"
    r"|\b(?:last|final) line\b[^.\n]{0,40}?\b(?:should|must|has to)\s+(?:be|read|say)\b)\s*[:(]?\s*",
    re.IGNORECASE,
)
# ... "the answer as", "the answer in", and, of other words between, "the answer in braces, for example"
_ANSWER_AS = re.compile(
    rf"(?:{_ANSWER}|\b(?:output|respond|reply)\b)[^.\n]{{0,60}}?\b(?:as|like(?: so)?|with|in|inside|within|by)\b"
    r"\s*[:(]?\s*",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    rf"{_ANSWER}[^.\n]{{0,60}}?(?:\be\.g\.,?|\b(?:for example|such as)\b,?)\s*[:(]?\s*",
    re.IGNORECASE,
)
# ... and how far it goes: to the closing quote, or to the end of the sentence, or of lines that are labelled
_SHOWN = re.compile(
    rf"(?P<quote>{_QUOTE})(?P<quoted>[^\n{QUOTES}]{{1,80}}){_QUOTE}"
    r"|(?P<lines>(?:[^\n:]{1,30}:[^\n]{1,80}\n){1,5}[^\n:]{1,30}:[^\n]{1,80})"
    r"|(?P<bare>[^\n]{1,80}?)(?=\.(?:\s|\Z)|[;,(]\s?|\)?\.?\s*(?:\n|\Z)| where\b)"
)
# #ANSWER#: x, RESULT -> [number], The total is X; neither the ratio a:b nor the line y = mx + b
_LABEL = re.compile(
    rf"(?:[^\w\s{QUOTES}]{{0,3}}(?:[\w-]+ ){{0,4}}[^\W\d]{{3,20}}[^\w\s{QUOTES}]{{0,3}}\s*"
    r"(?:[:：=]|[-=]+>|→|>>+|\b(?:is|equals)\b)"
    # >>> 7, but no bound
    r"|[^\w\s$\\(\[{<=.-][^\w\s=]{1,3})\s*"
)
_SIGNS = re.compile(r"(?![$\\([<{\-])[^\w\s]|[^\w\s]{2,4}")
_MIRRORED = str.maketrans("([{<【《〖", ")]}>】》〗")
# between [ANS] and [/ANS], <response>...</response>, between %% and %%
_ENDS = re.compile(
    rf"(?:{_ANSWER}[^.\n]{{0,60}}?\b(?:between|within|inside|in|with|as|by)\b|\bformat\b)\s*:?\s*{_QUOTE}?"
    rf"(?P<before>[\[<](?P<tag>(?!(?:{NO_ANSWER_TAGS})[\]>])[a-z]\w*)[\]>]|(?P<sign>[^\w\s.,;:()\\{QUOTES}-]{{2,4}}))"
    rf"(?:{_QUOTE}?\s+and\s+{_QUOTE}?|\s+|(?(tag)[^\[\]<>\n]{{0,40}}))"
    rf"(?P<after>(?(tag)[\[<]/(?P=tag)[\]>]|[^\w\s.,;:()\\{QUOTES}-]{{2,4}}))",
    re.IGNORECASE,
)
# ```answer, a code block labelled "answer"; no code
_FENCE = re.compile(
    r"\b(?:answer|result|solution|end|finish)\b[^.`]{0,60}(?:```|\b(?:block|fence) (?:label?led|named|called|tagged)"
    rf"(?: as)? {_QUOTE}?)(?P<label>(?!(?:python|json|sql)\b)[a-z]\w*)\b",
    re.IGNORECASE,
)
# Respond with {"reasoning": ..., "value": n}
_OBJECT = re.compile(
    rf"{SAY}[^.\n{{]{{0,60}}?\b(?:with|as|like|form|format|object|keys|this)\b\s*:?\s*[`]{{0,3}}\s*"
    r"(?P<object>\{\s*\"\w+\"\s*:[^{}]*\})",
    re.IGNORECASE,
)
# the answer after 'Therefore:', prefixed with "ANS"
_PREFIX = re.compile(
    rf"{_ANSWER}[^.\n]{{0,40}}?\b(?:after|behind|following|preceded by|prefix(?:ed)?(?: with| by)?)\s+"
    rf"(?:the\s+)?(?:(?:word|label|text|phrase|prefix|marker)s?\s+)?(?:{_QUOTE}(?P<label>[^\n{QUOTES}]{{2,30}}){_QUOTE}"
    r"|(?P<word>(?-i:[A-Z]{3,})))",
    re.IGNORECASE,
)
# Signs by their names: "in parentheses", "in bold", "in double square brackets"
_NAMED_SIGNS = {
    r"double (?:square )?brackets": ("[[", "]]"),
    r"(?:square )?brackets": ("[", "]"),
    r"(?:parenthes[ei]s|round brackets)": ("(", ")"),
    r"double (?:curly )?(?:braces|brackets)": ("{{", "}}"),
    r"(?:curly )?(?:braces|curly brackets)": ("{", "}"),
    r"angle brackets": ("<", ">"),
    r"(?:bold(?:face)?|double asterisks)": ("**", "**"),
    r"(?:double )?(?:quotes|quotation marks)": ('"', '"'),
    r"triple back-?ticks": ("```\n", "\n```"),
    r"back-?ticks": ("`", "`"),
}
_NAMED = re.compile(
    # no "result of the sum in parentheses"
    r"(?:\b(?:put|place|write|give|enclose|wrap|surround|format|present|state|report|provide|return|print|output)\s+"
    r"(?:your|the)\s+(?:final |correct |numerical )*(?:answer|result|solution)(?: (?:enclosed|wrapped|surrounded))?"
    r"|\b(?:answer|result|solution)\s+(?:should|must|is to)\s+be(?:\s+\w+)?)\s+"
    rf"(?:in|inside|within|between|with|by)\s+(?:a (?:pair|set) of |two )?(?P<name>{'|'.join(_NAMED_SIGNS)})\b"
    r"|\b(?P<bold>bold) (?:your|the) (?:final )?answer",
    re.IGNORECASE,
)
# The same in Chinese, simplified and traditional, where the verb may come before the form or behind it.
_ZH_ANSWER = r"(?:(?:最[终終后後]|正[确確])的?)?(?:答案|[结結]果|[结結][论論])"
_ZH_PLACE = r"(?:[xXnN]{1,3}|[数數][字值]|答案|<[^<>\n]{1,20}>|\.{3}|…+|_{2,})"
# 【答案】 before the answer; at the end of a prompt it is what the model goes on from
_ZH_HEADING = re.compile(rf"(?<![是为為=])(?P<label>[【〖](?:{_ZH_ANSWER}|解答)[】〗])(?!\s*\Z)")
# <答案>...</答案>
_ZH_TAGS = re.compile(rf"<(?P<tag>{_ZH_ANSWER})>[^<>\n]{{0,20}}</(?P=tag)>")
# 把答案写在【】里, 请用【】括起最终答案, 格式为 ##x##; 结果是【】 without such a verb is a gap to be filled
_ZH_OTHER_SIGNS = rf"[^\w\s。，、；：！？:,.()（）\[\]{{}}<>【】《》〖〗\\{QUOTES}]{{2,4}}"
_ZH_SIGNS = re.compile(
    rf"(?:{_ZH_ANSWER}[^。；\n不勿别別]{{0,12}}?(?:放|[写寫]|填|置|用|以)"
    rf"|[用以](?=[^。；，\n]{{2,12}}[括包框围圍标標][^。；，\n]{{0,8}}{_ZH_ANSWER})|[格形]式)[在到入于於成為为是：:]?\s*"
    rf"{_QUOTE}?(?!####)(?P<before>[\[{{<【《〖]{{1,3}}|{_ZH_OTHER_SIGNS})(?:{_ZH_PLACE}|\s)?"
    rf"(?P<after>[\]}}>】》〗]{{1,3}}|{_ZH_OTHER_SIGNS})"
)
# 以“答：____”的形式, 最后一行写：结果=x
_ZH_LABEL = re.compile(
    rf"(?:以|用|按|[写寫]|[输輸]出|格式)[^。；\n]{{0,6}}?{_QUOTE}?(?P<label>(?:所以|因此|故)?(?:{_ZH_ANSWER}|答)\s*(?:[：:=]|是|为|為))"
    rf"(?=\s*(?:{_ZH_PLACE}|{_QUOTE}|的?[格形]式|[给給]出|[开開作][头頭答]))"
)
_NOT_ASKED = re.compile(
    r"\b(?:not|don['’]t|never|without)\b[^.\n]{0,20}\Z|(?:不要|不必|不用|[无無]需|勿|[别別])[^。\n]{0,10}\Z",
    re.IGNORECASE,
)


class OwnForm(NamedTuple):
    """A form that is none of `FORMS`, which a prompt shows or names: what stands around the answer.

    shown: in the prompt. in_sentence: whether it may stand in a sentence, as **7** does.
    """

    shown: str
    before: str
    after: str
    in_sentence: bool = False

    def completions(self, answer: str) -> list[str]:
        """An answer in this form, alone and, where it may stand there, at the end of a sentence; none for
        an answer that brings the signs, as the list [1, 2] does.

        >>> OwnForm("[[5]]", "[[", "]]", in_sentence=True).completions("7")
        ['[[7]]', 'So it must be [[7]]']
        """
        answer = (boxed_answer(answer) or answer).strip()
        if self.before and self.after and answer.startswith(self.before):
            return []
        if self.before.startswith("{") and self.before.endswith('"'):
            answer = json.dumps(answer, ensure_ascii=False)[1:-1]
        filled = f"{self.before}{answer}{self.after}"
        return [filled, f"So it must be {filled}"] if self.in_sentence else [filled]


@lru_cache(maxsize=1024)
def own_form(turn: str) -> OwnForm | None:
    """The form that a turn of a prompt shows or names for its answer and that is none of `FORMS`; None
    where there is none, or one of these beside it.

    >>> own_form("End with your final answer as [[5]].").shown, own_form("Answer with the matrix [[1, 2]].")
    ('[[5]]', None)
    >>> own_form("Your answer should be in the form #ANSWER#: x").before, own_form("Find y in the form y = mx + b.")
    ('#ANSWER#: ', None)
    """
    if says_where(turn):
        return None
    for pattern, read in _READERS.items():
        match = pattern.search(turn)
        while match is not None:
            begin = match.start()
            form = read(turn, match)
            if form is not None and not _NOT_ASKED.search(turn[:begin][-60:]):
                return form
            # What leads to a form may begin within another: "the answer is in | the form"
            match = pattern.search(turn, begin + 1)
    return None


def _own_text(turn: str, lead: re.Match[str]) -> OwnForm | None:
    """What is shown behind a lead, if it is a label or a pair of signs around a place."""
    shown = _SHOWN.match(turn, lead.end())
    if shown is None:
        return None
    # Of a template of several lines the answer is in the last one.
    text = shown["quoted"] or shown["bare"] or shown["lines"].rpartition("\n")[2]
    text = text.strip().removesuffix(")")
    places = list(_PLACE.finditer(text))
    if not places:
        return None
    before, after = text[: places[-1].start()], text[places[-1].end() :].rstrip(".")
    if _SIGNS.fullmatch(before) and after == before[::-1].translate(_MIRRORED):
        return OwnForm(text, before, after, in_sentence=True)
    if _LABEL.fullmatch(before) and (not after or _SIGNS.fullmatch(after)):
        return OwnForm(text, before, after)
    return None


def _own_ends(turn: str, match: re.Match[str]) -> OwnForm | None:
    before, after = match.group("before", "after")
    if match["sign"] and after != before[::-1].translate(_MIRRORED):
        return None
    return OwnForm(turn[match.start("before") : match.end()], before, after)


def _own_fence(turn: str, match: re.Match[str]) -> OwnForm:
    opening = f"```{match['label']}"
    return OwnForm(opening, f"{opening}\n", "\n```")


def _own_prefix(turn: str, match: re.Match[str]) -> OwnForm:
    label = match["label"] or match["word"]
    return OwnForm(label, f"{label.strip()} ", "")


def _own_named(turn: str, match: re.Match[str]) -> OwnForm:
    name = match["name"] or match["bold"]
    for words, signs in _NAMED_SIGNS.items():
        if re.fullmatch(words, name, re.IGNORECASE):
            before, after = signs
            break
    return OwnForm(name, before, after, in_sentence=True)


def _own_chinese_tags(turn: str, match: re.Match[str]) -> OwnForm:
    return OwnForm(match[0], f"<{match['tag']}>", f"</{match['tag']}>")


def _own_chinese_signs(turn: str, match: re.Match[str]) -> OwnForm | None:
    before, after = match.group("before", "after")
    if after != before[::-1].translate(_MIRRORED):
        return None
    return OwnForm(turn[match.start("before") : match.end()], before, after, in_sentence=True)


def _own_chinese_label(turn: str, match: re.Match[str]) -> OwnForm:
    return OwnForm(match["label"], match["label"], "")


def _own_object(turn: str, match: re.Match[str]) -> OwnForm:
    """An object in which the answer is under the key that names it, else under the last."""
    shown = match["object"]
    keys = re.findall(r'"(\w+)"\s*:', shown)
    answer_key = keys[-1]
    for key in keys:
        if re.search("answer|final|result|solution", key, re.IGNORECASE):
            answer_key = key
    others = dict.fromkeys(keys, "...")
    before, after = json.dumps({**others, answer_key: "\0"}).split("\\u0000")
    return OwnForm(shown, before, after)


_READERS: dict[re.Pattern[str], Callable[[str, re.Match[str]], OwnForm | None]] = {
    _OBJECT: _own_object,
    _FENCE: _own_fence,
    _FORMAT: _own_text,
    _ENDING: _own_text,
    _ANSWER_AS: _own_text,
    _EXAMPLE: _own_text,
    _ENDS: _own_ends,
    _NAMED: _own_named,
    _PREFIX: _own_prefix,
    _ZH_TAGS: _own_chinese_tags,
    _ZH_HEADING: _own_chinese_label,
    _ZH_LABEL: _own_chinese_label,
    _ZH_SIGNS: _own_chinese_signs,
}


class UnreadForm(NamedTuple):
    """A right answer in the form that a row's own prompt shows, and what it earns: less than the maximum."""

    line: int
    shown: str
    reward: str
    completion: str
    earned: float
    reason: str


def unread_forms(reward: Reward, rows: Iterable[AskedRow]) -> Iterator[UnreadForm]:
    """The rows whose prompts show a form of their own that a reward does not read, alone or in the form
    that the rest of the prompt asks for, such as our tags.
    """
    # Others of ours want a structure, such as boxes, of which the prompt shows an example.
    if reward.name in REWARDS and ANSWER_FORM not in reward.optional_columns:
        return
    tried: list[tuple[AskedRow, OwnForm, str, str]] = []
    for asked in rows:
        # Each turn by itself: the task's own system prompt asks for a form that is known.
        form = None
        for turn in asked.messages:
            if turn["role"] != "assistant":
                form = form or own_form(message_text(turn) or "")
        if form is None or asked.gold is None:
            continue
        answers = form.completions(asked.gold.answer)
        for answer in answers:
            alone = completion_in_form(LAST_LINE, "A guess.", answer, asked.thinking_opened)
            tried.append((asked, form, answer, with_opening(alone, asked.thinking_opened)))
        if answers and asked.form is not None:
            within = asked.answering(answers[0])
            tried.append((asked, form, within, within))

    grades = grades_of(reward, [row for row, *_ in tried], [each[-1] for each in tried])
    named: set[int] = set()
    for (asked, form, answer, _), grade in zip(tried, grades, strict=True):
        if grade.reward not in (None, reward.full_reward) and asked.line not in named:
            named.add(asked.line)
            yield UnreadForm(
                asked.line, form.shown, reward.name, answer, grade.reward or 0.0, grade.reason
            )
