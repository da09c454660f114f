"""Which calls a text makes. All of them count, whatever way they are written in, so that none can
stand beside another in secret.
"""

import re
from collections.abc import Sequence

from swift_rlvr.verifiers.denials import is_denied
from swift_rlvr.verifiers.tool_calls.calls import BadCall, Call, Tool
from swift_rlvr.verifiers.tool_calls.formats import FORMATS, MARKS, Format, by_their_names
from swift_rlvr.verifiers.tool_calls.json_calls import calls_in_a_row, calls_of, json_in
from swift_rlvr.verifiers.tool_calls.named_calls import NamedReader
from swift_rlvr.verifiers.tool_calls.python_calls import PythonReader

_BLOCK = re.compile(r"```[ \t]*(?:\w+[ \t]*)?\r?\n(.*?)\n?```", re.DOTALL)
# What Llama writes before and between its calls.
_LLAMA_MARK = re.compile(r"^\s*(?:<\|python_tag\|>|<\|python_start\|>)|<\|python_end\|>\s*$")


def has_call(text: str, tools: Sequence[Tool]) -> bool:
    """Whether a text makes a call, or tries to: a mark of one, a call that can be read, or one of
    Python's with arguments, wherever it stands.
    """
    if any(mark in text for mark in MARKS):
        return True
    try:
        return _UnmarkedReader(tools, text_around=True).has_call(text)
    except BadCall:
        return True


def calls_in(text: str, tools: Sequence[Tool], text_around: bool = False) -> list[Call]:
    """The calls of a text, in order; empty where it makes none.

    text_around: whether other text may stand around them, and not only before those that have a mark,
    such as ``<tool_call>``. BadCall for text where it may not stand, and for what begins like a call and
    cannot be read.

    >>> tools = [Tool("add", {"a": {"type": "integer"}, "b": {"type": "integer"}})]
    >>> for text in (
    ...     '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>',
    ...     '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 2}}]',
    ...     '{"name": "add", "parameters": {"a": 1, "b": 2}}',
    ...     "[add(a=1, b=2)]",
    ... ):
    ...     assert calls_in(text, tools) == [Call("add", {"a": 1, "b": 2})]
    >>> calls_in("I can add numbers.", tools)
    []
    """
    tools_by_name = {tool.name: tool for tool in tools}
    text = text.strip()
    block = _BLOCK.fullmatch(text)
    if block and "```" not in block[1]:
        text = block[1].strip()
    form = _form_of(text)
    if form is None:
        return _UnmarkedReader(tools, text_around).calls(text)

    calls, rest = form.read(text, tools_by_name)
    for mark in MARKS:
        if mark in rest:
            raise BadCall(f"there is a call besides that is not whole, or in another form: {mark}")
    rest = rest.strip()
    if not rest:
        return calls
    # A mark ends what is said before it. Models explain a call, and whoever runs it reads no text.
    is_allowed = text_around
    if text.startswith(rest):
        alone, behind = form.read(text[len(rest) :], tools_by_name)
        is_allowed = is_allowed or (alone == calls and not behind.strip())
    if not is_allowed or _UnmarkedReader(tools, text_around).has_call(rest):
        raise BadCall(f"there is text around the calls: {rest!r:.80}")
    return calls


def _form_of(text: str) -> Format | None:
    """The format whose mark stands first, as the others may stand in an argument."""
    first: tuple[int, Format] | None = None
    for form in FORMATS:
        for mark in form.marks:
            place = text.find(mark)
            if place >= 0 and (first is None or place < first[0]):
                first = place, form
    return first[1] if first else None


class _UnmarkedReader:
    """Reads calls without a mark of these tools: JSON or Python, in a block of Markdown or without
    one. text_around: whether other text may stand around them.
    """

    def __init__(self, tools: Sequence[Tool], text_around: bool):
        self.text_around = text_around
        self.tools = {tool.name: tool for tool in tools}
        self.python = PythonReader(self.tools)
        self.named = NamedReader(self.tools)

    def mentions(self, text: str) -> bool:
        """Whether a call begins in a text that stands nowhere else: as Python's, or with its name alone."""
        return self.python.mentions(text) or self.named.mentions(text)

    def has_call(self, text: str) -> bool:
        """Whether a text makes a call, or writes one without JSON's keys that cannot be read."""
        return self.mentions(text) or bool(self.calls(text))

    def calls(self, text: str) -> list[Call]:
        """The calls of a text; BadCall for text around them where it may not stand."""
        text = _LLAMA_MARK.sub("", text).strip()
        whole = self._whole(text)
        if whole is not None:
            return whole
        # Before the blocks, which hold arguments alone where a name stands before them.
        if self.named.mentions(text):
            return self._named(text)
        around = _BLOCK.sub("\n", text).strip()
        if around == text or (around and not self.text_around):
            return self._amid_text(text)
        calls = []
        unread = []
        for block in _BLOCK.finditer(text):
            content = block[1].strip()
            in_block = self._whole(content)
            if in_block is None:
                in_block = self._amid_text(content)
            calls += in_block
            if not in_block:
                unread.append(block[1])
            elif is_denied(text, *block.span()):
                raise BadCall("the words around a call take it back")
        if calls and self.mentions(around):
            raise BadCall("there are calls in a block and beside it")
        calls += self.calls(around)
        if calls and self.mentions("\n".join(unread)):
            raise BadCall("there is a call in a block that cannot be read")
        return calls

    def _amid_text(self, text: str) -> list[Call]:
        """The calls that stand somewhere in a text, if they may."""
        scattered = self._scattered(text)
        if scattered and not self.text_around:
            raise BadCall("there is text around the calls")
        return scattered

    def _whole(self, text: str) -> list[Call] | None:
        """The calls that a text is as a whole; None where it is something else."""
        if text == "[]":
            return []
        if text.startswith(("{", "[{", "[ {", "[\n")):
            try:
                return calls_in_a_row(text)
            except BadCall:
                pass
            try:
                # What is left of Apertus's.
                calls = by_their_names(text, self.tools)
            except BadCall:
                calls = []
            if calls and all(call.name in self.tools for call in calls):
                return calls
            # A list may be one of Python's calls.
            if text.startswith("{"):
                return None
        return self.named.read(text) or self._python(text)

    def _named(self, text: str) -> list[Call]:
        """The calls from the first name on behind which its arguments stand."""
        before, calls = self.named.from_the_first(text)
        if calls is None or (before and not self.text_around):
            raise BadCall(f"there is text around the calls, or they cannot be read: {text!r:.80}")
        if self.has_call(before):
            raise BadCall("there are calls in two forms")
        return calls

    def _scattered(self, text: str) -> list[Call]:
        """The calls that stand somewhere in a text."""
        calls: list[Call] = []
        rest = text
        for part in json_in(text):
            try:
                calls += calls_of(part)
            except BadCall:
                continue
            start = text.index(part)
            if is_denied(text, start, start + len(part)):
                raise BadCall("the words around a call take it back")
            rest = rest.replace(part, "\n", 1)
        if not self.python.names_a_tool(rest):
            return calls

        # Python's: from the first bracket to the last, and then each line alone.
        first, last = rest.find("["), rest.rfind("]")
        listed = self._python(rest[first : last + 1]) if 0 <= first < last else None
        if listed:
            calls += listed
            rest = f"{rest[:first]}\n{rest[last + 1 :]}"
        left = []
        for line in rest.splitlines():
            in_line = self._python(line.strip().strip("`*- "))
            if in_line:
                calls += in_line
            else:
                left.append(line)
        if calls and self.mentions("\n".join(left)):
            raise BadCall("there is a call besides that cannot be read")
        return calls

    def _python(self, text: str) -> list[Call] | None:
        """The calls that a text of Python is, and those in its comments; None for other texts."""
        program = self.python.read(text)
        if program is None:
            return None
        calls = program.calls
        for comment in program.comments:
            if not self.text_around:
                raise BadCall(f"there is text around the calls: {comment!r:.80}")
            if self.mentions(comment):
                raise BadCall("there is a call in a comment")
            calls += self.calls(comment.lstrip("# "))
        return calls
