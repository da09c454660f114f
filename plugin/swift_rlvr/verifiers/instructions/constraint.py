"""What a constraint is: a check with a name and arguments, and how the arguments are read."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from swift_rlvr.verifiers.instructions.answer import Answer

# Of a text in an argument, for messages.
_LONGEST_SHOWN = 60


class BadConstraint(ValueError):
    """A constraint that cannot be checked: its name is unknown, or an argument cannot be read."""


class Outcome(NamedTuple):
    """Whether an answer meets a constraint, and what was found in it.

    passed: None where no rule can tell.
    """

    passed: bool | None
    detail: str


class Relation(StrEnum):
    """How a count is compared with the number that is asked for."""

    LESS_THAN = "less than"
    AT_MOST = "at most"
    EXACTLY = "exactly"
    AROUND = "around"
    AT_LEAST = "at least"
    MORE_THAN = "more than"

    def bounds(self, number: int) -> tuple[int, int | None]:
        """The smallest and the largest count that it allows; None: no largest one.

        >>> Relation.LESS_THAN.bounds(5), Relation.AROUND.bounds(50)
        ((0, 4), (45, 55))
        """
        # As RLVR-IFeval's grader has it.
        tolerance = max(round(number / 10), 1)
        bounds: dict[Relation, tuple[int, int | None]] = {
            Relation.LESS_THAN: (0, number - 1),
            Relation.AT_MOST: (0, number),
            Relation.EXACTLY: (number, number),
            Relation.AROUND: (max(0, number - tolerance), number + tolerance),
            Relation.AT_LEAST: (number, None),
            Relation.MORE_THAN: (number + 1, None),
        }
        return bounds[self]

    def outcome(self, count: int, number: int, what: str) -> Outcome:
        """Whether a count has this relation to a number. BadConstraint where none can have it."""
        least, most = self.bounds(number)
        if most is not None and most < 0:
            raise BadConstraint(f"{what}: no count is {self} {number}")
        passed = least <= count and (most is None or count <= most)
        return Outcome(passed, f"{what}: {count}, asked {self} {number}")


@dataclass(frozen=True)
class Kind:
    """A constraint without its arguments.

    brief: a right answer may be a word or two, or only repeats the prompt.
    """

    name: str
    check: Callable[..., Outcome]
    brief: bool

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Those of the check, but for the answer."""
        _, *parameters = inspect.signature(self.check).parameters.values()
        return {parameter.name: parameter for parameter in parameters}

    def read(self, arguments: Mapping[str, Any]) -> "Constraint":
        """The constraint with these arguments, of which None stands for one that is absent.

        BadConstraint for one that is missing, unknown or cannot be read.
        """
        present = {name: value for name, value in arguments.items() if value is not None}
        for name in present:
            if name not in self.parameters:
                accepted = ", ".join(self.parameters) or "none"
                raise BadConstraint(
                    f"{self.name} has no argument {name!r}; its arguments are: {accepted}"
                )
        read: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name in present:
                expected, convert = _CONVERTERS[parameter.annotation]
                read[name] = convert(present[name])
                if read[name] is None:
                    shown = repr(present[name])[:_LONGEST_SHOWN]
                    raise BadConstraint(f"{self.name}: {name!r} must be {expected}, got {shown}")
            elif parameter.default is inspect.Parameter.empty:
                raise BadConstraint(f"{self.name} lacks its argument {name!r}")
        return Constraint(self, read)


def _whole_number(value: Any) -> int | None:
    """A count; parquet and pandas make floats of whole numbers beside missing ones."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = int(value)
        is_whole = number == float(value)
    except (ValueError, OverflowError):
        return None
    return number if is_whole and number >= 0 else None


def _text(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return None
    texts = []
    for each in value:
        text = _text(each)
        # One that is no text makes the whole list none.
        if text is None:
            return None
        texts.append(text)
    return tuple(texts) or None


def _relation(value: Any) -> Relation | None:
    text = _text(value)
    return Relation(text.lower()) if text and text.lower() in set(Relation) else None


# By the type in a check's signature: what is expected, and what reads it.
_CONVERTERS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("a whole number from 0", _whole_number),
    str: ("a text", _text),
    tuple[str, ...]: ("a list of texts", _texts),
    Relation: (f"one of {', '.join(Relation)}", _relation),
}


@dataclass(frozen=True)
class Constraint:
    """A constraint of a row."""

    kind: Kind
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.kind.name

    def __str__(self) -> str:
        if not self.arguments:
            return self.name
        shown = []
        for name, value in self.arguments.items():
            text = repr(list(value)) if isinstance(value, tuple) else repr(value)
            if isinstance(value, Relation):
                text = repr(str(value))
            shown.append(f"{name}={text if len(text) <= _LONGEST_SHOWN else text[:57] + '...'}")
        return f"{self.name} ({', '.join(shown)})"

    def outcome(self, answer: Answer) -> Outcome:
        """Whether an answer meets it."""
        return self.kind.check(answer, **self.arguments)


# Every constraint that can be checked, by its name in IFEval or IFBench.
KINDS: dict[str, Kind] = {}


def constraint(
    name: str, brief: bool = False
) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Register a check: a function of an answer and the arguments that the dataset gives, whose
    types say what is read.
    """

    def register(check: Callable[..., Outcome]) -> Callable[..., Outcome]:
        KINDS[name] = Kind(name, check, brief)
        return check

    return register
