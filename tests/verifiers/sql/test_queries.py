"""Which text of a completion is its query."""

import pytest

from swift_rlvr.verifiers.sql.queries import queries_in

BLOCK = "```sql\n{}\n```"


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("<think>SELECT 1</think><answer>SELECT 2</answer>", ["SELECT 2"]),
        ("<answer>SELECT 1</answer><answer>SELECT 2</answer>", ["SELECT 2"]),
        (f"<answer>\n{BLOCK.format('SELECT 1')}\n</answer>", ["SELECT 1"]),
        (f"So:\n{BLOCK.format('SELECT 1;')}\nThis counts.", ["SELECT 1;"]),
        ("```SQLite\nSELECT 1\n```", ["SELECT 1"]),
        ("```\nSELECT 1\n```", ["SELECT 1"]),
        ("```\nname | age\n```\n```sql\nSELECT 1\n```", ["SELECT 1"]),
        ("```sql\nSELECT 1", ["SELECT 1"]),
        ("SELECT a\nFROM t", ["SELECT a\nFROM t"]),
        ("-- first\nWITH a AS (SELECT 1) SELECT * FROM a", None),
        # The same query twice, written in two ways, is one.
        (f"{BLOCK.format('SELECT  1')}\n{BLOCK.format('SELECT 1 ; -- one')}", ["SELECT  1"]),
        (f"{BLOCK.format('SELECT 1')}\n{BLOCK.format('SELECT 2')}", ["SELECT 1", "SELECT 2"]),
        (f"{BLOCK.format('SELECT 1')}\n```sql\nSELECT 2", ["SELECT 1", "SELECT 2"]),
        ("```mysql\nSELECT 1\n```", ["SELECT 1"]),
        ("<answer>```PostgreSQL\nSELECT 1\n```</answer>", ["SELECT 1"]),
        ("```mysql\nSELECT 1\n```\n```sqlite\nSELECT 2\n```", ["SELECT 2"]),
        ("<answer>`SELECT 1`</answer>", ["SELECT 1"]),
        ("`SELECT 1`", ["SELECT 1"]),
        ("Using `SELECT` it is `SELECT 1`.", ["SELECT 1"]),
        ("<answer>`SELECT 1` or `SELECT 2`</answer>", ["SELECT 1", "SELECT 2"]),
        ("<answer>SELECT `SELECT 1` FROM `a b`</answer>", ["SELECT `SELECT 1` FROM `a b`"]),
        ("<answer>sql\nSELECT 1</answer>", ["SELECT 1"]),
        ("SQLite:\nSELECT 1", ["SELECT 1"]),
        ("<answer>SQL: SELECT 1</answer>", ["SELECT 1"]),
        ("<answer>SQL: none</answer>", ["SQL: none"]),
        # A fence that is opened and closed on one line.
        ("<answer>```sql SELECT `a` FROM t```</answer>", ["SELECT `a` FROM t"]),
        ("It is ```SELECT 1```, I think.", ["SELECT 1"]),
        ("<answer>```SELECT 1``` or ```sql SELECT 2```</answer>", ["SELECT 1", "SELECT 2"]),
        ("```python\nprint('SELECT 1')\n```", []),
        (BLOCK.format("-- nothing"), []),
        ("<think>SELECT 1", []),
        (f"<think>\n{BLOCK.format('SELECT 1')}\n</think>\nI am done.", []),
        ("The query is SELECT 1", []),
        ("<answer></answer>", []),
        ("", []),
    ],
)
def test_where_queries_are_found(text, queries):
    assert queries_in(text) == ([text] if queries is None else queries)
