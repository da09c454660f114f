"""What must be there: narrows the types of values that may be None, and fails where one is."""

from collections.abc import Iterable
from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """The value, which must not be None."""
    assert value is not None
    return value


def all_present(values: Iterable[Value | None]) -> list[Value]:
    """The values, none of which may be None."""
    return [present(value) for value in values]
