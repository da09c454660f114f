"""Further databases with the schema of a row's, so that a query which is right by chance on that one
is wrong on another.

Where a table has rows, theirs are used. A further database has some of them, with the rows that
they refer to, and in every other one the values of a column have changed places: a value stands
wherever another one of its column stood, and so may a constant that the gold compares it with. What
holds for all rows of a table (keys, references, that a city has one country) then holds there too,
so that a right query stays right. In those from `BESIDE` on, a number or a date that stood in a column
has become one beside it, between two, below all or above all of them. Where a table has none or few,
rows are made from the types of its columns and from the constants of the gold. All of it is drawn
from a generator with a fixed seed: the same row has the same databases everywhere.

After Zhong et al. 2020, "Semantic Evaluation for Text-to-SQL with Distilled Test Suites" (arXiv
2010.02840), which fuzzes values and keeps the databases that tell the gold from its neighbours.
"""

import operator
import random
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from swift_rlvr.verifiers.sql.connection import NO_MEMORY, QueryError, Reader, connect
from swift_rlvr.verifiers.sql.tokens import (
    Constant,
    Token,
    constants_of,
    equated_columns,
    value_of,
    written,
)

# Rows of a table: the first ones, and those with a constant of the gold, of which a table gets some.
_FIRST = 200
_FITTING = 40
_KEPT = 24
_KEPT_OF_LARGE = 150
# A table with fewer gets further ones.
_FEW = 8
_MADE = 14
_MADE_OF_LARGE = 60
# ... and of a table that the gold does not read
_UNREAD = 6
# Of each five further databases, the number of the large one.
_LARGE = 3
_MOST_TABLES = 60
# Beyond it a float has no number one more, and SQLite no whole one.
_LARGEST = 10**12
# From this number of a further database on its values are beside those that there were.
BESIDE = 1001
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_STEPS = 3_000_000  # for the search in one table

_DATES = ("2018-03-04", "2019-07-21", "2019-11-02", "2020-02-29", "2021-06-15", "2022-12-31")
_TIMES = ("08:15:00", "09:30:00", "12:00:00", "17:45:00", "23:10:00")
_WORDS = ("amber", "birch", "coral", "delta", "ember", "fjord", "grove")


@dataclass
class Column:
    """A column that rows are made for."""

    written: str  # as the schema has it
    name: str  # in lower case
    type: str  # in capitals
    is_key: bool  # its values name a row: they stay with it


@dataclass
class Table:
    """A table of a schema, with the rows that further databases draw from.

    rows: the first ones of the table. fitting: how many of them come first because a constant of the
    gold is in them, or they belong to such a row.
    """

    name: str
    columns: list[Column]
    unique: list[tuple[int, ...]]  # the columns of which no two rows have the same values
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    fitting: int = 0
    is_read: bool = False  # by the gold

    def index(self, name: str) -> int | None:
        for index, column in enumerate(self.columns):
            if column.name == name.casefold():
                return index
        return None


@dataclass(frozen=True)
class Reference:
    """Columns of a table whose values are those of another's."""

    child: str
    column: int
    parent: str
    parent_column: int


@dataclass
class Schema:
    """What is needed to make a database like another.

    statements: those that make its tables and views. tables: by their names in lower case.
    """

    statements: list[str]
    tables: dict[str, Table]
    references: list[Reference]
    constants: list[Constant]
    # For each column, in lower case, the name of its group: columns of one name share their values,
    # and those with which the gold joins them or to which they refer.
    alike: dict[str, str]


def read_schema(reader: Reader, gold: Sequence[Token], read: Iterable[str]) -> Schema:
    """The schema of a database with rows to draw from. read: the tables that the gold reads."""
    with reader.unconfined() as connection:
        reader.allow(_STEPS)
        made = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
        ).fetchall()
        statements = [sql for _, _, sql in made]
        names = [name for name, kind, sql in made if kind == "table"][:_MOST_TABLES]
        tables = {name.casefold(): _table(connection, name) for name in names}
        references = _references(connection, tables)
        for reference in references:
            tables[reference.child].columns[reference.column].is_key = True
            tables[reference.parent].columns[reference.parent_column].is_key = True

        alike = _groups_of_columns(tables, references, gold)
        constants = constants_of(gold, frozenset(alike))
        for name, table in tables.items():
            reader.allow(_STEPS)
            query = f"SELECT {_all(table)} FROM {_quoted(table.name)} LIMIT {_FIRST}"
            with suppress(sqlite3.Error):
                table.rows = connection.execute(query).fetchall()
            table.is_read = name in read
            if table.is_read:
                _put_first(reader, table, constants)
        _put_related_first(reader, tables, references, set(read))
    return Schema(statements, tables, references, constants, alike)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(connection: sqlite3.Connection, name: str) -> Table:
    columns: list[Column] = []
    key: list[int] = []
    # Column: its number, name, type, NOT NULL, default, place in the key, 2 or 3 where it is computed
    for _, column, kind, _, _, place, hidden in connection.execute(
        f"PRAGMA table_xinfo({_quoted(name)})"
    ):
        if hidden in (0, 1):
            if place:
                key.append(len(columns))
            columns.append(Column(column, column.casefold(), (kind or "").upper(), bool(place)))
    unique = [tuple(key)] if key else []
    unique += _unique_indexes(connection, name, columns)
    if not key and columns and columns[0].name in ("id", f"{name.casefold()}_id"):
        # A key that nobody declared, as in many rows that bring their schema.
        columns[0].is_key = True
        unique.append((0,))
    return Table(name, columns, list(dict.fromkeys(unique)))


def _unique_indexes(
    connection: sqlite3.Connection, name: str, columns: Sequence[Column]
) -> Iterator[tuple[int, ...]]:
    """The places of the columns of each unique index of a table; none of one over expressions."""
    for _, index, is_unique, *_ in connection.execute(f"PRAGMA index_list({_quoted(name)})"):
        if not is_unique:
            continue
        info = connection.execute(f"PRAGMA index_info({_quoted(index)})").fetchall()
        named = [(column or "").casefold() for _, _, column in info]
        places = [place for place, column in enumerate(columns) if column.name in named]
        if len(places) == len(named):
            yield tuple(places)


def _references(connection: sqlite3.Connection, tables: dict[str, Table]) -> list[Reference]:
    """The references that are declared, and those of columns that are called like the key of another
    table. A column refers to one alone, and what is declared comes first.
    """
    references: dict[tuple[str, int], Reference] = {}
    for reference in _declared_references(connection, tables):
        references.setdefault((reference.child, reference.column), reference)

    keys: dict[str, tuple[str, int]] = {}  # the table of a key, and its place there
    for name, table in tables.items():
        if table.unique and len(table.unique[0]) == 1:
            place = table.unique[0][0]
            keys.setdefault(table.columns[place].name, (name, place))
    for name, table in tables.items():
        for index, column in enumerate(table.columns):
            if column.name in keys and column.name not in ("id", "name"):
                parent, place = keys[column.name]
                if parent != name:
                    references.setdefault((name, index), Reference(name, index, parent, place))
    return list(references.values())


def _declared_references(
    connection: sqlite3.Connection, tables: dict[str, Table]
) -> Iterator[Reference]:
    """The references of FOREIGN KEY and REFERENCES."""
    for name, table in tables.items():
        for row in connection.execute(f"PRAGMA foreign_key_list({_quoted(table.name)})"):
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


def _groups_of_columns(
    tables: dict[str, Table], references: Sequence[Reference], gold: Sequence[Token]
) -> dict[str, str]:
    """For each column the name of its group, see `Schema.alike`."""
    group = {}
    for table in tables.values():
        for each in table.columns:
            group[each.name] = each.name
    pairs = equated_columns(gold)
    for reference in references:
        child = tables[reference.child].columns[reference.column]
        parent = tables[reference.parent].columns[reference.parent_column]
        pairs.append((child.name, parent.name))
    for first, second in pairs:
        if first in group and second in group:
            old, new = group[second], group[first]
            for column, name in group.items():
                if name == old:
                    group[column] = new
    return group


# --- Rows of the database itself


def _all(table: Table) -> str:
    return ", ".join(_quoted(column.written) for column in table.columns) or "*"


def _put_first(reader: Reader, table: Table, constants: Sequence[Constant]) -> None:
    """Have the rows in which a constant of the gold is come first."""
    conditions = []
    values: list[Any] = []
    for constant in constants:
        for column in table.columns:
            if column.name != constant.column or constant.value is None:
                continue
            if isinstance(constant.value, str):
                conditions.append(f"{_quoted(column.written)} LIKE ?")
                values.append(f"%{constant.value}%")
            else:
                conditions.append(f"{_quoted(column.written)} = ?")
                values.append(constant.value)
    _add_where(reader, table, " OR ".join(conditions[:20]), values[:20])


def _put_related_first(
    reader: Reader, tables: dict[str, Table], references: Sequence[Reference], read: set[str]
) -> None:
    """Have the rows that refer to those come first, and those to which they refer."""
    for _ in range(2):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            keys = _values(parent.rows[: parent.fitting], reference.parent_column)
            if reference.child in read and reference.parent in read and not child.fitting:
                _add_where(reader, child, _is_one_of(child, reference.column, keys), keys)
    for _ in range(3):
        for reference in references:
            child, parent = tables[reference.child], tables[reference.parent]
            present = {*_values(parent.rows, reference.parent_column)}
            referred = _values(child.rows[: _FIRST // 2], reference.column)
            keys = [key for key in referred if key not in present]
            if keys:
                reader.allow(_STEPS)
                condition = _is_one_of(parent, reference.parent_column, keys)
                _add_where(reader, parent, condition, keys, first=False)


def _values(rows: Sequence[tuple[Any, ...]], column: int) -> list[Any]:
    different = dict.fromkeys(row[column] for row in rows if row[column] is not None)
    return list(different)[:_FIRST]


def _is_one_of(table: Table, column: int, values: Sequence[Any]) -> str:
    places = ", ".join("?" * len(values))
    return f"{_quoted(table.columns[column].written)} IN ({places})" if values else ""


def _add_where(
    reader: Reader, table: Table, condition: str, values: Sequence[Any], first: bool = True
) -> None:
    if not condition:
        return
    reader.allow(_STEPS)
    query = f"SELECT {_all(table)} FROM {_quoted(table.name)} WHERE {condition} LIMIT {_FITTING if first else _FIRST}"
    try:
        added = reader.connection.execute(query, list(values)).fetchall()
    except sqlite3.Error:  # a table that is too large to be searched
        return
    added = [row for row in added if first or row not in table.rows]
    if first:
        rest = [row for row in table.rows if row not in added]
        table.rows = added + rest
        table.fitting = len(added)
    else:
        table.rows = table.rows + added


def without_rows(schema: Schema) -> Schema:
    """The schema of a database whose tables are all empty, so that all rows are made."""
    tables = {}
    for name, table in schema.tables.items():
        tables[name] = replace(table, rows=[], fitting=0)
    return replace(schema, tables=tables)


# --- Rows of a further database


def rows_of(schema: Schema, number: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of further database `number`, by table."""
    rng = random.Random(number)
    is_large = number % 5 == _LARGE and number < BESIDE  # for golds that want many rows of a kind
    drawn: dict[str, list[tuple[Any, ...]]] = {}
    for name, table in schema.tables.items():
        share = rng.choice((0.85, 1.0) if number >= BESIDE else (0.35, 0.6, 0.85))
        share = 1.0 if is_large else share
        kept = [row for row in table.rows[: table.fitting] if rng.random() < share]
        others = table.rows[table.fitting :]
        most = _KEPT_OF_LARGE if is_large else _KEPT
        count = min(round(share * len(others)), most if table.is_read else _UNREAD)
        drawn[name] = kept + rng.sample(others, count)
    _add_parents(schema, drawn)
    is_beside = number >= BESIDE
    if is_beside or number % 2:
        _exchange_values(schema, drawn, rng, is_beside)
    for name in _parents_first(schema):
        table = schema.tables[name]
        if len(table.rows) < _FEW:
            drawn[name] = drawn[name] + _made_rows(schema, table, drawn, rng, is_large, is_beside)
        drawn[name] = _without_repeated_keys(table, drawn[name])
        rng.shuffle(drawn[name])
    return drawn


def _add_parents(schema: Schema, drawn: dict[str, list[tuple[Any, ...]]]) -> None:
    """Add the rows that others refer to, until there are none to add."""
    for _ in range(4):
        added = False
        for reference in schema.references:
            parent = schema.tables[reference.parent]
            present = {row[reference.parent_column] for row in drawn[reference.parent]}
            needed = {row[reference.column] for row in drawn[reference.child]} - present
            rows = [row for row in parent.rows if row[reference.parent_column] in needed]
            drawn[reference.parent] = drawn[reference.parent] + rows
            added = added or bool(rows)
        if not added:
            return


def _exchange_values(
    schema: Schema,
    drawn: dict[str, list[tuple[Any, ...]]],
    rng: random.Random,
    is_beside: bool = False,
) -> None:
    """Have the values of columns that are no keys change places, one for another in all rows, or
    become values beside them.
    """
    # What each value becomes, by the group of its column.
    instead: dict[str, dict[Any, Any]] = defaultdict(dict)
    for kind in (str, (int, float)):
        for group, values in _values_by_group(schema, drawn, kind).items():
            compared = _compared_with(schema, group)
            if is_beside:
                instead[group].update(_beside(values, compared, rng))
                continue
            # A constant of the gold may come instead of one that stood there.
            others = [each for each in compared if isinstance(each, kind) and each not in values]
            after = rng.sample(values + others, len(values))
            instead[group].update(zip(values, after, strict=True))

    for name, table in schema.tables.items():
        changes = [instead[schema.alike[column.name]] for column in table.columns]
        rows = []
        for row in drawn[name]:
            pairs = zip(changes, row, strict=True)
            rows.append(tuple([change.get(value, value) for change, value in pairs]))
        drawn[name] = rows


def _values_by_group(
    schema: Schema, drawn: dict[str, list[tuple[Any, ...]]], kind: Any
) -> dict[str, list[Any]]:
    """The different values of a type in each group of columns without a key."""
    keys = set()
    for table in schema.tables.values():
        keys |= {schema.alike[column.name] for column in table.columns if column.is_key}
    # dicts in place of sets, which have no order
    values: dict[str, dict[Any, None]] = defaultdict(dict)
    for name, table in schema.tables.items():
        for index, column in enumerate(table.columns):
            group = schema.alike[column.name]
            if group in keys:
                continue
            for row in drawn[name]:
                if isinstance(row[index], kind):
                    values[group][row[index]] = None
    return {group: list(different) for group, different in values.items()}


def _beside(values: Sequence[Any], compared: Sequence[Any], rng: random.Random) -> dict[Any, Any]:
    """For each number or date of a column another one: one more or less, between it and the next one,
    below all or above all. What the gold compares with stays, and so do texts and flags.

    >>> _beside([25, 31, 43], [30], random.Random(0))
    {25: 24, 31: 37, 43: 44}
    >>> _beside(["a", "2024-02-29"], [], random.Random(0))
    {'2024-02-29': '2024-02-28'}
    """
    dated = [value for value in values if _day(value) is not None]
    if dated:
        return _dates_beside(dated, compared, rng)
    numbers = sorted(value for value in values if isinstance(value, (int, float)))
    if not numbers or {*numbers} <= {0, 1} or max(map(abs, numbers)) > _LARGEST:
        return {}
    taken = {value for value in numbers if value in compared}
    instead: dict[Any, Any] = {}
    for place, value in enumerate(numbers):
        if value in compared:
            continue
        near = _near(numbers, place)
        rng.shuffle(near)
        # Where nothing is negative, nothing becomes so.
        allowed = [each for each in near if each >= 0 or numbers[0] < 0]
        free = [each for each in (*allowed, value) if each not in taken]
        new = free[0] if free else max(taken) + 1
        taken.add(new)
        instead[value] = new
    return instead


def _near(numbers: Sequence[Any], place: int) -> list[Any]:
    """What the number in this place may become, of numbers in order."""
    value = numbers[place]
    gap = max(1, (numbers[-1] - numbers[0]) // 2)
    if place == 0:
        return [value - 1, value - gap]
    if place == len(numbers) - 1:
        return [value + 1, value + gap]
    between = value + (numbers[place + 1] - value) / 2
    return [value + 1, value - 1, int(between) if isinstance(value, int) else between]


def _dates_beside(
    dates: Sequence[str], compared: Sequence[Any], rng: random.Random
) -> dict[str, str]:
    """For each date of a column another one, as for numbers; none that a calendar has not."""
    days = {text: _day(text) for text in dates}
    constants = [day for day in map(_day, compared) if day is not None]
    moved = _beside([*days.values()], constants, rng)
    instead = {}
    for text, day in days.items():
        if day in moved and 1 <= moved[day] <= date.max.toordinal():
            instead[text] = date.fromordinal(moved[day]).isoformat()
    return instead


def chances(schema: Schema, gold: Sequence[Token]) -> list[str]:
    """The gold with a comparison that lists or spans the values of its column: right by chance."""
    queries = []
    for index in range(1, len(gold) - 1):
        name, sign, constant = gold[index - 1 : index + 2]
        compare = _COMPARED.get(sign.written)
        other = value_of(constant)
        if compare is None or other is None:
            continue
        # of texts only dates have an order that people ask for
        if constant.written[0] in "\"'" and _day(other) is None:
            continue
        values = [each for each in _values_of(schema, name.word, other) if compare(each, other)]
        if not values:
            continue
        literals = []
        for value in sorted({*values}):
            is_text = isinstance(value, str)
            literals.append("'" + value.replace("'", "''") + "'" if is_text else repr(value))
        before = written(gold[:index])
        after = written([token for token in gold[index + 2 :] if token.written != ";"])
        queries.append(f"{before} IN ({', '.join(literals)}) {after}")
        queries.append(f"{before} BETWEEN {literals[0]} AND {literals[-1]} {after}")
    return queries


def _values_of(schema: Schema, column: str, like: Any) -> Iterator[Any]:
    """The values of all columns of this name that can be compared with another one: texts with a
    text, numbers with a number.
    """
    kind = str if isinstance(like, str) else (int, float)
    for table in schema.tables.values():
        index = table.index(column)
        if index is None:
            continue
        for row in table.rows:
            if isinstance(row[index], kind):
                yield row[index]


def has_order(value: Any) -> bool:
    """Whether there are values beside one: of a number or a date."""
    return isinstance(value, (int, float)) or _day(value) is not None


def _day(value: Any) -> int | None:
    """The number of a day, of a text that is a date."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    with suppress(ValueError):
        return date.fromisoformat(value).toordinal()
    return None


def _parents_first(schema: Schema) -> list[str]:
    order: list[str] = []
    waiting = list(schema.tables)
    while waiting:
        ready = []
        for name in waiting:
            parents = {each.parent for each in schema.references if each.child == name} - {name}
            if parents <= {*order}:
                ready.append(name)
        ready = ready or waiting[:1]  # tables that refer to each other
        order += ready
        waiting = [name for name in waiting if name not in ready]
    return order


def _made_rows(
    schema: Schema,
    table: Table,
    drawn: dict[str, list[tuple[Any, ...]]],
    rng: random.Random,
    is_large: bool,
    is_beside: bool,
) -> list[tuple[Any, ...]]:
    most = _MADE_OF_LARGE if is_large else _MADE
    if not table.is_read:
        most = _UNREAD
    pools = []
    for index in range(len(table.columns)):
        pools.append(_few_values(schema, table, index, drawn, rng, is_beside))
    # Columns that are a key alone; what others refer to is theirs to say.
    alone = [places[0] for places in table.unique if len(places) == 1]
    alone = [index for index in alone if _reference_of(schema, table, index) is None]
    taken = {index: {row[index] for row in drawn[table.name.casefold()]} for index in alone}
    rows = []
    for number in range(rng.randint(most // 2, most)):
        values: list[Any] = [rng.choice(pool) for pool in pools]
        for index in alone:
            compared = _compared_with(schema, schema.alike[table.columns[index].name])
            if compared and number == 0:
                values[index] = rng.choice(compared)
            if values[index] in taken[index]:
                # a key that no row has yet
                is_text = isinstance(values[index], str)
                values[index] = f"{values[index]} {number}" if is_text else 1001 + number
            taken[index].add(values[index])
        rows.append(tuple(values))
    return rows


def _few_values(
    schema: Schema,
    table: Table,
    index: int,
    drawn: dict[str, list[tuple[Any, ...]]],
    rng: random.Random,
    is_beside: bool,
) -> list[Any]:
    """The few values that the made rows have in a column: of few some occur twice, and several
    conditions hold at once.
    """
    column = table.columns[index]
    compared = _compared_with(schema, schema.alike[column.name])
    reference = _reference_of(schema, table, index)
    pool = []
    if reference is not None:
        pool = [row[reference.parent_column] for row in drawn[reference.parent]]
    if not pool:
        pool = compared + [row[index] for row in table.rows]
        if len({*pool}) < 4:
            pool += _values_of_type(column, [value for value in pool if value is not None])
        pool = list(dict.fromkeys(pool))
    if is_beside and not column.is_key:
        present = [row[index] for row in table.rows if row[index] is not None]
        pool = list(dict.fromkeys([*pool, *_beside(present, compared, rng).values()]))
    few = rng.sample(pool, min(len(pool), rng.choice((2, 3, 6))))
    likely = compared
    if reference is not None:
        likely = _fitting_keys(schema, reference, drawn[reference.parent])
    if likely and rng.random() < 0.8:
        few[0] = rng.choice(likely)
    return few


def _fitting_keys(
    schema: Schema, reference: Reference, parents: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """The keys of the rows that have a constant of the gold, of those that a column can refer to."""
    columns = schema.tables[reference.parent].columns
    keys = []
    for row in parents:
        for column, value in zip(columns, row, strict=True):
            if value in _compared_with(schema, schema.alike[column.name]):
                keys.append(row[reference.parent_column])
                break
    return keys


def _reference_of(schema: Schema, table: Table, index: int) -> Reference | None:
    for reference in schema.references:
        if (reference.child, reference.column) == (table.name.casefold(), index):
            return reference
    return None


def _compared_with(schema: Schema, group: str) -> list[Any]:
    """The constants that the gold compares a column of a group with, and the numbers beside them."""
    values: list[Any] = []
    for constant in schema.constants:
        if constant.column is None or schema.alike[constant.column] != group:
            continue
        values.append(constant.value)
        if isinstance(constant.value, (int, float)):
            values += [constant.value - 1, constant.value + 1]
    return values


def _values_of_type(column: Column, others: Sequence[Any]) -> Sequence[Any]:
    kind, name = column.type, column.name
    is_text = any(part in kind for part in ("CHAR", "TEXT", "CLOB", "STRING"))
    if others and all(isinstance(value, (int, float)) for value in others):
        middle = max(others)
        return [middle + 2, middle + 5, middle // 2]
    if "BOOL" in kind:
        return [0, 1]
    if "year" in name:
        return [1995, 2001, 2008, 2014, 2019, 2023]
    if "DATE" in kind or "TIMESTAMP" in kind or "date" in name:
        return _DATES
    if "TIME" in kind:
        return _TIMES
    if any(part in kind for part in ("INT", "NUM", "DEC")) or name == "id" or name.endswith("_id"):
        return [1, 2, 3, 4, 5, 7, 9, 12]
    if not is_text and any(part in kind for part in ("REAL", "FLOA", "DOUB", "MONEY")):
        return [0.5, 1.25, 2.0, 3.75, 10.5, 42.0]
    return _WORDS


def _without_repeated_keys(table: Table, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    seen: set[tuple[Any, ...]] = set()
    kept = []
    for row in rows:
        keys = []
        for number, places in enumerate(table.unique):
            values = tuple(row[place] for place in places)
            if None not in values:
                keys.append((number, *values))
        if not any(key in seen for key in keys):
            seen.update(keys)
            kept.append(row)
    return kept


def build(
    schema: Schema, rows: dict[str, list[tuple[Any, ...]]], backwards: bool = False
) -> Reader:
    """A database with these rows, in this order or in the other. QueryError where one of its tables
    cannot be made.
    """
    reader = Reader(connect(":memory:"))
    reader.allow(_STEPS)
    try:
        with reader.unconfined() as connection:
            for statement in schema.statements:
                connection.execute(statement)
            connection.execute("BEGIN")
            for name, table in schema.tables.items():
                places = ", ".join("?" * len(table.columns))
                insert = f"INSERT INTO {_quoted(table.name)} ({_all(table)}) VALUES ({places})"
                ordered = rows[name][::-1] if backwards else rows[name]
                try:
                    connection.executemany(insert, ordered)
                except sqlite3.IntegrityError:
                    # There is a row that a CHECK or a type of the schema does not allow.
                    connection.execute(f"DELETE FROM {_quoted(table.name)}")
                    for row in ordered:
                        with suppress(sqlite3.IntegrityError):
                            connection.execute(insert, row)
            connection.execute("COMMIT")
    except (sqlite3.Error, MemoryError) as error:
        reader.close()
        reason = NO_MEMORY if isinstance(error, MemoryError) else "no further database"
        raise QueryError(reason, str(error)) from None
    return reader
