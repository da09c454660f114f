"""The code reward: where code is found, what it earns, and that nothing but passing the tests earns
it.
"""

import json
import pickle
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import done_within
from swift_rlvr.rewards import code as code_module
from swift_rlvr.rewards.base import Grade
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.rewards.format import FormatReward
from swift_rlvr.success import ONLY_TOGETHER
from swift_rlvr.verifiers.answers import find_code
from swift_rlvr.verifiers.code import PASSED, BadTests, Verdict, read_tests
from swift_rlvr.verifiers.code.blocks import program_of
from swift_rlvr.verifiers.code.calls import CallTest
from swift_rlvr.verifiers.code.cases import ProgramTest, read_form, same_output
from swift_rlvr.verifiers.code.plain import AssertTest
from swift_rlvr.verifiers.code.sources import UnitTest

ADD = "def add(a, b):\n    return a + b"
TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]
CASES = [{"input": "1 2\n", "output": "3\n"}, {"input": "-1 1\n", "output": "0\n"}]
PROGRAM = "print(sum(map(int, input().split())))"
ADD_CALLS, FIRST_CALL = "add(1, 2) json 3; add(0, 0) json 0", "add(1, 2) json 3"
ADD_ASSERTS, FIRST_ASSERT = "add(1, 2) == 3; add(0, 0) == 0", "add(1, 2) == 3"
ASSERTS = ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]
STDIN, FIRST_STDIN = "input '1 2' output '3'; input '' output '0'", "input '1 2' output '3'"
CALLS_IN_LINES = {"fn_name": "add", "inputs": ["1\n2", "0\n0\n"], "outputs": ["3", "0"]}
STDIN_IN_LISTS = {"inputs": ["1 2", None], "outputs": ["3", "0"]}
FIRST, SECOND = {"input": [1, 2], "output": 3}, {"inputs": ["", "0\n0"], "outputs": [None, "0"]}
CHECK = "def check(c):\n    assert c({}, {}) == {}\ncheck(add)"  # each is its own
CALL = {"fn_name": "f"}
WITH_INT_KEYS = {"fn_name": "f", "inputs": [[{"-1": 2}]], "outputs": [{"0": [2]}]}
FUNCTIONAL = [
    {"input": "1\n2", "output": "3", "testtype": "functional", "metadata": {"func_name": "add"}},
    {"input": "0\n0", "output": "0", "testtype": "functional", "metadata": {"func_name": "add"}},
]
STDIN_STDOUT = [
    {"input": "1 2", "output": "3", "type": "stdin_stdout", "fn_name": None},
    {"input": None, "output": "0", "type": "stdin_stdout", "fn_name": None},
]


def shown(test: ProgramTest | CallTest | UnitTest | AssertTest) -> str:
    if isinstance(test, ProgramTest):
        return f"{test} output {test.output!r}"
    if isinstance(test, CallTest):
        kind = "json in a list" if test.may_be_in_list else "json"
        return f"{test} {kind} {test.expected!r}"
    return str(test)


def block(code: str, language: str = "python") -> str:
    return f"<think>Let's see.</think>Here it is:\n```{language}\n{code}\n```\n"


@cache
def reward_of(**parameters) -> CodeReward:
    """The same one for all tests, so that it keeps the processes that fork others. It has so much time
    that no verdict depends on how busy the machine is.
    """
    return CodeReward(timeout=60, **parameters)


def grades(
    codes: list[str], tests: list, entry_point: str | None = None, **parameters
) -> list[Grade]:
    return reward_of(**parameters).grades(
        [block(code) for code in codes], tests=tests, entry_point=[entry_point] * len(codes)
    )


def grade(
    code: str, tests: object = tuple(TESTS), entry_point: str | None = None, **parameters
) -> Grade:
    return grades([code], [tests], entry_point, **parameters)[0]


# --- where code is found ---


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx\n```", "x"),
        ("```py\nx\n```", "x"),
        ("```Python3 title=a.py\nx\n```", "x"),
        ("```\nx\n```", "x"),
        ("``` python \nx\ny\n```  ", "x\ny"),
        (
            "````python\nx = '''\n```\n'''\n````",
            "x = '''\n```\n'''",
        ),  # a longer fence holds shorter ones
        ("```python\nold\n```\n```python\nnew\n```", "new"),
        ("```python\nx\n```\n```bash\npip\n```", "x"),  # another language does not count
        # which block is the program: the last labelled as Python, and one without a label only
        # where none is
        ("```python\nx\n```\n```\noutput\n```", "x"),
        ("```python\nx\n```\nOutput:\n```text\n1\n```\n```\n2\n```", "x"),
        ("```\nx\n```\n```python\ny\n```\n```\nz\n```", "y"),
        ("```\nx\n```\n```\ny\n```", "y"),
        ("```\nx\n```\n```text\ny\n```", "x"),
        ("```text\nx\n```", None),
        ("```python\nx\n```\n```python\ncut off", "x"),  # never closed
        ("```\noutput\n```\n```python\ncut off", "cut off"),
        ("```python\nx = 1\ny = 2", "x = 1\ny = 2"),  # a stop word ended it
        ("```python\nx\n<|im_end|>", "x"),
        ("```\ncut off", None),
        ("```text\ncut off", None),
        ("```python\nx\n```\n```text\ncut off", "x"),
        ("~~~python\nx\n~~~", "x"),
        ("~~~\nx\n~~~", "x"),
        ("~~~~python\nx\n~~~\ny\n~~~~", "x\n~~~\ny"),
        ("~~~python\nx = '''\n```\n'''\n~~~", "x = '''\n```\n'''"),  # the other kind of fence
        ("```python\nx = '''\n~~~\n'''\n```", "x = '''\n~~~\n'''"),
        ("~~~python\nx\n```", "x\n```"),
        ("<answer>\nx = ~~~y\n</answer>", "x = ~~~y"),
        # what the label may look like
        *(
            (f"```{label}\nx\n```", "x")
            for label in ("python:solution.py", "{python}", "{.python .numberLines}", "{ .py }")
        ),
        *(
            (f"```{label}\nx\n```", "x")
            for label in ("PYTHON", "py3", "python{1,3}", "python,editable", " python3 x=1")
        ),
        *(
            (f"```{label}\nx\n```", None)
            for label in ("pythonic", "python2", "python-repl", "pycon", "cpp", "{r}", "=py")
        ),
        *(
            (f"```{label}\nx\n```", None)
            for label in ("solution.py", ".", "{}", "console python", "text:python")
        ),
        # end tokens behind a fence, and byte order marks
        ("```python\nx\n```<|im_end|>", "x"),
        ("```python\nx\n``` <|im_end|>\n<|endoftext|>", "x"),
        ("```python\nx\n```</s>", "x"),
        ("```python\nx\n```<｜end▁of▁sentence｜>", "x"),
        ("```python\nx\n```<|im_end|>\n<|im_start|>user\n```python\ny\n```", "y"),
        ("```python\nx\n```y\n```", "x\n```y"),
        # a fence that closes a block badly, where nothing else does
        ("```python\nx```", "x"),
        ("```python\nx\ny``` \nIt is fast.", "x\ny"),
        ("```python\nx\n``` It is fast.", "x\n"),
        # one within a docstring, which is indented
        ("```python\n'''\n    ```\n    x\n    ```\n'''\n```", "'''\n    ```\n    x\n    ```\n'''"),
        ("<answer>\nx<|im_end|>\n</answer>", "x"),
        ("\ufeff```python\nx\n```", "x"),
        ("```python\n\ufeffx = '\ufeff'\n```", "x = '\ufeff'"),
        ("<answer>\ufeffx</answer>", "x"),
        ("\ufeff```python\ndef f():\n    x\n```", "def f():\n    x"),
        ("- item\n\n  ```python\n  if x:\n      y\n  ```", "if x:\n    y"),  # indented by a list
        ("```python\r\nx\r\n```\r\n", "x\r"),
        ("a ```python x``` b", None),  # within a line
        # behind text
        ("Answer: ```python\nx\n```", "x"),
        ("1. Solution: ```py \n    if x:\n        y\n```", "    if x:\n        y"),
        ("Install: ```bash\npip install x\n```\n```python\ny\n```", "y"),
        ("Between ``` and ```\n```python\ny\n```", "y"),
        ("```python\nx = 'a ```python'\n```", "x = 'a ```python'"),
        ("```python x```\n```python\ny\n```", "y"),
        ("```python\n```", None),
        ("x = 1", None),
        ("", None),
        ("<think>```python\nx\n```</think>", None),
        ("<think>```python\nx\n```</think>\n```python\ny\n```", "y"),
        ("```python\nx\n```\n<answer>\n```python\ny\n```\n</answer>\n```python\nz\n```", "y"),
        ("<answer>\nprint(1)\n</answer>", "print(1)"),
        ("<answer>  </answer>", None),
        ("<answer>```bash\nls\n```</answer>```python\nx\n```", None),
        ("<answer>\n```python\nx\n```", "x"),  # the answer is never closed, the fence is
    ],
)
def test_where_code_is_found(text, code):
    assert find_code(text) == code


PLUS = "def plus(a, b):\n    return a + b"
MINUS = "def plus(a, b):\n    return a - b"
SUMS = "a, b = map(int, input().split())\nprint(a + b)"
METHOD = "class Solution:\n    def plus(self, a, b):\n        return a + b"
HELPER = "def added(a, b):\n    return a + b"
BY_HELPER = "def plus(a, b):\n    return added(a, b)"
READING = "def added():\n    return sum(map(int, input().split()))"
CALLED = '{"fn_name": "plus", "inputs": [[1, 2]], "outputs": [3]}'
READ = '{"inputs": ["1 2"], "outputs": ["3"]}'


@pytest.mark.parametrize(
    "blocks, tests, reward",
    [
        # how the solution is used, its tests, and one more function
        ([PLUS, "print(plus(1, 2))"], ["assert plus(1, 2) == 3"], 1.0),
        ([PLUS, "assert plus(0, 0) == 0", "plus(5, 6)  # 11"], ["assert plus(1, 2) == 3"], 1.0),
        ([PLUS, "def test_plus():\n    assert plus(1, 2) == 3"], CALLED, 1.0),
        ([PLUS, "def subtract(a, b):\n    return a - b"], ["assert plus(1, 2) == 3"], 1.0),
        ([METHOD, "print(Solution().plus(1, 2))"], CALLED, 1.0),
        ([SUMS, "print(1 + 2)  # for the first example"], READ, 1.0),
        ([SUMS, "# Input: 1 2\n# input: 3 4, from stdin\n3  # input"], READ, 1.0),
        ([SUMS, "import io, sys\nsys.stdin = io.StringIO('1 2')\nmain()"], READ, 1.0),
        ([SUMS, "input: str = '1 2'\nmain()"], READ, 1.0),
        ([SUMS, "with patch('builtins.input', return_value='1 2'):\n    main()"], READ, 1.0),
        ([MINUS, SUMS.replace("input()", "open('/dev/stdin').read()")], READ, 1.0),
        # of two solutions the last is the answer, also where it is wrong
        ([MINUS, PLUS, "plus(1, 2)"], CALLED, 1.0),
        ([PLUS, MINUS], ["assert plus(1, 2) == 3"], 0.0),
        ([PLUS, MINUS, "plus(1, 2)"], CALLED, 0.0),
        ([PLUS, "plus = lambda a, b: a - b"], CALLED, 0.0),
        ([SUMS, SUMS.replace("+", "-")], READ, 0.0),
        # without a solution the last block is
        (["print(1)", "print(3)"], READ, 1.0),
        (["x = 1", "print(plus(1, 2))"], CALLED, 0.0),
        # blocks that define what the solution needs, above it or below, and what they need
        ([HELPER, BY_HELPER], CALLED, 1.0),
        ([HELPER.replace("+", "-"), BY_HELPER], CALLED, 0.0),
        ([HELPER, BY_HELPER.replace("b)", "1)")], CALLED, 0.0),
        ([BY_HELPER, HELPER, "print(plus(1, 2))"], CALLED, 1.0),
        ([HELPER, HELPER.replace("+", "-"), BY_HELPER], CALLED, 0.0),
        ([HELPER.replace("+", "-"), HELPER, BY_HELPER], CALLED, 1.0),
        ([HELPER, BY_HELPER, "def added(a, b): return 0"], CALLED, 1.0),
        (["from operator import add as sums", "added = sums", BY_HELPER], CALLED, 1.0),
        ([f"{PLUS}\n{HELPER}", BY_HELPER.replace("b)", "1)")], CALLED, 0.0),
        (
            [HELPER, "class Solution:\n    def plus(self, a, b):\n        return added(a, b)"],
            CALLED,
            1.0,
        ),
        (["class Base:\n    v = 3", "class Plus(Base): pass"], ["assert Plus().v == 3"], 1.0),
        # a local name of a helper is none of the module's
        (["def other():\n    added = 1\n    return added", HELPER, BY_HELPER], CALLED, 1.0),
        ([HELPER, f"def other():\n    added = 1\n    return added\n{BY_HELPER}"], CALLED, 1.0),
        # a program in parts
        ([READING, "print(added())"], READ, 1.0),
        ([READING, "print(added() + 1)"], READ, 0.0),
        (
            [
                READING.replace("return ", "print(") + ")",
                "import sys\nsys.setrecursionlimit(9999)",
                "added()",
            ],
            READ,
            1.0,
        ),
        (
            [READING.replace("return ", "print(") + ")", "if __name__ == '__main__':\n    added()"],
            READ,
            1.0,
        ),
        (["a, b = map(int, input().split())", "c = a + b", "print(c)"], READ, 1.0),
        (["a, b = map(int, input().split())", "c = a - b", "print(c)"], READ, 0.0),
        (
            [
                "import sys\ndef read():\n    return sys.stdin.read().split()",
                "print(sum(map(int, read())))",
            ],
            READ,
            1.0,
        ),
        # an attempt of which only what all programs have is needed
        (["import heapq\nprint(min(map(int, input().split())))", f"heapq\n{SUMS}"], READ, 1.0),
        # a program that prints, before one that cannot
        ([SUMS, READING], READ, 0.0),
        ([SUMS, READING, "added()"], READ, 0.0),
    ],
)
def test_a_block_behind_the_solution_that_only_uses_it_is_not_the_program(blocks, tests, reward):
    text = "\n\nIt is used like this:\n\n".join(f"```python\n{block}\n```" for block in blocks)
    assert CodeReward()([text], tests=[tests]) == [reward]


@pytest.mark.parametrize(
    "blocks",
    [
        ["def plus(a, b): return added(a, b)", *["x = 1"] * 40_000],
        [f"x{number} = y{number + 1}" for number in range(20_000)],
        ["\n".join(f"x{number}" for number in range(20_000)), *["x = input()"] * 5000],
        ["a = input()", *["print(a)"] * 20_000],
        ["a = input()", "(" * 100_000, "-" * 100_000],
    ],
    ids=["all bind one name", "a chain", "many needed names", "many that print", "unreadable"],
)
@pytest.mark.parametrize("tests", [CALLED, READ])
def test_many_blocks_take_little_time(blocks, tests):
    form = read_form(tests)
    with done_within(60):  # at most half a second
        program_of(blocks, form)


@pytest.mark.parametrize(
    ("text", "tests", "reward"),
    [
        (f"<think>Add.</think>\n\n{PLUS}\n", CALLED, 1.0),
        (MINUS, CALLED, 0.0),
        (f"{SUMS}<|im_end|>", READ, 1.0),
        (f"Sure!\n{PLUS}", CALLED, 0.0),
        ("def plus: the sum", CALLED, 0.0),
        (f"<think>\n{PLUS}", CALLED, 0.0),
        # It has nothing that can pass, so that it is rather words.
        ("print(3)", READ, 0.0),
        (f"```text\n3\n```\n{PLUS}", CALLED, 0.0),
    ],
)
def test_an_answer_without_a_block_is_code_where_all_of_it_is(text, tests, reward):
    assert CodeReward()([text], tests=[tests]) == [reward]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<think>" * 140_000,
            "(" * 1_000_000,
            "- \n" * 300_000,
            "码" * 1_000_000,
            "`" * 1_000_000,
            "```\n" * 250_000,
        ),
        *(
            "```python" * 110_000,
            "```python\n" * 100_000,
            " " * 500_000 + "```" * 100_000,
            "<answer>```\n" * 80_000,
        ),
        *(
            "```python\n" + "x\n" * 500_000 + "```",
            "<answer>" + "9" * 1_000_000 + "</answer>",
            "\n" * 1_000_000,
        ),
    ],
)
def test_a_hostile_megabyte_takes_little_time(text):
    with done_within(120):  # at most half a second
        assert CodeReward(timeout=0.5)([text], tests=[TESTS]) == [0.0]


# --- what it earns ---

WRONG_ADD = "def add(a, b):\n    return 3 if a == 1 else 'ab'"
CHECK_ADD = "def check(c):\n    assert c(1, 2) == 3\n    assert c(0, 0) == 0"


@pytest.mark.parametrize(
    ("code", "tests", "entry_point"),
    [
        (ADD, TESTS, None),
        (ADD, "\n".join(TESTS), None),
        (ADD, json.dumps(TESTS), None),
        (ADD, CHECK_ADD, "add"),
        (
            "class S:\n    def add(self, a, b): return a + b",
            "def check(f): assert f(a=1, b=2) == 3",
            "S().add",
        ),
        (
            ADD,
            "from solution import add\ndef test_add():\n    for n in (1, 2): assert add(n, n) == 2 * n",
            None,
        ),
        (
            ADD,
            "import math\nassert math.isclose(add(1, 0.2), 1.2)\nassert abs(add(1, 0.2) - 1.2) < 1e-9",
            None,
        ),
        (ADD, ["try:\n    add(1, '')\nexcept TypeError:\n    pass\nelse:\n    assert False"], None),
        ("def sum(a, b): return a - b", ["assert sum(5, 2) == 3"], None),  # hides a builtin
        ("class Solution:\n    def sum(self, a): return 3", "assert sum([1, 2, 4]) == 3", None),
        ("def add(a, b): a += b", ["x = [1]\nadd(x, [2])\nassert x == [1, 2]"], None),
        ("def keys(n): return dict.fromkeys(range(n)).keys()", "assert keys(2) == {0, 1}", None),
        ("def half(n): return complex(n / 2)", "assert abs(half(3) - 1.5) <= 0.01", None),
        # a method, as on LeetCode, for a bare function; each call has an instance of its own
        ("class Solution:\n    def add(self, a, b=0): return a + b", TESTS, None),
        ("class Solution:\n    def add(self, a, b): return a + b", CHECK_ADD, "add"),
        (
            "class Solution:\n    def __init__(self): self.n = 0\n    def add(self, a, b):\n        self.n += a + b\n"
            "        return self.n",
            TESTS[:2],
            None,
        ),
        (
            "from operator import sub\nclass Solution:\n    def add(self, a, b): return a + b",
            TESTS,
            None,
        ),
        ("class Solution:\n    def add(self, a, b): 0\ndef add(a, b): return a + b", TESTS, None),
        (PROGRAM, CASES, None),
        (PROGRAM, {"inputs": ["1 2", ["3 4", "5"]], "outputs": ["3", ["7"]]}, None),
        (PROGRAM, {"input": ["1 2"], "output": ["3"]}, None),
        (PROGRAM, json.dumps({"inputs": ["1 2"], "outputs": ["3"]}), None),
        ("print(3 if input()[0] == '1' else 0); exit()", CASES, None),
    ],
)
def test_what_passes(code, tests, entry_point):
    assert grade(code, tests, entry_point) == (1.0, "all tests passed")
    assert grade(code, tests, entry_point, partial=True).reward == 1.0


@pytest.mark.parametrize(
    ("code", "tests", "reason", "share"),
    [
        (WRONG_ADD, TESTS, "some tests failed", 2 / 3),
        (WRONG_ADD, CHECK_ADD, "some tests failed", 0.5),
        (
            "def is_even(n): return True",
            "assert is_even(2)\nassert not is_even(3)",
            "some tests failed",
            0.5,
        ),
        ("class Solution:\n    def add(self, a, b): return 3", TESTS, "some tests failed", 1 / 3),
        ("class Solution:\n    def sub(self, a, b): return a", TESTS, "error", 0.0),
        ("input(); print(3)", CASES, "some tests failed", 0.5),
        ("print(3); raise ValueError", CASES, "error", 0.0),
        ("print(3); exit(1)", CASES, "ended early", 0.0),
        ("def add(a, b)", TESTS, "syntax error", 0.0),
        ("def f(): pass", TESTS, "error", 0.0),
        ("x = bytearray(1 << 40)", TESTS, "out of memory", 0.0),
        ("x = 1\n" * 30_000, TESTS, "code too long", 0.0),
    ],
)
def test_what_fails(code, tests, reason, share):
    assert grade(code, tests, "add") == (0.0, reason)
    assert grade(code, tests, "add", partial=True).reward == pytest.approx(share)


def test_packages_for_code_and_tests():
    code, tests = (
        "import numpy as np\ndef f(x): return np.eye(x)",
        "import numpy as np\nassert (f(2) == np.eye(2)).all()",
    )
    assert grade(code, tests).reward is None  # the tests cannot be run
    assert grade(code, tests, packages="numpy").reward == 1.0
    assert grade(code.replace("eye", "ones"), tests, packages="numpy").reward == 0.0
    assert grade(code, "assert f(1) == [[1]]") == (0.0, "error")
    assert grade(code, "assert f(1) == [[1]]", packages=("numpy",)).reward == 1.0
    # Its whole numbers are whole, as what is returned and as keys.
    code = "import numpy as np\ndef f(x): return {np.int64(x): np.int64(x + 1)}"
    calls = {"fn_name": "f", "inputs": [[1]], "outputs": [{"1": 2}]}
    assert grade(code, calls, packages="numpy").reward == 1.0
    assert grade(code, "y = f(1)\nassert type([*y][0]) is int", packages="numpy").reward == 1.0


def test_text_without_code_and_rows_without_tests():
    reward = CodeReward(timeout=60)
    message = {"role": "assistant", "content": block(ADD)}
    completions = [None, "I can't.", block(ADD), block(ADD), block(ADD), [message]]
    grades = reward.grades(
        completions, tests=[TESTS, TESTS, None, [], "assert (", TESTS], task=["code"] * 6
    )
    assert grades[:2] == [(0.0, "no text"), (0.0, "no code")]
    assert grades[2:] == [(None, "bad tests")] * 3 + [(1.0, "all tests passed")]
    assert {reason for _, reason in grades} <= set(reward.reasons)
    assert reward([block(ADD)] * 2, tests=[None, TESTS], task=["math", "code"]) == [None, 1.0]


@pytest.fixture
def run(monkeypatch):
    """The codes that are run in the sandbox, in order, by a process that has kept no verdict."""
    codes = []
    check = code_module.sandbox.check

    def noted(code, *rest):
        codes.append(code)
        return check(code, *rest)

    monkeypatch.setattr(code_module.sandbox, "check", noted)
    monkeypatch.setattr(code_module, "_VERDICTS", code_module._Verdicts(most=4))
    return codes


def test_many_at_once_in_order_and_equal_ones_once(run):
    reward = pickle.loads(pickle.dumps(CodeReward(max_workers=2, timeout=60)))
    codes = ["def add(a, b): pass", ADD, WRONG_ADD, ADD]
    texts = [block(code) for code in codes * 50] + [None]
    tests = [TESTS, TESTS, TESTS, ["assert add(1, 2) == 4"]] * 50 + [TESTS]
    assert reward(texts, tests=tests) == [0.0, 1.0, 0.0, 0.0] * 50 + [0.0]
    assert sorted(run) == sorted(codes)
    assert reward([], tests=[]) == []


def test_rewards_that_ask_for_the_same_verdicts_run_the_code_once(run):
    """The trainer calls one after the other with the same completions and columns."""
    texts, columns = [block(ADD), block(WRONG_ADD), "no code"], {"tests": [TESTS] * 3}
    code = CodeReward(timeout=60)
    assert code(texts, **columns) == [1.0, 0.0, 0.0]
    assert CodeReward(timeout=60, max_workers=1)(texts, **columns) == [1.0, 0.0, 0.0]
    gated = FormatReward(gate="outcome", accuracy="external_code")
    assert gated.verifier is not None and gated.gate is not None
    gated.verifier.parameters = gated.gate.verifier.parameters = code.parameters
    assert gated(texts, **columns) == [0.0, 0.0, 0.0]
    assert gated.grades(texts, **columns)[1:] == [(0.0, "not right")] * 2
    assert sorted(run) == sorted([ADD, WRONG_ADD])


@pytest.mark.parametrize(
    ("parameters", "columns"),
    [
        ({"partial": True}, {}),
        ({"timeout": 50}, {}),
        ({"memory_mb": 400}, {}),
        ({}, {"tests": [TESTS[:1]]}),
        ({}, {"entry_point": ["add"]}),
    ],
)
def test_what_may_decide_a_verdict_has_the_code_run_again(run, parameters, columns):
    first = {"tests": [TESTS]}
    CodeReward(timeout=60)([block(ADD)], **first)
    CodeReward(**{"timeout": 60, **parameters})([block(ADD)], **{**first, **columns})
    assert run == [ADD, ADD]


def test_a_verdict_that_depends_on_the_machine_is_not_kept(run, monkeypatch):
    outcomes = [[Verdict("timeout")], [Verdict("killed")], [Verdict(PASSED), Verdict(PASSED)]]
    monkeypatch.setattr(
        code_module.sandbox, "check", lambda code, *rest: run.append(code) or outcomes[len(run) - 1]
    )
    reward = CodeReward()
    rewards = [reward([block(ADD)], tests=[TESTS]) for _ in range(5)]
    assert rewards == [[0.0], [0.0], [1.0], [1.0], [1.0]] and len(run) == 3


def test_the_oldest_verdicts_are_forgotten(run):
    reward = CodeReward(timeout=60)
    codes = [f"{ADD}\n# {number}" for number in range(5)]
    for code in [*codes, codes[0], codes[-1]]:
        reward([block(code)], tests=[TESTS])
    assert run == [*codes, codes[0]]


@pytest.mark.parametrize(
    (
        "text",
        "tests",
        "rules",
        "detail",
    ),  # rules: whether each was met (+), was not (-), or was not looked at (.)
    [
        (block(WRONG_ADD), TESTS, "+++++-.", "add(-1, 1) == 0 -> wrong: expected 0, got 'ab'"),
        (block("def add("), TESTS, "+++-...", "SyntaxError"),
        ("nothing", TESTS, "+-.....", ""),
        (None, TESTS, "+-.....", "no text"),
        (block("x" * 100_001), TESTS, "++-....", "it has 100001"),
        (block(ADD), "x = 1", "-...", "tests contain no assert"),
        (
            block(PROGRAM),
            [{"input": "1 2", "output": "4"}],
            "++++-",
            "input '1 2' -> wrong: expected '4', got '3\\n'",
        ),
    ],
)
def test_it_says_why(text, tests, rules, detail):
    why = CodeReward(timeout=60).explain(text, {"tests": tests})
    assert "".join({True: "+", False: "-", None: "."}[rule.passed] for rule in why.rules) == rules
    assert why.rules[rules.index("-")].detail.startswith(detail)
    assert why.reward == (None if rules[0] == "-" else 0.0)


def test_with_partial_credit_it_says_more():
    why = CodeReward(timeout=60, partial=True).explain(block(WRONG_ADD), {"tests": TESTS})
    assert (why.reward, why.extracted) == (pytest.approx(2 / 3), WRONG_ADD)
    assert [rule.passed for rule in why.rules] == [True, True, True, True, True, False, True]


TWO_SUM = """
class Solution:
    def twoSum(self, nums: List[int], target: int) -> Optional[List[int]]:
        seen = defaultdict(list)
        for i, n in enumerate(nums):
            if seen[target - n]:
                return seen[target - n][0], i
            seen[n].append(i)
"""
TWO_SUM_CALLS = {
    "fn_name": "twoSum",
    "inputs": ["[2, 7]\n9", "[1, 2]\n9"],
    "outputs": ["[0, 1]", "null"],
}


@pytest.mark.parametrize(
    ("code", "tests", "share"),
    [
        (TWO_SUM, TWO_SUM_CALLS, 1.0),  # a method, a tuple for a list, names that are not imported
        (TWO_SUM.replace("return seen", "return 1 + seen"), TWO_SUM_CALLS, 0.5),
        # numbers of other classes than JSON's
        (
            "from fractions import Fraction\ndef add(a, b): return Fraction(a + b)",
            CALLS_IN_LINES,
            1.0,
        ),
        (
            "from decimal import Decimal\ndef f(a): return [Decimal(a) / 4]",
            CALL | {"inputs": [[1], [2]], "outputs": [[0.25], [0.75]]},
            0.5,
        ),
        (
            "def twoSum(nums, target):\n    return [0, 1] if target in (9,) and 7 in nums else None",
            TWO_SUM_CALLS,
            1.0,
        ),
        ("def twoSum(nums, target): return [0, 1]", TWO_SUM_CALLS, 0.5),
        ("class Solution: pass\ndef twoSum(nums, target): return [0, 1]", TWO_SUM_CALLS, 0.5),
        (
            "class Solution:\n    def __init__(self): 1 / 0\n    def twoSum(self, *a): return [0, 1]",
            TWO_SUM_CALLS,
            0.0,
        ),
        ("class Solution:\n    def other(self, *a): return [0, 1]", TWO_SUM_CALLS, 0.0),
        ("", TWO_SUM_CALLS, 0.0),
        (ADD, CALLS_IN_LINES, 1.0),
        ("add = lambda a, b: float(a + b)", CALLS_IN_LINES, 1.0),  # as == has it
        ("def add(a, b): return str(a + b)", CALLS_IN_LINES, 0.0),
        ("def add(a, b): print(a + b)", CALLS_IN_LINES, 0.0),
        ("def add(a, b): return {a + b}", CALLS_IN_LINES, 0.0),
        # JSON has only lists for what these hand over.
        ("def f(n): yield from range(n)", CALL | {"inputs": [[2]], "outputs": [[0, 1]]}, 1.0),
        ("def f(n): yield from range(n)", CALL | {"inputs": [[2]], "outputs": [[1, 0]]}, 0.0),
        (
            "from collections import defaultdict, deque\ndef f(words):\n    groups = defaultdict(deque)\n"
            "    for word in words: groups[len(word)].append(word)\n    return groups.values()",
            CALL | {"inputs": [[["a", "bc", "d"]]], "outputs": [[["a", "d"], ["bc"]]]},
            1.0,
        ),
        (
            "def f(a): return map(lambda x: zip(x, x), a)",
            CALL | {"inputs": [[[[1]]]], "outputs": [[[[1, 1]]]]},
            1.0,
        ),
        ("def sum(a): return [a]", {"fn_name": "sum", "inputs": [[1]], "outputs": [[1]]}, 1.0),
        ("def sum(a): return a", {"fn_name": "sum", "inputs": [[1]], "outputs": [[1]]}, 1.0),
        (
            "def f(a): return a",
            {"fn_name": "f", "inputs": [[1], [[2]]], "outputs": [[1], [2, 3]]},
            0.0,
        ),
        (
            "def f(d): return {k + 1: (v,) for k, v in d.items()}",
            CALL | {"inputs": [[{"-1": 2}]], "outputs": [{"0": [2]}]},
            1.0,
        ),
        ("def f(d): return d['a']", CALL | {"inputs": [[{"a": 2}]], "outputs": [2]}, 1.0),
        (
            "def f(a):\n    a.append(3)\n    return a",
            CALL | {"inputs": [[[1]], [[1]]], "outputs": [[1, 3]] * 2},
            1.0,
        ),
        ("print(len(input()) if 0 else 0)", {"inputs": [None], "outputs": ["0"]}, 1.0),
        ("print(input())", {"inputs": [None], "outputs": ["0"]}, 0.0),  # there is none
        (ADD, {"inputs": [None, None], "outputs": [None, None], "assert_case": ASSERTS}, 1.0),
        (
            "def add(a, b): return 3",
            {"inputs": [None, None], "outputs": [None, None], "assert_case": ASSERTS},
            0.5,
        ),
    ],
)
def test_what_code_earns_on_what_other_datasets_bring(code, tests, share):
    assert grade(code, tests, partial=True).reward == share
    assert grade(code, tests).reward == (share == 1.0)


# --- cheating ---

EQUAL = "class E({}):\n    def __eq__(self, other): return True\ndef add(a, b): return E()"
CHEATS = {
    "exit": "import sys\nsys.exit(0)",
    "exit at once": "import os\nos._exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "exit when called": "import os\ndef add(a, b): os._exit(0)",
    "exit while called, in a thread": "import os, threading, time\nthreading.Timer(0.05, os._exit, [0]).start()\n"
    "def add(a, b): time.sleep(1)",
    "exit at exit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit",
    "say so": "print('all tests passed')\nprint('OK')\ndef add(a, b): print('passed')",
    "equal to everything": EQUAL.format("object"),
    "a list equal to everything": EQUAL.format("list"),
    "a number equal to everything": EQUAL.format("int"),
    "no assertions": "import builtins\nbuiltins.AssertionError = None\nAssertionError = None\ndef add(a, b): pass",
    "other builtins": "import builtins as b\nb.eval = b.exec = b.compile = lambda *a, **k: True\ndef add(a, b): pass",
    "other json": "import json\njson.dumps = json.JSONEncoder.encode = lambda *a: 'true'\ndef add(a, b): pass",
    "tracing": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef add(a, b): pass",
    "own check": "def check(candidate): pass\ndef test_add(): pass\ndef add(a, b): pass",
    "optimized": "import sys\nsys.flags = None\n__debug__0 = False\ndef add(a, b): pass",
    "caught": "class A(BaseException): pass\ndef add(a, b): raise A",
    "a Solution with every attribute": "class M(type):\n    def __getattr__(cls, name): raise SystemExit(0)\n"
    "class Solution(metaclass=M): pass",
    "the frames": """
import sys
def add(a, b):
    frame, seen = sys._getframe(), ""
    while frame:
        seen += repr(frame.f_locals) + repr(frame.f_code.co_consts)
        frame = frame.f_back
    return next(int(digits) for digits in ("98765" + str(4321), "13579" + str(2468)) if digits in seen)
""",
    "the length of the expected value": """
import sys
def add(a, b):
    frame = sys._getframe(1)
    while not {"unit", "job"} <= frame.f_locals.keys(): frame = frame.f_back
    longest = frame.f_locals["unit"].get("longest") or frame.f_locals["job"]["longest"]
    return {65536 + 16 * len(each): int(each) for each in ("987654321", "0")}[longest]
""",
    "the garbage collector": """
import gc
def add(a, b):
    seen = "".join(repr(each) for each in gc.get_objects() if type(each) in (list, dict, tuple) and len(each) < 50)
    return next(int(digits) for digits in ("98765" + str(4321), "13579" + str(2468)) if digits in seen)
""",
    "the files": """
import os
def add(a, b):
    for folder in (".", "/tmp", "/proc/self", f"/proc/{os.getppid()}", os.environ["HOME"]):
        try:
            for name in os.listdir(folder):
                if "987654321" in open(os.path.join(folder, name)).read(): return 987654321
        except OSError: pass
""",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheating_earns_nothing(cheat):
    hidden = ["assert add(987654320, 1) == 987654321", "assert add(135792460, 8) == 135792468"]
    forms = [
        hidden,
        "def check(candidate):\n    " + "\n    ".join(hidden),
        [{"input": "987654320 1", "output": "987654321"}],
        {
            "fn_name": "add",
            "inputs": ["987654320\n1", "135792460\n8"],
            "outputs": ["987654321", "135792468"],
        },
    ]
    earned = grades([CHEATS[cheat]] * len(forms), forms, "add", partial=True)
    assert not any(reward for reward, _ in earned)
    # Only in an assert may an object that compares itself be right, which is not graded.
    assert [reward for reward, _ in earned][2:] == [0.0, 0.0]


@pytest.mark.parametrize(
    "code",
    [
        "import math\nmath.isclose = lambda *a, **k: True\ndef add(a, b): return 0",
        "import builtins\nbuiltins.abs = builtins.round = lambda *a: 0\ndef add(a, b): return 7",
        "abs = round = len = lambda *a: 0\ndef add(a, b): return 7",
        "import os\ndef add(a, b): os._exit(0)",
        "import sys\nsys.exit(0)",
        "def add(a, b): raise SystemExit(0)",
        "print('passed')",
    ],
)
def test_what_the_tests_use_is_not_the_codes(code):
    tests = [
        "import math\nfor n in range(3):\n    assert abs(add(n, 1) - (n + 1)) < 1e-6 and math.isclose(add(n, 1), n + 1)"
    ]
    assert [reward for reward, _ in grades([code, ADD], [tests, tests], "add")] == [0.0, 1.0]


@pytest.mark.parametrize("base", ["object", "list", "int"])
def test_an_object_that_is_equal_to_everything_is_equal_to_no_value_of_the_tests(base):
    liar = EQUAL.format(base)
    assert grade(liar, ["x = sum([1, 2])\nassert add(1, 2) == x"]).reward == 0.0
    assert (
        grade(liar, ["assert add(1, 2) == add(2, 1)"]).reward == 1.0
    )  # which is all that is asked


# --- reading tests ---


@pytest.mark.parametrize(
    ("source", "entry_point", "read"),  # read: what each test says
    [
        ("assert f(1) == [1, -2]", None, "f(1) == [1, -2]"),
        ("assert {1} == f(1), 'message'", None, "{1} == f(1)"),
        ("assert f(1)\nassert not f(2)", None, "f(1); not f(2)"),
        ("x = f(1)\nassert x\nassert x > 1", None, "x; x > 1"),
        # rounds of a loop are parts of one test
        ("for x in [1, 2]:\n    assert f(x) == x", None, "f(x) == x"),
        ("for x in f(1):\n    assert x", None, "for x in f(1):\n    assert x"),
        (
            '"""Docstring."""\nx = 1\nassert f(x) == 1\nprint("fine")\nassert True, "fine"',
            None,
            "f(x) == 1",
        ),
        ("def check(g):\n    assert g(1) == 2\n    assert g(2) == 3", "f", "g(1) == 2; g(2) == 3"),
        ("def check(g):\n    assert g(1) == 2\ncheck(f)", None, "g(1) == 2"),
        ("def check(g):\n    assert g(1) == 2\ncheck(f)", "f", "g(1) == 2"),
        (
            "def check(g):\n    if g(1): return\n    assert False",
            "S().f",
            "False",
        ),
        ("def test_a(): assert f(1) == 2\ndef test_b(): assert f(2)", None, "f(1) == 2; f(2)"),
        (
            "def test_a(): assert f(1) == 2\nif __name__ == '__main__':\n    test_a()",
            None,
            "f(1) == 2",
        ),
        ("def test_a(): assert f(1) == 2\ntest_a()", None, "f(1) == 2"),
        ("assert f(1)\ndef test_a():\n    assert f(2)", None, "f(1); f(2)"),
        ("def test_a():\n    assert f(2)\nassert f(1)", None, "f(1); f(2)"),  # as they are run
        ("def same(a, b): return a == b\nassert same(f(1), 2)", None, "same(f(1), 2)"),
        ("def v(x, y): assert f(x) == y\nv(1, 2)\nv(2, 3)", None, "v(1, 2); v(2, 3)"),
        # what checks nothing prepares what does
        ("s = S()\ns.push(1)\nassert s.pop() == 1\ns.close()", None, "s.pop() == 1"),
        ("f(1)", None, "f(1)"),
        (
            "class T(TestCase):\n  def test_a(self):\n    x = f(1)\n    self.assertEqual(x, 2)",
            None,
            "self.assertEqual(x, 2)",
        ),
    ],
)
def test_tests_are_taken_apart(source, entry_point, read):
    assert "; ".join(shown(test) for test in read_tests(source, entry_point)) == read


@pytest.mark.parametrize(
    "tests",
    [
        *(
            None,
            3,
            [],
            "",
            "   ",
            "x = 1",
            "def f(:",
            "# nothing",
            [None],
            [3],
            ["assert f(1)", 3],
            [{}],
            {},
            "[1",
            "[1]",
        ),
        *(
            "[1]",
            {"inputs": ["1"], "outputs": []},
            {"inputs": [], "outputs": []},
            {"inputs": [[1]], "outputs": ["1"]},
        ),
        *(
            [{"input": "1"}],
            [{"input": 1, "output": "1"}],
            [{"input": "1", "output": "1"}, "assert f(1)"],
        ),
        *(
            "import numpy\nassert numpy.all(f(1))",
            "assert True",
            "f",
            "eJyrViotTk1RslIqLilKTcwtyUlVqgUAWfMHbw/a+b",
        ),
        *("def check(f): assert f(1)", "class T: pass", "\0", "(" * 10_000, "[" * 100_000),
        *(
            "def test_a(x): assert f(x)",
            "assert f(1)\nclass TestF(F):\n    def test_a(self): assert f(2)",
        ),
        "import unittest\nclass T(unittest.TestCase): pass\nif __name__ == '__main__': unittest.main()",
    ],
)
def test_tests_that_cannot_be_read_are_refused(tests):
    with pytest.raises(BadTests):
        read_tests(tests)


@pytest.mark.parametrize(
    ("tests", "entry_point", "expected"),
    [
        # APPS and TACO: a list of arguments; PRIME and verl: JSON, one a line
        ({"fn_name": "add", "inputs": [[1, 2], [0, 0]], "outputs": [3, 0]}, None, ADD_CALLS),
        (CALLS_IN_LINES, None, ADD_CALLS),
        (CALLS_IN_LINES, "other", ADD_CALLS),  # the test's own name goes before
        (CALLS_IN_LINES | {"assert_case": None, "type": None}, None, ADD_CALLS),
        # what a row without a function looks like in the same file
        (STDIN_IN_LISTS, None, STDIN),
        (STDIN_IN_LISTS | {"fn_name": None}, None, STDIN),
        (STDIN_IN_LISTS | {"fn_name": ""}, None, STDIN),
        (STDIN_IN_LISTS, "add", STDIN),
        # LiveCodeBench and DeepCoder; the name may be in a column, since LiveCodeBench has it
        # beside the tests
        (FUNCTIONAL, None, ADD_CALLS),
        ([test | {"metadata": None} for test in FUNCTIONAL], "add", ADD_CALLS),
        ([test | {"metadata": '{"func_name": "add"}'} for test in FUNCTIONAL], None, ADD_CALLS),
        (
            [
                test | {"testtype": "stdin", "metadata": {"func_name": None}}
                for test in STDIN_STDOUT
            ],
            None,
            STDIN,
        ),
        (
            [{"input": "1 2", "output": "3", "testtype": "stdin", "metadata": {"func_name": "f"}}],
            None,
            FIRST_STDIN,
        ),
        # open-r1 and PrimeIntellect
        ({"language": "python", "test_cases": STDIN_STDOUT}, None, STDIN),
        ({"language": "Python3", "test_cases": json.dumps(CALLS_IN_LINES)}, None, ADD_CALLS),
        ({"test_cases": [FIRST | {"type": "function_call", "fn_name": "add"}]}, None, FIRST_CALL),
        # verl
        ({"style": "rule", "ground_truth": json.dumps(CALLS_IN_LINES)}, None, ADD_CALLS),
        (
            {"inputs": [None, ""], "outputs": [None, None], "assert_case": ASSERTS},
            None,
            ADD_ASSERTS,
        ),
        ({"call_type": "assert", "fn_name": "add", "assert_case": ASSERTS}, None, ADD_ASSERTS),
        ({"inputs": [], "outputs": [], "assert_case": "\n".join(ASSERTS)}, None, ADD_ASSERTS),
        (
            CALLS_IN_LINES | {"assert_case": [ASSERTS[0], ""], **SECOND},
            None,
            "add(1, 2) == 3; add(0, 0) json 0",
        ),
        (
            {"assert_case": [CHECK.format(1, 2, 3), CHECK.format(0, 0, 0)]},
            None,
            "c(1, 2) == 3; c(0, 0) == 0",
        ),
        (
            {"functional": "def check(add):\n    assert add(1, 2) == 3\ncheck(Solution().add)"},
            None,
            FIRST_ASSERT,
        ),
        (
            {"pytest": "from solution import add\ndef test_add():\n    assert add(1, 2) == 3"},
            None,
            FIRST_ASSERT,
        ),
        # which expected values may stand in a list of their own
        (CALL | {"inputs": [[1]], "outputs": [[3]]}, None, "f(1) json in a list [3]"),
        (
            CALL | {"inputs": [[1], [2]], "outputs": [[3], [4, 5]]},
            None,
            "f(1) json [3]; f(2) json [4, 5]",
        ),
        ([FUNCTIONAL[0] | {"output": "[3]"}], None, "add(1, 2) json [3]"),
        # what is text and what is JSON
        (CALL | {"inputs": [["1"]], "outputs": ["3"]}, None, "f('1') json '3'"),
        (CALL | {"inputs": ['"1"'], "outputs": ['"3"']}, None, "f('1') json '3'"),
        (
            CALL | {"inputs": ["", None], "outputs": ["null", "true"]},
            None,
            "f() json None; f() json True",
        ),
        (CALL | {"inputs": ["[1, 2]"], "outputs": [3]}, None, "f([1, 2]) json 3"),
    ],
)
def test_what_other_datasets_bring_is_read(tests, entry_point, expected):
    """As a value, as JSON and as Python writes it."""
    for form in (tests, json.dumps(tests), repr(tests)):
        assert "; ".join(shown(test) for test in read_tests(form, entry_point)) == expected


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        (
            {"language": "cpp", "test_cases": STDIN_STDOUT},
            "only Python can be run, and the language is 'cpp'",
        ),
        (
            [{"input": "1", "output": "1", "type": "interactive"}],
            "'interactive'; accepted are stdin_stdout, stdin",
        ),
        ([FUNCTIONAL[0] | {"metadata": None}], "calls need the function's name"),
        (
            CALL | {"fn_name": "f(", "inputs": [[1]], "outputs": [1]},
            "fn_name must be a name, not 'f('",
        ),
        (CALL | {"fn_name": 3, "inputs": [[1]], "outputs": [1]}, "fn_name must be a name, not '3'"),
        (
            CALL | {"inputs": ["one"], "outputs": ["1"]},
            "arguments of a call must be JSON, one a line, not 'one'",
        ),
        (
            CALL | {"inputs": ["1"], "outputs": ["one"]},
            "output of a call must be JSON, as its input is, not 'one'",
        ),
        (
            CALL | {"inputs": [1], "outputs": [1]},
            "arguments of a call must be a list, or JSON, one a line, not 1",
        ),
        (CALL | {"inputs": [[{1}]], "outputs": [1]}, "must be what JSON can write"),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, "there are 2 of input and 1 of output"),
        (
            {"inputs": ["1"], "outputs": [None]},
            "cases must have input and output, and one has input, output, whose value is None",
        ),
        (
            {"inputs": ["1"], "outputs": ["1"], "assert_case": ["assert f()"]},
            "a case has either an assert_case",
        ),
        (
            {"inputs": ["", "1"], "outputs": ["", "1"], "assert_case": ["assert f()", ""]},
            "all of a program, or all of",
        ),
        (
            [{"stdin": "1", "output": "1"}],
            "cases must have input and output, and one has stdin, output",
        ),
        ({"tests": ["assert f()"]}, "inputs and outputs that are lists, and input is None"),
    ],
)
def test_what_is_not_accepted_is_answered_with_what_is(tests, problem):
    with pytest.raises(BadTests, match=re.escape(problem)):
        read_tests(tests)
    assert CodeReward().explain(block(ADD), {"tests": tests}).rules[0].detail.count(problem) == 1


KEYS = [
    "input",
    "inputs",
    "output",
    "outputs",
    "fn_name",
    "assert_case",
    "type",
    "testtype",
    "metadata",
    "func_name",
]
KEYS += ["test_cases", "language", "ground_truth", "functional"]
TEXTS = [
    "",
    "1 2",
    "[1]",
    "{",
    "add",
    "assert add(1, 2) == 3",
    "stdin_stdout",
    "functional",
    "python",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.text(max_size=3),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(KEYS), each, max_size=5)
    ),
    max_leaves=12,
)


CASE = st.fixed_dictionaries(
    {"input": VALUES, "output": VALUES}, optional=dict.fromkeys(KEYS[4:], VALUES)
)


@settings(max_examples=300)
@given(VALUES | CASE | st.lists(CASE, min_size=1, max_size=3), st.none() | st.sampled_from(TEXTS))
def test_any_tests_are_read_or_refused(tests, entry_point):
    for form in (tests, json.dumps(tests)):
        try:
            read = read_tests(form, entry_point)
        except BadTests as error:
            assert str(error)
        else:
            assert read and len({type(each) for each in read}) == 1


@pytest.mark.parametrize("entry_point", [3, "", "f(", "\0", ["f"]])
def test_an_entry_point_that_is_no_name_is_refused(entry_point):
    with pytest.raises(BadTests, match="entry_point must be a name"):
        read_tests("def check(f): assert f(1)", entry_point)


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("1 2\n", "1 2", True),
        ("1  2 \r\n3\n\n", "1 2\n3\n", True),
        ("1\n\n2", "1\n2", False),
        ("\n1 2", "1 2", True),
        ("1 2", "1\n2", False),
        ("", "\n", True),
        ("", "0", False),
        ("YES", "yes", False),
        # decimals are compared as numbers
        ("1.0", "1.00", True),
        ("1", "1.0", True),
        ("1.00 x\n-0.0", "1.0 x\n0.000", True),
        (".5 +2.50", "0.5 2.5", True),
        ("3.0000001", "3.0", True),
        ("3.000001", "3.0", True),  # the most that it may differ
        ("3.0000011", "3.0", False),
        ("3.01", "3.0", False),
        ("-3.0", "3.0", False),
        ("0.3333333", "0.333333333333333", True),
        ("0.333333", "0.333333333333333", True),
        ("0.3333333333333333", "0.333333", True),
        ("0.333334", "0.333333333333333", False),
        ("0.001235", "0.00123456", True),
        ("0.001236", "0.00123456", False),
        ("0.0000001", "0.000000", False),
        ("0.33333", "0.333333333333333", False),
        ("0.33", "0.333333333333333", False),
        ("0.333333333333333", "0.33", False),
        ("1234567.90", "1234567.89", False),  # less than a millionth of it, and a cent too much
        ("1e-16", "0.0", True),
        ("0.0", "0.000001", False),
        ("0.0000012", "0.000001", False),
        ("0.0", "1e-10", False),
        ("1e-05", "0.00001", True),
        ("1.0E10", "10000000000.0", True),
        ("10000000000000000", "1e+16", True),
        ("10000000000000001.0", "1e+16", False),
        ("12345678901234567890.5", "12345678901234567891.5", False),  # never as floats
        # whole numbers are not
        ("1.0", "1", False),
        ("01", "1", False),
        ("+1", "1", False),
        ("1e5", "100000", False),
        ("9007199254740993", "9007199254740992", False),
        ("1_000.0", "1000.0", False),
        ("1,000.0", "1000.0", False),
        ("١.0", "1.0", False),
        # nor is what only looks like a number
        ("nan", "nan", True),
        ("NaN", "nan", False),
        ("inf", "1.0", False),
        ("Infinity", "inf", False),
        ("10e4", "1e5", False),
        ("1.2.3", "1.2.30", False),
        ("3.", "3.0", False),
        ("3", "3.", False),
        ("x=1.0", "x=1.00", False),
        ("[1.0]", "[1.00]", False),
        ("50.0%", "50.00%", False),
        ("1.0 2.0", "1.00", False),
        ("1.0\n2.0", "1.00 2.00", False),
    ],
)
def test_outputs_differ_in_more_than_white_space(got, expected, same):
    assert same_output(got, expected) is same


def test_long_outputs_of_numbers_are_compared_in_little_time():
    with done_within(120):
        assert not same_output("9" * 1_000_000, "9" * 999_999 + ".5")
        assert same_output("1.0 " * 200_000, "1.00 " * 200_000)
        assert not same_output("1e-999 " * 100_000, "1e+999 " * 100_000)


def test_a_number_longer_than_python_writes_does_not_raise():
    tests = ["assert f() == 1"]
    code = "```python\ndef f(): return 1\n```"
    assert CodeReward()([code], tests=[tests], entry_point=["f"], other=[10**5000]) == [1.0]
    assert CodeReward()([code], tests=[10**5000]) == [None]


def test_a_machine_without_room_gives_none(monkeypatch):
    """No process can be started, and no thread for a second worker."""

    def refuse(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    def no_thread(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("swift_rlvr.verifiers.code.process.subprocess.Popen", refuse)
    monkeypatch.setattr("threading.Thread.start", no_thread)
    codes = [f"```python\ndef f(): return {number} - 77\n```" for number in range(2)]
    assert CodeReward(max_workers=2)(codes, tests=[["assert f() == 1"]] * 2) == [None, None]


@pytest.mark.parametrize("together", [False, True])
def test_what_objects_of_the_code_may_have_decided_is_not_graded(together):
    code = "class E:\n    __sub__ = __abs__ = lambda *_: 0\ndef f(x): return E()"
    for tests, reward in (("y = [2][0]\nassert abs(f(1) - y) < 1", None), ("assert f(1) > 0", 0.0)):
        graded = CodeReward(together=together).grade(f"```python\n{code}\n```", {"tests": tests})
        assert graded.reward == reward
        assert graded.reason == ("error" if reward == 0.0 else "an object that compares itself")


@pytest.mark.parametrize(
    ("code", "together", "reward", "reason"),
    [
        ("x", False, None, ONLY_TOGETHER),
        ("x", True, 1.0, ONLY_TOGETHER),
        ("x if x else 5", True, 0.0, "too many calls"),
    ],
)
def test_a_test_of_many_calls_that_passing_them_on_makes_slow(code, together, reward, reason):
    """Right code answers all of them in a moment; between two processes it takes seconds."""
    tests = f"numbers = range({10**5})\nassert sum(f(x) for x in numbers) == sum(numbers)"
    code_reward = CodeReward(together=together, timeout=0.3)
    grade = code_reward.grade(f"```python\ndef f(x): return {code}\n```", {"tests": tests})
    assert (grade.reward, grade.reason) == (reward, reason)
