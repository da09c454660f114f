"""Python sources with asserts -> unit tests: expressions for the sandbox to evaluate, and results
to compare with.

`unfold.py` makes plain asserts of a source. Every assert is a test of its own, and so is every
other statement that does something (a loop that cannot be unfolded, a call). Imports, assignments
and definitions prepare the test that follows. Where an assert compares with a literal, the code is
not told the result that it ought to give: of ``f(2) in (1, 2)`` or ``abs(f(2) - 1.5) < 1e-6`` it
evaluates ``f(2)``. Else it evaluates all of it, whether it is true.

Not accepted: what only a test runner can do, such as pytest's fixtures, and imports of what is not
in the sandbox.
"""

import ast
import json
import math
import sys
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.unfold import NEAR, NO_LITERAL, BadTests, is_literal, literal, unfold

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_PREPARATION = (*_DEFINITIONS, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Pass)


class UnitTest(NamedTuple):
    """One test of a source."""

    prepare: str  # statements to execute first; may be empty
    source: str  # an expression; where kind is "run", statements that must not raise
    # "equal", "is", "in" or "near" the expected value, "true" as expected, or "run"; of a call
    # "json", equal to the expected value as JSON writes it, or "json in a list", also to its only
    # element
    kind: str
    expected: Any = None
    # for "near": the keywords of math.isclose, or "below" or "at most" with the limit of the
    # difference, and perhaps a share "of it" that may be larger
    tolerance: dict[str, float] | None = None
    # the source is a function, or a method of Solution, to be called with these
    arguments: list | None = None

    def __str__(self) -> str:
        return (
            self.source
            if self.arguments is None
            else f"{self.source}({', '.join(map(repr, self.arguments))})"
        )

    def holds(self, value: Any) -> bool:
        """Whether a value of plain types is what the test asks for. Raises where Python cannot
        compare the numbers.
        """
        if self.kind == "is":
            return value is self.expected
        if self.kind == "equal":
            return bool(value == self.expected)
        if self.kind.startswith("json"):
            value = json.loads(json.dumps(value))
            return bool(
                value == self.expected
                or (self.kind == "json in a list" and [value] == self.expected)
            )
        if self.kind == "in":
            return value in self.expected
        return _is_near(value, self.expected, self.tolerance or {})

    @property
    def told(self) -> str | None:
        """What the code could lie to, since it is compared beside it; None where it cannot see what
        is expected.
        """
        if self.kind == "run":
            return f"{type(ast.parse(self.source).body[0]).__name__.lower()} statement"
        if self.kind == "true":
            for node in ast.walk(ast.parse(self.source)):
                if isinstance(node, ast.Compare) and not isinstance(
                    node.ops[0], (ast.Is, ast.IsNot)
                ):
                    return "comparison without a literal"
        return None


def _is_near(value: Any, expected: Any, tolerance: dict[str, Any]) -> bool:
    if isinstance(expected, (list, tuple, dict)):
        if (
            isinstance(expected, dict)
            and isinstance(value, dict)
            and value.keys() == expected.keys()
        ):
            value, expected = [value[key] for key in expected], [*expected.values()]
        is_long = (
            isinstance(value, (list, tuple))
            and not isinstance(expected, dict)
            and len(value) == len(expected)
        )
        return is_long and all(
            _is_near(*pair, tolerance) for pair in zip(value, expected, strict=True)
        )
    if not isinstance(expected, (int, float, complex)):
        return bool(value == expected)
    if not isinstance(value, (int, float, complex, Fraction)):
        return False
    match tolerance:
        case {"below": most}:
            return abs(value - expected) < most
        case {"at most": most, "of it": share}:
            return bool(
                value == expected or abs(value - expected) <= max(most, share * abs(expected))
            )
        case {"at most": most}:
            return abs(value - expected) <= most
    return math.isclose(value, expected, **tolerance)  # type: ignore[arg-type]  # a complex number raises


@lru_cache(maxsize=64)  # all completions for a row have its tests, and a long source takes seconds
def read_source(
    source: str, candidate: str | None, packages: tuple[str, ...] = ()
) -> list[UnitTest]:
    """Read a source; a function ``check`` in it that it does not call itself is called with the
    `candidate`.

    Raises BadTests, saying what is wrong with the source. What it returns must not be changed.
    """
    units: list[UnitTest] = []
    prepare: list[ast.stmt] = []
    try:
        called = None if candidate is None else ast.parse(candidate, mode="eval").body
        for statement in unfold(ast.parse(source).body, called):
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
    except (*NO_LITERAL, AttributeError) as error:
        raise BadTests(f"tests are not valid Python: {type(error).__name__}: {error}") from None
    if not units:
        raise BadTests("tests contain no assert and no statement that does anything")
    foreign = (
        {name.partition(".")[0] for name in imported_modules(units)}
        - sys.stdlib_module_names
        - {*packages}
    )
    if foreign:
        raise BadTests(
            f"tests import {', '.join(sorted(foreign))}, which is not in the standard library"
        )
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


def _compared_outside(prepare: str, test: ast.expr) -> UnitTest | None:
    """The test of a comparison with a literal. Raises one of NO_LITERAL, or returns None, for what
    is none.
    """
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            expression, other = (left, right) if is_literal(right) else (right, left)
            expected = literal(other)
            if not isinstance(expected, range):  # which is no plain type
                return UnitTest(prepare, ast.unparse(expression), "equal", expected)
        case ast.Compare(left, [ast.In()], [right]):
            return UnitTest(prepare, ast.unparse(left), "in", literal(right))
        case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as expected)]):
            return UnitTest(prepare, ast.unparse(left), "is", expected)
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(expression, ast.Sub(), other)], []), [sign], [most]
        ):
            if isinstance(sign, (ast.Lt, ast.LtE)):
                tolerance = {"below" if isinstance(sign, ast.Lt) else "at most": _number(most)}
                return UnitTest(prepare, ast.unparse(expression), "near", _number(other), tolerance)
        case ast.Call(
            ast.Name("isclose") | ast.Attribute(ast.Name("math"), "isclose"),
            [expression, other],
            keywords,
        ):
            tolerance = {str(keyword.arg): _number(keyword.value) for keyword in keywords}
            if tolerance.keys() <= {"rel_tol", "abs_tol"}:
                return UnitTest(prepare, ast.unparse(expression), "near", _number(other), tolerance)
        case ast.Call(ast.Name(name), [expression, other, most, share]) if name == NEAR:
            tolerance = {"at most": literal(most), "of it": literal(share)}
            return UnitTest(prepare, ast.unparse(expression), "near", literal(other), tolerance)
    return None


def _unit_test(prepare: str, test: ast.expr) -> UnitTest:
    with suppress(*NO_LITERAL):
        if unit := _compared_outside(prepare, test):
            return unit
    wanted = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    return UnitTest(prepare, ast.unparse(test), "true", wanted)


def _number(node: ast.expr) -> float:
    value = literal(node)
    if not isinstance(value, (int, float)):
        raise ValueError("no number")
    return value
