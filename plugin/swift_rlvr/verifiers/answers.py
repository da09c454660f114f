r"""The parts of a completion in which an answer stands: answer blocks, boxes, code; and texts for
comparison. Which of them is the final answer says `statements.py`.

An answer block is the last ``<answer>...</answer>`` after the thinking; without the end of a thinking
it is the last of the completion. Tags are exactly these, in lower case and
without attributes, as the prompt asks for. The search uses ``str.find`` and ``str.rfind``, so a
text of 100,000 unclosed tags costs no more than any other.
"""

import re
import string
import unicodedata
from typing import NamedTuple

from swift_rlvr.verifiers.thinking import (
    after_thinking,
    is_thinking,
    thinking_end,
    without_end_tokens,
)

OPEN, CLOSE = "<answer>", "</answer>"

# Boxes. A brace of the text itself is escaped and does not count: \{ and \}.
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BOXED_OR_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\[\\{}]|[{}]")
# \boxed 12
_BARE_BOX = re.compile(r"\\boxed +(-?\d+(?:[.,/]\d+)*|[A-J](?![A-Za-z]))")
# ~~12~~, but not the ties of 5~~cm; <del>12</del>, but not <s>12</s>, which are tokens as well; \sout{12};
# \cancel{\boxed{12}}, since a factor is cancelled, too
_LONGEST_STRUCK = 200
_STRUCK = re.compile(
    rf"(?<![\w~)}}\]])~~(?=[^\s~])[^~\n]{{1,{_LONGEST_STRUCK}}}(?<=\S)~~(?![\w~])"
    rf"|<(del|strike)>[^<]{{1,{_LONGEST_STRUCK}}}</\1>"
    r"|\\(?:sout|st|[bx]?cancel)\s*\{\s*\\boxed\s*\{[^{}]*\}\s*\}|\\sout\s*\{[^{}]*\}"
)
# What may stand between boxes that are one answer: \boxed{1} and $\boxed{2}$, y = \boxed{3}
_JOINT = re.compile(
    # commas, dollars, 或, 和, \( and \quad
    r"(?:[\s$,;&~，、；或和]|\\[()\[\],; ]|\\q?quad"
    # and, \text{ and }
    r"|\band\b|\bor\b|\\text\s*\{\s*,?\s*(?:and|or)\s*\}"
    # x_1 =
    r"|[A-Za-z](?:_\d)?\s*=)*"
)
_OR = re.compile(r"\bor\b|或")
_LONGEST_JOINT = 60
# Boxes are searched for at the end of a text: a million braces would take a second.
_LONGEST_SCOPE = 100_000
# x = \boxed{1}, x_1 = $\boxed{1}; not \max = \boxed{1}
_NAME_BEFORE = re.compile(r"(?<![A-Za-z\\])([A-Za-z](?:_\d)?)\s*=\s*\$?\s*$")
_LONGEST_NAME = 20  # with its equals sign and white space

# Code. A line that opens or closes a block: ```python, ~~~, ````; and the language of the first.
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
# One behind other text, which has to name a language: "Answer: ```python". Markdown wants a line of its own.
_FENCE_BEHIND_TEXT = re.compile(r"[^`]*[^\s`]\s*(`{3,})([ \t]*[A-Za-z]\w*\s*)")
_LANGUAGE = re.compile(r"\s*\{?\s*\.?([^\s:,;{}]*)")
_PYTHON = ("python", "python3", "py", "py3")

# Texts that are compared as SQuAD does it, except that signs and digits say what they say.
# the comma of 1,234 and of 1,234,567; not that of 1,2
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# NFKC would make 10⁵ 105; the ² of Ca²⁺ is no exponent
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_EXPONENT = re.compile(rf"(?<=[\w)])(⁻?[{_RAISED}]+)(?![⁺⁻{_RAISED}])")
# ... and 1½ 11/2
_MIXED_NUMBER = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_ONE_SIGN = str.maketrans(dict.fromkeys("−‐‑‒–—", "-") | {"⁄": "/"})
# what Markdown and LaTeX put around a text: **Rhine**, `Rhine`, _Rhine_, $5$, # Rhine
_MARKUP = re.compile(
    r"(?<![\w)\]])(\*{1,3}|_|`+)(?=\S)(?P<text>[^*_`]+)(?<=\S)\1(?!\w)"
    r"|\$(?=\S)(?P<formula>[^$]+)(?<=\S)\$(?!\d)"
    r"|^#{1,6}\s"
)
# 50 % is 50%, and x = 5 is x=5
_SPACE_AT_SIGN = re.compile(r"\s+(?=[%‰°^=<>/])|(?<=[\^=<>/])\s+")
# punctuation that says something wherever it stands: C++, C#, 10^5, A*, AT&T
_SIGNS = frozenset("+#%^*=<>/&@|~‰‱′″‴")
# ... or only in its place
_KEPT = re.compile(
    r"(?<=\d)[^\w\s]+(?=\d)"  # 1.5, 3:30, 5'11
    r"|(?<!\d)\.(?=\d)|\$(?=\.?\d)"  # .5, $5
    r"|(?<=\d)!|(?<!\w)[^\W\d_]!"  # 5!, n!
    r"|(?<=\w)[_\\]+(?=\w)"  # snake_case
)
# A hyphen, and a dash between words. Any other is a minus: -3, Rh-, x-y
_HYPHEN = re.compile(
    r"(?<=[^\W\d_]{2})-+(?=[^\W\d_])|(?<=[^\W\d_])-+(?=[^\W\d_]{2})"  # well-known, x-ray
    r"|(?<!\S)-+(?=\s[^\W\d_]{2})|(?<=[^\W\d_]{2}\s)-+(?!\S)"  # "Rhine - the river"
)
# not the A of "vitamin A"
_ARTICLES = re.compile(r"\b(?:a|an|the)\b(?=\s+\S)")


def last_answer(text: str) -> str | None:
    """Return the text inside the answer block, white space included, or None where no block is
    complete.

    A block ends at the first ``</answer>`` after its opening tag; an opening tag that is never
    closed opens nothing. In a thinking that is never closed a block is the answer only where the
    completion ends with it: one that goes on, or was cut off, was still thinking.

    >>> last_answer("</think><answer>1+1</answer> <answer>2+"), last_answer("<answer>3</answer></think> end")
    ('1+1', None)
    >>> last_answer("<think>1+1 <answer>2</answer>"), last_answer("<think>Is it <answer>3</answer>? No")
    ('2', None)
    """
    # The last opening tag before the last closing one. Not rpartition, which copies everything
    # before it.
    last_close = max(text.rfind(CLOSE), 0)
    start = text.rfind(OPEN, 0, last_close)
    if start < 0:
        return None
    tail = text[start + len(OPEN) :]
    if thinking_end(tail):  # the block stands in the thinking
        return None
    end = tail.find(CLOSE)
    rest = tail[end + len(CLOSE) :]
    if rest and without_end_tokens(rest) and is_thinking(text[:start]):
        return None
    return tail[:end]


def has_unclosed_answer(text: str) -> bool:
    """Return whether an answer is opened after the last ``</think>``, for a text without a complete
    block.

    >>> has_unclosed_answer("<think>...</think><answer>1+1"), has_unclosed_answer("<answer>2</answer></think>")
    (True, False)
    """
    start = text.rfind(OPEN)
    return start >= 0 and start >= max(thinking_end(text), text.rfind(CLOSE) + 1)


def with_latex_boxes(text: str) -> str:
    r"""A text in which all boxes are written as most are: GLM's mark of an answer, and a number in a box
    without braces, of which TeX would frame the first digit only.

    >>> with_latex_boxes("So <|begin_of_box|>7<|end_of_box|>."), with_latex_boxes(r"So $\boxed 12$.")
    ('So \\boxed{7}.', 'So $\\boxed{12}$.')
    """
    if "<|begin_of_box|>" in text:
        text = text.replace("<|begin_of_box|>", r"\boxed{").replace("<|end_of_box|>", "}")
    if r"\boxed " in text:
        text = _BARE_BOX.sub(r"\\boxed{\1}", text)
    return text


def without_struck(text: str) -> str:
    """A text without what is struck out in it, by Markdown, HTML or LaTeX.

    >>> without_struck("~~12~~ 7"), without_struck("<del>12</del> 7"), without_struck("5~~cm")
    (' 7', ' 7', '5~~cm')
    """
    return _STRUCK.sub("", text)


def last_boxed(text: str) -> str | None:
    r"""Return the text inside the last complete ``\boxed{...}`` or ``\fbox{...}``, or None; of
    nested ones the inner.

    >>> print(last_boxed(r"\boxed{1}, so \boxed{\frac{1}{2}} and \boxed{3"), last_boxed("no box"))
    \frac{1}{2} None
    """
    boxed = boxed_statement(text)
    return None if boxed is None else boxed.last


def boxed_answer(text: str) -> str | None:
    r"""Return the text inside the last box, or of the last boxes that stand together, with a comma
    or "or" between each two.

    Together stand boxes with nothing between them but "and", "or", a comma, delimiters, a name and
    an equals sign.

    >>> print(boxed_answer(r"\boxed{3}. So $\boxed{1}$ and $\boxed{-2}$."))
    1, -2
    >>> print(boxed_answer(r"$x=\boxed{1}$ or $x=\boxed{2}$"))
    x = 1 or x = 2
    """
    boxed = boxed_statement(text)
    return None if boxed is None else boxed.answer


class Boxed(NamedTuple):
    """The boxes that stand together last in a text, and what they say together.

    last: the content of the last of them, which begins at `start` and ends before `end`.
    """

    answer: str
    last: str
    start: int
    end: int


def boxed_statement(text: str) -> Boxed | None:
    """`boxed_answer` with its place."""
    cut = max(0, len(text) - _LONGEST_SCOPE)
    text = text[cut:]
    first = _BOXED.search(text)
    if first is None:
        return None

    # the closed boxes without another in them; a box closes after those in it
    boxes: list[tuple[int, int, int]] = []
    # for each open brace its box; None where it opens no box
    opened: list[tuple[int, int] | None] = []
    for token in _BOXED_OR_BRACE.finditer(text, first.start()):
        mark = token.group()
        if mark == "{":
            opened.append(None)
        elif len(mark) > 2:
            opened.append(token.span())
        elif mark == "}" and opened:
            box = opened.pop()
            if box and (not boxes or boxes[-1][0] <= box[0]):
                boxes.append((*box, token.end()))
    if not boxes:
        return None

    start, content_start, end = boxes[-1]
    content = text[content_start : end - 1]
    answer = content if len(boxes) == 1 else _answer_of_last_boxes(text, boxes)
    return Boxed(answer, content, cut + start, cut + end)


def _answer_of_last_boxes(text: str, boxes: list[tuple[int, int, int]]) -> str:
    """What the last box says, and those before it that stand together with it, with a comma or "or"
    between each two.
    """
    group = [boxes[-1]]
    joint = ", "
    for before in boxes[-2::-1]:
        joint_start = before[2]
        joint_end = group[-1][0]
        if joint_end - joint_start > _LONGEST_JOINT:
            break
        if not _JOINT.fullmatch(text, joint_start, joint_end):
            break
        # \boxed{x} or \boxed{x > 0}: two answers, and not one with its condition
        if _OR.search(text, joint_start, joint_end):
            joint = " or "
        group.append(before)
    group.reverse()

    contents = [text[start : end - 1].strip() for _, start, end in group]
    names = []
    for begin, _, _ in group:
        name = _NAME_BEFORE.search(text, max(0, begin - _LONGEST_NAME), begin)
        if name:
            names.append(name[1])
    are_named = len(names) == len(group)
    # The same answer in several boxes is written once.
    if len(set(contents)) == 1 and not are_named:
        return contents[0]
    if len(group) > 1 and are_named:
        named = zip(names, contents, strict=True)
        return joint.join(f"{name} = {content}" for name, content in named)
    return joint.join(contents)


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
    scope = after_thinking(text) if answer is None else answer
    boxed = boxed_answer(scope)
    if boxed is not None:
        return "boxed", boxed.strip()
    if answer is not None:
        return "answer tag", answer.strip()
    _, hashes, rest = scope.rpartition("####")
    if not hashes:
        return None
    line, _, _ = rest.strip().partition("\n")
    return hashes, line.strip()


def normalised_answer(text: str) -> str:
    """A text answer for comparison: without case, punctuation, articles and further white space, as
    SQuAD does it.

    Unlike there signs stay, and the marks within a number, whose commas of thousands do not: C++ is
    not C, nor is 10^5 105. An article at the end stays, and of what would be nothing without
    articles or punctuation more is kept: nothing is not the answer "A".

    >>> normalised_answer("The  Rhine."), normalised_answer("-1,234.5 km"), normalised_answer("A.")
    ('rhine', '-1234.5 km', 'a')
    >>> [normalised_answer(text) for text in ("**C++**", "well-known", "10⁵", "Rh-")]
    ['c++', 'wellknown', '10^5', 'rh-']
    """
    text = _MIXED_NUMBER.sub(" ", _EXPONENT.sub(r"^\1", text))
    text = unicodedata.normalize("NFKC", text).translate(_ONE_SIGN).lower()
    text = " ".join(text.split())
    text = _MARKUP.sub(lambda match: match["text"] or match["formula"] or "", text)
    text = _SPACE_AT_SIGN.sub("", _THOUSANDS.sub("", text))

    kept = _positions(_KEPT, text)
    hyphens = _positions(_HYPHEN, text)
    bare = []
    for position, character in enumerate(text):
        is_sign = character in _SIGNS or (character == "-" and position not in hyphens)
        is_punctuation = character in string.punctuation or unicodedata.category(
            character
        ).startswith("P")
        if is_sign or position in kept or not is_punctuation:
            bare.append(character)
    without_marks = "".join(bare)
    words = _ARTICLES.sub(" ", without_marks).split() or without_marks.split() or text.split()
    return " ".join(words)


def _positions(pattern: re.Pattern[str], text: str) -> set[int]:
    """The positions of all characters that a pattern matches in a text."""
    positions: set[int] = set()
    for match in pattern.finditer(text):
        positions.update(range(*match.span()))
    return positions


def find_code(text: str) -> str | None:
    """Return the completion's program: the last of its `code_blocks`. None if it has none.

    >>> find_code("So:\\n```python\\nprint(1)\\n```\\n```\\n1\\n```"), find_code("<answer>print(2)</answer>")
    ('print(1)', 'print(2)')
    """
    blocks = code_blocks(text)
    return blocks[-1] or None if blocks else None


def code_blocks(text: str) -> list[str]:
    """The blocks of the answer that may be its program, in order: those that are labelled as Python.

    A block without a label is one only where none is labelled so, and one without an end, which a
    stop word may have cut off, only where none labelled so is closed. An answer without any block is
    a program as a whole; without an answer only a block after ``</think>`` counts.
    """
    answer = last_answer(text)
    scope = answer_scope(text)
    closed, unclosed = fenced_blocks(scope)
    blocks: dict[str, list[list[str]]] = {}  # the lines of those of each label
    for block in closed:
        blocks.setdefault(_label(block), []).append(block.lines)
    if unclosed is not None and _label(unclosed) == "Python":
        # "print(x)```" closes it too where nothing else does, and so does "``` Done."
        fence = unclosed.fence[1]
        code = "\n".join(unclosed.lines)
        code, *_ = re.split(rf"^[ \t]*{fence}|{fence}[ \t]*$", code, maxsplit=1, flags=re.MULTILINE)
        blocks["unclosed"] = [code.split("\n")]
    elif answer is not None and unclosed is None and not blocks and "```" not in scope:
        blocks["no label"] = [[scope.strip("\n")]]
    for label in ("Python", "unclosed", "no label"):
        if label in blocks:
            return ["\n".join(lines).removeprefix("\ufeff") for lines in blocks[label]]
    return []


def answer_scope(text: str) -> str:
    """Where a program or a query is looked for: the last answer block, or else all after the
    thinking.
    """
    answer = last_answer(text)
    scope = after_thinking(text) if answer is None else answer
    return without_end_tokens(scope).removeprefix("\ufeff")


class Block(NamedTuple):
    """A fenced block of a text.

    language: in lower case, as a fence such as ``python:solution.py`` or ``{.python}`` says it; empty
    where it says nothing.
    """

    fence: re.Match[str]  # the line that opens it
    language: str
    lines: list[str]


def fenced_blocks(text: str) -> tuple[list[Block], Block | None]:
    """The closed blocks of a text, and the block that is open at the end."""
    closed: list[Block] = []
    block: Block | None = None
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if block is None:
            mark = mark or _FENCE_BEHIND_TEXT.fullmatch(line)
            # ```x = 1``` is code within a line.
            if mark and not (mark[1][0] == "`" and "`" in mark[2]):
                language = _LANGUAGE.findall(mark[2])[0].lower() or mark[2].strip()
                block = Block(mark, language, [])
        # As in Markdown, one that is indented by four more belongs to the block: to a docstring's example.
        elif (
            mark
            and mark[1].startswith(block.fence[1])
            and mark.start(1) < block.fence.start(1) + 4
            and not without_end_tokens(mark[2])
        ):
            closed.append(block)
            block = None
        else:
            # The lines of a block in a list are indented as its fence is.
            indent = block.fence.start(1) if block.fence.re is _FENCE else 0
            block.lines.append(line[indent:] if not line[:indent].strip() else line)
    return closed, block


def _label(block: Block) -> str:
    """What the fence of a block says for Python."""
    if not block.language:
        return "no label"
    return "Python" if block.language in _PYTHON else "another language"
