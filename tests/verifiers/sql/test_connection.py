"""What a query can do to a database, and what ends it."""

import sqlite3

import pytest

from swift_rlvr.verifiers.sql.connection import (
    DOES_NOT_RUN,
    REFUSED,
    SEVERAL,
    TOO_LARGE,
    TOO_SLOW,
    QueryError,
    open_file,
    open_script,
)

SCRIPT = "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y')"
COUNTING = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "


@pytest.fixture
def reader():
    reader = open_script(SCRIPT, steps=100_000)
    yield reader
    reader.close()


def reason_of(reader, query, steps=2_000_000, most_rows=100):
    try:
        reader.run(query, steps, most_rows)
    except QueryError as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM t", None),
        ("SELECT * FROM t;", None),
        ("SELECT value FROM json_each('[1, 2]')", None),
        ("SELECT b FROM t WHERE b LIKE 'x%' AND length(b) = 1", None),
        # more than reading
        ("INSERT INTO t VALUES (3, 'z')", REFUSED),
        ("UPDATE t SET b = 'z'", REFUSED),
        ("DELETE FROM t", REFUSED),
        ("DELETE FROM t RETURNING a", REFUSED),
        ("WITH c AS (SELECT 1) INSERT INTO t SELECT 9, 'z'", REFUSED),
        ("DROP TABLE t", REFUSED),
        ("CREATE TABLE u (a)", REFUSED),
        ("CREATE TEMP TABLE u AS SELECT 1", REFUSED),
        ("CREATE VIEW v AS SELECT 1", REFUSED),
        ("ALTER TABLE t RENAME TO u", REFUSED),
        ("ATTACH DATABASE '/etc/passwd' AS p", REFUSED),
        ("DETACH DATABASE main", REFUSED),
        ("VACUUM INTO '/tmp/copy.sqlite'", REFUSED),
        ("PRAGMA query_only = OFF", REFUSED),
        ("PRAGMA writable_schema = ON", REFUSED),
        ("SELECT * FROM pragma_table_info('t')", REFUSED),
        ("SELECT sql FROM sqlite_master", REFUSED),
        ("SELECT sql FROM sqlite_schema", REFUSED),
        ("SELECT * FROM dbstat", REFUSED),
        ("SELECT load_extension('x')", REFUSED),
        ("SELECT random()", REFUSED),
        ("SELECT hex(randomblob(9))", REFUSED),
        ("SELECT last_insert_rowid()", REFUSED),
        ("SELECT sqlite_version()", REFUSED),
        ("SELECT swift_rlvr_tie()", REFUSED),
        ("BEGIN", REFUSED),
        ("ANALYZE", REFUSED),
        # several statements
        ("SELECT 1; SELECT 2", SEVERAL),
        ("SELECT 1; DROP TABLE t", SEVERAL),
        # no query
        ("", DOES_NOT_RUN),
        ("-- nothing", DOES_NOT_RUN),
        ("SELEC 1", DOES_NOT_RUN),
        ("SELECT c FROM t", DOES_NOT_RUN),
        ("SELECT readfile('/etc/passwd')", DOES_NOT_RUN),
        ("SELECT 'a\0b'", DOES_NOT_RUN),
        ("SELECT '\ud800'", DOES_NOT_RUN),
        ("SELECT ?", DOES_NOT_RUN),
        # no end, and no room
        (f"{COUNTING}SELECT count(*) FROM c", TOO_SLOW),
        (f"{COUNTING}SELECT max(x) FROM c", TOO_SLOW),
        ("SELECT count(*) FROM " + ", ".join(f"t AS t{n}" for n in range(40)), TOO_SLOW),
        (f"{COUNTING}SELECT x FROM c", TOO_LARGE),
        ("SELECT zeroblob(999999999)", TOO_LARGE),
        ("SELECT replace(hex(zeroblob(4000000)), '0', '00')", TOO_LARGE),
        (f"{COUNTING}SELECT zeroblob(9000000) FROM c LIMIT 50", TOO_LARGE),
    ],
)
def test_what_a_query_can_do(reader, query, reason):
    assert reason_of(reader, query) == reason
    assert reader.run("SELECT * FROM t", 1000, 10).rows == [(1, "x"), (2, "y")]


def test_a_query_is_refused_the_second_time_too(reader):
    """Python keeps compiled statements, of which the authorizer would not be asked again."""
    with reader.unconfined() as connection:
        connection.execute("SELECT sql FROM sqlite_master").fetchall()
    assert [reason_of(reader, "SELECT sql FROM sqlite_master") for _ in range(2)] == [REFUSED] * 2
    for _ in range(2):
        reader.run("SELECT count(*) FROM t", 1000, 10)
        assert reader.tables == {"t"}


def test_the_clock_stands_still(reader):
    query = "SELECT date('now'), datetime(), current_timestamp, strftime('%Y', 'now', '-1 year')"
    expected = ("2025-01-01", "2025-01-01 12:00:00", "2025-01-01 12:00:00", "2024")
    assert reader.run(query, 1000, 10).rows == [expected]
    assert reader.run("SELECT date('2020-02-28', '+1 day')", 1000, 10).rows == [("2020-02-29",)]


def test_the_clock_of_a_file_stands_still_too(tmp_path):
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCRIPT)
    reader = open_file(str(path))
    for _ in range(2):
        query = "SELECT strftime('%Y', CURRENT_DATE) - a FROM t"
        assert reader.run(query, 10_000, 10).rows == [(2024,), (2023,)]
        assert reader.tables == {"t"}
    reason = reason_of(reader, "SELECT date('now') FROM sqlite_master")
    assert reason == REFUSED
    reader.close()


def test_a_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "a b#c?.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCRIPT)
        connection.execute("INSERT INTO t VALUES (3, CAST(x'ff61' AS TEXT))")
    before = path.read_bytes()
    reader = open_file(str(path))
    # not UTF-8
    assert reader.run("SELECT b FROM t", 1000, 10).rows[2] == ("\ufffda",)
    assert reason_of(reader, "DELETE FROM t") == REFUSED
    reader.close()
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]
    (tmp_path / "text.sqlite").write_text("This is no database, though its name says so. " * 30)
    with pytest.raises(QueryError, match="text.sqlite cannot be read"):
        open_file(str(tmp_path / "text.sqlite"))


def test_a_dump_of_a_database_is_read():
    script = f"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n{SCRIPT};\nCOMMIT;"
    reader = open_script(script, steps=100_000)
    assert reader.run("SELECT count(*) FROM t", 1000, 10).rows == [(2,)]
    reader.close()


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (a); ATTACH '/tmp/other.sqlite' AS o",
        "CREATE TABLE t (a); INSERT INTO u VALUES (1)",
        f"CREATE TABLE t (a); INSERT INTO t {COUNTING}SELECT x FROM c",
        "CREATE TABLE t (a",
    ],
)
def test_statements_of_a_row_stay_in_memory_and_end(script):
    with pytest.raises(QueryError, match="the database"):
        open_script(script, steps=100_000)
