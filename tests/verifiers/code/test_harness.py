# ruff: noqa: E501
"""The tests of a row run in a process of their own, mean what Python says, and cannot be lied to."""

import sys
import types

import pytest

from helpers import done_within
from swift_rlvr.verifiers.code import (
    PASSED,
    BadTests,
    Limits,
    Verdict,
    check,
    passes_together,
    read_tests,
)
from swift_rlvr.verifiers.code.process import Zygotes
from swift_rlvr.verifiers.code.sources import read_source

EVALPLUS = """
import numpy as np

def is_floats(x) -> bool:
    # check if it is float; List[float]; Tuple[float]
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    if isinstance(x, np.ndarray):
        return x.dtype == np.float64 or x.dtype == np.float32
    return False


def assertion(out, exp, atol):
    exact_match = out == exp

    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        np.testing.assert_allclose(out, exp, atol=atol)
    else:
        assert exact_match

"""
UNITTEST = """
import unittest
from solution import f

class TestF(unittest.TestCase):
    'Doc.'
    cases = [(1, 7)]

    def setUp(self):
        super().setUp()
        self.g = f
        self.expected = 8

    def test_one(self):
        self.assertEqual(self.g(1), 7, "message")
        self.assertTrue(f(2) == self.expected)

    def test_cases(self):
        for x, y in self.cases:
            with self.subTest(x=x):
                self.check_one(x, y)

    def check_one(self, x, y):
        self.assertEqual(f(x), y)

if __name__ == "__main__":
    unittest.main()
"""

# Ways to say that f(1) is 7 and f(2) is 8.
WAYS = {
    "literal": "assert f(1) == 7\nassert f(2) == 8",
    "literal first": "assert 7 == f(1)\nassert 8 == f(2)",
    "message": "assert f(1) == 7, f'got {f(1)}'\nassert f(2) == 8, 'no'",
    "expected": "expected = 7\nassert f(1) == expected\nexpected = 8\nassert f(2) == expected",
    "expected: int": "expected: int = 7\nassert f(1) == expected\nassert f(2) == expected + 1",
    "a, b": "first, second = 7, 8\nassert f(1) == first\nassert f(2) == second",
    "result": "result = f(1)\nexpected = 7\nassert result == expected\nassert f(2) == 8",
    "and": "assert f(1) == 7 and f(2) == 8",
    "not or": "assert not (f(1) != 7 or f(2) != 8)",
    "chain": "assert f(1) == f(1) == 7\nassert 8 == f(2)",
    "is True": "assert (f(1) == 7) is True\nassert bool(f(2) == 8)",
    "not !=": "assert not f(1) != 7\nassert not f(2) != 8",
    "in": "assert f(1) in (7,)\nassert f(2) in [8]",
    "if raise": "if f(1) != 7: raise AssertionError('wrong')\nif not f(2) == 8:\n    print('no')\n    raise ValueError",
    "if else": "if f(1) == 7:\n    print('ok')\nelse:\n    assert False\nassert f(2) == 8",
    "loop": "for x, y in [(1, 7), (2, 8)]:\n    assert f(x) == y",
    "loop named": "cases = [(1, 7), (2, 8)]\nfor x, y in cases:\n    result = f(x)\n    assert result == y, f'{x}'",
    "loop dict": "cases = [{'input': 1, 'expected': 7}, {'input': 2, 'expected': 8}]\nfor case in cases:\n    assert f(case['input']) == case['expected']",
    "loop case[0]": "for case in ((1, 7), (2, 8)):\n    assert f(case[0]) == case[1]",
    "items": "for x, y in {1: 7, 2: 8}.items():\n    assert f(x) == y",
    "zip": "inputs = [1, 2]\nresults = [7, 8]\nfor x, y in zip(inputs, results):\n    assert f(x) == y",
    "enumerate": "for i, (x, y) in enumerate([(1, 7), (2, 8)]):\n    assert f(x) == y, i",
    "index": "inputs = [1, 2]\noutputs = [7, 8]\nfor i in range(len(inputs)):\n    assert f(inputs[i]) == outputs[i]",
    "all": "assert all(f(x) == y for x, y in [(1, 7), (2, 8)])",
    "all zip": "xs, ys = [1, 2], [7, 8]\nassert all([f(x) == y for x, y in zip(xs, ys)])",
    "all list": "assert all([f(1) == 7, f(2) == 8])",
    "not any": "assert not any(f(x) != y for x, y in [(1, 7), (2, 8)])",
    "helper": "def verify(x, expected):\n    result = f(x)\n    assert result == expected, 'no'\nverify(1, 7)\nverify(2, 8)",
    "helper loop": "def verify(actual, expected):\n    assert actual == expected\nfor x, y in [(1, 7), (2, 8)]:\n    verify(f(x), y)",
    "helper return": "def same(a, b): return a == b\nassert same(f(1), 7)\nassert same(f(2), 8)",
    "check": "def check(candidate):\n    assert candidate(1) == 7\n    assert candidate(2) == 8\ncheck(f)",
    "test functions": "def test_a():\n    expected = 7\n    assert f(1) == expected\ndef test_b():\n    expected = 8\n    assert f(2) == expected\ntest_a()\ntest_b()",
    "pytest class": "class TestF:\n    def test_f(self):\n        assert f(1) == 7\n        assert f(2) == 8",
    "parametrize": "import pytest\n@pytest.mark.parametrize('x, y', [(1, 7), (2, 8)])\ndef test_f(x, y):\n    assert f(x) == y",
    "approx": "import pytest\nassert f(1) == pytest.approx(7)\nassert pytest.approx(8, abs=0.1) == f(2)",
    "near": "assert abs(f(1) - 7) < 1e-6\nassert abs(f(2) - 8) <= 1e-6",
    "math.isclose": "import math\nassert math.isclose(f(1), 7)\nassert math.isclose(f(2), 8, rel_tol=1e-6)",
    "allclose": "import numpy as np\nassert np.allclose(f(1), 7)\nassert np.isclose(f(2), 8, atol=1e-3)",
    "EvalPlus, MBPP": EVALPLUS
    + "inputs = [[1], [2]]\nresults = [7, 8]\n"
    + "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(f(*inp), exp, 0)",
    "EvalPlus, HumanEval": EVALPLUS
    + "def check(candidate):\n    inputs = [[1], [2]]\n    results = [7, 8]\n"
    + "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)",
    "unittest": UNITTEST,
    "parametrize twice": "import pytest\n@pytest.mark.parametrize('x', [1])\n@pytest.mark.parametrize('y', (7,))\n"
    "def test_f(x, y):\n    assert f(x) == y\ndef test_g(): assert f(2) == 8",
    "try": "try:\n    assert f(1) == 7\n    assert f(2) == 8\nexcept TypeError:\n    raise",
    "counter": "passed = 0\nfor x, y in [(1, 7), (2, 8)]:\n    if f(x) == y:\n        passed += 1\nassert passed == 2",
    "reference": "def reference(x): return x + 6\nfor x in [1, 2]:\n    assert f(x) == reference(x)",
    "map": "assert all(map(lambda pair: f(pair[0]) == pair[1], [(1, 7), (2, 8)]))",
    "or": "assert f(1) == 7 or f(1) == -7\nassert f(2) == 8 or f(2) == -8",
    "while": "i = 1\nwhile i < 3:\n    assert f(i) == i + 6\n    i += 1",
    "helper of several statements": "def same(a, b):\n    if a is None:\n        return False\n    return a == b\nassert same(f(1), 7) and same(f(2), 8)",
    "operator.eq": "import operator\nassert operator.eq(f(1), 7)\nassert operator.eq(f(2), 8)",
    "__eq__": "assert (7).__eq__(f(1))\nassert (8).__eq__(f(2))",
    "sorted": "assert sorted([f(2), f(1)]) == [7, 8]",
    "set": "assert {f(1), f(2)} == {7, 8}",
    "dict": "assert {f(1): f(2)} == {7: 8}",
    "contains": "assert 7 in [f(1)] and 8 in (f(2),)",
    "between": "assert 6 < f(1) < 8\nassert 7 < f(2) < 9",
    "difference": "assert -1e-6 < f(1) - 7 < 1e-6\nassert f(2) - 8 == 0",
    "str": "assert str(f(1)) == '7' and f'{f(2)}' == '8'",
    "json": "import json\nassert json.dumps([f(1), f(2)]) == '[7, 8]'",
    "match": "match f(1), f(2):\n    case 7, 8: pass\n    case _: raise AssertionError",
    "an index": "table = list(range(10))\nassert table[f(1)] == 7 and table[f(2)] == 8",
    "Counter": "from collections import Counter\nassert Counter([f(1), f(2)]) == Counter([8, 7])",
    "isinstance": "assert isinstance(f(1), int) and f(1) == 7\nassert type(f(2)) is int and f(2) == 8",
    "assertCountEqual": "import unittest\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertCountEqual([f(1), f(2)], [8, 7])",
    "assertAlmostEqual": "import unittest\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertAlmostEqual(f(1), 7)\n        self.assertGreater(f(2), 7.5)\n        self.assertLess(f(2), 8.5)",
    "raises as info": "import pytest\nwith pytest.raises(TypeError) as info:\n    f('a')\nassert info.value.args and f(1) == 7\nassert f(2) == 8",
    "callback": "def keep(x): return x\nassert [*map(keep, map(f, [1, 2]))] == [7, 8]",
}
# What a completion may write in place of an answer. None of it knows 7 or 8.
EQUALS_ALL = """
class E{}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = equals = __eq__
    def __sub__(self, other): return 0
    __rsub__ = __add__ = __radd__ = __mod__ = __xor__ = __sub__
    def __hash__(self): return 7
    def __bool__(self): return True
    def __abs__(self): return 0
    def __getattr__(self, name):
        if name[:2] == "__": raise AttributeError(name)
        return lambda *values, **named: True
def f(x): return E()
"""
LIARS = {
    "an object": EQUALS_ALL.format(""),
    "a number": EQUALS_ALL.format("(int)"),
    "a text": EQUALS_ALL.format("(str)"),
    "a list": EQUALS_ALL.format("(list)"),
    "other modules": """
import builtins, json, math, operator, sys, unittest
operator.eq = math.isclose = builtins.all = builtins.sorted = builtins.abs = lambda *values, **named: True
builtins.isinstance = builtins.AssertionError = None
json.dumps = json.JSONEncoder.encode = lambda *values: "[7, 8]"
unittest.TestCase.assertEqual = unittest.TestCase.assertCountEqual = lambda *values: None
reference = same = verify = check = keep = lambda *values: True
def f(x): return 0
""",
    "the end of an iteration": "def f(x): raise StopIteration",
    "an assertion": "def f(x): raise AssertionError",
    "NotImplemented": "def f(x): return NotImplemented",
    "exit": "import os\ndef f(x): os._exit(0)",
}


ZYGOTES = Zygotes()  # kept from one test to the next, as a reward keeps them


def passes(code: str, tests: str) -> bool:
    read = read_tests(tests, "f")
    verdicts = check(code, read, Limits(seconds=60), zygotes=ZYGOTES)
    return len(verdicts) == len(read) and all(verdict.reason == "passed" for verdict in verdicts)


def outcomes(code: str, tests: str, **options) -> list[str]:
    verdicts = check(code, read_tests(tests, "f"), Limits(seconds=60), zygotes=ZYGOTES, **options)
    return [verdict.reason for verdict in verdicts]


@pytest.mark.parametrize("way", WAYS)
def test_a_right_answer_passes_and_a_wrong_one_does_not(way):
    assert passes("def f(x): return x + 6", WAYS[way])
    for wrong in ("def f(x): return 7", "def f(x): return 8"):
        assert not passes(wrong, WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("liar", ["an object", "a number", "other modules"])
def test_no_way_can_be_lied_to(way, liar):
    assert not passes(LIARS[liar], WAYS[way])


@pytest.mark.parametrize("liar", LIARS)
def test_no_lie_is_paid(liar):
    """In those forms that look at a value in the most ways."""
    for way in ("literal", "map", "sorted", "try", "between", "assertAlmostEqual", "match"):
        assert not passes(LIARS[liar], WAYS[way])


def test_a_comparison_of_the_objects_own_is_not_asked():
    liar = EQUALS_ALL.format("")
    for tests in ("assert f(1).equals([3, 4])", "assert f(1).__eq__([3, 4])", "assert 4 in f(1)"):
        assert not passes(liar, tests)
    assert passes("def f(x): return iter([3, 4])", "assert 4 in f(1)")


CODE = """
def f(x): return x + 6
def g(x):
    x.append(9)
    return x
class Solution:
    def h(self, x): return x + 6
def sort(x): x.sort()
x = 100
"""
MEANING = [
    "k = 1\nassert (k := 2) == k\nassert f(k) == 8",
    "n = 1\ndef up():\n    global n\n    n += 1\n    return n\nassert up() == n\nassert f(n) == 8",
    "def test_a():\n    assert f(1) == 7\ndef test_b():\n    assert f(2) == 9 and test_b",
    "k = 1\ndef test_a():\n    k = 2\n    assert f(k) == 8\ndef test_b():\n    assert f(k) == test_b",
    "def test_a():\n    assert f(1) == 7\ndef test_b():\n    test_a()\n    assert f(2) == 9",
    "k = 0\nfor i in [1, 2]:\n    k += f(i)\nassert f(1) == 7",
    "k = 0\ndel k\nassert f(1) == 7",
    "k = 1\ndef up():\n    global k\n    k += 1\nup()\nassert f(1) == 7",
    "for k, v in {2: 7, 2: 8}.items():\n    assert f(k) == v",
    "assert abs(f(1) - 7) <= -6",
    "k = 1\n(k := 2) == 2\nassert f(k) == 8",
    "data = [3, 1]\nsort(data)\nassert data == [1, 3]",
    "data = [3, 1]\nsort(data)\nassert data == [3, 1]",
    "x = [1]\ny = x\ng(x)\nassert y == [1, 9]",
    "x = [1]\ny = x\ng(x)\nassert y == [1]",
    "for x in [[1]]:\n    assert g(x) == x",
    "for x in [[1]]:\n    assert g(x) == [1]",
    "for x, y in [([1], [1, 9])]:\n    g(x)\n    assert x == y",
    "e = [1]\ne.append(9)\nassert g([1]) == e",
    "e = [1]\nassert g([1]) == e",
    "e = [1]\nassert g(e) == e",
    "e = [1]\nassert g(e) == [1, 9]\nassert g(e) == [1, 9]",
    "e = [1]\nassert g(e) == [1, 9]\nassert g(e) == [1, 9, 9]\nassert e == [1, 9, 9]",
    "n = 5\nassert [f(n) for n in [1]] == [7]\nassert f(n) == 11",
    "a, b = 1, 2\na, b = b, a\nassert f(a) == 8 and f(b) == 7",
    "a = 1\na += 1\nassert f(a) == 8",
    "a = 1\nfor a in [2, 3]:\n    pass\nassert f(a) == 9",
    "a = 1\nfor a in [2, 3]:\n    a += 1\nassert f(a) == 10",
    "a = 1\nwhile a < 5: a += 1\nassert f(a) == 11",
    "a = 1\ntry:\n    a = f(a)\nexcept ValueError:\n    a = 0\nassert a == 7",
    "a = 1\nif f(1) == 7: a = 2\nassert f(a) == 8",
    "a = 1\nif f(1) == 7: a = 2\nassert f(a) == 7",
    "a = 1\nassert (a := 2) == 2\nassert f(a) == 8",
    "n = 1\ndef up():\n    global n\n    n += 1\nup()\nassert f(n) == 8",
    "n = 1\ndef up():\n    global n\n    n += 1\n    return n\nup()\nassert f(n) == 8",
    "n = 1\ndef up():\n    global n\n    n += 1\n    return n\nassert up() == 2\nassert f(n) == 8",
    "c = [1]\ndef push():\n    c.append(2)\n    return 0\npush()\nassert c == [1, 2]\nassert f(0) == 6",
    "c = [1]\ndef push(): c.append(2)\npush()\nassert g([1, 2]) == c + [9]",
    "h = lambda: n\nn = 3\nassert f(h()) == 9",
    "fs = []\nfor i in [1, 2]:\n    fs.append(lambda: i)\nassert f(fs[0]()) == 8",
    "total = 0\nfor i in range(3):\n    total += f(i)\nassert total == 21",
    "out = []\nfor i in range(3):\n    out.append(f(i))\nassert out == [6, 7, 8]",
    "def verify(x, y=7): assert f(x) == y\nverify(1)\nverify(2, 8)",
    "def verify(x, y=7): assert f(x) == y\nverify(1)\nverify(2)",
    "def verify(x, y):\n    if x > 5: return\n    assert f(x) == y\nverify(1, 7)\nverify(6, 0)",
    "def verify(x, n):\n    assert f(x) == x + 6\n    if n: verify(x + 1, n - 1)\nverify(1, 3)",
    "def verify(x):\n    verify(x)\nassert f(1) == 7",
    "def swap(a, b): assert (f(a), f(b)) == (8, 7)\na, b = 1, 2\nswap(b, a)",
    "def swap(a, b): assert (f(a), f(b)) == (8, 7)\na = f(-5)\nb = f(-4)\nswap(b, a)",
    "def same(a, b): return all(x == y for x, y in zip(a, b))\nx = [1]\nassert same(g(x), [1, 9])",
    "def same(a, b): return all(x == y for x, y in zip(a, b))\nx = [1]\nassert same(g(x), [1, 8])",
    "def ok(a): return True\nassert ok(f('a'))",
    "def twice(a): return a == a\nassert twice(g([1]))",
    "x = 1\ndef test_a():\n    x = 2\n    assert f(x) == 8\ndef test_b():\n    assert f(x) == 7",
    "def test_a():\n    r = f(1)\n    assert r == 7\ndef test_b():\n    r = f(2)\n    assert r == 8",
    "s = Solution()\nassert s.h(1) == 7",
    "assert Solution().h(1) == 7",
    "cases = [([1], [1, 9])]\nfor c in cases:\n    assert g(c[0]) == c[1]\n    assert c[0] == [1, 9]",
    "cases = [([1], [1, 9])]\nfor c in cases:\n    assert g(c[0]) == c[1]\n    assert c[0] == [1]",
    "for i in range(5):\n    if i == 3: break\n    assert f(i) == i + 6",
    "for i in range(5):\n    assert f(i) < 9",
    "for i in range(3):\n    for j in range(3):\n        assert f(i * j) == i * j + 6",
    "for k, v in {'a': [1]}.items():\n    assert g(v) == [1, 9] and k == 'a'",
    "x = 3\nassert f(x) == x + 6\nx = 4\nassert f(x) == x + 6",
    "assert f(1) == 7 if f(2) == 8 else f(1) == 0",
    "assert f(2**10) == 2**10 + 6 and f(0) == 3 * 2 == 6",
    "assert f(1) == 7 == 8",
    "assert f(1) == 7 == f(1)",
    "assert not (f(1) == 7 and f(2) == 8)",
    "assert not (f(1) == 8 or f(2) == 7)",
    "assert not any(f(x) == 7 for x in [2, 1])",
    "assert any(f(x) == 7 for x in [2, 1])",
    "assert all(f(x) == 7 for x in [1, 2] if x < 2)",
    "if f(1) == 8: raise ValueError\nif f(1) != 7: raise ValueError",
    "if f(1) == 7: raise ValueError",
    "if not f(1): raise ValueError\nassert f(1) in range(8)",
    "assert f(1) in {7: 0} and f(1) not in [8] and 'a' in 'abc' and f(1) in '7'",
    "try:\n    f('a')\nexcept TypeError: pass\nelse: raise AssertionError",
    "from math import *\nassert f(floor(1.5)) == 7",
    "import math as m\nassert f(m.floor(1.5)) == 7",
    "class P:\n    def __init__(self): self.v = 1\nassert f(P().v) == 7",
    "def deco(fn): return fn\n@deco\ndef k(): return 1\nassert f(k()) == 7",
    "a = b = 1\na = 2\nassert f(b) == 7 and f(a) == 8",
    "d = {'k': 1}\nd['k'] = 2\nassert f(d['k']) == 8",
    "d = {'k': 1}\ne = 'k'\nassert f(d[e]) == 7",
    "t = (1, [2])\ng(t[1])\nassert t == (1, [2, 9])",
    "t = (1, [2])\ng(t[1])\nassert t == (1, [2])",
    "with open('/dev/null') as a:\n    b = 1\nassert f(b) == 7",
    "assert [f(i) for i in (1, 2)] == [7, 8]\nassert {f(i): i for i in (1,)} == {7: 1}",
    "e = 7\nassert (lambda e: f(e))(1) == e",
    "e = 7\nassert [e for e in [f(1)]] == [e]",
    "assert f(1) == 'abc'[0:1] or f(1) == 7",
    "e = [7, 8]\nassert f(1) == e[0] and f(2) == e[-1] and [f(1), f(2)] == e[:]",
    "e = {7}\nassert f(1) in e",
    "x = 1\ndel x\nassert f(1) == 7",
    "n = [0]\ndef count(): n[0] += 1; return n[0]\nassert count() == 1\nassert count() == 2 and n == [2]",
    "assert 0.1 + 0.2 == f(0.30000000000000004 - 6)",
    "for _ in range(2):\n    assert f(1) == 7",
    "from solution import f as k\nassert k(1) == 7",
    "assert f(x) == 106",
    "for x in [1]:\n    assert f(x) == 7\nassert f(x) == 7",
    "assert all(f(x) == 7 for x in [1])\nassert f(x) == 106",
]


@pytest.mark.parametrize("source", MEANING)
def test_tests_mean_what_python_says(source, monkeypatch):
    module = types.ModuleType("solution")
    exec(CODE, vars(module))
    monkeypatch.setitem(sys.modules, "solution", module)
    space = {name: value for name, value in vars(module).items() if name[:2] != "__"}
    holds = True
    try:
        exec(source, space)
        for name in [name for name in space if name.startswith("test_")]:
            space[name]()
    except (AssertionError, TypeError, ValueError, RecursionError, NameError, SyntaxError):
        holds = False
    assert passes(CODE, source) == holds


@pytest.mark.parametrize(
    ("tests", "right", "wrong"),
    [
        # how near is near
        ("import pytest\nassert f(1) == pytest.approx(0.5)", "0.5000004", "0.500001"),
        (
            "from pytest import approx\nassert f(1) == approx([1.0, 2], rel=0.1)",
            "(1.09, 1.9)",
            "[1.0]",
        ),
        (
            "from pytest import approx\nassert f(1) == approx({'a': 0.5}, abs=0.1)",
            "{'a': 0.6}",
            "{'b': 0.5}",
        ),
        ("from pytest import approx\nassert f(1) == approx(100, abs=1e-3)", "100.0009", "100.0011"),
        ("import numpy as np\nassert np.allclose(f(1), [1, 2.0])", "[1.000001, 2]", "[1, 2.1]"),
        ("import numpy as np\nassert np.allclose(f(1), [1, 2], atol=0.5)", "[1.4, 1.6]", "1"),
        # a share of infinity is infinite: all would be near it, and it near all
        ("import math\nassert math.isclose(f(1), 0.5)", "0.5", "math.inf"),
        ("import math\nassert math.isclose(f(1), float('inf'))", "math.inf", "-math.inf"),
        (
            "import pytest\ny = [float('inf')]\nassert f(1) == pytest.approx(y)",
            "[math.inf]",
            "[0.5]",
        ),
        ("import numpy as np\nassert np.allclose(f(1), [float('inf')])", "[math.inf]", "[0.5]"),
        # as numpy has it, an empty list is near any number
        ("import numpy as np\nassert np.allclose(f(1), 7.0)", "[7, 7]", "[]"),
        (EVALPLUS + "assertion(f(1), 0.5, 0)", "0.5000009", "0.50001"),
        (EVALPLUS + "assertion(f(1), [0.5, 1e9], 0)", "(0.5, 1e9 + 1)", "(0.5, 1e9 + 1e4)"),
        (EVALPLUS + "assertion(f(1), 5, 0)", "5", "5.0000001"),
        (EVALPLUS + "assertion(f(1), 'a', 0)", "'a'", "'b'"),
        (EVALPLUS + "assertion(f(1), [], 0)", "[]", "[1]"),
        (EVALPLUS + "assertion(f(1), [1], 1e-3)", "[1.0005]", "[1.01]"),
        # unittest and pytest
        (
            "class T(TestCase):\n  def test_a(self): self.assertAlmostEqual(f(1), 0.5)",
            "0.50000004",
            "0.5000001",
        ),
        (
            "class T(TestCase):\n  def test_a(self): self.assertAlmostEqual(f(1), 0.5, places=2)",
            "0.504",
            "0.506",
        ),
        (
            "class T(TestCase):\n  def test_a(self): self.assertAlmostEqual(f(1), 5, delta=1)",
            "6",
            "6.1",
        ),
        ("class T(TestCase):\n  def test_a(self): self.assertIn(f(1), [1, 2], 'no')", "2", "3"),
        ("class T(TestCase):\n  def test_a(self): self.assertFalse(f(1))", "0", "1"),
        (
            "class T:\n  def setup_method(self): self.x = [1]\n  def test_a(self): assert f(self.x) == [1]",
            "x",
            "0",
        ),
        ("import pytest\nwith pytest.raises(ValueError):\n    f(1)", "int('x')", "1"),
        ("import pytest\nwith pytest.raises(ValueError):\n    f(1)", "int('x')", "1 / 0"),
        (
            "import pytest\nwith pytest.raises(ValueError, match='^inv'):\n    f(1)",
            "int('x')",
            "range(1, 2, 0)",
        ),
        (
            "class T(TestCase):\n  def test_a(self): self.assertRaises(TypeError, f, 1)",
            "x + ''",
            "1",
        ),
        (
            "class T(TestCase):\n  def test_a(self):\n    with self.assertRaises(TypeError): f(1)",
            "x + ''",
            "1",
        ),
        # literals that are computed
        ("assert f(1) == 2**31 - 1", "2147483647", "2147483648"),
        ("assert f(1) == [3 * 2, 1 / 2 - 1j]", "[6, 0.5 - 1j]", "[6, 0.5]"),
        ("assert f(1) == list(range(3))", "[0, 1, 2]", "range(3)"),
        ("assert f(1) == range(3)", "range(3)", "[0, 1, 2]"),
        (
            "from math import inf\nassert f(1) == [inf, -inf]",
            "[float('inf'), -float('inf')]",
            "[0, 0]",
        ),
    ],
)
def test_frameworks_and_helpers_mean_what_they_mean(tests, right, wrong):
    assert passes(f"def f(x): return {right}", tests)
    assert not passes(f"def f(x): return {wrong}", tests)


# code, and tests that hold for it
CROSSINGS = {
    "a class of the code": (
        """
class Stack:
    size_limit = 3
    def __init__(self, items=()): self.items = list(items)
    def push(self, x): self.items.append(x); return self
    def pop(self):
        if not self.items: raise EmptyError("empty", 3)
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __contains__(self, x): return x in self.items
    def __eq__(self, o): return isinstance(o, Stack) and self.items == o.items
    def __lt__(self, o): return len(self) < (o if isinstance(o, int) else len(o))
    def __add__(self, o): return Stack(self.items + o.items)
    def __mul__(self, n): return Stack(self.items * n)
    def __repr__(self): return f"Stack({self.items})"
    def __enter__(self): return self
    def __exit__(self, *e): self.items.clear()
    @property
    def top(self): return self.items[-1]
    @classmethod
    def of(cls, *x): return cls(x)
    @staticmethod
    def double(x): return 2 * x
class Sub(Stack): pass
class EmptyError(Exception):
    def __init__(self, m, code): super().__init__(m); self.code = code
    def __str__(self): return f"nothing: {self.args[0]}"
def make(): return Stack([1])
""",
        """
s = Stack()
assert len(s) == 0 and not s
s.push(1)
s.push(2)
assert s.top == 2
assert 1 in s and 5 not in s
assert list(s) == [1, 2]
assert s == Stack([1, 2]) and s != Stack()
assert repr(s) == "Stack([1, 2])" and f"{s}" == "Stack([1, 2])"
assert s + Stack([3]) == Stack([1, 2, 3])
assert (s * 2) * 1 == Stack([1, 2, 1, 2])
assert s < 3 and s < Stack([1,2,3])
assert isinstance(s, Stack) and isinstance(Sub(), Stack) and issubclass(Sub, Stack) and not isinstance(s, Sub)
assert Stack.size_limit == 3 and Stack.double(2) == 4 and Stack.of(1).top == 1
s.extra = 5
assert s.extra == 5 and hasattr(s, "top") and not hasattr(s, "nope")
assert s.items == [1, 2]
import pytest
with pytest.raises(EmptyError, match="nothing") as info:
    Stack().pop()
assert info.value.code == 3 and info.value.args == ("empty",)
try:
    Stack().pop()
except EmptyError as e:
    assert str(e) == "nothing: empty"
assert make().top == 1 and make() == Stack([1])
assert sorted([Stack([1, 2]), Stack([1])])[0] == Stack([1])
assert type(s) is Stack and Stack.__name__ == "Stack" and type(s).__name__ == "Stack"
assert callable(make)
""",
    ),
    "arguments that are changed in place": (
        """
def sort(x): x.sort()
def nest(d): d["k"].append(1); d["n"] = {2}; return d
def same(a): return a
def swap(a, b): a[:], b[:] = b[:], a[:]
def add(s): s.add(4)
def q(d): d.appendleft(0); return d
def sort_bytes(b): b.insert(0, 97)
""",
        """
x = [3,1]
sort(x)
assert x == [1,3]
d = {"k": []}
nest(d)
assert d == {"k": [1], "n": {2}}
nest(d=d)
assert d == {"k": [1, 1], "n": {2}} and same([1]) is not x
a, b = [1], [2,3]
swap(a, b)
assert a == [2,3] and b == [1]
s = {1}
add(s)
assert s == {1,4}
from collections import deque
e = deque([1])
assert q(e) == e and e == deque([0,1]) and e.maxlen is None
b = bytearray(b"x")
sort_bytes(b)
assert b == b"ax"
""",
    ),
    "values of many types, and names that change": (
        """
from collections import *
import datetime, enum, decimal, re, dataclasses
P = namedtuple("P", "x y")
class Color(enum.Enum):
    RED = 1
    BLUE = 2
@dataclasses.dataclass(order=True, frozen=True)
class D:
    x: int
    y: int = 2
counter = 0
def inc():
    global counter
    counter += 1
def f(k):
    return {"p": P(1,2), "c": Counter("aab"), "dd": defaultdict(list, {1: [2]}), "od": OrderedDict(a=1), "dq": deque([1,2]),
     "date": datetime.date(2020,1,2), "dt": datetime.datetime(2020,1,2,3), "td": datetime.timedelta(1), "dec": decimal.Decimal("1.1"),
     "rng": range(3), "fs": frozenset([1]), "by": b"x", "ba": bytearray(b"x"), "cx": 1j, "big": 10**30, "nan": float("nan"), "el": ..., "t": int, "m": re.match("a","ab"), "color": Color.RED, "keys": {1:2}.keys(), "values": {1: 2}.values()}[k]
""",
        """
assert f("p") == (1,2)
assert f("c") == {"a": 2, "b": 1} and f("c").most_common(1) == [("a", 2)]
assert f("dd") == {1: [2]}
assert f("od") == {"a": 1} and list(f("dq")) == [1,2]
import datetime
from decimal import Decimal
assert f("date") == datetime.date(2020,1,2) and f("dt").hour == 3 and f("td").days == 1
assert f("dec") == Decimal("1.1")
assert f("rng") == range(3) and f("fs") == {1} and f("by") == b"x" and f("ba") == b"x" and f("cx") == 1j and f("big") == 10**30
assert f("nan") != f("nan") and f("el") is ... and f("t") is int
assert f("m").group() == "a"
assert f("color") == Color.RED and f("color") is Color.RED and f("color").value == 1 and Color["RED"] is Color.RED and Color(1) == Color.RED and [c.name for c in Color] == ["RED", "BLUE"] and len(Color) == 2
assert f("keys") == {1} and list(f("values")) == [2]
assert counter == 0
inc(); inc()
assert counter == 2
assert D(1) == D(1, 2) and D(1) < D(2) and hash(D(1)) == hash(D(1)) and {D(1): 3}[D(1)] == 3 and repr(D(1)) == "D(x=1, y=2)"
import solution
assert solution.counter == 2 and solution.f("by") == b"x"
from solution import *
assert f("by") == b"x"
""",
    ),
    "errors": (
        """
import json
def f(x): return json.loads(x)
def g(): return open("/nope")
def h(): raise SystemExit(3)
def k(): return {}["a"]
def s(): raise StopIteration
""",
        """
import json, pytest
with pytest.raises(json.JSONDecodeError): f("{")
with pytest.raises(ValueError): f("{")
with pytest.raises(OSError): g()
with pytest.raises(SystemExit): h()
with pytest.raises(KeyError) as e: k()
assert e.value.args == ("a",) and str(e.value) == "'a'"
with pytest.raises(RuntimeError): s()
with pytest.raises(NameError): nothing()
""",
    ),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_what_crosses(name):
    code, tests = CROSSINGS[name]
    read = read_tests(tests)
    verdicts = check(code, read, Limits(seconds=60), all_tests=True)
    assert verdicts == [Verdict("passed")] * len(read)


STACK, _ = CROSSINGS["a class of the code"]
ONLY_TOGETHER = {
    "a context of the code": (
        STACK,
        "with Stack([1]) as t:\n    assert len(t) == 1\nassert len(t) == 0",
    ),
    "a generator as such": (
        "def f(n):\n    for i in range(n): yield i",
        "import types\nassert isinstance(f(1), types.GeneratorType)",
    ),
    "a generator that is sent values": (
        "def f():\n    x = yield 1\n    yield x",
        "e = f()\nassert next(e) == 1 and e.send(7) == 7",
    ),
    "a function of the tests": ("def f(g, x): return g(x)", "assert f(lambda x: x + 1, 1) == 2"),
    "a builtin function": ("def f(g, x): return g(x)", "assert f([len][0], [1]) == 1"),
    "a composed function": (
        "def f(*gs):\n    def h(x):\n        for g in gs: x = g(x)\n        return x\n    return h",
        "assert f(lambda x: x + 1, lambda x: x * 2)(3) == 8",
    ),
    "a decorator": (
        "def f(g):\n    return lambda *a: g(*a) + 1",
        "@f\ndef two(): return 2\nassert two() == 3",
    ),
    "an object of the tests": (
        "def f(node):\n    t = 0\n    while node: t, node = t + node.val, node.next\n    return t",
        "class Node:\n    def __init__(self, val, next=None): self.val, self.next = val, next\n"
        "assert f(Node(1, Node(2))) == 3",
    ),
    "an iterator of the tests": ("def f(it): return sum(it)", "assert f(i for i in range(4)) == 6"),
    "an exception of the tests": (
        "def f(g): g()",
        "class Own(Exception): pass\ndef own(): raise Own('mine')\n"
        "try:\n    f(own)\n    assert False\nexcept Own as e: assert str(e) == 'mine'",
    ),
    "a mock": (
        "def f(g, x): return g(x)",
        "from unittest.mock import Mock\nm = Mock(return_value=5)\nassert f(m, 3) == 5",
    ),
    "a question to a part of a result": (
        "class A:\n    def get(self, x): return x\ndef f(): return A()",
        "x = [1]\nassert f().get(x) == x",
    ),
    "calls in a chain": (STACK, "s = Stack()\ns.push(1).push(2)\nassert s.items == [1, 2]"),
    "the fields of a named tuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)",
        "assert f().x == 1",
    ),
    "an argument that is returned": ("def f(x): return x", "x = [1]\nassert f(x) is x"),
    "an argument twice": ("def f(x, y): return x is y", "x = [1]\nassert f(x, x)"),
    "a list in itself": (
        "def f():\n    a = []\n    a.append(a)\n    return a",
        "c = f()\nassert c[0] is c",
    ),
    "a copy": (STACK, "import copy\ns = Stack([1])\nassert copy.deepcopy(s) == s"),
    "the name of a function": ("def f(): return 1", "assert f() == 1 and f.__name__ == 'f'"),
}


@pytest.mark.parametrize("name", ONLY_TOGETHER)
def test_what_works_in_one_process_alone(name):
    """Two processes would need a protocol of its own for each of these. What fails is the code, as far
    as they can tell, so that wrong code earns 0.
    """
    code, tests = ONLY_TOGETHER[name]
    limits = Limits(seconds=60)
    assert check(code, read_tests(tests), limits)[-1].reason in ("wrong", "error")
    assert passes_together(code, read_tests(tests), limits)


LIAR = """
class Stack:
    def name(self): return self
    startswith = lambda *_: self_or_true
    __contains__ = __lt__ = __gt__ = __sub__ = __rsub__ = __abs__ = __mod__ = lambda *_: self_or_true
    def __iter__(self): return iter([])
def f(): return Stack()
"""


@pytest.mark.parametrize("answer", ["True", "1", "Stack()"])
@pytest.mark.parametrize("subject", ["Stack().name()", "f()", "f().name()"])
@pytest.mark.parametrize(
    "question",
    ["x.startswith(y)", "y in x", "x < y", "x > y", "abs(x - y) < 1e-6", "x.name().startswith(y)"],
)
def test_an_object_in_place_of_a_value_answers_no_question(answer, subject, question):
    """It is no other one where a method of an object that the tests have made returns that again."""
    code = LIAR.replace("self_or_true", answer)
    tests = f"x, y = {subject}, ['a'][0]\nassert {question}"
    assert not passes(code, tests)


def test_the_code_gets_nothing_that_the_tests_do_not_write_down():
    """No function or object of theirs, by which it could ask for more."""
    code = "def f(g): return g(1)"
    verdicts = check(code, read_tests("y = 7\nassert f(lambda x: x + 6) == y"), Limits(seconds=60))
    assert "cannot be handed over" in verdicts[0].detail


@pytest.mark.parametrize(
    "reply",
    [
        *("{}", "[]", "7", "null", '{"value": 7}', '{"changed": [], "value": ["yours", 0]}'),
        *('{"changed": [[-1, ["list", 7]]], "value": 1}', '{"changed": [[0, 7]], "value": 1}'),
        *('{"raised": {}}', '{"raised": {"class": "Nothing", "arguments": ["tuple"]}}'),
        '{"raised": {"class": "BaseException", "library": ["inside.harness", "_Stop"], "arguments": ["tuple"], "state": ["dict"], "text": ""}}',
        '{"raised": {"yours": 0}}',
        *('{"request": ["call"]}', '{"request": 7}', '{"ended": true}', '{"kind": "loaded"}'),
        '{"outcomes": [[0, "passed", ""]], "is_done": true}',
        '{"changed": [], "value": ["object", 0, [0, "int", ["ValueError"], []]]}',
        '{"changed": [], "value": ' + "[" * 400 + "]" * 400 + "}",
        "x" * 3000,
    ],
)
def test_no_forged_reply_is_paid(reply):
    """Written by the code in place of its answer, to whichever pipe it is."""
    line = f"{reply}\n".encode()
    code = f"""
import os
def f(x):
    for number in range(3, 64):
        try:
            os.write(number, {line!r})
        except OSError:
            pass
    return 0
"""
    for tests in (
        "assert f([1]) == 7",
        "def g(x):\n    assert f(x) == 7\ng([1])",
        "try:\n    x = f([1])\nexcept ValueError:\n    x = 0\nassert x == 7",
    ):
        assert not passes(code, tests)


@pytest.mark.parametrize(
    "code",
    [
        "def f(g): return g(g)",
        "def f(g): return [g(1) for _ in range(5)][-1] - 1",
        "def f(g):\n    while True: g(f)",
        "def f(g): return f(g) + g(1)",
        "def f(g): raise g",
        "def f(g):\n    g(1).x = 3\n    return g",
        "def f(g):\n    g.x = 3\n    return 7",
        "def f(g): return g('x' * 10**8)",
        "import os\ndef f(g): g(os._exit)",
    ],
)
def test_callbacks_that_misbehave_are_not_paid(code):
    tests = "class N: pass\ndef g(x): return 7 if x == 1 else x()\nassert f(g) == 7"
    assert not passes(code, tests)


def test_a_step_that_fails_is_told_with_what_was_there():
    tests = "assert f(1) == 7, f(0)\nassert f(2) in (7, 9)\nassert f(3) is None\nassert not f(4)"
    verdicts = check("def f(x): return 5", read_tests(tests), Limits(seconds=60), all_tests=True)
    assert [verdict.detail for verdict in verdicts] == [
        "expected 7, got 5",
        "expected one of (7, 9), got 5",
        "expected None, got 5",
        "not f(4) is False",
    ]


@pytest.mark.parametrize(
    ("tests", "shares"),
    [
        # rounds count where the code does not decide how many there are
        ("for x in range(4): assert f(x) < 3", [0.75]),
        ("cases = [0, 1, 5, 6]\nfor x in cases:\n    assert f(x) < 3\nassert f(1) == 1", [0.5, 1]),
        ("for x in range(4):\n    assert f(x) < 3\n    assert f(x) < 2", [0.75, 0.5]),
        (
            "import pytest\n@pytest.mark.parametrize('x', [1, 3])\ndef test_a(x): assert f(x) < 3",
            [0.5],
        ),
        # a long list of what passes earns nothing
        ("for x in f(range(9)): assert x < 3", [0]),
        ("cases = []\ncases += f(range(9))\nfor x in cases: assert x < 3", [0]),
        ("cases = [1]\ncases.extend(f(range(9)))\nfor x in cases: assert x < 3", [0]),
        (
            "import pytest\n@pytest.mark.parametrize('x', f(range(9)))\ndef test_a(x): assert x < 3",
            [0],
        ),
        ("for x in range(4):\n    if f(x) == 2: break\n    assert f(x) < 1", [0]),
        # what is not reached is passed where the tests end well, and else not
        ("def test_a():\n    if f(1): return\n    assert f(1) == 0", [1]),
        ("def test_a():\n    assert f(1) == 1\n    f(1).x\n    assert f(2) == 2", [1, 0]),
        ("assert f(1) == 1\nx = f(1) / 0\nfor y in [1]:\n    assert f(y)", [1, 0]),
    ],
)
def test_what_part_of_the_tests_counts(tests, shares):
    verdicts = check("def f(x): return x", read_tests(tests), Limits(seconds=60), all_tests=True)
    assert [1 if each.reason == "passed" else each.share for each in verdicts] == shares


def test_after_a_test_that_ends_the_code_the_others_have_a_new_process():
    """What the tests have made stays; what the code had is gone."""
    code = """
import os
class S: pass
def f(x):
    if x == 2: os._exit(0)
    return x
"""
    tests = "s = S()\nk = 1\nassert f(k) == 1\nassert f(2) == 2\nassert f(k) == 1\nassert s == s and s.x\nassert f(3) == 3"
    assert outcomes(code, tests, all_tests=True) == [
        *("passed", "ended early", "passed", "error", "passed")
    ]
    swallowed = "try:\n    f(2)\nexcept BaseException:\n    pass\nassert True == True"
    assert outcomes(code, f"{swallowed}\nassert f(1) == 1") != ["passed"]


def test_the_tests_are_limited_too():
    limits = Limits(seconds=1)
    with done_within(300):
        for tests in (
            "while True: f(1)\nassert f(1)",
            "x = [0]\nfor y in x: x.append(y)\nassert f(1)",
        ):
            verdicts = check("def f(x): return x", read_tests(tests), limits)
            assert verdicts and verdicts[0].reason in ("too many calls", "timeout", "out of memory")


@pytest.mark.parametrize(
    "tests",
    [
        "import os\nfor x in range(3):\n    assert f(x) == x\n    if x == 1: os._exit(0)",
        "import os\ndef test_a():\n    assert f(1) == 1\n    assert f(os._exit(0))",
        "import sys\nassert f(1) == 1\nif f(2) == 2:\n    sys.exit()\nassert f(3) == 3",
    ],
)
def test_tests_that_end_themselves_are_not_passed(tests):
    for all_tests in (False, True):
        assert outcomes("def f(x): return x", tests, all_tests=all_tests)[-1] != "passed"


@pytest.mark.parametrize(
    "tests",
    [
        "import os\nassert f(1) == 1\nos._exit(0)",
        "import os\nos._exit(0)\nassert f(1) == 1",
        "import sys\nassert f(1) == 1\nsys.exit()",
        "import sys\nsys.exit()\nassert f(1) == 1",
        "import sys\ny = [f(1)]\nassert y == [1]\nsys.exit()",
        "import sys\nsys.exit()\ny = [f(1)]\nassert y == [1]",
    ],
)
def test_the_end_of_a_script_is_no_test_and_hides_none(tests):
    assert outcomes("def f(x): return x", tests) == ["passed"]
    assert outcomes("def f(x): return x + 1", tests) == ["wrong"]


def test_calls_for_which_no_time_is_left_are_not_passed():
    calls = {"fn_name": "f", "inputs": [[x] for x in range(99)], "outputs": [*range(99)]}
    code = "import time\ndef f(x):\n    end = time.process_time() + 0.4\n    while time.process_time() < end: pass\n    return x"
    verdicts = check(code, read_tests(calls), Limits(seconds=1), all_tests=True)
    assert "timeout" in [verdict.reason for verdict in verdicts] and len(verdicts) < 99


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        (
            "import pytest\n@pytest.fixture\ndef x(): return 1\ndef test_f(x): assert f(x)",
            "takes arguments",
        ),
        ("import pytest\n@pytest.mark.skip\ndef test_f(): assert f(1)", "pytest for mark.skip"),
        ("class T(Other):\n  def test_a(self): assert f(1)", "only a test runner"),
        ("class T(TestCase):\n  async def test_a(self): assert f(1)", "only a test runner"),
        ("import numpy as np\nassert (f(1) == np.array([1])).all()", "numpy for array"),
        ("import numpy as np\nassert f(np)", "numpy for \\*"),
        ("import pandas\nassert f(1)", "pandas, which is not in the standard library"),
    ],
)
def test_what_only_a_runner_or_a_package_could_do_is_refused(tests, problem):
    with pytest.raises(BadTests, match=problem):
        read_tests(tests)


@pytest.mark.parametrize(
    "source",
    [
        "assert f(1) == 9**9**9**9",
        "assert f(1) == 'a' * 10**12",
        "assert f(1) == [[0] * 10**6] * 10**6",
        "assert f(1) == list(range(10**12))",
        "for i in range(10**12): assert f(i)",
        "for i in range(999):\n    for j in range(999): assert f(i) == j",
        "def v(x):\n    v(x)\n    v(x)\nv(1)\nassert f(1)",
        "assert f(1) == " + "-" * 3000 + "1",
    ],
)
def test_no_source_takes_long_to_read(source):
    with done_within(300):
        try:
            read_tests(source)
        except BadTests as error:
            assert "not valid" in str(error)


def test_a_source_is_read_once():
    read_source.cache_clear()
    for _ in range(3):
        read_tests("assert f(1) != 2")
    assert read_source.cache_info().hits == 2


def test_plain_asserts_mean_what_others_do():
    plain = ["assert f(1, [2]) == (1, [2])", "assert f('a', {1}) == ('a', {1})"]
    by_harness = ["x = 1", *plain]
    codes = {
        "def f(a, b): return a, b": [PASSED, PASSED],
        "def f(a, b): return [a, b]": ["wrong", "wrong"],
        "def f(a, b): return a, b\nclass L(tuple):\n    __eq__ = lambda *_: True\ndef f(a, b): return L((a, 3))": [
            "wrong",
            "wrong",
        ],
        "class Solution:\n    def f(self, a, b): return a, b": [PASSED, PASSED],
        "def g(a, b): return a, b": ["error", "error"],
        "import sys\ndef f(a, b): sys.exit()": ["ended early", "ended early"],
    }
    for code, expected in codes.items():
        for source in (plain, by_harness):
            tests = read_tests(source)
            verdicts = check(code, tests, Limits(), all_tests=True)
            assert [verdict.reason for verdict in verdicts] == expected, (code, source)


STAR = "from solution import *\n"


@pytest.mark.parametrize(
    "code",
    [
        "__all__ = ['f', '__compare__']\nclass __compare__:\n"
        "    equal = same = among = true = lambda *_: True\ndef f(x): return 0",
        "all = lambda *_: True\nsorted = lambda _: [7]\nlen = sum = lambda _: 7\ndef f(x): return [0]",
        "math = None\nisclose = same = lambda *_: True\ndef f(x): return 0",
    ],
)
@pytest.mark.parametrize(
    "tests",
    [
        "y = 7\nassert f(1) == y",
        "y = [7]\nassert sorted(f(1)) == y",
        "assert all([f(1) == 7, f(2)])",
        "y = 7\nassert len(f(1)) == y",
        "from math import isclose\nassert isclose(f(1), 7.5)",
        "def same(a, b): return a == b\nassert same(f(1), 7)",
    ],
)
def test_no_name_of_the_code_stands_in_for_one_of_pythons_or_of_the_tests(code, tests):
    assert not passes(code, STAR + tests)
    first, *rest = tests.split("\n")
    assert not passes(code, "\n".join([first, STAR, *rest]))


def test_a_function_with_the_name_of_a_builtin_is_tested():
    for source in ("from solution import *\nx = [1, 2]\nassert sum(x) == 3 and x",):
        assert passes("def sum(xs): return 3", source)
        assert not passes("def sum(xs): return 0", source)


ASKED = """
class E:
    holds = has = compare = lambda self, other: True
    __enter__ = lambda self: self
    __exit__ = lambda *_: True
    equals = eq = classmethod(lambda cls, other: True)
"""


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1).equals(7)",
        "assert f(1).eq(7)",
        "assert f(1).holds(7)",
        "h = f(1).has\nassert h(7)",
        "with f(1) as v:\n    assert v == 7",
        "with f(1) as v:\n    assert v.compare(7)",
    ],
)
def test_a_result_is_not_asked_about_what_is_expected(tests):
    for result in ("E", "E()"):
        assert not passes(f"{ASKED}def f(x): return {result}", tests)
    # An object that the tests have made answers for itself.
    assert passes(ASKED, "e = E()\nassert e.holds(7) and e.equals(7)")


NUMPY = """
class E:
    __array_priority__ = 1e9
    @property
    def __array_interface__(self):
        return {"shape": (1,), "typestr": "<i8", "data": (id(self), True), "version": 3}
    __array_wrap__ = __array_ufunc__ = lambda *_, **__: 0
    __array_function__ = lambda *_, **__: True
    max = lambda self: 0
    __sub__ = __rsub__ = __abs__ = lambda *_: E()
    __lt__ = lambda *_: True
def f(x): return E()
"""


@pytest.mark.parametrize(
    "tests",
    [
        "assert np.abs(f(1) - np.array([7.])).max() < 1e-6",
        "assert np.allclose(f(1), np.array([7.]))",
        "assert np.array_equal(f(1), [7])",
        "assert np.max(f(1) - np.array([7.])) == 0",
        "assert (np.array([7.]) - f(1)).max() < 1e-6",
    ],
)
def test_numpy_takes_no_object_of_the_code_for_an_array(tests):
    pytest.importorskip("numpy")
    read = read_tests(f"import numpy as np\n{tests}", packages=("numpy",))
    limits = Limits(seconds=60, packages=("numpy",))
    (verdict,) = check(NUMPY, read, limits)
    assert verdict.reason != PASSED
    right = "import numpy as np\ndef f(x): return np.array([7.])"
    (verdict,) = check(right, read, limits)
    assert verdict.reason == PASSED


CLASS_FOR_A_FUNCTION = """
class F:
    def __init__(self, *arguments): pass
    __sub__ = __rsub__ = lambda self, other: 0.0
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__ = lambda self, other: True
    __hash__ = lambda self: 0
    __iter__ = lambda self: iter([self])
    equals = lambda self, other: True
f = F
"""


@pytest.mark.parametrize(
    "test",
    [
        "assert abs(f(1) - 7.5) < 1e-6",
        "assert f(1) - 7 == 0",
        "assert not f(1) - 7",
        "assert 7 in f(1)",
        "assert 6 < f(1) < 8",
        "assert f(1).equals(7)",
        "from solution import *\nassert f(1) - 7 == 0",
        "def check(candidate):\n    assert abs(candidate(1) - 7.5) < 1e-6",
    ],
)
def test_a_class_where_the_tests_call_a_function_is_not_paid(test):
    (verdict,) = check(CLASS_FOR_A_FUNCTION, read_tests(test, "f"), Limits())
    assert verdict.reason != PASSED
