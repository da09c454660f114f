"""The length of a completion: in tokens where the trainer passes them, otherwise in characters.

ms-swift passes `response_token_ids`, for each completion a list of token ids or a list of such lists, one per turn; TRL
passes `completion_ids`. Outside of training there is only the text.
"""

from collections.abc import Sequence
from numbers import Integral

from swift_rlvr.rewards.grade import Row

TOKEN_COLUMNS = ("response_token_ids", "completion_ids")
UNITS = ("characters", "tokens")


def token_ids(row: Row) -> Sequence[int] | None:
    """Return the token ids of a completion, those of all turns in one list, or None where the row has none.

    A column is skipped if it is not a list of whole numbers, or empty, with which ms-swift says that they are unknown.

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
        if value and all(issubclass(cls, Integral) and cls is not bool for cls in set(map(type, value))):
            return value
    return None


def completion_length(text: str | None, row: Row, unit: str = "tokens") -> tuple[int, str]:
    """Return the length and its unit: "tokens" if that is asked for and the row has token ids, else "characters".

    >>> completion_length("four", {"completion_ids": [1, 2]}), completion_length("four", {})
    ((2, 'tokens'), (4, 'characters'))
    """
    tokens = token_ids(row) if unit == "tokens" else None
    return (len(text or ""), "characters") if tokens is None else (len(tokens), "tokens")
