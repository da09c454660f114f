"""The pages in docs/rewards: their examples run, every reward is on them, and what they list is what
the code has.
"""

import doctest
import json
import re
from dataclasses import fields

import pytest

from paths import ROOT
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import variable
from swift_rlvr.verifiers.countdown import Reason

PAGES = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "rewards").glob("*.md")
}
TEXT = "".join(PAGES.values())
PYTHON = [
    pytest.param(example, id=f"{name}-{number}")
    for name, text in sorted(PAGES.items())
    for number, example in enumerate(
        re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    )
]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def rows(text: str) -> list[list[str]]:
    """The cells of each row of a page's tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_every_reward_and_no_other_is_described():
    roles = {}
    for row in rows(PAGES["index.md"]):
        if len(row) == 5 and row[0] != "reward":
            (name,) = quoted(row[0])
            roles[name] = row[1]
    assert roles == {name: reward.role for name, reward in REWARDS.items()}
    assert set(re.findall(r"\bexternal_\w+", TEXT)) == {*REWARDS, "external_plugins"}


def test_every_variable_on_the_pages_is_a_parameter():
    variables = {
        variable(name, each.name)
        for name, reward in REWARDS.items()
        for each in fields(reward.Parameters)
    }
    assert set(re.findall(r"\bEXTERNAL_[A-Z][A-Z_]*", TEXT)) - {"EXTERNAL_"} <= variables


@pytest.mark.parametrize("example", PYTHON)
def test_python_examples_run(example):
    test = doctest.DocTestParser().get_doctest(example, {}, "example", "docs/rewards", 0)
    output: list[str] = []
    assert doctest.DocTestRunner().run(test, out=output.append).failed == 0, "".join(output)
    assert test.examples


def test_the_forms_of_tests_can_be_graded():
    forms = [
        each
        for row in rows(PAGES["code.md"])
        if len(row) == 2
        for each in quoted(row[1])
        if each[0] in "[{"
    ]
    forms = [form for form in forms if "add" in form or "output" in form]
    assert len(forms) == 11
    solutions = ["def add(a, b): return a + b", "print(3)"]
    for form in forms:
        right, wrong = solutions if "add" in form else reversed(solutions)
        answers = [f"<answer>{each}</answer>" for each in (right, wrong)]
        assert REWARDS["external_code"]()(answers, tests=[form, json.loads(form)]) == [1.0, 0.0], (
            form
        )


def test_the_reasons_of_countdown_are_in_the_order_in_which_they_apply():
    section = PAGES["countdown.md"].partition("## Reasons")[2].partition("##")[0]
    assert quoted(section) == [str(reason) for reason in Reason]
