"""Calculations in words, one operation after another: what a model can imitate that writes from
left to right.
"""

import ast
from collections.abc import Callable
from fractions import Fraction

_LONGEST = 500  # characters of an expression
_OPERATIONS: dict[type[ast.operator], tuple[str, Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: ("+", Fraction.__add__),
    ast.Sub: ("-", Fraction.__sub__),
    ast.Mult: ("*", Fraction.__mul__),
    ast.Div: ("/", Fraction.__truediv__),
}


def calculation(expression: object) -> list[str]:
    """The steps to the value of an expression of whole numbers, + - * / and parentheses; none for
    anything else.

    >>> calculation("8 / (3 - 8 / 3)"), calculation("2 ** 3")
    (['8 / 3 = 8/3', '3 - (8/3) = 1/3', '8 / (1/3) = 24'], [])
    """
    steps: list[str] = []

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Fraction(node.value)
        if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
            raise ValueError
        sign, operation = _OPERATIONS[type(node.op)]
        left, right = value(node.left), value(node.right)
        x, y = (each if each.denominator == 1 else f"({each})" for each in (left, right))
        steps.append(f"{x} {sign} {y} = {operation(left, right)}")
        return operation(left, right)

    try:
        if isinstance(expression, str) and len(expression) <= _LONGEST:
            value(ast.parse(expression.strip(), mode="eval").body)
    except (ValueError, SyntaxError, ZeroDivisionError, RecursionError):
        return []
    return steps
