"""Which results of the reference are like the expected ones of the row, and so can be tests."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from swift_rlvr.evaluation.added_tests.given import LONGEST, Calls, Case

_LARGEST = 1e8  # of a float: sums of larger ones differ by their order


def constants_of(source: str) -> list[Any]:
    """The values that a program has written down."""
    nodes = ast.walk(ast.parse(source))
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


def like_outputs(own: Sequence[Case], candidates: Sequence[Case]) -> list[Case]:
    """The candidates whose output is like those of the row: empty or with a minus only where one of
    them is, and of as many lines where all have the same number.
    """
    may_be_empty = False
    may_have_minus = False
    line_counts = set()
    for case in own:
        may_be_empty |= not case.result.strip()
        may_have_minus |= "-" in case.result
        line_counts.add(case.result.count("\n"))
    # A single output says nothing about the lines of others.
    is_fixed = len(own) != 1 and len(line_counts) <= 1
    like = []
    for case in candidates:
        output = case.result
        is_empty = not output.strip()
        if (is_empty and not may_be_empty) or ("-" in output and not may_have_minus):
            continue
        if not is_fixed or output.count("\n") in line_counts:
            like.append(case)
    return like


def like_results(
    given: Calls, own: Sequence[Case], candidates: Sequence[Case], reference: str
) -> list[Case]:
    """The candidates whose result is like those of the row, and can be compared."""
    kinds: set[tuple[int, str]] = set()
    for case in own:
        kinds.update(_types_with_signs(case.result))
    # A function that chooses among what it is given; -1 for "none of them" is the reference's own choice.
    are_parts = all(map(_is_part, own))
    written_down = set(map(repr, constants_of(reference)))
    # What another right solution gives too, or a value that is near enough.
    types = given.result_types
    like = []
    for case in candidates:
        if are_parts and not _is_part(case) and repr(case.result) in written_down:
            continue
        if len(repr(case.input)) > LONGEST or not set(_types_with_signs(case.result)) <= kinds:
            continue
        if (types is None or type(case.result) in types) and _is_exact(case.result):
            like.append(case)
    return like


def _is_part(case: Case) -> bool:
    """Whether a result stands in one of the arguments: a letter, a word or an element."""
    for argument in case.input:
        if isinstance(argument, str) and isinstance(case.result, str) and case.result in argument:
            return True
        # As a list, since to look for a list in a set or a dict fails.
        if isinstance(argument, (list, tuple, set, dict)) and case.result in list(argument):
            return True
    return False


def _types_with_signs(value: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """The type of a value and of all in it, each with its depth and whether it is negative or empty."""
    name = "number" if type(value) in (int, float) else type(value).__name__
    if name == "number" and value < 0:
        name += " below 0"
    if isinstance(value, (str, list, tuple, dict, set)) and not value:
        name += ", empty"
    yield depth, name
    for element in _elements(value):
        yield from _types_with_signs(element, depth + 1)


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, (list, tuple, set)) else ()


def _is_exact(value: Any) -> bool:
    """Whether its floats are so small that they are the same in any order of the operations, but for
    what `same_value` allows.
    """
    # `not <`, since NaN is neither above the limit nor below it.
    if isinstance(value, complex) or (isinstance(value, float) and not abs(value) < _LARGEST):
        return False
    return all(map(_is_exact, _elements(value)))
