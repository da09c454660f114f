"""A clock that stands: a verdict must not depend on the day."""

import re
import sqlite3
from functools import partial
from typing import Any

NOW = "2025-01-01 12:00:00"
_FUNCTIONS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
_CURRENT = {"current_date": NOW[:10], "current_time": NOW[11:], "current_timestamp": NOW}
_ASKS = re.compile(
    r"\bnow\b|\bcurrent_|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|\bstrftime\s*\([^,()]*\)",
    re.IGNORECASE,
)


def asks_clock(query: str) -> bool:
    """Whether a query may depend on the time.

    >>> asks_clock("SELECT date('now')"), asks_clock("SELECT date(born) FROM guest")
    (True, False)
    """
    return _ASKS.search(query) is not None


def stop_clock(connection: sqlite3.Connection) -> None:
    """Have it be `NOW` at all times. Functions of Python's take ten times as long as SQLite's.

    >>> connection = sqlite3.connect(":memory:")
    >>> stop_clock(connection)
    >>> connection.execute("SELECT date('now', '+1 day'), strftime('%H'), CURRENT_TIME").fetchall()
    [('2025-01-02', '12', '12:00:00')]
    >>> connection.close()
    """
    dates = sqlite3.connect(":memory:")

    def at_now(name: str, *arguments: Any) -> Any:
        """SQLite's function of this name, for which it is `NOW`."""
        values = list(arguments)
        # strftime has a format before the time, which each of them may leave out.
        if len(values) == (name == "strftime"):
            values.append("now")
        for index, value in enumerate(values):
            if isinstance(value, str) and value.strip().casefold() == "now":
                values[index] = NOW
        places = ", ".join("?" * len(values))
        return dates.execute(f"SELECT {name}({places})", values).fetchone()[0]

    for name in _FUNCTIONS:
        connection.create_function(name, -1, partial(at_now, name), deterministic=True)
    for name, now in _CURRENT.items():
        connection.create_function(name, 0, lambda now=now: now, deterministic=True)
