"""Which text of a completion is its query."""

import re
from collections.abc import Iterable, Sequence

from swift_rlvr.verifiers.answers import Block, answer_scope, fenced_blocks, last_answer
from swift_rlvr.verifiers.denials import is_denied
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
_NAMES = "|".join((*_LANGUAGES, *_DIALECTS))
# A fence that closes a block behind its query, "LIMIT 1```"; in Markdown it has a line of its own.
_CLOSES_BEHIND_TEXT = re.compile(
    rf"^([^\n`]*```[ \t]*(?:{_NAMES})[ \t]*\r?\n(?:(?!```).)*[^\s`])[ \t]*(?=```[ \t]*$)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
# A query on one line, in single backticks or in a fence.
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|```([^\n]+?)```")
# Another query behind a block: or SELECT 2, or `SELECT 2`
_OR_ANOTHER = re.compile(r"[\s,.]*\bor:?\s+`{0,3}((?:select|values\s*\()[^`\n]*)", re.IGNORECASE)
# What a query begins with, also after brackets and comments.
_BEGINNING = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values)\b", re.IGNORECASE | re.DOTALL
)
# "sql" before a query is the label of a block without its fence, and "The final query is:" says as little.
_LABEL = re.compile(
    rf"""\A\s*(?:(?:{_NAMES}):?|(?:the\ )?(?:final\ |correct\ |sql\ )*(?:answer|query)(?:\ is)?:)
    (?=\s)(?={_BEGINNING.pattern})""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def queries_in(text: str) -> list[str]:
    """The different queries that a completion gives as its answer; all but one are too many.

    They are the fenced blocks that are labelled as SQL, of the last answer block or else after the
    thinking; where none is labelled so, those labelled as a dialect of SQL, and else those without a
    label. Without any block the answer block is the query, and without that one a text that begins as
    a query does, or else what stands in backticks on one line and does. What the words around it deny is
    no answer.

    >>> queries_in("<think>SELECT 1</think>So:\\n```sql\\nSELECT 2;\\n```"), queries_in("<answer>SELECT 3</answer>")
    (['SELECT 2;'], ['SELECT 3'])
    >>> queries_in("```sql\\nSELECT 1\\n```\\nor\\n```sql\\nSELECT 2\\n```"), queries_in("It is 7.")
    (['SELECT 1', 'SELECT 2'], [])
    """
    scope = _CLOSES_BEHIND_TEXT.sub(r"\1\n", answer_scope(text))
    closed, unclosed = fenced_blocks(scope)
    blocks = [*closed, unclosed] if unclosed is not None else closed
    for languages in (_LANGUAGES, _DIALECTS, ("",)):
        if any(block.language in languages for block in blocks):
            queries = []
            for block, (start, end) in zip(blocks, _places(scope, blocks), strict=True):
                if block.language not in languages or is_denied(scope, start, end):
                    continue
                queries.append("\n".join(block.lines))
                another = _OR_ANOTHER.match(scope, end)
                if another:
                    queries.append(another[1])
            # Beside a query other statements show the tables, or an index that would make it faster.
            asking = [query for query in queries if _BEGINNING.match(query)]
            return _different(asking or queries)
    if blocks:
        return []

    query = _LABEL.sub("", scope).strip()
    if _BEGINNING.match(query):
        return [_without_empty_statements(query)]
    inline, is_any_denied = _inline_queries(query)
    if inline or is_any_denied:
        return _different(inline)
    return [query] if query and last_answer(text) is not None else []


def _places(scope: str, blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Where each block begins, with its fence, and ends."""
    places = []
    end = 0
    for block in blocks:
        line = scope.index(block.fence.string, end)
        start = line + block.fence.start(1)
        content = line + len(block.fence.string)
        closing = re.compile(rf"\n[ \t]*{block.fence[1]}[^\n]*").search(scope, content)
        end = closing.end() if closing else len(scope)
        places.append((start, end))
    return places


def _inline_queries(text: str) -> tuple[list[str], bool]:
    """The queries that stand in backticks on one line, and whether there are some that are denied."""
    queries = []
    is_any_denied = False
    for match in _INLINE.finditer(text):
        query = _LABEL.sub("", match[1] or match[2])
        # `SELECT` alone names a word.
        if not _BEGINNING.match(query) or len(tokens_of(query)) <= 1:
            continue
        if is_denied(text, *match.span()):
            is_any_denied = True
        else:
            queries.append(query)
    return queries, is_any_denied


def _different(texts: Iterable[str]) -> list[str]:
    """The queries among some texts, each once, however it is spaced."""
    different: dict[str, str] = {}
    for text in texts:
        query = _without_empty_statements(text)
        tokens = without_semicolons(tokens_of(query))
        if tokens:
            different.setdefault(written(tokens), query)
    return list(different.values())


def _without_empty_statements(text: str) -> str:
    """A query with one semicolon at its end, if any: of two the second would end another statement."""
    query = text.strip()
    return query.rstrip("; \t\r\n") + ";" if query.endswith(";") else query
