"""Which text of a completion is its query."""

import re
from collections.abc import Iterable

from swift_rlvr.verifiers.answers import answer_scope, fenced_blocks, last_answer
from swift_rlvr.verifiers.sql.tokens import tokens_of, without_semicolons, written

_LANGUAGES = ("sql", "sqlite", "sqlite3")
# Whose queries are mostly SQLite's too.
_DIALECTS = (
    "mysql",
    "mariadb",
    "postgresql",
    "postgres",
    "psql",
    "pgsql",
    "plsql",
    "tsql",
    "duckdb",
)
# A query on one line, in single backticks or in a fence.
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|```([^\n]+?)```")
# What a query begins with, also after brackets and comments.
_BEGINNING = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values)\b", re.IGNORECASE | re.DOTALL
)
# "sql" before a query is the label of a block without its fence.
_LABEL = re.compile(
    rf"\A\s*(?:{'|'.join((*_LANGUAGES, *_DIALECTS))}):?(?=\s)(?={_BEGINNING.pattern})",
    re.IGNORECASE | re.DOTALL,
)


def queries_in(text: str) -> list[str]:
    """The different queries that a completion gives as its answer; all but one are too many.

    They are the fenced blocks that are labelled as SQL, of the last answer block or else after the
    thinking; where none is labelled so, those labelled as a dialect of SQL, and else those without a
    label. Without any block the answer block is the query, and without that one a text that begins as
    a query does, or else what stands in backticks on one line and does.

    >>> queries_in("<think>SELECT 1</think>So:\\n```sql\\nSELECT 2;\\n```"), queries_in("<answer>SELECT 3</answer>")
    (['SELECT 2;'], ['SELECT 3'])
    >>> queries_in("```sql\\nSELECT 1\\n```\\nor\\n```sql\\nSELECT 2\\n```"), queries_in("It is 7.")
    (['SELECT 1', 'SELECT 2'], [])
    """
    scope = answer_scope(text)
    closed, unclosed = fenced_blocks(scope)
    blocks = [*closed, unclosed] if unclosed is not None else closed
    for languages in (_LANGUAGES, _DIALECTS, ("",)):
        labelled = ["\n".join(block.lines) for block in blocks if block.language in languages]
        if labelled:
            return _different(labelled)
    if blocks:
        return []

    query = _LABEL.sub("", scope).strip()
    if _BEGINNING.match(query):
        return [query]
    inline = _inline_queries(query)
    if inline:
        return _different(inline)
    return [query] if query and last_answer(text) is not None else []


def _inline_queries(text: str) -> list[str]:
    """The queries that stand in backticks on one line."""
    queries = []
    for match in _INLINE.finditer(text):
        query = _LABEL.sub("", match[1] or match[2])
        # `SELECT` alone names a word.
        if _BEGINNING.match(query) and len(tokens_of(query)) > 1:
            queries.append(query)
    return queries


def _different(texts: Iterable[str]) -> list[str]:
    """The queries among some texts, each once, however it is spaced."""
    different: dict[str, str] = {}
    for text in texts:
        query = text.strip()
        tokens = without_semicolons(tokens_of(query))
        if tokens:
            different.setdefault(written(tokens), query)
    return list(different.values())
