"""Sources that only compare what calls return with what is written there: plain asserts.

``assert f(1, [2]) == (3,)`` is plain, and so are ``self.assertEqual(f(1), 2)`` in a method of a
TestCase and ``assert abs(candidate(1) - 0.5) < 1e-6`` in ``check(candidate)``: all but the function
is written down. Most rows of MBPP and HumanEval have no other tests. They need no process of the
tests: the code's process gets the call, and the trainer's compares.

A source with anything else in it (a loop, a fixture, a class of the code) is a program for
`sources.py`.
"""

import ast
import builtins
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.inside.values import Opaque, decode, encode, same_value
from swift_rlvr.verifiers.code.names import imports_of
from swift_rlvr.verifiers.code.sources import does_nothing, text_of

_UNREADABLE = (
    *(ValueError, TypeError, SyntaxError, MemoryError, RecursionError),
    *(ArithmeticError, LookupError, AttributeError, Opaque),
)
# Modules that plain tests import, and may name in no other way than these forms do.
_MODULES = sys.stdlib_module_names | {"pytest", "numpy", "solution"}
_CASES = {"unittest.TestCase", "TestCase", "object"}
_TRUTH = {"assertTrue": "true", "assertFalse": "false"}
_EQUAL = (
    *("assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertDictEqual"),
    *("assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual"),
)


class Tolerance(NamedTuple):
    """How far a number may be from the expected one."""

    share: float = 0.0  # of the larger of both
    most: float = 0.0  # as such
    is_closed: bool = True  # whether it may be just as far

    def holds(self, value: Any, expected: Any) -> bool:
        # A share of infinity is infinite: all would be near it, and it near all.
        if math.inf in (abs(value), abs(expected)):
            return bool(value == expected)
        difference = abs(value - expected)
        allowed = max(self.share * max(abs(value), abs(expected)), self.most)
        if difference == allowed:
            return self.is_closed
        return bool(difference < allowed)


class AssertTest(NamedTuple):
    """A plain assert, ``assert function(arguments, **keywords) == expected``."""

    function: str
    arguments: str  # as Python writes a tuple
    expected: Any
    source: str
    keywords: str = "{}"  # as Python writes a dict
    # "equal", "is", "near", or of its truth alone "true" or "false"
    comparison: str = "equal"
    tolerance: Tolerance = Tolerance()
    request: str = ""  # the call as a line of JSON, the same for all completions of the row

    def __str__(self) -> str:
        return self.source

    def holds(self, value: Any) -> bool:
        """Whether a value of plain types is the expected one, as Python compares them, but for
        floats, which may differ a little.
        """
        match self.comparison:
            case "is":
                return value is self.expected
            case "near":
                return self.tolerance.holds(value, self.expected)
            case "true" | "false":
                return bool(value) is (self.comparison == "true")
        return same_value(value, self.expected)


class _NotPlain(Exception):
    """A source has more than plain asserts."""


@lru_cache(maxsize=64)
def read_asserts(source: str, candidate: str | None = None) -> list[AssertTest]:
    """Read a source that has nothing but plain asserts; empty where it has anything else.

    candidate: what ``check(candidate)`` is called with.

    >>> read_asserts("assert add(1, [2]) == 3")[0][:4]
    ('add', '(1, [2])', 3, 'add(1, [2]) == 3')
    >>> read_asserts("for x in y(): assert add(x) == 3"), read_asserts("assert len(add(1)) == 3")
    ([], [])
    >>> str(*read_asserts("def check(candidate):\\n    assert candidate(1) == 2", "add"))
    'candidate(1) == 2'
    """
    try:
        tree = ast.parse(source)
        tests = list(_of_module(tree.body, candidate))
        functions = {test.function for test in tests}
        for each in imports_of(tree):
            # What is imported is not the code's, but from there under its own name. "*" may be anything.
            if each.module != "solution" or each.name != each.member:
                _require(each.name != "*", each.name not in functions)
    except (_NotPlain, *_UNREADABLE):
        return []
    return tests


def _of_module(body: list[ast.stmt], candidate: str | None) -> Iterator[AssertTest]:
    """The tests in the order in which they run: those of the module's statements, then those of
    functions and classes that a runner would find.
    """
    definitions = (ast.FunctionDef, ast.ClassDef)
    functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
    yield from _of_body([each for each in body if not isinstance(each, definitions)], {}, functions)
    # MultiPL-E's ``test_check`` calls ``check``.
    called = set()
    for function in functions.values():
        called |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    for definition in body:
        if isinstance(definition, ast.ClassDef):
            yield from _of_class(definition)
        elif (
            isinstance(definition, ast.FunctionDef) and definition.name in functions.keys() - called
        ):
            is_check = definition.name == "check" and candidate is not None
            _require(is_check or definition.name.startswith("test"))
            del functions[definition.name]
            yield from _of_function(definition, candidate if is_check else None, functions)
    _require(not functions)


def _of_function(
    function: ast.FunctionDef, tested: str | None, functions: dict[str, ast.FunctionDef]
) -> Iterator[AssertTest]:
    """Of ``check(candidate)``, which is called with what is tested, or of a test without
    arguments.
    """
    arguments = [each.arg for each in function.args.args]
    _require(not function.decorator_list, len(arguments) == (tested is not None))
    _require(len(ast.dump(function.args)) == len(ast.dump(_parameters(arguments))))
    yield from _of_body(function.body, {name: str(tested) for name in arguments}, functions)


def _of_class(cls: ast.ClassDef) -> Iterator[AssertTest]:
    """Of the methods of a class that has nothing but tests."""
    _require(not cls.decorator_list, not cls.keywords)
    _require({*map(ast.unparse, cls.bases)} <= _CASES)
    for each in cls.body:
        if does_nothing(each):
            continue
        if not isinstance(each, ast.FunctionDef) or not each.name.startswith("test"):
            raise _NotPlain
        _require(not each.decorator_list)
        _require(ast.dump(each.args) == ast.dump(_parameters(["self"])))
        yield from _of_body(each.body, {}, {})


def _parameters(names: Sequence[str]) -> ast.arguments:
    written = f"def f({', '.join(names)}): pass"
    (function,) = ast.parse(written).body
    assert isinstance(function, ast.FunctionDef)
    return function.args


def _require(*conditions: bool) -> None:
    if not all(conditions):
        raise _NotPlain


def _of_body(
    body: list[ast.stmt], tested: dict[str, str], functions: dict[str, ast.FunctionDef]
) -> Iterator[AssertTest]:
    """The tests of statements that run one after the other.

    tested: what a name of theirs stands for. functions: of the module that were not called so far;
    each can be once.
    """
    names = _Names(body, tested)
    for statement in body:
        match statement:
            case ast.Assert(ast.Constant(value)) if value:
                continue
            case ast.Assert(test):
                yield names.assertion(test, text_of(statement))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("self"), method), arguments, keywords)):
                yield names.method(method, arguments, keywords, text_of(statement))
            case ast.Expr(ast.Call(ast.Name(name), arguments, [])) if name in functions:
                # ``check(add)`` or ``test_add()``
                _require(not names.waiting, len(arguments) <= 1)
                called = names.unknown(arguments[0]) if arguments else None
                yield from _of_function(functions.pop(name), called, functions)
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                ast.Name(name), _, ast.expr() as value
            ):
                names.assign(name, value)
            case ast.Import(aliases):
                _require(*(each.name.partition(".")[0] in _MODULES for each in aliases))
            case ast.ImportFrom(module, _, 0):
                _require(str(module).partition(".")[0] in _MODULES)
            case _:
                _require(does_nothing(statement))
    _require(not names.waiting)


class _Names:
    """What the names of a block stand for: what is tested, a written value, or one call, where it
    is used once, and in the order of the calls.
    """

    def __init__(self, body: list[ast.stmt], tested: dict[str, str]):
        self._tested = tested
        self._values: dict[str, ast.expr] = {}
        self.waiting: list[str] = []  # names of calls that no assert has used
        self._uses: Counter[str] = Counter()
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name):
                    self._uses[node.id] += 1

    def assign(self, name: str, value: ast.expr) -> None:
        """Note what a name stands for."""
        # Once assigned, once used: nothing can have changed it between.
        _require(name not in self._tested, name not in self._values, self._uses[name] <= 2)
        self._values[name] = value
        if isinstance(value, ast.Call):
            self._function(value)
            _require(self._uses[name] == 2)
            self.waiting.append(name)
        else:
            _value(value)

    def unknown(self, node: ast.expr) -> str:
        """What is tested, as it is written: nothing that has another name here."""
        _require(not isinstance(node, ast.Name) or node.id not in {*self._values, *self._tested})
        return ast.unparse(node)

    def _resolved(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Name) or node.id not in self._values:
            return node
        if node.id in self.waiting:
            _require(self.waiting.pop(0) == node.id)
        return self._values[node.id]

    def assertion(self, test: ast.expr, text: str) -> AssertTest:
        """Read what an assert says."""
        match test:
            case ast.Compare(left, [ast.Eq()], [right]):
                return self._equal(left, right, text)
            case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as value)]):
                return self._test(left, text, value, "is")
            case ast.Compare(
                ast.Call(ast.Name("abs"), [ast.BinOp(left, ast.Sub(), right)], []),
                [ast.Lt() | ast.LtE() as operator],
                [most],
            ):
                tolerance = Tolerance(most=_value(most), is_closed=isinstance(operator, ast.LtE))
                return self._near(left, right, text, tolerance)
            case ast.Call(ast.Attribute(ast.Name("math"), "isclose"), [left, right], keywords):
                limits = {str(each.arg): _value(each.value) for each in keywords}
                _require(limits.keys() <= {"rel_tol", "abs_tol"})
                tolerance = Tolerance(limits.get("rel_tol", 1e-9), limits.get("abs_tol", 0.0))
                return self._near(left, right, text, tolerance)
            case ast.UnaryOp(ast.Not(), operand):
                return self._test(operand, text, False, "false")
        return self._test(test, text, True, "true")

    def method(
        self, name: str, arguments: list[ast.expr], keywords: list[ast.keyword], text: str
    ) -> AssertTest:
        """Read the call of a method of unittest's."""
        limits = {str(each.arg): _value(each.value) for each in keywords if each.arg != "msg"}
        if name in _TRUTH:
            _require(not limits, 1 <= len(arguments) <= 2)
            return self._test(arguments[0], text, name == "assertTrue", _TRUTH[name])
        if name == "assertIsNone":
            _require(not limits, 1 <= len(arguments) <= 2)
            return self._test(arguments[0], text, None, "is")
        _require(2 <= len(arguments) <= 3)
        left, right, *rest = arguments
        if name in _EQUAL:
            _require(not limits)
            return self._equal(left, right, text)
        _require(name == "assertAlmostEqual", limits.keys() <= {"places", "delta"})
        if "delta" in limits:
            _require(not rest)
            return self._near(left, right, text, Tolerance(most=limits["delta"]))
        places = _value(rest[0]) if rest else limits.get("places", 7)
        return self._near(left, right, text, Tolerance(most=0.5 * 10**-places))

    def _equal(self, left: ast.expr, right: ast.expr, text: str) -> AssertTest:
        left, right = self._call_first(left, right)
        return self._test(left, text, _value(right), "equal")

    def _near(self, left: ast.expr, right: ast.expr, text: str, tolerance: Tolerance) -> AssertTest:
        left, right = self._call_first(left, right)
        expected = _value(right)
        limits = tolerance.share, tolerance.most
        _require(isinstance(expected, (int, float)))
        _require(min(limits) >= 0, all(map(math.isfinite, limits)))
        return self._test(left, text, expected, "near")._replace(tolerance=tolerance)

    def _call_first(self, left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
        left, right = self._resolved(left), self._resolved(right)
        is_of_code = isinstance(left, ast.Call) and ast.unparse(left.func) not in vars(builtins)
        return (left, right) if is_of_code else (right, left)

    def _test(self, node: ast.expr, text: str, expected: Any, comparison: str) -> AssertTest:
        call = self._resolved(node)
        _require(isinstance(call, ast.Call), not self.waiting)
        assert isinstance(call, ast.Call)
        function = self._function(call)
        arguments = [self._resolved(each) for each in call.args]
        values = tuple(map(_value, arguments))
        keywords: dict[ast.expr | None, ast.expr] = {}
        named: dict[str, Any] = {}
        for each in call.keywords:
            _require(each.arg is not None)  # as that of ``**options`` is
            value = self._resolved(each.value)
            keywords[ast.Constant(each.arg)] = value
            named[str(each.arg)] = _value(value)
        encode(expected)  # An ellipsis is Opaque: no call can return it as a value.
        source = [
            ast.unparse(ast.Tuple(arguments, ast.Load())),
            ast.unparse(ast.Dict([*keywords], [*keywords.values()])),
        ]
        request: dict[str, Any] = {"function": function}
        # where no more is asked than whether the value is true
        request["asks_truth"] = comparison in ("true", "false")
        # Python itself has to say what they are where `encode` would not give the same values; or sets,
        # whose order depends on how they were made.
        written = encode((values, named))
        is_same = repr(decode(json.loads(json.dumps(written)))) == repr((values, named))
        if is_same and "'set'" not in repr(written):
            request["written"] = written
        else:
            request["source"] = source
        return AssertTest(
            function, source[0], expected, text, source[1], comparison, request=json.dumps(request)
        )

    def _function(self, call: ast.Call) -> str:
        """What is called: a name, or a method of a new ``Solution``."""
        match call.func:
            case ast.Name(name) if name in self._tested:
                return self._tested[name]
            # A class makes an object, which is no value.
            case ast.Name(name) if name not in vars(builtins) and not name[:1].isupper():
                _require(name not in self._values)
                return name
            case ast.Attribute(ast.Call(ast.Name("Solution"), [], []), name):
                return f"Solution().{name}"
        raise _NotPlain


def _value(node: ast.expr) -> Any:
    """A value that is written down, also as ``set()`` or ``float("inf")``."""
    match node:
        case ast.Call(ast.Name("set" | "frozenset" | "dict" | "list" | "tuple" as name), [], []):
            return getattr(builtins, name)()
        case ast.Call(ast.Name("float"), [ast.Constant(str() as text)], []):
            return float(text)
        case ast.UnaryOp(ast.USub(), ast.Call() as operand):
            return -_value(operand)
    return ast.literal_eval(node)
