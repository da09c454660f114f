r"""The thinking of a completion, by the delimiters of every model that is known here.

One table for every verifier, reward, report and evaluation. A prompt may have opened the thinking,
as the chat templates of R1's distills, QwQ and Qwen3-Thinking do: then a completion begins inside
it, and one that never closes it is nothing but thinking.

Delimiters are searched for with ``str.find`` and ``str.rfind``: a text of 100,000 unclosed ones
costs no more than any other.
"""

import re
from typing import NamedTuple


class Delimiters(NamedTuple):
    """What stands around the thinking of a family of models."""

    opening: str
    closing: str


THINK = Delimiters("<think>", "</think>")
_ANALYSIS = "<|channel|>analysis<|message|>"
DELIMITERS = (
    THINK,  # DeepSeek, Qwen, QwQ, GLM, Kimi K2, Nemotron, Hunyuan and most others
    Delimiters("[THINK]", "[/THINK]"),  # Magistral, Ministral
    Delimiters("◁think▷", "◁/think▷"),  # Kimi-VL, Kimi-Dev
    Delimiters("<thought>", "</thought>"),  # EXAONE Deep
    Delimiters("<thinking>", "</thinking>"),  # Reflection
    Delimiters("<seed:think>", "</seed:think>"),  # Seed-OSS
    Delimiters("<mm:think>", "</mm:think>"),  # MiniMax M3
    Delimiters("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
    Delimiters("<|channel>thought", "<channel|>"),  # Gemma 4
    # gpt-oss: its answer is in the last channel
    Delimiters(_ANALYSIS, "<|channel|>final<|message|>"),
)
# gpt-oss again, decoded without its special tokens: "analysisWe add.assistantfinalIt is 7." A thinking
# that begins with no capital letter is known by its end.
_PLAIN_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z]|[^\s.,:;!?)].*?assistantfinal)", re.DOTALL)
_PLAIN_FINAL = "assistantfinal"
# It calls tools from its channel commentary, and opens its last one when it has their results.
_GPT_OSS_CALL = " to=functions."
_TO_COMMENTARY = re.compile(
    r"<\|end\|><\|start\|>assistant(?=<\|channel\|>commentary| to=)|assistant(?=commentary| to=)"
)

# <|im_end|>, <｜end▁of▁sentence｜>, </s>, <eos>, <end_of_turn>, and <eoa> of GAOKAO-Bench
_SPECIAL_TOKEN = re.compile(
    r"<\|[\w.-]{1,32}\|>|<｜(?!tool▁)[\w▁]{1,32}｜>|</s>|<eo[a-z]>|<end_of_turn>"
)
_LONGEST_SPECIAL_TOKEN = 36


def after_thinking(text: str, opened: bool = False) -> str:
    """Return what follows the thinking: all after the last closing delimiter, or a text without
    one, up to a thinking that is never closed.

    opened: the prompt has opened the thinking.

    >>> after_thinking("<think>1+1</think> 2"), after_thinking("1+1[/THINK] 2"), after_thinking("2")
    (' 2', ' 2', '2')
    >>> after_thinking("<think>perhaps 2"), after_thinking("perhaps 2", opened=True)
    ('', '')
    """
    end = _end(text)
    if end is not None:
        text = text[end.after :]
    elif opened or _PLAIN_ANALYSIS.match(text):
        return ""
    start = _opening(text)
    return text if start is None else text[: start.before]


def thinking_end(text: str) -> int:
    """Return the position behind the last closing delimiter; 0 where there is none.

    >>> thinking_end("1+1</think>2"), thinking_end("<think>1+1")
    (11, 0)
    """
    end = _end(text)
    return 0 if end is None else end.after


def is_thinking(text: str) -> bool:
    """Return whether a text ends inside a thinking that it has opened.

    >>> is_thinking("<think>1+1"), is_thinking("<think>1+1</think>2"), is_thinking("1+1")
    (True, False, False)
    """
    end = thinking_end(text)
    if _opening(text[end:]) is not None:
        return True
    return not end and _PLAIN_ANALYSIS.match(text) is not None


def reasoning(text: str, opened: bool = False) -> str:
    """Return the thinking, from its first opening delimiter or else the beginning, to its last
    closing one.

    Where no thinking is closed, it is the text before the last ``<answer>``, or else the whole
    text; of a thinking that the prompt has opened always the whole text.

    >>> reasoning("<think>a</think> b <answer>c</answer>"), reasoning("a</think> b"), reasoning("a <answer>c")
    ('a', 'a', 'a ')
    """
    end = _end(text)
    plain = _PLAIN_ANALYSIS.match(text)
    if end is not None:
        text = text[: end.before]
    else:
        before_answer, tag, _ = text.rpartition("<answer>")
        text = before_answer if tag and not opened else without_end_tokens(text)
    start = _opening(text)
    if start is not None:
        return text[start.after :]
    return text if plain is None else text[plain.end() :]


def opens_thinking(prompt: str) -> bool:
    r"""Return whether a rendered prompt ends inside a thinking that it has just opened.

    >>> opens_thinking("<|im_start|>assistant\n<think>\n"), opens_thinking("Use <think> tags.")
    (True, False)
    >>> opens_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    False
    """
    return opening_of(prompt) != ""


def opening_of(prompt: str) -> str:
    r"""Return the opening delimiter at the end of a rendered prompt, with the white space behind
    it; empty where there is none.

    >>> opening_of("<|im_start|>assistant\n<think>\n")
    '<think>\n'
    """
    end = len(prompt.rstrip())
    for opening in _OPENINGS:
        if prompt.endswith(opening, 0, end):
            return prompt[end - len(opening) :]
    return ""


def with_opening(text: str, opened: bool) -> str:
    r"""Return a completion with the opening delimiter that its prompt has written, as ms-swift
    hands it to rewards; unchanged where it begins with one, or has no text.

    >>> with_opening("1 + 1</think>", True), with_opening("<think>1 + 1</think>", True)
    ('<think>\n1 + 1</think>', '<think>1 + 1</think>')
    """
    if not opened or text.lstrip().startswith(_OPENINGS) or not without_end_tokens(text):
        return text
    opening = THINK.opening
    for delimiters in DELIMITERS:
        if delimiters.closing in text:
            opening = delimiters.opening
            break
    return f"{opening}\n{text}"


def without_end_tokens(text: str) -> str:
    r"""Return the text without special tokens such as ``<|im_end|>`` and white space at its end.

    Some trainers decode them with the text; they are not part of what the policy was asked to
    write.

    >>> without_end_tokens("<answer>7</answer><|im_end|>\n<|endoftext|>")
    '<answer>7</answer>'
    """
    end = len(text.rstrip())
    while end and text[end - 1] == ">":
        start = text.rfind("<", max(0, end - _LONGEST_SPECIAL_TOKEN), end)
        if start < 0 or not _SPECIAL_TOKEN.fullmatch(text, start, end):
            break
        end = start
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


_OPENINGS = tuple(opening for opening, _ in DELIMITERS)
_CLOSINGS = tuple(closing for _, closing in DELIMITERS)
_TAGS = re.compile(
    "<(?:" + "|".join(re.escape(opening[1:]) for opening in _OPENINGS if opening[0] == "<") + ")"
)
_CLOSING_TAGS = re.compile(
    "</(?:" + "|".join(re.escape(closing[2:]) for closing in _CLOSINGS if closing[:2] == "</") + ")"
)
# Others, by a character of theirs that few texts have.
_OTHER_OPENINGS = tuple((opening[0], opening) for opening in _OPENINGS if opening[0] != "<")
_OTHER_CLOSINGS = tuple(
    ("|" if "|" in closing else closing[0], closing) for closing in _CLOSINGS if closing[:2] != "</"
)


class _Found(NamedTuple):
    """Where a delimiter stands: its first character, and the first one behind it."""

    before: int
    after: int


def _end(text: str) -> _Found | None:
    """The last closing delimiter."""
    last = None
    if "<" in text:
        # THINK's alone is found at once where it is there
        start = max(text.rfind(THINK.closing), 0)
        for tag in _CLOSING_TAGS.finditer(text, start):
            last = _Found(*tag.span())
    for character, closing in _OTHER_CLOSINGS:
        if character in text:
            position = text.rfind(closing)
            if position >= 0 and (last is None or position > last.before):
                last = _Found(position, position + len(closing))
    if last is None and _PLAIN_ANALYSIS.match(text):
        position = text.rfind(_PLAIN_FINAL)
        if position >= 0:
            last = _Found(position, position + len(_PLAIN_FINAL))
    if last is None and _GPT_OSS_CALL in text:
        opening = max(text.rfind(_ANALYSIS), 0)
        if opening or text.startswith(_ANALYSIS) or _PLAIN_ANALYSIS.match(text):
            commentary = _TO_COMMENTARY.search(text, opening)
            if commentary and text.find(_GPT_OSS_CALL, commentary.end()) >= 0:
                last = _Found(*commentary.span())
    return last


def _opening(text: str) -> _Found | None:
    """The first opening delimiter."""
    tag = _TAGS.search(text) if "<" in text else None
    first = None if tag is None else _Found(*tag.span())
    for character, opening in _OTHER_OPENINGS:
        if character in text:
            position = text.find(opening, 0, first.before if first else len(text))
            if position >= 0:
                first = _Found(position, position + len(opening))
    return first
