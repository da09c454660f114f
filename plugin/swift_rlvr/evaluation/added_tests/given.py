"""The given tests of a row: their inputs, how they compare a result, and how a further one is written."""

import ast
import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
class Given(ABC):
    """The given inputs, and how the tests of the row compare a result."""

    inputs: tuple[Any, ...]

    @abstractmethod
    def result(self, written: str) -> Any:
        """A result as the tests compare it. Raises one of `UNREADABLE` where that cannot be."""

    @abstractmethod
    def same(self, value: Any, expected: Any) -> bool:
        """Whether the tests take one result for the other."""

    @abstractmethod
    def tests(self, cases: Sequence[Case]) -> str:
        """Tests for these cases, as text that `read_tests` reads."""

    def passes(self, written: str | None, expected: Any) -> bool:
        """Whether a program that gives this passes a test that expects the result."""
        if written is None:
            return False
        try:
            value = self.result(written)
        except UNREADABLE:
            return False
        return self.same(value, expected)

    def cases(self, inputs: Sequence[Any], results: Sequence[str | None]) -> list[Case]:
        """The inputs with their results, as far as those can be compared."""
        cases = []
        for each, written in zip(inputs, results, strict=True):
            if written is not None:
                with suppress(*UNREADABLE):
                    cases.append(Case(each, self.result(written)))
        return cases


class Programs(Given):
    """Programs that read a text and write one."""

    def result(self, written: str) -> str:
        return written

    def same(self, value: Any, expected: Any) -> bool:
        return same_output(value, expected)

    def tests(self, cases: Sequence[Case]) -> str:
        tests = []
        for case in cases:
            tests.append({"input": case.input, "output": case.result, "type": "stdin_stdout"})
        return json.dumps(tests, ensure_ascii=False)


@dataclass(frozen=True)
class Calls(Given):
    """Calls of a function, whose results are compared by ==.

    keywords: the names of the last arguments. result_types: the only ones that can be compared so;
    None for any.
    """

    function: str
    keywords: tuple[str, ...] = ()
    result_types: ClassVar[tuple[type, ...] | None] = None

    def call(self, arguments: Sequence[Any]) -> str:
        """The call as Python writes it."""
        written = list(map(repr, arguments))
        first = len(written) - len(self.keywords)
        for index, name in enumerate(self.keywords, start=first):
            written[index] = f"{name}={written[index]}"
        return f"{self.function}({', '.join(written)})"

    def result(self, written: str) -> Any:
        return ast.literal_eval(written)

    def same(self, value: Any, expected: Any) -> bool:
        return same_value(value, expected)

    def assertion(self, case: Case) -> str:
        """The assert for a case."""
        return f"assert {self.call(case.input)} == {case.result!r}"

    def tests(self, cases: Sequence[Case]) -> str:
        return json.dumps(list(map(self.assertion, cases)), ensure_ascii=False)


class CallsInJson(Calls):
    """Calls whose arguments and results are JSON."""

    def result(self, written: str) -> Any:
        # As the expected results of the row were read: a tuple is a list, a key a text.
        return json.loads(json.dumps(super().result(written)))

    def tests(self, cases: Sequence[Case]) -> str:
        inputs, outputs = zip(*cases, strict=True)
        tests = {"fn_name": self.function, "inputs": inputs, "outputs": outputs}
        return json.dumps(tests, ensure_ascii=False)


@dataclass(frozen=True)
class CallsNear(Calls):
    """Calls whose results are numbers that need only be near the expected ones."""

    tolerance: Tolerance = Tolerance()
    result_types: ClassVar[tuple[type, ...] | None] = (int, float)

    def same(self, value: Any, expected: Any) -> bool:
        return isinstance(value, (int, float)) and self.tolerance.holds(value, expected)

    def assertion(self, case: Case) -> str:
        limits = f"rel_tol={self.tolerance.share!r}, abs_tol={self.tolerance.most!r}"
        return f"assert math.isclose({self.call(case.input)}, {case.result!r}, {limits})"

    def tests(self, cases: Sequence[Case]) -> str:
        tests = ["import math", *map(self.assertion, cases)]
        return json.dumps(tests, ensure_ascii=False)


class CallsTrue(Calls):
    """Calls of which only counts whether their results are true."""

    def result(self, written: str) -> bool:
        return bool(super().result(written))

    def assertion(self, case: Case) -> str:
        call = self.call(case.input)
        return f"assert {call}" if case.result else f"assert not {call}"


class CallsIs(Calls):
    """Calls whose results are compared by `is`."""

    result_types: ClassVar[tuple[type, ...] | None] = (bool, type(None))

    def assertion(self, case: Case) -> str:
        return f"assert {self.call(case.input)} is {case.result!r}"


def read_given(tests: Sequence[Any]) -> Given:
    """The given inputs, of tests that `read_tests` has read; NoTests if none can be used."""
    texts = [test.input for test in tests if isinstance(test, ProgramTest)]
    if texts:
        short = tuple(text for text in texts if len(text) <= LONGEST)
        if not short:
            raise NoTests("all its inputs are very long")
        return Programs(short)

    # Only calls of the same function with as many arguments say together what an input looks like.
    alike: dict[Any, list[tuple[list[Any], Any]]] = defaultdict(list)
    for test in tests:
        with suppress(*UNREADABLE):
            if isinstance(test, CallTest):
                alike[test.function, len(test.arguments), ()].append((test.arguments, test))
            elif isinstance(test, AssertTest):
                by_name = ast.literal_eval(test.keywords)
                arguments = [*ast.literal_eval(test.arguments), *by_name.values()]
                alike[test.function, len(arguments), tuple(by_name)].append((arguments, test))
    if not alike:
        raise NoTests("no test compares the result of a call whose arguments are plain values")
    (function, _, keywords), calls = max(alike.items(), key=lambda item: len(item[1]))
    inputs, of_calls = zip(*calls, strict=True)
    if isinstance(of_calls[0], CallTest):
        for arguments in inputs:
            if len(arguments) == 1 and isinstance(arguments[0], dict):
                raise NoTests("its only argument is a dict, whose keys JSON does not keep")
        return CallsInJson(inputs, function)

    comparisons = {test.comparison for test in of_calls}
    # One assert that asks for nearness tells that the results are inexact; the others happen to be
    # whole. The most generous of them counts.
    if "near" in comparisons:
        widest = max(of_calls, key=lambda test: max(test.tolerance[:2]))
        return CallsNear(inputs, function, keywords, widest.tolerance)
    if comparisons <= {"true", "false"}:
        return CallsTrue(inputs, function, keywords)
    if comparisons == {"is"}:
        return CallsIs(inputs, function, keywords)
    return Calls(inputs, function, keywords)
