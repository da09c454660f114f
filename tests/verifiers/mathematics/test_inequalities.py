"""Random inequalities and their solution sets, which are computed here by other means."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.verifiers.mathematics.comparison import same
from swift_rlvr.verifiers.mathematics.inequalities import solution_set
from swift_rlvr.verifiers.mathematics.parser import read_expression
from swift_rlvr.verifiers.mathematics.reading import read

NUMBERS = st.integers(-9, 9)
SIGNS = st.sampled_from(["<", r"\le", ">", r"\ge"])
TURNED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
OTHER_END = {"<": r"\le", ">": r"\ge", r"\le": "<", r"\ge": ">"}
HOLDS = {
    "<": lambda a: a < 0,
    r"\le": lambda a: a <= 0,
    ">": lambda a: a > 0,
    r"\ge": lambda a: a >= 0,
}


def equal(first: str, second: str) -> bool:
    values = read(first), read(second)
    assert None not in values, (first, second)
    assert same(*values) is same(*values[::-1])
    return same(*values)


@settings(max_examples=150, derandomize=True)
@given(NUMBERS.filter(bool), NUMBERS, NUMBERS, NUMBERS, SIGNS)
def test_a_linear_inequality_is_its_solved_form_and_no_other(a, b, c, d, sign):
    written = f"{a}x + ({b}) {sign} {c}x + ({d})"
    if a == c:
        assert not equal(written, "x < 0") and not equal(written, r"x \ge 0")
        return
    bound = Fraction(d - b, a - c)
    solved = sign if a > c else TURNED[sign]
    assert equal(written, f"x {solved} {bound}") and equal(written, f"{bound} {TURNED[solved]} x")
    for wrong in (f"x {TURNED[solved]} {bound}", f"x {OTHER_END[solved]} {bound}", f"x {solved} {bound + 1}",
                  f"y {solved} {bound}", f"x {solved} {-bound - Fraction(1, 3)}"):  # fmt: skip
        assert not equal(written, wrong), wrong


@settings(max_examples=150, derandomize=True)
@given(NUMBERS, NUMBERS, NUMBERS, st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)), SIGNS)
def test_a_number_is_in_the_solution_set_where_the_inequality_holds(a, b, c, absolute, sign):
    text = f"{a}x^2 + ({b})x + ({c})" + (
        "" if absolute is None else f" + |{absolute[0]}x + ({absolute[1]})|"
    )
    solution = solution_set(
        (sign.replace(r"\le", "<=").replace(r"\ge", ">="),), [read_expression(text), ("number", 0)]
    )
    if not (a or b or (absolute and absolute[0])):
        text += " + x - x"
    for number in [Fraction(half, 2) for half in range(-25, 26)]:
        value = (
            a * number**2
            + b * number
            + c
            + (abs(absolute[0] * number + absolute[1]) if absolute else 0)
        )
        assert solution is not None
        name, numbers = solution
        point = numbers.of(number)
        assert name == "x" and numbers.intersection(point).equals(point) is HOLDS[sign](value), (
            text,
            number,
        )


@settings(max_examples=100, derandomize=True)
@given(NUMBERS, st.integers(1, 9), SIGNS)
def test_an_absolute_value_is_an_interval_or_two_rays(middle, distance, sign):
    low, high = middle - distance, middle + distance
    closed = sign in (r"\le", r"\ge")
    if sign in ("<", r"\le"):
        expected = f"[{low}, {high}]" if closed else f"({low}, {high})"
        other = f"({low}, {high}]"
    else:
        expected = rf"(-\infty, {low}{'])'[not closed]} \cup {'[('[not closed]}{high}, \infty)"
        other = rf"(-\infty, {low}] \cup ({high}, \infty)"
    for written in (
        f"|x - ({middle})| {sign} {distance}",
        f"{distance} {TURNED[sign]} |{middle} - x|",
    ):
        assert equal(written, expected) and not equal(written, other)
        assert equal(written, f"(x - ({middle}))^2 {sign} {distance**2}")
