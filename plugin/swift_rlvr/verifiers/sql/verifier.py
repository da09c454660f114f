"""Completions with their rows in, verdicts out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.limits import usable_cores
from swift_rlvr.verifiers.sql import connection, grading, processes, results
from swift_rlvr.verifiers.sql.grading import Limits
from swift_rlvr.verifiers.sql.queries import queries_in
from swift_rlvr.verifiers.sql.tokens import is_script

BAD_GOLD, NO_QUERY, SEVERAL_QUERIES = "bad gold", "no query", "several queries"
TOO_LONG, CORRECT = "query too long", grading.CORRECT
# Of the file of a database.
SUFFIXES = (".sqlite", ".sqlite3", ".db")
_LONGEST_QUERY = 20_000  # characters; people's have at most some 2,000
# Reason -> what has to hold, in the order in which it is checked.
RULES = {
    BAD_GOLD: "the gold runs on the database, and gives another result on further ones",
    NO_QUERY: "a query is stated after the thinking",
    SEVERAL_QUERIES: "it is the only one",
    TOO_LONG: f"it has at most {_LONGEST_QUERY:,} characters",
    connection.SEVERAL: "it is one statement",
    connection.REFUSED: "it does nothing but read",
    connection.DOES_NOT_RUN: "SQLite runs it",
    connection.TOO_SLOW: "it ends within its steps and its time",
    connection.NO_MEMORY: "it ends within its memory",
    connection.TOO_LARGE: "its texts and blobs are no longer than SQLite may make them",
    grading.CONSTANT: "it reads a table, as the gold does",
    results.WRONG_COLUMNS: "it gives as many columns as the gold",
    results.WRONG_ROWS: "it gives the gold's rows",
    results.WRONG_ORDER: "they come in the gold's order",
    grading.BY_CHANCE: "it gives the gold's rows on further databases too",
}
LIMITS = Limits(
    million_steps=50, most_rows=100_000, databases=4, tolerance=1e-6, any_column_order=False
)
SECONDS = 10.0
MEMORY_MB = 256


_Row = tuple[str, str]  # its database and its gold


class Verdict(NamedTuple):
    """What is said of an answer.

    Attributes:
        reason: one of `RULES`, or `CORRECT`.
        query: the query; None where there is none, or more than one.
        place: the number of the database that tells it from the gold, 0 for the row's own.
        missing, further: the first rows that it lacks, and those that it has beside the gold's, as
            text.
    """

    reason: str
    query: str | None = None
    detail: str = ""
    place: int = 0
    missing: Sequence[str] = ()
    further: Sequence[str] = ()


def verify_all(
    texts: Sequence[str | None],
    rows: Sequence[tuple[object, object]],
    limits: Limits = LIMITS,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
    workers: int = 0,
) -> list[Verdict]:
    """Judge each completion by its row, database and gold; equal queries for a row are run once.

    workers: processes; 0 is one for each core.

    InputError where the file of a database is not there.
    """
    # For each completion its row, and its query or the verdict where there is none.
    asked: list[tuple[_Row | None, str | Verdict]] = []
    # The queries for each row. Also one that gets none is looked at: whether a row can be graded does
    # not depend on an answer.
    by_row: dict[_Row, dict[str, None]] = {}
    for text, (database, gold) in zip(texts, rows, strict=True):
        problem = _problem_of(database, gold)
        if problem is not None:
            asked.append((None, Verdict(BAD_GOLD, detail=problem)))
            continue
        row = (str(database), str(gold))
        query = _query_of(text)
        asked.append((row, query))
        queries = by_row.setdefault(row, {})
        if isinstance(query, str):
            queries[query] = None

    # A job has all answers to a row, whose databases take longer to make than most answers to run.
    jobs = [processes.Job(*row, list(queries)) for row, queries in by_row.items()]
    workers = workers or usable_cores()
    bad_golds: dict[_Row | None, Verdict] = {}
    verdicts: dict[tuple[_Row | None, str], Verdict] = {}
    reports = processes.run(jobs, limits, seconds, memory_mb, workers)
    for row, job, (about_row, *answered) in zip(by_row, jobs, reports, strict=True):
        if "bad_gold" in about_row:
            bad_golds[row] = Verdict(BAD_GOLD, detail=about_row["bad_gold"])
            continue
        for query, report in zip(job.answers, answered, strict=True):
            verdicts[row, query] = Verdict(query=query, **report)

    result = []
    for row_of_text, query in asked:
        if row_of_text in bad_golds:
            result.append(bad_golds[row_of_text])
        else:
            result.append(query if isinstance(query, Verdict) else verdicts[row_of_text, query])
    return result


def remarks_on(database: object, gold: object, limits: Limits = LIMITS) -> list[str]:
    """What people should know of a row before they train on it: why it cannot be graded, or that ties
    decide what its gold gives.
    """
    problem = _problem_of(database, gold)
    if problem is not None:
        return [problem]
    job = processes.Job(str(database), str(gold), [])
    ((about_row, *_),) = processes.run([job], limits, SECONDS, MEMORY_MB, usable_cores())
    return [about_row["bad_gold"]] if "bad_gold" in about_row else about_row["remarks"]


def _query_of(text: str | None) -> str | Verdict:
    """The query that is to be run, or the verdict where there is none."""
    queries = queries_in(text or "")
    if not queries:
        return Verdict(NO_QUERY)
    if len(queries) > 1:
        return Verdict(SEVERAL_QUERIES, detail=f"{len(queries)} that differ")
    (query,) = queries
    if len(query) > _LONGEST_QUERY:
        return Verdict(TOO_LONG, query[:_LONGEST_QUERY], f"it has {len(query):,}")
    return query


def _problem_of(database: object, gold: object) -> str | None:
    """Why a row cannot be graded; InputError for a file that is not there."""
    if not isinstance(gold, str) or not gold.strip():
        return f"expected a query, got {gold!r:.60}"
    if not isinstance(database, str) or not database.strip():
        return f"expected the path of a database or statements that make one, got {database!r:.60}"
    if is_script(database) or os.path.isfile(database):
        return None
    # A folder that is not there would make None of every row: the run must not go on.
    if Path(database).suffix in SUFFIXES and "\n" not in database:
        raise InputError(f"there is no file {database!r}", "database")
    return f"expected the path of a database or CREATE statements, got {database!r:.60}"
