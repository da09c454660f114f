"""`code:FILE`: the columns of the datasets of programming questions are found, and what they hold is
what the reward reads.
"""

import base64
import json
import os
import pickle
import zlib

import pytest
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError
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
ROWS = {
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


def test_an_answer_at_the_end_of_messages_is_left_out():
    question = [{"role": "system", "content": "Code."}, {"role": "user", "content": "Write add."}]
    answer = {"role": "assistant", "content": f"```python\n{ADD}\n```"}
    row = {"messages": [*question, answer], "tests": ["assert add(1, 2) == 3"]}
    assert CODE.preprocess(row)["messages"] == question
    assert CODE.identity(row) == CODE.identity({**row, "messages": question})
    with pytest.raises(RowError, match="column 'messages': expected"):
        CODE.preprocess({**row, "messages": [answer]})


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
    with pytest.raises(InputError, match="name the task, as in code:"):
        parse_source(str(path))
    assert [row for _, row in parse_source(f"code:{path}").rows()] == [ROWS["MBPP"][0]]
