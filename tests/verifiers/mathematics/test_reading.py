"""Reading answers and comparing them by kind: tables, and properties of `read` and `same` on
arbitrary text.
"""

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from present import present
from swift_rlvr.verifiers.mathematics.comparison import in_order, same
from swift_rlvr.verifiers.mathematics.notation import plain, tidy
from swift_rlvr.verifiers.mathematics.reading import read
from swift_rlvr.verifiers.mathematics.values import (
    Alternatives,
    Choice,
    Family,
    Infinity,
    Matrix,
    Number,
    Quantity,
    Region,
    Several,
    Tuple,
    Words,
)
from verifiers.mathematics.generated import NUMBERS_AND_SETS, TEXTS

TIDY = [
    (r"$\left(\dfrac{1}{2},\, 5\text{ cm}\right)$.", r"(\frac{1}{2}, 5 cm )"),
    ("$$x$$", "x"), (r"\(x\)", "x"), (r"\[x\]", "x"), (r"\[ x \].", "x"), ("$x$ and $y$", "x and y"),
    ("$", "$"), ("$$", "$$"), ("$5", "$5"), (r"\$5", "$5"), (r"50\%", "50%"), ("5.", "5"), ("5...", "5..."),
    ("**5**", "5"), ("**Answer:** 5", "Answer: 5"), ("**2**3", "**2**3"), ("5**2", "5**2"), ("−5", "-5"),
    ("1{,}234", "1234"), (r"1\,234", "1234"), (r"1,\!234", "1234"), (r"46,\! 802", "46802"),
    (r"\mathbf{7}", "7"), (r"30^\circ", "30 degrees"), (r"30^{\circ}", "30 degrees"), ("30°", "30 degrees"),
    (r"\lbrace 1 \rbrace", r"\{ 1 \}"), (r"2 \colon 1", "2 : 1"), (r"\leftarrow", r"\leftarrow"), ("", ""), (" ", ""),
    (r"\tfrac12", r"\frac12"), (r"\underline{5}", "5"), (r"\therefore 5", "5"), (r"a \\ b", r"a \\ b"),
]  # fmt: skip
NUMBERS = [
    ("5", 5), ("+5", 5), ("- 5", -5), ("−5", -5), ("007", 7), ("5.", 5), ("5.0", 5), (".5", "1/2"), ("-.5", "-1/2"),
    ("1,234", 1234), ("1,234,567.5", "1234567.5"), ("1{,}234", 1234), (r"\frac{1}{2}", "1/2"), (r"\frac12", "1/2"),
    (r"\frac{-1}{2}", "-1/2"), (r"\frac{1}{-2}", "-1/2"), (r"-\frac{-1}{-2}", "-1/2"), (r"\dfrac{0.5}{2}", "1/4"),
    ("1/2", "1/2"), ("-1/-2", "1/2"), ("1 / 2", "1/2"), ("1 1/2", "3/2"), ("-1 1/2", "-3/2"), (r"1\frac{1}{2}", "3/2"),
    (r"-1\frac12", "-3/2"), (r"17 \frac{1}{2}", "35/2"), ("1.5e3", 1500), ("1.5E-3", "0.0015"),
    (r"1.5\times10^3", 1500), (r"1.5 \cdot 10^{-3}", "0.0015"), ("2^{10}", 1024), ("2^{-3}", "1/8"), ("-2^2", -4),
    (r"0.\overline{3}", "1/3"), (r"1.2\overline{34}", "611/495"), (r"-0.\bar{9}", -1), (r"0.1\dot6", "1/6"),
    (r".\overline3", "1/3"), ("1 million", 10**6), ("5 thousand million", 5 * 10**9), ("2.5万亿", 25 * 10**11),
    ("2.5 thousand dollars", 2500), ("５", 5),
    ("9" * 400, int("9" * 400)),
]  # fmt: skip
NO_NUMBERS = [
    "", ".", "-", "1/0", r"\frac{1}{0}", r"\frac10", "0^{-1}", "1,23", "12,34", "1..2", "1.2.3", "--", "1e", "1e9999",
    "9" * 401, "1 2", "1 2 3", "5 or 6", "5x", "x5", "NaN", "inf", "1_000", "1/2/3", "5!", r"\sqrt4", "5 squared",
    "5 cubed", "5 factorial", "5 tenths", "5 hundredths", "5 six", "5 plus one", "5 maybe", "5 millions", "5 million's",
    "0x10", r"\phantom{5}", "5 if x",
]  # fmt: skip
UNITS = [
    ("5 cm", "cm"), ("5cm", "cm"), (r"5\text{ cm}", "cm"), (r"5\,\mathrm{cm}", "cm"), ("5 centimeters", "cm"),
    ("25 cm^2", "cm2"), (r"25\text{ cm}^{2}", "cm2"), ("25 cm²", "cm2"), ("25 square centimeters", "cm2"),
    ("25 sq. cm", "cm2"), ("25 cm squared", "cm2"), ("8 cubic feet", "ft3"), ("8 feet cubed", "ft3"), ("$5", "dollar"),
    ("-$5", "dollar"), ("5 dollars", "dollar"), ("30 degrees", "degree"), (r"30^\circ", "degree"), ("5 m/s", "m/s"),
    ("5 apples", "things apple"), ("3 cups of flour", "things cup flour"), ("18 dollars per day", "dollar/day"),

    ("$18 a day", "dollar/day"), ("45 mph", "mi/h"), (r"8.9 \frac{\text{g}}{\text{cm}^3}", "g/cm3"),
    ("2 kg m/s^2", "kg*m/s2"), ("26℃", "celsius"),
    ("7 in total", "things total"),
    ("5 brown-eyed children", "things brown child eyed"), ("5", ""),
]  # fmt: skip
EQUAL = [
    ("5 cm", "5", "a unit more"), ("5", "5 m", "a unit less"), ("5 cm", "5 centimeters", "one unit, two names"),
    ("5 apples", "5 red apples", "what is counted"), ("$5", "5 dollars", "sign and word"),
    (r"6\pi\text{ cm}", r"6\pi", "a unit behind a formula"), (r"6\pi", "6π cm", "the same, plain"),
    (r"2\sqrt{3}\text{ cm}", r"\sqrt{12} \mathrm{~cm}", "units behind formulas"), (r"x = 5\text{ s}", "5", "equation"),
    (r"t=5\text{ s}", "5 seconds", "an equation with a unit and a number with one"),
    (r"36\pi\text{ cm}^2", r"36\pi \text{ square cm}", "square units"), ("50%", "0.5", "percent is a value"),
    ("50%", "50", "or a unit"), ("50", "50%", "the other way"), ("1/2", "50%", "a value below 1"), ("50%", "50.0%", ""),
    ("A", "(A)", "parentheses"), ("A", r"\text{(a)}", "case, where it is marked"),
    ("A", "Option A", "a word before it"),
    ("A", "(A) 5", "with its content"), ("(A) 5", "5", "the content"), ("(A) 5", "(A) 5.0", "letter and content"),
    ("yes", "Yes", "case of a word"), ("ellipse", "an ellipse", "article"), ("1, 2", "2, 1", "a set without braces"),
    (r"\{1,2\}", r"\lbrace 2, 1 \rbrace", "braces"), ("(1,2)", "(1.0, 4/2)", "a pair"), ("1;2", "1, 2", "semicolons"),
    ("1, 2 and 3", "1,2,3", "and"), ("1, 2, and 3", "3, 1, 2", "comma and and"), ("[1, 2)", "[1,2)", "half open"),
    ("(1,2), (3,4)", "(3,4),(1,2)", "a set of pairs"), (r"\{(1,2),(3,4)\}", "(1,2) and (3,4)", "braces left out"),
    ("(A), (C)", "A, C", "two letters"), ("(A) and (C)", "C, A", "two letters with and"), (r"\infty", r"+\infty", ""),
    ("1, 2", "2, 1, 2.0", "the same set"), ("50%, 1 cm", "1, 1/2", "a set with percent and unit"),
    (",".join(map(str, range(500))), ",".join(map(str, reversed(range(500)))), "a long set of numbers"),
    ("5", r"\{5\}", "a set of one"), ("ab", "ba", "two letters are a product"),
    (r"n, n \in \mathbb{Z}", "n", "a letter alone is the parameter"), (r"x \approx 1.4", "x ≃ 1.4", "about"),
    ("1101_2", "1101_{2}", "a base"), ("4:30 p.m.", "4:30 PM", "a time"), ("(1, \\infty)", r"(1,+\infty)", "infinity"),
]  # fmt: skip
DIFFERENT = [
    (r"2n, n \in \mathbb{Z}", "n", "every second integer"),
    ("5 apples", "5 kg", "what is counted"),
    ("5 cm", "5 m", "another unit"), ("5 cm", "5 cm^2", "another power of it"), ("$5", "5 cents", "cents"),
    (r"6\pi\text{ cm}", r"6\pi\text{ m}", "another unit behind a formula"),
    (r"6\pi\text{ cm}", r"6\text{ cm}", "no pi"),
    ("50%", "0.5%", "both have the sign"), ("50%", "5000%", "both have the sign"), ("0.5", "50", "none has the sign"),
    ("50%", "5", "a tenth"), ("1/2", "5%", "a tenth"), ("A", "B", "letters"), ("A", "(B)", "letters"),
    ("a", "A", "case"),
    ("(A) 5", "(A) 6", "letter right, content wrong"), ("(A) 5", "(B) 5", "content right, letter wrong"),
    ("(A) 5", "6", "neither"), ("A", "(A) is wrong, (B) is right", "another letter"),
    ("yes", "no", "words"), ("east", "seat", "letters swapped"), ("1, 2", "1, 2, 3", "one more"),
    ("5", "5, 6", "one more"), ("1, 2, 3", "1, 2, 2", "one is missing"), ("1, 50%", "1, 5%", "a tenth in a set"),
    (r"\{1,2\}", "(1,2)", "a pair is no set"), ("(1,2)", "(2,1)", "order"), ("(1,2)", "[1,2]", "brackets"),
    ("(1,2)", "(1,2,2)", "length"),  ("5", r"\{5,5\}", "a set"),
    (r"\infty", r"-\infty", "sign"), ("5", r"\infty", "infinity"), ("5", "yes", "a word"), ("1101_2", "1101_3", "base"),
    ("(1,2)", "1, 2", "brackets left out"), ("(1,2)", "(1,2),(2,1)", "one pair and two"), ("abcd", "dcba", "words"),
    ("(D) both (A) and (B)", "(D) both (A) and (C)", "letters in the content"),
    ("(A), (C)", "(A), (B)", "two letters"), ("1 million", "1", "the word counts"), ("x=5", "5 = y", "variable"),
]  # fmt: skip
TWELVE = Choice("D", True, "12", Number(Fraction(12)))


@pytest.mark.parametrize("text, expected", TIDY)
def test_tidy(text, expected):
    assert tidy(text) == expected


@pytest.mark.parametrize("text, expected", NUMBERS, ids=[text[:20] for text, _ in NUMBERS])
def test_numbers(text, expected):
    value = read(text)
    assert isinstance(value, Number) and value.value == Fraction(expected)


@pytest.mark.parametrize("text", NO_NUMBERS, ids=[text[:20] for text in NO_NUMBERS])
def test_no_numbers(text):
    assert not isinstance(read(text), Number)


def equal(gold: str, answer: str) -> bool:
    return same(present(read(gold)), present(read(answer)))


@pytest.mark.parametrize("text, expected", UNITS)
def test_units(text, expected):
    value = read(text)
    assert isinstance(value, Number | Quantity) and value.unit == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A", Choice("A", False)), ("(A)", Choice("A", True)), ("A)", Choice("A", True)),
        (r"\text{A}", Choice("A", True)),
        ("(A", None), ("(D) 12", TWELVE), ("D. 12", TWELVE),
        ("(A) or (B)", Alternatives((Choice("A", True), Choice("B", True)))),
        ("The answer is (A).", Choice("A", True)), ("yes", Words("yes", True)), ("ab", Words("ab", False)),
        (r"\infty", Infinity(1)), (r"-\infty", Infinity(-1)), ("2024-01-15", Words("2024-01-15", True)),
        ("1A_{16}", Words("1a_16", True)), ("众数", Words("众数", True)), ("(1,2),(3,4", None), ("1)(2", None),
        ("[1, 2", None), (r"\begin{cases} x", None), (r"\foo{5}", None), ("5 + ", None),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", Matrix(False, ((Number(Fraction(1)), Number(Fraction(2))),))),
    ],
)  # fmt: skip
def test_other_kinds(text, expected):
    assert read(text) == expected


def test_kinds_by_their_class():
    assert isinstance(read(r"6\pi\text{ cm}"), Quantity) and not isinstance(read("6x cm"), Quantity)
    assert read("(1, 2]") == Tuple((Number(Fraction(1)), Number(Fraction(2))), closed_high=True)
    region = read("-1 < x \u2264 2")
    assert isinstance(region, Region) and region.variable == "x"
    assert isinstance(read(r"\frac{k\pi}{6}, k \in \mathbb{Z}"), Family)
    assert isinstance(read("(" * 5 + "1,2)" + ",3)" * 4), Tuple)
    assert read("(" * 9 + "1,2)" + ",3)" * 8) is None  # too deep


@pytest.mark.parametrize(
    "gold, answer, why", EQUAL, ids=[f"{gold[:30]}-{answer[:30]}" for gold, answer, _ in EQUAL]
)
def test_equal(gold, answer, why):
    assert equal(gold, answer) is True, why


@pytest.mark.parametrize(
    "gold, answer, why",
    DIFFERENT,
    ids=[f"{gold[:30]}-{answer[:30]}" for gold, answer, _ in DIFFERENT],
)
def test_different(gold, answer, why):
    assert equal(gold, answer) is False, why


@pytest.mark.parametrize(
    "first, second, alike",
    [("x + 1", "x+1", True), (r"\left(x\right)", "(x)", True), ("1 234", "1234", True), ("x^{2}", "x^2", True),
     ("12 345 678", "12345678", True), (r"\text{yes}", "yes", True), (r"\dfrac{1}{2}", r"\frac{1}{2}", True),
     ("1 2", "12", False), ("1 2 3 4", "1234", False), ("12 34", "1234", False), ("1 1/2", "11/2", False),
     ("x", "X", False), ("(1,2)", "[1,2]", False)],
)  # fmt: skip
def test_written_alike(first, second, alike):
    assert (plain(first) == plain(second)) is alike


def test_texts_over_the_limit_are_not_read():
    assert read("a" * 2000) is None or isinstance(read("a" * 2000), Words)
    assert read("1" * 2001) is None and read("1," * 1000 + "1") is None


@settings(max_examples=1500, derandomize=True)
@given(TEXTS)
def test_every_value_equals_itself(text):
    plain(text)
    value = read(text)
    assert value is None or same(value, value) is True


@settings(max_examples=500, derandomize=True)
@given(NUMBERS_AND_SETS, NUMBERS_AND_SETS)
def test_gold_and_answer_may_be_exchanged(first, second):
    """But where the order counts in one of them alone: of `0, 0, 1` it does, and of `0, 1` not."""
    ordered = []
    for text in (first, second):
        value = read(text)
        ordered.append(isinstance(value, Several) and in_order(value))
    assume(ordered[0] is ordered[1])
    assert equal(first, second) is equal(second, first)


@settings(max_examples=200, derandomize=True)
@given(st.fractions(-1000, 1000, max_denominator=60), st.fractions(-1000, 1000, max_denominator=60))
def test_spellings_of_fractions(value, other):
    def spell(number):
        sign, top, bottom = "-" if number < 0 else "", abs(number.numerator), number.denominator
        yield f"{number}"
        yield rf"{sign}\frac{{{top}}}{{{bottom}}}"
        yield rf"\dfrac{{{sign}{top}}}{{{bottom}}}"
        yield rf"{sign}{top // bottom}\frac{{{top % bottom}}}{{{bottom}}}"
        yield f"${sign}{top * 2} / {bottom * 2}$"
        yield rf"x = {sign}{top}/{bottom}"

    for spelling in spell(value):
        assert equal(f"{value}", spelling) is True, spelling
        assert equal(f"{other}", spelling) is (value == other), spelling
