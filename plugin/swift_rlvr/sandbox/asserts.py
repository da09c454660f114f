"""Python sources with asserts -> unit tests: expressions for the sandbox to evaluate, and results to compare with.

Every assert is a test of its own, and so is every other statement that does something (a loop over asserts, a call).
Imports, assignments and definitions prepare the test that follows. ``check(candidate)`` and functions ``test_*`` are
unfolded into the statements in them. Where an assert compares with a literal, the code is not told the result that it
ought to give::

    assert add(1, 2) == 3               evaluates add(1, 2), compares with 3
    assert f(2) is None                 evaluates f(2)
    assert abs(f(2) - 1.5) < 1e-6       evaluates f(2); math.isclose(f(2), 1.5) likewise
    assert not is_prime(4)              evaluates is_prime(4), whether it is true
    assert sorted(f(x)) == g(x)         no literal: evaluates all of it, whether it is true

Not accepted: ``unittest.TestCase``, pytest's fixtures and parameters, and imports from outside the standard library,
which is all that there is in the sandbox.
"""

import ast
import json
import math
import sys
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_PREPARATION = (*_DEFINITIONS, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Pass)
_NO_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
COLLECTIONS = {"set": set, "frozenset": frozenset, "list": list, "tuple": tuple, "dict": dict}


class BadTests(ValueError):
    """The column `tests` of a row cannot be used."""


class UnitTest(NamedTuple):
    """One test of a source."""

    prepare: str  # statements to execute first; may be empty
    source: str  # an expression; where kind is "run", statements that must not raise
    # "equal", "is" or "near" the expected value, "true" as expected, or "run"; of a call "json", equal to the expected
    # value as JSON writes it, or "json in a list", also to its only element
    kind: str
    expected: Any = None
    # for "near": the keywords of math.isclose, or "below" or "at most" with the limit of the difference
    tolerance: dict[str, float] | None = None
    arguments: list | None = None  # the source is a function, or a method of Solution, to be called with these

    def __str__(self) -> str:
        return self.source if self.arguments is None else f"{self.source}({', '.join(map(repr, self.arguments))})"

    def holds(self, value: Any) -> bool:
        """Whether a value of plain types is what the test asks for. Raises where Python cannot compare the numbers."""
        if self.kind == "is":
            return value is self.expected
        if self.kind == "equal":
            return bool(value == self.expected)
        if self.kind.startswith("json"):
            value = json.loads(json.dumps(value))
            return bool(value == self.expected or (self.kind == "json in a list" and [value] == self.expected))
        if not isinstance(value, (int, float, complex, Fraction)):
            return False
        tolerance = self.tolerance or {}
        if "below" in tolerance:
            return abs(value - self.expected) < tolerance["below"]
        if "at most" in tolerance:
            return abs(value - self.expected) <= tolerance["at most"]
        return math.isclose(value, self.expected, **tolerance)  # type: ignore[arg-type]  # a complex number raises


def read_source(source: str, candidate: ast.expr | None) -> list[UnitTest]:
    """Read a source; a function ``check`` in it that it does not call itself is called with the `candidate`.

    Raises BadTests, saying what is wrong with the source.
    """
    units: list[UnitTest] = []
    prepare: list[ast.stmt] = []
    try:
        for statement in _unfold(ast.parse(source).body, candidate):
            if isinstance(statement, _PREPARATION):
                prepare.append(statement)
                continue
            before = ast.unparse(ast.Module(prepare, []))
            prepare = []
            if isinstance(statement, ast.Assert):
                units.append(_unit_test(before, statement.test))
            else:
                units.append(UnitTest(before, ast.unparse(statement), "run"))
    except BadTests:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadTests(f"tests are not valid Python: {type(error).__name__}: {error}") from None
    if not units:
        raise BadTests("tests contain no assert and no statement that does anything")
    foreign = {name.partition(".")[0] for name in imported_modules(units)} - sys.stdlib_module_names
    if foreign:
        raise BadTests(f"tests import {', '.join(sorted(foreign))}, which is not in the standard library")
    return units


def imported_modules(units: Iterable[UnitTest]) -> list[str]:
    """The modules that tests import, which the code must not be able to tamper with."""
    names = set()
    for unit in units:
        for node in ast.walk(ast.parse(f"{unit.prepare}\n{unit.source}")):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    return sorted(names - {"solution"})


def _unfold(body: list[ast.stmt], candidate: ast.expr | None) -> list[ast.stmt]:
    """Replace a call of ``check``, and functions ``test_*`` that nothing else calls, by the statements in them."""
    for each in body:
        if isinstance(each, ast.ClassDef) and any(getattr(part, "name", "").startswith("test") for part in each.body):
            raise BadTests(f"the methods of {each.name} are tests that only a test runner finds")
    body = [each for each in body if not _does_nothing(each)]
    functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
    check = functions.get("check")
    result: list[ast.stmt] = []
    is_called = False
    for statement in body:
        match statement:
            case ast.Expr(ast.Call(ast.Name("check"), arguments, keywords)) if check:
                is_called = True
                result += _call(check, arguments) if len(arguments) == 1 and not keywords else [statement]
            case _:
                result.append(statement)
    if check and candidate and not is_called:
        result += _call(check, [candidate])
    for name, function in functions.items():
        if name.startswith("test") and not _is_named(name, [each for each in result if each is not function]):
            if function.args.args:
                raise BadTests(f"{name} takes arguments, and nothing supplies them")
            result += _call(function, [])
    # an unfolded function would tell the code what is expected, so it stays only where something else needs it
    for name, function in functions.items():
        others = [each for each in result if each is not function]
        if not _is_named(name, others):
            result = others
    return result


def _call(function: ast.FunctionDef, values: list[ast.expr]) -> list[ast.stmt]:
    """A call of a function with these values: the statements in it as they would stand outside it, where they can."""
    arguments = function.args
    call = ast.fix_missing_locations(ast.Expr(ast.Call(ast.Name(function.name, ast.Load()), values, [])))
    if function.decorator_list or len(arguments.args) != len(values) or arguments.vararg or arguments.kwonlyargs:
        return [call]
    pairs = zip(arguments.args, values, strict=True)
    assigned = [ast.Assign([ast.Name(argument.arg, ast.Store())], value) for argument, value in pairs]
    module = ast.fix_missing_locations(ast.Module([*assigned, *function.body], []))
    try:
        compile(module, "<tests>", "exec", dont_inherit=True)
    except SyntaxError:  # a return or a yield
        return [call]
    return [each for each in module.body if not _does_nothing(each)]


def _is_named(name: str, nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for each in nodes for node in ast.walk(each))


def _does_nothing(statement: ast.stmt) -> bool:
    """``assert True``, a print, ``if __name__ == "__main__"`` with all that it holds, or a value nobody asks for.

    The last is a docstring, or text that is no test at all: LiveCodeBench's compressed cases are valid Python.
    """
    match statement:
        case ast.Assert(ast.Constant(value)):
            return bool(value)
        case ast.Expr(ast.Call(ast.Name("print"))):
            return True
        case ast.Expr(value):
            return not any(isinstance(node, (ast.Call, ast.Subscript, ast.Attribute)) for node in ast.walk(value))
        case ast.If(test):
            return _is_named("__name__", [test])
    return False


def _unit_test(prepare: str, test: ast.expr) -> UnitTest:
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            for expression, other in ((left, right), (right, left)):
                with suppress(*_NO_LITERAL):
                    return UnitTest(prepare, ast.unparse(expression), "equal", _literal(other))
        case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as expected)]):
            return UnitTest(prepare, ast.unparse(left), "is", expected)
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(expression, ast.Sub(), other)], []),
            [ast.Lt() | ast.LtE() as sign],
            [most],
        ):
            with suppress(*_NO_LITERAL):
                tolerance = {"below" if isinstance(sign, ast.Lt) else "at most": _number(most)}
                return UnitTest(prepare, ast.unparse(expression), "near", _number(other), tolerance)
        case ast.Call(ast.Name("isclose") | ast.Attribute(ast.Name("math"), "isclose"), [expression, other], keywords):
            with suppress(*_NO_LITERAL):
                tolerance = {str(keyword.arg): _number(keyword.value) for keyword in keywords}
                if tolerance.keys() <= {"rel_tol", "abs_tol"}:
                    return UnitTest(prepare, ast.unparse(expression), "near", _number(other), tolerance)
    wanted = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    return UnitTest(prepare, ast.unparse(test), "true", wanted)


def _literal(node: ast.expr) -> Any:
    """The value of a literal, ``set([1, 2])``, ``float("inf")`` or ``math.inf``. Raises one of `_NO_LITERAL` else."""
    match node:
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as text)], []):
            return float(text)
        case ast.Attribute(ast.Name("math"), "inf" | "pi" | "e" as name):
            return getattr(math, name)
        case ast.Call(ast.Name(name), arguments, []) if name in COLLECTIONS:
            return COLLECTIONS[name](*map(_literal, arguments))
    return ast.literal_eval(node)


def _number(node: ast.expr) -> float:
    value = _literal(node)
    if not isinstance(value, (int, float)):
        raise ValueError("no number")
    return value
