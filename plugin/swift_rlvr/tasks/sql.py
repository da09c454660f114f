"""Questions about a database, answered by a query: `sql:FILE`, in the columns of Spider, BIRD, SynSQL,
gretelai/synthetic_text_to_sql and b-mc2/sql-create-context.

The gold is `query`, `SQL`, `sql` or `answer`. The database is a file, FOLDER/DB_ID/DB_ID.sqlite, where
the variable SWIFT_RLVR_SQL_DATABASES names the folder and the column `db_id` the database; or a path
in `db_path`; or statements in `sql_context`, `context` or `schema`, which make it. The prompt is its
schema, BIRD's `evidence` and the question after the R1-Zero system prompt. `messages` stay as they are
if they name a table of the database; else schema and evidence stand before their last question. It
never shows the rows of a file; statements are shown as the row has them.
"""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import ColumnSettings, kept_columns, unused_passages, value_at
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM
from swift_rlvr.tasks.own import question_of
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    asked_text,
    columns_named,
    normalised,
    shown,
    turns_text,
    with_default_system,
)
from swift_rlvr.utils.settings import PREFIX, Settings, setting
from swift_rlvr.verifiers.sql.tokens import is_script, tokens_of
from swift_rlvr.verifiers.sql.verifier import SUFFIXES

# The usual names of the columns, the likeliest first, compared as `columns_named` does.
QUESTIONS = (
    *("question", "sql_prompt", "question_text", "nl_question", "natural_language", "utterance"),
    *("nl", "problem", "instruction", "input", "prompt", "messages"),
)
GOLDS = (
    *(
        "gold_sql",
        "query",
        "sql",
        "sql_query",
        "gold_query",
        "target_sql",
        "sql_statement",
        "answer",
    ),
    *("ground_truth", "reward_model.ground_truth", "output", "response", "solution", "completion"),
)
_DATABASE_IDS = ("db_id", "database_id", "db_name", "database_name", "db")
_PATHS = ("database", "db_path", "database_path", "db_file")
_STATEMENTS = ("database", "sql_context", "context", "schema", "create_table", "ddl", "db_schema")
_EVIDENCE = ("evidence", "external_knowledge", "knowledge", "hint")
_DATABASES = (*_STATEMENTS, *_PATHS[1:], *_DATABASE_IDS)
_VARIABLES = {"question": f"{PREFIX}QUESTION_COLUMN", "gold_sql": f"{PREFIX}ANSWER_COLUMN"}
_ASKED = "Answer with one SQLite query."
# Of a prompt; the schemas of BIRD have at most some 20,000 characters.
_LONGEST_SCHEMA = 60_000
_MADE = re.compile(
    r"""\bCREATE\s+(?:TEMP\w*\s+|VIRTUAL\s+)?(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?"""
    r"""(?P<name>"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w.]+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SqlSettings(Settings):
    """Where databases are."""

    sql_databases: str | None = setting(
        None, "The folder with the databases that db_id names: DB_ID/DB_ID.sqlite."
    )


def find_columns(present: Iterable[str]) -> dict[str, list[str]]:
    """For each column of the task the columns that may hold it, the likeliest first."""
    present = list(present)
    settings = ColumnSettings.from_environment()
    question, gold = settings.question_column, settings.answer_column
    return {
        "question": columns_named((question,) if question else QUESTIONS, present),
        "gold_sql": columns_named((gold,) if gold else GOLDS, present),
        "database": columns_named(_DATABASES, present),
    }


def _nothing_in(column: str, names: Sequence[str], row: Row, expected: str) -> RowError:
    where = ", ".join(names or map(str, row)) or "none"
    return RowError(
        column, f"no {expected} in the columns {where}; {_VARIABLES[column]} names another"
    )


def gold_of(row: Row) -> str:
    """The gold's query; RowError if there is none, or it writes.

    >>> gold_of({"query": "SELECT 1;", "sql": {"select": [False, []]}})
    'SELECT 1'
    """
    names = find_columns(row)["gold_sql"]
    for name in names:
        value = value_at(row, name)
        # Spider's `sql` is a parse tree, beside the text in `query`.
        if not isinstance(value, str):
            continue
        tokens = tokens_of(value)
        first = next((token for token in tokens if token.written != "("), None)
        if first is not None and first.word in ("select", "with", "values"):
            return value.strip().rstrip(";").strip()
        if first is not None and first.word in ("insert", "update", "delete", "create", "alter"):
            problem = f"it writes, and only what a query reads can be compared: {shown(value)}"
            raise RowError("gold_sql", problem, "the gold writes", in_file=name)
    raise _nothing_in("gold_sql", names, row, "query")


def database_of(row: Row) -> str:
    """The path of a row's database, or the statements that make one; RowError if there is
    neither.
    """
    # The likeliest first: statements need no file, and an id needs to know the folder.
    for name in columns_named(_STATEMENTS, row):
        statements = _text_at(row, name)
        if is_script(statements):
            return statements
    for name in columns_named(_PATHS, row):
        path = _text_at(row, name)
        if path:
            return _file(Path(path), name)
    for name in columns_named(_DATABASE_IDS, row)[:1]:
        database_id = _text_at(row, name)
        if database_id:
            return _file_of_id(database_id, name)
    expected = "statements in sql_context, a path in db_path or an id in db_id"
    raise RowError("database", f"expected {expected}; the row has {', '.join(map(str, row))}")


def _text_at(row: Row, name: str) -> str:
    """The text in a column; empty where there is none."""
    value = value_at(row, name)
    return value.strip() if isinstance(value, str) else ""


def _file_of_id(database_id: str, column: str) -> str:
    """The path of the database that db_id names."""
    folder = SqlSettings.from_environment().sql_databases
    if folder is None:
        problem = (
            f"{database_id!r} is a database of a folder, which {PREFIX}SQL_DATABASES has to name"
        )
        raise RowError("database", problem, in_file=column)
    # Spider and BIRD have a folder for each database; a flat folder is what people make of them.
    places = []
    for suffix in SUFFIXES:
        name = f"{database_id}{suffix}"
        places += [Path(folder, database_id, name), Path(folder, name)]
    existing = [place for place in places if _is_file(place)]
    return _file(existing[0] if existing else places[0], column)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that none can have
        return False


def _file(path: Path, column: str) -> str:
    path = path.expanduser()
    if not _is_file(path):
        problem = f"there is no file {str(path)!r:.300}"
        raise RowError("database", problem, "the database is missing", in_file=column)
    return str(path.absolute())


def schema_of(database: str) -> str:
    """The statements that make a database, as a prompt shows them; RowError for a file that is no
    database.
    """
    return database if is_script(database) else _schema_of_file(database)


@lru_cache(maxsize=1024)
def _schema_of_file(path: str) -> str:
    statements = []
    try:
        # Immutable, so that one in WAL mode can be read in a folder that cannot be written to.
        place = Path(path).as_uri()
        with closing(sqlite3.connect(f"{place}?mode=ro&immutable=1", uri=True)) as connection:
            made = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view')"
            ).fetchall()
    except sqlite3.Error as error:
        raise RowError("database", f"{path} cannot be read: {error}") from None
    for name, statement in made:
        if not name.startswith("sqlite_"):
            statements.append(f"{statement};")
    return "\n\n".join(statements)


def _question(row: Row) -> tuple[str, Any]:
    """The name and the value of the column with the question."""
    names = find_columns(row)["question"]
    for name in names:
        value = value_at(row, name)
        if isinstance(value, (list, tuple)) and value:
            return name, value
        if isinstance(value, str) and value.strip():
            return name, value.strip()
    raise _nothing_in("question", names, row, "question")


def messages_of(row: Row) -> list[dict[str, Any]]:
    """The messages of a row without the assistant's answer at the end, else one of the user."""
    _, question = _question(row)
    messages = None if isinstance(question, str) else question_of(question)
    schema = schema_of(database_of(row))
    # Another trainer's prompt may hold the schema already, in a notation of its own.
    if messages is not None and _shows_a_table(messages, schema):
        return messages
    if len(schema) > _LONGEST_SCHEMA:
        problem = f"its schema has {len(schema):,} characters, more than {_LONGEST_SCHEMA:,}"
        raise RowError("database", problem, "the schema is too long")
    parts = [f"This is a SQLite database:\n\n```\n{schema}\n```"]
    for name in columns_named(_EVIDENCE, row)[:1]:
        evidence = _text_at(row, name)
        if evidence:
            parts.append(f"What to know: {evidence}")
    if messages is None:
        parts += [question, _ASKED]
        return [{"role": "user", "content": "\n\n".join(parts)}]
    *before, last = messages
    parts.append(str(last["content"]))
    return [*before, {**last, "content": "\n\n".join(parts)}]


def _shows_a_table(messages: list[dict[str, Any]], schema: str) -> bool:
    """Whether a table or view of the schema is named in the turns."""
    text = turns_text(messages).casefold()
    for statement in _MADE.finditer(schema):
        name = statement["name"].strip('"`[]').casefold()
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return True
    return False


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `database`, `gold_sql` and `task`."""
    messages = with_default_system(messages_of(row), R1_ZERO_SYSTEM)
    text = turns_text(messages)
    return {
        "messages": messages,
        "database": database_of(row),
        "gold_sql": gold_of(row),
        "task": "sql",
        **kept_columns(row, text, ""),
    }


def identity(row: Row) -> str:
    """The same text for rows that ask the same: of two databases the same question is another one."""
    return normalised(f"{database_of(row)}\n{asked_text(messages_of(row))}")


def gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    messages_of(row)
    database_of(row)
    return Gold(gold_of(row))


@dataclass(frozen=True)
class SqlTask(Task):
    """A task whose columns may be called anything that is usual."""

    any_columns: ClassVar[bool] = True

    def find_columns(self, present: Iterable[str]) -> Mapping[str, list[str]]:
        return find_columns(present)

    def unused(self, row: Row) -> list[str]:
        name, _ = _question(row)
        prompt = turns_text(messages_of(row))
        known = (*GOLDS, *_DATABASES, "query_toks", "question_toks")
        return unused_passages(row, [name, *columns_named(known, row)], prompt)

    def names_of(self, column: str) -> Sequence[str]:
        return {"question": QUESTIONS, "gold_sql": GOLDS, "database": _DATABASES}[column]

    def variable_of(self, column: str) -> str | None:
        return _VARIABLES.get(column)


TASK = SqlTask(
    name="sql",
    columns=("question", "gold_sql", "database"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=R1_ZERO_SYSTEM,
    reward_columns=("database", "gold_sql"),
    verifier="external_sql",
    examples=(
        {
            "question": "How many heads of the departments are older than 56?",
            "context": "CREATE TABLE head (age INTEGER, name VARCHAR)",
            "answer": "SELECT COUNT(*) FROM head WHERE age > 56",
        },
        {
            "sql_prompt": "Which rivers are longer than 1,000 km, the longest first?",
            "sql_context": "CREATE TABLE river (name TEXT, km INT); INSERT INTO river VALUES ('Rhine', 1233), "
            "('Main', 525), ('Elbe', 1094);",
            "sql": "SELECT name FROM river WHERE km > 1000 ORDER BY km DESC",
        },
    ),
)
