"""The page plugin/swift_rlvr/rewards/README.md: what it shows works, and it describes every
reward.
"""

import doctest
import json
import re
from dataclasses import fields

import pytest
from paths import PLUGIN
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import variable

PAGE = PLUGIN / "swift_rlvr" / "rewards" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in TEXT.splitlines()
    if line.startswith("| ")
]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_reward_is_described():
    assert set(re.findall(r"\bexternal_\w+", TEXT)) - {
        "external_plugins",
        "external_shorter",
        "external_word_count",
    } == set(REWARDS)
    variables = {
        variable(name, each.name)
        for name, reward in REWARDS.items()
        for each in fields(reward.Parameters)
    }
    assert set(re.findall(r"\bEXTERNAL_[A-Z][A-Z_]*", TEXT)) <= variables


@pytest.mark.parametrize("example", PYTHON)
def test_python_examples_run(example):
    test = doctest.DocTestParser().get_doctest(example, {}, "example", str(PAGE), 0)
    before, output = dict(REWARDS), []
    try:
        assert doctest.DocTestRunner().run(test, out=output.append).failed == 0, "".join(output)
    finally:  # what an example adds is not to be seen by other tests
        REWARDS.clear()
        REWARDS.update(before)
    assert test.examples


def test_the_forms_of_tests_can_be_graded():
    forms = [each for row in ROWS if len(row) == 2 for each in quoted(row[1]) if each[0] in "[{"]
    assert len(forms) == 10
    solutions = ["def add(a, b): return a + b", "print(3)"]
    for form in forms:
        right, wrong = solutions if "add" in form else reversed(solutions)
        answers = [f"<answer>{each}</answer>" for each in (right, wrong)]
        assert REWARDS["external_code"]()(answers, tests=[form, json.loads(form)]) == [1.0, 0.0], (
            form
        )
