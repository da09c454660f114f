"""Expressions: what is read as one, and that two of them are equal exactly where their values
are.
"""

import operator
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swift_rlvr.verifiers.mathematics.comparison import same
from swift_rlvr.verifiers.mathematics.notation import clean
from swift_rlvr.verifiers.mathematics.numeric import constant_value
from swift_rlvr.verifiers.mathematics.parser import MAX_CHARS, read_expression
from swift_rlvr.verifiers.mathematics.reading import read


def equal(first: str, second: str) -> bool:
    """The verdict, which has to be the same the other way."""
    one, other = read(first), read(second)
    assert one is not None and other is not None, (first, second)
    assert same(one, other) is same(other, one)
    return same(one, other)


EQUAL = [
    (r"\sqrt{4}", "2", "a root that is rational"),
    (r"\sqrt{-4}", "2i", "a negative radicand"),
    (r"\sqrt{-2}\sqrt{-3}", r"-\sqrt{6}", "not sqrt(6): each root is i times another"),
    (r"\sqrt{-2}\sqrt{-2}", "-2", "the same twice"),
    ("i^3", "-i", "i cubed"),
    (r"\frac{1}{i}", "-i", "i in the denominator"),
    (r"(1+i)^4", "-4", "a power of a complex number"),
    (r"\sqrt{72}", r"6\sqrt{2}", "a square under the root"),
    (r"\sqrt{\frac{5}{2}}", r"\frac{\sqrt{10}}{2}", "a fraction under the root"),
    (r"\sqrt{0.25}", "0.5", "a decimal under the root"),
    (r"\frac{1}{\sqrt{2}-1}", r"\sqrt{2}+1", "denominator made rational"),
    (r"(\sqrt{2}+\sqrt{3})^2", r"5+2\sqrt{6}", "mixed roots"),
    (r"\sqrt{3+2\sqrt2}", r"1+\sqrt2", "a root in a root"),
    (r"\sqrt[3]{-27}", "-3", "a cube root of a negative number"),
    (r"\sqrt[4]{\frac{16}{81}}", r"\frac23", "a fourth root of a fraction"),
    ("8^{1/2}", r"2\sqrt2", "a half as exponent"),
    (r"4^{-1/2}", r"\frac{1}{2}", "minus a half"),
    ("-2^2", "-4", "the sign is outside of the power"),
    ("(-2)^2", "4", "the sign is inside"),
    ("2^3^2", "512", "powers from the right"),
    (r"5 \cdot -2", "-10", "a sign after a product"),
    ("5!", "120", "factorial"),
    ("(3!)!", "720", "factorial of a factorial"),
    (r"\binom{10}{3}", "120", "binomial coefficient"),
    (r"\binom{n}{2}", r"\frac{n(n-1)}{2}", "binomial coefficient of a variable"),
    (r"n! \cdot (n+1)", "(n+1)!", "factorials of a variable"),
    (r"\sum_{k=1}^{10} k^2", "385", "a sum"),
    (r"\prod_{k=1}^{5} k", "5!", "a product"),
    (r"\sum_{k=1}^{n} k", r"\sum_{k=1}^{n} k", "a sum that is not evaluated"),
    (r"\frac{6\pi}{11}", r"\frac{6}{11}\pi", "pi inside and outside"),
    ("π/4", r"\frac{\pi}{4}", "the letter pi"),
    (r"2\pi e", r"e\cdot\pi\cdot2", "pi and e"),
    (r"\frac{x^2-1}{x-1}", "x+1", "not reduced"),
    (r"\frac{1}{x}-\frac{1}{x+1}", r"\frac{1}{x(x+1)}", "partial fractions"),
    ("(x+1)^3", "x^3+3x^2+3x+1", "expanded"),
    ("x_1x_2", "x_{2}x_{1}", "subscripts"),
    (r"\alpha\beta", r"\beta \alpha", "Greek letters"),
    (r"\sin^2 x + \cos^2 x", "1", "powers behind the names"),
    (r"\sin 2x", r"2\sin x\cos x", "a double angle"),
    (r"\sin^{-1} x", r"\arcsin x", "minus one behind a name is the inverse"),
    (r"\tan 45^\circ", "1", "degrees"),
    (r"\log_3 x", r"\frac{\ln x}{\ln 3}", "another base"),
    (r"\log 100", "2", "a bare logarithm to base 10"),
    (r"\log e", "1", "or to base e"),
    (r"e^{\ln x}", "x", "inverse functions"),
    (r"|x|", r"\sqrt{x^2}", "absolute value"),
    (r"\lfloor \pi \rfloor", "3", "floor"),
    (r"\max(2, 5)", "5", "largest"),
    ("f(x)+f(y)", "f(y)+f(x)", "an unknown function"),
    ("x=5", "5=x", "sides swapped"),
    ("y=2x+1", "2x-y+1=0", "another form of the line"),
    ("y=2x+1", "4x+2=2y", "a multiple"),
    ("x^2+y^2=25", "2x^2+2y^2=50", "a multiple of a circle"),
    ("x+3=y", "9+3x=3y", "a multiple, which is zero at a point where it is evaluated"),
]
DIFFERENT = [
    (r"\sqrt{2}", "1.414213562", "nine places of a root"),
    (r"\pi", r"\frac{355}{113}", "six places of pi"),
    (r"\sqrt{-4}", "-2i", "the other root"),
    (r"\sqrt{-2}\sqrt{-3}", r"\sqrt{6}", "roots of negative numbers do not multiply so"),
    ("x", r"\sqrt{x^2}", "not for negative x"),
    ("x", "y", "another variable"),
    ("x", "x_1", "a subscript more"),
    ("x", "x'", "a prime more"),
    ("x", "X", "upper case"),
    ("x", "1", "a variable is no number"),
    ("e", "x", "e is a number"),
    (r"\frac{a+b}{2}", r"a+\frac{b}{2}", "a fraction split wrongly"),
    ("2^{3^2}", "(2^3)^2", "powers from the left"),
    (r"\sin 2x", r"\sin 2 \cdot x", "where an argument ends"),
    (r"\sin x^2", r"\sin^2 x", "what is squared"),
    (r"\sin^{-1} x", r"\frac{1}{\sin x}", "the inverse is not the reciprocal"),
    (r"\log_3 x", r"\log_x 3", "base and argument swapped"),
    (r"\log x", r"\log_2 x", "a bare logarithm has base e or 10"),
    ("f(x)", "f(y)", "another argument"),
    ("f(x)", "g(x)", "another function"),
    (r"f(x+1)", "f(x)+1", "where an argument ends"),
    (r"\gcd(k, p-1)", r"\gcd(k, p+1)", "a sign within an argument"),
    (r"\sum_{k=1}^{n} k", r"\sum_{k=1}^{n} k^2", "another term of a sum"),
    (r"\sum_{k=1}^{n} k", r"\sum_{k=0}^{n+1} k", "another end of a sum"),
    (r"10^{-30}", r"2 \cdot 10^{-30}", "small numbers"),
    (r"e^{-200}", r"e^{-201}", "small numbers that are not rational"),
    (r"\sqrt{10^{50}+1}", r"\sqrt{10^{50}}", "large numbers that differ in the 50th digit"),
    (r"\sin(10^{-20})", r"10^{-20}", "equal to 40 digits"),
    (r"\frac{1}{0}", r"\frac{2}{0}", "no value on either side"),
    (r"\frac{1}{x-x}", r"\frac{2}{x-x}", "no value anywhere"),
    ("x=5", "x=6", "another value"),
    ("x=5", "x=x", "always true"),
    ("x=5", "0=0", "always true"),
    ("x=5", "3x+2=17", "the question, not its solution"),
    ("2x=10", "x=5", "nor is a gold that asks for the equation"),
    ("y=2x+1", "y=2x-1", "another line"),
    ("y=2x+1", "x=2y+1", "variables swapped"),
    ("x^2+1=0", "x^2+2=0", "no real solution"),
    ("(x-1)(x-2)=0", "(x-1)^2(x-2)=0", "the same solutions, but another curve: conservative"),
]
NO_EXPRESSION = [
    "", " ", "=", "x=", "=5", "5+", "+", "()", "(5", "5)", "[5)", "{", r"\frac", r"\frac{1}", r"\sqrt", "x^", "x_",
    "5,6", "1,23", "1..2", "…", "五", "\ud800",  # not all of it is there, or not one expression
    # read in two ways
    "1/2/3x", "x/yz", "a/bc", "3^2!", "5!!", "{5}{2}", r"x\frac", "x2", "2 3", "x 2",
    "the answer", "a or b", "(A) or (B)", "x if y", "f^{(3)}(2)", "101_2", r"\foo{5}", r"\input{x}", r"\def\x{5}\x",
]  # fmt: skip


@pytest.mark.parametrize("first, second, why", EQUAL, ids=[f"{row[2]}-{row[0]}" for row in EQUAL])
def test_equal(first, second, why):
    assert equal(first, second) is True


@pytest.mark.parametrize(
    "first, second, why", DIFFERENT, ids=[f"{row[2]}-{row[0]}" for row in DIFFERENT]
)
def test_different(first, second, why):
    assert equal(first, second) is False


@pytest.mark.parametrize("text", NO_EXPRESSION)
def test_what_is_no_expression_or_is_read_in_two_ways(text):
    assert read_expression(clean(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "1/0",
        r"\frac{0}{0}",
        "0^0",
        "0^{-1}",
        r"\ln 0",
        r"\infty",
        "9^{9^{9^9}}",
        "((100!)!)!",
        "(-1)!",
    ],
)
def test_expressions_without_a_value(text):
    tree = read_expression(clean(text))
    assert tree is not None and constant_value(tree) is None


def test_texts_over_the_limit_are_not_read():
    assert read_expression("1" * MAX_CHARS) is not None
    assert read_expression("1" * (MAX_CHARS + 1)) is None
    assert read_expression("(" * 20 + "x" + ")" * 20) is not None
    assert read_expression("(" * 100 + "x" + ")" * 100) is None
    assert (
        read_expression("+".join("x" * 100)) is not None
        or read_expression("+".join("x" * 50)) is not None
    )
    assert read_expression("+".join("x" * 500)) is None


# --- random expressions, as trees, in two ways of writing. Their values are computed here, in
# fractions.

NUMBERS = st.integers(-9, 9).map(lambda number: ("number", number))
LEAVES = st.one_of(NUMBERS, st.sampled_from(["x", "y"]).map(lambda name: ("symbol", name)))
POINTS = [
    {"x": Fraction(a, 9973), "y": Fraction(b, 7919)}
    for a, b in ((31337, 2718), (-4711, 16180), (50021, -31415))
]
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def grow(trees):
    return st.one_of(
        st.tuples(st.sampled_from("+-*"), trees, trees),
        st.tuples(st.just("/"), trees, trees),
        st.tuples(st.just("^"), trees, st.integers(2, 3)),
    )


def grow_irrational(trees):
    functions = st.sampled_from([r"\sin", r"\cos", r"\arctan", r"\sqrt", r"\ln", "e^"])
    return st.one_of(grow(trees), st.tuples(st.just("function"), functions, trees))


RATIONAL = st.recursive(LEAVES, grow, max_leaves=6)
IRRATIONAL = st.recursive(
    st.one_of(LEAVES, st.just(("constant", r"\pi"))), grow_irrational, max_leaves=6
)


def write(tree, plain: bool) -> str:
    r"""In LaTeX, or with slashes and with the terms and factors in another order."""
    kind, *parts = tree
    if kind in ("number", "symbol", "constant"):
        return f"({parts[0]})" if str(parts[0]).startswith("-") else f"{parts[0]} "
    if kind == "function":
        name, argument = parts[0], write(parts[1], plain)
        if name in (r"\sqrt", r"\ln"):  # of something positive
            argument = rf"{argument}\cdot {argument}+1" if plain else f"1 + ({argument})^2"
        if name == r"\sqrt":
            return f"({argument})^(1/2)" if plain else rf"\sqrt{{{argument}}}"
        if name == "e^":
            return rf"\exp({argument})" if plain else f"e^{{{argument}}}"
        return f"{name.removeprefix(chr(92)) if plain else name}({argument})"
    first, second = (write(part, plain) if isinstance(part, tuple) else part for part in parts)
    if kind == "^":
        return (
            "*".join([f"({first})"] * int(second))
            if plain
            else rf"\left({first}\right)^{{{second}}}"
        )
    if kind == "/":
        return f"(({first})/({second}))" if plain else rf"\frac{{{first}}}{{{second}}}"
    if kind == "-":
        return f"(-({second}) + {first})" if plain else f"({first} - ({second}))"
    if kind == "+":
        return f"({second} + {first})" if plain else f"({first} + {second})"
    return f"({second})({first})" if plain else rf"({first}) \cdot ({second})"


def value(tree, point) -> Fraction | None:
    kind, *parts = tree
    if kind == "number":
        return Fraction(parts[0])
    if kind == "symbol":
        return point[parts[0]]
    first, second = (value(part, point) if isinstance(part, tuple) else part for part in parts)
    if first is None or second is None or (kind == "/" and second == 0):
        return None
    return Fraction(first**second) if kind == "^" else OPERATIONS[kind](first, second)


def changed(tree, place: list[int]):
    """The tree with the number at a place, counted from the left, larger by one."""
    kind, *parts = tree
    if kind == "number":
        place[0] -= 1
        return (kind, parts[0] + 1) if place[0] == -1 else tree
    return (kind, *(changed(part, place) if isinstance(part, tuple) else part for part in parts))


@settings(max_examples=400, derandomize=True)
@given(RATIONAL, RATIONAL, st.integers(0, 4))
def test_rational_functions_are_equal_where_their_values_are(tree, other, place):
    values = [value(tree, point) for point in POINTS]
    assume(None not in values)
    assert equal(write(tree, plain=False), write(tree, plain=True))
    for each in (other, changed(tree, [place])):
        expected = [value(each, point) for point in POINTS]
        if None not in expected:
            assert equal(write(tree, plain=False), write(each, plain=True)) is (values == expected)


@settings(max_examples=200, derandomize=True)
@given(IRRATIONAL, st.integers(1, 9), st.integers(1, 9))
def test_other_expressions_in_two_ways(tree, first, second):
    text = write(tree, plain=False)
    assume(equal(text, rf"{text} + 0 \cdot x"))  # it has a value
    assert equal(text, write(tree, plain=True))
    assert equal(f"{text} + {first}", f"{second} + {write(tree, plain=True)}") is (first == second)


COEFFICIENTS = st.integers(-9, 9)
FACTORS = st.lists(st.tuples(COEFFICIENTS.filter(bool), COEFFICIENTS), min_size=1, max_size=4)


def expanded(factors) -> list[int]:
    """The coefficients of a product of ax + b, that of 1 first."""
    result = [1]
    for a, b in factors:
        result = [a * low + b * high for low, high in zip([0, *result], [*result, 0], strict=True)]
    return result


def polynomial(coefficients) -> str:
    return " + ".join(
        f"({number})x^{{{power}}}" for power, number in enumerate(coefficients)
    ).replace("x^{0}", "")


@settings(max_examples=150, derandomize=True)
@given(FACTORS, st.integers(0, 4), st.sampled_from([-2, -1, 1, 3]))
def test_polynomials_factored_and_expanded(factors, place, step):
    product = "".join(f"({a}x + ({b}))" for a, b in factors)
    coefficients = expanded(factors)
    assert equal(product, polynomial(coefficients))
    assert equal(f"{product} = y", f"{polynomial([3 * number for number in coefficients])} = 3y")
    coefficients[place % len(coefficients)] += step
    assert not equal(product, polynomial(coefficients))
    assert not equal(f"{product} = y", f"{polynomial(coefficients)} = y")


@settings(max_examples=150, derandomize=True)
@given(st.integers(1, 40), st.integers(2, 40), st.integers(1, 40))
def test_roots_and_logarithms_of_whole_numbers(a, b, other):
    assert equal(rf"\sqrt{{{a * a * b}}}", rf"{a}\sqrt{{{b}}}")
    assert equal(rf"\frac{{{a}}}{{\sqrt{{{b}}}}}", rf"\frac{{{a}\sqrt{{{b}}}}}{{{b}}}")
    assert equal(rf"\sqrt[3]{{{a**3 * b}}}", rf"{a}\sqrt[3]{{{b}}}")
    assert equal(rf"\ln {a * b}", rf"\ln {a} + \ln {b}")
    assert equal(rf"\log_{{{b}}} {b**3}", "3")
    assert equal(rf"\sqrt{{{a * a * b}}}", rf"{other}\sqrt{{{b}}}") is (a == other)
    assert equal(rf"\ln {a * b}", rf"\ln {other} + \ln {b}") is (a == other)


@settings(max_examples=60, derandomize=True)
@given(RATIONAL, st.sampled_from(["expand", "together", "factor"]))
def test_what_sympy_writes(tree, change):
    sympy = pytest.importorskip("sympy")
    assume(all(value(tree, point) is not None for point in POINTS))
    names = {"x": sympy.Symbol("x"), "y": sympy.Symbol("y")}

    def of(part):
        kind, *parts = part
        if kind == "number":
            return sympy.Integer(parts[0])
        if kind == "symbol":
            return names[parts[0]]
        values = [of(each) if isinstance(each, tuple) else each for each in parts]
        return values[0] ** values[1] if kind == "^" else OPERATIONS[kind](*values)

    text = sympy.latex(getattr(sympy, change)(of(tree)))
    assert equal(write(tree, plain=False), text)
