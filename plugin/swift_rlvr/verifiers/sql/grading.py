"""A gold on the database of its row and on further ones, and the verdict on answers there. This runs
in the processes of `processes.py`.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from swift_rlvr.verifiers.sql.connection import (
    LONGEST_USUAL,
    LONGEST_VALUE,
    TOO_LARGE,
    QueryError,
    open_file,
    open_script,
)
from swift_rlvr.verifiers.sql.places import Bounds, Place, expected_of
from swift_rlvr.verifiers.sql.results import (
    WRONG_COLUMNS,
    WRONG_ORDER,
    WRONG_ROWS,
    Comparison,
    rows_that_differ,
)
from swift_rlvr.verifiers.sql.search import further_places
from swift_rlvr.verifiers.sql.tokens import is_script

# Steps that every answer may make, and how many times as many as its gold.
_LEAST_STEPS = 10_000_000
_TIMES_THE_GOLD = 20
# Rows of a difference that are shown.
_SHOWN = 3
_LONGEST_CELL = 40

# --- The reasons of a verdict, beside those of `connection` and `results`.
CORRECT = "correct"
CONSTANT = "reads no table"
BY_CHANCE = "right by chance"


@dataclass(frozen=True)
class Limits:
    """What a row's queries may use, and what is the same."""

    million_steps: int
    most_rows: int
    databases: int
    tolerance: float
    any_column_order: bool

    @property
    def steps(self) -> int:
        return self.million_steps * 1_000_000

    @property
    def bounds(self) -> Bounds:
        """Of a gold on the row's own database."""
        return Bounds(self.steps, self.most_rows)

    @property
    def comparison(self) -> Comparison:
        return Comparison(self.tolerance, self.any_column_order)


class BadGold(Exception):
    """A row that cannot be graded, and why."""


@dataclass
class Prepared:
    """A row that answers are compared with.

    Attributes:
        first: its own database. further: those that were made.
        steps: that an answer may make on any of them.
        remarks: what people should know of the gold.
        seconds: of CPU time that the gold took on its own database.
        told_apart: how many of the gold's `mutants` the databases tell from it.
        is_blank: no table that the gold reads has a row on its own database, and there are others.
    """

    first: Place
    further: list[Place] = field(default_factory=list)
    steps: int = 0
    remarks: list[str] = field(default_factory=list)
    reads_tables: bool = True
    seconds: float = 0.0
    told_apart: int = 0
    mutants: int = 0
    is_blank: bool = False

    @property
    def places(self) -> list[Place]:
        return [self.first, *self.further]

    def close(self) -> None:
        for place in self.places:
            place.reader.close()


def prepare(database: str, gold: str, limits: Limits) -> Prepared:
    """Run a gold on the database of its row, and on further ones that are made for it.

    database: the path of a file, or statements that make one. Raises BadGold, and MemoryError where
    the database of the row does not fit.
    """
    try:
        is_file = not is_script(database)
        reader = open_file(database) if is_file else open_script(database, limits.steps)
    except QueryError as error:
        raise BadGold(error.detail or error.reason) from None
    prepared = Prepared(Place(reader, []))
    is_whole = False
    try:
        began = time.process_time()
        # What SQLite does in one step takes the square of the longest text. So texts may only be long
        # where the gold needs them.
        reader.longest_value = LONGEST_USUAL
        try:
            result = reader.run(gold, *limits.bounds)
        except QueryError as error:
            if error.reason != TOO_LARGE or "text" not in error.detail:
                raise
            reader.longest_value = LONGEST_VALUE
            result = reader.run(gold, *limits.bounds)
        prepared.seconds = time.process_time() - began
        # An answer needs at most the steps of a join of the rows with each other, of which each has
        # some 20 bytes, or many times those of the gold. A query that never ends is stopped after
        # half a second on a small database, not after two.
        size = os.path.getsize(database) if is_file else len(database)
        needed = max(_LEAST_STEPS, _TIMES_THE_GOLD * reader.steps_made, 10 * (size // 20) ** 2)
        prepared.steps = min(limits.steps, needed)
        read = set(reader.tables)
        prepared.reads_tables = bool(read)
        expected = expected_of(reader, gold, result, limits.bounds)
        prepared.first.expected += expected
        if len(expected) > 1 or expected[0].tied:
            prepared.remarks.append("ties decide which rows the gold gives")
        if limits.databases:
            chosen = further_places(prepared.first, gold, read, limits.databases)
            if not chosen.places:
                raise BadGold("the gold gives the same on every database, as a constant does")
            prepared.further += chosen.places
            prepared.told_apart = chosen.told_apart
            prepared.mutants = chosen.mutants
            prepared.is_blank = chosen.is_blank
        is_whole = True
    except QueryError as error:
        raise BadGold(f"the gold {error}") from None
    finally:
        if not is_whole:
            prepared.close()
    return prepared


# --- Answers


def grade(prepared: Prepared, answer: str, limits: Limits) -> dict[str, Any]:
    """The verdict on an answer: its `reason`, a `detail`, and where rows differ the `missing` and the
    `further` ones as text; `place` is the number of the database, 0 for the row's own.
    """
    # Of empty tables MAX gives a row and ORDER BY ... LIMIT 1 none: that says nothing of the answer.
    places = list(enumerate(prepared.places))[prepared.is_blank :]
    first, _ = places[0]
    for number, place in places:
        verdict = _fault_on(place, answer, prepared, limits.comparison)
        if verdict is None:
            continue
        # What is wrong only on a database that was made for this would have been paid on the row's own.
        if number > first and verdict["reason"] in (WRONG_COLUMNS, WRONG_ROWS, WRONG_ORDER):
            verdict["reason"] = BY_CHANCE
        return {**verdict, "place": number}
    return {**_verdict(CORRECT), "place": len(prepared.further)}


def _fault_on(
    place: Place, answer: str, prepared: Prepared, comparison: Comparison
) -> dict[str, Any] | None:
    """The verdict on an answer that is not right on a database; None where it is."""
    most = max(len(each.result.rows) for each in place.expected)
    try:
        # A row more tells that there are too many.
        result = place.reader.run(answer, prepared.steps, most + 1)
    except QueryError as error:
        if error.reason == TOO_LARGE and "rows" in error.detail:
            return _verdict(WRONG_ROWS, f"more rows than the {most:,} of the gold")
        return _verdict(error.reason, error.detail)
    # Before the rows are compared: a constant that is right on this database is named as what it is.
    if prepared.reads_tables and not place.reader.tables:
        return _verdict(CONSTANT)
    differences = [comparison.difference(each, result) for each in place.expected]
    if not all(differences):
        return None

    gold = place.expected[0].result
    reason = str(differences[0])
    if reason == WRONG_COLUMNS:
        return _verdict(reason, f"{len(result.columns)}, and the gold gives {len(gold.columns)}")
    if reason == WRONG_ROWS:
        count = len(result.rows)
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        missing, more = rows_that_differ(gold.rows, result.rows, _SHOWN)
        return {
            **_verdict(reason, f"{rows}, and the gold gives {len(gold.rows):,}"),
            "missing": list(map(_shown, missing)),
            "further": list(map(_shown, more)),
        }
    for expected, got in zip(gold.rows, result.rows, strict=True):
        if expected != got:
            return _verdict(reason, f"first {_shown(expected)}, got {_shown(got)}")
    return _verdict(reason)


def _verdict(reason: str, detail: str = "") -> dict[str, Any]:
    return {"reason": reason, "place": 0, "detail": detail}


def _shown(row: Sequence[Any]) -> str:
    """A row as text: ``7 | Joe | NULL``."""
    cells = []
    for value in row[:12]:
        text = "NULL" if value is None else str(value)
        cells.append(text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 3] + "...")
    return " | ".join(cells)
