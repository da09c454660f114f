"""Column `tests` -> what to run, and what must come out.

These forms are accepted, each also as a JSON string:

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

`asserts.py` says how sources are split into tests. Call-based APPS tests (``fn_name``) are not accepted.
"""

import ast
import json
from typing import Any, NamedTuple

from swift_rlvr.sandbox.asserts import BadTests, Step, read_steps


class Case(NamedTuple):
    """One run of a program."""

    input: str
    output: str

    def __str__(self) -> str:
        return f"input {self.input!r}"


def read_tests(tests: Any, entry_point: Any = None) -> list[Case] | list[Step]:
    """Read the columns `tests` and `entry_point`. Raises BadTests, saying what is wrong with them.

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
            raise BadTests(f"tests begin like JSON but cannot be read: {error}") from None
    if isinstance(tests, dict):
        return _cases(tests)
    tests = [tests] if isinstance(tests, str) else tests
    if not isinstance(tests, (list, tuple)) or not tests:
        raise BadTests("tests must be a source, a list of sources, or cases of input and output, at least one")
    if all(isinstance(test, dict) for test in tests):
        return [case for test in tests for case in _cases({name: [value] for name, value in test.items()})]
    if not all(isinstance(test, str) for test in tests):
        raise BadTests("tests must be all sources or all cases of input and output")
    return read_steps("\n".join(tests), candidate)


def _cases(columns: dict[str, Any]) -> list[Case]:
    inputs, outputs = (columns.get(name, columns.get(f"{name}s")) for name in ("input", "output"))
    if columns.get("fn_name") or not isinstance(inputs, (list, tuple)) or not isinstance(outputs, (list, tuple)):
        raise BadTests("cases must have input and output, or inputs and outputs, and no fn_name")
    if len(inputs) != len(outputs) or not inputs:
        raise BadTests(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
    return [Case(_text(given), _text(expected)) for given, expected in zip(inputs, outputs, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value):
        value = "\n".join(line.removesuffix("\n") for line in value)
    if not isinstance(value, str):
        raise BadTests(f"inputs and outputs must be strings or lists of lines, not {value!r:.80}")
    return value


def same_output(got: str, expected: str) -> bool:
    r"""Whether outputs are equal, apart from white space within and at the end of lines and empty lines at the end.

    >>> same_output("1  2 \n3\n\n", "1 2\n3"), same_output("1\n2", "1 2")
    (True, False)
    """
    first, second = ([line.split() for line in text.rstrip().split("\n")] for text in (got, expected))
    return first == second
