"""Tests that call a function with arguments of JSON and compare what it returns: the forms of APPS,
TACO and LiveCodeBench. They are compared in the trainer's process, so that no other one is needed
than that of the code.

Arguments are a list, or JSON with one argument a line; what the function has to return is a value,
or JSON too where the arguments are. Values are compared as JSON writes them: a tuple equals a list,
and keys of dicts are strings. An object that is the only argument and has whole numbers as keys
arrives with int keys, as in these graders.

APPS, and what was made from it, puts some expected values into a list of one, and its graders
accept either. Here either is accepted only where all expected values of a row are lists of one.
"""

import json
from fractions import Fraction
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.inside.values import same_value
from swift_rlvr.verifiers.code.sources import BadTests

_NO_JSON = (ValueError, TypeError, RecursionError)


class Call(NamedTuple):
    """A call as it stands in a dataset."""

    function: str
    arguments: Any
    expected: Any
    is_exact: bool = False  # the expected value is never in a list of its own


class CallTest(NamedTuple):
    """One call of a function, or of a method of a class ``Solution``."""

    function: str
    arguments: list
    expected: Any
    # whether the value may also be the only element of `expected`
    may_be_in_list: bool = False

    @property
    def request(self) -> str:
        """The call as a line of JSON."""
        return json.dumps({"function": self.function, "of_json": self.arguments})

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.arguments))})"

    def holds(self, value: Any) -> bool:
        """Whether a value of plain types is the expected one. Raises where JSON cannot write it."""
        value = json.loads(json.dumps(value, default=_number))
        if self.may_be_in_list and same_value([value], self.expected):
            return True
        return same_value(value, self.expected)


def _number(value: Any) -> int | float:
    """A number as JSON has it that arrives as a fraction, also a decimal."""
    if not isinstance(value, Fraction):
        raise TypeError(f"JSON cannot write a {type(value).__name__}")
    return value.numerator if value.denominator == 1 else float(value)


def read_calls(calls: list[Call]) -> list[CallTest]:
    r"""Read calls. Raises BadTests, saying what is wrong with them.

    >>> read_calls([Call("add", "1\n[2]", "[3]")])
    [CallTest(function='add', arguments=[1, [2]], expected=[3], may_be_in_list=True)]
    """
    tests = [_read_call(call) for call in calls]
    if not all(isinstance(test.expected, list) and len(test.expected) == 1 for test in tests):
        return tests
    either = []
    for call, test in zip(calls, tests, strict=True):
        either.append(test._replace(may_be_in_list=not call.is_exact))
    return either


def _read_call(call: Call) -> CallTest:
    arguments, expected = call.arguments, call.expected
    # The value is JSON only where the arguments are. Beside a list of arguments a string is one.
    if arguments is None or isinstance(arguments, str):
        problem = f"the arguments of a call must be JSON, one a line, not {arguments!r:.80}"
        lines = (arguments or "").split("\n")
        values = [_from_json(line, problem) for line in lines if line.strip()]
        if isinstance(expected, str):
            problem = f"the output of a call must be JSON, as its input is, not {expected!r:.80}"
            return CallTest(call.function, values, _from_json(expected, problem))
        return CallTest(call.function, values, _plain(expected))

    if not isinstance(arguments, (list, tuple)):
        raise BadTests(
            f"the arguments of a call must be a list, or JSON, one a line, not {arguments!r:.80}"
        )
    return CallTest(call.function, _plain(list(arguments)), _plain(expected))


def _from_json(text: str, problem: str) -> Any:
    try:
        return json.loads(text)
    except _NO_JSON:
        raise BadTests(problem) from None


def _plain(value: Any) -> Any:
    """A value as JSON reads it back: a tuple becomes a list, keys of dicts strings."""
    try:
        return json.loads(json.dumps(value))
    except _NO_JSON:
        raise BadTests(
            f"arguments and outputs of a call must be what JSON can write, not {value!r:.80}"
        ) from None
