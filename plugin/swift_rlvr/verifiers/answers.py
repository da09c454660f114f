r"""Completion -> the text of its answer.

The answer is the last ``<answer>...</answer>`` block after the last ``</think>``; without a
``</think>`` it is the last block of the completion. Tags are exactly these, in lower case and
without attributes, as the prompt asks for. The search uses ``str.find`` and ``str.rfind``, so a
text of 100,000 unclosed tags costs no more than any other.
"""

import re
import string
import unicodedata
from collections import deque
from collections.abc import Iterator

OPEN, CLOSE, THINK_END = "<answer>", "</answer>", "</think>"
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\[\\{}]|[{}]")
_BOXED_OR_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\[\\{}]|[{}]")
_JOINT = re.compile(  # between boxes that are one answer
    r"(?:[\s$,;&~]|\\[()\[\],; ]|\\q?quad|\band\b|\bor\b|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|[A-Za-z](?:_\d)?\s*=)*"
)
_LONGEST_JOINT = 60
_NAME_BEFORE = re.compile(r"(?<![A-Za-z\\])([A-Za-z](?:_\d)?)\s*=\s*\$?\s*$")
_SPECIAL_TOKEN = re.compile(r"<\|[\w.-]{1,32}\|>|<｜[\w▁]{1,32}｜>|</s>|<eos>|<end_of_turn>")
_LONGEST_SPECIAL_TOKEN = 36
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_LANGUAGE = re.compile(r"\s*\{?\s*\.?([^\s:,;{}]*)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IN_NUMBERS = re.compile(r"(?<=\d)[-.,:/](?=\d)|(?<!\d)\.(?=\d)|(?<![\w)])-(?=\W?\d)")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PYTHON = ("python", "python3", "py", "py3")


def completion_text(completion: object) -> str | None:
    """Return the text of a completion in either shape that trainers pass, or None where there is
    none.

    That is a string (ms-swift), or a list of messages ``{"role": ..., "content": ...}`` (TRL), of
    which the last one counts; its content is a string, a list of parts ``{"type": "text", "text":
    ...}``, or None.

    >>> completion_text("3 + 4"), completion_text([{"role": "assistant", "content": "3 + 4"}])
    ('3 + 4', '3 + 4')
    """
    if isinstance(completion, str):
        return completion
    if (
        not isinstance(completion, (list, tuple))
        or not completion
        or not isinstance(completion[-1], dict)
    ):
        return None
    content = completion[-1].get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


def last_answer(text: str) -> str | None:
    """Return the text inside the answer block, white space included, or None where no block is
    complete.

    A block ends at the first ``</answer>`` after its opening tag; an opening tag that is never
    closed opens nothing.

    >>> last_answer("</think><answer>1+1</answer> <answer>2+"), last_answer("<answer>3</answer></think> end")
    ('1+1', None)
    """
    start = text.rfind(
        OPEN, 0, max(text.rfind(CLOSE), 0)
    )  # not rpartition, which copies everything before it
    if start < 0:
        return None
    tail = text[start + len(OPEN) :]
    return None if THINK_END in tail else tail[: tail.find(CLOSE)]


def has_unclosed_answer(text: str) -> bool:
    """Return whether an answer is opened after the last ``</think>``, for a text without a complete
    block.

    >>> has_unclosed_answer("<think>...</think><answer>1+1"), has_unclosed_answer("<answer>2</answer></think>")
    (True, False)
    """
    return text.find(OPEN, text.rfind(THINK_END) + 1) >= 0


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


def last_boxed(text: str) -> str | None:
    r"""Return the text inside the last complete ``\boxed{...}`` or ``\fbox{...}``, or None; of
    nested ones the inner.

    >>> print(last_boxed(r"\boxed{1}, so \boxed{\frac{1}{2}} and \boxed{3"), last_boxed("no box"))
    \frac{1}{2} None
    """
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return None
    opening = _BOXED.match(text, start)
    if opening is not None:
        depth = 1
        for brace in _BRACE.finditer(text, opening.end()):
            depth += {"{": 1, "}": -1}.get(brace.group(), 0)
            if depth == 0:
                return text[opening.end() : brace.start()]
    last = deque(_closed_boxes(text), maxlen=1)  # the last one is never closed
    return text[last[0][1] : last[0][2] - 1] if last else None


def boxed_answer(text: str) -> str | None:
    r"""Return the text inside the last box, or of the last boxes that stand together, with a comma
    between each two.

    Together stand boxes with nothing between them but "and", "or", a comma, delimiters, a name and
    an equals sign.

    >>> print(boxed_answer(r"\boxed{3}. So $\boxed{1}$ and $\boxed{-2}$."))
    1, -2
    >>> print(boxed_answer(r"$x=\boxed{1}$, $y=\boxed{2}$"))
    x = 1, y = 2
    """
    boxes = _leaf_boxes(text) if text.count("\\boxed") + text.count("\\fbox") > 1 else []
    if not boxes:
        return last_boxed(text)
    group = [boxes[-1]]
    for before, after in zip(boxes[-2::-1], boxes[::-1], strict=False):
        if after[0] - before[2] > _LONGEST_JOINT or not _JOINT.fullmatch(text, before[2], after[0]):
            break
        group.append(before)
    contents = [text[start : end - 1].strip() for _, start, end in reversed(group)]
    names = [
        _NAME_BEFORE.search(text, max(0, begin - 20), begin) for begin, _, _ in reversed(group)
    ]
    if len(set(contents)) == 1 and not all(names):
        return contents[0]
    if len(group) > 1 and all(names):
        contents = [
            f"{name[1]} = {content}" for name, content in zip(names, contents, strict=True) if name
        ]
    return ", ".join(contents)


def _closed_boxes(text: str) -> Iterator[tuple[int, int, int]]:
    """(its beginning, its content's beginning, its end) of each closed box as it closes, in one
    pass.
    """
    opened: list[
        tuple[int, int] | None
    ] = []  # for each open brace its box; None where it opens no box
    for token in _BOXED_OR_BRACE.finditer(text):
        mark = token.group()
        if mark == "{":
            opened.append(None)
        elif len(mark) > 2:
            opened.append(token.span())
        elif mark == "}" and opened and (box := opened.pop()):
            yield *box, token.end()


def _leaf_boxes(text: str) -> list[tuple[int, int, int]]:
    """The closed boxes without another in them."""
    boxes: list[tuple[int, int, int]] = []
    for box in _closed_boxes(text):
        if not boxes or boxes[-1][0] <= box[0]:
            boxes.append(box)
    return boxes


def marked_answer(text: str) -> tuple[str, str] | None:
    r"""Return how the final answer of a mathematical text is marked, and the answer; None where
    nothing marks one.

    The last complete answer block decides, and in it the last ``\boxed{...}`` if there is one, or
    the last ones if several stand together (`boxed_answer`); without a block those after the
    thinking, and without them what follows the last ``####`` on its line, as in GSM8K.

    >>> marked_answer(r"<think>\boxed{1}</think> It is \boxed{2}."), marked_answer("3 + 4 = 7\n#### 7")
    (('boxed', '2'), ('####', '7'))
    >>> marked_answer(r"<answer>so $\boxed{2}$</answer>"), marked_answer("<answer> 2 cm </answer>")
    (('boxed', '2'), ('answer tag', '2 cm'))
    """
    answer = last_answer(text)
    scope = after_think(text) if answer is None else answer
    if (boxed := boxed_answer(scope)) is not None:
        return "boxed", boxed.strip()
    if answer is not None:
        return "answer tag", answer.strip()
    _, hashes, line = scope.rpartition("####")
    return (hashes, line.strip().partition("\n")[0].strip()) if hashes else None


def normalised_answer(text: str) -> str:
    """A text answer for comparison: without case, punctuation, articles and further white space, as
    SQuAD does it.

    Unlike there the marks within a number and its sign stay, commas of thousands do not, and of
    what would be nothing without articles or punctuation more is kept: neither ``15`` is 1.5, nor
    is nothing the answer "A".

    >>> normalised_answer("The  Rhine."), normalised_answer("-1,234.5 km"), normalised_answer("A.")
    ('rhine', '-1234.5 km', 'a')
    """
    text = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).replace("−", "-").lower())
    kept = {match.start() for match in _IN_NUMBERS.finditer(text)}
    bare = "".join(c for i, c in enumerate(text) if i in kept or not _is_punctuation(c))
    return " ".join(_ARTICLES.sub(" ", bare).split() or bare.split() or text.split())


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def after_think(text: str) -> str:
    """Return what follows the last ``</think>``, or a text without one, up to a ``<think>`` that is
    never closed.

    >>> after_think("<think>1+1</think> 2"), after_think("2"), after_think("<think>1+1 is perhaps 2")
    (' 2', '2', '')
    """
    thought = text.rfind(THINK_END)
    return (text if thought < 0 else text[thought + len(THINK_END) :]).partition("<think>")[0]


def reasoning(text: str) -> str:
    """Return the think part, from the first ``<think>`` or else the beginning, to the last
    ``</think>``.

    Where no think part is closed, it is the text before the last ``<answer>``, or else the whole
    text.

    >>> reasoning("<think>a</think> b <answer>c</answer>"), reasoning("a</think> b"), reasoning("a <answer>c")
    ('a', 'a', 'a ')
    """
    end = text.rfind(THINK_END)
    if end < 0:
        end = text.rfind(OPEN)
    text = without_end_tokens(text) if end < 0 else text[:end]
    start = text.find("<think>")
    return text if start < 0 else text[start + len("<think>") :]


def find_code(text: str) -> str | None:
    """Return the completion's program: the last fenced block of the answer that is labelled as
    Python.

    A block without a label is the program only where none is labelled so, and one without an end,
    which a stop word may have cut off, only where none labelled so is closed. An answer without any
    block is a program as a whole; without an answer only a block after ``</think>`` counts.

    >>> find_code("So:\\n```python\\nprint(1)\\n```\\n```\\n1\\n```"), find_code("<answer>print(2)</answer>")
    ('print(1)', 'print(2)')
    """
    answer = last_answer(text)
    scope = without_end_tokens(after_think(text) if answer is None else answer).removeprefix(
        "\ufeff"
    )
    blocks: dict[str, list[str]] = {}  # by what speaks for it, the last of each
    fence: re.Match[str] | None = None
    block: list[str] = []
    for line in scope.split("\n"):
        mark = _FENCE.match(line)
        if fence is None:
            if mark and not (mark[1][0] == "`" and "`" in mark[2]):  # else it is code within a line
                fence, block = mark, []
        elif mark and mark[1].startswith(fence[1]) and not without_end_tokens(mark[2]):
            blocks[_label(fence[2])] = block
            fence = None
        else:
            indent = fence.start(1)  # as in a list
            block.append(line[indent:] if not line[:indent].strip() else line)
    if fence is not None and _label(fence[2]) == "Python":
        blocks["unclosed"] = block
    elif answer is not None and fence is None and not blocks and "```" not in scope:
        blocks["no label"] = [scope.strip("\n")]
    code = next((blocks[name] for name in ("Python", "unclosed", "no label") if name in blocks), [])
    return "\n".join(code).removeprefix("\ufeff") or None


def _label(info: str) -> str:
    """What the info string of a fence, such as ``python:solution.py`` or ``{.python}``, says of the
    block.
    """
    if not info.strip():
        return "no label"
    return "Python" if _LANGUAGE.findall(info)[0].lower() in _PYTHON else "another language"
