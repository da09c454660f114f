"""Honest right programs are paid, or not graded with a reason: never a silent 0. What is no fault of
the code is None too.
"""

from functools import cache

import pytest

from honest import HONEST
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.verifiers.code import BadTests, Limits, check, read_tests
from swift_rlvr.verifiers.code.plain import read_asserts

ONLY_TOGETHER = "passes only together with its tests"
# What the reader declines, since only a runner can do it.
DECLINED = {"fixture", "tmp_path", "capsys", "async unittest", "expectedFailure"}
# What is None for another reason, either way.
OTHERWISE = {
    "bcb subprocess real": "refused by the sandbox",
    "bcb multiprocessing": "refused by the sandbox",
    "eq to plain": "an object that compares itself",
}
# What needs more than values to cross: mutable results, identity, patches, classes of their own.
TOGETHER = {
    *("open is patched", "input is patched", "a function is patched"),
    *("a name of the code is patched", "stdin is replaced", "class of a list", "class of a dict"),
    *("derived by the tests", "dataclass", "context manager", "named tuple", "keeps its list"),
    *("memo", "decorator", "docstring and annotations", "async of the tests", "threads"),
    *("own exception", "exception chain", "regular expression", "counter", "path", "logging"),
    *("environment", "bcb subprocess patched", "bcb socket", "bcb urllib", "thread pool callback"),
    *("classeval", "uses a class of the tests", "int enum", "eq to plain class", "protocol"),
    *(
        "generator in unittest",
        "pickle",
        "weakref",
        "exit caught",
        "warnings",
        "main prints",
        "uuid",
    ),
    *("array", "async", "random seed", "stdout is captured"),
    # What the tests have themselves, such as a function that the code is to call.
    *("a mock is handed over", "callback class", "tree of the tests", "class with Node given"),
    *(
        "sqlite",
        "csv to a stream",
        "write to stream",
        "tests need seek",
        "timer decorator",
        "retry",
    ),
    *("observer", "generator send", "generator throw", "returns the same", "lru cache", "deque"),
}


@cache
def reward_of(**parameters) -> CodeReward:
    """The same one for all tests, so that it keeps the processes that fork others."""
    return CodeReward(timeout=60, **parameters)


def explained(code: str, tests: object, **parameters):
    return reward_of(**parameters).explain(f"```python\n{code}\n```", {"tests": tests})


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_program_is_paid_or_not_graded(name):
    code, tests = HONEST[name]
    explanation = explained(code, tests)
    if name in DECLINED:
        assert (explanation.reward, explanation.reason) == (None, "bad tests")
        return
    if name in OTHERWISE:
        assert (explanation.reward, explanation.reason) == (None, OTHERWISE[name])
        return
    if name in TOGETHER:
        assert (explanation.reward, explanation.reason) == (None, ONLY_TOGETHER)
        assert explained(code, tests, together=True).reward == 1.0
        return
    assert (explanation.reward, explanation.reason) == (1.0, "all tests passed")


@pytest.mark.parametrize("name", sorted({*HONEST} - DECLINED))
def test_nothing_in_its_place_is_not_paid(name):
    """The same tests do not accept a module that has the names and does nothing, either way."""
    code = "def __getattr__(name): return lambda *arguments, **keywords: None"
    assert explained(code, HONEST[name][1], together=True).reward in (0.0, None)


# As the fast input and output of competitive programmers, whose `flush` needs names of the module.
FAST_OUTPUT = """
import os, sys
from io import BytesIO, IOBase
class Fast(IOBase):
    def __init__(self, file):
        self.number, self.buffer = file.fileno(), BytesIO()
        assert file.mode == "w" and file.name == "<stdout>"
    def write(self, text):
        self.buffer.write(text.encode())
    def flush(self):
        os.write(self.number, self.buffer.getvalue())
        self.buffer.truncate(0), self.buffer.seek(0)
sys.stdout = Fast(sys.stdout)
print(int(input()) + 1)
"""
LINES = {"inputs": ["4\n"], "outputs": ["5\n"]}
PLUS = "def f(x): return x + 1"
UNITTEST_OF_ONE = (
    "import sys, unittest\nclass T(unittest.TestCase):\n    def test_f(self):\n"
    "        found = [f(1)]\n        self.assertEqual(found, [2])\n"
)
RUN = "result = unittest.TextTestRunner().run(unittest.TestLoader().loadTestsFromTestCase(T))\n"


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        # streams that the program closes or replaces
        (FAST_OUTPUT, LINES),
        ("import sys\nprint(int(input()) + 1)\nsys.stdout.close()", LINES),
        ("import sys\nsys.stderr.close()\nprint(int(input()) + 1)", LINES),
        (
            "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8')\n"
            "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint(int(input()) + 1)",
            LINES,
        ),
        ("import sys\nif not sys.stdin.seekable():\n    print(int(input()) + 1)", LINES),
        ("import os\nprint(int(os.read(0, os.fstat(0).st_size or 99)) + 1)", LINES),
        (
            "import io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\n"
            "print(int(input()) + 1)",
            LINES,
        ),
        (
            "import mmap\nwith mmap.mmap(0, 0, access=mmap.ACCESS_READ) as lines:\n"
            "    print(int(lines.readline()) + 1)",
            LINES,
        ),
        (
            "from mmap import *\nlines = mmap(0, 0, prot=PROT_READ)\nprint(int(lines.readline()) + 1)",
            LINES,
        ),
        ("for line in open('/dev/stdin'):\n    print(int(line) + 1)", LINES),
        (
            "import sys\nfor line in iter(sys.stdin.buffer.readline, b''):\n    print(int(line) + 1)",
            LINES,
        ),
        ("import atexit\natexit.register(lambda: print(x + 1))\nx = int(input())", LINES),
        (
            "import os.path\nos.path.dirname(os.path.abspath(__file__))\nprint(int(input()) + 1)",
            LINES,
        ),
        # tests that end as a script
        (PLUS, "assert f(1) == 2\nexit()"),
        (PLUS, "import sys\ny = f(1)\nassert [y] == [2]\nsys.exit(0)"),
        (PLUS, "y = f(1)\nassert [y] == [2]\nraise SystemExit"),
        (PLUS, "import sys\nis_right = f(1) == 2\nsys.exit(0 if is_right else 1)"),
        (PLUS, "import sys\ndef main():\n    assert [f(1)] == [2]\n    sys.exit(0)\nmain()"),
        (PLUS, f"{UNITTEST_OF_ONE}unittest.main()"),
        (PLUS, f"{UNITTEST_OF_ONE}unittest.main(argv=['tests'], exit=False)"),
        (PLUS, f"{UNITTEST_OF_ONE}{RUN}sys.exit(not result.wasSuccessful())"),
        (PLUS, f"{UNITTEST_OF_ONE}{RUN}assert result.wasSuccessful()"),
        # what prepares a test, and is told of which
        (
            PLUS,
            "class TestF:\n    def setup_method(self, method): self.x = len(method.__name__)\n"
            "    def teardown_method(self, method): del self.x\n"
            "    def test_f(self): assert f(self.x) == 7",
        ),
    ],
)
def test_a_right_program_is_paid_and_its_twin_with_one_fault_is_not(code, tests):
    assert explained(code, tests).reward == 1.0
    wrong = code.replace("+ 1", "+ 2")
    assert explained(wrong, tests).reward == 0.0
    assert explained(wrong, tests, together=True).reward == 0.0


@pytest.mark.parametrize("hook", ["setup_function", "setup_module", "setUpModule", "load_tests"])
def test_hooks_that_only_a_runner_calls_are_declined(hook):
    """Without them a wrong program was paid: the tests looked at what had not been prepared."""
    tests = f"x = 0\ndef {hook}(*_):\n    global x\n    x = 1\ndef test_f():\n    assert f(x) == 2"
    for code in (PLUS, "def f(x): return x + 2"):
        explanation = explained(code, tests)
        assert (explanation.reward, explanation.reason) == (None, "bad tests")


UNITTEST = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n"


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        # before anything was asked of the code
        (f"{UNITTEST}    def setUp(self): open('/nowhere/x', 'w')\n    def test_f(self): f(1)", ""),
        ("import tkinter.nothing\nassert f(1) == 1 and f(2) == 2", "error of the tests"),
        ("x = {}['a']\nassert f(1) == x", "error of the tests"),
        ("def test_f():\n    y = f(1)\n    import no_such_module_ as m\n    assert y == m", "bad"),
        ("import os\ny = f(1)\nos.fork()\nassert y == 1", "refused by the sandbox"),
    ],
)
def test_what_the_tests_cannot_do_is_no_fault_of_the_code(tests, reason):
    for code in ("def f(x): return x", "def f(x): return None"):
        explanation = explained(code, tests)
        assert explanation.reward is None
        assert reason in explanation.reason


def test_what_the_sandbox_refuses_the_code_is_not_graded():
    code = "import os\ndef f(x): return os.fork()"
    assert explained(code, "y = [f(1)]\nassert y == [1]").reason == "refused by the sandbox"
    assert explained(code, "assert f(1) == 1").reason == "refused by the sandbox"


SQUARE = {"inputs": ["3", "-2"], "outputs": ["9", "4"]}
# What programs ask for, and the sandbox has as good: files in temporary folders, locks of processes
# that are one, permissions and times. `square` is right or wrong.
GIVEN = [
    "open('/tmp/x', 'w').write(input())\nprint(square(int(open('/tmp/x').read())))",
    # a folder of its own, which was empty, whose names are its own everywhere
    "import os, shutil\nfrom pathlib import Path\nassert os.listdir('/tmp') == []\n"
    "folder = Path('/var/tmp/a/b')\nfolder.mkdir(parents=True)\n(folder / 'x').write_text(input())\n"
    "shutil.move('/var/tmp/a/b/x', '/tmp/y')\nos.chdir('/tmp')\nprint(square(int(open('y').read())))\n"
    "shutil.rmtree('/var/tmp/a')\nassert os.path.isfile('/tmp/y')",
    "import tempfile\nwith tempfile.NamedTemporaryFile('w+', dir='/tmp') as file:\n"
    "    file.write(input())\n    file.flush()\n    print(square(int(open(file.name).read())))",
    "import shelve\nwith shelve.open('/tmp/x') as kept:\n"
    "    kept['n'] = int(input())\n    print(square(kept['n']))",
    "import sqlite3\nrows = sqlite3.connect('/dev/shm/x.db')\n"
    "print(square(*rows.execute('select ?', (int(input()),)).fetchone()))",
    "import shutil\nopen('x', 'w').write(input())\nshutil.copy2('x', 'y')\n"
    "print(square(int(open('y').read())))",
    "from multiprocessing.pool import ThreadPool\n"
    "with ThreadPool() as pool: print(*pool.map(square, [int(input())]))",
    "import multiprocessing\nvalue = multiprocessing.Value('i', int(input()))\n"
    "with value.get_lock(), multiprocessing.RLock() as lock: print(square(value.value))",
    "from multiprocessing import BoundedSemaphore, Condition, Event, JoinableQueue\n"
    "queue, event, free = JoinableQueue(), Event(), BoundedSemaphore(1)\nqueue.put(int(input()))\n"
    "with free: assert not free.acquire(timeout=0.01)\n"
    "try: free.release()\nexcept ValueError: event.set()\n"
    "with Condition() as changed: assert event.wait()\n"
    "print(square(queue.get()))\nqueue.task_done()\nqueue.join()",
]
# What it has not: processes.
ASK_FOR_MORE = [
    "import multiprocessing\n"
    "with multiprocessing.Pool(2, maxtasksperchild=1) as pool: print(*pool.map(square, [int(input())]))",
    "from multiprocessing.pool import Pool\nwith Pool() as pool: print(*pool.map(square, [int(input())]))",
    "from multiprocessing import Process, Queue\n"
    "def work(queue, number): queue.put(square(number))\nqueue = Queue()\n"
    "process = Process(target=work, args=(queue, int(input())))\nprocess.start()\n"
    "print(queue.get())\nprocess.join()\nassert process.exitcode == 0",
    "from multiprocessing.context import SpawnProcess\n"
    "class Work(SpawnProcess):\n    def run(self):\n        print(square(int(input())))\n        exit(3)\n"
    "work = Work()\nwork.start()\nwork.join()\nassert work.exitcode == 3 and not work.is_alive()",
    "from multiprocessing import Manager, Process\nwith Manager() as manager:\n"
    "    shared, count = manager.dict(n=int(input())), manager.Value('i', 0)\n"
    "    process = Process(target=lambda: shared.update(n=square(shared['n'])))\n"
    "    process.start()\n    process.join()\n    print(shared['n'] + count.value)",
    "from multiprocessing import Array, Pipe, Process\narray, (one, other) = Array('i', 3), Pipe()\n"
    "def work():\n    array[0] = other.recv()\n    other.send(square(array[0]))\n"
    "process = Process(target=work)\nprocess.start()\none.send(int(input()))\nprint(one.recv())",
    "from concurrent.futures import ProcessPoolExecutor\n"
    "with ProcessPoolExecutor() as pool: print(*pool.map(square, [int(input())]))",
    "from concurrent.futures.process import ProcessPoolExecutor\n"
    "with ProcessPoolExecutor(mp_context=None) as pool: print(pool.submit(square, int(input())).result())",
]


@pytest.mark.parametrize("code", GIVEN)
def test_a_right_program_gets_what_the_sandbox_has_as_good(code):
    explanation = explained(f"def square(x): return x * x\n{code}", SQUARE)
    assert (explanation.reward, explanation.reason) == (1.0, "all tests passed")


@pytest.mark.parametrize(
    "tests",
    [
        "assert f('4') == 5",
        {"fn_name": "f", "inputs": [["4"]], "outputs": [5]},
        "import os\ny = f('4')\nassert y == 5 and open('/tmp/x').read() == '4' and os.listdir('/tmp') == ['x']",
    ],
)
def test_a_function_and_its_tests_get_it_too(tests):
    code = "def f(x):\n    open('/tmp/x', 'w').write(x)\n    return int(open('/tmp/x').read()) + 1"
    assert explained(code, tests).reward == 1.0
    assert explained(code.replace("+ 1", "+ 2"), tests).reward == 0.0


@pytest.mark.parametrize("code", ASK_FOR_MORE)
def test_a_right_program_that_the_sandbox_refuses_something_is_not_graded(code):
    explanation = explained(f"def square(x): return x * x\n{code}", SQUARE)
    assert (explanation.reward, explanation.reason) == (None, "refused by the sandbox")


@pytest.mark.parametrize("code", ASK_FOR_MORE[:3] + GIVEN[:1])
def test_a_wrong_program_cannot_have_itself_refused(code):
    """None would be a way out of every row that is hard."""
    # The first test it passes; or the last, where all are run.
    code = f"def square(x): return 3 * x\n{code}"
    assert explained(code, SQUARE).reward == 0.0
    turned = {name: values[::-1] for name, values in SQUARE.items()}
    assert explained(code, turned, partial=True).reward == 0.5


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['true'])\nprint(int(input()) ** 3)",
        "import multiprocessing, os\nmultiprocessing.Pool(2)\nos.fork()",
    ],
)
def test_a_refusal_is_not_to_be_had_for_the_asking(code):
    explanation = explained(code, SQUARE)
    assert (explanation.reward, explanation.reason) == (0.0, "needs what the sandbox refuses")
    assert "of the code" in explanation.rules[-2].detail
    assert explained(code, SQUARE, partial=True).reward == 0.0


@pytest.mark.parametrize(
    "error", ["PermissionError", "PermissionError('no')", "OSError(1, 'Operation not permitted')"]
)
@pytest.mark.parametrize("tests", ["assert f(1) == 1", "y = [f(1)]\nassert y == [1]", SQUARE])
def test_what_the_code_raises_itself_is_no_refusal(error, tests):
    call = "f(1)" if tests is SQUARE else ""
    explanation = explained(f"def f(x):\n    raise {error}\n{call}", tests)
    assert (explanation.reward, explanation.reason) == (0.0, "error")


@pytest.mark.parametrize("tests", ["assert f(1) == 1", "y = [f(1)]\nassert y == [1]"])
def test_a_refusal_that_the_code_passes_on_is_one(tests):
    for again in ("raise", "raise error"):
        code = f"import os\ndef f(x):\n    try: os.fork()\n    except OSError as error: {again}"
        assert explained(code, tests).reason == "refused by the sandbox"


def test_a_module_that_is_not_there_is_a_fault_of_the_code():
    """None would be a way out of every row that is hard."""
    code = "import no_such_module_\ndef f(x): return x"
    for tests in ("assert f(1) == 1", "y = [f(1)]\nassert y == [1]"):
        explanation = explained(code, tests)
        assert (explanation.reward, explanation.reason) == (0.0, "error")


def test_threads_that_call_back_and_tests_that_are_left_out():
    pool = "from concurrent.futures import ThreadPoolExecutor\n"
    code = f"{pool}def f(g, xs):\n    with ThreadPoolExecutor(2) as p: return list(p.map(g, xs))"
    tests = "def g(x): return 2 * x\nassert f(g, [1, 2]) == [2, 4]"
    assert explained(code, tests).reason == ONLY_TOGETHER
    skips = (
        f"{UNITTEST}    @unittest.skip('no')\n    def test_a(self): self.assertEqual(f(1), 2)\n"
        "    def test_b(self):\n        self.assertEqual(f(1), 1)\n        self.skipTest('later')\n"
    )
    assert explained("def f(x): return x", skips).reward == 1.0
    assert explained("def f(x): return x + 5", skips).reward == 0.0
    lie = "import unittest\ndef f(x): raise unittest.SkipTest"
    assert explained(lie, skips).reward in (0.0, None)
    patched = (
        f"import unittest.mock\n{UNITTEST}    @unittest.mock.patch('time.time', return_value=5)\n"
        "    def test_a(self, now):\n        self.assertEqual(f(1), 6)"
    )
    code = "import time\ndef f(x): return time.time() + x"
    assert explained(code, patched).reason == ONLY_TOGETHER
    assert explained(code, patched, together=True).reward == 1.0


@pytest.mark.parametrize(
    "tests",
    [
        "from solution import missing\nassert missing(1) == 1",
        "assert missing(1) == [1][0]",
        "y = f(1)\nassert y[0] == 1",
        "y = [f(1)]\nassert y == [2]",
    ],
)
def test_a_fault_of_the_code_is_one(tests):
    assert explained("def f(x): return x", tests).reward == 0.0


EQUAL = "class E:\n    __eq__ = lambda *_: True\n    __hash__ = lambda _: 1\n"


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        (f"{EQUAL}def f(x): return E()", "y = [1][0]\nassert f(1) == y"),
        (f"{EQUAL}def f(x): return E()", "y = [1]\nassert f(1) in y"),
        (f"{EQUAL}def f(x): return E()", "assert f(1) is None"),  # no class is asked
        ("import os\ndef f(x): os._exit(0)", "y = [1][0]\nassert f(1) == y"),
        ("import sys\ndef f(x): sys.exit(0)", "y = [1][0]\nassert f(1) == y"),
        ("def f(x): raise AssertionError", "y = [1][0]\nassert f(1) == y"),
        ("__step__ = __compare__ = None\ndef f(x): return 2", "y = [1][0]\nassert f(1) == y"),
        (
            "all = sorted = lambda *_: True\n__all__ = ['f', 'all', 'sorted', '__compare__']\n"
            "class __compare__:\n    equal = lambda *_: True\ndef f(x): return [9]",
            "from solution import *\ny = [1]\nassert sorted(f(1)) == y and all([f(1) == y])",
        ),
        (
            'import os\ndef f(x):\n    for n in range(3, 64):\n        try: os.write(n, b\'{"outcomes":'
            ' [[0, "passed", ""]]}\\n\')\n        except OSError: pass',
            "y = [1][0]\nassert f(1) == y",
        ),
    ],
)
def test_known_lies_are_not_paid_together(code, tests):
    assert explained(code, tests, together=True).reward == 0.0


@pytest.mark.parametrize(
    "code",
    [
        "def f(*a): return [1]\ndef tuple(*a): return 1",
        f"{EQUAL}def f(*a): return [1]\ndef tuple(*a): return E()",
    ],
)
def test_a_builtin_of_the_tests_is_not_the_codes_where_its_function_is_named(code):
    """HumanEval/37: `tuple(candidate(x)) == tuple(y)` has no other name that is free."""
    tests = "def check(candidate):\n    assert tuple(candidate([5, 3])) == tuple([3, 5])\n"
    (grade,) = CodeReward().grades([f"```python\n{code}\n```"], tests=[tests], entry_point=["f"])
    assert grade.reward == 0.0


def test_a_refusal_that_a_library_tells_without_a_number_is_none(tmp_path, monkeypatch):
    library = "def read():\n    raise PermissionError('Operation not permitted (os error 1)')"
    (tmp_path / "of_the_test.py").write_text(library)
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "import of_the_test\ndef f(x): return of_the_test.read()"
    limits = Limits(seconds=60, packages=("of_the_test",))
    (verdict,) = check(code, read_tests("assert f(1) == 2"), limits)
    assert verdict.reason == "refused by the sandbox"


@pytest.mark.parametrize(
    "report",
    [
        *("{}", "[]", '{"outcomes": 7}', '{"outcomes": [[99, "passed", ""]]}'),
        *('{"outcomes": [7]}', '{"outcomes": [["a", "passed", ""]]}', '{"outcomes": [[0]]}'),
        *('{"outcomes": [[0, "ended", ""]]}', '{"outcomes": [], "ask": {}}'),
        *('{"outcomes": [], "ask": 7, "step": 0}', '{"outcomes": [], "ask": {}, "step": 99}'),
        *('{"outcomes": [], "ask": {}, "step": [1]}', '{"outcomes": [[0, 1, 2]]}'),
        '{"outcomes": [], "ask": {"request": 7}, "step": null}',
    ],
)
def test_tests_that_write_a_report_of_their_own_raise_nothing(report):
    line = f"{report}\n".encode()
    source = (
        "import os\ny = f(1)\nfor n in range(3, 64):\n"
        f"    try: os.write(n, {line!r})\n    except OSError: pass\nassert y == 2"
    )
    verdicts = check("def f(x): return x", read_tests(source), Limits(seconds=60))
    assert verdicts[-1].reason != "passed"


CHECK = "def check(candidate):\n    assert candidate(1) == 2\n"


@pytest.mark.parametrize(
    ("source", "candidate", "count"),
    [
        ("assert f(1) == 2\nassert 3 == f(2), 'no'", None, 2),
        ("METADATA = {'a': 1}\ndef check(candidate):\n    assert candidate([1]) == 2", "f", 1),
        ("def check(candidate):\n    assert candidate(1) == 2\ncheck(f)", None, 1),
        # MultiPL-E
        (f"{CHECK}def test_check():\n    check(f)\ntest_check()", None, 1),
        (f"{CHECK}def test_check():\n    check(f)", None, 1),
        (f"{CHECK}def test_check():\n    check(f)\ntest_check()", "f", 1),
        (f"{CHECK}def test_check():\n    check(f)\n    check(f)\ntest_check()", None, 0),
        (f"{CHECK}def test_check():\n    check(f)\ncheck(f)\ntest_check()", None, 0),
        (f"{CHECK}def test_check():\n    f = 1\n    check(f)\ntest_check()", None, 0),
        (f"{CHECK}def test_check():\n    test_check()\ntest_check()", None, 0),
        (f"{CHECK}def other(c):\n    check(c)\nother(f)", None, 0),
        (
            "def check(c):\n    assert c(n = 1) is True\n    assert c(2)\n    assert not c(3)",
            None,
            0,
        ),
        (
            "def check(c):\n    assert c(n = 1) is True\n    assert c(2)\n    assert not c(3)",
            "f",
            3,
        ),
        ("from solution import f\ndef test_f():\n    x = f(1)\n    assert x == 2", None, 1),
        (f"{UNITTEST}    def test_f(self):\n        self.assertAlmostEqual(f(1), 0.5)", None, 1),
        ("import math\nassert math.isclose(f(1), 0.5, rel_tol=1e-3)", None, 1),
        ("assert abs(f(1) - 0.5) < 1e-6", None, 1),
        ("assert f(float('inf')) == set()", None, 1),
        # Not plain: what a name stands for may have changed, or it is not the code's.
        ("x = [1]\nassert f(x) == x", None, 0),
        ("x = [1]\nassert f(x) == 2\nassert f(x) == 3", None, 0),
        ("a = f(1)\nb = f(2)\nassert b == 2\nassert a == 1", None, 0),
        ("from math import sqrt\nassert sqrt(4) == 2", None, 0),
        ("from solution import f as g\nassert g(4) == 2", None, 0),
        ("def g(x): return x\nassert g(4) == 2", None, 0),
        ("assert Stack(1) == 2", None, 0),
        ("assert f(1) == 2\ns.push(1)", None, 0),
        ("assert abs(f(1) - 7) <= -6", None, 0),
        (
            f"{UNITTEST}    def setUp(self): pass\n    def test_f(self): self.assertTrue(f(1))",
            None,
            0,
        ),
        ("async def test_f():\n    assert f(1) == 2", None, 0),
        ("def test_f(x=1):\n    assert f(1) == 2", None, 0),
    ],
)
def test_which_sources_are_plain(source, candidate, count):
    assert len(read_asserts(source, candidate)) == count


@pytest.mark.parametrize(
    ("result", "expected", "holds"),
    [
        ("x * 0.1", "0.3", True),
        ("[x * 0.1, (1, {'a': x / 3})]", "[0.3, (1, {'a': 1.0})]", True),
        ("x * 0.1 + 1e-5", "0.3", False),
        ("1e-7", "0.0", False),
        ("(0.3,)", "[0.3]", False),
        ("'0.3'", "0.3", False),
        ("float('nan')", "0.3", False),
        ("1", "1.0", True),
        ("10**16 + 10", "1e16", False),
        ("1.0000001", "1", False),
    ],
)
def test_floats_may_differ_as_they_may_in_output(result, expected, holds):
    code = f"def f(x): return {result}"
    assert explained(code, f"assert f(3) == {expected}").reward == float(holds)
    value = eval(expected)
    if not isinstance(value, tuple):
        tests = {"fn_name": "f", "inputs": [[3]], "outputs": [value]}
        if "(" not in expected and "(" not in result:
            assert explained(code, tests).reward == float(holds)


def test_folders_are_counted_and_removed_however_deep():
    deep = "import os\nfor _ in range(100_000):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n"
    wide = "import os\nfor n in range(100_000):\n    os.mkdir(f'{n}')\n"
    for code in (deep, wide):
        (verdict,) = check(f"{code}def f(x): return x", read_tests("assert f(1) == 1"), Limits())
        assert verdict.reason == "too many files"


def test_the_end_of_a_script_alone_is_no_test():
    for tests in ("import sys\nsys.exit(0)", "exit()", "import unittest\nunittest.main()"):
        assert explained(PLUS, tests).reason == "bad tests"


def test_bad_tests_stay_bad():
    with pytest.raises(BadTests):
        read_tests("import pandas\nassert f(1) == pandas.NA")


@pytest.mark.parametrize(
    "tests",
    [
        "assert f('\\ude00') == '\\ud83d\\ude00'",
        "y = [f('\\ude00')]\nassert y == ['\\ud83d\\ude00'] and len(y[0]) == 2",
    ],
)
def test_two_surrogates_side_by_side_stay_two(tests):
    assert explained("def f(x): return '\\ud83d' + x", tests).reward == 1.0
    assert explained("def f(x): return '\\U0001f600'", tests).reward == 0.0
