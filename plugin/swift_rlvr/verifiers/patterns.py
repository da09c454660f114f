"""Regular expressions that take long to compile."""

import re
from functools import cached_property
from typing import Any, cast


def compiled_later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first used.

    For those over the words of thirty languages: every command and every process of a training imports
    them, and most never use them. They were a third of the time in which `swift-rlvr --help` starts.

    >>> greeting = compiled_later("hello|hi", re.IGNORECASE)
    >>> greeting.search("Hi there")
    <re.Match object; span=(0, 2), match='Hi'>
    """
    return cast(re.Pattern[str], _Later(pattern, flags))


class _Later:
    def __init__(self, pattern: str, flags: int):
        self._source = (pattern, flags)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._source)

    def __getattr__(self, name: str) -> Any:
        """Python comes here once for each method, which is an attribute from then on."""
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value
