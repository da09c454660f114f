"""Further databases: what holds on the row's own holds there, and they are the same everywhere."""

import sqlite3

import pytest

from swift_rlvr.verifiers.sql.connection import open_file, open_script
from swift_rlvr.verifiers.sql.further import BESIDE, build, rows_of
from swift_rlvr.verifiers.sql.schema import read_schema
from swift_rlvr.verifiers.sql.tokens import tokens_of

SCRIPT = """
CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT UNIQUE, country TEXT);
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, town_id INT REFERENCES town(id), age INT, "last visit" DATE);
CREATE VIEW adult AS SELECT * FROM person WHERE age >= 18;
"""
TOWNS = [(n, f"town {n}", f"country {n % 3}") for n in range(1, 13)]
PEOPLE = [(n, f"person {n}", n % 12 + 1, n * 7 % 60, None) for n in range(1, 60)]
GOLD = "SELECT p.name FROM person p JOIN town t ON t.id = p.town_id WHERE t.name = 'town 7' AND p.age > 21"


@pytest.fixture
def script():
    rows = [f"INSERT INTO town VALUES {row};" for row in TOWNS]
    rows += [f"INSERT INTO person VALUES {row};".replace("None", "NULL") for row in PEOPLE]
    return SCRIPT + "\n".join(rows)


def schema_of(script, gold=GOLD):
    return read_schema(open_script(script, 10**7), tokens_of(gold), {"person", "town"})


@pytest.mark.parametrize("number", range(10))
def test_what_holds_for_all_rows_holds_there(script, number):
    rows = rows_of(schema_of(script), number)
    towns, people = rows["town"], rows["person"]
    assert people and len({row[0] for row in people}) == len(people)
    # Each person's town is there, and no key has another one's values.
    assert {row[2] for row in people} <= {row[0] for row in towns}
    assert len({row[1] for row in towns}) == len(towns)
    # A value stands for one value: who has the same age has it still.
    ages: dict[int, int] = {}
    for row in people:
        age = next(each[3] for each in PEOPLE if each[0] == row[0])
        assert ages.setdefault(age, row[3]) == row[3]
    if number % 2 == 0:
        assert {*people} <= {*PEOPLE} and {*towns} <= {*TOWNS}


@pytest.mark.parametrize("number", range(BESIDE, BESIDE + 6))
def test_values_beside_those_that_there_are_keep_what_holds(script, number):
    rows = rows_of(schema_of(script), number)
    towns, people = rows["town"], rows["person"]
    assert people and len({row[0] for row in people}) == len(people)
    assert {row[2] for row in people} <= {row[0] for row in towns}
    ages: dict[int, int] = {}
    for row in people:
        age = next(each[3] for each in PEOPLE if each[0] == row[0])
        assert ages.setdefault(age, row[3]) == row[3]
    assert len({*ages.values()}) == len(ages) and min(ages.values()) >= 0
    assert ages.get(21, 21) == 21 and any(age != new for age, new in ages.items())


def test_the_rows_of_the_gold_are_there(script):
    schema = schema_of(script)
    assert schema.tables["town"].rows[0] == TOWNS[6]
    towns = [rows_of(schema, number)["town"] for number in range(6)]
    assert sum(TOWNS[6] in rows for rows in towns) >= 2
    ages = {row[3] for number in range(10) for row in rows_of(schema, number)["person"]}
    # beside the constant of the gold, though none of the table's rows is there
    assert {20, 21, 22} & ages


def test_rows_are_made_for_empty_tables():
    schema = schema_of(SCRIPT)
    rows = rows_of(schema, 3)
    assert len(rows["town"]) > 3 and len(rows["person"]) > 3
    assert {row[2] for row in rows["person"]} <= {row[0] for row in rows["town"]}
    gold = 0
    for number in range(10):
        reader = build(schema, rows_of(schema, number))
        gold += len(reader.run(GOLD, 100_000, 100).rows) > 0
        assert reader.run("SELECT count(*) FROM adult", 100_000, 10).rows[0][0] >= 0
        reader.close()
    assert gold >= 3


def test_the_same_row_has_the_same_databases(script, tmp_path):
    first, second = schema_of(script), schema_of(script)
    assert [rows_of(first, number) for number in range(4)] == [
        rows_of(second, number) for number in range(4)
    ]
    path = tmp_path / "town.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    of_file = read_schema(open_file(str(path)), tokens_of(GOLD), {"person", "town"})
    assert rows_of(of_file, 1) == rows_of(first, 1)
