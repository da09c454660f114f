"""What makes it hard for code to lie that shares a process with its tests (`together`).

- No way to the frames of the tests and of the runner, where expected values and verdicts are: an
  audit hook, which nothing can remove, refuses frames, tracing, `gc`'s lists of objects, ctypes and
  code that is put into another's place. Python's own library may ask for a frame where it hands
  none on, as `namedtuple` and `logging` do.
- Tests that must fail, after the tests (`MUST_FAIL`): where one of them passes, something that
  judges is no longer what it was.
- What tests judge by in the library is compared with what it was before the code was loaded.
- An object that says it is equal to anything `lies`. What it answers to ``-``, ``<`` or ``in`` cannot be
  tried in that way, so `Doubts` notes every object with operators of its own that meets the tests' values.

Python has no walls within a process, so none of this is a proof. Code can still find the classes of
the runner by ``object.__subclasses__()`` and put back what it has changed before the tests end; read
the pipe of the messages before the runner does; or write bytes into the interpreter by a fault of a
C module.
"""

import builtins
import errno
import importlib
import operator
import os
import signal
import sys
import types
from _thread import get_ident
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any

_LIBRARY = os.path.dirname(os.__file__) + os.sep
_FROZEN = "<frozen "
# Who in the library may ask for a frame or for other code of a function, and by whom it has to be
# called; None: by anybody.
_ASKING = {
    ("asyncio/coroutines.py", "_format_coroutine"): None,
    ("collections/__init__.py", "namedtuple"): None,
    ("enum.py", "_create_"): None,
    ("typing.py", "_caller"): None,
    ("typing.py", "_allow_reckless_class_checks"): None,
    ("logging/__init__.py", "<lambda>"): "logging/__init__.py",
    ("logging/__init__.py", "currentframe"): "logging/__init__.py",
    ("traceback.py", "clear_frames"): None,
    ("types.py", "coroutine"): None,
    ("traceback.py", "walk_tb"): "traceback.py",
    ("traceback.py", "_walk_tb_with_full_positions"): "traceback.py",
}
_FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
_REFUSED = {
    *("sys._current_frames", "sys._current_exceptions", "sys.settrace", "sys.setprofile"),
    *("sys.monitoring.register_callback", "threading.settrace", "threading.setprofile"),
    *("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    "sys.addaudithook",  # a hook sees the tests, with all that they expect, when they are compiled
}

# Modules by whose functions and classes tests judge.
_JUDGING = (
    *(
        "unittest",
        "unittest.case",
        "pytest",
        "numpy",
        "numpy.testing",
        "math",
        "cmath",
        "operator",
        "collections",
        "itertools",
        "functools",
    ),
    *("copy", "json", "re", "statistics", "string", "difflib"),
)
# Builtins by which tests judge; others may well be patched, such as `input`.
_JUDGING_BUILTINS = (
    *("abs", "all", "any", "bool", "bytes", "callable", "dict", "enumerate", "filter", "float"),
    *("frozenset", "getattr", "hasattr", "int", "isinstance", "issubclass", "len", "list", "map"),
    *("max", "min", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple"),
    *("type", "zip", "AssertionError", "__build_class__", "__import__"),
)
_BY_UNITTEST = (
    *("__case__.assertEqual([1], [2])", "__case__.assertTrue(False)", "__case__.assertIn(1, [2])"),
    *("__case__.assertAlmostEqual(1, 2)", "__case__.assertRaises(ValueError, int)"),
    *("__case__.assertDictEqual({1: 2}, {1: 3})", "__case__.assertIs(1, 2)", "__case__.fail()"),
)
_BY_PYTEST = ("__pytest__.raises(ValueError, int)", "assert 1 == __pytest__.approx(2)")
_BY_NUMPY = ("assert __numpy__.allclose(1, 2)", "assert __numpy__.isclose([1], [2]) == [True]")
_BY_ITSELF = (
    *("assert __compare__.equal([1], [2], False)", "assert __compare__.same(1, 2)"),
    *("assert __compare__.among(1, [2])", "assert __compare__.true([], '')", "assert 0"),
    *("assert __is_changed__()", "assert __is_blind__()"),
)


# Operators that are handed the value of another.
_ARITHMETIC = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_OF_TWO = (
    *(f"__{side}{name}__" for name in _ARITHMETIC for side in ("", "r", "i")),
    *("__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getitem__"),
)
_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType)
_bases_of, _space_of = vars(type)["__mro__"].__get__, vars(type)["__dict__"].__get__


def close_frames() -> None:
    """Refuse all that leads to the frames and functions of others, for good."""
    library, frozen, frames, refused = _LIBRARY, _FROZEN, _FRAMES, _REFUSED
    # taken now: the code can assign to any module
    kind, text, length = type, str, len(_LIBRARY)
    refuse, require_library, require_importer = _refusals()

    def check_read(_: str, arguments: tuple) -> None:
        if arguments[1] in frames:
            require_library(arguments[1])

    def check_assignment(event: str, arguments: tuple) -> None:
        if arguments[1] == "__code__":
            require_library(event)

    def check_name(event: str, arguments: tuple) -> None:
        # A frame's file name says whose it is, and nobody else may compile under such a name.
        name = arguments[1]
        if name is None:
            return
        if kind(name) is not text or name[:length] == library or name[:8] == frozen:
            require_importer(event)

    checks = {
        "sys._getframe": lambda event, _: require_library(event),
        "object.__getattr__": check_read,
        "object.__setattr__": check_assignment,
        "code.__new__": lambda event, _: require_library(event),
        "marshal.loads": lambda event, _: require_importer(event),
        "compile": check_name,
    }

    def hook(event: str, arguments: tuple) -> None:
        if event in checks:
            checks[event](event, arguments)
        elif event in refused or event[:7] == "ctypes.":
            refuse(event)

    sys.addaudithook(hook)


def _refusals() -> tuple[Callable[[str], None], ...]:
    """Functions that refuse an event: in any case, unless the library asks as `_ASKING` says, and
    unless Python's importer asks. They are for the checks of `close_frames`.
    """
    library, frozen, asking = _LIBRARY, _FROZEN, _ASKING
    getframe, ident = sys._getframe, get_ident
    error, eperm, length = PermissionError, errno.EPERM, len(_LIBRARY)
    looking = set()  # threads that ask for the frame of who asks

    def asker() -> tuple[str, str, str]:
        """Who asks: file, function, and the file of its caller."""
        looking.add(ident())
        try:
            # Above it are the hook, its check, one of the functions below, and this one.
            frame = getframe(4)
            caller = frame.f_back
            by = caller.f_code.co_filename if caller else ""
            return frame.f_code.co_filename, frame.f_code.co_name, by
        finally:
            looking.discard(ident())

    def refuse(event: str) -> None:
        raise error(eperm, f"{event} is refused in one process with the tests")

    def require_library(event: str) -> None:
        if event == "sys._getframe" and ident() in looking:
            return  # `asker` asks
        file, function, by = asker()
        if file[:8] == frozen and event == "code.__new__":
            return  # a module is loaded
        if file[:length] == library and (file[length:], function) in asking:
            required = asking[file[length:], function]
            if required is None or by == library + required:
                return
        refuse(event)

    def require_importer(event: str) -> None:
        file, _, _ = asker()
        if file[:8] != frozen:
            refuse(event)

    return refuse, require_library, require_importer


def keep_frames_from_handlers() -> None:
    """Have the handlers of signals get None in place of the frame that was interrupted."""
    own = vars(importlib.import_module("_signal"))
    setter = _signal_setter(own["signal"])
    next(setter)

    def set_handler(number: Any, handler: Any) -> Any:
        result, error = setter.send((number, handler))
        if error is not None:
            raise error
        return result

    own["signal"] = set_handler
    # The module `signal` calls that, but it also remembers what it wraps.
    vars(signal.signal).pop("__wrapped__", None)


def _signal_setter(set_handler: Callable[[Any, Any], Any]) -> Generator[Any, Any, None]:
    """What sets a handler is kept in this generator, into which nobody can look."""
    answer: tuple[Any, Exception | None] | None = None
    while True:
        number, handler = yield answer
        try:
            answer = set_handler(number, _without_frame(handler)), None
        except Exception as error:
            answer = None, error


def _without_frame(handler: Any) -> Any:
    if not callable(handler) or handler is signal.default_int_handler:
        return handler
    return lambda number, _: handler(number, None)


class Judging:
    """What tests judge by, as it is now."""

    def __init__(self, imported: Iterable[str]):
        """imported: the modules that the tests import."""
        self.imported = {name.partition(".")[0] for name in imported}
        self._before: list[tuple[dict, dict]] = []
        # The modules themselves: code may put others under their names, which the tests would import.
        modules = {}
        for name in imported:
            with suppress(Exception):  # the tests will see
                modules[name] = importlib.import_module(name)
        modules.pop("solution", None)
        self._before.append((sys.modules, modules))
        for name in _JUDGING:
            if name.partition(".")[0] in self.imported:
                self._keep(vars(importlib.import_module(name)), name)
        space = vars(builtins)
        self._before.append((space, {name: space[name] for name in _JUDGING_BUILTINS}))

    def _keep(self, space: Any, module: str) -> None:
        fixed = (types.FunctionType, types.BuiltinFunctionType, type, classmethod, staticmethod)
        kept = {name: value for name, value in space.items() if isinstance(value, fixed)}
        self._before.append((space, kept))
        for value in kept.values():
            if isinstance(value, type) and value.__module__ == module:
                self._keep(vars(value), "")

    def is_changed(self) -> bool:
        """Whether something of it is another now."""
        for space, kept in self._before:
            for name, value in kept.items():
                if space.get(name) is not value:
                    return True
        return False

    def must_fail(self, doubts: "Doubts") -> tuple[str, dict[str, Any]]:
        """A program each of whose steps has to fail, as `sources` would have written it, and the
        names that it needs.
        """
        names: dict[str, Any] = {
            "__is_changed__": self.is_changed,
            "__is_blind__": doubts.are_blind,
        }
        steps = [*_BY_ITSELF]
        if "unittest" in self.imported:
            names["__case__"] = sys.modules["unittest.case"].TestCase()
            steps += _BY_UNITTEST
        if "pytest" in self.imported:
            names["__pytest__"] = sys.modules["pytest"]
            steps += _BY_PYTEST
        if "numpy" in self.imported:
            names["__numpy__"] = sys.modules["numpy"]
            steps += _BY_NUMPY
        lines = [f"with __step__({number}): {step}" for number, step in enumerate(steps)]
        return "\n".join(lines), names


# Values that follow each other, of which an honest class is equal to one: numbers modulo 7 may be equal
# to 3 and to 10.
_SERIES = (range(-1, 12), "abc", ([0], [1], [2]))


def lies(*values: object) -> bool:
    """Whether one of them, or of what they hold, says that it is equal to what was drawn just now, or to
    two values that follow each other.
    """
    # So many that a number modulo 2 is not equal to all of a kind.
    numbers = [int.from_bytes(os.urandom(6), "little") for _ in range(24)]
    number, text = numbers[0], f"{numbers[0]:x}"
    strangers = (
        *(object(), text, text.encode(), [number], [text]),
        *((number,), (text,), {number}, {number: text}),
    )
    kinds: tuple[Iterable[object], ...] = (
        numbers,
        [-number for number in numbers],
        [number + 0.5 for number in numbers],
        *zip(strangers, strict=True),  # each of a kind of its own
    )
    for value in _comparing_by_themselves(values):
        for kind in kinds:
            if all(_is_equal(value, each) for each in kind):
                return True
        for series in _SERIES:
            is_equal = [_is_equal(value, each) for each in series]
            if any(map(operator.and_, is_equal, is_equal[1:])):
                return True
    return False


def _comparing_by_themselves(values: Iterable[object]) -> Iterator[object]:
    """Those of the values, and of what they hold, whose class says what they are equal to."""
    for value in _held(values):
        defining = _defining(type(value), ("__eq__", "__ne__"))
        if any(not isinstance(method, types.WrapperDescriptorType) for _, method in defining):
            yield value


def _held(values: Iterable[object]) -> Iterator[object]:
    """The values and what they hold, up to a thousand."""
    waiting, looked_at = list(values), 0
    while waiting and looked_at < 1000:
        value = waiting.pop()
        looked_at += 1
        if type(value) in (list, tuple, set, frozenset):
            waiting += value  # type: ignore[arg-type]
        elif type(value) is dict:
            waiting += [*value.keys(), *value.values()]
        yield value


def _defining(cls: type, names: Iterable[str]) -> Iterator[tuple[type, object]]:
    """The classes that a class has these methods from, with each. A metaclass may say otherwise, and is
    not asked.
    """
    bases = _bases_of(cls)
    for name in names:
        for base in bases:
            space = _space_of(base)
            if name in space:
                yield base, space[name]
                break


class Doubts:
    """Whether an object of the code has said by an operator of its own what is right.

    ``abs(f(1) - y) < 1e-6`` holds if `f` returns an object whose difference to anything is 0. Classes
    whose operators are tested are another matter: the tests name them, or define them.
    """

    def __init__(self, module: types.ModuleType, tests: dict[str, Any]):
        """module: of the code. tests: the names of the tests."""
        self.are_raised = False
        self.tested: frozenset[str] = (
            frozenset()
        )  # names of classes that the tests look up in the code
        self._module = module
        self._tests = tests
        # The operators of what is there before the code is loaded: Python's own classes, and those of
        # packages. Code may put others into them.
        self._trusted: dict[type, list[object]] = {}
        names = frozenset(_OF_TWO)
        waiting = [object]
        while waiting:
            for cls in type.__subclasses__(waiting.pop()):
                if cls not in self._trusted:
                    space = _space_of(cls)
                    self._trusted[cls] = [space[name] for name in names & space.keys()]
                    waiting.append(cls)

    def operand(self, value: Any, *others: object) -> Any:
        """The value, after a look at it and the others."""
        cls = type(value)
        # Most are of these; a metaclass has no say in `is`.
        if not others and (cls is int or cls is float or cls is str or cls is bool):
            return value
        if not self.are_raised:
            self.are_raised = lies(value, *others) or any(
                map(self._decides, _held((value, *others)))
            )
        return value

    def are_blind(self) -> bool:
        """Whether they no longer notice an object that they have to."""
        # made now, so that its class is not trusted
        decides = type("Decides", (), {"__sub__": operator.sub})()
        before, self.are_raised = self.are_raised, False
        self.operand(decides)
        is_noticed, self.are_raised = self.are_raised, before
        return not is_noticed

    def _decides(self, value: object) -> bool:
        for cls, method in _defining(type(value), _OF_TWO):
            if isinstance(method, _IN_C) or method is None:
                continue
            if any(method is each for each in self._trusted.get(cls, ())):
                continue
            # Of a module that was loaded later: nobody else may compile under such a name.
            is_function = isinstance(method, types.FunctionType)
            if is_function and method.__code__.co_filename.startswith(_LIBRARY):  # type: ignore[attr-defined]
                continue
            space = vars(self._module)
            is_tested = any(space.get(name) is cls for name in self.tested)
            if not is_tested and not any(each is cls for each in self._tests.values()):
                return True
        return False


def equal(left: Any, right: Any) -> Any:
    """What ``left == right`` is, unless one of them `lies`."""
    return False if lies(left, right) else left == right


def unequal(left: Any, right: Any) -> Any:
    """The same of ``left != right``."""
    return True if lies(left, right) else left != right


def _is_equal(value: object, other: object) -> bool:
    try:
        return (value == other) is True or (value != other) is False
    except Exception:  # an honest class may count on its own kind
        return False


def doubt_equality(case: type) -> None:
    """Have the methods of unittest's that compare refuse what `lies`."""
    for name, method in vars(case).copy().items():
        is_negative = "Not" in name
        if name.startswith("assert") and name.endswith(("Equal", "In")) and not is_negative:
            setattr(case, name, _doubting(method))


def _doubting(method: Any) -> Any:
    def compare(self: Any, first: object, second: object, *arguments: Any, **named: Any) -> None:
        if lies(first, second):
            self.fail("an object says that it is equal to anything")
        method(self, first, second, *arguments, **named)
        if lies(first, second):
            self.fail("an object says that it is equal to anything")

    return compare
