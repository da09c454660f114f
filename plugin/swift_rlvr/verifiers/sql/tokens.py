"""A query as SQLite splits it into tokens, as far as a verifier has to look into one: what it asks to
be sorted, and which constants it compares with which columns.

What a query means says SQLite alone, which runs it. A query that is read wrongly here is tried on
databases that tell less, and nothing else.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[^\W\d][\w$]*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<sign><>|<=|>=|!=|==|\|\||->>?|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# What may follow ORDER BY, GROUP BY, WHERE and HAVING in a query.
_CLAUSES = frozenset(
    ("where", "group", "having", "order", "limit", "union", "intersect", "except", "window")
)


class Token(NamedTuple):
    """A token and its place: text, name, number or sign; depth: in how many brackets it stands, where
    a bracket stands outside of itself.
    """

    kind: str
    written: str
    depth: int

    @property
    def word(self) -> str:
        """A word of the language or a name in lower case, without its quotes."""
        if self.kind != "name":
            return self.written
        if self.written[0] in '"`[':
            return self.written[1:-1].casefold()
        return self.written.casefold()

    def is_word(self, word: str) -> bool:
        """Whether it is this word of the language, in lower case."""
        return self.is_keyword and self.word == word

    @property
    def is_keyword(self) -> bool:
        """Whether it could be a word of the language: a name without quotes."""
        return self.kind == "name" and self.written[0] not in '"`['


def tokens_of(query: str) -> list[Token]:
    """The tokens of a query, without white space and comments.

    >>> [token.written for token in tokens_of("SELECT a -- first\\nFROM t WHERE b>='x;y'")]
    ['SELECT', 'a', 'FROM', 't', 'WHERE', 'b', '>=', "'x;y'"]
    """
    tokens = []
    depth = 0
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or "sign"
        if kind == "space":
            continue
        written = match.group()
        if written == ")":
            depth -= 1
        tokens.append(Token(kind, written, depth))
        if written == "(":
            depth += 1
    return tokens


def written(tokens: Sequence[Token]) -> str:
    """The tokens as a query."""
    return " ".join(token.written for token in tokens)


def without_semicolons(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a query without those that end statements."""
    return [token for token in tokens if token.written != ";"]


def is_script(text: str) -> bool:
    """Whether a text is statements that make a database, and no path of one.

    >>> is_script("PRAGMA foreign_keys = ON; create table t(a)"), is_script("spider/create_table.sqlite")
    (True, False)
    """
    words = [token.word for token in tokens_of(text[:5000]) if token.is_keyword]
    return ("create", "table") in zip(words, words[1:], strict=False)


def is_ordered(tokens: Sequence[Token]) -> bool:
    """Whether the rows of a query have an order: ORDER BY stands outside of all brackets.

    >>> [is_ordered(tokens_of(f"SELECT a FROM {rest}")) for rest in ("t ORDER BY a", "(SELECT a FROM t ORDER BY b)")]
    [True, False]
    """
    return any(depth == 0 for _, _, depth in orders_of(tokens))


def with_ties_broken(tokens: Sequence[Token], tie: str) -> str | None:
    """The query with one more thing to sort by wherever that decides which rows come first, or
    which come at all: `tie`; None where nothing is sorted.

    >>> with_ties_broken(tokens_of("SELECT a FROM t ORDER BY b DESC LIMIT 1"), "tie()")
    'SELECT a FROM t ORDER BY b DESC , tie() LIMIT 1'
    """
    ends = []
    for _, end, depth in orders_of(tokens):
        is_cut = end < len(tokens) and tokens[end].word == "limit"
        if depth == 0 or is_cut:
            ends.append(end)
    if not ends:
        return None
    parts = [token.written for token in tokens]
    for end in sorted(ends, reverse=True):
        parts.insert(end, f", {tie}")
    return " ".join(parts)


def cut_terms(tokens: Sequence[Token]) -> set[str]:
    """The names and words, in lower case, of each ORDER BY that a LIMIT cuts.

    >>> sorted(cut_terms(tokens_of("SELECT a FROM t ORDER BY Age DESC LIMIT 1")))
    ['age', 'by', 'desc', 'order']
    """
    words = set()
    for start, end, _ in orders_of(tokens):
        if end < len(tokens) and tokens[end].word == "limit":
            words |= {token.word for token in tokens[start:end] if token.kind == "name"}
    return words


def without_limit(tokens: Sequence[Token]) -> tuple[list[Token], int] | None:
    """The query without its last LIMIT, and how many rows that lets through; None where it has none
    outside of brackets, or an OFFSET.

    >>> query, count = without_limit(tokens_of("SELECT a FROM t ORDER BY b LIMIT 3;"))
    >>> written(query), count
    ('SELECT a FROM t ORDER BY b', 3)
    """
    for index, token in enumerate(tokens):
        if token.is_word("limit") and token.depth == 0:
            match without_semicolons(tokens[index + 1 :]):
                case [Token(written=count)] if count.isdecimal():
                    return list(tokens[:index]), int(count)
    return None


def sort_terms(tokens: Sequence[Token]) -> list[list[Token]]:
    """What the rows of a query are sorted by, without ASC and DESC; empty where they have no order.

    >>> [written(term) for term in sort_terms(tokens_of("SELECT a FROM t ORDER BY max(b, c) DESC, 1 LIMIT 3"))]
    ['max ( b , c )', '1']
    """
    first = last = 0
    for start, end, depth in orders_of(tokens):
        if depth == 0:
            first, last = start + 2, end
    # A comma in brackets parts the arguments of a function.
    terms: list[list[Token]] = [[]]
    for token in tokens[first:last]:
        if token.depth == 0 and token.written == ",":
            terms.append([])
        else:
            terms[-1].append(token)
    sorted_by = []
    for term in terms:
        while term and term[-1].is_keyword and term[-1].word in ("asc", "desc"):
            term.pop()
        if term:
            sorted_by.append(term)
    return sorted_by


def with_columns(tokens: Sequence[Token], columns: Sequence[str]) -> str | None:
    """The query with further columns after its own; None where it is none that has just one list of
    columns, or where they would change which rows it gives.

    >>> with_columns(tokens_of("SELECT a FROM t ORDER BY b"), ["b"])
    'SELECT a , b FROM t ORDER BY b'
    """
    # A further column makes rows distinct that were not, and the parts of UNION unlike.
    outer = [token.word for token in tokens if token.depth == 0 and token.is_keyword]
    if {"distinct", "union", "intersect", "except", "values"} & {*outer}:
        return None
    parts = [token.written for token in tokens]
    for index, token in enumerate(tokens):
        if token.depth == 0 and token.is_word("from"):
            return " ".join([*parts[:index], ",", ", ".join(columns), *parts[index:]])
    return None


def orders_of(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int]]:
    """(its beginning, its end, its depth) of each ORDER BY of a query, but for those of windows."""
    for index, token in enumerate(tokens[:-1]):
        if not (token.is_word("order") and tokens[index + 1].word == "by"):
            continue
        if _is_of_window(tokens, index):
            continue
        yield index, end_of_clause(tokens, index), token.depth


def _is_of_window(tokens: Sequence[Token], index: int) -> bool:
    """Whether the bracket around a token is that of OVER, or of a function."""
    depth = tokens[index].depth
    for before in range(index - 1, -1, -1):
        if tokens[before].depth < depth:
            opener = tokens[before - 1] if before else None
            is_subquery = tokens[before + 1].word in ("select", "with", "values")
            return opener is not None and opener.kind == "name" and not is_subquery
    return False


def end_of_clause(tokens: Sequence[Token], start: int) -> int:
    """Where the clause ends that begins at a token."""
    depth = tokens[start].depth
    for index in range(start + 1, len(tokens)):
        token = tokens[index]
        if token.depth < depth or (token.depth == depth and token.written == ";"):
            return index
        if token.depth == depth and token.is_keyword and token.word in _CLAUSES:
            return index
    return len(tokens)


class Constant(NamedTuple):
    """A constant of a query, and the column that it may be compared with, in lower case, if there is
    one. The value None is NULL.
    """

    value: str | int | float | None
    column: str | None


def constants_of(tokens: Sequence[Token], columns: frozenset[str]) -> list[Constant]:
    """The constants of a query, each with the column named nearest before it, or after it where none
    is. A pattern of LIKE is a text that it fits.

    columns: all of the database, in lower case.

    >>> constants_of(tokens_of("SELECT 1 FROM t WHERE age > 56 AND name LIKE '%Joe%'"), frozenset(("age", "name")))[1:]
    [Constant(value=56, column='age'), Constant(value='Joe', column='name')]
    """
    constants = []
    nearest: str | None = None
    for index, token in enumerate(tokens):
        if token.kind == "name" and token.word in columns:
            nearest = token.word
            if token.written[0] != '"':
                continue
        value = value_of(token)
        is_null = token.is_word("null")
        if value is None and not is_null:
            continue
        near = nearest
        if near is None:
            near = next((each.word for each in tokens[index:] if each.word in columns), None)
        constants.append(Constant(value, near))
    return constants


def value_of(token: Token) -> str | int | float | None:
    """The value of a constant; a name in double quotes may be one too."""
    if token.kind == "number":
        try:
            return int(token.written)
        except ValueError:
            return float(token.written)
    if token.kind == "text" or token.written[0] == '"':
        quote = token.written[0]
        text = token.written[1:-1].replace(quote * 2, quote)
        return text.strip("%") if "%" in text else text
    return None


def equated_columns(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """The pairs of columns that a query joins by: ``a.x = b.y``, in lower case.

    >>> equated_columns(tokens_of("SELECT 1 FROM a JOIN b ON a.x = b.Y"))
    [('x', 'y')]
    """
    pairs = []
    for index in range(len(tokens) - 6):
        left, dot, first, sign, right, other_dot, second = tokens[index : index + 7]
        are_names = {left.kind, first.kind, right.kind, second.kind} == {"name"}
        if are_names and dot.written == other_dot.written == "." and sign.written in ("=", "=="):
            pairs.append((first.word, second.word))
    return pairs
