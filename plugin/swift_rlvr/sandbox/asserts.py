"""Asserts of Python sources -> expressions for the sandbox to evaluate, and results for the parent to compare."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from typing import NamedTuple

_PREPARATION = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Pass)
_COLLECTIONS = {"set": set, "frozenset": frozenset, "list": list, "tuple": tuple, "dict": dict}


class BadTests(ValueError):
    """The column `tests` of a row cannot be used."""


class Step(NamedTuple):
    """One test of a module."""

    prepare: str
    """Statements to execute first; may be empty."""
    source: str
    """An expression; where kind is "run", statements that must not raise."""
    kind: str
    """What must hold for the expression: "equal", "is" or "near" the expected value, "true" as expected, or "run"."""
    expected: object = None
    tolerance: dict | None = None
    """For "near": the keywords of math.isclose, or "below" or "at most" with the greatest difference."""

    def __str__(self) -> str:
        return self.source

    @property
    def is_hidden(self) -> bool:
        """Whether the value itself is compared outside the sandbox."""
        return self.kind in ("equal", "is", "near")

    def holds(self, got: object) -> bool:
        """Whether a value of plain types is what the test asks for."""
        if self.kind == "is":
            return got is self.expected
        if self.kind == "near":
            return _is_near(got, self.expected, self.tolerance)
        return bool(got == self.expected)


def _steps(body: list[ast.stmt], candidate: ast.expr | None) -> list[Step]:
    statements = _taken_apart(body, candidate)
    steps, prepare = [], []
    for statement in statements:
        if _does_nothing(statement):
            continue
        if isinstance(statement, _PREPARATION):
            prepare.append(statement)
            continue
        before = ast.unparse(ast.Module(prepare, []))
        prepare = []
        if isinstance(statement, ast.Assert):
            expression, *rule = _reduced(statement.test)
            steps.append(Step(before, ast.unparse(expression), *rule))
        else:
            steps.append(Step(before, ast.unparse(statement), "run"))
    return steps


def _taken_apart(body: list[ast.stmt], candidate: ast.expr | None) -> list[ast.stmt]:
    """Replace a call of ``check`` and functions ``test_*`` that nothing else calls by what stands in them."""
    functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
    check, result, called = functions.get("check"), [], False
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if check and isinstance(call, ast.Call) and getattr(call.func, "id", None) == "check":
            called = True
            if len(call.args) == 1 and not call.keywords:
                result += _inside(check, call.args[0]) or [statement]
                continue
        if not _does_nothing(statement):
            result.append(statement)
    if check and candidate and not called:
        call = ast.Expr(ast.Call(ast.Name("check", ast.Load()), [candidate], []))
        result += _inside(check, candidate) or [call]
    for name, function in functions.items():
        if name.startswith("test") and not _is_named(name, [each for each in result if each is not function]):
            if function.args.args:
                raise BadTests(f"{name} takes arguments, and there is nobody to give them")
            call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))
            result += _inside(function, None) or [call]
    for each in body:
        if isinstance(each, ast.ClassDef) and any(getattr(part, "name", "").startswith("test") for part in each.body):
            raise BadTests(f"the methods of {each.name} are tests that only a test runner finds")
    for statement in result:
        ast.fix_missing_locations(statement)
    # a function that was taken apart would tell what is expected, so it is left out where nothing else needs it
    return [
        each
        for each in result
        if each is not functions.get(getattr(each, "name", None))
        or _is_named(each.name, [other for other in result if other is not each])
    ]


def _is_named(name: str, statements: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for each in statements for node in ast.walk(each))


def _inside(function: ast.FunctionDef, argument: ast.expr | None) -> list[ast.stmt]:
    """The statements of a function as they would stand outside it; none where they can't."""
    arguments = function.args
    if (
        function.decorator_list
        or len(arguments.args) != (argument is not None)
        or arguments.vararg
        or arguments.kwonlyargs
    ):
        return []
    body = list(function.body)
    if argument is not None:
        body.insert(0, ast.Assign([ast.Name(arguments.args[0].arg, ast.Store())], argument))
    module = ast.fix_missing_locations(ast.Module(body, []))
    try:
        compile(module, "<tests>", "exec", dont_inherit=True)
    except SyntaxError:  # a return or a yield
        return []
    return body


def _does_nothing(statement: ast.stmt) -> bool:
    """A docstring, ``assert True``, a print, or what stands under ``if __name__ == "__main__"``."""
    if isinstance(statement, ast.Assert):
        return isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    if isinstance(statement, ast.If):
        return _is_named("__name__", [ast.Expr(statement.test)])
    if isinstance(statement, ast.Expr):
        value = statement.value
        return isinstance(value, ast.Constant) or getattr(getattr(value, "func", None), "id", None) == "print"
    return False


def _reduced(test: ast.expr) -> tuple:
    """What to evaluate, and the kind, the expected value and the tolerance with which to compare it."""
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            for expression, other in ((left, right), (right, left)):
                known, expected = _literal(other)
                if known:
                    return expression, "equal", expected
        case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as expected)]):
            return left, "is", expected
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(expression, ast.Sub(), other)], []),
            [ast.Lt() | ast.LtE() as sign],
            [most],
        ):
            (known, expected), (limited, limit) = _literal(other), _literal(most)
            if known and limited and _are_numbers(expected, limit):
                return expression, "near", expected, {"below" if isinstance(sign, ast.Lt) else "at most": limit}
        case ast.Call(ast.Name("isclose") | ast.Attribute(ast.Name("math"), "isclose"), [expression, other], keywords):
            known, expected = _literal(other)
            options = {keyword.arg: _literal(keyword.value) for keyword in keywords}
            tolerance = {name: value for name, (_, value) in options.items()}
            if known and {*options} <= {"rel_tol", "abs_tol"} and _are_numbers(expected, *tolerance.values()):
                return expression, "near", expected, tolerance
    wanted = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    return test, "true", wanted


def _literal(node: ast.expr) -> tuple[bool, object]:
    """Whether a node is a literal, and its value; ``set([1, 2])``, ``float("inf")`` and ``math.inf`` count as well."""
    match node:
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as text)], []):
            return True, float(text)
        case ast.Attribute(ast.Name("math"), "inf" | "pi" | "e" as name):
            return True, getattr(math, name)
        case ast.Call(ast.Name(name), arguments, []) if name in _COLLECTIONS and len(arguments) < 2:
            values = [_literal(each) for each in arguments]
            try:
                return all(known for known, _ in values), _COLLECTIONS[name](*(value for _, value in values))
            except (TypeError, ValueError):
                return False, None
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _is_near(got: object, expected: float, tolerance: dict) -> bool:
    if not isinstance(got, (int, float, complex, Fraction)):
        return False
    try:
        difference = abs(got - expected)
        if "below" in tolerance:
            return difference < tolerance["below"]
        if "at most" in tolerance:
            return difference <= tolerance["at most"]
        return math.isclose(got, expected, **tolerance)
    except (OverflowError, ValueError, TypeError):  # such as a complex number in isclose
        return False


def imports(steps: list[Step]) -> list[str]:
    """The modules that tests import, which the code must not be able to tamper with."""
    names = set()
    for step in steps:
        for node in ast.walk(ast.parse(f"{step.prepare}\n{step.source}")):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
    return sorted(names - {"solution"})
