"""The schema of a row's database, with those of its rows that further databases draw from.

The rows in which a constant of the gold is come first, then those that refer to them: a further
database that had none of them would give an empty result.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from swift_rlvr.verifiers.sql.connection import Reader
from swift_rlvr.verifiers.sql.results import Row
from swift_rlvr.verifiers.sql.tokens import (
    Constant,
    Token,
    constants_of,
    cut_terms,
    equated_columns,
)

# Rows of a table: the first ones, and those with a constant of the gold, of which a table gets some.
_FIRST = 200
_FITTING = 40
_MOST_TABLES = 60
STEPS = 3_000_000  # for the search in one table
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_YEAR_OR_MONTH = re.compile(r"(19|20)\d\d(-(0[1-9]|1[012]))?")
_PLURALS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"))
_NUMERIC = "INT|NUM|DEC|REAL|FLOA|DOUB"
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
_WORDS = ("amber", "birch", "coral", "delta", "ember", "fjord", "grove")
# What columns hold, by their type in capitals and their name in lower case: the first that fits.
_USUAL_VALUES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("BOOL", (0, 1)),
    ("year", (1995, 2001, 2008, 2014, 2019, 2023)),
    (
        "DATE|TIMESTAMP|date",
        ("2018-03-04", "2019-07-21", "2019-11-02", "2020-02-29", "2021-06-15", "2022-12-31"),
    ),
    ("TIME", ("08:15:00", "09:30:00", "12:00:00", "17:45:00", "23:10:00")),
    (r"INT|NUM|DEC|[\n_]id\Z", (1, 2, 3, 4, 5, 7, 9, 12)),
    ("CHAR|TEXT|CLOB|STRING", _WORDS),
    ("REAL|FLOA|DOUB|MONEY", (0.5, 1.25, 2.0, 3.75, 10.5, 42.0)),
    ("", _WORDS),
)


@dataclass(frozen=True)
class Reference:
    """Columns of a table whose values are those of another's."""

    child: str
    column: int
    parent: str
    parent_column: int


@dataclass(eq=False)
class Group:
    """Columns that share their values: those of one name, and those with which the gold joins them or
    to which they refer.

    Attributes:
        is_fixed: one of them is a key, so that the values stay with their rows.
        compared: the constants of the gold that may stand in them, and the numbers beside those.
    """

    is_fixed: bool = False
    compared: list[Any] = field(default_factory=list)


@dataclass
class Column:
    """A column that rows are made for.

    Attributes:
        written: its name as the schema has it. name: in lower case. type: in capitals.
        is_key: its values name a row.
        reference: what its values are, if they are another column's.
    """

    written: str
    name: str
    type: str
    is_key: bool
    group: Group = field(default_factory=Group)
    reference: Reference | None = None

    def usual_values(self, present: Sequence[Any]) -> Sequence[Any]:
        """What it may hold beside some values: numbers near theirs, or what its type and name say."""
        numbers = [value for value in present if value is not None]
        are_numbers = numbers and all(isinstance(value, (int, float)) for value in numbers)
        if are_numbers and "BOOL" not in self.type:
            middle = max(numbers)
            return [middle + 2, middle + 5, middle // 2]
        text = f"{self.type}\n{self.name}"
        return next(values for pattern, values in _USUAL_VALUES if re.search(pattern, text))


@dataclass
class Table:
    """A table of a schema, with the rows that further databases draw from.

    rows: the first ones of the table. fitting: how many of them come first because a constant of the
    gold is in them, or they belong to such a row.
    """

    name: str
    columns: list[Column]
    unique: list[tuple[int, ...]]  # the columns of which no two rows have the same values
    labels: list[int]  # the columns that people tell its rows apart by
    rows: list[Row] = field(default_factory=list)
    fitting: int = 0
    is_read: bool = False  # by the gold
    # the columns where no made row has a value twice
    distinct: list[int] = field(default_factory=list)

    @property
    def quoted_columns(self) -> str:
        """All of its columns, in a query."""
        return ", ".join(quoted(column.written) for column in self.columns) or "*"

    def without_repeated_keys(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that the keys of the table allow, of several with one key the first."""
        seen: set[Row] = set()
        kept = []
        for row in rows:
            keys = []
            for number, places in enumerate(self.unique):
                values = tuple(row[place] for place in places)
                if None not in values:
                    keys.append((number, *values))
            if seen.isdisjoint(keys):
                seen.update(keys)
                kept.append(row)
        return kept

    def index(self, name: str) -> int | None:
        for index, column in enumerate(self.columns):
            if column.name == name.casefold():
                return index
        return None


@dataclass
class Schema:
    """What is needed to make a database like another.

    statements: those that make its tables and views. tables: by their names in lower case. constants:
    of the gold.
    """

    statements: list[str]
    tables: dict[str, Table]
    references: list[Reference]
    constants: list[Constant]

    def values_of(self, column: str, like: Any) -> list[Any]:
        """The values of all columns of this name that can be compared with another one: texts with a
        text, numbers with a number.
        """
        kind = str if isinstance(like, str) else (int, float)
        values = []
        for table in self.tables.values():
            index = table.index(column)
            if index is not None:
                values += [row[index] for row in table.rows if isinstance(row[index], kind)]
        return values

    @property
    def parents_first(self) -> list[str]:
        """The names of the tables, each after those to which it refers."""
        order: list[str] = []
        waiting = list(self.tables)
        while waiting:
            ready = []
            for name in waiting:
                parents = {each.parent for each in self.references if each.child == name} - {name}
                if parents <= {*order}:
                    ready.append(name)
            ready = ready or waiting[:1]  # tables that refer to each other
            order += ready
            waiting = [name for name in waiting if name not in ready]
        return order

    def without_rows(self) -> "Schema":
        """The schema of a database whose tables are all empty, so that all rows are made."""
        tables = {}
        for name, table in self.tables.items():
            tables[name] = replace(table, rows=[], fitting=0)
        return replace(self, tables=tables)


def read_schema(reader: Reader, gold: Sequence[Token], read: set[str]) -> Schema:
    """The schema of a database with rows to draw from. read: the tables that the gold reads."""
    with reader.unconfined() as connection:
        reader.allow(STEPS)
        made = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
        ).fetchall()
        statements = [sql for _, _, sql in made]
        names = [name for name, kind, sql in made if kind == "table"][:_MOST_TABLES]
        tables = {name.casefold(): _table(connection, name) for name in names}
        references = _references(connection, tables, equated_columns(gold))
        groups = _group_columns(tables, references, gold)
        constants = constants_of(gold, frozenset(groups))
        cut = cut_terms(gold)
        # A name stands for what it names, unless the gold says that it may stand there twice.
        has_labels = len(read) > 1 and not any(token.word == "distinct" for token in gold)
        for name, table in tables.items():
            table.is_read = name in read
            # A key of another table's rows may come twice.
            keys = [places[0] for places in table.unique if len(places) == 1]
            sorted_by = [place for place, column in enumerate(table.columns) if column.name in cut]
            columns = {*keys, *sorted_by, *(table.labels if has_labels else ())}
            table.distinct = [place for place in columns if table.columns[place].reference is None]
            reader.allow(STEPS)
            query = f"SELECT {table.quoted_columns} FROM {quoted(table.name)} LIMIT {_FIRST}"
            with suppress(sqlite3.Error):
                table.rows = connection.execute(query).fetchall()
        _order_rows(reader, tables, references, constants)
        _add_compared(tables, groups, constants)
    return Schema(statements, tables, references, constants)


def quoted(name: str) -> str:
    """A name in a query."""
    return '"' + name.replace('"', '""') + '"'


def _table(connection: sqlite3.Connection, name: str) -> Table:
    columns: list[Column] = []
    key: list[int] = []
    # Column: its number, name, type, NOT NULL, default, place in the key, 2 or 3 where it is computed
    for _, column, kind, _, _, place, hidden in connection.execute(
        f"PRAGMA table_xinfo({quoted(name)})"
    ):
        if hidden in (0, 1):
            if place:
                key.append(len(columns))
            columns.append(Column(column, column.casefold(), (kind or "").upper(), bool(place)))
    unique = [tuple(key)] if key else []
    unique += _unique_indexes(connection, name, columns)
    if not key:
        # A key that nobody declared, as in many rows that bring their schema.
        own = _key_by_name(connection, name, columns)
        if own is not None:
            columns[own].is_key = True
            unique.append((own,))
    labels = [
        place
        for place, column in enumerate(columns)
        if _says_of(name, column, "name|title|description|")
    ]
    return Table(name, columns, list(dict.fromkeys(unique)), labels)


def _key_by_name(
    connection: sqlite3.Connection, table: str, columns: Sequence[Column]
) -> int | None:
    """The place of the column that is called as the key of a table would be, ``id`` or ``singer_id`` of
    singers, and never has one value twice.
    """
    for place, column in enumerate(columns):
        if not _says_of(table, column, r"\buid|id|code|number|no|key"):
            continue
        name = quoted(column.written)
        query = f"SELECT count({name}) = count(DISTINCT {name}) FROM {quoted(table)}"
        with suppress(sqlite3.Error):
            if connection.execute(query).fetchone()[0]:
                return place
    return None


def _says_of(table: str, column: Column, what: str) -> bool:
    """Whether a column's name says this of the things in a table: ``id``, ``student_id`` and ``stuID`` of
    students, ``dept_name`` of departments.
    """
    # "Ref_Property_Types" has things of which each is a property type.
    words = table.casefold().removeprefix("ref_")
    thing = re.sub("[^a-z0-9]", "", words)
    match = re.fullmatch(f"(.*?)({what})", re.sub("[^a-z0-9]", "", column.name))
    if match is None:
        return False
    is_short = 2 < len(match[1]) < 5 and re.match(".*".join(match[1]), thing) is not None
    singular = {thing.removesuffix(end) + instead for end, instead in _PLURALS}
    return is_short or match[1] in {"", *singular}


def _unique_indexes(
    connection: sqlite3.Connection, name: str, columns: Sequence[Column]
) -> Iterator[tuple[int, ...]]:
    """The places of the columns of each unique index of a table; none of one over expressions."""
    for _, index, is_unique, *_ in connection.execute(f"PRAGMA index_list({quoted(name)})"):
        if not is_unique:
            continue
        info = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        named = [(column or "").casefold() for _, _, column in info]
        places = [place for place, column in enumerate(columns) if column.name in named]
        if len(places) == len(named):
            yield tuple(places)


def _references(
    connection: sqlite3.Connection, tables: dict[str, Table], joined: Sequence[tuple[str, str]]
) -> list[Reference]:
    """The references that are declared, and those of columns that are called like the key of another
    table or that the gold joins with one. A column refers to one alone, and what is declared comes first.

    joined: the names of columns with which the gold joins.
    """
    references: dict[tuple[str, int], Reference] = {}
    for reference in _declared_references(connection, tables):
        references.setdefault((reference.child, reference.column), reference)

    keys = _keys_by_name(tables)
    pairs = [(key, key) for key in keys if key not in ("id", "name")]
    pairs += [*joined, *((second, first) for first, second in joined)]
    for child, key in pairs:
        # of two tables with such a key it could be either
        if key not in keys or (child != key and len(keys[key]) > 1):
            continue
        parent, place = keys[key][0]
        for name, table in tables.items():
            index = table.index(child)
            if index is not None and name != parent and (index,) not in table.unique[:1]:
                references.setdefault((name, index), Reference(name, index, parent, place))
    return list(references.values())


def _keys_by_name(tables: dict[str, Table]) -> dict[str, list[tuple[str, int]]]:
    """The tables that have a key of each name, and its place there."""
    keys: dict[str, list[tuple[str, int]]] = {}
    for name, table in tables.items():
        if table.unique and len(table.unique[0]) == 1:
            place = table.unique[0][0]
            keys.setdefault(table.columns[place].name, []).append((name, place))
    return keys


def _declared_references(
    connection: sqlite3.Connection, tables: dict[str, Table]
) -> Iterator[Reference]:
    """The references of FOREIGN KEY and REFERENCES."""
    for name, table in tables.items():
        for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})"):
            _, _, parent_name, child_column, parent_column, *_ = row
            parent = tables.get(parent_name.casefold())
            index = table.index(child_column)
            if parent is None or index is None:
                continue
            target = parent.index(parent_column) if parent_column else None
            # without a column, REFERENCES means the key
            if target is None and parent.unique:
                target = parent.unique[0][0]
            if target is not None:
                yield Reference(name, index, parent_name.casefold(), target)


def _group_columns(
    tables: dict[str, Table], references: Sequence[Reference], gold: Sequence[Token]
) -> dict[str, Group]:
    """The group of each column, by its name; fills in what the columns know of each other."""
    columns = [column for table in tables.values() for column in table.columns]
    groups = {column.name: Group() for column in columns}
    pairs = equated_columns(gold)
    for reference in references:
        child = tables[reference.child].columns[reference.column]
        parent = tables[reference.parent].columns[reference.parent_column]
        child.is_key = parent.is_key = True
        child.reference = reference
        pairs.append((child.name, parent.name))
    for first, second in pairs:
        if first in groups and second in groups:
            old = groups[second]
            for name, group in groups.items():
                if group is old:
                    groups[name] = groups[first]
    for column in columns:
        column.group = groups[column.name]
        column.group.is_fixed |= column.is_key
    return groups


def _add_compared(
    tables: dict[str, Table], groups: dict[str, Group], constants: Sequence[Constant]
) -> None:
    """Tell each group of columns the constants of the gold that may stand in them, and the numbers beside
    those. The gold may compare with something else, such as the year of a date.
    """
    for constant in constants:
        if constant.column is None:
            continue
        group = groups[constant.column]
        types = []
        present: list[Any] = []
        for table in tables.values():
            for index, column in enumerate(table.columns):
                if column.group is group:
                    types.append(column.type)
                    present += [row[index] for row in table.rows if row[index] is not None]
        group.compared += _as_in_column(constant.value, _kind_of(types, present))


def _kind_of(types: Sequence[str], present: Sequence[Any]) -> str:
    """What columns with these types and values hold: "date", "flag", "number", or "" for anything."""
    if not present:
        kinds = (("date", "DATE|TIMESTAMP"), ("flag", "BOOL"), ("number", _NUMERIC))
        return next((kind for kind, named in kinds if _all_match(named, types)), "")
    texts = [str(value) for value in present]
    if all(map(_DATE.match, texts)):
        return "date"
    if any(isinstance(value, str) for value in present):
        return ""
    return "flag" if {*present} == {0, 1} else "number"


def _all_match(pattern: str, types: Sequence[str]) -> bool:
    return all(re.search(pattern, each) for each in types)


def _as_in_column(value: Any, kind: str) -> list[Any]:
    """What a constant is as a value of a column of this kind, with the numbers beside it; nothing where
    it cannot stand there.

    >>> [_as_in_column(value, kind) for value, kind in (("2022", "date"), (1, "flag"), (5, "number"), (", ", "number"))]
    [['2022-06-15'], [1], [5, 4, 6], []]
    """
    text = str(value)
    if value is None:
        return [None]
    if kind == "date":
        # The gold may compare the year, or the month, of the date: then a day in it.
        if _YEAR_OR_MONTH.fullmatch(text):
            text += "-06-15"[len(text) - 4 :]
        return [text] if _DATE.match(text) else []
    if isinstance(value, str):
        return [value] if not kind or _NUMBER.fullmatch(value) else []
    return [value] if kind == "flag" else [value, value - 1, value + 1]


# --- Rows of the database


def _order_rows(
    reader: Reader,
    tables: dict[str, Table],
    references: Sequence[Reference],
    constants: Sequence[Constant],
) -> None:
    """Have the rows in which a constant of the gold is come first, then those that refer to them, and
    add the rows to which others refer.
    """
    for table in tables.values():
        if table.is_read:
            _put_first(reader, table, *_holds_constant(table, constants))
    for _ in range(2):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            if child.is_read and parent.is_read and not child.fitting:
                keys = _values(parent.rows[: parent.fitting], reference.parent_column)
                _put_first(reader, child, _is_one_of(child, reference.column, keys), keys)
    for _ in range(3):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            present = {*_values(parent.rows, reference.parent_column)}
            referred = _values(child.rows[: _FIRST // 2], reference.column)
            keys = [key for key in referred if key not in present]
            condition = _is_one_of(parent, reference.parent_column, keys)
            rows = _rows_where(reader, parent, condition, keys, _FIRST)
            parent.rows = parent.rows + [row for row in rows if row not in parent.rows]


def _put_first(reader: Reader, table: Table, condition: str, values: Sequence[Any]) -> None:
    rows = _rows_where(reader, table, condition, values, _FITTING)
    table.rows = rows + [row for row in table.rows if row not in rows]
    table.fitting = len(rows)


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
        return reader.connection.execute(query, list(values)).fetchall()
    except sqlite3.Error:  # a table that is too large to be searched
        return []


def _holds_constant(table: Table, constants: Sequence[Constant]) -> tuple[str, list[Any]]:
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
    return " OR ".join(conditions[:20]), values[:20]


def _is_one_of(table: Table, column: int, values: Sequence[Any]) -> str:
    places = ", ".join("?" * len(values))
    return f"{quoted(table.columns[column].written)} IN ({places})" if values else ""


def _values(rows: Sequence[Row], column: int) -> list[Any]:
    different = dict.fromkeys(row[column] for row in rows if row[column] is not None)
    return list(different)[:_FIRST]
