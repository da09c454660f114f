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

# The points at which a derivative is compared. Some are near 0, for arcsines, and some far away,
# for roots.
_HUNDREDTHS = (5, 13, -21, 37, -61, 83, -127, 131, 193, 257, -310, -430, 470)
_TENTHS = (-61, 73, -97, 131, 173, -179, 299)
_POINTS = (
    *(Fraction(hundredths, 100) for hundredths in _HUNDREDTHS),
    *(Fraction(tenths, 10) for tenths in _TENTHS),
)
# points at which both sides are defined and real
_ENOUGH = 3
# of the derivative, which is exact to 60 digits then
_STEP = Fraction(1, 10**40)
# relative: an answer may have decimals, 0.333333333*x**3
_TOLERANCE = 1e-7
# The constant of integration may have any value.
_CONSTANT_OF_INTEGRATION = {"C": Fraction(0), "c": Fraction(0)}

# The largest exponents, numbers and nesting that are read.
_MAX_DEGREE = 1000
_MAX_DIGITS = 100
_MAX_DEPTH = 200

# From Python's names to those of `parser`: x**2 is x ^ 2, E is e, asin(x) is arcsin(x).
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}
_CONSTANTS = {"E": "e", "e": "e", "pi": "pi"}
_SAME_NAMES = "exp ln sqrt sin cos tan cot sec csc sinh cosh tanh abs"
_OTHER_NAMES = {"log": "ln", "Abs": "abs", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
_FUNCTIONS = {name: name for name in _SAME_NAMES.split()} | _OTHER_NAMES


def is_antiderivative(answer: str, integrand: str, variable: str) -> bool:
    """Whether the derivative of an answer is the integrand, at several points; `C` is any constant.

    >>> is_antiderivative("x*exp(x) - exp(x) + C", "x*exp(x)", "x"), is_antiderivative("x**2", "x", "x")
    (True, False)
    """
    answer_tree = _read(answer)
    integrand_tree = _read(integrand)
    if answer_tree is None or integrand_tree is None:
        return False
    agreed = 0
    with one_thread():
        for point in _POINTS:
            try:
                low = evaluate(answer_tree, {**_CONSTANT_OF_INTEGRATION, variable: point - _STEP})
                high = evaluate(answer_tree, {**_CONSTANT_OF_INTEGRATION, variable: point + _STEP})
                slope = times(minus(high, low), 1 / (2 * _STEP))
                value = evaluate(integrand_tree, {variable: point})
                difference = inexact(minus(slope, value))
            except Undefined:  # outside the domain at this point, or another name in it
                continue
            if not (is_real(slope) and is_real(value)):
                continue
            if abs(difference) > _TOLERANCE * (1 + abs(inexact(value))):
                return False
            agreed += 1
    return agreed >= _ENOUGH


def same_polynomial(answer: str, gold: str) -> bool:
    """Whether an answer has the value of the gold and is a sum of monomials: no product of sums.

    >>> same_polynomial("2 + x*x", "x**2 + 2"), same_polynomial("(x + 1)*(x + 1)", "x**2 + 2*x + 1")
    (True, False)
    """
    answer_tree = _read(answer, _is_sum_of_monomials)
    gold_tree = _read(gold, _is_sum_of_monomials)
    if answer_tree is None or gold_tree is None:
        return False
    return same_value(answer_tree, gold_tree)


def _read(text: str, accepted: Callable[[ast.expr], bool] = lambda node: True) -> Tree | None:
    """The tree of a formula. Returns None for any other text, and for what is not accepted."""
    try:
        node = ast.parse(text.strip().replace("^", "**"), mode="eval").body
        return _tree(node, _MAX_DEPTH) if accepted(node) else None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        return None


def _tree(node: Any, depth: int) -> Tree:
    """The tree of a node of Python's. Raises ValueError for what is no formula, or too deep."""
    if not depth:
        raise ValueError("too deep")
    depth -= 1
    match node:
        case ast.Constant() as constant if isinstance(constant.value, (int, float)):
            return ("number", Fraction(constant.value))
        case ast.Name(name) if name in _CONSTANTS:
            return ("constant", _CONSTANTS[name])
        case ast.Name(name):
            return ("symbol", name)
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
