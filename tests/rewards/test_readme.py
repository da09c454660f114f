"""The page plugin/swift_rlvr/rewards/README.md: what it shows works, and what it names exists, here and elsewhere."""

import ast
import doctest
import json
import re
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from paths import PLUGIN
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import variable

PAGE = PLUGIN / "swift_rlvr" / "rewards" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TEXT.splitlines() if line.startswith("| ")]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def source_of(package: str, file: str) -> ast.Module:
    """A file of an installed package, which is not imported: that takes ten seconds."""
    spec = find_spec(package)
    if spec is None:
        pytest.skip("needs the extra [train]")
    return ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))


def test_every_reward_is_described():
    assert set(re.findall(r"\bexternal_\w+", TEXT)) - {"external_plugins", "external_shorter"} == set(REWARDS)
    variables = {variable(name, each.name) for name, reward in REWARDS.items() for each in fields(reward.Parameters)}
    assert set(re.findall(r"\bEXTERNAL_[A-Z][A-Z_]*", TEXT)) <= variables


def test_the_rewards_of_trl_and_ms_swift_exist_there():
    (start,) = [number for number, row in enumerate(ROWS) if row[0] == "open-r1"]
    migration = [row for row in ROWS[start + 1 :] if len(row) == 5]
    trl, ms_swift = ([name for row in migration for name in quoted(row[column])] for column in (1, 2))
    files = ("accuracy_rewards", "format_rewards", "other_rewards")
    functions = [node for file in files for node in source_of("trl", f"rewards/{file}.py").body]
    assert sorted(trl) == sorted(node.name for node in functions if isinstance(node, ast.FunctionDef))
    (names,) = [
        [key.value for key in node.value.keys]
        for node in source_of("swift", "rewards/orm.py").body
        if isinstance(node, ast.Assign) and node.targets[0].id == "orms"
    ]
    assert ms_swift and set(ms_swift) <= set(names)


def test_links_lead_somewhere():
    titles = re.findall("^#+ (.+)$", TEXT, re.M)
    headings = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    for target in re.findall(r"\[[`\w. ]+\]\(([^)]+)\)", TEXT):
        path, _, anchor = target.partition("#")
        assert (PAGE.parent / path).exists() if path else anchor in headings, target


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
        assert REWARDS["external_code"]()(answers, tests=[form, json.loads(form)]) == [1.0, 0.0], form
