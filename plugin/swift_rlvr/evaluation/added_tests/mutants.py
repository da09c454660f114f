"""Programs with one small fault each: what tests have to refuse (DeMillo et al. 1978).

A mutant is a reference with a change at one place: a comparison that is off by one, a branch that is
always taken, a sign, a constant, a statement that is left out. Tests that refuse such faults refuse most
that people make (Just et al. 2014). Some mutants do the same as the reference; no tests refuse those.
"""

import ast
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}


def mutants(source: str, most: int, rng: random.Random) -> list[str]:
    """Up to `most` mutants of a program, each once.

    >>> made = mutants("def f(x): return x > 0", 9, random.Random(0))
    >>> sorted(code.split("return ")[1] for code in made)
    ['x <= 0', 'x > -1', 'x > 1', 'x >= 0']
    """
    changes = []
    for index, node in enumerate(ast.walk(ast.parse(source))):
        for number, _ in enumerate(_changes(node)):
            changes.append((index, number))
    rng.shuffle(changes)
    made: dict[str, None] = {}
    for index, number in changes:
        if len(made) == most:
            break
        # A tree of its own for each: a change is made in place.
        tree = ast.parse(source)
        node = next(islice(ast.walk(tree), index, None))
        name, value = next(islice(_changes(node), number, None))
        setattr(node, name, value)
        made[ast.unparse(ast.fix_missing_locations(tree))] = None
    return list(made)


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Attributes of a node, each with another value that it may have."""
    match node:
        case ast.Compare(_, [operator, *others]):
            for other in _COMPARISONS[type(operator)]:
                yield "ops", [other(), *others]
        case ast.BoolOp(operator) | ast.BinOp(_, operator) | ast.AugAssign(_, operator):
            if type(operator) in _OPERATORS:
                yield "op", _OPERATORS[type(operator)]()
        case ast.UnaryOp(ast.USub()):
            yield "op", ast.UAdd()
        case ast.Constant(bool() as value):
            yield "value", not value
        case ast.Constant(int() | float() as value):
            yield "value", value + 1
            yield "value", value - 1
        case ast.Slice(lower, upper):
            if lower is not None:
                yield "lower", None
            if upper is not None:
                yield "upper", None
        case ast.If() | ast.IfExp():
            yield "test", ast.Constant(True)
            yield "test", ast.Constant(False)

    # A statement left out of a block. The body of a lambda or an `if` expression is no list.
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    for index, statement in enumerate(body):
        # Without others, such as an assignment, most programs end in a NameError, which any test refuses.
        match statement:
            case ast.AugAssign() | ast.Break() | ast.Continue() | ast.Expr(ast.Call()):
                yield "body", [*body[:index], ast.Pass(), *body[index + 1 :]]
