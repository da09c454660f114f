"""Queries that differ from a gold in one place, as a wrong answer may: what further databases have to tell
from it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from swift_rlvr.verifiers.sql.tokens import (
    Token,
    end_of_clause,
    orders_of,
    tokens_of,
    value_of,
    without_semicolons,
)

# What a wrong answer may have in place of a sign or a word of the language.
_INSTEAD = {
    ">": ">=",
    ">=": ">",
    "<": "<=",
    "<=": "<",
    "=": "<>",
    "==": "<>",
    "<>": "=",
    "!=": "=",
    "and": "OR",
    "or": "AND",
    "max": "min",
    "min": "max",
    "sum": "avg",
    "avg": "sum",
    "desc": "ASC",
    "asc": "DESC",
    "left": "INNER",
    "union": "UNION ALL",
    "intersect": "UNION",
    "except": "UNION",
}
# With these after SELECT, no row comes twice.
_NEVER_TWICE = frozenset(("distinct", "count", "sum", "avg", "min", "max"))
# (the first token that goes, the first one that stays, what stands there instead)
_Change = tuple[int, int, str]


def mutants_of(query: str, most: int) -> list[str]:
    """Queries that differ from one in a single place: another constant, MIN for MAX, a condition less, no
    DISTINCT. They may mean the same, or nothing.

    >>> mutants_of("SELECT max(a) FROM t WHERE b > 3", most=9)
    ['SELECT min ( a ) FROM t WHERE b > 3', 'SELECT max ( a ) FROM t', 'SELECT max ( a ) FROM t WHERE b >= 3', \
'SELECT max ( a ) FROM t WHERE b > 4']
    """
    tokens = without_semicolons(tokens_of(query))
    texts = [token.written for token in tokens]
    mutants: dict[str, None] = {}
    for start, end, instead in _changes(tokens):
        between = [instead] if instead else []
        mutants[" ".join(texts[:start] + between + texts[end:])] = None
    # From all parts of a long query: the first of them would change SELECT alone.
    step = max(1, -(-len(mutants) // most))
    return list(mutants)[::step]


def _changes(tokens: Sequence[Token]) -> Iterator[_Change]:
    """What a wrong answer may have changed: one token, the order of the rows, or whether they are
    distinct.
    """
    for index in range(len(tokens)):
        change = _change_at(tokens, index)
        if change is not None:
            yield change
    # A text that begins or contains another, in place of the same text.
    for index, (token, operand) in enumerate(pairwise(tokens)):
        text = value_of(operand)
        if not isinstance(text, str) or not text:
            continue
        escaped = text.replace("'", "''")
        if token.written in ("=", "=="):
            yield index, index + 2, f"LIKE '{escaped}%'"
            # as `length(x) = 6 AND x LIKE 'F%'`, too
            yield index, index + 2, f"LIKE '{escaped[:1]}{'_' * (len(text) - 1)}'"
        elif token.is_word("like") and "%" in operand.written:
            yield index, index + 2, f"= '{escaped}'"
    for start, end, _ in orders_of(tokens):
        if tokens[end - 1].word not in ("asc", "desc"):
            yield end, end, "DESC"
        yield start, end, ""

    # DISTINCT changes an outer SELECT whose rows may come twice: those of groups hardly ever do.
    if any(token.is_word("group") for token in tokens):
        return
    for index, token in enumerate(tokens[:-1]):
        is_outer = token.is_word("select") and token.depth == 0
        if is_outer and tokens[index + 1].word not in _NEVER_TWICE:
            yield index + 1, index + 1, "DISTINCT"


def _change_at(tokens: Sequence[Token], index: int) -> _Change | None:
    """What a wrong answer may have in place of a token; None for one that is right in every answer."""
    token = tokens[index]
    match value_of(token):
        case int(number):
            return index, index + 1, str(number + 1)
        case float():
            return index, index + 1, f"({token.word} * 1.5)"
        case str():
            return index, index + 1, "'zzz'"
    if token.kind == "name" and not token.is_keyword:
        return None
    following = [each.word for each in tokens[index + 1 : index + 3]]
    match token.word, following:
        case "where" | "having" | "limit", _:
            # without the clause
            return index, end_of_clause(tokens, index), ""
        case "distinct" | "not", _:
            return index, index + 1, ""
        case "count", ["(", counted] if counted not in ("*", ")", "distinct"):
            return index + 2, index + 2, "DISTINCT"
        case "union", ["all", *_]:
            return index, index + 2, "UNION"
    other = _INSTEAD.get(token.word)
    return None if other is None else (index, index + 1, other)
