"""Expressions of the algebra tasks, read without running them: an integral is checked by its derivative, a product of
polynomials by its coefficients.

reasoning-gym hands the model's text to `sympy.parse_expr`, which is `eval`. Here it is parsed by `ast`, and only
numbers, the four operators, powers, the variable, the constants and a list of functions are computed with.
"""

import ast
import cmath
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

_POINTS = (0.37, 0.83, 1.31, 1.93, 2.57, -0.61, -1.27)
_ENOUGH = 3  # points at which both sides can be computed
_TOLERANCE = 1e-7
_MOST_DEGREE, _MOST_DIGITS = 1000, 100
Dual = tuple[complex, complex]  # a value and its derivative


class Unreadable(ValueError):
    """A text that is not an expression of the accepted kind, or that cannot be computed."""


def is_antiderivative(answer: str, integrand: str, variable: str) -> bool:
    """Whether the derivative of an answer is the integrand, at several points; `C` is any constant.

    >>> is_antiderivative("x*exp(x) - exp(x) + C", "x*exp(x)", "x"), is_antiderivative("x**2", "x", "x")
    (True, False)
    """
    try:
        sought, given = _tree(answer), _tree(integrand)
    except Unreadable:
        return False
    agreeing = 0
    for point in _POINTS:
        try:
            derivative = _dual(sought, variable, complex(point))[1]
            value = _dual(given, variable, complex(point))[0]
        except (ArithmeticError, Unreadable):  # outside the domain at this point, or another name in it
            continue
        if not (cmath.isfinite(derivative) and cmath.isfinite(value)):
            continue
        if abs(derivative - value) > _TOLERANCE * (1 + abs(value)):
            return False
        agreeing += 1
    return agreeing >= _ENOUGH


def same_polynomial(answer: str, gold: str) -> bool:
    """Whether an answer is a sum of the same monomials as the gold; a product of sums is not multiplied out.

    >>> same_polynomial("2 + x*x", "x**2 + 2"), same_polynomial("(x + 1)*(x + 1)", "x**2 + 2*x + 1")
    (True, False)
    """
    try:
        return _sum(_tree(answer)) == _sum(_tree(gold))
    except Unreadable:
        return False


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unreadable(text[:100]) from None


def _sum(node: Any) -> dict[tuple[tuple[str, int], ...], Fraction]:
    """Coefficients by monomial, without zeros."""
    terms: dict[tuple[tuple[str, int], ...], Fraction] = {}
    todo: list[tuple[Any, int]] = [(node, 1)]
    while todo:
        each, sign = todo.pop()
        match each:
            case ast.BinOp(left, ast.Add(), right):
                todo += [(left, sign), (right, sign)]
            case ast.BinOp(left, ast.Sub(), right):
                todo += [(left, sign), (right, -sign)]
            case ast.UnaryOp(ast.USub(), operand):
                todo.append((operand, -sign))
            case ast.UnaryOp(ast.UAdd(), operand):
                todo.append((operand, sign))
            case _:
                coefficient, powers = _monomial(each)
                key = tuple(sorted((name, power) for name, power in powers.items() if power))
                terms[key] = terms.get(key, Fraction()) + sign * coefficient
    return {key: value for key, value in terms.items() if value}


def _monomial(node: ast.expr) -> tuple[Fraction, Counter[str]]:
    coefficient, powers = Fraction(1), Counter[str]()
    todo = [node]
    while todo:
        match todo.pop():
            case ast.BinOp(left, ast.Mult(), right):
                todo += [left, right]
            case ast.BinOp(left, ast.Div(), ast.Constant() as divisor) if _whole(divisor):
                coefficient /= _whole(divisor)
                todo.append(left)
            case ast.UnaryOp(ast.USub(), operand):
                coefficient = -coefficient
                todo.append(operand)
            case ast.BinOp(ast.Name(name), ast.Pow(), ast.Constant() as power) if _whole(power) <= _MOST_DEGREE:
                powers[name] += _whole(power)
            case ast.Name(name):
                powers[name] += 1
            case ast.Constant() as constant:
                coefficient *= _whole(constant)
            case _:
                raise Unreadable("no monomial")
    return coefficient, powers


def _whole(constant: ast.Constant) -> int:
    if type(constant.value) is int and constant.value < 10**_MOST_DIGITS:
        return constant.value
    raise Unreadable("no whole number")


def _dual(node: Any, variable: str, point: complex) -> Dual:
    """Value and derivative of an expression at a point."""
    match node:
        case ast.Constant() as constant if isinstance(constant.value, (int, float)):
            return complex(constant.value), 0j
        case ast.Name(name) if name == variable:
            return point, 1 + 0j
        case ast.Name("C" | "c"):
            return 0j, 0j
        case ast.Name("E" | "e"):
            return complex(math.e), 0j
        case ast.Name("pi"):
            return complex(math.pi), 0j
        case ast.UnaryOp(ast.UAdd(), operand):
            return _dual(operand, variable, point)
        case ast.UnaryOp(ast.USub(), operand):
            value, slope = _dual(operand, variable, point)
            return -value, -slope
        case ast.Call(ast.Name(name), [argument], []) if name in _FUNCTIONS:
            value, slope = _dual(argument, variable, point)
            result, factor = _FUNCTIONS[name](value)
            return result, factor * slope
        case ast.BinOp(left, operator, right):
            return _combine(operator, _dual(left, variable, point), _dual(right, variable, point))
    raise Unreadable(ast.dump(node)[:100])


def _combine(operator: ast.operator, left: Dual, right: Dual) -> Dual:
    (a, da), (b, db) = left, right
    match operator:
        case ast.Add():
            return a + b, da + db
        case ast.Sub():
            return a - b, da - db
        case ast.Mult():
            return a * b, da * b + a * db
        case ast.Div():
            return a / b, (da * b - a * db) / (b * b)
        case ast.Pow():
            value = a**b
            slope = b * a ** (b - 1) * da if b and da else 0j
            return value, slope + (value * cmath.log(a) * db if db else 0j)
    raise Unreadable(type(operator).__name__)


def _modulus(x: complex) -> Dual:
    return complex(abs(x)), complex(math.copysign(1.0, x.real))


_FUNCTIONS: dict[str, Callable[[complex], Dual]] = {
    "exp": lambda x: (cmath.exp(x), cmath.exp(x)),
    "log": lambda x: (cmath.log(x), 1 / x),
    "ln": lambda x: (cmath.log(x), 1 / x),
    "sqrt": lambda x: (cmath.sqrt(x), 0.5 / cmath.sqrt(x)),
    "sin": lambda x: (cmath.sin(x), cmath.cos(x)),
    "cos": lambda x: (cmath.cos(x), -cmath.sin(x)),
    "tan": lambda x: (cmath.tan(x), 1 + cmath.tan(x) ** 2),
    "cot": lambda x: (1 / cmath.tan(x), -1 - 1 / cmath.tan(x) ** 2),
    "sec": lambda x: (1 / cmath.cos(x), cmath.tan(x) / cmath.cos(x)),
    "csc": lambda x: (1 / cmath.sin(x), -1 / (cmath.tan(x) * cmath.sin(x))),
    "asin": lambda x: (cmath.asin(x), 1 / cmath.sqrt(1 - x * x)),
    "acos": lambda x: (cmath.acos(x), -1 / cmath.sqrt(1 - x * x)),
    "atan": lambda x: (cmath.atan(x), 1 / (1 + x * x)),
    "sinh": lambda x: (cmath.sinh(x), cmath.cosh(x)),
    "cosh": lambda x: (cmath.cosh(x), cmath.sinh(x)),
    "tanh": lambda x: (cmath.tanh(x), 1 - cmath.tanh(x) ** 2),
    "Abs": _modulus,
    "abs": _modulus,
}
