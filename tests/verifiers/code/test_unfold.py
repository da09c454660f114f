# ruff: noqa: E501
"""Tests that can be told apart are compared outside the code, in whatever words, and mean what they
meant.
"""

import json
import sys
import types

import pytest
from helpers import done_within
from swift_rlvr.verifiers.code import BadTests, Limits, check, read_tests
from swift_rlvr.verifiers.code.asserts import read_source
from swift_rlvr.verifiers.code.check import decode
from swift_rlvr.verifiers.code.child import encode

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

# Ways to say that f(1) is 7 and f(2) is 8. All are unfolded.
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
}
# These stay beside the code, and are named by what they are.
STAY = {
    "try": (
        "try:\n    assert f(1) == 7\n    assert f(2) == 8\nexcept TypeError:\n    raise",
        "try statement",
    ),
    "counter": (
        "passed = 0\nfor x, y in [(1, 7), (2, 8)]:\n    if f(x) == y:\n        passed += 1\nassert passed == 2",
        "if statement",
    ),
    "reference": (
        "def reference(x): return x + 6\nfor x in [1, 2]:\n    assert f(x) == reference(x)",
        "comparison without a literal",
    ),
    "map": (
        "assert all(map(lambda pair: f(pair[0]) == pair[1], [(1, 7), (2, 8)]))",
        "comparison without a literal",
    ),
    "or": (
        "assert f(1) == 7 or f(1) == -7\nassert f(2) == 8 or f(2) == -8",
        "comparison without a literal",
    ),
    "while": ("i = 1\nwhile i < 3:\n    assert f(i) == i + 6\n    i += 1", "while statement"),
}
EQUALS_ALL = """class E{}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = None
def f(x): return E()"""


def passes(code: str, tests: str) -> bool:
    read = read_tests(tests, "f")
    verdicts = check(code, read, Limits(seconds=60))
    return len(verdicts) == len(read) and all(verdict.reason == "passed" for verdict in verdicts)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_tests_in_other_words_are_compared_outside(way):
    assert [test.told for test in read_tests(WAYS[way], "f") if test.told] == []
    assert passes("def f(x): return x + 6", WAYS[way])
    for wrong in (
        "def f(x): return 7",
        "def f(x): return 8",
        EQUALS_ALL.format(""),
        EQUALS_ALL.format("(int)"),
    ):
        assert not passes(wrong, WAYS[way])


@pytest.mark.parametrize("way", STAY)
def test_what_stays_beside_the_code_is_named(way):
    source, name = STAY[way]
    assert {test.told for test in read_tests(source)} - {None} == {name}
    assert passes("def f(x): return x + 6", source)
    assert not passes("def f(x): return 7", source)


@pytest.mark.parametrize("way", sorted({*WAYS} - {"result", "loop named", "helper"}))
def test_the_code_is_not_told_what_it_ought_to_return(way):
    """Neither in what is evaluated nor in what prepares it."""
    seen = "".join(test.prepare + test.source for test in read_tests(WAYS[way], "f"))
    assert not {"7", "8"} & {*seen}


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
def test_what_is_unfolded_means_what_it_meant(source, monkeypatch):
    """As Python runs the tests, and as they are run here: the same verdict."""
    verdicts = []
    for is_unfolded in (False, True):
        module = types.ModuleType("solution")
        exec(CODE, vars(module))
        monkeypatch.setitem(sys.modules, "solution", module)
        space = {name: value for name, value in vars(module).items() if name[:2] != "__"}
        try:
            if is_unfolded:
                assert all(holds(test, space) for test in read_tests(source))
            else:
                exec(source, space)
                for name in [name for name in space if name.startswith("test_")]:
                    space[name]()
        except (AssertionError, TypeError, ValueError, RecursionError, NameError):
            verdicts.append(False)
        else:
            verdicts.append(True)
    assert verdicts[0] == verdicts[1]


def holds(test, space: dict) -> bool:
    exec(test.prepare, space)
    if test.kind == "run":
        exec(test.source, space)
        return True
    value = eval(test.source, space)
    return test.holds(
        decode(json.loads(json.dumps(encode(bool(value) if test.kind == "true" else value))))
    )


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


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        (
            "import pytest\n@pytest.fixture\ndef x(): return 1\ndef test_f(x): assert f(x)",
            "takes arguments",
        ),
        (
            "import pytest\nwith pytest.raises(ValueError) as info:\n    f(1)\nassert info.value",
            "import pytest",
        ),
        ("import pytest\nassert f(1) == pytest.approx(g(1))", "import pytest"),
        ("import pytest\n@pytest.mark.skip\ndef test_f(): assert f(1)", "import pytest"),
        (
            "class T(TestCase):\n  def test_a(self): self.assertCountEqual(f(1), [1])",
            "self.assertCountEqual",
        ),
        ("class T(TestCase):\n  def test_a(self): self.assertEqual(f(1))", "not understood"),
        ("class T(Other):\n  def test_a(self): assert f(1)", "only a test runner"),
        ("class T(TestCase):\n  async def test_a(self): assert f(1)", "only a test runner"),
        (
            "class T(TestCase):\n  @slow\n  async def test_a(self): assert f(1)",
            "only a test runner",
        ),
        ("class T(TestCase):\n  def test_a(self): helper(self)", "pass self on"),
        ("import numpy as np\nassert (f(1) == np.array([1])).all()", "import numpy"),
        (EVALPLUS + "def ref(x): return x\nassertion(f(1), ref(1), 0)", "import numpy"),
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
        "assert f(1) == '%1000000000d' % 1",
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
        read_tests("assert f(1) == 2")
    assert read_source.cache_info().hits == 2
