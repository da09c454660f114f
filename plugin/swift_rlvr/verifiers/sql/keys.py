"""Keys and references of a row's database: those that are declared, and those that names show.

Many rows bring a schema without any, as b-mc2/sql-create-context does. There ``singer_id`` is the key of
singers, and refers to them elsewhere.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from swift_rlvr.verifiers.sql.tables import Column, Reference, Table, quoted

_KEYS = r"\buid|id|code|number|no|key"
# What a plural ends with, and the singular instead.
_PLURALS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"))


def unique_columns(
    connection: sqlite3.Connection, table: str, columns: Sequence[Column], key: Sequence[int]
) -> list[tuple[int, ...]]:
    """The places of the columns of which no two rows of a table have the same values; those of its
    key come first.

    key: the places of its primary key. Without one, a column that is called as a key would be, and
    has no value twice, is marked as one.
    """
    unique = [tuple(key)] if key else []
    for _, index, is_unique, *_ in connection.execute(f"PRAGMA index_list({quoted(table)})"):
        if not is_unique:
            continue
        info = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        # An expression in an index has no name.
        named = [(column or "").casefold() for _, _, column in info]
        places = [place for place, column in enumerate(columns) if column.name in named]
        if len(places) == len(named):
            unique.append(tuple(places))
    if key:
        return list(dict.fromkeys(unique))

    # A name alone is no proof: the `id` in a table of grades may be the student's.
    for place, column in enumerate(columns):
        if not says_of_rows(table, column.name, _KEYS):
            continue
        name = quoted(column.written)
        query = f"SELECT count({name}) = count(DISTINCT {name}) FROM {quoted(table)}"
        with suppress(sqlite3.Error):
            if connection.execute(query).fetchone()[0]:
                column.is_key = True
                unique.append((place,))
                break
    return list(dict.fromkeys(unique))


def says_of_rows(table: str, column: str, what: str) -> bool:
    """Whether a column's name says this of the things in a table: ``id``, ``student_id`` and ``stuID`` of
    students, ``dept_name`` of departments.

    >>> [says_of_rows("students", name, "id|name") for name in ("stuid", "student_name", "town_name")]
    [True, True, False]
    """
    # "Ref_Property_Types" has things of which each is a property type.
    words = table.casefold().removeprefix("ref_")
    thing = re.sub("[^a-z0-9]", "", words)
    match = re.fullmatch(f"(.*?)({what})", re.sub("[^a-z0-9]", "", column))
    if match is None:
        return False
    is_short = 2 < len(match[1]) < 5 and re.match(".*".join(match[1]), thing) is not None
    singular = {thing.removesuffix(end) + instead for end, instead in _PLURALS}
    return is_short or match[1] in {"", *singular}


def references_of(
    connection: sqlite3.Connection,
    tables: Mapping[str, Table],
    joined: Sequence[tuple[str, str]],
) -> list[Reference]:
    """The references that are declared, and those that names or the gold show.

    joined: the names of columns with which the gold joins.
    """
    pairs = []
    for table in tables.values():
        if table.key is not None:
            key = table.columns[table.key].name
            # `id` and `name` are keys of their own table alone; `singer_id` is one wherever it stands.
            if key not in ("id", "name"):
                pairs.append((key, key))
    pairs += joined
    for first, second in joined:
        pairs.append((second, first))

    # What FOREIGN KEY and REFERENCES declare comes first, and then what names show.
    found: list[Reference] = []
    for name, table in tables.items():
        for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})"):
            _, _, parent_name, child_column, parent_column, *_ = row
            parent = tables.get(parent_name.casefold())
            index = table.index(child_column)
            if parent is None or index is None:
                continue
            target = parent.index(parent_column) if parent_column else None
            # Without a column, REFERENCES means the key.
            if target is None and parent.unique:
                target = parent.unique[0][0]
            if target is not None:
                found.append(Reference(name, index, parent_name.casefold(), target))
    for child, key in pairs:
        found += _to_key(tables, child, key)

    references: dict[tuple[str, int], Reference] = {}
    for reference in found:
        # A column refers to one alone.
        references.setdefault((reference.child, reference.column), reference)
    return list(references.values())


def _to_key(tables: Mapping[str, Table], child: str, key: str) -> Iterator[Reference]:
    """The references of the columns with one name to the key with another, or the same."""
    parents = []
    for name, table in tables.items():
        if table.key is not None and table.columns[table.key].name == key:
            parents.append((name, table.key))
    # of two tables with such a key it could be either
    if not parents or (child != key and len(parents) > 1):
        return
    parent, place = parents[0]
    for name, table in tables.items():
        index = table.index(child)
        if index is not None and name != parent and index != table.key:
            yield Reference(name, index, parent, place)
