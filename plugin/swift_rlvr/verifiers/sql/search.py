"""The search for further databases of a row: those that tell its gold from the most queries near it."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from swift_rlvr.verifiers.sql import further
from swift_rlvr.verifiers.sql.beside import has_order
from swift_rlvr.verifiers.sql.connection import NO_MEMORY, QueryError
from swift_rlvr.verifiers.sql.mutants import mutants_of
from swift_rlvr.verifiers.sql.places import SMALL, Place, expected_of
from swift_rlvr.verifiers.sql.results import Comparison, Row
from swift_rlvr.verifiers.sql.schema import read_schema
from swift_rlvr.verifiers.sql.tables import Schema
from swift_rlvr.verifiers.sql.tokens import tokens_of

# Further databases that are made, of which those are kept that tell the gold from the most others.
_TRIED = 14
# So many of them in a row that tell nothing new are the last.
_IN_VAIN = 3
_MUTANTS = 24
# Those of them whose numbers and dates are beside the row's own, and those with texts near the gold's.
_TRIED_BESIDE = 6
# Queries with values of the row's own for a comparison of the gold.
_CHANCES = 8


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
        own: the row's own database.
        mutants: what no query but the gold should be taken for, of those that give the same there.
    """

    own: Place
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
            # Each costs some milliseconds, and most rows need few.
            if len(candidates) >= most and (not left or in_vain >= _IN_VAIN):
                break
            candidate = self._candidate(number)
            if candidate is None:
                continue
            # Where ties decide, an answer that is as good may get other rows: only if there is nothing else.
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
        if not any(has_order(constant.value) for constant in self.schema.constants):
            return []
        return self._candidates_from(further.BESIDE, set(self.mutants), keeps_one=True)

    def candidates_near(self, others: Sequence[_Candidate]) -> list[_Candidate]:
        """Those with texts near the gold's that tell apart what the others do not."""
        left = set(self.mutants)
        for other in others:
            left -= other.told_apart
        has_near = False
        for table in self.schema.tables.values():
            has_near = has_near or any(column.group.near for column in table.columns)
        return self._candidates_from(further.NEAR, left) if left and has_near else []

    def _candidates_from(
        self, first: int, left: set[str], keeps_one: bool = False
    ) -> list[_Candidate]:
        """Those of a kind that tell apart more of what is left; with `keeps_one` the first in any case."""
        candidates: list[_Candidate] = []
        for number in range(first, first + _TRIED_BESIDE):
            candidate = self._candidate(number)
            if candidate is None:
                continue
            # Each that is open takes memory.
            is_kept = candidate.told_apart & left or (keeps_one and not candidates)
            if candidate.is_tied or not is_kept:
                candidate.place.reader.close()
                continue
            candidates.append(candidate)
            left -= candidate.told_apart
            if not left:
                break
        return candidates

    def _candidate(self, number: int) -> _Candidate | None:
        """Further database `number`; None where the gold gives the same as on the row's own, or what
        depends on the order in which rows are read.
        """
        rows = further.rows_of(self.schema, number)
        with ExitStack() as unused:
            try:
                reader = further.build(self.schema, rows)
                unused.callback(reader.close)
                reader.longest_value = self.own.reader.longest_value
                result = reader.run(self.gold, *SMALL)
                # Where no row fits, MAX gives NULL, and other right queries no row.
                is_null = len(result.rows) == 1 and {*result.rows[0]} == {None}
                if is_null or Comparison().same(result.rows, self.own.expected[0].result.rows):
                    return None
                expected = expected_of(reader, self.gold, result, SMALL)
                # The same rows in the other order: GROUP BY may give any row's value of a column that it
                # does not name, and group_concat joins what it reads.
                backwards = further.build(self.schema, rows, backwards=True)
                with closing(backwards):
                    other = backwards.run(self.gold, *SMALL)
            except QueryError as error:
                if error.reason == NO_MEMORY:
                    raise
                return None
            if len(expected) > 1 or not Comparison().same(result.rows, other.rows):
                return None
            unused.pop_all()
        place = Place(reader, expected)
        return _Candidate(place, {mutant for mutant in self.mutants if place.differs(mutant)})


class Chosen(NamedTuple):
    """The further databases of a row.

    Attributes:
        mutants: queries near the gold. told_apart: how many of them the databases tell from it.
        is_blank: no table that the gold reads has a row on the row's own database.
    """

    places: list[Place]
    mutants: int
    told_apart: int
    is_blank: bool


def further_places(own: Place, gold: str, read: set[str], most: int) -> Chosen:
    """The databases, at most so many, that tell the gold from the most queries that are near it. Its
    result must not be the same everywhere.

    own: the row's own database. read: the tables that the gold reads.
    """
    tokens = tokens_of(gold)
    schema = read_schema(own.reader, tokens, read)
    mutants = mutants_of(gold, _MUTANTS) + further.chances(schema, tokens)[:_CHANCES]
    # The others are told from the gold already, where every answer is tried first.
    alive = [mutant for mutant in mutants if not own.differs(mutant)]

    search = _Search(own, schema, gold, alive)
    candidates = search.candidates(most)
    if not candidates:
        # Of the rows that there are, none gives the gold another result.
        candidates = replace(search, schema=schema.without_rows()).candidates(most)
    beside = search.candidates_beside() if candidates else []
    if candidates and not candidates[0].is_tied:
        candidates += search.candidates_near(candidates + beside)

    places: list[Place] = []
    left = set(alive)
    results = [own.expected[0].result.rows]
    while candidates and len(places) < most:
        # One is beside the row's own, where there is room for others too.
        is_first = not places and most > 1
        pool = (beside if is_first else candidates + beside) or candidates
        best = max(pool, key=lambda each: each.worth(left, results))
        (beside if best in beside else candidates).remove(best)
        places.append(best.place)
        results.append(best.rows)
        left -= best.told_apart
    for candidate in candidates + beside:
        candidate.place.reader.close()
    is_blank = not any(table.rows for table in schema.tables.values() if table.is_read)
    return Chosen(places, len(mutants), len(mutants) - len(left), is_blank)
