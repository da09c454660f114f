"""The given tests of a row: their inputs, how they compare a result, and how a further one is written."""

import ast
import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.calls import CallTest
from swift_rlvr.verifiers.code.cases import ProgramTest, same_output
from swift_rlvr.verifiers.code.inside.values import same_value
from swift_rlvr.verifiers.code.plain import AssertTest, Tolerance

LONGEST = 2_000  # characters of an input and of a result
# What `ast.literal_eval` and `json` raise.
UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


class NoTests(ValueError):
    """Why nothing can be added to a row."""


class Case(NamedTuple):
    """An input, and what the reference gives for it."""

    input: Any
    result: Any


@dataclass(frozen=True)
class Given:
    """The given tests: of a program, whose inputs are texts, or of the calls of a function.

    comparison: "output" of programs, "JSON" of calls, "near" of numbers, "truth", "is", or "equal".
    """

    comparison: str
    inputs: tuple[Any, ...]
    function: str = ""
    keywords: tuple[str, ...] = ()  # the names of the last arguments
    tolerance: Tolerance = Tolerance()

    def call(self, arguments: Sequence[Any]) -> str:
        """The call of the function as Python writes it."""
        written = list(map(repr, arguments))
        first = len(written) - len(self.keywords)
        for index, name in enumerate(self.keywords, start=first):
            written[index] = f"{name}={written[index]}"
        return f"{self.function}({', '.join(written)})"

    def result(self, written: str) -> Any:
        """A result as the tests compare it. Raises one of `UNREADABLE` where JSON cannot write it."""
        if self.comparison == "output":
            return written
        value = ast.literal_eval(written)
        if self.comparison == "JSON":
            return json.loads(json.dumps(value))
        return bool(value) if self.comparison == "truth" else value

    def passes(self, written: str | None, result: Any) -> bool:
        """Whether a program that gives this passes a test that expects the result."""
        if written is None:
            return False
        if self.comparison == "output":
            return same_output(written, result)
        try:
            value = self.result(written)
        except UNREADABLE:
            return False
        if self.comparison == "near":
            return isinstance(value, (int, float)) and self.tolerance.holds(value, result)
        return same_value(value, result)

    def cases(self, inputs: Sequence[Any], results: Sequence[str | None]) -> list[Case]:
        """The inputs with their results, as far as those can be compared."""
        cases = []
        for each, written in zip(inputs, results, strict=True):
            if written is not None:
                with suppress(*UNREADABLE):
                    cases.append(Case(each, self.result(written)))
        return cases

    def tests(self, cases: Sequence[Case]) -> str:
        """Tests for these cases, as text that `read_tests` reads."""
        tests: Any = []
        if self.comparison == "output":
            for case in cases:
                test = {"input": case.input, "output": case.result, "type": "stdin_stdout"}
                tests.append(test)
        elif self.comparison == "JSON":
            inputs = [case.input for case in cases]
            outputs = [case.result for case in cases]
            tests = {"fn_name": self.function, "inputs": inputs, "outputs": outputs}
        else:
            if self.comparison == "near":
                tests.append("import math")
            for case in cases:
                tests.append(self._assert(case))
        return json.dumps(tests, ensure_ascii=False)

    def _assert(self, case: Case) -> str:
        call = self.call(case.input)
        match self.comparison:
            case "near":
                limits = f"rel_tol={self.tolerance.share!r}, abs_tol={self.tolerance.most!r}"
                return f"assert math.isclose({call}, {case.result!r}, {limits})"
            case "truth":
                return f"assert {call}" if case.result else f"assert not {call}"
            case "is":
                return f"assert {call} is {case.result!r}"
        return f"assert {call} == {case.result!r}"


def read_given(tests: Sequence[Any]) -> Given:
    """The given inputs, of tests that `read_tests` has read; NoTests if none can be used."""
    texts = [test.input for test in tests if isinstance(test, ProgramTest)]
    if texts:
        short = tuple(text for text in texts if len(text) <= LONGEST)
        if not short:
            raise NoTests("all its inputs are very long")
        return Given("output", short)

    alike = _calls_alike(tests)
    if not alike:
        raise NoTests("no test compares the result of a call whose arguments are plain values")
    (function, _, keywords), calls = max(alike.items(), key=lambda item: len(item[1]))
    inputs = tuple(arguments for arguments, _ in calls)
    if isinstance(calls[0][1], CallTest):
        if any(len(arguments) == 1 and isinstance(arguments[0], dict) for arguments in inputs):
            raise NoTests("its only argument is a dict, whose keys JSON does not keep")
        return Given("JSON", inputs, function)
    comparison, tolerance = _comparison_of([test for _, test in calls])
    return Given(comparison, inputs, function, keywords, tolerance)


def _calls_alike(tests: Sequence[Any]) -> dict[Any, list[tuple[list[Any], Any]]]:
    """The arguments and tests by function, number of arguments and names of keywords."""
    alike: dict[Any, list[tuple[list[Any], Any]]] = defaultdict(list)
    for test in tests:
        with suppress(*UNREADABLE):
            if isinstance(test, CallTest):
                alike[test.function, len(test.arguments), ()].append((test.arguments, test))
            elif isinstance(test, AssertTest):
                by_name = ast.literal_eval(test.keywords)
                arguments = [*ast.literal_eval(test.arguments), *by_name.values()]
                alike[test.function, len(arguments), tuple(by_name)].append((arguments, test))
    return alike


def _comparison_of(asserts: Sequence[AssertTest]) -> tuple[str, Tolerance]:
    """How the asserts of a row compare: as near as the most generous of them, if any asks for
    nearness.
    """
    comparisons = {test.comparison for test in asserts}
    if "near" in comparisons:
        widest = max(asserts, key=lambda test: max(test.tolerance[:2]))
        return "near", widest.tolerance
    if comparisons <= {"true", "false"}:
        return "truth", Tolerance()
    return "is" if comparisons == {"is"} else "equal", Tolerance()
