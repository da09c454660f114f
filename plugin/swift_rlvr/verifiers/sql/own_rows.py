"""The rows of a row's database that further databases draw from.

The rows in which a constant of the gold is come first, then those that refer to them: a further
database that had none of them would give an empty result.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.verifiers.sql.connection import Reader
from swift_rlvr.verifiers.sql.results import Row
from swift_rlvr.verifiers.sql.tables import Reference, Table, quoted
from swift_rlvr.verifiers.sql.tokens import Constant

# Rows of a table: the first ones, and those with a constant of the gold, of which a table gets some.
_FIRST = 200
_FITTING = 40
STEPS = 3_000_000  # for the search in one table
_MOST_CONDITIONS = 20


def read_rows(
    reader: Reader,
    tables: Mapping[str, Table],
    references: Sequence[Reference],
    constants: Sequence[Constant],
) -> None:
    """Read the first rows of each table, and put first what belongs to a constant of the gold."""
    for table in tables.values():
        table.rows = _rows_where(reader, table, "1", (), _FIRST)
        if table.is_read:
            _put_first(reader, table, *_has_constant(table, constants))

    # The rows that refer to those, and the rows that refer to these.
    for _ in range(2):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            if child.is_read and parent.is_read and not child.fitting:
                keys = _values(parent.rows[: parent.fitting], reference.parent_column)
                _put_first(reader, child, *_is_one_of(child, reference.column, keys))

    # The rows to which others refer, and those to which these refer.
    for _ in range(3):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            present = {*_values(parent.rows, reference.parent_column)}
            referred = _values(child.rows[: _FIRST // 2], reference.column)
            missing = [value for value in referred if value not in present]
            condition = _is_one_of(parent, reference.parent_column, missing)
            rows = _rows_where(reader, parent, *condition, _FIRST)
            parent.rows = _without_repeats(parent.rows, rows)


def _put_first(reader: Reader, table: Table, condition: str, values: Sequence[Any]) -> None:
    """Have some rows for which a condition holds come first."""
    rows = _rows_where(reader, table, condition, values, _FITTING)
    table.rows = _without_repeats(rows, table.rows)
    table.fitting = len(rows)


def _without_repeats(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """The rows, and those of the others that are not among them. A row that a table has twice stays so."""
    return [*rows, *(row for row in others if row not in rows)]


def _rows_where(
    reader: Reader, table: Table, condition: str, values: Sequence[Any], most: int
) -> list[Row]:
    """The first rows of a table for which a condition holds; none for the condition ""."""
    if not condition:
        return []
    reader.allow(STEPS)
    query = (
        f"SELECT {table.quoted_columns} FROM {quoted(table.name)} WHERE {condition} LIMIT {most}"
    )
    try:
        return reader.connection.execute(query, values).fetchall()
    except sqlite3.Error:  # a table that is too large to be searched
        return []


def _has_constant(table: Table, constants: Sequence[Constant]) -> tuple[str, list[Any]]:
    """A condition for the rows in which a constant of the gold is, and its values."""
    conditions = []
    values: list[Any] = []
    for constant in constants:
        for column in table.columns:
            if column.name != constant.column or constant.value is None:
                continue
            if isinstance(constant.value, str):
                conditions.append(f"{quoted(column.written)} LIKE ?")
                values.append(f"%{constant.value}%")
            else:
                conditions.append(f"{quoted(column.written)} = ?")
                values.append(constant.value)
    return " OR ".join(conditions[:_MOST_CONDITIONS]), values[:_MOST_CONDITIONS]


def _is_one_of(table: Table, column: int, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """A condition for the rows that have one of some values in a column, and these values."""
    if not values:
        return "", ()
    places = ", ".join("?" * len(values))
    return f"{quoted(table.columns[column].written)} IN ({places})", values


def _values(rows: Sequence[Row], column: int) -> list[Any]:
    """The different values of a column, but NULL."""
    different = dict.fromkeys(row[column] for row in rows if row[column] is not None)
    return list(different)[:_FIRST]
