"""Which text of a completion is its query."""

import re

from swift_rlvr.verifiers.answers import answer_scope, fenced_blocks, last_answer
from swift_rlvr.verifiers.sql.tokens import tokens_of, written

_LANGUAGES = ("sql", "sqlite", "sqlite3")
# What a query begins with, also after brackets and comments.
_BEGINNING = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values)\b", re.IGNORECASE | re.DOTALL
)


def queries_in(text: str) -> list[str]:
    """The different queries that a completion gives as its answer; all but one are too many.

    They are the fenced blocks that are labelled as SQL, of the last answer block or else after the
    thinking; where none is labelled so, those without a label. Without any block the answer block is
    the query, and without that one a text that begins as a query does.

    >>> queries_in("<think>SELECT 1</think>So:\\n```sql\\nSELECT 2;\\n```"), queries_in("<answer>SELECT 3</answer>")
    (['SELECT 2;'], ['SELECT 3'])
    >>> queries_in("```sql\\nSELECT 1\\n```\\nor\\n```sql\\nSELECT 2\\n```"), queries_in("It is 7.")
    (['SELECT 1', 'SELECT 2'], [])
    """
    scope = answer_scope(text)
    closed, unclosed = fenced_blocks(scope)
    blocks = [*closed, unclosed] if unclosed is not None else closed
    if not blocks:
        is_query = last_answer(text) is not None or _BEGINNING.match(scope)
        return [scope.strip()] if is_query and scope.strip() else []
    labelled = [block for block in blocks if block.language in _LANGUAGES]
    chosen = labelled or [block for block in blocks if not block.language]
    different: dict[str, str] = {}
    for block in chosen:
        query = "\n".join(block.lines).strip()
        tokens = [token for token in tokens_of(query) if token.written != ";"]
        if tokens:
            different.setdefault(written(tokens), query)
    return list(different.values())
