"""A connection to SQLite by which queries of a policy can read a database, and do nothing else.

SQLite itself holds every limit. Its authorizer allows to read tables, to call functions and to
recurse, so nothing can be written, attached, loaded or set. Steps of its virtual machine are counted
instead of seconds: a query that stays within its steps does so on any machine, busy or not.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from swift_rlvr.verifiers.sql.clock import asks_clock, stop_clock
from swift_rlvr.verifiers.sql.results import Result, Row

# What SQLite calls when it compiles a query (sqlite.org/c3ref/c_alter_table.html).
_PRAGMA, _READ, _SELECT, _ATTACH, _DETACH, _FUNCTION, _RECURSIVE = 19, 20, 21, 24, 25, 31, 33
# Functions that give another result each time, tell something of the connection, or do more than
# compute.
_REFUSED_FUNCTIONS = frozenset(
    ("random", "randomblob", "load_extension", "fts3_tokenizer", "changes", "total_changes")
    + ("last_insert_rowid", "writefile", "readfile", "edit", "eval")
)
# Tables that are not the database's own.
_REFUSED_TABLES = ("sqlite_", "pragma_", "dbstat")
# Grows, or falls, with each row: the last thing to sort by, where a gold leaves ties.
TIE = "swift_rlvr_tie()"
_TIE_NAME = TIE.removesuffix("()")
_STEPS = 1000  # of the virtual machine, between two looks
LONGEST_VALUE = 10_000_000  # bytes of a text or a blob
# ... of queries, where the gold needs no longer one: what one step does takes the square of it.
LONGEST_USUAL = 250_000
_MOST_CHARACTERS = 64_000_000  # of all rows
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_BATCH = 500  # rows that are fetched at a time


class QueryError(Exception):
    """A query that gives no result.

    Attributes:
        reason: one of the reasons below.
    """

    def __init__(self, reason: str, detail: str = ""):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


DOES_NOT_RUN = "does not run"
REFUSED = "more than reading"
SEVERAL = "several statements"
TOO_SLOW = "too slow"
TOO_LARGE = "result too large"
NO_MEMORY = "too much memory"

# What SQLite and Python raise for a query (a Warning for two of them in Python 3.11), and the reasons by
# what their messages have.
_ERRORS = (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError, OverflowError)
_REASONS = {
    "one statement at a time": SEVERAL,
    "out of memory": NO_MEMORY,
    "too big": TOO_LARGE,
}


class Reader:
    """A database and what may be done with it.

    Attributes:
        tables: those that the last query reads, in lower case.
        steps_made: by the last query, to the thousand.
        longest_value: bytes of a text or a blob that a query may make or read.
    """

    def __init__(
        self, connection: sqlite3.Connection, file: str | None = None, clock_stands: bool = False
    ):
        """file: as `connect` takes it; None for a database in memory. clock_stands: see `clock`; it is
        slower, so that only queries that need it are run so.
        """
        self.connection = connection
        self._file = file
        self._clock_stands = clock_stands
        self._twin: Reader | None = None
        self.tables: set[str] = set()
        self.longest_value = LONGEST_VALUE
        self.refused = ""
        self.steps_made = 0
        self._steps = 0
        self._has_stopped = False
        self._ties = count(0, 0)
        self._breaks_ties = False
        connection.isolation_level = None
        # Texts of a database need not be in UTF-8.
        connection.text_factory = lambda value: value.decode("utf-8", "replace")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
        for pragma in ("temp_store=MEMORY", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")
        if clock_stands:
            stop_clock(connection)
        connection.create_function(_TIE_NAME, 0, lambda: next(self._ties))
        # The first use makes the table, which the authorizer would take for CREATE.
        connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        self._confine()

    def close(self) -> None:
        self.connection.close()
        if self._twin is not None:
            self._twin.close()

    def _confine(self) -> None:
        self.connection.set_authorizer(None)
        self.connection.execute("PRAGMA query_only=ON")
        self.connection.set_authorizer(self._authorize)
        self.connection.set_progress_handler(self._step, _STEPS)

    @contextmanager
    def unconfined(self) -> Iterator[sqlite3.Connection]:
        """The connection for what this package does with it: the steps are still counted."""
        self.connection.set_authorizer(None)
        self.connection.execute("PRAGMA query_only=OFF")
        try:
            yield self.connection
        finally:
            self._confine()

    def allow(self, steps: int) -> None:
        """From now on so many steps may be made."""
        self._steps = steps // _STEPS + 1
        self._has_stopped = False

    def run(self, query: str, steps: int, most_rows: int, ties: int = 0) -> Result:
        """What a query gives, which may make so many steps.

        ties: 1 or -1, the order in which rows come that are equal but for `TIE`; 0 refuses that
        function.

        Raises QueryError, also for more rows than `most_rows`.
        """
        if asks_clock(query) and not self._clock_stands:
            # On a second connection, where it is `NOW` at all times: its functions of dates are Python's
            # and ten times as slow, also for queries that do not ask for the time.
            if self._twin is None:
                if self._file:
                    connection = connect(self._file, uri=True)
                else:
                    connection = connect(":memory:")
                    with self.unconfined() as source:
                        source.backup(connection)
                self._twin = Reader(connection, clock_stands=True)
            twin = self._twin
            twin.longest_value = self.longest_value
            result = twin.run(query, steps, most_rows, ties)
            self.tables, self.steps_made = twin.tables, twin.steps_made
            return result
        self.allow(steps)
        self.tables = set()
        self.refused = ""
        self._ties = count(0, ties)
        self._breaks_ties = ties != 0
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.longest_value)
        try:
            cursor = self.connection.execute(query)
            if cursor.description is None:
                raise QueryError(DOES_NOT_RUN, "there is no query in it")
            columns = tuple(column[0] for column in cursor.description)
            rows: list[Row] = []
            characters = 0
            while batch := cursor.fetchmany(_BATCH):
                rows += batch
                if len(rows) > most_rows:
                    raise QueryError(TOO_LARGE, f"more than {most_rows:,} rows")
                for value in chain.from_iterable(batch):
                    if isinstance(value, (str, bytes)):
                        characters += len(value)
                if characters > _MOST_CHARACTERS:
                    raise QueryError(TOO_LARGE, f"more than {_MOST_CHARACTERS:,} characters")
            return Result(columns, rows)
        except _ERRORS as error:
            raise self._query_error(error) from None
        finally:
            self.steps_made = steps - self._steps * _STEPS
            self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)

    def _query_error(self, error: Exception) -> QueryError:
        if self.refused:
            return QueryError(REFUSED, self.refused)
        if self._has_stopped:
            return QueryError(TOO_SLOW)
        message = str(error)
        reason = NO_MEMORY if isinstance(error, MemoryError) else DOES_NOT_RUN
        for part, reason_of_part in _REASONS.items():
            if part in message:
                reason = reason_of_part
        details = {
            NO_MEMORY: "",
            TOO_LARGE: f"a text of more than {self.longest_value:,} bytes",
        }
        return QueryError(reason, details.get(reason, message[:300]))

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        by: str | None,
    ) -> int:
        if action == _READ:
            table = (first or "").casefold()
            if not table.startswith(_REFUSED_TABLES):
                self.tables.add(table)
                return sqlite3.SQLITE_OK
            self.refused = f"it reads {first}"
        elif action == _FUNCTION:
            name = (second or "").casefold()
            is_own = name == _TIE_NAME and not self._breaks_ties
            if not (is_own or name in _REFUSED_FUNCTIONS or name.startswith("sqlite_")):
                return sqlite3.SQLITE_OK
            self.refused = f"it calls {name}()"
        elif action in (_SELECT, _RECURSIVE):
            return sqlite3.SQLITE_OK
        else:
            self.refused = "it does more than to read tables"
        return sqlite3.SQLITE_DENY

    def _step(self) -> int:
        self._steps -= 1
        self._has_stopped = self._steps <= 0
        return int(self._has_stopped)


def connect(place: str, uri: bool = False) -> sqlite3.Connection:
    """A connection that compiles each query anew: the authorizer sees none that Python has kept."""
    return sqlite3.connect(place, uri=uri, cached_statements=0)


def open_file(path: str) -> Reader:
    """A database in a file, read as it is: nothing is locked, and nothing of a journal is applied.

    QueryError where it cannot be opened.
    """
    # Of a path in a URI, what means something there is escaped.
    file = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    try:
        reader = Reader(connect(file, uri=True), file)
        with reader.unconfined() as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        raise QueryError(DOES_NOT_RUN, f"{path} cannot be read: {error}") from None
    return reader


def open_script(script: str, steps: int) -> Reader:
    """A database of its own in memory, made by the statements of a row, such as CREATE TABLE and
    INSERT. QueryError where one of them fails.
    """

    def authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
        """Rows bring statements, and those must not reach other files either."""
        if action == _PRAGMA:
            # It has no effect: dumps of databases begin with some.
            return sqlite3.SQLITE_IGNORE
        is_refused = action == _FUNCTION and (second or "").casefold() in _REFUSED_FUNCTIONS
        if action in (_ATTACH, _DETACH) or is_refused:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    reader = Reader(connect(":memory:"))
    reader.allow(steps)
    problem = ""
    with reader.unconfined() as connection:
        connection.set_authorizer(authorize)
        try:
            connection.executescript(script)
        except (sqlite3.Error, ValueError) as error:
            problem = f"the database: {error}"
    if problem:
        reader.close()
        raise QueryError(DOES_NOT_RUN, problem)
    return reader


def set_memory(memory: int) -> None:
    """Let SQLite use no more than so many bytes in this process."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA hard_heap_limit={memory}")
    connection.close()
