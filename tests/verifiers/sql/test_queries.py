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
        ("<answer>The final query is:\nSELECT 1</answer>", ["SELECT 1"]),
        ("SQL Query: SELECT 1", ["SELECT 1"]),
        ("<answer>The wrong query is: SELECT 1</answer>", ["The wrong query is: SELECT 1"]),
        ("<answer>SELECT 1 ;;\n; </answer>", ["SELECT 1;"]),
        (BLOCK.format("SELECT ';;';;"), ["SELECT ';;';"]),
        # Other statements beside a query are not the answer; without a query they are.
        (f"{BLOCK.format('SELECT 1')}\n{BLOCK.format('CREATE INDEX i ON t(a)')}", ["SELECT 1"]),
        (f"{BLOCK.format('CREATE TABLE t(a)')}\n{BLOCK.format('/**/SELECT 1')}", ["/**/SELECT 1"]),
        (BLOCK.format("DROP TABLE t"), ["DROP TABLE t"]),
        # A fence that is opened and closed on one line.
        ("<answer>```sql SELECT `a` FROM t```</answer>", ["SELECT `a` FROM t"]),
        ("It is ```SELECT 1```, I think.", ["SELECT 1"]),
        ("<answer>```SELECT 1``` or ```sql SELECT 2```</answer>", ["SELECT 1", "SELECT 2"]),
        # A fence behind other text, and one that is closed behind the query
        ("Final SQL: ```sql\nSELECT 1\n```", ["SELECT 1"]),
        ("1. ```sql\n   SELECT 1\n   ```", ["SELECT 1"]),
        ("```sql\nSELECT 1;```", ["SELECT 1;"]),
        ("Answer: ```sql\nSELECT 1```\nor\n```sql\nSELECT 2\n```", ["SELECT 1", "SELECT 2"]),
        # What words deny is no answer, and leaves another query as the only one.
        ("Not ```sql SELECT 1```", []),
        ("Not ```sql\nSELECT 1\n```", []),
        ("The answer is not `SELECT 1`.", []),
        ("<answer>not `SELECT 1`</answer>", []),
        ("`SELECT 1` is wrong.", []),
        (f"It is not:\n{BLOCK.format('SELECT 1')}", []),
        (f"Do not use\n{BLOCK.format('SELECT 1')}", []),
        (f"This query would be wrong:\n{BLOCK.format('SELECT 1')}", []),
        (f"Here is an incorrect query:\n{BLOCK.format('SELECT 1')}", []),
        (f"A wrong query would be:\n{BLOCK.format('SELECT 1')}\nI know none.", []),
        (f"Die Antwort ist nicht:\n{BLOCK.format('SELECT 1')}", []),
        (f"不是：\n{BLOCK.format('SELECT 1')}", []),
        (f"{BLOCK.format('SELECT 1')}\nis wrong.", []),
        (f"{BLOCK.format('SELECT 1')}\nWait, this query is not correct.", []),
        (f"{BLOCK.format('SELECT 1')}\nor not", []),
        (f"{BLOCK.format('SELECT 1')}\nThis is wrong:\n{BLOCK.format('SELECT 2')}", []),
        (f"Not {BLOCK.format('SELECT 1')}\nbut\n{BLOCK.format('SELECT 2')}", ["SELECT 2"]),
        (f"{BLOCK.format('SELECT 1')}\nor `SELECT 2`", ["SELECT 1", "SELECT 2"]),
        (f"{BLOCK.format('SELECT 1')}\nor SELECT 2", ["SELECT 1", "SELECT 2"]),
        # Words that deny something else
        (f"This does not count those who are null:\n{BLOCK.format('SELECT 1')}", ["SELECT 1"]),
        (
            f"The singers that have songs, and those that do not:\n{BLOCK.format('SELECT 1')}",
            ["SELECT 1"],
        ),
        (
            f"Voici les chanteurs en France qui n'en ont pas :\n{BLOCK.format('SELECT 1')}",
            ["SELECT 1"],
        ),
        (f"I mend the wrong query:\n{BLOCK.format('SELECT 1')}", ["SELECT 1"]),
        (f"If you do not want `LIKE`, use:\n{BLOCK.format('SELECT 1')}", ["SELECT 1"]),
        (f"{BLOCK.format('SELECT 1')}\nIt is not case sensitive.", ["SELECT 1"]),
        (f"{BLOCK.format('SELECT 1')}\nThis is not the fastest way.", ["SELECT 1"]),
        (f"{BLOCK.format('SELECT 1')}\nNo rows are counted twice.", ["SELECT 1"]),
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
