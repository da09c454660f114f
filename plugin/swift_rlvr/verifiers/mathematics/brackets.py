"""Text split outside of all its brackets."""

import re
from collections.abc import Iterator

_CLOSING = re.compile(r"\\end\s*\{[a-zA-Z*]+\}|\\\}|\\rangle(?![A-Za-z])|\\rfloor|\\rceil|[)\]}]")
_BRACKET = re.compile(
    # ( [ { and, in LaTeX, \{ \langle \lfloor \lceil; the braces around a name are part of \begin{...}
    r"(?P<opening>\\begin\s*\{[^}]*(?:\}|\Z)|\\\{|\\langle(?![A-Za-z])|\\lfloor|\\lceil|[(\[{])"
    rf"|(?P<closing>{_CLOSING.pattern})"
    # `\\` ends a row, and `\\{` is that with a brace behind it; a bar opens and closes alike
    r"|\\[\\|]"
)


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
    for mark in _BRACKET.finditer(text):
        if mark["opening"]:
            yield mark.start(), 1
        elif mark["closing"]:
            yield mark.start(), -1


def split(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The parts between separators outside all brackets, and the separators.

    There are no parts where brackets do not match. `(1, 2]` is fine: any bracket closes any other.

    >>> split("(1, 2), 3", re.compile(",")), split("(1, 2", re.compile(","))
    ((['(1, 2)', '3'], [',']), ([], []))
    """
    parts: list[str] = []
    separators: list[str] = []
    brackets = [*_depths(text), (len(text), 0)]
    passed = depth = start = position = 0
    # Most texts have no separator, which one search shows.
    while match := separator.search(text, position):
        while brackets[passed][0] < match.start():
            depth += brackets[passed][1]
            passed += 1
            if depth < 0:
                return [], []
        if depth == 0:
            parts.append(text[start : match.start()].strip())
            separators.append(match[0].strip())
            start = position = match.end()
            # \text{ and } has brackets of its own
            while brackets[passed][0] < position:
                passed += 1
            continue
        # the next one that counts is behind the bracket that closes the first of those open
        while depth > 0 and passed < len(brackets):
            position = brackets[passed][0] + 1
            depth += brackets[passed][1]
            passed += 1
        if depth > 0:
            return [], []
    for _, change in brackets[passed:]:
        depth += change
        if depth < 0:
            return [], []
    if depth > 0:
        return [], []
    parts.append(text[start:].strip())
    return parts, separators
