"""Exact comparison of formulas: it agrees with sympy in both directions, says None where people differ, stays quick."""

import pytest
import sympy
from hangs import done_within
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.math_answers.formulas import Equation, same_formula
from swift_rlvr.math_answers.parser import read_formula

SYMBOLS = {"x": sympy.Symbol("x"), "y": sympy.Symbol("y"), "pi": sympy.pi, "e": sympy.E, "i": sympy.I}


def verdict(first: str, second: str) -> bool | None:
    formulas = read_formula(first), read_formula(second)
    return None if None in formulas else same_formula(*formulas)


EQUAL = [
    (r"\sqrt{4}", "2", "a root that is rational"),
    (r"\sqrt{-4}", "2i", "a negative radicand"),
    (r"\sqrt{-2}\sqrt{-3}", r"-\sqrt{6}", "not sqrt(6): each root is i times another"),
    (r"\sqrt{-2}\sqrt{-2}", "-2", "the same twice"),
    ("i^2", "-1", "i squared"),
    ("i^3", "-i", "i cubed"),
    (r"\frac{1}{i}", "-i", "i in the denominator"),
    (r"(1+i)^4", "-4", "a power of a complex number"),
    (r"\sqrt{72}", r"6\sqrt{2}", "a square under the root"),
    (r"\sqrt{\frac{5}{2}}", r"\frac{\sqrt{10}}{2}", "a fraction under the root"),
    (r"\sqrt{0.25}", "0.5", "a decimal under the root"),
    (r"\frac{1}{\sqrt{2}-1}", r"\sqrt{2}+1", "denominator made rational"),
    (r"(\sqrt{2}+\sqrt{3})^2", r"5+2\sqrt{6}", "mixed roots"),
    (r"\sqrt[3]{-27}", "-3", "a cube root"),
    (r"\sqrt[4]{\frac{16}{81}}", r"\frac23", "a fourth root of a fraction"),
    ("8^{1/2}", r"2\sqrt2", "a half as exponent"),
    (r"4^{-1/2}", r"\frac{1}{2}", "minus a half"),
    ("-2^2", "-4", "the sign is outside of the power"),
    ("(-2)^2", "4", "the sign is inside"),
    ("--5", "5", "two signs"),
    (r"5 \cdot -2", "-10", "a sign after a product"),
    ("5!", "120", "factorial"),
    ("(3!)!", "720", "factorial of a factorial"),
    (r"\binom{10}{3}", "120", "binomial coefficient"),
    (r"\frac{6\pi}{11}", r"\frac{6}{11}\pi", "pi inside and outside"),
    ("π/4", r"\frac{\pi}{4}", "the letter pi"),
    (r"2\pi e", r"e\cdot\pi\cdot2", "pi and e"),
    (r"\frac{x^2-1}{x-1}", "x+1", "not reduced"),
    (r"\frac{1}{x}-\frac{1}{x+1}", r"\frac{1}{x(x+1)}", "partial fractions"),
    ("(x+1)^3", "x^3+3x^2+3x+1", "expanded"),
    ("x_1x_2", "x_{2}x_{1}", "subscripts"),
    (r"\alpha\beta", r"\beta \alpha", "Greek letters"),
    ("x=5", "5", "assignment and value"),
    ("5", "x=5", "value and assignment"),
    ("x=5", "5=x", "sides swapped"),
    ("y=2x+1", "2x-y+1=0", "another form of the line"),
    ("y=2x+1", "4x+2=2y", "a multiple"),
    ("x^2+y^2=25", "2x^2+2y^2=50", "a multiple of a circle"),
    ("f=x", "x", "a name of something"),
]
DIFFERENT = [
    (r"\sqrt{2}", "1.41421356237", "eleven digits of a root"),
    (r"\pi", r"\frac{355}{113}", "six digits of pi"),
    (r"\sqrt{-4}", "-2i", "the other root"),
    (r"\sqrt{-2}\sqrt{-3}", r"\sqrt{6}", "roots of negatives do not multiply so"),
    ("x", "y", "another variable"),
    ("x", "x_1", "a subscript more"),
    ("x", "1", "a variable is no number"),
    ("e", "x", "e is a number"),
    (r"\frac{a+b}{2}", r"a+\frac{b}{2}", "a fraction split wrongly"),
    ("x=5", "y=5", "another variable"),
    ("x=5", "x=6", "another value"),
    ("x=5", "x=x", "always true"),
    ("x=5", "0=0", "always true"),
    ("x=5", "3x+2=17", "the question, not its solution"),
    ("x=5", "2x=10", "a multiple is not solved"),
    ("2x=10", "x=5", "nor is a gold that asks for the equation"),
    ("y=2x+1", "y=2x-1", "another line"),
    ("y=2x+1", "x=2y+1", "variables swapped"),
    ("y=2x+1", "2x", "another right side"),
]
NO_FORMULA = [
    "", " ", "=", "x=", "=5", "1=2=3",  # nothing, half an equation, a chain
    "1/2x", r"1 \div 2x", "1/2(3)",  # read in two ways
    "f(x)", "g(2)", "P(x)",  # a function or a product
    r"2\frac12x", r"2 \frac{1}{2}x", r"2  \frac{1}{2}", r"2\dfrac{1}{2}",  # mixed numbers
    "3^2!", "5!!", "3!!", "2^3^4", "(-1)!", "(1/2)!", "101!",
    r"\sin x", r"\ln 2", r"\log_2 8", "sin x", "|x|", r"\lfloor x \rfloor", r"\sqrt{x}", r"\sqrt[3]{2}", r"x^y", "e^x",
    "east", "the answer", "a or b", "(A) or (B)", "x if y", "x2", "2 3", r"\frac{1}{0}", r"\frac{1}{x-x}",
    r"\frac{0}{0}", "1/0", "0^0", "0^{-1}",
    "5+", "+", "()", "(5", "5)", "[5)", "{", r"\frac", r"\frac{1}", r"\sqrt", "x^", "x_", "5,6", "5%", "1,23", "1..2",
    r"\binom{3}{5}", r"\binom{1/2}{1}", r"\infty", "…", "五", "x\0", "\ud800", "1/2/3x",
]  # fmt: skip
HOSTILE = [
    "(x+y+z+u+v+w+a+b)^40", "(x+y)^{40}(z+w)^{40}", "((x+1)^{20}+y)^{20}", "9^{9^9}", "9^{9^{9^9}}", "2^{2000}",
    "(1+1)^{99999}", "1.0000000001^{99999}", "100!^2", "100!" + r"\cdot 100!" * 20, "((100!)!)!", r"\sqrt{99999999999}",
    r"\sqrt{999983}" * 16, r"\frac{1}{" * 20 + "x" + "}" * 20, r"\frac{" * 25, "-" * 200, "+-" * 100, "{" * 200,
    "(" * 200, "(" * 29 + "x" + ")" * 29, "(" * 100 + ")" * 100, "[({" * 60, r"\binom{200}{100}" * 12, "x^40" * 50,
    r"\binom{10^{10}}{10^9}", r"\sqrt[5]{999999999999999}", "1/3+" * 49 + "1", "x_1+" * 49 + "x", "abcdefgh" * 25,
    "!" * 200, "5" + "!" * 199, "^" * 200, "√" * 200, "\\" * 200, r"\sqrt" * 40, "9" * 200, "." * 200, "9," * 100,
    "_" * 200,
    "+".join(f"{chr(97 + n % 26)}^{n}" for n in range(40)), r"\frac1{x+1}+\frac1{x+2}+\frac1{y+3}+\frac1{y+4}" * 4,
    "(x+1)(x+2)(x+3)(x+4)(x+5)(x+6)(y+1)(y+2)(y+3)(y+4)(y+5)(y+6)(z+1)(z+2)(z+3)(z+4)", "e^{e^e}", "i^{40}" * 30,
    "(1+i)^{40}(2+3i)^{40}(5+7i)^{40}", r"(\sqrt2+\sqrt3+\sqrt5+\sqrt7+\sqrt{11}+\sqrt{13})^{40}",
    r"(1+\sqrt2)^{40}/(\sqrt3+\sqrt5)^{40}", "x=" * 100, "=" * 200, "(x+1/3)^{40}", "(x^{40})^{40}", "0^{-99999}",
]  # fmt: skip


@pytest.mark.parametrize("first, second, why", EQUAL, ids=[row[2] for row in EQUAL])
def test_equal(first, second, why):
    assert verdict(first, second) is True
    assert verdict(second, first) is True


@pytest.mark.parametrize("first, second, why", DIFFERENT, ids=[f"{row[2]}-{row[0]}" for row in DIFFERENT])
def test_different(first, second, why):
    assert verdict(first, second) is False
    assert verdict(second, first) is False


@pytest.mark.parametrize("text", NO_FORMULA)
def test_what_is_no_formula_or_is_read_in_two_ways(text):
    assert read_formula(text) is None


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_formulas_are_settled_at_once(text):
    with done_within(3):  # 0.1 at most
        formula = read_formula.__wrapped__(text)
        if formula is not None:
            assert same_formula(formula, formula) is not False


def test_texts_over_the_limit_are_not_read():
    assert read_formula("1" * 200) is not None
    assert read_formula("1" * 201) is None


def test_a_comparison_over_the_limits_is_none():
    many = "+".join(f"x_{{{number}}}" for number in range(20))
    first, second = read_formula(rf"\frac{{1}}{{{many}}}"), read_formula(rf"\frac{{{many.replace('x', 'y')}}}{{z}}")
    assert first is not None and second is not None
    assert same_formula(first, second) is None


def test_the_variable_of_an_equation():
    assert isinstance(read_formula("x=5"), Equation) and read_formula("x=5").variable == "x"
    assert [read_formula(text).variable for text in ("2x=10", "5=x", "x^2=4", "x+1=2", r"\pi=3")] == [None] * 4 + ["pi"]


# --- the same as sympy, on random formulas in random spellings


def fraction(numerator: str, denominator: str, style: int) -> str:
    return [rf"\frac{{{numerator}}}{{{denominator}}}", rf"\frac {{{numerator}}} {{{denominator}}}",
            rf"({numerator})/({denominator})"][style]  # fmt: skip


LEAVES = st.one_of(
    st.integers(0, 12).map(lambda n: (str(n), sympy.Integer(n))),
    st.sampled_from([("0.5", sympy.Rational(1, 2)), (".25", sympy.Rational(1, 4)), ("1,200", sympy.Integer(1200))]),
    st.sampled_from(sorted(SYMBOLS)).map(lambda name: (r"\pi " if name == "pi" else name, SYMBOLS[name])),
    st.tuples(st.integers(-12, 30), st.sampled_from([r"\sqrt{%d}", r"\sqrt{ %d }", "sqrt(%d)"])).map(
        lambda pair: (pair[1] % pair[0], sympy.sqrt(pair[0]))
    ),
)


def grow(children):
    pairs = st.tuples(children, children)
    return st.one_of(
        st.tuples(pairs, st.sampled_from(["({}) + ({})", "{{{}}}+{{{}}}", r"[{}]+({})"])).map(
            lambda t: (t[1].format(t[0][0][0], t[0][1][0]), t[0][0][1] + t[0][1][1])
        ),
        pairs.map(lambda p: (f"({p[0][0]}) - ({p[1][0]})", p[0][1] - p[1][1])),
        st.tuples(pairs, st.sampled_from([r"({})\cdot({})", r"({})\times({})", "({})*({})", "({})({})"])).map(
            lambda t: (t[1].format(t[0][0][0], t[0][1][0]), t[0][0][1] * t[0][1][1])
        ),
        st.tuples(pairs, st.integers(0, 2))
        .filter(lambda t: sympy.expand(sympy.numer(sympy.together(t[0][1][1]))) != 0)
        .map(lambda t: (fraction(t[0][0][0], t[0][1][0], t[1]), t[0][0][1] / t[0][1][1])),
        st.tuples(children, st.integers(1, 3), st.sampled_from(["({})^{}", "({})^{{{}}}"])).map(
            lambda t: (t[2].format(t[0][0], t[1]), t[0][1] ** t[1])
        ),
        children.map(lambda c: (f"-({c[0]})", -c[1])),
    )


FORMULAS = st.recursive(LEAVES, grow, max_leaves=6)


def is_zero(expression) -> bool:
    numerator = sympy.numer(sympy.together(expression))
    return sympy.expand(numerator, complex=False) == 0


@settings(max_examples=150, deadline=None)
@given(FORMULAS, FORMULAS)
def test_verdicts_agree_with_sympy(first, second):
    (text, value), (other_text, other_value) = first, second
    formula, other = read_formula(text), read_formula(other_text)
    assert (formula is None) <= (len(text) > 200) and (other is None) <= (len(other_text) > 200)
    if formula is None or other is None:
        return
    assert formula.equals(other) in (is_zero(value - other_value), None)
    assert other.equals(formula) is formula.equals(other)


@settings(max_examples=150, deadline=None)
@given(FORMULAS, st.sampled_from(["expand", "together", "factor", "plus and minus", "twice and half"]))
def test_another_form_of_a_formula_equals_it(formula, change):
    text, value = formula
    first = read_formula(text)
    if first is None:
        return
    changed = {
        "expand": lambda: sympy.latex(sympy.expand(value)),
        "together": lambda: sympy.latex(sympy.together(value)),
        "factor": lambda: sympy.latex(sympy.factor(value)),
        "plus and minus": lambda: f"({text}) + (x - y) - (x - y)",
        "twice and half": lambda: rf"\frac{{2({text})}}{{2}}",
    }[change]()
    second = read_formula(changed.replace(r"\left", "").replace(r"\right", ""))
    if second is not None:
        assert first.equals(second) is not False, changed
        shifted = read_formula(f"({text}) + x^2 + 1")
        assert shifted is None or shifted.equals(second) in (False, None)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.,xyei()[]{}+-*/^!_= \\√π", max_size=40))
def test_no_text_raises_and_a_formula_equals_itself(text):
    formula = read_formula(text)
    assert formula is None or same_formula(formula, formula) is not False
