"""A database with what the gold gives there: the order of its rows, and other rows where ties decide."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from swift_rlvr.verifiers.sql.connection import NO_MEMORY, TIE, TOO_SLOW, QueryError, Reader
from swift_rlvr.verifiers.sql.results import Comparison, Expected, Result, Row, tied_blocks
from swift_rlvr.verifiers.sql.tokens import (
    Token,
    is_ordered,
    sort_terms,
    tokens_of,
    with_columns,
    with_ties_broken,
    without_limit,
    written,
)


class Bounds(NamedTuple):
    """What a query may take: steps, and rows of its result."""

    steps: int
    most_rows: int


# Of a query on a further database, which is small.
SMALL = Bounds(steps=500_000, most_rows=2000)


@dataclass
class Place:
    """A database, and what the gold gives there: any of these, where ties let it give several."""

    reader: Reader
    expected: list[Expected]

    def differs(self, query: str) -> bool:
        """Whether a query gives something else here than the gold; one that does not run differs, and of
        one that takes too long nothing is known.
        """
        most = len(self.expected[0].result.rows)
        try:
            result = self.reader.run(query, SMALL.steps, most)
        except QueryError as error:
            return error.reason not in (TOO_SLOW, NO_MEMORY)
        return all(Comparison().difference(each, result) for each in self.expected)


def expected_of(reader: Reader, gold: str, result: Result, bounds: Bounds) -> list[Expected]:
    """What a gold that gives this result may give, with its ties broken in both ways."""
    tokens = tokens_of(gold)
    ordered = is_ordered(tokens)
    expected = [_in_order(reader, tokens, result, bounds) if ordered else Expected(result)]
    # The tied rows come in the order of reading once, and once in the other. If the gold gives the same
    # both times, its ties decide nothing.
    broken = with_ties_broken(tokens, TIE)
    if broken is None:
        return expected
    try:
        up = reader.run(broken, *bounds, ties=1)
        down = reader.run(broken, *bounds, ties=-1)
    except QueryError:  # UNION, whose ORDER BY takes nothing but its columns
        return expected
    for other in (up, down):
        if all(Comparison().difference(known, other) for known in expected):
            blocks = tied_blocks(range(len(other.rows))) if ordered else ()
            expected.append(Expected(other, blocks))
    return expected


def _in_order(reader: Reader, tokens: Sequence[Token], result: Result, bounds: Bounds) -> Expected:
    """A result whose rows have an order, with the places of those that are equal in all that they are
    sorted by. Where LIMIT takes some of such rows, it comes with all of them.
    """
    rows, keys = _sorted(reader, tokens, result.columns, bounds)
    # The query with what it is sorted by in further columns should give the same rows. Where it does not,
    # no two rows count as tied.
    if Comparison().same(rows, result.rows):
        expected = Expected(Result(result.columns, rows), tied_blocks(keys))
    else:
        expected = Expected(result, tied_blocks(range(len(result.rows))))

    whole = without_limit(tokens)
    if whole is None:
        return expected
    query, count = whole
    rows, keys = _sorted(reader, query, result.columns, bounds)
    if 0 < count < len(rows) and keys[count - 1] == keys[count]:
        for start, end in tied_blocks(keys):
            if start <= count < end:
                expected = replace(expected, tied=rows[start:end])
    return expected


def _sorted(
    reader: Reader, tokens: Sequence[Token], columns: Sequence[str], bounds: Bounds
) -> tuple[list[Row], list[Row]]:
    """The rows of a sorted query with these columns, and what each is sorted by; none where that cannot
    be had.
    """
    # The places of the columns that it is sorted by. What no column has, further ones bring.
    names = [name.casefold() for name in columns]
    width = len(names)
    places: list[int] = []
    terms: list[str] = []
    for term in sort_terms(tokens):
        match term:
            case [Token(kind="number") as number]:
                places.append(int(number.written) - 1)
            case [name] if name.word in names:
                places.append(names.index(name.word))
            case _:
                places.append(width + len(terms))
                terms.append(written(term))
    query = with_columns(tokens, terms) if terms else written(tokens)
    if query is None:
        return [], []
    try:
        wide = reader.run(query, *bounds).rows
    except QueryError:
        return [], []
    rows = []
    keys = []
    for row in wide:
        rows.append(row[:width])
        keys.append(tuple(row[place] for place in places))
    return rows, keys
