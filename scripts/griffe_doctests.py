"""For the API pages of the documentation: makes the doctests of a docstring blocks of code.

Our docstrings have their examples in the text, without a heading. Markdown takes the `>>>` of
such an example for a quotation. mkdocs.yml names this file, and it is not used for anything else.
"""

from typing import Any

import griffe


def fence_doctests(text: str) -> str:
    """Put a fence around each run of lines from `>>>` to the next empty line."""
    lines = []
    indent = None  # of the example that is open
    for line in text.splitlines():
        if indent is None and line.lstrip().startswith(">>>"):
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(f"{indent}```pycon")
        elif indent is not None and not line.strip():
            lines.append(f"{indent}```")
            indent = None
        lines.append(line)
    if indent is not None:
        lines.append(f"{indent}```")
    return "\n".join(lines)


class Doctests(griffe.Extension):
    """Changes the docstrings of everything that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fence_doctests(obj.docstring.value)
