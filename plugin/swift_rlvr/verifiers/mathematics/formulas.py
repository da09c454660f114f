"""Formulas in Python's notation, as sympy writes them: is one an antiderivative of another, or the
same polynomial?

They are read by `ast` and computed by `numeric`; nothing of a text is run.
"""

import ast
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from swift_rlvr.verifiers.mathematics.functions import (
    Undefined,
    inexact,
    is_real,
    minus,
    one_thread,
    times,
)
from swift_rlvr.verifiers.mathematics.numeric import evaluate, same_value
from swift_rlvr.verifiers.mathematics.parser import Tree

_POINTS = (  # of them some are near 0, for arcsines, and some far away, for roots
    *(
        Fraction(hundredths, 100)
        for hundredths in (5, 13, -21, 37, -61, 83, -127, 131, 193, 257, -310, -430, 470)
    ),
    *(Fraction(tenths, 10) for tenths in (-61, 73, -97, 131, 173, -179, 299)),
)
_ENOUGH = 3  # points at which both sides are defined and real
_ANY = {"C": Fraction(0), "c": Fraction(0)}
_STEP = Fraction(1, 10**40)
_TOLERANCE = 1e-7
_MAX_DEGREE, _MAX_DIGITS, _MAX_DEPTH = 1000, 100, 200
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}
_CONSTANTS = {"E": "e", "e": "e", "pi": "pi"}
_SAME_NAMES = (
    "exp",
    "ln",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "sinh",
    "cosh",
    "tanh",
    "abs",
)
_OTHER_NAMES = {"log": "ln", "Abs": "abs", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_FUNCTIONS = dict(zip(_SAME_NAMES, _SAME_NAMES, strict=True)) | _OTHER_NAMES


def is_antiderivative(answer: str, integrand: str, variable: str) -> bool:
    """Whether the derivative of an answer is the integrand, at several points; `C` is any constant.

    >>> is_antiderivative("x*exp(x) - exp(x) + C", "x*exp(x)", "x"), is_antiderivative("x**2", "x", "x")
    (True, False)
    """
    sought, integrated = _read(answer), _read(integrand)
    if sought is None or integrated is None:
        return False
    agreeing = 0
    with one_thread():
        for point in _POINTS:
            try:
                low, high = (
                    evaluate(sought, {**_ANY, variable: point + step}) for step in (-_STEP, _STEP)
                )
                slope = times(minus(high, low), 1 / (2 * _STEP))
                value = evaluate(integrated, {variable: point})
                difference = inexact(minus(slope, value))
            except Undefined:  # outside the domain at this point, or another name in it
                continue
            if not (is_real(slope) and is_real(value)):
                continue
            if abs(difference) > _TOLERANCE * (1 + abs(inexact(value))):
                return False
            agreeing += 1
    return agreeing >= _ENOUGH


def same_polynomial(answer: str, gold: str) -> bool:
    """Whether an answer has the value of the gold and is a sum of monomials: no product of sums.

    >>> same_polynomial("2 + x*x", "x**2 + 2"), same_polynomial("(x + 1)*(x + 1)", "x**2 + 2*x + 1")
    (True, False)
    """
    first, second = (_read(text, _is_sum_of_monomials) for text in (answer, gold))
    return first is not None and second is not None and same_value(first, second)


def _read(text: str, accepted: Callable[[ast.expr], bool] = lambda node: True) -> Tree | None:
    """The tree of a formula; None for any other text, and for what is not accepted."""
    try:
        node = ast.parse(text.strip().replace("^", "**"), mode="eval").body
        return _tree(node, _MAX_DEPTH) if accepted(node) else None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return None


def _tree(node: Any, depth: int) -> Tree:
    if not depth:
        raise ValueError("too deep")
    depth -= 1
    match node:
        case ast.Constant() as constant if isinstance(constant.value, (int, float)):
            return ("number", Fraction(constant.value))
        case ast.Name(name):
            return ("constant", _CONSTANTS[name]) if name in _CONSTANTS else ("symbol", name)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _tree(operand, depth)
        case ast.UnaryOp(ast.USub(), operand):
            return ("*", ("number", Fraction(-1)), _tree(operand, depth))
        case ast.Call(ast.Name(name), [argument], []) if name in _FUNCTIONS:
            return (_FUNCTIONS[name], _tree(argument, depth))
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return (_OPERATORS[type(operator)], _tree(left, depth), _tree(right, depth))
    raise ValueError("no formula")


def _is_sum_of_monomials(node: Any) -> bool:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _is_sum_of_monomials(left) and _is_sum_of_monomials(right)
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            return _is_sum_of_monomials(operand)
    return _is_monomial(node)


def _is_monomial(node: Any) -> bool:
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            return _is_monomial(left) and _is_monomial(right)
        case ast.BinOp(left, ast.Div(), divisor):
            return _is_monomial(left) and _is_whole(divisor, 10**_MAX_DIGITS)
        case ast.BinOp(ast.Name(), ast.Pow(), exponent):
            return _is_whole(exponent, _MAX_DEGREE)
        case ast.UnaryOp(ast.USub(), operand):
            return _is_monomial(operand)
    return isinstance(node, ast.Name) or _is_whole(node, 10**_MAX_DIGITS)


def _is_whole(node: Any, largest: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value <= largest
