"""Code in one process with its tests: the lies that are found out, and what honest code needs."""

import pytest

from lies import LIES
from swift_rlvr.verifiers.code import Limits, passes_together, read_tests
from swift_rlvr.verifiers.code.process import Zygotes

LIMITS = Limits(seconds=60)
ZYGOTES = Zygotes()  # kept from one test to the next, as a reward keeps them
TESTS = "y = [1][0] + 1\nassert f(1) == y"


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_not_believed(name):
    code, tests = LIES[name]
    assert not passes_together(code, read_tests(tests), LIMITS, ZYGOTES)


@pytest.mark.parametrize(
    "code",
    [
        # what the library asks frames for
        "import collections\ndef f(x): return collections.namedtuple('P', 'x y')(1, 2).y",
        "import enum\ndef f(x): return enum.Enum('E', 'A B').B.value",
        "import typing\nT = typing.TypeVar('T')\ndef f(x): return 2",
        "import logging\ndef f(x):\n    logging.warning('x')\n    return 2",
        "import warnings\ndef f(x):\n    warnings.warn('x')\n    return 2",
        "import traceback\ndef f(x):\n    try: 1 / 0\n    except ValueError: pass\n"
        "    except Exception: return traceback.format_exc().count('ZeroDivisionError') + 1",
        "import asyncio\nasync def g(): return 2\ndef f(x): return asyncio.run(g())",
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int\ndef f(x): return D(2).x",
        "import contextlib\n@contextlib.contextmanager\ndef c(): yield 2\ndef f(x):\n    with c() as y: return y",
        "import ast\ndef f(x): return eval(compile(ast.parse('1 + 1', mode='eval'), 'x', 'eval'))",
        "import signal\nv = []\nsignal.signal(signal.SIGALRM, lambda n, frame: v.append(frame))\n"
        "def f(x):\n    signal.raise_signal(signal.SIGALRM)\n    return 2 if v == [None] else 3",
        "import signal\ndef f(x):\n    try: signal.signal(999, print)\n    except ValueError: pass\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    return 2 if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else 3",
        # an equality that is honest
        "class V:\n    def __init__(s, x): s.x = x\n    def __eq__(s, o): return s.x == getattr(o, 'x', o)\n"
        "def f(x): return V(2)",
        "class W:\n    def __init__(s, x): s.x = x\n"
        "    def __eq__(s, o): return isinstance(o, (int, float)) and (s.x - o) % 3 == 0\n"
        "def f(x): return W(5)",
        "class M:\n    def __init__(s, x): s.x = x\n"
        "    def __eq__(s, o): return isinstance(o, int) and (s.x - o) % 7 == 0 and o < 99\n"
        "def f(x): return M(9)",
        "class I(int):\n    def __eq__(s, o): return int(s) == int(o)\n    __hash__ = int.__hash__\n"
        "def f(x): return I(2)",
    ],
)
def test_honest_code_is(code):
    assert passes_together(code, read_tests(TESTS), LIMITS, ZYGOTES)


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        # operators of a class that the tests name, of what derives from it, and of one of their own
        (
            "class Length:\n    def __init__(s, x): s.x = x\n    def __sub__(s, o): return s.x - o\n"
            "class Foot(Length): pass\ndef f(x): return Foot(x)",
            "y = [2][0]\nassert f(5) - y == 3 and isinstance(f(5), Length)",
        ),
        (
            "def f(cls): return cls(5)",
            "class Own(int):\n    def __sub__(s, o): return 3\ny = [2][0]\nassert f(Own) - y == 3",
        ),
        # of Python's, also of a module that is loaded by the code
        (
            "import fractions\ndef f(x): return fractions.Fraction(x)",
            "y = [2][0]\nassert f(5) - y == 3",
        ),
        ("import decimal\ndef f(x): return decimal.Decimal(x)", "y = [2][0]\nassert f(5) - y == 3"),
        (
            "import datetime\ndef f(x): return datetime.timedelta(x)",
            "import datetime\ny = [2][0]\nassert f(5) - datetime.timedelta(y) == datetime.timedelta(3)",
        ),
        (
            "import pathlib\ndef f(x): return pathlib.Path(x)",
            "y = ['a'][0]\nassert f('b') / y < f('c')",
        ),
        # of a class by which the code works, and whose objects no test gets
        (
            "import heapq\nclass Item:\n    def __init__(s, x): s.x = x\n"
            "    def __lt__(s, o): return s.x < o.x\n"
            "def f(*xs):\n    heap = [*map(Item, xs)]\n    heapq.heapify(heap)\n    return heap[0].x",
            "y = [2][0]\nassert f(5, 2) - y == 0",
        ),
    ],
)
def test_operators_of_an_honest_class_work(code, tests):
    assert passes_together(code, read_tests(tests), LIMITS, ZYGOTES)


def test_an_object_that_may_have_decided_is_neither_right_nor_wrong():
    code, tests = LIES["difference of an object"]
    assert passes_together(code, read_tests(tests), LIMITS, ZYGOTES) is None
    wrong = tests.replace("< 1e-6", "> 1e-6")
    assert passes_together(code, read_tests(wrong), LIMITS, ZYGOTES) is False


def test_modules_of_a_package_may_ask_for_frames_while_they_are_loaded(tmp_path, monkeypatch):
    # As scikit-learn's do, of which nothing is loaded before the code imports it.
    folder = tmp_path / "of_the_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("first", "second", "third"):
        module = f"import sys\nsys._getframe()\nclass {name.title()}: pass"
        (folder / f"{name}.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    limits = Limits(seconds=60, packages=("of_the_test",))
    code = "from of_the_test.first import First\nfrom of_the_test import second\n"
    code += "def f(x): return First()"
    tests = "from of_the_test.first import First\nimport of_the_test.third\n"
    tests += "y = f(1)\nassert isinstance(y, First)"
    assert passes_together(code, read_tests(tests, packages=limits.packages), limits)
    # ... and the code itself may not.
    asks = f"import sys\nsys._getframe()\n{code}"
    assert not passes_together(asks, read_tests(tests, packages=limits.packages), limits)


def test_types_can_be_named_beside_a_package_that_imports_typing_extensions():
    limits = Limits(seconds=60, packages=("typing_extensions",))
    code = "from typing import Dict, List, Tuple\ndef f(x: List[Dict]) -> Tuple[List[int], int]: return 2"
    assert passes_together(code, read_tests(TESTS, packages=limits.packages), limits)


def test_classes_of_the_tests_can_be_used_and_values_cannot():
    tests = "class Node:\n    def __init__(self, x): self.x = x\ny = f([2][0])\nassert y.x == 2"
    assert passes_together("def f(x): return Node(x)", read_tests(tests), LIMITS)
    assert not passes_together("def f(x): return y", read_tests(TESTS), LIMITS)
    # Elsewhere they would be in another file.
    imported = f"from solution import f\n{tests}"
    assert not passes_together("def f(x): return Node(x)", read_tests(imported), LIMITS)


def test_leetcodes_nodes_need_no_definition():
    """It shows them in a comment, which solutions keep; the tests bring those that are used."""
    code = "class Solution:\n    def f(self, root: Optional[TreeNode]) -> Optional[ListNode]:\n"
    code += "        return ListNode(root.val, ListNode(root.left.val))"
    nodes = "class TreeNode:\n    def __init__(self, *values): self.val, self.left = values\n"
    nodes += "class ListNode(list):\n    def __init__(self, *values): super().__init__(values)\n"
    tests = "y = Solution().f(TreeNode(1, TreeNode({}, None)))\nassert y == [1, [2]]"
    assert passes_together(code, read_tests(nodes + tests.format(2)), LIMITS)
    assert not passes_together(code, read_tests(nodes + tests.format(3)), LIMITS)
    own = "y = Solution().f(TreeNode(1, TreeNode(2)))\nassert y.val == 1 and y.next.val == 2"
    assert passes_together(code, read_tests(own), LIMITS)


def test_tests_that_are_left_out_are_no_pass():
    tests = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.skipTest('')"
    tests += "\n        self.assertEqual(f([1]), 2)"
    assert not passes_together("def f(x): return 2", read_tests(tests), LIMITS)
