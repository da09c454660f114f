"""What kind of value a gold or an answer is, for those who treat numbers and words differently."""

from collections.abc import Iterable
from enum import StrEnum
from itertools import chain

from swift_rlvr.verifiers.mathematics.numeric import symbols
from swift_rlvr.verifiers.mathematics.reading import read
from swift_rlvr.verifiers.mathematics.sentences import in_words, stated_value
from swift_rlvr.verifiers.mathematics.values import (
    Choice,
    Expression,
    Family,
    Matrix,
    Number,
    Quantity,
    Relation,
    Several,
    Value,
    Words,
    name_of,
)


class Kind(StrEnum):
    """The kind of a value. Of a value with several parts the first one here that a part has."""

    NUMBERS = "numbers"  # also \sqrt2, x = 5 and sets of numbers
    LETTER = "a letter"
    EXPRESSION = "an expression"  # with a variable
    WORDS = "words"


def kind_of(text: str) -> Kind | None:
    r"""The kind of the value that a text is, or that its one sentence states. Returns None if
    it cannot be read.

    >>> [str(kind_of(text)) for text in ("7", r"2\\sqrt{2}", "x = 5", "(1, 2)", "Tom has 5 apples.", "B")]
    ['numbers', 'numbers', 'numbers', 'numbers', 'numbers', 'a letter']
    >>> [str(kind_of(text)) for text in (r"\\frac{kT}{2}", "y = 2x + 1", "on Monday", r"\\frac{1}{")]
    ['an expression', 'an expression', 'words', 'None']
    """
    value = read(text)
    if in_words(value):
        value = stated_value(text, only=True) or value
    return None if value is None else _kind(value)


def _kind(value: Value) -> Kind:
    match value:
        case Choice():
            return Kind.LETTER
        case Words():
            return Kind.WORDS
        # 2mg may be a product of variables
        case Family() | Number(product=tuple()):
            return Kind.EXPRESSION
        case Expression(tree) if symbols(tree):
            return Kind.EXPRESSION
        case Quantity(value=inner):
            return _kind(inner)
        case Relation(sides=sides):
            # `x = 5` is a number: a name only says of what
            others = [
                side for side in sides if not (isinstance(side, Choice | Words) or name_of(side))
            ]
            return _least(others) if others else Kind.EXPRESSION
        case Matrix(rows=rows):
            return _least(chain.from_iterable(rows))
        case Several(items=items):
            return _least(items)
    return Kind.NUMBERS


def _least(values: Iterable[Value]) -> Kind:
    kinds = {_kind(value) for value in values}
    return next((kind for kind in Kind if kind in kinds), Kind.NUMBERS)
