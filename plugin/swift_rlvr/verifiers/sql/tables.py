"""The tables of a row's database, as far as further databases need them: columns, keys, and rows to draw
from.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from swift_rlvr.verifiers.sql.results import Row
from swift_rlvr.verifiers.sql.tokens import Constant

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_YEAR_OR_MONTH = re.compile(r"(19|20)\d\d(-(0[1-9]|1[012]))?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
# What columns without a value hold, by what the types of all of them have.
_KINDS_BY_TYPE = {
    "date": "DATE|TIMESTAMP",
    "flag": "BOOL",
    "number": "INT|NUM|DEC|REAL|FLOA|DOUB",
}
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


def quoted(name: str) -> str:
    """A name in a query."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Reference:
    """Columns of a table whose values are those of another's."""

    child: str
    column: int
    parent: str
    parent_column: int


# A table with fewer rows gets made ones.
FEW = 8


@dataclass(eq=False)
class Group:
    """Columns that share their values: those of one name, and those with which the gold joins them or
    to which they refer.

    Attributes:
        is_fixed: one of them is a key, so that the values stay with their rows.
        types: of the columns. present: the values of the rows that are read of their tables.
        compared: the constants of the gold that may stand in them, and the numbers beside those.
        near: texts that LIKE may take for one of these.
    """

    is_fixed: bool = False
    types: list[str] = field(default_factory=list)
    present: list[Any] = field(default_factory=list)
    compared: list[Any] = field(default_factory=list)
    near: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What its columns hold: "date", "flag", "number", or "" for anything."""
        if not self.present:
            for kind, pattern in _KINDS_BY_TYPE.items():
                if all(re.search(pattern, each) for each in self.types):
                    return kind
            return ""
        if all(_DATE.match(str(value)) for value in self.present):
            return "date"
        if any(isinstance(value, str) for value in self.present):
            return ""
        return "flag" if {*self.present} == {0, 1} else "number"

    def compare(self, constant: str | int | float | None) -> None:
        """Add a constant of the gold as a value of these columns, with the numbers beside it; nothing
        where it cannot stand there, because the gold compares with something else.

        >>> dates, numbers = Group(types=["DATE"]), Group(types=["INT"])
        >>> for constant in ("2022", 5, ", "):
        ...     dates.compare(constant)
        ...     numbers.compare(constant)
        >>> dates.compared, numbers.compared
        (['2022-06-15'], ['2022', 5, 4, 6])
        """
        kind = self.kind
        if constant is None:
            self.compared.append(None)
        elif kind == "date":
            # The gold may compare the year, or the month, of the date: then a day in it.
            text = str(constant)
            if _YEAR_OR_MONTH.fullmatch(text):
                text += "-06-15"[len(text) - 4 :]
            if _DATE.match(text):
                self.compared.append(text)
        elif isinstance(constant, str):
            is_number = _NUMBER.fullmatch(constant) is not None
            if not kind or is_number:
                self.compared.append(constant)
            # Of two texts, such as "yes" and "no", a question may exclude the other, unless a table is so small
            # that it gets rows with further texts anyway.
            is_choice = len({*self.present}) in (1, 2) and len(self.present) >= FEW
            if not kind and not is_number and constant and not is_choice:
                # What begins, ends and goes on like it, and what is as long and begins like it.
                backwards = constant[0] + constant[:0:-1]
                self.near += [f"{constant} {constant}", *{backwards} - {constant}]
        elif kind == "flag":
            self.compared.append(constant)
        else:
            self.compared += [constant, constant - 1, constant + 1]


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

    Attributes:
        unique: the columns of which no two rows have the same values; a primary key comes first.
        labels: the columns that people tell its rows apart by.
        rows: the first ones of the table. fitting: how many of them come first because a constant of
            the gold is in them, or they belong to such a row.
        is_read: by the gold.
        distinct: the columns where no made row has a value twice.
    """

    name: str
    columns: list[Column]
    unique: list[tuple[int, ...]]
    labels: list[int]
    rows: list[Row] = field(default_factory=list)
    fitting: int = 0
    is_read: bool = False
    distinct: list[int] = field(default_factory=list)

    @property
    def quoted_columns(self) -> str:
        """All of its columns, in a query."""
        return ", ".join(quoted(column.written) for column in self.columns) or "*"

    @property
    def key(self) -> int | None:
        """The column that is its key; None where it has none, or one of several columns."""
        if self.unique and len(self.unique[0]) == 1:
            return self.unique[0][0]
        return None

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
        """The place of the column with this name."""
        for index, column in enumerate(self.columns):
            if column.name == name.casefold():
                return index
        return None


@dataclass
class Schema:
    """What is needed to make a database like another.

    Attributes:
        statements: those that make its tables and views.
        tables: by their names in lower case.
        constants: of the gold.
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
            # Of tables that refer to each other one has to come first.
            for name in ready or waiting[:1]:
                order.append(name)
                waiting.remove(name)
        return order

    def without_rows(self) -> "Schema":
        """The schema of a database whose tables are all empty, so that all rows are made."""
        tables = {}
        for name, table in self.tables.items():
            tables[name] = replace(table, rows=[], fitting=0)
        return replace(self, tables=tables)
