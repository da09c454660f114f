"""Programming questions of one's own, whatever their columns are called: `code:FILE`, and rows of
the task `code` in files of `mixed`.

The question, the tests and, where there is one, a reference solution are looked for under the names
that MBPP, HumanEval, APPS, TACO, LiveCodeBench, LeetCodeDataset, KodCode, PRIME, DeepCoder, verl,
open-r1 and code_contests give them, without regard to case, spaces, hyphens and underscores.
`messages` that end with a user turn stay as they are; an answer of the assistant at their end is
left out. Any other prompt says what the tests need: the names that they look up, or a program that
reads standard input (`verifiers/code/cases.py` reads them). What is right is said by the tests, and
by the column `added_tests`, which `swift-rlvr dataset prepare --add_cases` writes and no prompt
shows.
"""

import ast
import base64
import io
import json
import pickle
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.asked_language import asked_language, language_of_blocks
from swift_rlvr.tasks.columns import (
    KEPT_NAMES,
    ColumnSettings,
    kept_columns,
    pictures_in,
    unused_passages,
)
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tasks.own import question_of
from swift_rlvr.tasks.pictures import pictures_of_parts
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    asked_text,
    folded_name,
    normalised,
    prompt_text,
    shown,
)
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.answers import find_code
from swift_rlvr.verifiers.code import BadTests
from swift_rlvr.verifiers.code.cases import PROGRAM, Form, read_form

# The usual names of the columns, the likeliest first; compared as `folded_name` says.
QUESTIONS = (
    *("messages", "question_content", "problem_description", "problem", "question", "text"),
    *("prompt", "description", "problem_statement", "query", "instruction", "content"),
)
# Columns of these names hold tests in every dataset; the further ones may hold the answer to a
# question of mathematics.
ONLY_TESTS = (
    *("tests", "verification_info", "test_list", "public_test_cases", "test", "test_cases"),
    *("test_code", "unit_tests", "assert_case", "functional", "pytest", "official_tests"),
    *("public_tests", "input_output"),
)
TESTS = (*ONLY_TESTS, "reward_model", "ground_truth")
REFERENCES = (
    *("reference_solution", "gold_standard_solution", "canonical_solution", "solutions"),
    *("solution", "reference", "code", "completion"),
)
# Where the function's name stands beside the tests.
_FUNCTION = ("entry_point", "fn_name", "func_name", "function_name")
# What a grader executes before MBPP's tests.
_SETUP = ("test_imports", "test_setup_code")
# Further cases of LiveCodeBench and of code_contests, which count too.
_MORE_CASES = {
    "public_test_cases": ("private_test_cases",),
    "public_tests": ("private_tests", "generated_tests"),
}
# Parts of a question that have columns of their own, as at open-r1's codeforces.
_SECTIONS = {"input_format": "Input", "output_format": "Output", "note": "Note"}
_NO_PASSAGE = ("test", "case", "tag", "skill", "topic", "checker", "editorial")
# Python 3 among the languages of code_contests.
_PYTHON = (3, "3", "python3", "PYTHON3", "python", "Python3", "Python")
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
# Of LiveCodeBench's private cases, unpacked.
_LONGEST_CASES = 1 << 28

# The names that this module knows, by their folded form.
_KNOWN = {
    folded_name(name): name
    for name in (
        *QUESTIONS,
        *TESTS,
        *REFERENCES,
        *_FUNCTION,
        *_SETUP,
        *_SECTIONS,
        *(name for names in _MORE_CASES.values() for name in names),
        *("metadata", "starter_code", "extra_info", "examples", "added_tests"),
    )
}


def _known_name(name: str) -> str:
    """The name by which this module asks for a column; its own where it does not know the column."""
    return _KNOWN.get(folded_name(name), name)


def _known_names(row: Row) -> dict[str, Any]:
    """The row with its columns under the names by which this module asks for them."""
    renamed = dict(row)
    for name, value in row.items():
        renamed.setdefault(_known_name(name), value)
    return renamed


def find_columns(present: Iterable[str]) -> dict[str, list[str]]:
    """For `messages` and `tests` the columns that may hold them, the likeliest first."""
    in_file: dict[str, str] = {}
    for name in present:
        if in_file.setdefault(_known_name(name), name) != name and name in _KNOWN.values():
            in_file[name] = name  # the exact name goes before
    settings = ColumnSettings.from_environment()
    chosen = {"messages": settings.question_column, "tests": settings.answer_column}
    columns = {}
    for column, usual in (("messages", QUESTIONS), ("tests", TESTS)):
        choice = chosen[column]
        names = (_known_name(choice),) if choice else usual
        columns[column] = [in_file[name] for name in names if name in in_file]
    return columns


def _first(row: Row, column: str) -> tuple[str, Any]:
    """The name, as this module knows it, and the value of the first column that holds something."""
    names = find_columns(row)[column]
    for name in names:
        if row[name] not in (None, "", [], {}):
            return _known_name(name), row[name]
    where = ", ".join(names or map(str, row)) or "none"
    raise RowError(column, f"nothing in the columns {where}; {_VARIABLES[column]} names another")


# Where the names of the columns are given.
_VARIABLES = {"messages": f"{PREFIX}QUESTION_COLUMN", "tests": f"{PREFIX}ANSWER_COLUMN"}


# --- Tests


def tests_of(row: Row) -> tuple[Any, str | None]:
    """The tests of a row, in a form that `external_code` reads, and the name of the function that
    they call, where a column says it.
    """
    column, tests = _first(row, "tests")
    row = _known_names(row)
    entry_point = next((row[name] for name in _FUNCTION if row.get(name)), None)
    if column == "test_list":
        tests = _decoded(tests, tests)
        if isinstance(tests, (list, tuple)):
            tests = [*_setup(row), *tests]
    elif column in _MORE_CASES:
        tests = _all_cases(row, column)
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


def _all_cases(row: Row, public: str) -> str:
    """Public and private cases, as JSON."""
    cases = []
    for name in (public, *_MORE_CASES[public]):
        value = row.get(name)
        if not value:
            continue
        written = _decoded(value, None)
        if written is None and name != public:
            written = _unpacked(value)
        if isinstance(written, Mapping):
            pairs = zip(written.get("input") or (), written.get("output") or (), strict=False)
            written = [{"input": text, "output": output} for text, output in pairs]
        if not isinstance(written, list):
            raise RowError("tests", f"expected a list of cases in {name}, got {shown(value)}")
        cases += written
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


_STARTS_OTHERS = re.compile(
    r"^\s*(?:#include\b|using namespace\b|public\s+class\b|class\s+\w+\s*\{|func\s+\w+\(|"
    r"(?:pub\s+)?fn\s+\w+|impl\s+\w+|(?:var\s+\w+\s*=\s*)?function\b)",
    re.MULTILINE,
)


def messages_of(row: Row) -> list[dict[str, str]]:
    """The messages of a row without the assistant's answer at the end, else one of the user.
    RowError where they ask for a program in another language than Python.
    """
    column, question = _first(row, "messages")
    if column == "messages" or isinstance(question, (list, tuple)):
        messages = question_of(question)
    elif isinstance(question, str) and question.strip():
        content = "\n\n".join(_parts_of_question(row, question.strip("\n")))
        messages = [{"role": "user", "content": content}]
    else:
        raise RowError("messages", f"expected a question, got {shown(question)}")
    language = _other_language(row, messages)
    if language is not None:
        raise RowError("messages", f"they ask for {language}, and the tests run Python")
    starter = _known_names(row).get("starter_code")
    if isinstance(starter, str) and _STARTS_OTHERS.search(starter):
        raise RowError(
            "starter_code", f"expected Python, which the tests run, got {shown(starter)}"
        )
    return messages


def _other_language(row: Row, messages: list[dict[str, str]]) -> str | None:
    """The language other than Python that a row asks for."""
    column, question = _first(row, "messages")
    if isinstance(question, str):  # without what is put behind it, which asks for Python
        return asked_language(question)
    asked = asked_language(prompt_text(messages))
    # What a row's own prompt does not say, the answer in it may show.
    answer = question[-1] if column == "messages" and question else None
    if asked or not isinstance(answer, Mapping) or answer.get("role") != "assistant":
        return asked
    return language_of_blocks(str(answer.get("content")))


def _parts_of_question(row: Row, question: str) -> Iterator[str]:
    tests, entry_point = tests_of(row)
    row = _known_names(row)
    statements = _statements(question)
    # the head of a function, as in HumanEval
    if statements and isinstance(statements[-1], (ast.FunctionDef, ast.ClassDef)):
        yield f"Complete this function:\n\n```python\n{question}\n```"
    else:
        yield question.strip()
        yield from _sections(row)
    starter = row.get("starter_code")
    if isinstance(starter, str) and starter.strip():
        yield f"Begin with this code:\n\n```python\n{starter}\n```"

    if row.get("test_list") is not None and isinstance(tests, (list, tuple)):
        # As MBPP's authors ask; without the tests nobody would know the function's name.
        asserts = "\n".join(map(str, tests))
        yield f"Your code should pass these tests:\n\n```python\n{asserts}\n```"
    else:
        form = Form()
        with suppress(BadTests):  # `external_code` says so
            form = read_form(tests, entry_point)
        yield from _what_tests_need(form, f"{question}\n{starter}")
    yield "Write it in Python, in one ```python block."


def _sections(row: Row) -> Iterator[str]:
    for name, title in _SECTIONS.items():
        text = row.get(name)
        if isinstance(text, str) and text.strip():
            yield f"{title}\n\n{text.strip()}"
    examples = row.get("examples")
    for example in examples if isinstance(examples, (list, tuple)) else ():
        if isinstance(example, Mapping) and {"input", "output"} <= example.keys():
            yield f"Example input\n\n{example['input']}\n\nExample output\n\n{example['output']}"


def _what_tests_need(form: Form, text: str) -> Iterator[str]:
    """What a prompt with this text does not say yet: how the code is run, and its names."""
    if form.kind == PROGRAM:
        yield "The program reads standard input and prints to standard output."
    needed = unnamed(form, text)
    if not needed:
        return
    (first, *others) = needed
    if others:
        names = ", ".join(f"`{name}`" for name in needed)
        yield f"The tests use these names, which your code has to define: {names}."
        return
    cls, _, method = first.rpartition("().")
    if cls:
        yield f"Write a class `{cls}` with a method `{method}`."
    else:
        yield f"Write a {'class' if first[:1].isupper() else 'function'} `{first}`."


def unnamed(form: Form, text: str) -> list[str]:
    """The names that tests need and a prompt with this text does not name, in a way that cannot be
    a word of the language: "add two numbers" does not name `add`.

    >>> form = read_form(["assert add(1, 2) == 3"])
    >>> [unnamed(form, text) for text in ("Add two numbers: add them.", "Write add(a, b).", "A function named add.")]
    [['add'], [], []]
    """
    missing = []
    for needed in form.names:
        name = re.escape(needed.rpartition(".")[2])
        is_word = needed.isalpha() and needed.islower() and len(needed) > 1
        called = rf"\b{name}\s*\(|[`'\"*]{name}\b|\b(?:def|class|function|method|named|called)\s+{name}\b"
        if not re.search(called if is_word else rf"\b{name}\b", text):
            missing.append(needed)
    return missing


# --- The reference


def references_of(row: Row) -> list[str]:
    """The solutions in Python that a row brings, in its order; empty if it brings none."""
    row = _known_names(row)
    places: list[Mapping[str, Any]] = [row]
    extra = row.get("extra_info")
    if isinstance(extra, Mapping):
        places.append(extra)

    references: list[str] = []
    for place in places:
        for name in REFERENCES:
            written = place.get(name)
            value = _decoded(written, written)
            if isinstance(value, Mapping):
                # code_contests' {"language": [...], "solution": [...]}
                pairs = zip(value.get("language") or (), value.get("solution") or (), strict=False)
                value = [source for language, source in pairs if language in _PYTHON]
            for source in value if isinstance(value, (list, tuple)) else [value]:
                code = _python_of(source, row)
                if code is not None and code not in references:
                    references.append(code)
    return references


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
    return any(not isinstance(each, ast.Expr) or "(" in text for each in _statements(text))


def _statements(text: str) -> list[ast.stmt]:
    """The statements of a text that is Python; else none."""
    try:
        return ast.parse(text).body
    except _UNREADABLE:
        return []


# --- The task


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `tests`, `entry_point` and `added_tests` where there
    are any, and `task`. A row that has `messages` and `tests` keeps its other columns too, any other
    what ms-swift takes beside the messages, such as images and tools.
    """
    messages = messages_of(row)
    tests, entry_point = tests_of(row)
    columns = find_columns(row)
    is_plain = columns["messages"][:1] == ["messages"] and columns["tests"][:1] == ["tests"]
    kept = dict(row) if is_plain else kept_columns(row, "", "")
    if pictures_of_parts(row.get("messages")):
        kept["images"] = pictures_in(row)
    prepared = {**kept, "messages": messages, "tests": tests, "task": "code"}
    added_tests = _known_names(row).get("added_tests")
    for name, value in (("entry_point", entry_point), ("added_tests", added_tests)):
        if value is not None:
            prepared[name] = value
    return prepared


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(asked_text(messages_of(row)))


def gold(row: Row) -> Gold | None:
    """The reference solution; None if there is none, so that nothing has tried the tests. RowError
    for a row that cannot be used.
    """
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

    def read_columns(self, row: Row) -> list[str]:
        read = super().read_columns(row)
        # Packed as they are, nothing of them stands in the prepared row.
        more = [name for column in read for name in _MORE_CASES.get(column, ())]
        return [*read, *more]

    def unused(self, row: Row) -> list[str]:
        known = list(KEPT_NAMES)
        for name in row:
            # What else a dataset has of tests, and of how its task is solved.
            is_about = any(word in name.casefold() for word in _NO_PASSAGE)
            if is_about or _known_name(name) in _KNOWN.values():
                known.append(name)
        return unused_passages(row, known, prompt_text(messages_of(row)))

    def names_of(self, column: str) -> Sequence[str]:
        return QUESTIONS if column == "messages" else TESTS

    def variable_of(self, column: str) -> str | None:
        return _VARIABLES[column]


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
