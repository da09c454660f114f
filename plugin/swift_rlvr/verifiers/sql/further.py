"""Further databases with the schema of a row's, so that a query which is right by chance on that one
is wrong on another.

Where a table has rows, theirs are used. A further database has some of them, with the rows that
they refer to, and in every other one the values of a column have changed places: a value stands
wherever another one of its column stood, and so may a constant that the gold compares it with. What
holds for all rows of a table (keys, references, that a city has one country) then holds there too,
so that a right query stays right. In those from `BESIDE` on, a number or a date that stood in a column
has become one beside it, between two, below all or above all of them; in those from `NEAR` on, a text
may stand in a column that LIKE takes for a constant of the gold. Where a table has none or few,
rows are made from the types of its columns and from the constants of the gold. All of it is drawn
from a generator with a fixed seed: the same row has the same databases everywhere.

After Zhong et al. 2020, "Semantic Evaluation for Text-to-SQL with Distilled Test Suites" (arXiv
2010.02840), which fuzzes values and keeps the databases that tell the gold from its neighbours.
"""

import operator
import random
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from swift_rlvr.verifiers.sql.beside import beside, day_of
from swift_rlvr.verifiers.sql.connection import NO_MEMORY, QueryError, Reader, connect
from swift_rlvr.verifiers.sql.own_rows import STEPS
from swift_rlvr.verifiers.sql.results import Row
from swift_rlvr.verifiers.sql.tables import FEW, Column, Group, Schema, quoted
from swift_rlvr.verifiers.sql.tokens import Token, value_of, without_semicolons, written

# Rows that are kept of a table, beside those with a constant of the gold.
_KEPT = 24
_KEPT_OF_LARGE = 150
_MADE = 14
_MADE_OF_LARGE = 60
# ... and of a table that the gold does not read
_UNREAD = 6
# Of each five further databases, the number of the large one.
_LARGE = 3
# From this number of a further database on its values are beside those that there were.
BESIDE = 1001
# ... and from this one on there are texts near the constants of the gold.
NEAR = 2001
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Rows = dict[str, list[Row]]
"""The rows of a database, by table."""


def rows_of(schema: Schema, number: int) -> Rows:
    """The rows of further database `number`."""
    is_near = number >= NEAR
    draw = _Draw(schema, random.Random(number), BESIDE <= number < NEAR, is_near)
    # for golds that want many rows of a kind
    is_large = number % 5 == _LARGE and number < BESIDE
    most_kept, most_made = (_KEPT_OF_LARGE, _MADE_OF_LARGE) if is_large else (_KEPT, _MADE)
    for name, table in schema.tables.items():
        draw.keep_rows(name, most_kept if table.is_read else _UNREAD, are_all=is_large)
    draw.add_parents()
    # Every other one keeps its values, so that what holds of them, and the schema does not say, holds.
    if number >= BESIDE or number % 2:
        draw.exchange_values()
    for name in schema.parents_first:
        table = schema.tables[name]
        # Parents come first: made rows refer to those that are there.
        if len(table.rows) < FEW:
            draw.make_rows(name, most_made if table.is_read else _UNREAD)
        draw.rows[name] = table.without_repeated_keys(draw.rows[name])
        draw.rng.shuffle(draw.rows[name])
    return draw.rows


@dataclass
class _Draw:
    """The rows of a further database, while they are drawn.

    is_beside: whether numbers and dates become others beside them. is_near: whether texts near the
        constants of the gold may stand where these may.
    """

    schema: Schema
    rng: random.Random
    is_beside: bool
    is_near: bool
    rows: Rows = field(default_factory=dict)

    def keep_rows(self, name: str, most: int, are_all: bool) -> None:
        """Keep some rows of a table, at most so many beside those with a constant of the gold."""
        table = self.schema.tables[name]
        share = self.rng.choice((0.85, 1.0) if self.is_beside else (0.35, 0.6, 0.85))
        if are_all:
            share = 1.0
        kept = [row for row in table.rows[: table.fitting] if self.rng.random() < share]
        others = table.rows[table.fitting :]
        count = min(round(share * len(others)), most)
        self.rows[name] = kept + self.rng.sample(others, count)

    def add_parents(self) -> None:
        """Add the rows that others refer to, until there are none to add."""
        # A parent may refer to rows of a table that was looked at before it. Four steps are as many as
        # people join, and tables that refer to each other have no end.
        for _ in range(4):
            added = False
            for reference in self.schema.references:
                place = reference.parent_column
                parents = self.rows[reference.parent]
                needed = {row[reference.column] for row in self.rows[reference.child]}
                needed.difference_update([row[place] for row in parents])
                rows = []
                for row in self.schema.tables[reference.parent].rows:
                    if row[place] in needed:
                        rows.append(row)
                self.rows[reference.parent] = parents + rows
                added = added or bool(rows)
            if not added:
                return

    def exchange_values(self) -> None:
        """Have the values of columns that are no keys change places, one for another in all rows, or
        become values beside them.
        """
        # What each value becomes. Texts change places with texts, and numbers with numbers.
        instead: dict[Group, dict[Any, Any]] = defaultdict(dict)
        for kind in (str, (int, float)):
            # The different values of a group, in dicts: sets have no order that is the same everywhere.
            present: dict[Group, dict[Any, None]] = defaultdict(dict)
            for name, table in self.schema.tables.items():
                for index, column in enumerate(table.columns):
                    for row in self.rows[name]:
                        if isinstance(row[index], kind) and not column.group.is_fixed:
                            present[column.group][row[index]] = None
            for group, different in present.items():
                values = list(different)
                if self.is_beside:
                    instead[group].update(beside(values, group.compared, self.rng))
                    continue
                # A constant of the gold may come instead of one that stood there.
                others = []
                for constant in self._compared(group):
                    if isinstance(constant, kind) and constant not in different:
                        others.append(constant)
                after = self.rng.sample(values + others, len(values))
                instead[group].update(zip(values, after, strict=True))

        for name, table in self.schema.tables.items():
            changes = [instead[column.group] for column in table.columns]
            rows = []
            for row in self.rows[name]:
                pairs = zip(changes, row, strict=True)
                rows.append(tuple([change.get(value, value) for change, value in pairs]))
            self.rows[name] = rows

    def _compared(self, group: Group) -> list[Any]:
        if not self.is_near:
            return group.compared
        # Half of them: the constants themselves must not become rare.
        return group.compared + self.rng.sample(group.near, (len(group.near) + 1) // 2)

    def make_rows(self, name: str, most: int) -> None:
        """Add made rows to a table. Those of the tables to which it refers are drawn already."""
        table = self.schema.tables[name]
        pools = []
        for index, column in enumerate(table.columns):
            pools.append(self._few_values(column, [row[index] for row in table.rows]))
        count = self.rng.randint(most // 2, most)
        taken = {}
        others = {}
        for index in table.distinct:
            taken[index] = {row[index] for row in self.rows[name]}
            # in an order of its own, or the largest key would always have the largest value
            others[index] = self.rng.sample(range(count), count)
        made: list[Row] = []
        for number in range(count):
            values: list[Any] = [self.rng.choice(pool) for pool in pools]
            for index in taken:
                compared = table.columns[index].group.compared
                if compared and number == 0:
                    values[index] = self.rng.choice(compared)
                if values[index] in taken[index]:
                    # one that no row has yet
                    values[index] = _another(values[index], others[index][number])
                taken[index].add(values[index])
            made.append(tuple(values))
        self.rows[name] = self.rows[name] + made

    def _few_values(self, column: Column, present: Sequence[Any]) -> list[Any]:
        """The few values that the made rows have in a column: of few some occur twice, and several
        conditions hold at once. present: the values that the table has.
        """
        pool: list[Any] = []
        compared = self._compared(column.group)
        likely = compared
        reference = column.reference
        if reference is not None:
            # The keys of the other table, and those of its rows that have a constant of the gold.
            parents = self.rows[reference.parent]
            pool = [row[reference.parent_column] for row in parents]
            columns = self.schema.tables[reference.parent].columns
            wanted = [each.group.compared for each in columns]
            likely = []
            for row, key in zip(parents, pool, strict=True):
                if any(map(operator.contains, wanted, row)):
                    likely.append(key)
        if not pool:
            pool = [*compared, *present]
            if len({*pool}) < 4:
                pool += column.usual_values(pool)
            pool = list(dict.fromkeys(pool))
        if self.is_beside and not column.is_key:
            pool = list(dict.fromkeys([*pool, *beside(present, compared, self.rng).values()]))
        few = self.rng.sample(pool, min(len(pool), self.rng.choice((2, 3, 6))))
        if likely and self.rng.random() < 0.8:
            # Two, since a query may ask for what fits both.
            first = self.rng.sample(likely, min(len(likely), 2))
            few[: len(first)] = first
        return few


def _another(value: Any, number: int) -> Any:
    """The value number `number` beside one, of its kind.

    >>> _another("2020-02-28", 2), _another("Bob", 2), _another(1, 2)
    ('2020-03-01', 'Bob 2', 1003)
    """
    day = day_of(value)
    if day is not None:
        return date.fromordinal(day + number).isoformat()
    return f"{value} {number}" if isinstance(value, str) else 1001 + number


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
        if constant.written[0] in "\"'" and day_of(other) is None:
            continue
        values = schema.values_of(name.word, other)
        literals = []
        for value in sorted({value for value in values if compare(value, other)}):
            is_text = isinstance(value, str)
            literals.append("'" + value.replace("'", "''") + "'" if is_text else repr(value))
        if literals:
            before = written(gold[:index])
            after = written(without_semicolons(gold[index + 2 :]))
            queries.append(f"{before} IN ({', '.join(literals)}) {after}")
            queries.append(f"{before} BETWEEN {literals[0]} AND {literals[-1]} {after}")
    return queries


def build(schema: Schema, rows: Rows, backwards: bool = False) -> Reader:
    """A database with these rows, in this order or in the other. QueryError where one of its tables
    cannot be made.
    """
    reader = Reader(connect(":memory:"))
    reader.allow(STEPS)
    try:
        with reader.unconfined() as connection:
            for statement in schema.statements:
                connection.execute(statement)
            connection.execute("BEGIN")
            for name, table in schema.tables.items():
                places = ", ".join("?" * len(table.columns))
                insert = (
                    f"INSERT INTO {quoted(table.name)} ({table.quoted_columns}) VALUES ({places})"
                )
                ordered = rows[name][::-1] if backwards else rows[name]
                try:
                    connection.executemany(insert, ordered)
                except sqlite3.IntegrityError:
                    # There is a row that a CHECK or a type of the schema does not allow.
                    connection.execute(f"DELETE FROM {quoted(table.name)}")
                    for row in ordered:
                        with suppress(sqlite3.IntegrityError):
                            connection.execute(insert, row)
            connection.execute("COMMIT")
    except (sqlite3.Error, MemoryError) as error:
        reader.close()
        reason = NO_MEMORY if isinstance(error, MemoryError) else "no further database"
        raise QueryError(reason, str(error)) from None
    return reader
