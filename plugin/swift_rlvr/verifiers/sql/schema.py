"""Reads the schema of a row's database, with what the gold says of its columns."""

import sqlite3
from collections.abc import Mapping, Sequence

from swift_rlvr.verifiers.sql.connection import Reader
from swift_rlvr.verifiers.sql.keys import references_of, says_of_rows, unique_columns
from swift_rlvr.verifiers.sql.own_rows import STEPS, read_rows
from swift_rlvr.verifiers.sql.tables import Column, Group, Reference, Schema, Table, quoted
from swift_rlvr.verifiers.sql.tokens import Token, constants_of, cut_terms, equated_columns

_MOST_TABLES = 60


def read_schema(reader: Reader, gold: Sequence[Token], read: set[str]) -> Schema:
    """The schema of a database with rows to draw from. read: the tables that the gold reads."""
    with reader.unconfined() as connection:
        reader.allow(STEPS)
        made = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
        ).fetchall()
        tables: dict[str, Table] = {}
        for name, kind, _ in made:
            if kind == "table" and len(tables) < _MOST_TABLES:
                tables[name.casefold()] = _read_table(connection, name)

        joined = equated_columns(gold)
        references = references_of(connection, tables, joined)
        groups = _group_columns(tables, references, joined)
        constants = constants_of(gold, frozenset(groups))
        _mark_columns(tables, gold, read)
        read_rows(reader, tables, references, constants)

    # What a group may hold is told by all of its columns: one that is empty here may have values there.
    for table in tables.values():
        for index, column in enumerate(table.columns):
            column.group.types.append(column.type)
            for row in table.rows:
                if row[index] is not None:
                    column.group.present.append(row[index])
    for constant in constants:
        if constant.column is not None:
            groups[constant.column].compare(constant.value)
    return Schema([sql for _, _, sql in made], tables, references, constants)


def _read_table(connection: sqlite3.Connection, name: str) -> Table:
    """A table without its rows."""
    columns: list[Column] = []
    key: list[int] = []
    labels: list[int] = []
    # Column: its number, name, type, NOT NULL, default, place in the key, 2 or 3 where it is computed
    for _, column, kind, _, _, place, hidden in connection.execute(
        f"PRAGMA table_xinfo({quoted(name)})"
    ):
        # A computed column takes no value from INSERT.
        if hidden not in (0, 1):
            continue
        if place:
            key.append(len(columns))
        if says_of_rows(name, column.casefold(), "name|title|description|"):
            labels.append(len(columns))
        columns.append(Column(column, column.casefold(), (kind or "").upper(), bool(place)))
    return Table(name, columns, unique_columns(connection, name, columns, key), labels)


def _group_columns(
    tables: Mapping[str, Table],
    references: Sequence[Reference],
    joined: Sequence[tuple[str, str]],
) -> dict[str, Group]:
    """The group of each column, by its name; fills in what the columns know of each other."""
    columns: list[Column] = []
    for table in tables.values():
        columns += table.columns
    # Columns of one name share a group: `city` of a shop and `city` of a customer are compared.
    groups = {column.name: Group() for column in columns}
    pairs = list(joined)
    for reference in references:
        child = tables[reference.child].columns[reference.column]
        parent = tables[reference.parent].columns[reference.parent_column]
        child.is_key = parent.is_key = True
        child.reference = reference
        pairs.append((child.name, parent.name))
    for first, second in pairs:
        # Joined or referred to, two groups become one.
        if first in groups and second in groups:
            old = groups[second]
            for name, group in groups.items():
                if group is old:
                    groups[name] = groups[first]
    for column in columns:
        column.group = groups[column.name]
        column.group.is_fixed |= column.is_key
    return groups


def _mark_columns(tables: Mapping[str, Table], gold: Sequence[Token], read: set[str]) -> None:
    """Say of each table whether the gold reads it, and which columns have no value twice."""
    cut = cut_terms(gold)
    # A name stands for what it names, unless the gold says that it may stand there twice.
    has_labels = len(read) > 1 and not any(token.word == "distinct" for token in gold)
    for name, table in tables.items():
        table.is_read = name in read
        distinct = {places[0] for places in table.unique if len(places) == 1}
        distinct |= {place for place, column in enumerate(table.columns) if column.name in cut}
        if has_labels:
            distinct.update(table.labels)
        # A key of another table's rows may come twice.
        table.distinct = [place for place in distinct if table.columns[place].reference is None]
