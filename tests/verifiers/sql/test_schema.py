"""What is read of a row's database: keys, references, groups of columns, and which rows come first."""

import pytest

from swift_rlvr.verifiers.sql.connection import open_script
from swift_rlvr.verifiers.sql.schema import read_schema
from swift_rlvr.verifiers.sql.tables import Column
from swift_rlvr.verifiers.sql.tokens import tokens_of

SCRIPT = """
CREATE TABLE visit (visit_id INT, guest TEXT REFERENCES guest, room_no INT, nights INT, UNIQUE (guest, nights));
CREATE TABLE room (no INT PRIMARY KEY, floor INT, boss_no INT REFERENCES room(no));
CREATE TABLE guest (name TEXT PRIMARY KEY, born DATE);
CREATE UNIQUE INDEX lower_names ON guest (lower(name));
INSERT INTO room VALUES (1, 0, NULL), (2, 5, 1), (3, 7, 1);
INSERT INTO visit VALUES (1, 'Ann', 3, 2), (2, 'Bob', 1, 9), (3, 'Ann', 2, 4);
INSERT INTO guest VALUES ('Ann', '2001-02-03'), ('Bob', NULL);
"""
GOLD = (
    "SELECT v.guest FROM visit v JOIN room r ON v.room_no = r.no WHERE r.floor = 7 AND v.nights > 1"
)


@pytest.fixture(scope="module")
def schema():
    return read_schema(open_script(SCRIPT, 10**6), tokens_of(GOLD), {"visit", "room"})


def columns_of(schema, table):
    return {column.name: column for column in schema.tables[table].columns}


def test_keys_are_the_declared_ones_and_those_that_are_called_so(schema):
    assert {name: table.unique for name, table in schema.tables.items()} == {
        "visit": [(1, 3), (0,)],
        "room": [(0,)],
        "guest": [(0,)],
    }
    assert [table.distinct for table in schema.tables.values()] == [[0], [0], [0]]
    rows = [
        (1, "Ann", 3, 2),
        (1, "Bob", 1, 9),
        (2, "Ann", 1, 2),
        (3, None, 1, 2),
        (None, None, 1, 2),
    ]
    kept = schema.tables["visit"].without_repeated_keys(rows)
    assert kept == [rows[0], rows[3], rows[4]]


def test_references_and_the_order_that_they_ask_for(schema):
    assert {(each.child, each.column, each.parent) for each in schema.references} == {
        ("visit", 1, "guest"),
        ("visit", 2, "room"),  # which the gold joins
        ("room", 2, "room"),
    }
    order = schema.parents_first
    assert order.index("guest") < order.index("visit") and sorted(order) == sorted(schema.tables)


def test_columns_that_share_values_are_one_group(schema):
    visit, room, guest = (columns_of(schema, name) for name in ("visit", "room", "guest"))
    assert visit["room_no"].group is room["no"].group is room["boss_no"].group
    assert visit["guest"].group is guest["name"].group
    assert visit["room_no"].group.is_fixed and not visit["nights"].group.is_fixed
    assert room["floor"].group.compared == [7, 6, 8]
    assert visit["nights"].group.compared == [1, 0, 2]


def test_rows_with_a_constant_of_the_gold_come_first(schema):
    room = schema.tables["room"]
    assert (room.rows[0], room.fitting) == ((3, 7, 1), 1)
    assert [row[0] for row in room.rows] == [3, 1, 2]
    assert schema.without_rows().tables["room"].rows == [] and room.rows


@pytest.mark.parametrize(
    ("type", "name", "present", "first"),
    [
        ("INTEGER", "age", (), 1),
        ("", "id", (), 1),
        ("", "town_id", (), 1),
        ("TEXT", "year", (), 1995),
        ("BOOLEAN", "year", (), 0),
        ("DATETIME", "at", (), "2018-03-04"),
        ("TEXT", "birth_date", (), "2018-03-04"),
        ("TIME", "at", (), "08:15:00"),
        ("VARCHAR(20)", "city", (), "amber"),
        ("CHARACTER REAL", "x", (), "amber"),
        ("DOUBLE", "fee", (), 0.5),
        ("BLOB", "valid", (), "amber"),
        ("TEXT", "fee", (10, None, 4), 12),
        ("TEXT", "fee", (10, "x"), "amber"),
    ],
)
def test_what_a_column_may_hold(type, name, present, first):
    assert Column(name, name, type, False).usual_values(present)[0] == first


@pytest.mark.parametrize(
    ("table", "columns", "key", "labels"),
    [
        ("singer", "name, singer_id", 1, [0]),
        ("Students", "fname, StuID", 1, []),
        ("Ref_Property_Types", "property_type_description, property_type_code", 1, [0]),
        ("departments", "budget, dept_name, id", 2, [1]),
        # of things of another table
        ("singer_in_concert", "singer_id, concert_id", None, []),
        ("countrylanguage", "CountryCode, Language", None, []),
        ("matches", "winner_name, year", None, []),
    ],
)
def test_keys_and_names_of_things_are_found_by_what_they_are_called(table, columns, key, labels):
    reader = open_script(f"CREATE TABLE {table} ({columns})", 1_000_000)
    (found,) = read_schema(
        reader, tokens_of(f"SELECT 1 FROM {table}"), {table.casefold()}
    ).tables.values()
    reader.close()
    assert found.unique == ([] if key is None else [(key,)])
    assert found.labels == labels
