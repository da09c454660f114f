"""The length of a completion: in tokens where the trainer passes them, otherwise in characters.

ms-swift passes `response_token_ids`, for each completion a list of token ids or a list of such lists, one per turn; TRL
passes `completion_ids`. Outside of training there is only the text.
"""

from collections.abc import Sequence
from numbers import Integral

from swift_rlvr.rewards.base import Row

TOKEN_COLUMNS = ("response_token_ids", "completion_ids")


def token_ids(row: Row) -> Sequence[int] | None:
    """Return the token ids of a completion, those of all turns in one list, or None where the row has none.

    They come from the first of `TOKEN_COLUMNS` that holds some. A value that is not a list of whole numbers is skipped,
    and so is an empty list, with which ms-swift says that the ids are unknown.

    >>> token_ids({"completion_ids": [5, 6, 7]}), token_ids({"response_token_ids": [[5, 6], [7]]})
    ([5, 6, 7], [5, 6, 7])
    >>> token_ids({"response_token_ids": [], "completion_ids": "567"}) is None
    True
    """
    for name in TOKEN_COLUMNS:
        value = row.get(name)
        if not isinstance(value, (list, tuple)) or not value:
            continue
        if all(issubclass(cls, (list, tuple)) for cls in set(map(type, value))):
            value = [token for turn in value for token in turn]
        if value and all(_is_whole_number(cls) for cls in set(map(type, value))):
            return value
    return None


def completion_length(text: str | None, row: Row) -> int:
    """Return the number of tokens, or of characters where the row has no token ids; 0 where there is no text.

    >>> completion_length("four", {"completion_ids": [1, 2]}), completion_length("four", {})
    (2, 4)
    """
    tokens = token_ids(row)
    return len(text or "") if tokens is None else len(tokens)


def with_unit(text: str | None, row: Row) -> str:
    """The length with its unit, for people.

    >>> with_unit("four", {"completion_ids": [1, 2]}), with_unit("four", {})
    ('2 tokens', '4 characters')
    """
    unit = "characters" if token_ids(row) is None else "tokens"
    return f"{completion_length(text, row)} {unit}"


def _is_whole_number(cls: type) -> bool:
    return issubclass(cls, Integral) and cls is not bool
