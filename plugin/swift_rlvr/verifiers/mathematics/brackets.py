"""Text split outside of all its brackets."""

import re
from collections.abc import Iterator

# ( [ { and, in LaTeX, \{ \langle \lfloor \lceil \begin{...}; a bar opens and closes alike
_OPENING = re.compile(r"\\begin\s*\{|\\\{|\\langle(?![A-Za-z])|\\lfloor|\\lceil|[(\[{]")
_CLOSING = re.compile(r"\\end\s*\{[a-zA-Z*]+\}|\\\}|\\rangle(?![A-Za-z])|\\rfloor|\\rceil|[)\]}]")


def closed_at(text: str) -> int:
    """Where the bracket at the beginning of a text is closed. Returns -1 if it is not, or if there is none.

    >>> closed_at("(1)(2)"), closed_at("((1)"), closed_at("1")
    (3, -1, -1)
    """
    depth = 0
    for position, change in _depths(text):
        depth += change
        if depth == 0:
            # none where the text begins with a closing bracket, or with none
            match = _CLOSING.match(text, position)
            return match.end() if match else -1
    return -1


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """(position, 1) for an opening bracket, (position, -1) for a closing one."""
    position = 0
    while position < len(text):
        if opening := _OPENING.match(text, position):
            yield position, 1
            position = opening.end()
            if opening[0].startswith("\\begin"):
                # the braces around the name are part of the mark
                name_end = text.find("}", position)
                position = name_end + 1 if name_end >= 0 else len(text)
        elif closing := _CLOSING.match(text, position):
            yield position, -1
            position = closing.end()
        elif text[position] == "\\" and text[position + 1 : position + 2] in "\\|":
            # `\\` ends a row, and `\\{` is that with a brace behind it
            position += 2
        else:
            position += 1


def split(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The parts between separators outside all brackets, and the separators.

    There are no parts where brackets do not match. `(1, 2]` is fine: any bracket closes any other.

    >>> split("(1, 2), 3", re.compile(",")), split("(1, 2", re.compile(","))
    ((['(1, 2)', '3'], [',']), ([], []))
    """
    parts: list[str] = []
    separators: list[str] = []
    brackets = dict(_depths(text))
    depth = 0
    start = position = 0
    while position < len(text):
        match = separator.match(text, position) if depth == 0 else None
        if match and match.end() > position:
            parts.append(text[start:position].strip())
            separators.append(match[0].strip())
            start = position = match.end()
            continue
        depth += brackets.get(position, 0)
        if depth < 0:
            return [], []
        position += 1
    if depth > 0:
        return [], []
    parts.append(text[start:].strip())
    return parts, separators
