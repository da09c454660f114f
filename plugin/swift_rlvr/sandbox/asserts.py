"""Python sources with asserts -> steps: expressions for the sandbox to evaluate, and results for the parent to compare.

Every assert is a step of its own, and so is every other statement that does something (a loop over asserts, a call).
Imports, assignments and definitions prepare the step that follows. ``check(candidate)`` and functions ``test_*`` are
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

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
_PREPARATION = (ast.Import, ast.ImportFrom, ast.Pass, *_ASSIGNMENTS, *_DEFINITIONS)
COLLECTIONS = {"set": set, "frozenset": frozenset, "list": list, "tuple": tuple, "dict": dict}


class BadTests(ValueError):
    """The column `tests` of a row cannot be used."""


class Step(NamedTuple):
    """One test of a source."""

    prepare: str
    """Statements to execute first; may be empty."""
    source: str
    """An expression; where kind is "run", statements that must not raise."""
    kind: str
    """What must hold for the expression: "equal", "is" or "near" the expected value, "true" as expected, or "run"."""
    expected: Any = None
    tolerance: dict[str, float] | None = None
    """For "near": the keywords of math.isclose, or "below" or "at most" with the limit of the difference."""

    def __str__(self) -> str:
        return self.source

    @property
    def is_hidden(self) -> bool:
        """Whether the value itself is compared outside the sandbox."""
        return self.kind in ("equal", "is", "near")

    def holds(self, value: object) -> bool:
        """Whether a value of plain types is what the test asks for."""
        if self.kind == "is":
            return value is self.expected
        if self.kind == "near":
            return _is_near(value, self.expected, self.tolerance or {})
        return bool(value == self.expected)


def read_steps(source: str, candidate: ast.expr | None) -> list[Step]:
    """Read a source with asserts.

    Args:
        candidate: the expression with which to call a function ``check``, if the source has one and does not call it.

    Raises:
        BadTests: saying what is wrong with the source.
    """
    steps: list[Step] = []
    prepare: list[ast.stmt] = []
    try:
        for statement in _unfold(ast.parse(source).body, candidate):
            if isinstance(statement, _PREPARATION):
                prepare.append(statement)
                continue
            before = ast.unparse(ast.Module(prepare, []))
            prepare = []
            if isinstance(statement, ast.Assert):
                steps.append(_step(before, statement.test))
            else:
                steps.append(Step(before, ast.unparse(statement), "run"))
    except BadTests:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadTests(f"tests are not valid Python: {type(error).__name__}: {error}") from None
    if not steps:
        raise BadTests("tests contain no assert and no statement that does anything")
    foreign = {name.partition(".")[0] for name in imported_modules(steps)} - sys.stdlib_module_names
    if foreign:
        raise BadTests(f"tests import {', '.join(sorted(foreign))}, which is not in the standard library")
    return steps


def imported_modules(steps: Iterable[Step]) -> list[str]:
    """The modules that tests import, which the code must not be able to tamper with."""
    names = set()
    for step in steps:
        for node in ast.walk(ast.parse(f"{step.prepare}\n{step.source}")):
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
        call = statement.value if isinstance(statement, ast.Expr) else None
        if check and isinstance(call, ast.Call) and getattr(call.func, "id", None) == "check":
            is_called = True
            if len(call.args) == 1 and not call.keywords:
                result += _statements_of(check, call.args) or [statement]
                continue
        result.append(statement)
    if check and candidate and not is_called:
        result += _statements_of(check, [candidate]) or [_call("check", candidate)]
    for name, function in functions.items():
        if name.startswith("test") and not _is_named(name, [each for each in result if each is not function]):
            if function.args.args:
                raise BadTests(f"{name} takes arguments, and nothing supplies them")
            result += _statements_of(function, []) or [_call(name)]
    for statement in result:
        ast.fix_missing_locations(statement)
    result = [each for each in result if not _does_nothing(each)]
    # an unfolded function would tell the code what is expected, so it stays only where something else needs it
    return [
        each
        for each in result
        if not (isinstance(each, ast.FunctionDef) and each is functions[each.name])
        or _is_named(each.name, [other for other in result if other is not each])
    ]


def _call(name: str, *arguments: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), list(arguments), []))


def _is_named(name: str, statements: Iterable[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for each in statements for node in ast.walk(each))


def _statements_of(function: ast.FunctionDef, values: Sequence[ast.expr]) -> list[ast.stmt]:
    """The statements of a function called with these values as they would stand outside it; none where they can't."""
    arguments = function.args
    if function.decorator_list or len(arguments.args) != len(values) or arguments.vararg or arguments.kwonlyargs:
        return []
    assigned = [
        ast.Assign([ast.Name(argument.arg, ast.Store())], value)
        for argument, value in zip(arguments.args, values, strict=True)
    ]
    module = ast.fix_missing_locations(ast.Module([*assigned, *function.body], []))
    try:
        compile(module, "<tests>", "exec", dont_inherit=True)
    except SyntaxError:  # a return or a yield
        return []
    return module.body


def _does_nothing(statement: ast.stmt) -> bool:
    """A docstring, ``assert True``, a print, or an ``if __name__ == "__main__"`` with all that it holds."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    if isinstance(statement, ast.If):
        return _is_named("__name__", [ast.Expr(statement.test)])
    if isinstance(statement, ast.Expr):
        value = statement.value
        return isinstance(value, ast.Constant) or getattr(getattr(value, "func", None), "id", None) == "print"
    return False


def _step(prepare: str, test: ast.expr) -> Step:
    """The step for ``assert test``."""
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            for expression, other in ((left, right), (right, left)):
                is_known, expected = _literal(other)
                if is_known:
                    return Step(prepare, ast.unparse(expression), "equal", expected)
        case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as expected)]):
            return Step(prepare, ast.unparse(left), "is", expected)
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(expression, ast.Sub(), other)], []),
            [ast.Lt() | ast.LtE() as sign],
            [most],
        ):
            (_, expected), (_, limit) = _literal(other), _literal(most)
            if _are_numbers(expected, limit):
                tolerance = {"below" if isinstance(sign, ast.Lt) else "at most": limit}
                return Step(prepare, ast.unparse(expression), "near", expected, tolerance)
        case ast.Call(ast.Name("isclose") | ast.Attribute(ast.Name("math"), "isclose"), [expression, other], keywords):
            _, expected = _literal(other)
            tolerance = {str(keyword.arg): _literal(keyword.value)[1] for keyword in keywords}
            if tolerance.keys() <= {"rel_tol", "abs_tol"} and _are_numbers(expected, *tolerance.values()):
                return Step(prepare, ast.unparse(expression), "near", expected, tolerance)
    wanted = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    return Step(prepare, ast.unparse(test), "true", wanted)


def _literal(node: ast.expr) -> tuple[bool, Any]:
    """Whether a node is a literal, and its value. ``set([1, 2])``, ``float("inf")`` and ``math.inf`` count as well."""
    match node:
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as text)], []):
            return True, float(text)
        case ast.Attribute(ast.Name("math"), "inf" | "pi" | "e" as name):
            return True, getattr(math, name)
        case ast.Call(ast.Name(name), arguments, []) if name in COLLECTIONS and len(arguments) < 2:
            values = [_literal(each) for each in arguments]
            try:
                return all(is_known for is_known, _ in values), COLLECTIONS[name](*(value for _, value in values))
            except (TypeError, ValueError):
                return False, None
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _is_near(value: Any, expected: float, tolerance: dict[str, float]) -> bool:
    if not isinstance(value, (int, float, complex, Fraction)):
        return False
    try:
        if "below" in tolerance:
            return abs(value - expected) < tolerance["below"]
        if "at most" in tolerance:
            return abs(value - expected) <= tolerance["at most"]
        return math.isclose(value, expected, **tolerance)  # type: ignore[arg-type]  # a complex number raises
    except (OverflowError, ValueError, TypeError):
        return False
