"""The process of the tests: runs the program that tests the code, whose names are proxies.

`sources.py` has divided the program into steps, each of which is a test: ``with __step__(3): ...``.
What happens in a step is told to the parent, with the next message to the code.
"""

import builtins
import importlib
import json
import re
import sys
import warnings
from _thread import get_ident
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import stand_ins
from .crossing import Code, Control
from .proxies import Foreign, ForeignClass
from .solution import LONGEST_DETAIL, REFUSED, failure

RECURSION_LIMIT = 10_000
_WRITE = json.JSONEncoder().encode  # taken before tests run, which may patch it


class _Stop(Control):
    """A test has failed, and no others are asked for."""


class _Ended(Control):
    """The process of the code has ended."""


class Recorder:
    """Keeps what came of the steps of tests."""

    def __init__(self, goes_on: bool):
        self.goes_on = goes_on
        self.outcomes: list[list] = []  # not yet told: number, kind and detail
        self.current: int | None = None
        self.seen: set[int] = set()
        self.detail: str | None = None  # of the last comparison that did not hold
        # whether the tests have asked for more of the code than names that it has
        self.has_asked = True

    def find(self, name: str) -> Any:
        """What the code has under a name. Raises NameError."""
        raise NotImplementedError

    def is_equal_to_all(self, *values: object) -> bool:
        """Whether one of them is an object of the code that says it is equal to anything."""
        return False

    def is_skipped(self, error: BaseException | None) -> bool:
        """Whether the tests have left out the rest of one of them, as unittest lets them."""
        return type(error).__name__ == "SkipTest" and not vars(error).get("_has_crossed_")

    def record(self, number: int, kind: str, detail: str = "") -> None:
        """Keep what came of a step."""
        self.seen.add(number)
        self.outcomes.append([number, kind, detail[:LONGEST_DETAIL]])

    def judge(self, number: int, error: BaseException | None) -> bool:
        """Record what came of a step, and say whether to go on after it. Raises _Stop."""
        if error is None:
            self.record(number, "passed")
            return True
        self.record(number, *self._outcome(error))
        if not self.goes_on:
            raise _Stop
        return True

    def _outcome(self, error: BaseException) -> tuple[str, str]:
        has_crossed = vars(error).get("_has_crossed_", False)
        if vars(error).get("_opaque_"):
            return "failed", str(error)
        if isinstance(error, AssertionError) and not has_crossed:
            return "failed", self.detail or str(error)
        report = failure(error)
        kind = str(report["kind"])
        if kind == "ended early" and not has_crossed:
            kind = "error"
        # Tests may import what is not there; the code has to be.
        is_missing = isinstance(error, ImportError) and error.name != "solution"
        if kind != REFUSED and not has_crossed and (is_missing or not self.has_asked):
            kind = "error of the tests"
        return kind, str(report["detail"])


class _Harness(Recorder):
    """The state of a row's tests, whose code is in another process."""

    def __init__(self, job: dict, receive: Callable[[], dict], report: Callable[..., bool]):
        super().__init__(job["goes_on"])
        self.has_asked = False
        self.has_arrays = job["has_arrays"]
        self.is_ended = False
        self._receive = receive
        self._report = report
        self._thread = get_ident()
        self.code = Code(self._exchange, self.has_arrays)
        self.names: dict[str, Any] = {}
        self.words: frozenset[str] = frozenset()  # that stand in the tests
        # The functions that the process of the code has told of when it was loaded.
        for name, written in job["names"].items():
            value = self.code.read(written)
            if isinstance(value, Foreign) or callable(value):
                self.names[name] = value

    def _exchange(self, request: list) -> dict:
        """Send a request to the code's process by way of the parent."""
        if request[0] != "name":
            self.has_asked = True
        if get_ident() != self._thread:
            # Two threads would take each other's replies.
            raise RuntimeError("another thread of the tests cannot ask for the code")
        written = _WRITE(request)
        self._report({"outcomes": self.outcomes, "step": self.current, "ask": written})
        self.outcomes = []
        reply = self._receive() or sys.exit()
        if "ended" in reply:
            # What it had has gone with it; names are looked up in the next one.
            self.code.is_gone = True
            self.code = Code(self._exchange, self.has_arrays)
            self.names = {}
            self.is_ended = True
            raise _Ended
        return reply

    def find(self, name: str) -> Any:
        """What the code's module has under a name. Raises NameError."""
        if name in self.names:
            return self.names[name]
        try:
            kind, value = self.code.request("name", name)
        except NameError:
            self.has_asked = True
            raise
        if kind == "module":
            # The tests have their own, which the code has not changed.
            if name.partition(".")[0] not in sys.stdlib_module_names:
                raise NameError(f"name '{name}' is not defined")
            return importlib.import_module(name)
        # ``from solution import *`` asks for names that the code has chosen.
        if name in self.words:
            self.code.named(name, value)
        if isinstance(value, (Foreign, type)) or callable(value):
            self.names[name] = value
        return value

    def judge(self, number: int, error: BaseException | None) -> bool:
        if not self.is_ended:
            return super().judge(number, error)
        self.is_ended = False
        self.record(number, "ended")
        if not self.goes_on:
            raise _Stop
        return True


class _Step:
    """``with __step__(3):`` around the statements of a test.

    A step within another, of a function that the outer one calls, is a part of that.
    """

    def __init__(self, harness: Recorder, number: int):
        self.harness = harness
        self.number = number
        self.is_outer = False

    def __enter__(self) -> None:
        if self.harness.current is None:
            self.is_outer = True
            self.harness.current = self.number
            self.harness.detail = None

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> bool:
        if not self.is_outer:
            return False
        self.harness.current = None
        if isinstance(error, _Stop) or self.harness.is_skipped(error):
            return False
        return self.harness.judge(self.number, error)


class _Guard:
    """``with __guard__(3, 7):`` around all that holds the steps 3 to 6.

    An error between them is that of the first that was not reached, and the others fail with it.
    """

    def __init__(self, harness: Recorder, first: int, end: int):
        self.harness = harness
        self.numbers = range(first, end)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> bool:
        if error is None or isinstance(error, _Stop) or self.harness.is_skipped(error):
            return False
        missed = [number for number in self.numbers if number not in self.harness.seen]
        first, *others = missed or self.numbers[-1:]
        self.harness.judge(first, error)
        for number in others:
            self.harness.record(number, "error", "not reached")
        return True


class _Compare:
    """What an assert becomes; where it does not hold, the detail says what was there."""

    def __init__(self, harness: Recorder):
        self.harness = harness

    def equal(self, left: Any, right: Any, expects_left: bool) -> bool:
        if self.harness.is_equal_to_all(left, right):
            return self._fail("an object says that it is equal to anything")
        # again: its first answer may be another than its next
        if _true(left == right) and not self.harness.is_equal_to_all(left, right):
            return True
        expected, got = (left, right) if expects_left else (right, left)
        return self._fail(f"expected {_shown(expected)}, got {_shown(got)}")

    def same(self, left: Any, right: Any) -> bool:
        if left is right:
            return True
        return self._fail(f"expected {_shown(right)}, got {_shown(left)}")

    def among(self, left: Any, right: Any) -> bool:
        if left in right and not self.harness.is_equal_to_all(left):
            return True
        return self._fail(f"expected one of {_shown(right)}, got {_shown(left)}")

    def true(self, value: Any, source: str) -> bool:
        if _true(value):
            return True
        return self._fail(f"{source} is {_shown(value)}")

    def _fail(self, detail: str) -> bool:
        self.harness.detail = detail
        return False


def _true(value: Any) -> bool:
    # ``[1].__eq__(f())`` is this where a list cannot be compared with that, and this is true.
    if value is NotImplemented:
        raise TypeError("the comparison is not implemented")
    return bool(value)


def _shown(value: object) -> str:
    if isinstance(value, (Foreign, ForeignClass)):
        return f"an object of type {type(value).__name__}"
    try:
        return repr(value)[:100]
    except Exception:  # a number of too many digits, or too deep; or an object among its elements
        return f"a value of type {type(value).__name__}"


class Space(dict):
    """The names of the tests: their own, the builtin ones, and then those of the code."""

    recorder: Recorder
    taken_over: frozenset[str] = frozenset()

    def __missing__(self, name: str) -> Any:
        # Python looks among the builtins next.
        if name[:2] == "__" or name in vars(builtins) and name not in self.taken_over:
            raise KeyError(name)
        try:
            return self.recorder.find(name)
        except NameError:
            raise KeyError(name) from None


class _Solution(ModuleType):
    """``import solution``."""

    def __getattr__(self, name: str) -> Any:
        harness = vars(self)["_harness"]
        if name == "__all__":
            # What the tests look up is found when they do (`Space`). Names that the code has chosen
            # would stand in place of Python's and of the tests' own.
            return []
        if name[:2] == "__":
            raise AttributeError(f"solution has no {name}")
        try:
            return harness.find(name)
        except NameError:
            raise AttributeError(f"solution has no {name}") from None


def _run_test(function: Callable) -> None:
    """Call a test with each of its cases."""
    for case in stand_ins.cases_of(function):
        result = function(**case)
        if hasattr(result, "__await__") and not isinstance(result, Foreign):
            import asyncio

            asyncio.run(result)


def _run_method(recorder: Recorder, cls: type, name: str) -> None:
    """Run a test of a class, as unittest and pytest do it."""
    is_case = any(base.__name__ == "TestCase" for base in cls.__mro__)
    for case in stand_ins.cases_of(getattr(cls, name)):
        instance = cls(name) if is_case else cls()
        try:
            test = getattr(instance, name)
            _call_if_there(instance, "setUp", "setup_method", test=test)
            try:
                test(**case)
            finally:
                _call_if_there(instance, "tearDown", "teardown_method", test=test)
        except Exception as error:
            if not recorder.is_skipped(error):
                raise


def _call_if_there(owner: Any, *names: str, test: object = None) -> None:
    """Call what prepares a test, and give it the test where it takes an argument, as pytest does."""
    for name in names:
        if hasattr(owner, name):
            hook = getattr(owner, name)
            function = getattr(hook, "__func__", hook)  # of a method, whose first argument is there
            code = getattr(function, "__code__", None)
            arguments = code.co_argcount - (function is not hook) if code else 0
            hook(*[test][:arguments])


def run(job: dict, receive: Callable[[], dict], report: Callable[..., bool]) -> None:
    """Run programs until no more arrive; after each, report the outcomes that are left."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    harness = _Harness(job, receive, report)
    # The modules that tests import: the code's, and stand-ins.
    solution = _Solution("solution")
    vars(solution)["_harness"] = harness
    sys.modules["solution"] = solution
    for name, module in stand_ins.build().items():
        if name.partition(".")[0] not in job["packages"]:
            sys.modules[name] = module
    space = Space(marks(harness), __name__="tests")
    space.recorder = harness
    program = job["program"]
    while program:
        harness.words = frozenset(re.findall(r"\w+", program["source"]))
        execute(program, harness, space)
        report({"outcomes": harness.outcomes, "is_done": True})
        harness.outcomes = []
        program = receive()


def marks(recorder: Recorder) -> dict[str, Any]:
    """What `sources.py` has put into a program, by name."""
    return {
        "__step__": lambda number: _Step(recorder, number),
        "__guard__": lambda first, end: _Guard(recorder, first, end),
        "__compare__": _Compare(recorder),
        "__run_test__": _run_test,
        "__run_method__": lambda cls, name: _run_method(recorder, cls, name),
        "__call_if_there__": _call_if_there,
    }


def execute(program: dict, recorder: Recorder, space: dict) -> bool:
    """Run a program of tests, whose names are those of `space`; whether it came to its end or to a
    test that has failed.
    """
    # Where a comparison is not implemented, its value is true: no test may pass by that.
    warnings.filterwarnings("error", "NotImplemented should not be used")
    recorder.seen.clear()
    if isinstance(space, Space):
        space.taken_over = frozenset(program["taken_over"])
    try:
        compiled = compile(program["source"], "<tests>", "exec", dont_inherit=True)
        with _Guard(recorder, 0, program["steps"]):
            exec(compiled, space)
    except _Stop:
        return any(kind != "passed" for _, kind, _ in recorder.outcomes)
    return True
