"""Run queries that a policy wrote on databases, and compare what they give with the gold's.

`queries.queries_in` says which text of a completion is its query, and `verifier.verify_all` judges
completions: a `Verdict` each. A query is right where it gives the gold's rows on the database of its
row, and on further ones with that schema (`further`), so that no query is right by chance.

>>> script = "CREATE TABLE t(a INT); INSERT INTO t VALUES (1), (2), (2)"
>>> rows = [(script, "SELECT count(*) FROM t")] * 3
>>> answers = ["SELECT count(a) FROM t", "SELECT 3 FROM t LIMIT 1", "SELECT max(a) + 1 FROM t"]
>>> [verdict.reason for verdict in verify_all([f"<answer>{each}</answer>" for each in answers], rows)]
['correct', 'right by chance', 'right by chance']

A query cannot

- **do anything but read**: SQLite's authorizer refuses ATTACH, PRAGMA, whatever writes, functions that
  load or draw, and SQLite's own tables; the file is opened as one that never changes, and its process
  can write nothing, start nothing and reach nothing (`code.lockdown`);
- **find the gold**: it is in no database, and no query of a policy meets another one;
- **take the machine's time or memory**: the steps of SQLite's machine are counted, its memory, the
  length of texts and the number of rows are limited, and a process that computes for too long is
  ended.

Known limits:

- A bug in SQLite's C code that a query could use would reach the gold's rows, which are in the same
  process, and nothing outside of it.
- Two queries are told apart by the databases that are tried. A query that differs from the gold only
  for rows that none of them has is right.
- The other way round, rows that are made for an empty or a small table may be such as the dataset's
  author did not think of. A gold that is right only for the rows of its own database then refuses
  another right query. `Limits.databases` = 0 leaves it at that database.
"""

from swift_rlvr.verifiers.sql.queries import queries_in
from swift_rlvr.verifiers.sql.verifier import Verdict, verify_all

__all__ = ["Verdict", "queries_in", "verify_all"]
