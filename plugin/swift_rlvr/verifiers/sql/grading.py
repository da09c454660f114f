"""A gold on the database of its row and on further ones, and the verdict on answers there. This runs
in the processes of `processes.py`.
"""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from swift_rlvr.verifiers.sql import further
from swift_rlvr.verifiers.sql.beside import has_order
from swift_rlvr.verifiers.sql.connection import (
    LONGEST_USUAL,
    LONGEST_VALUE,
    NO_MEMORY,
    TIE,
    TOO_LARGE,
    TOO_SLOW,
    QueryError,
    Reader,
    open_file,
    open_script,
)
from swift_rlvr.verifiers.sql.results import (
    WRONG_COLUMNS,
    WRONG_ROWS,
    Comparison,
    Expected,
    Result,
    Row,
    rows_that_differ,
    tied_blocks,
)
from swift_rlvr.verifiers.sql.schema import Schema, read_schema
from swift_rlvr.verifiers.sql.tokens import (
    Token,
    is_ordered,
    is_script,
    mutants_of,
    sort_terms,
    tokens_of,
    with_columns,
    with_ties_broken,
    without_limit,
    written,
)

# Further databases that are made, of which those are kept that tell the gold from the most others.
_TRIED = 14
# So many of them in a row that tell nothing new are the last.
_IN_VAIN = 3
_MUTANTS = 24
# Those of them whose numbers and dates are beside the row's own.
_TRIED_BESIDE = 6
# Queries with values of the row's own for a comparison of the gold.
_CHANCES = 8
# Of a gold on a further database, which is small.
_SMALL_STEPS = 500_000
_SMALL_ROWS = 2000
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
    def comparison(self) -> Comparison:
        return Comparison(self.tolerance, self.any_column_order)


class BadGold(Exception):
    """A row that cannot be graded, and why."""


@dataclass
class Place:
    """A database, and what the gold gives there: any of these, where ties let it give several."""

    reader: Reader
    expected: list[Expected]


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
        result = _run_gold(reader, gold, limits)
        prepared.seconds = time.process_time() - began
        # An answer needs at most the steps of a join of the rows with each other, of which each has
        # some 20 bytes, or many times those of the gold. A query that never ends is stopped after
        # half a second on a small database, not after two.
        size = os.path.getsize(database) if is_file else len(database)
        needed = max(_LEAST_STEPS, _TIMES_THE_GOLD * reader.steps_made, 10 * (size // 20) ** 2)
        prepared.steps = min(limits.steps, needed)
        read = set(reader.tables)
        prepared.reads_tables = bool(read)
        expected = _expected(reader, gold, result, limits.steps, limits.most_rows)
        prepared.first.expected += expected
        if len(expected) > 1 or expected[0].tied:
            prepared.remarks.append("ties decide which rows the gold gives")
        if limits.databases:
            _add_further(prepared, gold, read, limits.databases)
            if not prepared.further:
                raise BadGold("the gold gives the same on every database, as a constant does")
        is_whole = True
    except QueryError as error:
        raise BadGold(f"the gold {error}") from None
    finally:
        if not is_whole:
            prepared.close()
    return prepared


def _run_gold(reader: Reader, gold: str, limits: Limits) -> Result:
    """What a gold gives on its own database. From then on there are texts as long as it needs."""
    reader.longest_value = LONGEST_USUAL
    try:
        return reader.run(gold, limits.steps, limits.most_rows)
    except QueryError as error:
        if error.reason != TOO_LARGE or "text" not in error.detail:
            raise
    reader.longest_value = LONGEST_VALUE
    return reader.run(gold, limits.steps, limits.most_rows)


def _expected(
    reader: Reader, gold: str, result: Result, steps: int, most_rows: int
) -> list[Expected]:
    """What the gold gives, with its ties broken in both ways."""
    tokens = tokens_of(gold)
    ordered = is_ordered(tokens)
    plain = Expected(result)
    if ordered:
        plain = _ordered(reader, tokens, result, steps, most_rows)
        tied = _tied_rows(reader, tokens, result.columns, steps, most_rows)
        plain = replace(plain, tied=tied)
    broken = with_ties_broken(tokens, TIE)
    if broken is None:
        return [plain]
    try:
        up = reader.run(broken, steps, most_rows, ties=1)
        down = reader.run(broken, steps, most_rows, ties=-1)
    except QueryError:  # UNION, whose ORDER BY takes nothing but its columns
        return [plain]
    each = [plain]
    for other in (up, down):
        if all(Comparison().difference(known, other) for known in each):
            each.append(Expected(other, tied_blocks(range(len(other.rows))) if ordered else ()))
    return each


def _ordered(
    reader: Reader, tokens: Sequence[Token], result: Result, steps: int, most_rows: int
) -> Expected:
    """A result with the places of its rows that are equal in all that they are sorted by."""
    rows, sorted_by = _sorted(reader, tokens, result.columns, steps, most_rows)
    if not Comparison().same(rows, result.rows):
        return Expected(result, tied_blocks(range(len(result.rows))))
    return Expected(Result(result.columns, rows), tied_blocks(sorted_by))


def _sorted(
    reader: Reader, tokens: Sequence[Token], columns: Sequence[str], steps: int, most_rows: int
) -> tuple[list[Row], list[Row]]:
    """The rows of a sorted query with these columns, and what each is sorted by; none where that cannot
    be had.
    """
    # The places of the columns that it is sorted by. What no column has, further ones bring.
    names = [name.casefold() for name in columns]
    width = len(names)
    keys: list[int] = []
    terms: list[str] = []
    for term in sort_terms(tokens):
        if len(term) == 1 and term[0].kind == "number":
            keys.append(int(term[0].written) - 1)
        elif len(term) == 1 and term[0].word in names:
            keys.append(names.index(term[0].word))
        else:
            keys.append(width + len(terms))
            terms.append(written(term))
    query = with_columns(tokens, terms) if terms else written(tokens)
    try:
        rows = reader.run(query, steps, most_rows).rows if query else []
    except QueryError:
        rows = []
    return [row[:width] for row in rows], [tuple(row[key] for key in keys) for row in rows]


def _tied_rows(
    reader: Reader, tokens: Sequence[Token], columns: Sequence[str], steps: int, most_rows: int
) -> list[Row]:
    """Where LIMIT takes some of the rows that are equal in all that a gold sorts by: all of those rows."""
    whole = without_limit(tokens)
    if whole is None:
        return []
    query, count = whole
    rows, sorted_by = _sorted(reader, query, columns, steps, most_rows)
    if not 0 < count < len(rows) or sorted_by[count - 1] != sorted_by[count]:
        return []
    start, end = next(block for block in tied_blocks(sorted_by) if block[0] <= count < block[1])
    return rows[start:end]


# --- Further databases


class _Candidate(NamedTuple):
    """A further database, and the mutants that it tells from the gold."""

    place: Place
    told_apart: set[str]

    @property
    def is_tied(self) -> bool:
        """Whether LIMIT takes some of the gold's rows that are equal, also of those that look the same, of
        which an answer without LIMIT gives all.
        """
        return bool(self.place.expected[0].tied)

    @property
    def rows(self) -> list[Row]:
        return self.place.expected[0].result.rows

    def worth(self, left: set[str], results: Sequence[list[Row]]) -> tuple[int, bool, bool]:
        """How much it adds to databases that give these results and leave these mutants."""
        return len(self.told_apart & left), self.rows not in results, bool(self.rows)


@dataclass
class _Search:
    """The search for further databases of a row.

    Attributes:
        first: the row's own database.
        mutants: what no query but the gold should be taken for, of those that give the same there.
    """

    first: Place
    schema: Schema
    gold: str
    mutants: Sequence[str]

    def candidates(self, most: int) -> list[_Candidate]:
        """Databases on which the gold gives something else; more than `most` where those tell more of
        the mutants apart.
        """
        candidates: list[_Candidate] = []
        tied: list[_Candidate] = []
        left = set(self.mutants)  # those that no candidate tells apart so far
        in_vain = 0
        for number in range(_TRIED):
            if len(candidates) >= most and (not left or in_vain >= _IN_VAIN):
                break
            candidate = self._candidate(number)
            if candidate is None:
                continue
            if candidate.is_tied:
                tied.append(candidate)
                continue
            candidates.append(candidate)
            in_vain = 0 if candidate.told_apart & left else in_vain + 1
            left -= candidate.told_apart
        if not candidates:
            return tied
        for candidate in tied:
            candidate.place.reader.close()
        return candidates

    def candidates_beside(self) -> list[_Candidate]:
        """Those with values beside the row's own, for a gold that compares with a number or a date."""
        candidates: list[_Candidate] = []
        if not any(has_order(constant.value) for constant in self.schema.constants):
            return candidates
        left = set(self.mutants)
        for number in range(further.BESIDE, further.BESIDE + _TRIED_BESIDE):
            candidate = self._candidate(number)
            if candidate is None:
                continue
            # Each that is open takes memory.
            if candidate.is_tied or (candidates and not candidate.told_apart & left):
                candidate.place.reader.close()
                continue
            candidates.append(candidate)
            left -= candidate.told_apart
            if not left:
                break
        return candidates

    def _says_more(self, rows: Sequence[Row]) -> bool:
        """Whether the gold gives something else than on the row's own database, and not what MAX gives
        where no row fits: then other right queries give no row.
        """
        if len(rows) == 1 and all(value is None for value in rows[0]):
            return False
        return not Comparison().same(rows, self.first.expected[0].result.rows)

    def _candidate(self, number: int) -> _Candidate | None:
        """Further database `number`; None where the gold gives the same as on the row's own, or what
        depends on the order in which rows are read.
        """
        rows = further.rows_of(self.schema, number)
        reader = None
        place = None
        try:
            reader = further.build(self.schema, rows)
            reader.longest_value = self.first.reader.longest_value
            result = reader.run(self.gold, _SMALL_STEPS, _SMALL_ROWS)
            if self._says_more(result.rows):
                expected = _expected(reader, self.gold, result, _SMALL_STEPS, _SMALL_ROWS)
                backwards = further.build(self.schema, rows, backwards=True)
                with closing(backwards):
                    other = backwards.run(self.gold, _SMALL_STEPS, _SMALL_ROWS)
                if len(expected) == 1 and Comparison().same(result.rows, other.rows):
                    place = Place(reader, expected)
        except QueryError as error:
            if error.reason == NO_MEMORY:
                raise
        finally:
            if reader is not None and place is None:
                reader.close()
        if place is None:
            return None
        return _Candidate(place, {mutant for mutant in self.mutants if _differs(place, mutant)})


def _add_further(prepared: Prepared, gold: str, read: set[str], most: int) -> None:
    """Add the databases that tell the gold from the most queries that are near it. Its result must
    not be the same everywhere.
    """
    tokens = tokens_of(gold)
    schema = read_schema(prepared.first.reader, tokens, read)
    mutants = mutants_of(gold, _MUTANTS) + further.chances(schema, tokens)[:_CHANCES]
    prepared.mutants = len(mutants)
    alive = [mutant for mutant in mutants if not _differs(prepared.first, mutant)]

    search = _Search(prepared.first, schema, gold, alive)
    candidates = search.candidates(most)
    if not candidates:
        # Of the rows that there are, none gives the gold another result.
        candidates = replace(search, schema=schema.without_rows()).candidates(most)
    beside = search.candidates_beside() if candidates else []
    left = set(alive)
    results = [prepared.first.expected[0].result.rows]
    while candidates and len(prepared.further) < most:
        # One is beside the row's own, where there is room for others too.
        is_first = not prepared.further and most > 1
        of = (beside if is_first else candidates + beside) or candidates
        best = max(of, key=lambda each: each.worth(left, results))
        (beside if best in beside else candidates).remove(best)
        prepared.further.append(best.place)
        results.append(best.rows)
        left -= best.told_apart
    for candidate in candidates + beside:
        candidate.place.reader.close()
    prepared.told_apart = prepared.mutants - len(left)
    prepared.is_blank = not any(table.rows for table in schema.tables.values() if table.is_read)


def _differs(place: Place, query: str) -> bool:
    """Whether a query gives something else there than the gold; one that does not run differs, and of
    one that takes too long nothing is known.
    """
    most = len(place.expected[0].result.rows)
    try:
        result = place.reader.run(query, _SMALL_STEPS, most)
    except QueryError as error:
        return error.reason not in (TOO_SLOW, NO_MEMORY)
    return all(Comparison().difference(each, result) for each in place.expected)


# --- Answers


def grade(prepared: Prepared, answer: str, limits: Limits) -> dict[str, Any]:
    """The verdict on an answer: its `reason`, a `detail`, and where rows differ the `missing` and the
    `further` ones as text; `place` is the number of the database, 0 for the row's own.
    """
    # Of empty tables MAX gives a row and ORDER BY ... LIMIT 1 none: that says nothing of the answer.
    places = list(enumerate(prepared.places))[prepared.is_blank :]
    for number, place in places:
        has_passed = number > places[0][0]
        most = max(len(each.result.rows) for each in place.expected)
        try:
            # A row more tells that there are too many.
            result = place.reader.run(answer, prepared.steps, most + 1)
        except QueryError as error:
            if error.reason == TOO_LARGE and "rows" in error.detail:
                reason = BY_CHANCE if has_passed else WRONG_ROWS
                return _verdict(reason, number, f"more rows than the {most:,} of the gold")
            return _verdict(error.reason, number, error.detail)
        if prepared.reads_tables and not place.reader.tables:
            return _verdict(CONSTANT, number)
        difference, *others = [
            limits.comparison.difference(each, result) for each in place.expected
        ]
        if difference and all(others):
            verdict = _verdict_on(place.expected[0].result, result, difference, number)
            return {**verdict, "reason": BY_CHANCE} if has_passed else verdict
    return _verdict(CORRECT, len(prepared.further))


def _verdict_on(gold: Result, answer: Result, reason: str, number: int) -> dict[str, Any]:
    """The verdict on an answer that differs from the gold on database `number`, for this reason."""
    count = len(answer.rows)
    if reason == WRONG_COLUMNS:
        detail = f"{len(answer.columns)}, and the gold gives {len(gold.columns)}"
    elif reason == WRONG_ROWS:
        detail = f"{count:,} row{'' if count == 1 else 's'}, and the gold gives {len(gold.rows):,}"
    else:
        detail = ""
        for expected, got in zip(gold.rows, answer.rows, strict=False):
            if expected != got:
                detail = f"first {_shown(expected)}, got {_shown(got)}"
                break
    verdict = _verdict(reason, number, detail)
    if reason == WRONG_ROWS:
        missing, more = rows_that_differ(gold.rows, answer.rows, _SHOWN)
        verdict["missing"] = [_shown(row) for row in missing]
        verdict["further"] = [_shown(row) for row in more]
    return verdict


def _verdict(reason: str, place: int, detail: str = "") -> dict[str, Any]:
    return {"reason": reason, "place": place, "detail": detail}


def _shown(row: Sequence[Any]) -> str:
    """A row as text: ``7 | Joe | NULL``."""
    cells = []
    for value in row[:12]:
        text = "NULL" if value is None else str(value)
        cells.append(text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 3] + "...")
    return " | ".join(cells)
