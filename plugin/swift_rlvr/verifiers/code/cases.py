"""Column `tests` -> what to run, and what must come out: the one reader of the forms in which
datasets write tests.

`read_form` takes them out of whatever is around them and says what kind they are and which names
they need, for the prompt, for grading (`read_tests`) and for added tests (`added.py`).

The table in `docs/rewards/code.md` shows the forms that are accepted, each also as a JSON string or as
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
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.calls import Call, CallTest, read_calls
from swift_rlvr.verifiers.code.names import asked_names
from swift_rlvr.verifiers.code.plain import AssertTest, read_asserts
from swift_rlvr.verifiers.code.sources import BadTests, UnitTest, read_source

# The words of datasets: the keys under which tests may stand, the language, the type of a case.
_ENVELOPES = ("ground_truth", "test_cases", "functional", "pytest")
_PYTHON = ("python", "python3", "py")
_PROGRAM = ("stdin_stdout", "stdin")
_FUNCTION = ("function_call", "functional")

# The kinds of tests.
PROGRAM = "program"  # standard input and output
CALLS = "calls"  # of a function, whose results are compared as JSON writes them
ASSERTS = "asserts"  # plain ones
TEST_PROGRAM = "test program"  # Python that tests: unittest, pytest, check(candidate)

_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
_FORMS = "tests must be a source, a list of sources, or cases of input and output, at least one"

# Numbers in the output of a program.
# 1.5, -.5 and 2e-3, as Python, C and Java write floats; not 1. and not 1e5: an exponent without a
# sign or a point may be part of a hexadecimal number
_DECIMAL = re.compile(r"[+-]?(?:[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?|[0-9]+[eE][+-][0-9]{1,3})")
# 7, -3
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NEAR = Decimal("1e-6")

# What a program has that reads standard input, outside of comments. Examples of how it is used say
# "# Input: 3", assign to `input` or `sys.stdin`, or patch "builtins.input".
_READS_INPUT = re.compile(
    r"""^[^#\n]*(?:\b(?:input|stdin)\b(?!\s*(?:[:'"]|=(?!=)))|/dev/stdin"""
    r"""|\bfileinput\b|\bopen\(0\b|\bread\(0\b)""",
    re.MULTILINE,
)


class ProgramTest(NamedTuple):
    """One run of a program."""

    input: str
    output: str

    def __str__(self) -> str:
        return f"input {self.input!r}"


@dataclass(frozen=True)
class Form:
    """The tests of a row, out of what was around them: programs, or calls and sources.

    Attributes:
        function: that the sources test, where something beside them names it; may be an expression
            such as ``Solution().add``.
        sources: Python that tests, each a program of its own.
    """

    function: str | None = None
    programs: tuple[ProgramTest, ...] = ()
    calls: tuple[Call, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """One of PROGRAM, CALLS, ASSERTS and TEST_PROGRAM."""
        if self.programs:
            return PROGRAM
        if not self.sources:
            return CALLS
        is_plain = all(read_asserts(source, self.function) for source in self.sources)
        return ASSERTS if is_plain else TEST_PROGRAM

    @property
    def names(self) -> tuple[str, ...]:
        """What the code has to define, as the tests write it."""
        names = [call.function for call in self.calls]
        for source in self.sources:
            names += asked_names(source, self.function)
        return tuple(dict.fromkeys(names))

    @property
    def mark_of_a_solution(self) -> re.Pattern[str]:
        """What code has that is more than a use of a solution or its tests, which stand in a block of
        their own behind it: it defines a name that the tests need, or reads standard input.

        >>> mark = read_form(["assert add(1, 2) == 3"]).mark_of_a_solution
        >>> bool(mark.search("def add(a, b): return a + b")), bool(mark.search("print(add(1, 2))"))
        (True, False)
        """
        if self.programs:
            return _READS_INPUT
        # Of ``Solution().add`` the class or the function.
        parts = re.findall(r"\w+", " ".join(self.names))
        name = f"(?:{'|'.join(parts)})"
        defined = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*=(?!=)"
        return re.compile(defined, re.MULTILINE)


def read_tests(
    tests: Any, entry_point: Any = None, packages: tuple[str, ...] = ()
) -> list[ProgramTest] | list[UnitTest | CallTest | AssertTest]:
    """Read the columns `tests` and `entry_point`. Raises BadTests, saying what is wrong with them.

    Tests can import the standard library and the `packages`.

    >>> str(read_tests(["assert add(1, 2) == 3"])[0])
    'add(1, 2) == 3'
    >>> read_tests('{"inputs": ["1 2"], "outputs": ["3"]}')
    [ProgramTest(input='1 2', output='3')]
    >>> str(read_tests({"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]})[0])
    'add(1, 2)'
    """
    form = read_form(tests, entry_point)
    if form.programs:
        return list(form.programs)
    units: list[UnitTest | CallTest | AssertTest] = []
    for source in form.sources:
        plain = read_asserts(source, form.function)
        units += plain or read_source(source, form.function, packages)
    units += read_calls(list(form.calls))
    return units


def read_form(tests: Any, entry_point: Any = None) -> Form:
    """The tests of the column `tests`, in whatever form they are. Raises BadTests where they are in
    none; what a source says is not looked at.

    >>> form = read_form({"functional": "assert add(1, 2) == 3"})
    >>> form.kind, form.names
    ('asserts', ('add',))
    """
    tests, name = _opened(tests)
    if isinstance(tests, str):
        tests = [tests]
    if not isinstance(tests, (list, tuple)) or not tests:
        raise BadTests(_FORMS)
    if all(isinstance(test, dict) for test in tests):
        return _form_of_cases(list(tests), name, entry_point)
    if not all(isinstance(test, str) for test in tests):
        raise BadTests("tests must be all sources or all cases of input and output")
    function = _expression("entry_point", entry_point) or _expression("fn_name", name)
    source = "\n".join(tests)
    if not source.strip():
        raise BadTests(_FORMS)
    return Form(function, sources=(source,))


def _opened(tests: Any) -> tuple[Any, Any]:
    """The tests out of what is around them, and the name of their function where that says it."""
    tests = _decoded(tests)
    name = None
    while isinstance(tests, dict):
        present = {}
        for key, value in tests.items():
            # A key of no value is absent, but for an input, which may be none.
            if value is not None or key in ("input", "inputs"):
                present[key] = value
        name = present.get("fn_name") or name
        language = present.get("language", "python")
        if str(language).lower() not in _PYTHON:
            raise BadTests(f"only Python can be run, and the language is {language!r:.80}")
        envelope = next((key for key in _ENVELOPES if key in present), None)
        if envelope is None:
            return _rows(present), name
        tests = _decoded(present[envelope])
    return tests, name


def _decoded(tests: Any) -> Any:
    """What a string holds that is JSON, or a literal of Python; anything else as it is."""
    if not isinstance(tests, str) or tests.lstrip()[:1] not in ("[", "{"):
        return tests
    try:
        return json.loads(tests)
    except _UNREADABLE as error:
        try:
            return ast.literal_eval(tests.strip())
        except _UNREADABLE:
            raise BadTests(f"tests begin like JSON but cannot be read: {error}") from None


def _expression(column: str, name: Any) -> str | None:
    """The name of a function as Python writes it: a name, or one such as ``Solution().name``."""
    if name is None:
        return None
    try:
        return ast.unparse(ast.parse(name, mode="eval").body)
    except _UNREADABLE:
        raise BadTests(f"{column} must be a name, not {str(name)[:80]!r}") from None


def _rows(tests: dict[str, Any]) -> list[dict[str, Any]]:
    """Cases that are one dict of lists, as a list of dicts."""
    sources = tests.get("assert_case") or []
    if isinstance(sources, str):
        sources = [sources]
    columns = {"assert_case": sources} if sources else {}
    for name in ("input", "output"):
        values = tests.get(name, tests.get(f"{name}s"))
        if values or not sources:
            columns[name] = values

    _check_columns(columns)
    # what the dict says of all cases
    common = {key: tests[key] for key in ("type", "testtype", "metadata") if key in tests}
    rows = []
    for values in zip(*columns.values(), strict=True):
        rows.append(dict(zip(columns, values, strict=True)) | common)
    return rows


def _check_columns(columns: dict[str, Any]) -> None:
    """Raise BadTests where columns are no lists, empty or not equally long."""
    for name, values in columns.items():
        if not isinstance(values, (list, tuple)):
            raise BadTests(
                f"cases must have inputs and outputs that are lists, and {name} is {values!r:.80}"
            )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        counts = [f"{length} of {name}" for name, length in lengths.items()]
        raise BadTests(f"there are {' and '.join(counts)}")


@dataclass(frozen=True)
class _Case:
    """A case by the keys that datasets give it."""

    input: Any
    output: Any
    source: Any  # a test in Python, in place of the two
    kind: Any  # `_PROGRAM` or `_FUNCTION`, where the case says it
    function: Any  # that it calls
    is_exact: bool  # as in `Call`
    keys: tuple[str, ...]

    @classmethod
    def of(cls, row: dict[str, Any], name: Any) -> "_Case":
        """A row as a case; `name` is the function's where the row names none."""
        metadata = _decoded(row.get("metadata"))
        named = metadata.get("func_name") if isinstance(metadata, Mapping) else None
        return cls(
            input=row.get("input", row.get("inputs")),
            output=row.get("output", row.get("outputs")),
            source=row.get("assert_case"),
            kind=row.get("type") or row.get("testtype"),
            function=row.get("fn_name") or named or name,
            is_exact=bool(row.get("testtype")),
            keys=tuple(map(str, row)),
        )

    def read_source(self) -> str:
        """The test in Python."""
        if self.input or self.output or not isinstance(self.source, str):
            raise BadTests(
                "a case has either an assert_case, which is a source, or an input and an output"
            )
        return self.source

    def read(self, entry_point: Any) -> ProgramTest | Call:
        """Input and output, of a program or of a function."""
        if not {"input", "inputs"} & {*self.keys} or self.output is None:
            keys = ", ".join(self.keys) or "nothing"
            # An output of None is absent, as everywhere, though it has a key.
            value = ", whose value is None" if "output" in keys and "input" in keys else ""
            raise BadTests(f"cases must have input and output, and one has {keys}{value}")
        kind = self.kind or (_FUNCTION[0] if self.function else _PROGRAM[0])
        if kind in _PROGRAM:
            return ProgramTest(_text(self.input), _text(self.output))
        if kind not in _FUNCTION:
            accepted = ", ".join(_PROGRAM + _FUNCTION)
            raise BadTests(f"a case is of type {kind!r:.80}; accepted are {accepted}")
        function = self.function or entry_point
        if _expression("fn_name", function) is None:
            raise BadTests(
                "calls need the function's name, in fn_name, metadata.func_name or column entry_point"
            )
        return Call(function, self.input, self.output, self.is_exact)


def _form_of_cases(rows: list[dict[str, Any]], name: Any, entry_point: Any) -> Form:
    """Cases, each of a program, of a function, or a source; `name` is the function's where a case
    names none.
    """
    _expression("entry_point", entry_point)
    programs: list[ProgramTest] = []
    calls: list[Call] = []
    sources: list[str] = []
    tested = None  # by the sources
    for row in rows:
        case = _Case.of(row, name)
        if case.source:
            sources.append(case.read_source())
            tested = tested or _expression("fn_name", case.function or entry_point)
            continue
        test = case.read(entry_point)
        if isinstance(test, ProgramTest):
            programs.append(test)
        else:
            calls.append(test)
    if programs and (calls or sources):
        raise BadTests("tests must be all of a program, or all of functions")
    return Form(tested, tuple(programs), tuple(calls), tuple(sources))


def _text(value: object) -> str:
    """The input or output of a program."""
    if isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value):
        value = "\n".join(line.removesuffix("\n") for line in value)
    if value is not None and not isinstance(value, str):
        raise BadTests(f"inputs and outputs must be strings or lists of lines, not {value!r:.80}")
    return value or ""


def same_output(got: str, expected: str) -> bool:
    r"""Whether outputs are equal, apart from white space within and at the end of lines and empty
    lines before the first and after the last.

    A word that is expected to be a decimal, such as ``1.50``, may be another number of the same
    value: it may differ by a millionth of that, but at most by 1e-6 and at least by 1e-12. Or one
    of both is the other, rounded to six or more decimals. All else, also a whole number, has to be
    the same.

    >>> same_output("1  2 \n3\n\n", "1 2\n3"), same_output("1\n2", "1 2"), same_output("0.3333333333", "0.333333333333")
    (True, False, True)
    """
    got_lines = _words(got)
    expected_lines = _words(expected)
    if got_lines == expected_lines:
        return True
    if len(got_lines) != len(expected_lines):
        return False
    for got_words, expected_words in zip(got_lines, expected_lines, strict=True):
        if len(got_words) != len(expected_words):
            return False
        if not all(map(_same_word, got_words, expected_words)):
            return False
    return True


def _words(text: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in text.strip().split("\n")]


def _same_word(got: str, expected: str) -> bool:
    if got == expected:
        return True
    if not _DECIMAL.fullmatch(expected):
        return False
    if not (_DECIMAL.fullmatch(got) or _WHOLE.fullmatch(got)):
        return False
    wanted = Decimal(expected)
    # within 1e-6 of the size of the number, which counts as at least 1e-6 and at most 1
    size = min(max(abs(wanted), _NEAR), Decimal(1))
    return abs(Decimal(got) - wanted) <= _NEAR * size or _is_rounded(Decimal(got), wanted)


def _is_rounded(one: Decimal, other: Decimal) -> bool:
    """Whether the number with fewer decimals is the other, rounded: as "%.6f" writes a third, which is
    more than a millionth of it away. It has four digits that count, so that 0.000001 is not 0.0000012.

    >>> _is_rounded(Decimal("0.333333"), Decimal("0.33333333333")), _is_rounded(Decimal("0.33"), Decimal("0.333"))
    (True, False)
    """
    places = max(int(one.as_tuple().exponent), int(other.as_tuple().exponent))
    rounded = one if one.as_tuple().exponent == places else other
    has_digits = places <= -6 and rounded.adjusted() - places >= 3
    return has_digits and abs(one - other) <= Decimal(5).scaleb(places - 1)
