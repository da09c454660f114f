"""Column `tests` -> what to run, and what must come out.

The table in `rewards/README.md` shows the forms that are accepted, each also as a JSON string or as
Python writes it. Beside them

- inputs and outputs of a program may be lists of lines, and input None is no input;
- calls are of a function, or of the method of that name of a class ``Solution``; where no test
  names the function, column `entry_point` does, also as ``Solution().name``. `calls.py` says how
  arguments and values are written;
- ``assert_case`` is a list of sources, whose inputs and outputs are empty; other entries may be
  calls;
- all of these may stand under ``test_cases``, ``ground_truth``, ``functional`` or ``pytest``, the
  first beside ``"language": "python"``; code-r1 puts sources under the last two.

A key whose value is None counts as absent. LiveCodeBench's private cases have to be decompressed
first.
"""

import ast
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.asserts import BadTests, UnitTest, read_source
from swift_rlvr.verifiers.code.calls import Call, read_calls

_ENVELOPES = ("ground_truth", "test_cases", "functional", "pytest")
_PYTHON = ("python", "python3", "py")
_PROGRAM, _FUNCTION = ("stdin_stdout", "stdin"), ("function_call", "functional")
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
# as Python, C and Java write floats; an exponent without a sign or a point may be part of a
# hexadecimal number
_DECIMAL = re.compile(r"[+-]?(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?|[0-9]+[eE][+-][0-9]{1,3})")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NEAR = Decimal("1e-6")
_FORMS = "tests must be a source, a list of sources, or cases of input and output, at least one"


class ProgramTest(NamedTuple):
    """One run of a program."""

    input: str
    output: str

    def __str__(self) -> str:
        return f"input {self.input!r}"


def read_tests(
    tests: Any, entry_point: Any = None, packages: tuple[str, ...] = ()
) -> list[ProgramTest] | list[UnitTest]:
    """Read the columns `tests` and `entry_point`. Raises BadTests, saying what is wrong with them.

    Tests can import the standard library and the `packages`.

    >>> read_tests(["assert add(1, 2) == 3"])
    [UnitTest(prepare='', source='add(1, 2)', kind='equal', expected=3, tolerance=None, arguments=None)]
    >>> read_tests('{"inputs": ["1 2"], "outputs": ["3"]}')
    [ProgramTest(input='1 2', output='3')]
    >>> str(read_tests({"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]})[0])
    'add(1, 2)'
    """
    tests, name = _decoded(tests), None
    while isinstance(tests, dict):
        tests = {
            key: value
            for key, value in tests.items()
            if value is not None or key in ("input", "inputs")
        }
        name = tests.get("fn_name") or name
        language = tests.get("language", "python")
        if str(language).lower() not in _PYTHON:
            raise BadTests(f"only Python can be run, and the language is {language!r:.80}")
        content = next((tests[key] for key in _ENVELOPES if key in tests), None)
        if content is None:
            return _read_cases(_rows(tests), name, entry_point, packages)
        tests = _decoded(content)
    tests = [tests] if isinstance(tests, str) else tests
    if not isinstance(tests, (list, tuple)) or not tests:
        raise BadTests(_FORMS)
    if all(isinstance(test, dict) for test in tests):
        return _read_cases(list(tests), name, entry_point, packages)
    if not all(isinstance(test, str) for test in tests):
        raise BadTests("tests must be all sources or all cases of input and output")
    function = _expression("entry_point", entry_point) or _expression("fn_name", name)
    return read_source("\n".join(tests), function, packages)


def _decoded(tests: Any) -> Any:
    if not isinstance(tests, str) or tests.lstrip()[:1] not in ("[", "{"):
        return tests
    try:
        return json.loads(tests)
    except _UNREADABLE as error:
        try:
            return ast.literal_eval(tests.strip())
        except _UNREADABLE:
            raise BadTests(f"tests begin like JSON but cannot be read: {error}") from None


def _expression(what: str, name: Any) -> str | None:
    try:
        return None if name is None else ast.unparse(ast.parse(name, mode="eval").body)
    except _UNREADABLE:
        raise BadTests(f"{what} must be a name, not {str(name)[:80]!r}") from None


def _rows(tests: dict[str, Any]) -> list[dict[str, Any]]:
    """Cases that are one dict of lists, as a list of dicts."""
    sources = tests.get("assert_case") or []
    sources = [sources] if isinstance(sources, str) else sources
    columns = {"assert_case": sources} if sources else {}
    for name in ("input", "output"):
        values = tests.get(name, tests.get(f"{name}s"))
        if values or not sources:
            columns[name] = values
    for name, values in columns.items():
        if not isinstance(values, (list, tuple)):
            raise BadTests(
                f"cases must have inputs and outputs that are lists, and {name} is {values!r:.80}"
            )
    if len({len(values) for values in columns.values()}) != 1 or not all(columns.values()):
        raise BadTests(
            "there are "
            + " and ".join(f"{len(values)} of {name}" for name, values in columns.items())
        )
    kind = {key: tests[key] for key in ("type", "testtype", "metadata") if key in tests}
    return [
        dict(zip(columns, values, strict=True)) | kind
        for values in zip(*columns.values(), strict=True)
    ]


def _read_cases(
    rows: list[dict[str, Any]], name: Any, entry_point: Any, packages: tuple[str, ...]
) -> list[ProgramTest] | list[UnitTest]:
    _expression("entry_point", entry_point)
    cases: list[ProgramTest] = []
    calls: list[Call] = []
    units: list[UnitTest] = []
    for row in rows:
        given, expected = (row.get(key, row.get(f"{key}s")) for key in ("input", "output"))
        metadata = _decoded(row.get("metadata"))
        named = (
            row.get("fn_name")
            or (metadata.get("func_name") if isinstance(metadata, Mapping) else None)
            or name
        )
        kind = row.get("type") or row.get("testtype") or (_FUNCTION if named else _PROGRAM)[0]
        if source := row.get("assert_case"):
            if given or expected or not isinstance(source, str):
                raise BadTests(
                    "a case has either an assert_case, which is a source, or an input and an output"
                )
            units += read_source(source, _expression("fn_name", named or entry_point), packages)
        elif not ({"input", "inputs"} & row.keys()) or expected is None:
            raise BadTests(
                f"cases must have input and output, and one has {', '.join(map(str, row)) or 'nothing'}"
            )
        elif kind in _PROGRAM:
            cases.append(ProgramTest(_text(given), _text(expected)))
        elif kind in _FUNCTION:
            function = named or entry_point
            if _expression("fn_name", function) is None:
                raise BadTests(
                    "calls need the function's name, in fn_name, metadata.func_name or column entry_point"
                )
            calls.append(Call(function, given, expected, is_exact=bool(row.get("testtype"))))
        else:
            raise BadTests(
                f"a case is of type {kind!r:.80}; accepted are {', '.join(_PROGRAM + _FUNCTION)}"
            )
    units += read_calls(calls)
    if cases and units:
        raise BadTests("tests must be all of a program, or all of functions")
    return cases or units


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value):
        value = "\n".join(line.removesuffix("\n") for line in value)
    if value is not None and not isinstance(value, str):
        raise BadTests(f"inputs and outputs must be strings or lists of lines, not {value!r:.80}")
    return value or ""


def same_output(got: str, expected: str) -> bool:
    r"""Whether outputs are equal, apart from white space within and at the end of lines and empty
    lines at the end.

    A word that is expected to be a decimal, such as ``1.50``, may be another number of the same
    value: it may differ by a millionth of that, but at most by 1e-6 and at least by 1e-12. All
    else, also a whole number, has to be the same.

    >>> same_output("1  2 \n3\n\n", "1 2\n3"), same_output("1\n2", "1 2"), same_output("0.3333333333", "0.333333333333")
    (True, False, True)
    """
    first, second = (
        [line.split() for line in text.rstrip().split("\n")] for text in (got, expected)
    )
    return first == second or (
        [len(line) for line in first] == [len(line) for line in second]
        and all(
            _same_word(*words)
            for lines in zip(first, second, strict=True)
            for words in zip(*lines, strict=True)
        )
    )


def _same_word(got: str, expected: str) -> bool:
    if got == expected:
        return True
    if not (_DECIMAL.fullmatch(expected) and (_DECIMAL.fullmatch(got) or _WHOLE.fullmatch(got))):
        return False
    value, wanted = Decimal(got), Decimal(expected)
    return abs(value - wanted) <= _NEAR * min(max(abs(wanted), _NEAR), Decimal(1))
