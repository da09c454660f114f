"""How long a completion is: in tokens where the trainer hands them over, otherwise in characters.

ms-swift hands over `response_token_ids`, a list of token ids a completion, or a list of such lists, one for each turn;
TRL hands over `completion_ids`. Outside of a training there is only the text.
"""

from collections.abc import Sequence
from numbers import Integral

TOKEN_COLUMNS = ("response_token_ids", "completion_ids")


def token_ids(*columns: object) -> Sequence[int] | None:
    """Return the token ids of a completion from the first of the values that holds some, those of all turns in one row.

    Args:
        columns: the row's values of `TOKEN_COLUMNS`. What is no list of whole numbers is passed over, and so is an
            empty list, with which ms-swift says that the ids are not known.

    >>> token_ids(None, [5, 6, 7]), token_ids([[5, 6], [7]], None), token_ids([], "567")
    ([5, 6, 7], [5, 6, 7], None)
    """
    for value in columns:
        if not isinstance(value, (list, tuple)) or not value:
            continue
        if all(issubclass(kind, (list, tuple)) for kind in set(map(type, value))):
            value = [token for turn in value for token in turn]
        if value and all(_is_whole_number(kind) for kind in set(map(type, value))):
            return value
    return None


def completion_length(text: str | None, *columns: object) -> int:
    """Return the number of tokens, or of characters where no column holds token ids; 0 where there is no text.

    >>> completion_length("four", [1, 2]), completion_length("four", None, None), completion_length(None)
    (2, 4, 0)
    """
    tokens = token_ids(*columns)
    return len(text or "") if tokens is None else len(tokens)


def with_unit(text: str | None, *columns: object) -> str:
    """Say the length in words.

    >>> with_unit("four", [1, 2]), with_unit("four", None)
    ('2 tokens', '4 characters')
    """
    unit = "characters" if token_ids(*columns) is None else "tokens"
    return f"{completion_length(text, *columns)} {unit}"


def _is_whole_number(kind: type) -> bool:
    return issubclass(kind, Integral) and kind is not bool
