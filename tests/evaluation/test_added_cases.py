"""`swift-rlvr dataset prepare code:FILE --add_cases N`: what it writes, and what it says of rows that
get nothing.
"""

import json

from commands import ran, refused
from paths import DATASETS
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.jsonl import read_jsonl

ADD = {
    "text": "Write a function to add.",
    "code": "def add(a, b):\n    return a + b",
    "test_list": ["assert add(1, 2) == 3", "assert add(4, 2) == 6"],
}
ROWS = [
    ADD,
    {
        "text": "Write a function f.",
        "code": "def f(x): return x",
        "test_list": ["assert f(1) == 2"],
    },
    {"text": "Write a function g.", "code": None, "test_list": ["assert g(1) == 2"]},
]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_get_tests_that_the_reward_reads(tmp_path):
    source = written(tmp_path / "rows.jsonl", ROWS)
    out = tmp_path / "out.jsonl"
    said = ran("dataset", "prepare", f"code:{source}", "--add_cases", 5, "--out", out, columns=200)
    assert "Added 5 tests to 1 rows." in said
    assert "faulty versions" not in said  # no mutant of `a + b` passes both visible tests
    assert "line 2: the reference fails the row's own tests (wrong: expected 2, got 1)" in said
    assert "line 3: no reference solution" in said
    assert "Kept 3 of the 3 rows read" in said
    rows = [row for _, row in read_jsonl(out)]
    assert [row.get("added_tests") is not None for row in rows] == [True, False, False]
    assert {**rows[0], "added_tests": None} == {**ADD, "added_tests": None}

    prepared = TASKS["code"].preprocess(rows[0])
    table = "def add(a, b):\n    return {(1, 2): 3, (4, 2): 6}.get((a, b), 0)"
    codes = [f"```python\n{code}\n```" for code in (ADD["code"], table)]
    columns = {name: [prepared[name]] * 2 for name in ("tests", "added_tests")}
    assert REWARDS["code"]()(codes, **columns) == [1.0, 0.0]

    # What was added is replaced; the same seed gives the same.
    again = tmp_path / "again.jsonl"
    ran("dataset", "prepare", f"code:{out}", "--add_cases", 5, "--out", again)
    assert again.read_text() == out.read_text()
    other = tmp_path / "other.jsonl"
    ran("dataset", "prepare", f"code:{out}", "--add_cases", 5, "--seed", 1, "--out", other)
    assert other.read_text() != out.read_text()
    assert "Every gold earns the maximum" in ran("dataset", "check", f"code:{other}#1")


def test_of_a_mixture_the_programming_tasks_get_tests(tmp_path):
    gsm8k = {"task": "gsm8k", "question": "1 + 1?", "answer": "#### 2"}
    source = written(tmp_path / "rows.jsonl", [gsm8k, {"task": "code", **ADD}])
    out = tmp_path / "out.jsonl"
    ran("dataset", "prepare", f"mixed:{source}", "--add_cases", 3, "--out", out)
    first, second = (row for _, row in read_jsonl(out))
    assert first == gsm8k
    assert len(json.loads(second["added_tests"])) == 3


def test_other_datasets_and_limits_without_a_model_are_refused(tmp_path):
    gsm8k = DATASETS / "gsm8k" / "train.jsonl"
    out = tmp_path / "out.jsonl"
    message = refused("dataset", "prepare", f"gsm8k:{gsm8k}", "--add_cases", 3, "--out", out)
    assert "--add_cases: works only with code:FILE" in message and "has the task gsm8k" in message
    message = refused("dataset", "prepare", gsm8k, "--max_prompt_tokens", 3, "--out", out)
    assert "--model: is required to count tokens" in message
    assert not out.exists()
