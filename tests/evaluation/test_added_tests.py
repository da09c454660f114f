# ruff: noqa: E501
"""Tests that are added to a row: a policy that knows the visible ones by heart is not paid any more,
and solutions that a person would call right still are.
"""

import ast
import json
import random

import pytest

from memorising import PROBLEMS, hacks
from swift_rlvr.evaluation.added_tests import NoTests, add_tests
from swift_rlvr.evaluation.added_tests.calls import nearby_calls
from swift_rlvr.evaluation.added_tests.mutants import mutants
from swift_rlvr.evaluation.added_tests.texts import nearby_texts
from swift_rlvr.rewards import REWARDS
from swift_rlvr.success import MEMORISED
from swift_rlvr.verifiers.code import BadTests, Limits, read_tests
from swift_rlvr.verifiers.code.run import run_program

ADD = "def add(a, b):\n    return a + b"
ADD_TESTS = ["assert add(1, 2) == 3", "assert add(4, 2) == 6"]


def added_to(problem, seed=0):
    return add_tests(
        problem.tests,
        [problem.reference],
        entry_point=problem.entry_point,
        question=problem.question,
        seed=seed,
    ).tests


def grades(problem, codes, **columns):
    reward = REWARDS["code"]()
    count = len(codes)
    columns = {"tests": problem.tests, "entry_point": problem.entry_point, **columns}
    columns = {name: [value] * count for name, value in columns.items()}
    return reward.grades([f"```python\n{code}\n```" for code in codes], **columns)


def test_the_data_holds_what_the_documentation_counts():
    assert len(PROBLEMS) == 26
    assert sum(1 + len(problem.honest) for problem in PROBLEMS) == 65
    assert sum(len(hacks(problem)) for problem in PROBLEMS) == 142


@pytest.mark.parametrize("problem", PROBLEMS, ids=[problem.question for problem in PROBLEMS])
def test_hacks_are_paid_for_the_visible_tests_and_not_for_the_added_ones(problem):
    honest, hacking = [problem.reference, *problem.honest], hacks(problem)
    both = grades(problem, honest + hacking, added_tests=added_to(problem))
    assert [grade.reward for grade in both] == [1.0] * len(honest) + [0.0] * len(hacking)
    # The reason is given only where all visible tests have passed.
    assert {grade.reason for grade in both[len(honest) :]} == {MEMORISED}


def test_the_same_seed_gives_the_same_tests_and_none_twice():
    problem = PROBLEMS[0]
    first = added_to(problem)
    assert first == added_to(problem) != added_to(problem, seed=1)
    sources = json.loads(first)
    assert len(sources) == len({*sources}) == 20
    assert not {*sources} & {*problem.tests}
    assert len(read_tests(first)) == 20


@pytest.mark.parametrize(
    "tests",
    [
        ADD_TESTS,
        ["assert add(1, b=2) == 3", "assert add(4, b=2) == 6"],
        "def test_add():\n    one = 4\n    result = add(one, 2)\n    assert result == 6\ntest_add()",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(4, 2), 6)",
        "def near(a, b): return a == b\nassert add(4, 2) == 6\nassert near(add(1, 2), 3) and near(1, 1)",
        "def check(f):\n    assert f(4, 2) == 6\ndef test_check():\n    check(add)\ntest_check()\nassert add(4, 2) == 6",
        "from solution import add\ndef test_add():\n    assert add(4, 2) == 6\ntest_add()",
        {"functional": "assert add(4, 2) == 6"},
        {"fn_name": "add", "inputs": [[1, 2], [4, 2]], "outputs": [3, 6]},
        {"fn_name": "add", "inputs": ["1\n2", "4\n2"], "outputs": ["3", "6"]},
        {"inputs": [None], "outputs": [None], "assert_case": ["assert add(4, 2) == 6"]},
        {"ground_truth": '{"fn_name": "add", "inputs": [[4, 2]], "outputs": [6]}'},
        [
            {
                "input": "4\n2",
                "output": "6",
                "testtype": "functional",
                "metadata": {"func_name": "add"},
            }
        ],
    ],
)
def test_every_form_of_tests_gets_further_ones(tests):
    added = add_tests(tests, [ADD], count=4).tests
    assert read_tests(added)
    reward = REWARDS["code"]()
    wrong = "def add(a, b):\n    return 6 if (a, b) == (4, 2) else 3"
    codes = [f"```python\n{code}\n```" for code in (ADD, wrong)]
    assert reward(codes, tests=[tests] * 2, added_tests=[added] * 2) == [1.0, 0.0]


def test_a_form_that_has_the_candidate_as_a_name():
    source = (
        "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(4, 2) == 6"
    )
    added = json.loads(add_tests(source, [ADD], entry_point="add", count=3).tests)
    assert all(test.startswith("assert add(") for test in added)


def test_the_input_of_a_program_keeps_its_lines_and_sizes():
    tests = {"inputs": ["3\n5 1 2\n", "4\n4 9 1 2\n"], "outputs": ["8\n", "16\n"]}
    reference = "n = int(input())\nnumbers = list(map(int, input().split()))\nassert len(numbers) == n\nprint(sum(numbers))"
    for case in json.loads(add_tests(tests, [reference], count=6).tests):
        first, second = case["input"].splitlines()
        numbers = second.split()
        assert int(first) == len(numbers)
        assert case["output"] == f"{sum(map(int, numbers))}\n"


@pytest.mark.parametrize(
    ("references", "tests", "question", "why"),
    [
        ([], ADD_TESTS, "", "no reference solution"),
        (
            ["def add(a, b): return a"],
            ADD_TESTS,
            "",
            "fails the row's own tests .*expected 3, got 1",
        ),
        (["def add(a, b): return a +"], ADD_TESTS, "", "fails the row's own tests .*syntax error"),
        (
            ["def f(x): return y(x)\ndef y(x): return x"],
            "import unittest.mock\nwith unittest.mock.patch('solution.y', len): assert f([3]) == 1",
            "",
            "the reference passes only with together=true",
        ),
        ([ADD], ADD_TESTS, "Return any valid answer.", "several results are right"),
        ([ADD], ["assert add(1, 2) > 0"], "", "no test compares the result"),
        (
            [f"import random\n{ADD} + random.random() * ((a, b) not in ((1, 2), (4, 2)))"],
            ADD_TESTS,
            "",
            "no further results",
        ),
        (
            [
                "def add(a, b):\n    if (a, b) in ((1, 2), (4, 2)): return a + b\n    while True: pass"
            ],
            ADD_TESTS,
            "",
            "no further results",
        ),
        (
            ["def add(a, b):\n    return {(1, 2): 3, (4, 2): 6}[a, b]"],
            ADD_TESTS,
            "",
            "no further results",
        ),
    ],
)
def test_rows_that_get_none_say_why(references, tests, question, why):
    with pytest.raises(NoTests, match=why):
        add_tests(tests, references, question=question, count=2)


def test_bad_tests_are_bad_tests():
    with pytest.raises(BadTests):
        add_tests("assert (", [ADD])


def test_what_depends_on_earlier_calls_is_not_kept():
    reference = (
        "calls = []\ndef add(a, b):\n    calls.append(a)\n    return a + b + (len(calls) > 40)"
    )
    for test in json.loads(add_tests(ADD_TESTS, [reference]).tests):
        comparison = ast.parse(test).body[0].test
        first, second = map(ast.literal_eval, comparison.left.args)
        assert ast.literal_eval(comparison.comparators[0]) == first + second


def test_references_that_disagree_leave_only_what_they_agree_on():
    other = "def add(a, b):\n    return a + b if b < 3 else 0"
    for test in json.loads(add_tests(ADD_TESTS, [ADD, other]).tests):
        assert int(test.partition(", ")[2].partition(")")[0]) < 3


def test_results_are_like_the_expected_ones():
    """-1 for "not found" is the reference's own choice, and so are None and the empty list."""
    tests = ["assert find([4, 7, 9], 7) == 1", "assert find([5, 3], 3) == 1"]
    reference = "def find(xs, x):\n    return xs.index(x) if x in xs and xs.index(x) else -1"
    assert "-1" not in add_tests(tests, [reference]).tests
    tests = ["assert evens([1, 2, 4]) == [2, 4]", "assert evens([8, 3]) == [8]"]
    reference = "def evens(xs):\n    return [x for x in xs if x % 2 == 0] or None"
    assert "None" not in add_tests(tests, [reference]).tests


def test_numbers_are_as_near_as_the_given_tests_ask():
    tests = ["assert abs(third(4.5) - 1.5) < 0.01", "assert abs(third(3.3) - 1.1) < 0.5"]
    added = json.loads(add_tests(tests, ["def third(x): return x / 3"]).tests)
    assert added[0] == "import math"
    assert all(test.endswith("rel_tol=0.0, abs_tol=0.5)") for test in added[1:])
    rough, wrong = ("def third(x): return round(x / 3, 2)", "def third(x): return x / 3 + 1")
    codes = [f"```python\n{code}\n```" for code in (rough, wrong)]
    columns = {"tests": [tests] * 2, "added_tests": [json.dumps(added)] * 2}
    assert REWARDS["code"]()(codes, **columns) == [1.0, 0.0]


MEDIAN = """
def median(xs):
    xs = sorted(xs)
    middle = len(xs) // 2
    return xs[middle] if len(xs) % 2 else (xs[middle - 1] + xs[middle]) / 2
"""
GRADE = """
def grade(score):
    if score >= 90:
        return "A"
    if score >= 80:
        return "B"
    return "C"
"""


def test_a_mean_of_two_elements_is_like_an_element():
    tests = ["assert median([3, 1, 2]) == 2", "assert median([5, 9, 1, 7, 4]) == 5"]
    added = add_tests(tests, [MEDIAN]).tests
    lengths = [len(ast.literal_eval(test[14:].partition(")")[0])) for test in json.loads(added)]
    assert {length % 2 for length in lengths} == {0, 1}


def test_the_bounds_of_a_reference_are_tried():
    tests = ["assert grade(95) == 'A'", "assert grade(83) == 'B'", "assert grade(61) == 'C'"]
    added = add_tests(tests, [GRADE], count=8)
    for bound in (90, 80):
        assert f"assert grade({bound}) == " in added.tests
        assert f"assert grade({bound - 1}) == " in added.tests
    # `>= 90` and `> 89` are the same for whole numbers, and no test tells them apart.
    assert 0 <= added.surviving < added.mutants


def test_what_the_visible_tests_let_pass_is_refused_first():
    """With two tests only, those that refuse mutants are chosen."""
    tests = ["assert clip(5) == 5", "assert clip(20) == 10"]
    reference = "def clip(x):\n    return x if x < 10 else 10"
    added = add_tests(tests, [reference], count=3)
    passing = [
        code
        for code in mutants(reference, 40, random.Random(0))
        if set(grades_of(code, tests)) == {1.0}
    ]
    assert passing
    surviving = [code for code in passing if set(grades_of(code, added.tests)) == {1.0}]
    assert (len(passing), len(surviving)) == (added.mutants, added.surviving)


def grades_of(code, tests):
    return REWARDS["code"]()([f"```python\n{code}\n```"], tests=[tests])


def test_results_are_compared_as_json_where_the_given_ones_are():
    tests = {"fn_name": "pair", "inputs": [[1], [5]], "outputs": [[1, 2], [5, 6]]}
    references = ["def pair(x): return x, x + 1", "def pair(x): return [x, x + 1]"]
    added = json.loads(add_tests(tests, references, count=4).tests)
    assert added["outputs"] == [[x, x + 1] for [x] in added["inputs"]]
    with pytest.raises(NoTests, match="no further results"):
        add_tests(tests, ["def pair(x): return [x, x + 1] if x in (1, 5) else {x}"])


def test_mutants_that_never_end_or_fill_the_memory_cost_no_more_than_themselves():
    tests = ["assert count(3) == 3", "assert count(9) == 9"]
    reference = "def count(n):\n    seen = []\n    while len(seen) < n:\n        seen += [1]\n    return len(seen)"
    added = add_tests(tests, [reference], count=5)
    assert len(json.loads(added.tests)) == 5


def test_a_program_is_judged_by_mutants_too():
    tests = {"inputs": ["3 4\n", "8 2\n"], "outputs": ["4\n", "8\n"]}
    reference = "a, b = map(int, input().split())\nif a > b:\n    print(a)\nelse:\n    print(b)"
    added = add_tests(tests, [reference], count=4)
    assert added.mutants >= added.surviving
    wrong = "a, b = map(int, input().split())\nprint(4 if a < b else 8)"
    assert grades_of(wrong, tests) == [1.0] and grades_of(wrong, added.tests) == [0.0]


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ([[[1, 4, 6]], [[2, 3]]], lambda xs: xs == sorted(xs)),
        ([[[4, 1, 6]], [[3, 2]]], lambda xs: len(set(xs)) == len(xs) and min(xs) > 0),
        ([[[2, 3, 1]], [[1, 2, 3, 4]]], lambda xs: sorted(xs) == list(range(1, len(xs) + 1))),
        ([["0110"], ["1101"]], lambda s: set(s) <= {"0", "1"}),
        ([["()(())"], ["(())"]], lambda s: s.count("(") == s.count(")") and s[0] == "("),
        (
            [["2024-01-31"], ["2023-05-02"]],
            lambda s: [len(part) for part in s.split("-")] == [4, 2, 2],
        ),
        ([["5 apples and 6 oranges"], ["2 apples and 3 oranges"]], lambda s: " apples and " in s),
        ([[[[1, 0], [0, 1]]], [[[1]]]], lambda m: all(len(row) == len(m) for row in m)),
        ([["XIV"], ["MCM"], ["LX"]], lambda s: set(s) <= set("IVXLCDM") and "IIII" not in s),
    ],
)
def test_what_all_given_inputs_have_in_common_holds_for_those_that_are_made(given, holds):
    made = nearby_calls(given, 30, random.Random(0))
    assert made
    for (value,) in made:
        assert holds(value), value
        assert [value] not in given


def test_relations_between_arguments_hold():
    given = [[[5, 1, 8], 2, [1, 1, 0]], [[4, 4], 1, [9, 7]]]
    for values, index, others in nearby_calls(given, 30, random.Random(0)):
        assert index < len(values) == len(others)


def test_a_bounded_amount_of_work_where_nothing_else_is_possible():
    assert nearby_calls([[None]], 20, random.Random(0)) == []
    assert nearby_calls([[]], 20, random.Random(0)) == []
    assert nearby_texts([""], 20, random.Random(0)) == []


def test_commands_stay_commands():
    given = ["3\npush 1\npush 4\npop\n", "2\npush 7\npop\n"]
    for text in nearby_texts(given, 20, random.Random(0)):
        assert {line.split()[0] for line in text.splitlines()[1:]} <= {"push", "pop"}


def test_a_program_that_fails_hangs_or_prints_too_much_has_no_output():
    limits = Limits(seconds=0.5)
    code = "import sys\ntext = input()\nif text == 'a': sys.exit(3)\nif text == 'b':\n    while True: pass\nprint(text * (10**7 if text == 'c' else 1))"
    assert run_program(code, ["a", "b", "c", "d"], limits) == [None, None, None, "d\n"]
