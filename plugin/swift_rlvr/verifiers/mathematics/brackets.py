"""Text split outside of all its brackets."""

import re
from collections.abc import Iterator

_OPENING = re.compile(r"\\begin\s*\{|\\\{|\\langle(?![A-Za-z])|\\lfloor|\\lceil|[(\[{]")
_CLOSING = re.compile(r"\\end\s*\{[a-zA-Z*]+\}|\\\}|\\rangle(?![A-Za-z])|\\rfloor|\\rceil|[)\]}]")


def closed_at(text: str) -> int:
    """Where the bracket at the beginning is closed; -1 where it is not."""
    depth = 0
    for position, change in _depths(text):
        depth += change
        if depth == 0:
            match = _CLOSING.match(text, position)
            return match.end() if match else -1
    return -1


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """(position, 1) for an opening bracket, (position, -1) for a closing one."""
    position = 0
    while position < len(text):
        if opening := _OPENING.match(text, position):
            yield position, 1
            # \begin{name}: its own braces are part of the mark
            end = opening.end() if opening[0][:2] != "\\b" else text.find("}", opening.end()) + 1
            position = end or len(text)
        elif closing := _CLOSING.match(text, position):
            yield position, -1
            position = closing.end()
        else:
            position += (
                2 if text[position] == "\\" and text[position + 1 : position + 2] in "\\|" else 1
            )


def split(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The parts between separators outside all brackets, and the separators; no parts where
    brackets do not match.
    """
    parts, found = [], []
    depth = start = position = 0
    brackets = dict(_depths(text))
    while position < len(text):
        if not depth and (match := separator.match(text, position)) and match.end() > position:
            parts.append(text[start:position].strip())
            found.append(match[0].strip())
            start = position = match.end()
            continue
        depth += brackets.get(position, 0)
        if depth < 0:
            return [], []
        position += 1
    return ([*parts, text[start:].strip()], found) if not depth else ([], [])
