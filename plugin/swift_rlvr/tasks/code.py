"""Programming questions of one's own, whatever their columns are called: `code:FILE`, and rows of
the task `code` in files of `mixed`.

The question, the tests and, where there is one, a reference solution are looked for under the names
that MBPP, HumanEval, APPS, TACO, LiveCodeBench, LeetCodeDataset, KodCode, PRIME, DeepCoder, verl and
open-r1 give them. `messages` that end with a user turn stay as they are; an answer of the assistant
at their end is left out. What is right is said by the tests, and by the column `added_tests`, which
`swift-rlvr dataset prepare --add_cases` writes and no prompt shows.
"""

import ast
import base64
import io
import json
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import ColumnSettings
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tasks.own import question_of
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.answers import find_code

# The usual names of the columns, the likeliest first.
QUESTIONS = (
    *("messages", "question_content", "problem_description", "problem", "question", "text"),
    *("prompt", "description", "problem_statement", "query", "instruction", "content"),
)
# Columns of these names hold tests in every dataset; the further ones may hold the answer to a
# question of mathematics.
ONLY_TESTS = (
    *("tests", "verification_info", "test_list", "public_test_cases", "test", "test_cases"),
    "input_output",
)
TESTS = (*ONLY_TESTS, "reward_model", "ground_truth")
REFERENCES = (
    *("reference_solution", "gold_standard_solution", "canonical_solution", "solutions"),
    *("solution", "reference", "code", "completion"),
)
# What a grader executes before MBPP's tests.
_SETUP = ("test_imports", "test_setup_code")
# Python 3 among the languages of code_contests.
_PYTHON = (3, "3", "python3", "PYTHON3", "python", "Python3", "Python")
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
# Of LiveCodeBench's private cases, unpacked.
_LONGEST_CASES = 1 << 28


def find_columns(present: Iterable[str]) -> dict[str, list[str]]:
    """For `messages` and `tests` the columns that may hold them, the likeliest first."""
    present = set(present)
    settings = ColumnSettings.from_environment()
    questions = (settings.question_column,) if settings.question_column else QUESTIONS
    tests = (settings.answer_column,) if settings.answer_column else TESTS
    return {
        "messages": [name for name in questions if name in present],
        "tests": [name for name in tests if name in present],
    }


def _first(row: Row, column: str, variable: str) -> tuple[str, Any]:
    """The name and the value of the first column that holds something."""
    names = find_columns(row)[column]
    for name in names:
        if row[name] is not None:
            return name, row[name]
    where = ", ".join(names or map(str, row)) or "none"
    remedy = f"{PREFIX}{variable}_COLUMN names another"
    raise RowError(column, f"nothing in the columns {where}; {remedy}")


# --- Tests


def tests_of(row: Row) -> tuple[Any, str | None]:
    """The tests of a row, in a form that `external_code` reads, and the name of the function that
    they call, where a column says it.
    """
    column, tests = _first(row, "tests", "ANSWER")
    entry_point = row.get("entry_point")
    if column == "test_list":
        setup = _setup(row)
        tests = [*setup, *tests] if setup and isinstance(tests, (list, tuple)) else tests
    elif column == "public_test_cases":
        tests = _live_code_bench_cases(row)
        entry_point = entry_point or _decoded(row.get("metadata"), {}).get("func_name")
    elif column == "input_output" or isinstance(tests, Mapping):
        tests = tests if isinstance(tests, str) else json.dumps(tests, default=str)
    return tests, entry_point


def _setup(row: Row) -> list[str]:
    sources = []
    for name in _SETUP:
        source = row.get(name)
        if isinstance(source, str):
            source = [source]
        sources += [line for line in source or () if isinstance(line, str) and line.strip()]
    return sources


def _live_code_bench_cases(row: Row) -> str:
    """Public and private cases, as JSON."""
    cases = _decoded(row["public_test_cases"], None)
    if not isinstance(cases, list):
        raise RowError("tests", f"expected a list of cases, got {shown(row['public_test_cases'])}")
    private = row.get("private_test_cases")
    if private:
        unpacked = _decoded(private, None)
        if unpacked is None:
            unpacked = _unpacked(private)
        cases = [*cases, *unpacked]
    return json.dumps(cases)


class _TextUnpickler(pickle.Unpickler):
    """Reads plain values, and nothing that would run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")


def _unpacked(text: Any) -> list[Any]:
    """LiveCodeBench's private cases: JSON, pickled, compressed, in base64."""
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, _LONGEST_CASES)
        cases = json.loads(_TextUnpickler(io.BytesIO(plain)).load())
    except (*_UNREADABLE, zlib.error, pickle.UnpicklingError, EOFError, IndexError) as error:
        raise RowError("tests", f"private_test_cases cannot be read: {error}") from None
    if not isinstance(cases, list):
        raise RowError("tests", f"expected a list of private_test_cases, got {shown(cases)}")
    return cases


def _decoded(value: Any, otherwise: Any) -> Any:
    """A value that may be written as JSON."""
    if not isinstance(value, str):
        return otherwise if value is None else value
    try:
        return json.loads(value)
    except _UNREADABLE:
        return otherwise


# --- The question


def messages_of(row: Row) -> list[dict[str, str]]:
    """The messages of a row without the assistant's answer at the end, else one of the user."""
    column, question = _first(row, "messages", "QUESTION")
    if column == "messages" or isinstance(question, (list, tuple)):
        return question_of(question)
    if not isinstance(question, str) or not question.strip():
        raise RowError("messages", f"expected a question, got {shown(question)}")
    return [{"role": "user", "content": "\n\n".join(_parts_of_question(row, question.strip("\n")))}]


def _parts_of_question(row: Row, question: str) -> Iterator[str]:
    if _is_python(question):
        yield f"Complete this function:\n\n```python\n{question}\n```"
    else:
        yield question.strip()
    starter = row.get("starter_code")
    if isinstance(starter, str) and starter.strip():
        yield f"Begin with this code:\n\n```python\n{starter}\n```"

    tests, entry_point = tests_of(row)
    name = entry_point or _called_name(tests)
    if row.get("test_list") is not None and isinstance(tests, (list, tuple)):
        # As MBPP's authors ask; without the tests nobody would know the function's name.
        asserts = "\n".join(map(str, tests))
        yield f"Your code should pass these tests:\n\n```python\n{asserts}\n```"
    elif name and name.rpartition(".")[2] not in question + str(starter):
        yield f"Write a function `{name}`."
    elif not name and isinstance(tests, str) and tests.lstrip()[:1] in ("{", "["):
        yield "The program reads standard input and prints to standard output."
    yield "Write it in Python, in one ```python block."


def _called_name(tests: Any) -> str | None:
    """The function that cases call, where they name one."""
    tests = _decoded(tests, None) if isinstance(tests, str) else tests
    while isinstance(tests, Mapping):
        if isinstance(tests.get("fn_name"), str):
            return str(tests["fn_name"])
        inner = next((tests[key] for key in ("ground_truth", "test_cases") if tests.get(key)), None)
        tests = _decoded(inner, None)
    if isinstance(tests, list) and tests and isinstance(tests[0], Mapping):
        metadata = _decoded(tests[0].get("metadata"), None)
        named = tests[0].get("fn_name")
        if not named and isinstance(metadata, Mapping):
            named = metadata.get("func_name")
        return named if isinstance(named, str) else None
    return None


def _is_python(text: str) -> bool:
    """Whether a question is the head of a function, as in HumanEval."""
    if "def " not in text:
        return False
    try:
        body = ast.parse(text).body
    except _UNREADABLE:
        return False
    return bool(body) and isinstance(body[-1], (ast.FunctionDef, ast.ClassDef))


# --- The reference


def references_of(row: Row) -> list[str]:
    """The solutions in Python that a row brings, in its order; empty where it brings none."""
    sources: list[Any] = []
    for name in REFERENCES:
        value = row.get(name)
        if value is None:
            continue
        value = _decoded(value, value)
        if isinstance(value, Mapping):
            value = _of_languages(value)
        sources += value if isinstance(value, (list, tuple)) else [value]
    extra = row.get("extra_info")
    if isinstance(extra, Mapping):
        sources += [extra[name] for name in REFERENCES if extra.get(name)]

    references = []
    for source in sources:
        code = _python_of(source, row)
        if code is not None and code not in references:
            references.append(code)
    return references


def _of_languages(solutions: Mapping[str, Any]) -> list[Any]:
    """Those in Python of code_contests' `{"language": [...], "solution": [...]}`."""
    languages = solutions.get("language") or ()
    sources = solutions.get("solution") or ()
    pairs = zip(languages, sources, strict=False)
    return [source for language, source in pairs if language in _PYTHON]


def _python_of(source: Any, row: Row) -> str | None:
    """A program; HumanEval's solution is the body of the function in its prompt."""
    if not isinstance(source, str) or not source.strip():
        return None
    if "```" in source:
        source = find_code(source) or ""
    prompt = row.get("prompt")
    starts = [source]
    if isinstance(prompt, str):
        # LeetCodeDataset's prompt has the imports of its solutions.
        starts.insert(0 if _is_code(prompt) else 1, prompt + source)
    for code in starts:
        if _is_code(code):
            return code
    return None


def _is_code(text: str) -> bool:
    """Whether a text is Python that defines, assigns or does something."""
    try:
        body = ast.parse(text).body
    except _UNREADABLE:
        return False
    return any(not isinstance(statement, ast.Expr) for statement in body) or "(" in text


# --- The task


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `tests`, `entry_point` and `added_tests` where there
    are any, and `task`. A row that has `messages` and `tests` keeps its other columns too.
    """
    messages = messages_of(row)
    tests, entry_point = tests_of(row)
    columns = find_columns(row)
    is_plain = columns["messages"][:1] == ["messages"] and columns["tests"][:1] == ["tests"]
    kept = dict(row) if is_plain else {}
    prepared = {**kept, "messages": messages, "tests": tests, "task": "code"}
    for name, value in (("entry_point", entry_point), ("added_tests", row.get("added_tests"))):
        if value is not None:
            prepared[name] = value
    return prepared


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(messages_of(row)[-1]["content"])


def gold(row: Row) -> Gold | None:
    """The reference solution; None where there is none. RowError for a row that cannot be used."""
    messages_of(row)
    tests_of(row)
    references = references_of(row)
    if not references:
        return None
    reference = references[0]
    return Gold(f"\n```python\n{reference}\n```\n", "The program follows.", reference)


@dataclass(frozen=True)
class CodeTask(Task):
    """A task whose columns may be called anything that is usual."""

    any_columns: ClassVar[bool] = True

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        return find_columns(present)


TASK = CodeTask(
    name="code",
    columns=("messages", "tests"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=SYSTEM_PROMPT,
    system_in_rows=False,
    reward_columns=("tests",),
    verifier="external_code",
    further_rewards=(),
    examples=(
        {
            "messages": [{"role": "user", "content": "Write a function add of two numbers."}],
            "tests": ["assert add(1, 2) == 3"],
        },
        {
            "text": "Write a function double that doubles a number.",
            "test_list": ["assert double(2) == 4"],
            "code": "def double(number):\n    return 2 * number",
        },
    ),
)
