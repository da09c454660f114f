"""What of a query is read without running it."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_rlvr.verifiers.sql.mutants import mutants_of
from swift_rlvr.verifiers.sql.tokens import (
    constants_of,
    is_ordered,
    tokens_of,
    with_ties_broken,
    written,
)

COLUMNS = frozenset(("age", "name", "year"))


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order  by a limit 3", True),
        ("SELECT a FROM t UNION SELECT b FROM t ORDER BY 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT a FROM t -- ORDER BY a", False),
        ("SELECT 'ORDER BY a' FROM t", False),
        ('SELECT "order" FROM t', False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT a FROM t WHERE b = (SELECT max(b) FROM t ORDER BY 1 LIMIT 1)", False),
    ],
)
def test_only_the_outermost_order_counts(query, ordered):
    assert is_ordered(tokens_of(query)) is ordered


@pytest.mark.parametrize(
    ("query", "broken"),
    [
        ("SELECT a FROM t", None),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", None),
        ("SELECT rank() OVER (ORDER BY a) FROM t", None),
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a , tie()"),
        (
            "SELECT a FROM t WHERE b = (SELECT b FROM u ORDER BY c LIMIT 1)",
            "SELECT a FROM t WHERE b = ( SELECT b FROM u ORDER BY c , tie() LIMIT 1 )",
        ),
        ("SELECT a FROM t ORDER BY a;", "SELECT a FROM t ORDER BY a , tie() ;"),
    ],
)
def test_ties_are_broken_where_they_decide(query, broken):
    assert with_ties_broken(tokens_of(query), "tie()") == broken


@pytest.mark.parametrize(
    ("query", "constants"),
    [
        ("SELECT 1 WHERE age > 56", [(1, "age"), (56, "age")]),
        ("SELECT name FROM t WHERE year BETWEEN 5 AND 1.5", [(5, "year"), (1.5, "year")]),
        ("SELECT name FROM t WHERE name LIKE '%o''s%'", [("o's", "name")]),
        ('SELECT age FROM t WHERE name = "Joe"', [("Joe", "name")]),
        ("SELECT name FROM t WHERE age IS NULL", [(None, "age")]),
    ],
)
def test_constants_belong_to_the_column_before_them(query, constants):
    found = constants_of(tokens_of(query), COLUMNS)
    assert [(each.value, each.column) for each in found] == constants


def test_mutants_run_and_differ():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b)")
    queries = (
        "SELECT a, count(b) FROM t WHERE b > 3 AND a = 'x' GROUP BY a HAVING count(*) >= 2",
        "SELECT DISTINCT a FROM t WHERE NOT a IN (SELECT b FROM t) ORDER BY b LIMIT 1",
        "SELECT a FROM t LEFT JOIN (SELECT b AS c FROM t) ON c = a UNION SELECT sum(b) FROM t",
    )
    for query in queries:
        mutants = mutants_of(query, most=50)
        assert len(mutants) >= 5 and len(set(mutants)) == len(mutants)
        assert written(tokens_of(query)) not in mutants
        for mutant in mutants:
            connection.execute(mutant)


@given(st.text("SELECTORDBYabc0123'\"`[]()*/-.,;<>=!\n ", max_size=200))
@settings(deadline=None)
def test_any_text_is_read(text):
    tokens = tokens_of(text)
    is_ordered(tokens)
    with_ties_broken(tokens, "tie()")
    constants_of(tokens, COLUMNS)
    mutants_of(text, most=5)
