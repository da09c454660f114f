"""Python sources as tests: a program for `inside/harness.py`, divided into steps.

Every assert is a test of its own, together with what stands before it, and so is every other
statement that may fail on purpose: one that holds an assert, a raise or a call such as
``assertEqual``; else a call that must not raise. They are looked for in the module, in
a function that it calls once, in the ``test*`` functions and the classes of tests that a runner
would find, in ``check(candidate)``, and in a loop that makes the same number of rounds whatever the
code returns; such a test passes in part where only some of its rounds do. Else the program means
what Python says it means.

Not accepted: what only a test runner can do, such as pytest's fixtures, and imports of what is not
in the sandbox.
"""

import ast
import builtins
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.verifiers.code.names import (
    asked_for,
    bound_names,
    looked_up,
    missing_imports,
    missing_modules,
    modules_of,
    taken_over,
    top_module,
    walk,
)

_UNREADABLE = (
    *(ValueError, TypeError, SyntaxError, MemoryError, RecursionError),
    *(ArithmeticError, LookupError, AttributeError),
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
# How the names of functions begin by which pytest, unittest and numpy check something.
_CHECKING = ("assert", "fail", "raises")
_ACTIONS = (ast.Call, ast.Subscript, ast.Attribute, ast.NamedExpr, ast.Await)
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CASE_CLASSES = {"unittest.TestCase", "TestCase"}
_PARAMETRIZE = ("pytest.mark.parametrize", "mark.parametrize")
# The end of a script, and what a test runner calls beside the tests.
_EXITS = ("sys.exit", "exit", "quit", "os._exit")
_HOOKS = (
    *("setUpModule", "setup_module", "setup_function", "teardown_function"),
    *("load_tests", "pytest_generate_tests"),
)
_LONGEST_SOURCE = 1000  # characters of a test that are kept to show it


class BadTests(ValueError):
    """The column `tests` of a row cannot be used."""


class Program(NamedTuple):
    """A source with its steps marked."""

    source: str
    steps: int
    # names that the tests look up in the code
    names: tuple[str, ...]
    # names of builtins that the code may define and the tests mean
    taken_over: tuple[str, ...]
    # whether it looks at numpy's arrays as such
    has_arrays: bool
    # whether it and the code would be one file elsewhere, since it does not import the code
    shares_names: bool
    # the modules that it imports
    imports: tuple[str, ...]


class UnitTest(NamedTuple):
    """One step of a program."""

    source: str  # what it says, for people
    program: Program
    step: int
    # whether the number of its rounds does not depend on the code, so that part of them counts
    is_fair: bool = True

    def __str__(self) -> str:
        return self.source


@lru_cache(maxsize=64)  # all completions for a row have its tests, and a long source takes seconds
def read_source(
    source: str, candidate: str | None, packages: tuple[str, ...] = ()
) -> list[UnitTest]:
    """Read a source; a function ``check`` in it that it does not call itself is called with the
    `candidate`.

    Raises BadTests, saying what is wrong with the source. What it returns must not be changed.
    """
    try:
        tree = ast.parse(source)
        steps = _Steps(tree, candidate)
        written = steps.program()
        compile(written, "<tests>", "exec", dont_inherit=True)
        tree_written = ast.parse(written)
        missing = missing_modules(tree_written, packages)
        if missing:
            names = ", ".join(missing)
            raise BadTests(f"tests import {names}, which is not in the standard library")
        imports = modules_of(tree_written)
        program = Program(
            written,
            len(steps.steps),
            asked_for(tree, candidate),
            taken_over(tree, candidate),
            has_arrays="numpy" in packages and "numpy" in map(top_module, imports),
            shares_names="solution" not in imports,
            imports=tuple(sorted(imports)),
        )
    except BadTests:
        raise
    except _UNREADABLE as error:
        raise BadTests(f"tests are not valid Python: {type(error).__name__}: {error}") from None
    return [
        UnitTest(text[:_LONGEST_SOURCE], program, number, is_fair)
        for number, (text, is_fair) in enumerate(steps.steps)
    ]


class _Steps:
    """Divides a module into steps, which are numbered in the order in which they run.

    Attributes:
        steps: the source of each, and whether it is fair (`UnitTest.is_fair`).
    """

    def __init__(self, tree: ast.Module, candidate: str | None):
        self.steps: list[tuple[str, bool]] = []
        self._tree = tree
        self._candidate = candidate
        body = tree.body
        match body[-1:]:
            case [ast.Expr(ast.Call(_, [ast.Constant()], []))]:
                pass
            case [ast.Expr(ast.Call(function, [status], []))] if ast.unparse(function) in _EXITS:
                # A script may say by its exit status whether its tests have passed.
                body = [*body[:-1], ast.Assert(ast.UnaryOp(ast.Not(), status), None)]
        self._fixed = _FixedLengths(body)
        self._body = [each for each in body if not does_nothing(each)]
        self._functions = {each.name: each for each in self._body if isinstance(each, _FUNCTIONS)}
        # The functions that check something, or call one that does.
        self._checking: set[str] = set()
        is_complete = False
        while not is_complete:
            more = {name for name, each in self._functions.items() if _checks(each, self._checking)}
            is_complete = more == self._checking
            self._checking = more
        self._once = _called_once(self._body, self._functions)

    def program(self) -> str:
        """The module's source, with its steps marked and its tests called. Raises BadTests where it
        has none.
        """
        future: list[ast.stmt] = []  # imports, which have to stand before all else
        others: list[ast.stmt] = []
        for statement in self._body:
            is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            (future if is_future else others).append(statement)

        body = self._divided(others, is_fair=True)
        for statement in self._body:
            if isinstance(statement, _FUNCTIONS):
                body += self._called(statement)
            elif isinstance(statement, ast.ClassDef):
                body += self._class(statement)
        if not self.steps:
            raise BadTests("tests contain no assert and no statement that does anything")
        module = ast.Module([*future, *missing_imports(self._tree), *body], [])
        return ast.unparse(ast.fix_missing_locations(_Asserts().visit(module)))

    def _divided(self, body: list[ast.stmt], is_fair: bool) -> list[ast.stmt]:
        divided: list[ast.stmt] = []
        before: list[ast.stmt] = []
        last: ast.With | None = None
        for statement in body:
            opened = self._opened(statement, is_fair)
            if opened is not None:
                divided += [*before, opened]
                before, last = [], None
            # A statement that checks something; any other prepares what does.
            elif not isinstance(statement, _DEFINITIONS) and _checks(statement, self._checking):
                last = self._step([*before, statement], text_of(statement), is_fair)
                divided.append(last)
                before = []
            elif not does_nothing(statement):
                before.append(statement)

        if any(isinstance(each, ast.Return) for each in before):
            return [*divided, *before]
        if last is not None:
            # What is left may fail as well.
            last.body += before
            return divided
        # Where nothing is checked, the last call must not raise: that is all that is asked for.
        calls = []
        for statement in before:
            has_call = any(isinstance(node, ast.Call) for node in ast.walk(statement))
            if has_call and not isinstance(statement, (*_DEFINITIONS, *_ASSIGNMENTS)):
                calls.append(statement)
        if calls and not divided:
            return [self._step(before, text_of(calls[-1]), is_fair)]
        return [*divided, *before] or [ast.Pass()]

    def _step(self, body: list[ast.stmt], text: str, is_fair: bool) -> ast.With:
        number = len(self.steps)
        self.steps.append((text, is_fair))
        return _with("__step__", [number], body)

    def _opened(self, statement: ast.stmt, is_fair: bool) -> ast.stmt | None:
        """A statement with steps in it; None where it is a step itself, or none."""
        first = len(self.steps)
        match statement:
            case ast.Expr(ast.Call(ast.Name(name))) if name in self._once:
                function = self._functions[name]
                divided = self._divided(function.body, is_fair)
                if len(self.steps) == first:
                    return None
                function.body = divided
                return self._guard(first, [statement])
            case ast.For(_, iterable, body, []) if self._fixed.holds(iterable):
                if any(isinstance(node, _LEAVING) for node in walk(body)):
                    return None
                divided = self._divided(body, is_fair)
            case ast.With([ast.withitem(ast.Call(ast.Attribute(_, "subTest")))], body):
                divided = self._divided(body, is_fair)
            case _:
                return None
        if len(self.steps) == first:
            return None
        statement.body = divided
        return statement

    def _guard(self, first: int, body: list[ast.stmt]) -> ast.stmt:
        return _with("__guard__", [first, len(self.steps)], body)

    def _called(self, function: _Function) -> list[ast.stmt]:
        """The call of a function that the module leaves to a runner."""
        name = function.name
        if name in _HOOKS:
            raise BadTests(f"{name} is called by a test runner, and by nothing else")
        if self._functions[name] is not function:
            return []
        if any(name in looked_up(each) for each in self._body if each is not function):
            return []
        first = len(self.steps)
        if name == "check" and self._candidate is not None:
            function.body = self._divided(function.body, is_fair=True)
            candidate = ast.parse(self._candidate, mode="eval").body
            call = ast.Expr(ast.Call(_load("check"), [candidate], []))
        elif name.startswith("test"):
            _require_arguments(function, name, is_method=False)
            is_fair = self._has_fixed_cases(function)
            function.body = self._divided(function.body, is_fair)
            call = _call("__run_test__", _load(name))
        else:
            return []
        return [self._guard(first, [call])]

    def _class(self, cls: ast.ClassDef) -> list[ast.stmt]:
        """Calls of the tests of a class."""
        methods = [each for each in cls.body if isinstance(each, _FUNCTIONS)]
        tests = [each for each in methods if each.name.startswith("test")]
        if not tests:
            return []
        strange = {*map(ast.unparse, cls.bases)} - _CASE_CLASSES - {"object"}
        is_async = any(isinstance(each, ast.AsyncFunctionDef) for each in tests)
        if strange or cls.decorator_list or cls.keywords or is_async:
            raise BadTests(f"the methods of {cls.name} are tests that only a test runner finds")

        first = len(self.steps)
        set_up = _call("__call_if_there__", _load(cls.name), *_texts("setUpClass", "setup_class"))
        calls: list[ast.stmt] = [set_up]
        for test in tests:
            if any("expectedFailure" in ast.unparse(each) for each in test.decorator_list):
                raise BadTests(f"{test.name} is expected to fail, which only a test runner knows")
            _require_arguments(test, test.name, is_method=True)
            before = len(self.steps)
            test.body = self._divided(test.body, self._has_fixed_cases(test))
            run = _call("__run_method__", _load(cls.name), *_texts(test.name))
            calls.append(self._guard(before, [run]))
        return [self._guard(first, calls)]

    def _has_fixed_cases(self, function: _Function) -> bool:
        """Whether pytest's parameters are written down."""
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(called, [_, values, *_]) if ast.unparse(called) in _PARAMETRIZE:
                    if not self._fixed.holds(values):
                        return False
        return True


class _Asserts(ast.NodeTransformer):
    """Asserts -> asserts that say what was there, without the message, which might call the
    code.
    """

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        match node.test:
            case ast.Constant():
                call: ast.expr = node.test
            case ast.Compare(left, [ast.Eq()], [right]):
                expects_left = _is_written(left) and not _is_written(right)
                call = _compare("equal", left, right, ast.Constant(expects_left))
            case ast.Compare(left, [ast.Is()], [right]):
                call = _compare("same", left, right)
            case ast.Compare(left, [ast.In()], [right]):
                call = _compare("among", left, right)
            case _:
                text = ast.unparse(node.test)
                call = _compare("true", node.test, ast.Constant(text[:200]))
        return ast.Assert(call, None)


class _Operators(ast.NodeTransformer):
    """``a == b`` -> ``__equal__(a, b)``, wherever it stands, and ``a != b`` -> ``__unequal__(a, b)``. The
    operands of other operators, and what builtins and methods are called with, pass ``__operand__``.
    """

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Compare(left, [ast.Eq()], [right]):
                return ast.Call(_load("__equal__"), [left, right], [])
            case ast.Compare(left, [ast.NotEq()], [right]):
                return ast.Call(_load("__unequal__"), [left, right], [])
        node.left = _operand(node.left)
        node.comparators = [_operand(each) for each in node.comparators]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        node.left, node.right = _operand(node.left), _operand(node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        changed = [_load(node.target.id)] if isinstance(node.target, ast.Name) else []
        node.value = _operand(node.value, *changed)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.slice, (ast.Slice, ast.Tuple)):
            node.slice = _operand(node.slice)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(ast.Name("__compare__"), "equal" | "same" | "true"):
                return node
            case ast.Name(name) if name not in vars(builtins):
                return node
        node.args = [_operand(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = _operand(keyword.value)
        return node


def _operand(value: ast.expr, *others: ast.expr) -> ast.expr:
    match value:
        case ast.Constant():
            return value
        case ast.Starred(elements):
            return ast.Starred(_operand(elements), value.ctx)
    return _call("__operand__", value, *others).value


@lru_cache(maxsize=64)
def with_operators(program: Program) -> Program:
    """The program as it is run in one process with the code (`inside.together`), whose objects may
    say that they are equal to anything, or that their difference to it is 0.
    """
    tree = _Operators().visit(ast.parse(program.source))
    return program._replace(source=ast.unparse(ast.fix_missing_locations(tree)))


class _FixedLengths:
    """Knows which expressions have as many elements whatever the code returns."""

    _SAME_LENGTH = ("zip", "enumerate", "reversed", "list", "tuple", "sorted")
    _VIEWS = ("items", "keys", "values")

    def __init__(self, body: list[ast.stmt]):
        used = looked_up(*body)
        bound: Counter[str] = Counter()
        # Where anything else is done with a name, elements may be added to what it stands for.
        only_read: Counter[str] = Counter()
        # what is assigned to a name, where it stands beside it
        assigned: list[tuple[ast.expr, ast.expr]] = []
        for node in walk(body):
            bound.update(bound_names(node))
            only_read.update(self._only_read(node))
            match node:
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                    assigned += zip(targets, values, strict=False)
                case ast.Assign([target], value) | ast.AnnAssign(target, _, ast.expr() as value):
                    assigned.append((target, value))
        self._values: dict[str, ast.expr] = {}
        for target, value in assigned:
            name = target.id if isinstance(target, ast.Name) else ""
            if bound[name] == 1 and used[name] <= only_read[name]:
                self._values[name] = value

    def _only_read(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Subscript(ast.Name(name), _, ast.Load()):
                yield name
            case ast.For(_, ast.Name(name)) | ast.comprehension(_, ast.Name(name)):
                yield name
            case ast.Call(ast.Name(function), arguments):
                if function in (*self._SAME_LENGTH, "len", "range"):
                    yield from (each.id for each in arguments if isinstance(each, ast.Name))
            case ast.Call(ast.Attribute(ast.Name(name), view), []) if view in self._VIEWS:
                yield name
            case ast.Call(called, [_, ast.Name(name), *_]) if ast.unparse(called) in _PARAMETRIZE:
                yield name

    def holds(self, node: ast.expr) -> bool:
        """Whether it has a fixed number of elements."""
        match node:
            case ast.List(items) | ast.Tuple(items):
                return not any(isinstance(each, ast.Starred) for each in items)
            case ast.Dict(keys, _):
                return all(isinstance(key, ast.Constant) for key in keys)
            case ast.Set() | ast.Constant(str()):
                return _is_written(node)
            case ast.Name(name):
                return name in self._values and self.holds(self._values[name])
            case ast.Call(ast.Name("range"), arguments, []):
                return all(map(self._is_number, arguments))
            case ast.Call(ast.Name(function), arguments) if function in self._SAME_LENGTH:
                return bool(arguments) and all(map(self.holds, arguments))
            case ast.Call(ast.Attribute(value, view), [], []) if view in self._VIEWS:
                return self.holds(value)
        return False

    def _is_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(int()):
                return True
            case ast.UnaryOp(_, operand):
                return self._is_number(operand)
            case ast.BinOp(left, _, right):
                return self._is_number(left) and self._is_number(right)
            case ast.Name(name):
                return name in self._values and self._is_number(self._values[name])
            case ast.Call(ast.Name("len"), [value], []):
                return self.holds(value)
        return False


def _is_written(node: ast.expr) -> bool:
    """Whether a value stands there itself, and nothing has to be looked up."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("approx"):
        return True
    return not any(isinstance(each, (ast.Name, ast.Call, ast.Await)) for each in ast.walk(node))


def _checks(node: ast.AST, checking: set[str]) -> bool:
    """Whether something in it may say that a test has failed; `checking` are functions that do."""
    for each in ast.walk(node):
        match each:
            case ast.Assert() | ast.Raise():
                return True
            case ast.Call(ast.Name(name)) if name in checking or name.startswith(_CHECKING):
                return True
            case ast.Call(ast.Attribute(_, name)) if name.startswith(_CHECKING):
                return True
    return False


def _called_once(body: list[ast.stmt], functions: dict[str, _Function]) -> set[str]:
    """Functions that one statement of the module calls, and nothing else does."""
    once = set()
    uses = looked_up(*body)
    for statement in body:
        match statement:
            case ast.Expr(ast.Call(ast.Name(name))) if uses[name] == 1:
                function = functions.get(name)
                is_generator = function is not None and any(
                    isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function)
                )
                if isinstance(function, ast.FunctionDef) and not is_generator:
                    once.add(name)
    return once


def _require_arguments(function: _Function, name: str, is_method: bool) -> None:
    """Raise BadTests where a test has arguments that nothing supplies."""
    given: set[str] = set()
    for decorator in function.decorator_list:
        # of unittest.mock, which hands over what it puts in place
        if ast.unparse(decorator).removeprefix("unittest.").startswith(("patch", "mock.patch")):
            return
        match decorator:
            case ast.Call(called, [names, *_]) if ast.unparse(called) in _PARAMETRIZE:
                written = ast.literal_eval(names)
                if isinstance(written, str):
                    written = [each.strip() for each in written.split(",")]
                given.update(written)
    arguments = [*function.args.posonlyargs, *function.args.args]
    decorators = [*map(ast.unparse, function.decorator_list)]
    if is_method and "staticmethod" not in decorators:
        arguments = arguments[1:]
    required = arguments[: len(arguments) - len(function.args.defaults)]
    for argument in required:
        if argument.arg not in given:
            raise BadTests(f"{name} takes arguments, and nothing supplies them")


def does_nothing(statement: ast.stmt) -> bool:
    """``assert True``, a print, ``if __name__ == "__main__"`` with all that it holds, the end of a
    script that has passed, or a value nobody asks for.

    The last is a docstring, or text that is no test at all: LiveCodeBench's compressed cases are
    valid Python.
    """
    match statement:
        case ast.Assert(ast.Constant(value)):
            return bool(value)
        case ast.Expr(ast.Call(ast.Name("print"))) | ast.Pass():
            return True
        case ast.Expr(value) if _is_exit(value):
            return True
        case ast.Expr(value):
            return not any(isinstance(node, _ACTIONS) for node in ast.walk(value))
        case ast.If(test):
            return "__name__" in looked_up(test)
        case ast.Raise(exit_, None):
            return exit_ is not None and _is_exit(exit_)
    return False


def _is_exit(node: ast.expr) -> bool:
    """Whether it ends a script whose tests have passed. `unittest.main` would also run them, as they
    are run here.
    """
    match node:
        case ast.Call(ast.Attribute(ast.Name("unittest"), "main")) | ast.Name("SystemExit"):
            return True
        case ast.Call(function, [] | [ast.Constant(0 | None)], []):
            return ast.unparse(function) in (*_EXITS, "SystemExit")
    return False


def text_of(statement: ast.stmt) -> str:
    """What a statement of tests says, for people."""
    return ast.unparse(statement.test if isinstance(statement, ast.Assert) else statement)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _texts(*values: str) -> list[ast.expr]:
    return [ast.Constant(value) for value in values]


def _call(name: str, *arguments: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(_load(name), [*arguments], []))


def _compare(method: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(_load("__compare__"), method, ast.Load()), [*arguments], [])


def _with(name: str, numbers: list[int], body: list[ast.stmt]) -> ast.With:
    context = ast.Call(_load(name), [ast.Constant(number) for number in numbers], [])
    return ast.With([ast.withitem(context)], body)
