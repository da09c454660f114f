"""Column `tests` -> what is to be run, and what must come out.

Accepted are, each also as a JSON string of it:

1. Python source with asserts, or a list of such sources: MBPP's ``test_list``, AceCode, KodCode's ``test_*`` functions,
   which import the code as the module ``solution``::

       ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]
       "from math import isclose\\nassert isclose(half(3), 1.5)"

2. HumanEval's, with the function's name, or ``Solution().name``, in column `entry_point`::

       "def check(candidate):\\n    assert candidate(1, 2) == 3\\n    assert candidate(0, 0) == 0"

3. Cases of a program that reads standard input and writes standard output, also in the form of APPS and TACO. Inputs
   and outputs are strings, or lists of lines::

       [{"input": "1 2\\n", "output": "3\\n"}, {"input": "0 0\\n", "output": "0\\n"}]
       {"inputs": ["1 2\\n", "0 0\\n"], "outputs": ["3\\n", "0\\n"]}

Of a source every assert is a test of its own, and so is every other statement that does something (a loop over asserts,
a call); imports, assignments and definitions prepare the test that follows. ``check(candidate)`` and ``test_*`` are
taken apart in the same way. An assert is reduced to an expression for the sandbox to evaluate and a result for the
parent to compare, so that the code is not told what it ought to give::

    assert add(1, 2) == 3               evaluates add(1, 2), compares with 3
    assert f(2) is None                 evaluates f(2)
    assert abs(f(2) - 1.5) < 1e-6       evaluates f(2); math.isclose(f(2), 1.5) likewise
    assert not is_prime(4)              evaluates is_prime(4), whether it is true
    assert sorted(f(x)) == g(x)         no literal: evaluates all of it, whether it is true

Not accepted: call-based APPS tests (``fn_name``), ``unittest.TestCase``, pytest's fixtures and parameters, and tests
that import more than the standard library, which is all that there is in the sandbox.
"""

from __future__ import annotations

import ast
import json
import sys
from typing import NamedTuple

from swift_rlvr.sandbox.asserts import (
    _PREPARATION,
    BadTests,
    Step,
    _steps,
    imports,
)

_PREPARATION += (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Case(NamedTuple):
    """One run of a program."""

    input: str
    output: str

    def __str__(self) -> str:
        return f"input {self.input!r}"


def read_tests(tests: object, entry_point: object = None) -> list[Case] | list[Step]:
    """Read the columns `tests` and `entry_point`.

    Raises:
        BadTests: saying what is wrong with them.

    >>> read_tests(["assert add(1, 2) == 3"])
    [Step(prepare='', source='add(1, 2)', kind='equal', expected=3, tolerance=None)]
    >>> read_tests('{"inputs": ["1 2"], "outputs": ["3"]}')
    [Case(input='1 2', output='3')]
    """
    try:
        candidate = None if entry_point is None else ast.parse(entry_point, mode="eval").body
    except (SyntaxError, ValueError, TypeError):
        raise BadTests(f"entry_point must be a name, not {str(entry_point)[:80]!r}") from None
    if isinstance(tests, str) and tests.lstrip()[:1] in ("[", "{"):
        try:
            tests = json.loads(tests)
        except (ValueError, RecursionError) as error:
            raise BadTests(f"tests begin like JSON and are none: {error}") from None
    if isinstance(tests, dict):
        return _cases(tests)
    if isinstance(tests, str):
        tests = [tests]
    if not isinstance(tests, (list, tuple)) or not tests:
        raise BadTests("tests must be a source, a list of sources, or cases of input and output, at least one")
    if all(isinstance(test, dict) for test in tests):
        columns = [_cases({name: [value] for name, value in test.items()}) for test in tests]
        return [case for cases in columns for case in cases]
    if not all(isinstance(test, str) for test in tests):
        raise BadTests("tests must be all sources or all cases of input and output")
    try:
        steps = _steps(ast.parse("\n".join(tests)).body, candidate)
    except BadTests:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadTests(f"tests are no Python: {type(error).__name__}: {error}") from None
    if not steps:
        raise BadTests("tests contain no assert and no statement that does anything")
    foreign = {name.partition(".")[0] for name in imports(steps)} - sys.stdlib_module_names
    if foreign:
        raise BadTests(f"tests import {', '.join(sorted(foreign))}, which is not in the standard library")
    return steps


def _cases(columns: dict) -> list[Case]:
    given = [columns.get(name, columns.get(f"{name}s")) for name in ("input", "output")]
    if columns.get("fn_name") or not all(isinstance(values, (list, tuple)) for values in given):
        raise BadTests("cases must have input and output, or inputs and outputs, and no fn_name")
    if len(given[0]) != len(given[1]) or not given[0]:
        raise BadTests(f"there are {len(given[0])} inputs and {len(given[1])} outputs")
    return [Case(*map(_text, pair)) for pair in zip(*given, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value):
        value = "\n".join(line.removesuffix("\n") for line in value)
    if not isinstance(value, str):
        raise BadTests(f"inputs and outputs must be strings or lists of lines, not {value!r:.80}")
    return value


def same_output(got: str, expected: str) -> bool:
    r"""Whether outputs agree but for white space within and at the end of lines and empty lines at the end.

    >>> same_output("1  2 \n3\n\n", "1 2\n3"), same_output("1\n2", "1 2")
    (True, False)
    """
    return [line.split() for line in got.rstrip().split("\n")] == [
        line.split() for line in expected.rstrip().split("\n")
    ]
