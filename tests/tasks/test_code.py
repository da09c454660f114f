"""`code:FILE`: the columns of the datasets of programming questions are found, and what they hold is
what the reward reads.
"""

import base64
import json
import os
import pickle
import re
import zlib

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError, unread_columns
from swift_rlvr.tasks.code import references_of
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

CODE = TASKS["code"]
ADD = "def add(a, b):\n    return a + b"
METHOD = "class Solution:\n    def add(self, a, b):\n        return a + b"
SUM = "print(sum(map(int, input().split())))"
CASES = [{"input": "1 2\n", "output": "3\n"}, {"input": "5 5\n", "output": "10\n"}]
IN_LISTS = {"inputs": ["1 2\n", "5 5\n"], "outputs": ["3\n", "10\n"]}
FUNCTIONAL = [{"input": "1\n2", "output": "3", "testtype": "functional"}]
HIDDEN = [{"input": "3\n4", "output": "7", "testtype": "functional"}]


def packed(value) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


# By dataset a raw row with the columns that it has, and what the prompt has to say.
ROWS: dict[str, tuple[dict, str]] = {
    "MBPP": (
        {
            "task_id": 2,
            "text": "Write a function to add.",
            "code": ADD.replace("\n", "\r\n"),
            "test_list": ["assert add(1, 2) == 3"],
            "test_setup_code": "",
            "challenge_test_list": [],
        },
        "assert add(1, 2) == 3",
    ),
    "MBPP, sanitized": (
        {
            "prompt": "Write a function to add.",
            "code": ADD,
            "test_imports": ["import math"],
            "test_list": ["assert math.isclose(add(1, 2), 3)"],
        },
        "math.isclose(add(1, 2), 3)",
    ),
    "HumanEval": (
        {
            "prompt": 'def add(a, b):\n    """Add."""\n',
            "canonical_solution": "    return a + b\n",
            "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
            "entry_point": "add",
        },
        "Complete this function:",
    ),
    "APPS, TACO: a program": (
        {
            "question": "Add two numbers.",
            "input_output": json.dumps(IN_LISTS),
            "solutions": json.dumps(["print 'Python 2'", SUM]),
            "starter_code": "",
        },
        "reads standard input",
    ),
    "APPS, TACO: a function": (
        {
            "question": "Add two numbers.",
            "input_output": '{"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}',
            "solutions": json.dumps([METHOD]),
            "starter_code": "class Solution:\n    def add(self, a, b):\n        ",
        },
        "Begin with this code:",
    ),
    "LiveCodeBench": (
        {
            "question_title": "Sum",
            "question_content": "Add two numbers.",
            "public_test_cases": json.dumps(FUNCTIONAL),
            "private_test_cases": packed(json.dumps(HIDDEN)),
            "metadata": '{"func_name": "add"}',
            "starter_code": "",
            "solution": METHOD,
        },
        "Write a function `add`.",
    ),
    "PRIME, verl": (
        {
            "data_source": "taco",
            "prompt": [
                {"role": "system", "content": "Think."},
                {"role": "user", "content": "Add two numbers."},
            ],
            "reward_model": {"style": "rule", "ground_truth": json.dumps(IN_LISTS)},
            "extra_info": {"index": 1, "reference": SUM},
        },
        "Add two numbers.",
    ),
    "open-r1": (
        {
            "prompt": "Add two numbers.",
            "gold_standard_solution": f"```python\n{SUM}\n```",
            "verification_info": {
                "language": "python",
                "test_cases": [{**case, "type": "stdin_stdout"} for case in CASES],
            },
        },
        "reads standard input",
    ),
    "DeepCoder": (
        {
            "problem": "Add two numbers.",
            "tests": json.dumps([{**case, "testtype": "stdin_stdout"} for case in CASES]),
            "solutions": [SUM],
        },
        "reads standard input",
    ),
    "KodCode": (
        {
            "question": "Write add.",
            "solution": ADD,
            "test": "from solution import add\ndef test_add():\n    assert add(1, 2) == 3",
        },
        "Write add.",
    ),
    "LeetCodeDataset": (
        {
            "problem_description": "Add two numbers.",
            "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
            "prompt": "from typing import *\n",
            "completion": METHOD,
            "entry_point": "Solution().add",
            "test": "def check(candidate):\n    assert candidate(a = 1, b = 2) == 3\n",
            "input_output": [{"input": "a = 1, b = 2", "output": "3"}],
        },
        "Begin with this code:",
    ),
    "ours": (
        {
            "messages": [{"role": "user", "content": "Write add."}],
            "tests": ["assert add(1, 2) == 3"],
            "solution": ADD,
        },
        "Write add.",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_columns_of_known_datasets(name):
    row, said = ROWS[name]
    prepared = CODE.preprocess(row)
    assert prepared["messages"][-1]["role"] == "user"
    assert said in prepared["messages"][-1]["content"]
    assert prepared["task"] == "code"
    reward = REWARDS["code"]()
    columns = {column: [prepared.get(column)] for column in ("tests", "entry_point", "task")}
    assert reward([CODE.gold_completion(row)], **columns) == [1.0]
    assert reward(["<answer>def add(*_): return 0</answer>"], **columns) == [0.0]
    assert not {"public_test_cases", "private_test_cases"} & {*unread_columns(CODE, row)}


def test_an_answer_at_the_end_of_messages_is_left_out():
    question = [{"role": "system", "content": "Code."}, {"role": "user", "content": "Write add."}]
    answer = {"role": "assistant", "content": f"```python\n{ADD}\n```"}
    row = {"messages": [*question, answer], "tests": ["assert add(1, 2) == 3"]}
    assert CODE.preprocess(row)["messages"] == question
    assert CODE.identity(row) == CODE.identity({**row, "messages": question})
    with pytest.raises(RowError, match="column 'messages': expected"):
        CODE.preprocess({**row, "messages": [answer]})


ASSERT = "assert add_two(1, 2) == 3"
CALL_OF_JSON = {"fn_name": "add_two", "inputs": [[1, 2]], "outputs": [3]}
IN_PYTEST = f"from solution import *\ndef test_it():\n    {ASSERT}"
IN_UNITTEST = (
    f"import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        {ASSERT}\n"
)
# Columns of tests that need a function add_two, which the question does not name.
NAMELESS: dict[str, dict] = {
    "a source": {"tests": {"functional": ASSERT}},
    "calls": {"tests": {"functional": CALL_OF_JSON}},
    "pytest": {"tests": {"pytest": IN_PYTEST}},
    "assert_case": {"tests": {"inputs": [None], "outputs": [None], "assert_case": [ASSERT]}},
    "a list as JSON": {"tests": json.dumps([ASSERT])},
    "a source in ground_truth": {"ground_truth": json.dumps({"functional": ASSERT})},
    "calls in ground_truth": {"reward_model": {"ground_truth": {"functional": CALL_OF_JSON}}},
    "pytest in ground_truth": {"reward_model": {"ground_truth": {"pytest": IN_PYTEST}}},
    "a list in ground_truth": {"ground_truth": json.dumps([ASSERT])},
    "test_code": {"test_code": IN_UNITTEST},
    "check": {
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3",
        "fn_name": "add_two",
    },
    "module": {"Unit-Tests": "import solution\nassert solution.add_two(1, 2) == 3"},
}


@pytest.mark.parametrize("name", NAMELESS)
def test_the_prompt_names_what_the_tests_call(name):
    prepared = CODE.preprocess({"Question": "Add two numbers.", **NAMELESS[name]})
    prompt = prepared["messages"][-1]["content"]
    assert "Write a function `add_two`." in prompt
    assert "standard input" not in prompt
    columns = {column: [prepared.get(column)] for column in ("tests", "entry_point", "task")}
    answers = {"a + b": 1.0, "a - b": 0.0}
    for result, reward in answers.items():
        answer = f"```python\ndef add_two(a, b):\n    return {result}\n```"
        assert REWARDS["code"]()([answer], **columns) == [reward]


@pytest.mark.parametrize(
    ("question", "tests", "said"),
    [
        # A word of the language is no name of a function.
        ("Please add two numbers.", ["assert add(1, 2) == 3"], "Write a function `add`."),
        ("Write add(a, b).", ["assert add(1, 2) == 3"], ""),
        ("Write `add`.", ["assert add(1, 2) == 3"], ""),
        ("Write is_even.", ["assert is_even(2)"], ""),
        ("Stack.", "s = LIFO()\ns.push(1)\nassert s.pop() == 1", "Write a class `LIFO`."),
        (
            "Solve it.",
            {"fn_name": "Solution().solve", "inputs": [[1]], "outputs": [1]},
            "Write a class `Solution` with a method `solve`.",
        ),
        (
            "Code and decode.",
            ["from math import pi\nassert to_code(to_text([1]), pi) == [1]"],
            "The tests use these names, which your code has to define: `to_code`, `to_text`.",
        ),
        ("Sum.", ["assert sum([1]) == 1"], "Write a function `sum`."),
        ("Any.", ["assert ("], ""),
    ],
)
def test_only_what_a_question_does_not_say_is_added(question, tests, said):
    prepared = CODE.preprocess({"question": question, "tests": tests})
    rest = "Write it in Python, in one ```python block."
    parts = [part for part in (question, said, rest) if part]
    assert prepared["messages"][-1]["content"] == "\n\n".join(parts)


def test_messages_stay_as_they_are_and_a_name_that_they_lack_is_remarked():
    messages = [{"role": "user", "content": "Add two numbers."}]
    prepared = CODE.preprocess({"messages": messages, "tests": [ASSERT]})
    assert prepared["messages"] == messages
    problem = "the prompt does not name a function or class that the tests use"
    assert REWARDS["code"].remarks(prepared) == [problem]
    named = [{"role": "user", "content": "Write add_two(a, b)."}]
    assert REWARDS["code"].remarks({**prepared, "messages": named}) == []


def test_what_ms_swift_takes_beside_the_messages_is_kept():
    tools, images = '[{"name": "run"}]', ["https://example.org/graph.png"]
    row = {"question": "Write add.", "test": ASSERT, "Tools": tools, "image": images, "level": 1}
    prepared = CODE.preprocess(row)
    assert prepared["tools"] == tools
    assert prepared["images"] == [{"bytes": None, "path": images[0]}]
    assert "level" not in prepared
    illustrated = {**row, "question": "Write add: ![](https://example.org/add.png)", "image": None}
    assert "images" not in CODE.preprocess(illustrated)


def test_cases_in_several_columns_all_count_and_parts_of_a_question_are_shown():
    row = {
        "description": "Add two numbers.",
        "input_format": "Two numbers.",
        "examples": [{"input": "1 2", "output": "3"}],
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": ["5 5\n"], "output": ["10\n"]},
        "generated_tests": {"input": [], "output": []},
        "solutions": {"language": [3], "solution": [SUM]},
    }
    prepared = CODE.preprocess(row)
    assert json.loads(prepared["tests"]) == CASES
    assert "Input\n\nTwo numbers.\n\nExample input\n\n1 2" in prepared["messages"][-1]["content"]
    assert REWARDS["code"]()([CODE.gold_completion(row)], tests=[prepared["tests"]]) == [1.0]


@pytest.mark.parametrize("name", ROWS)
def test_the_names_of_columns_are_compared_like_everywhere(name):
    row, said = ROWS[name]
    odd = {column.replace("_", " ").title(): value for column, value in row.items()}
    prepared = CODE.preprocess(odd)
    expected = CODE.preprocess(row)
    for column in ("messages", "tests", "entry_point"):
        assert prepared.get(column) == expected.get(column)
    assert CODE.gold_completion(odd) == CODE.gold_completion(row)
    for column, names in CODE.find_columns(odd).items():
        assert names and {*names} <= odd.keys(), column


@pytest.mark.parametrize("name", ROWS)
def test_no_prompt_shows_what_was_added(name):
    row = {**ROWS[name][0], "added_tests": '["assert add(70, 7) == 77"]'}
    prepared = CODE.preprocess(row)
    assert prepared["added_tests"] == row["added_tests"]
    assert "77" not in json.dumps(prepared["messages"])


def test_private_cases_count_and_unpacking_them_runs_no_code(tmp_path):
    row, _ = ROWS["LiveCodeBench"]
    assert json.loads(CODE.preprocess(row)["tests"]) == FUNCTIONAL + HIDDEN

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    with pytest.raises(
        RowError, match="private_test_cases cannot be read: .* is not a plain value"
    ):
        CODE.preprocess({**row, "private_test_cases": packed(Hostile())})
    assert not (tmp_path / "made").exists()
    for broken in ("?", packed([1]), packed("{"), base64.b64encode(b"x").decode()):
        with pytest.raises(RowError, match="private_test_cases"):
            CODE.preprocess({**row, "private_test_cases": broken})


def test_references_in_python_are_found_in_their_order():
    of_languages = {"language": [2, 3, 3], "solution": ["int main() {}", SUM, "print('x')"]}
    assert references_of({"solutions": of_languages}) == [SUM, "print('x')"]
    assert references_of({"solutions": "[]", "solution": None, "code": "not Python"}) == []
    assert references_of({"solution": "The sum is 3."}) == []


def test_rows_that_cannot_be_used():
    tests = ["assert add(1, 2) == 3"]
    for row, message in (
        ({"tests": tests}, "column 'messages': nothing in the columns tests"),
        ({"problem": "Add."}, "column 'tests': nothing in the columns problem"),
        ({"problem": " ", "tests": tests}, "column 'messages': expected a question, got ' '"),
        ({"problem": "Add.", "public_test_cases": "?"}, "column 'tests': expected a list of cases"),
    ):
        with pytest.raises(RowError, match=message):
            CODE.preprocess(row)


def test_variables_name_other_columns(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_QUESTION_COLUMN", "ask")
    monkeypatch.setenv("SWIFT_RLVR_ANSWER_COLUMN", "checks")
    row = {"ask": "Write add.", "checks": ["assert add(1, 2) == 3"], "problem": "another"}
    prepared = CODE.preprocess(row)
    assert prepared["messages"][-1]["content"].startswith("Write add.")
    assert prepared["tests"] == row["checks"]


def test_a_file_alone_is_recognised_or_the_message_says_how(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS["ours"][0]))
    assert parse_source(str(path)).task is CODE
    path.write_text(json.dumps(ROWS["MBPP"][0]))
    with pytest.raises(InputError, match="write code:"):
        parse_source(str(path))
    assert [row for _, row in parse_source(f"code:{path}").rows()] == [ROWS["MBPP"][0]]


ADDS = {"tests": ["assert add(1, 2) == 3"]}
ADD_TURN = {"role": "user", "content": "Write a function add."}
# What a question may say -> the language that it asks for.
ASKING = [
    ("Use Java.", "Java"),
    ("Use C++ to solve it.", "C++"),
    ("Use the C programming language.", "C"),
    ("Language: C++", "C++"),
    ("**Language**: rust", "rust"),
    ("Target language: R", "R"),
    ("Write a function in C.", "C"),
    ("Write a C program that prints the sum.", "C"),
    ("Write an R script.", "R"),
    ("Write a SQL query.", "SQL"),
    ("Write a query in SQL.", "SQL"),
    ("Code in Go.", "Go"),
    ("Please write your solution in Rust.", "Rust"),
    ("The code must be in Java.", "Java"),
    ("The code should be written in C.", "C"),
    ("Implement a JSON parser in C++.", "C++"),
    ("Create a Swift class with a method.", "Swift"),
    ("You are a senior Java developer.", "Java"),
    ("You are an assistant proficient in C++.", "C++"),
    ("Put your code within ```java and ``` tags.", "java"),
    ("Complete the function:\n\n```cpp\nint add(int a, int b) {\n```", "cpp"),
    ("\nC program to add two numbers", "C"),
]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"question": "Write a C++ program that adds two numbers."}, "C++"),
        ({"question": "Add numbers. Implement the function `add` in Java."}, "Java"),
        (
            {"messages": [{"role": "user", "content": "Give a complete solution using C++17"}]},
            "C++",
        ),
        ({"question": "Solve this problem in c++."}, "c++"),
        ({"question": "Implement `add` in JavaScript."}, "JavaScript"),
        *(({"question": f"Add two numbers. {asks}"}, language) for asks, language in ASKING),
        (
            {
                "messages": [
                    {"role": "system", "content": "You are an expert C++ programmer."},
                    ADD_TURN,
                ]
            },
            "C++",
        ),
        (
            {"messages": [ADD_TURN, {"role": "assistant", "content": "```cpp\nint add() {}\n```"}]},
            "cpp",
        ),
        ({"question": "Add.", "starter_code": "class Solution {\npublic:\n  int add("}, "Python"),
        ({"question": "Add.", "starter_code": "var add = function(a, b) {\n};"}, "Python"),
    ],
)
def test_a_question_that_asks_for_another_language_is_refused(row, names):
    with pytest.raises(RowError, match=re.escape(names)):
        TASKS["code"].preprocess_for_training(row | ADDS)


@pytest.mark.parametrize(
    "question",
    [
        "Do not use %lld to read or write 64-bit integers in C++. Add two numbers.",
        "Given a program in C++, write a Python function `add` that counts its lines.",
        "Write a function `add` that counts the words in Go fish.",
        "Write a solution in Python or C++.",
        "Implement a parser `add` for Java code.",
        "Find `add` of all points in R^n, or of x in R.",
        "Write a function `add` that checks whether x is in R.",
        "Go to the shop. Use Go moves. Use R and C to `add`.",
        "Write a C-style comment stripper `add`.",
        "Swift delivery needs three trucks. Count the Rust on iron with `add`.",
        "Write a function `add` that counts comments in Java files.",
        "Implement a lexer `add` for programs written in Java.",
        "Write a function `add` that behaves like the split method in Java.",
        "Write a function `add` that tells whether a word is a keyword in C++.",
        "Write a program `add` to play Go on a board.",
        "Write a function `add` that returns a SQL query.",
        "Alice is a Java developer. As a Ruby dealer she may `add`.",
        "Write a class C that has a method `add`. Implement a class R.",
        "Given R rows and C columns, write code that can `add` them in this order: R, C.",
        "Java solutions get 2 seconds more. In C++ use long long. Write a program `add`.",
        "The language: a formal language over {a, b}. Write a function `add`.",
        "Language: Python, C++. Write a function `add`.",
        "You are a Python and C++ programmer. Write a function `add`.",
        "What does `add` do in Python?\n\nComplete it:\n```c\nint add();\n```",
    ],
)
def test_a_question_that_only_names_another_language_is_not(question):
    row = TASKS["code"].preprocess_for_training({"question": question} | ADDS)
    assert row["messages"][-1]["content"].startswith(question)
