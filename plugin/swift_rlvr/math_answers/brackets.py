"""Text split outside of all its brackets."""

import re
from collections.abc import Iterator

_OPENING = re.compile(r"\\begin\s*\{|\\\{|\\langle(?![A-Za-z])|\\lfloor|\\lceil|[(\[{]")
_CLOSING = re.compile(r"\\end\s*\{[a-zA-Z*]+\}|\\\}|\\rangle(?![A-Za-z])|\\rfloor|\\rceil|[)\]}]")


def closed_at(text: str) -> int:
    """Where the bracket at the beginning is closed; -1 where it is not."""
    depth = 0
    for place, change in _depths(text):
        depth += change
        if depth == 0:
            match = _CLOSING.match(text, place)
            return match.end() if match else -1
    return -1


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """(place, 1) for an opening bracket, (place, -1) for a closing one."""
    place = 0
    while place < len(text):
        if opening := _OPENING.match(text, place):
            yield place, 1
            # \begin{name}: its own braces are part of the mark
            place = text.find("}", opening.end()) + 1 if opening[0].startswith("\\b") else opening.end()
            place = place or len(text)
        elif closing := _CLOSING.match(text, place):
            yield place, -1
            place = closing.end()
        else:
            place += 2 if text[place] == "\\" and text[place + 1 : place + 2] in "\\|" else 1


def split(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]] | None:
    """The parts between separators outside all brackets, and the separators; None where brackets do not match."""
    parts, found = [], []
    depth = start = place = 0
    brackets = dict(_depths(text))
    while place < len(text):
        if not depth and (match := separator.match(text, place)) and match.end() > place:
            parts.append(text[start:place].strip())
            found.append(match[0].strip())
            start = place = match.end()
            continue
        depth += brackets.get(place, 0)
        if depth < 0:
            return None
        place += 1
    return ([*parts, text[start:].strip()], found) if not depth else None
